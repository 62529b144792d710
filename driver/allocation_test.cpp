// Host memory: everything that the driver allocates for an application goes through its callbacks,
// with scopes that make sense, and an allocation that fails gives an error and leaves nothing
// behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "driver/test_device.h"
#include "driver/test_kernel_compiler.h"

namespace fornax::driver_test {
namespace {

// Callbacks that count, remember what lives, and can fail at the nth allocation.
class CountingAllocator {
  public:
    CountingAllocator() = default;
    ~CountingAllocator() { EXPECT_TRUE(live_.empty()) << live_.size() << " allocations leaked"; }

    const VkAllocationCallbacks* callbacks() const { return &callbacks_; }

    // The allocation number `n` from now on fails, counted from 0; -1: none.
    void FailAt(int n) {
        next_ = 0;
        fail_at_ = n;
    }
    int allocation_count() const { return next_; }
    bool failed() const { return fail_at_ >= 0 && next_ > fail_at_; }
    size_t live_count() const { return live_.size(); }
    size_t live_count(VkSystemAllocationScope scope) const {
        return static_cast<size_t>(std::count_if(
            live_.begin(), live_.end(), [&](const auto& entry) { return entry.second == scope; }));
    }
    const std::set<VkSystemAllocationScope>& scopes() const { return scopes_; }

  private:
    static VKAPI_ATTR void* VKAPI_CALL Allocate(void* user,
                                                size_t size,
                                                size_t alignment,
                                                VkSystemAllocationScope scope) {
        auto& self = *static_cast<CountingAllocator*>(user);
        EXPECT_GT(size, 0u);
        EXPECT_TRUE(alignment > 0 && (alignment & (alignment - 1)) == 0) << alignment;
        if (self.next_++ == self.fail_at_)
            return nullptr;
        const size_t step = std::max(alignment, sizeof(void*));
        void* memory = std::aligned_alloc(step, (size + step - 1) / step * step);
        // The driver must not count on zeros.
        std::memset(memory, 0xa5, size);
        self.live_[memory] = scope;
        self.scopes_.insert(scope);
        return memory;
    }
    static VKAPI_ATTR void* VKAPI_CALL
    Reallocate(void*, void*, size_t, size_t, VkSystemAllocationScope) {
        ADD_FAILURE() << "The driver never reallocates.";
        return nullptr;
    }
    static VKAPI_ATTR void VKAPI_CALL Free(void* user, void* memory) {
        auto& self = *static_cast<CountingAllocator*>(user);
        if (memory) {
            EXPECT_EQ(self.live_.erase(memory), 1u) << "freed what was not allocated";
            std::free(memory);
        }
    }

    VkAllocationCallbacks callbacks_ = {this, Allocate, Reallocate, Free, nullptr, nullptr};
    std::map<void*, VkSystemAllocationScope> live_;
    std::set<VkSystemAllocationScope> scopes_;
    int next_ = 0;
    int fail_at_ = -1;
};

class AllocationTest : public TestDevice {
  protected:
    void TearDown() override {
        DestroyAll();
        EXPECT_EQ(instance_allocator_.live_count(), 0u);
    }

    // Runs `create` with the nth allocation failing for n = 0, 1, ..., until none fails. Each
    // failed run must give VK_ERROR_OUT_OF_HOST_MEMORY and leave nothing; the last one must
    // succeed.
    void FailEveryAllocation(CountingAllocator& allocator,
                             const std::function<VkResult()>& create,
                             const std::function<void()>& destroy) {
        const size_t before = allocator.live_count();
        for (int n = 0; n < 1000; ++n) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            allocator.FailAt(n);
            const VkResult result = create();
            const bool failed = allocator.failed();
            allocator.FailAt(-1);
            if (!failed) {
                EXPECT_EQ(result, VK_SUCCESS);
                EXPECT_GT(n, 0) << "nothing was allocated";
                destroy();
                EXPECT_EQ(allocator.live_count(), before);
                return;
            }
            ASSERT_EQ(result, VK_ERROR_OUT_OF_HOST_MEMORY);
            ASSERT_EQ(allocator.live_count(), before);
        }
        FAIL() << "1000 allocations are too many";
    }

    CountingAllocator instance_allocator_;
};

TEST_F(AllocationTest, InstanceAndDevice) {
    const TestDeviceOptions options{.callbacks = instance_allocator_.callbacks()};
    FailEveryAllocation(
        instance_allocator_,
        [&] {
            VkResult result = CreateInstance(options);
            if (result == VK_SUCCESS)
                result = CreateDevice(options);
            if (result != VK_SUCCESS)
                DestroyAll();
            return result;
        },
        [&] { DestroyAll(); });
    EXPECT_TRUE(instance_allocator_.scopes().contains(VK_SYSTEM_ALLOCATION_SCOPE_INSTANCE));
    EXPECT_TRUE(instance_allocator_.scopes().contains(VK_SYSTEM_ALLOCATION_SCOPE_DEVICE));
}

// Everything that a device creates; `callbacks` go to every command that takes them.
class ObjectFactory {
  public:
    ObjectFactory(VkDevice device, const VkAllocationCallbacks* callbacks)
        : device_(device), callbacks_(callbacks) {}

    struct Step {
        std::string name;
        std::function<VkResult()> create;
        std::function<void()> destroy;
    };

    std::vector<Step> Steps() {
        return {
            {"memory", [this] { return CreateMemory(); },
             [this] { vkFreeMemory(device_, memory_, callbacks_); }},
            {"buffer", [this] { return CreateBuffer(); },
             [this] { vkDestroyBuffer(device_, buffer_, callbacks_); }},
            {"set layout", [this] { return CreateSetLayout(); },
             [this] { vkDestroyDescriptorSetLayout(device_, set_layout_, callbacks_); }},
            {"pool", [this] { return CreatePool(); },
             [this] { vkDestroyDescriptorPool(device_, pool_, callbacks_); }},
            {"pipeline layout", [this] { return CreatePipelineLayout(); },
             [this] { vkDestroyPipelineLayout(device_, pipeline_layout_, callbacks_); }},
            {"template", [this] { return CreateTemplate(); },
             [this] { vkDestroyDescriptorUpdateTemplate(device_, template_, callbacks_); }},
            {"module", [this] { return CreateModule(); },
             [this] { vkDestroyShaderModule(device_, module_, callbacks_); }},
            {"cache", [this] { return CreateCache(); },
             [this] { vkDestroyPipelineCache(device_, cache_, callbacks_); }},
            {"pipeline", [this] { return CreatePipeline(); },
             [this] { vkDestroyPipeline(device_, pipeline_, callbacks_); }},
            {"command pool", [this] { return CreateCommandPool(); },
             [this] { vkDestroyCommandPool(device_, command_pool_, callbacks_); }},
            {"command buffers", [this] { return AllocateCommandBuffers(); },
             [this] { vkFreeCommandBuffers(device_, command_pool_, 3, command_buffers_); }},
            {"fence", [this] { return CreateFence(); },
             [this] { vkDestroyFence(device_, fence_, callbacks_); }},
            {"semaphore", [this] { return CreateSemaphore(); },
             [this] { vkDestroySemaphore(device_, semaphore_, callbacks_); }},
            {"event", [this] { return CreateEvent(); },
             [this] { vkDestroyEvent(device_, event_, callbacks_); }},
            {"query pool", [this] { return CreateQueryPool(); },
             [this] { vkDestroyQueryPool(device_, query_pool_, callbacks_); }},
            {"private data slot", [this] { return CreateSlot(); },
             [this] { vkDestroyPrivateDataSlotEXT(device_, slot_, callbacks_); }},
        };
    }

  private:
    VkResult CreateMemory() {
        const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = 4096};
        return vkAllocateMemory(device_, &info, callbacks_, &memory_);
    }
    VkResult CreateBuffer() {
        const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                      .size = 256,
                                      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
        return vkCreateBuffer(device_, &info, callbacks_, &buffer_);
    }
    VkResult CreateSetLayout() {
        const VkDescriptorSetLayoutBinding binding{
            .binding = 0,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 3,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
        const VkDescriptorSetLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
            .bindingCount = 1,
            .pBindings = &binding};
        return vkCreateDescriptorSetLayout(device_, &info, callbacks_, &set_layout_);
    }
    VkResult CreatePool() {
        const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 12};
        const VkDescriptorPoolCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
            .maxSets = 4,
            .poolSizeCount = 1,
            .pPoolSizes = &size};
        return vkCreateDescriptorPool(device_, &info, callbacks_, &pool_);
    }
    VkResult CreatePipelineLayout() {
        const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 16};
        const VkPipelineLayoutCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
            .setLayoutCount = 1,
            .pSetLayouts = &set_layout_,
            .pushConstantRangeCount = 1,
            .pPushConstantRanges = &range};
        return vkCreatePipelineLayout(device_, &info, callbacks_, &pipeline_layout_);
    }
    VkResult CreateTemplate() {
        const VkDescriptorUpdateTemplateEntry entry{
            .dstBinding = 0,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER};
        const VkDescriptorUpdateTemplateCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO,
            .descriptorUpdateEntryCount = 1,
            .pDescriptorUpdateEntries = &entry,
            .templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET,
            .descriptorSetLayout = set_layout_};
        return vkCreateDescriptorUpdateTemplate(device_, &info, callbacks_, &template_);
    }
    VkResult CreateModule() {
        constexpr TestProgram kProgram = {kSpirvMagic, 1};
        const VkShaderModuleCreateInfo info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = sizeof(kProgram),
                                            .pCode = kProgram.data()};
        return vkCreateShaderModule(device_, &info, callbacks_, &module_);
    }
    VkResult CreateCache() {
        const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
        return vkCreatePipelineCache(device_, &info, callbacks_, &cache_);
    }
    VkResult CreatePipeline() {
        // Without a cache: a cache that has no memory for an entry does without.
        const VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = module_,
                      .pName = "main"},
            .layout = pipeline_layout_};
        return vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, callbacks_, &pipeline_);
    }
    VkResult CreateCommandPool() {
        const VkCommandPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        return vkCreateCommandPool(device_, &info, callbacks_, &command_pool_);
    }
    VkResult AllocateCommandBuffers() {
        const VkCommandBufferAllocateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
            .commandPool = command_pool_,
            .commandBufferCount = 3};
        return vkAllocateCommandBuffers(device_, &info, command_buffers_);
    }
    VkResult CreateFence() {
        const VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
        return vkCreateFence(device_, &info, callbacks_, &fence_);
    }
    VkResult CreateSemaphore() {
        const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
        return vkCreateSemaphore(device_, &info, callbacks_, &semaphore_);
    }
    VkResult CreateEvent() {
        const VkEventCreateInfo info{.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
        return vkCreateEvent(device_, &info, callbacks_, &event_);
    }
    VkResult CreateQueryPool() {
        const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                         .queryCount = 4};
        return vkCreateQueryPool(device_, &info, callbacks_, &query_pool_);
    }
    VkResult CreateSlot() {
        const VkPrivateDataSlotCreateInfo info{.sType =
                                                   VK_STRUCTURE_TYPE_PRIVATE_DATA_SLOT_CREATE_INFO};
        return vkCreatePrivateDataSlotEXT(device_, &info, callbacks_, &slot_);
    }

    VkDevice device_;
    const VkAllocationCallbacks* callbacks_;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
    VkDescriptorPool pool_ = VK_NULL_HANDLE;
    VkPipelineLayout pipeline_layout_ = VK_NULL_HANDLE;
    VkDescriptorUpdateTemplate template_ = VK_NULL_HANDLE;
    VkShaderModule module_ = VK_NULL_HANDLE;
    VkPipelineCache cache_ = VK_NULL_HANDLE;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkCommandPool command_pool_ = VK_NULL_HANDLE;
    VkCommandBuffer command_buffers_[3] = {};
    VkFence fence_ = VK_NULL_HANDLE;
    VkSemaphore semaphore_ = VK_NULL_HANDLE;
    VkEvent event_ = VK_NULL_HANDLE;
    VkQueryPool query_pool_ = VK_NULL_HANDLE;
    VkPrivateDataSlot slot_ = VK_NULL_HANDLE;
};

// "If pAllocator is not null, it is used for the object": the device's allocator sees nothing.
TEST_F(AllocationTest, ObjectsUseTheirOwnAllocator) {
    CountingAllocator object_allocator;
    CreateAll({.device_extensions = {"VK_EXT_private_data"},
               .callbacks = instance_allocator_.callbacks()});
    instance_allocator_.FailAt(-1);
    ObjectFactory factory(device_, object_allocator.callbacks());
    const auto steps = factory.Steps();
    for (const auto& step : steps) {
        SCOPED_TRACE(step.name);
        FailEveryAllocation(object_allocator, step.create, step.destroy);
        ASSERT_EQ(step.create(), VK_SUCCESS);  // later steps need it
    }
    EXPECT_EQ(instance_allocator_.allocation_count(), 0);
    EXPECT_EQ(object_allocator.live_count(),
              object_allocator.live_count(VK_SYSTEM_ALLOCATION_SCOPE_OBJECT));
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
        step->destroy();
}

// "Otherwise that of the device, and then of the instance."
TEST_F(AllocationTest, ObjectsFallBackToTheInstancesAllocator) {
    // The device is created without callbacks of its own.
    ASSERT_EQ(CreateInstance({.callbacks = instance_allocator_.callbacks()}), VK_SUCCESS);
    callbacks_ = nullptr;
    ASSERT_EQ(CreateDevice({.device_extensions = {"VK_EXT_private_data"}}), VK_SUCCESS);
    ObjectFactory factory(device_, nullptr);
    const auto steps = factory.Steps();
    for (const auto& step : steps) {
        SCOPED_TRACE(step.name);
        FailEveryAllocation(instance_allocator_, step.create, step.destroy);
        ASSERT_EQ(step.create(), VK_SUCCESS);
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
        step->destroy();
    vkDestroyDevice(device_, nullptr);
    device_ = VK_NULL_HANDLE;
    callbacks_ = instance_allocator_.callbacks();
}

// Names and private data are the driver's own allocations on behalf of an object.
TEST_F(AllocationTest, NamesAndPrivateDataAreFreedWithTheirObject) {
    CreateAll({.device_extensions = {"VK_EXT_private_data"},
               .callbacks = instance_allocator_.callbacks()});
    const VkPrivateDataSlotCreateInfo slot_info{
        .sType = VK_STRUCTURE_TYPE_PRIVATE_DATA_SLOT_CREATE_INFO};
    VkPrivateDataSlot slot = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreatePrivateDataSlotEXT(device_, &slot_info, nullptr, &slot), VK_SUCCESS);
    const auto device_bits = reinterpret_cast<uint64_t>(device_);
    const auto set_value = [&](uint64_t value) {
        return vkSetPrivateDataEXT(device_, VK_OBJECT_TYPE_DEVICE, device_bits, slot, value);
    };
    instance_allocator_.FailAt(0);
    EXPECT_EQ(set_value(1), VK_ERROR_OUT_OF_HOST_MEMORY);
    instance_allocator_.FailAt(-1);
    EXPECT_EQ(set_value(2), VK_SUCCESS);
    instance_allocator_.FailAt(0);  // a second value takes the place of the first
    EXPECT_EQ(set_value(3), VK_SUCCESS);
    instance_allocator_.FailAt(-1);
    vkDestroyPrivateDataSlotEXT(device_, slot, nullptr);

    VkDebugUtilsObjectNameInfoEXT name{.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                       .objectType = VK_OBJECT_TYPE_DEVICE,
                                       .objectHandle = reinterpret_cast<uint64_t>(device_),
                                       .pObjectName = "the furnace"};
    FailEveryAllocation(
        instance_allocator_, [&] { return vkSetDebugUtilsObjectNameEXT(device_, &name); },
        [&] {
            name.pObjectName = nullptr;
            EXPECT_EQ(vkSetDebugUtilsObjectNameEXT(device_, &name), VK_SUCCESS);
        });
    name.pObjectName = "left to the device's destruction";
    EXPECT_EQ(vkSetDebugUtilsObjectNameEXT(device_, &name), VK_SUCCESS);
}

}  // namespace
}  // namespace fornax::driver_test
