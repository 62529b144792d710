// Blocks of BC1 to BC7, field after field.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "tests/loader/block_reference.h"

namespace fornax::test {
namespace {

// Reads a block of little-endian bits from a place on.
class BitReader {
  public:
    BitReader(const uint8_t* block, uint32_t at) : block_(block), at_(at) {}
    int Take(uint32_t count) {
        int value = 0;
        for (uint32_t i = 0; i < count; ++i, ++at_) {
            value |= (block_[at_ / 8] >> at_ % 8 & 1) << i;
        }
        return value;
    }

  private:
    const uint8_t* block_;
    uint32_t at_;
};

// The subset of each texel, row after row.
constexpr const char* kTwoSubsets[] = {
    "0011001100110011", "0001000100010001", "0111011101110111", "0001001100110111",
    "0000000100010011", "0011011101111111", "0001001101111111", "0000000100110111",
    "0000000000010011", "0011011111111111", "0000000101111111", "0000000000010111",
    "0001011111111111", "0000000011111111", "0000111111111111", "0000000000001111",
    "0000100011101111", "0111000100000000", "0000000010001110", "0111001100010000",
    "0011000100000000", "0000100011001110", "0000000010001100", "0111001100110001",
    "0011000100010000", "0000100010001100", "0110011001100110", "0011011001101100",
    "0001011111101000", "0000111111110000", "0111000110001110", "0011100110011100",
    "0101010101010101", "0000111100001111", "0101101001011010", "0011001111001100",
    "0011110000111100", "0101010110101010", "0110100101101001", "0101101010100101",
    "0111001111001110", "0001001111001000", "0011001001001100", "0011101111011100",
    "0110100110010110", "0011110011000011", "0110011010011001", "0000011001100000",
    "0100111001000000", "0010011100100000", "0000001001110010", "0000010011100100",
    "0110110010010011", "0011011011001001", "0110001110011100", "0011100111000110",
    "0110110011001001", "0110001100111001", "0111111010000001", "0001100011100111",
    "0000111100110011", "0011001111110000", "0010001011101110", "0100010001110111",
};
constexpr const char* kThreeSubsets[] = {
    "0011001102212222", "0001001122112221", "0000200122112211", "0222002200110111",
    "0000000011221122", "0011001100220022", "0022002211111111", "0011001122112211",
    "0000000011112222", "0000111111112222", "0000111122222222", "0012001200120012",
    "0112011201120112", "0122012201220122", "0011011211221222", "0011200122002220",
    "0001001101121122", "0111001120012200", "0000112211221122", "0022002200221111",
    "0111011102220222", "0001000122212221", "0000001101220122", "0000110022102210",
    "0122012200110000", "0012001211222222", "0110122112210110", "0000011012211221",
    "0022110211020022", "0110011020022222", "0011012201220011", "0000200022112221",
    "0000000211221222", "0222002200120011", "0011001200220222", "0120012001200120",
    "0000111122220000", "0120120120120120", "0120201212010120", "0011220011220011",
    "0011112222000011", "0101010122222222", "0000000021212121", "0022112200221122",
    "0022001100220011", "0220122102201221", "0101222222220101", "0000212121212121",
    "0101010101012222", "0222011102220111", "0002111200021112", "0000211221122112",
    "0222011101110222", "0002111211120002", "0110011001102222", "0000000021122112",
    "0110011022222222", "0022001100110022", "0022112211220022", "0000000000002112",
    "0002000100020001", "0222122202221222", "0101222222222222", "0111201122012220",
};
constexpr int kAnchorsOfTwo[] = {15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
                                 15, 2,  8,  2,  2,  8,  8,  15, 2,  8,  2,  2,  8,  8,  2,  2,
                                 15, 15, 6,  8,  2,  8,  15, 15, 2,  8,  2,  2,  2,  15, 15, 6,
                                 6,  2,  6,  8,  15, 15, 2,  2,  15, 15, 15, 15, 15, 2,  2,  15};
constexpr int kSecondAnchorsOfThree[] = {
    3,  3,  15, 15, 8, 3,  15, 15, 8,  8,  6, 6,  6, 5,  3, 3,  3,  3,  8,  15, 3,  3,
    6,  10, 5,  8,  8, 6,  8,  5,  15, 15, 8, 15, 3, 5,  6, 10, 8,  15, 15, 3,  15, 5,
    15, 15, 15, 15, 3, 15, 5,  5,  5,  8,  5, 10, 5, 10, 8, 13, 15, 12, 3,  3};
constexpr int kThirdAnchorsOfThree[] = {
    15, 8, 8, 3,  15, 15, 3,  8,  15, 15, 15, 15, 15, 15, 15, 8,  15, 8,  15, 3,  15, 8,
    15, 8, 3, 15, 6,  10, 15, 15, 10, 8,  15, 3,  15, 10, 10, 8,  9,  10, 6,  15, 8,  15,
    3,  6, 6, 8,  15, 3,  15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 3,  15, 15, 8};

int SubsetOf(int subsets, int partition, int texel) {
    return subsets == 1   ? 0
           : subsets == 2 ? kTwoSubsets[partition][texel] - '0'
                          : kThreeSubsets[partition][texel] - '0';
}

bool IsAnchor(int subsets, int partition, int texel) {
    return texel == 0 || (subsets == 2 && texel == kAnchorsOfTwo[partition]) ||
           (subsets == 3 && (texel == kSecondAnchorsOfThree[partition] ||
                             texel == kThirdAnchorsOfThree[partition]));
}

int IndexOf(BitReader& bits, uint32_t size, int subsets, int partition, int wanted) {
    int index = 0;
    for (int texel = 0; texel <= 15; ++texel) {
        const int read = bits.Take(size - (IsAnchor(subsets, partition, texel) ? 1 : 0));
        if (texel == wanted) {
            index = read;
        }
    }
    return index;
}

int Between(int first, int second, int index, uint32_t size) {
    constexpr int kWeights[3][16] = {{0, 21, 43, 64},
                                     {0, 9, 18, 27, 37, 46, 55, 64},
                                     {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64}};
    const int weight = kWeights[size - 2][index];
    return ((64 - weight) * first + weight * second + 32) >> 6;
}

std::array<double, 4> Bc7(const uint8_t* block, int texel) {
    struct Mode {
        int subsets;
        uint32_t partition, rotation, selection, color, alpha, own_p, shared_p, index, second;
    };
    constexpr Mode kModes[] = {{3, 4, 0, 0, 4, 0, 1, 0, 3, 0}, {2, 6, 0, 0, 6, 0, 0, 1, 3, 0},
                               {3, 6, 0, 0, 5, 0, 0, 0, 2, 0}, {2, 6, 0, 0, 7, 0, 1, 0, 2, 0},
                               {1, 0, 2, 1, 5, 6, 0, 0, 2, 3}, {1, 0, 2, 0, 7, 8, 0, 0, 2, 2},
                               {1, 0, 0, 0, 7, 7, 1, 0, 4, 0}, {2, 6, 0, 0, 5, 5, 1, 0, 2, 0}};
    if (block[0] == 0) {
        return {};
    }
    const auto number = static_cast<uint32_t>(std::countr_zero(block[0]));
    const Mode& mode = kModes[number];
    BitReader bits(block, number + 1);
    const int partition = bits.Take(mode.partition);
    const int rotation = bits.Take(mode.rotation);
    const int selection = bits.Take(mode.selection);
    int ends[3][2][4] = {};
    for (int c = 0; c < 4; ++c) {
        for (int s = 0; s < mode.subsets; ++s) {
            for (int e = 0; e < 2; ++e) {
                ends[s][e][c] = bits.Take(c == 3 ? mode.alpha : mode.color);
            }
        }
    }
    const uint32_t p = mode.own_p | mode.shared_p;
    for (int s = 0; s < mode.subsets; ++s) {
        int low = 0;
        for (int e = 0; e < 2; ++e) {
            if (mode.own_p || e == 0) {
                low = bits.Take(p);
            }
            for (int c = 0; c < 4; ++c) {
                const uint32_t size = (c == 3 ? mode.alpha : mode.color) + p;
                int& value = ends[s][e][c];
                if (c == 3 && mode.alpha == 0) {
                    value = 255;
                    continue;
                }
                value = (value << p | low) << (8 - size);
                value |= value >> size;
            }
        }
    }
    const int first = IndexOf(bits, mode.index, mode.subsets, partition, texel);
    const int second = mode.second ? IndexOf(bits, mode.second, 1, 0, texel) : first;
    const uint32_t second_size = mode.second ? mode.second : mode.index;
    const int s = SubsetOf(mode.subsets, partition, texel);
    int out[4];
    for (int c = 0; c < 4; ++c) {
        const bool takes_second = (c == 3) != (selection == 1);
        out[c] = Between(ends[s][0][c], ends[s][1][c], takes_second ? second : first,
                         takes_second ? second_size : mode.index);
    }
    if (rotation != 0) {
        std::swap(out[3], out[rotation - 1]);
    }
    return {out[0] / 255.0, out[1] / 255.0, out[2] / 255.0, out[3] / 255.0};
}

// What each bit of a block is: a variable, from "a" for the red of the first endpoint to "l" for
// the blue of the fourth, and its bit.
struct Bc6Mode {
    int number;
    bool transformed;
    int endpoint_bits;
    int delta_bits[3];
    const char* bits;
};
constexpr Bc6Mode kBc6Modes[] = {
    {0,
     true,
     10,
     {5, 5, 5},
     "----h4i4l4a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3d4k4"
     "h0h1h2h3e0e1e2e3e4l0k0k1k2k3f0f1f2f3f4l1i0i1i2i3g0g1g2g3g4l2j0j1j2j3j4l3"},
    {1,
     true,
     7,
     {6, 6, 6},
     "----h5k4k5a0a1a2a3a4a5a6l0l1i4b0b1b2b3b4b5b6i5l2h4c0c1c2c3c4c5c6l3l5l4d0d1d2d3d4d5"
     "h0h1h2h3e0e1e2e3e4e5k0k1k2k3f0f1f2f3f4f5i0i1i2i3g0g1g2g3g4g5j0j1j2j3j4j5"},
    {2,
     true,
     11,
     {5, 4, 4},
     "----------a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3d4aa"
     "h0h1h2h3e0e1e2e3bal0k0k1k2k3f0f1f2f3cal1i0i1i2i3g0g1g2g3g4l2j0j1j2j3j4l3"},
    {6,
     true,
     11,
     {4, 5, 4},
     "----------a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3aak4"
     "h0h1h2h3e0e1e2e3e4bak0k1k2k3f0f1f2f3cal1i0i1i2i3g0g1g2g3l0l2j0j1j2j3h4l3"},
    {10,
     true,
     11,
     {4, 4, 5},
     "----------a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3aai4"
     "h0h1h2h3e0e1e2e3bal0k0k1k2k3f0f1f2f3f4cai0i1i2i3g0g1g2g3l1l2j0j1j2j3l4l3"},
    {14,
     true,
     9,
     {5, 5, 5},
     "----------a0a1a2a3a4a5a6a7a8i4b0b1b2b3b4b5b6b7b8h4c0c1c2c3c4c5c6c7c8l4d0d1d2d3d4k4"
     "h0h1h2h3e0e1e2e3e4l0k0k1k2k3f0f1f2f3f4l1i0i1i2i3g0g1g2g3g4l2j0j1j2j3j4l3"},
    {18,
     true,
     8,
     {6, 5, 5},
     "----------a0a1a2a3a4a5a6a7k4i4b0b1b2b3b4b5b6b7l2h4c0c1c2c3c4c5c6c7l3l4d0d1d2d3d4d5"
     "h0h1h2h3e0e1e2e3e4l0k0k1k2k3f0f1f2f3f4l1i0i1i2i3g0g1g2g3g4g5j0j1j2j3j4j5"},
    {22,
     true,
     8,
     {5, 6, 5},
     "----------a0a1a2a3a4a5a6a7l0i4b0b1b2b3b4b5b6b7h5h4c0c1c2c3c4c5c6c7k5l4d0d1d2d3d4k4"
     "h0h1h2h3e0e1e2e3e4e5k0k1k2k3f0f1f2f3f4l1i0i1i2i3g0g1g2g3g4l2j0j1j2j3j4l3"},
    {26,
     true,
     8,
     {5, 5, 6},
     "----------a0a1a2a3a4a5a6a7l1i4b0b1b2b3b4b5b6b7i5h4c0c1c2c3c4c5c6c7l5l4d0d1d2d3d4k4"
     "h0h1h2h3e0e1e2e3e4l0k0k1k2k3f0f1f2f3f4f5i0i1i2i3g0g1g2g3g4l2j0j1j2j3j4l3"},
    {30,
     false,
     6,
     {6, 6, 6},
     "----------a0a1a2a3a4a5k4l0l1i4b0b1b2b3b4b5h5i5l2h4c0c1c2c3c4c5k5l3l5l4d0d1d2d3d4d5"
     "h0h1h2h3e0e1e2e3e4e5k0k1k2k3f0f1f2f3f4f5i0i1i2i3g0g1g2g3g4g5j0j1j2j3j4j5"},
    {3,
     false,
     10,
     {10, 10, 10},
     "----------a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3d4d5"
     "d6d7d8d9e0e1e2e3e4e5e6e7e8e9f0f1f2f3f4f5f6f7f8f9"},
    {7,
     true,
     11,
     {9, 9, 9},
     "----------a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3d4d5"
     "d6d7d8aae0e1e2e3e4e5e6e7e8baf0f1f2f3f4f5f6f7f8ca"},
    {11,
     true,
     12,
     {8, 8, 8},
     "----------a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3d4d5"
     "d6d7abaae0e1e2e3e4e5e6e7bbbaf0f1f2f3f4f5f6f7cbca"},
    {15,
     true,
     16,
     {4, 4, 4},
     "----------a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5b6b7b8b9c0c1c2c3c4c5c6c7c8c9d0d1d2d3afae"
     "adacabaae0e1e2e3bfbebdbcbbbaf0f1f2f3cfcecdcccbca"},
};

int Unquantized(int x, int bits, bool is_signed) {
    const auto scaled = [&](int value) { return ((value << 15) + 0x4000) >> (bits - 1); };
    if (!is_signed) {
        if (bits >= 15 || x == 0) {
            return x;
        }
        return x == (1 << bits) - 1 ? 0xffff : scaled(x);
    }
    if (bits >= 16 || x == 0) {
        return x;
    }
    const int magnitude = std::abs(x);
    const int wide = magnitude >= (1 << (bits - 1)) - 1 ? 0x7fff : scaled(magnitude);
    return x < 0 ? -wide : wide;
}

int Extended(int value, int bits) {
    value &= (1 << bits) - 1;
    return value >= 1 << (bits - 1) ? value - (1 << bits) : value;
}

std::array<double, 4> Bc6(const uint8_t* block, int texel, bool is_signed) {
    const int number = (block[0] & 2) == 0 ? block[0] & 1 : block[0] & 31;
    const auto* mode = std::ranges::find(kBc6Modes, number, &Bc6Mode::number);
    if (mode == std::end(kBc6Modes)) {
        return {0, 0, 0, 1};
    }
    int variables[12] = {};
    for (uint32_t i = 0; mode->bits[2 * i]; ++i) {
        const char name = mode->bits[2 * i];
        const char digit = mode->bits[2 * i + 1];
        if (name != '-') {
            variables[name - 'a'] |= BitReader(block, i).Take(1)
                                     << (digit >= 'a' ? digit - 'a' + 10 : digit - '0');
        }
    }
    const bool one = number == 3 || number == 7 || number == 11 || number == 15;
    const int partition = one ? 0 : BitReader(block, 77).Take(5);
    BitReader bits(block, one ? 65 : 82);
    const int subsets = one ? 1 : 2;
    const uint32_t size = one ? 4 : 3;
    const int index = IndexOf(bits, size, subsets, partition, texel);
    const int subset = SubsetOf(subsets, partition, texel);
    std::array<double, 4> out = {0, 0, 0, 1};
    for (int c = 0; c < 3; ++c) {
        int ends[2];
        for (int e = 0; e < 2; ++e) {
            const int endpoint = 2 * subset + e;
            int value = variables[3 * endpoint + c];
            if (mode->transformed && endpoint != 0) {
                value = (variables[c] + Extended(value, mode->delta_bits[c])) &
                        ((1 << mode->endpoint_bits) - 1);
            }
            if (is_signed) {
                value = Extended(value, mode->endpoint_bits);
            }
            ends[e] = Unquantized(value, mode->endpoint_bits, is_signed);
        }
        const int value = Between(ends[0], ends[1], index, size);
        const int magnitude = is_signed ? std::abs(value) * 31 >> 5 : value * 31 >> 6;
        const int exponent = magnitude >> 10;
        const double digits = magnitude & 1023;
        const double half = exponent == 0    ? std::ldexp(digits, -24)
                            : exponent == 31 ? static_cast<double>(INFINITY)
                                             : std::ldexp(1024 + digits, exponent - 25);
        out[static_cast<size_t>(c)] = value < 0 ? -half : half;
    }
    return out;
}

double Ramp(const uint8_t* block, int texel, bool is_signed) {
    const double scale = is_signed ? 127 : 255;
    const auto end = [&](int i) {
        return is_signed ? std::max<int>(-127, static_cast<int8_t>(block[i])) : block[i];
    };
    const int first = end(0);
    const int second = end(1);
    BitReader bits(block, 16 + 3 * static_cast<uint32_t>(texel));
    const int code = bits.Take(3);
    if (code < 2) {
        return (code ? second : first) / scale;
    }
    if (first > second) {
        return (first * (8 - code) + second * (code - 1)) / 7.0 / scale;
    }
    if (code >= 6) {
        return code == 7 ? 1 : is_signed ? -1 : 0;
    }
    return (first * (6 - code) + second * (code - 1)) / 5.0 / scale;
}

std::array<double, 4> Bc1(const uint8_t* block, int texel, bool always_four) {
    int colors[4][3];
    BitReader bits(block, 0);
    const int first = bits.Take(16);
    const int words[2] = {first, bits.Take(16)};
    for (int i = 0; i < 2; ++i) {
        const int r = words[i] >> 11;
        const int g = words[i] >> 5 & 63;
        const int b = words[i] & 31;
        colors[i][0] = r << 3 | r >> 2;
        colors[i][1] = g << 2 | g >> 4;
        colors[i][2] = b << 3 | b >> 2;
    }
    const bool four = always_four || words[0] > words[1];
    for (int c = 0; c < 3; ++c) {
        const int a = colors[0][c];
        const int b = colors[1][c];
        colors[2][c] = four ? (2 * a + b) / 3 : (a + b) / 2;
        colors[3][c] = four ? (a + 2 * b) / 3 : 0;
    }
    const int code = BitReader(block, 32 + 2 * static_cast<uint32_t>(texel)).Take(2);
    const int* color = colors[code];
    return {color[0] / 255.0, color[1] / 255.0, color[2] / 255.0, code == 3 && !four ? 0.0 : 1.0};
}

}  // namespace

std::array<double, 4> DecodeBcBlock(VkFormat format, const uint8_t* block, uint32_t x, uint32_t y) {
    const int texel = static_cast<int>(y * 4 + x);
    switch (format) {
        case VK_FORMAT_BC1_RGB_UNORM_BLOCK:
        case VK_FORMAT_BC1_RGB_SRGB_BLOCK: {
            auto color = Bc1(block, texel, false);
            color[3] = 1;
            return color;
        }
        case VK_FORMAT_BC1_RGBA_UNORM_BLOCK:
        case VK_FORMAT_BC1_RGBA_SRGB_BLOCK:
            return Bc1(block, texel, false);
        case VK_FORMAT_BC2_UNORM_BLOCK:
        case VK_FORMAT_BC2_SRGB_BLOCK: {
            auto color = Bc1(block + 8, texel, true);
            color[3] = BitReader(block, 4 * static_cast<uint32_t>(texel)).Take(4) / 15.0;
            return color;
        }
        case VK_FORMAT_BC3_UNORM_BLOCK:
        case VK_FORMAT_BC3_SRGB_BLOCK: {
            auto color = Bc1(block + 8, texel, true);
            // Eight bits each, as the colors have.
            color[3] = std::floor(Ramp(block, texel, false) * 255 + 1e-9) / 255;
            return color;
        }
        case VK_FORMAT_BC4_UNORM_BLOCK:
        case VK_FORMAT_BC4_SNORM_BLOCK:
            return {Ramp(block, texel, format == VK_FORMAT_BC4_SNORM_BLOCK), 0, 0, 1};
        case VK_FORMAT_BC5_UNORM_BLOCK:
        case VK_FORMAT_BC5_SNORM_BLOCK: {
            const bool is_signed = format == VK_FORMAT_BC5_SNORM_BLOCK;
            return {Ramp(block, texel, is_signed), Ramp(block + 8, texel, is_signed), 0, 1};
        }
        case VK_FORMAT_BC6H_UFLOAT_BLOCK:
        case VK_FORMAT_BC6H_SFLOAT_BLOCK:
            return Bc6(block, texel, format == VK_FORMAT_BC6H_SFLOAT_BLOCK);
        default:
            return Bc7(block, texel);
    }
}

}  // namespace fornax::test
