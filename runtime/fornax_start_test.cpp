// Runs that are started and waited for through the C interface, with models of test_compiler.cpp.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/fornax.h"
#include "runtime/fornax_fixture.h"
#include "runtime/test_compiler.h"

namespace fornax::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kForever = UINT64_MAX;

// Plans for the device alone, and plans that go on after a host step.
class StartTest : public ApiTest, public testing::WithParamInterface<const char*> {
  protected:
    void SetUp() override {
        ApiTest::SetUp();
        Load(GetParam());
    }
    void TearDown() override {
        OpenGate();
        ApiTest::TearDown();
    }
    static void SetSizes(fornax_session* session, int64_t count) {
        fornax_tensor sizes = {};
        sizes.rank = 1;
        sizes.dims[0] = count;
        ASSERT_FORNAX(fornax_session_set_sizes(session, &sizes, 1));
    }
    static void Write(fornax_session* session, const std::vector<float>& values) {
        void* data = nullptr;
        size_t size_bytes = 0;
        ASSERT_FORNAX(fornax_session_input_memory(session, 0, &data, &size_bytes));
        ASSERT_EQ(size_bytes, values.size() * sizeof(float));
        std::memcpy(data, values.data(), size_bytes);
    }
    static std::vector<float> Output(const fornax_session* session) {
        fornax_tensor output = {};
        EXPECT_EQ(fornax_session_output(session, 0, &output), FORNAX_OK) << fornax_error_message();
        return Floats(output);
    }
};

TEST_P(StartTest, RunsAreStartedAndWaitedFor) {
    SetSizes(session_, 3);
    for (float first = 1; first < 4; ++first) {
        Write(session_, {first, 2, 3});
        ASSERT_FORNAX(fornax_session_start(session_));
        ASSERT_FORNAX(fornax_session_wait(session_, kForever));
        EXPECT_THAT(Output(session_), ElementsAre(2 * first + 2, 6, 8));
    }
    // As other ways of running do.
    ASSERT_FORNAX(fornax_session_run(session_));
    EXPECT_THAT(Output(session_), ElementsAre(8, 6, 8));
    EXPECT_THAT(Run({4, 5}), ElementsAre(10, 12));
}

TEST_P(StartTest, TheCallersMemoryIsReadAndWritten) {
    alignas(64) float in[16] = {}, out[16] = {};
    SetSizes(session_, 16);
    ASSERT_FORNAX(fornax_session_bind_input(session_, 0, in, sizeof in, nullptr));
    ASSERT_FORNAX(fornax_session_bind_output(session_, 0, out, sizeof out, nullptr));
    for (const float value : {1, 5}) {
        std::fill_n(in, 16, value);
        ASSERT_FORNAX(fornax_session_start(session_));
        ASSERT_FORNAX(fornax_session_wait(session_, kForever));
        EXPECT_THAT(out, testing::Each(2 * value + 2));
    }
    // At addresses that no device takes in place.
    std::vector<std::byte> copied(sizeof in + 1);
    std::memcpy(&copied[1], in, sizeof in);
    std::fill_n(out, 16, 0.0F);
    ASSERT_FORNAX(fornax_session_bind_input(session_, 0, &copied[1], sizeof in, nullptr));
    ASSERT_FORNAX(fornax_session_start(session_));
    ASSERT_FORNAX(fornax_session_wait(session_, kForever));
    EXPECT_THAT(out, testing::Each(12));
}

TEST_P(StartTest, SeveralSessionsRunAtOnce) {
    constexpr size_t kSessions = 6;
    std::vector<fornax_session*> sessions(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
        ASSERT_FORNAX(fornax_session_create(model_, &sessions[i]));
        SetSizes(sessions[i], 2);
    }
    for (int repeat = 0; repeat < 3; ++repeat) {
        for (size_t i = 0; i < kSessions; ++i) {
            Write(sessions[i], {static_cast<float>(i), 1});
            ASSERT_FORNAX(fornax_session_start(sessions[i]));
        }
        EXPECT_THAT(Run({7, 8}), ElementsAre(16, 18));
        for (size_t i = kSessions; i-- > 0;) {
            ASSERT_FORNAX(fornax_session_wait(sessions[i], kForever));
            EXPECT_THAT(Output(sessions[i]), ElementsAre(2 * static_cast<float>(i) + 2, 4));
        }
    }
    for (fornax_session* session : sessions) {
        fornax_session_destroy(session);
    }
}

TEST_P(StartTest, ThreadsStartAndWaitForEachOther) {
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            fornax_session* session = nullptr;
            ASSERT_FORNAX(fornax_session_create(model_, &session));
            SetSizes(session, 1 + t);
            for (int repeat = 0; repeat < 8; ++repeat) {
                Write(session, std::vector<float>(static_cast<size_t>(1 + t), 3));
                ASSERT_FORNAX(fornax_session_start(session));
                fornax_status status = FORNAX_INTERNAL;
                std::thread waiting([&] { status = fornax_session_wait(session, kForever); });
                waiting.join();
                right += status == FORNAX_OK && Output(session)[0] == 8 ? 1 : 0;
            }
            fornax_session_destroy(session);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(right, 32);
}

TEST_P(StartTest, OtherUsesOfTheSessionAreRefusedMeanwhile) {
    fornax_tensor output = {};
    void* data = nullptr;
    size_t size_bytes = 0;
    std::vector<float> values = {1, 2, 3};
    const fornax_tensor in = Vector(values);
    EXPECT_EQ(fornax_session_start(session_), FORNAX_INVALID_ARGUMENT);
    EXPECT_THAT(fornax_error_message(), HasSubstr("sizes of the inputs are not set"));
    EXPECT_EQ(fornax_session_wait(session_, kForever), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(),
                 "No run of the session is under way: fornax_session_start() begins one.");
    SetSizes(session_, 3);
    Write(session_, values);
    CloseGate();
    ASSERT_FORNAX(fornax_session_start(session_));
    EXPECT_EQ(fornax_session_start(session_), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(),
                 "A run of the session is under way: fornax_session_wait() ends it.");
    EXPECT_EQ(fornax_session_run(session_), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_profile(session_), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_run(session_, &in, 1, &output, 1), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_set_sizes(session_, &in, 1), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_reset(session_), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_output(session_, 0, &output), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_input_memory(session_, 0, &data, &size_bytes),
              FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_bind_input(session_, 0, nullptr, 0, nullptr), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_bind_output(session_, 0, nullptr, 0, nullptr),
              FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_session_record(session_, &output), FORNAX_INVALID_ARGUMENT);
    // The model goes on.
    fornax_port port = {};
    EXPECT_EQ(fornax_model_output(model_, 0, &port), FORNAX_OK);
    fornax_model_destroy(model_);
    model_ = nullptr;
    OpenGate();
    ASSERT_FORNAX(fornax_session_wait(session_, kForever));
    EXPECT_THAT(Output(session_), ElementsAre(4, 6, 8));
    EXPECT_EQ(fornax_session_wait(session_, 0), FORNAX_INVALID_ARGUMENT);
}

TEST_P(StartTest, DestroyedSessionsWaitFirst) {
    alignas(64) float in[4] = {1, 2, 3, 4}, out[4] = {};
    SetSizes(session_, 4);
    ASSERT_FORNAX(fornax_session_bind_input(session_, 0, in, sizeof in, nullptr));
    ASSERT_FORNAX(fornax_session_bind_output(session_, 0, out, sizeof out, nullptr));
    CloseGate();
    ASSERT_FORNAX(fornax_session_start(session_));
    std::thread opening([] { OpenGate(); });
    fornax_session_destroy(session_);
    session_ = nullptr;
    opening.join();
    std::fill_n(in, 4, 0.0F);  // nobody reads or writes them any more
    std::fill_n(out, 4, 0.0F);
}

INSTANTIATE_TEST_SUITE_P(Models,
                         StartTest,
                         testing::Values("add and double", "positive"),
                         [](const auto& info) {
                             return info.index == 0 ? "OnTheDevice" : "WithHostSteps";
                         });

class StartHostTest : public StartTest {};

TEST_P(StartHostTest, WaitingEndsAfterItsTime) {
    SetSizes(session_, 2);
    Write(session_, {1, 2});
    CloseGate();
    ASSERT_FORNAX(fornax_session_start(session_));
    while (WaitingCount() == 0) {  // the run goes on without being waited for
        std::this_thread::yield();
    }
    EXPECT_EQ(fornax_session_wait(session_, 0), FORNAX_TIMEOUT);
    EXPECT_EQ(fornax_session_wait(session_, 1'000'000), FORNAX_TIMEOUT);
    EXPECT_STREQ(fornax_error_message(), "The run is still under way after 1000000 nanoseconds.");
    EXPECT_EQ(fornax_session_run(session_), FORNAX_INVALID_ARGUMENT);
    OpenGate();
    ASSERT_FORNAX(fornax_session_wait(session_, kForever));
    EXPECT_THAT(Output(session_), ElementsAre(4, 6));
}

TEST_P(StartHostTest, SizesThatTheHostGivesMayDiffer) {
    SetSizes(session_, 4);
    Write(session_, {1, -5, 2, -7});
    ASSERT_FORNAX(fornax_session_start(session_));
    ASSERT_FORNAX(fornax_session_wait(session_, kForever));
    EXPECT_THAT(Output(session_), ElementsAre(4, 6));
    Write(session_, {-1, -1, -1, -1});
    ASSERT_FORNAX(fornax_session_start(session_));
    ASSERT_FORNAX(fornax_session_wait(session_, kForever));
    EXPECT_THAT(Output(session_), ElementsAre());
}

TEST_P(StartHostTest, ErrorsOfRunsComeWhenTheyAreWaitedFor) {
    SetSizes(session_, 2);
    Write(session_, {1, 2000});
    ASSERT_FORNAX(fornax_session_start(session_));
    EXPECT_EQ(fornax_session_wait(session_, kForever), FORNAX_UNSUPPORTED);
    EXPECT_THAT(fornax_error_message(), HasSubstr("2001 is beyond 1000."));
    EXPECT_EQ(fornax_session_wait(session_, kForever), FORNAX_INVALID_ARGUMENT);  // it has ended
    // The size of this output is known when it is computed.
    float small[1] = {};
    Write(session_, {1, 2});
    ASSERT_FORNAX(fornax_session_bind_output(session_, 0, small, sizeof small, nullptr));
    ASSERT_FORNAX(fornax_session_start(session_));
    EXPECT_EQ(fornax_session_wait(session_, kForever), FORNAX_INVALID_ARGUMENT);
    EXPECT_THAT(fornax_error_message(), HasSubstr("y has 8 bytes"));
    ASSERT_FORNAX(fornax_session_bind_output(session_, 0, nullptr, 0, nullptr));
    ASSERT_FORNAX(fornax_session_start(session_));
    ASSERT_FORNAX(fornax_session_wait(session_, kForever));
    EXPECT_THAT(Output(session_), ElementsAre(4, 6));
}

INSTANTIATE_TEST_SUITE_P(Models, StartHostTest, testing::Values("positive"), [](const auto&) {
    return "WithHostSteps";
});

}  // namespace
}  // namespace fornax::runtime
