// The interpreter on kernels with known answers, and the random kernels themselves.
#include "compiler/kernel/interpret/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/kernel/interpret/random_kernel.h"
#include "compiler/kernel/interpret/test_dispatch.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Runs one workgroup on one buffer of words.
Result<std::vector<uint32_t>> RunWords(const std::string& body,
                                       std::vector<uint32_t> words,
                                       uint32_t workgroup = 4,
                                       uint64_t steps = 100000) {
    std::string text = "kernel \"k\" workgroup_size(" + std::to_string(workgroup) +
                       ", 1, 1) subgroup_size(4) shared(64) zero_shared robust {\n"
                       "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
                       "local 0: i32[4]\n"
                       "body { %z:i32 = const 0 %one:i32 = const 1 %four:i32 = const 4\n"
                       "%i:i32 = builtin local_index %at:i32 = imul %i, %four\n"
                       "%o:buffer = buffer 0, %z\n" +
                       body + "}}\n";
    auto kernel = ir::ParseKernel(text);
    if (!kernel.ok()) {
        return kernel.error();
    }
    hal::BufferDescriptor descriptor{reinterpret_cast<uint64_t>(words.data()), words.size() * 4};
    const void* sets[] = {&descriptor};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    for (uint32_t& count : frame.workgroup_count) {
        count = 1;
    }
    FORNAX_RETURN_IF_ERROR(Interpret(*kernel, frame, 0, 1, {steps}));
    return words;
}

void ExpectWords(const std::string& body,
                 std::vector<uint32_t> words,
                 const std::vector<uint32_t>& expected) {
    auto result = RunWords(body, std::move(words));
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(*result, expected);
}

TEST(Interpret, EveryInvocationStores) {
    ExpectWords("%v:i32 = imul %i, %i store_buffer %o, %at, %v align(4) return", {9, 9, 9, 9, 9},
                {0, 1, 4, 9, 9});
}

TEST(Interpret, OutOfRangeReadsZeroAndStoresNothing) {
    // Two elements from each place: the run's end lies outside for the last invocation.
    ExpectWords(
        "%a:i32, %b:i32 = load_buffer %o, %at align(4) %s:i32 = iadd %a, %b "
        "barrier store_buffer %o, %at, %s, %one align(4) return",
        {1, 2, 3, 4}, {3, 5, 7, 4});
    // An offset of -4 wraps to the first element.
    ExpectWords(
        "%m:i32 = const -4 %a:i32, %b:i32 = load_buffer %o, %m align(4) %s:i32 = iadd %a, %b "
        "barrier store_buffer %o, %at, %s align(4) return",
        {7, 2, 3, 4}, {7, 7, 7, 7});
}

TEST(Interpret, LoopsCarryValues) {
    // Sum of 0..i, as the value of the exit.
    ExpectWords(
        "%r:i32 = loop @0 (%n:i32 = %z, %s:i32 = %z) { %c:bool = ule %n, %i "
        "  if %c { yield } else { exit @0 %s } continue @0 %n } "
        "continuing (%m:i32) { %n2:i32 = iadd %n, %one %s2:i32 = iadd %s, %m next %n2, %s2 } "
        "store_buffer %o, %at, %r align(4) return",
        {0, 0, 0, 0}, {0, 1, 3, 6});
}

TEST(Interpret, ParametersAreCopiedInParallel) {
    ExpectWords(
        "%r:i32 = loop @0 (%n:i32 = %z, %a:i32 = %one, %b:i32 = %four) { %c:bool = ult %n, %i "
        "  if %c { yield } else { exit @0 %a } continue @0 } "
        "continuing () { %n2:i32 = iadd %n, %one next %n2, %b, %a } "
        "store_buffer %o, %at, %r align(4) return",
        {0, 0, 0, 0}, {1, 4, 1, 4});
}

TEST(Interpret, SwitchesAndExitsOfSeveralLevels) {
    ExpectWords(
        "%r:i32 = scope @0 { %s:i32 = switch @1 %i default { yield %four } case 0 { "
        "  %b:bool = const true if %b { exit @1 %one } yield %z } case 2 { exit @0 %i } "
        "  %t:i32 = iadd %s, %s yield %t } "
        "store_buffer %o, %at, %r align(4) return",
        {0, 0, 0, 0}, {2, 8, 2, 8});
}

TEST(Interpret, BarriersOrderSharedMemory) {
    // Rotation: each writes its own word and reads its neighbour's.
    ExpectWords(
        "store_shared %at, %i align(4) barrier %n:i32 = iadd %at, %four %m:i32 = const 12 "
        "%k:i32 = and %n, %m %v:i32 = load_shared %k align(4) "
        "store_buffer %o, %at, %v align(4) return",
        {0, 0, 0, 0}, {1, 2, 3, 0});
}

TEST(Interpret, AtomicsGiveTheOldValue) {
    ExpectWords(
        "%v:i32 = atomic_shared add, %z, %four store_buffer %o, %at, %v align(4) "
        "barrier %w:i32 = load_shared %z align(4) %k:i32 = const 16 "
        "store_buffer %o, %k, %w align(4) return",
        {0, 0, 0, 0, 0}, {0, 4, 8, 12, 16});
}

TEST(Interpret, ElectChoosesTheFirstThatIsThere) {
    ExpectWords(
        "%c:bool = ult %i, %one if %c { yield } else { %e:bool = subgroup_elect "
        "  if %e { store_buffer %o, %at, %four align(4) yield } yield } return",
        {0, 0, 0, 0}, {0, 4, 0, 0});
}

TEST(Interpret, LocalsArePrivate) {
    ExpectWords(
        "store_local 0, %i, %i %v:i32 = load_local 0, %one %w:i32 = load_local 0, %four "
        "%s:i32 = iadd %v, %w store_buffer %o, %at, %s align(4) return",
        {9, 9, 9, 9}, {0, 1, 0, 0});
}

TEST(Interpret, FaultsAreErrors) {
    auto fault = RunWords("unreachable", {0});
    ASSERT_FALSE(fault.ok());
    EXPECT_THAT(fault.error().message, HasSubstr("reached what must be unreachable"));
    auto endless = RunWords("loop () { continue @0 } continuing () { next } return", {0});
    EXPECT_FALSE(endless.ok());
    endless = RunWords("loop @0 () { continue @0 } continuing () { next } return", {0});
    ASSERT_FALSE(endless.ok());
    EXPECT_EQ(endless.error().code, ErrorCode::kTimeout);
    auto barriers =
        RunWords("%c:bool = ieq %i, %z if %c { barrier yield } else { barrier yield } return", {0});
    ASSERT_FALSE(barriers.ok());
    EXPECT_THAT(barriers.error().message, HasSubstr("different barriers"));
}

// The generator's own promise: verified kernels that end, whose text round trips, and that run to
// the same bytes.
TEST(RandomKernel, IsValidAndEnds) {
    size_t changed = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        RandomKernelOptions options;
        options.portable = seed % 2 == 0;
        options.subgroup_operations = seed % 4 == 0;
        ir::Kernel kernel = RandomKernel(seed, options);
        Status status = ir::Verify(kernel);
        ASSERT_TRUE(status.ok()) << seed << ": " << status.error().message << "\n"
                                 << ir::PrintKernel(kernel);
        auto parsed = ir::ParseKernel(ir::PrintKernel(kernel));
        ASSERT_TRUE(parsed.ok()) << seed << ": " << parsed.error().message;
        ASSERT_EQ(ir::PrintKernel(*parsed), ir::PrintKernel(kernel)) << seed;
        TestDispatch dispatch(kernel, seed, !options.portable);
        TestDispatch again(kernel, seed, !options.portable);
        const std::vector<uint8_t> before(dispatch.memory());
        status = Interpret(kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups, {10'000'000});
        ASSERT_TRUE(status.ok()) << seed << ": " << status.error().message;
        status = Interpret(*parsed, again.frame(), 0, TestDispatch::kWorkgroups, {10'000'000});
        ASSERT_TRUE(status.ok());
        ASSERT_EQ(dispatch.memory(), again.memory()) << seed;
        changed += before != dispatch.memory();
    }
    EXPECT_GT(changed, 150u);
}

}  // namespace
}  // namespace fornax::kernel
