#include "compiler/kernel/codegen/matrix_executors.h"

#include "compiler/kernel/codegen/fetch_line.h"

#include "compiler/kernel/codegen/matrix_floats.h"
#include "compiler/kernel/codegen/matrix_tiles.h"
#include "compiler/kernel/codegen/matrix_vectors.h"

namespace fornax::kernel {

using ir::kMatrixSize;
using llvm::Value;

namespace {

unsigned Width(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
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
        for (unsigned i = 0; i < 2 * given; ++i) {
            all.push_back(static_cast<int>(i));
        }
        for (size_t i = 0; i < level.size(); i += 2) {
            level[i / 2] = builder.CreateShuffleVector(level[i], level[i + 1], all);
        }
        level.resize(level.size() / 2);
    }
    const unsigned given = Width(level[0]);
    if (given == width) {
        return level;
    }
    MatrixVectors parts;
    for (Value* vector : level) {
        for (unsigned first = 0; first < given; first += width) {
            llvm::SmallVector<int, 64> some;
            for (unsigned i = 0; i < width; ++i) {
                some.push_back(static_cast<int>(first + i));
            }
            parts.push_back(builder.CreateShuffleVector(vector, some));
        }
    }
    return parts;
}

void MatrixExecutor::LoadOperand(Value* operand,
                                 Value* from,
                                 Value* stride,
                                 const MatrixKind& kind,
                                 bool is_b,
                                 bool columns) {
    b_.CreateCall(MatrixPackFunction(module(), FormOf(kind, is_b), is_b, columns),
                  {operand, from, stride});
}

void MatrixExecutor::MultiplyAdd(llvm::ArrayRef<Value*> accumulators,
                                 llvm::ArrayRef<MatrixOperand> operands,
                                 const MatrixKind& kind,
                                 const MatrixLines& lines) {
    if (kind.format == hal::MatrixFormat::kF32) {
        for (Value* address : lines.addresses) {
            FetchLine(b_, address, CacheLevel::kSecond);
        }
        EmitFloatMmas(b_, accumulators, operands);
        return;
    }
    const unsigned side = accumulators.size() == 1 ? 1 : 2;
    const auto steps = static_cast<unsigned>(operands.size() / (2 * side));
    MatrixVectors arguments(accumulators.begin(), accumulators.end());
    for (const MatrixOperand& operand : operands) {
        arguments.push_back(operand.at);
    }
    const unsigned within = LinesWithin(kind, side, steps, lines.addresses.size());
    if (within != 0) {
        arguments.push_back(lines.array);
    }
    for (Value* address : lines.addresses.drop_front(within)) {
        FetchLine(b_, address, CacheLevel::kSecond);
    }
    b_.CreateCall(MmaFunctionOf(kind, side, steps, within), arguments);
}

OperandForm VectorExecutor::FormOf(const MatrixKind& kind, bool is_b) const {
    return VectorForm(module(), kind.format, kind.flags, is_b);
}

bool VectorExecutor::TakesRows(const MatrixKind& kind) const {
    return FormOf(kind, /*is_b=*/false) == OperandForm::kPairsOfBFloats;
}

unsigned VectorExecutor::LinesWithin(const MatrixKind& kind,
                                     unsigned side,
                                     unsigned steps,
                                     size_t count) const {
    const VectorStep step = VectorStepOf(FormOf(kind, /*is_b=*/false));
    return VectorLines(module(), step, side, steps, count);
}

llvm::Function* VectorExecutor::MmaFunctionOf(const MatrixKind& kind,
                                              unsigned side,
                                              unsigned steps,
                                              unsigned lines) const {
    const VectorStep step = VectorStepOf(FormOf(kind, /*is_b=*/false));
    return VectorMulAddFunction(module(), step, side, steps, lines, kind.stride_of_a);
}

OperandForm TileExecutor::FormOf(const MatrixKind&, bool) const {
    return TileForm(format_);
}

llvm::Function* TileExecutor::MmaFunctionOf(const MatrixKind& kind,
                                            unsigned side,
                                            unsigned steps,
                                            unsigned) const {
    return TileMulAddFunction(module(), format_, kind.flags, side, steps);
}

void TileExecutor::Finish(llvm::Function& kernel) {
    llvm::IRBuilder<> at(&entry_, entry_.begin());
    EmitTileSetup(at, format_);
    EmitTileRelease(kernel);
}

}  // namespace fornax::kernel
