// Callbacks of VK_EXT_debug_report hear what messengers hear.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "driver/test_device.h"

namespace fornax::driver_test {
namespace {

using ::testing::HasSubstr;

struct Heard {
    VkDebugReportFlagsEXT flags;
    VkDebugReportObjectTypeEXT type;
    uint64_t object;
    int32_t code;
    std::string prefix;
    std::string text;
};

VKAPI_ATTR VkBool32 VKAPI_CALL Listen(VkDebugReportFlagsEXT flags,
                                      VkDebugReportObjectTypeEXT type,
                                      uint64_t object,
                                      size_t,
                                      int32_t code,
                                      const char* prefix,
                                      const char* text,
                                      void* user) {
    static_cast<std::vector<Heard>*>(user)->push_back({flags, type, object, code, prefix, text});
    return VK_FALSE;
}

class DebugReportTest : public TestDevice {
  protected:
    void SetUp() override { CreateAll({.instance_extensions = {"VK_EXT_debug_report"}}); }

    VkDebugReportCallbackEXT MakeCallback(VkDebugReportFlagsEXT flags) {
        const VkDebugReportCallbackCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_DEBUG_REPORT_CALLBACK_CREATE_INFO_EXT,
            .flags = flags,
            .pfnCallback = Listen,
            .pUserData = &heard_};
        VkDebugReportCallbackEXT callback = VK_NULL_HANDLE;
        EXPECT_EQ(vkCreateDebugReportCallbackEXT(instance_, &info, nullptr, &callback), VK_SUCCESS);
        return callback;
    }
    void Destroy(VkDebugReportCallbackEXT callback) {
        vkDestroyDebugReportCallbackEXT(instance_, callback, nullptr);
    }
    void Say(VkDebugReportFlagsEXT flags) {
        vkDebugReportMessageEXT(instance_, flags, VK_DEBUG_REPORT_OBJECT_TYPE_DEVICE_EXT, 77, 5, 13,
                                "test", "hello");
    }

    std::vector<Heard> heard_;
};

TEST_F(DebugReportTest, ErrorsOfTheDriverAreHeard) {
    VkDebugReportCallbackEXT callback = MakeCallback(VK_DEBUG_REPORT_ERROR_BIT_EXT);
    const VkFramebufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO};
    VkFramebuffer framebuffer = VK_NULL_HANDLE;
    EXPECT_LT(vkCreateFramebuffer(device_, &info, nullptr, &framebuffer), VK_SUCCESS);
    ASSERT_EQ(heard_.size(), 1u);
    EXPECT_EQ(heard_[0].flags, VkFlags{VK_DEBUG_REPORT_ERROR_BIT_EXT});
    EXPECT_EQ(heard_[0].type, VK_DEBUG_REPORT_OBJECT_TYPE_DEVICE_EXT);
    EXPECT_THAT(heard_[0].text, HasSubstr("vkCreateFramebuffer"));
    Destroy(callback);
}

TEST_F(DebugReportTest, EachHearsTheKindsThatItAskedFor) {
    constexpr VkDebugReportFlagBitsEXT kAll[] = {
        VK_DEBUG_REPORT_INFORMATION_BIT_EXT, VK_DEBUG_REPORT_WARNING_BIT_EXT,
        VK_DEBUG_REPORT_PERFORMANCE_WARNING_BIT_EXT, VK_DEBUG_REPORT_ERROR_BIT_EXT,
        VK_DEBUG_REPORT_DEBUG_BIT_EXT};
    for (const VkDebugReportFlagBitsEXT wanted : kAll) {
        VkDebugReportCallbackEXT callback = MakeCallback(wanted);
        heard_.clear();
        for (const VkDebugReportFlagBitsEXT said : kAll) {
            Say(said);
        }
        ASSERT_EQ(heard_.size(), 1u) << wanted;
        EXPECT_EQ(heard_[0].flags, VkFlags{wanted});
        EXPECT_EQ(heard_[0].type, VK_DEBUG_REPORT_OBJECT_TYPE_DEVICE_EXT);
        EXPECT_EQ(heard_[0].object, 77u);
        EXPECT_EQ(heard_[0].code, 13);
        EXPECT_EQ(heard_[0].prefix, "test");
        EXPECT_EQ(heard_[0].text, "hello");
        Destroy(callback);
        Say(wanted);
        EXPECT_EQ(heard_.size(), 1u) << "heard after its end";
    }
    Destroy(VK_NULL_HANDLE);
}

// A callback in the chain of VkInstanceCreateInfo hears the creation itself.
TEST_F(DebugReportTest, CreationOfTheInstanceIsHeard) {
    const VkDebugReportCallbackCreateInfoEXT callback{
        .sType = VK_STRUCTURE_TYPE_DEBUG_REPORT_CALLBACK_CREATE_INFO_EXT,
        .flags = VK_DEBUG_REPORT_ERROR_BIT_EXT,
        .pfnCallback = Listen,
        .pUserData = &heard_};
    const char* const names[] = {"VK_EXT_debug_report", "VK_NO_such"};
    const VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                    .pNext = &callback,
                                    .enabledExtensionCount = 2,
                                    .ppEnabledExtensionNames = names};
    VkInstance instance = VK_NULL_HANDLE;
    EXPECT_EQ(vkCreateInstance(&info, nullptr, &instance), VK_ERROR_EXTENSION_NOT_PRESENT);
    ASSERT_EQ(heard_.size(), 1u);
    EXPECT_THAT(heard_[0].text, HasSubstr("VK_NO_such"));
}

}  // namespace
}  // namespace fornax::driver_test
