#include "compiler/kernel/codegen/matrix_emitter.h"

#include "compiler/kernel/codegen/matrix_code.h"
#include "compiler/kernel/codegen/pure_ops_internal.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using ir::kMatrixSize;
using llvm::Value;

namespace {

const llvm::Align kSlotAlign(64);
constexpr uint64_t kSlotBytes = ir::kMatrixElements * 4;

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

// The same elements in vectors of another width.
MatrixEmitter::Vectors MatrixEmitter::Regroup(llvm::ArrayRef<Value*> vectors, unsigned width) {
    Vectors level(vectors.begin(), vectors.end());
    for (unsigned given = Width(level[0]); given < width; given *= 2) {
        llvm::SmallVector<int, 64> all;
        for (unsigned i = 0; i < 2 * given; ++i)
            all.push_back(static_cast<int>(i));
        for (size_t i = 0; i < level.size(); i += 2)
            level[i / 2] = b_.CreateShuffleVector(level[i], level[i + 1], all);
        level.resize(level.size() / 2);
    }
    const unsigned given = Width(level[0]);
    if (given == width)
        return level;
    Vectors parts;
    for (Value* vector : level) {
        for (unsigned first = 0; first < given; first += width) {
            llvm::SmallVector<int, 64> some;
            for (unsigned i = 0; i < width; ++i)
                some.push_back(static_cast<int>(first + i));
            parts.push_back(b_.CreateShuffleVector(vector, some));
        }
    }
    return parts;
}

Value* MatrixEmitter::Slot(uint32_t which) {
    if (!slots_[which]) {
        llvm::IRBuilder<> at(&entry_, entry_.begin());
        slots_[which] = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), kSlotBytes));
        slots_[which]->setAlignment(kSlotAlign);
    }
    return slots_[which];
}

void MatrixEmitter::Store(llvm::ArrayRef<Value*> matrix, uint32_t slot) {
    uint64_t at = 0;
    for (Value* vector : matrix) {
        Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), Slot(slot), at);
        b_.CreateAlignedStore(vector, address, llvm::commonAlignment(kSlotAlign, at));
        at += vector->getType()->getPrimitiveSizeInBits() / 8;
    }
}

std::vector<Value*> MatrixEmitter::Transpose(llvm::ArrayRef<Value*> matrix) {
    Vectors rows = Regroup(matrix, kMatrixSize);
    // Blocks off the diagonal change places: of half the size, of a quarter, ...
    for (uint32_t size = kMatrixSize / 2; size != 0; size /= 2) {
        llvm::SmallVector<int, 16> upper, lower;
        for (uint32_t i = 0; i < kMatrixSize; ++i) {
            upper.push_back(static_cast<int>(i & size ? kMatrixSize + i - size : i));
            lower.push_back(static_cast<int>(i & size ? kMatrixSize + i : i + size));
        }
        for (uint32_t i = 0; i < kMatrixSize; ++i) {
            if (i & size)
                continue;
            Value* first = rows[i];
            Value* second = rows[i + size];
            rows[i] = b_.CreateShuffleVector(first, second, upper);
            rows[i + size] = b_.CreateShuffleVector(first, second, lower);
        }
    }
    return Regroup(rows, Width(matrix[0]));
}

// The elements of A or B as f32, or as i16.
MatrixEmitter::Vectors MatrixEmitter::Factors(llvm::ArrayRef<Value*> matrix,
                                              uint64_t flags,
                                              bool is_signed) {
    Vectors factors;
    for (Value* vector : matrix) {
        llvm::Type* type = vector->getType();
        auto with = [&](llvm::Type* scalar) {
            return llvm::FixedVectorType::get(scalar, Width(vector));
        };
        if (type->getScalarSizeInBits() == 8) {
            vector = b_.CreateIntCast(vector, with(b_.getInt16Ty()), is_signed);
        } else if (flags & ir::kMatrixBFloat16) {
            vector = b_.CreateShl(b_.CreateZExt(vector, with(b_.getInt32Ty())), 16);
            vector = b_.CreateBitCast(vector, with(b_.getFloatTy()));
        } else {
            vector = FloatFromHalf(b_, b_.CreateBitCast(vector, with(b_.getHalfTy())));
        }
        factors.push_back(vector);
    }
    return factors;
}

// Of rows 0 and 1, then of rows 2 and 3, ...: the elements of a column beside each other.
MatrixEmitter::Vectors MatrixEmitter::AlternateRows(llvm::ArrayRef<Value*> matrix) {
    const Vectors rows = Regroup(matrix, kMatrixSize);
    Vectors pairs;
    for (uint32_t i = 0; i < kMatrixSize; i += 2)
        pairs.push_back(b_.CreateShuffleVector(rows[i], rows[i + 1], Alternating(kMatrixSize)));
    return pairs;
}

std::vector<Value*> MatrixEmitter::MulAdd(llvm::ArrayRef<Value*> operands, uint64_t flags) {
    const size_t count = operands.size() / 3;
    const llvm::ArrayRef<Value*> sums = operands.drop_front(2 * count);
    llvm::Type* type = sums[0]->getType();
    const bool integers = type->isIntOrIntVectorTy();
    const bool saturates = (flags & ir::kMatrixSaturating) != 0;
    Store(Factors(operands.take_front(count), flags, (flags & ir::kMatrixSignedA) != 0), 1);
    Vectors b = Factors(operands.slice(count, count), flags, (flags & ir::kMatrixSignedB) != 0);
    Store(integers ? AlternateRows(b) : b, 2);
    if (saturates)
        Store(Vectors(count, llvm::Constant::getNullValue(type)), 0);
    else
        Store(sums, 0);
    llvm::Module& module = *entry_.getModule();
    b_.CreateCall(MatrixMulAddFunction(module, integers, vector_bits_),
                  {Slot(0), Slot(1), Slot(2)});
    Vectors results;
    uint64_t at = 0;
    for (Value* sum : sums) {
        Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), Slot(0), at);
        Value* result = b_.CreateAlignedLoad(type, address, llvm::commonAlignment(kSlotAlign, at));
        results.push_back(saturates ? AddSaturating(sum, result, flags) : result);
        at += type->getPrimitiveSizeInBits() / 8;
    }
    return results;
}

// What the products add up to is far from wrapping.
Value* MatrixEmitter::AddSaturating(Value* sum, Value* products, uint64_t flags) {
    if (flags & ir::kMatrixSignedC)
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, sum, products);
    Value* up = b_.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, sum, products);
    Value* down = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, sum, b_.CreateNeg(products));
    Value* zero = llvm::Constant::getNullValue(products->getType());
    return b_.CreateSelect(b_.CreateICmpSLT(products, zero), down, up);
}

}  // namespace fornax::kernel
