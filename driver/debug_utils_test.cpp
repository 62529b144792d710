// Messengers hear the driver's errors, names travel with objects, private data stays with them.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "driver/test_device.h"

namespace fornax::driver_test {
namespace {

using ::testing::HasSubstr;

struct Heard {
    std::string text;
    std::string id;
    VkDebugUtilsMessageSeverityFlagBitsEXT severity;
    VkObjectType object_type = VK_OBJECT_TYPE_UNKNOWN;
    uint64_t object = 0;
    std::string object_name;
};

VKAPI_ATTR VkBool32 VKAPI_CALL Listen(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                      VkDebugUtilsMessageTypeFlagsEXT,
                                      const VkDebugUtilsMessengerCallbackDataEXT* data,
                                      void* user) {
    Heard heard{.text = data->pMessage,
                .id = data->pMessageIdName ? data->pMessageIdName : "",
                .severity = severity};
    if (data->objectCount > 0) {
        heard.object_type = data->pObjects[0].objectType;
        heard.object = data->pObjects[0].objectHandle;
        heard.object_name = data->pObjects[0].pObjectName ? data->pObjects[0].pObjectName : "";
    }
    static_cast<std::vector<Heard>*>(user)->push_back(heard);
    return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT MessengerInfo(
    std::vector<Heard>* heard,
    VkDebugUtilsMessageSeverityFlagsEXT severities = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                                                     VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT) {
    return {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
            .messageSeverity = severities,
            .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
            .pfnUserCallback = Listen,
            .pUserData = heard};
}

class DebugUtilsTest : public TestDevice {
  protected:
    // Something that fails and says why.
    VkResult Provoke() {
        const VkFramebufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
        VkFramebuffer framebuffer = VK_NULL_HANDLE;
        return vkCreateFramebuffer(device_, &info, nullptr, &framebuffer);
    }
};

TEST_F(DebugUtilsTest, MessengersHearErrorsOfNamedObjects) {
    CreateAll();
    std::vector<Heard> heard;
    std::vector<Heard> warnings_only;
    const auto info = MessengerInfo(&heard);
    const auto other =
        MessengerInfo(&warnings_only, VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT);
    VkDebugUtilsMessengerEXT messengers[2];
    ASSERT_EQ(vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messengers[0]),
              VK_SUCCESS);
    ASSERT_EQ(vkCreateDebugUtilsMessengerEXT(instance_, &other, nullptr, &messengers[1]),
              VK_SUCCESS);
    const VkDebugUtilsObjectNameInfoEXT name{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = VK_OBJECT_TYPE_DEVICE,
        .objectHandle = reinterpret_cast<uint64_t>(device_),
        .pObjectName = "furnace"};
    ASSERT_EQ(vkSetDebugUtilsObjectNameEXT(device_, &name), VK_SUCCESS);

    EXPECT_EQ(Provoke(), VK_ERROR_UNKNOWN);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_THAT(heard[0].text, HasSubstr("vkCreateFramebuffer"));
    EXPECT_EQ(heard[0].id, "VK_ERROR_UNKNOWN");
    EXPECT_EQ(heard[0].severity, VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT);
    EXPECT_EQ(heard[0].object_type, VK_OBJECT_TYPE_DEVICE);
    EXPECT_EQ(heard[0].object, reinterpret_cast<uint64_t>(device_));
    EXPECT_EQ(heard[0].object_name, "furnace");
    EXPECT_TRUE(warnings_only.empty());

    vkDestroyDebugUtilsMessengerEXT(instance_, messengers[0], nullptr);
    EXPECT_EQ(Provoke(), VK_ERROR_UNKNOWN);
    EXPECT_EQ(heard.size(), 1u);
    vkDestroyDebugUtilsMessengerEXT(instance_, messengers[1], nullptr);
}

TEST_F(DebugUtilsTest, MessagesOfTheApplicationArePassedOn) {
    CreateAll();
    std::vector<Heard> heard;
    const auto info = MessengerInfo(&heard);
    VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
    ASSERT_EQ(vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messenger), VK_SUCCESS);
    const VkDebugUtilsMessengerCallbackDataEXT data{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT,
        .pMessageIdName = "id",
        .pMessage = "hello"};
    vkSubmitDebugUtilsMessageEXT(instance_, VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT,
                                 VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT, &data);
    vkSubmitDebugUtilsMessageEXT(instance_, VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT,
                                 VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT, &data);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].text, "hello");
    vkDestroyDebugUtilsMessengerEXT(instance_, messenger, nullptr);
}

// A messenger chained to VkInstanceCreateInfo hears its creation, and nothing between that and
// destruction.
TEST_F(DebugUtilsTest, ChainedMessengersHearInstanceCreation) {
    volkInitializeCustom(vk_icdGetInstanceProcAddr);
    std::vector<Heard> heard;
    const auto messenger = MessengerInfo(&heard);
    const char* missing = "VK_NO_such_extension";
    VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                              .pNext = &messenger,
                              .enabledExtensionCount = 1,
                              .ppEnabledExtensionNames = &missing};
    VkInstance instance = VK_NULL_HANDLE;
    EXPECT_EQ(vkCreateInstance(&info, nullptr, &instance), VK_ERROR_EXTENSION_NOT_PRESENT);
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_THAT(heard[0].text, HasSubstr(missing));

    const char* present = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    info.ppEnabledExtensionNames = &present;
    ASSERT_EQ(vkCreateInstance(&info, nullptr, &instance_), VK_SUCCESS);
    volkLoadInstance(instance_);
    EXPECT_EQ(CreateDevice({.device_extensions = {missing}}), VK_ERROR_EXTENSION_NOT_PRESENT);
    EXPECT_EQ(heard.size(), 1u);
}

class PrivateDataTest : public TestDevice {};

TEST_F(PrivateDataTest, ValuesBelongToObjectAndSlot) {
    VkPhysicalDevicePrivateDataFeatures feature{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PRIVATE_DATA_FEATURES, .privateData = VK_TRUE};
    CreateAll({.device_extensions = {"VK_EXT_private_data"}, .device_chain = &feature});
    const VkPrivateDataSlotCreateInfo info{.sType =
                                               VK_STRUCTURE_TYPE_PRIVATE_DATA_SLOT_CREATE_INFO};
    VkPrivateDataSlot slots[2];
    for (VkPrivateDataSlot& slot : slots) {
        ASSERT_EQ(vkCreatePrivateDataSlotEXT(device_, &info, nullptr, &slot), VK_SUCCESS);
    }
    const auto device = reinterpret_cast<uint64_t>(device_);
    const auto queue = reinterpret_cast<uint64_t>(queue_);
    const auto get = [&](VkObjectType type, uint64_t object, VkPrivateDataSlot slot) {
        uint64_t value = 99;
        vkGetPrivateDataEXT(device_, type, object, slot, &value);
        return value;
    };
    EXPECT_EQ(get(VK_OBJECT_TYPE_QUEUE, queue, slots[0]), 0u);
    ASSERT_EQ(vkSetPrivateDataEXT(device_, VK_OBJECT_TYPE_QUEUE, queue, slots[0], 5), VK_SUCCESS);
    ASSERT_EQ(vkSetPrivateDataEXT(device_, VK_OBJECT_TYPE_QUEUE, queue, slots[1], 6), VK_SUCCESS);
    ASSERT_EQ(vkSetPrivateDataEXT(device_, VK_OBJECT_TYPE_DEVICE, device, slots[0], 7), VK_SUCCESS);
    ASSERT_EQ(vkSetPrivateDataEXT(device_, VK_OBJECT_TYPE_QUEUE, queue, slots[0], 8), VK_SUCCESS);
    EXPECT_EQ(get(VK_OBJECT_TYPE_QUEUE, queue, slots[0]), 8u);
    EXPECT_EQ(get(VK_OBJECT_TYPE_QUEUE, queue, slots[1]), 6u);
    EXPECT_EQ(get(VK_OBJECT_TYPE_DEVICE, device, slots[0]), 7u);
    EXPECT_EQ(get(VK_OBJECT_TYPE_DEVICE, device, slots[1]), 0u);

    // A new slot starts empty, even if it lies where the old one lay.
    vkDestroyPrivateDataSlotEXT(device_, slots[0], nullptr);
    ASSERT_EQ(vkCreatePrivateDataSlotEXT(device_, &info, nullptr, &slots[0]), VK_SUCCESS);
    EXPECT_EQ(get(VK_OBJECT_TYPE_QUEUE, queue, slots[0]), 0u);
    for (VkPrivateDataSlot slot : slots) {
        vkDestroyPrivateDataSlotEXT(device_, slot, nullptr);
    }
}

}  // namespace
}  // namespace fornax::driver_test
