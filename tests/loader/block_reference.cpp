// Bit by bit, after the tables of the Khronos Data Format specification.
#include "tests/loader/block_reference.h"

#include <algorithm>

namespace fornax::test {
namespace {

// Bits of a block of eight bytes, whose first byte holds the uppermost, bit 63.
int Bits(const uint8_t* block, uint32_t high, uint32_t low) {
    int value = 0;
    for (uint32_t bit = high + 1; bit-- > low;) {
        value = value << 1 | (block[7 - bit / 8] >> bit % 8 & 1);
    }
    return value;
}

int Clamp8(int value) {
    return std::clamp(value, 0, 255);
}

constexpr int kModifiers[16][8] = {
    {-3, -6, -9, -15, 2, 5, 8, 14}, {-3, -7, -10, -13, 2, 6, 9, 12}, {-2, -5, -8, -13, 1, 4, 7, 12},
    {-2, -4, -6, -13, 1, 3, 5, 12}, {-3, -6, -8, -12, 2, 5, 7, 11},  {-3, -7, -9, -11, 2, 6, 8, 10},
    {-4, -7, -8, -11, 3, 6, 7, 10}, {-3, -5, -8, -11, 2, 4, 7, 10},  {-2, -6, -8, -10, 1, 5, 7, 9},
    {-2, -5, -8, -10, 1, 4, 7, 9},  {-2, -4, -8, -10, 1, 3, 7, 9},   {-2, -5, -7, -10, 1, 4, 6, 9},
    {-3, -4, -7, -10, 2, 3, 6, 9},  {-1, -2, -3, -10, 0, 1, 2, 9},   {-4, -6, -8, -9, 3, 5, 7, 8},
    {-3, -5, -7, -9, 2, 4, 6, 8}};

int Modifier(const uint8_t* block, uint32_t texel) {
    return kModifiers[Bits(block, 51, 48)][Bits(block, 47 - 3 * texel, 45 - 3 * texel)];
}

double Eac11(const uint8_t* block, uint32_t texel, bool is_signed) {
    const int multiplier = Bits(block, 55, 52);
    const int change = Modifier(block, texel) * (multiplier ? multiplier * 8 : 1);
    if (!is_signed) {
        return std::clamp(Bits(block, 63, 56) * 8 + 4 + change, 0, 2047) / 2047.0;
    }
    const int base = std::max<int>(-127, static_cast<int8_t>(block[0]));
    return std::clamp(base * 8 + change, -1023, 1023) / 1023.0;
}

struct Rgba {
    int c[4];
};

Rgba Etc2(const uint8_t* block, uint32_t x, uint32_t y, bool punch_through) {
    constexpr int kIntensities[8][2] = {{2, 8},   {5, 17},  {9, 29},   {13, 42},
                                        {18, 60}, {24, 80}, {33, 106}, {47, 183}};
    constexpr int kDistances[] = {3, 6, 11, 16, 23, 32, 41, 64};
    const uint32_t texel = x * 4 + y;
    const int index = Bits(block, texel + 16, texel + 16) * 2 + Bits(block, texel, texel);
    const bool bit = Bits(block, 33, 33);
    const bool opaque = !punch_through || bit;
    Rgba out{{0, 0, 0, 255}};
    int base[3];
    int sum[3];
    int mode = -1;  // of the component that overflows
    if (bit || punch_through) {
        for (int i = 0; i < 3; ++i) {
            const auto low = static_cast<uint32_t>(56 - 8 * i);
            int difference = Bits(block, low + 2, low);
            difference -= difference >= 4 ? 8 : 0;
            base[i] = Bits(block, low + 7, low + 3);
            sum[i] = base[i] + difference;
            if (mode < 0 && (sum[i] < 0 || sum[i] > 31)) {
                mode = i;
            }
        }
        for (int i = 0; i < 3; ++i) {
            base[i] = base[i] << 3 | base[i] >> 2;
            sum[i] = sum[i] << 3 | sum[i] >> 2;
        }
    } else {
        for (int i = 0; i < 3; ++i) {
            const auto low = static_cast<uint32_t>(56 - 8 * i);
            base[i] = Bits(block, low + 7, low + 4) * 17;
            sum[i] = Bits(block, low + 3, low) * 17;
        }
    }
    if (mode == 2) {
        const int origin[] = {
            Bits(block, 62, 57), Bits(block, 56, 56) << 6 | Bits(block, 54, 49),
            Bits(block, 48, 48) << 5 | Bits(block, 44, 43) << 3 | Bits(block, 41, 39)};
        const int across[] = {Bits(block, 38, 34) << 1 | Bits(block, 32, 32), Bits(block, 31, 25),
                              Bits(block, 24, 19)};
        const int down[] = {Bits(block, 18, 13), Bits(block, 12, 6), Bits(block, 5, 0)};
        for (int i = 0; i < 3; ++i) {
            const auto wide = [&](int v) { return i == 1 ? v << 1 | v >> 6 : v << 2 | v >> 4; };
            const int o = wide(origin[i]);
            const int value = static_cast<int>(x) * (wide(across[i]) - o) +
                              static_cast<int>(y) * (wide(down[i]) - o) + 4 * o + 2;
            out.c[i] = Clamp8(value >> 2);
        }
        return out;
    }
    if (!opaque && index == 2) {
        return {{0, 0, 0, 0}};
    }
    if (mode < 0) {
        const bool second = Bits(block, 32, 32) ? y >= 2 : x >= 2;
        const int* pair = kIntensities[second ? Bits(block, 36, 34) : Bits(block, 39, 37)];
        int change = pair[index & 1];
        if (!opaque && index == 0) {
            change = 0;
        }
        if (index & 2) {
            change = -change;
        }
        for (int i = 0; i < 3; ++i) {
            out.c[i] = Clamp8((second ? sum[i] : base[i]) + change);
        }
        return out;
    }
    int first[3];
    int other[3];
    int paint[4][3];
    if (mode == 0) {
        first[0] = Bits(block, 60, 59) << 2 | Bits(block, 57, 56);
        first[1] = Bits(block, 55, 52);
        first[2] = Bits(block, 51, 48);
        other[0] = Bits(block, 47, 44);
        other[1] = Bits(block, 43, 40);
        other[2] = Bits(block, 39, 36);
        const int d = kDistances[Bits(block, 35, 34) << 1 | Bits(block, 32, 32)];
        for (int i = 0; i < 3; ++i) {
            paint[0][i] = first[i] * 17;
            paint[1][i] = other[i] * 17 + d;
            paint[2][i] = other[i] * 17;
            paint[3][i] = other[i] * 17 - d;
        }
    } else {
        first[0] = Bits(block, 62, 59);
        first[1] = Bits(block, 58, 56) << 1 | Bits(block, 52, 52);
        first[2] = Bits(block, 51, 51) << 3 | Bits(block, 49, 47);
        other[0] = Bits(block, 46, 43);
        other[1] = Bits(block, 42, 39);
        other[2] = Bits(block, 38, 35);
        const bool order = std::lexicographical_compare(other, other + 3, first, first + 3) ||
                           std::equal(first, first + 3, other);
        const int d = kDistances[Bits(block, 34, 34) << 2 | Bits(block, 32, 32) << 1 | order];
        for (int i = 0; i < 3; ++i) {
            paint[0][i] = first[i] * 17 + d;
            paint[1][i] = first[i] * 17 - d;
            paint[2][i] = other[i] * 17 + d;
            paint[3][i] = other[i] * 17 - d;
        }
    }
    for (int i = 0; i < 3; ++i) {
        out.c[i] = Clamp8(paint[index][i]);
    }
    return out;
}

}  // namespace

static bool IsBc(VkFormat format) {
    return format >= VK_FORMAT_BC1_RGB_UNORM_BLOCK && format <= VK_FORMAT_BC7_SRGB_BLOCK;
}

uint32_t BlockBytes(VkFormat format) {
    switch (format) {
        case VK_FORMAT_ETC2_R8G8B8_UNORM_BLOCK:
        case VK_FORMAT_ETC2_R8G8B8_SRGB_BLOCK:
        case VK_FORMAT_ETC2_R8G8B8A1_UNORM_BLOCK:
        case VK_FORMAT_ETC2_R8G8B8A1_SRGB_BLOCK:
        case VK_FORMAT_EAC_R11_UNORM_BLOCK:
        case VK_FORMAT_EAC_R11_SNORM_BLOCK:
        case VK_FORMAT_BC1_RGB_UNORM_BLOCK:
        case VK_FORMAT_BC1_RGB_SRGB_BLOCK:
        case VK_FORMAT_BC1_RGBA_UNORM_BLOCK:
        case VK_FORMAT_BC1_RGBA_SRGB_BLOCK:
        case VK_FORMAT_BC4_UNORM_BLOCK:
        case VK_FORMAT_BC4_SNORM_BLOCK:
            return 8;
        case VK_FORMAT_ETC2_R8G8B8A8_UNORM_BLOCK:
        case VK_FORMAT_ETC2_R8G8B8A8_SRGB_BLOCK:
        case VK_FORMAT_EAC_R11G11_UNORM_BLOCK:
        case VK_FORMAT_EAC_R11G11_SNORM_BLOCK:
            return 16;
        default:
            return IsBc(format) ? 16 : 0;
    }
}

std::array<double, 4> DecodeBlock(VkFormat format, const uint8_t* block, uint32_t x, uint32_t y) {
    if (IsBc(format)) {
        return DecodeBcBlock(format, block, x, y);
    }
    const uint32_t texel = x * 4 + y;
    const bool is_signed =
        format == VK_FORMAT_EAC_R11_SNORM_BLOCK || format == VK_FORMAT_EAC_R11G11_SNORM_BLOCK;
    switch (format) {
        case VK_FORMAT_EAC_R11_UNORM_BLOCK:
        case VK_FORMAT_EAC_R11_SNORM_BLOCK:
            return {Eac11(block, texel, is_signed), 0, 0, 1};
        case VK_FORMAT_EAC_R11G11_UNORM_BLOCK:
        case VK_FORMAT_EAC_R11G11_SNORM_BLOCK:
            return {Eac11(block, texel, is_signed), Eac11(block + 8, texel, is_signed), 0, 1};
        default:
            break;
    }
    const bool has_alpha = BlockBytes(format) == 16;
    Rgba color = Etc2(has_alpha ? block + 8 : block, x, y,
                      format == VK_FORMAT_ETC2_R8G8B8A1_UNORM_BLOCK ||
                          format == VK_FORMAT_ETC2_R8G8B8A1_SRGB_BLOCK);
    if (has_alpha) {
        color.c[3] = Clamp8(block[0] + Modifier(block, texel) * Bits(block, 55, 52));
    }
    return {color.c[0] / 255.0, color.c[1] / 255.0, color.c[2] / 255.0, color.c[3] / 255.0};
}

}  // namespace fornax::test
