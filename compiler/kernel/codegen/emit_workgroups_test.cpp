// The loops over the workgroups of a call: each workgroup of a grid runs once, and what does not
// depend on it is computed before them.
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/two_buffer_kernel.h"
#include "compiler/kernel/ir/text.h"

namespace fornax::kernel {
namespace {

// Every invocation adds 1 + its workgroup's place to a word of its own.
ir::Kernel Places(const std::string& size) {
    return TwoBufferKernel("workgroup_size(" + size + ", 1, 1) push_constants(4)", R"(
    %x:i32 = builtin workgroup_id_x
    %y:i32 = builtin workgroup_id_y
    %z:i32 = builtin workgroup_id_z
    %nx:i32 = builtin num_workgroups_x
    %ny:i32 = builtin num_workgroups_y
    %li:i32 = builtin local_index
    %size:i32 = const )" + size + R"(
    %zy:i32 = imul %z, %ny
    %row:i32 = iadd %zy, %y
    %before:i32 = imul %row, %nx
    %group:i32 = iadd %before, %x
    %first:i32 = imul %group, %size
    %i:i32 = iadd %first, %li
)",
                           R"(
    %c16:i32 = const 16
    %c256:i32 = const 256
    %one:i32 = const 1
    %py:i32 = imul %y, %c16
    %pz:i32 = imul %z, %c256
    %pxy:i32 = iadd %x, %py
    %place:i32 = iadd %pxy, %pz
    %more:i32 = iadd %place, %one
    %at:i32 = shl %i, %two
    %old:i32 = load_buffer %out, %at align(4)
    %new:i32 = iadd %old, %more
    store_buffer %out, %at, %new align(4)
    return
)");
}

void ExpectEachOnce(uint32_t size, const uint32_t (&groups)[3]) {
    const auto [x, y, z] = groups;
    const std::vector<uint32_t> none(size_t{size} * x * y * z);
    const Launch launch = {.groups = {x, y, z}};
    ForEachWidth(Places(std::to_string(size)), {{0}, none}, launch, [&](const Buffers& buffers) {
        for (uint32_t i = 0; i < none.size(); ++i) {
            const uint32_t group = i / size;
            const uint32_t place = group % x + group / x % y * 16 + group / (x * y) * 256;
            ASSERT_EQ(buffers[1][i], 1 + place) << i << " of " << none.size();
        }
    });
}

TEST(EmitWorkgroups, EachRunsOnce) {
    ExpectEachOnce(128, {5, 3, 2});
    ExpectEachOnce(128, {1, 5, 1});
    ExpectEachOnce(4, {5, 3, 2});  // several fit a vector
}

std::string OptimizedText(const std::string& size, const std::string& body) {
    const std::string attributes = "workgroup_size(" + size + ", 1, 1) push_constants(16)";
    const ir::Kernel kernel = TwoBufferKernel(attributes, R"(
    %wx:i32 = builtin workgroup_id_x
    %wy:i32 = builtin workgroup_id_y
    %li:i32 = builtin local_index
    %four:i32 = const 4
    %eight:i32 = const 8
)",
                                              body);
    auto native = RunnableKernel::Create(kernel, 0, "haswell");
    if (!native.ok()) {
        ADD_FAILURE() << native.error().message;
        return "";
    }
    return native->optimized_llvm_ir();
}

// What is left in the loop over a row of workgroups of `size`, but for one over their vectors.
std::string InRow(const std::string& size, const std::string& body) {
    const std::string text = OptimizedText(size, body);
    const size_t begin = text.find("\nworkgroup:");
    const size_t end = text.find("\nrow_end");
    EXPECT_NE(begin, std::string::npos) << text;
    EXPECT_NE(end, std::string::npos) << text;
    return text.substr(begin, end - begin);
}

// A call that begins with workgroup 0, as all calls of small grids do, has no position to find.
TEST(EmitWorkgroups, CallsThatBeginWithTheFirstDivideNothing) {
    const std::string text = OptimizedText("64", R"(
    %v:i32 = iadd %wx, %wy
    %at:i32 = shl %li, %two
    store_buffer %out, %at, %v align(4)
    return
)");
    const size_t locate = text.find("\nlocate:");
    ASSERT_NE(locate, std::string::npos) << text;
    const std::string entry = text.substr(0, locate);
    EXPECT_EQ(entry.find("udiv"), std::string::npos) << text;
    EXPECT_EQ(entry.find("urem"), std::string::npos) << text;
    EXPECT_NE(entry.find("br i1"), std::string::npos) << text;
    EXPECT_NE(text.find("udiv", locate), std::string::npos) << text;
}

// Push constants under a condition included, which some workgroup might not have read.
TEST(EmitWorkgroups, WhatAllShareIsComputedBefore) {
    const std::string text = InRow("64", R"(
    %n:i32 = load_push %zero align(4)
    %some:bool = ult %wx, %n
    if %some {
      %s:i32 = load_push %four align(4)
      %t:i32 = load_push %eight align(4)
      %d:i32 = iadd %t, %eight
      %u:i32 = xor %s, %d
      %w:i32 = imul %u, %wy
      %v:i32 = iadd %w, %wx
      %at:i32 = shl %li, %two
      store_buffer %out, %at, %v align(4)
      yield
    }
    return
)");
    EXPECT_EQ(text.find("load i32"), std::string::npos) << text;
    EXPECT_EQ(text.find("= mul i32"), std::string::npos) << text;
    EXPECT_EQ(text.find("= xor i32"), std::string::npos) << text;
}

// Where lanes part over the condition, too, in a loop over the workgroup's vectors.
TEST(EmitWorkgroups, PushConstantsOfSomeLanesAreLoadedBefore) {
    const std::string text = InRow("512", R"(
    %n:i32 = load_push %zero align(4)
    %some:bool = ult %li, %n
    if %some {
      %s:i32 = load_push %four align(4)
      %t:i32 = load_push %eight align(4)
      %u:i32 = xor %s, %t
      %w:i32 = imul %u, %li
      %at:i32 = shl %w, %two
      store_buffer %out, %at, %wx align(4)
      yield
    }
    return
)");
    EXPECT_EQ(text.find("load i32"), std::string::npos) << text;
    EXPECT_EQ(text.find("= xor i32"), std::string::npos) << text;
}

}  // namespace
}  // namespace fornax::kernel
