// Kernel IR in, index expressions out.
#include "compiler/kernel/index/index_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/index/upper_bound.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel {
namespace {

using ir::BuiltinId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Values %0 to %9 are the ones that every test has.
ir::Kernel Parsed(const std::string& body) {
    const std::string text =
        "kernel \"k\" workgroup_size(64, 2, 1) subgroup_size(32) push_constants(16) {\n"
        "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
        "body {\n"
        "%x:i32 = builtin local_id_x\n"
        "%y:i32 = builtin local_id_y\n"
        "%group:i32 = builtin workgroup_id_x\n"
        "%c0:i32 = const 0\n"
        "%c4:i32 = const 4\n"
        "%c8:i32 = const 8\n"
        "%n:i32 = load_push %c0 align(4)\n"
        "%m:i32 = load_push %c4 align(4)\n"
        "%b:buffer = buffer 0, %c0\n"
        "%v:i32 = load_buffer %b, %x align(4)\n"
        "%c1:i32 = const 1 %c2:i32 = const 2 %c3:i32 = const 3 %c5:i32 = const 5\n"
        "%c6:i32 = const 6 %c10:i32 = const 10 %c16:i32 = const 16 %c31:i32 = const 31\n"
        "%c64:i32 = const 64 %c100:i32 = const 100 %cm16:i32 = const -16\n" +
        body + "\nreturn\n}\n}\n";
    auto kernel = ir::ParseKernel(text);
    if (!kernel.ok()) {
        ADD_FAILURE() << kernel.error().message << "\n" << text;
        ir::Kernel empty;
        empty.body = empty.NewBlock({});
        ir::Builder(empty, empty.body).Append(ir::Op::kReturn, {}, {});
        return empty;
    }
    const Status status = ir::Verify(*kernel);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return std::move(*kernel);
}

// What is stored, in the order of the text.
std::vector<ir::ValueId> StoredValues(const ir::Kernel& kernel) {
    std::vector<ir::ValueId> values;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (inst.op == ir::Op::kStoreBuffer) {
            values.insert(values.end(), inst.operands.begin() + 2, inst.operands.end());
        }
    }
    return values;
}

std::string Store(const std::string& value) {
    return " store_buffer %b, %c0, " + value + " align(4)";
}

// The expression of what the body stores first.
std::string TextOf(const std::string& body) {
    const ir::Kernel kernel = Parsed(body);
    IndexBuilder index(kernel);
    return index.algebra().Text(index.Of(StoredValues(kernel).at(0)));
}

TEST(IndexBuilder, SumsHaveOneForm) {
    const std::string first =
        TextOf("%a:i32 = imul %y, %c64 %e:i32 = iadd %a, %x %f:i32 = shl %e, %c2 " + Store("%f"));
    EXPECT_EQ(first, "4*local_id_x + 256*local_id_y");
    EXPECT_EQ(first, TextOf("%a:i32 = imul %x, %c4 %e:i32 = imul %y, %c4 %f:i32 = imul %e, %c64 "
                            "%g:i32 = iadd %f, %c5 %h:i32 = iadd %a, %g %i:i32 = isub %h, %c5 " +
                            Store("%i")));
}

TEST(IndexBuilder, ProductsOfSymbolsAreTerms) {
    EXPECT_EQ(
        TextOf("%a:i32 = iadd %y, %c2 %e:i32 = imul %a, %n %f:i32 = iadd %e, %x " + Store("%f")),
        "2*%6 + %6*local_id_y + local_id_x");
}

TEST(IndexBuilder, MultiplesComeOutOfQuotients) {
    // (64 * n + x) / 16 where 64 * n may wrap: low bits say so.
    EXPECT_EQ(
        TextOf("%a:i32 = imul %y, %c64 %e:i32 = iadd %a, %x %f:i32 = lshr %e, %c4 " + Store("%f")),
        "(local_id_x / 16) + 4*local_id_y");
    // What is below a common divisor goes.
    EXPECT_EQ(
        TextOf("%a:i32 = imul %y, %c16 %e:i32 = iadd %a, %c3 %f:i32 = lshr %e, %c5 " + Store("%f")),
        "0");
    EXPECT_EQ(
        TextOf("%a:i32 = imul %n, %c4 %e:i32 = iadd %a, %c3 %f:i32 = lshr %e, %c4 " + Store("%f")),
        "((%6 / 4) % 2^28)");
}

TEST(IndexBuilder, QuotientAndRemainderMakeUpTheWhole) {
    EXPECT_EQ(TextOf("%a:i32 = udiv %n, %c10 %e:i32 = urem %n, %c10 %f:i32 = imul %a, %c10 "
                     "%g:i32 = iadd %f, %e " +
                     Store("%g")),
              "%6");
    EXPECT_EQ(TextOf("%a:i32 = lshr %x, %c4 %e:i32 = and %x, %c3 %f:i32 = and %x, %c31 "
                     "%g:i32 = lshr %x, %c5 %h:i32 = imul %g, %c16 %i:i32 = iadd %h, %h "
                     "%j:i32 = iadd %i, %f " +
                     Store("%j")),
              "local_id_x");
}

TEST(IndexBuilder, WhatMayWrapStaysLowBits) {
    EXPECT_EQ(TextOf("%a:i32 = iadd %n, %cm16 %e:i64 = zext %a " + Store("%e")),
              "((%6 - 16) % 2^32)");
    // The same number narrowed again is without them.
    EXPECT_EQ(TextOf("%a:i32 = iadd %n, %cm16 %e:i64 = zext %a %f:i32 = trunc %e " + Store("%f")),
              "%6 - 16");
    // A small number with a sign, and one that is not negative.
    EXPECT_EQ(TextOf("%a:i32 = iadd %x, %cm16 %e:i64 = sext %a " + Store("%e")), "local_id_x - 16");
    EXPECT_EQ(
        TextOf("%a:i32 = iadd %x, %c16 %e:i32 = iadd %a, %cm16 %f:i64 = zext %e " + Store("%f")),
        "local_id_x");
}

TEST(IndexBuilder, MasksAreLowBitsOfQuotients) {
    EXPECT_EQ(TextOf("%a:i32 = and %n, %c6 " + Store("%a")), "2*((%6 / 2) % 2^2)");
    EXPECT_EQ(TextOf("%a:i32 = and %x, %cm16 " + Store("%a")), "16*(local_id_x / 16)");
    // Bits that do not meet add up.
    EXPECT_EQ(TextOf("%a:i32 = shl %y, %c6 %e:i32 = or %a, %x " + Store("%e")),
              "local_id_x + 64*local_id_y");
    EXPECT_EQ(TextOf("%a:i32 = not %x " + Store("%a")), "-local_id_x - 1");
}

TEST(IndexBuilder, DivisionsByRunTimeSizes) {
    EXPECT_EQ(
        TextOf("%a:i32 = udiv %x, %n %e:i32 = urem %x, %n %f:i32 = iadd %a, %e " + Store("%f")),
        "(local_id_x % %6) + (local_id_x / %6)");
}

TEST(IndexBuilder, CountersAreRecurrences) {
    const std::string loop =
        "loop @0 (%i:i32 = %y, %k:i32 = %c0) {\n"
        " %done:bool = ult %n, %i if %done { exit @0 } else { yield }\n"
        " %at:i32 = iadd %i, %x %far:i32 = lshr %k, %c3 " +
        Store("%at, %far") +
        " continue @0 %i } continuing (%p:i32) {\n"
        " %more:i32 = iadd %p, %c6 %less:i32 = isub %k, %cm16 next %more, %less }";
    const ir::Kernel kernel = Parsed(loop);
    IndexBuilder index(kernel);
    const auto values = StoredValues(kernel);
    EXPECT_THAT(index.algebra().Text(index.Of(values.at(0))),
                ::testing::MatchesRegex("6[*]iteration@[0-9]+ [+] local_id_x [+] local_id_y"));
    const ir::InstId found = [&] {
        for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
            if (kernel.inst(ir::InstId{i}).op == ir::Op::kLoop) {
                return ir::InstId{i};
            }
        }
        return ir::InstId{};
    }();
    EXPECT_EQ(index.algebra().AsConstant(index.AlongIteration(values.at(0), found)), 6);
    // The counter may wrap, so the quotient need not grow by two.
    EXPECT_FALSE(index.algebra().AsConstant(index.AlongIteration(values.at(1), found)));
    IndexBuilder assuming(kernel, {.invocation = 5, .symbol_zeros = 12, .no_wrap = true});
    EXPECT_EQ(assuming.algebra().AsConstant(assuming.AlongIteration(values.at(1), found)), 2);
    EXPECT_THAT(assuming.algebra().Text(assuming.Of(values.at(0))), HasSubstr(" + 5"));
}

TEST(IndexBuilder, CountersThatDependOnThePathAreNone) {
    EXPECT_THAT(TextOf("loop @0 (%i:i32 = %c0) {\n"
                       " %odd:bool = ult %v, %i if %odd { continue @0 %c1 } else { yield }\n" +
                       Store("%i") +
                       " continue @0 %i } continuing (%p:i32) {\n"
                       " %more:i32 = iadd %p, %c6 next %more }"),
                ::testing::MatchesRegex("%[0-9]+"));
}

TEST(IndexBuilder, DistancesAndWorkgroups) {
    const ir::Kernel kernel = Parsed(
        "%a:i32 = imul %group, %n %e:i32 = iadd %a, %x %f:i32 = iadd %e, %c100 "
        "%g:i32 = udiv %group, %n %h:i32 = iadd %v, %group " +
        Store("%e, %f, %g, %h"));
    IndexBuilder index(kernel);
    const auto values = StoredValues(kernel);
    EXPECT_EQ(index.Distance(values[0], values[1]), 100);
    EXPECT_EQ(index.Distance(values[1], values[0]), -100);
    EXPECT_EQ(index.Distance(values[0], values[2]), std::nullopt);
    EXPECT_EQ(index.algebra().Text(index.AlongWorkgroupX(values[0])), "%6");
    // What memory holds may be something else for another workgroup.
    EXPECT_FALSE(index.AlongWorkgroupX(values[3]).valid());
}

// For hints, workgroups differ by their numbers only: in what they load, and in what loops add.
TEST(IndexBuilder, AlikeWorkgroups) {
    const ir::Kernel kernel = Parsed(
        "%a:i32 = imul %group, %n %e:i32 = iadd %a, %v\n"
        "loop @0 (%i:i32 = %e) {\n"
        " %done:bool = ult %n, %i if %done { exit @0 } else { yield }\n" +
        Store("%i") +
        " %more:i32 = load_buffer %b, %m align(4) %next:i32 = iadd %i, %more\n"
        " continue @0 %next } continuing (%p:i32) { next %p }");
    const ir::ValueId stored = StoredValues(kernel).at(0);
    IndexBuilder hints(kernel, {.alike_workgroups = true});
    EXPECT_EQ(hints.algebra().Text(hints.AlongWorkgroupX(stored)), "%6");
    IndexBuilder index(kernel);
    EXPECT_FALSE(index.AlongWorkgroupX(stored).valid());
}

// A loop that sums up what is its workgroup's own gives back its counter, too, which is the same in
// all workgroups, and so is what a branch makes of that.
TEST(IndexBuilder, ResultsOfAConstructDifferByWorkgroupEachForItself) {
    const ir::Kernel kernel = Parsed(
        "%count:i32, %sum:i32 = loop @0 (%i:i32 = %c0, %t:i32 = %group) {\n"
        " %done:bool = ult %n, %i if %done { exit @0 %i, %t } else { yield }\n"
        " %next:i32 = iadd %i, %c1 %more:i32 = iadd %t, %group\n"
        " continue @0 %next, %more } continuing (%p:i32, %q:i32) { next %p, %q }\n"
        "%c:bool = ult %count, %n\n"
        "%a:i32, %d:i32 = if %c { yield %count, %sum } else { yield %n, %n }\n" +
        Store("%count, %sum, %a, %d"));
    const auto values = StoredValues(kernel);
    IndexBuilder hints(kernel, {.alike_workgroups = true});
    const auto differs = [&](ir::ValueId value) {
        return (hints.algebra().axes(hints.Of(value)) & kWorkgroupXAxis) != 0;
    };
    EXPECT_FALSE(differs(values[0]));
    EXPECT_TRUE(differs(values[1]));
    EXPECT_FALSE(differs(values[2]));
    EXPECT_TRUE(differs(values[3]));
}

// Lanes differ by their numbers, times and divided by constants, or by anything. For hints, loops
// add the same for all lanes, and a pass may assume more.
TEST(IndexBuilder, HowLanesDiffer) {
    const ir::Kernel kernel = Parsed(
        "%near:i32 = imul %x, %c3 %half:i32 = udiv %near, %c2 %rest:i32 = iadd %half, %n\n"
        "%far:i32 = imul %x, %n %quotient:i32 = udiv %x, %n %square:i32 = imul %x, %x\n"
        "%loaded:i32 = load_buffer %b, %near align(4) %shared:i32 = load_buffer %b, %n align(4)\n"
        "%sum:i32 = iadd %quotient, %n\n"
        "loop @0 (%i:i32 = %near) {\n"
        " %done:bool = ult %n, %i if %done { exit @0 } else { yield }\n" +
        Store("%near, %half, %rest, %far, %quotient, %square, %loaded, %shared, %i, %sum") +
        " %next:i32 = iadd %i, %loaded\n"
        " continue @0 %next } continuing (%p:i32) { next %p }");
    const auto values = StoredValues(kernel);
    const auto lanes = [](IndexBuilder& index, ir::ValueId value) {
        const uint8_t axes = index.Axes(value);
        return (axes & kLaneAxis) == 0 ? "same" : (axes & kUnevenAxis) == 0 ? "near" : "apart";
    };
    const auto all = [&](IndexBuilder& index) {
        std::vector<std::string> kinds;
        for (ir::ValueId value : values) {
            kinds.emplace_back(lanes(index, value));
        }
        return kinds;
    };
    IndexBuilder index(kernel);
    EXPECT_THAT(all(index), ElementsAre("near", "near", "near", "apart", "apart", "apart", "apart",
                                        "same", "apart", "apart"));
    IndexBuilder hints(kernel, {.alike_lanes = true});
    hints.Assume(values[4], kNoAxis);
    hints.Assume(values[7], hints.Of(values[2]));
    EXPECT_THAT(all(hints), ElementsAre("near", "near", "near", "apart", "same", "apart", "apart",
                                        "near", "near", "same"));
}

// The first two workgroups along x: a remainder does not wrap, and what other numbers than theirs
// decide in a branch is the same.
TEST(IndexBuilder, TheFirstWorkgroups) {
    const ir::Kernel kernel = Parsed(
        "%r:i32 = urem %group, %c6 %a:i32 = imul %r, %n\n"
        "%other:i32 = builtin workgroup_id_y %c:bool = ult %other, %n\n"
        "%plane:i32 = if %c { %t:i32 = imul %other, %n yield %t } else { yield %c0 }\n"
        "%own:i32 = if %c { yield %group } else { yield %c0 }\n"
        "%s:i32 = iadd %plane, %a\n" +
        Store("%a, %s, %own"));
    const auto values = StoredValues(kernel);
    IndexBuilder hints(kernel, kWorkgroupHints);
    EXPECT_EQ(hints.algebra().Text(hints.AlongWorkgroupX(values[0])), "%6");
    EXPECT_EQ(hints.algebra().Text(hints.AlongWorkgroupX(values[1])), "%6");
    EXPECT_FALSE(hints.AlongWorkgroupX(values[2]).valid());
    IndexBuilder index(kernel);
    EXPECT_FALSE(index.algebra().AsConstant(index.AlongWorkgroupX(values[0])).has_value());
    EXPECT_FALSE(index.AlongWorkgroupX(values[1]).valid());
}

// The lanes of a vector: the index of the first one is a multiple of their number.
TEST(IndexBuilder, DifferencesOfLanes) {
    const ir::Kernel kernel = Parsed(
        "%g:i32 = imul %group, %c64 %a:i32 = iadd %g, %x %e:i32 = and %a, %c3 "
        "%f:i32 = lshr %a, %c2 %h:i32 = imul %f, %n %i:i32 = imul %e, %c4 "
        "%j:i32 = iadd %h, %i " +
        Store("%j"));
    IndexBuilder index(kernel);
    auto lane = [&](int64_t number) {
        return [&index, number](const IndexSymbol& symbol) {
            IndexAlgebra& algebra = index.algebra();
            if (symbol.kind != IndexSymbol::Kind::kBuiltin ||
                symbol.number != static_cast<uint32_t>(BuiltinId::kLocalIdX)) {
                return algebra.Symbol(symbol);
            }
            const IndexExpr base =
                algebra.Symbol({.number = 1000000, .axes = kLaneAxis, .max = 48, .zeros = 4});
            return algebra.Add(base, algebra.Constant(number));
        };
    };
    std::vector<std::string> texts;
    for (int64_t number : {1, 3, 4, 6, 15}) {
        texts.push_back(
            index.algebra().Text(index.Between(StoredValues(kernel)[0], lane(0), lane(number))));
    }
    EXPECT_THAT(texts, ElementsAre("4", "12", "%6", "%6 + 8", "3*%6 + 12"));
}

TEST(IndexBuilder, RangesAndKnownBits) {
    const ir::Kernel kernel = Parsed(
        "%a:i32 = imul %x, %c8 %e:i32 = iadd %a, %c16 %f:i32 = umin %n, %c100 "
        "%g:i32 = iadd %f, %x %h:i32 = umin %x, %c100 " +
        Store("%e, %g, %h"));
    IndexBuilder index(kernel);
    const auto values = StoredValues(kernel);
    EXPECT_TRUE((index.UnsignedRange(values[0]) == IndexRange{.low = 16, .high = 63 * 8 + 16}));
    EXPECT_EQ(index.algebra().TrailingZeros(index.Of(values[0])), 3u);
    EXPECT_TRUE((index.UnsignedRange(values[1]) == IndexRange{.low = 0, .high = 163}));
    EXPECT_EQ(index.algebra().Text(index.Of(values[2])), "local_id_x");
}

// What somebody hostile wrote: long chains, products of products, divisions of divisions.
TEST(IndexBuilder, EverythingIsBounded) {
    std::string chain = "%a0:i32 = iadd %x, %n ";
    for (int i = 0; i < 20000; ++i) {
        const std::string last = "%a" + std::to_string(i);
        const std::string next = "%a" + std::to_string(i + 1);
        switch (i % 4) {
            case 0:
                chain += next + ":i32 = imul " + last + ", " + last + " ";
                break;
            case 1:
                chain += next + ":i32 = udiv " + last + ", %c3 ";
                break;
            case 2:
                chain += next + ":i32 = iadd " + last + ", %v ";
                break;
            default:
                chain += next + ":i32 = urem " + last + ", %c100 ";
                break;
        }
    }
    const std::string text = TextOf(chain + Store("%a20000"));
    EXPECT_LT(text.size(), 10000u);
}

}  // namespace
}  // namespace fornax::kernel
