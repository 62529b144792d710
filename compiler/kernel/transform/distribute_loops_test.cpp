// Loops that all invocations run alike become one iteration each, and only those whose iterations
// have nothing to do with each other: exact text before and after.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

// A loop that begins a sum in workgroup memory, one that adds to it and one that stores it, as IREE
// writes them. The pieces are what tests change.
struct SumsKernel {
    std::string count = "4", first = "%z", step = "%one";
    std::string sum_place = "imul %i, %four";
    std::string other = "yield";
    std::string from = "iadd %row, %column";
    std::string buffer = "1";
    std::string to = "iadd %scaled, %where";
    std::string more;

    std::string Text() const {
        return fmt::format(R"(
            %z:i32 = const 0
            %one:i32 = const 1
            %four:i32 = const 4
            %n:i32 = const {count}
            %many:i32 = const 64
            %zero:f32 = const 0.0
            %in:buffer = buffer 0, %z
            %out:buffer = buffer {buffer}, %z
            %w:i32 = builtin workgroup_id_x
            %where:i32 = imul %w, %many
            loop @0 (%a:i32 = {first}) {{
                %more:bool = slt %a, %n
                if %more {{
                    continue @0
                }}
                exit @0
            }} continuing () {{
                %at:i32 = imul %a, %four
                store_shared %at, %zero align(4)
                %a1:i32 = iadd %a, {step}
                next %a1
            }}
            loop @1 (%i:i32 = %z) {{
                %stays:bool = ult %i, %n
                if %stays {{
                    {other}
                }} else {{
                    exit @1
                }}
                %place:i32 = {sum_place}
                loop @2 (%k:i32 = %z) {{
                    %inner:bool = slt %k, %many
                    if %inner {{
                        continue @2
                    }}
                    exit @2
                }} continuing () {{
                    %row:i32 = imul %i, %many
                    %column:i32 = iadd %k, %where
                    %from:i32 = {from}
                    %value:f32 = load_buffer %in, %from align(4)
                    %so_far:f32 = load_shared %place align(4)
                    %sum:f32 = fadd %so_far, %value
                    store_shared %place, %sum align(4)
                    %k1:i32 = iadd %k, %four
                    next %k1
                }}
                continue @1
            }} continuing () {{
                %i1:i32 = iadd %i, %one
                next %i1
            }}
            {more}
            loop @3 (%o:i32 = %z) {{
                %left:bool = slt %o, %n
                if %left {{
                    continue @3
                }}
                exit @3
            }} continuing () {{
                %read:i32 = imul %o, %four
                %result:f32 = load_shared %read align(4)
                %scaled:i32 = imul %o, %four
                %to:i32 = {to}
                store_buffer %out, %to, %result align(4)
                %o1:i32 = iadd %o, %one
                next %o1
            }}
            return
)",
                           fmt::arg("count", count), fmt::arg("first", first),
                           fmt::arg("step", step), fmt::arg("sum_place", sum_place),
                           fmt::arg("other", other), fmt::arg("from", from),
                           fmt::arg("buffer", buffer), fmt::arg("to", to), fmt::arg("more", more));
    }
};

constexpr char kShared[] = R"(
            %i:i32 = builtin local_index
            %z:i32 = const 0
            %four:i32 = const 4
            %many:i32 = const 64
            %zero:f32 = const 0.0
            %in:buffer = buffer 0, %z
            %out:buffer = buffer 1, %z
            %w:i32 = builtin workgroup_id_x
            %where:i32 = imul %w, %many
            %at:i32 = imul %i, %four
            store_shared %at, %zero align(4)
            %place:i32 = imul %i, %four
            loop @2 (%k:i32 = %z) {
                %inner:bool = slt %k, %many
                if %inner {
                    continue @2
                }
                exit @2
            } continuing () {
                %row:i32 = imul %i, %many
                %column:i32 = iadd %k, %where
                %from:i32 = iadd %row, %column
                %value:f32 = load_buffer %in, %from align(4)
                %so_far:f32 = load_shared %place align(4)
                %sum:f32 = fadd %so_far, %value
                store_shared %place, %sum align(4)
                %k1:i32 = iadd %k, %four
                next %k1
            }
            %read:i32 = imul %i, %four
            %result:f32 = load_shared %read align(4)
            %scaled:i32 = imul %i, %four
            %to:i32 = iadd %scaled, %where
            store_buffer %out, %to, %result align(4)
            return
)";

TEST(DistributeLoops, AnIterationForEachInvocation) {
    ExpectPassAndCompact([](ir::Kernel& kernel) { EXPECT_TRUE(DistributeLoops(kernel)); },
                         SumsKernel().Text(), kShared);
}

TEST(DistributeLoops, OthersStay) {
    struct Case {
        const char* what;
        SumsKernel kernel;
    };
    const Case cases[] = {
        {"other counts than invocations", {.count = "5"}},
        {"another start of one, which others read", {.first = "%one"}},
        {"another step", {.step = "%four"}},
        {"an address that does not grow", {.sum_place = "imul %i, %z"}},
        {"addresses that overlap", {.sum_place = "imul %i, %one"}},
        {"an address of another loop's scale", {.sum_place = "imul %i, %many"}},
        {"the neighbour's address", {.sum_place = "imul %i1x, %four"}},
        {"an address that differs by workgroup", {.sum_place = "iadd %i, %where"}},
        {"one buffer for loads and stores", {.buffer = "0"}},
        {"one place for all", {.to = "iadd %where, %where"}},
        {"places that overlap", {.to = "iadd %o, %where"}},
        {"a place that was loaded", {.to = "iadd %scaled, %loaded"}},
        {"the invocation's own number", {.more = "%id:i32 = builtin local_id_x"}},
        {"a barrier", {.more = "barrier"}},
        {"an atomic", {.more = "%old:i32 = atomic_shared add, %z, %one"}},
        {"a sum that all look at", {.more = "%all:f32 = load_shared %z align(4)"}},
        {"two stores", {.more = "store_buffer %out, %z, %zero align(4)"}},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.what);
        std::string text = one.kernel.Text();
        const auto put_before = [&](const char* where, const char* what) {
            text.insert(text.find(where), what);
        };
        if (one.kernel.sum_place.find("%i1x") != std::string::npos) {
            put_before("%place:i32", "%i1x:i32 = iadd %i, %one\n");
        }
        if (one.kernel.to.find("%loaded") != std::string::npos) {
            put_before("%to:i32", "%loaded:i32 = load_buffer %in, %scaled align(4)\n");
        }
        ir::Kernel kernel = Parsed(KernelText("", text));
        const std::string before = ir::PrintKernel(kernel);
        EXPECT_FALSE(DistributeLoops(kernel));
        EXPECT_EQ(ir::PrintKernel(kernel), before);
    }
}

// 8 * i - 4 * i is 4 * i.
TEST(DistributeLoops, PlacesAreWrittenInSeveralWays) {
    SumsKernel sums = {.sum_place = "isub %twice, %once"};
    std::string text = sums.Text();
    text.insert(text.find("%place:i32"),
                "%once:i32 = imul %i, %four\n%twice:i32 = iadd %once, %once\n");
    ir::Kernel kernel = Parsed(KernelText("", text));
    EXPECT_TRUE(DistributeLoops(kernel));
    text.insert(text.find("%place:i32"), "%more_of_it:i32 = iadd %twice, %i\n");
    text.replace(text.find("isub %twice"), std::string("isub %twice").size(), "isub %more_of_it");
    kernel = Parsed(KernelText("", text));
    EXPECT_FALSE(DistributeLoops(kernel));
}

// With 2^22 bytes between them the places of 1,024 iterations come round to the first one's.
TEST(DistributeLoops, PlacesDoNotWrap) {
    for (const uint32_t scale : {1u << 20, 1u << 22}) {
        SumsKernel sums = {.count = "1024", .to = "imul %o, %scale"};
        std::string text = sums.Text();
        text.insert(text.find("%w:i32"), fmt::format("%scale:i32 = const {}\n", scale));
        ir::Kernel kernel = Parsed(KernelText("", text));
        kernel.workgroup_size[0] = 1024;
        EXPECT_EQ(DistributeLoops(kernel), scale == 1u << 20);
    }
}

constexpr char kSum[] = R"(
            %z:i32 = const 0
            %one:i32 = const 1
            %four:i32 = const 4
            %eight:i32 = const 8
            %many:i32 = const 64
            %in:buffer = buffer 0, %z
            %out:buffer = buffer 1, %z
            %w:i32 = builtin workgroup_id_x
            %start:i32 = imul %w, %many
            loop @1 (%i:i32 = %z) {
                %stays:bool = ult %i, %four
                if %stays {
                    continue @1
                }
                exit @1
            } continuing () {
                loop @2 (%k:i32 = %z) {
                    %inner:bool = slt %k, %many
                    if %inner {
                        continue @2
                    }
                    exit @2
                } continuing () {
                    %column:i32 = imul %k, %four
                    %value:f32 = load_buffer %in, %column align(4)
                    %row:i32 = imul %i, %eight
                    %place0:i32 = iadd %row, %start
                    %place:i32 = iadd %place0, %four
                    %so_far:f32 = load_buffer %out, %place align(4)
                    %sum:f32 = fadd %so_far, %value
                    store_buffer %out, %place, %sum align(4)
                    %again:f32 = load_buffer %out, %place align(4)
                    %twice:f32 = fadd %again, %value
                    store_buffer %out, %place, %twice align(4)
                    %k1:i32 = iadd %k, %one
                    next %k1
                }
                %i1:i32 = iadd %i, %one
                next %i1
            }
            return
)";

// What the second binding gets is kept in a private variable meanwhile.
TEST(DistributeLoops, ASumInABuffer) {
    ir::Kernel kernel = Parsed(KernelText("", kSum));
    EXPECT_TRUE(DistributeLoops(kernel));
    ASSERT_TRUE(ir::Verify(kernel).ok()) << ir::PrintKernel(kernel);
    PromoteLocals(kernel);
    kernel.Compact();
    Simplify(kernel);
    kernel.Compact();
    ir::Kernel expected = Parsed(KernelText("", R"(
            %i:i32 = builtin local_index
            %z:i32 = const 0
            %one:i32 = const 1
            %four:i32 = const 4
            %eight:i32 = const 8
            %many:i32 = const 64
            %in:buffer = buffer 0, %z
            %w:i32 = builtin workgroup_id_x
            %start:i32 = imul %w, %many
            %row:i32 = imul %i, %eight
            %place0:i32 = iadd %row, %four
            %place:i32 = iadd %place0, %start
            %out:buffer = buffer 1, %z
            %old:f32 = load_buffer %out, %place align(4)
            %all:f32 = loop @2 (%k:i32 = %z, %so_far:f32 = %old) {
                %inner:bool = slt %k, %many
                if %inner {
                    continue @2
                }
                exit @2 %so_far
            } continuing () {
                %column:i32 = imul %k, %four
                %value:f32 = load_buffer %in, %column align(4)
                %sum:f32 = fadd %value, %so_far
                %twice:f32 = fadd %value, %sum
                %k1:i32 = iadd %k, %one
                next %k1, %twice
            }
            store_buffer %out, %place, %all align(4)
            return
)"));
    Simplify(expected);
    expected.Compact();
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected));
}

// A loop that may end before it comes to the sum reads and writes nothing that was not there.
TEST(DistributeLoops, ASumThatMayNotBeReachedStaysInItsBuffer) {
    std::string text = kSum;
    text.insert(text.find("%column:i32"),
                "%edge:bool = ule %eight, %start\nif %edge {\nexit @2\n}\n");
    ir::Kernel kernel = Parsed(KernelText("", text));
    EXPECT_TRUE(DistributeLoops(kernel));
    EXPECT_TRUE(kernel.locals.empty());
    text = kSum;
    text.insert(text.find("exit @2"), "%edge:bool = ule %eight, %start\nif %edge {\nexit @2\n}\n");
    kernel = Parsed(KernelText("", text));
    EXPECT_TRUE(DistributeLoops(kernel));
    EXPECT_TRUE(kernel.locals.empty());
}

// An offset that takes a counter of the loop inside, though it does not depend on it, is not known
// before that loop.
TEST(DistributeLoops, ASumWhosePlaceComesLateStaysInItsBuffer) {
    std::string text = kSum;
    text.insert(text.find("%place:i32"),
                "%none:i32 = isub %k, %k\n%late:i32 = iadd %four, %none\n");
    text.replace(text.find("%place0, %four"), std::string("%place0, %four").size(),
                 "%place0, %late");
    ir::Kernel kernel = Parsed(KernelText("", text));
    EXPECT_TRUE(DistributeLoops(kernel));
    EXPECT_TRUE(kernel.locals.empty());
}

TEST(DistributeLoops, AReturnInsideStays) {
    std::string text = SumsKernel().Text();
    text.insert(text.find("%place:i32"), "%odd:bool = ieq %where, %n\nif %odd {\nreturn\n}\n");
    ir::Kernel kernel = Parsed(KernelText("", text));
    EXPECT_FALSE(DistributeLoops(kernel));
}

}  // namespace
}  // namespace fornax::kernel
