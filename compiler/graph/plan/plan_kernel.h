// What the rest of the compiler and the runtime ask of a plan's kernel, whatever its kind.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

const std::string& NameOf(const PlanKernel& kernel);
// Its storage buffers 0, 1, ... of set 0.
std::span<const loop::Buffer> BuffersOf(const PlanKernel& kernel);
// The sizes that it uses, and the values that they may have.
const Ranges& SizesOf(const PlanKernel& kernel);

// For kernels from files; the error is a sentence.
Status VerifyKernel(const PlanKernel& kernel);

// Whether a dispatch of the kernel may have these blocks: a block that it writes is bound once, or
// else to what the kernel reads element by element as it writes them, which its text proves. The
// error is a clause.
Status CheckSharedBlocks(const PlanKernel& kernel, std::span<const BlockId> bindings);

// A kernel as text, and the same kernel from it; its first word is its kind. What is parsed passes
// VerifyKernel().
std::string ToText(const PlanKernel& kernel);
Result<PlanKernel> ParsePlanKernel(std::string_view text);

// SPIR-V, as loop::EmitSpirv() says, and how it is specialised.
struct KernelCode {
    loop::Module module;
    std::vector<Expr> push_constants;  // u32 each
    std::vector<uint32_t> constants;   // specialisation constants 0, 1, ...
};
Result<KernelCode> CodeOf(const PlanKernel& kernel, const loop::Target& target);

// The kernel on host buffers, as loop::Interpret() says.
Status Interpret(const PlanKernel& kernel,
                 const Bindings& sizes,
                 std::span<std::vector<uint8_t>> buffers);

}  // namespace fornax::graph
