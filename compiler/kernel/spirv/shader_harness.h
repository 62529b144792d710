// What the reader's tests need to get SPIR-V and to run what the reader makes of it.
//
// GLSL is compiled, text assembled and modules optimised by the prefix's programs at test time, so
// a test holds the source that it is about. Kernels run in the interpreter (interpret.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/interface/compile_request.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

using Words = std::vector<uint32_t>;

// Each ends the test program with the tool's message if the input is wrong: the input is the
// test's.
Words CompileGlsl(std::string_view source, const std::string& options = "");
Words AssembleSpirv(std::string_view text, const std::string& version = "spv1.3");
Words OptimizeSpirv(const Words& module, const std::string& options);

// What spirv-val says against a module for Vulkan 1.3; empty for a valid one.
std::string SpirvErrors(const Words& module);

// Set 0: binding 0 the output buffer, 1 a storage buffer, 2 a uniform buffer, 3 an array of four
// storage buffers; push constants of 128 bytes.
CompileRequest MakeRequest(const Words& module);

struct ShaderData {
    std::vector<uint32_t> output;   // binding 0, before and after
    std::vector<uint32_t> storage;  // binding 1
    std::vector<uint32_t> uniform;  // binding 2
    std::vector<uint32_t> array[4];
    std::vector<uint32_t> push = std::vector<uint32_t>(32);
    uint32_t workgroups = 2;
};

// Runs a kernel that Verify has accepted.
Status RunShader(const ir::Kernel& kernel, ShaderData& data);

// The module as it is and as spirv-opt's usual pipelines and single passes leave it: the same
// program in other shapes of control flow.
struct Variant {
    std::string name;
    Words module;
};
std::vector<Variant> Variants(const Words& module);

// A shader of 8 invocations a workgroup around `body`, which writes `o[i]` for invocation `i`;
// `declarations` come before main.
std::string Shader(std::string_view body, std::string_view declarations = "");

}  // namespace fornax::kernel
