// Modules in the manner of compilers other than glslang, through the loader: what each of them does
// to entry points, loops and memory. The modules were written for this test.
#include <algorithm>
#include <functional>

#include "tests/loader/shaders/from_dxc.spv.h"
#include "tests/loader/shaders/from_iree.spv.h"
#include "tests/loader/shaders/from_rust_gpu.spv.h"
#include "tests/loader/shaders/from_slang.spv.h"
#include "tests/loader/shaders/from_tint.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

constexpr uint32_t kInvocations = 16;
constexpr uint32_t kWords = 4 * kInvocations;

uint32_t Input(uint32_t i) {
    return i * 0x9e3779b9u >> 24;
}

class KernelsProducersTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_GOOGLE_DECORATE_STRING_EXTENSION_NAME,
                            VK_GOOGLE_HLSL_FUNCTIONALITY_1_EXTENSION_NAME,
                            VK_GOOGLE_USER_TYPE_EXTENSION_NAME,
                            VK_KHR_SPIRV_1_4_EXTENSION_NAME,
                            VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME,
                            VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME};
        more_features_ = &model_;
        VulkanTest::SetUp();
    }

    // Two workgroups of eight; word i of the output is expected(i).
    void Check(std::span<const uint32_t> shader,
               const std::function<uint32_t(uint32_t)>& expected) {
        const TestBuffer output = MakeBuffer(kInvocations);
        const TestBuffer input = MakeBuffer(kWords);
        const TestBuffer constants = MakeBuffer(8, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
        for (uint32_t i = 0; i < kWords; ++i) {
            input.words[i] = Input(i);
        }
        std::ranges::copy(std::array{3, 5, 7, 11, 13, 17, 19, 23}, constants.words);
        const std::vector<TestBinding> bindings = {
            {.buffers = {output}},
            {.buffers = {input}},
            {.type = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, .buffers = {constants}}};
        Run(MakePipeline(shader, bindings), 2);
        for (uint32_t i = 0; i < kInvocations; ++i) {
            EXPECT_EQ(output.words[i], expected(i)) << "invocation " << i;
        }
    }

    VkPhysicalDeviceVulkanMemoryModelFeatures model_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
        .vulkanMemoryModel = VK_TRUE};
};

TEST_F(KernelsProducersTest, Dxc) {
    Check(spirv::kFromDxc, [](uint32_t i) {
        constexpr uint32_t kFactors[] = {3, 5, 7, 11};
        uint32_t sum = 13;
        for (uint32_t k = 0; k < 4; ++k) {
            const uint32_t word = Input(i * 4 + k);
            sum += word % 2 != 0 ? 0 : word * kFactors[k];
        }
        return sum;
    });
}

TEST_F(KernelsProducersTest, Slang) {
    Check(spirv::kFromSlang, [](uint32_t i) {
        const uint32_t a = Input(2 * i);
        const uint32_t b = Input(2 * i + 1);
        return a < 100 ? a + b : a - b;
    });
}

TEST_F(KernelsProducersTest, Tint) {
    Check(spirv::kFromTint, [](uint32_t i) {
        uint32_t total = i;
        for (uint32_t lane = 0; lane < 8; ++lane) {
            const uint32_t other = i / 8 * 8 + lane;
            const uint32_t far = Input(std::min(other * 1000, 4 * kInvocations - 1));
            total += Input(other) / (far == 0 ? 1 : far) * (lane + 1);
        }
        return total;
    });
}

TEST_F(KernelsProducersTest, RustGpu) {
    Check(spirv::kFromRustGpu, [](uint32_t i) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < 5; ++k) {
            sum = sum * 2 + (Input(i) >> k & 1);
        }
        return sum;
    });
}

TEST_F(KernelsProducersTest, Iree) {
    Check(spirv::kFromIree, [](uint32_t i) {
        uint32_t sum = Input(i);
        for (uint32_t k = 0; k < 3; ++k) {
            for (uint32_t c = 0; c < 4; ++c) {
                sum += Input((i + k) % 16 * 4 + c);
            }
        }
        return sum;
    });
}

}  // namespace
}  // namespace fornax::test
