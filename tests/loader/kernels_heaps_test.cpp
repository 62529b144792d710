// Descriptor heaps: descriptors that lie in memory of the application's, found by shaders through
// mappings of their sets and bindings, or straight.
#include "tests/loader/heap_fixture.h"
#include "tests/loader/shaders/heap_direct.spv.h"

namespace fornax::test {
namespace {

using KernelsHeapsTest = HeapTest;

// The limits of the extension ("Required Limits"), as far as they have bounds of their own.
TEST_F(KernelsHeapsTest, PropertiesAreWithinTheRequiredLimits) {
    VkPhysicalDeviceDescriptorHeapPropertiesEXT heap{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DESCRIPTOR_HEAP_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 all{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                    .pNext = &heap};
    vkGetPhysicalDeviceProperties2(physical_, &all);
    EXPECT_LE(heap.samplerHeapAlignment, 65536u);
    EXPECT_LE(heap.resourceHeapAlignment, 65536u);
    EXPECT_LE(heap.samplerDescriptorSize, 32u);
    EXPECT_LE(heap.imageDescriptorSize, 64u);
    EXPECT_LE(heap.bufferDescriptorSize, 128u);
    EXPECT_LE(heap.samplerDescriptorAlignment, heap.samplerDescriptorSize);
    EXPECT_LE(heap.imageDescriptorAlignment, heap.imageDescriptorSize);
    EXPECT_LE(heap.bufferDescriptorAlignment, heap.bufferDescriptorSize);
    EXPECT_GE(heap.maxSamplerHeapSize, 4000 * heap.samplerDescriptorSize);
    EXPECT_GE(heap.maxResourceHeapSize, ((1u << 20) - (1u << 15)) * heap.imageDescriptorSize);
    EXPECT_GE(heap.maxPushDataSize, 256u);
    EXPECT_GE(heap.maxDescriptorHeapEmbeddedSamplers, 2032u);
    EXPECT_EQ(vkGetPhysicalDeviceDescriptorSizeEXT(physical_, VK_DESCRIPTOR_TYPE_SAMPLER),
              heap.samplerDescriptorSize);
    EXPECT_LE(vkGetPhysicalDeviceDescriptorSizeEXT(physical_, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE),
              heap.imageDescriptorSize);
    EXPECT_LE(vkGetPhysicalDeviceDescriptorSizeEXT(physical_, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER),
              heap.bufferDescriptorSize);
}

TEST_F(KernelsHeapsTest, ConstantOffsetsAndPushData) {
    auto in = Mapping(3, 3, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_CONSTANT_OFFSET_EXT);
    in.bindingCount = 2;  // the shader's binding is the second
    in.sourceData.constantOffset = {.heapOffset = (kFirstSlot - 1) * kStride,
                                    .heapArrayStride = kStride};
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {in, OutAtAddress(), BlockInPushData()};
    RunMapped(mappings);
}

TEST_F(KernelsHeapsTest, PushedIndicesAndDataInTheHeap) {
    auto in = Mapping(3, 4, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_PUSH_INDEX_EXT);
    in.sourceData.pushIndex = {.heapOffset = kStride,
                               .pushOffset = 4,
                               .heapIndexStride = 2 * kStride,
                               .heapArrayStride = kStride};
    push_[1] = (kFirstSlot - 1) / 2;
    auto out = Mapping(3, 6, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_PUSH_INDEX_EXT);
    out.sourceData.pushIndex = {
        .heapOffset = 0, .pushOffset = 12, .heapIndexStride = kStride, .heapArrayStride = 0};
    push_[3] = kFirstSlot + 2;
    auto block = Mapping(1, 0, VK_DESCRIPTOR_MAPPING_SOURCE_RESOURCE_HEAP_DATA_EXT);
    block.sourceData.heapData = {.heapOffset = 1024, .pushOffset = 20};
    push_[5] = 256;
    std::memcpy(heap_.words + (1024 + 256) / 4, kMore.data(), sizeof(kMore));
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {in, out, block};
    RunMapped(mappings);
}

TEST_F(KernelsHeapsTest, IndicesAndAddressesBehindAddresses) {
    auto in = Mapping(3, 4, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_INDIRECT_INDEX_EXT);
    in.sourceData.indirectIndex = {.heapOffset = 0,
                                   .pushOffset = 16,
                                   .addressOffset = 8,
                                   .heapIndexStride = kStride,
                                   .heapArrayStride = kStride};
    PushAddress(16, AddressOf(indirect_));
    indirect_.words[2] = kFirstSlot;
    auto out = Mapping(3, 6, VK_DESCRIPTOR_MAPPING_SOURCE_INDIRECT_ADDRESS_EXT);
    out.sourceData.indirectAddress = {.pushOffset = 16, .addressOffset = 32};
    const VkDeviceAddress address = AddressOf(buffers_[2]);
    std::memcpy(indirect_.words + 8, &address, sizeof(address));
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {in, out, BlockInPushData()};
    RunMapped(mappings);
}

TEST_F(KernelsHeapsTest, AnIndexForEachElement) {
    auto in = Mapping(3, 4, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_INDIRECT_INDEX_ARRAY_EXT);
    in.sourceData.indirectIndexArray = {
        .heapOffset = kStride, .pushOffset = 24, .addressOffset = 16, .heapIndexStride = kStride};
    PushAddress(24, AddressOf(indirect_));
    PutBuffer(buffers_[1], 12);
    indirect_.words[4] = kFirstSlot - 1;
    indirect_.words[5] = 11;
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {in, OutAtAddress(), BlockInPushData()};
    RunMapped(mappings);
}

TEST_F(KernelsHeapsTest, AVariableThatNothingMapsIsRefused) {
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {OutAtAddress()};
    EXPECT_EQ(TryHeapPipeline(spirv::kHeapMapped, mappings), VkPipeline(VK_NULL_HANDLE));
    EXPECT_NE(TakeMessage().find("nothing maps to a descriptor heap"), std::string::npos);
}

// The first of the mappings that fit a variable counts, which may not be several.
TEST_F(KernelsHeapsTest, OverlappingMappings) {
    if (Validated()) {
        GTEST_SKIP() << "The validation layer rightly complains.";
    }
    auto wrong = InAtConstant();
    wrong.bindingCount = UINT32_MAX - 4;
    wrong.sourceData.constantOffset.heapOffset = 0;
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), OutAtAddress(),
                                                            BlockInPushData(), wrong};
    RunMapped(mappings);
}

TEST_F(KernelsHeapsTest, PlacesOutsideOfPushDataAreRefused) {
    for (const uint32_t offset : {253u, 256u, 2u, UINT32_MAX - 3}) {
        auto in = Mapping(3, 4, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_PUSH_INDEX_EXT);
        in.sourceData.pushIndex = {
            .heapOffset = 0, .pushOffset = offset, .heapIndexStride = 1, .heapArrayStride = 1};
        const VkDescriptorSetAndBindingMappingEXT mappings[] = {in, OutAtAddress(),
                                                                BlockInPushData()};
        EXPECT_EQ(TryHeapPipeline(spirv::kHeapMapped, mappings), VkPipeline(VK_NULL_HANDLE));
        EXPECT_NE(TakeMessage().find("at most 252"), std::string::npos) << offset;
    }
    // The last address that there is room for.
    PushAddress(120, AddressOf(buffers_[2]));
    auto out = OutAtAddress();
    out.sourceData.pushAddressOffset = 120;
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), out, BlockInPushData()};
    RunMapped(mappings);
    out.sourceData.pushAddressOffset = 252;
    const VkDescriptorSetAndBindingMappingEXT beyond[] = {InAtConstant(), out, BlockInPushData()};
    EXPECT_EQ(TryHeapPipeline(spirv::kHeapMapped, beyond), VkPipeline(VK_NULL_HANDLE));
    EXPECT_NE(TakeMessage().find("at most 248"), std::string::npos);
}

TEST_F(KernelsHeapsTest, MorePushDataThanThereIsIsRefused) {
    const std::array<std::byte, 512> data = {};
    const struct {
        uint32_t offset;
        size_t size;
    } pushes[] = {{0, 260}, {252, 8}, {256, 4}, {UINT32_MAX - 3, 4}};
    for (const auto& push : pushes) {
        VkCommandBuffer commands = Begin();
        PushData(commands, push.offset, data.data(), push.size);
        EXPECT_EQ(vkEndCommandBuffer(commands), VK_ERROR_VALIDATION_FAILED_EXT) << push.offset;
        EXPECT_NE(TakeMessage().find("there are 256"), std::string::npos) << push.offset;
    }
    VkCommandBuffer commands = Begin();
    PushData(commands, 252, data.data(), 4);
    EXPECT_VK(vkEndCommandBuffer(commands));
}

TEST_F(KernelsHeapsTest, ADispatchWithoutItsHeapIsRefused) {
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), OutAtAddress(),
                                                            BlockInPushData()};
    const VkPipeline pipeline = TryHeapPipeline(spirv::kHeapMapped, mappings);
    ASSERT_NE(pipeline, VK_NULL_HANDLE);
    for (const bool null_heap : {false, true}) {
        VkCommandBuffer commands = Begin();
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        if (null_heap) {
            const VkBindHeapInfoEXT info{.sType = VK_STRUCTURE_TYPE_BIND_HEAP_INFO_EXT};
            vkCmdBindResourceHeapEXT(commands, &info);
        }
        vkCmdDispatch(commands, 1, 1, 1);
        EXPECT_EQ(vkEndCommandBuffer(commands), VK_ERROR_VALIDATION_FAILED_EXT);
        EXPECT_NE(TakeMessage().find("without a resource heap"), std::string::npos);
    }
}

// Nothing is read beyond a heap, wherever an index points to: the last element is read instead.
TEST_F(KernelsHeapsTest, IndicesBehindTheHeapStayInside) {
    auto in = Mapping(3, 4, VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_PUSH_INDEX_EXT);
    in.sourceData.pushIndex = {
        .heapOffset = 0, .pushOffset = 4, .heapIndexStride = kStride, .heapArrayStride = kStride};
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {in, OutAtAddress(), BlockInPushData()};
    const VkPipeline pipeline = TryHeapPipeline(spirv::kHeapMapped, mappings);
    ASSERT_NE(pipeline, VK_NULL_HANDLE);
    // The heap ends with the descriptor in slot 20; in all that follow are those of another buffer.
    constexpr uint32_t kLast = 20;
    PutBuffer(buffers_[0], 0);  // where an offset of 32 bits is after it has wrapped
    for (uint32_t slot = kLast; slot < heap_.size / kStride; ++slot) {
        PutBuffer(buffers_[slot == kLast ? 0 : 1], slot);
    }
    const VkDeviceSize size = kLast * kStride + vkGetPhysicalDeviceDescriptorSizeEXT(
                                                    physical_, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
    for (const uint32_t index : {kLast, kLast + 1, 1u << 20, UINT32_MAX / kStride}) {
        push_[1] = index;
        VkCommandBuffer commands = Begin();
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        VkBindHeapInfoEXT info = HeapInfo();
        info.heapRange.size = size;
        vkCmdBindResourceHeapEXT(commands, &info);
        PushData(commands, 0, push_.data(), sizeof(push_));
        vkCmdDispatch(commands, 1, 1, 1);
        Run(commands);
        for (uint32_t i = 0; i < 32; ++i) {
            ASSERT_EQ(buffers_[2].words[i], 11 * (1 + i) + kMore[i % 4]) << index;
        }
    }
}

TEST_F(KernelsHeapsTest, SecondaryCommandBuffersInheritHeaps) {
    const VkDescriptorSetAndBindingMappingEXT mappings[] = {InAtConstant(), OutAtAddress(),
                                                            BlockInPushData()};
    const VkPipeline pipeline = TryHeapPipeline(spirv::kHeapMapped, mappings);
    ASSERT_NE(pipeline, VK_NULL_HANDLE);
    const VkCommandBufferAllocateInfo allocate{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool_,
        .level = VK_COMMAND_BUFFER_LEVEL_SECONDARY,
        .commandBufferCount = 1};
    VkCommandBuffer secondary = VK_NULL_HANDLE;
    ASSERT_VK(vkAllocateCommandBuffers(device_, &allocate, &secondary));
    const VkBindHeapInfoEXT heap = HeapInfo();
    const VkCommandBufferInheritanceDescriptorHeapInfoEXT heaps{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_DESCRIPTOR_HEAP_INFO_EXT,
        .pResourceHeapBindInfo = &heap};
    const VkCommandBufferInheritanceInfo inheritance{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO, .pNext = &heaps};
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .pInheritanceInfo = &inheritance};
    ASSERT_VK(vkBeginCommandBuffer(secondary, &begin));
    vkCmdBindPipeline(secondary, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    PushData(secondary, 0, push_.data(), sizeof(push_));
    vkCmdDispatch(secondary, 1, 1, 1);
    ASSERT_VK(vkEndCommandBuffer(secondary));
    VkCommandBuffer commands = Begin();
    BindHeap(commands);
    vkCmdExecuteCommands(commands, 1, &secondary);
    Run(commands);
    ExpectMapped();
    // Recorded again without the inheritance: the heap that was inherited is not there any more.
    const VkCommandBufferInheritanceInfo none{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
    const VkCommandBufferBeginInfo again{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .pInheritanceInfo = &none};
    ASSERT_VK(vkBeginCommandBuffer(secondary, &again));
    vkCmdBindPipeline(secondary, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdDispatch(secondary, 1, 1, 1);
    EXPECT_EQ(vkEndCommandBuffer(secondary), VK_ERROR_VALIDATION_FAILED_EXT);
    EXPECT_NE(TakeMessage().find("without a resource heap"), std::string::npos);
}

// What is compiled depends on the mappings: a cache tells pipelines of one module apart.
TEST_F(KernelsHeapsTest, CachesKnowTheMappings) {
    const VkPipelineCacheCreateInfo cache_info{.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    VkPipelineCache cache = VK_NULL_HANDLE;
    ASSERT_VK(vkCreatePipelineCache(device_, &cache_info, nullptr, &cache));
    AtEnd([this, cache] { vkDestroyPipelineCache(device_, cache, nullptr); });
    auto swapped = InAtConstant();  // the second buffer for both
    swapped.sourceData.constantOffset.heapOffset = 20 * kStride;
    PutBuffer(buffers_[1], 20);
    PutBuffer(buffers_[1], 21);
    const VkDescriptorSetAndBindingMappingEXT first[] = {InAtConstant(), OutAtAddress(),
                                                         BlockInPushData()};
    const VkDescriptorSetAndBindingMappingEXT second[] = {swapped, first[1], first[2]};
    const VkPipeline pipelines[] = {TryHeapPipeline(spirv::kHeapMapped, first, cache),
                                    TryHeapPipeline(spirv::kHeapMapped, second, cache),
                                    TryHeapPipeline(spirv::kHeapMapped, first, cache)};
    RunMapped(pipelines[0]);
    RunMapped(pipelines[2]);
    VkCommandBuffer commands = Begin();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[1]);
    BindHeap(commands);
    PushData(commands, 0, push_.data(), sizeof(push_));
    vkCmdDispatch(commands, 1, 1, 1);
    Run(commands);
    for (uint32_t i = 0; i < 32; ++i) {
        ASSERT_EQ(buffers_[2].words[i], 11 * (500 + i) + kMore[i % 4]) << i;
    }
}

// The slots of the shader's array are as far apart as a buffer's descriptor is large.
TEST_F(KernelsHeapsTest, ShadersReachIntoTheHeap) {
    const VkDeviceSize size =
        vkGetPhysicalDeviceDescriptorSizeEXT(physical_, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
    for (uint32_t i = 0; i < 2; ++i) {
        const TestBuffer& buffer = buffers_[i == 0 ? 1 : 2];
        const VkDeviceAddressRangeEXT range{AddressOf(buffer), buffer.size};
        const VkResourceDescriptorInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_RESOURCE_DESCRIPTOR_INFO_EXT,
            .type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .data = {.pAddressRange = &range}};
        const VkHostAddressRangeEXT out{reinterpret_cast<std::byte*>(heap_.words) + (9 + i) * size,
                                        size};
        ASSERT_VK(vkWriteResourceDescriptorsEXT(device_, 1, &info, &out));
    }
    const VkPipeline pipeline = TryHeapPipeline(spirv::kHeapDirect, {});
    ASSERT_NE(pipeline, VK_NULL_HANDLE);
    VkCommandBuffer commands = Begin();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    BindHeap(commands);
    const uint32_t first = 9;
    PushData(commands, 0, &first, sizeof(first));
    vkCmdDispatch(commands, 1, 1, 1);
    Run(commands);
    for (uint32_t i = 0; i < 32; ++i) {
        EXPECT_EQ(buffers_[2].words[i], 7 * (500 + i)) << i;
    }
}

}  // namespace
}  // namespace fornax::test
