// Builds, compiles and calls the function that wraps one operation for a test.
#include "compiler/kernel/codegen/op_harness.h"

#include <cassert>
#include <cstdlib>

#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "base/environment.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/ir/builder.h"

namespace fornax::kernel {

namespace {

constexpr char kSymbol[] = "op";
using Function = void (*)(const void* const*, void* const*, uint64_t);

class OpBuilder {
  public:
    OpBuilder(llvm::Module& module, const OpSignature& signature, uint32_t lanes)
        : module_(module), b_(module.getContext()), signature_(signature), lanes_(lanes) {}

    void Build();

  private:
    llvm::Type* OfLanes(llvm::Type* scalar) const {
        return lanes_ ? llvm::FixedVectorType::get(scalar, lanes_) : scalar;
    }
    llvm::Type* MemoryType(ir::Type type) {
        return type == ir::Type::kBool ? b_.getInt8Ty() : ScalarType(module_.getContext(), type);
    }
    llvm::Value* Address(llvm::Value* arrays, size_t index, ir::Type type, llvm::Value* element) {
        llvm::Value* array =
            b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), arrays, index));
        return b_.CreateGEP(MemoryType(type), array, element);
    }

    llvm::Module& module_;
    llvm::IRBuilder<> b_;
    const OpSignature& signature_;
    uint32_t lanes_;
};

// for (i = 0; i < count; i += lanes) out[i] = op(in[i]...)
void OpBuilder::Build() {
    ir::Kernel kernel;
    ir::Builder ir_builder(kernel, kernel.NewBlock({}));
    std::vector<ir::ValueId> ids;
    for (ir::Type type : signature_.operands) {
        ids.push_back(ir_builder.Const(type, 0));
    }
    ir::InstId inst =
        ir_builder.Append(signature_.op, ids, signature_.results, 0, signature_.flags);

    auto* function = llvm::Function::Create(
        llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy(), b_.getPtrTy(), b_.getInt64Ty()},
                                false),
        llvm::GlobalValue::ExternalLinkage, kSymbol, module_);
    auto* entry = llvm::BasicBlock::Create(module_.getContext(), "", function);
    auto* body = llvm::BasicBlock::Create(module_.getContext(), "", function);
    auto* done = llvm::BasicBlock::Create(module_.getContext(), "", function);
    b_.SetInsertPoint(entry);
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(b_.getInt64(0), entry);
    std::vector<llvm::Value*> operands;
    for (size_t k = 0; k < signature_.operands.size(); ++k) {
        ir::Type type = signature_.operands[k];
        llvm::Type* memory = OfLanes(MemoryType(type));
        llvm::Value* value =
            b_.CreateAlignedLoad(memory, Address(function->getArg(0), k, type, i), llvm::Align(1));
        for (auto [index, bits] : signature_.constants) {
            if (index == k) {
                value = b_.CreateBitCast(
                    llvm::ConstantInt::get(OfLanes(b_.getIntNTy(memory->getScalarSizeInBits())),
                                           bits),
                    memory);
            }
        }
        if (type == ir::Type::kBool) {
            value = b_.CreateTrunc(value, OfLanes(b_.getInt1Ty()));
        }
        operands.push_back(value);
    }
    auto results = EmitPureOp(b_, kernel, kernel.inst(inst), operands);
    for (size_t k = 0; k < results.size(); ++k) {
        ir::Type type = signature_.results[k];
        llvm::Value* value = results[k];
        if (type == ir::Type::kBool) {
            value = b_.CreateZExt(value, OfLanes(b_.getInt8Ty()));
        }
        b_.CreateAlignedStore(value, Address(function->getArg(1), k, type, i), llvm::Align(1));
    }
    llvm::Value* next = b_.CreateAdd(i, b_.getInt64(lanes_ ? lanes_ : 1));
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpULT(next, function->getArg(2)), body, done);
    b_.SetInsertPoint(done);
    b_.CreateRetVoid();
}

}  // namespace

Result<CompiledOp> CompiledOp::Create(const TargetInfo& target,
                                      const OpSignature& signature,
                                      uint32_t lanes) {
    FORNAX_ASSIGN_OR_RETURN(auto machine,
                            CreateTargetMachine(target, llvm::CodeGenOptLevel::Default));
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    PrepareModule(module, *machine, target);
    OpBuilder(module, signature, lanes).Build();
    SetFunctionAttributes(module, target);
    FORNAX_RETURN_IF_ERROR(OptimizeModule(module, *machine));
    CompiledOp compiled;
    if (EnvironmentFlag("FORNAX_TEST_ASM")) {
        std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
        FORNAX_ASSIGN_OR_RETURN(compiled.assembly_, EmitAssembly(*copy, *machine));
    }
    FORNAX_ASSIGN_OR_RETURN(std::vector<uint8_t> object, EmitObject(module, *machine));
    FORNAX_ASSIGN_OR_RETURN(compiled.object_, LoadedObject::Load(object, kSymbol));
    return compiled;
}

void CompiledOp::Run(std::span<const void* const> inputs,
                     std::span<void* const> outputs,
                     uint64_t count) const {
    assert(count % 64 == 0);
    reinterpret_cast<Function>(const_cast<void*>(object_->entry()))(inputs.data(), outputs.data(),
                                                                    count);
}

}  // namespace fornax::kernel
