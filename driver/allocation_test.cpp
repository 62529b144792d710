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
#include "driver/test_objects.h"

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
        if (self.next_++ == self.fail_at_) {
            return nullptr;
        }
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
                             const std::function<void()>& destroy,
                             bool allocates = true) {
        const size_t before = allocator.live_count();
        for (int n = 0; n < 1000; ++n) {
            SCOPED_TRACE("allocation " + std::to_string(n));
            allocator.FailAt(n);
            const VkResult result = create();
            const bool failed = allocator.failed();
            allocator.FailAt(-1);
            if (!failed) {
                EXPECT_EQ(result, VK_SUCCESS);
                EXPECT_EQ(n > 0, allocates) << "whether something was allocated";
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
    const VkDeviceDeviceMemoryReportCreateInfoEXT report{
        .sType = VK_STRUCTURE_TYPE_DEVICE_DEVICE_MEMORY_REPORT_CREATE_INFO_EXT,
        .pfnUserCallback = [](const VkDeviceMemoryReportCallbackDataEXT*, void*) {}};
    const TestDeviceOptions options{.device_extensions = {"VK_EXT_device_memory_report"},
                                    .device_chain = &report,
                                    .callbacks = instance_allocator_.callbacks()};
    FailEveryAllocation(
        instance_allocator_,
        [&] {
            VkResult result = CreateInstance(options);
            if (result == VK_SUCCESS) {
                result = CreateDevice(options);
            }
            if (result != VK_SUCCESS) {
                DestroyAll();
            }
            return result;
        },
        [&] { DestroyAll(); });
    EXPECT_TRUE(instance_allocator_.scopes().contains(VK_SYSTEM_ALLOCATION_SCOPE_INSTANCE));
    EXPECT_TRUE(instance_allocator_.scopes().contains(VK_SYSTEM_ALLOCATION_SCOPE_DEVICE));
}

// "If pAllocator is not null, it is used for the object": the device's allocator sees nothing.
TEST_F(AllocationTest, ObjectsUseTheirOwnAllocator) {
    CountingAllocator object_allocator;
    CreateAll({.instance_extensions = kFactoryExtensions,
               .device_extensions = {"VK_EXT_private_data"},
               .callbacks = instance_allocator_.callbacks()});
    instance_allocator_.FailAt(-1);
    ObjectFactory factory(instance_, device_, object_allocator.callbacks());
    const auto steps = factory.Steps();
    for (const auto& step : steps) {
        SCOPED_TRACE(step.command);
        FailEveryAllocation(object_allocator, step.create, step.destroy, step.allocates);
        ASSERT_EQ(step.create(), VK_SUCCESS);  // later steps need it
    }
    EXPECT_EQ(instance_allocator_.allocation_count(), 0);
    EXPECT_EQ(object_allocator.live_count(),
              object_allocator.live_count(VK_SYSTEM_ALLOCATION_SCOPE_OBJECT));
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        step->destroy();
    }
}

// "Otherwise that of the device, and then of the instance."
TEST_F(AllocationTest, ObjectsFallBackToTheInstancesAllocator) {
    // The device is created without callbacks of its own.
    ASSERT_EQ(CreateInstance({.instance_extensions = kFactoryExtensions,
                              .callbacks = instance_allocator_.callbacks()}),
              VK_SUCCESS);
    callbacks_ = nullptr;
    ASSERT_EQ(CreateDevice({.device_extensions = {"VK_EXT_private_data"}}), VK_SUCCESS);
    ObjectFactory factory(instance_, device_, nullptr);
    const auto steps = factory.Steps();
    for (const auto& step : steps) {
        SCOPED_TRACE(step.command);
        FailEveryAllocation(instance_allocator_, step.create, step.destroy, step.allocates);
        ASSERT_EQ(step.create(), VK_SUCCESS);
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        step->destroy();
    }
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
