// The fixture of the tests of images.
#include "tests/loader/image_fixture.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/loader/texel_reference.h"

namespace fornax::test {

VkExtent3D TestImage::LevelExtent(uint32_t level) const {
    return {std::max(1u, spec.extent.width >> level), std::max(1u, spec.extent.height >> level),
            std::max(1u, spec.extent.depth >> level)};
}

size_t TestImage::LevelBytes(uint32_t level) const {
    const VkExtent3D extent = LevelExtent(level);
    return size_t{extent.width} * extent.height * extent.depth * spec.layers * texel_bytes;
}

std::vector<uint8_t> Noise(size_t bytes, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> noise(bytes);
    for (uint8_t& byte : noise) {
        byte = static_cast<uint8_t>(random());
    }
    return noise;
}

void ImageTest::TearDown() {
    // Layers of distributions do not know the formats of VK_KHR_maintenance5.
    std::erase_if(messages_, [](const std::string& message) {
        return message.find("format-parameter") != std::string::npos &&
               message.find("(100047000") != std::string::npos;
    });
    VulkanTest::TearDown();
}

TestImage ImageTest::MakeImage(const ImageSpec& spec) {
    TestImage image{.spec = spec};
    const TexelReference* format = FindTexelReference(spec.format);
    EXPECT_NE(format, nullptr);
    image.texel_bytes = format->bytes();
    if (format->depth) {
        image.aspect = VK_IMAGE_ASPECT_DEPTH_BIT;
    }
    if (format->stencil) {
        image.aspect = VK_IMAGE_ASPECT_STENCIL_BIT;
    }
    VkImageCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .flags = spec.flags,
        .imageType = spec.type,
        .format = spec.format,
        .extent = spec.extent,
        .mipLevels = spec.levels,
        .arrayLayers = spec.layers,
        .samples = spec.samples,
        .tiling = spec.tiling,
        .usage = spec.usage | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    EXPECT_VK(vkCreateImage(device_, &info, nullptr, &image.handle));
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image.handle, &needs);
    VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .allocationSize = needs.size + needs.alignment};
    EXPECT_VK(vkAllocateMemory(device_, &allocate, nullptr, &image.memory));
    EXPECT_VK(vkBindImageMemory(device_, image.handle, image.memory, needs.alignment));
    AtEnd([this, image] {
        vkDestroyImage(device_, image.handle, nullptr);
        vkFreeMemory(device_, image.memory, nullptr);
    });
    ToGeneral(image.handle, image.aspect);
    return image;
}

void ImageTest::EnableYoungFormats() {
    api_version_ = VK_API_VERSION_1_3;
    more_extensions_.push_back(VK_EXT_4444_FORMATS_EXTENSION_NAME);
    more_extensions_.push_back(VK_KHR_MAINTENANCE_5_EXTENSION_NAME);
    maintenance5_.pNext = more_features_;
    more_features_ = &formats_4444_;
}

void ImageTest::CreateBound(const VkImageCreateInfo& info, TestImage& image) {
    ASSERT_VK(vkCreateImage(device_, &info, nullptr, &image.handle));
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image.handle, &needs);
    const VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = needs.size};
    ASSERT_VK(vkAllocateMemory(device_, &allocate, nullptr, &image.memory));
    ASSERT_VK(vkBindImageMemory(device_, image.handle, image.memory, 0));
    AtEnd([this, handle = image.handle, memory = image.memory] {
        vkDestroyImage(device_, handle, nullptr);
        vkFreeMemory(device_, memory, nullptr);
    });
}

void ImageTest::ToGeneral(VkImage image, VkImageAspectFlags aspects) {
    VkCommandBuffer commands = Begin();
    const VkImageMemoryBarrier barrier{
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
        .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED,
        .newLayout = VK_IMAGE_LAYOUT_GENERAL,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {aspects, 0, VK_REMAINING_MIP_LEVELS, 0, VK_REMAINING_ARRAY_LAYERS}};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0, nullptr, 1,
                         &barrier);
    Run(commands);
}

VkImageView ImageTest::MakeView(const TestImage& image, VkImageViewCreateInfo info) {
    info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
    info.image = image.handle;
    if (info.format == VK_FORMAT_UNDEFINED) {
        info.format = image.spec.format;
    }
    if (info.subresourceRange.levelCount == 0) {
        info.subresourceRange = {image.aspect, 0, VK_REMAINING_MIP_LEVELS, 0,
                                 VK_REMAINING_ARRAY_LAYERS};
    }
    VkImageView view = VK_NULL_HANDLE;
    EXPECT_VK(vkCreateImageView(device_, &info, nullptr, &view));
    AtEnd([this, view] { vkDestroyImageView(device_, view, nullptr); });
    return view;
}

VkImageView ImageTest::MakeView(const TestImage& image, VkImageViewType type) {
    return MakeView(image, VkImageViewCreateInfo{.viewType = type});
}

VkBufferView ImageTest::MakeTexels(const TestBuffer& buffer, VkFormat format) {
    VkBufferViewCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                .buffer = buffer.handle,
                                .format = format,
                                .offset = buffer.offset,
                                .range = buffer.size};
    VkBufferView view = VK_NULL_HANDLE;
    EXPECT_VK(vkCreateBufferView(device_, &info, nullptr, &view));
    AtEnd([this, view] { vkDestroyBufferView(device_, view, nullptr); });
    return view;
}

VkSampler ImageTest::MakeSampler(VkSamplerCreateInfo info) {
    info.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO;
    VkSampler sampler = VK_NULL_HANDLE;
    EXPECT_VK(vkCreateSampler(device_, &info, nullptr, &sampler));
    AtEnd([this, sampler] { vkDestroySampler(device_, sampler, nullptr); });
    return sampler;
}

void ImageTest::Upload(const TestImage& image, std::span<const uint8_t> bytes, uint32_t level) {
    ASSERT_EQ(bytes.size(), image.LevelBytes(level));
    const Staging staging = MakeStaging(image, bytes.size());
    std::ranges::copy(bytes, staging.bytes);
    VkCommandBuffer commands = Begin();
    VkBufferImageCopy region{.bufferOffset = staging.offset,
                             .imageSubresource = {image.aspect, level, 0, image.spec.layers},
                             .imageExtent = image.LevelExtent(level)};
    vkCmdCopyBufferToImage(commands, staging.buffer, image.handle, VK_IMAGE_LAYOUT_GENERAL, 1,
                           &region);
    Run(commands);
}

std::vector<uint8_t> ImageTest::Download(const TestImage& image, uint32_t level) {
    const size_t size = image.LevelBytes(level);
    const Staging staging = MakeStaging(image, size);
    VkCommandBuffer commands = Begin();
    VkBufferImageCopy region{.bufferOffset = staging.offset,
                             .imageSubresource = {image.aspect, level, 0, image.spec.layers},
                             .imageExtent = image.LevelExtent(level)};
    vkCmdCopyImageToBuffer(commands, image.handle, VK_IMAGE_LAYOUT_GENERAL, staging.buffer, 1,
                           &region);
    Run(commands);
    return {staging.bytes, staging.bytes + size};
}

ImageTest::Staging ImageTest::MakeStaging(const TestImage& image, size_t size) {
    const uint32_t texel = image.texel_bytes;
    const TestBuffer buffer = MakeBuffer((size + texel + 3) / 4);
    // VUID-vkCmdCopyBufferToImage-dstImage-07975.
    const VkDeviceSize offset = (buffer.offset + texel - 1) / texel * texel;
    return {buffer.handle, offset,
            reinterpret_cast<uint8_t*>(buffer.words) + (offset - buffer.offset)};
}

void ImageTest::WriteLinear(const TestImage& image, std::span<const uint8_t> bytes) {
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image.handle, &needs);
    void* mapped = nullptr;
    ASSERT_VK(vkMapMemory(device_, image.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    auto* start = static_cast<uint8_t*>(mapped) + needs.alignment;
    const size_t row = size_t{image.spec.extent.width} * image.texel_bytes;
    const uint8_t* from = bytes.data();
    for (uint32_t layer = 0; layer < image.spec.layers; ++layer) {
        const VkImageSubresource subresource{image.aspect, 0, layer};
        VkSubresourceLayout layout;
        vkGetImageSubresourceLayout(device_, image.handle, &subresource, &layout);
        for (uint32_t y = 0; y < image.spec.extent.height; ++y, from += row) {
            std::memcpy(start + layout.offset + y * layout.rowPitch, from, row);
        }
    }
}

TestPipeline ImageTest::MakeImagePipeline(std::span<const uint32_t> spirv,
                                          const std::vector<Slot>& bindings) {
    std::vector<std::vector<Slot>> single;
    for (const Slot& slot : bindings) {
        single.push_back({slot});
    }
    return MakeImagePipeline(spirv, single);
}

void ImageTest::WriteSlots(VkDescriptorSet set, const std::vector<std::vector<Slot>>& bindings) {
    for (uint32_t i = 0; i < bindings.size(); ++i) {
        for (uint32_t k = 0; k < bindings[i].size(); ++k) {
            const Slot& slot = bindings[i][k];
            // VUID-VkWriteDescriptorSet-descriptorType-02752.
            if (slot.type == VK_DESCRIPTOR_TYPE_SAMPLER && slot.immutable) {
                continue;
            }
            const VkDescriptorBufferInfo buffer = slot.buffer.info();
            VkWriteDescriptorSet write{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = set,
                                       .dstBinding = i,
                                       .dstArrayElement = k,
                                       .descriptorCount = 1,
                                       .descriptorType = slot.type,
                                       .pImageInfo = &slot.image,
                                       .pBufferInfo = &buffer,
                                       .pTexelBufferView = &slot.texels};
            vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
        }
    }
}

TestPipeline ImageTest::MakeImagePipeline(std::span<const uint32_t> spirv,
                                          const std::vector<std::vector<Slot>>& bindings) {
    TestPipeline made;
    VkShaderModuleCreateInfo module{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                    .codeSize = spirv.size_bytes(),
                                    .pCode = spirv.data()};
    EXPECT_VK(vkCreateShaderModule(device_, &module, nullptr, &made.module));
    std::vector<VkDescriptorSetLayoutBinding> layouts;
    std::vector<VkDescriptorPoolSize> sizes;
    std::vector<std::vector<VkSampler>> immutable(bindings.size());
    for (uint32_t i = 0; i < bindings.size(); ++i) {
        const auto count = static_cast<uint32_t>(bindings[i].size());
        for (const Slot& slot : bindings[i]) {
            if (slot.immutable) {
                immutable[i].push_back(slot.immutable);
            }
        }
        layouts.push_back({i, bindings[i][0].type, count, VK_SHADER_STAGE_COMPUTE_BIT,
                           immutable[i].empty() ? nullptr : immutable[i].data()});
        sizes.push_back({bindings[i][0].type, count});
    }
    VkDescriptorSetLayoutCreateInfo set_layout{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = static_cast<uint32_t>(layouts.size()),
        .pBindings = layouts.data()};
    const std::vector<VkDescriptorBindingFlags> flags(layouts.size(),
                                                      VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT);
    VkDescriptorSetLayoutBindingFlagsCreateInfo binding_flags{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO,
        .bindingCount = static_cast<uint32_t>(flags.size()),
        .pBindingFlags = flags.data()};
    if (update_after_bind_) {
        set_layout.pNext = &binding_flags;
        set_layout.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_UPDATE_AFTER_BIND_POOL_BIT;
    }
    EXPECT_VK(vkCreateDescriptorSetLayout(device_, &set_layout, nullptr, &made.set_layout));
    VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
    VkPipelineLayoutCreateInfo layout{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                      .setLayoutCount = 1,
                                      .pSetLayouts = &made.set_layout,
                                      .pushConstantRangeCount = 1,
                                      .pPushConstantRanges = &range};
    EXPECT_VK(vkCreatePipelineLayout(device_, &layout, nullptr, &made.layout));
    VkComputePipelineCreateInfo pipeline{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = made.module,
                  .pName = "main"},
        .layout = made.layout};
    EXPECT_VK(
        vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &pipeline, nullptr, &made.pipeline));
    VkDescriptorPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                    .maxSets = 1,
                                    .poolSizeCount = static_cast<uint32_t>(sizes.size()),
                                    .pPoolSizes = sizes.data()};
    if (update_after_bind_) {
        pool.flags = VK_DESCRIPTOR_POOL_CREATE_UPDATE_AFTER_BIND_BIT;
    }
    EXPECT_VK(vkCreateDescriptorPool(device_, &pool, nullptr, &made.pool));
    VkDescriptorSetAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                         .descriptorPool = made.pool,
                                         .descriptorSetCount = 1,
                                         .pSetLayouts = &made.set_layout};
    EXPECT_VK(vkAllocateDescriptorSets(device_, &allocate, &made.set));
    WriteSlots(made.set, bindings);
    AtEnd([this, made] {
        vkDestroyDescriptorPool(device_, made.pool, nullptr);
        vkDestroyPipeline(device_, made.pipeline, nullptr);
        vkDestroyPipelineLayout(device_, made.layout, nullptr);
        vkDestroyDescriptorSetLayout(device_, made.set_layout, nullptr);
        vkDestroyShaderModule(device_, made.module, nullptr);
    });
    return made;
}

}  // namespace fornax::test
