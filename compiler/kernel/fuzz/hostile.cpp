#include "compiler/kernel/fuzz/hostile.h"

#include <cstdio>
#include <cstdlib>

#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/fuzz/random_module.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel::fuzz {

namespace {

[[noreturn]] void Die(const char* what, const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", what, message.c_str());
    std::abort();
}

}  // namespace

Outcome CompileHostile(const std::vector<uint32_t>& module,
                       const TargetInfo& target,
                       llvm::TargetMachine& machine,
                       std::string& message) {
    CompileRequest request;
    request.spirv = module;
    for (uint32_t set = 0; set < 2; ++set) {
        SetLayout layout;
        for (uint32_t i = 0; i < 10; ++i) {
            BindingLayout binding;
            binding.binding = i;
            binding.kind = i == 2 ? BindingLayout::Kind::kUniformBuffer
                           : i == kOwnImageBinding || i == kInputImageBinding
                               ? BindingLayout::Kind::kStorageImage
                               : BindingLayout::Kind::kStorageBuffer;
            binding.count = i == 3 ? 4 : 1;
            binding.offset_bytes = i * 64;
            layout.bindings.push_back(binding);
        }
        request.layout.sets.push_back(layout);
    }
    request.layout.push_constant_bytes = 128;
    request.specialization = {{0, 4, 3}, {1, 4, 7}};
    request.options.robust_buffer_access = module.size() % 2 == 0;
    Result<ir::Kernel> kernel = ReadSpirv(request);
    if (!kernel.ok()) {
        message = kernel.error().message;
        return Outcome::kRefusedByReader;
    }
    RunPipeline(*kernel);
    if (Status status = ir::Verify(*kernel); !status.ok()) {
        Die("The passes left a kernel that is not valid", status.error().message);
    }
    Result<NativeKernel> native = CompileToNative(*kernel, target, machine, {});
    if (!native.ok()) {
        message = native.error().message;
        if (native.error().code == ErrorCode::kInternal) {
            Die("The emitter or the backend failed", message);
        }
        return Outcome::kRefusedByCompiler;
    }
    auto object = LoadedObject::Load(native->object, kKernelSymbol);
    if (!object.ok()) {
        Die("The kernel cannot be loaded", object.error().message);
    }
    return Outcome::kCompiled;
}

}  // namespace fornax::kernel::fuzz
