// What a module may declare: its capabilities, and the addressing and memory models.
#include <algorithm>

#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// The capabilities that are covered. A module that declares any other is refused by name.
constexpr spv::Capability kCapabilities[] = {
    spv::Capability::Matrix,
    spv::Capability::Shader,
    spv::Capability::Float64,
    spv::Capability::Int64,
    spv::Capability::Int16,
    spv::Capability::Int8,
    spv::Capability::Float16,
    spv::Capability::GroupNonUniform,
    spv::Capability::GroupNonUniformVote,
    spv::Capability::GroupNonUniformArithmetic,
    spv::Capability::GroupNonUniformBallot,
    spv::Capability::GroupNonUniformShuffle,
    spv::Capability::GroupNonUniformShuffleRelative,
    spv::Capability::GroupNonUniformClustered,
    spv::Capability::GroupNonUniformQuad,
    spv::Capability::GroupNonUniformRotateKHR,
    spv::Capability::GroupNonUniformPartitionedEXT,
    spv::Capability::SubgroupBallotKHR,
    spv::Capability::SubgroupVoteKHR,
    spv::Capability::QuadControlKHR,
    spv::Capability::ComputeDerivativeGroupQuadsKHR,
    spv::Capability::ComputeDerivativeGroupLinearKHR,
    spv::Capability::DerivativeControl,
    spv::Capability::Sampled1D,
    spv::Capability::Image1D,
    spv::Capability::SampledBuffer,
    spv::Capability::ImageBuffer,
    spv::Capability::SampledCubeArray,
    spv::Capability::ImageCubeArray,
    spv::Capability::StorageImageMultisample,
    spv::Capability::ImageMSArray,
    spv::Capability::Int64ImageEXT,
    spv::Capability::ImageQuery,
    spv::Capability::MinLod,
    spv::Capability::ImageGatherExtended,
    spv::Capability::StorageImageExtendedFormats,
    spv::Capability::StorageImageReadWithoutFormat,
    spv::Capability::StorageImageWriteWithoutFormat,
    spv::Capability::SampledImageArrayDynamicIndexing,
    spv::Capability::StorageImageArrayDynamicIndexing,
    spv::Capability::DeviceGroup,
    spv::Capability::StorageBuffer16BitAccess,
    spv::Capability::UniformAndStorageBuffer16BitAccess,
    spv::Capability::StoragePushConstant16,
    spv::Capability::StorageBuffer8BitAccess,
    spv::Capability::UniformAndStorageBuffer8BitAccess,
    spv::Capability::StoragePushConstant8,
    spv::Capability::DotProduct,
    spv::Capability::DotProductInputAll,
    spv::Capability::DotProductInput4x8Bit,
    spv::Capability::DotProductInput4x8BitPacked,
    spv::Capability::DenormPreserve,
    spv::Capability::DenormFlushToZero,
    spv::Capability::SignedZeroInfNanPreserve,
    spv::Capability::RoundingModeRTE,
    spv::Capability::RoundingModeRTZ,
    spv::Capability::FloatControls2,
    spv::Capability::FMAKHR,
    spv::Capability::WorkgroupMemoryExplicitLayoutKHR,
    spv::Capability::WorkgroupMemoryExplicitLayout8BitAccessKHR,
    spv::Capability::WorkgroupMemoryExplicitLayout16BitAccessKHR,
    spv::Capability::PhysicalStorageBufferAddresses,
    spv::Capability::VariablePointersStorageBuffer,
    spv::Capability::VariablePointers,
    spv::Capability::UntypedPointersKHR,
    spv::Capability::DescriptorHeapEXT,
    spv::Capability::VulkanMemoryModel,
    spv::Capability::VulkanMemoryModelDeviceScope,
    spv::Capability::Int64Atomics,
    spv::Capability::AtomicFloat16AddEXT,
    spv::Capability::AtomicFloat32AddEXT,
    spv::Capability::AtomicFloat64AddEXT,
    spv::Capability::AtomicFloat16MinMaxEXT,
    spv::Capability::AtomicFloat32MinMaxEXT,
    spv::Capability::AtomicFloat64MinMaxEXT,
    spv::Capability::UniformTexelBufferArrayDynamicIndexing,
    spv::Capability::StorageTexelBufferArrayDynamicIndexing,
    spv::Capability::SampledImageArrayNonUniformIndexing,
    spv::Capability::StorageImageArrayNonUniformIndexing,
    spv::Capability::UniformTexelBufferArrayNonUniformIndexing,
    spv::Capability::StorageTexelBufferArrayNonUniformIndexing,
    spv::Capability::UniformBufferArrayDynamicIndexing,
    spv::Capability::StorageBufferArrayDynamicIndexing,
    spv::Capability::ShaderNonUniform,
    spv::Capability::RuntimeDescriptorArray,
    spv::Capability::UniformBufferArrayNonUniformIndexing,
    spv::Capability::StorageBufferArrayNonUniformIndexing,
    spv::Capability::ExpectAssumeKHR,
    spv::Capability::ShaderClockKHR,
    spv::Capability::ReplicatedCompositesEXT,
    spv::Capability::LongVectorEXT,
    spv::Capability::BFloat16TypeKHR,
    spv::Capability::BFloat16DotProductKHR,
    spv::Capability::BFloat16CooperativeMatrixKHR,
    spv::Capability::DotProductBFloat16AccVALVE,
    spv::Capability::CooperativeMatrixKHR,
    spv::Capability::Shader64BitIndexingEXT,
    // Other entry points of a module may need it: FragmentOnly.
    spv::Capability::DemoteToHelperInvocation,
};

}  // namespace

Status Translator::CheckCapabilities() {
    for (const Inst& inst : code_.module.globals()) {
        if (inst.op == Op::OpCapability) {
            auto capability = static_cast<spv::Capability>(inst[0]);
            if (!std::ranges::count(kCapabilities, capability)) {
                return Unsupported(
                    inst, "declares " + CapabilityName(inst[0]) + ", which is not supported");
            }
        } else if (inst.op == Op::OpMemoryModel) {
            const auto addressing = static_cast<spv::AddressingModel>(inst[0]);
            const auto memory = static_cast<spv::MemoryModel>(inst[1]);
            if ((addressing != spv::AddressingModel::Logical &&
                 addressing != spv::AddressingModel::PhysicalStorageBuffer64) ||
                (memory != spv::MemoryModel::GLSL450 && memory != spv::MemoryModel::Vulkan)) {
                return Unsupported(inst,
                                   "asks for other models than Logical or "
                                   "PhysicalStorageBuffer64, GLSL450 or Vulkan");
            }
        }
    }
    return OkStatus();
}

}  // namespace fornax::kernel::spirv

namespace fornax::kernel {

std::vector<uint32_t> AcceptedCapabilities() {
    std::vector<uint32_t> numbers;
    for (spv::Capability capability : spirv::kCapabilities) {
        numbers.push_back(static_cast<uint32_t>(capability));
    }
    return numbers;
}

}  // namespace fornax::kernel
