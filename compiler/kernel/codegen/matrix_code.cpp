// A product of matrices on vector registers. Rows of c stay in registers, as many as there are;
// each element of a (of integers: each pair of neighbours) is spread over a register and meets the
// row of b that it belongs to.
#include "compiler/kernel/codegen/matrix_code.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <vector>

#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

namespace {

using llvm::BasicBlock;
using llvm::Value;

class MulAdd {
  public:
    MulAdd(llvm::Module& module, bool integers, uint32_t vector_bits)
        : module_(module),
          b_(module.getContext()),
          integers_(integers),
          bits_(vector_bits),
          lanes_(vector_bits / 32),
          pieces_(ir::kMatrixSize / lanes_),
          rows_(vector_bits >= 512 ? ir::kMatrixSize : vector_bits / 64) {}

    llvm::Function* Make(const char* name) {
        llvm::Type* ptr = b_.getPtrTy();
        auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr}, false);
        function_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module_);
        function_->setDoesNotThrow();
        for (unsigned i = 0; i < 3; ++i)
            function_->addParamAttr(i, llvm::Attribute::NoAlias);
        BasicBlock* entry = Block("entry");
        BasicBlock* some_rows = Block("rows");
        BasicBlock* product = Block("product");
        BasicBlock* end = Block("rows_end");
        BasicBlock* exit = Block("exit");
        b_.SetInsertPoint(entry);
        b_.CreateBr(some_rows);

        b_.SetInsertPoint(some_rows);
        // All rows at once need no loop.
        llvm::PHINode* next_rows = nullptr;
        Value* first_row = b_.getInt64(0);
        if (rows_ != ir::kMatrixSize) {
            next_rows = b_.CreatePHI(b_.getInt64Ty(), 2);
            next_rows->addIncoming(first_row, entry);
            first_row = next_rows;
        }
        std::vector<Value*> sums;
        ForEachPiece([&](uint32_t row, uint32_t piece) {
            sums.push_back(
                b_.CreateAlignedLoad(SumType(), SumAddress(first_row, row, piece), Align()));
        });
        b_.CreateBr(product);

        b_.SetInsertPoint(product);
        llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2);
        k->addIncoming(b_.getInt64(0), some_rows);
        std::vector<llvm::PHINode*> carried;
        for (Value* sum : sums) {
            carried.push_back(b_.CreatePHI(SumType(), 2));
            carried.back()->addIncoming(sum, some_rows);
        }
        std::vector<Value*> row_of_b;
        for (uint32_t piece = 0; piece < pieces_; ++piece) {
            Value* at = b_.CreateMul(k, b_.getInt64(kRowBytes));
            at = b_.CreateAdd(at, b_.getInt64(piece * bits_ / 8));
            row_of_b.push_back(b_.CreateAlignedLoad(SumType(), At(2, at), Align()));
        }
        // Elements of a, or pairs of them, are four bytes.
        const uint64_t steps = integers_ ? ir::kMatrixSize / 2 : ir::kMatrixSize;
        std::vector<Value*> next;
        Value* factor = nullptr;
        ForEachPiece([&](uint32_t row, uint32_t piece) {
            if (piece == 0) {
                Value* number = b_.CreateAdd(first_row, b_.getInt64(row));
                Value* at = b_.CreateAdd(b_.CreateMul(number, b_.getInt64(steps)), k);
                at = b_.CreateMul(at, b_.getInt64(4));
                factor =
                    b_.CreateAlignedLoad(SumType()->getScalarType(), At(1, at), llvm::Align(4));
                factor = b_.CreateVectorSplat(lanes_, factor);
            }
            next.push_back(Step(carried[next.size()], factor, row_of_b[piece]));
        });
        Value* next_k = b_.CreateAdd(k, b_.getInt64(1));
        k->addIncoming(next_k, product);
        for (size_t i = 0; i < carried.size(); ++i)
            carried[i]->addIncoming(next[i], product);
        b_.CreateCondBr(b_.CreateICmpULT(next_k, b_.getInt64(steps)), product, end);

        b_.SetInsertPoint(end);
        size_t at = 0;
        ForEachPiece([&](uint32_t row, uint32_t piece) {
            b_.CreateAlignedStore(next[at++], SumAddress(first_row, row, piece), Align());
        });
        if (next_rows) {
            Value* next_row = b_.CreateAdd(first_row, b_.getInt64(rows_));
            next_rows->addIncoming(next_row, end);
            Value* more = b_.CreateICmpULT(next_row, b_.getInt64(ir::kMatrixSize));
            b_.CreateCondBr(more, some_rows, exit);
        } else {
            b_.CreateBr(exit);
        }
        b_.SetInsertPoint(exit);
        b_.CreateRetVoid();
        return function_;
    }

  private:
    static constexpr uint64_t kRowBytes = ir::kMatrixSize * 4;

    BasicBlock* Block(const char* name) {
        return BasicBlock::Create(module_.getContext(), name, function_);
    }
    llvm::Align Align() const { return llvm::Align(bits_ / 8); }
    llvm::Type* SumType() {
        llvm::Type* scalar = integers_ ? b_.getInt32Ty() : b_.getFloatTy();
        return llvm::FixedVectorType::get(scalar, lanes_);
    }
    Value* At(unsigned argument, Value* offset) {
        return b_.CreateGEP(b_.getInt8Ty(), function_->getArg(argument), offset);
    }
    Value* SumAddress(Value* first_row, uint32_t row, uint32_t piece) {
        Value* at = b_.CreateAdd(first_row, b_.getInt64(row));
        at = b_.CreateMul(at, b_.getInt64(kRowBytes));
        return At(0, b_.CreateAdd(at, b_.getInt64(piece * bits_ / 8)));
    }
    template <typename Body>
    void ForEachPiece(Body&& body) {
        for (uint32_t row = 0; row < rows_; ++row) {
            for (uint32_t piece = 0; piece < pieces_; ++piece)
                body(row, piece);
        }
    }

    Value* Step(Value* sum, Value* a, Value* b) {
        if (!integers_) {
            // Products of f16 are exact, so that without fused operations the sums are the same.
            if (bits_ >= 256)
                return b_.CreateIntrinsic(llvm::Intrinsic::fma, {SumType()}, {a, b, sum});
            return b_.CreateFAdd(sum, b_.CreateFMul(a, b));
        }
        const llvm::Intrinsic::ID id = bits_ == 512   ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                                       : bits_ == 256 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                                      : llvm::Intrinsic::x86_sse2_pmadd_wd;
        auto* pairs = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes_ * 2);
        Value* products =
            b_.CreateIntrinsic(id, {}, {b_.CreateBitCast(a, pairs), b_.CreateBitCast(b, pairs)});
        return b_.CreateAdd(sum, products);
    }

    llvm::Module& module_;
    llvm::IRBuilder<> b_;
    const bool integers_;
    const uint32_t bits_;
    const uint32_t lanes_;   // of a register
    const uint32_t pieces_;  // registers of a row
    const uint32_t rows_;    // of c that are in registers at once
    llvm::Function* function_ = nullptr;
};

}  // namespace

llvm::Function* MatrixMulAddFunction(llvm::Module& module, bool integers, uint32_t vector_bits) {
    const char* name = integers ? "matrix_muladd_i32" : "matrix_muladd_f32";
    if (llvm::Function* made = module.getFunction(name))
        return made;
    return MulAdd(module, integers, vector_bits).Make(name);
}

}  // namespace fornax::kernel
