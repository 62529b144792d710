// The plan: what the graph compiler hands to the runtime.
//
// A plan is a list of steps, dispatches of kernels and calls on the host, over blocks of memory.
// All sizes in it are expressions of the graph's symbols: for given inputs the runtime binds the
// symbols, checks the guards, evaluates the sizes, and places the blocks in memory. The plan holds
// no code: kernels are loop kernels, from which SPIR-V is made on loading, or arguments of
// templates.
//
// A plan is immutable once made and safe to share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/strong_id.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/templates/template.h"

namespace fornax::graph {

using BlockId = StrongId<struct PlanBlockTag>;
using KernelId = StrongId<struct PlanKernelTag>;
using StepId = StrongId<struct PlanStepTag>;

struct Plan;

enum class BlockKind : uint8_t {
    kConstant,  // holds its bytes from the start
    kInput,     // written by the caller before a run
    kOutput,    // read by the caller after a run
    kTemporary,
    kState,  // keeps its value from run to run
};

// A piece of memory with one tensor. Blocks that are not alive at the same step may share bytes.
struct PlanBlock {
    std::string name;
    TensorType type;
    BlockKind kind = BlockKind::kTemporary;
    // What a constant holds, as `strings` if it is one of strings, or what a state holds at first,
    // if not zeros.
    Bytes data = nullptr;
    Strings strings = nullptr;
    // In use from step `first` to step `last`; inputs from 0 on, outputs to the end.
    uint32_t first = 0;
    uint32_t last = 0;
};

// An input or output of the graph. A constant or an input may be an output as it is.
struct PlanPort {
    std::string name;
    TensorType type;
    BlockId block;
};

struct DispatchStep {
    std::string name;  // of the graph's nodes that it computes
    KernelId kernel;
    std::vector<BlockId> bindings;  // storage buffers 0, 1, ... of set 0; CheckSharedBlocks()
    // For tables and the roofline.
    Expr operations;
    Expr bytes_read;
    Expr bytes_written;
};

// One node on the host, by the interpreter or by a host function.
struct HostStep {
    std::string name;
    Operation operation;
    std::vector<Body> bodies;
    std::vector<BlockId> operands;
    std::vector<TensorType> operand_types;
    std::vector<BlockId> results;
    std::vector<TensorType> result_types;  // sizes of their own symbols are known when it has run
    std::string reason;                    // why it is not on the device
};

using PlanStep = std::variant<DispatchStep, HostStep>;

// A loop kernel or, where there is one, a template with its arguments; `loop` is empty then.
// plan_kernel.h has what both have.
struct PlanKernel {
    loop::Kernel loop;
    std::optional<TemplateKernel> of_template = std::nullopt;
};

// What a graph's symbol stands for: dimension `axis` of input `port`, which is a multiple of it.
struct SymbolSource {
    Symbol symbol;
    uint32_t port = 0;
    uint32_t axis = 0;
};

struct Plan {
    std::string name;        // of the graph
    std::string graph_hash;  // 32 hexadecimal digits, or nothing: the key in the plan cache
    std::vector<PlanBlock> blocks;
    std::vector<PlanPort> inputs;
    std::vector<PlanPort> outputs;
    std::vector<PlanKernel> kernels;
    std::vector<PlanStep> steps;
    std::vector<SymbolSource> sources;
    Ranges ranges;
    std::vector<Guard> guards;
    Bindings hints;  // the sizes that it was made for first
    // The types of the model's inputs and outputs, which may be for more sizes than the plan's.
    // Empty: they are the plan's.
    std::vector<TensorType> model_inputs;
    std::vector<TensorType> model_outputs;
    // Inputs, by number, that the plan does not read because it is right for one value of theirs
    // alone. Whoever asked for the plan knows the values.
    std::vector<uint32_t> fixed_inputs;
};

// The positive number that a dimension is times a symbol, if it is such a product.
std::optional<int64_t> MultipleOf(const Symbol& symbol, const Expr& dim);

// What the symbol is where the dimension is `size`, rounded down: whether all dimensions are what
// the plan says is checked when the symbols have values. Nullopt if there is no such dimension.
std::optional<int64_t> ValueOf(const Plan& plan, const SymbolSource& source, int64_t size);

// The size of a block that holds a symbol without a value.
inline constexpr uint64_t kUnknownSize = UINT64_MAX;

// Where the blocks lie when the symbols have these values. There is a region for the constants, one
// for inputs and outputs (which keep their bytes between runs, and which a caller may put into
// memory of its own), and the arena for temporaries. Each state has memory of its own.
struct MemoryPlan {
    std::vector<uint64_t> offsets;  // by block, in its region
    std::vector<uint64_t> sizes;    // by block, in bytes; 0 for strings
    uint64_t constant_bytes = 0;
    uint64_t port_bytes = 0;
    uint64_t arena_bytes = 0;
    uint64_t lower_bound_bytes =
        0;  // what the temporaries that are alive at one step need at least
};

// Blocks whose size holds a symbol that has no value (because a host step gives it) are left out:
// their size is kUnknownSize. Once the step has run, the plan is made for what then is known, with
// the `earlier` plan: blocks of which that one knows the size are left out, and keep size and
// offset. Fails if a size does not evaluate, is negative or too large.
Result<MemoryPlan> PlanMemory(const Plan& plan,
                              const Bindings& sizes,
                              const MemoryPlan* earlier = nullptr);

// Checks a plan from a file: every index, kernel, type, size and lifetime, and the bounds of
// limits.h. With it, playing the plan stays within its blocks when the guards hold and symbols are
// within their ranges. The error is a sentence.
Status ValidatePlan(const Plan& plan);

// The plan for readers: ports, blocks, kernels, steps, and the memory that it takes for its hints.
std::string ToText(const Plan& plan);

}  // namespace fornax::graph
