// Takes blocks apart into codes, scales and least values.
#include "compiler/frontends/ggml/pack_blocks.h"

#include <cstring>
#include <initializer_list>

namespace fornax::ggml_frontend {
namespace {

using SixteenBytes = uint8_t __attribute__((vector_size(16)));

SixteenBytes BytesAt(const uint8_t* from) {
    SixteenBytes bytes;
    std::memcpy(&bytes, from, sizeof(bytes));
    return bytes;
}

void Put(uint8_t* to, SixteenBytes bytes) {
    std::memcpy(to, &bytes, sizeof(bytes));
}

// Bytes that are less than 2^bits to one word: those of each next four above those of the last.
void PutAbove(uint8_t* to, std::initializer_list<SixteenBytes> bytes, int bits) {
    uint32_t word = 0;
    int place = 0;
    for (const SixteenBytes& sixteen : bytes) {
        uint32_t words[4];
        std::memcpy(words, &sixteen, sizeof(words));
        for (const uint32_t four : words) {
            word |= four << place;
            place += bits;
        }
    }
    std::memcpy(to, &word, sizeof(word));
}

// 32 codes of five bits: block `index` of those of the pack.
void PutFive(Block& to, int index, SixteenBytes first, SixteenBytes second) {
    Put(to.bytes + index * 16, (first & 15) | second << 4);
    PutAbove(to.high + index * 4, {first >> 4, second >> 4}, 1);
}

// The fifth bits of 32 elements, bit i of four bytes, and the first four: the low halves of 16
// bytes come first.
void TakeFive(const uint8_t* high, const uint8_t* nibbles, Block& to) {
    uint8_t codes[32];
    for (int i = 0; i < 32; ++i) {
        const int low = i < 16 ? nibbles[i] & 15 : nibbles[i - 16] >> 4;
        codes[i] = static_cast<uint8_t>(low | (high[i / 8] >> (i % 8) & 1) << 4);
    }
    PutFive(to, 0, BytesAt(codes), BytesAt(codes + 16));
}

// 256 elements in eight groups; see SixBitScales() of decode_groups.cpp.
void TakeSixBitScales(const uint8_t* block, Block& to) {
    std::memcpy(to.scale_unit, block, 2);
    // The least value is subtracted.
    to.least_unit[0] = block[2];
    to.least_unit[1] = block[3] ^ 0x80;
    const uint8_t* six = block + 4;
    for (int group = 0; group < 8; ++group) {
        const int i = group % 4;
        to.scales[group] =
            static_cast<uint8_t>(group < 4 ? six[i] & 63 : (six[8 + i] & 15) | six[i] >> 6 << 4);
        to.least[group] = static_cast<uint8_t>(group < 4 ? six[4 + i] & 63
                                                         : six[8 + i] >> 4 | six[4 + i] >> 6 << 4);
    }
}

// 32 bytes have the elements of one group in their low halves and those of the next in their high
// ones; in the pack 16 have one.
void TakeQ4K(const uint8_t* block, Block& to) {
    TakeSixBitScales(block, to);
    for (int pair = 0; pair < 4; ++pair) {
        const SixteenBytes first = BytesAt(block + 16 + pair * 32),
                           second = BytesAt(block + 32 + pair * 32);
        Put(to.bytes + pair * 32, (first & 15) | second << 4);
        Put(to.bytes + pair * 32 + 16, first >> 4 | (second & 0xF0));
    }
}

// The same with fifth bits: bit g of 32 bytes is that of group g.
void TakeQ5K(const uint8_t* block, Block& to) {
    TakeSixBitScales(block, to);
    SixteenBytes high[] = {BytesAt(block + 16), BytesAt(block + 32)};
    for (int pair = 0; pair < 4; ++pair) {
        const SixteenBytes low[] = {BytesAt(block + 48 + pair * 32),
                                    BytesAt(block + 64 + pair * 32)};
        PutFive(to, pair * 2, (low[0] & 15) | (high[0] & 1) << 4,
                (low[1] & 15) | (high[1] & 1) << 4);
        PutFive(to, pair * 2 + 1, low[0] >> 4 | (high[0] & 2) << 3,
                low[1] >> 4 | (high[1] & 2) << 3);
        high[0] >>= 2;
        high[1] >>= 2;
    }
}

// 16 codes of less than 16 to eight bytes, the second half to the high halves.
void PutHalves(uint8_t* to, SixteenBytes codes) {
    uint64_t halves[2];
    std::memcpy(halves, &codes, sizeof(halves));
    halves[0] |= halves[1] << 4;
    std::memcpy(to, halves, sizeof(halves[0]));
}

// 256 elements in sixteen groups: two halves of 128 elements in four runs of 32; see DecodeQ2K() of
// decode_groups.cpp.
void TakeQ2K(const uint8_t* block, Block& to) {
    const SixteenBytes scales = BytesAt(block);
    Put(to.scales, scales & 15);
    Put(to.least, scales >> 4);
    std::memcpy(to.scale_unit, block + 80, 2);
    // The least value is subtracted.
    to.least_unit[0] = block[82];
    to.least_unit[1] = block[83] ^ 0x80;
    for (int half = 0; half < 2; ++half) {
        for (int part = 0; part < 2; ++part) {
            SixteenBytes pairs = BytesAt(block + 16 + half * 32 + part * 16);
            for (int run = 0; run < 4; ++run) {
                PutAbove(to.bytes + half * 32 + run * 8 + part * 4, {pairs & 3}, 2);
                pairs >>= 2;
            }
        }
    }
}

// The same with third bits and signed scales; see DecodeQ3K() of decode_groups.cpp.
void TakeQ3K(const uint8_t* block, Block& to) {
    for (int i = 0; i < 16; ++i) {
        const int low = i < 8 ? block[96 + i] & 15 : block[88 + i] >> 4;
        const int high = block[104 + i % 4] >> (i / 4 * 2) & 3;
        to.scales[i] = static_cast<uint8_t>((low | high << 4) - 32);
    }
    std::memcpy(to.scale_unit, block + 108, 2);
    for (int part = 0; part < 2; ++part) {
        SixteenBytes third = BytesAt(block + part * 16);
        for (int half = 0; half < 2; ++half) {
            SixteenBytes pairs = BytesAt(block + 32 + half * 32 + part * 16);
            for (int run = 0; run < 4; ++run) {
                PutHalves(to.bytes + half * 64 + run * 16 + part * 8, (pairs & 3) | (third & 1)
                                                                                        << 2);
                pairs >>= 2;
                third >>= 1;
            }
        }
    }
}

// 16 codes of six bits: block `index` of those of the pack.
void PutSix(Block& to, int index, SixteenBytes codes) {
    PutHalves(to.bytes + index * 8, codes & 15);
    PutAbove(to.high + index * 4, {codes >> 4}, 2);
}

// 256 elements in sixteen groups; see DecodeQ6K() of decode_groups.cpp.
void TakeQ6K(const uint8_t* block, Block& to) {
    for (int half = 0; half < 2; ++half) {
        for (int part = 0; part < 2; ++part) {
            const uint8_t* low = block + half * 64 + part * 16;
            const SixteenBytes first = BytesAt(low), second = BytesAt(low + 32),
                               high = BytesAt(block + 128 + half * 32 + part * 16);
            PutSix(to, half * 8 + part, (first & 15) | (high & 3) << 4);
            PutSix(to, half * 8 + part + 2, (second & 15) | (high & 12) << 2);
            PutSix(to, half * 8 + part + 4, first >> 4 | (high & 48));
            PutSix(to, half * 8 + part + 6, second >> 4 | (high & 192) >> 2);
        }
    }
    std::memcpy(to.scales, block + 192, 16);
    std::memcpy(to.scale_unit, block + 208, 2);
}

}  // namespace

void TakeBlock(Blocks kind, const uint8_t* block, Block& to) {
    switch (kind) {
        case Blocks::kQ4_0:
            std::memcpy(to.scales, block, 2);
            std::memcpy(to.bytes, block + 2, 16);
            break;
        case Blocks::kQ4_1:
            std::memcpy(to.scales, block, 2);
            std::memcpy(to.least, block + 2, 2);
            std::memcpy(to.bytes, block + 4, 16);
            break;
        case Blocks::kQ5_0:
            std::memcpy(to.scales, block, 2);
            TakeFive(block + 2, block + 6, to);
            break;
        case Blocks::kQ5_1:
            std::memcpy(to.scales, block, 2);
            std::memcpy(to.least, block + 2, 2);
            TakeFive(block + 4, block + 8, to);
            break;
        case Blocks::kQ8_0:
            std::memcpy(to.scales, block, 2);
            Put(to.bytes, BytesAt(block + 2) ^ 0x80);  // 128 more
            Put(to.bytes + 16, BytesAt(block + 18) ^ 0x80);
            break;
        case Blocks::kQ4K:
            TakeQ4K(block, to);
            break;
        case Blocks::kQ2K:
            TakeQ2K(block, to);
            break;
        case Blocks::kQ3K:
            TakeQ3K(block, to);
            break;
        case Blocks::kQ5K:
            TakeQ5K(block, to);
            break;
        case Blocks::kQ6K:
            TakeQ6K(block, to);
            break;
        default:  // not packed
            break;
    }
}

}  // namespace fornax::ggml_frontend
