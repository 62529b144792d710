// What applications hear of device memory: events of VK_EXT_device_memory_report, and the addresses
// of objects (VK_EXT_device_address_binding_report).
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using Event = VkDeviceMemoryReportCallbackDataEXT;

struct Binding {
    VkDeviceAddressBindingCallbackDataEXT data;
    VkObjectType type;
    uint64_t handle;
};

VKAPI_ATTR void VKAPI_CALL TakeEvent(const Event* event, void* user) {
    static_cast<std::vector<Event>*>(user)->push_back(*event);
}

VKAPI_ATTR VkBool32 VKAPI_CALL TakeBinding(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                           VkDebugUtilsMessageTypeFlagsEXT types,
                                           const VkDebugUtilsMessengerCallbackDataEXT* data,
                                           void* user) {
    EXPECT_EQ(severity, VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT);
    EXPECT_EQ(types, VkDebugUtilsMessageTypeFlagsEXT{
                         VK_DEBUG_UTILS_MESSAGE_TYPE_DEVICE_ADDRESS_BINDING_BIT_EXT});
    for (auto* s = static_cast<const VkBaseInStructure*>(data->pNext); s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_DEVICE_ADDRESS_BINDING_CALLBACK_DATA_EXT) {
            static_cast<std::vector<Binding>*>(user)->push_back(
                {*reinterpret_cast<const VkDeviceAddressBindingCallbackDataEXT*>(s),
                 data->pObjects[0].objectType, data->pObjects[0].objectHandle});
        }
    }
    return VK_FALSE;
}

template <typename Handle>
uint64_t Bits(Handle handle) {
    return reinterpret_cast<uint64_t>(handle);
}

class MemoryReportTest : public VulkanTest {
  protected:
    void SetUp() override {
        if (Validated()) {
            GTEST_SKIP() << "Layers give objects handles of their own.";
        }
        api_version_ = VK_API_VERSION_1_2;
        more_extensions_ = {VK_EXT_DEVICE_MEMORY_REPORT_EXTENSION_NAME,
                            VK_EXT_DEVICE_ADDRESS_BINDING_REPORT_EXTENSION_NAME,
                            VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                            VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME};
        second_.pUserData = &events_too_;
        first_.pUserData = &events_;
        more_features_ = &first_;
        VulkanTest::SetUp();
        const VkDebugUtilsMessengerCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
            .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT,
            .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_DEVICE_ADDRESS_BINDING_BIT_EXT,
            .pfnUserCallback = TakeBinding,
            .pUserData = &bindings_};
        VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
        ASSERT_VK(vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messenger));
        AtEnd(
            [this, messenger] { vkDestroyDebugUtilsMessengerEXT(instance_, messenger, nullptr); });
        Forget();
    }

    void Forget() {
        events_.clear();
        events_too_.clear();
        bindings_.clear();
    }

    VkResult Allocate(VkDeviceSize size, const void* chain, VkDeviceMemory* memory) {
        const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .pNext = chain,
                                        .allocationSize = size};
        return vkAllocateMemory(device_, &info, nullptr, memory);
    }

    void ExpectEvent(size_t index,
                     VkDeviceMemoryReportEventTypeEXT type,
                     VkObjectType object_type,
                     uint64_t handle) {
        ASSERT_LT(index, events_.size());
        EXPECT_EQ(events_[index].type, type);
        EXPECT_EQ(events_[index].objectType, object_type);
        EXPECT_EQ(events_[index].objectHandle, handle);
        EXPECT_EQ(events_[index].heapIndex, 0u);
        EXPECT_NE(events_[index].memoryObjectId, 0u);
    }

    std::vector<Event> events_;
    std::vector<Event> events_too_;  // of another callback
    std::vector<Binding> bindings_;
    VkPhysicalDeviceAddressBindingReportFeaturesEXT addresses_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ADDRESS_BINDING_REPORT_FEATURES_EXT,
        .reportAddressBinding = VK_TRUE};
    VkPhysicalDeviceDeviceMemoryReportFeaturesEXT reports_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DEVICE_MEMORY_REPORT_FEATURES_EXT,
        .pNext = &addresses_,
        .deviceMemoryReport = VK_TRUE};
    VkDeviceDeviceMemoryReportCreateInfoEXT second_{
        .sType = VK_STRUCTURE_TYPE_DEVICE_DEVICE_MEMORY_REPORT_CREATE_INFO_EXT,
        .pNext = &reports_,
        .pfnUserCallback = TakeEvent};
    VkDeviceDeviceMemoryReportCreateInfoEXT first_{
        .sType = VK_STRUCTURE_TYPE_DEVICE_DEVICE_MEMORY_REPORT_CREATE_INFO_EXT,
        .pNext = &second_,
        .pfnUserCallback = TakeEvent};
};

TEST_F(MemoryReportTest, AllocationsFreesAndFailures) {
    VkDeviceMemory memory[2] = {};
    ASSERT_VK(Allocate(5000, nullptr, &memory[0]));
    ASSERT_VK(Allocate(70'000, nullptr, &memory[1]));
    ASSERT_EQ(events_.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        ExpectEvent(i, VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_ALLOCATE_EXT,
                    VK_OBJECT_TYPE_DEVICE_MEMORY, Bits(memory[i]));
    }
    EXPECT_GE(events_[0].size, 5000u);
    EXPECT_GE(events_[1].size, 70'000u);
    EXPECT_NE(events_[0].memoryObjectId, events_[1].memoryObjectId);
    vkFreeMemory(device_, memory[0], nullptr);
    vkFreeMemory(device_, memory[1], nullptr);
    vkFreeMemory(device_, VK_NULL_HANDLE, nullptr);
    ASSERT_EQ(events_.size(), 4u);
    for (size_t i = 0; i < 2; ++i) {
        ExpectEvent(2 + i, VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_FREE_EXT,
                    VK_OBJECT_TYPE_DEVICE_MEMORY, Bits(memory[i]));
        EXPECT_EQ(events_[2 + i].memoryObjectId, events_[i].memoryObjectId);
    }
    const VkDeviceSize huge = VkDeviceSize{1} << 50;
    VkDeviceMemory none = VK_NULL_HANDLE;
    EXPECT_EQ(Allocate(huge, nullptr, &none), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    ASSERT_EQ(events_.size(), 5u);
    EXPECT_EQ(events_[4].type, VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_ALLOCATION_FAILED_EXT);
    EXPECT_EQ(events_[4].size, huge);
    EXPECT_EQ(events_[4].objectType, VK_OBJECT_TYPE_DEVICE_MEMORY);
    EXPECT_EQ(events_too_.size(), 5u);  // "one or multiple"
    messages_.clear();
}

// "To avoid double-counting": imports of one memory are one object, wherever they came from.
TEST_F(MemoryReportTest, ImportsAreTheSameMemory) {
    constexpr auto kType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    const VkExportMemoryAllocateInfo exported{
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = kType};
    VkDeviceMemory original = VK_NULL_HANDLE;
    VkDeviceMemory other = VK_NULL_HANDLE;
    ASSERT_VK(Allocate(1 << 16, &exported, &original));
    ASSERT_VK(Allocate(1 << 16, &exported, &other));
    VkDeviceMemory imports[2] = {};
    for (VkDeviceMemory& import : imports) {
        const VkMemoryGetFdInfoKHR get{.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                       .memory = original,
                                       .handleType = kType};
        int fd = -1;
        ASSERT_VK(vkGetMemoryFdKHR(device_, &get, &fd));
        const VkImportMemoryFdInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = kType, .fd = fd};
        ASSERT_VK(Allocate(1 << 16, &info, &import));
    }
    void* page = mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    const VkImportMemoryHostPointerInfoEXT host{
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = page};
    VkDeviceMemory of_host = VK_NULL_HANDLE;
    ASSERT_VK(Allocate(1 << 16, &host, &of_host));
    ASSERT_EQ(events_.size(), 5u);
    for (size_t i = 2; i < 5; ++i) {
        ExpectEvent(i, VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_IMPORT_EXT, VK_OBJECT_TYPE_DEVICE_MEMORY,
                    Bits(i == 4 ? of_host : imports[i - 2]));
        EXPECT_GE(events_[i].size, VkDeviceSize{1} << 16);
    }
    EXPECT_EQ(events_[2].memoryObjectId, events_[0].memoryObjectId);
    EXPECT_EQ(events_[3].memoryObjectId, events_[0].memoryObjectId);
    EXPECT_NE(events_[1].memoryObjectId, events_[0].memoryObjectId);
    EXPECT_NE(events_[4].memoryObjectId, events_[0].memoryObjectId);
    for (VkDeviceMemory memory : {imports[0], original, imports[1], of_host, other}) {
        vkFreeMemory(device_, memory, nullptr);
    }
    munmap(page, 1 << 16);
    ASSERT_EQ(events_.size(), 10u);
    const std::vector<std::pair<VkDeviceMemoryReportEventTypeEXT, VkDeviceMemory>> ends = {
        {VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_UNIMPORT_EXT, imports[0]},
        {VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_FREE_EXT, original},
        {VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_UNIMPORT_EXT, imports[1]},
        {VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_UNIMPORT_EXT, of_host},
        {VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_FREE_EXT, other}};
    for (size_t i = 0; i < ends.size(); ++i) {
        ExpectEvent(5 + i, ends[i].first, VK_OBJECT_TYPE_DEVICE_MEMORY, Bits(ends[i].second));
    }
    EXPECT_EQ(events_[6].memoryObjectId, events_[0].memoryObjectId);
}

// What the driver allocates for an object is attributed to it.
TEST_F(MemoryReportTest, ObjectsHaveMemoryOfTheirOwn) {
    const VkEventCreateInfo event_info{.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
    VkEvent event = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateEvent(device_, &event_info, nullptr, &event));
    const VkQueryPoolCreateInfo query_info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                           .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                           .queryCount = 3};
    VkQueryPool queries = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateQueryPool(device_, &query_info, nullptr, &queries));
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 4};
    const VkDescriptorPoolCreateInfo pool_info{
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size};
    VkDescriptorPool pool = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateDescriptorPool(device_, &pool_info, nullptr, &pool));
    vkDestroyDescriptorPool(device_, pool, nullptr);
    vkDestroyQueryPool(device_, queries, nullptr);
    vkDestroyEvent(device_, event, nullptr);
    const std::vector<std::pair<VkObjectType, uint64_t>> objects = {
        {VK_OBJECT_TYPE_EVENT, Bits(event)},
        {VK_OBJECT_TYPE_QUERY_POOL, Bits(queries)},
        {VK_OBJECT_TYPE_DESCRIPTOR_POOL, Bits(pool)}};
    ASSERT_EQ(events_.size(), 6u);
    ASSERT_EQ(bindings_.size(), 6u);
    std::set<uint64_t> ids;
    for (size_t i = 0; i < 3; ++i) {
        ExpectEvent(i, VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_ALLOCATE_EXT, objects[i].first,
                    objects[i].second);
        ExpectEvent(5 - i, VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_FREE_EXT, objects[i].first,
                    objects[i].second);
        EXPECT_EQ(events_[i].memoryObjectId, events_[5 - i].memoryObjectId);
        ids.insert(events_[i].memoryObjectId);
        // "Object creation functions may report binding events": then the handle is not known yet.
        EXPECT_EQ(bindings_[i].data.flags, VkDeviceAddressBindingFlagsEXT{
                                               VK_DEVICE_ADDRESS_BINDING_INTERNAL_OBJECT_BIT_EXT});
        EXPECT_EQ(bindings_[i].handle, objects[i].second);
        EXPECT_EQ(bindings_[5 - i].data.bindingType, VK_DEVICE_ADDRESS_BINDING_TYPE_UNBIND_EXT);
        EXPECT_EQ(bindings_[5 - i].data.baseAddress, bindings_[i].data.baseAddress);
    }
    EXPECT_EQ(ids.size(), 3u);
}

TEST_F(MemoryReportTest, BuffersAndImagesHaveAddresses) {
    const VkBufferCreateInfo buffer_info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                         .size = 1000,
                                         .usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    VkBuffer buffer = VK_NULL_HANDLE;
    VkBuffer unbound = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateBuffer(device_, &buffer_info, nullptr, &buffer));
    ASSERT_VK(vkCreateBuffer(device_, &buffer_info, nullptr, &unbound));
    const VkImageCreateInfo image_info{.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                       .imageType = VK_IMAGE_TYPE_2D,
                                       .format = VK_FORMAT_R8G8B8A8_UNORM,
                                       .extent = {16, 16, 1},
                                       .mipLevels = 1,
                                       .arrayLayers = 1,
                                       .samples = VK_SAMPLE_COUNT_1_BIT,
                                       .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT};
    VkImage image = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateImage(device_, &image_info, nullptr, &image));
    EXPECT_TRUE(bindings_.empty());
    VkMemoryRequirements needs;
    vkGetImageMemoryRequirements(device_, image, &needs);
    VkDeviceMemory memory = VK_NULL_HANDLE;
    ASSERT_VK(Allocate((1 << 16) + needs.size, nullptr, &memory));
    ASSERT_VK(vkBindBufferMemory(device_, buffer, memory, 256));
    ASSERT_VK(vkBindImageMemory(device_, image, memory, 1 << 16));
    ASSERT_EQ(bindings_.size(), 3u);
    EXPECT_EQ(bindings_[0].type, VK_OBJECT_TYPE_DEVICE_MEMORY);
    EXPECT_EQ(bindings_[0].handle, Bits(memory));
    EXPECT_GE(bindings_[0].data.size, (1 << 16) + needs.size);
    EXPECT_EQ(bindings_[0].data.flags,
              VkDeviceAddressBindingFlagsEXT{VK_DEVICE_ADDRESS_BINDING_INTERNAL_OBJECT_BIT_EXT});
    const uint64_t start = bindings_[0].data.baseAddress;
    EXPECT_EQ(bindings_[1].type, VK_OBJECT_TYPE_BUFFER);
    EXPECT_EQ(bindings_[1].handle, Bits(buffer));
    EXPECT_EQ(bindings_[1].data.baseAddress, start + 256);
    EXPECT_EQ(bindings_[1].data.size, 1000u);
    EXPECT_EQ(bindings_[1].data.flags, 0u);
    EXPECT_EQ(bindings_[2].type, VK_OBJECT_TYPE_IMAGE);
    EXPECT_EQ(bindings_[2].handle, Bits(image));
    EXPECT_EQ(bindings_[2].data.baseAddress, start + (1 << 16));
    EXPECT_LE(bindings_[2].data.size, needs.size);
    vkDestroyImage(device_, image, nullptr);
    vkDestroyBuffer(device_, buffer, nullptr);
    vkDestroyBuffer(device_, unbound, nullptr);
    vkFreeMemory(device_, memory, nullptr);
    ASSERT_EQ(bindings_.size(), 6u);
    for (size_t i = 0; i < 3; ++i) {
        const Binding& begin = bindings_[i];
        const Binding& end = bindings_[5 - i];
        EXPECT_EQ(begin.data.bindingType, VK_DEVICE_ADDRESS_BINDING_TYPE_BIND_EXT);
        EXPECT_EQ(end.data.bindingType, VK_DEVICE_ADDRESS_BINDING_TYPE_UNBIND_EXT);
        EXPECT_EQ(end.data.baseAddress, begin.data.baseAddress);
        EXPECT_EQ(end.data.size, begin.data.size);
        EXPECT_EQ(end.type, begin.type);
        EXPECT_EQ(end.handle, begin.handle);
    }
}

}  // namespace
}  // namespace fornax::test
