// Runs of a lane that follow each other or overlap, and branches of which a part is the same for
// all lanes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %one:i32 = const 1
    %four:i32 = const 4
    %lx:i32 = builtin local_id_x
    %ly:i32 = builtin local_id_y
    %li:i32 = builtin local_index
    %pitch:i32 = load_push %zero align(4)
    %limit:i32 = load_push %four align(4)
)";

std::string Results(const std::string& name, uint32_t count, const std::string& type) {
    std::string text;
    for (uint32_t i = 0; i < count; ++i) {
        text += (i == 0 ? "%" : ", %") + name + std::to_string(i) + type;
    }
    return text;
}

// Each of 16 lanes in a row, or in four rows of a run-time pitch, loads `count` words, `apart`
// words from where the lane before it does, and stores them.
std::string Copies(uint32_t count, uint32_t apart, bool rows) {
    return "%apart:i32 = const " + std::to_string(4 * apart) + "\n%bytes:i32 = const " +
           std::to_string(4 * count) + "\n" +
           (rows ? "%x:i32 = imul %lx, %apart %y:i32 = imul %ly, %pitch %from:i32 = iadd %x, %y\n"
                 : "%from:i32 = imul %li, %apart\n") +
           Results("v", count, ":i32") + " = load_buffer %in, %from align(4)\n" +
           "%to:i32 = imul %li, %bytes store_buffer %out, %to, " + Results("v", count, "") +
           " align(4) return\n";
}

TEST(EmitColumns, WordsOfALane) {
    struct Case {
        uint32_t count;
        uint32_t apart;  // words from one lane to the next
        bool rows;
        bool robust;
    };
    for (const Case one : {Case{8, 8, true, true}, Case{12, 4, true, true},
                           Case{4, 4, false, false}, Case{16, 8, false, false}}) {
        const auto [count, apart, rows, robust] = one;
        SCOPED_TRACE(testing::Message() << count << " words, " << apart << " apart");
        const uint32_t pitch = rows ? 4 * apart + 5 : 4 * apart;
        // The last lane of a robust buffer finds too little.
        const uint32_t words = 3 * pitch + 3 * apart + count - (robust ? 7 : 0);
        const ir::Kernel kernel = TwoBufferKernel(
            std::string("workgroup_size(4, 4, 1) push_constants(8)") + (robust ? " robust" : ""),
            kPrologue, Copies(count, apart, rows));
        const std::vector<uint32_t> in = Counting(words);
        std::vector<uint32_t> out;
        for (uint32_t i = 0; i < 16 * count; ++i) {
            const uint32_t lane = i / count;
            const uint32_t at = lane / 4 * pitch + lane % 4 * apart + i % count;
            out.push_back(at < words ? in[at] : 0);
        }
        ForEachWidth(kernel, {in, std::vector<uint32_t>(16 * count, 7)},
                     {.push_constants = {4 * pitch, 0}},
                     [&](const Buffers& b) { ASSERT_EQ(b[1], out); });
    }
}

// A part of the condition is the same for all lanes: where it does not hold no lane loads, and in
// a loop the masks are those of the rest.
// Each step of the condition uses the one before twice, so that it has 2^64 parts if values are
// looked at more than once.
TEST(EmitColumns, ConditionsOfManyParts) {
    std::string body =
        "%c0:bool = ult %lx, %pitch\n%p:bool = ult %ly, %pitch\n"
        "%q:bool = ult %li, %limit\n%at:i32 = shl %li, %two\n";
    for (int i = 1; i <= 64; ++i) {
        body += fmt::format(
            "%a{0}:bool = and %c{1}, %p\n%b{0}:bool = and %c{1}, %q\n%c{0}:bool = and %a{0}, "
            "%b{0}\n",
            i, i - 1);
    }
    body += R"(
    if %c64 {
      store_buffer %out, %at, %one align(4)
      yield
    } else {
      yield
    }
    return
)";
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(4, 4, 1) push_constants(8)", kPrologue, body);
    ForEachWidth(kernel, {Counting(16), std::vector<uint32_t>(16, 7)}, {.push_constants = {3, 10}},
                 [](const Buffers& b) {
                     for (uint32_t i = 0; i < 16; ++i) {
                         ASSERT_EQ(b[1][i], i % 4 < 3 && i / 4 < 3 && i < 10 ? 1 : 7) << i;
                     }
                 });
}

TEST(EmitColumns, ConditionsThatLanesShareInPart) {
    constexpr char kBody[] = R"(
    %end:i32 = const 8
    %near:bool = ult %lx, %pitch
    %low:bool = ult %ly, %pitch
    %at:i32 = shl %li, %two
    %last:i32 = loop @0 (%k:i32 = %zero, %sum:i32 = %zero) {
      %more:bool = ult %k, %end
      if %more {
        yield
      } else {
        exit @0 %sum
      }
      %inside:bool = ult %k, %limit
      %some:bool = and %near, %inside
      %all:bool = and %low, %some
      %value:i32 = if %all {
        %v:i32 = load_buffer %in, %at align(4)
        yield %v
      } else {
        yield %one
      }
      %next:i32 = iadd %sum, %value
      continue @0 %next
    } continuing (%s:i32) {
      %k1:i32 = iadd %k, %one
      next %k1, %s
    }
    store_buffer %out, %at, %last align(4)
    return
)";
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(4, 4, 1) push_constants(8)", kPrologue, kBody);
    const std::vector<uint32_t> in = Counting(16);
    for (const uint32_t wide : {3u, 4u}) {
        for (const uint32_t limit : {0u, 5u}) {
            ForEachWidth(kernel, {in, std::vector<uint32_t>(16, 7)},
                         {.push_constants = {wide, limit}}, [&](const Buffers& b) {
                             for (uint32_t i = 0; i < 16; ++i) {
                                 const uint32_t loads = std::min(limit, 8u);
                                 const bool here = i % 4 < wide && i / 4 < wide;
                                 ASSERT_EQ(b[1][i], here ? loads * in[i] + 8 - loads : 8)
                                     << i << ", " << wide << ", " << limit;
                             }
                         });
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
