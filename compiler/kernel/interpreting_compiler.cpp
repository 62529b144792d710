#include "compiler/kernel/interpreting_compiler.h"

#include <utility>

#include "base/per_process.h"
#include "compiler/kernel/cache/cache_key.h"

namespace fornax::kernel {

namespace {

using KernelPtr = std::shared_ptr<const CompiledKernel>;

// An interpreted kernel and the backend that its code belongs to.
class HeldKernel : public CompiledKernel {
  public:
    HeldKernel(std::shared_ptr<KernelBackend> backend, KernelPtr kernel)
        : CompiledKernel(*kernel), backend_(std::move(backend)), kernel_(std::move(kernel)) {
        storable = false;
    }

  private:
    // In this order: the kernel goes first.
    std::shared_ptr<KernelBackend> backend_;
    KernelPtr kernel_;
};

class InterpretingCompiler final : public KernelCompiler {
  public:
    InterpretingCompiler(TargetInfo target, const BackendSource& backend)
        : target_(std::move(target)),
          backend_([backend] { return std::make_unique<LazyBackend>(backend); }) {}

    std::string Key(const CompileRequest& request) const override {
        return HashRequest(request, target_, "interpreted").ToHex();
    }
    Result<KernelPtr> Compile(const CompileRequest& request) override {
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<KernelBackend> backend, backend_.Get().Get());
        FORNAX_ASSIGN_OR_RETURN(KernelPtr kernel, backend->MakeInterpreted(request));
        return KernelPtr(std::make_shared<HeldKernel>(std::move(backend), std::move(kernel)));
    }
    Result<KernelPtr> Lookup(const CompileRequest&) override { return KernelPtr(); }
    Result<KernelPtr> Load(const std::string&, std::span<const uint8_t>) override {
        return Error{ErrorCode::kDataLoss,
                     "FORNAX_KERNEL asks for the interpreter, so stored kernels are not used."};
    }
    const TargetInfo& target() const override { return target_; }

  private:
    const TargetInfo target_;
    PerProcess<LazyBackend> backend_;
};

}  // namespace

std::unique_ptr<KernelCompiler> MakeInterpretingCompiler(TargetInfo target,
                                                         const BackendSource& backend) {
    return std::make_unique<InterpretingCompiler>(std::move(target), backend);
}

}  // namespace fornax::kernel
