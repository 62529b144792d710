// Runs of words that lie anywhere, a run a lane: each lane's run is one access of its own, and runs
// are turned into vectors of all lanes, or back, by transposition. For runs too far apart to be
// loaded as a whole, and for those at places that no pattern tells: a gather takes as long for each
// element as the load of a whole run.
#include <algorithm>
#include <bit>

#include "compiler/kernel/codegen/memory_code.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;
using Values = llvm::SmallVector<Value*, 4>;

namespace {

unsigned Width(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

// Elements first, first + step, ... of the two vectors end to end, as many as one has.
Value* Every(llvm::IRBuilderBase& builder, Value* a, Value* b, int first, int step) {
    llvm::SmallVector<int, 64> pick;
    for (unsigned i = 0; i < Width(a); ++i) {
        pick.push_back(first + static_cast<int>(i) * step);
    }
    return builder.CreateShuffleVector(a, b, pick);
}

// From the low or the high halves, in turn.
Value* Zip(llvm::IRBuilderBase& builder, Value* a, Value* b, bool high) {
    const int width = static_cast<int>(Width(a));
    llvm::SmallVector<int, 64> pick;
    for (int i = 0; i < width; ++i) {
        pick.push_back(i / 2 + (high ? width / 2 : 0) + (i % 2 ? width : 0));
    }
    return builder.CreateShuffleVector(a, b, pick);
}

// `vectors` end to end hold rows of vectors.size() words; afterwards each holds one column. Taking
// the even elements before the odd ones turns the index's bits by one, so log2(columns) times do.
void RowsToColumns(llvm::IRBuilderBase& builder, Values& vectors) {
    const size_t half = vectors.size() / 2;
    for (size_t step = 1; step < vectors.size(); step *= 2) {
        Values next(vectors.size());
        for (size_t i = 0; i < half; ++i) {
            next[i] = Every(builder, vectors[2 * i], vectors[2 * i + 1], 0, 2);
            next[i + half] = Every(builder, vectors[2 * i], vectors[2 * i + 1], 1, 2);
        }
        vectors = next;
    }
}

// Elements 0, 1 or 2, 3 of each part of four of both vectors, in turn or pair by pair.
Value* Interleave(llvm::IRBuilderBase& builder, Value* a, Value* b, bool high, bool pairs) {
    const int width = static_cast<int>(Width(a));
    llvm::SmallVector<int, 64> pick;
    for (int i = 0; i < width; ++i) {
        const int at = i % 4;
        const bool second = pairs ? at >= 2 : at % 2 != 0;
        const int from = (pairs ? at % 2 : at / 2) + (high ? 2 : 0);
        pick.push_back(i / 4 * 4 + from + (second ? width : 0));
    }
    return builder.CreateShuffleVector(a, b, pick);
}

// The same for registers, where rows have four words or more: parts of four rows and words are
// transposed where they are, which takes processors less than what crosses these parts, and then
// each column is put together.
void PartsToColumns(llvm::IRBuilderBase& builder, uint32_t vector_bits, Values& registers) {
    const auto words = static_cast<unsigned>(registers.size());
    const unsigned lanes = Width(registers[0]);
    Values parts;
    for (size_t i = 0; i < words; i += 4) {
        Value* low = Interleave(builder, registers[i], registers[i + 1], false, false);
        Value* high = Interleave(builder, registers[i], registers[i + 1], true, false);
        Value* low2 = Interleave(builder, registers[i + 2], registers[i + 3], false, false);
        Value* high2 = Interleave(builder, registers[i + 2], registers[i + 3], true, false);
        parts.push_back(Interleave(builder, low, low2, false, true));
        parts.push_back(Interleave(builder, low, low2, true, true));
        parts.push_back(Interleave(builder, high, high2, false, true));
        parts.push_back(Interleave(builder, high, high2, true, true));
    }
    for (unsigned word = 0; word < words; ++word) {
        llvm::SmallVector<int, 64> pick;
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const unsigned at = lane * words + word;  // in the order of memory
            const unsigned from = at / lanes;
            const unsigned part = from / 4 * 4 + word % 4;
            pick.push_back(static_cast<int>(part * lanes + at % lanes / 4 * 4 + from % 4));
        }
        registers[word] = vectors::Permute(builder, vector_bits, parts, pick);
    }
}

void ColumnsToRows(llvm::IRBuilderBase& builder, Values& vectors) {
    const size_t half = vectors.size() / 2;
    for (size_t step = 1; step < vectors.size(); step *= 2) {
        Values next(vectors.size());
        for (size_t i = 0; i < half; ++i) {
            next[2 * i] = Zip(builder, vectors[i], vectors[i + half], false);
            next[2 * i + 1] = Zip(builder, vectors[i], vectors[i + half], true);
        }
        vectors = next;
    }
}

// The words of lanes first, first + 1, ..., a row a lane, which is a power of two long.
Values RowsOf(llvm::IRBuilderBase& builder,
              llvm::ArrayRef<Value*> words,
              uint32_t first,
              uint32_t lanes) {
    Values vectors;
    for (Value* word : words) {
        vectors.push_back(vectors::Slice(builder, word, first, lanes));
    }
    vectors.resize(std::bit_ceil(words.size()), llvm::PoisonValue::get(vectors[0]->getType()));
    ColumnsToRows(builder, vectors);
    return vectors;
}

}  // namespace

// Lanes whose runs are transposed together: as many words as a register has.
uint32_t MemoryCode::TransposedLanes() const {
    return std::min(code_.lanes, VectorBitsOf(builder_) / 32);
}

// Word i of lane l lies at address + lane_bytes[l] + 4 * i. `packed` becomes all words in the order
// of memory, or null.
MemoryCode::Values MemoryCode::LoadRows(const MemoryRegion& region,
                                        Value* address,
                                        llvm::ArrayRef<uint64_t> lane_bytes,
                                        size_t words,
                                        Value*& packed) {
    return LoadRowsAt(
        region,
        [&](uint32_t lane) {
            return builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, lane_bytes[lane]);
        },
        words, packed);
}

// Word i of lane l lies at row_of(l) + 4 * i.
MemoryCode::Values MemoryCode::LoadRowsAt(const MemoryRegion& region,
                                          llvm::function_ref<Value*(uint32_t lane)> row_of,
                                          size_t words,
                                          Value*& packed) {
    llvm::Type* i32 = builder_.getInt32Ty();
    const auto padded = static_cast<unsigned>(std::bit_ceil(words));
    const auto part = static_cast<unsigned>(std::bit_floor(words));
    const uint32_t group = TransposedLanes();
    std::vector<Values> columns(words);
    llvm::SmallVector<Value*, 16> whole;  // all rows, if they have no gaps
    for (uint32_t first = 0; first < code_.lanes; first += group) {
        Values vectors;
        Values rows;
        for (uint32_t lane = first; lane < first + group; ++lane) {
            Value* begin = row_of(lane);
            auto load = [&](uint64_t word) {
                Value* at =
                    word == 0 ? begin
                              : builder_.CreateConstGEP1_64(builder_.getInt8Ty(), begin, 4 * word);
                auto* type = llvm::FixedVectorType::get(i32, part);
                return Annotate(region, builder_.CreateAlignedLoad(type, at, llvm::Align(1)));
            };
            Value* row = load(0);
            if (part != words) {
                // Two loads that overlap.
                llvm::SmallVector<int, 16> pick;
                for (unsigned i = 0; i < padded; ++i) {
                    pick.push_back(i < part    ? static_cast<int>(i)
                                   : i < words ? static_cast<int>(2 * part + i - words)
                                               : -1);
                }
                row = builder_.CreateShuffleVector(row, load(words - part), pick);
            }
            for (unsigned at = 0; at < padded; at += group) {
                rows.push_back(vectors::Slice(builder_, row, at, std::min(padded, group)));
            }
            if (rows.size() * std::min(padded, group) == group) {
                vectors.push_back(vectors::JoinAll(builder_, rows));
                rows.clear();
            } else if (padded >= group) {
                vectors.append(rows.begin(), rows.end());
                rows.clear();
            }
        }
        if (padded == words) {
            whole.append(vectors.begin(), vectors.end());
        }
        RowsToColumns(builder_, vectors);
        for (size_t i = 0; i < words; ++i) {
            columns[i].push_back(vectors[i]);
        }
    }
    packed = whole.empty() ? nullptr : vectors::JoinAll(builder_, whole);
    Values results;
    for (const Values& parts : columns) {
        results.push_back(vectors::JoinAll(builder_, parts));
    }
    return results;
}

// What was loaded in the order of the lanes, `count` words a lane, as a vector for each word of a
// lane: log2(count) shuffles for each register, where each vector by itself takes one or two for
// each register that it draws from.
MemoryCode::Values MemoryCode::ColumnsOf(llvm::ArrayRef<Value*> parts, size_t count) {
    const uint32_t group = TransposedLanes();
    Values registers;
    Values open;
    unsigned width = 0;
    for (Value* part : parts) {
        for (unsigned at = 0; at < Width(part); at += group) {
            open.push_back(vectors::Slice(builder_, part, at, std::min(Width(part), group)));
            width += Width(open.back());
            if (width == group) {
                registers.push_back(vectors::JoinAll(builder_, open));
                open.clear();
                width = 0;
            }
        }
    }
    std::vector<Values> columns(count);
    for (size_t first = 0; first < registers.size(); first += count) {
        Values vectors(registers.begin() + first, registers.begin() + first + count);
        if (count % 4 == 0 && group % 4 == 0 && (count > 4 || group < 16)) {
            PartsToColumns(builder_, code_.vector_bits, vectors);
        } else {
            RowsToColumns(builder_, vectors);
        }
        for (size_t i = 0; i < count; ++i) {
            columns[i].push_back(vectors[i]);
        }
    }
    Values results;
    for (const Values& column : columns) {
        results.push_back(vectors::JoinAll(builder_, column));
    }
    return results;
}

void MemoryCode::StoreRows(const MemoryRegion& region,
                           Value* address,
                           llvm::ArrayRef<uint64_t> lane_bytes,
                           llvm::ArrayRef<Value*> words) {
    const auto count = static_cast<unsigned>(words.size());
    const unsigned padded = std::bit_ceil(count);
    const unsigned part = std::bit_floor(count);
    const uint32_t group = TransposedLanes();
    for (uint32_t first = 0; first < code_.lanes; first += group) {
        const Values vectors = RowsOf(builder_, words, first, group);
        for (uint32_t lane = 0; lane < group; ++lane) {
            // The lane's row begins at this word of all vectors.
            const unsigned begin = lane * padded;
            Value* row = nullptr;
            if (padded <= group) {
                row = vectors::Slice(builder_, vectors[begin / group], begin % group, count);
            } else {
                Values parts(vectors.begin() + begin / group,
                             vectors.begin() + (begin + padded) / group);
                row = vectors::Slice(builder_, vectors::JoinAll(builder_, parts), 0, count);
            }
            auto store = [&](unsigned word) {
                Value* at = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address,
                                                        lane_bytes[first + lane] + 4 * word);
                Annotate(region,
                         builder_.CreateAlignedStore(vectors::Slice(builder_, row, word, part), at,
                                                     llvm::Align(1)));
            };
            store(0);
            if (part != count) {
                store(count - part);
            }
        }
    }
}

bool MemoryCode::MovesRows(const llvm::Type* type, size_t count) const {
    return !code_.compact && code_.lanes > 1 && type->getScalarSizeInBits() == 32 &&
           count >= kLeastRowWords && count <= kMostRowWords;
}

// Memory for what one access takes apart: all of them share it.
llvm::AllocaInst* MemoryCode::RowSlot(llvm::Type* type) {
    llvm::AllocaInst*& slot = row_slots_[type];
    if (!slot) {
        slot = code_.NewAlloca(type, "row_slot");
        slot->setAlignment(llvm::Align(64));
    }
    return slot;
}

// Runs at places that no pattern tells. Those of active lanes are inside. Lanes that are not active
// read what memory begins with, of which there is a run, or zeros where addresses have no
// beginning.
MemoryCode::Values MemoryCode::GatherRows(const MemoryRegion& region,
                                          Value* offsets,
                                          llvm::Type* type,
                                          size_t count) {
    if (region.bounds == MemoryRegion::Bounds::kClamped) {
        offsets = ClampScalar(region, offsets, count * sizeof(uint32_t));
    }
    if (code_.mask) {
        Value* elsewhere = llvm::Constant::getNullValue(offsets->getType());
        if (region.is_global) {
            elsewhere = code_.Splat(builder_.CreatePtrToInt(Zeros(), builder_.getInt64Ty()));
        }
        offsets = builder_.CreateSelect(code_.mask, offsets, elsewhere);
    }
    // Through memory: LLVM takes several times as long to take lanes out of vectors, for code that
    // is no faster. As volatile loads it leaves them there.
    const LaneArray offset_of = {RowSlot(offsets->getType()), offsets->getType()->getScalarType()};
    builder_.CreateAlignedStore(offsets, offset_of.slot, llvm::Align(64));
    Value* packed = nullptr;
    Values words = LoadRowsAt(
        region,
        [&](uint32_t lane) {
            auto* offset = llvm::cast<llvm::LoadInst>(LoadLane(offset_of, builder_.getInt64(lane)));
            offset->setVolatile(true);
            return ByteAddress(region, offset);
        },
        count, packed);
    for (Value*& word : words) {
        word = builder_.CreateBitCast(word, code_.VectorOf(type));
    }
    return words;
}

// The lanes that are active and inside one after the other, each with one access.
void MemoryCode::ScatterRows(const MemoryRegion& region,
                             Value* offsets,
                             llvm::ArrayRef<Value*> values) {
    recorder_.Form(AccessForm::kLaneRows, CheckOf(region, AccessCheck::kLanes));
    const uint64_t bytes = values.size() * sizeof(uint32_t);
    const uint64_t row_bytes = std::bit_ceil(bytes);
    Value* whole = ElementMask(region, offsets, 0, bytes);
    if (region.bounds == MemoryRegion::Bounds::kClamped) {
        offsets = ClampScalar(region, offsets, bytes);
    }
    llvm::Type* i8 = builder_.getInt8Ty();
    auto* row_type =
        llvm::FixedVectorType::get(builder_.getInt32Ty(), static_cast<unsigned>(values.size()));
    llvm::AllocaInst* rows =
        RowSlot(llvm::FixedVectorType::get(i8, code_.lanes * static_cast<unsigned>(row_bytes)));
    Values words;
    for (Value* value : values) {
        words.push_back(builder_.CreateBitCast(value, code_.VectorOf(builder_.getInt32Ty())));
    }
    const uint32_t group = TransposedLanes();
    uint64_t at = 0;
    for (uint32_t first = 0; first < code_.lanes; first += group) {
        for (Value* vector : RowsOf(builder_, words, first, group)) {
            builder_.CreateAlignedStore(vector, builder_.CreateConstGEP1_64(i8, rows, at),
                                        llvm::Align(16));
            at += vector->getType()->getPrimitiveSizeInBits() / 8;
        }
    }
    const LaneArray offset_of = {RowSlot(offsets->getType()), offsets->getType()->getScalarType()};
    builder_.CreateAlignedStore(offsets, offset_of.slot, llvm::Align(64));
    EmitLaneLoop(whole, [&](Value* lane) {
        Value* from =
            builder_.CreateGEP(i8, rows, builder_.CreateMul(lane, builder_.getInt64(row_bytes)));
        Value* row = builder_.CreateAlignedLoad(row_type, from, llvm::Align(4));
        Annotate(region, builder_.CreateAlignedStore(
                             row, ByteAddress(region, LoadLane(offset_of, lane)), llvm::Align(4)));
    });
    if (region.bounds != MemoryRegion::Bounds::kChecked) {
        return;
    }
    BasicBlock* partial = code_.NewBlock("scatter_edge");
    BasicBlock* end = code_.NewBlock("scatter_end");
    Value* rest = builder_.CreateAnd(code_.Mask(), builder_.CreateNot(whole));
    code_.EmitMaybe(code_.Any(rest), partial, end, false);
    builder_.SetInsertPoint(partial);
    {
        const MaskScope others(code_, rest);
        ScatterElements(region, offsets, values);
    }
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
}

// The row of lane l to address + lane_bytes[l].
void MemoryCode::StorePackedRows(const MemoryRegion& region,
                                 Value* address,
                                 llvm::ArrayRef<uint64_t> lane_bytes,
                                 Value* packed) {
    auto* type = llvm::cast<llvm::FixedVectorType>(packed->getType());
    const unsigned elements = type->getNumElements() / code_.lanes;
    const unsigned row_bytes = elements * type->getScalarSizeInBits() / 8;
    uint32_t rows = 0;
    for (uint32_t lane = 0; lane < code_.lanes; lane += rows) {
        // Rows of lanes that follow each other, as many as a register has.
        for (rows = 1; lane + rows < code_.lanes && (rows + 1) * row_bytes <= code_.vector_bits / 8;
             ++rows) {
            if (lane_bytes[lane + rows] != lane_bytes[lane] + uint64_t{rows} * row_bytes) {
                break;
            }
        }
        Value* part = vectors::Slice(builder_, packed, lane * elements, rows * elements);
        Value* at = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, lane_bytes[lane]);
        Annotate(region, builder_.CreateAlignedStore(part, at, llvm::Align(1)));
    }
}

}  // namespace fornax::kernel
