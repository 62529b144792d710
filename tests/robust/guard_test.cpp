// Kernels that leave their buffers. Outcome: without robust accesses they meet other device memory,
// never what the process allocated itself; with FORNAX_GUARD=1 they are a fault, which loses the
// device and is reported with its address.
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "tools/soak/client.h"
#include "tools/soak/shaders/wild.spv.h"

namespace fornax::test {

using soak::Client;
using soak::ClientBuffer;
using soak::ClientPipeline;
namespace {

uint64_t AddressOf(const Client& client, const ClientBuffer& buffer) {
    const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                         .buffer = buffer.handle};
    return vkGetBufferDeviceAddress(client.device, &info);
}

// Has a kernel write, or read, 128 bytes from `address` on.
VkResult Touch(Client& client, uint64_t address, bool write) {
    const ClientBuffer out = client.MakeBuffer(64);
    const ClientPipeline pipeline = client.MakePipeline(spirv::kWild);
    EXPECT_TRUE(client.valid()) << client.error();
    const uint32_t constants[] = {static_cast<uint32_t>(address),
                                  static_cast<uint32_t>(address >> 32), 0, write};
    const VkResult result = client.Run(pipeline, out, constants, 1);
    client.Free(pipeline);
    client.Free(out);
    return result;
}

TEST(DeviceMemory, SharesNoPageWithTheProcess) {
    constexpr uint64_t kPage = 4096;
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    std::vector<ClientBuffer> buffers;
    std::vector<void*> allocations;
    std::set<uint64_t> pages;
    for (size_t words : {16u, 100u, 1'000u, 5'000u, 30'000u, 40'000u}) {
        for (int i = 0; i < 20; ++i) {
            buffers.push_back(client.MakeBuffer(words));
            allocations.push_back(std::malloc(words * sizeof(uint32_t)));
            const auto begin = reinterpret_cast<uint64_t>(allocations.back());
            for (uint64_t page = begin / kPage; page <= (begin + words * 4 - 1) / kPage; ++page) {
                pages.insert(page);
            }
        }
    }
    ASSERT_TRUE(client.valid()) << client.error();
    for (const ClientBuffer& buffer : buffers) {
        const auto begin = reinterpret_cast<uint64_t>(buffer.words);
        for (uint64_t page = begin / kPage; page <= (begin + buffer.count * 4 - 1) / kPage;
             ++page) {
            EXPECT_FALSE(pages.contains(page)) << "a buffer of " << buffer.count << " words";
        }
        client.Free(buffer);
    }
    for (void* allocation : allocations) {
        std::free(allocation);
    }
}

class GuardTest : public testing::Test {
  protected:
    void SetUp() override { setenv("FORNAX_GUARD", "1", 1); }
    void TearDown() override { unsetenv("FORNAX_GUARD"); }
};

TEST_F(GuardTest, TheFirstBytesBehindABufferAreAFault) {
    // Multiples of 64 bytes: others end so many bytes before the guard page.
    for (const size_t words : {16u, 1'008u, 1'024u, 40'000u, 1'000'000u}) {
        for (const bool write : {true, false}) {
            SCOPED_TRACE(testing::Message() << words << (write ? " written" : " read"));
            Client client;
            ASSERT_TRUE(client.valid()) << client.error();
            const ClientBuffer buffer = client.MakeBuffer(words);
            ASSERT_TRUE(client.valid()) << client.error();
            const uint64_t end = AddressOf(client, buffer) + words * sizeof(uint32_t);
            if (words >= 32) {
                ASSERT_EQ(Touch(client, end - 128, write), VK_SUCCESS);
            }
            EXPECT_EQ(Touch(client, end, write), VK_ERROR_DEVICE_LOST);

            const auto get = reinterpret_cast<PFN_vkGetDeviceFaultInfoEXT>(
                vkGetDeviceProcAddr(client.device, "vkGetDeviceFaultInfoEXT"));
            VkDeviceFaultCountsEXT counts{.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_COUNTS_EXT,
                                          .addressInfoCount = 1};
            VkDeviceFaultAddressInfoEXT address = {};
            VkDeviceFaultInfoEXT info{.sType = VK_STRUCTURE_TYPE_DEVICE_FAULT_INFO_EXT,
                                      .pAddressInfos = &address};
            ASSERT_EQ(get(client.device, &counts, &info), VK_INCOMPLETE);
            // The kernel touches 128 bytes, in whatever order.
            EXPECT_GE(address.reportedAddress, end);
            EXPECT_LT(address.reportedAddress, end + 128);
            client.Free(buffer);
        }
    }
}

TEST_F(GuardTest, SoAreTheLastBytesBeforeWholePages) {
    Client client;
    ASSERT_TRUE(client.valid()) << client.error();
    const ClientBuffer buffer = client.MakeBuffer(2'048);
    ASSERT_TRUE(client.valid()) << client.error();
    EXPECT_EQ(Touch(client, AddressOf(client, buffer) - 128, true), VK_ERROR_DEVICE_LOST);
    client.Free(buffer);
}

}  // namespace
}  // namespace fornax::test
