// As many accumulators as there are registers for stay in them. Each word of A, which is an element
// or two neighbours of a row, is spread over a register and meets the words of B that it belongs
// to.
#include "compiler/kernel/codegen/matrix_vectors.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "compiler/kernel/codegen/fetch_line.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

namespace {

using llvm::BasicBlock;
using llvm::Value;
using Values = std::vector<Value*>;

// The part of a row of accumulators that is in registers at once: some rows of one, or of two side
// by side.
struct Blocking {
    uint32_t rows;
    uint32_t accumulators;
};

Blocking BlockingOf(uint32_t vector_bits, unsigned side) {
    // 16 registers of 32, or 8 of 16.
    if (vector_bits >= 512) {
        return {ir::kMatrixSize / side, side};
    }
    return {vector_bits / 64, 1};
}

// The words of a row of A, which a loop takes one after the other.
uint32_t WordsOf(VectorStep step) {
    return step == VectorStep::kFloats ? ir::kMatrixSize : ir::kMatrixSize / 2;
}

class MulAdd {
  public:
    MulAdd(llvm::Function& function,
           VectorStep step,
           uint32_t vector_bits,
           unsigned side,
           unsigned steps,
           unsigned lines,
           uint32_t stride_of_a)
        : function_(function),
          b_(function.getContext()),
          step_(step),
          bits_(vector_bits),
          lanes_(vector_bits / 32),
          pieces_(ir::kMatrixSize / lanes_),
          blocking_(BlockingOf(vector_bits, side)),
          words_(WordsOf(step)),
          side_(side),
          steps_(steps),
          lines_(lines),
          stride_of_a_(stride_of_a != 0 ? stride_of_a : words_ * 4) {}

    void Emit() {
        b_.SetInsertPoint(NewBlock("entry"));
        for (unsigned row = 0; row < side_; ++row) {
            for (unsigned column = 0; column < side_; column += blocking_.accumulators) {
                if (blocking_.rows == ir::kMatrixSize) {
                    EmitRows(row, column, b_.getInt64(0));
                } else {
                    Loop(ir::kMatrixSize, blocking_.rows, {}, [&](Value* first, const Values&) {
                        EmitRows(row, column, first);
                        return Values();
                    });
                }
            }
        }
        b_.CreateRetVoid();
    }

  private:
    static constexpr uint64_t kRowBytes = ir::kMatrixSize * 4;

    BasicBlock* NewBlock(const char* name) {
        return BasicBlock::Create(function_.getContext(), name, &function_);
    }
    // `body` from 0 to `end`, with values that it gives to its next iteration.
    Values Loop(uint64_t end,
                uint64_t by,
                const Values& begin,
                const std::function<Values(Value*, const Values&)>& body) {
        BasicBlock* before = b_.GetInsertBlock();
        BasicBlock* loop = NewBlock("loop");
        BasicBlock* exit = NewBlock("end");
        b_.CreateBr(loop);
        b_.SetInsertPoint(loop);
        llvm::PHINode* at = b_.CreatePHI(b_.getInt64Ty(), 2);
        at->addIncoming(b_.getInt64(0), before);
        Values carried;
        for (Value* value : begin) {
            llvm::PHINode* phi = b_.CreatePHI(value->getType(), 2);
            phi->addIncoming(value, before);
            carried.push_back(phi);
        }
        const Values next = body(at, carried);
        Value* next_at = b_.CreateAdd(at, b_.getInt64(by));
        BasicBlock* last = b_.GetInsertBlock();
        at->addIncoming(next_at, last);
        for (size_t i = 0; i < next.size(); ++i) {
            llvm::cast<llvm::PHINode>(carried[i])->addIncoming(next[i], last);
        }
        b_.CreateCondBr(b_.CreateICmpULT(next_at, b_.getInt64(end)), loop, exit);
        b_.SetInsertPoint(exit);
        return next;
    }

    // Rows from `first` on of accumulators (row, column), (row, column + 1), ...: all steps.
    void EmitRows(unsigned row, unsigned column, Value* first) {
        Values accumulators;
        ForEachPiece([&](uint32_t i, uint32_t accumulator, uint32_t piece) {
            accumulators.push_back(b_.CreateAlignedLoad(
                AccumulatorType(),
                AccumulatorAddress(row * side_ + column + accumulator, first, i, piece), Align()));
        });
        for (unsigned step = 0; step < steps_; ++step) {
            Value* a = function_.getArg(side_ * side_ + step * 2 * side_ + row);
            a = At(a, b_.CreateMul(first, b_.getInt64(stride_of_a_)));
            Values of_b;
            for (unsigned accumulator = 0; accumulator < blocking_.accumulators; ++accumulator) {
                of_b.push_back(function_.getArg(side_ * side_ + (step * 2 + 1) * side_ + column +
                                                accumulator));
            }
            Value* lines = LinesOf(row, column, first, step);
            accumulators = Loop(words_, 1, accumulators, [&](Value* k, const Values& carried) {
                PrefetchLine(lines, k);
                return EmitStep(a, of_b, k, carried);
            });
        }
        size_t at = 0;
        ForEachPiece([&](uint32_t i, uint32_t accumulator, uint32_t piece) {
            b_.CreateAlignedStore(
                accumulators[at++],
                AccumulatorAddress(row * side_ + column + accumulator, first, i, piece), Align());
        });
    }
    // Addresses of lines that a loop prefetches, of which each has as many.
    Value* LinesOf(unsigned row, unsigned column, Value* first, unsigned step) {
        if (lines_ == 0) {
            return nullptr;
        }
        const unsigned parts = ir::kMatrixSize / blocking_.rows;
        const unsigned place = (row * side_ + column) / blocking_.accumulators;
        Value* part = b_.CreateUDiv(first, b_.getInt64(blocking_.rows));
        Value* loop = b_.CreateAdd(b_.getInt64(uint64_t{place} * parts), part);
        loop = b_.CreateAdd(b_.CreateMul(loop, b_.getInt64(steps_)), b_.getInt64(step));
        return At(function_.getArg(side_ * side_ + 2 * side_ * steps_),
                  b_.CreateMul(loop, b_.getInt64(uint64_t{lines_} * 8)));
    }
    // Far apart: of requests that come together the processor drops most. Some are repeated.
    void PrefetchLine(Value* lines, Value* iteration) {
        if (!lines) {
            return;
        }
        Value* number =
            b_.CreateUDiv(b_.CreateMul(iteration, b_.getInt64(lines_)), b_.getInt64(words_));
        Value* address = b_.CreateAlignedLoad(
            b_.getPtrTy(), At(lines, b_.CreateMul(number, b_.getInt64(8))), llvm::Align(8));
        FetchLine(b_, address, CacheLevel::kSecond);
    }
    // Word k of each row of A, with row k of B.
    Values EmitStep(Value* a, const Values& of_b, Value* k, const Values& accumulators) {
        Values rows_of_b;
        for (Value* b : of_b) {
            for (uint32_t piece = 0; piece < pieces_; ++piece) {
                Value* at = b_.CreateMul(k, b_.getInt64(kRowBytes));
                at = b_.CreateAdd(at, b_.getInt64(piece * bits_ / 8));
                rows_of_b.push_back(b_.CreateAlignedLoad(AccumulatorType(), At(b, at), Align()));
            }
        }
        Values next;
        Value* word = nullptr;
        ForEachPiece([&](uint32_t i, uint32_t accumulator, uint32_t piece) {
            if (accumulator == 0 && piece == 0) {
                Value* at = b_.CreateAdd(b_.CreateMul(k, b_.getInt64(4)),
                                         b_.getInt64(uint64_t{i} * stride_of_a_));
                word = b_.CreateAlignedLoad(AccumulatorType()->getScalarType(), At(a, at),
                                            llvm::Align(4));
                word = b_.CreateVectorSplat(lanes_, word);
            }
            next.push_back(
                Step(accumulators[next.size()], word, rows_of_b[accumulator * pieces_ + piece]));
        });
        return next;
    }

    llvm::Align Align() const { return llvm::Align(bits_ / 8); }
    llvm::Type* AccumulatorType() {
        llvm::Type* scalar =
            step_ == VectorStep::kPairsOfShorts ? b_.getInt32Ty() : b_.getFloatTy();
        return llvm::FixedVectorType::get(scalar, lanes_);
    }
    Value* At(Value* pointer, Value* offset) {
        return b_.CreateGEP(b_.getInt8Ty(), pointer, offset);
    }
    Value* AccumulatorAddress(unsigned accumulator, Value* first, uint32_t row, uint32_t piece) {
        Value* at = b_.CreateMul(b_.CreateAdd(first, b_.getInt64(row)), b_.getInt64(kRowBytes));
        return At(function_.getArg(accumulator), b_.CreateAdd(at, b_.getInt64(piece * bits_ / 8)));
    }
    template <typename Body>
    void ForEachPiece(Body&& body) {
        for (uint32_t row = 0; row < blocking_.rows; ++row) {
            for (uint32_t accumulator = 0; accumulator < blocking_.accumulators; ++accumulator) {
                for (uint32_t piece = 0; piece < pieces_; ++piece) {
                    body(row, accumulator, piece);
                }
            }
        }
    }

    Value* Step(Value* accumulator, Value* a, Value* b) {
        switch (step_) {
            case VectorStep::kFloats:
                // Products of f16 are exact, so that without fused operations the sums are the
                // same.
                if (bits_ >= 256) {
                    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {AccumulatorType()},
                                              {a, b, accumulator});
                }
                return b_.CreateFAdd(accumulator, b_.CreateFMul(a, b));
            case VectorStep::kPairsOfBFloats: {
                auto* pairs = llvm::FixedVectorType::get(b_.getBFloatTy(), lanes_ * 2);
                return b_.CreateIntrinsic(
                    llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                    {accumulator, b_.CreateBitCast(a, pairs), b_.CreateBitCast(b, pairs)});
            }
            case VectorStep::kPairsOfShorts:
                break;
        }
        const llvm::Intrinsic::ID id = bits_ == 512   ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                                       : bits_ == 256 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                                      : llvm::Intrinsic::x86_sse2_pmadd_wd;
        auto* pairs = llvm::FixedVectorType::get(b_.getInt16Ty(), lanes_ * 2);
        Value* products =
            b_.CreateIntrinsic(id, {}, {b_.CreateBitCast(a, pairs), b_.CreateBitCast(b, pairs)});
        return b_.CreateAdd(accumulator, products);
    }

    llvm::Function& function_;
    llvm::IRBuilder<> b_;
    const VectorStep step_;
    const uint32_t bits_;
    const uint32_t lanes_;   // of a register
    const uint32_t pieces_;  // registers of a row
    const Blocking blocking_;
    const uint32_t words_;  // of a row of A
    const unsigned side_;
    const unsigned steps_;
    const unsigned lines_;  // that each loop prefetches
    const uint32_t stride_of_a_;
};

// The innermost loops of a function, one after the other.
unsigned LoopsOf(const llvm::Module& module, unsigned side, unsigned steps) {
    const Blocking blocking =
        BlockingOf(static_cast<uint32_t>(FlagOf(module, kVectorBitsFlag)), side);
    return side * side / blocking.accumulators * (ir::kMatrixSize / blocking.rows) * steps;
}

}  // namespace

unsigned VectorLines(const llvm::Module& module,
                     VectorStep step,
                     unsigned side,
                     unsigned steps,
                     size_t count) {
    const unsigned loops = LoopsOf(module, side, steps);
    return static_cast<unsigned>(std::min<size_t>(count / loops, WordsOf(step))) * loops;
}

OperandForm VectorForm(const llvm::Module& module,
                       hal::MatrixFormat format,
                       uint64_t flags,
                       bool is_b) {
    switch (format) {
        case hal::MatrixFormat::kInt8:
            return flags & (is_b ? ir::kMatrixSignedB : ir::kMatrixSignedA)
                       ? OperandForm::kShortsOfSigned
                       : OperandForm::kShortsOfUnsigned;
        case hal::MatrixFormat::kBF16:
            // VDPBF16PS takes denormals for 0.
            return FlagOf(module, kBFloatDotFlag) != 0 && !(flags & ir::kMatrixKeepsDenormals)
                       ? OperandForm::kPairsOfBFloats
                       : OperandForm::kFloatsOfBFloats;
        case hal::MatrixFormat::kF32:
            return OperandForm::kFloats;
        case hal::MatrixFormat::kF16:
            break;
    }
    return OperandForm::kFloatsOfHalves;
}

VectorStep VectorStepOf(OperandForm form) {
    switch (form) {
        case OperandForm::kShortsOfSigned:
        case OperandForm::kShortsOfUnsigned:
            return VectorStep::kPairsOfShorts;
        case OperandForm::kPairsOfBFloats:
            return VectorStep::kPairsOfBFloats;
        default:
            return VectorStep::kFloats;
    }
}

llvm::Function* VectorMulAddFunction(llvm::Module& module,
                                     VectorStep step,
                                     unsigned side,
                                     unsigned steps,
                                     unsigned lines,
                                     uint32_t stride_of_a) {
    const unsigned of_loop = lines / LoopsOf(module, side, steps);
    constexpr const char* kNames[] = {"f32", "i16", "bf16"};
    std::string name = std::string("matrix_vectors_") + kNames[static_cast<unsigned>(step)] + "_" +
                       std::to_string(side) + "_" + std::to_string(steps);
    if (lines != 0) {
        name += "_fetch_" + std::to_string(of_loop);
    }
    if (stride_of_a != 0) {
        name += "_rows_" + std::to_string(stride_of_a);
    }
    if (llvm::Function* made = module.getFunction(name)) {
        return made;
    }
    llvm::IRBuilder<> b(module.getContext());
    const std::vector<llvm::Type*> arguments(side * side + 2 * side * steps + (lines != 0),
                                             b.getPtrTy());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), arguments, false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
    function->setDoesNotThrow();
    for (unsigned i = 0; i < side * side; ++i) {
        function->addParamAttr(i, llvm::Attribute::NoAlias);
    }
    MulAdd(*function, step, static_cast<uint32_t>(FlagOf(module, kVectorBitsFlag)), side, steps,
           of_loop, stride_of_a)
        .Emit();
    return function;
}

}  // namespace fornax::kernel
