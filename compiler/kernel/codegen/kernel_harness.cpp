// For tests of code generation: kernel IR to native code, and one dispatch over sub-allocated
// memory with guards.
#include "compiler/kernel/codegen/kernel_harness.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>

#include "base/guarded_memory.h"
#include "compiler/kernel/codegen/emit.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel {

namespace {

constexpr char kSymbol[] = "kernel";
constexpr uint8_t kGuard = 0xA5;
constexpr size_t kLineBytes = 64;
constexpr size_t kOffsetAlignment = 16;  // of a buffer in its memory, as the driver's limit

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
    if (llvm::verifyModule(module, &why)) {
        return Error{ErrorCode::kInternal, "LLVM IR is broken: " + broken + native.llvm_ir_};
    }
    SetFunctionAttributes(module, target);
    FORNAX_RETURN_IF_ERROR(OptimizeModule(module, *machine));
    llvm::raw_string_ostream optimized(native.optimized_llvm_ir_);
    module.print(optimized, nullptr);
    if (llvm::verifyModule(module, &why)) {
        return Error{ErrorCode::kInternal,
                     "Optimized LLVM IR is broken: " + broken + native.optimized_llvm_ir_};
    }
    FORNAX_ASSIGN_OR_RETURN(std::vector<uint8_t> object, EmitObject(module, *machine));
    FORNAX_ASSIGN_OR_RETURN(native.object_, LoadedObject::Load(object, kSymbol));
    return native;
}

Status RunnableKernel::Run(std::vector<std::vector<uint32_t>>& buffers,
                           std::vector<uint32_t> push_constants,
                           const uint32_t (&groups)[3],
                           uint32_t misaligned_words,
                           hal::MatrixCounts* matrix) const {
    std::vector<GuardedMemory> memory;
    std::vector<hal::BufferDescriptor> set;
    for (const auto& buffer : buffers) {
        const size_t bytes = buffer.size() * sizeof(uint32_t);
        uint8_t* begin;
        if (misaligned_words == kAtTheEnd) {
            begin = memory.emplace_back(bytes, kOffsetAlignment, kGuard).data();
        } else {
            const size_t skew = misaligned_words * sizeof(uint32_t);
            begin = memory.emplace_back(bytes + skew, kLineBytes, kGuard).data() + skew;
        }
        std::memcpy(begin, buffer.data(), bytes);
        set.push_back({reinterpret_cast<uint64_t>(begin), bytes});
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
    if (first != 0) {
        entry(&frame, &worker, 0, first);
    }
    entry(&frame, &worker, first, count - first);
    if (matrix) {
        *matrix = hal::MatrixCountsOf(worker.unit_counts);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
        const auto* begin = reinterpret_cast<const uint8_t*>(set[i].address);
        for (const uint8_t& byte : memory[i].readable()) {
            const bool inside = &byte >= begin && &byte < begin + set[i].size_bytes;
            if (!inside && byte != kGuard) {
                return Error{ErrorCode::kInternal,
                             "The kernel wrote outside buffer " + std::to_string(i) + "."};
            }
        }
        std::memcpy(buffers[i].data(), begin, set[i].size_bytes);
    }
    return OkStatus();
}

}  // namespace fornax::kernel
