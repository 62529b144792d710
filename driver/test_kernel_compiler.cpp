// The test compiler: kernels are functions of this file, and what is serialised is the key.
#include "driver/test_kernel_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "compiler/kernel/kernel_compiler.h"

namespace fornax::driver_test {
namespace {

TestCompilerCounts g_counts;
bool g_refuse_to_load = false;

void DoNothing(const hal::DispatchFrame*, hal::WorkerFrame*, uint64_t, uint64_t) {}

void Fault(const hal::DispatchFrame*, hal::WorkerFrame* worker, uint64_t, uint64_t) {
    worker->fault = static_cast<uint32_t>(hal::KernelFault::kUnreachable);
}

void Record(const hal::DispatchFrame* frame, hal::WorkerFrame*, uint64_t first, uint64_t count) {
    const auto set = [&](int index) {
        return static_cast<const hal::BufferDescriptor*>(frame->descriptor_sets[index]);
    };
    auto* records = reinterpret_cast<DispatchRecord*>(set(0)->address);
    uint32_t constants[4];
    std::memcpy(constants, frame->push_constants, sizeof(constants));
    for (uint64_t i = first; i < first + count; ++i) {
        DispatchRecord& record = records[i];
        ++record.runs;
        std::copy_n(frame->workgroup_count, 3, record.workgroup_count);
        std::copy_n(frame->base_workgroup, 3, record.base_workgroup);
        std::copy_n(constants, 4, record.constants);
        // The third constant says whether the pipeline's layout has a set 1.
        if (constants[2]) {
            std::copy_n(frame->dynamic_offsets, 2, record.dynamic_offsets);
            record.set1_address = set(1)->address;
            record.set1_size_bytes = set(1)->size_bytes;
        }
    }
}

hal::KernelEntry EntryOf(uint32_t program) {
    if (program == kFaultyProgram.back()) {
        return Fault;
    }
    return program == kRecordingProgram.back() ? Record : DoNothing;
}

class TestKernelCompiler : public kernel::KernelCompiler {
  public:
    std::string Key(const kernel::CompileRequest& request) const override {
        std::string key = "test kernel " + request.entry_point;
        for (const uint32_t word : request.spirv) {
            key += fmt::format(" {}", word);
        }
        for (const auto& value : request.specialization) {
            key += fmt::format(" {}={}", value.constant_id, value.bits);
        }
        return key;
    }

    Result<std::shared_ptr<const kernel::CompiledKernel>> Compile(
        const kernel::CompileRequest& request) override {
        if (request.spirv.back() == kUnsupportedProgram.back()) {
            return Error{ErrorCode::kUnsupported, "The test program is not supported."};
        }
        ++g_counts.compiled;
        return MakeKernel(Key(request), EntryOf(request.spirv.back()));
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
        return MakeKernel(key, DoNothing);
    }

    const kernel::TargetInfo& target() const override { return target_; }

  private:
    static std::shared_ptr<const kernel::CompiledKernel> MakeKernel(const std::string& key,
                                                                    hal::KernelEntry entry) {
        auto kernel = std::make_shared<kernel::CompiledKernel>();
        kernel->entry = entry;
        kernel->used_sets = entry == Record ? 1 : 0;
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

void ResetCompilerCounts() {
    g_counts.compiled = 0;
    g_counts.loaded = 0;
    g_counts.load_refused = 0;
}

void RefuseToLoad(bool refuse) {
    g_refuse_to_load = refuse;
}

}  // namespace fornax::driver_test

namespace fornax::kernel {

bool KernelCompiler::HasBFloatDotProducts() {
    return true;
}

Result<std::unique_ptr<KernelCompiler>> KernelCompiler::Create(const std::string&) {
    return std::unique_ptr<KernelCompiler>(new driver_test::TestKernelCompiler);
}

}  // namespace fornax::kernel
