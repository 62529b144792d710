// Shuffles of whatever length as shuffles of two registers each. LLVM takes a shuffle whose source
// is longer than its result apart into single elements, which is what a transposition must not
// become.
#include <algorithm>
#include <bit>
#include <map>

#include "compiler/kernel/codegen/emitter.h"

namespace fornax::kernel {

using llvm::Value;

namespace {

using Picks = llvm::SmallVector<int, 64>;

unsigned Width(Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
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

std::vector<Value*> Emitter::PermuteToRegisters(llvm::ArrayRef<Value*> parts,
                                                llvm::ArrayRef<int> pick) {
    const uint32_t bits = parts[0]->getType()->getScalarSizeInBits();
    const unsigned width = std::max(1u, vector_bits_ / bits);

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
            piece.value = builder_.CreateShuffleVector(piece.part, mask);
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
                    value = builder_.CreateShuffleVector(value, it->second);
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
            level.push_back({builder_.CreateShuffleVector(piece_value(it->first),
                                                          piece_value(next->first), mask),
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
                    {builder_.CreateShuffleVector(level[i].value, level[i + 1].value, mask), mask});
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

Value* Emitter::Slice(Value* vector, unsigned first, unsigned count) {
    if (first == 0 && count == Width(vector)) {
        return vector;
    }
    Picks mask;
    for (unsigned i = 0; i < count; ++i) {
        mask.push_back(static_cast<int>(first + i));
    }
    return builder_.CreateShuffleVector(vector, mask);
}

Value* Emitter::Permute(llvm::ArrayRef<Value*> parts, llvm::ArrayRef<int> pick) {
    if (Width(parts[0]) == pick.size() && IsIdentity(pick)) {
        return parts[0];
    }
    std::vector<Value*> level = PermuteToRegisters(parts, pick);
    while (!std::has_single_bit(level.size())) {
        level.push_back(llvm::PoisonValue::get(level[0]->getType()));
    }
    return Slice(JoinAll(level), 0, static_cast<unsigned>(pick.size()));
}

}  // namespace fornax::kernel
