// Transposition in four stages of shuffles of two rows each.
#include "compiler/kernel/codegen/matrix_transpose.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <utility>

#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using llvm::Value;

MatrixVectors TransposeMatrix(llvm::IRBuilder<>& b, MatrixVectors rows) {
    auto shuffled = [&](Value* first, Value* second, auto&& pick) {
        llvm::SmallVector<int, 16> picks;
        for (uint32_t i = 0; i < ir::kMatrixSize; ++i) {
            picks.push_back(static_cast<int>(pick(i)));
        }
        return b.CreateShuffleVector(first, second, picks);
    };
    // The blocks off the diagonal change places.
    constexpr uint32_t kHalf = ir::kMatrixSize / 2;
    for (uint32_t i = 0; i < kHalf; ++i) {
        Value* above = rows[i];
        Value* below = rows[i + kHalf];
        auto left = [](uint32_t k) { return k < kHalf ? k : k + kHalf; };
        auto right = [](uint32_t k) { return k < kHalf ? k + kHalf : k + 2 * kHalf; };
        rows[i] = shuffled(above, below, left);
        rows[i + kHalf] = shuffled(above, below, right);
    }
    // Within blocks, of 128 bits for f16: rows of the upper and of the lower half alternate, which
    // after three times is the transpose, and one instruction each time.
    for (uint32_t round = kHalf; round != 1; round /= 2) {
        MatrixVectors next(ir::kMatrixSize);
        for (uint32_t i = 0; i < ir::kMatrixSize; ++i) {
            const uint32_t block = i / kHalf * kHalf;
            const uint32_t part = i % 2 * (kHalf / 2);
            const uint32_t from = block + i % kHalf / 2;
            next[i] = shuffled(rows[from], rows[from + kHalf / 2], [&](uint32_t k) {
                return k / kHalf * kHalf + part + k % kHalf / 2 + k % 2 * ir::kMatrixSize;
            });
        }
        rows = std::move(next);
    }
    return rows;
}

Value* TransposeMatrixAsOne(llvm::IRBuilder<>& b, llvm::ArrayRef<Value*> rows) {
    const MatrixVectors transposed = TransposeMatrix(b, {rows.begin(), rows.end()});
    Value* all = llvm::PoisonValue::get(llvm::StructType::get(
        b.getContext(), llvm::SmallVector<llvm::Type*>(rows.size(), rows[0]->getType())));
    for (uint32_t i = 0; i < transposed.size(); ++i) {
        all = b.CreateInsertValue(all, transposed[i], i);
    }
    return all;
}

}  // namespace fornax::kernel
