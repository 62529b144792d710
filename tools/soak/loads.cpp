// The loads of the soak. Each goes on until it is told to stop or something is wrong.
#include <sys/mman.h>

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "tools/soak/client.h"
#include "tools/soak/shaders/count.spv.h"
#include "tools/soak/shaders/texels.spv.h"
#include "tools/soak/shaders/wild.spv.h"
#include "tools/soak/soak.h"

namespace fornax::soak {

namespace {

bool Fail(LoadCounters& counters, std::string failure) {
    counters.failure = std::move(failure);
    counters.failed = true;
    return false;
}

bool Check(LoadCounters& counters, const Client& client) {
    return client.valid() || Fail(counters, client.error());
}

// Runs the counting kernel over the whole buffer and looks at the result.
bool RunCount(Client& client,
              const ClientPipeline& pipeline,
              uint32_t constant,
              const ClientBuffer& buffer,
              LoadCounters& counters) {
    std::fill_n(buffer.words, buffer.count, 5u);
    const uint32_t addend = 3;
    const VkResult result =
        client.Run(pipeline, buffer, {&addend, 1}, static_cast<uint32_t>(buffer.count / 64));
    if (result != VK_SUCCESS) {
        return Fail(counters, fmt::format("A dispatch gave {}.", static_cast<int>(result)));
    }
    for (uint32_t i = 0; i < buffer.count; ++i) {
        if (buffer.words[i] != 5 + 3 * (i + constant)) {
            return Fail(counters, fmt::format("Word {} is {}.", i, buffer.words[i]));
        }
    }
    return true;
}

// A pipeline of one of some thousand kernels, with a cache that goes through its data.
void Pipelines(const std::atomic<bool>& stop, LoadCounters& counters) {
    Client client;
    const ClientBuffer buffer = client.MakeBuffer(1024);
    std::mt19937 random(1);
    std::vector<char> data;
    while (!stop && Check(counters, client)) {
        const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                             .initialDataSize = data.size(),
                                             .pInitialData = data.data()};
        VkPipelineCache cache = VK_NULL_HANDLE;
        vkCreatePipelineCache(client.device, &info, nullptr, &cache);
        for (int i = 0; i < 4 && Check(counters, client); ++i) {
            const uint32_t constant = random() % 4096;
            const ClientPipeline pipeline = client.MakePipeline(spirv::kCount, constant, cache);
            if (Check(counters, client)) {
                RunCount(client, pipeline, constant, buffer, counters);
            }
            client.Free(pipeline);
        }
        size_t size = 0;
        vkGetPipelineCacheData(client.device, cache, &size, nullptr);
        data.resize(size < (1 << 20) ? size : 0);  // begins anew before it grows too large
        if (!data.empty()) {
            vkGetPipelineCacheData(client.device, cache, &size, data.data());
        }
        vkDestroyPipelineCache(client.device, cache, nullptr);
        if (counters.failed) {
            break;
        }
        ++counters.rounds;
    }
    client.Free(buffer);
}

// Buffers of 256 bytes to 16 MiB, some hundred at once.
void Buffers(const std::atomic<bool>& stop, LoadCounters& counters) {
    Client client;
    const ClientPipeline pipeline = client.MakePipeline(spirv::kCount, 1);
    std::vector<ClientBuffer> buffers(200);
    std::mt19937 random(2);
    while (!stop && Check(counters, client) && !counters.failed) {
        ClientBuffer& buffer = buffers[random() % buffers.size()];
        client.Free(buffer);
        // Small ones are more frequent.
        buffer = client.MakeBuffer(size_t{64} << random() % (random() % 17 + 1));
        if (Check(counters, client) && RunCount(client, pipeline, 1, buffer, counters)) {
            ++counters.rounds;
        }
    }
    for (const ClientBuffer& buffer : buffers) {
        client.Free(buffer);
    }
    client.Free(pipeline);
}

// One recording submitted a thousand times without a wait.
void Submissions(const std::atomic<bool>& stop, LoadCounters& counters) {
    Client client;
    const ClientPipeline pipeline = client.MakePipeline(spirv::kCount, 1);
    const ClientBuffer buffer = client.MakeBuffer(64 * 64);
    if (!Check(counters, client)) {
        return;
    }
    const uint32_t addend = 1;
    constexpr uint32_t kSubmissions = 1'000;
    const VkCommandBuffer commands = client.Record(client.pool, pipeline, buffer, {&addend, 1}, 64);
    while (!stop && !counters.failed) {
        std::fill_n(buffer.words, buffer.count, 0u);
        VkResult result = VK_SUCCESS;
        for (uint32_t i = 0; i < kSubmissions && result == VK_SUCCESS; ++i) {
            result = client.Submit(commands);
        }
        if (result == VK_SUCCESS) {
            result = vkQueueWaitIdle(client.queue);
        }
        if (result != VK_SUCCESS || buffer.words[0] != kSubmissions) {
            Fail(counters, fmt::format("The sum is {}, result {}.", buffer.words[0],
                                       static_cast<int>(result)));
        }
        ++counters.rounds;
    }
    client.Free(buffer);
    client.Free(pipeline);
}

// Instances with a device each.
void Instances(const std::atomic<bool>& stop, LoadCounters& counters) {
    while (!stop) {
        if (std::string wrong = RunAndCheck(2); !wrong.empty()) {
            Fail(counters, std::move(wrong));
            return;
        }
        ++counters.rounds;
    }
}

// Devices that are lost by a write to where no memory is.
void Faults(const std::atomic<bool>& stop, LoadCounters& counters) {
    void* forbidden = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto address = reinterpret_cast<uint64_t>(forbidden);
    while (!stop && !counters.failed) {
        Client client;
        const ClientPipeline pipeline = client.MakePipeline(spirv::kWild);
        const ClientBuffer buffer = client.MakeBuffer(64);
        if (!Check(counters, client)) {
            break;
        }
        const uint32_t constants[] = {static_cast<uint32_t>(address),
                                      static_cast<uint32_t>(address >> 32), 5, 1};
        const VkResult result = client.Run(pipeline, buffer, constants, 9);
        if (result != VK_ERROR_DEVICE_LOST) {
            Fail(counters, fmt::format("A fault gave {}.", static_cast<int>(result)));
        }
        client.Free(buffer);
        client.Free(pipeline);
        ++counters.rounds;
    }
    munmap(forbidden, 4096);
}

// Images of changing sizes: made, cleared, written by a kernel, read back.
class Image {
  public:
    Image(Client& client, uint32_t side) : client_(client), side_(side) {
        const VkImageCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
            .imageType = VK_IMAGE_TYPE_2D,
            .format = VK_FORMAT_R32_UINT,
            .extent = {side, side, 1},
            .mipLevels = 1,
            .arrayLayers = 1,
            .samples = VK_SAMPLE_COUNT_1_BIT,
            .usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
        Note(vkCreateImage(client.device, &info, nullptr, &image_));
        VkMemoryRequirements needs;
        vkGetImageMemoryRequirements(client.device, image_, &needs);
        const VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                            .allocationSize = needs.size};
        Note(vkAllocateMemory(client.device, &allocate, nullptr, &memory_));
        Note(vkBindImageMemory(client.device, image_, memory_, 0));
        const VkImageViewCreateInfo view{.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                         .image = image_,
                                         .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                         .format = VK_FORMAT_R32_UINT,
                                         .subresourceRange = kWhole};
        Note(vkCreateImageView(client.device, &view, nullptr, &view_));
    }
    ~Image() {
        vkDestroyImageView(client_.device, view_, nullptr);
        vkDestroyImage(client_.device, image_, nullptr);
        vkFreeMemory(client_.device, memory_, nullptr);
    }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

    static constexpr VkImageSubresourceRange kWhole = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};

    // Clears, and writes each texel and word of the buffer twice.
    VkResult Run(VkPipeline pipeline,
                 VkPipelineLayout layout,
                 VkDescriptorSet set,
                 const ClientBuffer& buffer) {
        const VkDescriptorBufferInfo words{buffer.handle, 0, VK_WHOLE_SIZE};
        const VkDescriptorImageInfo texels{VK_NULL_HANDLE, view_, VK_IMAGE_LAYOUT_GENERAL};
        const VkWriteDescriptorSet writes[] = {{.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                                .dstSet = set,
                                                .dstBinding = 0,
                                                .descriptorCount = 1,
                                                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                .pBufferInfo = &words},
                                               {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                                .dstSet = set,
                                                .dstBinding = 1,
                                                .descriptorCount = 1,
                                                .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                                                .pImageInfo = &texels}};
        vkUpdateDescriptorSets(client_.device, 2, writes, 0, nullptr);

        const VkCommandBufferAllocateInfo allocate{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = client_.pool,
            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
            .commandBufferCount = 1};
        VkCommandBuffer commands = VK_NULL_HANDLE;
        Note(vkAllocateCommandBuffers(client_.device, &allocate, &commands));
        const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        Note(vkBeginCommandBuffer(commands, &begin));
        const auto barrier = [&](VkImageLayout from) {
            const VkMemoryBarrier memory{
                .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
            const VkImageMemoryBarrier image{.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                             .srcAccessMask = memory.srcAccessMask,
                                             .dstAccessMask = memory.dstAccessMask,
                                             .oldLayout = from,
                                             .newLayout = VK_IMAGE_LAYOUT_GENERAL,
                                             .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                             .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                             .image = image_,
                                             .subresourceRange = kWhole};
            vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                 VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0,
                                 1, &memory, 0, nullptr, 1, &image);
        };
        barrier(VK_IMAGE_LAYOUT_UNDEFINED);
        const VkClearColorValue seven{.uint32 = {7, 0, 0, 0}};
        vkCmdClearColorImage(commands, image_, VK_IMAGE_LAYOUT_GENERAL, &seven, 1, &kWhole);
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0,
                                nullptr);
        const uint32_t addend = 2;
        vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(addend),
                           &addend);
        for (int turn = 0; turn < 2; ++turn) {
            barrier(VK_IMAGE_LAYOUT_GENERAL);
            vkCmdDispatch(commands, side_ / 8, side_ / 8, 1);
        }
        barrier(VK_IMAGE_LAYOUT_GENERAL);
        Note(vkEndCommandBuffer(commands));
        if (result_ == VK_SUCCESS) {
            Note(client_.Run(commands));
        }
        vkFreeCommandBuffers(client_.device, client_.pool, 1, &commands);
        return result_;
    }

  private:
    void Note(VkResult result) {
        if (result_ == VK_SUCCESS) {
            result_ = result;
        }
    }

    Client& client_;
    const uint32_t side_;
    VkResult result_ = VK_SUCCESS;
    VkImage image_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    VkImageView view_ = VK_NULL_HANDLE;
};

void Images(const std::atomic<bool>& stop, LoadCounters& counters) {
    Client client;
    if (!Check(counters, client)) {
        return;
    }
    const VkDevice device = client.device;
    const VkDescriptorSetLayoutBinding bindings[] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
    const VkDescriptorSetLayoutCreateInfo set_info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings};
    std::mt19937 random(3);
    while (!stop && !counters.failed) {
        VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
        vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout);
        const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 64};
        const VkPipelineLayoutCreateInfo layout_info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = 1,
            .pSetLayouts = &set_layout,
            .pushConstantRangeCount = 1,
            .pPushConstantRanges = &range};
        VkPipelineLayout layout = VK_NULL_HANDLE;
        vkCreatePipelineLayout(device, &layout_info, nullptr, &layout);
        const ClientPipeline pipeline =
            client.MakePipeline(spirv::kTexels, 1, VK_NULL_HANDLE, nullptr, layout);
        const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1},
                                              {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 1}};
        const VkDescriptorPoolCreateInfo pool_info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = 1,
            .poolSizeCount = 2,
            .pPoolSizes = sizes};
        VkDescriptorPool pool = VK_NULL_HANDLE;
        vkCreateDescriptorPool(device, &pool_info, nullptr, &pool);
        const VkDescriptorSetAllocateInfo allocate{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
            .descriptorPool = pool,
            .descriptorSetCount = 1,
            .pSetLayouts = &set_layout};
        VkDescriptorSet set = VK_NULL_HANDLE;
        vkAllocateDescriptorSets(device, &allocate, &set);

        const uint32_t side = 8 * (1 + random() % 64);
        const ClientBuffer buffer = client.MakeBuffer(size_t{side} * side);
        if (Check(counters, client)) {
            Image image(client, side);
            const VkResult result = image.Run(pipeline.handle, layout, set, buffer);
            if (result != VK_SUCCESS) {
                Fail(counters, fmt::format("An image gave {}.", static_cast<int>(result)));
            }
            for (uint32_t i = 0; i < buffer.count && !counters.failed; ++i) {
                if (buffer.words[i] != 7 + 2 * (i + 2)) {
                    Fail(counters, fmt::format("Texel {} is {}.", i, buffer.words[i]));
                }
            }
        }
        client.Free(buffer);
        vkDestroyDescriptorPool(device, pool, nullptr);
        client.Free(pipeline);
        vkDestroyPipelineLayout(device, layout, nullptr);
        vkDestroyDescriptorSetLayout(device, set_layout, nullptr);
        ++counters.rounds;
    }
}

constexpr Load kLoads[] = {
    {"pipelines", "four pipelines and a pipeline cache made, used and destroyed", Pipelines},
    {"buffers", "a buffer of 256 bytes to 16 MiB replaced and used", Buffers},
    {"submissions", "a thousand submissions without a wait", Submissions},
    {"images", "an image made, cleared, written and read, with its descriptors", Images},
    {"instances", "an instance and a device made, used and destroyed", Instances},
    {"faults", "a device lost by a faulty kernel", Faults},
};

}  // namespace

std::span<const Load> AllLoads() {
    return kLoads;
}

}  // namespace fornax::soak
