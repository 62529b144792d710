// The life of a command buffer, and the state that its commands share.
#include "driver/command_buffer.h"

#include <algorithm>
#include <cstring>

#include "driver/chain.h"
#include "driver/command_pool.h"
#include "driver/compute_kernel.h"
#include "driver/descriptor_set.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/pipeline_layout.h"
#include "driver/queue_family.h"

namespace fornax::driver {

void CommandBuffer::ForgetBindings() {
    kernel_ = nullptr;
    for (uint32_t i = 0; i < used_sets_; ++i) {
        sets_[i].address = 0;
        sets_[i].dynamic_offset_count = 0;
        sets_[i].pushed.clear();
        sets_[i].pushed_changed = false;
    }
    used_sets_ = 0;
    heaps_ = {};
    bindings_changed_ = true;
    constants_changed_ = true;
    recorded_constant_bytes_ = 0;
}

void CommandBuffer::Begin(const VkCommandBufferBeginInfo& info) {
    Reset(false);
    // A primary command buffer's inheritance info is ignored, and may be no pointer at all.
    if (level_ != VK_COMMAND_BUFFER_LEVEL_SECONDARY || !info.pInheritanceInfo) {
        return;
    }
    const auto* heaps = FindInChain<VkCommandBufferInheritanceDescriptorHeapInfoEXT>(
        info.pInheritanceInfo->pNext,
        VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_DESCRIPTOR_HEAP_INFO_EXT);
    using kernel::ResourceLayout;
    if (heaps && heaps->pResourceHeapBindInfo) {
        BindHeap(ResourceLayout::kResourceHeapSet, *heaps->pResourceHeapBindInfo);
    }
    if (heaps && heaps->pSamplerHeapBindInfo) {
        BindHeap(ResourceLayout::kSamplerHeapSet, *heaps->pSamplerHeapBindInfo);
    }
}

void CommandBuffer::Reset(bool release_resources) {
    result_ = VK_SUCCESS;
    stream_.reset();
    if (release_resources) {
        builder_.ResetAndRelease();
    } else {
        builder_.Reset();
    }
    ForgetBindings();
    labels_.clear();
    constants_ = nullptr;
    constant_bytes_ = 0;
}

VkResult CommandBuffer::End() {
    auto stream = builder_.Finish();
    if (!stream) {
        Error(Fail(*this, stream.error()));
    }
    if (result_ == VK_SUCCESS) {
        stream_ = std::move(*stream);
    }
    return result_;
}

void CommandBuffer::BindKernel(const ComputeKernel* kernel, const char* name) {
    if (kernel_ == kernel) {
        return;
    }
    // VUID-vkCmdBindPipeline-commandBuffer-cmdpool, VUID-vkCmdBindShadersEXT-pShaders-08476. No
    // dispatch comes without one of them.
    if (kernel && !(kQueueFamilies[pool().family()].flags & VK_QUEUE_COMPUTE_BIT)) {
        Error(
            Fail(*this, VK_ERROR_VALIDATION_FAILED_EXT,
                 "A pipeline or shader was bound for queue family {}, which takes transfers only.",
                 pool().family()));
        return;
    }
    kernel_ = kernel;
    if (device().timed()) {
        kernel_name_ = name != nullptr ? name : "";
    }
    bindings_changed_ = true;
}

void CommandBuffer::BeginLabel(const char* label) {
    if (device().timed()) {
        labels_.emplace_back(label);
        bindings_changed_ = true;
    }
}

void CommandBuffer::EndLabel() {
    if (!labels_.empty()) {
        labels_.pop_back();
        bindings_changed_ = true;
    }
}

const std::shared_ptr<const hal::Executable>& CommandBuffer::NamedExecutable() const {
    if (device().timed()) {
        if (!labels_.empty() && !labels_.back().empty()) {
            return kernel_->NamedExecutable(labels_.back());
        }
        if (!kernel_name_.empty()) {
            return kernel_->NamedExecutable(kernel_name_);
        }
    }
    return kernel_->executable();
}

void CommandBuffer::BindDescriptorSet(uint32_t index,
                                      const DescriptorSet& set,
                                      std::span<const uint32_t> dynamic_offsets) {
    BoundSet& bound = sets_[index];
    bound.address = set.address();
    bound.dynamic_offset_count = static_cast<uint32_t>(dynamic_offsets.size());
    std::ranges::copy(dynamic_offsets, bound.dynamic_offsets.begin());
    bound.pushed.clear();
    bound.pushed_changed = false;
    used_sets_ = std::max(used_sets_, index + 1);
    bindings_changed_ = true;
}

void CommandBuffer::BindHeap(uint32_t set, const VkBindHeapInfoEXT& info) {
    heaps_[set] = info.heapRange;
    bindings_changed_ = true;
}

void CommandBuffer::BindSetAddress(uint32_t index, uint64_t address) {
    BoundSet& bound = sets_[index];
    bound.address = address;
    bound.dynamic_offset_count = 0;
    bound.pushed.clear();
    bound.pushed_changed = false;
    used_sets_ = std::max(used_sets_, index + 1);
    bindings_changed_ = true;
}

std::byte* CommandBuffer::PushDescriptors(const PipelineLayout& layout, uint32_t index) {
    BoundSet& bound = sets_[index];
    // Descriptors that an earlier push wrote stay, as long as the set's layout is compatible.
    const PipelineLayout::Set& set = layout.sets()[index];
    bound.pushed.resize(set.size_bytes);
    WriteImmutableSamplers(set.bindings, set.immutable_samplers, bound.pushed.data());
    bound.pushed_changed = true;
    bound.dynamic_offset_count = 0;
    used_sets_ = std::max(used_sets_, index + 1);
    bindings_changed_ = true;
    return bound.pushed.data();
}

// A new piece for the push constants, with the values of the last one but from `from` to `to`,
// which the caller writes. False without memory, which ends the recording.
bool CommandBuffer::RenewConstants(uint32_t size_bytes, uint32_t from, uint32_t to) {
    size_bytes = std::max(size_bytes, constant_bytes_);
    std::byte* renewed = builder_.ReserveSideData(size_bytes);
    if (!renewed) {
        return false;
    }
    const auto keep = [&](uint32_t begin, uint32_t end) {
        const uint32_t known = std::clamp(constant_bytes_, begin, end);
        if (begin < known) {
            std::memcpy(renewed + begin, constants_ + begin, known - begin);
        }
        if (known < end) {
            std::memset(renewed + known, 0, end - known);
        }
    };
    keep(0, from);
    keep(to, size_bytes);
    constants_ = renewed;
    constant_bytes_ = size_bytes;
    constants_recorded_ = false;
    return true;
}

void CommandBuffer::PushConstants(uint32_t offset_bytes,
                                  std::span<const std::byte> data,
                                  uint32_t total_bytes) {
    if (data.empty()) {
        return;
    }
    const auto end = static_cast<uint32_t>(offset_bytes + data.size());
    if ((constants_recorded_ || end > constant_bytes_) &&
        !RenewConstants(std::max(total_bytes, end), offset_bytes, end)) {
        return;
    }
    // Word by word, as applications have just written them: a wider load than their stores would
    // wait until these, and all before them, are in the cache.
    using Word [[gnu::aligned(1), gnu::may_alias]] = uint32_t;
    std::byte* out = constants_ + offset_bytes;
    const std::byte* in = data.data();
    const size_t whole = data.size() / sizeof(Word) * sizeof(Word);
    for (size_t i = 0; i < whole; i += sizeof(Word)) {
        const uint32_t word = *reinterpret_cast<const volatile Word*>(in + i);
        std::memcpy(out + i, &word, sizeof(word));
    }
    std::memcpy(out + whole, in + whole, data.size() - whole);
    constants_changed_ = true;
}

bool CommandBuffer::PrepareHeaps() {
    using kernel::ResourceLayout;
    const hal::KernelDesc& kernel = kernel_->executable()->desc();
    for (uint32_t i = 0; i < heaps_.size(); ++i) {
        // VUID-vkCmdDispatch-None-11308.
        if ((kernel.descriptor_set_mask >> i & 1) && !heaps_[i].address) {
            Error(
                Fail(*this, VK_ERROR_VALIDATION_FAILED_EXT,
                     "A dispatch of the kernel '{}' was recorded without a {} heap, which it uses.",
                     kernel.name, i == ResourceLayout::kSamplerHeapSet ? "sampler" : "resource"));
            return false;
        }
    }
    const VkDeviceAddressRangeEXT& resources = heaps_[ResourceLayout::kResourceHeapSet];
    const VkDeviceAddressRangeEXT& samplers = heaps_[ResourceLayout::kSamplerHeapSet];
    const auto last = [](uint64_t heap_bytes, size_t descriptor_bytes) {
        const uint64_t rest =
            std::clamp<uint64_t>(heap_bytes, descriptor_bytes, kMaxDescriptorHeapBytes) -
            descriptor_bytes;
        return static_cast<uint32_t>(rest / ResourceLayout::kHeapGranularity);
    };
    const kernel::HeapBounds bounds{
        .last_buffer = last(resources.size, sizeof(hal::BufferDescriptor)),
        .last_image = last(resources.size, sizeof(hal::ImageDescriptor)),
        .last_sampler = last(samplers.size, sizeof(hal::SamplerDescriptor)),
        .resource_bytes =
            static_cast<uint32_t>(std::min<uint64_t>(resources.size, kMaxDescriptorHeapBytes)),
    };
    const auto& embedded = kernel_->heap()->embedded_samplers;
    std::array<uint64_t, ResourceLayout::kHeapSets> sets;
    sets[ResourceLayout::kResourceHeapSet] = resources.address;
    sets[ResourceLayout::kSamplerHeapSet] = samplers.address;
    sets[ResourceLayout::kHeapBoundsSet] = builder_.StoreSideData(&bounds, sizeof(bounds));
    sets[ResourceLayout::kEmbeddedSamplerSet] =
        builder_.StoreSideData(embedded.data(), embedded.size() * sizeof(embedded[0]));
    builder_.Bind(NamedExecutable(), sets, {});
    return true;
}

bool CommandBuffer::PrepareSets() {
    // VUID-vkCmdDispatch-None-08600. A push counts before its descriptors have an address.
    const hal::KernelDesc& kernel = kernel_->executable()->desc();
    for (uint32_t i = 0; i < kernel_->set_count(); ++i) {
        if ((kernel.descriptor_set_mask >> i & 1) && !sets_[i].address &&
            !sets_[i].pushed_changed) {
            Error(Fail(*this, VK_ERROR_VALIDATION_FAILED_EXT,
                       "A dispatch of the kernel '{}' was recorded without descriptor set {}, "
                       "which it uses.",
                       kernel.name, i));
            return false;
        }
    }
    // Written where the device reads them.
    const uint32_t set_count = kernel_->set_count();
    uint32_t offset_count = 0;
    for (uint32_t i = 0; i < set_count; ++i) {
        offset_count += kernel_->dynamic_offset_count(i);
    }
    std::byte* place =
        builder_.ReserveSideData(set_count * sizeof(uint64_t) + offset_count * sizeof(uint32_t));
    if (!place) {
        return true;  // without memory; the recording's end says so
    }
    auto* addresses = reinterpret_cast<uint64_t*>(place);
    auto* offsets = reinterpret_cast<uint32_t*>(place + set_count * sizeof(uint64_t));
    uint32_t* next_offset = offsets;
    for (uint32_t i = 0; i < set_count; ++i) {
        BoundSet& bound = sets_[i];
        if (bound.pushed_changed) {
            bound.address = builder_.StoreSideData(bound.pushed.data(), bound.pushed.size());
            bound.pushed_changed = false;
        }
        addresses[i] = bound.address;
        const uint32_t wanted = kernel_->dynamic_offset_count(i);
        for (uint32_t j = 0; j < wanted; ++j) {
            *next_offset++ = j < bound.dynamic_offset_count ? bound.dynamic_offsets[j] : 0;
        }
    }
    builder_.BindStored(NamedExecutable(),
                        set_count > 0 ? reinterpret_cast<uint64_t>(addresses) : 0, set_count,
                        offset_count > 0 ? reinterpret_cast<uint64_t>(offsets) : 0, offset_count);
    return true;
}

bool CommandBuffer::PrepareDispatch() {
    if (!kernel_) {
        // VUID-vkCmdDispatch-None-08606.
        Error(Fail(*this, VK_ERROR_VALIDATION_FAILED_EXT,
                   "A dispatch was recorded with no compute pipeline or shader bound."));
        return false;
    }
    if (bindings_changed_) {
        if (!(kernel_->heap() ? PrepareHeaps() : PrepareSets())) {
            return false;
        }
        bindings_changed_ = false;
    }
    // As many as the kernel's layout has, which are fewer than there may be: what is recorded is
    // what recording takes time for.
    const uint32_t constant_bytes = kernel_->push_constant_bytes();
    if (constant_bytes > 0 && (constants_changed_ || constant_bytes > recorded_constant_bytes_)) {
        if (constant_bytes > constant_bytes_) {
            RenewConstants(constant_bytes, constant_bytes, constant_bytes);
        }
        builder_.ConstantsStored(reinterpret_cast<uint64_t>(constants_), constant_bytes);
        constants_recorded_ = true;
        recorded_constant_bytes_ = constant_bytes;
        constants_changed_ = false;
    }
    return true;
}

void CommandBuffer::Execute(const CommandBuffer& secondary) {
    if (!secondary.stream()) {
        // VUID-vkCmdExecuteCommands-pCommandBuffers-00089.
        Error(Fail(*this, VK_ERROR_VALIDATION_FAILED_EXT,
                   "A secondary command buffer was executed whose recording had not ended."));
        return;
    }
    builder_.Chain(secondary.stream());
    // "all state is undefined after vkCmdExecuteCommands", and in the stream it is empty.
    ForgetBindings();
}

void FailRecording(VkCommandBuffer command_buffer, VkResult result) {
    FromHandle<CommandBuffer>(command_buffer)->Error(result);
}

FORNAX_ENTRY_POINT(VkResult)
vkBeginCommandBuffer(VkCommandBuffer command_buffer, const VkCommandBufferBeginInfo* info) {
    FromHandle<CommandBuffer>(command_buffer)->Begin(*info);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult) vkEndCommandBuffer(VkCommandBuffer command_buffer) {
    return FromHandle<CommandBuffer>(command_buffer)->End();
}

FORNAX_ENTRY_POINT(VkResult)
vkResetCommandBuffer(VkCommandBuffer command_buffer, VkCommandBufferResetFlags flags) {
    FromHandle<CommandBuffer>(command_buffer)
        ->Reset(flags & VK_COMMAND_BUFFER_RESET_RELEASE_RESOURCES_BIT);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkCmdExecuteCommands(VkCommandBuffer command_buffer,
                     uint32_t count,
                     const VkCommandBuffer* secondaries) {
    for (uint32_t i = 0; i < count; ++i) {
        FromHandle<CommandBuffer>(command_buffer)
            ->Execute(*FromHandle<CommandBuffer>(secondaries[i]));
    }
}

// A device group has one device, so there is nothing to mask.
FORNAX_ENTRY_POINT(void) vkCmdSetDeviceMask(VkCommandBuffer, uint32_t) {}

FORNAX_ENTRY_POINT(void)
vkCmdBeginDebugUtilsLabelEXT(VkCommandBuffer command_buffer, const VkDebugUtilsLabelEXT* label) {
    FromHandle<CommandBuffer>(command_buffer)->BeginLabel(label->pLabelName);
}
FORNAX_ENTRY_POINT(void) vkCmdEndDebugUtilsLabelEXT(VkCommandBuffer command_buffer) {
    FromHandle<CommandBuffer>(command_buffer)->EndLabel();
}
// A single label names a place, which only tools that capture have.
FORNAX_ENTRY_POINT(void)
vkCmdInsertDebugUtilsLabelEXT(VkCommandBuffer, const VkDebugUtilsLabelEXT*) {}

}  // namespace fornax::driver
