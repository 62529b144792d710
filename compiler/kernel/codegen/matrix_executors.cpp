#include "compiler/kernel/codegen/matrix_executors.h"

#include <cassert>

#include "compiler/kernel/codegen/matrix_code.h"
#include "compiler/kernel/codegen/pure_ops_internal.h"

namespace fornax::kernel {

using ir::kMatrixSize;
using llvm::Value;

namespace {

unsigned Width(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

// Element 0 of one vector, element 0 of the other, element 1, ...
llvm::SmallVector<int, 32> Alternating(unsigned width) {
    llvm::SmallVector<int, 32> picks;
    for (unsigned i = 0; i < 2 * width; ++i)
        picks.push_back(static_cast<int>(i % 2 * width + i / 2));
    return picks;
}

}  // namespace

Value* NewMatrixSlot(llvm::BasicBlock& entry, uint64_t bytes) {
    llvm::IRBuilder<> at(&entry, entry.begin());
    llvm::AllocaInst* slot = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), bytes));
    slot->setAlignment(kMatrixAlign);
    return slot;
}

void StoreMatrix(llvm::IRBuilder<>& builder, llvm::ArrayRef<Value*> matrix, Value* slot) {
    uint64_t at = 0;
    for (Value* vector : matrix) {
        Value* address = builder.CreateConstGEP1_64(builder.getInt8Ty(), slot, at);
        builder.CreateAlignedStore(vector, address, llvm::commonAlignment(kMatrixAlign, at));
        at += vector->getType()->getPrimitiveSizeInBits() / 8;
    }
}

MatrixVectors RegroupMatrix(llvm::IRBuilder<>& builder,
                            llvm::ArrayRef<Value*> matrix,
                            unsigned width) {
    MatrixVectors level(matrix.begin(), matrix.end());
    for (unsigned given = Width(level[0]); given < width; given *= 2) {
        llvm::SmallVector<int, 64> all;
        for (unsigned i = 0; i < 2 * given; ++i)
            all.push_back(static_cast<int>(i));
        for (size_t i = 0; i < level.size(); i += 2)
            level[i / 2] = builder.CreateShuffleVector(level[i], level[i + 1], all);
        level.resize(level.size() / 2);
    }
    const unsigned given = Width(level[0]);
    if (given == width)
        return level;
    MatrixVectors parts;
    for (Value* vector : level) {
        for (unsigned first = 0; first < given; first += width) {
            llvm::SmallVector<int, 64> some;
            for (unsigned i = 0; i < width; ++i)
                some.push_back(static_cast<int>(first + i));
            parts.push_back(builder.CreateShuffleVector(vector, some));
        }
    }
    return parts;
}

// An element of A or B is an f32, or an i16.
Value* VectorExecutor::Widen(Value* vector, const MatrixKind& kind, bool is_signed) {
    auto with = [&](llvm::Type* scalar) {
        return llvm::FixedVectorType::get(scalar, Width(vector));
    };
    switch (kind.format) {
        case hal::MatrixFormat::kInt8:
            return b_.CreateIntCast(vector, with(b_.getInt16Ty()), is_signed);
        case hal::MatrixFormat::kBF16:
            vector = b_.CreateShl(b_.CreateZExt(vector, with(b_.getInt32Ty())), 16);
            return b_.CreateBitCast(vector, with(b_.getFloatTy()));
        case hal::MatrixFormat::kF16:
            break;
    }
    return FloatFromHalf(b_, b_.CreateBitCast(vector, with(b_.getHalfTy())));
}

// Of rows 0 and 1, then of rows 2 and 3, ...: the elements of a column beside each other.
MatrixVectors VectorExecutor::AlternateRows(llvm::ArrayRef<Value*> matrix) {
    const MatrixVectors rows = RegroupMatrix(b_, matrix, kMatrixSize);
    MatrixVectors pairs;
    for (uint32_t i = 0; i < kMatrixSize; i += 2)
        pairs.push_back(b_.CreateShuffleVector(rows[i], rows[i + 1], Alternating(kMatrixSize)));
    return pairs;
}

void VectorExecutor::LoadFactor(Value* factor,
                                llvm::ArrayRef<Value*> matrix,
                                const MatrixKind& kind,
                                bool is_b) {
    const bool is_signed = (kind.flags & (is_b ? ir::kMatrixSignedB : ir::kMatrixSignedA)) != 0;
    MatrixVectors elements;
    for (Value* vector : matrix)
        elements.push_back(Widen(vector, kind, is_signed));
    if (is_b && kind.format == hal::MatrixFormat::kInt8)
        elements = AlternateRows(elements);
    StoreMatrix(b_, elements, factor);
}

void VectorExecutor::MultiplyAdd(llvm::ArrayRef<Value*> sums,
                                 llvm::ArrayRef<Value*> factors,
                                 const MatrixKind& kind) {
    assert(sums.size() == 1 && factors.size() == 2);
    llvm::Module& module = *b_.GetInsertBlock()->getModule();
    b_.CreateCall(
        MatrixMulAddFunction(module, kind.format == hal::MatrixFormat::kInt8, vector_bits_),
        {sums[0], factors[0], factors[1]});
}

void TileExecutor::LoadFactor(Value* factor,
                              llvm::ArrayRef<Value*> matrix,
                              const MatrixKind&,
                              bool is_b) {
    if (!rows_)
        rows_ = NewMatrixSlot(entry_, ir::kMatrixElements * 2);
    StoreMatrix(b_, matrix, rows_);
    LoadFactorOf(factor, rows_, kMatrixSize * (format_ == hal::MatrixFormat::kInt8 ? 1 : 2), is_b,
                 /*columns=*/false);
}

void TileExecutor::LoadFactorOf(Value* factor,
                                Value* from,
                                uint64_t stride,
                                bool is_b,
                                bool columns) {
    b_.CreateCall(TilePackFunction(*entry_.getModule(), format_, is_b, columns),
                  {factor, from, b_.getInt64(stride)});
}

void TileExecutor::MultiplyAdd(llvm::ArrayRef<Value*> sums,
                               llvm::ArrayRef<Value*> factors,
                               const MatrixKind& kind) {
    const unsigned side = sums.size() == 1 ? 1 : 2;
    MatrixVectors arguments(sums.begin(), sums.end());
    arguments.insert(arguments.end(), factors.begin(), factors.end());
    const auto steps = static_cast<unsigned>(factors.size() / (2 * side));
    b_.CreateCall(TileMulAddFunction(*entry_.getModule(), format_, kind.flags, side, steps),
                  arguments);
}

void TileExecutor::Finish(llvm::Function& kernel) {
    llvm::IRBuilder<> at(&entry_, entry_.begin());
    EmitTileSetup(at, format_);
    EmitTileRelease(kernel);
}

}  // namespace fornax::kernel
