// Images of seeded texels, copied by one dispatch.
//
// Texels are multiples of four, so that the mean of the texels around a corner, which a linear
// filter is asked for, is exact.
#include "tools/bench/image_workloads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include <volk.h>

#include "runtime/vulkan/result.h"
#include "tools/bench/half_bits.h"
#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/image_copy_r32f_buffer.spv.h"
#include "tools/bench/shaders/image_copy_r32f_fetch2.spv.h"
#include "tools/bench/shaders/image_copy_r32f_fetch3.spv.h"
#include "tools/bench/shaders/image_copy_r32f_sample2.spv.h"
#include "tools/bench/shaders/image_copy_r32f_sample3.spv.h"
#include "tools/bench/shaders/image_copy_r32f_storage2.spv.h"
#include "tools/bench/shaders/image_copy_r32f_storage3.spv.h"
#include "tools/bench/shaders/image_copy_rgba16f_buffer.spv.h"
#include "tools/bench/shaders/image_copy_rgba16f_fetch2.spv.h"
#include "tools/bench/shaders/image_copy_rgba16f_fetch3.spv.h"
#include "tools/bench/shaders/image_copy_rgba16f_sample2.spv.h"
#include "tools/bench/shaders/image_copy_rgba16f_sample3.spv.h"
#include "tools/bench/shaders/image_copy_rgba16f_storage2.spv.h"
#include "tools/bench/shaders/image_copy_rgba16f_storage3.spv.h"
#include "tools/bench/shaders/image_copy_rgba32f_buffer.spv.h"
#include "tools/bench/shaders/image_copy_rgba32f_fetch2.spv.h"
#include "tools/bench/shaders/image_copy_rgba32f_fetch3.spv.h"
#include "tools/bench/shaders/image_copy_rgba32f_sample2.spv.h"
#include "tools/bench/shaders/image_copy_rgba32f_sample3.spv.h"
#include "tools/bench/shaders/image_copy_rgba32f_storage2.spv.h"
#include "tools/bench/shaders/image_copy_rgba32f_storage3.spv.h"
#include "tools/bench/shaders/image_copy_rgba8_buffer.spv.h"
#include "tools/bench/shaders/image_copy_rgba8_fetch2.spv.h"
#include "tools/bench/shaders/image_copy_rgba8_fetch3.spv.h"
#include "tools/bench/shaders/image_copy_rgba8_sample2.spv.h"
#include "tools/bench/shaders/image_copy_rgba8_sample3.spv.h"
#include "tools/bench/shaders/image_copy_rgba8_storage2.spv.h"
#include "tools/bench/shaders/image_copy_rgba8_storage3.spv.h"

namespace fornax::bench {
namespace {

using Words = std::span<const uint32_t>;

// The code of one format: of a buffer, then of storage, fetched and sampled images with two and
// three dimensions.
struct FormatCode {
    VkFormat format;
    uint32_t components;
    uint32_t component_bytes;
    Words buffer;
    std::array<Words, 3> flat;
    std::array<Words, 3> deep;
};

const FormatCode& CodeOf(ImageFormat format) {
    static const FormatCode codes[] = {
        {VK_FORMAT_R8G8B8A8_UNORM,
         4,
         1,
         spirv::kImageCopyRgba8Buffer,
         {spirv::kImageCopyRgba8Storage2, spirv::kImageCopyRgba8Fetch2,
          spirv::kImageCopyRgba8Sample2},
         {spirv::kImageCopyRgba8Storage3, spirv::kImageCopyRgba8Fetch3,
          spirv::kImageCopyRgba8Sample3}},
        {VK_FORMAT_R16G16B16A16_SFLOAT,
         4,
         2,
         spirv::kImageCopyRgba16fBuffer,
         {spirv::kImageCopyRgba16fStorage2, spirv::kImageCopyRgba16fFetch2,
          spirv::kImageCopyRgba16fSample2},
         {spirv::kImageCopyRgba16fStorage3, spirv::kImageCopyRgba16fFetch3,
          spirv::kImageCopyRgba16fSample3}},
        {VK_FORMAT_R32G32B32A32_SFLOAT,
         4,
         4,
         spirv::kImageCopyRgba32fBuffer,
         {spirv::kImageCopyRgba32fStorage2, spirv::kImageCopyRgba32fFetch2,
          spirv::kImageCopyRgba32fSample2},
         {spirv::kImageCopyRgba32fStorage3, spirv::kImageCopyRgba32fFetch3,
          spirv::kImageCopyRgba32fSample3}},
        {VK_FORMAT_R32_SFLOAT,
         1,
         4,
         spirv::kImageCopyR32fBuffer,
         {spirv::kImageCopyR32fStorage2, spirv::kImageCopyR32fFetch2, spirv::kImageCopyR32fSample2},
         {spirv::kImageCopyR32fStorage3, spirv::kImageCopyR32fFetch3,
          spirv::kImageCopyR32fSample3}},
    };
    return codes[static_cast<size_t>(format)];
}

struct Constants {
    uint32_t extent[4];
    float shift[4];
};

class ImageCopy : public Workload {
  public:
    ImageCopy(Device& device, const ImageCase& image_case)
        : device_(device), case_(image_case), code_(CodeOf(image_case.format)) {}
    ~ImageCopy() override;

    Status Init(uint32_t side);
    Status WarmUp() override;
    Result<double> Run() override { return device_.Submit(run_); }
    Status Verify() override;

  private:
    struct Texels {
        VkImage image = VK_NULL_HANDLE;
        VkDeviceMemory memory = VK_NULL_HANDLE;
        VkImageView view = VK_NULL_HANDLE;
    };
    bool is_buffer() const { return case_.source == ImageSource::kBuffer; }
    bool is_sampled() const { return !is_buffer() && case_.source != ImageSource::kStorage; }
    uint32_t texel_count() const { return extent_[0] * extent_[1] * extent_[2]; }
    Words Spirv() const;
    float Value(uint32_t texel, uint32_t component) const;
    float Expected(uint32_t texel, uint32_t component) const;
    void Fill(Buffer& buffer) const;
    float Stored(const Buffer& buffer, uint32_t element) const;

    Status CreateTexels(Texels& texels, VkImageUsageFlags usage);
    Status CreatePipeline();
    Status CreateSet();
    Status RecordCopies();
    void RecordTransfer(VkCommandBuffer commands,
                        const Buffer& buffer,
                        const Texels& texels,
                        bool up);
    void RecordLayout(VkCommandBuffer commands, const Texels& texels);
    Status RecordRun();

    Device& device_;
    const ImageCase case_;
    const FormatCode& code_;
    std::array<uint32_t, 3> extent_ = {1, 1, 1};
    Buffer source_;
    Buffer destination_;
    std::array<Texels, 2> images_;
    VkSampler sampler_ = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkDescriptorSet set_ = VK_NULL_HANDLE;
    VkCommandBuffer run_ = VK_NULL_HANDLE;
    VkCommandBuffer download_ = VK_NULL_HANDLE;
};

ImageCopy::~ImageCopy() {
    const VkDevice device = device_.handle();
    vkDestroyDescriptorPool(device, pool_, nullptr);
    vkDestroyPipeline(device, pipeline_, nullptr);
    vkDestroyPipelineLayout(device, layout_, nullptr);
    vkDestroyDescriptorSetLayout(device, set_layout_, nullptr);
    vkDestroySampler(device, sampler_, nullptr);
    for (const Texels& texels : images_) {
        vkDestroyImageView(device, texels.view, nullptr);
        vkDestroyImage(device, texels.image, nullptr);
        vkFreeMemory(device, texels.memory, nullptr);
    }
}

Status ImageCopy::WarmUp() {
    const Result<double> seconds = Run();
    return seconds.ok() ? OkStatus() : Status(seconds.error());
}

Words ImageCopy::Spirv() const {
    const auto& codes = case_.dimensions == 3 ? code_.deep : code_.flat;
    switch (case_.source) {
        case ImageSource::kBuffer:
            return code_.buffer;
        case ImageSource::kStorage:
            return codes[0];
        case ImageSource::kFetch:
            return codes[1];
        default:
            return codes[2];
    }
}

// 0 to 252, which eight bits hold.
float ImageCopy::Value(uint32_t texel, uint32_t component) const {
    return static_cast<float>((texel * 2654435761u >> 24 >> component) & 63) * 4;
}

// A linear filter halfway between texels takes the mean, with the edge's texel for what is outside.
float ImageCopy::Expected(uint32_t texel, uint32_t component) const {
    if (case_.source != ImageSource::kLinear) {
        return Value(texel, component);
    }
    const uint32_t at[] = {texel % extent_[0], texel / extent_[0] % extent_[1],
                           texel / (extent_[0] * extent_[1])};
    const uint32_t taps = 1u << case_.dimensions;
    float sum = 0;
    for (uint32_t tap = 0; tap < taps; ++tap) {
        uint32_t place[3] = {};
        for (uint32_t axis = 0; axis < 3; ++axis) {
            place[axis] = std::min(at[axis] + (tap >> axis & 1), extent_[axis] - 1);
        }
        sum += Value((place[2] * extent_[1] + place[1]) * extent_[0] + place[0], component);
    }
    return sum / static_cast<float>(taps);
}

void ImageCopy::Fill(Buffer& buffer) const {
    for (uint32_t i = 0; i < texel_count() * code_.components; ++i) {
        const float value = Value(i / code_.components, i % code_.components);
        switch (code_.component_bytes) {
            case 1:
                buffer.As<uint8_t>()[i] = static_cast<uint8_t>(value);
                break;
            case 2:
                buffer.As<uint16_t>()[i] = HalfBits(value);
                break;
            default:
                buffer.As<float>()[i] = value;
                break;
        }
    }
}

float ImageCopy::Stored(const Buffer& buffer, uint32_t element) const {
    switch (code_.component_bytes) {
        case 1:
            return buffer.As<uint8_t>()[element];
        case 2:
            return HalfValue(buffer.As<uint16_t>()[element]);
        default:
            return buffer.As<float>()[element];
    }
}

Status ImageCopy::Init(uint32_t side) {
    constexpr uint32_t kSlices = 16;
    extent_ = case_.dimensions == 3 ? std::array<uint32_t, 3>{side / 4, side / 4, kSlices}
                                    : std::array<uint32_t, 3>{side, side, 1};
    const size_t bytes = size_t{texel_count()} * code_.components * code_.component_bytes;
    FORNAX_ASSIGN_OR_RETURN(source_, device_.CreateBuffer(bytes));
    FORNAX_ASSIGN_OR_RETURN(destination_, device_.CreateBuffer(bytes));
    Fill(source_);
    if (!is_buffer()) {
        FORNAX_RETURN_IF_ERROR(CreateTexels(
            images_[0],
            VK_IMAGE_USAGE_TRANSFER_DST_BIT |
                (is_sampled() ? VK_IMAGE_USAGE_SAMPLED_BIT : VK_IMAGE_USAGE_STORAGE_BIT)));
        FORNAX_RETURN_IF_ERROR(
            CreateTexels(images_[1], VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_STORAGE_BIT));
    }
    FORNAX_RETURN_IF_ERROR(CreatePipeline());
    FORNAX_RETURN_IF_ERROR(CreateSet());
    FORNAX_RETURN_IF_ERROR(RecordCopies());
    return RecordRun();
}

Status ImageCopy::CreateTexels(Texels& texels, VkImageUsageFlags usage) {
    const VkDevice device = device_.handle();
    const bool deep = case_.dimensions == 3;
    VkImageCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.imageType = deep ? VK_IMAGE_TYPE_3D : VK_IMAGE_TYPE_2D;
    info.format = code_.format;
    info.extent = {extent_[0], extent_[1], extent_[2]};
    info.mipLevels = 1;
    info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.tiling = VK_IMAGE_TILING_OPTIMAL;
    info.usage = usage;
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    info.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    FORNAX_RETURN_IF_FAILED("vkCreateImage", vkCreateImage(device, &info, nullptr, &texels.image));
    VkMemoryRequirements needs = {};
    vkGetImageMemoryRequirements(device, texels.image, &needs);
    VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = static_cast<uint32_t>(std::countr_zero(needs.memoryTypeBits));
    FORNAX_RETURN_IF_FAILED("vkAllocateMemory",
                            vkAllocateMemory(device, &allocate, nullptr, &texels.memory));
    FORNAX_RETURN_IF_FAILED("vkBindImageMemory",
                            vkBindImageMemory(device, texels.image, texels.memory, 0));
    VkImageViewCreateInfo view = {VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view.image = texels.image;
    view.viewType = deep ? VK_IMAGE_VIEW_TYPE_3D : VK_IMAGE_VIEW_TYPE_2D;
    view.format = code_.format;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    FORNAX_RETURN_IF_FAILED("vkCreateImageView",
                            vkCreateImageView(device, &view, nullptr, &texels.view));
    return OkStatus();
}

Status ImageCopy::CreatePipeline() {
    const VkDevice device = device_.handle();
    const VkDescriptorType types[] = {
        is_buffer()    ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
        : is_sampled() ? VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER
                       : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
        is_buffer() ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE};
    VkDescriptorSetLayoutBinding bindings[2] = {};
    VkDescriptorPoolSize sizes[2] = {};
    for (uint32_t i = 0; i < 2; ++i) {
        bindings[i] = {i, types[i], 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
        sizes[i] = {types[i], 1};
    }
    VkDescriptorSetLayoutCreateInfo set_info = {
        VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    set_info.bindingCount = 2;
    set_info.pBindings = bindings;
    FORNAX_RETURN_IF_FAILED("vkCreateDescriptorSetLayout",
                            vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout_));
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Constants)};
    VkPipelineLayoutCreateInfo layout_info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    layout_info.setLayoutCount = 1;
    layout_info.pSetLayouts = &set_layout_;
    layout_info.pushConstantRangeCount = 1;
    layout_info.pPushConstantRanges = &range;
    FORNAX_RETURN_IF_FAILED("vkCreatePipelineLayout",
                            vkCreatePipelineLayout(device, &layout_info, nullptr, &layout_));
    const Words words = Spirv();
    VkShaderModuleCreateInfo module_info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    module_info.codeSize = words.size_bytes();
    module_info.pCode = words.data();
    VkShaderModule module = VK_NULL_HANDLE;
    FORNAX_RETURN_IF_FAILED("vkCreateShaderModule",
                            vkCreateShaderModule(device, &module_info, nullptr, &module));
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.layout = layout_;
    const VkResult result =
        vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
    vkDestroyShaderModule(device, module, nullptr);
    FORNAX_RETURN_IF_FAILED("vkCreateComputePipelines", result);

    VkDescriptorPoolCreateInfo pool_info = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool_info.maxSets = 1;
    pool_info.poolSizeCount = 2;
    pool_info.pPoolSizes = sizes;
    FORNAX_RETURN_IF_FAILED("vkCreateDescriptorPool",
                            vkCreateDescriptorPool(device, &pool_info, nullptr, &pool_));
    return OkStatus();
}

Status ImageCopy::CreateSet() {
    const VkDevice device = device_.handle();
    VkSamplerCreateInfo sampler_info = {VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    const bool linear = case_.source == ImageSource::kLinear;
    sampler_info.magFilter = linear ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
    sampler_info.minFilter = sampler_info.magFilter;
    sampler_info.addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
    sampler_info.addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
    sampler_info.addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
    FORNAX_RETURN_IF_FAILED("vkCreateSampler",
                            vkCreateSampler(device, &sampler_info, nullptr, &sampler_));
    VkDescriptorSetAllocateInfo allocate = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &set_layout_;
    FORNAX_RETURN_IF_FAILED("vkAllocateDescriptorSets",
                            vkAllocateDescriptorSets(device, &allocate, &set_));
    const Buffer* buffers[] = {&source_, &destination_};
    VkDescriptorBufferInfo buffer_infos[2] = {};
    VkDescriptorImageInfo image_infos[2] = {};
    VkWriteDescriptorSet writes[2] = {};
    for (uint32_t i = 0; i < 2; ++i) {
        buffer_infos[i] = {buffers[i]->handle(), 0, VK_WHOLE_SIZE};
        image_infos[i] = {sampler_, images_[i].view, VK_IMAGE_LAYOUT_GENERAL};
        writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
        writes[i].dstSet = set_;
        writes[i].dstBinding = i;
        writes[i].descriptorCount = 1;
        writes[i].descriptorType = is_buffer() ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                   : i == 0 && is_sampled()
                                       ? VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER
                                       : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
        writes[i].pBufferInfo = &buffer_infos[i];
        writes[i].pImageInfo = &image_infos[i];
    }
    vkUpdateDescriptorSets(device, 2, writes, 0, nullptr);
    return OkStatus();
}

void ImageCopy::RecordLayout(VkCommandBuffer commands, const Texels& texels) {
    VkImageMemoryBarrier barrier = {VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
    barrier.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = texels.image;
    barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                         VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                         0, nullptr, 0, nullptr, 1, &barrier);
}

void ImageCopy::RecordTransfer(VkCommandBuffer commands,
                               const Buffer& buffer,
                               const Texels& texels,
                               bool up) {
    VkBufferImageCopy region = {};
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {extent_[0], extent_[1], extent_[2]};
    if (up) {
        vkCmdCopyBufferToImage(commands, buffer.handle(), texels.image, VK_IMAGE_LAYOUT_GENERAL, 1,
                               &region);
    } else {
        vkCmdCopyImageToBuffer(commands, texels.image, VK_IMAGE_LAYOUT_GENERAL, buffer.handle(), 1,
                               &region);
    }
}

// What brings the texels in, which happens here, and what brings them out.
Status ImageCopy::RecordCopies() {
    if (is_buffer()) {
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(VkCommandBuffer upload, device_.BeginCommands());
    for (const Texels& texels : images_) {
        RecordLayout(upload, texels);
    }
    RecordTransfer(upload, source_, images_[0], /*up=*/true);
    FORNAX_RETURN_IF_ERROR(device_.EndCommands(upload));
    const Result<double> uploaded = device_.Submit(upload);
    if (!uploaded.ok()) {
        return uploaded.error();
    }
    FORNAX_ASSIGN_OR_RETURN(download_, device_.BeginCommands());
    RecordTransfer(download_, destination_, images_[1], /*up=*/false);
    return device_.EndCommands(download_);
}

Status ImageCopy::RecordRun() {
    FORNAX_ASSIGN_OR_RETURN(run_, device_.BeginCommands());
    const float shift = case_.source == ImageSource::kLinear ? 0.5f : 0.0f;
    const Constants constants = {{extent_[0], extent_[1], extent_[2], 0}, {shift, shift, shift, 0}};
    const bool deep = case_.dimensions == 3 && !is_buffer();
    const uint32_t group[] = {16, deep ? 8u : 16u, deep ? 2u : 1u};
    uint32_t groups[3] = {};
    for (uint32_t i = 0; i < 3; ++i) {
        groups[i] = (extent_[i] + group[i] - 1) / group[i];
    }
    vkCmdBindPipeline(run_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
    vkCmdBindDescriptorSets(run_, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
    vkCmdPushConstants(run_, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                       &constants);
    vkCmdDispatch(run_, groups[0], groups[1], groups[2]);
    return device_.EndCommands(run_);
}

Status ImageCopy::Verify() {
    if (!is_buffer()) {
        const Result<double> downloaded = device_.Submit(download_);
        if (!downloaded.ok()) {
            return downloaded.error();
        }
    }
    // Filters may have few bits ("subTexelPrecisionBits"), and eight bits are rounded.
    const float tolerance = case_.source == ImageSource::kLinear ? 1.0f : 0.0f;
    for (uint32_t i = 0; i < texel_count() * code_.components; ++i) {
        const float expected = Expected(i / code_.components, i % code_.components);
        const float actual = Stored(destination_, i);
        if (!(std::abs(actual - expected) <= tolerance)) {
            return WrongResult("image copy", i, actual, expected);
        }
    }
    return OkStatus();
}

}  // namespace

std::string ImageTitle(const ImageCase& image_case) {
    static constexpr const char* kFormats[] = {"rgba8", "rgba16f", "rgba32f", "r32f"};
    static constexpr const char* kSources[] = {"buffer", "storage image", "texelFetch",
                                               "nearest texture", "linear texture"};
    std::string title = std::string(kFormats[static_cast<size_t>(image_case.format)]) + " copy, " +
                        kSources[static_cast<size_t>(image_case.source)];
    return image_case.source == ImageSource::kBuffer
               ? title
               : title + ", " + std::to_string(image_case.dimensions) + "D";
}

uint32_t TexelBytes(ImageFormat format) {
    return CodeOf(format).components * CodeOf(format).component_bytes;
}

WorkloadResult CreateImageCopy(Device& device, const ImageCase& image_case, uint32_t side) {
    auto workload = std::make_unique<ImageCopy>(device, image_case);
    FORNAX_RETURN_IF_ERROR(workload->Init(side));
    return std::unique_ptr<Workload>(std::move(workload));
}

}  // namespace fornax::bench
