// Puts codes, scales and least values of blocks into panels.
#include "compiler/frontends/ggml/pack.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "compiler/frontends/ggml/pack_blocks.h"
#include "compiler/graph/build/product.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::kPanelColumns;

constexpr int64_t kWordBytes = 4;
constexpr int64_t kFetchedBytes = 64;                       // what one prefetch brings
constexpr int64_t kLineBytes = kPanelColumns * kWordBytes;  // a word of each column
// Columns and words that are transposed together.
constexpr int64_t kSquare = 4;
// Smaller matrices stay in a cache as they are.
constexpr int64_t kLeastElements = 4096;
// Elements of 16 bits in a cache line.
constexpr int64_t kHalvesOfLine = 32;
// Panels of which a thread packs one after the other.
constexpr int64_t kMostPanelsAtOnce = 16;

using FourWords = uint32_t __attribute__((vector_size(16)));

// Four words of four columns, whose rows are the columns': to rows of the words.
void Transpose(FourWords (&rows)[kSquare]) {
    const FourWords a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5),
                    b = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7),
                    c = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5),
                    d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    rows[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    rows[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
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
    Packer(const TypeInfo& type, int64_t k, int64_t n, const PackTarget& to)
        : type_(type), form_(*PackFormOf(type)), k_(k), n_(n), to_(to), blocks_(kPanelColumns) {}

    // The columns of one panel. Reads them side by side, so that the panel is written in order.
    void PackPanel(const uint8_t* rows, int64_t panel) {
        const int64_t row_bytes = k_ / type_.block_elements * type_.block_bytes;
        const int64_t columns = std::min(n_ - panel * kPanelColumns, kPanelColumns);
        const uint8_t* first = rows + panel * kPanelColumns * row_bytes;
        if (form_.bits == 0) {
            PutFloats(first, columns, panel);
            return;
        }
        const int64_t blocks = k_ / type_.block_elements;
        const bool has_next = HasNext(panel);
        const bool is_plain = type_.blocks == Blocks::kQ4_0 || type_.blocks == Blocks::kQ8_0;
        for (int64_t i = 0; i < blocks; ++i) {
            const uint8_t* block = first + i * type_.block_bytes;
            for (int64_t at = 0; has_next && at < type_.block_bytes; at += kFetchedBytes) {
                Prefetch(block + at, row_bytes);
            }
            if (is_plain && columns == kPanelColumns) {
                PutPlainBlocks(block, row_bytes, panel * blocks + i);
                continue;
            }
            for (int64_t n = 0; n < columns; ++n) {
                TakeBlock(type_.blocks, block + n * row_bytes, blocks_[static_cast<size_t>(n)]);
            }
            PutBlocks(panel * blocks + i);
        }
    }

  private:
    uint8_t* At(Part part, int64_t offset) const { return to_[static_cast<size_t>(part)] + offset; }

    void PutFloats(const uint8_t* rows, int64_t columns, int64_t panel) {
        const int64_t bytes = type_.block_bytes, row_bytes = k_ * bytes;
        uint8_t* to = At(Part::kCodes, panel * k_ * kPanelColumns * bytes);
        const bool has_next = HasNext(panel);
        int64_t k = 0;
        if (bytes == 2 && columns == kPanelColumns) {
            // Rows are often 4096 bytes apart: of so many a cache holds a line of eight only.
            while (k + 8 <= k_) {
                const int64_t end = std::min(k + kHalvesOfLine, k_ / 8 * 8);
                if (has_next) {
                    Prefetch(rows + k * 2, row_bytes);
                }
                for (const int64_t half : {0, 1}) {
                    for (int64_t at = k; at < end; at += 8) {
                        TransposeHalves(rows + half * 8 * row_bytes + at * 2, row_bytes,
                                        to + at * kPanelColumns * 2 + half * 16);
                    }
                }
                k = end;
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

    // Whether a panel of as many columns follows.
    bool HasNext(int64_t panel) const { return (panel + 2) * kPanelColumns <= n_; }

    // The lines at a place of the next panel's rows; blocks of 256 elements have several.
    // Processors follow fewer streams by themselves.
    static void Prefetch(const uint8_t* place, int64_t row_bytes) {
        for (int64_t n = kPanelColumns; n < 2 * kPanelColumns; ++n) {
            __builtin_prefetch(place + n * row_bytes, 0, 2);
        }
    }

    // A block of each column, which is a scale and the bytes of the pack, of 8 bits but for 128.
    void PutPlainBlocks(const uint8_t* block, int64_t row_bytes, int64_t index) {
        constexpr int64_t kScaleBytes = 2, kSquareBytes = kSquare * kWordBytes;
        const int64_t bytes = type_.block_bytes - kScaleBytes;
        const uint32_t flip = form_.bits == 8 ? 0x80808080U : 0;
        uint8_t* to = At(Part::kCodes, index * bytes * kPanelColumns);
        uint8_t* scales = At(Part::kScales, index * kPanelColumns * kScaleBytes);
        for (int64_t n = 0; n < kPanelColumns; ++n) {
            std::memcpy(scales + n * kScaleBytes, block + n * row_bytes, kScaleBytes);
        }
        for (int64_t at = 0; at < bytes; at += kSquareBytes) {
            for (int64_t n = 0; n < kPanelColumns; n += kSquare) {
                FourWords square[kSquare];
                for (int64_t i = 0; i < kSquare; ++i) {
                    std::memcpy(&square[i], block + (n + i) * row_bytes + kScaleBytes + at,
                                sizeof(square[i]));
                    square[i] ^= flip;
                }
                PutSquare(square, to + at * kPanelColumns + n * kWordBytes);
            }
        }
    }

    // Words of four columns, to the lines of the words.
    static void PutSquare(FourWords (&square)[kSquare], uint8_t* to) {
        Transpose(square);
        for (int64_t i = 0; i < kSquare; ++i) {
            std::memcpy(to + i * kLineBytes, &square[i], sizeof(square[i]));
        }
    }

    // A block of the type of each column, block `index` of all panels.
    void PutBlocks(int64_t index) {
        const int64_t parts = type_.block_elements / form_.block;
        PutWords(Part::kCodes, &Block::bytes, index, type_.block_elements * form_.bits / 8);
        if (form_.high_bits != 0) {
            PutWords(Part::kHighCodes, &Block::high, index,
                     type_.block_elements * form_.high_bits / 8);
        }
        if (form_.group == 0) {
            PutElements<uint16_t>(Part::kScales, &Block::scales, index, parts);
        } else {
            PutElements<uint8_t>(Part::kScales, &Block::scales, index, parts);
            PutElements<uint16_t>(Part::kScaleUnits, &Block::scale_unit, index, 1);
        }
        if (!form_.has_least) {
            return;
        }
        if (form_.group == 0) {
            PutElements<uint16_t>(Part::kLeast, &Block::least, index, parts);
        } else {
            PutElements<uint8_t>(Part::kLeast, &Block::least, index, parts);
            PutElements<uint16_t>(Part::kLeastUnits, &Block::least_unit, index, 1);
        }
    }

    // The words of each column's block, which has `bytes`.
    template <size_t size>
    void PutWords(Part part, uint8_t (Block::*of)[size], int64_t index, int64_t bytes) {
        uint8_t* to = At(part, index * bytes * kPanelColumns);
        int64_t word = 0;
        for (; word + kSquare <= bytes / kWordBytes; word += kSquare) {
            for (int64_t n = 0; n < kPanelColumns; n += kSquare) {
                FourWords square[kSquare];
                for (int64_t i = 0; i < kSquare; ++i) {
                    std::memcpy(&square[i],
                                blocks_[static_cast<size_t>(n + i)].*of + word * kWordBytes,
                                sizeof(square[i]));
                }
                PutSquare(square, to + word * kLineBytes + n * kWordBytes);
            }
        }
        // Small blocks have one word of high bits.
        for (; word < bytes / kWordBytes; ++word) {
            for (int64_t n = 0; n < kPanelColumns; ++n) {
                std::memcpy(to + word * kLineBytes + n * kWordBytes,
                            blocks_[static_cast<size_t>(n)].*of + word * kWordBytes, kWordBytes);
            }
        }
    }

    // `count` elements of each column's block.
    template <typename Element, size_t size>
    void PutElements(Part part, uint8_t (Block::*of)[size], int64_t index, int64_t count) {
        const auto bytes = static_cast<int64_t>(sizeof(Element));
        uint8_t* to = At(part, index * count * kPanelColumns * bytes);
        for (int64_t i = 0; i < count; ++i) {
            for (int64_t n = 0; n < kPanelColumns; ++n) {
                std::memcpy(to + (i * kPanelColumns + n) * bytes,
                            blocks_[static_cast<size_t>(n)].*of + i * bytes, sizeof(Element));
            }
        }
    }

    const TypeInfo& type_;
    const PackForm form_;
    const int64_t k_, n_;
    const PackTarget to_;
    std::vector<Block> blocks_;  // of the columns
};

}  // namespace

std::optional<PackForm> PackFormOf(const TypeInfo& type) {
    switch (type.blocks) {
        case Blocks::kQ4_0:
            return PackForm{.bits = 4, .block = 32, .zero = 8};
        case Blocks::kQ4_1:
            return PackForm{.bits = 4, .block = 32, .has_least = true};
        case Blocks::kQ5_0:
            return PackForm{.bits = 4, .high_bits = 1, .block = 32, .zero = 16};
        case Blocks::kQ5_1:
            return PackForm{.bits = 4, .high_bits = 1, .block = 32, .has_least = true};
        case Blocks::kQ8_0:
            return PackForm{.bits = 8, .block = 32, .zero = 128};
        case Blocks::kQ4K:
            return PackForm{.bits = 4, .block = 32, .has_least = true, .group = 256};
        case Blocks::kQ2K:
            return PackForm{.bits = 2, .block = 16, .has_least = true, .group = 256};
        case Blocks::kQ3K:
            return PackForm{.bits = 4, .block = 16, .zero = 4, .group = 256, .signed_scales = true};
        case Blocks::kQ5K:
            return PackForm{
                .bits = 4, .high_bits = 1, .block = 32, .has_least = true, .group = 256};
        case Blocks::kQ6K:
            return PackForm{.bits = 4,
                            .high_bits = 2,
                            .block = 16,
                            .zero = 32,
                            .group = 256,
                            .signed_scales = true};
        default:  // not packed
            break;
    }
    const bool is_float = type.element == ElementType::kF32 || type.element == ElementType::kF16 ||
                          type.element == ElementType::kBF16;
    return is_float ? std::optional(PackForm{}) : std::nullopt;
}

bool IsPacked(const TypeInfo& type, int64_t k, int64_t n) {
    return PackFormOf(type).has_value() && k % type.block_elements == 0 &&
           k * n >= kLeastElements && n >= kPanelColumns;
}

uint64_t PackBytes(const TypeInfo& type, Part part, int64_t k, int64_t n) {
    const PackForm form = *PackFormOf(type);
    const int64_t columns = (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
    const auto bytes = [&]() -> int64_t {
        const int64_t bytes_of_scale = form.group == 0 ? 2 : 1;
        switch (part) {
            case Part::kCodes:
                return form.bits == 0 ? columns * k * type.block_bytes
                                      : columns * k * form.bits / 8;
            case Part::kScales:
                return form.bits == 0 ? 0 : columns * (k / form.block) * bytes_of_scale;
            case Part::kLeast:
                return form.has_least ? columns * (k / form.block) * bytes_of_scale : 0;
            case Part::kScaleUnits:
                return form.group == 0 ? 0 : columns * (k / form.group) * 2;
            case Part::kLeastUnits:
                return form.group == 0 || !form.has_least ? 0 : columns * (k / form.group) * 2;
            case Part::kHighCodes:
                return columns * k * form.high_bits / 8;
            case Part::kWhole:
                break;
        }
        return 0;
    };
    return static_cast<uint64_t>(bytes());
}

void Pack(const TypeInfo& type, const uint8_t* rows, int64_t k, int64_t n, const PackTarget& to) {
    const int64_t panels = (n + kPanelColumns - 1) / kPanelColumns;
    const unsigned workers = std::max(std::thread::hardware_concurrency(), 1U);
    const int64_t at_once =
        std::clamp(panels / (int64_t{4} * workers), int64_t{1}, kMostPanelsAtOnce);
    std::atomic<int64_t> next = 0;
    const auto work = [&] {
        Packer packer(type, k, n, to);
        for (int64_t first = next.fetch_add(at_once); first < panels;
             first = next.fetch_add(at_once)) {
            for (int64_t panel = first; panel < std::min(first + at_once, panels); ++panel) {
                packer.PackPanel(rows, panel);
            }
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < workers; ++i) {
        threads.emplace_back(work);
    }
    work();
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace fornax::ggml_frontend
