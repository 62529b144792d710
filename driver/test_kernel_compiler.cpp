// The test compiler: kernels do nothing, and what is serialised is the key.
#include "driver/test_kernel_compiler.h"

#include <fmt/format.h>

#include <string>

#include "compiler/kernel/kernel_compiler.h"

namespace fornax::driver_test {
namespace {

TestCompilerCounts g_counts;
bool g_refuse_to_load = false;

void DoNothing(const hal::DispatchFrame*, hal::WorkerFrame*, uint64_t, uint64_t) {}

class TestKernelCompiler : public kernel::KernelCompiler {
  public:
    std::string Key(const kernel::CompileRequest& request) const override {
        std::string key = "test kernel " + request.entry_point;
        for (const uint32_t word : request.spirv)
            key += fmt::format(" {}", word);
        for (const auto& value : request.specialization)
            key += fmt::format(" {}={}", value.constant_id, value.bits);
        return key;
    }

    Result<std::shared_ptr<const kernel::CompiledKernel>> Compile(
        const kernel::CompileRequest& request) override {
        if (request.spirv.back() == kUnsupportedProgram.back())
            return Error{ErrorCode::kUnsupported, "The test program is not supported."};
        ++g_counts.compiled;
        return MakeKernel(Key(request));
    }

    Result<std::shared_ptr<const kernel::CompiledKernel>> Lookup(
        const kernel::CompileRequest&) override {
        return std::shared_ptr<const kernel::CompiledKernel>();
    }

    Result<std::shared_ptr<const kernel::CompiledKernel>> Load(
        const std::string& key,
        std::span<const uint8_t> serialized) override {
        if (g_refuse_to_load || std::string(serialized.begin(), serialized.end()) != key) {
            ++g_counts.load_refused;
            return Error{ErrorCode::kDataLoss, "The kernel was not written by this compiler."};
        }
        ++g_counts.loaded;
        return MakeKernel(key);
    }

    const kernel::TargetInfo& target() const override { return target_; }

  private:
    static std::shared_ptr<const kernel::CompiledKernel> MakeKernel(const std::string& key) {
        auto kernel = std::make_shared<kernel::CompiledKernel>();
        kernel->entry = DoNothing;
        kernel->name = key;
        kernel->serialized.assign(key.begin(), key.end());
        return kernel;
    }

    kernel::TargetInfo target_;
};

}  // namespace

TestCompilerCounts& CompilerCounts() {
    return g_counts;
}

void RefuseToLoad(bool refuse) {
    g_refuse_to_load = refuse;
}

}  // namespace fornax::driver_test

namespace fornax::kernel {

Result<std::unique_ptr<KernelCompiler>> KernelCompiler::Create(const std::string&) {
    return std::unique_ptr<KernelCompiler>(new driver_test::TestKernelCompiler);
}

}  // namespace fornax::kernel
