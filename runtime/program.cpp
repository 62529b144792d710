#include "runtime/program.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "compiler/graph/plan/packing.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "runtime/sizes.h"

namespace fornax::runtime {
namespace {

struct MadeKernel {
    KernelInterface interface;
    vulkan::ComputePipeline pipeline;
};

Result<MadeKernel> MakeKernel(const graph::PlanKernel& kernel,
                              const graph::loop::Target& target,
                              vulkan::PipelineFactory& factory) {
    FORNAX_ASSIGN_OR_RETURN(const graph::KernelCode made_code, graph::CodeOf(kernel, target));
    MadeKernel made;
    made.interface.push_constants = made_code.push_constants;
    made.interface.workgroups = made_code.module.workgroups;
    made.interface.limits = made_code.module.limits;
    vulkan::KernelCode code;
    code.name = graph::NameOf(kernel);
    code.words = made_code.module.words;
    code.binding_count = static_cast<uint32_t>(graph::BuffersOf(kernel).size());
    code.push_constant_count = static_cast<uint32_t>(made_code.push_constants.size());
    code.constants = made_code.constants;
    FORNAX_ASSIGN_OR_RETURN(made.pipeline, factory.Make(code));
    return made;
}

}  // namespace

graph::loop::Target TargetOf(const vulkan::Device& device) {
    graph::loop::Target target;
    target.subgroup_size = device.subgroup_size();
    const auto& counts = device.limits().maxComputeWorkGroupCount;
    target.max_workgroup_count = std::min({counts[0], counts[1], counts[2]});
    target.max_workgroup_memory = device.limits().maxComputeSharedMemorySize;
    const vulkan::DeviceFeatures& features = device.features();
    target.int64 = features.int64;
    target.float64 = features.float64;
    target.storage_8bit = features.storage_8bit;
    target.storage_16bit = features.storage_16bit;
    target.subgroup_arithmetic = features.subgroup_arithmetic;
    target.integer_dot = features.integer_dot;
    target.bfloat16_dot = features.bfloat16_dot;
    // Vulkan has no property for it. Processors that multiply bf16 have AVX-512.
    target.wide_registers = features.bfloat16_dot;
    target.matrices_f32 = features.matrices_f32;
    target.signed_zero_inf_nan_preserve = features.signed_zero_inf_nan_preserve;
    return target;
}

Result<std::shared_ptr<const Program>> Program::Create(std::shared_ptr<vulkan::Device> device,
                                                       graph::Plan plan,
                                                       std::span<const std::byte> pipeline_cache,
                                                       const ProgressFunction& progress) {
    std::shared_ptr<Program> program(new Program);
    program->device_ = std::move(device);
    program->plan_ = std::move(plan);
    program->stages_ = StagesOf(program->plan_);
    const VkPhysicalDeviceLimits& limits = program->device_->limits();
    std::copy_n(limits.maxComputeWorkGroupCount, 3, program->limits_.max_workgroups.begin());
    program->limits_.max_binding_bytes = limits.maxStorageBufferRange;
    FORNAX_RETURN_IF_ERROR(program->PlaceConstants());
    FORNAX_RETURN_IF_ERROR(program->MakePipelines(pipeline_cache, progress));
    return std::shared_ptr<const Program>(std::move(program));
}

Status Program::MakePipelines(std::span<const std::byte> pipeline_cache,
                              const ProgressFunction& progress) {
    const auto start = std::chrono::steady_clock::now();
    FORNAX_ASSIGN_OR_RETURN(factory_, vulkan::PipelineFactory::Create(device_, pipeline_cache));
    const graph::loop::Target target = TargetOf(*device_);
    const size_t count = plan_.kernels.size();
    std::vector<std::optional<Result<MadeKernel>>> made(count);
    std::atomic<size_t> next = 0;
    std::mutex progress_mutex;
    size_t done = 0;
    const auto work = [&] {
        for (size_t i = next++; i < count; i = next++) {
            made[i] = MakeKernel(plan_.kernels[i], target, *factory_);
            if (progress) {
                const std::lock_guard lock(progress_mutex);
                progress({"making kernels", ++done, count});
            }
        }
    };
    std::vector<std::thread> threads;
    const size_t thread_count =
        std::min<size_t>(std::max(std::thread::hardware_concurrency(), 1u), count);
    for (size_t i = 1; i < thread_count; ++i) {
        threads.emplace_back(work);
    }
    work();
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (std::optional<Result<MadeKernel>>& kernel : made) {
        if (!kernel->ok()) {
            return std::move(*kernel).error();
        }
        kernels_.push_back((*kernel)->interface);
        pipelines_.push_back((*kernel)->pipeline);
        report_.from_cache += (*kernel)->pipeline.from_cache ? 1 : 0;
    }
    report_.pipelines = count;
    report_.cache_known = device_->features().creation_feedback;
    report_.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return OkStatus();
}

Status Program::PlaceConstants() {
    constants_.resize(plan_.blocks.size());
    std::vector<size_t> copied;
    uint64_t total = 0;
    for (size_t i = 0; i < plan_.blocks.size(); ++i) {
        const graph::PlanBlock& block = plan_.blocks[i];
        if (block.kind != graph::BlockKind::kConstant) {
            continue;
        }
        FORNAX_ASSIGN_OR_RETURN(const Dims dims, EvaluateShape(block.type.shape, {}));
        uint64_t count = 1;
        for (const int64_t dim : dims) {
            count *= static_cast<uint64_t>(dim);
        }
        const bool is_string = block.type.element == graph::ElementType::kString;
        const uint64_t needed = is_string ? count : count * graph::BytesOf(block.type.element);
        const uint64_t given = is_string ? (block.strings == nullptr ? 0 : block.strings->size())
                                         : (block.data == nullptr ? 0 : block.data->size());
        if (given != needed) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The constant {} of type {} is given with {} {} instead of "
                                     "{}.",
                                     block.name, block.type.ToString(), given,
                                     is_string ? "strings" : "bytes", needed)};
        }
        if (is_string || given == 0 || ImportConstant(i)) {
            continue;
        }
        copied.push_back(i);
        constants_[i].offset = total;
        total += (given + graph::kTensorAlignment - 1) / graph::kTensorAlignment *
                 graph::kTensorAlignment;
    }
    if (total == 0) {
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::Buffer> buffer,
                            vulkan::Buffer::Create(device_, total));
    for (const size_t i : copied) {
        graph::PlanBlock& block = plan_.blocks[i];
        constants_[i].buffer = buffer.get();
        std::memcpy(buffer->data() + constants_[i].offset, block.data->data(), block.data->size());
        block.data.reset();
    }
    buffers_.push_back(std::move(buffer));
    return OkStatus();
}

bool Program::ImportConstant(size_t index) {
    // Each takes an allocation, of which devices give some thousands.
    constexpr size_t kMinImportedBytes = 64 << 10;
    constexpr size_t kMaxImported = 2000;
    const graph::Bytes& data = plan_.blocks[index].data;
    if (data->size() < kMinImportedBytes || buffers_.size() >= kMaxImported) {
        return false;
    }
    // Kernels only read constants.
    Result<std::unique_ptr<vulkan::Buffer>> imported =
        vulkan::Buffer::Import(device_, const_cast<uint8_t*>(data->data()), data->size());
    if (!imported.ok()) {
        return false;
    }
    constants_[index].buffer = imported->get();
    buffers_.push_back(std::move(imported).value());
    return true;
}

}  // namespace fornax::runtime
