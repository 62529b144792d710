// Images: what can be created, their layout in memory, binding and the queries about them.
#include "driver/image.h"

#include <algorithm>

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/device_memory.h"
#include "driver/entry_point.h"
#include "driver/external_memory.h"
#include "driver/limits.h"
#include "driver/memory_report.h"

namespace fornax::driver {
namespace {

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

// "Effective create flags" and usages: those of VK_KHR_extended_flags where they are in the chain,
// else the older members. The bits are the same.
struct ImageUses {
    VkImageCreateFlags2KHR flags;
    VkImageUsageFlags2KHR usage;
    VkImageUsageFlags2KHR stencil_usage;
};

template <typename Info>
ImageUses UsesOf(const Info& info) {
    ImageUses uses{.flags = info.flags, .usage = info.usage, .stencil_usage = 0};
    if (const auto* flags = FindInChain<VkImageCreateFlags2CreateInfoKHR>(
            info.pNext, VK_STRUCTURE_TYPE_IMAGE_CREATE_FLAGS_2_CREATE_INFO_KHR)) {
        uses.flags = flags->flags;
    }
    if (const auto* usage = FindInChain<VkImageUsageFlags2CreateInfoKHR>(
            info.pNext, VK_STRUCTURE_TYPE_IMAGE_USAGE_FLAGS_2_CREATE_INFO_KHR)) {
        uses.usage = usage->usage;
    }
    // Usages of stencil values may be others.
    uses.stencil_usage = uses.usage;
    if (const auto* stencil = FindInChain<VkImageStencilUsageCreateInfo>(
            info.pNext, VK_STRUCTURE_TYPE_IMAGE_STENCIL_USAGE_CREATE_INFO)) {
        uses.stencil_usage = stencil->stencilUsage;
    }
    if (const auto* stencil = FindInChain<VkImageStencilUsage2CreateInfoKHR>(
            info.pNext, VK_STRUCTURE_TYPE_IMAGE_STENCIL_USAGE_2_CREATE_INFO_KHR)) {
        uses.stencil_usage = stencil->stencilUsage;
    }
    return uses;
}

// The features of a format that each usage needs; ~0 for usages that no format has.
VkFormatFeatureFlags2 FeatureOfUsage(const FormatInfo& format, VkImageUsageFlags2KHR usage) {
    switch (usage) {
        case VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT:
            return VK_FORMAT_FEATURE_2_COLOR_ATTACHMENT_BIT;
        case VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT:
            return VK_FORMAT_FEATURE_2_DEPTH_STENCIL_ATTACHMENT_BIT;
        case VK_IMAGE_USAGE_INPUT_ATTACHMENT_BIT:
        case VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT:
            return format.is_color() ? VK_FORMAT_FEATURE_2_COLOR_ATTACHMENT_BIT
                                     : VK_FORMAT_FEATURE_2_DEPTH_STENCIL_ATTACHMENT_BIT;
        case VK_IMAGE_USAGE_TRANSFER_SRC_BIT:
            return VK_FORMAT_FEATURE_2_TRANSFER_SRC_BIT;
        case VK_IMAGE_USAGE_TRANSFER_DST_BIT:
            return VK_FORMAT_FEATURE_2_TRANSFER_DST_BIT;
        case VK_IMAGE_USAGE_SAMPLED_BIT:
            return VK_FORMAT_FEATURE_2_SAMPLED_IMAGE_BIT;
        case VK_IMAGE_USAGE_STORAGE_BIT:
            return VK_FORMAT_FEATURE_2_STORAGE_IMAGE_BIT;
        case VK_IMAGE_USAGE_HOST_TRANSFER_BIT:
            return VK_FORMAT_FEATURE_2_HOST_IMAGE_TRANSFER_BIT;
        default:
            return ~VkFormatFeatureFlags2{0};
    }
}

// Whether some format, which a view may have instead, is needed for the usages.
bool UsageFits(const FormatInfo& format,
               VkImageTiling tiling,
               VkImageUsageFlags2KHR usage,
               VkImageCreateFlags2KHR flags) {
    // "VK_IMAGE_CREATE_EXTENDED_USAGE_BIT: usages that at least one format that a view can have
    // supports".
    const bool extended = (flags & VK_IMAGE_CREATE_EXTENDED_USAGE_BIT) &&
                          (flags & VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT);
    const bool of_blocks = flags & VK_IMAGE_CREATE_BLOCK_TEXEL_VIEW_COMPATIBLE_BIT;
    for (VkImageUsageFlags2KHR left = usage; left != 0; left &= left - 1) {
        const VkFormatFeatureFlags2 needed = FeatureOfUsage(format, left & -left);
        const bool direct = (ImageFeatures(format, tiling) & needed) == needed;
        const bool by_view =
            extended && std::ranges::any_of(AllFormats(), [&](const FormatInfo& other) {
                return AreCompatible(format, other, of_blocks) &&
                       (ImageFeatures(other, tiling) & needed) == needed;
            });
        if (!direct && !by_view) {
            return false;
        }
    }
    return true;
}

constexpr VkImageCreateFlags2KHR kSupportedFlags =
    VK_IMAGE_CREATE_MUTABLE_FORMAT_BIT | VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT |
    VK_IMAGE_CREATE_ALIAS_BIT | VK_IMAGE_CREATE_2D_ARRAY_COMPATIBLE_BIT |
    VK_IMAGE_CREATE_EXTENDED_USAGE_BIT | VK_IMAGE_CREATE_BLOCK_TEXEL_VIEW_COMPATIBLE_BIT |
    VK_IMAGE_CREATE_2D_VIEW_COMPATIBLE_BIT_EXT |
    VK_IMAGE_CREATE_ALIAS_SINGLE_LAYER_DESCRIPTOR_BIT_KHR |
    // Asks for nothing without descriptorHeapCaptureReplay; the conformance tests give it all the
    // same (image.host_image_copy.capture_replay.heap).
    VK_IMAGE_CREATE_DESCRIPTOR_HEAP_CAPTURE_REPLAY_BIT_EXT;

// All zeros if there can be no such image.
VkImageFormatProperties LimitsOf(const VkPhysicalDeviceImageFormatInfo2& info,
                                 const ImageUses& uses) {
    const FormatInfo* format = FindFormat(info.format);
    const auto refuse = [] { return VkImageFormatProperties{}; };
    if (!format || uses.usage == 0 || !UsageFits(*format, info.tiling, uses.usage, uses.flags) ||
        ((format->aspects & VK_IMAGE_ASPECT_STENCIL_BIT) &&
         !UsageFits(*format, info.tiling, uses.stencil_usage, uses.flags)) ||
        (uses.flags & ~kSupportedFlags) != 0) {
        return refuse();
    }
    // Compressed formats are of two dimensions, and those of BC of three ("Required Format
    // Support").
    const bool of_blocks = format->block_log2() != 0;
    if ((of_blocks && info.type == VK_IMAGE_TYPE_1D) ||
        (!of_blocks && (uses.flags & VK_IMAGE_CREATE_BLOCK_TEXEL_VIEW_COMPATIBLE_BIT))) {
        return refuse();
    }
    if (info.tiling != VK_IMAGE_TILING_OPTIMAL && info.tiling != VK_IMAGE_TILING_LINEAR) {
        return refuse();
    }
    if ((uses.flags & VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT) && info.type != VK_IMAGE_TYPE_2D) {
        return refuse();
    }
    constexpr VkImageCreateFlags2KHR kSlices =
        VK_IMAGE_CREATE_2D_ARRAY_COMPATIBLE_BIT | VK_IMAGE_CREATE_2D_VIEW_COMPATIBLE_BIT_EXT;
    if ((uses.flags & kSlices) && info.type != VK_IMAGE_TYPE_3D) {
        return refuse();
    }
    // VUID-VkImageCreateInfo-flags-13356.
    if ((uses.flags & VK_IMAGE_CREATE_ALIAS_SINGLE_LAYER_DESCRIPTOR_BIT_KHR) &&
        info.type == VK_IMAGE_TYPE_3D) {
        return refuse();
    }
    VkImageFormatProperties limits{.maxExtent = {1, 1, 1},
                                   .maxMipLevels = 1,
                                   .maxArrayLayers = kMaxImageLayers,
                                   .sampleCounts = VK_SAMPLE_COUNT_1_BIT,
                                   .maxResourceSize = kMaxImageBytes};
    const uint32_t largest = kMaxImageDimension;
    switch (info.type) {
        case VK_IMAGE_TYPE_1D:
            limits.maxExtent = {largest, 1, 1};
            break;
        case VK_IMAGE_TYPE_2D:
            limits.maxExtent = {largest, largest, 1};
            break;
        case VK_IMAGE_TYPE_3D:
            limits.maxExtent = {largest, largest, largest};
            limits.maxArrayLayers = 1;
            break;
        default:
            return refuse();
    }
    while (largest >> limits.maxMipLevels) {
        ++limits.maxMipLevels;
    }
    // "sampleCounts will be set to VK_SAMPLE_COUNT_1_BIT if" the format can be no attachment.
    constexpr VkFormatFeatureFlags2 kAttachment =
        VK_FORMAT_FEATURE_2_COLOR_ATTACHMENT_BIT | VK_FORMAT_FEATURE_2_DEPTH_STENCIL_ATTACHMENT_BIT;
    if (info.type == VK_IMAGE_TYPE_2D && (ImageFeatures(*format, info.tiling) & kAttachment) &&
        !(uses.flags & VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT)) {
        limits.sampleCounts = kSampleCounts;
    }
    return limits;
}

// By default no format can be an attachment, so queries deny images of several samples. Programs
// make them nevertheless, because the limits of sampled images must have four
// (VkPhysicalDeviceLimits), and they work.
bool SamplesFit(const VkImageCreateInfo& info, VkImageCreateFlags2KHR flags) {
    if (info.samples == VK_SAMPLE_COUNT_1_BIT) {
        return true;
    }
    return (info.samples & kSampleCounts) == static_cast<VkSampleCountFlags>(info.samples) &&
           info.imageType == VK_IMAGE_TYPE_2D && info.tiling == VK_IMAGE_TILING_OPTIMAL &&
           info.mipLevels == 1 && !(flags & VK_IMAGE_CREATE_CUBE_COMPATIBLE_BIT);
}

// Filters and workgroups of several rows have texels of a column at hand together, which must not
// be in one set of a first-level cache (32 or 48 KB in 8 or 12 ways): texels that are 4 KB apart
// are. Only of base levels, as shaders compute the pitches of the others, and not where the
// application writes rows itself.
uint64_t BaseRowPitch(uint64_t row_bytes, VkImageTiling tiling) {
    constexpr uint64_t kConflictingBytes = 1024;
    constexpr uint64_t kCacheLineBytes = 64;
    const bool conflicts = row_bytes % kConflictingBytes == 0;
    return tiling == VK_IMAGE_TILING_OPTIMAL && conflicts ? row_bytes + kCacheLineBytes : row_bytes;
}

}  // namespace

ImageLayout LayOutImage(const VkImageCreateInfo& info, const FormatInfo& format) {
    ImageLayout layout = {};
    uint64_t at = 0;
    for (uint32_t plane = 0; plane < format.plane_count(); ++plane) {
        for (uint32_t i = 0; i < info.mipLevels; ++i) {
            ImageLayout::Level& level = layout.planes[plane][i];
            level.width = std::max(1u, info.extent.width >> i);
            level.height = std::max(1u, info.extent.height >> i);
            level.depth = std::max(1u, info.extent.depth >> i);
            level.offset_bytes = at;
            // VkSampleCountFlagBits are the numbers of samples.
            level.row_pitch = hal::RowPitch(uint64_t{format.Blocks(level.width)} * info.samples,
                                            format.PlaneTexel(plane).bytes);
            if (i == 0) {
                level.row_pitch = BaseRowPitch(level.row_pitch, info.tiling);
            }
            level.slice_pitch = level.row_pitch * format.Blocks(level.height);
            level.size_bytes = level.slice_pitch * level.depth;
            at += level.size_bytes;
        }
    }
    layout.layer_pitch = AlignUp(at, kImageAlignment);
    layout.size_bytes = layout.layer_pitch * info.arrayLayers;
    return layout;
}

VkResult Image::Init(const VkImageCreateInfo& info) {
    // Programs name usages as attachments beside others without asking, Khronos' tests of compute
    // shaders among them. No framebuffer can hold the image, and its other uses are the same.
    constexpr VkImageUsageFlags2KHR kAttachments =
        VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_INPUT_ATTACHMENT_BIT;
    ImageUses uses = UsesOf(info);
    for (VkImageUsageFlags2KHR* usage : {&uses.usage, &uses.stencil_usage}) {
        if (*usage & ~kAttachments) {
            *usage &= ~kAttachments;
        }
    }
    const VkPhysicalDeviceImageFormatInfo2 query{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
        .format = info.format,
        .type = info.imageType,
        .tiling = info.tiling};
    // VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251 and its neighbours: the application must
    // have asked.
    const VkImageFormatProperties limits = LimitsOf(query, uses);
    const VkExtent3D& extent = info.extent;
    if (limits.maxMipLevels == 0 || !SamplesFit(info, uses.flags) ||
        extent.width > limits.maxExtent.width || extent.height > limits.maxExtent.height ||
        extent.depth > limits.maxExtent.depth || info.mipLevels > limits.maxMipLevels ||
        info.arrayLayers > limits.maxArrayLayers) {
        return Fail(device(), VK_ERROR_VALIDATION_FAILED_EXT,
                    "An image of {} x {} x {} texels, {} levels, {} layers and {} samples of "
                    "format {}, usage {:#x} and flags {:#x} was asked for, which "
                    "vkGetPhysicalDeviceImageFormatProperties does not allow.",
                    extent.width, extent.height, extent.depth, info.mipLevels, info.arrayLayers,
                    static_cast<int>(info.samples), static_cast<int>(info.format), uses.usage,
                    uses.flags);
    }
    format_ = FindFormat(info.format);
    type_ = info.imageType;
    level_count_ = info.mipLevels;
    layer_count_ = info.arrayLayers;
    sample_count_ = info.samples;
    layout_ = LayOutImage(info, *format_);
    if (layout_.size_bytes > kMaxImageBytes) {
        return Fail(device(), VK_ERROR_OUT_OF_DEVICE_MEMORY,
                    "An image of {} bytes was asked for; the limit is {} (maxResourceSize).",
                    layout_.size_bytes, kMaxImageBytes);
    }
    return VK_SUCCESS;
}

void Image::Bind(const DeviceMemory& memory, VkDeviceSize offset_bytes) {
    address_ = memory.hal().address() + offset_bytes;
    host_pointer_ = memory.hal().host_pointer() + offset_bytes;
    ReportBinding(*this, VK_DEVICE_ADDRESS_BINDING_TYPE_BIND_EXT, address_, layout_.size_bytes);
}

Image::~Image() {
    if (address_) {
        ReportBinding(*this, VK_DEVICE_ADDRESS_BINDING_TYPE_UNBIND_EXT, address_,
                      layout_.size_bytes);
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceImageFormatProperties2(VkPhysicalDevice,
                                          const VkPhysicalDeviceImageFormatInfo2* info,
                                          VkImageFormatProperties2* properties) {
    properties->imageFormatProperties = LimitsOf(*info, UsesOf(*info));
    const auto* external = FindInChain<VkPhysicalDeviceExternalImageFormatInfo>(
        info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO);
    if (external && external->handleType != 0) {
        const VkExternalMemoryProperties features = ExternalMemoryProperties(external->handleType);
        // "If handleType is not compatible ..., VK_ERROR_FORMAT_NOT_SUPPORTED is returned."
        if (features.externalMemoryFeatures == 0) {
            properties->imageFormatProperties = {};
        }
        auto* out = FindInChain<VkExternalImageFormatProperties>(
            properties->pNext, VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES);
        if (out) {
            out->externalMemoryProperties = features;
        }
    }
    auto* performance = FindInChain<VkHostImageCopyDevicePerformanceQuery>(
        properties->pNext, VK_STRUCTURE_TYPE_HOST_IMAGE_COPY_DEVICE_PERFORMANCE_QUERY);
    if (performance) {
        performance->optimalDeviceAccess = performance->identicalMemoryLayout = VK_TRUE;
    }
    return properties->imageFormatProperties.maxMipLevels ? VK_SUCCESS
                                                          : VK_ERROR_FORMAT_NOT_SUPPORTED;
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceImageFormatProperties(VkPhysicalDevice physical_device,
                                         VkFormat format,
                                         VkImageType type,
                                         VkImageTiling tiling,
                                         VkImageUsageFlags usage,
                                         VkImageCreateFlags flags,
                                         VkImageFormatProperties* properties) {
    const VkPhysicalDeviceImageFormatInfo2 info{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
        .format = format,
        .type = type,
        .tiling = tiling,
        .usage = usage,
        .flags = flags};
    VkImageFormatProperties2 out{.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2};
    const VkResult result = vkGetPhysicalDeviceImageFormatProperties2(physical_device, &info, &out);
    *properties = out.imageFormatProperties;
    return result;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateImage(VkDevice device,
              const VkImageCreateInfo* info,
              const VkAllocationCallbacks* callbacks,
              VkImage* image) {
    return CreateObject<Image>(device, callbacks, image, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroyImage(VkDevice device, VkImage image, const VkAllocationCallbacks* callbacks) {
    DestroyObject<Image>(device, callbacks, image);
}

FORNAX_ENTRY_POINT(void)
vkGetImageMemoryRequirements2(VkDevice,
                              const VkImageMemoryRequirementsInfo2* info,
                              VkMemoryRequirements2* requirements) {
    FillMemoryRequirements(FromHandle<Image>(info->image)->layout().size_bytes, kImageAlignment,
                           *requirements);
}

FORNAX_ENTRY_POINT(void)
vkGetImageMemoryRequirements(VkDevice device, VkImage image, VkMemoryRequirements* requirements) {
    const VkImageMemoryRequirementsInfo2 info{
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = image};
    VkMemoryRequirements2 out{.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    vkGetImageMemoryRequirements2(device, &info, &out);
    *requirements = out.memoryRequirements;
}

FORNAX_ENTRY_POINT(VkResult)
vkBindImageMemory2(VkDevice, uint32_t count, const VkBindImageMemoryInfo* infos) {
    for (uint32_t i = 0; i < count; ++i) {
        FromHandle<Image>(infos[i].image)
            ->Bind(*FromHandle<DeviceMemory>(infos[i].memory), infos[i].memoryOffset);
        const auto* status =
            FindInChain<VkBindMemoryStatus>(infos[i].pNext, VK_STRUCTURE_TYPE_BIND_MEMORY_STATUS);
        if (status) {
            *status->pResult = VK_SUCCESS;
        }
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkBindImageMemory(VkDevice device, VkImage image, VkDeviceMemory memory, VkDeviceSize offset) {
    const VkBindImageMemoryInfo info{.sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO,
                                     .image = image,
                                     .memory = memory,
                                     .memoryOffset = offset};
    return vkBindImageMemory2(device, 1, &info);
}

namespace {

VkSubresourceLayout SubresourceLayoutOf(const FormatInfo& format,
                                        const ImageLayout& image,
                                        const VkImageSubresource& subresource) {
    const uint32_t plane = format.PlaneOf(subresource.aspectMask);
    const ImageLayout::Level& level = image.planes[plane][subresource.mipLevel];
    return {
        .offset = level.offset_bytes + subresource.arrayLayer * image.layer_pitch,
        .size = level.size_bytes,
        .rowPitch = level.row_pitch,
        .arrayPitch = image.layer_pitch,
        .depthPitch = level.slice_pitch,
    };
}

// What the host copies with VK_HOST_IMAGE_COPY_MEMCPY_BIT (host_image_copy.cpp).
void FillHostSize(const FormatInfo& format,
                  const ImageLayout& image,
                  const VkImageSubresource& subresource,
                  VkSubresourceLayout2& layout) {
    auto* host = FindInChain<VkSubresourceHostMemcpySize>(
        layout.pNext, VK_STRUCTURE_TYPE_SUBRESOURCE_HOST_MEMCPY_SIZE);
    if (!host) {
        return;
    }
    const uint32_t plane = format.PlaneOf(subresource.aspectMask);
    const ImageLayout::Level& level = image.planes[plane][subresource.mipLevel];
    host->size =
        (uint64_t{format.Blocks(level.width)} * format.Blocks(level.height) * level.depth) *
        format.PlaneTexel(plane).bytes;
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkGetImageSubresourceLayout2(VkDevice,
                             VkImage image,
                             const VkImageSubresource2* subresource,
                             VkSubresourceLayout2* layout) {
    const auto& object = *FromHandle<Image>(image);
    layout->subresourceLayout =
        SubresourceLayoutOf(object.format(), object.layout(), subresource->imageSubresource);
    FillHostSize(object.format(), object.layout(), subresource->imageSubresource, *layout);
}

FORNAX_ENTRY_POINT(void)
vkGetImageSubresourceLayout(VkDevice,
                            VkImage image,
                            const VkImageSubresource* subresource,
                            VkSubresourceLayout* layout) {
    const auto& object = *FromHandle<Image>(image);
    *layout = SubresourceLayoutOf(object.format(), object.layout(), *subresource);
}

// The image need not exist: a layout is a function of the creation parameters.
FORNAX_ENTRY_POINT(void)
vkGetDeviceImageSubresourceLayout(VkDevice,
                                  const VkDeviceImageSubresourceInfo* info,
                                  VkSubresourceLayout2* layout) {
    layout->subresourceLayout = {};
    const FormatInfo* format = FindFormat(info->pCreateInfo->format);
    if (!format) {
        return;
    }
    const ImageLayout image = LayOutImage(*info->pCreateInfo, *format);
    const VkImageSubresource& subresource = info->pSubresource->imageSubresource;
    layout->subresourceLayout = SubresourceLayoutOf(*format, image, subresource);
    FillHostSize(*format, image, subresource, *layout);
}

FORNAX_ENTRY_POINT(void)
vkGetDeviceImageMemoryRequirements(VkDevice,
                                   const VkDeviceImageMemoryRequirements* info,
                                   VkMemoryRequirements2* requirements) {
    const FormatInfo* format = FindFormat(info->pCreateInfo->format);
    FillMemoryRequirements(format ? LayOutImage(*info->pCreateInfo, *format).size_bytes : 0,
                           kImageAlignment, *requirements);
}

// No image is sparse.
FORNAX_ENTRY_POINT(void)
vkGetDeviceImageSparseMemoryRequirements(VkDevice,
                                         const VkDeviceImageMemoryRequirements*,
                                         uint32_t* count,
                                         VkSparseImageMemoryRequirements2*) {
    *count = 0;
}

FORNAX_ENTRY_POINT(void)
vkGetImageSparseMemoryRequirements2(VkDevice,
                                    const VkImageSparseMemoryRequirementsInfo2*,
                                    uint32_t* count,
                                    VkSparseImageMemoryRequirements2*) {
    *count = 0;
}

FORNAX_ENTRY_POINT(void)
vkGetImageSparseMemoryRequirements(VkDevice,
                                   VkImage,
                                   uint32_t* count,
                                   VkSparseImageMemoryRequirements*) {
    *count = 0;
}

}  // namespace fornax::driver
