#include "driver/debug_printf.h"

#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/kernel/interface/debug_printf.h"

namespace fornax::driver {
namespace {

TEST(DebugPrintf, Formats) {
    const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
    EXPECT_EQ(FormatPrintf("nothing", "", {}), "nothing");
    const std::vector<uint32_t> integers = {7, 0xffffffff, 255, 0xdeadbeef};
    EXPECT_EQ(FormatPrintf("%d %i|%u|%x", "iiii", integers), "7 -1|255|deadbeef");
    EXPECT_EQ(FormatPrintf("%4d,%-4d,%04u,%#X", "iiii", integers), "   7,-1  ,0255,0XDEADBEEF");
    const std::vector<uint32_t> wide = {1, 0x10, 0xfffffffe, 0xffffffff, 2, 3};
    EXPECT_EQ(FormatPrintf("%ul %lu", "ll", wide), "68719476737 18446744073709551614");
    EXPECT_EQ(FormatPrintf("%lx %ld 0x%lx", "lll", wide), "1000000001 -2 0x300000002");
    const std::vector<uint32_t> floats = {bits(1.5f), bits(-2), bits(3.25f), bits(0.1f)};
    EXPECT_EQ(FormatPrintf("%f %.2f %6.1f %e", "ffff", floats),
              "1.500000 -2.00    3.2 1.000000e-01");
    EXPECT_EQ(FormatPrintf("%v4f", "ffff", floats), "1.500000, -2.000000, 3.250000, 0.100000");
    EXPECT_EQ(FormatPrintf("(%1.2v3f)", "fff", floats), "(1.50, -2.00, 3.25)");
    EXPECT_EQ(FormatPrintf("%v2d and %v2x", "iiii", integers), "7, -1 and ff, deadbeef");
    const auto pi = std::bit_cast<uint64_t>(3.141592653589793);
    const std::vector<uint32_t> doubles = {static_cast<uint32_t>(pi),
                                           static_cast<uint32_t>(pi >> 32)};
    EXPECT_EQ(FormatPrintf("%.15f%%", "d", doubles), "3.141592653589793%");
}

// Wrong formats lead nowhere, and say so.
TEST(DebugPrintf, WrongFormats) {
    const std::vector<uint32_t> one = {std::bit_cast<uint32_t>(1.5f)};
    EXPECT_EQ(FormatPrintf("%d", "f", one), "1.5");
    EXPECT_EQ(FormatPrintf("%d %d", "i", std::vector<uint32_t>{3}), "3 <no value>");
    EXPECT_EQ(FormatPrintf("%lu", "l", one), "<no value>");
    EXPECT_EQ(FormatPrintf("%s %n %", "i", one), "%s %n %");
    EXPECT_EQ(FormatPrintf("%99999999999d|", "i", std::vector<uint32_t>{3}), "3|");
    EXPECT_EQ(FormatPrintf("%999d|", "i", std::vector<uint32_t>{3}), std::string(511, ' ') + "3|");
    EXPECT_EQ(FormatPrintf("%v9f", "f", one), "%v9f");
    EXPECT_EQ(FormatPrintf("%.f", "f", one), "2");
}

TEST(DebugPrintf, ModulesThatMayPrint) {
    const auto module = [](const char* name, uint32_t first_op) {
        std::vector<uint32_t> words = {0x07230203, 0x10300, 0, 10, 0, 2u << 16 | first_op, 1};
        const std::string_view text(name);
        const size_t name_words = text.size() / 4 + 1;
        words.push_back(static_cast<uint32_t>(2 + name_words) << 16 | 11);
        words.push_back(1);
        words.resize(words.size() + name_words);
        std::memcpy(&words[words.size() - name_words], text.data(), text.size());
        return words;
    };
    constexpr uint32_t kCapability = 17;
    constexpr uint32_t kFunction = 54;
    const auto prints = module("NonSemantic.DebugPrintf", kCapability);
    EXPECT_TRUE(kernel::MayPrint(prints));
    EXPECT_FALSE(kernel::MayPrint(module("NonSemantic.DebugPrint", kCapability)));
    EXPECT_FALSE(kernel::MayPrint(module("GLSL.std.450", kCapability)));
    EXPECT_FALSE(kernel::MayPrint(module("NonSemantic.DebugPrintf", kFunction)));
    for (size_t i = 0; i + 1 < prints.size(); ++i) {
        EXPECT_FALSE(kernel::MayPrint(std::span(prints).first(i))) << i;
    }
}

}  // namespace
}  // namespace fornax::driver
