// What follows from the counter of a loop and takes long: computed for all iterations before it,
// with the values that each iteration would have.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kColumns = 32;  // two workgroups of 16 x 16
constexpr uint32_t kRows = 48;

constexpr char kPlace[] = R"(
    %one:i32 = const 1
    %four:i32 = const 4
    %side:i32 = const 16
    %columns:i32 = const 32
    %last:i32 = const 47
    %half:f32 = const 0.5
    %wx:i32 = builtin workgroup_id_x
    %wy:i32 = builtin workgroup_id_y
    %lx:i32 = builtin local_id_x
    %ly:i32 = builtin local_id_y
    %x0:i32 = imul %wx, %side
    %x:i32 = iadd %x0, %lx
    %y0:i32 = imul %wy, %side
    %y:i32 = iadd %y0, %ly
    %height:f32 = load_push %zero align(4)
    %scale:f32 = load_push %four align(4)
    %line:i32 = imul %y, %columns
    %index:i32 = iadd %line, %x
    %o:i32 = shl %index, %two
)";

// The row of another image, as a sample finds it: `%number` counts from 0.
constexpr char kRow[] = R"(
    %float:f32 = stof %number
    %middle:f32 = fadd %float, %half no_contraction
    %part:f32 = fdiv %middle, %height
    %scaled:f32 = fmul %part, %scale no_contraction
    %below:f32 = floor %scaled
    %whole:i32 = ftos %below
    %least:i32 = smax %whole, %zero
    %row:i32 = smin %least, %last
)";

uint32_t RowOf(uint32_t number, float height, float scale) {
    const float part = (static_cast<float>(number) + 0.5f) / height;
    const auto whole = static_cast<int32_t>(std::floor(part * scale));
    return static_cast<uint32_t>(std::clamp(whole, 0, static_cast<int32_t>(kRows) - 1));
}

size_t CountOf(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++count;
    }
    return count;
}

std::string Optimized(const ir::Kernel& kernel) {
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v4");
    EXPECT_TRUE(native.ok()) << native.error().message;
    return native.ok() ? native->optimized_llvm_ir() : std::string();
}

Launch Groups(float height, float scale) {
    return {.groups = {2, 3, 1},
            .push_constants = {std::bit_cast<uint32_t>(height), std::bit_cast<uint32_t>(scale)}};
}

const Buffers& Data() {
    static const Buffers data = {Counting(kColumns * kRows),
                                 std::vector<uint32_t>(size_t{kColumns} * kRows)};
    return data;
}

TEST(IterationTables, PositionsOfTheRowsOfAWorkgroup) {
    const ir::Kernel kernel = TwoBufferKernel("workgroup_size(16, 16, 1) push_constants(8)", kPlace,
                                              std::string("%number:i32 = iadd %y, %zero\n") + kRow +
                                                  R"(
    %start:i32 = imul %row, %columns
    %from0:i32 = iadd %start, %x
    %from:i32 = shl %from0, %two
    %v:i32 = load_buffer %in, %from align(4)
    store_buffer %out, %o, %v align(4)
    return
)");
    const std::string code = Optimized(kernel);
    EXPECT_GE(CountOf(code, "%iterations = alloca"), 1u) << code;
    EXPECT_EQ(CountOf(code, "fdiv"), 1u) << code;
    EXPECT_EQ(CountOf(code, "fdiv contract <16 x float>"), 1u) << code;
    for (const auto& [height, scale] : {std::pair(48.0f, 48.0f), {48.0f, 29.0f}, {-7.0f, 3e9f}}) {
        ForEachWidth(kernel, Data(), Groups(height, scale), [&](const Buffers& b) {
            for (uint32_t i = 0; i < kColumns * kRows; ++i) {
                const uint32_t row = RowOf(i / kColumns, height, scale);
                ASSERT_EQ(b[1][i], b[0][row * kColumns + i % kColumns]) << i;
            }
        });
        if (HasFatalFailure()) {
            return;
        }
    }
}

// The first position depends on the workgroup along x, before whose loop it cannot be computed.
TEST(IterationTables, PositionsThatDifferBetweenWorkgroups) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(16, 16, 1) push_constants(8)", kPlace,
                        std::string("%number:i32 = iadd %y, %wx\n") + kRow + R"(
    store_buffer %out, %o, %row align(4)
    return
)");
    const std::string code = Optimized(kernel);
    EXPECT_EQ(CountOf(code, "fdiv"), 1u) << code;
    EXPECT_EQ(CountOf(code, "fdiv contract <16 x float>"), 1u) << code;
    ForEachWidth(kernel, Data(), Groups(48, 40), [](const Buffers& b) {
        for (uint32_t i = 0; i < kColumns * kRows; ++i) {
            ASSERT_EQ(b[1][i], RowOf(i / kColumns + i % kColumns / 16, 48, 40)) << i;
        }
    });
}

// A loop that is left before its last iteration, and one with too many iterations.
TEST(IterationTables, LoopsOfTheShader) {
    for (const uint32_t count : {3u, 12u, 64u, 65u, 1000u}) {
        SCOPED_TRACE(count);
        const ir::Kernel kernel =
            TwoBufferKernel("workgroup_size(16, 16, 1) push_constants(8)", kPlace,
                            "%count:i32 = const " + std::to_string(count) + R"(
    %sum:i32 = loop @0 (%number:i32 = %zero, %total:i32 = %zero) {
)" + kRow + R"(
      %next_total:i32 = iadd %total, %row
      %ends:bool = ule %last, %next_total
      if %ends {
        exit @0 %next_total
      } else {
        yield
      }
      %next:i32 = iadd %number, %one
      %more:bool = ult %next, %count
      if %more {
        yield
      } else {
        exit @0 %next_total
      }
      continue @0 %next, %next_total
    } continuing (%a:i32, %b:i32) {
      next %a, %b
    }
    store_buffer %out, %o, %sum align(4)
    return
)");
        ForEachWidth(kernel, Data(), Groups(60, 20), [&](const Buffers& b) {
            uint32_t sum = 0;
            for (uint32_t i = 0; i < count && sum < 47; ++i) {
                sum += RowOf(i, 60, 20);
            }
            for (uint32_t i = 0; i < kColumns * kRows; ++i) {
                ASSERT_EQ(b[1][i], sum) << i;
            }
        });
        if (HasFatalFailure()) {
            return;
        }
    }
}

std::string Replaced(std::string text, const std::string& part, const std::string& by) {
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size()) {
        text.replace(at, part.size(), by);
    }
    return text;
}

// Tables lie on the stack of the function, so all of its loops share what they may take. Here every
// part between two barriers is a loop over 64 rows, which would have a table of 256 bytes.
TEST(IterationTables, ManyLoopsTakeLittleOfTheStack) {
    constexpr uint32_t kParts = 100;
    std::string body;
    for (uint32_t i = 0; i < kParts; ++i) {
        body += Replaced(R"(
    %far_#:i32 = const @
    %number_#:i32 = iadd %y, %far_#
    %float_#:f32 = stof %number_#
    %part_#:f32 = fdiv %float_#, %height
    %scaled_#:f32 = fmul %part_#, %scale no_contraction
    %below_#:f32 = floor %scaled_#
    %row_#:i32 = ftos %below_#
    store_buffer %out, %o, %row_# align(4)
    barrier
)",
                         "#", std::to_string(i));
        body = Replaced(body, "@", std::to_string(i * 100));
    }
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(16, 64, 1) push_constants(8)", kPlace, body + "return\n");
    const size_t tables = CountOf(Optimized(kernel), "= alloca <64 x i32>");
    EXPECT_GE(tables, 1u);
    EXPECT_LE(tables, 64u);
}

}  // namespace
}  // namespace fornax::kernel
