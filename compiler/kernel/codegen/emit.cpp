// The function around a kernel: prologue and the loop over workgroups.
#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/analysis/reread_buffers.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/lane_map.h"
#include "compiler/kernel/codegen/matrix_emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr uint64_t kMaxScratchBytes = 64u << 20;

uint32_t Invocations(const ir::Kernel& kernel) {
    return kernel.workgroup_size[0] * kernel.workgroup_size[1] * kernel.workgroup_size[2];
}

}  // namespace

Result<EmittedKernel> EmitKernel(const ir::Kernel& kernel,
                                 const EmitOptions& options,
                                 const std::string& symbol,
                                 llvm::Module& module) {
    std::vector<bool> workgroup_level = FindWorkgroupLevel(kernel);
    EmittedKernel emitted;
    const LaneMap map = ChooseLaneMap(kernel, options, workgroup_level);
    emitted.lanes = map.lanes;
    ShapeAnalysis shapes(kernel, map, workgroup_level);
    Regions regions(kernel, shapes, workgroup_level);
    const SegmentLayouts layouts(kernel, options, shapes, regions, workgroup_level);
    std::optional<PrefetchPlan> prefetches;
    if (options.prefetch && regions.num_segments() > 1) {
        prefetches.emplace(kernel, shapes, regions, workgroup_level);
    }
    ExplainRecorder recorder(kernel, shapes, regions, options.explain);
    recorder.Begin();
    Emitter emitter(kernel, shapes, regions, layouts, prefetches ? &*prefetches : nullptr,
                    FetchesLoads(kernel, shapes, workgroup_level), recorder, options, module);
    FORNAX_ASSIGN_OR_RETURN(emitted.scratch_bytes, emitter.Run(symbol));
    return emitted;
}

Emitter::Emitter(const ir::Kernel& kernel,
                 const ShapeAnalysis& shapes,
                 const Regions& regions,
                 const SegmentLayouts& layouts,
                 const PrefetchPlan* prefetches,
                 bool fetches_loads,
                 ExplainRecorder& recorder,
                 const EmitOptions& options,
                 llvm::Module& module)
    : kernel_(kernel),
      shapes_(shapes),
      regions_(regions),
      layouts_(layouts),
      prefetches_(prefetches),
      fetches_loads_(fetches_loads),
      recorder_(recorder),
      module_(module),
      context_(module.getContext()),
      builder_(context_),
      vector_bits_(options.vector_bits),
      compact_(options.compact),
      invocations_(Invocations(kernel) * shapes.map().workgroups),
      lanes_(shapes.lanes()),
      subgroups_((invocations_ + lanes_ - 1) / lanes_),
      held_(kernel.num_values()),
      slots_(kernel.num_values()),
      slot_owner_(kernel.num_values()),
      conditions_(kernel.num_insts(), nullptr),
      uses_(kernel.num_values(), 0),
      rereads_(FindRereads(kernel)),
      index_(kernel, kWorkgroupHints),
      fusable_(kernel.num_values(), false),
      address_only_(FindAddressValues(kernel)) {
    module_.addModuleFlag(llvm::Module::Error, kQuickFlag, compact_ ? 1 : 0);
    // Fused multiply-add wherever the shader does not forbid it.
    llvm::FastMathFlags flags;
    flags.setAllowContract(true);
    builder_.setFastMathFlags(flags);
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        for (ir::ValueId operand : kernel.inst(ir::InstId{i}).operands) {
            ++uses_[operand.index];
        }
    }
    FindFusable();
}

Result<uint32_t> Emitter::Run(const std::string& symbol) {
    EmitPrologue(symbol);
    bool matrices = false;
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Op op = kernel_.inst(ir::InstId{i}).op;
        matrices |= op == ir::Op::kMatrixMulAdd || op == ir::Op::kMatrixTranspose ||
                    op == ir::Op::kMatrixLoad;
    }
    if (matrices) {
        const LaneMap& map = shapes_.map();
        const bool in_order =
            map.tile_width == 0 && map.workgroups == 1 && map.lanes == kernel_.subgroup_size;
        matrices_ = std::make_shared<MatrixEmitter>(kernel_, in_order ? &regions_ : nullptr,
                                                    builder_, *entry_, shared_, recorder_);
    }
    EmitWorkgroupLoop();
    if (matrices_) {
        matrices_->Finish(*function_);
    }
    counts_.Finish(*function_);
    if (!error_.empty()) {
        return Error{ErrorCode::kUnsupported, error_};
    }
    if (scratch_bytes_ > kMaxScratchBytes) {
        return Error{ErrorCode::kUnsupported, "The kernel's private memory takes " +
                                                  std::to_string(scratch_bytes_) +
                                                  " bytes a workgroup, and the limit is " +
                                                  std::to_string(kMaxScratchBytes) + "."};
    }
    return static_cast<uint32_t>(scratch_bytes_);
}

void Emitter::UseShapes(const ShapeAnalysis& shapes) {
    shapes_ = CurrentShapes(shapes);
    lanes_ = shapes.lanes();
    subgroups_ = (invocations_ + lanes_ - 1) / lanes_;
}

bool Emitter::Fail(std::string message) {
    if (error_.empty()) {
        error_ = std::move(message);
    }
    return false;
}

void Emitter::EmitPrologue(const std::string& symbol) {
    llvm::Type* ptr = builder_.getPtrTy();
    llvm::Type* i64 = builder_.getInt64Ty();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {ptr, ptr, i64, i64}, false);
    function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module_);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    function_->addParamAttr(0, llvm::Attribute::NoAlias);
    function_->addParamAttr(0, llvm::Attribute::ReadOnly);
    function_->addParamAttr(1, llvm::Attribute::NoAlias);
    entry_ = NewBlock("entry");
    builder_.SetInsertPoint(entry_);

    llvm::MDBuilder metadata(context_);
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("kernel");
    llvm::MDNode* scopes[4];
    for (auto& scope : scopes) {
        scope = metadata.createAnonymousAliasScope(domain);
    }
    for (int i = 0; i < 4; ++i) {
        scopes_[i] = llvm::MDNode::get(context_, {scopes[i]});
        llvm::SmallVector<llvm::Metadata*, 3> others;
        for (int j = 0; j < 4; ++j) {
            if (j != i) {
                others.push_back(scopes[j]);
            }
        }
        noalias_[i] = llvm::MDNode::get(context_, others);
    }

    // The frames are read once: nothing a kernel can name aliases them.
    dispatch_ = function_->getArg(0);
    auto load = [&](Value* base, uint64_t offset, llvm::Type* field, const char* name) {
        Value* address = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), base, offset);
        auto* value = builder_.CreateLoad(field, address, name);
        value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
        return value;
    };
    using hal::DispatchFrame;
    using hal::WorkerFrame;
    push_constants_ = load(dispatch_, offsetof(DispatchFrame, push_constants), ptr, "push");
    shared_ = load(function_->getArg(1), offsetof(WorkerFrame, shared_memory), ptr, "shared");
    scratch_ = load(function_->getArg(1), offsetof(WorkerFrame, scratch), ptr, "scratch");
    for (uint32_t i = 0; i < 3; ++i) {
        num_workgroups_[i] = load(dispatch_, offsetof(DispatchFrame, workgroup_count) + 4 * i,
                                  builder_.getInt32Ty(), "num_workgroups");
    }
}

void Emitter::EmitWorkgroupLoop() {
    llvm::Type* i32 = builder_.getInt32Ty();
    Value* first = function_->getArg(2);
    Value* count = function_->getArg(3);
    // Position of the first workgroup; x counts fastest.
    Value* start[3];
    Value* rest = first;
    for (uint32_t i = 0; i < 3; ++i) {
        Value* size = builder_.CreateZExt(num_workgroups_[i], builder_.getInt64Ty());
        start[i] = builder_.CreateTrunc(i == 2 ? rest : builder_.CreateURem(rest, size), i32);
        if (i != 2) {
            rest = builder_.CreateUDiv(rest, size);
        }
    }
    Value* base[3];
    for (uint32_t i = 0; i < 3; ++i) {
        Value* address = builder_.CreateConstInBoundsGEP1_64(
            builder_.getInt8Ty(), dispatch_, offsetof(hal::DispatchFrame, base_workgroup) + 4 * i);
        base[i] = builder_.CreateLoad(i32, address, "base");
    }
    BasicBlock* body = NewBlock("workgroup");
    BasicBlock* exit = NewBlock("exit");
    workgroup_end_ = NewBlock("workgroup_end");
    builder_.CreateBr(body);

    builder_.SetInsertPoint(body);
    auto* index = builder_.CreatePHI(builder_.getInt64Ty(), 2, "index");
    index->addIncoming(builder_.getInt64(0), entry_);
    llvm::PHINode* position[3];
    for (uint32_t i = 0; i < 3; ++i) {
        position[i] = builder_.CreatePHI(i32, 2, "position");
        position[i]->addIncoming(start[i], entry_);
    }
    for (uint32_t i = 0; i < 3; ++i) {
        workgroup_id_[i] = builder_.CreateAdd(position[i], base[i], "workgroup_id");
    }

    // Volatile, so that it stays in the loop and before what the workgroup does.
    Value* begun = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), function_->getArg(1),
                                                       offsetof(hal::WorkerFrame, workgroup));
    builder_.CreateStore(builder_.CreateAdd(first, index), begun, /*isVolatile=*/true);

    // Workgroups from here that one vector takes at once: no more than the row and the call have.
    const uint32_t together = shapes_.map().workgroups;
    Value* step = builder_.getInt32(1);
    if (together > 1) {
        Value* rest_of_call = builder_.CreateBinaryIntrinsic(
            llvm::Intrinsic::umin, builder_.CreateSub(count, index), builder_.getInt64(together));
        step = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                              builder_.CreateTrunc(rest_of_call, i32),
                                              builder_.CreateSub(num_workgroups_[0], position[0]));
        workgroups_in_vector_ = step;
    }

    if (kernel_.zero_shared && kernel_.shared_bytes != 0) {
        builder_.CreateMemSet(shared_, builder_.getInt8(0), kernel_.shared_bytes,
                              llvm::MaybeAlign(64));
    }
    EmitKeptMaskInit();
    EmitWorkgroupBlock(kernel_.body);
    BranchTo(workgroup_end_);

    builder_.SetInsertPoint(workgroup_end_);
    Value* x = builder_.CreateAdd(position[0], step);
    Value* wrap_x = builder_.CreateICmpEQ(x, num_workgroups_[0]);
    Value* y = builder_.CreateAdd(position[1], builder_.CreateZExt(wrap_x, i32));
    Value* wrap_y = builder_.CreateICmpEQ(y, num_workgroups_[1]);
    Value* z = builder_.CreateAdd(position[2], builder_.CreateZExt(wrap_y, i32));
    position[0]->addIncoming(builder_.CreateSelect(wrap_x, builder_.getInt32(0), x),
                             workgroup_end_);
    position[1]->addIncoming(builder_.CreateSelect(wrap_y, builder_.getInt32(0), y),
                             workgroup_end_);
    position[2]->addIncoming(z, workgroup_end_);
    Value* next = builder_.CreateAdd(index, builder_.CreateZExt(step, builder_.getInt64Ty()));
    index->addIncoming(next, workgroup_end_);
    builder_.CreateCondBr(builder_.CreateICmpULT(next, count), body, exit);

    builder_.SetInsertPoint(exit);
    FinishStreams();
    builder_.CreateRetVoid();
}

llvm::AllocaInst* Emitter::NewAlloca(llvm::Type* type, const char* name) {
    llvm::IRBuilder<> at(entry_, entry_->begin());
    return at.CreateAlloca(type, nullptr, name);
}

llvm::AllocaInst* Emitter::NewSlot(llvm::Type* type, const char* name) {
    llvm::AllocaInst* slot = NewAlloca(type, name);
    builder_.CreateStore(llvm::UndefValue::get(type), slot);
    return slot;
}

BasicBlock* Emitter::NewBlock(const char* name) {
    return BasicBlock::Create(context_, name, function_);
}

void Emitter::BranchTo(BasicBlock* block) {
    if (!Terminated()) {
        builder_.CreateBr(block);
    }
}

void Emitter::EmitMaybe(Value* condition, BasicBlock* then, BasicBlock* otherwise, bool likely) {
    llvm::MDBuilder metadata(context_);
    builder_.CreateCondBr(
        condition, then, otherwise,
        likely ? metadata.createBranchWeights(2000, 1) : metadata.createBranchWeights(1, 1));
}

uint32_t Emitter::AllocateScratch(uint64_t bytes) {
    uint64_t offset = scratch_bytes_;
    scratch_bytes_ = (scratch_bytes_ + bytes + 63) & ~uint64_t{63};
    return offset > kMaxScratchBytes ? 0 : static_cast<uint32_t>(offset);
}

}  // namespace fornax::kernel
