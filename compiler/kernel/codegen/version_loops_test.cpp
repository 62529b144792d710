// Loops of loads that a test lets be vectors, where the tests are made before the loop: all
// iterations pass them, none does, or those up to a wrapping index, the end of a buffer or a lane's
// leaving.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "compiler/kernel/codegen/kernel_harness.h"
#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %wx:i32 = builtin workgroup_id_x
    %li:i32 = builtin local_index
    %one:i32 = const 1
    %three:i32 = const 3
    %four:i32 = const 4
    %five:i32 = const 5
    %eight:i32 = const 8
    %twelve:i32 = const 12
    %seven:i32 = const 7
    %bytes:i32 = const 18
    %step:i32 = const 64
    %start:i32 = load_push %zero align(4)
    %iterations:i32 = load_push %four align(4)
    %more:i32 = load_push %eight align(4)
    %far:i32 = load_push %twelve align(4)
    %half:i32 = lshr %li, %five
    %later:i32 = imul %half, %more
    %count:i32 = iadd %iterations, %later
)";

// Reads blocks of eight halves behind another one each, from `start` on, and those `far`
// behind them.
constexpr char kBody[] = R"(
    %sum:i32 = loop @0 (%i:i32 = %zero, %col:i32 = %start, %total:i32 = %zero) {
      %goes:bool = ult %i, %count
      if %goes {
        yield
      } else {
        exit @0 %total
      }
      %place:i32 = and %li, %seven
      %near0:i32 = shl %place, %one
      %a:i32 = iadd %col, %li
      %block:i32 = lshr %a, %three
      %from0:i32 = imul %block, %bytes
      %from1:i32 = iadd %from0, %near0
      %from:i32 = iadd %from1, %two
      %v:i16 = load_buffer %in, %from align(2)
      %v32:i32 = zext %v
      %b0:i32 = iadd %col, %far
      %b:i32 = iadd %b0, %li
      %block2:i32 = lshr %b, %three
      %from2:i32 = imul %block2, %bytes
      %from3:i32 = iadd %from2, %near0
      %w:i16 = load_buffer %in, %from3 align(2)
      %w32:i32 = zext %w
      %t0:i32 = imul %total, %three
      %t1:i32 = iadd %t0, %v32
      %t2:i32 = imul %t1, %five
      %t:i32 = iadd %t2, %w32
      %next:i32 = iadd %i, %one
      %col2:i32 = iadd %col, %step
      continue @0 %next, %col2, %t
    } continuing (%i2:i32, %c2:i32, %t3:i32) {
      next %i2, %c2, %t3
    }
    %o:i32 = shl %li, %two
    store_buffer %out, %o, %sum align(4)
    return
)";

struct Case {
    const char* what;
    uint32_t start;
    uint32_t iterations;
    uint32_t more;  // of the upper half of the lanes
    uint32_t far;
};

constexpr Case kCases[] = {
    {"all iterations", 0, 4, 0, 64},
    {"one iteration", 0, 1, 0, 8},
    {"no iteration", 0, 0, 0, 8},
    {"places that are not those of blocks", 3, 4, 0, 64},
    {"only the second load is not", 0, 4, 0, 61},
    {"lanes that leave", 0, 3, 2, 64},
    {"the end of the buffer", 0, 12, 0, 64},
    {"the end of the buffer and lanes that leave", 64, 9, 2, 8},
    {"far ends first", 0, 6, 0, 320},
    {"an index that wraps", 0xffffff80, 6, 0, 64},
    {"one load's index wraps", 0, 6, 0, 0xffffff80},
    {"nothing inside", 0x7fffff00, 6, 0, 64},
    {"offsets that wrap", 0x71c71c40, 6, 0, 64},
};

std::vector<uint32_t> Expected(const Case& at, const std::vector<uint32_t>& in) {
    const auto half = [&](uint32_t from) {
        return from <= in.size() * 4 - 2 ? in[from / 4] >> from % 4 * 8 & 0xffff : 0;
    };
    std::vector<uint32_t> results;
    for (uint32_t lane = 0; lane < 64; ++lane) {
        uint32_t total = 0;
        uint32_t col = at.start;
        for (uint32_t i = 0; i < at.iterations + (lane >> 5) * at.more; ++i, col += 64) {
            const uint32_t place = lane % 8 * 2;
            total = total * 3 + half((col + lane) / 8 * 18 + place + 2);
            total = total * 5 + half((col + at.far + lane) / 8 * 18 + place);
        }
        results.push_back(total);
    }
    return results;
}

constexpr char kAttributes[] = "workgroup_size(64, 1, 1) push_constants(16)";

// Without robust access nothing may be outside.
bool ReadsOutside(const Case& at, size_t bytes) {
    const uint64_t columns = uint64_t{64} * (at.iterations + at.more) + at.start + at.far;
    return columns / 8 * 18 + 18 > bytes;
}

TEST(VersionLoops, IterationsThatPassTheTestsAndOthers) {
    const std::vector<uint32_t> in = Counting(200, 0x01020304);
    for (const char* robust : {"", " robust"}) {
        const ir::Kernel kernel =
            TwoBufferKernel(std::string(kAttributes) + robust, kPrologue, kBody);
        for (const Case& at : kCases) {
            if (!*robust && ReadsOutside(at, in.size() * 4)) {
                continue;
            }
            SCOPED_TRACE(testing::Message() << at.what << robust);
            const std::vector<uint32_t> wanted = Expected(at, in);
            ForEachWidth(kernel, {in, std::vector<uint32_t>(64, 7)},
                         {.push_constants = {at.start, at.iterations, at.more, at.far}},
                         [&](const Buffers& results) { ASSERT_EQ(results[1], wanted); });
        }
    }
}

// Else the test above says nothing. Lanes that have left cost the loop no tests of the buffer's
// end, which memory without robust access has none of.
TEST(VersionLoops, ALoopOfSpeculatedLoadsHasTwoVersions) {
    for (const char* robust : {"", " robust"}) {
        const ir::Kernel kernel =
            TwoBufferKernel(std::string(kAttributes) + robust, kPrologue, kBody);
        for (const uint32_t lanes : {32u, 64u}) {
            const Result<RunnableKernel> native = RunnableKernel::Create(kernel, lanes);
            ASSERT_TRUE(native.ok());
            EXPECT_NE(native->optimized_llvm_ir().find("iteration.versioned"), std::string::npos)
                << lanes << robust;
            // A loop that all lanes leave at once passes the tests by.
            EXPECT_NE(native->optimized_llvm_ir().find(", label %loop.tests"), std::string::npos)
                << lanes << robust << native->optimized_llvm_ir();
        }
    }
}

// The copy runs iterations in which all lanes are there: none leaves with what it has so far.
TEST(VersionLoops, NoLaneLeavesTheCopy) {
    const ir::Kernel kernel = TwoBufferKernel(kAttributes, kPrologue, kBody);
    for (const uint32_t lanes : {32u, 64u}) {
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, lanes);
        ASSERT_TRUE(native.ok());
        std::istringstream lines(native->optimized_llvm_ir());
        bool in_copy = false;
        uint32_t lines_of_copy = 0;
        for (std::string line; std::getline(lines, line);) {
            if (!line.empty() && line[0] != ' ') {
                in_copy = line.find(".versioned:") != std::string::npos;
            }
            lines_of_copy += in_copy ? 1 : 0;
            EXPECT_FALSE(in_copy && line.find("= select") != std::string::npos) << line;
        }
        EXPECT_GT(lines_of_copy, 20u);
    }
}

}  // namespace
}  // namespace fornax::kernel
