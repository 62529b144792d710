// Commands on images through the loader: copies, clears, views, and the ways to descriptors.
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/image_texels_float.spv.h"
#include "tests/loader/shaders/image_texels_uint.spv.h"
#include "tests/loader/texel_reference.h"

namespace fornax::test {
namespace {

class ImageCommandsTest : public ImageTest {
  protected:
    void SetUp() override {
        core_features_.shaderStorageImageReadWithoutFormat = VK_TRUE;
        core_features_.shaderStorageImageWriteWithoutFormat = VK_TRUE;
        EnableYoungFormats();
        ImageTest::SetUp();
    }
};

// Texels of a level on the host, without gaps.
struct HostLevel {
    VkExtent3D extent;
    uint32_t slices;  // depth, or layers
    uint32_t texel_bytes;
    std::vector<uint8_t> bytes;

    uint8_t* At(uint32_t x, uint32_t y, uint32_t z) {
        return bytes.data() + ((size_t{z} * extent.height + y) * extent.width + x) * texel_bytes;
    }
};

TEST_F(ImageCommandsTest, CopiesBetweenBuffersAndPartsOfLevels) {
    for (bool is_3d : {false, true}) {
        SCOPED_TRACE(is_3d);
        const TestImage image = MakeImage({.type = is_3d ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D,
                                           .format = VK_FORMAT_R16G16B16A16_UINT,
                                           .extent = {25, 18, is_3d ? 14u : 1u},
                                           .levels = 4,
                                           .layers = is_3d ? 1u : 7u});
        HostLevel level{image.LevelExtent(1), 7, 8, Noise(image.LevelBytes(1), 1)};
        Upload(image, level.bytes, 1);
        Upload(image, std::vector<uint8_t>(image.LevelBytes(0), 9), 0);
        Upload(image, std::vector<uint8_t>(image.LevelBytes(2), 9), 2);
        // A part of five slices from the third on, into the middle of the level, from rows and
        // slices that are further apart than they are long.
        constexpr VkExtent3D kPart{5, 4, 3};
        constexpr uint32_t kRowTexels = 9;
        constexpr uint32_t kRows = 6;
        TestBuffer buffer = MakeBuffer(kRowTexels * kRows * kPart.depth * 2 + 4);
        const auto noise = Noise(buffer.size, 5);
        std::memcpy(buffer.words, noise.data(), noise.size());
        const VkBufferImageCopy region{
            .bufferOffset = buffer.offset + 16,
            .bufferRowLength = kRowTexels,
            .bufferImageHeight = kRows,
            .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 1, is_3d ? 0 : 2u,
                                 is_3d ? 1 : kPart.depth},
            .imageOffset = {6, 3, is_3d ? 2 : 0},
            .imageExtent = {kPart.width, kPart.height, is_3d ? kPart.depth : 1}};
        VkCommandBuffer commands = Begin();
        vkCmdCopyBufferToImage(commands, buffer.handle, image.handle, VK_IMAGE_LAYOUT_GENERAL, 1,
                               &region);
        Run(commands);
        for (uint32_t z = 0; z < kPart.depth; ++z) {
            for (uint32_t y = 0; y < kPart.height; ++y) {
                std::memcpy(level.At(6, 3 + y, 2 + z),
                            noise.data() + 16 + (z * kRows + y) * kRowTexels * 8,
                            size_t{kPart.width} * 8);
            }
        }
        EXPECT_TRUE(Download(image, 1) == level.bytes);
        EXPECT_TRUE(Download(image, 0) == std::vector<uint8_t>(image.LevelBytes(0), 9));
        EXPECT_TRUE(Download(image, 2) == std::vector<uint8_t>(image.LevelBytes(2), 9));

        // And back, over zeros.
        std::memset(buffer.words, 0, buffer.size);
        commands = Begin();
        const VkBufferImageCopy2 region2{.sType = VK_STRUCTURE_TYPE_BUFFER_IMAGE_COPY_2,
                                         .bufferOffset = region.bufferOffset,
                                         .bufferRowLength = region.bufferRowLength,
                                         .bufferImageHeight = region.bufferImageHeight,
                                         .imageSubresource = region.imageSubresource,
                                         .imageOffset = region.imageOffset,
                                         .imageExtent = region.imageExtent};
        const VkCopyImageToBufferInfo2 info{.sType = VK_STRUCTURE_TYPE_COPY_IMAGE_TO_BUFFER_INFO_2,
                                            .srcImage = image.handle,
                                            .srcImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                                            .dstBuffer = buffer.handle,
                                            .regionCount = 1,
                                            .pRegions = &region2};
        vkCmdCopyImageToBuffer2KHR(commands, &info);
        Run(commands);
        const auto* bytes = reinterpret_cast<const uint8_t*>(buffer.words);
        for (uint32_t i = 16; i < buffer.size; ++i) {
            const uint32_t texel = (i - 16) / 8;
            const bool copied = texel % kRowTexels < kPart.width &&
                                texel / kRowTexels % kRows < kPart.height &&
                                texel / kRowTexels / kRows < kPart.depth;
            ASSERT_EQ(bytes[i], copied ? noise[i] : 0) << i;
        }
    }
}

TEST_F(ImageCommandsTest, CopiesBetweenImagesAndBetweenSlicesAndLayers) {
    const TestImage space = MakeImage(
        {.type = VK_IMAGE_TYPE_3D, .format = VK_FORMAT_R8G8B8A8_UINT, .extent = {16, 9, 8}});
    const TestImage layers = MakeImage(
        {.format = VK_FORMAT_R32_SFLOAT, .extent = {20, 20, 1}, .levels = 2, .layers = 6});
    HostLevel from{space.spec.extent, 8, 4, Noise(space.LevelBytes(0), 2)};
    HostLevel to{layers.LevelExtent(1), 6, 4, Noise(layers.LevelBytes(1), 3)};
    Upload(space, from.bytes);
    Upload(layers, to.bytes, 1);
    VkCommandBuffer commands = Begin();
    const VkImageCopy region{.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                             .srcOffset = {3, 2, 4},
                             .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 1, 1, 3},
                             .dstOffset = {2, 5, 0},
                             .extent = {7, 4, 3}};
    vkCmdCopyImage(commands, space.handle, VK_IMAGE_LAYOUT_GENERAL, layers.handle,
                   VK_IMAGE_LAYOUT_GENERAL, 1, &region);
    Barrier(commands);
    // Back into other slices.
    const VkImageCopy2 back{.sType = VK_STRUCTURE_TYPE_IMAGE_COPY_2,
                            .srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 1, 0, 2},
                            .srcOffset = {1, 1, 0},
                            .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                            .dstOffset = {0, 0, 6},
                            .extent = {9, 8, 2}};
    const VkCopyImageInfo2 info{.sType = VK_STRUCTURE_TYPE_COPY_IMAGE_INFO_2,
                                .srcImage = layers.handle,
                                .srcImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                                .dstImage = space.handle,
                                .dstImageLayout = VK_IMAGE_LAYOUT_GENERAL,
                                .regionCount = 1,
                                .pRegions = &back};
    vkCmdCopyImage2KHR(commands, &info);
    Run(commands);
    for (uint32_t z = 0; z < 3; ++z) {
        for (uint32_t y = 0; y < 4; ++y) {
            std::memcpy(to.At(2, 5 + y, 1 + z), from.At(3, 2 + y, 4 + z), size_t{7} * 4);
        }
    }
    for (uint32_t z = 0; z < 2; ++z) {
        for (uint32_t y = 0; y < 8; ++y) {
            std::memcpy(from.At(0, y, 6 + z), to.At(1, 1 + y, z), size_t{9} * 4);
        }
    }
    EXPECT_TRUE(Download(layers, 1) == to.bytes);
    EXPECT_TRUE(Download(space) == from.bytes);
}

TEST_F(ImageCommandsTest, ClearsOfEveryFormat) {
    const VkClearColorValue floats{.float32 = {0.7f, -0.3f, 0.0625f, 1.5f}};
    const VkClearColorValue ints{.int32 = {100, -100, 3, -1}};
    for (const TexelReference& format : AllTexelReferences()) {
        if (format.depth || format.stencil || format.scaled()) {
            continue;
        }
        SCOPED_TRACE(format.format);
        const TestImage image = MakeImage(
            {.format = format.format, .extent = {9, 7, 1}, .levels = 3, .layers = 3, .usage = 0});
        for (uint32_t level = 0; level < 3; ++level) {
            Upload(image, std::vector<uint8_t>(image.LevelBytes(level), 0x11), level);
        }
        VkCommandBuffer commands = Begin();
        const VkImageSubresourceRange range{VK_IMAGE_ASPECT_COLOR_BIT, 1, 1, 1,
                                            VK_REMAINING_ARRAY_LAYERS};
        vkCmdClearColorImage(commands, image.handle, VK_IMAGE_LAYOUT_GENERAL,
                             format.integer() ? &ints : &floats, 1, &range);
        Run(commands);
        EXPECT_TRUE(Download(image, 0) == std::vector<uint8_t>(image.LevelBytes(0), 0x11));
        EXPECT_TRUE(Download(image, 2) == std::vector<uint8_t>(image.LevelBytes(2), 0x11));
        const auto bytes = Download(image, 1);
        const size_t layer = bytes.size() / 3;
        for (size_t at = 0; at < bytes.size(); at += image.texel_bytes) {
            if (at < layer) {
                ASSERT_EQ(bytes[at], 0x11);
                continue;
            }
            const auto values = format.Decode(bytes.data() + at);
            for (size_t i = 0; i < 4; ++i) {
                if (format.bits[i] == 0) {
                    continue;
                }
                if (format.integer()) {
                    const uint32_t unused = 32 - format.bits[i];
                    EXPECT_EQ(values[i] << unused, ints.uint32[i] << unused) << i;
                    continue;
                }
                using Kind = TexelReference::Kind;
                double wanted = floats.float32[i];
                const bool fixed = format.kind == Kind::kUnorm || format.kind == Kind::kSrgb;
                if (fixed || format.kind == Kind::kUfloat || format.kind == Kind::kSharedExponent) {
                    wanted = std::max(wanted, 0.0);
                }
                if (fixed || format.kind == Kind::kSnorm) {
                    wanted = std::min(wanted, 1.0);
                }
                const double step = format.kind == Kind::kSrgb ? 0.01
                                    : fixed || format.kind == Kind::kSnorm
                                        ? 0.5001 / (std::exp2(format.bits[i] - (fixed ? 0 : 1)) - 1)
                                        : 1e-7 + std::fabs(wanted) * std::exp2(5 - format.bits[i]);
                ASSERT_NEAR(std::bit_cast<float>(values[i]), wanted, step) << i;
            }
        }
        if (HasFatalFailure()) {
            return;
        }
    }
}

// A linear image is memory that the host knows its way about in.
TEST_F(ImageCommandsTest, HostsReadLinearImages) {
    const TestImage image = MakeImage({.format = VK_FORMAT_R8G8B8A8_UINT,
                                       .extent = {19, 8, 1},
                                       .layers = 2,
                                       .tiling = VK_IMAGE_TILING_LINEAR});
    const auto bytes = Noise(image.LevelBytes(0), 8);
    Upload(image, bytes);
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image.handle, &needs);
    void* mapped = nullptr;
    ASSERT_VK(vkMapMemory(device_, image.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    const auto* start = static_cast<const uint8_t*>(mapped) + needs.alignment;
    for (uint32_t layer = 0; layer < 2; ++layer) {
        const VkImageSubresource subresource{VK_IMAGE_ASPECT_COLOR_BIT, 0, layer};
        VkSubresourceLayout layout;
        vkGetImageSubresourceLayout(device_, image.handle, &subresource, &layout);
        EXPECT_LE(layout.offset + layout.size, needs.size);
        for (uint32_t y = 0; y < 8; ++y) {
            EXPECT_EQ(std::memcmp(start + layout.offset + y * layout.rowPitch,
                                  bytes.data() + (size_t{layer} * 8 + y) * 19 * 4, size_t{19} * 4),
                      0)
                << "layer " << layer << " row " << y;
        }
    }
}

// A view of another format, of one layer.
TEST_F(ImageCommandsTest, ViewsOfOtherFormats) {
    const TestImage image = MakeImage({.format = VK_FORMAT_R32_SFLOAT,
                                       .extent = {21, 11, 1},
                                       .layers = 4,
                                       .flags = VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT});
    const TestImage target = MakeImage({.format = VK_FORMAT_R8G8B8A8_UNORM, .extent = {21, 11, 1}});
    const auto bytes = Noise(image.LevelBytes(0), 4);
    Upload(image, bytes);
    const VkImageView layer =
        MakeView(image, {.viewType = VK_IMAGE_VIEW_TYPE_2D,
                         .format = VK_FORMAT_R8G8B8A8_UNORM,
                         .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 2, 1}});
    TestBuffer out = MakeBuffer(24 * 12 * 4);
    Run(MakeImagePipeline(
            spirv::kImageTexelsFloat,
            {Slot::Storage(layer), Slot::Storage(MakeView(target, VK_IMAGE_VIEW_TYPE_2D)),
             Slot::Buffer(out)}),
        3, 3);
    const auto copied = Download(target);
    EXPECT_EQ(std::memcmp(copied.data(), bytes.data() + copied.size() * 2, copied.size()), 0);
}

// Updates by templates, by copies of descriptors, and pushed ones.
TEST_F(ImageCommandsTest, EveryWayToDescriptors) {
    constexpr VkExtent3D kExtent{21, 11, 1};
    const TestImage from = MakeImage({.format = VK_FORMAT_R32_UINT, .extent = kExtent});
    const auto bytes = Noise(from.LevelBytes(0), 6);
    Upload(from, bytes);
    const VkImageView from_view = MakeView(from, VK_IMAGE_VIEW_TYPE_2D);
    TestBuffer out = MakeBuffer(24 * 12 * 4);
    for (int way = 0; way < 3; ++way) {
        SCOPED_TRACE(way);
        const TestImage to = MakeImage({.format = VK_FORMAT_R32_UINT, .extent = kExtent});
        const VkImageView to_view = MakeView(to, VK_IMAGE_VIEW_TYPE_2D);
        // The set of this pipeline is the source of copies, too.
        const TestPipeline pipeline = MakeImagePipeline(
            spirv::kImageTexelsUint,
            {Slot::Storage(from_view), Slot::Storage(to_view), Slot::Buffer(out)});
        struct Data {
            VkDescriptorImageInfo images[2];
            VkDescriptorBufferInfo buffer;
        } data{{{VK_NULL_HANDLE, from_view, VK_IMAGE_LAYOUT_GENERAL},
                {VK_NULL_HANDLE, to_view, VK_IMAGE_LAYOUT_GENERAL}},
               out.info()};
        VkDescriptorSetLayoutBinding bindings[3];
        for (uint32_t i = 0; i < 3; ++i) {
            bindings[i] = {
                i, i < 2 ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
        }
        VkDescriptorSetLayoutCreateInfo layout_info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .flags =
                way == 2
                    ? VkDescriptorSetLayoutCreateFlags{VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT}
                    : 0,
            .bindingCount = 3,
            .pBindings = bindings};
        VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
        ASSERT_VK(vkCreateDescriptorSetLayout(device_, &layout_info, nullptr, &set_layout));
        VkPipelineLayoutCreateInfo pipeline_layout_info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = 1,
            .pSetLayouts = &set_layout};
        VkPipelineLayout layout = VK_NULL_HANDLE;
        ASSERT_VK(vkCreatePipelineLayout(device_, &pipeline_layout_info, nullptr, &layout));
        VkComputePipelineCreateInfo pipeline_info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = pipeline.module,
                      .pName = "main"},
            .layout = layout};
        VkPipeline made = VK_NULL_HANDLE;
        ASSERT_VK(
            vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &pipeline_info, nullptr, &made));
        const VkDescriptorUpdateTemplateEntry entries[] = {
            {.dstBinding = 0,
             .descriptorCount = 2,  // runs into binding 1
             .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
             .offset = offsetof(Data, images),
             .stride = sizeof(VkDescriptorImageInfo)},
            {.dstBinding = 2,
             .descriptorCount = 1,
             .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
             .offset = offsetof(Data, buffer)}};
        VkDescriptorUpdateTemplateCreateInfo template_info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO,
            .descriptorUpdateEntryCount = 2,
            .pDescriptorUpdateEntries = entries,
            .templateType = way == 2 ? VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS
                                     : VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET,
            .descriptorSetLayout = set_layout,
            .pipelineBindPoint = VK_PIPELINE_BIND_POINT_COMPUTE,
            .pipelineLayout = layout};
        VkDescriptorUpdateTemplate update = VK_NULL_HANDLE;
        ASSERT_VK(vkCreateDescriptorUpdateTemplate(device_, &template_info, nullptr, &update));
        VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 2},
                                        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1}};
        VkDescriptorPoolCreateInfo pool_info{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = 1,
                                             .poolSizeCount = 2,
                                             .pPoolSizes = sizes};
        VkDescriptorPool pool = VK_NULL_HANDLE;
        ASSERT_VK(vkCreateDescriptorPool(device_, &pool_info, nullptr, &pool));
        VkCommandBuffer commands = Begin();
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, made);
        if (way == 2) {
            vkCmdPushDescriptorSetWithTemplateKHR(commands, update, layout, 0, &data);
        } else {
            VkDescriptorSetAllocateInfo allocate{
                .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                .descriptorPool = pool,
                .descriptorSetCount = 1,
                .pSetLayouts = &set_layout};
            VkDescriptorSet set = VK_NULL_HANDLE;
            ASSERT_VK(vkAllocateDescriptorSets(device_, &allocate, &set));
            if (way == 0) {
                vkUpdateDescriptorSetWithTemplate(device_, set, update, &data);
            } else {
                VkCopyDescriptorSet copies[3];
                for (uint32_t i = 0; i < 3; ++i) {
                    copies[i] = {.sType = VK_STRUCTURE_TYPE_COPY_DESCRIPTOR_SET,
                                 .srcSet = pipeline.set,
                                 .srcBinding = i,
                                 .dstSet = set,
                                 .dstBinding = i,
                                 .descriptorCount = 1};
                }
                vkUpdateDescriptorSets(device_, 0, nullptr, 3, copies);
            }
            vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0,
                                    nullptr);
        }
        vkCmdDispatch(commands, 3, 3, 1);
        Run(commands);
        EXPECT_TRUE(Download(to) == bytes);
        vkDestroyDescriptorPool(device_, pool, nullptr);
        vkDestroyDescriptorUpdateTemplate(device_, update, nullptr);
        vkDestroyPipeline(device_, made, nullptr);
        vkDestroyPipelineLayout(device_, layout, nullptr);
        vkDestroyDescriptorSetLayout(device_, set_layout, nullptr);
    }
}

class IndirectImageCopyTest : public ImageTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_2;
        more_extensions_ = {VK_KHR_COPY_MEMORY_INDIRECT_EXTENSION_NAME};
        more_features_ = &copies_;
        ImageTest::SetUp();
    }
    VkDeviceAddress AddressOf(const TestBuffer& buffer) {
        const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = buffer.handle};
        return vkGetBufferDeviceAddress(device_, &info) + buffer.offset;
    }

    VkPhysicalDeviceBufferDeviceAddressFeatures addresses_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
    VkPhysicalDeviceCopyMemoryIndirectFeaturesKHR copies_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COPY_MEMORY_INDIRECT_FEATURES_KHR,
        .pNext = &addresses_,
        .indirectMemoryToImageCopy = VK_TRUE};
};

// Two boxes that a command just before writes, into layers or into slices of a 3D image.
TEST_F(IndirectImageCopyTest, BoxesAreReadWhenTheCopiesRun) {
    constexpr VkBufferUsageFlags kUsage =
        VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
    for (bool is_3d : {false, true}) {
        SCOPED_TRACE(is_3d);
        const TestImage image = MakeImage({.type = is_3d ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D,
                                           .format = VK_FORMAT_R16G16_UINT,
                                           .extent = {26, 18, is_3d ? 14u : 1u},
                                           .levels = 2,
                                           .layers = is_3d ? 1u : 7u});
        HostLevel level{image.LevelExtent(1), 7, 4, Noise(image.LevelBytes(1), 1)};
        Upload(image, level.bytes, 1);
        TestBuffer texels = MakeBuffer(400, kUsage);
        const auto noise = Noise(texels.size, 5);
        std::memcpy(texels.words, noise.data(), noise.size());
        using Command = VkCopyMemoryToImageIndirectCommandKHR;
        constexpr uint32_t kStride = sizeof(Command) + 12;
        TestBuffer list = MakeBuffer(2 * kStride / 4, kUsage);
        // The first from rows and slices that are further apart than they are long. The starting
        // slice and their number are those of the subresource, for 3D images too.
        const VkImageSubresourceLayers layers[] = {{VK_IMAGE_ASPECT_COLOR_BIT, 1, 2, 3},
                                                   {VK_IMAGE_ASPECT_COLOR_BIT, 1, 6, 1}};
        const Command commands_data[] = {{.srcAddress = AddressOf(texels) + 16,
                                          .bufferRowLength = 9,
                                          .bufferImageHeight = 6,
                                          .imageSubresource = layers[0],
                                          .imageOffset = {6, 3, 0},
                                          .imageExtent = {5, 4, 1}},
                                         {.srcAddress = AddressOf(texels) + 1000,
                                          .imageSubresource = layers[1],
                                          .imageOffset = {0, 8, 0},
                                          .imageExtent = {13, 1, 1}}};
        VkCommandBuffer commands = Begin();
        for (uint32_t i = 0; i < 2; ++i) {
            vkCmdUpdateBuffer(commands, list.handle, list.offset + i * kStride, sizeof(Command),
                              &commands_data[i]);
        }
        Barrier(commands);
        const VkCopyMemoryToImageIndirectInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_COPY_MEMORY_TO_IMAGE_INDIRECT_INFO_KHR,
            .srcCopyFlags = VK_ADDRESS_COPY_DEVICE_LOCAL_BIT_KHR,
            .copyCount = 2,
            .copyAddressRange = {AddressOf(list), 2 * kStride, kStride},
            .dstImage = image.handle,
            .dstImageLayout = VK_IMAGE_LAYOUT_GENERAL,
            .pImageSubresources = layers};
        vkCmdCopyMemoryToImageIndirectKHR(commands, &info);
        Run(commands);
        for (uint32_t z = 0; z < 3; ++z) {
            for (uint32_t y = 0; y < 4; ++y) {
                std::memcpy(level.At(6, 3 + y, 2 + z), &noise[16 + (z * 6 + y) * 9 * 4], 5 * 4);
            }
        }
        std::memcpy(level.At(0, 8, 6), &noise[1000], 13 * 4);
        EXPECT_TRUE(Download(image, 1) == level.bytes);
    }
}

// Blocks are copied whole; what hangs over the edge of a small level is, too.
TEST_F(IndirectImageCopyTest, BoxesOfBlocks) {
    TestImage image{.spec = {.format = VK_FORMAT_EAC_R11_UNORM_BLOCK, .extent = {18, 10, 1}}};
    const VkImageCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = image.spec.format,
        .extent = image.spec.extent,
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    CreateBound(info, image);
    ToGeneral(image.handle, VK_IMAGE_ASPECT_COLOR_BIT);
    constexpr VkBufferUsageFlags kUsage =
        VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
    TestBuffer blocks = MakeBuffer(16, kUsage);
    TestBuffer out = MakeBuffer(2 * 5 * 3);
    std::iota(blocks.span().begin(), blocks.span().end(), 1u);
    TestBuffer list = MakeBuffer(sizeof(VkCopyMemoryToImageIndirectCommandKHR) / 4, kUsage);
    const VkImageSubresourceLayers layers{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    // Two blocks and a part of a third, in the second and third row of blocks.
    const VkCopyMemoryToImageIndirectCommandKHR command{.srcAddress = AddressOf(blocks),
                                                        .imageSubresource = layers,
                                                        .imageOffset = {8, 4, 0},
                                                        .imageExtent = {10, 6, 1}};
    std::memcpy(list.words, &command, sizeof(command));
    VkCommandBuffer commands = Begin();
    const VkCopyMemoryToImageIndirectInfoKHR copy{
        .sType = VK_STRUCTURE_TYPE_COPY_MEMORY_TO_IMAGE_INDIRECT_INFO_KHR,
        .srcCopyFlags = VK_ADDRESS_COPY_DEVICE_LOCAL_BIT_KHR,
        .copyCount = 1,
        .copyAddressRange = {AddressOf(list), sizeof(command), sizeof(command)},
        .dstImage = image.handle,
        .dstImageLayout = VK_IMAGE_LAYOUT_GENERAL,
        .pImageSubresources = &layers};
    vkCmdCopyMemoryToImageIndirectKHR(commands, &copy);
    Barrier(commands);
    const VkBufferImageCopy region{
        .bufferOffset = out.offset, .imageSubresource = layers, .imageExtent = image.spec.extent};
    vkCmdCopyImageToBuffer(commands, image.handle, VK_IMAGE_LAYOUT_GENERAL, out.handle, 1, &region);
    Run(commands);
    for (uint32_t i = 0; i < 30; ++i) {
        const uint32_t x = i / 2 % 5;
        const uint32_t y = i / 10;
        const bool copied = x >= 2 && y >= 1;
        EXPECT_EQ(out.words[i], copied ? 1 + ((y - 1) * 3 + x - 2) * 2 + i % 2 : 0) << i;
    }
}

}  // namespace
}  // namespace fornax::test
