#include "runtime/hal/hal_program.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "compiler/graph/plan/packing.h"
#include "compiler/kernel/interface/kernel_desc.h"
#include "hal/kernel_abi.h"
#include "hal/matrix_unit.h"
#include "runtime/plan/kernels.h"
#include "runtime/plan/sizes.h"

namespace fornax::runtime {
namespace {

// Bounds are not checked: a valid plan stays within its blocks.
kernel::CompileRequest RequestFor(const KernelShader& shader, uint32_t subgroup_size) {
    kernel::CompileRequest request;
    request.spirv = shader.words;
    for (uint32_t i = 0; i < shader.constants.size(); ++i) {
        request.specialization.push_back({i, sizeof(uint32_t), shader.constants[i]});
    }
    kernel::SetLayout& set = request.layout.sets.emplace_back();
    for (uint32_t i = 0; i < shader.binding_count; ++i) {
        kernel::BindingLayout binding;
        binding.binding = i;
        binding.offset_bytes = i * uint32_t{sizeof(hal::BufferDescriptor)};
        set.bindings.push_back(binding);
    }
    request.layout.push_constant_bytes = shader.push_constant_count() * uint32_t{sizeof(uint32_t)};
    request.options.subgroup_size = subgroup_size;
    return request;
}

}  // namespace

graph::loop::Target TargetOf(const hal::DeviceCapabilities& capabilities) {
    graph::loop::Target target;
    target.max_workgroup_count = *std::ranges::min_element(hal::kMaxWorkgroupCount);
    target.max_workgroup_memory = capabilities.max_shared_bytes;
    target.integer_dot = true;
    target.bfloat16_dot = kernel::KernelCompiler::HasBFloatDotProducts();
    // Processors that multiply bf16 have AVX-512.
    target.wide_registers = target.bfloat16_dot;
    target.matrices_f32 = std::ranges::any_of(hal::kMmaTypes, [](const hal::MmaTypes& types) {
        return types.a == hal::MatrixElement::kF32 && types.b == hal::MatrixElement::kF32;
    });
    target.signed_zero_inf_nan_preserve = true;
    return target;
}

Result<std::shared_ptr<const HalProgram>> HalProgram::Create(std::shared_ptr<hal::Device> device,
                                                             kernel::KernelCompiler& compiler,
                                                             graph::Plan plan) {
    FORNAX_RETURN_IF_ERROR(CheckRecordable(plan));
    for (const std::vector<graph::PlanPort>* ports : {&plan.inputs, &plan.outputs}) {
        for (const graph::PlanPort& port : *ports) {
            if (port.type.element == graph::ElementType::kString) {
                return Error{ErrorCode::kUnsupported,
                             fmt::format("{} of {} holds strings, which no device's memory does.",
                                         port.name, plan.name)};
            }
        }
    }
    std::shared_ptr<HalProgram> program(new HalProgram);
    program->device_ = std::move(device);
    program->plan_ = std::move(plan);
    std::ranges::copy(hal::kMaxWorkgroupCount, program->limits_.max_workgroups.begin());
    program->limits_.max_binding_bytes = UINT32_MAX;  // the lengths of buffers that kernels read
    FORNAX_RETURN_IF_ERROR(program->PlaceConstants());
    FORNAX_RETURN_IF_ERROR(program->MakeExecutables(compiler));
    return std::shared_ptr<const HalProgram>(std::move(program));
}

Status HalProgram::MakeExecutables(kernel::KernelCompiler& compiler) {
    const graph::loop::Target target = TargetOf(device_->capabilities());
    kernels_.resize(plan_.kernels.size());
    executables_.resize(plan_.kernels.size());
    return MakeKernels(plan_, target, [&](size_t i, const KernelShader& shader) -> Status {
        const kernel::CompileRequest request = RequestFor(shader, target.subgroup_size);
        if (request.layout.push_constant_bytes > device_->capabilities().max_push_constant_bytes) {
            return Error{
                ErrorCode::kUnsupported,
                fmt::format("The kernel {} has {} bytes of push constants; the device {} takes at "
                            "most {}.",
                            shader.name, request.layout.push_constant_bytes,
                            device_->capabilities().name,
                            device_->capabilities().max_push_constant_bytes)};
        }
        const auto compiled = compiler.Compile(request);
        if (!compiled.ok()) {
            return Error{compiled.error().code, fmt::format("The kernel {} was not compiled: {}",
                                                            shader.name, compiled.error().message)};
        }
        FORNAX_ASSIGN_OR_RETURN(executables_[i],
                                device_->CreateExecutable(kernel::DescribeExecutable(
                                    *compiled, request.layout.push_constant_bytes)));
        kernels_[i] = shader.interface;
        return OkStatus();
    });
}

Status HalProgram::PlaceConstants() {
    static_assert(kNothingBytes % graph::kTensorAlignment == 0);
    constants_.resize(plan_.blocks.size());
    uint64_t total = kNothingBytes;
    std::vector<size_t> placed;
    for (size_t i = 0; i < plan_.blocks.size(); ++i) {
        if (plan_.blocks[i].kind != graph::BlockKind::kConstant) {
            continue;
        }
        FORNAX_ASSIGN_OR_RETURN(const uint64_t bytes, ConstantBytes(plan_.blocks[i]));
        if (bytes != 0) {
            constants_[i] = total;
            placed.push_back(i);
            total += (bytes + graph::kTensorAlignment - 1) / graph::kTensorAlignment *
                     graph::kTensorAlignment;
        }
    }
    FORNAX_ASSIGN_OR_RETURN(memory_, device_->AllocateMemory(total));
    if (memory_->host_pointer() == nullptr) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The host does not see the memory of the device {}.",
                                 device_->capabilities().name)};
    }
    for (const size_t i : placed) {
        graph::PlanBlock& block = plan_.blocks[i];
        std::memcpy(memory_->host_pointer() + constants_[i], block.data->data(),
                    block.data->size());
        constants_[i] += memory_->address();
        block.data.reset();
    }
    return OkStatus();
}

}  // namespace fornax::runtime
