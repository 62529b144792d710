// Updating descriptor sets: writes and copies of packed descriptors.
#include "driver/descriptor_set.h"

#include <cstring>

#include "driver/buffer.h"
#include "driver/entry_point.h"

namespace fornax::driver {
namespace {

hal::BufferDescriptor* DescriptorsAt(const DescriptorStorage& storage,
                                     uint32_t binding,
                                     uint32_t array_element) {
    const uint32_t offset = FindBinding(storage.bindings, binding).offset_bytes;
    return reinterpret_cast<hal::BufferDescriptor*>(storage.memory + offset) + array_element;
}

void CopyDescriptors(const VkCopyDescriptorSet& copy) {
    const auto source = FromHandle<DescriptorSet>(copy.srcSet)->storage();
    const auto destination = FromHandle<DescriptorSet>(copy.dstSet)->storage();
    std::memmove(DescriptorsAt(destination, copy.dstBinding, copy.dstArrayElement),
                 DescriptorsAt(source, copy.srcBinding, copy.srcArrayElement),
                 copy.descriptorCount * sizeof(hal::BufferDescriptor));
}

}  // namespace

void WriteDescriptors(const DescriptorStorage& storage, const VkWriteDescriptorSet& write) {
    auto* out = DescriptorsAt(storage, write.dstBinding, write.dstArrayElement);
    for (uint32_t i = 0; i < write.descriptorCount; ++i)
        out[i] = MakeBufferDescriptor(write.pBufferInfo[i]);
}

FORNAX_ENTRY_POINT(void)
vkUpdateDescriptorSets(VkDevice,
                       uint32_t write_count,
                       const VkWriteDescriptorSet* writes,
                       uint32_t copy_count,
                       const VkCopyDescriptorSet* copies) {
    // "Writes happen first, then the copies, each in order."
    for (uint32_t i = 0; i < write_count; ++i)
        WriteDescriptors(FromHandle<DescriptorSet>(writes[i].dstSet)->storage(), writes[i]);
    for (uint32_t i = 0; i < copy_count; ++i)
        CopyDescriptors(copies[i]);
}

}  // namespace fornax::driver
