// Accesses that rest on assumptions about the lanes, where some of these are not active: behind the
// end of a row, for instance, which a vector of lanes reaches over.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr char kLoadFromBlocks[] = R"(
    %three:i32 = const 3
    %seven:i32 = const 7
    %bytes:i32 = const 18
    %four:i32 = const 4
    %limit:i32 = load_push %four align(4)
    %sum:i32 = iadd %i, %s
    %block:i32 = lshr %sum, %three
    %place:i32 = and %i, %seven
    %from0:i32 = imul %block, %bytes
    %from1:i32 = shl %place, %one
    %from2:i32 = iadd %from0, %from1
    %from:i32 = iadd %from2, %two
)";

// Elements of blocks of 18 bytes, for the lanes that a condition chooses. Without robust access the
// buffer ends where the last of these reads.
TEST(EmitPartlyActive, BlocksForSomeLanes) {
    struct Case {
        const char* condition;  // computes %c:bool of %li and %limit
        bool (*chosen)(uint32_t lane, uint32_t limit);
    };
    constexpr Case kCases[] = {
        {"%c:bool = ult %li, %limit", [](uint32_t lane, uint32_t limit) { return lane < limit; }},
        {"%c:bool = ule %limit, %li", [](uint32_t lane, uint32_t limit) { return lane >= limit; }},
        {"%m:i32 = and %li, %limit %c:bool = ine %m, %zero",
         [](uint32_t lane, uint32_t limit) { return (lane & limit) != 0; }},
    };
    for (const Case& at : kCases) {
        for (const char* robust : {"", " robust"}) {
            const ir::Kernel kernel =
                TwoBufferKernel(std::string("workgroup_size(64, 1, 1) push_constants(8)") + robust,
                                std::string(kInvocationsOf64) + "    %one:i32 = const 1\n",
                                std::string(kLoadFromBlocks) + at.condition + R"(
    %w:i32 = if %c {
      %v:i16 = load_buffer %in, %from align(2)
      %x:i32 = zext %v
      yield %x
    } else {
      yield %two
    }
    %at:i32 = shl %i, %two
    store_buffer %out, %at, %w align(4)
    return
)");
            for (const uint32_t sum : {0u, 72u, 3u}) {
                for (const uint32_t limit : {5u, 40u}) {
                    uint32_t end = 0;
                    for (uint32_t i = 0; i < 128; ++i) {
                        if (at.chosen(i % 64, limit)) {
                            end = (i + sum) / 8 * 18 + i % 8 * 2 + 4;
                        }
                    }
                    const std::vector<uint32_t> in =
                        Counting(*robust ? 60 : (end + 3) / 4, 0x01020304);
                    ForEachWidth(
                        kernel, {in, std::vector<uint32_t>(128, 7)},
                        {.groups = {2, 1, 1}, .push_constants = {sum, limit}},
                        [&](const Buffers& results) {
                            for (uint32_t i = 0; i < 128; ++i) {
                                const uint32_t from = (i + sum) / 8 * 18 + i % 8 * 2 + 2;
                                const uint32_t word = from / 4 < in.size() ? in[from / 4] : 0;
                                const uint32_t wanted = word >> from % 4 * 8 & 0xffff;
                                ASSERT_EQ(results[1][i], at.chosen(i % 64, limit) ? wanted : 2)
                                    << at.condition << robust << ": " << i << " + " << sum
                                    << ", limit " << limit;
                            }
                        });
                }
            }
        }
    }
}

// A loop that lanes leave at different times. Where one is depends on the way that it came, so
// what lanes share is seen in their own values only, of which those that have left count no more.
TEST(EmitPartlyActive, LoopThatLanesLeave) {
    for (const char* robust : {"", " robust"}) {
        const ir::Kernel kernel = TwoBufferKernel(
            std::string("workgroup_size(64, 1, 1) push_constants(8)") + robust, kInvocationsOf64,
            R"(
    %four:i32 = const 4
    %stride:i32 = const 64
    %minus:i32 = const -1
    %shift:i32 = load_push %four align(4)
    %more:i32 = lshr %li, %shift
    %turns:i32 = iadd %s, %more
    %all:i32 = loop @1 (%k:i32 = %li, %t:i32 = %turns, %v:i32 = %zero) {
      %c:bool = ine %t, %zero
      if %c {
        yield
      } else {
        exit @1 %v
      }
      %o:i32 = shl %k, %two
      %x:i32 = load_buffer %in, %o align(4)
      %w:i32 = iadd %v, %x
      %k1:i32 = iadd %k, %stride
      %t1:i32 = iadd %t, %minus
      continue @1 %k1, %t1, %w
    } continuing (%p:i32, %q:i32, %r:i32) {
      next %p, %q, %r
    }
    %to:i32 = shl %li, %two
    store_buffer %out, %to, %all align(4)
    return
)");
        for (const uint32_t steps : {0u, 2u}) {
            for (const uint32_t shift : {3u, 4u, 8u}) {
                const uint32_t most = steps + (63 >> shift);
                const std::vector<uint32_t> in = Counting(*robust ? 100 : 64 * std::max(most, 1u));
                ForEachWidth(kernel, {in, std::vector<uint32_t>(64, 7)},
                             {.push_constants = {steps, shift}}, [&](const Buffers& results) {
                                 for (uint32_t i = 0; i < 64; ++i) {
                                     uint32_t sum = 0;
                                     for (uint32_t k = 0; k < steps + (i >> shift); ++k) {
                                         sum += i + k * 64 < in.size() ? in[i + k * 64] : 0;
                                     }
                                     ASSERT_EQ(results[1][i], sum)
                                         << i << ", " << steps << " and " << shift << robust;
                                 }
                             });
            }
        }
    }
}

// `if (any(greaterThanEqual(id, extent))) return;`: what follows has no mask where all lanes of a
// vector are inside in each direction.
constexpr char kReturnOutside[] = R"(
    %lx:i32 = builtin local_id_x
    %ly:i32 = builtin local_id_y
    %wx:i32 = builtin workgroup_id_x
    %wy:i32 = builtin workgroup_id_y
    %side:i32 = const 16
    %pitch:i32 = const 32
    %x0:i32 = imul %wx, %side
    %y0:i32 = imul %wy, %side
    %x:i32 = iadd %x0, %lx
    %y:i32 = iadd %y0, %ly
    %four:i32 = const 4
    %width:i32 = load_push %zero align(4)
    %height:i32 = load_push %four align(4)
    %right:bool = ule %width, %x
    %below:bool = ule %height, %y
    %outside:bool = or %right, %below
    if %outside {
      return
    }
    %row:i32 = imul %y, %pitch
    %i:i32 = iadd %row, %x
    %at:i32 = shl %i, %two
    %v:i32 = load_buffer %in, %at align(4)
    %w:i32 = iadd %v, %four
    store_buffer %out, %at, %w align(4)
    return
)";

// Long code is there twice if it has no loop.
TEST(EmitPartlyActive, AReturnBeforeLongCode) {
    const std::string store = "    %w:i32 = iadd %v, %four\n";
    const auto has_copy = [&](const std::string& instead) {
        std::string body = kReturnOutside;
        body.replace(body.find(store), store.size(), instead);
        const Result<RunnableKernel> native = RunnableKernel::Create(
            TwoBufferKernel("workgroup_size(16, 16, 1) push_constants(8)", "", body), 16);
        EXPECT_TRUE(native.ok()) << native.error().message;
        return native.ok() && native->llvm_ir().find("all_lanes") != std::string::npos;
    };
    const auto products = [](int count) {
        std::string text = "%w0:i32 = iadd %v, %four\n";
        for (int i = 0; i < count; ++i) {
            text += "%w" + std::to_string(i + 1) + ":i32 = imul %w" + std::to_string(i) + ", %v\n";
        }
        return text + "%w:i32 = iadd %w" + std::to_string(count) + ", %four\n";
    };
    const std::string loop =
        "%n:i32 = loop @0 (%k:i32 = %zero) {\n"
        "    %more:bool = ult %k, %v\n"
        "    if %more { yield } else { exit @0 %k }\n"
        "    continue @0 %k\n"
        "} continuing (%c:i32) {\n"
        "    %m:i32 = iadd %c, %four\n"
        "    next %m\n"
        "}\n";
    EXPECT_TRUE(has_copy(products(200)));
    EXPECT_FALSE(has_copy(products(400)));
    EXPECT_TRUE(has_copy(products(100) + loop));
    EXPECT_FALSE(has_copy(products(200) + loop));
}

TEST(EmitPartlyActive, AReturnForEachBound) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(16, 16, 1) push_constants(8)", "", kReturnOutside);
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16);
    ASSERT_TRUE(native.ok()) << native.error().message;
    EXPECT_NE(native->llvm_ir().find("all_lanes"), std::string::npos) << native->llvm_ir();
    const std::vector<uint32_t> in = Counting(32 * 32);
    for (const uint32_t width : {0u, 5u, 16u, 31u, 32u}) {
        for (const uint32_t height : {1u, 16u, 23u, 32u}) {
            ForEachWidth(kernel, {in, std::vector<uint32_t>(32 * 32, 7)},
                         {.groups = {2, 2, 1}, .push_constants = {width, height}},
                         [&](const Buffers& results) {
                             for (uint32_t i = 0; i < 32 * 32; ++i) {
                                 const bool inside = i % 32 < width && i / 32 < height;
                                 ASSERT_EQ(results[1][i], inside ? in[i] + 4 : 7)
                                     << i << ", " << width << " x " << height;
                             }
                         });
        }
    }
}

// That some lanes are not active is no reason to go lane by lane: the span lies inside of the
// buffer, or it does not.
TEST(EmitPartlyActive, AllLanesNeedNotBeActive) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(8)",
                        std::string(kInvocationsOf64) + "    %one:i32 = const 1\n",
                        std::string(kLoadFromBlocks) + R"(
    %m:i32 = and %li, %limit
    %c:bool = ine %m, %zero
    %at:i32 = shl %i, %two
    if %c {
      %v:i16 = load_buffer %in, %from align(2)
      %x:i32 = zext %v
      store_buffer %out, %at, %x align(4)
      yield
    }
    return
)");
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16);
    ASSERT_TRUE(native.ok()) << native.error().message;
    const std::string& code = native->llvm_ir();
    EXPECT_NE(code.find("load_speculated"), std::string::npos) << code;
    EXPECT_EQ(code.find("icmp eq i16"), std::string::npos) << code;
}

}  // namespace
}  // namespace fornax::kernel
