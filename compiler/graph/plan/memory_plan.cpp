// Places a plan's blocks for given sizes.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/plan/packing.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {
namespace {

// All blocks together: the packer adds sizes up.
constexpr uint64_t kMaxTotalBytes = uint64_t{1} << 56;

bool AllKnown(const Shape& shape, const Bindings& sizes) {
    for (const Expr& dim : shape.dims()) {
        for (const Symbol& symbol : dim.Symbols()) {
            if (!sizes.contains(symbol)) {
                return false;
            }
        }
    }
    return true;
}

// kUnknownSize if a symbol has no value.
Result<uint64_t> SizeOf(const PlanBlock& block, const Bindings& sizes) {
    if (!AllKnown(block.type.shape, sizes)) {
        return kUnknownSize;
    }
    int64_t count = 1;
    bool is_empty = false;
    for (const Expr& dim : block.type.shape.dims()) {
        const std::optional<int64_t> value = dim.Evaluate(sizes);
        if (!value) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The dimension {} of {} has no value for these sizes.",
                                     dim.ToString(), block.name)};
        }
        if (*value < 0) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The dimension {} of {} is {}, below 0.", dim.ToString(),
                                     block.name, *value)};
        }
        is_empty |= *value == 0;
        // A dimension of 0 does not excuse the others: kMaxElements holds for each.
        if (*value > kMaxElements || (*value != 0 && count > kMaxElements / *value)) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The tensor {} of type {} has more than {} elements.",
                                     block.name, block.type.ToString(), kMaxElements)};
        }
        count *= std::max<int64_t>(*value, 1);
    }
    return is_empty ? 0 : static_cast<uint64_t>(count) * BytesOf(block.type.element);
}

uint64_t AlignUp(uint64_t value) {
    return (value + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace

std::optional<int64_t> MultipleOf(const Symbol& symbol, const Expr& dim) {
    if (dim.constant_part() != 0 || dim.terms().size() != 1) {
        return std::nullopt;
    }
    const ExprTerm& term = dim.terms()[0];
    const bool is_multiple = term.coefficient > 0 && dim == Expr(symbol) * term.coefficient;
    return is_multiple ? std::optional(term.coefficient) : std::nullopt;
}

std::optional<int64_t> ValueOf(const Plan& plan, const SymbolSource& source, int64_t size) {
    if (source.port >= plan.inputs.size() ||
        source.axis >= plan.inputs[source.port].type.shape.rank()) {
        return std::nullopt;
    }
    const Expr& dim = plan.inputs[source.port].type.shape[source.axis];
    const std::optional<int64_t> multiple = MultipleOf(source.symbol, dim);
    return multiple ? std::optional(FloorDivide(size, *multiple)) : std::nullopt;
}

Result<MemoryPlan> PlanMemory(const Plan& plan, const Bindings& sizes, const MemoryPlan* earlier) {
    MemoryPlan memory;
    memory.offsets.assign(plan.blocks.size(), 0);
    memory.sizes.assign(plan.blocks.size(), kUnknownSize);
    std::vector<Lifetime> lifetimes;
    std::vector<size_t> temporaries;
    uint64_t total = 0;
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
        const PlanBlock& block = plan.blocks[i];
        if (earlier != nullptr && earlier->sizes[i] != kUnknownSize) {
            memory.sizes[i] = earlier->sizes[i];
            memory.offsets[i] = earlier->offsets[i];
            continue;
        }
        FORNAX_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(block, sizes));
        memory.sizes[i] = size;
        if (size == kUnknownSize) {
            continue;
        }
        total += AlignUp(size);
        if (total > kMaxTotalBytes) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The tensors of {} have more than {} bytes.", plan.name,
                                     kMaxTotalBytes)};
        }
        switch (block.kind) {
            case BlockKind::kConstant:
                memory.offsets[i] = memory.constant_bytes;
                memory.constant_bytes += AlignUp(size);
                break;
            case BlockKind::kInput:
            case BlockKind::kOutput:
                memory.offsets[i] = memory.port_bytes;
                memory.port_bytes += AlignUp(size);
                break;
            case BlockKind::kState:
                break;
            case BlockKind::kTemporary:
                temporaries.push_back(i);
                lifetimes.push_back({size, block.first, block.last});
                break;
        }
    }
    const Packing packing = Pack(lifetimes);
    for (size_t i = 0; i < temporaries.size(); ++i) {
        memory.offsets[temporaries[i]] = packing.offsets[i];
    }
    memory.arena_bytes = packing.total_bytes;
    memory.lower_bound_bytes = packing.lower_bound_bytes;
    return memory;
}

}  // namespace fornax::graph
