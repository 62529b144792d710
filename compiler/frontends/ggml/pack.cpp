// Takes blocks apart into codes, scales and least values, and puts these into panels.
#include "compiler/frontends/ggml/pack.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "compiler/graph/build/product.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::kPanelColumns;

constexpr int64_t kWordBytes = 4;
// Smaller matrices stay in a cache as they are.
constexpr int64_t kLeastElements = 4096;

float HalfAt(const uint8_t* bytes) {
    return static_cast<float>(graph::ReadElement(ElementType::kF16, bytes).number);
}

// One column: a code for each element, scale and least value for each block of the form.
struct Column {
    std::vector<uint8_t> codes;
    std::vector<float> scales, least;
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

// 256 elements in eight groups; see SixBitScales() of decode.cpp.
void TakeQ4K(const uint8_t* block, uint8_t* codes, float* scales, float* least) {
    const float scale = HalfAt(block), of_least = HalfAt(block + 2);
    const uint8_t* six = block + 4;
    for (int group = 0; group < 8; ++group) {
        const int i = group % 4;
        const int sc = group < 4 ? six[i] & 63 : (six[8 + i] & 15) | six[i] >> 6 << 4;
        const int mn = group < 4 ? six[4 + i] & 63 : six[8 + i] >> 4 | six[4 + i] >> 6 << 4;
        scales[group] = scale * static_cast<float>(sc);
        least[group] = -of_least * static_cast<float>(mn);
        const uint8_t* bytes = block + 16 + group / 2 * 32;
        for (int e = 0; e < 32; ++e) {
            codes[group * 32 + e] = bytes[e] >> (group % 2 * 4) & 15;
        }
    }
}

// 256 elements in sixteen groups; see DecodeQ6K() of decode.cpp.
void TakeQ6K(const uint8_t* block, uint8_t* codes, float* scales) {
    for (int i = 0; i < 256; ++i) {
        const int half = i / 128, run = i / 32 % 4, e = i % 32;
        const int four = block[half * 64 + run % 2 * 32 + e] >> (run / 2 * 4) & 15;
        const int two = block[128 + half * 32 + e] >> (run * 2) & 3;
        codes[i] = static_cast<uint8_t>(four | two << 4);
    }
    for (int group = 0; group < 16; ++group) {
        scales[group] =
            HalfAt(block + 208) * static_cast<float>(static_cast<int8_t>(block[192 + group]));
    }
}

void TakeBlock(Blocks kind, const uint8_t* block, uint8_t* codes, float* scales, float* least) {
    switch (kind) {
        case Blocks::kQ4_0:
            scales[0] = HalfAt(block);
            TakeNibbles(block + 2, codes);
            break;
        case Blocks::kQ4_1:
            scales[0] = HalfAt(block);
            least[0] = HalfAt(block + 2);
            TakeNibbles(block + 4, codes);
            break;
        case Blocks::kQ5_0:
            scales[0] = HalfAt(block);
            TakeNibbles(block + 6, codes);
            AddFifthBits(block + 2, codes);
            break;
        case Blocks::kQ5_1:
            scales[0] = HalfAt(block);
            least[0] = HalfAt(block + 2);
            TakeNibbles(block + 8, codes);
            AddFifthBits(block + 4, codes);
            break;
        case Blocks::kQ8_0:
            scales[0] = HalfAt(block);
            for (int i = 0; i < 32; ++i) {
                codes[i] = block[2 + i] ^ 0x80;  // 128 more
            }
            break;
        case Blocks::kQ4K:
            TakeQ4K(block, codes, scales, least);
            break;
        case Blocks::kQ6K:
            TakeQ6K(block, codes, scales);
            break;
        default:  // not packed
            break;
    }
}

class Packer {
  public:
    Packer(const TypeInfo& type, int64_t k, int64_t n, PackTarget to)
        : type_(type), form_(*PackFormOf(type)), k_(k), n_(n), to_(to) {}

    // The columns of one panel.
    void PackPanel(const uint8_t* rows, int64_t panel) {
        const int64_t row_bytes = k_ / type_.block_elements * type_.block_bytes;
        const int64_t end = std::min(n_, (panel + 1) * kPanelColumns);
        for (int64_t n = panel * kPanelColumns; n < end; ++n) {
            if (form_.bits == 0) {
                PutFloats(rows + n * row_bytes, panel, n % kPanelColumns);
            } else {
                Take(rows + n * row_bytes);
                PutColumn(panel, n % kPanelColumns);
            }
        }
    }

    // Whether all scales so far were.
    bool fits() const { return fits_; }

  private:
    void PutFloats(const uint8_t* row, int64_t panel, int64_t place) {
        const int64_t bytes = type_.block_bytes;
        uint8_t* to = to_.codes + (panel * k_ * kPanelColumns + place) * bytes;
        for (int64_t k = 0; k < k_; ++k) {
            std::memcpy(to + k * kPanelColumns * bytes, row + k * bytes,
                        static_cast<size_t>(bytes));
        }
    }

    void Take(const uint8_t* row) {
        const int64_t blocks = k_ / form_.block;
        column_.codes.resize(static_cast<size_t>(k_));
        column_.scales.resize(static_cast<size_t>(blocks));
        column_.least.resize(static_cast<size_t>(blocks));
        const int64_t scales_of_block = type_.block_elements / form_.block;
        for (int64_t i = 0; i < k_ / type_.block_elements; ++i) {
            TakeBlock(type_.blocks, row + i * type_.block_bytes,
                      column_.codes.data() + i * type_.block_elements,
                      column_.scales.data() + i * scales_of_block,
                      column_.least.data() + i * scales_of_block);
        }
    }

    void PutColumn(int64_t panel, int64_t place) {
        const int64_t parts = 8 / form_.bits, bytes = form_.block / parts,
                      blocks = k_ / form_.block;
        const uint8_t* code = column_.codes.data();
        uint8_t* to = to_.codes + panel * blocks * bytes * kPanelColumns + place * kWordBytes;
        for (int64_t block = 0; block < blocks; ++block) {
            for (int64_t word = 0; word < bytes / kWordBytes; ++word) {
                for (int64_t i = 0; i < kWordBytes; ++i) {
                    const uint8_t* first = code + word * kWordBytes + i;
                    to[i] = parts == 1 ? *first : static_cast<uint8_t>(*first | first[bytes] << 4);
                }
                to += kPanelColumns * kWordBytes;
            }
            code += form_.block;
            const int64_t at = (panel * blocks + block) * kPanelColumns + place;
            to_.scales[at] = Half(column_.scales[static_cast<size_t>(block)]);
            if (form_.has_least) {
                to_.least[at] = Half(column_.least[static_cast<size_t>(block)]);
            }
        }
    }

    uint16_t Half(float value) {
        uint8_t bytes[2] = {};
        graph::WriteElement(ElementType::kF16, graph::Scalar::Float(value), bytes);
        const auto half = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
        fits_ = fits_ && ((half & 0x7C00) != 0x7C00 || !std::isfinite(value));
        return half;
    }

    const TypeInfo& type_;
    const PackForm form_;
    const int64_t k_, n_;
    const PackTarget to_;
    Column column_;
    bool fits_ = true;
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
