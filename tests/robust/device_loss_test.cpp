// Kernels that fault or never end, through the loader. Outcome: VK_ERROR_DEVICE_LOST from waits and
// submissions, a sentence to the messengers, a report from VK_EXT_device_fault and
// VK_KHR_device_fault; the process, its other devices and vkDestroyDevice go on.
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "tests/robust/shaders/endless.spv.h"
#include "tools/soak/client.h"
#include "tools/soak/shaders/count.spv.h"
#include "tools/soak/shaders/wild.spv.h"

#ifdef FORNAX_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace fornax::test {

using soak::Client;
using soak::ClientBuffer;
using soak::ClientPipeline;
namespace {

// ThreadSanitizer keeps signals back while code calls nothing, so no watchdog reaches a kernel.
#ifdef FORNAX_THREAD_SANITIZER
constexpr bool kSignalsWait = true;
#else
constexpr bool kSignalsWait = false;
#endif

// Commands that only exist beside an enabled extension.
template <typename Function>
Function Find(const Client& client, const char* name) {
    return reinterpret_cast<Function>(vkGetDeviceProcAddr(client.device, name));
}

bool Told(const Client& client, const char* text) {
    for (const std::string& message : client.messages) {
        if (message.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

// The validation layer, where it listens, found nothing.
void ExpectValid(const Client& client) {
    for (const std::string& message : client.messages) {
        EXPECT_EQ(message.find("VUID-"), std::string::npos) << message;
    }
}

class DeviceLossTest : public testing::Test {
  protected:
    void SetUp() override { setenv("FORNAX_WATCHDOG_MS", "200", 1); }
    void TearDown() override { unsetenv("FORNAX_WATCHDOG_MS"); }

    void ExpectWorking(Client& client) {
        const ClientPipeline pipeline = client.MakePipeline(spirv::kCount);
        const ClientBuffer buffer = client.MakeBuffer(256);
        ASSERT_TRUE(client.valid()) << client.error();
        std::fill_n(buffer.words, buffer.count, 0u);
        const uint32_t addend = 2;
        EXPECT_EQ(client.Run(pipeline, buffer, {&addend, 1}, 4), VK_SUCCESS);
        EXPECT_EQ(buffer.words[255], 2u * 256);
        client.Free(buffer);
        client.Free(pipeline);
    }

    // What a lost device answers.
    void ExpectLost(Client& client) {
        EXPECT_EQ(vkDeviceWaitIdle(client.device), VK_ERROR_DEVICE_LOST);
        EXPECT_EQ(vkQueueWaitIdle(client.queue), VK_ERROR_DEVICE_LOST);
        const VkSubmitInfo nothing{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
        EXPECT_EQ(vkQueueSubmit(client.queue, 1, &nothing, VK_NULL_HANDLE), VK_ERROR_DEVICE_LOST);
    }
};

TEST_F(DeviceLossTest, EndlessKernelsLoseTheirDevice) {
    if (kSignalsWait) {
        GTEST_SKIP();
    }
    Client other;
    ASSERT_TRUE(other.valid()) << other.error();
    for (const uint32_t kind : {0u, 1u, 2u}) {
        for (const uint32_t workgroups : {1u, 200u}) {
            SCOPED_TRACE(testing::Message() << "kind " << kind << ", " << workgroups);
            Client client;
            ASSERT_TRUE(client.valid()) << client.error();
            const ClientBuffer buffer = client.MakeBuffer(64 * 200);
            const ClientPipeline pipeline = client.MakePipeline(spirv::kEndless);
            ASSERT_TRUE(client.valid()) << client.error();
            const uint32_t constants[] = {kind, 0};
            EXPECT_EQ(client.Run(pipeline, buffer, constants, workgroups), VK_ERROR_DEVICE_LOST);
            ExpectLost(client);
            EXPECT_TRUE(Told(client, "the watchdog"));
            ExpectWorking(other);
            client.Free(pipeline);
            client.Free(buffer);
        }
    }
}

TEST_F(DeviceLossTest, TimelineWaitsEndWithTheDevice) {
    if (kSignalsWait) {
        GTEST_SKIP();
    }
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const ClientBuffer buffer = client.MakeBuffer(64);
    const ClientPipeline pipeline = client.MakePipeline(spirv::kEndless);
    const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                         .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                     .pNext = &type};
    VkSemaphore semaphore;
    ASSERT_EQ(vkCreateSemaphore(client.device, &info, nullptr, &semaphore), VK_SUCCESS);
    const uint32_t constants[] = {0, 0};
    const VkCommandBuffer commands = client.Record(client.pool, pipeline, buffer, constants, 1);
    const uint64_t value = 1;
    const VkTimelineSemaphoreSubmitInfo values{
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    const VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                              .pNext = &values,
                              .commandBufferCount = 1,
                              .pCommandBuffers = &commands,
                              .signalSemaphoreCount = 1,
                              .pSignalSemaphores = &semaphore};
    ASSERT_EQ(vkQueueSubmit(client.queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
    const VkSemaphoreWaitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                   .semaphoreCount = 1,
                                   .pSemaphores = &semaphore,
                                   .pValues = &value};
    EXPECT_EQ(vkWaitSemaphores(client.device, &wait, 60'000'000'000), VK_ERROR_DEVICE_LOST);
    vkDestroySemaphore(client.device, semaphore, nullptr);
    client.Free(pipeline);
    client.Free(buffer);
}

// A device that is destroyed in the middle of an endless kernel: the application breaks the rules,
// and still gets back its thread.
TEST_F(DeviceLossTest, DestroyingReturns) {
    if (kSignalsWait) {
        GTEST_SKIP();
    }
#ifdef FORNAX_ADDRESS_SANITIZER
    const __lsan::ScopedDisabler objects_outlive_their_device;
#endif
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const ClientBuffer buffer = client.MakeBuffer(64 * 100);
    const ClientPipeline pipeline = client.MakePipeline(spirv::kEndless);
    const uint32_t constants[] = {1, 0};
    EXPECT_EQ(client.Submit(client.Record(client.pool, pipeline, buffer, constants, 100)),
              VK_SUCCESS);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

// A page that may not be touched.
class ForbiddenPage {
  public:
    ForbiddenPage() : page_(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
    ~ForbiddenPage() { munmap(page_, 4096); }
    uint64_t address() const { return reinterpret_cast<uint64_t>(page_); }

  private:
    void* page_;
};

class WildTest : public DeviceLossTest {
  protected:
    // Loses the client's device by an access in workgroup 5 of 9.
    void Touch(Client& client, uint64_t address, bool write) {
        const ClientBuffer buffer = client.MakeBuffer(64);
        const ClientPipeline pipeline = client.MakePipeline(spirv::kWild);
        ASSERT_TRUE(client.valid()) << client.error();
        const uint32_t constants[] = {static_cast<uint32_t>(address),
                                      static_cast<uint32_t>(address >> 32), 5, write};
        EXPECT_EQ(client.Run(pipeline, buffer, constants, 9), VK_ERROR_DEVICE_LOST);
        ExpectLost(client);
        client.Free(pipeline);
        client.Free(buffer);
    }

    const ForbiddenPage page_;
};

TEST_F(WildTest, ReportsOfTheExtExtension) {
    Client other;
    for (const bool write : {true, false}) {
        Client client;
        ASSERT_TRUE(client.valid()) << client.error();
        Touch(client, page_.address(), write);
        EXPECT_TRUE(Told(client, write ? "wrote to the address" : "read from the address"));

        const auto get = Find<PFN_vkGetDeviceFaultInfoEXT>(client, "vkGetDeviceFaultInfoEXT");
        ASSERT_NE(get, nullptr);
        VkDeviceFaultCountsEXT counts{.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT,
                                      .vendorBinarySize = 99};
        ASSERT_EQ(get(client.device, &counts, nullptr), VK_SUCCESS);
        EXPECT_EQ(counts.addressInfoCount, 2u);
        EXPECT_EQ(counts.vendorInfoCount, 1u);
        EXPECT_EQ(counts.vendorBinarySize, 0u);
        VkDeviceFaultAddressInfoEXT addresses[2] = {};
        VkDeviceFaultVendorInfoEXT vendor = {};
        VkDeviceFaultInfoEXT info{.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT,
                                  .pAddressInfos = addresses,
                                  .pVendorInfos = &vendor};
        ASSERT_EQ(get(client.device, &counts, &info), VK_SUCCESS);
        EXPECT_EQ(addresses[0].addressType, write ? VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT
                                                  : VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_EXT);
        const VkDeviceSize mask = addresses[0].addressPrecision - 1;
        // The kernel touches 128 bytes, in whatever order.
        EXPECT_GE(addresses[0].reportedAddress | mask, page_.address());
        EXPECT_LT(addresses[0].reportedAddress & ~mask, page_.address() + 128);
        EXPECT_EQ(addresses[1].addressType,
                  VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_FAULT_EXT);
        EXPECT_NE(addresses[1].reportedAddress, 0u);
        EXPECT_NE(std::string(info.description).find("'main-"), std::string::npos);
        EXPECT_NE(std::string(vendor.description).find("workgroup (5, 0, 0)"), std::string::npos)
            << vendor.description;
        EXPECT_EQ(vendor.vendorFaultData, 5u);

        counts.addressInfoCount = 1;
        EXPECT_EQ(get(client.device, &counts, &info), VK_INCOMPLETE);
        EXPECT_EQ(counts.addressInfoCount, 1u);
        ExpectValid(client);
        ExpectWorking(other);
    }
}

TEST_F(WildTest, ReportsOfTheKhrExtension) {
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const auto get = Find<PFN_vkGetDeviceFaultReportsKHR>(client, "vkGetDeviceFaultReportsKHR");
    const auto debug =
        Find<PFN_vkGetDeviceFaultDebugInfoKHR>(client, "vkGetDeviceFaultDebugInfoKHR");
    ASSERT_NE(get, nullptr);
    ASSERT_NE(debug, nullptr);
    VkPhysicalDeviceFaultPropertiesKHR fault{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_PROPERTIES_KHR};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &fault};
    vkGetPhysicalDeviceProperties2(client.physical, &properties);
    EXPECT_EQ(fault.maxDeviceFaultCount, 1u);

    uint32_t count = 1;
    VkDeviceFaultInfoKHR info{.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_KHR};
    EXPECT_EQ(get(client.device, 0, &count, &info), VK_TIMEOUT);
    EXPECT_EQ(get(client.device, 1'000'000, &count, nullptr), VK_TIMEOUT);

    // Who waits is woken by the fault.
    VkResult waited = VK_NOT_READY;
    std::thread waiter([&] {
        uint32_t available = 0;
        waited = get(client.device, 60'000'000'000, &available, nullptr);
        EXPECT_EQ(available, 1u);
    });
    Touch(client, page_.address(), true);
    waiter.join();
    EXPECT_EQ(waited, VK_SUCCESS);

    // No program may ask for none, so this is left out where the validation layer listens.
    if (std::getenv("VK_INSTANCE_LAYERS") == nullptr) {
        count = 0;
        EXPECT_EQ(get(client.device, 0, &count, &info), VK_INCOMPLETE);
    }
    count = 1;
    ASSERT_EQ(get(client.device, 0, &count, &info), VK_SUCCESS);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(info.flags, VkDeviceFaultFlagsKHR{VK_DEVICE_FAULT_FLAG_DEVICE_LOST_KHR |
                                                VK_DEVICE_FAULT_FLAG_MEMORY_ADDRESS_KHR |
                                                VK_DEVICE_FAULT_FLAG_INSTRUCTION_ADDRESS_KHR |
                                                VK_DEVICE_FAULT_FLAG_VENDOR_KHR});
    EXPECT_EQ(info.faultAddressInfo.addressType, VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_KHR);
    EXPECT_GE(info.faultAddressInfo.reportedAddress, page_.address());
    EXPECT_LT(info.faultAddressInfo.reportedAddress, page_.address() + 128);
    EXPECT_NE(info.description[0], '\0');
    // "Each individual fault report is returned exactly once."
    EXPECT_EQ(get(client.device, 1'000'000, &count, &info), VK_TIMEOUT);
    EXPECT_EQ(count, 0u);

    VkDeviceFaultDebugInfoKHR dump{.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_DEBUG_INFO_KHR,
                                   .vendorBinarySize = 7};
    EXPECT_EQ(debug(client.device, &dump), VK_SUCCESS);
    EXPECT_EQ(dump.vendorBinarySize, 0u);
    ExpectValid(client);
}

TEST_F(WildTest, ReportsOfTheWatchdog) {
    if (kSignalsWait) {
        GTEST_SKIP();
    }
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const ClientBuffer buffer = client.MakeBuffer(64);
    const ClientPipeline pipeline = client.MakePipeline(spirv::kEndless);
    const uint32_t constants[] = {0, 0};
    EXPECT_EQ(client.Run(pipeline, buffer, constants, 1), VK_ERROR_DEVICE_LOST);
    const auto get = Find<PFN_vkGetDeviceFaultReportsKHR>(client, "vkGetDeviceFaultReportsKHR");
    uint32_t count = 1;
    VkDeviceFaultInfoKHR info{.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_KHR};
    ASSERT_EQ(get(client.device, 0, &count, &info), VK_SUCCESS);
    EXPECT_EQ(info.flags, VkDeviceFaultFlagsKHR{VK_DEVICE_FAULT_FLAG_DEVICE_LOST_KHR |
                                                VK_DEVICE_FAULT_FLAG_VENDOR_KHR |
                                                VK_DEVICE_FAULT_FLAG_WATCHDOG_TIMEOUT_KHR});
    client.Free(pipeline);
    client.Free(buffer);
}

}  // namespace
}  // namespace fornax::test
