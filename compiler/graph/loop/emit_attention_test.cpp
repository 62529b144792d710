// Attention on a device against the interpreter: sizes around those of tiles, layouts, masks.
#include <limits>

#include <fmt/format.h>
#include <spirv/unified1/spirv.hpp11>

#include "compiler/graph/loop/attention.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

using test::Tolerance;

class Attentions : public test::KernelCheck {
  protected:
    // The kernel with scores that are `score`, a line that makes %6 of the products %3, the mask %4
    // and the constant %5; all its reductions have variables of their own.
    static std::string Text(const std::string& sizes,
                            const std::string& m,
                            const std::string& keys,
                            int depth,
                            int n,
                            const char* key_index,
                            const char* value_index) {
        const auto index = [](std::string text, const char* key, const char* inner) {
            for (size_t at = 0; (at = text.find('#')) != std::string::npos;) {
                text.replace(at, 1, key);
            }
            for (size_t at = 0; (at = text.find('@')) != std::string::npos;) {
                text.replace(at, 1, inner);
            }
            return text;
        };
        const bool key_rows = std::string(key_index) == "#,@";
        const bool value_rows = std::string(value_index) == "#,@";
        std::string text = fmt::format(
            "kernel attention(in q: f32[2,{0},{2}], in k: f32[2,{3}], in v: f32[2,{4}], "
            "in mask: f32[{0},{1}], out y: f32[2,{0},{5}])\n{6}"
            "  parallel $h < 2, $m < {0}{7}\n"
            "  attention\n",
            m, keys, depth,
            key_rows ? fmt::format("{},{}", keys, depth) : fmt::format("{},{}", depth, keys),
            value_rows ? fmt::format("{},{}", keys, n) : fmt::format("{},{}", n, keys), n, sizes,
            n == 1 ? "" : fmt::format(", $n < {}", n));
        int scalar = 0;
        // The score at a key, by which the exponentials are.
        const auto score = [&](const char* key, const char* inner) {
            text += fmt::format(
                "%{0} = load q[$h,$m,{1}]\n%{2} = load k[$h,{3}]\n%{4} = mul %{0}, %{2}\n"
                "%{5} = reduce sum {1} < {6} of %{4}\n%{7} = constant f32 0.25\n"
                "%{8} = mul %{5}, %{7}\n%{9} = load mask[$m,{10}]\n%{11} = add %{8}, %{9}\n",
                scalar, inner, scalar + 1, index(key_index, key, inner), scalar + 2, scalar + 3,
                depth, scalar + 4, scalar + 5, scalar + 6, key, scalar + 7);
            scalar += 8;
            return scalar - 1;
        };
        const auto add = [&](const std::string& line) {
            text += fmt::format("%{} = {}\n", scalar, line);
            return scalar++;
        };
        const int greatest = add(fmt::format("reduce max $a < {} of %{}", keys, score("$a", "$i")));
        const auto power = [&](const char* key, const char* inner) {
            const int less = add(fmt::format("sub %{}, %{}", score(key, inner), greatest));
            return add(fmt::format("exp %{}", less));
        };
        const int sum = add(fmt::format("reduce sum $b < {} of %{}", keys, power("$b", "$j")));
        const int probability = add(fmt::format("div %{}, %{}", power("$c", "$k"), sum));
        const int value = add("load v[$h," + index(value_index, "$c", n == 1 ? "0" : "$n") + "]");
        const int product = add(fmt::format("mul %{}, %{}", probability, value));
        const int result = add(fmt::format("reduce sum $c < {} of %{}", keys, product));
        const int two = add("constant f32 2");
        text += fmt::format("store y[$h,$m,{}] = %{}\n", n == 1 ? "0" : "$n",
                            add(fmt::format("add %{}, %{}", result, two)));
        return text;
    }

    static void CheckIt(const std::string& text,
                        const Bindings& sizes,
                        float masked = 0,
                        int masked_columns = 0) {
        const Kernel kernel = Parse(text);
        ASSERT_TRUE(FindAttention(kernel, FindScope(kernel)).has_value()) << text;
        Buffers buffers = RandomBuffers(kernel, sizes);
        // Row r of the mask has its first r columns masked.
        const int64_t columns = kernel.buffers[3].type.shape[1].Evaluate(sizes).value_or(0);
        auto* mask = reinterpret_cast<float*>(buffers[3].data());
        for (int64_t i = 0; i < static_cast<int64_t>(buffers[3].size() / 4); ++i) {
            if (masked != 0 && i % columns < masked_columns * (i / columns)) {
                mask[i] = masked;
            }
        }
        CheckOn(kernel, sizes, buffers, Tolerance{2e-5, 1});
    }
    static size_t MatrixProducts(const std::string& text) {
        Target target;
        target.matrices_f32 = true;
        target.subgroup_arithmetic = true;
        target.max_workgroup_memory = 65536;
        const Result<Module> module = EmitSpirv(Parse(text), target);
        EXPECT_TRUE(module.ok()) << text;
        size_t products = 0;
        for (size_t i = 5; module.ok() && i < module->words.size(); i += module->words[i] >> 16) {
            const auto op = static_cast<spv::Op>(module->words[i] & 0xffff);
            products += op == spv::Op::OpCooperativeMatrixMulAddKHR ? 1 : 0;
        }
        return products;
    }
    using Buffers = test::Buffers;
};

constexpr const char* kByRows = "#,@";
constexpr const char* kByColumns = "@,#";

TEST_F(Attentions, OfAnySize) {
    const int sizes[][4] = {{1, 1, 1, 1},    {1, 1, 16, 16},  {2, 17, 5, 3},   {16, 16, 16, 16},
                            {17, 33, 16, 8}, {3, 64, 16, 32}, {33, 65, 20, 4}, {1, 130, 8, 16}};
    for (const auto& [m, keys, depth, n] : sizes) {
        for (const char* key : {kByRows, kByColumns}) {
            for (const char* value : {kByRows, kByColumns}) {
                CheckIt(Text("", std::to_string(m), std::to_string(keys), depth, n, key, value),
                        {});
            }
        }
    }
}

TEST_F(Attentions, OfSizesThatAreSymbols) {
    const std::string text =
        Text("  sizes m in 0..4096, s in 0..4096\n", "m", "s", 16, 16, kByRows, kByRows);
    for (const auto& [m, s] : {std::pair(1, 1), {5, 0}, {0, 3}, {18, 47}, {3, 100}}) {
        CheckIt(text, {{Symbol("m"), m}, {Symbol("s"), s}});
    }
}

// Whole tiles of a symbolic number of keys, which have no rest, and parts of tiles.
TEST_F(Attentions, OfMultiplesOfASymbol) {
    for (const char* keys : {"64 * s", "32 * s"}) {
        const std::string text = Text("  sizes s in 1..4096\n", "2", keys, 4, 3, kByRows, kByRows);
        for (const int s : {1, 2}) {
            CheckIt(text, {{Symbol("s"), s}});
        }
    }
    const std::string text =
        Text("  sizes s in 1..4096\n", "1", "64 * s", 16, 16, kByRows, kByRows);
    CheckIt(text, {{Symbol("s"), 2}});
}

// Tiles get smaller until they fit into workgroup memory.
TEST_F(Attentions, OfLargeHeads) {
    for (const int depth : {128, 192, 256}) {
        for (const char* keys : {"70", "64"}) {
            const std::string text = Text("", "40", keys, depth, depth, kByRows, kByRows);
            EXPECT_GT(MatrixProducts(text), 0U) << text;
        }
    }
    // The interpreter computes each score for each result.
    CheckIt(Text("", "17", "17", 256, 2, kByRows, kByRows), {});
    CheckIt(Text("", "17", "2", 256, 256, kByRows, kByRows), {});
    CheckIt(Text("", "17", "16", 16, 256, kByRows, kByRows), {});
}

// Up to eight queries go without matrices where values lie side by side.
TEST_F(Attentions, OfFewQueries) {
    const int sizes[][4] = {{1, 1, 16, 32}, {8, 40, 5, 33},  {3, 64, 17, 32},
                            {5, 31, 7, 70}, {1, 96, 32, 64}, {2, 33, 2, 130}};
    for (const auto& [m, keys, depth, n] : sizes) {
        for (const char* key : {kByRows, kByColumns}) {
            const std::string text =
                Text("", std::to_string(m), std::to_string(keys), depth, n, key, kByRows);
            EXPECT_EQ(MatrixProducts(text), 0U) << text;
            CheckIt(text, {});
        }
    }
    EXPECT_GT(MatrixProducts(Text("", "9", "64", 64, 64, kByRows, kByRows)), 0U);
    EXPECT_GT(MatrixProducts(Text("", "8", "64", 64, 64, kByRows, kByColumns)), 0U);
    const std::string symbolic = Text("  sizes s in 0..4096\n", "3", "s", 4, 40, kByRows, kByRows);
    for (const int s : {0, 1, 32, 47}) {
        CheckIt(symbolic, {{Symbol("s"), s}});
    }
    const std::string whole =
        Text("  sizes s in 0..4096\n", "4", "32 * s", 4, 40, kByRows, kByRows);
    for (const int s : {0, 2}) {
        CheckIt(whole, {{Symbol("s"), s}});
    }
}

// -inf is no part of the sum; a row of nothing else is NaN, as by the definition.
TEST_F(Attentions, OfFewQueriesWithMaskedKeys) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const std::string text = Text("", "5", "40", 4, 32, kByRows, kByRows);
    for (const int columns : {1, 12}) {
        CheckIt(text, {}, kNever, columns);
        CheckIt(text, {}, -1e9F, columns);
    }
    CheckIt(text, {}, std::numeric_limits<float>::quiet_NaN(), 4);
    CheckIt(text, {}, -kNever, 4);
}

TEST_F(Attentions, WithMaskedKeys) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    for (const int columns : {1, 2, 30}) {
        CheckIt(Text("", "20", "70", 16, 16, kByRows, kByRows), {}, kNever, columns);
        CheckIt(Text("", "5", "70", 16, 16, kByRows, kByRows), {}, -1e9F, columns);
    }
    CheckIt(Text("", "20", "70", 16, 16, kByRows, kByRows), {},
            std::numeric_limits<float>::quiet_NaN(), 4);
    CheckIt(Text("", "20", "70", 16, 16, kByRows, kByRows), {}, -kNever, 4);
}

// A loop whose extent is negative has no points, in tiles too.
TEST_F(Attentions, OfNegativeExtents) {
    std::string text =
        Text("  sizes m in 0..4096, s in 0..4096\n", "m", "s", 16, 16, kByRows, kByRows);
    for (size_t at = 0; (at = text.find(" < s of", at)) != std::string::npos;) {
        text.replace(at, 7, " < s - 20 of");
    }
    for (const int s : {3, 20, 25}) {
        CheckIt(text, {{Symbol("m"), 3}, {Symbol("s"), s}});
    }
    for (const int s : {3, 40}) {
        Check(
            "kernel product(in a: f32[40,s], in b: f32[s,64], out y: f32[40,64])\n"
            "  sizes s in 0..4096\n"
            "  parallel $m < 40, $n < 64\n"
            "  product\n"
            "%0 = load a[$m,$k]\n"
            "%1 = load b[$k,$n]\n"
            "%2 = mul %0, %1\n"
            "%3 = reduce sum $k < s - 20 of %2\n"
            "store y[$m,$n] = %3\n",
            {{Symbol("s"), s}}, Tolerance{2e-5, 1});
    }
}

// What is nearly an attention is computed as it says.
TEST_F(Attentions, AreNotWhatDiffers) {
    const std::string text = Text("", "5", "7", 4, 3, kByRows, kByRows);
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        const size_t at = changed.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        changed.replace(at, from.size(), to);
        return changed;
    };
    for (const std::string& changed :
         {with("mask[$m,$b]", "mask[$m,6 - $b]"), with("reduce max $a < 7", "reduce max $a < 6"),
          with("reduce max $a", "reduce min $a"), with("constant f32 0.25", "constant f32 0.5"),
          with("k[$h,$a,$i]", "k[$h,$a,3 - $i]")}) {
        const Kernel kernel = Parse(changed);
        EXPECT_FALSE(FindAttention(kernel, FindScope(kernel)).has_value()) << changed;
        Check(changed, {}, Tolerance{2e-5, 1});
    }
}

}  // namespace
}  // namespace fornax::graph::loop
