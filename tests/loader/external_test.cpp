// Memory, semaphores and fences that devices and processes share, and memory of the host, through
// the loader.
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "tests/loader/vulkan_fixture.h"

extern char** environ;

namespace fornax::test {
namespace {

constexpr auto kOpaqueMemory = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr auto kOpaqueSemaphore = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr auto kSyncSemaphore = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
constexpr auto kOpaqueFence = VK_EXTERNAL_FENCE_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr auto kSyncFence = VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT;
constexpr VkDeviceSize kBytes = 1 << 16;
constexpr uint64_t kPatienceNs = 60'000'000'000;

bool Readable(int fd, int timeout_ms = 0) {
    pollfd polled = {.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&polled, 1, timeout_ms) == 1 && (polled.revents & POLLIN) != 0;
}

// A whole buffer and its memory, which may be another's.
struct External {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    uint32_t* words = nullptr;
};

class ExternalTest : public VulkanTest {
  protected:
    void SetUp() override {
        more_extensions_ = {
            VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
            VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, VK_KHR_EXTERNAL_FENCE_FD_EXTENSION_NAME};
        VulkanTest::SetUp();
    }

    // `chain` extends the allocation: an export, or an import of `type`.
    External Make(VkExternalMemoryHandleTypeFlagBits type, const void* chain) {
        External made;
        VkExternalMemoryBufferCreateInfo external{
            .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
            .handleTypes = static_cast<VkExternalMemoryHandleTypeFlags>(type)};
        VkBufferCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
            .pNext = &external,
            .size = kBytes,
            .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
        EXPECT_VK(vkCreateBuffer(device_, &info, nullptr, &made.buffer));
        VkMemoryRequirements needs;
        vkGetBufferMemoryRequirements(device_, made.buffer, &needs);
        EXPECT_EQ(needs.size, kBytes);
        VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                      .pNext = chain,
                                      .allocationSize = kBytes};
        EXPECT_VK(vkAllocateMemory(device_, &allocate, nullptr, &made.memory));
        EXPECT_VK(vkBindBufferMemory(device_, made.buffer, made.memory, 0));
        void* data = nullptr;
        EXPECT_VK(vkMapMemory(device_, made.memory, 0, VK_WHOLE_SIZE, 0, &data));
        made.words = static_cast<uint32_t*>(data);
        AtEnd([this, made] {
            vkDestroyBuffer(device_, made.buffer, nullptr);
            vkFreeMemory(device_, made.memory, nullptr);
        });
        return made;
    }
    External MakeExported() {
        VkExportMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                        .handleTypes = kOpaqueMemory};
        return Make(kOpaqueMemory, &info);
    }
    External MakeImported(int fd) {
        const VkExportMemoryAllocateInfo exported{
            .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = kOpaqueMemory};
        VkImportMemoryFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                     .pNext = &exported,
                                     .handleType = kOpaqueMemory,
                                     .fd = fd};
        return Make(kOpaqueMemory, &info);
    }
    int Export(VkDeviceMemory memory) {
        int fd = -1;
        VkMemoryGetFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                  .memory = memory,
                                  .handleType = kOpaqueMemory};
        EXPECT_VK(vkGetMemoryFdKHR(device_, &info, &fd));
        return fd;
    }

    VkSemaphore MakeExported(VkExternalSemaphoreHandleTypeFlagBits type, bool timeline = false) {
        VkExportSemaphoreCreateInfo exported{
            .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
            .handleTypes = static_cast<VkExternalSemaphoreHandleTypeFlags>(type)};
        VkSemaphoreTypeCreateInfo kind{
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
            .pNext = &exported,
            .semaphoreType = timeline ? VK_SEMAPHORE_TYPE_TIMELINE : VK_SEMAPHORE_TYPE_BINARY};
        VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                   .pNext = &kind};
        VkSemaphore semaphore = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateSemaphore(device_, &info, nullptr, &semaphore));
        AtEnd([this, semaphore] { vkDestroySemaphore(device_, semaphore, nullptr); });
        return semaphore;
    }
    int Export(VkSemaphore semaphore, VkExternalSemaphoreHandleTypeFlagBits type) {
        int fd = -1;
        VkSemaphoreGetFdInfoKHR info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                     .semaphore = semaphore,
                                     .handleType = type};
        EXPECT_VK(vkGetSemaphoreFdKHR(device_, &info, &fd));
        return fd;
    }
    void Import(VkSemaphore semaphore,
                VkExternalSemaphoreHandleTypeFlagBits type,
                int fd,
                bool temporary) {
        VkImportSemaphoreFdInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
            .semaphore = semaphore,
            .flags = temporary ? VkSemaphoreImportFlags{VK_SEMAPHORE_IMPORT_TEMPORARY_BIT} : 0,
            .handleType = type,
            .fd = fd};
        EXPECT_VK(vkImportSemaphoreFdKHR(device_, &info));
    }

    VkFence MakeExported(VkExternalFenceHandleTypeFlagBits type) {
        VkExportFenceCreateInfo exported{
            .sType = VK_STRUCTURE_TYPE_EXPORT_FENCE_CREATE_INFO,
            .handleTypes = static_cast<VkExternalFenceHandleTypeFlags>(type)};
        VkFenceCreateInfo info{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, .pNext = &exported};
        VkFence fence = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateFence(device_, &info, nullptr, &fence));
        AtEnd([this, fence] { vkDestroyFence(device_, fence, nullptr); });
        return fence;
    }
    int Export(VkFence fence, VkExternalFenceHandleTypeFlagBits type) {
        int fd = -1;
        VkFenceGetFdInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_FENCE_GET_FD_INFO_KHR, .fence = fence, .handleType = type};
        EXPECT_VK(vkGetFenceFdKHR(device_, &info, &fd));
        return fd;
    }
    void Import(VkFence fence, VkExternalFenceHandleTypeFlagBits type, int fd, bool temporary) {
        VkImportFenceFdInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_IMPORT_FENCE_FD_INFO_KHR,
            .fence = fence,
            .flags = temporary ? VkFenceImportFlags{VK_FENCE_IMPORT_TEMPORARY_BIT} : 0,
            .handleType = type,
            .fd = fd};
        EXPECT_VK(vkImportFenceFdKHR(device_, &info));
    }

    // Waits, copies word `from` to word `to` of the buffer, signals.
    struct Step {
        VkSemaphore wait = VK_NULL_HANDLE;
        VkSemaphore signal = VK_NULL_HANDLE;
        uint64_t signal_value = 0;
        VkFence fence = VK_NULL_HANDLE;
        uint32_t queue = 0;
        uint64_t wait_value = 0;
    };
    void CopyWord(const External& external, uint32_t from, uint32_t to, const Step& step) {
        VkCommandBuffer commands = Begin();
        const VkBufferCopy copy{4 * from, 4 * to, 4};
        vkCmdCopyBuffer(commands, external.buffer, external.buffer, 1, &copy);
        Barrier(commands);
        EXPECT_VK(vkEndCommandBuffer(commands));
        Submit(commands, step);
    }
    void Submit(VkCommandBuffer commands, const Step& step) {
        const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
        VkTimelineSemaphoreSubmitInfo values{
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .waitSemaphoreValueCount = step.wait ? 1u : 0u,
            .pWaitSemaphoreValues = &step.wait_value,
            .signalSemaphoreValueCount = step.signal ? 1u : 0u,
            .pSignalSemaphoreValues = &step.signal_value};
        VkSubmitInfo submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &values,
                            .waitSemaphoreCount = step.wait ? 1u : 0u,
                            .pWaitSemaphores = &step.wait,
                            .pWaitDstStageMask = &stage,
                            .commandBufferCount = commands ? 1u : 0u,
                            .pCommandBuffers = &commands,
                            .signalSemaphoreCount = step.signal ? 1u : 0u,
                            .pSignalSemaphores = &step.signal};
        EXPECT_VK(vkQueueSubmit(queues_[step.queue], 1, &submit, step.fence));
    }
    // One that nothing has been recorded in.
    void Signal(VkSemaphore semaphore) { Submit(VK_NULL_HANDLE, {.signal = semaphore}); }
    // True when queue 1 gets past the semaphore.
    void ExpectPasses(VkSemaphore semaphore) {
        VkFence fence = MakeFence();
        Submit(VK_NULL_HANDLE, {.wait = semaphore, .fence = fence, .queue = 1});
        EXPECT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, kPatienceNs));
    }
};

TEST_F(ExternalTest, PropertiesNameTheHandleTypes) {
    const auto buffer = [&](VkExternalMemoryHandleTypeFlagBits type) {
        VkPhysicalDeviceExternalBufferInfo info{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
            .handleType = type};
        VkExternalBufferProperties out{.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
        vkGetPhysicalDeviceExternalBufferProperties(physical_, &info, &out);
        return out.externalMemoryProperties;
    };
    constexpr VkFlags kBoth =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    EXPECT_EQ(buffer(kOpaqueMemory).externalMemoryFeatures, kBoth);
    EXPECT_EQ(buffer(kOpaqueMemory).exportFromImportedHandleTypes, VkFlags{kOpaqueMemory});
    EXPECT_EQ(buffer(VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT).externalMemoryFeatures,
              VkFlags{VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT});
    EXPECT_EQ(buffer(VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT).externalMemoryFeatures, 0u);

    const auto image = [&](VkExternalMemoryHandleTypeFlagBits type, VkFlags* features) {
        VkPhysicalDeviceExternalImageFormatInfo external{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO,
            .handleType = type};
        VkPhysicalDeviceImageFormatInfo2 info{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
            .pNext = &external,
            .format = VK_FORMAT_R8G8B8A8_UNORM,
            .type = VK_IMAGE_TYPE_2D,
            .usage = VK_IMAGE_USAGE_STORAGE_BIT};
        VkExternalImageFormatProperties out{.sType =
                                                VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES};
        VkImageFormatProperties2 properties{.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2,
                                            .pNext = &out};
        const VkResult result =
            vkGetPhysicalDeviceImageFormatProperties2(physical_, &info, &properties);
        *features = out.externalMemoryProperties.externalMemoryFeatures;
        return result;
    };
    VkFlags features = 0;
    EXPECT_VK(image(kOpaqueMemory, &features));
    EXPECT_EQ(features, kBoth);
    EXPECT_EQ(image(VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT, &features),
              VK_ERROR_FORMAT_NOT_SUPPORTED);

    const auto semaphore = [&](VkExternalSemaphoreHandleTypeFlagBits type, VkSemaphoreType kind) {
        VkSemaphoreTypeCreateInfo create{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                         .semaphoreType = kind};
        VkPhysicalDeviceExternalSemaphoreInfo info{
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
            .pNext = &create,
            .handleType = type};
        VkExternalSemaphoreProperties out{.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
        vkGetPhysicalDeviceExternalSemaphoreProperties(physical_, &info, &out);
        return out.externalSemaphoreFeatures;
    };
    EXPECT_NE(semaphore(kOpaqueSemaphore, VK_SEMAPHORE_TYPE_BINARY), 0u);
    EXPECT_NE(semaphore(kOpaqueSemaphore, VK_SEMAPHORE_TYPE_TIMELINE), 0u);
    EXPECT_NE(semaphore(kSyncSemaphore, VK_SEMAPHORE_TYPE_BINARY), 0u);
    EXPECT_EQ(semaphore(kSyncSemaphore, VK_SEMAPHORE_TYPE_TIMELINE), 0u);
}

TEST_F(ExternalTest, HostMemoryIsUsedInPlace) {
    void* pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    AtEnd([pages] { munmap(pages, kBytes); });
    constexpr auto kType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    VkMemoryHostPointerPropertiesEXT properties{
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    ASSERT_VK(vkGetMemoryHostPointerPropertiesEXT(device_, kType, pages, &properties));
    EXPECT_EQ(properties.memoryTypeBits, 1u);
    VkImportMemoryHostPointerInfoEXT import{
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = kType,
        .pHostPointer = pages};
    const External external = Make(kType, &import);
    auto* words = static_cast<uint32_t*>(pages);
    EXPECT_EQ(external.words, words);
    words[0] = 11;
    VkFence fence = MakeFence();
    CopyWord(external, 0, 1, {.fence = fence});
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, kPatienceNs));
    EXPECT_EQ(words[1], 11u);
}

TEST_F(ExternalTest, ImportedMemoryIsTheExportedOne) {
    const External exported = MakeExported();
    const External imported = MakeImported(Export(exported.memory));
    const External again = MakeImported(Export(imported.memory));
    exported.words[5] = 55;
    VkFence fence = MakeFence();
    CopyWord(imported, 5, 6, {.fence = fence});
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, kPatienceNs));
    EXPECT_EQ(exported.words[6], 55u);
    EXPECT_EQ(again.words[6], 55u);
}

TEST_F(ExternalTest, SyncFilesOfSemaphoresMoveTheirState) {
    VkSemaphore source = MakeExported(kSyncSemaphore);
    VkSemaphore target = MakeSemaphore();
    for (int round = 0; round < 3; ++round) {
        VkSemaphore gate = MakeSemaphore(0);
        Submit(VK_NULL_HANDLE, {.wait = gate, .signal = source, .wait_value = 1});
        const VkSemaphoreSignalInfo signal{
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = gate, .value = 1};
        // "Any semaphore signal operations on which it depends must have been submitted", so only
        // without the layers does the file wait.
        if (Validated()) {
            ASSERT_VK(vkSignalSemaphoreKHR(device_, &signal));
        }
        const int fd = Export(source, kSyncSemaphore);
        ASSERT_GE(fd, 0);
        EXPECT_TRUE(Validated() || !Readable(fd));
        const int copy = dup(fd);
        Import(target, kSyncSemaphore, fd, true);
        VkFence fence = MakeFence();
        Submit(VK_NULL_HANDLE, {.wait = target, .fence = fence, .queue = 1});
        if (!Validated()) {
            EXPECT_EQ(vkWaitForFences(device_, 1, &fence, VK_TRUE, 5'000'000), VK_TIMEOUT);
            ASSERT_VK(vkSignalSemaphoreKHR(device_, &signal));
        }
        EXPECT_TRUE(Readable(copy, 60'000));
        ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, kPatienceNs));
        close(copy);
        // The wait gave the permanent payload back.
        Signal(target);
        ExpectPasses(target);
    }
    // "-1 is a payload that has been signalled."
    Import(target, kSyncSemaphore, -1, true);
    ExpectPasses(target);
}

TEST_F(ExternalTest, OpaqueSemaphoresShareTheirState) {
    VkSemaphore source = MakeExported(kOpaqueSemaphore);
    VkSemaphore temporary = MakeSemaphore();
    VkSemaphore permanent = MakeSemaphore();
    Import(permanent, kOpaqueSemaphore, Export(source, kOpaqueSemaphore), false);
    for (int round = 0; round < 3; ++round) {
        Import(temporary, kOpaqueSemaphore, Export(source, kOpaqueSemaphore), true);
        Signal(source);
        ExpectPasses(temporary);
        Signal(temporary);  // its own again
        ExpectPasses(temporary);
        Signal(permanent);
        ExpectPasses(source);
        Signal(source);
        ExpectPasses(permanent);
    }
    VkSemaphore timeline = MakeExported(kOpaqueSemaphore, true);
    VkSemaphore other = MakeSemaphore(3);
    Import(other, kOpaqueSemaphore, Export(timeline, kOpaqueSemaphore), false);
    VkSemaphoreSignalInfo signal{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = timeline, .value = 9};
    ASSERT_VK(vkSignalSemaphoreKHR(device_, &signal));
    uint64_t value = 0;
    ASSERT_VK(vkGetSemaphoreCounterValueKHR(device_, other, &value));
    EXPECT_EQ(value, 9u);
}

TEST_F(ExternalTest, OpaqueFencesShareTheirState) {
    VkFence source = MakeExported(kOpaqueFence);
    VkFence permanent = MakeFence();
    VkFence temporary = MakeFence(true);
    Import(permanent, kOpaqueFence, Export(source, kOpaqueFence), false);
    Import(temporary, kOpaqueFence, Export(source, kOpaqueFence), true);
    EXPECT_EQ(vkGetFenceStatus(device_, temporary), VK_NOT_READY);
    Submit(VK_NULL_HANDLE, {.fence = source});
    EXPECT_VK(vkWaitForFences(device_, 1, &permanent, VK_TRUE, kPatienceNs));
    EXPECT_VK(vkWaitForFences(device_, 1, &temporary, VK_TRUE, kPatienceNs));
    // Its own payload is reset, that of the others stays.
    ASSERT_VK(vkResetFences(device_, 1, &temporary));
    EXPECT_EQ(vkGetFenceStatus(device_, temporary), VK_NOT_READY);
    EXPECT_EQ(vkGetFenceStatus(device_, source), VK_SUCCESS);
    ASSERT_VK(vkResetFences(device_, 1, &permanent));
    EXPECT_EQ(vkGetFenceStatus(device_, source), VK_NOT_READY);
    Submit(VK_NULL_HANDLE, {.fence = permanent});
    EXPECT_VK(vkWaitForFences(device_, 1, &source, VK_TRUE, kPatienceNs));
}

TEST_F(ExternalTest, SyncFilesOfFencesMoveTheirState) {
    VkFence source = MakeExported(kSyncFence);
    VkFence target = MakeFence();
    VkSemaphore gate = MakeSemaphore(0);
    Submit(VK_NULL_HANDLE, {.wait = gate, .fence = source, .wait_value = 1});
    const VkSemaphoreSignalInfo signal{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = gate, .value = 1};
    // To the layers a submission whose fence is exported has ended.
    if (Validated()) {
        ASSERT_VK(vkSignalSemaphoreKHR(device_, &signal));
    }
    const int fd = Export(source, kSyncFence);
    ASSERT_GE(fd, 0);
    EXPECT_TRUE(Validated() || !Readable(fd));
    const int copy = dup(fd);
    Import(target, kSyncFence, fd, true);
    if (!Validated()) {
        EXPECT_EQ(vkWaitForFences(device_, 1, &target, VK_TRUE, 5'000'000), VK_TIMEOUT);
        ASSERT_VK(vkSignalSemaphoreKHR(device_, &signal));
    }
    EXPECT_VK(vkWaitForFences(device_, 1, &target, VK_TRUE, kPatienceNs));
    EXPECT_TRUE(Readable(copy, 60'000));
    close(copy);
    ASSERT_VK(vkQueueWaitIdle(queues_[0]));
    // The export reset the source, though its signal came later.
    EXPECT_EQ(vkGetFenceStatus(device_, source), VK_NOT_READY);
    Submit(VK_NULL_HANDLE, {.fence = source});
    EXPECT_VK(vkWaitForFences(device_, 1, &source, VK_TRUE, kPatienceNs));
    ASSERT_VK(vkResetFences(device_, 1, &target));
    EXPECT_EQ(vkGetFenceStatus(device_, target), VK_NOT_READY);
    Import(target, kSyncFence, -1, true);
    EXPECT_EQ(vkGetFenceStatus(device_, target), VK_SUCCESS);
}

// How this process was started, by a dynamic loader of its own perhaps, without what tests it
// chose.
std::vector<std::string> OwnCommand() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> command;
    for (std::string argument; std::getline(file, argument, '\0');) {
        if (!argument.starts_with("--gtest_")) {
            command.push_back(argument);
        }
    }
    return command;
}

// The other side of the test below: what it is given by numbers of descriptors.
TEST_F(ExternalTest, ChildOfTwoProcessesUseOneBuffer) {
    const char* given = std::getenv("FORNAX_TEST_CHILD");
    if (!given) {
        GTEST_SKIP() << "Only started by another test.";
    }
    std::array<int, 4> fds;
    ASSERT_EQ(std::sscanf(given, "%d,%d,%d,%d", &fds[0], &fds[1], &fds[2], &fds[3]), 4);
    const External buffer = MakeImported(fds[0]);
    VkSemaphore ready = MakeSemaphore();
    Import(ready, kOpaqueSemaphore, fds[1], true);
    VkSemaphore timeline = MakeSemaphore(0);
    Import(timeline, kOpaqueSemaphore, fds[2], false);
    VkFence fence = MakeFence();
    Import(fence, kOpaqueFence, fds[3], false);
    CopyWord(buffer, 0, 1, {.wait = ready, .signal = timeline, .signal_value = 5});
    // The parent answers with 6 on the timeline.
    CopyWord(buffer, 2, 3, {.wait = timeline, .fence = fence, .wait_value = 6});
    ASSERT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, kPatienceNs));
    EXPECT_EQ(buffer.words[3], buffer.words[0] + 1);
}

TEST_F(ExternalTest, TwoProcessesUseOneBuffer) {
    const External buffer = MakeExported();
    VkSemaphore ready = MakeExported(kOpaqueSemaphore);
    VkSemaphore timeline = MakeExported(kOpaqueSemaphore, true);
    VkFence fence = MakeExported(kOpaqueFence);
    // "Signal operations are submitted before the payload is waited for" in another process.
    buffer.words[0] = 0xfeed;
    VkSemaphore gate = MakeSemaphore(0);
    Submit(VK_NULL_HANDLE, {.wait = gate, .signal = ready, .wait_value = 1});
    // What dup makes is inherited.
    std::string child = "FORNAX_TEST_CHILD=";
    std::vector<int> inherited;
    for (const int fd : {Export(buffer.memory), Export(ready, kOpaqueSemaphore),
                         Export(timeline, kOpaqueSemaphore), Export(fence, kOpaqueFence)}) {
        inherited.push_back(dup(fd));
        child += std::to_string(inherited.back()) + ",";
        close(fd);
    }
    std::vector<char*> environment;
    for (char** entry = environ; *entry; ++entry) {
        environment.push_back(*entry);
    }
    environment.push_back(child.data());
    environment.push_back(nullptr);
    std::vector<std::string> command = OwnCommand();
    command.push_back("--gtest_filter=ExternalTest.ChildOfTwoProcessesUseOneBuffer");
    std::vector<char*> arguments;
    for (std::string& argument : command) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    pid_t process = 0;
    ASSERT_EQ(
        posix_spawn(&process, arguments[0], nullptr, nullptr, arguments.data(), environment.data()),
        0);
    for (const int fd : inherited) {
        close(fd);
    }
    VkSemaphoreSignalInfo signal{
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = gate, .value = 1};
    ASSERT_VK(vkSignalSemaphoreKHR(device_, &signal));
    const uint64_t value = 5;
    VkSemaphoreWaitInfo wait{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                             .semaphoreCount = 1,
                             .pSemaphores = &timeline,
                             .pValues = &value};
    EXPECT_VK(vkWaitSemaphoresKHR(device_, &wait, kPatienceNs));
    EXPECT_EQ(buffer.words[1], 0xfeedu);
    buffer.words[2] = 0xfeed + 1;
    EXPECT_EQ(vkGetFenceStatus(device_, fence), VK_NOT_READY);
    Submit(VK_NULL_HANDLE, {.signal = timeline, .signal_value = 6});
    EXPECT_VK(vkWaitForFences(device_, 1, &fence, VK_TRUE, kPatienceNs));
    EXPECT_EQ(buffer.words[3], 0xfeedu + 1);
    int status = 0;
    ASSERT_EQ(waitpid(process, &status, 0), process);
    EXPECT_EQ(status, 0);
}

class PlacedTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_4;
        more_extensions_ = {VK_EXT_MAP_MEMORY_PLACED_EXTENSION_NAME};
        more_features_ = &features_;
        VulkanTest::SetUp();
    }

    VkPhysicalDeviceMapMemoryPlacedFeaturesEXT features_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_FEATURES_EXT,
        .memoryMapPlaced = VK_TRUE,
        .memoryMapRangePlaced = VK_TRUE,
        .memoryUnmapReserve = VK_TRUE};
};

TEST_F(PlacedTest, MemoryIsMappedWhereTheApplicationWants) {
    VkPhysicalDeviceMapMemoryPlacedPropertiesEXT limits{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAP_MEMORY_PLACED_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &limits};
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    const VkDeviceSize unit = limits.minPlacedMemoryMapAlignment;
    ASSERT_GT(unit, 0u);
    ASSERT_LE(unit, 65536u);
    VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .allocationSize = 4 * unit};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    ASSERT_VK(vkAllocateMemory(device_, &allocate, nullptr, &memory));
    void* plain = nullptr;
    ASSERT_VK(vkMapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, &plain));
    static_cast<uint32_t*>(plain)[2 * unit / 4] = 77;
    vkUnmapMemory(device_, memory);

    void* place = mmap(nullptr, 2 * unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(place, MAP_FAILED);
    VkMemoryMapPlacedInfoEXT placed{.sType = VK_STRUCTURE_TYPE_MEMORY_MAP_PLACED_INFO_EXT,
                                    .pPlacedAddress = place};
    VkMemoryMapInfo map{.sType = VK_STRUCTURE_TYPE_MEMORY_MAP_INFO,
                        .pNext = &placed,
                        .flags = VK_MEMORY_MAP_PLACED_BIT_EXT,
                        .memory = memory,
                        .offset = 2 * unit,
                        .size = 2 * unit};
    VkMemoryUnmapInfo unmap{.sType = VK_STRUCTURE_TYPE_MEMORY_UNMAP_INFO,
                            .flags = VK_MEMORY_UNMAP_RESERVE_BIT_EXT,
                            .memory = memory};
    for (int round = 0; round < 2; ++round) {
        void* data = nullptr;
        ASSERT_VK(vkMapMemory2(device_, &map, &data));
        ASSERT_EQ(data, place);
        EXPECT_EQ(static_cast<uint32_t*>(data)[0], 77u);
        ASSERT_VK(vkUnmapMemory2(device_, &unmap));
        // Reserved: neither free nor the memory.
        EXPECT_EQ(msync(place, 2 * unit, MS_ASYNC), 0);
    }
    unmap.flags = 0;
    void* data = nullptr;
    ASSERT_VK(vkMapMemory2(device_, &map, &data));
    ASSERT_VK(vkUnmapMemory2(device_, &unmap));
    EXPECT_NE(msync(place, 2 * unit, MS_ASYNC), 0);
    vkFreeMemory(device_, memory, nullptr);
}

}  // namespace
}  // namespace fornax::test
