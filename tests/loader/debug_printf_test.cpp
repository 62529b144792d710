// What shaders print, through a messenger of the application.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "tests/loader/shaders/debug_printf.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class KernelsPrintfTest : public VulkanTest {
  protected:
    void SetUp() override { more_extensions_ = {VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME}; }
    void Start(const char* setting) {
        if (setting) {
            setenv("FORNAX_DEBUG_PRINTF", setting, 1);
        }
        VulkanTest::SetUp();
        unsetenv("FORNAX_DEBUG_PRINTF");
        const VkDebugUtilsMessengerCreateInfoEXT info{
            .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
            .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT,
            .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT,
            .pfnUserCallback = Hear,
            .pUserData = &printed_};
        VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
        ASSERT_VK(vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messenger));
        AtEnd(
            [this, messenger] { vkDestroyDebugUtilsMessengerEXT(instance_, messenger, nullptr); });
    }
    static VkBool32 VKAPI_PTR Hear(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                   VkDebugUtilsMessageTypeFlagsEXT,
                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                   void* user) {
        // The loader speaks, too.
        if (data->pMessageIdName && std::string(data->pMessageIdName) == "fornax-debug-printf") {
            static_cast<std::vector<std::string>*>(user)->emplace_back(data->pMessage);
        }
        return VK_FALSE;
    }
    // What the shader says in one dispatch, sorted.
    static std::vector<std::string> Expected(uint32_t invocations,
                                             std::span<const uint32_t> words) {
        std::vector<std::string> all = {"once"};
        char text[128];
        for (uint32_t i = 0; i < invocations; ++i) {
            if (i % 3 == 0) {
                std::snprintf(text, sizeof(text), "%u: %.2f, 0.50, -1.00", i,
                              static_cast<double>(i));
                all.emplace_back(text);
            }
            for (uint32_t k = 0; i % 3 == 1 && k < i % 4; ++k) {
                std::snprintf(text, sizeof(text), "[%u] step %d of %u, %u, 100%%", i,
                              -static_cast<int>(k), i, words[i]);
                all.emplace_back(text);
            }
        }
        std::ranges::sort(all);
        return all;
    }

    std::vector<std::string> printed_;
};

TEST_F(KernelsPrintfTest, EveryMessageArrives) {
    Start("1");
    constexpr uint32_t kInvocations = 640;
    std::array buffers = {MakeBuffer(kInvocations)};
    std::iota(buffers[0].words, buffers[0].words + kInvocations, 1000);
    const TestPipeline pipeline = MakePipeline(spirv::kDebugPrintf, buffers);
    for (uint32_t round = 0; round < 3; ++round) {
        const auto expected = Expected(kInvocations, buffers[0].span());
        printed_.clear();
        Run(pipeline, kInvocations / 64);
        std::ranges::sort(printed_);
        ASSERT_EQ(printed_, expected) << "round " << round;
    }
}

TEST_F(KernelsPrintfTest, WhatHasNoRoomIsCounted) {
    Start("1000");
    std::array buffers = {MakeBuffer(640)};
    Run(MakePipeline(spirv::kDebugPrintf, buffers), 10);
    ASSERT_EQ(messages_.size(), 1u);
    unsigned lost = 0;
    unsigned bytes = 0;
    EXPECT_EQ(std::sscanf(messages_[0].c_str(),
                          "%u messages of debugPrintf were lost, because the buffer of %u bytes",
                          &lost, &bytes),
              2)
        << messages_[0];
    messages_.clear();
    EXPECT_EQ(bytes, 1000u);
    EXPECT_GE(printed_.size(), 10u);
    const std::vector<uint32_t> zeros(640);
    const auto all = Expected(640, zeros);
    EXPECT_EQ(printed_.size() + lost, all.size());
    std::ranges::sort(printed_);
    EXPECT_TRUE(std::ranges::includes(all, printed_));
}

TEST_F(KernelsPrintfTest, NothingIsPrintedUnasked) {
    Start(nullptr);
    std::array buffers = {MakeBuffer(64)};
    Run(MakePipeline(spirv::kDebugPrintf, buffers), 1);
    EXPECT_TRUE(printed_.empty());
    EXPECT_EQ(buffers[0].words[5], 1u);
}

}  // namespace
}  // namespace fornax::test
