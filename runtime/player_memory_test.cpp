// The player with memory of the caller, with command buffers of the caller, and with two devices.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <gmock/gmock.h>

#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::BlockId;
using graph::BlockKind;
using graph::ElementType;
using graph::Symbol;
using graph::TensorType;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const TensorType kVector = {ElementType::kF32, {Symbol("n")}};

// Floats between neighbours that must keep their poison, `skew` floats behind the start of a page.
class Memory {
  public:
    Memory(size_t count, size_t skew) : count_(count) {
        data_ = static_cast<float*>(std::aligned_alloc(kPage, kBytes));
        std::fill_n(data_, kBytes / sizeof(float), kPoison);
        values_ = data_ + kPage / sizeof(float) + skew;
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        EXPECT_THAT(std::span(data_, values_), Each(kPoison));
        EXPECT_THAT(std::span(values_ + count_, data_ + kBytes / sizeof(float)), Each(kPoison));
        std::free(data_);
    }
    std::span<float> values() { return {values_, count_}; }
    void Set(std::vector<float> values) { std::copy(values.begin(), values.end(), values_); }
    size_t size_bytes() const { return count_ * sizeof(float); }

  private:
    static constexpr size_t kPage = 4096, kBytes = 4 * kPage;
    static constexpr float kPoison = -77;
    size_t count_;
    float* data_;
    float* values_;
};

class PlayerMemoryTest : public PlayerTest {
  protected:
    // y = (x + 1) * 2, and z = y + 10
    void SetUp() override {
        PlayerTest::SetUp();
        PlanBuilder builder;
        const BlockId x = builder.Input("x", kVector);
        const BlockId y = builder.Output("y", kVector), z = builder.Output("z", kVector);
        const BlockId t = builder.Block("t", kVector);
        builder.Dispatch(Elementwise("add", 1), {x, t});
        builder.Dispatch(Elementwise("mul", 2), {t, y});
        builder.Dispatch(Elementwise("add", 10), {y, z});
        builder.AddOutput("again", y);
        builder.AddOutput("input", x);
        session_ = std::make_unique<Session>(Make(builder.Finish()));
    }
    void TearDown() override {
        session_.reset();
        PlayerTest::TearDown();
    }
    std::shared_ptr<Instance> For(int64_t n) {
        Fit fit;
        const Dims dims[] = {{n}};
        auto instance = session_->For(dims, fit);
        EXPECT_TRUE(instance.ok()) << instance.error().message;
        return *instance;
    }
    static void Run(Instance& instance) {
        const Status status = instance.Run();
        ASSERT_TRUE(status.ok()) << status.error().message;
    }
    bool CanImport() const { return device_->features().host_import_alignment != 0; }

    std::unique_ptr<Session> session_;
};

TEST_F(PlayerMemoryTest, InputsKeepWhatIsWrittenOnce) {
    const auto instance = For(3);
    EXPECT_THAT(instance->InputDims(0), ElementsAre(3));
    const std::vector<float> values = {1, 2, 3};
    ASSERT_EQ(instance->InputBytes(0).size(), 12u);
    std::memcpy(instance->InputBytes(0).data(), values.data(), 12);
    for (int repeat = 0; repeat < 3; ++repeat) {
        Run(*instance);
        EXPECT_THAT(ToFloats(instance->OutputBytes(0)), ElementsAre(4, 6, 8));
        EXPECT_THAT(ToFloats(instance->OutputBytes(1)), ElementsAre(14, 16, 18));
        EXPECT_THAT(ToFloats(instance->OutputBytes(3)), ElementsAre(1, 2, 3));
    }
}

TEST_F(PlayerMemoryTest, SizesShareTheMemoryOfTemporaries) {
    const auto arena_bytes = [&] { return session_->states()->arena_bytes(); };
    std::vector<std::shared_ptr<Instance>> instances = {For(1000)};
    const uint64_t bytes = arena_bytes();
    EXPECT_GE(bytes, 4000u);
    instances.push_back(For(10));
    EXPECT_EQ(arena_bytes(), bytes);
    instances.push_back(For(2000));
    EXPECT_GE(arena_bytes(), 8000u);
    EXPECT_LT(arena_bytes(), bytes + 8000);  // the smaller one is the first instances' alone
    const auto value = [](size_t i) { return static_cast<float>(i + 1); };
    for (size_t i = 0; i < instances.size(); ++i) {
        const std::span<uint8_t> input = instances[i]->InputBytes(0);
        const std::vector<float> values(input.size() / sizeof(float), value(i));
        std::memcpy(input.data(), values.data(), input.size());
    }
    for (int repeat = 0; repeat < 2; ++repeat) {
        for (const auto& instance : instances) {
            Run(*instance);
        }
    }
    for (size_t i = 0; i < instances.size(); ++i) {
        EXPECT_THAT(ToFloats(instances[i]->OutputBytes(0)), Each((value(i) + 1) * 2));
    }
}

// y = x + w, where w begins with a page, or 4 bytes behind that.
TEST_F(PlayerMemoryTest, LargeConstantsAreUsedInPlace) {
    constexpr int64_t kCount = 32 << 10;
    const std::string add =
        "kernel add(in x: f32[n], in w: f32[n], out y: f32[n])\n"
        "  sizes n in 0..1000000\n  parallel $i < n\n"
        "%0 = load x[$i]\n%1 = load w[$i]\n%2 = add %0, %1\nstore y[$i] = %2\n";
    for (const size_t skew : {size_t{0}, size_t{4}}) {
        const auto page = std::shared_ptr<uint8_t>(
            static_cast<uint8_t*>(std::aligned_alloc(4096, 4 * kCount + 4096)), std::free);
        auto* w = reinterpret_cast<float*>(page.get() + skew);
        std::fill_n(w, kCount, 5.0F);
        std::shared_ptr<const Program> program;
        BlockId constant;
        {
            PlanBuilder builder;
            const BlockId x = builder.Input("x", kVector), y = builder.Output("y", kVector);
            const graph::Bytes data({page.get() + skew, size_t{4 * kCount}}, page);
            constant = builder.Constant("w", {ElementType::kF32, {kCount}, data, nullptr});
            builder.Dispatch(add, {x, constant, y});
            program = Make(builder.Finish());
        }
        const bool is_in_place = program->constant(constant).buffer->data() == page.get() + skew;
        EXPECT_EQ(is_in_place, skew == 0 && CanImport());
        EXPECT_EQ(page.use_count() > 1, is_in_place);  // else it was copied and let go of
        Session session(program);
        const std::vector<float> input(kCount, 1);
        const Result<RunResult> result = session.Run(std::vector{Floats(input)});
        ASSERT_TRUE(result.ok()) << result.error().message;
        EXPECT_THAT(ToFloats(*result->outputs.at(0).data), Each(6));
    }
}

TEST_F(PlayerMemoryTest, AlignedMemoryIsUsedInPlace) {
    const auto instance = For(5);
    Memory x(5, 64), y(5, 128), z(5, 192);
    EXPECT_EQ(*instance->BindInput(0, x.values().data(), x.size_bytes()), CanImport());
    EXPECT_EQ(*instance->BindOutput(0, y.values().data(), y.size_bytes()), CanImport());
    EXPECT_EQ(*instance->BindOutput(1, z.values().data(), z.size_bytes()), CanImport());
    x.Set({1, 2, 3, 4, 5});
    Run(*instance);
    EXPECT_THAT(y.values(), ElementsAre(4, 6, 8, 10, 12));
    EXPECT_THAT(z.values(), ElementsAre(14, 16, 18, 20, 22));
    x.Set({0, 0, 0, 0, 0});
    Run(*instance);
    EXPECT_THAT(y.values(), Each(2));

    // Without bindings, runs leave the memory alone.
    EXPECT_FALSE(*instance->BindInput(0, nullptr, 0));
    EXPECT_FALSE(*instance->BindOutput(0, nullptr, 0));
    std::memset(instance->InputBytes(0).data(), 0, 20);
    x.Set({9, 9, 9, 9, 9});
    y.Set({9, 9, 9, 9, 9});
    Run(*instance);
    EXPECT_THAT(y.values(), Each(9));
    EXPECT_THAT(z.values(), Each(12));
    EXPECT_THAT(ToFloats(instance->OutputBytes(0)), Each(2));
}

TEST_F(PlayerMemoryTest, OtherMemoryIsCopied) {
    const auto instance = For(3);
    Memory x(3, 1), y(3, 2), again(3, 64), input(3, 128);
    if (device_->limits().minStorageBufferOffsetAlignment > 4) {
        EXPECT_FALSE(*instance->BindInput(0, x.values().data(), x.size_bytes()));
        EXPECT_FALSE(*instance->BindOutput(0, y.values().data(), y.size_bytes()));
    }
    // What is no output's own block is copied out.
    EXPECT_FALSE(*instance->BindOutput(3, input.values().data(), input.size_bytes()));
    x.Set({1, 2, 3});
    ASSERT_TRUE(instance->BindInput(0, x.values().data(), x.size_bytes()).ok());
    ASSERT_TRUE(instance->BindOutput(0, y.values().data(), y.size_bytes()).ok());
    ASSERT_TRUE(instance->BindOutput(2, again.values().data(), again.size_bytes()).ok());
    Run(*instance);
    EXPECT_THAT(y.values(), ElementsAre(4, 6, 8));
    EXPECT_THAT(again.values(), ElementsAre(4, 6, 8));
    EXPECT_THAT(input.values(), ElementsAre(1, 2, 3));
}

TEST_F(PlayerMemoryTest, TwoBindingsOfOneMemoryDoNotMix) {
    // y is written while x is still read by nobody, but z is computed from y: were both in the same
    // bytes, the copies would come out wrong.
    const auto instance = For(4);
    Memory both(4, 64);
    both.Set({1, 2, 3, 4});
    ASSERT_TRUE(instance->BindInput(0, both.values().data(), both.size_bytes()).ok());
    EXPECT_FALSE(*instance->BindOutput(1, both.values().data(), both.size_bytes()));
    Run(*instance);
    EXPECT_THAT(both.values(), ElementsAre(14, 16, 18, 20));
    EXPECT_THAT(ToFloats(instance->OutputBytes(0)), ElementsAre(4, 6, 8, 10));

    // Two outputs of one block.
    Memory first(4, 0), second(4, 0);
    ASSERT_TRUE(instance->BindOutput(0, first.values().data(), first.size_bytes()).ok());
    ASSERT_TRUE(instance->BindOutput(2, second.values().data(), second.size_bytes()).ok());
    both.Set({0, 0, 0, 0});
    Run(*instance);
    EXPECT_THAT(first.values(), Each(2));
    EXPECT_THAT(second.values(), Each(2));
    ASSERT_TRUE(instance->BindOutput(0, nullptr, 0).ok());
    both.Set({1, 1, 1, 1});
    Run(*instance);
    EXPECT_THAT(first.values(), Each(2));
    EXPECT_THAT(second.values(), Each(4));
}

// total += x, in memory that the device can use and in other memory.
TEST_F(PlayerMemoryTest, StatesMayLieInMemoryOfTheCaller) {
    const TensorType four = {ElementType::kF32, {4}};
    PlanBuilder builder;
    const BlockId x = builder.Input("x", kVector), y = builder.Output("y", four);
    const BlockId total = builder.Block("total", four, BlockKind::kState);
    builder.Dispatch(
        "kernel add(in x: f32[n], out s: f32[4], out y: f32[4])\n  sizes n in 4..4\n"
        "  parallel $i < 4\n"
        "%0 = load x[$i]\n%1 = load s[$i]\n%2 = add %0, %1\nstore s[$i] = %2\n"
        "store y[$i] = %2\n",
        {x, total, y});
    session_ = std::make_unique<Session>(Make(builder.Finish()));
    const auto instance = For(4);
    const auto add = [&](std::vector<float> values) {
        std::memcpy(instance->InputBytes(0).data(), values.data(), 16);
        Run(*instance);
        return ToFloats(instance->OutputBytes(0));
    };
    EXPECT_THAT(add({1, 2, 3, 4}), ElementsAre(1, 2, 3, 4));
    for (const size_t skew : {64, 1}) {
        Memory memory(4, skew);
        memory.Set({10, 10, 10, 10});
        const Result<bool> bound =
            instance->BindState("total", memory.values().data(), memory.size_bytes());
        ASSERT_TRUE(bound.ok()) << bound.error().message;
        if (skew == 64) {
            EXPECT_EQ(*bound, CanImport());
        }
        EXPECT_THAT(add({1, 2, 3, 4}), ElementsAre(11, 12, 13, 14));
        EXPECT_THAT(memory.values(), ElementsAre(11, 12, 13, 14));
        memory.Set({0, 0, 0, 0});
        EXPECT_THAT(add({1, 2, 3, 4}), ElementsAre(1, 2, 3, 4));
        EXPECT_THAT(memory.values(), ElementsAre(1, 2, 3, 4));
        // Bytes must not be two tensors' at once, so the state is copied.
        ASSERT_TRUE(instance->BindState("total", nullptr, 0).ok());
        ASSERT_TRUE(instance->BindInput(0, memory.values().data(), memory.size_bytes()).ok());
        EXPECT_FALSE(*instance->BindState("total", memory.values().data(), memory.size_bytes()) &&
                     skew == 64);
        Run(*instance);
        EXPECT_THAT(memory.values(), ElementsAre(2, 4, 6, 8));
        ASSERT_TRUE(instance->BindInput(0, nullptr, 0).ok());
        ASSERT_TRUE(instance->BindState("total", nullptr, 0).ok());
        add({5, 5, 5, 5});
        EXPECT_THAT(memory.values(), ElementsAre(2, 4, 6, 8));
        EXPECT_EQ(instance->BindState("total", memory.values().data(), 12).error().code,
                  ErrorCode::kInvalidArgument);
        EXPECT_EQ(instance->BindState("x", memory.values().data(), 16).error().code,
                  ErrorCode::kNotFound);
    }
}

TEST_F(PlayerMemoryTest, MemoryThatIsTooSmallIsRefused) {
    const auto instance = For(4);
    Memory small(3, 0);
    const auto bound = instance->BindOutput(0, small.values().data(), small.size_bytes());
    ASSERT_FALSE(bound.ok());
    EXPECT_THAT(bound.error().message, HasSubstr("y has 16 bytes; the memory that is bound to it "
                                                 "has 12"));
    EXPECT_FALSE(instance->BindInput(0, small.values().data(), small.size_bytes()).ok());
}

TEST_F(PlayerMemoryTest, BoundMemoryMayHaveAnyNumberOfBytes) {
    const TensorType bytes = {ElementType::kU8, {Symbol("n")}};
    PlanBuilder builder;
    const BlockId x = builder.Input("x", bytes), y = builder.Output("y", bytes);
    builder.Dispatch(
        "kernel copy(in x: u8[n], out y: u8[n])\n  sizes n in 0..1000\n  parallel $i < n\n"
        "%0 = load x[$i]\nstore y[$i] = %0\n",
        {x, y});
    session_ = std::make_unique<Session>(Make(builder.Finish()));
    const auto instance = For(7);
    Memory from(2, 0), to(2, 0);
    to.Set({0, 0});
    std::memcpy(from.values().data(), "abcdefgh", 8);
    ASSERT_TRUE(instance->BindInput(0, from.values().data(), 7).ok());
    ASSERT_TRUE(instance->BindOutput(0, to.values().data(), 7).ok());
    Run(*instance);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(to.values().data()), 8),
              std::string_view("abcdefg\0", 8));
}

TEST_F(PlayerMemoryTest, PlansAreRecordedIntoForeignCommandBuffers) {
    // The device belongs to somebody else, who records and submits.
    vulkan::ForeignDevice foreign;
    foreign.instance = instance_->handle();
    foreign.functions = vkGetInstanceProcAddr;
    foreign.physical_device = device_->physical_device();
    foreign.device = device_->handle();
    foreign.queue_family = device_->queue_family();
    foreign.features = device_->features();
    foreign.host_import = CanImport();
    const auto wrapped = vulkan::Device::Wrap(foreign);
    const auto program = Program::Create(wrapped, session_->program().plan(), {});
    ASSERT_TRUE(program.ok()) << program.error().message;
    Session session(*program);
    Fit fit;
    const Dims dims[] = {{3}};
    const auto instance = session.For(dims, fit);
    ASSERT_TRUE(instance.ok()) << instance.error().message;
    const std::vector<float> values = {1, 2, 3};
    std::memcpy((*instance)->InputBytes(0).data(), values.data(), 12);
    auto commands = vulkan::Commands::Create(device_, 0);
    ASSERT_TRUE(commands.ok());
    ASSERT_TRUE((*commands)->Begin().ok());
    const Status recorded = (*instance)->Record((*commands)->handle());
    ASSERT_TRUE(recorded.ok()) << recorded.error().message;
    ASSERT_TRUE((*commands)->End().ok());
    ASSERT_TRUE((*commands)->Submit().ok());
    ASSERT_TRUE((*commands)->Wait().ok());
    EXPECT_THAT(ToFloats((*instance)->OutputBytes(0)), ElementsAre(4, 6, 8));
    EXPECT_THAT(ToFloats((*instance)->OutputBytes(1)), ElementsAre(14, 16, 18));
    commands->reset();
}

TEST_F(PlayerMemoryTest, PlansWithHostStepsAreNotRecorded) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", kVector), y = builder.Output("y", kVector);
    builder.Host(graph::op::Scan(), {x}, {y});
    session_ = std::make_unique<Session>(Make(builder.Finish()));
    auto commands = vulkan::Commands::Create(device_, 0);
    ASSERT_TRUE(commands.ok());
    ASSERT_TRUE((*commands)->Begin().ok());
    const Status recorded = For(3)->Record((*commands)->handle());
    ASSERT_FALSE(recorded.ok());
    EXPECT_EQ(recorded.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(recorded.error().message, HasSubstr("scan on the host (a test)"));
    EXPECT_TRUE((*commands)->End().ok());
}

TEST_F(PlayerMemoryTest, DevicesLiveSideBySide) {
    auto other = vulkan::Device::Open(instance_, device_->physical_device());
    ASSERT_TRUE(other.ok()) << other.error().message;
    auto program = Program::Create(*other, session_->program().plan(), {});
    ASSERT_TRUE(program.ok()) << program.error().message;
    {
        Session session(*program);
        EXPECT_THAT(ToFloats(PlayerTest::Run(session, {Floats({1})}).at(1)), ElementsAre(14));
        EXPECT_THAT(ToFloats(PlayerTest::Run(*session_, {Floats({2})}).at(1)), ElementsAre(16));
    }
    *program = nullptr;
    *other = nullptr;
    EXPECT_THAT(ToFloats(PlayerTest::Run(*session_, {Floats({3})}).at(1)), ElementsAre(18));
}

TEST_F(PlayerMemoryTest, DevicesAreChosenByNameOrNumber) {
    const std::string name = device_->name();
    EXPECT_TRUE(instance_->Choose(name.substr(0, 5)).ok());
    EXPECT_TRUE(instance_->Choose("0").ok());
    const auto none = instance_->Choose("no such device");
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(none.error().message, HasSubstr(name));
    EXPECT_FALSE(instance_->Choose("99").ok());
}

}  // namespace
}  // namespace fornax::runtime
