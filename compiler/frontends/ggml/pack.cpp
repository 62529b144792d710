// Takes blocks apart into codes, scales and least values, and puts these into panels.
#include "compiler/frontends/ggml/pack.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "base/half.h"
#include "compiler/graph/build/product.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::kPanelColumns;

constexpr int64_t kWordBytes = 4;
// Smaller matrices stay in a cache as they are.
constexpr int64_t kLeastElements = 4096;

uint16_t HalfAt(const uint8_t* bytes) {
    return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

bool IsFinite(uint16_t half) {
    return (half & 0x7C00) != 0x7C00;
}

// One block of a column: a code for each element, f16 for each block of the form.
struct Block {
    uint8_t codes[256];
    uint16_t scales[16], least[16];
    bool fits = true;  // whether f16 holds these
};

// Codes of 32 elements in 16 bytes: the low halves come first.
void TakeNibbles(const uint8_t* bytes, uint8_t* codes) {
    for (int i = 0; i < 16; ++i) {
        codes[i] = bytes[i] & 15;
        codes[i + 16] = bytes[i] >> 4;
    }
}

// The fifth bit of 32 elements: bit i of four bytes.
void AddFifthBits(const uint8_t* bytes, uint8_t* codes) {
    for (int i = 0; i < 32; ++i) {
        codes[i] |= static_cast<uint8_t>((bytes[i / 8] >> (i % 8) & 1) << 4);
    }
}

// A product of a block's scale with the integer of a group, which may be beyond f16.
uint16_t ScaleOf(float scale, int factor, bool& fits) {
    const float product = scale * static_cast<float>(factor);
    const uint16_t half = FloatToHalf(product);
    fits = fits && (IsFinite(half) || !std::isfinite(product));
    return half;
}

// 256 elements in eight groups; see SixBitScales() of decode.cpp.
void TakeQ4K(const uint8_t* block, Block& to) {
    const float scale = HalfToFloat(HalfAt(block)), of_least = HalfToFloat(HalfAt(block + 2));
    const uint8_t* six = block + 4;
    for (int group = 0; group < 8; ++group) {
        const int i = group % 4;
        const int sc = group < 4 ? six[i] & 63 : (six[8 + i] & 15) | six[i] >> 6 << 4;
        const int mn = group < 4 ? six[4 + i] & 63 : six[8 + i] >> 4 | six[4 + i] >> 6 << 4;
        to.scales[group] = ScaleOf(scale, sc, to.fits);
        to.least[group] = ScaleOf(-of_least, mn, to.fits);
        const uint8_t* bytes = block + 16 + group / 2 * 32;
        const int shift = group % 2 * 4;
        for (int e = 0; e < 32; ++e) {
            to.codes[group * 32 + e] = bytes[e] >> shift & 15;
        }
    }
}

// 256 elements in sixteen groups; see DecodeQ6K() of decode.cpp.
void TakeQ6K(const uint8_t* block, Block& to) {
    for (int half = 0; half < 2; ++half) {
        const uint8_t *low = block + half * 64, *high = block + 128 + half * 32;
        uint8_t* codes = to.codes + half * 128;
        for (int e = 0; e < 32; ++e) {
            codes[e] = static_cast<uint8_t>((low[e] & 15) | (high[e] & 3) << 4);
            codes[e + 32] = static_cast<uint8_t>((low[e + 32] & 15) | (high[e] & 12) << 2);
            codes[e + 64] = static_cast<uint8_t>(low[e] >> 4 | (high[e] & 48));
            codes[e + 96] = static_cast<uint8_t>(low[e + 32] >> 4 | (high[e] & 192) >> 2);
        }
    }
    const float scale = HalfToFloat(HalfAt(block + 208));
    for (int group = 0; group < 16; ++group) {
        to.scales[group] = ScaleOf(scale, static_cast<int8_t>(block[192 + group]), to.fits);
    }
}

void TakeBlock(Blocks kind, const uint8_t* block, Block& to) {
    switch (kind) {
        case Blocks::kQ4_0:
            to.scales[0] = HalfAt(block);
            TakeNibbles(block + 2, to.codes);
            break;
        case Blocks::kQ4_1:
            to.scales[0] = HalfAt(block);
            to.least[0] = HalfAt(block + 2);
            TakeNibbles(block + 4, to.codes);
            break;
        case Blocks::kQ5_0:
            to.scales[0] = HalfAt(block);
            TakeNibbles(block + 6, to.codes);
            AddFifthBits(block + 2, to.codes);
            break;
        case Blocks::kQ5_1:
            to.scales[0] = HalfAt(block);
            to.least[0] = HalfAt(block + 2);
            TakeNibbles(block + 8, to.codes);
            AddFifthBits(block + 4, to.codes);
            break;
        case Blocks::kQ8_0:
            to.scales[0] = HalfAt(block);
            for (int i = 0; i < 32; ++i) {
                to.codes[i] = block[2 + i] ^ 0x80;  // 128 more
            }
            break;
        case Blocks::kQ4K:
            TakeQ4K(block, to);
            break;
        case Blocks::kQ6K:
            TakeQ6K(block, to);
            break;
        default:  // not packed
            break;
    }
}

using EightHalves = uint16_t __attribute__((vector_size(16)));

// A square of eight rows and columns of 16 bits: interleaving its halves three times.
void Transpose(EightHalves (&rows)[8]) {
    for (int round = 0; round < 3; ++round) {
        EightHalves next[8];
        for (int i = 0; i < 4; ++i) {
            const EightHalves a = rows[i], b = rows[i + 4];
            next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
            next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
        }
        std::copy(std::begin(next), std::end(next), std::begin(rows));
    }
}

class Packer {
  public:
    Packer(const TypeInfo& type, int64_t k, int64_t n, PackTarget to)
        : type_(type), form_(*PackFormOf(type)), k_(k), n_(n), to_(to) {}

    // The columns of one panel. Reads them side by side, so that the panel is written in order.
    void PackPanel(const uint8_t* rows, int64_t panel) {
        const int64_t row_bytes = k_ / type_.block_elements * type_.block_bytes;
        const int64_t columns = std::min(n_ - panel * kPanelColumns, kPanelColumns);
        const uint8_t* first = rows + panel * kPanelColumns * row_bytes;
        if (form_.bits == 0) {
            PutFloats(first, columns, panel);
            return;
        }
        for (int64_t i = 0; i < k_ / type_.block_elements; ++i) {
            for (int64_t n = 0; n < columns; ++n) {
                TakeBlock(type_.blocks, first + n * row_bytes + i * type_.block_bytes, block_);
                PutBlock(panel, i, n);
            }
        }
    }

    // Whether all scales so far were within f16.
    bool fits() const { return block_.fits; }

  private:
    void PutFloats(const uint8_t* rows, int64_t columns, int64_t panel) {
        const int64_t bytes = type_.block_bytes, row_bytes = k_ * bytes;
        uint8_t* to = to_.codes + panel * k_ * kPanelColumns * bytes;
        int64_t k = 0;
        if (bytes == 2 && columns == kPanelColumns) {
            for (; k + 8 <= k_; k += 8) {
                TransposeHalves(rows + k * 2, row_bytes, to + k * kPanelColumns * 2);
                TransposeHalves(rows + 8 * row_bytes + k * 2, row_bytes,
                                to + k * kPanelColumns * 2 + 16);
            }
        }
        for (; k < k_; ++k) {
            for (int64_t n = 0; n < columns; ++n) {
                std::memcpy(to + (k * kPanelColumns + n) * bytes, rows + n * row_bytes + k * bytes,
                            static_cast<size_t>(bytes));
            }
        }
    }

    // Eight places of eight columns.
    static void TransposeHalves(const uint8_t* from, int64_t row_bytes, uint8_t* to) {
        EightHalves square[8];
        for (int64_t i = 0; i < 8; ++i) {
            std::memcpy(&square[i], from + i * row_bytes, sizeof(square[i]));
        }
        Transpose(square);
        for (int64_t i = 0; i < 8; ++i) {
            std::memcpy(to + i * kPanelColumns * 2, &square[i], sizeof(square[i]));
        }
    }

    // Block `index` of the type, of the column at `place` of a panel.
    void PutBlock(int64_t panel, int64_t index, int64_t place) {
        const int64_t parts = 8 / form_.bits, bytes = form_.block / parts;
        const int64_t blocks = k_ / form_.block,
                      blocks_of_type = type_.block_elements / form_.block;
        for (int64_t b = 0; b < blocks_of_type; ++b) {
            const uint8_t* codes = block_.codes + b * form_.block;
            const int64_t at = panel * blocks + index * blocks_of_type + b;
            uint8_t* to = to_.codes + at * bytes * kPanelColumns + place * kWordBytes;
            uint8_t joined[32];
            for (int64_t i = 0; i < bytes; ++i) {
                joined[i] =
                    parts == 1 ? codes[i] : static_cast<uint8_t>(codes[i] | codes[bytes + i] << 4);
            }
            for (int64_t word = 0; word < bytes / kWordBytes; ++word) {
                std::memcpy(to + word * kPanelColumns * kWordBytes, joined + word * kWordBytes,
                            kWordBytes);
            }
            to_.scales[at * kPanelColumns + place] = block_.scales[b];
            if (form_.has_least) {
                to_.least[at * kPanelColumns + place] = block_.least[b];
            }
        }
    }

    const TypeInfo& type_;
    const PackForm form_;
    const int64_t k_, n_;
    const PackTarget to_;
    Block block_;
};

}  // namespace

std::optional<PackForm> PackFormOf(const TypeInfo& type) {
    switch (type.blocks) {
        case Blocks::kQ4_0:
            return PackForm{.bits = 4, .block = 32, .zero = 8};
        case Blocks::kQ4_1:
            return PackForm{.bits = 4, .block = 32, .has_least = true};
        case Blocks::kQ5_0:
            return PackForm{.bits = 8, .block = 32, .zero = 16};
        case Blocks::kQ5_1:
            return PackForm{.bits = 8, .block = 32, .has_least = true};
        case Blocks::kQ8_0:
            return PackForm{.bits = 8, .block = 32, .zero = 128};
        case Blocks::kQ4K:
            return PackForm{.bits = 4, .block = 32, .has_least = true};
        case Blocks::kQ6K:
            return PackForm{.bits = 8, .block = 16, .zero = 32};
        default:  // not packed
            break;
    }
    if (type.element == ElementType::kF32 || type.element == ElementType::kF16 ||
        type.element == ElementType::kBF16) {
        return PackForm{};
    }
    return std::nullopt;
}

bool IsPacked(const TypeInfo& type, int64_t k, int64_t n) {
    return PackFormOf(type).has_value() && k % type.block_elements == 0 &&
           k * n >= kLeastElements && n >= kPanelColumns;
}

uint64_t PackBytes(const TypeInfo& type, Part part, int64_t k, int64_t n) {
    const PackForm form = *PackFormOf(type);
    const int64_t columns = (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
    switch (part) {
        case Part::kCodes:
            return static_cast<uint64_t>(form.bits == 0 ? columns * k * type.block_bytes
                                                        : columns * k * form.bits / 8);
        case Part::kScales:
            return form.bits == 0 ? 0 : static_cast<uint64_t>(columns * (k / form.block)) * 2;
        case Part::kLeast:
            return form.has_least ? static_cast<uint64_t>(columns * (k / form.block)) * 2 : 0;
        case Part::kWhole:
            break;
    }
    return 0;
}

Status Pack(const TypeInfo& type, const uint8_t* rows, int64_t k, int64_t n, PackTarget to) {
    const int64_t panels = (n + kPanelColumns - 1) / kPanelColumns;
    std::atomic<int64_t> next = 0;
    std::atomic<bool> fits = true;
    const auto work = [&] {
        Packer packer(type, k, n, to);
        for (int64_t panel = next++; panel < panels; panel = next++) {
            packer.PackPanel(rows, panel);
        }
        if (!packer.fits()) {
            fits = false;
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) {
        threads.emplace_back(work);
    }
    work();
    for (std::thread& thread : threads) {
        thread.join();
    }
    if (!fits) {
        return Error{ErrorCode::kUnsupported,
                     "A scale of the weights is beyond 65504, the greatest number of f16."};
    }
    return OkStatus();
}

}  // namespace fornax::ggml_frontend
