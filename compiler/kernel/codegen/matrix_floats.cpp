// Accumulators stay in registers for all steps of a call: some rows of one or two matrices side by
// side. Each element of A is spread over a register and meets a row of B.
#include "compiler/kernel/codegen/matrix_floats.h"

#include <string>
#include <vector>

#include "compiler/kernel/codegen/fetch_line.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

namespace {

using ir::kMatrixSize;
using llvm::BasicBlock;
using llvm::Value;
using Values = std::vector<Value*>;

constexpr uint64_t kRowBytes = kMatrixSize * 4;

// What an MMA's function is made for.
struct Variant {
    unsigned side = 1;
    unsigned steps = 1;
    // Each operand in the order of EmitFloatMmas: bytes between its lines, 0: an argument.
    std::vector<uint64_t> strides;
    std::vector<bool> columns;
    std::vector<bool> prefetches;

    unsigned operands() const { return 2 * side * steps; }
    std::string Name() const {
        std::string name = "matrix_floats_" + std::to_string(side) + "_" + std::to_string(steps);
        for (unsigned i = 0; i < operands(); ++i) {
            const bool same = i >= side && strides[i] == strides[i - side] &&
                              columns[i] == columns[i - side] &&
                              prefetches[i] == prefetches[i - side];
            name += same ? "_"
                         : "_" + std::to_string(strides[i]) + (columns[i] ? "c" : "") +
                               (prefetches[i] ? "p" : "");
        }
        return name;
    }
};

class MulAdd {
  public:
    MulAdd(llvm::Function& function, const Variant& variant, uint32_t vector_bits, bool fused)
        : function_(function),
          b_(function.getContext()),
          variant_(variant),
          bits_(vector_bits),
          fused_(fused),
          lanes_(vector_bits / 32),
          pieces_(kMatrixSize / lanes_) {}

    void Emit() {
        b_.SetInsertPoint(NewBlock("entry"));
        unsigned argument = variant_.side * variant_.side + variant_.operands();
        for (const uint64_t stride : variant_.strides) {
            strides_.push_back(stride != 0 ? static_cast<Value*>(b_.getInt64(stride))
                                           : function_.getArg(argument++));
        }
        const unsigned wide = bits_ >= 512 ? variant_.side : 1;
        const std::vector<uint32_t> parts = Parts();
        for (unsigned row = 0; row < variant_.side; ++row) {
            for (unsigned column = 0; column < variant_.side; column += wide) {
                uint32_t first = 0;
                for (unsigned part = 0; part < parts.size(); ++part) {
                    EmitRows(row, column, wide, first, parts[part], part);
                    first += parts[part];
                }
            }
        }
        b_.CreateRetVoid();
    }

  private:
    // The parts of a matrix, in rows: the accumulators of one part are in registers at once, beside
    // a row of B and an element of A. Not more than eight rows: if a power of two is between them,
    // they are in one set of the first cache, which has not more ways.
    std::vector<uint32_t> Parts() const {
        if (bits_ >= 512) {
            return {kMatrixSize / 2, kMatrixSize / 2};
        }
        return bits_ >= 256 ? std::vector<uint32_t>{6, 6, 4} : std::vector<uint32_t>(8, 2);
    }

    BasicBlock* NewBlock(const char* name) {
        return BasicBlock::Create(function_.getContext(), name, &function_);
    }

    // `rows` rows from `first` on, which are `part`, of the accumulators (row, column), (row,
    // column + 1),
    // ...
    void EmitRows(unsigned row,
                  unsigned column,
                  unsigned wide,
                  uint32_t first,
                  uint32_t rows,
                  unsigned part) {
        Values accumulators;
        const auto each = [&](auto&& body) {
            for (uint32_t i = 0; i < rows; ++i) {
                for (unsigned accumulator = 0; accumulator < wide; ++accumulator) {
                    for (uint32_t piece = 0; piece < pieces_; ++piece) {
                        Value* c = function_.getArg(row * variant_.side + column + accumulator);
                        body(b_.CreateConstGEP1_64(b_.getInt8Ty(), c,
                                                   (first + i) * kRowBytes + piece * bits_ / 8));
                    }
                }
            }
        };
        each([&](Value* at) {
            accumulators.push_back(b_.CreateAlignedLoad(Type(), at, llvm::Align(bits_ / 8)));
        });
        for (unsigned step = 0; step < variant_.steps; ++step) {
            const unsigned a = step * 2 * variant_.side + row;
            const unsigned b = (step * 2 + 1) * variant_.side + column;
            EmitStep(a, b, wide, first, rows, part, accumulators);
        }
        size_t next = 0;
        each([&](Value* at) {
            b_.CreateAlignedStore(accumulators[next++], at, llvm::Align(bits_ / 8));
        });
    }

    // All 16 columns of these rows of A, each with a row of B.
    void EmitStep(unsigned a,
                  unsigned b,
                  unsigned wide,
                  uint32_t first,
                  uint32_t rows,
                  unsigned part,
                  Values& accumulators) {
        const bool columns = variant_.columns[a];
        Value* of_a = Operand(a);
        Values rows_of_a;  // or the one column
        if (columns) {
            rows_of_a.push_back(At(of_a, b_.getInt64(uint64_t{first} * 4)));
        }
        for (uint32_t i = 0; i < rows && !columns; ++i) {
            rows_of_a.push_back(At(of_a, b_.CreateMul(strides_[a], b_.getInt64(first + i))));
        }
        const std::vector<Stream> fetched = Ahead(a, b, wide, part);
        BasicBlock* before = b_.GetInsertBlock();
        BasicBlock* loop = NewBlock("loop");
        BasicBlock* end = NewBlock("end");
        b_.CreateBr(loop);
        b_.SetInsertPoint(loop);
        llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2);
        k->addIncoming(b_.getInt64(0), before);
        // Requests for lines are spread out: of those that come together the processor drops most.
        std::vector<llvm::PHINode*> ahead;
        for (const Stream& stream : fetched) {
            ahead.push_back(b_.CreatePHI(b_.getPtrTy(), 2));
            ahead.back()->addIncoming(stream.at, before);
        }
        std::vector<llvm::PHINode*> phis;
        for (Value*& accumulator : accumulators) {
            phis.push_back(b_.CreatePHI(Type(), 2));
            phis.back()->addIncoming(accumulator, before);
            accumulator = phis.back();
        }
        for (llvm::PHINode* line : ahead) {
            FetchLine(b_, line, CacheLevel::kSecond);
        }
        EmitColumn(a, b, wide, rows, rows_of_a, k, accumulators);
        Value* next_k = b_.CreateAdd(k, b_.getInt64(1));
        k->addIncoming(next_k, loop);
        for (size_t i = 0; i < ahead.size(); ++i) {
            ahead[i]->addIncoming(At(ahead[i], fetched[i].stride), loop);
        }
        for (size_t i = 0; i < accumulators.size(); ++i) {
            phis[i]->addIncoming(accumulators[i], loop);
        }
        b_.CreateCondBr(b_.CreateICmpULT(next_k, b_.getInt64(kMatrixSize)), loop, end);
        b_.SetInsertPoint(end);
    }

    // Cache lines that are `stride` bytes apart.
    struct Stream {
        Value* at = nullptr;
        Value* stride = nullptr;
    };
    // Bytes that all steps' lines of an operand take, 16 in each.
    Value* LinesOfAllSteps(unsigned operand) {
        return b_.CreateMul(strides_[operand], b_.getInt64(uint64_t{variant_.steps} * kMatrixSize));
    }
    // What the next call takes, if K goes on: of A's rows while the first part that uses them is
    // multiplied, of B while the second one is.
    std::vector<Stream> Ahead(unsigned a, unsigned b, unsigned wide, unsigned part) {
        std::vector<Stream> lines;
        const unsigned in_step = variant_.side * 2;
        if (part == 0 && b % in_step == variant_.side && variant_.prefetches[a]) {
            Value* along_row = b_.getInt64(uint64_t{variant_.steps} * kRowBytes);
            Value* distance = variant_.columns[a] ? LinesOfAllSteps(a) : along_row;
            lines.push_back({.at = At(Operand(a), distance), .stride = strides_[a]});
        }
        for (unsigned i = 0; part == 1 && a % in_step == 0 && i < wide; ++i) {
            if (variant_.prefetches[b + i]) {
                Value* distance = LinesOfAllSteps(b + i);
                lines.push_back({.at = At(Operand(b + i), distance), .stride = strides_[b + i]});
            }
        }
        return lines;
    }

    // Column k of A, with row k of B.
    void EmitColumn(unsigned a,
                    unsigned b,
                    unsigned wide,
                    uint32_t rows,
                    const Values& rows_of_a,
                    Value* k,
                    Values& accumulators) {
        Values rows_of_b;
        for (unsigned accumulator = 0; accumulator < wide; ++accumulator) {
            Value* from = At(Operand(b + accumulator), b_.CreateMul(k, strides_[b + accumulator]));
            for (uint32_t piece = 0; piece < pieces_; ++piece) {
                rows_of_b.push_back(b_.CreateAlignedLoad(
                    Type(), b_.CreateConstGEP1_64(b_.getInt8Ty(), from, piece * bits_ / 8),
                    llvm::Align(4)));
            }
        }
        const bool columns = variant_.columns[a];
        Value* column = columns ? At(rows_of_a[0], b_.CreateMul(k, strides_[a])) : nullptr;
        size_t next = 0;
        for (uint32_t i = 0; i < rows; ++i) {
            Value* at = columns ? b_.CreateConstGEP1_64(b_.getFloatTy(), column, i)
                                : b_.CreateGEP(b_.getFloatTy(), rows_of_a[i], k);
            Value* element = b_.CreateVectorSplat(
                lanes_, b_.CreateAlignedLoad(b_.getFloatTy(), at, llvm::Align(4)));
            for (Value* row_of_b : rows_of_b) {
                Value*& accumulator = accumulators[next++];
                accumulator = fused_ ? b_.CreateIntrinsic(llvm::Intrinsic::fma, {Type()},
                                                          {element, row_of_b, accumulator})
                                     : b_.CreateFAdd(accumulator, b_.CreateFMul(element, row_of_b));
            }
        }
    }

    llvm::Type* Type() { return llvm::FixedVectorType::get(b_.getFloatTy(), lanes_); }
    Value* Operand(unsigned number) {
        return function_.getArg(variant_.side * variant_.side + number);
    }
    Value* At(Value* pointer, Value* offset) {
        return b_.CreateGEP(b_.getInt8Ty(), pointer, offset);
    }

    llvm::Function& function_;
    llvm::IRBuilder<> b_;
    const Variant& variant_;
    const uint32_t bits_;
    const bool fused_;
    const uint32_t lanes_;   // of a register
    const uint32_t pieces_;  // registers of a row
    Values strides_;         // by operand
};

// The function of a variant as calls of that of a single MMA. Elements are added in the same
// order.
void EmitSingleMmas(llvm::Function& function, const Variant& variant) {
    llvm::IRBuilder<> b(BasicBlock::Create(function.getContext(), "entry", &function));
    const unsigned side = variant.side;
    std::vector<MatrixOperand> operands;
    unsigned stride = side * side + variant.operands();
    for (unsigned i = 0; i < variant.operands(); ++i) {
        operands.push_back({.at = function.getArg(side * side + i),
                            .stride = variant.strides[i] != 0
                                          ? static_cast<Value*>(b.getInt64(variant.strides[i]))
                                          : function.getArg(stride++),
                            .columns = variant.columns[i]});
    }
    for (unsigned step = 0; step < variant.steps; ++step) {
        const MatrixOperand* of_step = operands.data() + size_t{step} * 2 * side;
        for (unsigned c = 0; c < side * side; ++c) {
            EmitFloatMmas(b, function.getArg(c), {of_step[c / side], of_step[side + c % side]});
        }
    }
    b.CreateRetVoid();
}

}  // namespace

void EmitFloatMmas(llvm::IRBuilder<>& builder,
                   llvm::ArrayRef<Value*> accumulators,
                   llvm::ArrayRef<MatrixOperand> operands) {
    llvm::Module& module = *builder.GetInsertBlock()->getModule();
    // The baseline tier has one function of a single MMA, for any strides.
    const bool baseline = FlagOf(module, kBaselineFlag) != 0;
    const bool single = operands.size() == 2;
    Variant variant;
    variant.side = accumulators.size() == 1 ? 1 : 2;
    variant.steps = static_cast<unsigned>(operands.size() / (2 * variant.side));
    Values arguments(accumulators.begin(), accumulators.end());
    Values strides;
    for (const MatrixOperand& operand : operands) {
        arguments.push_back(operand.at);
        const auto* known = llvm::dyn_cast<llvm::ConstantInt>(operand.stride);
        variant.columns.push_back(operand.columns);
        variant.prefetches.push_back(operand.prefetch && !(baseline && single));
        variant.strides.push_back(known && !(baseline && single) ? known->getZExtValue() : 0);
        if (variant.strides.back() == 0) {
            strides.push_back(operand.stride);
        }
    }
    arguments.insert(arguments.end(), strides.begin(), strides.end());
    const std::string name = variant.Name();
    llvm::Function* function = module.getFunction(name);
    if (!function) {
        std::vector<llvm::Type*> types;
        for (const Value* argument : arguments) {
            types.push_back(argument->getType());
        }
        auto* type = llvm::FunctionType::get(builder.getVoidTy(), types, false);
        function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
        function->setDoesNotThrow();
        for (unsigned i = 0; i < accumulators.size(); ++i) {
            function->addParamAttr(i, llvm::Attribute::NoAlias);
        }
        if (baseline && !single) {
            EmitSingleMmas(*function, variant);
        } else {
            MulAdd(*function, variant, static_cast<uint32_t>(FlagOf(module, kVectorBitsFlag)),
                   FlagOf(module, kFmaFlag) != 0)
                .Emit();
        }
    }
    builder.CreateCall(function, arguments);
}

llvm::Function* MatrixCopyFunction(llvm::Module& module, llvm::Type* offset) {
    const std::string name =
        "matrix_copy_" + std::to_string(offset->getPrimitiveSizeInBits().getFixedValue());
    if (llvm::Function* made = module.getFunction(name)) {
        return made;
    }
    llvm::IRBuilder<> b(module.getContext());
    llvm::Type* i64 = b.getInt64Ty();
    auto* type = llvm::FunctionType::get(b.getVoidTy(),
                                         {b.getPtrTy(), b.getPtrTy(), i64, offset, offset}, false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
    function->setDoesNotThrow();
    function->addFnAttr(llvm::Attribute::NoInline);
    const auto block = [&](const char* block_name) {
        return BasicBlock::Create(module.getContext(), block_name, function);
    };
    BasicBlock* entry = block("entry");
    BasicBlock* loop = block("loop");
    BasicBlock* inside = block("inside");
    BasicBlock* next = block("next");
    BasicBlock* end = block("end");
    b.SetInsertPoint(entry);
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    llvm::PHINode* i = b.CreatePHI(i64, 2);
    i->addIncoming(b.getInt64(0), entry);
    Value* row = b.CreateTrunc(b.CreateLShr(i, 4), offset);
    Value* column = b.CreateTrunc(b.CreateAnd(i, kMatrixSize - 1), offset);
    Value* at = b.CreateAdd(function->getArg(3), b.CreateMul(row, function->getArg(4)));
    at = b.CreateAdd(at, b.CreateShl(column, 2));
    at = b.CreateZExt(at, i64);
    Value* size = function->getArg(2);
    Value* fits = b.CreateAnd(b.CreateICmpUGE(size, b.getInt64(4)),
                              b.CreateICmpULE(at, b.CreateSub(size, b.getInt64(4))));
    b.CreateCondBr(fits, inside, next);
    b.SetInsertPoint(inside);
    Value* loaded = b.CreateAlignedLoad(
        b.getFloatTy(), b.CreateGEP(b.getInt8Ty(), function->getArg(1), at), llvm::Align(4));
    b.CreateBr(next);
    b.SetInsertPoint(next);
    llvm::PHINode* element = b.CreatePHI(b.getFloatTy(), 2);
    element->addIncoming(llvm::ConstantFP::get(b.getFloatTy(), 0), loop);
    element->addIncoming(loaded, inside);
    b.CreateAlignedStore(element, b.CreateGEP(b.getFloatTy(), function->getArg(0), i),
                         llvm::Align(4));
    Value* more = b.CreateAdd(i, b.getInt64(1));
    i->addIncoming(more, next);
    b.CreateCondBr(b.CreateICmpULT(more, b.getInt64(ir::kMatrixElements)), loop, end);
    b.SetInsertPoint(end);
    b.CreateRetVoid();
    return function;
}

}  // namespace fornax::kernel
