// A small Vulkan program for the soak and for tests of robustness: a device of its own with a few
// buffers and pipelines. Several may live at once, in threads and child processes as well, and all
// of them expect that calls fail.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <volk.h>

#include "runtime/vulkan/device.h"
#include "runtime/vulkan/instance.h"

namespace fornax::soak {

struct ClientBuffer {
    VkBuffer handle = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    uint32_t* words = nullptr;
    size_t count = 0;
};

struct ClientPipeline {
    VkShaderModule module = VK_NULL_HANDLE;
    VkPipeline handle = VK_NULL_HANDLE;
};

class Client {
  public:
    // Throws nothing: valid() tells whether there is a device, `error()` what failed.
    Client();
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    bool valid() const { return error_.empty(); }
    const std::string& error() const { return error_; }

    // Null handles after a failure, whose result is `*result`.
    ClientBuffer MakeBuffer(size_t words, VkResult* result = nullptr);
    void Free(const ClientBuffer& buffer);
    ClientPipeline MakePipeline(std::span<const uint32_t> spirv,
                                uint32_t constant = 1,
                                VkPipelineCache cache = VK_NULL_HANDLE,
                                VkResult* result = nullptr,
                                VkPipelineLayout other_layout = VK_NULL_HANDLE);
    void Free(const ClientPipeline& pipeline);
    // Binds the buffer and dispatches once. May be submitted any number of times.
    VkCommandBuffer Record(VkCommandPool pool,
                           const ClientPipeline& pipeline,
                           const ClientBuffer& buffer,
                           std::span<const uint32_t> constants,
                           uint32_t workgroups);
    VkCommandBuffer Record(VkCommandPool pool,
                           const ClientPipeline& pipeline,
                           const ClientBuffer& buffer,
                           std::span<const uint32_t> constants,
                           std::array<uint32_t, 3> workgroups);
    VkCommandPool MakePool();
    // Thread-safe.
    VkResult Submit(VkCommandBuffer commands, VkFence fence = VK_NULL_HANDLE);
    // Submits and waits.
    VkResult Run(VkCommandBuffer commands);
    VkResult Run(const ClientPipeline& pipeline,
                 const ClientBuffer& buffer,
                 std::span<const uint32_t> constants,
                 uint32_t workgroups);

    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    VkCommandPool pool = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    std::vector<std::string> messages;  // of the driver, warnings and errors

  private:
    bool Check(VkResult result, const char* what);
    Status Open();
    void Init();

    std::mutex queue_mutex_;
    std::mutex message_mutex_;  // of `messages`
    std::shared_ptr<const vulkan::Instance> instance_;
    std::shared_ptr<vulkan::Device> device_;
    std::string error_;
};

// Makes a client and runs kernels with the constants 1 to `kernels`, each compiled by itself.
// Returns what went wrong, nothing if all results were right. The driver's messages go to standard
// error.
std::string RunAndCheck(uint32_t kernels);

// The resident memory of this process in KiB.
uint64_t ResidentKib();

}  // namespace fornax::soak
