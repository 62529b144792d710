// Shuffles of whatever length as shuffles of two registers each. LLVM takes a shuffle whose source
// is longer than its result apart into single elements, which is what a transposition must not
// become.
#include "compiler/kernel/codegen/vector_shuffles.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

namespace fornax::kernel::vectors {

using llvm::Value;

namespace {

using Picks = llvm::SmallVector<int, 64>;

unsigned Width(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

uint64_t ElementBytes(const llvm::Type* type) {
    return type->getScalarSizeInBits() / 8;
}

// Halves of registers that make up whole ones.
bool JoinsToRegisters(llvm::ArrayRef<Value*> parts, unsigned width) {
    return parts.size() % 2 == 0 &&
           std::ranges::all_of(parts, [&](const Value* part) { return 2 * Width(part) == width; });
}

// Elements of 16 bytes.
constexpr unsigned kGroup = 4;

// 0 or 1: all elements that are picked lie in this half of each group; none if they do not.
std::optional<unsigned> CommonHalf(const std::map<int, Picks>& by_piece) {
    std::optional<unsigned> half;
    for (const auto& [piece, picks] : by_piece) {
        for (int at : picks) {
            if (at < 0) {
                continue;
            }
            const unsigned of_this = static_cast<unsigned>(at) % kGroup / 2;
            if (half.value_or(of_this) != of_this) {
                return {};
            }
            half = of_this;
        }
    }
    return half;
}

bool IsIdentity(llvm::ArrayRef<int> pick) {
    for (size_t i = 0; i < pick.size(); ++i) {
        if (pick[i] >= 0 && pick[i] != static_cast<int>(i)) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::vector<Value*> PermuteToRegisters(llvm::IRBuilderBase& b,
                                       uint32_t vector_bits,
                                       llvm::ArrayRef<Value*> parts,
                                       llvm::ArrayRef<int> pick) {
    const uint32_t bits = parts[0]->getType()->getScalarSizeInBits();
    const unsigned width = std::max(1u, vector_bits / bits);
    // Short parts fill registers first: loading the second half of one is an instruction.
    Values registers_of_parts;
    if (JoinsToRegisters(parts, width)) {
        const unsigned joined = width / Width(parts[0]);
        for (size_t i = 0; i < parts.size(); i += joined) {
            registers_of_parts.push_back(JoinAll(b, parts.slice(i, joined)));
        }
        parts = registers_of_parts;
    }

    // Every part in pieces of one register.
    struct Piece {
        Value* part;
        unsigned first;
        Value* value = nullptr;
    };
    std::vector<Piece> pieces;
    std::vector<std::pair<int, int>> place;  // by element of the parts: its piece, where in it
    for (Value* part : parts) {
        for (unsigned i = 0; i < Width(part); ++i) {
            if (i % width == 0) {
                pieces.push_back({part, i});
            }
            place.emplace_back(static_cast<int>(pieces.size()) - 1, static_cast<int>(i % width));
        }
    }
    auto piece_value = [&](int index) {
        Piece& piece = pieces[static_cast<size_t>(index)];
        if (piece.value) {
            return piece.value;
        }
        piece.value = piece.part;
        if (Width(piece.part) != width) {
            Picks mask(width, -1);
            for (unsigned i = 0; i < width && piece.first + i < Width(piece.part); ++i) {
                mask[i] = static_cast<int>(piece.first + i);
            }
            piece.value = b.CreateShuffleVector(piece.part, mask);
        }
        return piece.value;
    };

    std::vector<Value*> registers;
    for (size_t start = 0; start < pick.size(); start += width) {
        // Pairs of pieces put their elements to their places; what the pairs give is blended.
        std::map<int, Picks> by_piece;
        const size_t end = std::min(start + width, pick.size());
        for (size_t i = start; i < end; ++i) {
            if (pick[i] < 0) {
                continue;
            }
            auto [piece, at] = place[static_cast<size_t>(pick[i])];
            Picks& mask = by_piece.try_emplace(piece, Picks(width, -1)).first->second;
            mask[i - start] = at;
        }
        // Pairs of four pieces give the halves of their groups, by the same shuffles for two of
        // four results.
        const bool words = bits == 32 && width >= 2 * kGroup && by_piece.size() == kGroup;
        if (const std::optional<unsigned> half = words ? CommonHalf(by_piece) : std::nullopt) {
            Picks halves(width, -1);
            for (unsigned i = 0; i < width; ++i) {
                const unsigned in_piece = i / kGroup * kGroup + *half * 2 + i % 2;
                halves[i] = static_cast<int>(in_piece + (i % kGroup < 2 ? 0 : width));
            }
            llvm::SmallVector<Value*, kGroup> whole;
            Picks places(width, -1);
            for (const auto& [piece, picks] : by_piece) {
                const auto number = static_cast<unsigned>(whole.size());
                whole.push_back(piece_value(piece));
                for (unsigned i = 0; i < width; ++i) {
                    if (picks[i] >= 0) {
                        const auto at = static_cast<unsigned>(picks[i]);
                        places[i] = static_cast<int>(at / kGroup * kGroup + number % 2 * 2 +
                                                     at % 2 + number / 2 * width);
                    }
                }
            }
            registers.push_back(
                b.CreateShuffleVector(b.CreateShuffleVector(whole[0], whole[1], halves),
                                      b.CreateShuffleVector(whole[2], whole[3], halves), places));
            continue;
        }
        struct Partial {
            Value* value;
            Picks has;  // not negative where the value has the element
        };
        std::vector<Partial> level;
        for (auto it = by_piece.begin(); it != by_piece.end(); ++it) {
            auto next = std::next(it);
            if (next == by_piece.end()) {
                Value* value = piece_value(it->first);
                if (!IsIdentity(it->second)) {
                    value = b.CreateShuffleVector(value, it->second);
                }
                level.push_back({value, it->second});
                break;
            }
            Picks mask = it->second;
            for (unsigned i = 0; i < width; ++i) {
                if (next->second[i] >= 0) {
                    mask[i] = static_cast<int>(width) + next->second[i];
                }
            }
            level.push_back(
                {b.CreateShuffleVector(piece_value(it->first), piece_value(next->first), mask),
                 mask});
            it = next;
        }
        while (level.size() > 1) {
            std::vector<Partial> joined;
            for (size_t i = 0; i + 1 < level.size(); i += 2) {
                Picks mask(width, -1);
                for (unsigned k = 0; k < width; ++k) {
                    if (level[i].has[k] >= 0) {
                        mask[k] = static_cast<int>(k);
                    } else if (level[i + 1].has[k] >= 0) {
                        mask[k] = static_cast<int>(width + k);
                    }
                }
                joined.push_back(
                    {b.CreateShuffleVector(level[i].value, level[i + 1].value, mask), mask});
            }
            if (level.size() % 2 != 0) {
                joined.push_back(level.back());
            }
            level = std::move(joined);
        }
        registers.push_back(level.empty() ? llvm::PoisonValue::get(llvm::FixedVectorType::get(
                                                parts[0]->getType()->getScalarType(), width))
                                          : level[0].value);
    }
    return registers;
}

Value* Slice(llvm::IRBuilderBase& b, Value* vector, unsigned first, unsigned count) {
    if (first == 0 && count == Width(vector)) {
        return vector;
    }
    Picks mask;
    for (unsigned i = 0; i < count; ++i) {
        mask.push_back(static_cast<int>(first + i));
    }
    return b.CreateShuffleVector(vector, mask);
}

Value* Permute(llvm::IRBuilderBase& b,
               uint32_t vector_bits,
               llvm::ArrayRef<Value*> parts,
               llvm::ArrayRef<int> pick) {
    if (Width(parts[0]) == pick.size() && IsIdentity(pick)) {
        return parts[0];
    }
    std::vector<Value*> level = PermuteToRegisters(b, vector_bits, parts, pick);
    while (!std::has_single_bit(level.size())) {
        level.push_back(llvm::PoisonValue::get(level[0]->getType()));
    }
    return Slice(b, JoinAll(b, level), 0, static_cast<unsigned>(pick.size()));
}

Value* JoinAll(llvm::IRBuilderBase& b, llvm::ArrayRef<Value*> vectors) {
    llvm::SmallVector<Value*, 32> parts(vectors.begin(), vectors.end());
    while (parts.size() > 1) {
        const unsigned width =
            llvm::cast<llvm::FixedVectorType>(parts[0]->getType())->getNumElements();
        llvm::SmallVector<int, 256> all;
        for (unsigned i = 0; i < 2 * width; ++i) {
            all.push_back(static_cast<int>(i));
        }
        llvm::SmallVector<Value*, 32> joined;
        for (size_t i = 0; i < parts.size(); i += 2) {
            joined.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], all));
        }
        parts = joined;
    }
    return parts[0];
}

Value* Pack(llvm::IRBuilderBase& b, llvm::ArrayRef<Value*> columns) {
    const auto count = static_cast<unsigned>(columns.size());
    const unsigned lanes = Width(columns[0]);
    llvm::SmallVector<int, 256> pick;
    for (unsigned i = 0; i < lanes * count; ++i) {
        pick.push_back(static_cast<int>(i % count * lanes + i / count));
    }
    return b.CreateShuffleVector(JoinAll(b, columns), pick);
}

Values Unpack(llvm::IRBuilderBase& b, Value* packed, size_t count) {
    const auto lanes = static_cast<uint32_t>(Width(packed) / count);
    Values columns;
    for (size_t k = 0; k < count; ++k) {
        llvm::SmallVector<int, 64> pick;
        for (uint32_t lane = 0; lane < lanes; ++lane) {
            pick.push_back(static_cast<int>(lane * count + k));
        }
        columns.push_back(b.CreateShuffleVector(packed, pick));
    }
    return columns;
}

llvm::Constant* Same(llvm::Type* type, uint64_t value) {
    return llvm::ConstantInt::get(type, value);
}

Values UnpackWords(llvm::IRBuilderBase& b,
                   llvm::ArrayRef<Value*> words,
                   uint64_t skip,
                   llvm::Type* type,
                   size_t count) {
    const uint64_t element = ElementBytes(type);
    const uint64_t word = ElementBytes(words[0]->getType());
    llvm::Type* lanes = words[0]->getType()->getWithNewType(type);
    Values elements;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t at = skip + i * element;
        Value* part = words[at / word];
        if (at % word != 0) {
            part = b.CreateLShr(part, Same(part->getType(), at % word * 8));
        }
        elements.push_back(b.CreateTrunc(part, lanes));
    }
    return elements;
}

Values PackWords(llvm::IRBuilderBase& b, llvm::ArrayRef<Value*> elements, uint64_t bytes) {
    const uint64_t element = ElementBytes(elements[0]->getType());
    const size_t parts = bytes / element;
    llvm::Type* type =
        elements[0]->getType()->getWithNewType(b.getIntNTy(static_cast<unsigned>(bytes * 8)));
    Values words;
    for (size_t i = 0; i < elements.size(); i += parts) {
        Value* word = b.CreateZExt(elements[i], type);
        for (size_t k = 1; k < parts; ++k) {
            Value* part = b.CreateZExt(elements[i + k], type);
            part = b.CreateShl(part, Same(type, k * element * 8));
            word = b.CreateOr(word, part);
        }
        words.push_back(word);
    }
    return words;
}

}  // namespace fornax::kernel::vectors
