// Runs every conformance case on every backend.
#include "hal/conformance/conformance.h"

#include <gtest/gtest-spi.h>

#include <algorithm>
#include <tuple>

#include "hal/conformance/expected_failures.h"

namespace fornax::hal::conformance {

std::vector<Case>& Cases() {
    static std::vector<Case> cases;
    return cases;
}

Bench::Bench(const std::string& backend, DeviceOptions options) : backend_(backend) {
    auto device = CreateDevice(backend, std::move(options));
    if (!device.ok()) {
        ADD_FAILURE() << device.error().message;
        return;
    }
    device_ = *device;
    queue_ = NewQueue();
}

std::shared_ptr<Memory> Bench::Allocate(uint64_t size_bytes) {
    auto memory = device_->AllocateMemory(size_bytes);
    EXPECT_TRUE(memory.ok());
    return memory.ok() ? *memory : nullptr;
}

std::shared_ptr<Timeline> Bench::NewTimeline(uint64_t initial_value) {
    auto timeline = device_->CreateTimeline(initial_value);
    EXPECT_TRUE(timeline.ok());
    return timeline.ok() ? *timeline : nullptr;
}

std::shared_ptr<Queue> Bench::NewQueue() {
    auto queue = device_->CreateQueue();
    EXPECT_TRUE(queue.ok());
    return queue.ok() ? *queue : nullptr;
}

std::shared_ptr<const Executable> Bench::NewExecutable(KernelDesc desc) {
    auto executable = device_->CreateExecutable(std::move(desc));
    EXPECT_TRUE(executable.ok());
    return executable.ok() ? *executable : nullptr;
}

Status Bench::Submit(Queue& queue,
                     std::vector<TimelinePoint> waits,
                     std::vector<std::shared_ptr<const CommandStream>> streams,
                     std::vector<TimelinePoint> signals) {
    return queue.Submit({.waits = waits, .streams = streams, .signals = signals});
}

void Bench::Run(CommandStreamBuilder& builder) {
    auto stream = builder.Finish();
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    const auto done = NewTimeline();
    const Status submitted = Submit(*queue_, {}, {*stream}, {{done, 1}});
    ASSERT_TRUE(submitted.ok()) << submitted.error().message;
    const Status waited = done->Wait(1, kPatienceNs);
    ASSERT_TRUE(waited.ok()) << waited.error().message;
}

void Bench::Close() {
    queue_.reset();
    device_.reset();
}

namespace {

class Conformance : public testing::TestWithParam<std::tuple<std::string, Case>> {};

TEST_P(Conformance, Holds) {
    const auto& [backend, conformance_case] = GetParam();
    const auto expected = ExpectedFailures(backend);
    const bool may_fail =
        std::find(expected.begin(), expected.end(), conformance_case.name) != expected.end();
    if (!may_fail) {
        Bench bench(backend);
        conformance_case.run(bench);
        return;
    }
    testing::TestPartResultArray results;
    {
        testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
        Bench bench(backend);
        conformance_case.run(bench);
    }
    bool failed = false;
    for (int i = 0; i < results.size(); ++i) {
        failed = failed || results.GetTestPartResult(i).failed();
    }
    EXPECT_TRUE(failed) << "The case " << conformance_case.name << " passes on the backend "
                        << backend << " although it is listed as an expected failure: unlist it.";
}

INSTANTIATE_TEST_SUITE_P(Hal,
                         Conformance,
                         testing::Combine(testing::ValuesIn(BackendNames()),
                                          testing::ValuesIn(Cases())),
                         [](const auto& info) {
                             return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

TEST(ConformanceLists, NameExistingCases) {
    for (const std::string& backend : BackendNames()) {
        for (const std::string& name : ExpectedFailures(backend)) {
            EXPECT_TRUE(std::any_of(Cases().begin(), Cases().end(),
                                    [&](const Case& entry) { return name == entry.name; }))
                << "The expected failure " << name << " of " << backend << " is no case.";
        }
    }
}

}  // namespace

// Makes GoogleTest's output name a case instead of dumping its bytes.
void PrintTo(const Case& conformance_case, std::ostream* out) {
    *out << conformance_case.name;
}

}  // namespace fornax::hal::conformance
