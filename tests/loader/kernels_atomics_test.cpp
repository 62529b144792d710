// Atomics on 64-bit integers and on floats, and the Vulkan memory model, through the loader. What
// is left in memory is compared with a reference; float sums are small whole numbers, so exact.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "tests/loader/shaders/last_workgroup.spv.h"
#include "tests/loader/shaders/wide_atomics.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class WideAtomicsTest : public VulkanTest {
  protected:
    void SetUp() override {
        core_features_.shaderFloat64 = VK_TRUE;
        core_features_.shaderInt64 = VK_TRUE;
        more_extensions_ = {
            VK_KHR_SHADER_ATOMIC_INT64_EXTENSION_NAME, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME,
            VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME, VK_KHR_16BIT_STORAGE_EXTENSION_NAME,
            VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME};
        more_features_ = &int64_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceShaderFloat16Int8Features half_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .shaderFloat16 = VK_TRUE};
    VkPhysicalDevice16BitStorageFeatures storage_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        .pNext = &half_,
        .storageBuffer16BitAccess = VK_TRUE};
    VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT float2_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT,
        .pNext = &storage_,
        .shaderBufferFloat16Atomics = VK_TRUE,
        .shaderBufferFloat16AtomicAdd = VK_TRUE,
        .shaderBufferFloat16AtomicMinMax = VK_TRUE,
        .shaderBufferFloat32AtomicMinMax = VK_TRUE,
        .shaderBufferFloat64AtomicMinMax = VK_TRUE,
        .shaderSharedFloat16Atomics = VK_TRUE,
        .shaderSharedFloat16AtomicAdd = VK_TRUE,
        .shaderSharedFloat16AtomicMinMax = VK_TRUE,
        .shaderSharedFloat32AtomicMinMax = VK_TRUE,
        .shaderSharedFloat64AtomicMinMax = VK_TRUE};
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT float_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT,
        .pNext = &float2_,
        .shaderBufferFloat32Atomics = VK_TRUE,
        .shaderBufferFloat32AtomicAdd = VK_TRUE,
        .shaderBufferFloat64Atomics = VK_TRUE,
        .shaderBufferFloat64AtomicAdd = VK_TRUE,
        .shaderSharedFloat32Atomics = VK_TRUE,
        .shaderSharedFloat32AtomicAdd = VK_TRUE,
        .shaderSharedFloat64Atomics = VK_TRUE,
        .shaderSharedFloat64AtomicAdd = VK_TRUE};
    VkPhysicalDeviceShaderAtomicInt64Features int64_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES,
        .pNext = &float_,
        .shaderBufferInt64Atomics = VK_TRUE,
        .shaderSharedInt64Atomics = VK_TRUE};
};

// A whole number of at most 11 bits as IEEE binary16.
uint16_t Half(int value) {
    if (value == 0) {
        return 0;
    }
    int exponent = 0;
    const double fraction = std::frexp(std::abs(value), &exponent);  // 0.5 to 1
    const auto mantissa = static_cast<uint16_t>(fraction * 2048) & 1023u;
    return static_cast<uint16_t>((value < 0 ? 0x8000u : 0u) |
                                 static_cast<uint32_t>(exponent + 14) << 10 | mantissa);
}

// As wide_atomics.comp declares it.
struct Cells {
    uint64_t add = 0, umin = ~0ull, umax = 0;
    int64_t smin = INT64_MAX, smax = INT64_MIN;
    uint64_t and_ = ~0ull, or_ = 0, xor_ = 0, exchange = 7, returned = 0, swaps = 1;
    double dadd = 0, dmin = 1e9, dmax = -1e9, dexchange = 3, dreturned = 0;
    float fadd = 0, fmin = 1e9f, fmax = -1e9f, fexchange = 3, freturned = 0;
    float bins[8] = {};
    uint64_t wide_bins[8] = {};
    uint16_t hadd = 0, hmin = Half(2000), hmax = Half(-2000), hexchange = Half(-5);
    uint16_t hbins[8] = {0, 0, 0, 0, 0, 0, 0, Half(5)};
};
static_assert(sizeof(Cells) == 272);

class Reference {
  public:
    void Take(uint32_t word) {
        const uint64_t wide = uint64_t{word} << 20 ^ uint64_t { word * 77 } << 45;
        const uint32_t small = word >> 8 & 255;
        const float number = static_cast<float>(small) - 100;
        ++cells_.add;
        cells_.umin = std::min(cells_.umin, wide);
        cells_.umax = std::max(cells_.umax, wide);
        cells_.smin = std::min(cells_.smin, static_cast<int64_t>(wide));
        cells_.smax = std::max(cells_.smax, static_cast<int64_t>(wide));
        cells_.and_ &= wide | 0xff00000000ull;
        cells_.or_ |= wide & 0xf0f0f0f0f0ull;
        cells_.xor_ ^= wide;
        wide_sum_ += wide;
        cells_.swaps *= wide | 1;
        cells_.dadd += small;
        cells_.dmin = std::min<double>(cells_.dmin, number);
        cells_.dmax = std::max<double>(cells_.dmax, number);
        cells_.fadd += static_cast<float>(small);
        cells_.fmin = std::min(cells_.fmin, number);
        cells_.fmax = std::max(cells_.fmax, number);
        cells_.bins[small & 7] += 1;
        cells_.wide_bins[small & 7] += wide;
        odd_ += static_cast<int>(small & 1);
        ++halves_[small % 7];
    }
    void Check(const Cells& got) const {
        EXPECT_EQ(got.add, cells_.add);
        EXPECT_EQ(got.umin, cells_.umin);
        EXPECT_EQ(got.umax, cells_.umax);
        EXPECT_EQ(got.smin, cells_.smin);
        EXPECT_EQ(got.smax, cells_.smax);
        EXPECT_EQ(got.and_, cells_.and_);
        EXPECT_EQ(got.or_, cells_.or_);
        EXPECT_EQ(got.xor_, cells_.xor_);
        // Everything that was put in comes out but the last, and what was there before.
        EXPECT_EQ(got.returned + got.exchange, wide_sum_ + 7);
        EXPECT_EQ(got.swaps, cells_.swaps);
        EXPECT_EQ(got.dadd, cells_.dadd);
        EXPECT_EQ(got.dmin, cells_.dmin);
        EXPECT_EQ(got.dmax, cells_.dmax);
        EXPECT_EQ(got.dreturned + got.dexchange, cells_.dadd + 3);
        EXPECT_EQ(got.fadd, cells_.fadd);
        EXPECT_EQ(got.fmin, cells_.fmin);
        EXPECT_EQ(got.fmax, cells_.fmax);
        EXPECT_EQ(got.freturned + got.fexchange, cells_.fadd + 3);
        EXPECT_EQ(got.hadd, Half(odd_));
        EXPECT_EQ(got.hmin, Half(static_cast<int>(cells_.fmin)));
        EXPECT_EQ(got.hmax, Half(static_cast<int>(cells_.fmax)));
        EXPECT_EQ(got.hexchange, Half(5));
        for (int i = 0; i < 8; ++i) {
            EXPECT_EQ(got.bins[i], cells_.bins[i]) << i;
            EXPECT_EQ(got.wide_bins[i], cells_.wide_bins[i]) << i;
            EXPECT_EQ(got.hbins[i], Half(halves_[i])) << i;
        }
    }

  private:
    Cells cells_;
    uint64_t wide_sum_ = 0;
    int odd_ = 0;
    std::array<int, 8> halves_ = {};
};

TEST_F(WideAtomicsTest, AtomicsOnWideIntegersAndFloats) {
    constexpr uint32_t kGroups = 5;
    constexpr uint32_t kInvocations = kGroups * 96;
    std::array buffers = {MakeBuffer(kInvocations), MakeBuffer(sizeof(Cells) / 4),
                          MakeBuffer(kGroups * sizeof(Cells) / 4), MakeBuffer(kInvocations * 2)};
    std::mt19937 random(5);
    for (uint32_t& word : buffers[0].span()) {
        word = static_cast<uint32_t>(random());
    }
    auto* all = reinterpret_cast<Cells*>(buffers[1].words);
    auto* local = reinterpret_cast<Cells*>(buffers[2].words);
    *all = Cells();
    std::fill_n(local, kGroups, Cells());
    Run(MakePipeline(spirv::kWideAtomics, buffers), kGroups);
    Reference of_all;
    for (uint32_t group = 0; group < kGroups; ++group) {
        SCOPED_TRACE(group);
        Reference of_group;
        for (uint32_t i = group * 96; i < (group + 1) * 96; ++i) {
            of_all.Take(buffers[0].words[i]);
            of_group.Take(buffers[0].words[i]);
        }
        of_group.Check(local[group]);
    }
    of_all.Check(*all);
    for (uint32_t count : buffers[3].span()) {
        ASSERT_EQ(count, 1u);
    }
}

class MemoryModelTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME};
        more_features_ = &model_;
        VulkanTest::SetUp();
    }
    VkPhysicalDeviceVulkanMemoryModelFeatures model_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
        .vulkanMemoryModel = VK_TRUE,
        .vulkanMemoryModelDeviceScope = VK_TRUE,
        .vulkanMemoryModelAvailabilityVisibilityChains = VK_TRUE};
};

TEST_F(MemoryModelTest, TheLastWorkgroupSeesWhatAllOthersWrote) {
    constexpr uint32_t kGroups = 777;
    constexpr uint32_t kRuns = 20;
    std::array buffers = {MakeBuffer(kGroups * 64), MakeBuffer(kGroups), MakeBuffer(1),
                          MakeBuffer(2)};
    const TestPipeline pipeline = MakePipeline(spirv::kLastWorkgroup, buffers);
    std::mt19937 random(1);
    for (uint32_t run = 0; run < kRuns; ++run) {
        uint32_t sum = 0;
        for (uint32_t& word : buffers[0].span()) {
            sum += word = static_cast<uint32_t>(random());
        }
        std::ranges::fill(buffers[1].span(), 0xffffffffu);
        buffers[2].words[0] = 0;
        Run(pipeline, kGroups);
        ASSERT_EQ(buffers[3].words[0], sum);
        ASSERT_EQ(buffers[3].words[1], run + 1);
    }
}

}  // namespace
}  // namespace fornax::test
