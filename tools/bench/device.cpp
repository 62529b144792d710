// Opens the device and times what is submitted to it.
#include "tools/bench/device.h"

#include <chrono>

#include "runtime/vulkan/instance.h"
#include "runtime/vulkan/result.h"

namespace fornax::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr VkPipelineStageFlags kDeviceStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

double SecondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

vulkan::DescriptorSets::Set SetOf(VkDescriptorSetLayout layout, std::span<const Buffer> buffers) {
    vulkan::DescriptorSets::Set set;
    set.layout = layout;
    for (const Buffer& buffer : buffers) {
        set.buffers.push_back({buffer.handle(), 0, VK_WHOLE_SIZE});
    }
    return set;
}

}  // namespace

Result<std::unique_ptr<Device>> Device::Create(bool validate) {
    std::unique_ptr<Device> device(new Device);
    vulkan::InstanceOptions options;
    options.host_clock = true;
    options.validate = validate;
    if (validate) {
        options.on_message = [messages = &device->messages_](const std::string& message) {
            messages->push_back(message);
        };
    }
    const auto start = Clock::now();
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const vulkan::Instance> instance,
                            vulkan::Instance::Create(std::move(options)));
    FORNAX_ASSIGN_OR_RETURN(const VkPhysicalDevice first, instance->Choose("0"));
    FORNAX_ASSIGN_OR_RETURN(device->device_, vulkan::Device::Open(instance, first));
    device->start_seconds_ = SecondsSince(start);
    // The workloads call Vulkan's functions by their names.
    volkLoadInstanceOnly(instance->handle());
    volkLoadDevice(device->handle());
    FORNAX_RETURN_IF_ERROR(device->CreateHelpers());
    return device;
}

Device::~Device() {
    if (device_ != nullptr) {
        device_->vk().vkDestroyFence(handle(), fence_, nullptr);
        device_->vk().vkDestroyCommandPool(handle(), command_pool_, nullptr);
    }
}

bool Device::MultipliesFloatMatrices() const {
    // 1.3 chooses the size of subgroups of pipelines.
    return device_->features().matrices_f32 && device_->subgroup_size() == 32 &&
           device_->properties().apiVersion >= VK_API_VERSION_1_3;
}

Status Device::CreateHelpers() {
    FORNAX_ASSIGN_OR_RETURN(pipelines_, vulkan::PipelineFactory::Create(device_, {}));
    VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = device_->queue_family();
    FORNAX_RETURN_IF_FAILED("vkCreateCommandPool",
                            vkCreateCommandPool(handle(), &pool, nullptr, &command_pool_));
    VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    FORNAX_RETURN_IF_FAILED("vkCreateFence", vkCreateFence(handle(), &fence, nullptr, &fence_));
    return OkStatus();
}

Result<Buffer> Device::CreateBuffer(size_t size_bytes) {
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::Buffer> buffer,
                            vulkan::Buffer::Create(device_, size_bytes));
    return Buffer(std::move(buffer));
}

Result<Kernel> Device::CreateKernel(std::span<const uint32_t> spirv,
                                    std::span<const Buffer> buffers,
                                    uint32_t push_constant_bytes) {
    vulkan::KernelCode code;
    code.name = "benchmark";
    code.words = spirv;
    code.binding_count = static_cast<uint32_t>(buffers.size());
    code.push_constant_count = push_constant_bytes / uint32_t{sizeof(uint32_t)};
    FORNAX_ASSIGN_OR_RETURN(const vulkan::ComputePipeline pipeline, pipelines_->Make(code));
    const vulkan::DescriptorSets::Set set = SetOf(pipeline.set_layout, buffers);
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::DescriptorSets> sets,
                            vulkan::DescriptorSets::Create(device_, {&set, 1}));
    return Kernel(pipeline, std::move(sets));
}

Result<VkCommandBuffer> Device::BeginCommands() {
    VkCommandBufferAllocateInfo allocate_info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate_info.commandPool = command_pool_;
    allocate_info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate_info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    FORNAX_RETURN_IF_FAILED("vkAllocateCommandBuffers",
                            vkAllocateCommandBuffers(handle(), &allocate_info, &commands));
    FORNAX_RETURN_IF_ERROR(BeginAgain(commands));
    return commands;
}

Status Device::BeginAgain(VkCommandBuffer commands) {
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    FORNAX_RETURN_IF_FAILED("vkBeginCommandBuffer", vkBeginCommandBuffer(commands, &begin));
    return OkStatus();
}

Result<std::unique_ptr<vulkan::DescriptorSets>> Device::CreateSets(const Kernel& kernel,
                                                                   std::span<const Buffer> buffers,
                                                                   uint32_t count) {
    const std::vector<vulkan::DescriptorSets::Set> sets(count, SetOf(kernel.set_layout(), buffers));
    return vulkan::DescriptorSets::Create(device_, sets);
}

Status Device::EndCommands(VkCommandBuffer commands) {
    // A fence alone does not make device writes visible to the host: "Host Access to Device
    // Memory".
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, kDeviceStages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
    FORNAX_RETURN_IF_FAILED("vkEndCommandBuffer", vkEndCommandBuffer(commands));
    return OkStatus();
}

Result<double> Device::Submit(VkCommandBuffer commands) {
    const auto start = Clock::now();
    FORNAX_RETURN_IF_ERROR(device_->Submit(commands, fence_));
    FORNAX_RETURN_IF_FAILED("vkWaitForFences",
                            vkWaitForFences(handle(), 1, &fence_, VK_TRUE, UINT64_MAX));
    const double seconds = SecondsSince(start);
    FORNAX_RETURN_IF_FAILED("vkResetFences", vkResetFences(handle(), 1, &fence_));
    return seconds;
}

void RecordBarrier(VkCommandBuffer commands) {
    VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    vkCmdPipelineBarrier(commands, kDeviceStages, kDeviceStages, 0, 1, &barrier, 0, nullptr, 0,
                         nullptr);
}

}  // namespace fornax::bench
