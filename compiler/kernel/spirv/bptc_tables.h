// What the Khronos Data Format specification tabulates of BC6 and BC7 ("BPTC Compressed Texture
// Image Formats"), in words that kernels look up (image_bc_blocks.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <iterator>

namespace fornax::kernel::spirv {

inline constexpr uint32_t kNoAnchor = 16;

// "Partition table": the subset of each texel in two bits, the first texel's lowest; the patterns
// of two subsets, those of three, and the one of one.
inline constexpr uint32_t kPartitions[] = {
    0x50505050, 0x40404040, 0x54545454, 0x54505040, 0x50404000, 0x55545450, 0x55545040, 0x54504000,
    0x50400000, 0x55555450, 0x55544000, 0x54400000, 0x55555440, 0x55550000, 0x55555500, 0x55000000,
    0x55150100, 0x00004054, 0x15010000, 0x00405054, 0x00004050, 0x15050100, 0x05010000, 0x40505054,
    0x00404050, 0x05010100, 0x14141414, 0x05141450, 0x01155440, 0x00555500, 0x15014054, 0x05414150,
    0x44444444, 0x55005500, 0x11441144, 0x05055050, 0x05500550, 0x11114444, 0x41144114, 0x44111144,
    0x15055054, 0x01055040, 0x05041050, 0x05455150, 0x14414114, 0x50050550, 0x41411414, 0x00141400,
    0x00041504, 0x00105410, 0x10541000, 0x04150400, 0x50410514, 0x41051450, 0x05415014, 0x14054150,
    0x41050514, 0x41505014, 0x40011554, 0x54150140, 0x50505500, 0x00555050, 0x15151010, 0x54540404,
    0xaa685050, 0x6a5a5040, 0x5a5a4200, 0x5450a0a8, 0xa5a50000, 0xa0a05050, 0x5555a0a0, 0x5a5a5050,
    0xaa550000, 0xaa555500, 0xaaaa5500, 0x90909090, 0x94949494, 0xa4a4a4a4, 0xa9a59450, 0x2a0a4250,
    0xa5945040, 0x0a425054, 0xa5a5a500, 0x55a0a0a0, 0xa8a85454, 0x6a6a4040, 0xa4a45000, 0x1a1a0500,
    0x0050a4a4, 0xaaa59090, 0x14696914, 0x69691400, 0xa08585a0, 0xaa821414, 0x50a4a450, 0x6a5a0200,
    0xa9a58000, 0x5090a0a8, 0xa8a09050, 0x24242424, 0x00aa5500, 0x24924924, 0x24499224, 0x50a50a50,
    0x500aa550, 0xaaaa4444, 0x66660000, 0xa5a0a5a0, 0x50a050a0, 0x69286928, 0x44aaaa44, 0x66666600,
    0xaa444444, 0x54a854a8, 0x95809580, 0x96969600, 0xa85454a8, 0x80959580, 0xaa141414, 0x96960000,
    0xaaaa1414, 0xa05050a0, 0xa0a5a5a0, 0x96000000, 0x40804080, 0xa9a8a9a8, 0xaaaaaa44, 0x2a4a5254,
    0,
};
inline constexpr uint32_t kOfThree = 64;
inline constexpr uint32_t kOfOne = 128;
// "Anchor index values": of the second subset, and from bit 8 on of the third.
inline constexpr uint32_t kAnchors[] = {
    0x100f, 0x100f, 0x100f,
    0x100f, 0x100f, 0x100f,
    0x100f, 0x100f, 0x100f,
    0x100f, 0x100f, 0x100f,
    0x100f, 0x100f, 0x100f,
    0x100f, 0x100f, 0x1002,
    0x1008, 0x1002, 0x1002,
    0x1008, 0x1008, 0x100f,
    0x1002, 0x1008, 0x1002,
    0x1002, 0x1008, 0x1008,
    0x1002, 0x1002, 0x100f,
    0x100f, 0x1006, 0x1008,
    0x1002, 0x1008, 0x100f,
    0x100f, 0x1002, 0x1008,
    0x1002, 0x1002, 0x1002,
    0x100f, 0x100f, 0x1006,
    0x1006, 0x1002, 0x1006,
    0x1008, 0x100f, 0x100f,
    0x1002, 0x1002, 0x100f,
    0x100f, 0x100f, 0x100f,
    0x100f, 0x1002, 0x1002,
    0x100f, 0x0f03, 0x0803,
    0x080f, 0x030f, 0x0f08,
    0x0f03, 0x030f, 0x080f,
    0x0f08, 0x0f08, 0x0f06,
    0x0f06, 0x0f06, 0x0f05,
    0x0f03, 0x0803, 0x0f03,
    0x0803, 0x0f08, 0x030f,
    0x0f03, 0x0803, 0x0f06,
    0x080a, 0x0305, 0x0f08,
    0x0608, 0x0a06, 0x0f08,
    0x0f05, 0x0a0f, 0x080f,
    0x0f08, 0x030f, 0x0f03,
    0x0a05, 0x0a06, 0x080a,
    0x0908, 0x0a0f, 0x060f,
    0x0f03, 0x080f, 0x0f05,
    0x030f, 0x060f, 0x060f,
    0x080f, 0x0f03, 0x030f,
    0x0f05, 0x0f05, 0x0f05,
    0x0f08, 0x0f05, 0x0f0a,
    0x0f05, 0x0f0a, 0x0f08,
    0x0f0d, 0x030f, 0x0f0c,
    0x0f03, 0x0803, kNoAnchor | kNoAnchor << 8,
};
static_assert(std::size(kPartitions) == kOfOne + 1 && std::size(kAnchors) == kOfOne + 1);

// "Mode-dependent BPTC parameters".
struct Bc7Mode {
    uint32_t subsets, partition_bits, rotation_bits, selection_bits, color_bits, alpha_bits;
    uint32_t endpoint_p_bits, shared_p_bits, index_bits, second_index_bits;
};
inline constexpr Bc7Mode kBc7Modes[] = {
    {3, 4, 0, 0, 4, 0, 1, 0, 3, 0}, {2, 6, 0, 0, 6, 0, 0, 1, 3, 0}, {3, 6, 0, 0, 5, 0, 0, 0, 2, 0},
    {2, 6, 0, 0, 7, 0, 1, 0, 2, 0}, {1, 0, 2, 1, 5, 6, 0, 0, 2, 3}, {1, 0, 2, 0, 7, 8, 0, 0, 2, 2},
    {1, 0, 0, 0, 7, 7, 1, 0, 4, 0}, {2, 6, 0, 0, 5, 5, 1, 0, 2, 0},
};
// What kernels look up, in two words: counts, and where fields begin.
inline constexpr auto kBc7Counts = [] {
    std::array<uint32_t, 2 * std::size(kBc7Modes)> words{};
    for (uint32_t i = 0; i < std::size(kBc7Modes); ++i) {
        const Bc7Mode& m = kBc7Modes[i];
        const uint32_t color = i + 1 + m.partition_bits + m.rotation_bits + m.selection_bits;
        const uint32_t alpha = color + 6 * m.subsets * m.color_bits;
        const uint32_t p_bits = alpha + 2 * m.subsets * m.alpha_bits;
        const uint32_t index = p_bits + m.subsets * (2 * m.endpoint_p_bits + m.shared_p_bits);
        words[2 * i] = m.subsets | m.partition_bits << 2 | m.rotation_bits << 5 |
                       m.selection_bits << 7 | m.color_bits << 8 | m.alpha_bits << 12 |
                       m.endpoint_p_bits << 16 | m.shared_p_bits << 17 | m.index_bits << 18 |
                       m.second_index_bits << 21;
        words[2 * i + 1] = color | alpha << 8 | p_bits << 16 | index << 24;
    }
    return words;
}();

// "Endpoint and partition parameters for BPTC block modes", and the "block descriptions": variables
// with their bits, from the block's lowest bit behind the mode on. A range that ascends is
// reversed.
struct Bc6Mode {
    uint32_t number;
    bool transformed, two_subsets;
    uint32_t endpoint_bits;
    std::array<uint32_t, 3> delta_bits;  // those of endpoints where nothing is transformed
    const char* fields;
};
inline constexpr Bc6Mode kBc6Modes[] = {
    {0,
     true,
     true,
     10,
     {5, 5, 5},
     "g2:4 b2:4 b3:4 r0:9-0 g0:9-0 b0:9-0 r1:4-0 g3:4 g2:3-0 g1:4-0 b3:0 g3:3-0 b1:4-0 "
     "b3:1 b2:3-0 r2:4-0 b3:2 r3:4-0 b3:3"},
    {1,
     true,
     true,
     7,
     {6, 6, 6},
     "g2:5 g3:4 g3:5 r0:6-0 b3:0 b3:1 b2:4 g0:6-0 b2:5 b3:2 g2:4 b0:6-0 b3:3 b3:5 b3:4 "
     "r1:5-0 g2:3-0 g1:5-0 g3:3-0 b1:5-0 b2:3-0 r2:5-0 r3:5-0"},
    {2,
     true,
     true,
     11,
     {5, 4, 4},
     "r0:9-0 g0:9-0 b0:9-0 r1:4-0 r0:10 g2:3-0 g1:3-0 g0:10 b3:0 g3:3-0 b1:3-0 b0:10 b3:1 "
     "b2:3-0 r2:4-0 b3:2 r3:4-0 b3:3"},
    {6,
     true,
     true,
     11,
     {4, 5, 4},
     "r0:9-0 g0:9-0 b0:9-0 r1:3-0 r0:10 g3:4 g2:3-0 g1:4-0 g0:10 g3:3-0 b1:3-0 b0:10 b3:1 "
     "b2:3-0 r2:3-0 b3:0 b3:2 r3:3-0 g2:4 b3:3"},
    {10,
     true,
     true,
     11,
     {4, 4, 5},
     "r0:9-0 g0:9-0 b0:9-0 r1:3-0 r0:10 b2:4 g2:3-0 g1:3-0 g0:10 b3:0 g3:3-0 b1:4-0 b0:10 "
     "b2:3-0 r2:3-0 b3:1 b3:2 r3:3-0 b3:4 b3:3"},
    {14,
     true,
     true,
     9,
     {5, 5, 5},
     "r0:8-0 b2:4 g0:8-0 g2:4 b0:8-0 b3:4 r1:4-0 g3:4 g2:3-0 g1:4-0 b3:0 g3:3-0 b1:4-0 "
     "b3:1 b2:3-0 r2:4-0 b3:2 r3:4-0 b3:3"},
    {18,
     true,
     true,
     8,
     {6, 5, 5},
     "r0:7-0 g3:4 b2:4 g0:7-0 b3:2 g2:4 b0:7-0 b3:3 b3:4 r1:5-0 g2:3-0 g1:4-0 b3:0 g3:3-0 "
     "b1:4-0 b3:1 b2:3-0 r2:5-0 r3:5-0"},
    {22,
     true,
     true,
     8,
     {5, 6, 5},
     "r0:7-0 b3:0 b2:4 g0:7-0 g2:5 g2:4 b0:7-0 g3:5 b3:4 r1:4-0 g3:4 g2:3-0 g1:5-0 g3:3-0 "
     "b1:4-0 b3:1 b2:3-0 r2:4-0 b3:2 r3:4-0 b3:3"},
    {26,
     true,
     true,
     8,
     {5, 5, 6},
     "r0:7-0 b3:1 b2:4 g0:7-0 b2:5 g2:4 b0:7-0 b3:5 b3:4 r1:4-0 g3:4 g2:3-0 g1:4-0 b3:0 "
     "g3:3-0 b1:5-0 b2:3-0 r2:4-0 b3:2 r3:4-0 b3:3"},
    {30,
     false,
     true,
     6,
     {6, 6, 6},
     "r0:5-0 g3:4 b3:0 b3:1 b2:4 g0:5-0 g2:5 b2:5 b3:2 g2:4 b0:5-0 g3:5 b3:3 b3:5 b3:4 "
     "r1:5-0 g2:3-0 g1:5-0 g3:3-0 b1:5-0 b2:3-0 r2:5-0 r3:5-0"},
    {3, false, false, 10, {10, 10, 10}, "r0:9-0 g0:9-0 b0:9-0 r1:9-0 g1:9-0 b1:9-0"},
    {7, true, false, 11, {9, 9, 9}, "r0:9-0 g0:9-0 b0:9-0 r1:8-0 r0:10 g1:8-0 g0:10 b1:8-0 b0:10"},
    {11,
     true,
     false,
     12,
     {8, 8, 8},
     "r0:9-0 g0:9-0 b0:9-0 r1:7-0 r0:10-11 g1:7-0 g0:10-11 b1:7-0 b0:10-11"},
    {15,
     true,
     false,
     16,
     {4, 4, 4},
     "r0:9-0 g0:9-0 b0:9-0 r1:3-0 r0:10-15 g1:3-0 g0:10-15 b1:3-0 b0:10-15"},
};
inline constexpr uint32_t kReservedBc6 = std::size(kBc6Modes);
inline constexpr uint32_t kBc6Variables = 12;  // red, green and blue of four endpoints
inline constexpr uint32_t kSingleBits = 6;

// By the five lowest bits of a block.
inline constexpr auto kBc6ModeWords = [] {
    std::array<uint32_t, 32> words{};
    for (uint32_t low = 0; low < 32; ++low) {
        const uint32_t number = (low & 2) == 0 ? low & 1 : low;
        words[low] = kReservedBc6 | 16 << 8 | 0x444 << 16;  // with sizes that do no harm
        for (uint32_t i = 0; i < kReservedBc6; ++i) {
            const Bc6Mode& m = kBc6Modes[i];
            if (m.number == number) {
                words[low] = i | uint32_t{m.transformed} << 4 | uint32_t{m.two_subsets} << 5 |
                             m.endpoint_bits << 8 | m.delta_bits[0] << 16 | m.delta_bits[1] << 20 |
                             m.delta_bits[2] << 24;
            }
        }
    }
    return words;
}();

// Where the bits of each variable are: a run of lower ones in seven and five bits, how many single
// ones lie above in three, and where these lie in seven each, four of them in a second word.
inline constexpr auto kBc6Places = [] {
    std::array<uint32_t, 2 * kBc6Variables * std::size(kBc6Modes)> words{};
    for (uint32_t i = 0; i < std::size(kBc6Modes); ++i) {
        uint32_t places[kBc6Variables][16] = {};
        uint32_t sizes[kBc6Variables] = {};
        uint32_t at = kBc6Modes[i].number < 2 ? 2 : 5;
        const char* c = kBc6Modes[i].fields;
        const auto number = [&c] {
            uint32_t value = 0;
            for (; *c >= '0' && *c <= '9'; ++c) {
                value = 10 * value + static_cast<uint32_t>(*c - '0');
            }
            return value;
        };
        while (*c) {
            const uint32_t channel = *c == 'r' ? 0 : *c == 'g' ? 1 : 2;
            ++c;
            const uint32_t variable = number() * 3 + channel;
            ++c;  // the colon
            const uint32_t first = number();
            const uint32_t last = *c == '-' ? (++c, number()) : first;
            const uint32_t count = (first > last ? first - last : last - first) + 1;
            // The block's lowest bit is `last`, either way.
            for (uint32_t k = 0; k < count; ++k) {
                places[variable][first >= last ? last + k : last - k] = at++;
            }
            sizes[variable] = std::max(sizes[variable], std::max(first, last) + 1);
            if (*c == ' ') {
                ++c;
            }
        }
        for (uint32_t v = 0; v < kBc6Variables; ++v) {
            uint32_t run = sizes[v] == 0 ? 0 : 1;
            while (run < sizes[v] && places[v][run] == places[v][0] + run) {
                ++run;
            }
            const uint32_t singles = sizes[v] - run;
            uint32_t* word = &words[2 * (i * kBc6Variables + v)];
            word[0] = places[v][0] | run << 7 | singles << 12;
            for (uint32_t k = 0; k < singles; ++k) {
                if (k < 4) {
                    word[1] |= places[v][run + k] << (7 * k);
                } else {
                    word[0] |= places[v][run + k] << (18 + 7 * (k - 4));
                }
            }
            assert(singles <= kSingleBits);
        }
    }
    return words;
}();

}  // namespace fornax::kernel::spirv
