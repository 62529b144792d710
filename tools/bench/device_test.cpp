// The benchmark's Vulkan objects on whatever driver is present, and that --validate really sees
// mistakes.
#include "tools/bench/device.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tools/bench/shaders/increment.spv.h"
#include "tools/bench/workload.h"

// The validation layer leaks.
extern "C" const char* __lsan_default_options();
extern "C" const char* __lsan_default_options() {
    return "detect_leaks=0";
}

namespace fornax::bench {
namespace {

class ValidatedDeviceTest : public ::testing::Test {
  protected:
    void SetUp() override {
        // Not the user's own cache.
        setenv("FORNAX_CACHE_DIR", (::testing::TempDir() + "fornax_device_test").c_str(), 1);
        auto device = Device::Create(/*validate=*/true);
        if (!device.ok()) {
            GTEST_SKIP() << device.error().message;
        }
        device_ = std::move(device).value();
        ASSERT_EQ(device_->validation_messages().size(), 0u);
    }

    // Increments a counter, copies it to a second buffer, increments it again and copies it again.
    Result<uint32_t> IncrementAndCopyTwice(bool with_barriers) {
        Buffer buffers[2];
        for (Buffer& buffer : buffers) {
            FORNAX_ASSIGN_OR_RETURN(buffer, device_->CreateBuffer(sizeof(uint32_t)));
            buffer.As<uint32_t>()[0] = 5;
        }
        FORNAX_ASSIGN_OR_RETURN(const Kernel kernel,
                                device_->CreateKernel(spirv::kIncrement, {buffers, 1}, 0));
        FORNAX_ASSIGN_OR_RETURN(VkCommandBuffer commands, device_->BeginCommands());
        const VkDescriptorSet set = kernel.descriptor_set();
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout(), 0, 1,
                                &set, 0, nullptr);
        const VkBufferCopy region = {0, 0, sizeof(uint32_t)};
        for (int i = 0; i < 2; ++i) {
            vkCmdDispatch(commands, 1, 1, 1);
            if (with_barriers) {
                RecordBarrier(commands);
            }
            vkCmdCopyBuffer(commands, buffers[0].handle(), buffers[1].handle(), 1, &region);
            if (with_barriers) {
                RecordBarrier(commands);
            }
        }
        FORNAX_RETURN_IF_ERROR(device_->EndCommands(commands));
        FORNAX_ASSIGN_OR_RETURN(const double seconds, device_->Submit(commands));
        EXPECT_GT(seconds, 0);
        return buffers[1].As<uint32_t>()[0];
    }

    std::unique_ptr<Device> device_;
};

TEST_F(ValidatedDeviceTest, CommandsInOrderGiveNoMessage) {
    const auto count = IncrementAndCopyTwice(/*with_barriers=*/true);
    ASSERT_TRUE(count.ok()) << count.error().message;
    EXPECT_EQ(*count, 7u);
    for (const std::string& message : device_->validation_messages()) {
        ADD_FAILURE() << message;
    }
}

// What a description of the host is measured with, which no shape of the benchmark verifies.
TEST_F(ValidatedDeviceTest, WorkloadsOfUnitsComputeWhatTheySay) {
    const std::pair<const char*, WorkloadResult> workloads[] = {
        {"exponentials", CreateExponentials(*device_, 256)},
        {"divisions", CreateDivisions(*device_, 256)},
        {"simple operations", CreateSimpleOperations(*device_, 256)},
        {"dispatches of a team", CreateTeamDispatches(*device_, 3)},
        {"streams", CreateStreamedChains(*device_, 1024, 0)},
        {"streamed chains", CreateStreamedChains(*device_, 1024, 5)},
        {"sums behind a barrier", CreateBarrierChains(*device_, 8192, 0)},
        {"chains behind a barrier", CreateBarrierChains(*device_, 8192, 5)},
    };
    for (const auto& [name, workload] : workloads) {
        SCOPED_TRACE(name);
        ASSERT_TRUE(workload.ok()) << workload.error().message;
        const Result<double> seconds = (*workload)->Run();
        ASSERT_TRUE(seconds.ok()) << seconds.error().message;
        const Status verified = (*workload)->Verify();
        EXPECT_TRUE(verified.ok()) << verified.error().message;
    }
}

TEST_F(ValidatedDeviceTest, MissingBarriersAreReported) {
    const auto count = IncrementAndCopyTwice(/*with_barriers=*/false);
    ASSERT_TRUE(count.ok()) << count.error().message;
    ASSERT_FALSE(device_->validation_messages().empty());
    EXPECT_NE(device_->validation_messages().front().find("SYNC-HAZARD"), std::string::npos);
}

}  // namespace
}  // namespace fornax::bench
