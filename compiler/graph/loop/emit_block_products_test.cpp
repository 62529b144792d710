// Products of bytes with a scale for each block on a device, against the interpreter; every module
// passes spirv-val.
#include <random>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/block_product.h"
#include "tests/graph/kernel_check.h"

namespace fornax::graph::loop {
namespace {

class EmitBlockProductsTest : public test::KernelCheck {
  protected:
    // With unsigned bytes that have all bits. Terms of both signs are in the thousands.
    static void CheckAllBits(const Kernel& kernel) {
        test::Buffers inputs = RandomBuffers(kernel, {});
        std::mt19937 random(7);
        for (size_t i = 0; i < inputs.size(); ++i) {
            if (kernel.buffers[i].type.element == ElementType::kU8) {
                for (uint8_t& byte : inputs[i]) {
                    byte = static_cast<uint8_t>(random());
                }
            }
        }
        CheckOn(kernel, {}, inputs, {.floor = 1000});
    }
};

// m x n with blocks of 32 ks, each with scales of the row and of the column. Of 4 bits, the low and
// the high halves of a byte are ks of the block's halves; of 2 bits, its quarters are those of the
// block. One more bit of each element may lie in a word of its own.
std::string BlockMatrices(int m, int n, int blocks, int bits, bool has_high = false) {
    const int parts = 8 / bits, words = 8 / parts;
    std::string text = fmt::format(
        "kernel blocks(in a: i8[{0},{2},32], in b: u8[{3},{2},{4},16,4], in s: f32[{0},{2}], "
        "in t: f16[{3},{2},16], {5}out y: f32[{0},{1}])\n"
        "  parallel $i < {0}, $j < {1}\n"
        "  product\n",
        m, n, blocks, (n + 15) / 16, words,
        has_high ? fmt::format("in high: u8[{},{},16,4], ", (n + 15) / 16, blocks) : "");
    std::vector<std::string> lines = {
        fmt::format("load a[$i,$c,{}*$h + 4*$r + $u]", 4 * words),
        "cast i32 %0",
        "load b[floor($j, 16),$c,$r,mod($j, 16),$u]",
    };
    size_t element_id = 2;
    const auto add = [&](std::string line) {
        lines.push_back(std::move(line));
        return lines.size() - 1;
    };
    if (bits < 8) {
        lines.insert(lines.end(), {fmt::format("index {}*$h", bits), "cast u8 %3", "shr %2, %4",
                                   fmt::format("constant u8 {}", (1 << bits) - 1), "and %5, %6"});
        element_id = 7;
    }
    if (has_high) {
        const size_t bytes = add("load high[floor($j, 16),$c,mod($j, 16),$u]");
        const size_t part =
            add("cast u8 %" + std::to_string(add(fmt::format("index {}*$h", words))));
        const size_t word = add("cast u8 %" + std::to_string(add("index $r")));
        const size_t place = add(fmt::format("add %{}, %{}", part, word));
        const size_t shifted = add(fmt::format("shr %{}, %{}", bytes, place));
        const size_t one = add("constant u8 1");
        const size_t bit = add(fmt::format("and %{}, %{}", shifted, one));
        const size_t amount = add(fmt::format("constant u8 {}", bits));
        const size_t above = add(fmt::format("shl %{}, %{}", bit, amount));
        element_id = add(fmt::format("or %{}, %{}", element_id, above));
    }
    const size_t wide = add(fmt::format("cast i32 %{}", element_id));
    const size_t product = add(fmt::format("mul %1, %{}", wide));
    const size_t inner =
        add(fmt::format("reduce sum $h < {}, $r < {}, $u < 4 of %{}", parts, words, product));
    const size_t number = add(fmt::format("cast f32 %{}", inner));
    const size_t row = add("load s[$i,$c]");
    const size_t scaled = add(fmt::format("mul %{}, %{}", number, row));
    const size_t column = add("load t[floor($j, 16),$c,mod($j, 16)]");
    const size_t column_number = add(fmt::format("cast f32 %{}", column));
    const size_t term = add(fmt::format("mul %{}, %{}", scaled, column_number));
    const size_t sum = add(fmt::format("reduce sum $c < {} of %{}", blocks, term));
    for (size_t i = 0; i < lines.size(); ++i) {
        text += fmt::format("%{} = {}\n", i, lines[i]);
    }
    return text + fmt::format("store y[$i,$j] = %{}\n", sum);
}

TEST_F(EmitBlockProductsTest, BlocksOfBytes) {
    for (const auto& [bits, has_high] :
         {std::pair(2, false), {4, false}, {8, false}, {4, true}, {2, true}}) {
        for (const auto& [m, n, blocks] :
             {std::tuple(1, 16, 3), {2, 40, 5}, {12, 32, 2}, {27, 19, 4}}) {
            SCOPED_TRACE(fmt::format("{} {} {} of {} bits{}", m, n, blocks, bits,
                                     has_high ? " and one more" : ""));
            const std::string text = BlockMatrices(m, n, blocks, bits, has_high);
            const Kernel kernel = Parse(text);
            EXPECT_TRUE(FindBlockProduct(kernel, FindScope(kernel)));
            CheckAllBits(kernel);
        }
    }
}

// Bits of the neighbouring byte must not get into an element.
TEST_F(EmitBlockProductsTest, BlocksWhoseBitsLeakAreNone) {
    std::string text = BlockMatrices(2, 16, 3, 4);
    text.replace(text.find("constant u8 15"), 14, "constant u8 31");
    const Kernel kernel = Parse(text);
    EXPECT_FALSE(FindBlockProduct(kernel, FindScope(kernel)));
    CheckAllBits(kernel);
}

// Nor may bits leave the byte upwards, or come from the byte beside it.
TEST_F(EmitBlockProductsTest, HighBitsThatLeaveTheByteAreNone) {
    for (const auto& [from, to] : {std::pair("%17 = constant u8 4", "%17 = constant u8 8"),
                                   std::pair("%9 = index 4*$h", "%9 = index 5*$h")}) {
        std::string text = BlockMatrices(2, 16, 3, 4, true);
        const size_t at = text.find(from);
        ASSERT_NE(at, std::string::npos) << text;
        text.replace(at, std::string_view(from).size(), to);
        const Kernel kernel = Parse(text);
        EXPECT_FALSE(FindBlockProduct(kernel, FindScope(kernel))) << text;
        CheckAllBits(kernel);
    }
}

}  // namespace
}  // namespace fornax::graph::loop
