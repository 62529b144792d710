#include "compiler/kernel/codegen/explain_recorder.h"

#include <algorithm>
#include <set>

#include "compiler/kernel/analysis/pressure.h"

namespace fornax::kernel {

using ir::Op;
using Storage = BarrierRegions::Storage;

namespace {

// The operand that says where in its memory an access begins: behind the buffer if there is one.
size_t OffsetOperand(const ir::Instruction& inst, const ir::Kernel& kernel) {
    return !inst.operands.empty() && kernel.type(inst.operands[0]) == ir::Type::kBuffer ? 1 : 0;
}

const char* StorageName(Storage storage) {
    switch (storage) {
        case Storage::kRecomputed:
            return "recomputed";
        case Storage::kWorkgroupSlot:
            return "one for the workgroup";
        case Storage::kSubgroupSlot:
            return "memory of each vector";
        case Storage::kRegion:
        case Storage::kWorkgroup:
            break;
    }
    return "registers";
}

uint32_t CountInstructions(const ir::Kernel& kernel, ir::InstId id) {
    uint32_t count = 1;
    for (ir::BlockId block : kernel.inst(id).blocks) {
        for (ir::InstId inner : kernel.block(block).insts) {
            count += CountInstructions(kernel, inner);
        }
    }
    return count;
}

}  // namespace

std::string DescribePattern(const LanePattern& pattern) {
    if (pattern.uniform()) {
        return pattern.workgroup ? "uniform in the workgroup" : "uniform";
    }
    if (!pattern.groups.empty()) {
        const std::set<uint8_t> groups(pattern.groups.begin(), pattern.groups.end());
        return std::string(pattern.varying() ? "varying, " : "base + offsets, ") +
               std::to_string(groups.size()) + " groups of lanes with a value each";
    }
    if (pattern.has_rows()) {
        const std::set<int64_t> rows(pattern.rows.begin(), pattern.rows.end());
        return "base + " + std::to_string(rows.size()) + " rows at a symbolic stride";
    }
    if (!pattern.constant_offsets()) {
        return "varying";
    }
    const std::vector<int64_t>& offsets = pattern.offsets;
    const int64_t stride = offsets.size() > 1 ? offsets[1] - offsets[0] : 0;
    bool affine = true;
    for (size_t i = 1; i < offsets.size(); ++i) {
        affine = affine && offsets[i] - offsets[i - 1] == stride;
    }
    if (affine) {
        return "base + lane * " + std::to_string(stride);
    }
    const std::set<int64_t> distinct(offsets.begin(), offsets.end());
    return "base + pattern of " + std::to_string(distinct.size()) + " offsets, " +
           std::to_string(*distinct.begin()) + " to " + std::to_string(*distinct.rbegin());
}

void ExplainRecorder::Begin() {
    if (!record_) {
        return;
    }
    uint32_t invocations = 1;
    for (int i = 0; i < 3; ++i) {
        record_->workgroup_size[i] = kernel_.workgroup_size[i];
        invocations *= kernel_.workgroup_size[i];
    }
    record_->name = kernel_.name;
    record_->subgroup_size = kernel_.subgroup_size;
    record_->lanes = patterns_->lanes();
    record_->tile_width = patterns_->map().tile_width;
    record_->workgroups = patterns_->map().workgroups;
    record_->vectors = (invocations * record_->workgroups + record_->lanes - 1) / record_->lanes;
    record_->shared_bytes = kernel_.shared_bytes;
    // A value of more lanes than a register has takes several.
    record_->vector_registers = record_->vector_bits >= 512 ? 32 : 16;
    record_->live_values = EstimatePressure(kernel_, *patterns_).live_values *
                           std::max(1u, record_->lanes * 32 / std::max(32u, record_->vector_bits));
    for (uint32_t i = 0; i < regions_.num_regions(); ++i) {
        const BarrierRegion& region = regions_.region(i);
        RegionRecord& out = record_->regions.emplace_back();
        out.lanes = record_->lanes;
        for (const RegionItem& item : region.items) {
            out.instructions += CountInstructions(kernel_, item.inst);
        }
        out.imports = static_cast<uint32_t>(
            std::set<ir::ValueId>(region.imports.begin(), region.imports.end()).size());
    }
    for (uint32_t i = 0; i < kernel_.num_values(); ++i) {
        const ir::ValueId value{i};
        const Storage storage = regions_.storage(value);
        if (storage == Storage::kRegion || storage == Storage::kWorkgroup) {
            continue;
        }
        const ir::Instruction* definition = kernel_.Definition(value);
        KeptRecord& kept = record_->kept.emplace_back();
        kept.place.word = definition ? definition->origin : 0;
        kept.operation = definition ? ir::InfoOf(definition->op).text : "carried by a loop";
        kept.type = ir::TypeName(kernel_.type(value));
        kept.storage = StorageName(storage);
    }
}

void ExplainRecorder::BeginRegionMap(uint32_t region, const LaneAnalysis& patterns) {
    patterns_ = &patterns;
    if (!record_) {
        return;
    }
    record_->regions[region].lanes = patterns.lanes();
}

std::string ExplainRecorder::Memory(const ir::Instruction& inst) const {
    switch (inst.op) {
        case Op::kLoadShared:
        case Op::kStoreShared:
        case Op::kAtomicShared:
            return "workgroup";
        case Op::kLoadPush:
            return "push constants";
        case Op::kLoadConstant:
            return "constant table";
        case Op::kLoadLocal:
        case Op::kStoreLocal:
            return "private " + std::to_string(inst.imm);
        default:
            break;
    }
    if (inst.operands.empty() || kernel_.type(inst.operands[0]) != ir::Type::kBuffer) {
        return "address";
    }
    const ir::Instruction* buffer = kernel_.Definition(inst.operands[0]);
    if (!buffer || buffer->op != Op::kBuffer || buffer->imm >= kernel_.bindings.size()) {
        return "buffer";
    }
    const ir::Binding& binding = kernel_.bindings[buffer->imm];
    return "set " + std::to_string(binding.set) + " binding " + std::to_string(binding.binding);
}

void ExplainRecorder::Enter(ir::InstId id, uint32_t epoch, bool masked, bool workgroup_level) {
    const ir::Instruction& inst = kernel_.inst(id);
    const uint32_t region = epoch == 0 ? 0 : epoch - 1;
    current_ = id;
    region_ = region;
    if (ir::HasProperty(inst.op, ir::kRegions)) {
        if (inst.op != Op::kScope) {
            BeginConstruct(id, region, workgroup_level);
        }
    } else if (ir::HasProperty(inst.op, ir::kReadsMemory | ir::kWritesMemory) &&
               !ir::HasProperty(inst.op, ir::kConvergent)) {
        BeginAccess(inst, region, masked);
    }
}

void ExplainRecorder::Leave(ir::InstId id) {
    if (kernel_.inst(id).op == Op::kLoop) {
        loops_.pop_back();
    }
    in_access_ = false;
}

void ExplainRecorder::BeginAccess(const ir::Instruction& inst, uint32_t region, bool masked) {
    in_access_ = true;
    AccessRecord& access = record_->accesses.emplace_back();
    access.place.word = inst.origin;
    access.operation = ir::InfoOf(inst.op).text;
    access.memory = Memory(inst);
    const size_t offset = OffsetOperand(inst, kernel_);
    const bool store = inst.results.empty();
    const std::vector<ir::ValueId>& values = store ? inst.operands : inst.results;
    const size_t first = store ? offset + 1 : 0;
    if (first < values.size()) {
        access.type = ir::TypeName(kernel_.type(values[first]));
        const size_t count =
            ir::HasProperty(inst.op, ir::kReadsMemory) && store ? 1 : values.size() - first;
        if (count > 1) {
            access.type += " x" + std::to_string(count);
        }
    }
    if (offset < inst.operands.size()) {
        access.pattern = DescribePattern(patterns_->pattern(inst.operands[offset]));
    }
    access.masked = masked;
    access.region = region;
    access.loop = loops_.empty() ? 0 : loops_.back();
    access.depth = static_cast<uint32_t>(loops_.size());
}

void ExplainRecorder::Form(AccessForm form, AccessCheck check, uint32_t runs) {
    if (!in_access_ || record_->accesses.back().form != AccessForm::kUnknown) {
        return;
    }
    AccessRecord& access = record_->accesses.back();
    access.form = form;
    access.check = check;
    access.runs = runs;
}

void ExplainRecorder::Plan(const AccessPlan& plan) {
    if (!in_access_) {
        return;
    }
    Form(FormOf(plan), CheckOf(plan), plan.layout.num_runs);
    std::string& text = record_->accesses.back().plan;
    if (text.empty()) {
        text = Text(plan);
    }
}

void ExplainRecorder::Speculation(llvm::function_ref<std::string()> text) {
    if (in_access_) {
        Form(AccessForm::kSpeculated, AccessCheck::kSpan);
        record_->accesses.back().assumptions = text();
    }
}

void ExplainRecorder::BeginMatrixCommands() {
    if (!record_) {
        return;
    }
    MatrixRecord& matrix = record_->matrix.emplace_back();
    matrix.place.word = kernel_.inst(current_).origin;
    matrix.region = region_;
    matrix.loop = loops_.empty() ? 0 : loops_.back();
    matrix.depth = static_cast<uint32_t>(loops_.size());
}

void ExplainRecorder::MatrixCommands(const hal::MatrixCounts& counts) {
    if (record_) {
        record_->matrix.back().counts = counts;
    }
}

void ExplainRecorder::MatrixTiles() {
    if (record_) {
        record_->matrix_tiles = true;
    }
}

void ExplainRecorder::BeginConstruct(ir::InstId id, uint32_t region, bool workgroup_level) {
    const ir::Instruction& inst = kernel_.inst(id);
    ConstructRecord construct;
    construct.place.word = inst.origin;
    construct.kind = ir::InfoOf(inst.op).text;
    construct.workgroup = workgroup_level;
    construct.divergent = patterns_->facts(id).divergent;
    construct.region = region;
    construct.loop = loops_.empty() ? 0 : loops_.back();
    construct.depth = static_cast<uint32_t>(loops_.size());
    record_->constructs.push_back(std::move(construct));
    if (inst.op == Op::kLoop) {
        loops_.push_back(static_cast<uint32_t>(record_->constructs.size()));
    }
}

}  // namespace fornax::kernel
