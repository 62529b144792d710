// The factory and the environment variables that it reads.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/environment.h"
#include "base/log.h"
#include "hal/device.h"

namespace fornax::hal {
namespace {

class Backends : public testing::Test {
  protected:
    void SetUp() override { ClearEnvironment(); }
    void TearDown() override { ClearEnvironment(); }

    static void ClearEnvironment() {
        for (const char* name : {"FORNAX_BACKEND", "FORNAX_THREADS", "FORNAX_HEAP_BYTES",
                                 "FORNAX_WATCHDOG_MS", "FORNAX_CATCH_FAULTS", "FORNAX_GUARD"}) {
            unsetenv(name);
        }
    }
};

TEST_F(Backends, AreChosenByNameThenEnvironmentThenDefault) {
    EXPECT_EQ((*CreateDevice(""))->capabilities().backend, "model");
    setenv("FORNAX_BACKEND", "null", 1);
    EXPECT_EQ((*CreateDevice(""))->capabilities().backend, "null");
    EXPECT_FALSE((*CreateDevice(""))->capabilities().executes);
    EXPECT_EQ((*CreateDevice("model"))->capabilities().backend, "model");
    setenv("FORNAX_BACKEND", "", 1);
    EXPECT_EQ((*CreateDevice(""))->capabilities().backend, "model");
    setenv("FORNAX_BACKEND", "abacus", 1);
    const auto unknown = CreateDevice("");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(unknown.error().message,
              "There is no device backend 'abacus'; there are: model, null.");
}

TEST_F(Backends, ReadWorkersAndHeapFromTheEnvironment) {
    EXPECT_GE((*CreateDevice("model"))->capabilities().worker_count, 1u);
    setenv("FORNAX_THREADS", "7", 1);
    setenv("FORNAX_HEAP_BYTES", "123456789", 1);
    EXPECT_EQ((*CreateDevice("model"))->capabilities().worker_count, 7u);
    EXPECT_EQ((*CreateDevice("model"))->capabilities().heap_bytes, 123456789u);
    EXPECT_EQ((*CreateDevice("model", {.worker_count = 3}))->capabilities().worker_count, 3u);
    for (const char* bad : {"0", "-1", "x", "4x", "1025", "99999999999999999999"}) {
        setenv("FORNAX_THREADS", bad, 1);
        const auto result = CreateDevice("model");
        ASSERT_FALSE(result.ok()) << bad;
        EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
        EXPECT_EQ(result.error().message, std::string("FORNAX_THREADS is '") + bad +
                                              "', which is not a number from 1 to 1024.");
    }
}

// Wrong values tell that a variable was read.
TEST_F(Backends, ReadNothingWhereTheProcessIsPrivileged) {
    const auto plain = (*CreateDevice(""))->capabilities();
    for (const char* name : {"FORNAX_BACKEND", "FORNAX_THREADS", "FORNAX_HEAP_BYTES",
                             "FORNAX_WATCHDOG_MS", "FORNAX_CATCH_FAULTS"}) {
        setenv(name, "wrong", 1);
        EXPECT_FALSE(CreateDevice("").ok()) << name;
        const LogSink sink = SetLogSink([](LogLevel, std::string_view) {});
        const PrivilegeForTesting privilege(true);
        const auto device = CreateDevice("");
        SetLogSink(sink);
        ASSERT_TRUE(device.ok()) << device.error().message;
        EXPECT_EQ((*device)->capabilities().backend, plain.backend);
        EXPECT_EQ((*device)->capabilities().worker_count, plain.worker_count);
        unsetenv(name);
    }
}

TEST_F(Backends, GuardDeviceMemoryWhenTheEnvironmentSaysSo) {
    const auto ends_on_a_page = [] {
        const auto memory = *(*CreateDevice("model"))->AllocateMemory(64);
        return (memory->address() + 64) % kMemoryPageBytes == 0;
    };
    EXPECT_FALSE(ends_on_a_page());
    setenv("FORNAX_GUARD", "0", 1);
    EXPECT_FALSE(ends_on_a_page());
    setenv("FORNAX_GUARD", "1", 1);
    EXPECT_TRUE(ends_on_a_page());
    setenv("FORNAX_GUARD", "2", 1);
    const auto result = CreateDevice("model");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "FORNAX_GUARD is '2', which is not a number from 0 to 1.");
}

}  // namespace
}  // namespace fornax::hal
