// VK_KHR_shader_clock: a clock that only grows, for all subgroups alike.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/loader/shaders/clock.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class KernelsClockTest : public VulkanTest {
  protected:
    void SetUp() override {
        core_features_.shaderInt64 = VK_TRUE;
        more_extensions_ = {VK_KHR_SHADER_CLOCK_EXTENSION_NAME};
        more_features_ = &clock_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderClockFeaturesKHR clock_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR,
        .shaderSubgroupClock = VK_TRUE,
        .shaderDeviceClock = VK_TRUE};
};

TEST_F(KernelsClockTest, TimeOnlyGrows) {
    constexpr uint32_t kGroups = 8;
    constexpr uint32_t kInvocations = kGroups * 64;
    const TestBuffer out = MakeBuffer(kInvocations * 8);
    const TestBuffer work = MakeBuffer(kInvocations);
    std::array buffers = {out, work};
    const TestPipeline pipeline = MakePipeline(spirv::kClock, buffers);
    uint64_t last_end = 0;
    for (int run = 0; run < 3; ++run) {
        Run(pipeline, kGroups);
        uint64_t begin = ~uint64_t{0};
        uint64_t end = 0;
        for (uint32_t i = 0; i < kInvocations; ++i) {
            uint64_t times[4];
            std::memcpy(times, out.words + i * 8, sizeof(times));
            ASSERT_TRUE(std::ranges::is_sorted(times)) << "invocation " << i;
            ASSERT_LT(times[1], times[2]) << "the work of invocation " << i << " took no time";
            begin = std::min(begin, times[0]);
            end = std::max(end, times[3]);
        }
        // Work that was waited for is over before the next begins, on whatever processor.
        EXPECT_GT(begin, last_end) << "run " << run;
        last_end = end;
    }
}

}  // namespace
}  // namespace fornax::test
