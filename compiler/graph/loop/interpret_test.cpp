// What kernels mean: small ones with results worked out beside them.
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Buffers = std::vector<std::vector<uint8_t>>;

template <typename T>
std::vector<uint8_t> ToBytes(const std::vector<T>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) {
        std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    return bytes;
}

template <typename T>
std::vector<T> FromBytes(const std::vector<uint8_t>& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) {
        std::memcpy(values.data(), bytes.data(), bytes.size());
    }
    return values;
}

Status TryRun(const std::string& text, Buffers& buffers, const Bindings& sizes = {}) {
    FORNAX_ASSIGN_OR_RETURN(const Kernel kernel, ParseKernel(text));
    return Interpret(kernel, sizes, buffers);
}

void RunKernel(const std::string& text, Buffers& buffers, const Bindings& sizes = {}) {
    const Status status = TryRun(text, buffers, sizes);
    ASSERT_TRUE(status.ok()) << status.error().message;
}

TEST(LoopInterpret, ElementwiseWithBroadcast) {
    Buffers buffers = {ToBytes<float>({1, 2, 3, 4, 5, 6}), ToBytes<float>({10, 20, 30}),
                       ToBytes<float>(std::vector<float>(6))};
    RunKernel(
        "kernel add(in x: f32[2,3], in b: f32[1,3], out y: f32[2,3])\n"
        "  parallel $i < 2, $j < 3\n"
        "%0 = load x[$i,$j]\n"
        "%1 = load b[0,$j]\n"
        "%2 = add %0, %1\n"
        "store y[$i,$j] = %2\n",
        buffers);
    EXPECT_THAT(FromBytes<float>(buffers[2]), ElementsAre(11, 22, 33, 14, 25, 36));
}

TEST(LoopInterpret, OutsideOfABuffer) {
    // Loads give 0 or what they say, stores do nothing, whichever dimension is left.
    Buffers buffers = {ToBytes<int32_t>({1, 2, 3}), ToBytes<int32_t>({9, 9, 9, 9, 9}),
                       ToBytes<int32_t>({9, 9, 9, 9, 9}), ToBytes<int32_t>({9, 9, 9, 9})};
    RunKernel(
        "kernel pad(in x: i32[n], out y: i32[n + 2], out z: i32[n + 2], out w: i32[2,2])\n"
        "  sizes n in 0..10\n"
        "  parallel $i < n + 2\n"
        "%0 = constant i32 -7\n"
        "%1 = load x[$i - 1] otherwise %0\n"
        "%2 = load x[$i - 1]\n"
        "store y[$i] = %1\n"
        "store z[$i - 2] = %2\n"
        "store w[0,$i - 1] = %1\n",
        buffers, {{Symbol("n"), 3}});
    EXPECT_THAT(FromBytes<int32_t>(buffers[1]), ElementsAre(-7, 1, 2, 3, -7));
    EXPECT_THAT(FromBytes<int32_t>(buffers[2]), ElementsAre(2, 3, 0, 9, 9));
    EXPECT_THAT(FromBytes<int32_t>(buffers[3]), ElementsAre(1, 2, 9, 9));
}

constexpr char kLayerNorm[] =
    "kernel norm(in x: f32[m,n], out y: f32[m,n])\n"
    "  sizes m in 0..9, n in 0..9\n"
    "  parallel $i < m, $j < n\n"
    "  rows 1\n"
    "%0 = load x[$i,$r]\n"
    "%1 = reduce sum $r < n of %0\n"
    "%2 = index n\n"
    "%3 = cast f32 %2\n"
    "%4 = div %1, %3\n"
    "%5 = sub %0, %4\n"
    "%6 = mul %5, %5\n"
    "%7 = reduce sum $r < n of %6\n"
    "%8 = div %7, %3\n"
    "%9 = rsqrt %8\n"
    "%10 = load x[$i,$j]\n"
    "%11 = sub %10, %4\n"
    "%12 = mul %11, %9\n"
    "store y[$i,$j] = %12\n";

TEST(LoopInterpret, ReductionsThatUseReductions) {
    Buffers buffers = {ToBytes<float>({1, 3, 1, 3, -4, 4, 4, -4}),
                       ToBytes<float>(std::vector<float>(8))};
    RunKernel(kLayerNorm, buffers, {{Symbol("m"), 2}, {Symbol("n"), 4}});
    EXPECT_THAT(FromBytes<float>(buffers[1]), ElementsAre(-1, 1, -1, 1, -1, 1, 1, -1));
}

TEST(LoopInterpret, DimensionsOfZero) {
    Buffers buffers = {{}, {}};
    RunKernel(kLayerNorm, buffers, {{Symbol("m"), 0}, {Symbol("n"), 4}});
    RunKernel(kLayerNorm, buffers, {{Symbol("m"), 3}, {Symbol("n"), 0}});
    // Reductions of nothing give what changes nothing; the position of nothing is 0.
    buffers = {{}, ToBytes<float>({9, 9, 9}), ToBytes<int64_t>({9})};
    RunKernel(
        "kernel empty(in x: f32[0], out y: f32[3], out p: i64[1])\n"
        "%0 = load x[$r]\n"
        "%1 = reduce sum $r < 0 of %0\n"
        "%2 = reduce product $r < 0 of %0\n"
        "%3 = reduce max $r < 0 of %0\n"
        "%4 = position max $r < 0 of %0\n"
        "store y[0] = %1\n"
        "store y[1] = %2\n"
        "store y[2] = %3\n"
        "store p[0] = %4\n",
        buffers);
    EXPECT_THAT(FromBytes<float>(buffers[1]), ElementsAre(0, 1, -INFINITY));
    EXPECT_THAT(FromBytes<int64_t>(buffers[2]), ElementsAre(0));
}

TEST(LoopInterpret, NestedReductionsWithAnExtentOfTheOuterOne) {
    // The sum over q of the greatest element before q.
    Buffers buffers = {ToBytes<int32_t>({3, 1, 4, 1, 5}), ToBytes<int32_t>({0})};
    RunKernel(
        "kernel k(in x: i32[5], out y: i32[])\n"
        "%0 = load x[$r]\n"
        "%1 = reduce max $r < $q + 1 of %0\n"
        "%2 = reduce sum $q < 5 of %1\n"
        "store y[] = %2\n",
        buffers);
    EXPECT_THAT(FromBytes<int32_t>(buffers[1]), ElementsAre(3 + 3 + 4 + 4 + 5));
}

TEST(LoopInterpret, AReductionOverSeveralLoops) {
    Buffers buffers = {ToBytes<uint8_t>({1, 2, 3, 4, 5, 6}), ToBytes<uint8_t>({0, 0})};
    RunKernel(
        "kernel k(in x: u8[2,3], out y: u8[2])\n"
        "%0 = load x[$q,$r]\n"
        "%1 = reduce product $q < 2, $r < 3 of %0\n"
        "%2 = reduce xor $q < 2, $r < 3 of %0\n"
        "store y[0] = %1\n"
        "store y[1] = %2\n",
        buffers);
    EXPECT_THAT(buffers[1], ElementsAre(720 % 256, 1 ^ 2 ^ 3 ^ 4 ^ 5 ^ 6));
}

TEST(LoopInterpret, PositionsOfTheGreatestAndLeast) {
    const float nan = NAN;
    Buffers buffers = {ToBytes<float>({1, 5, 5, 1, 2, nan, 7, nan}), ToBytes<int64_t>({9, 9}),
                       ToBytes<int64_t>({9, 9}), ToBytes<int64_t>({9, 9})};
    RunKernel(
        "kernel k(in x: f32[2,4], out a: i64[2], out b: i64[2], out c: i64[2])\n"
        "  parallel $i < 2\n"
        "%0 = load x[$i,$r]\n"
        "%1 = position max $r < 4 of %0\n"
        "%2 = position max last $r < 4 of %0\n"
        "%3 = position min last $r < 4 of %0\n"
        "store a[$i] = %1\n"
        "store b[$i] = %2\n"
        "store c[$i] = %3\n",
        buffers);
    EXPECT_THAT(FromBytes<int64_t>(buffers[1]), ElementsAre(1, 1));
    EXPECT_THAT(FromBytes<int64_t>(buffers[2]), ElementsAre(2, 3));
    EXPECT_THAT(FromBytes<int64_t>(buffers[3]), ElementsAre(3, 3));
}

TEST(LoopInterpret, ScatterOneAfterTheOther) {
    // Indices meet, and some are outside.
    Buffers buffers = {ToBytes<int32_t>({1, 2, 1, -1, 5, 1}),
                       ToBytes<int32_t>({10, 20, 30, 40, 50, 60}), ToBytes<int32_t>({1, 1, 1, 1})};
    RunKernel(
        "kernel scatter(in at: i32[6], in u: i32[6], out y: i32[4])\n"
        "  sequential $s < 6\n"
        "%0 = load at[$s]\n"
        "%1 = load u[$s]\n"
        "%2 = load y[$v0]\n"
        "%3 = add %2, %1\n"
        "store y[$v0] = %3\n",
        buffers);
    EXPECT_THAT(FromBytes<int32_t>(buffers[2]), ElementsAre(1, 101, 21, 1));
}

TEST(LoopInterpret, ScanReadsBackWhatItStored) {
    Buffers buffers = {ToBytes<float>({1, 2, 3, 4, 5, 6}),
                       ToBytes<float>(std::vector<float>(6, 99))};
    RunKernel(
        "kernel scan(in x: f32[2,3], out y: f32[2,3])\n"
        "  parallel $i < 2\n"
        "  sequential $s < 3\n"
        "%0 = load x[$i,$s]\n"
        "%1 = load y[$i,$s - 1]\n"
        "%2 = add %0, %1\n"
        "store y[$i,$s] = %2\n",
        buffers);
    EXPECT_THAT(FromBytes<float>(buffers[1]), ElementsAre(1, 3, 6, 4, 9, 15));
}

TEST(LoopInterpret, ScalarsComeBeforeTheStoresOfTheirIteration) {
    Buffers buffers = {ToBytes<int32_t>({1, 2, 3})};
    RunKernel(
        "kernel swap(out y: i32[3])\n"
        "%0 = load y[0]\n"
        "%1 = load y[2]\n"
        "store y[0] = %1\n"
        "store y[2] = %0\n"
        "store y[1] = %0\n"
        "store y[1] = %1\n",
        buffers);
    EXPECT_THAT(FromBytes<int32_t>(buffers[0]), ElementsAre(3, 3, 1));
}

TEST(LoopInterpret, GatherByScalars) {
    Buffers buffers = {ToBytes<float>({0, 1, 10, 11, 20, 21}),
                       ToBytes<uint64_t>({2, 0, 7, UINT64_MAX}), ToBytes<float>({9, 9, 9, 9})};
    RunKernel(
        "kernel gather(in x: f32[3,2], in at: u64[4], out y: f32[4])\n"
        "  parallel $i < 4\n"
        "%0 = load at[$i]\n"
        "%1 = load x[$v0,1]\n"
        "store y[$i] = %1\n",
        buffers);
    EXPECT_THAT(FromBytes<float>(buffers[2]), ElementsAre(21, 1, 0, 0));
}

TEST(LoopInterpret, ConditionsAndRanges) {
    Buffers buffers = {ToBytes<int64_t>({9, 9, 9, 9})};
    RunKernel(
        "kernel k(out y: i64[4])\n"
        "  parallel $i < 4\n"
        "%0 = inrange $i - 1 < 2\n"
        "%1 = index 10*$i\n"
        "store y[$i] = %1 if %0\n",
        buffers);
    EXPECT_THAT(FromBytes<int64_t>(buffers[0]), ElementsAre(9, 10, 20, 9));
}

TEST(LoopInterpret, NarrowFloatsAreComputedInF32) {
    // 2048 + 1 + 1 is 2050 in f32, but 2048 where each sum is rounded to f16.
    const uint16_t one = 0x3c00, two_to_11 = 0x6800, two_to_11_and_2 = 0x6801;
    Buffers buffers = {ToBytes<uint16_t>({two_to_11, one, one}), ToBytes<uint16_t>({0, 0, 0}),
                       ToBytes<uint16_t>({0})};
    RunKernel(
        "kernel k(in x: f16[3], out y: f16[3], out z: u16[1])\n"
        "%0 = load x[0]\n"
        "%1 = load x[1]\n"
        "%2 = add %0, %1\n"
        "%3 = add %2, %1\n"
        "%4 = cast f16 %2\n"
        "%5 = add %4, %1\n"
        "%6 = load x[$r]\n"
        "%7 = reduce sum $r < 3 of %6\n"
        "%8 = bitcast u16 %3\n"
        "store y[0] = %3\n"
        "store y[1] = %5\n"
        "store y[2] = %7\n"
        "store z[0] = %8\n",
        buffers);
    EXPECT_THAT(FromBytes<uint16_t>(buffers[1]),
                ElementsAre(two_to_11_and_2, two_to_11, two_to_11_and_2));
    EXPECT_THAT(FromBytes<uint16_t>(buffers[2]), ElementsAre(two_to_11_and_2));
}

TEST(LoopInterpret, SumsOfF32LoseNothingOnTheWay) {
    Buffers buffers = {ToBytes<float>({1e8f, 1, -1e8f, 1}), ToBytes<float>({0})};
    RunKernel(
        "kernel k(in x: f32[4], out y: f32[])\n"
        "%0 = load x[$r]\n"
        "%1 = reduce sum $r < 4 of %0\n"
        "store y[] = %1\n",
        buffers);
    EXPECT_THAT(FromBytes<float>(buffers[1]), ElementsAre(2));
}

TEST(LoopInterpret, ExpressionsWithoutAValue) {
    Buffers buffers = {ToBytes<int64_t>({INT64_MAX, 0}), ToBytes<int64_t>({9, 9, 9, 9})};
    RunKernel(
        "kernel k(in x: i64[2], out y: i64[4])\n"
        "%0 = load x[0]\n"
        "%1 = load x[1]\n"
        "%2 = load x[2*$v0]\n"
        "%3 = index floor(7, $v1)\n"
        "%4 = inrange $v0 + 1 < 5\n"
        "%5 = cast i64 %4\n"
        "%6 = constant i64 1\n"
        "%7 = reduce sum $r < 3*$v0 of %6\n"
        "store y[0] = %2\n"
        "store y[1] = %3\n"
        "store y[2] = %5\n"
        "store y[3] = %7\n"
        "store y[mod(1, $v1)] = %6\n",
        buffers);
    EXPECT_THAT(FromBytes<int64_t>(buffers[1]), ElementsAre(0, 0, 0, 0));
}

TEST(LoopInterpret, RefusesWhatIsNotBound) {
    const std::string text = "kernel k(in x: f32[n], out y: f32[n - 1])\n  sizes n in 0..5\n";
    Buffers buffers = {ToBytes<float>({1, 2, 3}), ToBytes<float>({1, 2})};
    const Symbol n("n");
    EXPECT_TRUE(TryRun(text, buffers, {{n, 3}}).ok());
    EXPECT_THAT(TryRun(text, buffers).error().message, HasSubstr("the size n is not bound"));
    EXPECT_THAT(TryRun(text, buffers, {{n, 6}}).error().message,
                HasSubstr("the size n is 6, not 0 to 5"));
    EXPECT_THAT(TryRun(text, buffers, {{n, 4}}).error().message,
                HasSubstr("the buffer x has 12 bytes, not 16"));
    buffers[0].clear();
    EXPECT_THAT(TryRun(text, buffers, {{n, 0}}).error().message,
                HasSubstr("the buffer y has no size"));
    buffers.pop_back();
    EXPECT_THAT(TryRun(text, buffers, {{n, 0}}).error().message,
                HasSubstr("1 buffers are bound, not 2"));
}

}  // namespace
}  // namespace fornax::graph::loop
