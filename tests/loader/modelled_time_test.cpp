// FORNAX_NPU and FORNAX_NPU_RECORDS through the loader: an ordinary program reads time of the
// described machine, and leaves cost records.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "npu/replay/record_file.h"
#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/shaders/add_lines.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kWords = 1 << 16;

class ModelledTimeTest : public VulkanTest {
  protected:
    void SetUp() override { more_extensions_ = {VK_KHR_CALIBRATED_TIMESTAMPS_EXTENSION_NAME}; }
    void TearDown() override {
        VulkanTest::TearDown();
        std::filesystem::remove(file_);
    }
    void Start(const char* machine, bool records) {
        file_ = std::filesystem::temp_directory_path() /
                ("fornax_modelled_time_" + std::to_string(getpid()) + ".jsonl");
        if (machine) {
            setenv("FORNAX_NPU", machine, 1);
        }
        if (records) {
            setenv("FORNAX_NPU_RECORDS", file_.c_str(), 1);
        }
        VulkanTest::SetUp();
        unsetenv("FORNAX_NPU");
        unsetenv("FORNAX_NPU_RECORDS");
    }

    struct Add {
        std::array<TestBuffer, 2> buffers;
        TestPipeline pipeline;
    };
    Add MakeAdd() {
        Add add{.buffers = {MakeBuffer(kWords), MakeBuffer(kWords)}};
        std::iota(add.buffers[0].words, add.buffers[0].words + kWords, 0);
        add.pipeline = MakePipeline(spirv::kAdd, add.buffers);
        return add;
    }
    VkQueryPool MakePool(uint32_t queries) {
        const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                         .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                         .queryCount = queries};
        VkQueryPool pool = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateQueryPool(device_, &info, nullptr, &pool));
        AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
        return pool;
    }
    void Dispatch(VkCommandBuffer commands, const Add& add, uint32_t words) {
        Bind(commands, add.pipeline);
        const std::array<uint32_t, 2> push = {5, words};
        vkCmdPushConstants(commands, add.pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           sizeof(push), push.data());
        vkCmdDispatch(commands, words / 32, 1, 1);
    }
    // Before, between and behind a dispatch of an eighth of the words and one of all.
    std::array<uint64_t, 3> Measure(const Add& add, VkQueryPool pool) {
        VkCommandBuffer commands = Begin();
        vkCmdResetQueryPool(commands, pool, 0, 3);
        for (uint32_t i = 0; i < 3; ++i) {
            vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, i);
            if (i < 2) {
                Dispatch(commands, add, i == 0 ? kWords / 8 : kWords);
                Barrier(commands);
            }
        }
        Run(commands);
        std::array<uint64_t, 3> times = {};
        EXPECT_VK(vkGetQueryPoolResults(device_, pool, 0, 3, sizeof(times), times.data(), 8,
                                        VK_QUERY_RESULT_64_BIT));
        return times;
    }
    uint64_t DeviceTime() {
        const VkCalibratedTimestampInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_KHR,
            .timeDomain = VK_TIME_DOMAIN_DEVICE_KHR};
        uint64_t time = 0;
        uint64_t deviation = 0;
        EXPECT_VK(vkGetCalibratedTimestampsKHR(device_, 1, &info, &time, &deviation));
        return time;
    }

    std::filesystem::path file_;
};

TEST_F(ModelledTimeTest, TheDeviceIsTheDescribedMachine) {
    Start("laptop-45", false);
    ASSERT_FALSE(HasFatalFailure());
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical_, &properties);
    EXPECT_STREQ(properties.deviceName, "Fornax (laptop-45, modelled)");
    EXPECT_FLOAT_EQ(properties.limits.timestampPeriod, 1 / 1.85f);
    EXPECT_EQ(properties.limits.maxComputeSharedMemorySize, 65536u);
}

// Types that its matrix units have no rate for are on the vector units, so they are not offered.
TEST_F(ModelledTimeTest, MatrixProductsAreThoseOfTheDescribedMachine) {
    more_extensions_.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
    Start("edge-4", false);
    ASSERT_FALSE(HasFatalFailure());
    uint32_t count = 0;
    EXPECT_VK(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_, &count, nullptr));
    std::vector<VkCooperativeMatrixPropertiesKHR> properties(
        count, {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
    EXPECT_VK(
        vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_, &count, properties.data()));
    std::set<VkComponentTypeKHR> types;
    for (const VkCooperativeMatrixPropertiesKHR& each : properties) {
        types.insert(each.AType);
    }
    EXPECT_EQ(types, (std::set{VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_BFLOAT16_KHR,
                               VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_UINT8_KHR}));
}

TEST_F(ModelledTimeTest, TimestampsAreModelled) {
    Start("edge-4", false);
    ASSERT_FALSE(HasFatalFailure());
    const Add add = MakeAdd();
    const VkQueryPool pool = MakePool(3);
    const uint64_t before = DeviceTime();
    const std::array first = Measure(add, pool);
    const std::array second = Measure(add, pool);
    EXPECT_EQ(add.buffers[1].words[kWords - 1], kWords + 4);
    // The same work takes the same time, whatever the host does; more takes longer.
    EXPECT_GE(first[0], before);
    EXPECT_GT(second[0], first[2]);
    EXPECT_EQ(second[1] - second[0], first[1] - first[0]);
    EXPECT_EQ(second[2] - second[1], first[2] - first[1]);
    EXPECT_GT(first[2] - first[1], first[1] - first[0]);
    // Bytes over the bandwidth of 8.5 GB/s, in cycles of 1 ns, and not many times as long.
    const double least = 2.0 * kWords * 4 / 8.5;
    EXPECT_GT(static_cast<double>(first[2] - first[1]), least);
    EXPECT_LT(static_cast<double>(first[2] - first[1]), 3 * least);
    // The clock stands where the last work ended.
    EXPECT_GE(DeviceTime(), second[2]);
    EXPECT_EQ(DeviceTime(), DeviceTime());
}

// What a command buffer copies of its own timestamps is there already.
TEST_F(ModelledTimeTest, CopiedTimestampsAreModelled) {
    Start("edge-4", false);
    ASSERT_FALSE(HasFatalFailure());
    const Add add = MakeAdd();
    const VkQueryPool pool = MakePool(2);
    const TestBuffer results = MakeBuffer(4);
    VkCommandBuffer commands = Begin();
    vkCmdResetQueryPool(commands, pool, 0, 2);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 0);
    Dispatch(commands, add, kWords);
    Barrier(commands);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 1);
    vkCmdCopyQueryPoolResults(commands, pool, 0, 2, results.handle, results.offset, 8,
                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    Barrier(commands);
    Run(commands);
    std::array<uint64_t, 2> copied = {};
    std::memcpy(copied.data(), results.words, sizeof(copied));
    std::array<uint64_t, 2> read = {};
    EXPECT_VK(vkGetQueryPoolResults(device_, pool, 0, 2, sizeof(read), read.data(), 8,
                                    VK_QUERY_RESULT_64_BIT));
    EXPECT_EQ(copied, read);
    EXPECT_GT(read[1], read[0]);
}

TEST_F(ModelledTimeTest, RecordsAreWrittenWhenTheDeviceEnds) {
    Start(nullptr, true);
    ASSERT_FALSE(HasFatalFailure());
    const Add add = MakeAdd();
    VkCommandBuffer commands = Begin();
    vkCmdFillBuffer(commands, add.buffers[1].handle, add.buffers[1].offset, kWords * 4, 0);
    Barrier(commands);
    const VkDebugUtilsLabelEXT label{.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
                                     .pLabelName = "sum of words"};
    vkCmdBeginDebugUtilsLabelEXT(commands, &label);
    Dispatch(commands, add, kWords);
    vkCmdEndDebugUtilsLabelEXT(commands);
    Dispatch(commands, add, kWords / 2);
    Run(commands);
    VkCommandBuffer nothing = Begin();
    Dispatch(nothing, add, 0);
    Run(nothing);
    vkDeviceWaitIdle(device_);
    VulkanTest::TearDown();

    const auto records = npu::ReadRecordFile(file_);
    ASSERT_TRUE(records.ok()) << records.error().message;
    ASSERT_EQ(records->size(), 3u);
    const auto& fill = std::get<npu::CopyRecord>((*records)[0].work);
    EXPECT_EQ(fill.kind, npu::CopyKind::kFill);
    EXPECT_EQ(fill.bytes, kWords * 4);
    EXPECT_TRUE((*records)[0].begins_submission);
    EXPECT_TRUE((*records)[0].after.empty());
    const auto& all = std::get<npu::DispatchRecord>((*records)[1].work);
    EXPECT_EQ(all.name, "sum of words");
    EXPECT_EQ(all.workgroups, kWords / 32);
    // i < count, the product with kScale being left out, and the sum.
    EXPECT_EQ(all.operations.total() % kWords, 0u);
    EXPECT_GE(all.operations.simple, 2u * kWords);
    // The buffers are memories of their own.
    ASSERT_EQ(all.accesses.size(), 2u);
    const uint64_t memories[] = {all.accesses[0].range.memory, all.accesses[1].range.memory};
    EXPECT_THAT(
        all.accesses,
        testing::ElementsAre(
            npu::Access{.bytes = kWords * 4, .range = {.memory = memories[0], .bytes = kWords * 4}},
            npu::Access{.writes = true,
                        .bytes = kWords * 4,
                        .range = {.memory = memories[1], .bytes = kWords * 4}}));
    EXPECT_GT(memories[0], 0u);
    EXPECT_GT(memories[1], 0u);
    EXPECT_NE(memories[0], memories[1]);
    // The module has no lines: instructions are named.
    ASSERT_FALSE(all.lines.empty());
    EXPECT_THAT(all.lines[0].line, testing::ContainsRegex("Op[A-Za-z]+ at word [0-9]+"));
    // Without a barrier in between both wait for the fill alone.
    for (size_t i = 1; i < 3; ++i) {
        EXPECT_EQ((*records)[i].after, std::vector{npu::RecordId(0)});
        EXPECT_FALSE((*records)[i].begins_submission);
    }
    const auto& half = std::get<npu::DispatchRecord>((*records)[2].work);
    EXPECT_THAT(half.name, HasSubstr("main"));
    EXPECT_EQ(half.accesses[0].bytes, kWords * 2);
}

// Records of a module that was compiled with lines (glslang -g) name them.
TEST_F(ModelledTimeTest, RecordsNameLinesOfTheSource) {
    Start(nullptr, true);
    ASSERT_FALSE(HasFatalFailure());
    Add add = MakeAdd();
    add.pipeline = MakePipeline(spirv::kAddLines, add.buffers);
    VkCommandBuffer commands = Begin();
    Dispatch(commands, add, kWords);
    Run(commands);
    vkDeviceWaitIdle(device_);
    VulkanTest::TearDown();

    const auto records = npu::ReadRecordFile(file_);
    ASSERT_TRUE(records.ok()) << records.error().message;
    ASSERT_FALSE(records->empty());
    // Other devices of the process may have left records before.
    const auto& dispatch = std::get<npu::DispatchRecord>(records->back().work);
    ASSERT_EQ(dispatch.lines.size(), 2u);
    EXPECT_EQ(dispatch.lines[0].work, npu::LineWork::kOperations);
    EXPECT_EQ(dispatch.lines[1], (npu::SourceLine{npu::LineWork::kBytes, "add.comp:12", 100}));
}

// Counters of the replay, with their units: the same numbers as the timestamps around them.
class ModelledCountersTest : public ModelledTimeTest {
  protected:
    void SetUp() override {
        ModelledTimeTest::SetUp();
        api_version_ = VK_API_VERSION_1_3;
        more_extensions_.push_back(VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME);
        performance_.performanceCounterQueryPools = VK_TRUE;
        more_features_ = &performance_;
    }
    uint32_t IndexOf(const std::string& name, VkPerformanceCounterUnitKHR unit) {
        uint32_t count = 0;
        EXPECT_VK(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
            physical_, 0, &count, nullptr, nullptr));
        std::vector<VkPerformanceCounterKHR> counters(
            count, {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_KHR});
        std::vector<VkPerformanceCounterDescriptionKHR> descriptions(
            count, {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_DESCRIPTION_KHR});
        EXPECT_VK(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
            physical_, 0, &count, counters.data(), descriptions.data()));
        for (uint32_t i = 0; i < count; ++i) {
            if (descriptions[i].name == name) {
                EXPECT_EQ(counters[i].unit, unit) << name;
                return i;
            }
        }
        ADD_FAILURE() << "There is no counter " << name << ".";
        return 0;
    }

    VkPhysicalDevicePerformanceQueryFeaturesKHR performance_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR};
};

TEST_F(ModelledCountersTest, AreThoseOfTheReplay) {
    Start("edge-4", false);
    ASSERT_FALSE(HasFatalFailure());
    const VkAcquireProfilingLockInfoKHR lock{
        .sType = VK_STRUCTURE_TYPE_ACQUIRE_PROFILING_LOCK_INFO_KHR, .timeout = UINT64_MAX};
    ASSERT_VK(vkAcquireProfilingLockKHR(device_, &lock));
    const std::array<uint32_t, 6> indices = {
        IndexOf("Modelled cycles", VK_PERFORMANCE_COUNTER_UNIT_CYCLES_KHR),
        IndexOf("Modelled time", VK_PERFORMANCE_COUNTER_UNIT_NANOSECONDS_KHR),
        IndexOf("Modelled DRAM bytes read", VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR),
        IndexOf("Modelled DRAM bytes written", VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR),
        IndexOf("Modelled energy, nJ", VK_PERFORMANCE_COUNTER_UNIT_GENERIC_KHR),
        IndexOf("Workgroups", VK_PERFORMANCE_COUNTER_UNIT_GENERIC_KHR)};
    const VkQueryPoolPerformanceCreateInfoKHR counters{
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR,
        .counterIndexCount = static_cast<uint32_t>(indices.size()),
        .pCounterIndices = indices.data()};
    const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .pNext = &counters,
                                     .queryType = VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR,
                                     .queryCount = 1};
    VkQueryPool pool = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateQueryPool(device_, &info, nullptr, &pool));
    AtEnd([this, pool] { vkDestroyQueryPool(device_, pool, nullptr); });
    const VkQueryPool times = MakePool(2);
    const Add add = MakeAdd();
    VkCommandBuffer reset = Begin();
    vkCmdResetQueryPool(reset, pool, 0, 1);
    vkCmdResetQueryPool(reset, times, 0, 2);
    Run(reset);
    VkCommandBuffer commands = Begin();
    Dispatch(commands, add, kWords / 4);
    Barrier(commands);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times, 0);
    vkCmdBeginQuery(commands, pool, 0, 0);
    Dispatch(commands, add, kWords);
    Barrier(commands);
    vkCmdEndQuery(commands, pool, 0);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times, 1);
    Run(commands);
    std::array<uint64_t, 2> marks = {};
    EXPECT_VK(vkGetQueryPoolResults(device_, times, 0, 2, sizeof(marks), marks.data(), 8,
                                    VK_QUERY_RESULT_64_BIT));
    std::array<VkPerformanceCounterResultKHR, 6> results = {};
    EXPECT_VK(vkGetQueryPoolResults(device_, pool, 0, 1, sizeof(results), results.data(),
                                    sizeof(results), 0));
    EXPECT_EQ(results[0].uint64, marks[1] - marks[0]);
    EXPECT_EQ(results[1].uint64, marks[1] - marks[0]);  // at 1 GHz
    EXPECT_EQ(results[2].uint64, kWords * 4);
    EXPECT_EQ(results[3].uint64, kWords * 4);
    EXPECT_GT(results[4].uint64, 0u);
    EXPECT_EQ(results[5].uint64, kWords / 32);
    vkDeviceWaitIdle(device_);
    vkResetCommandPool(device_, pool_, 0);
    vkReleaseProfilingLockKHR(device_);
}

// One clear sentence, and no device of ours. Where another driver is present, as beside the
// validation layer, the loader answers with its devices alone.
TEST(ModelledTimeErrorsTest, UnknownMachinesAreRefused) {
    setenv("FORNAX_NPU", "edge-5", 1);
    ASSERT_VK(volkInitialize());
    const VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    VkInstance instance = VK_NULL_HANDLE;
    testing::internal::CaptureStderr();
    ASSERT_VK(vkCreateInstance(&info, nullptr, &instance));
    volkLoadInstance(instance);
    std::array<VkPhysicalDevice, 8> devices = {};
    uint32_t count = devices.size();
    const VkResult result = vkEnumeratePhysicalDevices(instance, &count, devices.data());
    const std::string said = testing::internal::GetCapturedStderr();
    if (result == VK_SUCCESS) {
        EXPECT_GT(count, 0u);
        for (uint32_t i = 0; i < count; ++i) {
            VkPhysicalDeviceProperties properties = {};
            vkGetPhysicalDeviceProperties(devices[i], &properties);
            EXPECT_THAT(properties.deviceName, testing::Not(HasSubstr("Fornax")));
        }
    } else {
        EXPECT_EQ(result, VK_ERROR_INITIALIZATION_FAILED);
    }
    EXPECT_THAT(said, HasSubstr("FORNAX_NPU: edge-5 is no preset"));
    vkDestroyInstance(instance, nullptr);
    unsetenv("FORNAX_NPU");
}

}  // namespace
}  // namespace fornax::test
