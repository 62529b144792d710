#include "runtime/program.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "compiler/graph/plan/packing.h"
#include "runtime/plan/kernels.h"
#include "runtime/plan/sizes.h"

namespace fornax::runtime {
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
    kernels_.resize(plan_.kernels.size());
    pipelines_.resize(plan_.kernels.size());
    const auto make = [this](size_t i, const KernelShader& shader) -> Status {
        vulkan::KernelCode code;
        code.name = shader.name;
        code.words = shader.words;
        code.binding_count = shader.binding_count;
        code.push_constant_count = shader.push_constant_count();
        code.constants = shader.constants;
        FORNAX_ASSIGN_OR_RETURN(pipelines_[i], factory_->Make(code));
        kernels_[i] = shader.interface;
        return OkStatus();
    };
    std::function<void(size_t, size_t)> report_done;
    if (progress) {
        report_done = [&](size_t done, size_t total) { progress({"making kernels", done, total}); };
    }
    FORNAX_RETURN_IF_ERROR(MakeKernels(plan_, TargetOf(*device_), make, report_done));
    for (const vulkan::ComputePipeline& pipeline : pipelines_) {
        report_.from_cache += pipeline.from_cache ? 1 : 0;
    }
    report_.pipelines = pipelines_.size();
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
        FORNAX_ASSIGN_OR_RETURN(const uint64_t given, ConstantBytes(block));
        if (given == 0 || ImportConstant(i)) {
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
