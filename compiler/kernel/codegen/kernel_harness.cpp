// For tests of code generation: kernel IR to native code, and one dispatch over sub-allocated
// memory with guards.
#include "compiler/kernel/codegen/kernel_harness.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>

#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

namespace {

constexpr char kSymbol[] = "kernel";
constexpr uint32_t kGuardWords = 64;
constexpr uint32_t kGuard = 0xA5A5C3C3;

}  // namespace

Result<RunnableKernel> RunnableKernel::Create(const ir::Kernel& kernel,
                                              uint32_t lanes,
                                              const std::string& cpu) {
    FORNAX_RETURN_IF_ERROR(ir::Verify(kernel));
    FORNAX_ASSIGN_OR_RETURN(TargetInfo target, DetectTarget(cpu));
    FORNAX_ASSIGN_OR_RETURN(auto machine,
                            CreateTargetMachine(target, llvm::CodeGenOptLevel::Default));
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    PrepareModule(module, *machine, target);
    EmitOptions options;
    options.vector_bits = target.vector_bits;
    options.force_lanes = lanes;
    FORNAX_ASSIGN_OR_RETURN(EmittedKernel emitted, EmitKernel(kernel, options, kSymbol, module));
    RunnableKernel native;
    native.lanes_ = emitted.lanes;
    native.scratch_bytes_ = emitted.scratch_bytes;
    native.shared_bytes_ = kernel.shared_bytes;
    llvm::raw_string_ostream text(native.llvm_ir_);
    module.print(text, nullptr);
    std::string broken;
    llvm::raw_string_ostream why(broken);
    if (llvm::verifyModule(module, &why))
        return Error{ErrorCode::kInternal, "LLVM IR is broken: " + broken + native.llvm_ir_};
    SetFunctionAttributes(module, target);
    FORNAX_RETURN_IF_ERROR(OptimizeModule(module, *machine));
    FORNAX_ASSIGN_OR_RETURN(std::vector<uint8_t> object, EmitObject(module, *machine));
    FORNAX_ASSIGN_OR_RETURN(native.object_, LoadedObject::Load(object, kSymbol));
    return native;
}

Status RunnableKernel::Run(std::vector<std::vector<uint32_t>>& buffers,
                           std::vector<uint32_t> push_constants,
                           const uint32_t (&groups)[3],
                           uint32_t misaligned_words) const {
    // Sub-allocated at an offset, with guards on both sides.
    std::vector<std::vector<uint32_t>> memory;
    std::vector<size_t> begin;  // by buffer, in its memory
    std::vector<hal::BufferDescriptor> set;
    constexpr size_t kLineWords = 16;
    for (const auto& buffer : buffers) {
        auto& words = memory.emplace_back(buffer.size() + 2 * kGuardWords + 2 * kLineWords, kGuard);
        const size_t past_line =
            reinterpret_cast<uint64_t>(words.data()) / sizeof(uint32_t) % kLineWords;
        begin.push_back(kGuardWords + (2 * kLineWords - past_line + misaligned_words) % kLineWords);
        std::copy(buffer.begin(), buffer.end(),
                  words.begin() + static_cast<ptrdiff_t>(begin.back()));
        set.push_back({reinterpret_cast<uint64_t>(words.data() + begin.back()),
                       buffer.size() * sizeof(uint32_t)});
    }
    push_constants.resize(hal::kPushConstantBytes / 4);
    std::vector<uint8_t> shared(shared_bytes_ + 2 * hal::kSharedMemoryMargin + 64, 0xCD);
    std::vector<uint8_t> scratch(scratch_bytes_ + 128, 0xCD);
    auto align = [](uint8_t* pointer) {
        return reinterpret_cast<void*>((reinterpret_cast<uint64_t>(pointer) + 63) & ~uint64_t{63});
    };
    const void* sets[] = {set.data()};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    frame.push_constants = push_constants.data();
    uint64_t count = 1;
    for (int i = 0; i < 3; ++i) {
        frame.workgroup_count[i] = groups[i];
        count *= groups[i];
    }
    hal::WorkerFrame worker;
    worker.shared_memory = align(shared.data() + hal::kSharedMemoryMargin);
    worker.scratch = align(scratch.data());
    auto entry = reinterpret_cast<hal::KernelEntry>(const_cast<void*>(object_->entry()));
    // In two parts, so that a start in the middle of the grid is used.
    uint64_t first = count / 3;
    if (first != 0)
        entry(&frame, &worker, 0, first);
    entry(&frame, &worker, first, count - first);
    for (size_t i = 0; i < buffers.size(); ++i) {
        for (size_t k = 0; k < memory[i].size(); ++k) {
            const bool inside = k >= begin[i] && k < begin[i] + buffers[i].size();
            if (!inside && memory[i][k] != kGuard) {
                return Error{ErrorCode::kInternal,
                             "The kernel wrote outside buffer " + std::to_string(i) + "."};
            }
        }
        std::copy_n(memory[i].begin() + static_cast<ptrdiff_t>(begin[i]), buffers[i].size(),
                    buffers[i].begin());
    }
    return OkStatus();
}

}  // namespace fornax::kernel
