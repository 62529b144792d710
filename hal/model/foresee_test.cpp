#include "hal/model/foresee.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "hal/command_stream_builder.h"
#include "hal/device.h"
#include "hal/foresight.h"

namespace fornax::hal::model {
namespace {

constexpr uint32_t kOffset = 12;

// Notes the word of set 1 of each dispatch that it is told of; nothing for one that is not there.
class Notes final : public Foresight {
  public:
    bool WantsToForesee() const override { return wants; }
    void Foresee(const ReadWord& read) const override {
        uint32_t word = 0;
        EXPECT_FALSE(read(0, kOffset, word)) << "no set is bound there";
        EXPECT_FALSE(read(2, kOffset, word)) << "there is no such set";
        words.push_back(read(1, kOffset, word) ? std::optional(word) : std::nullopt);
    }

    bool wants = true;
    mutable std::vector<std::optional<uint32_t>> words;
};

class ForeseeTest : public testing::Test {
  protected:
    ForeseeTest() {
        auto memory = heap_->Allocate(4096);
        EXPECT_TRUE(memory.ok());
        memory_ = *memory;
    }

    // The word lies in device memory.
    uint64_t SetWith(uint32_t word) {
        const uint64_t offset = used_bytes_;
        used_bytes_ += 64;
        std::memcpy(memory_->host_pointer() + offset + kOffset, &word, sizeof(word));
        return memory_->address() + offset;
    }
    void Dispatch(CommandStreamBuilder& builder, uint64_t set) {
        const uint64_t sets[] = {0, set};
        builder.Bind(executable_, sets, {});
        builder.Dispatch({1, 1, 1});
    }
    void Foresee(CommandStreamBuilder& builder) {
        const auto stream = builder.Finish();
        ASSERT_TRUE(stream.ok());
        ForeseeDispatches(**stream, *heap_);
    }

    const std::shared_ptr<HostHeap> heap_ = std::make_shared<HostHeap>(1 << 20);
    std::shared_ptr<Memory> memory_;
    uint64_t used_bytes_ = 0;
    Notes notes_;
    const std::shared_ptr<const Executable> executable_ =
        std::make_shared<const Executable>(KernelDesc{.foresight = &notes_});
    const std::shared_ptr<const Executable> other_ =
        std::make_shared<const Executable>(KernelDesc{});
};

TEST_F(ForeseeTest, KernelsAreToldOfTheirSets) {
    CommandStreamBuilder chained;
    Dispatch(chained, SetWith(9));
    const auto stream = chained.Finish();
    ASSERT_TRUE(stream.ok());
    CommandStreamBuilder builder;
    builder.Bind(other_, {}, {});
    Dispatch(builder, SetWith(7));
    uint32_t pushed[4] = {0, 0, 0, 8};
    Dispatch(builder, builder.StoreSideData(pushed, sizeof(pushed)));
    builder.Chain(*stream);
    Foresee(builder);
    EXPECT_THAT(notes_.words, testing::ElementsAre(7, 8, 9));
}

// What is not there is the command processor's business, when the packet's turn has come.
TEST_F(ForeseeTest, WhatIsNotThereIsNotRead) {
    CommandStreamBuilder builder;
    Dispatch(builder, 16);
    Dispatch(builder, memory_->address() + 4096 - kOffset);
    Dispatch(builder, UINT64_MAX - 3);
    builder.BindStored(executable_, 8, 2, 0, 0);
    builder.BindStored(executable_, 0, UINT32_MAX, 0, 0);
    Foresee(builder);
    EXPECT_THAT(notes_.words, testing::ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

TEST_F(ForeseeTest, WhoDoesNotWantIsNotTold) {
    notes_.wants = false;
    CommandStreamBuilder builder;
    Dispatch(builder, SetWith(7));
    Foresee(builder);
    EXPECT_THAT(notes_.words, testing::IsEmpty());
}

// Before the work begins, and before Submit returns.
TEST(Foresee, IsDoneByWhoSubmits) {
    auto device = CreateDevice("model");
    ASSERT_TRUE(device.ok());
    const auto memory = (*device)->AllocateMemory(256);
    const auto queue = (*device)->CreateQueue();
    const auto timeline = (*device)->CreateTimeline(0);
    ASSERT_TRUE(memory.ok() && queue.ok() && timeline.ok());
    const uint32_t word = 5;
    std::memcpy((*memory)->host_pointer() + kOffset, &word, sizeof(word));
    Notes notes;
    const auto executable = (*device)->CreateExecutable(
        {.entry = [](const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {},
         .foresight = &notes});
    ASSERT_TRUE(executable.ok());
    CommandStreamBuilder builder;
    const uint64_t sets[] = {0, (*memory)->address()};
    builder.Bind(*executable, sets, {});
    builder.Dispatch({1, 1, 1});
    const auto stream = builder.Finish();
    ASSERT_TRUE(stream.ok());
    const TimelinePoint waits[] = {{*timeline, 1}};
    const std::shared_ptr<const CommandStream> streams[] = {*stream};
    ASSERT_TRUE((*queue)->Submit({waits, streams, {}}).ok());
    EXPECT_THAT(notes.words, testing::ElementsAre(5));
    ASSERT_TRUE((*timeline)->Signal(1).ok());
    EXPECT_TRUE((*queue)->WaitIdle().ok());
}

}  // namespace
}  // namespace fornax::hal::model
