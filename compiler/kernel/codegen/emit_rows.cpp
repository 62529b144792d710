// Runs of words that lie anywhere, a run a lane: each lane's run is one access of its own, and runs
// are turned into vectors of all lanes, or back, by transposition. For runs too far apart to be
// loaded as a whole.
#include <algorithm>
#include <bit>

#include "compiler/kernel/codegen/memory_code.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

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
            auto load = [&](uint64_t word) {
                Value* at = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address,
                                                        lane_bytes[lane] + 4 * word);
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

void MemoryCode::StoreRows(const MemoryRegion& region,
                           Value* address,
                           llvm::ArrayRef<uint64_t> lane_bytes,
                           llvm::ArrayRef<Value*> words) {
    const auto count = static_cast<unsigned>(words.size());
    const unsigned padded = std::bit_ceil(count);
    const unsigned part = std::bit_floor(count);
    const uint32_t group = TransposedLanes();
    for (uint32_t first = 0; first < code_.lanes; first += group) {
        Values vectors;
        for (Value* word : words) {
            vectors.push_back(vectors::Slice(builder_, word, first, group));
        }
        while (vectors.size() < padded) {
            vectors.push_back(llvm::PoisonValue::get(vectors[0]->getType()));
        }
        ColumnsToRows(builder_, vectors);
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
