// The function around a kernel: prologue and the loop over workgroups.
#include "compiler/kernel/codegen/emit.h"

#include <llvm/IR/MDBuilder.h>

#include <optional>

#include "compiler/kernel/analysis/streams.h"
#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/lane_map.h"
#include "compiler/kernel/codegen/matrix_emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;

Result<EmittedKernel> EmitKernel(const ir::Kernel& kernel,
                                 const EmitOptions& options,
                                 const std::string& symbol,
                                 llvm::Module& module) {
    std::vector<bool> workgroup_level = FindWorkgroupLevel(kernel);
    EmittedKernel emitted;
    const LaneMap map = ChooseLaneMap(kernel, options, workgroup_level);
    emitted.lanes = map.lanes;
    LaneAnalysis patterns(kernel, map, workgroup_level);
    BarrierRegions regions(kernel, patterns, workgroup_level);
    const RegionLaneMaps layouts(kernel, options, patterns, regions, workgroup_level);
    std::optional<PrefetchPlan> prefetches;
    if (options.prefetch && regions.num_regions() > 1) {
        prefetches.emplace(kernel, patterns, regions, workgroup_level);
    }
    ExplainRecorder recorder(kernel, patterns, regions, options.explain);
    recorder.Begin();
    Emitter emitter(kernel, patterns, regions, layouts, prefetches ? &*prefetches : nullptr,
                    !options.compact && FetchesLoads(kernel, patterns, workgroup_level), recorder,
                    options, module);
    FORNAX_ASSIGN_OR_RETURN(emitted.scratch_bytes, emitter.Run(symbol));
    return emitted;
}

Emitter::Emitter(const ir::Kernel& kernel,
                 const LaneAnalysis& patterns,
                 const BarrierRegions& regions,
                 const RegionLaneMaps& layouts,
                 const PrefetchPlan* prefetches,
                 bool fetches_loads,
                 ExplainRecorder& recorder,
                 const EmitOptions& options,
                 llvm::Module& module)
    : kernel_(kernel),
      regions_(regions),
      layouts_(layouts),
      prefetches_(prefetches),
      code_(kernel, patterns, recorder, options, module),
      memory_(code_),
      values_(code_, regions),
      memory_regions_(code_, values_),
      prefetch_(code_, memory_, values_),
      accesses_(code_, memory_, values_, memory_regions_, prefetch_, regions, fetches_loads),
      atomics_(code_, memory_, values_, memory_regions_, accesses_),
      subgroups_(code_, memory_, values_, memory_regions_),
      spills_(code_, values_, accesses_, regions),
      control_(code_, memory_, values_, accesses_, atomics_, subgroups_, spills_, regions),
      conditions_(kernel.num_insts(), nullptr) {
    module.addModuleFlag(llvm::Module::Error, kBaselineFlag, code_.compact ? 1 : 0);
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
        const LaneMap& map = patterns_.map();
        const bool in_order =
            map.tile_width == 0 && map.workgroups == 1 && map.lanes == kernel_.subgroup_size;
        code_.matrices =
            std::make_shared<MatrixEmitter>(kernel_, in_order ? &regions_ : nullptr, builder_,
                                            *code_.entry, code_.shared, recorder_);
    }
    EmitWorkgroupLoop();
    if (code_.matrices) {
        code_.matrices->Finish(*code_.function);
    }
    code_.counts.Finish(*code_.function);
    if (code_.scratch_bytes > FunctionCode::kMaxScratchBytes) {
        return Error{ErrorCode::kUnsupported,
                     "The kernel's private memory takes " + std::to_string(code_.scratch_bytes) +
                         " bytes a workgroup, and the limit is " +
                         std::to_string(FunctionCode::kMaxScratchBytes) + "."};
    }
    return static_cast<uint32_t>(code_.scratch_bytes);
}

void Emitter::EmitPrologue(const std::string& symbol) {
    llvm::Type* ptr = builder_.getPtrTy();
    llvm::Type* i64 = builder_.getInt64Ty();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {ptr, ptr, i64, i64}, false);
    code_.function =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, code_.module);
    code_.function->addFnAttr(llvm::Attribute::NoUnwind);
    code_.function->addParamAttr(0, llvm::Attribute::NoAlias);
    code_.function->addParamAttr(0, llvm::Attribute::ReadOnly);
    code_.function->addParamAttr(1, llvm::Attribute::NoAlias);
    code_.entry = code_.NewBlock("entry");
    builder_.SetInsertPoint(code_.entry);

    llvm::MDBuilder metadata(code_.context);
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("kernel");
    llvm::MDNode* scopes[4];
    for (auto& scope : scopes) {
        scope = metadata.createAnonymousAliasScope(domain);
    }
    for (int i = 0; i < 4; ++i) {
        code_.scopes[i] = llvm::MDNode::get(code_.context, {scopes[i]});
        llvm::SmallVector<llvm::Metadata*, 3> others;
        for (int j = 0; j < 4; ++j) {
            if (j != i) {
                others.push_back(scopes[j]);
            }
        }
        code_.noalias[i] = llvm::MDNode::get(code_.context, others);
    }

    // The frames are read once: nothing a kernel can name aliases them.
    code_.dispatch = code_.function->getArg(0);
    auto load = [&](Value* base, uint64_t offset, llvm::Type* field, const char* name) {
        Value* address = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), base, offset);
        auto* value = builder_.CreateLoad(field, address, name);
        value->setMetadata(llvm::LLVMContext::MD_invariant_load,
                           llvm::MDNode::get(code_.context, {}));
        return value;
    };
    using hal::DispatchFrame;
    using hal::WorkerFrame;
    auto* push = load(code_.dispatch, offsetof(DispatchFrame, push_constants), ptr, "push");
    // They may be read wherever nothing writes them: before all workgroups.
    llvm::MDBuilder numbers(code_.context);
    push->setMetadata(
        llvm::LLVMContext::MD_dereferenceable,
        llvm::MDNode::get(code_.context,
                          numbers.createConstant(builder_.getInt64(hal::kPushConstantBytes))));
    push->setMetadata(
        llvm::LLVMContext::MD_align,
        llvm::MDNode::get(code_.context, numbers.createConstant(builder_.getInt64(4))));
    code_.push_constants = push;
    code_.shared =
        load(code_.function->getArg(1), offsetof(WorkerFrame, shared_memory), ptr, "shared");
    code_.scratch = load(code_.function->getArg(1), offsetof(WorkerFrame, scratch), ptr, "scratch");
    for (uint32_t i = 0; i < 3; ++i) {
        code_.num_workgroups[i] =
            load(code_.dispatch, offsetof(DispatchFrame, workgroup_count) + 4 * i,
                 builder_.getInt32Ty(), "num_workgroups");
    }
}

// Two loops: one over rows of workgroups along x, and in it one over the workgroups of a row. What
// only depends on the row, or on nothing but the dispatch, LLVM takes out of the inner one.
void Emitter::EmitWorkgroupLoop() {
    llvm::Type* i32 = builder_.getInt32Ty();
    llvm::Type* i64 = builder_.getInt64Ty();
    Value* first = code_.function->getArg(2);
    Value* count = code_.function->getArg(3);
    Value* base[3];
    for (uint32_t i = 0; i < 3; ++i) {
        Value* address = builder_.CreateConstInBoundsGEP1_64(
            builder_.getInt8Ty(), code_.dispatch,
            offsetof(hal::DispatchFrame, base_workgroup) + 4 * i);
        base[i] = builder_.CreateLoad(i32, address, "base");
    }
    BasicBlock* locate = code_.NewBlock("locate");
    BasicBlock* row = code_.NewBlock("row");
    BasicBlock* body = code_.NewBlock("workgroup");
    BasicBlock* row_end = code_.NewBlock("row_end");
    BasicBlock* exit = code_.NewBlock("exit");
    workgroup_end_ = code_.NewBlock("workgroup_end");
    // Small grids begin at 0, and would spend a good part of their time on divisions.
    builder_.CreateCondBr(builder_.CreateIsNull(first), row, locate);

    // Position of the first workgroup; x counts fastest.
    builder_.SetInsertPoint(locate);
    Value* start[3];
    Value* rest = first;
    for (uint32_t i = 0; i < 3; ++i) {
        Value* size = builder_.CreateZExt(code_.num_workgroups[i], i64);
        start[i] = builder_.CreateTrunc(i == 2 ? rest : builder_.CreateURem(rest, size), i32);
        if (i != 2) {
            rest = builder_.CreateUDiv(rest, size);
        }
    }
    builder_.CreateBr(row);

    builder_.SetInsertPoint(row);
    auto* row_index = builder_.CreatePHI(i64, 3, "row_index");
    row_index->addIncoming(builder_.getInt64(0), code_.entry);
    row_index->addIncoming(builder_.getInt64(0), locate);
    llvm::PHINode* row_position[3];  // of its first workgroup
    for (uint32_t i = 0; i < 3; ++i) {
        row_position[i] = builder_.CreatePHI(i32, 3, "row_position");
        row_position[i]->addIncoming(builder_.getInt32(0), code_.entry);
        row_position[i]->addIncoming(start[i], locate);
    }
    Value* in_row = builder_.CreateSub(code_.num_workgroups[0], row_position[0]);
    Value* row_last = builder_.CreateBinaryIntrinsic(
        llvm::Intrinsic::umin, count,
        builder_.CreateAdd(row_index, builder_.CreateZExt(in_row, i64)), nullptr, "row_last");
    for (uint32_t i = 1; i < 3; ++i) {
        code_.workgroup_id[i] = builder_.CreateAdd(row_position[i], base[i], "workgroup_id");
    }
    builder_.CreateBr(body);

    builder_.SetInsertPoint(body);
    auto* index = builder_.CreatePHI(i64, 2, "index");
    index->addIncoming(row_index, row);
    auto* position = builder_.CreatePHI(i32, 2, "position");
    position->addIncoming(row_position[0], row);
    code_.workgroup_id[0] = builder_.CreateAdd(position, base[0], "workgroup_id");

    // Volatile, so that it stays in the loop and before what the workgroup does.
    Value* begun = builder_.CreateConstInBoundsGEP1_64(
        builder_.getInt8Ty(), code_.function->getArg(1), offsetof(hal::WorkerFrame, workgroup));
    builder_.CreateStore(builder_.CreateAdd(first, index), begun, /*isVolatile=*/true);

    // Workgroups from here that one vector takes at once: no more than the row and the call have.
    const uint32_t together = patterns_.map().workgroups;
    Value* step = builder_.getInt32(1);
    if (together > 1) {
        Value* left = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                                     builder_.CreateSub(row_last, index),
                                                     builder_.getInt64(together));
        step = builder_.CreateTrunc(left, i32);
        code_.workgroups_in_vector = step;
    }

    if (kernel_.zero_shared && kernel_.shared_bytes != 0) {
        builder_.CreateMemSet(code_.shared, builder_.getInt8(0), kernel_.shared_bytes,
                              llvm::MaybeAlign(64));
    }
    spills_.EmitKeptMaskInit();
    EmitWorkgroupBlock(kernel_.body);
    code_.BranchTo(workgroup_end_);

    builder_.SetInsertPoint(workgroup_end_);
    position->addIncoming(builder_.CreateAdd(position, step), workgroup_end_);
    Value* next = builder_.CreateAdd(index, builder_.CreateZExt(step, i64));
    index->addIncoming(next, workgroup_end_);
    builder_.CreateCondBr(builder_.CreateICmpULT(next, row_last), body, row_end);

    builder_.SetInsertPoint(row_end);
    Value* y = builder_.CreateAdd(row_position[1], builder_.getInt32(1));
    Value* wrap_y = builder_.CreateICmpEQ(y, code_.num_workgroups[1]);
    Value* z = builder_.CreateAdd(row_position[2], builder_.CreateZExt(wrap_y, i32));
    row_position[0]->addIncoming(builder_.getInt32(0), row_end);
    row_position[1]->addIncoming(builder_.CreateSelect(wrap_y, builder_.getInt32(0), y), row_end);
    row_position[2]->addIncoming(z, row_end);
    row_index->addIncoming(row_last, row_end);
    builder_.CreateCondBr(builder_.CreateICmpULT(row_last, count), row, exit);

    builder_.SetInsertPoint(exit);
    prefetch_.FinishStreams();
    builder_.CreateRetVoid();
}

}  // namespace fornax::kernel
