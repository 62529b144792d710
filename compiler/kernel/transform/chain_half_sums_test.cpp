// Sums of f16 between matrix products.
#include <gtest/gtest.h>

#include "compiler/kernel/ir/matrix.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kCount = ir::kMatrixElements / 8;  // elements of a lane

std::string List(const std::string& name, const std::string& type = "") {
    std::string all;
    for (uint32_t i = 0; i < kCount; ++i) {
        all += (i != 0 ? ", %" : "%") + name + std::to_string(i) + type;
    }
    return all;
}

std::string Converted(const std::string& to, const std::string& type, const std::string& from) {
    std::string all;
    for (uint32_t i = 0; i < kCount; ++i) {
        const std::string number = std::to_string(i);
        all += "%" + to + number + ":" + type + " = fconvert %" + from + number + "\n";
    }
    return all;
}

std::string Product(const std::string& result, uint64_t flags, const std::string& sum) {
    return List(result, ":f32") + " = matrix_muladd " + std::to_string(flags) + ", " + List("a") +
           ", " + List("a") + ", " + List(sum) + "\n";
}

// Two products, the second of which adds to what `between` makes of the first one's sums "p".
// Their sums are looked at in the end, and those of the first one where `sum` says.
std::string TwoProducts(uint64_t first,
                        uint64_t second,
                        const std::string& between,
                        const std::string& sum) {
    std::string text =
        "%z:i32 = const 0\n%f:f32 = const 0.0\n%h:f16 = fconvert %f\n%o:buffer = buffer 0, %z\n";
    for (const char* name : {"a", "s"}) {
        for (uint32_t i = 0; i < kCount; ++i) {
            text += std::string("%") + name + std::to_string(i) + ":" +
                    (*name == 'a' ? "f16 = fneg %h" : "f32 = fneg %f") + "\n";
        }
    }
    text += Product("p", first, "s") + between + Product("q", second, sum);
    for (uint32_t i = 0; i < kCount; ++i) {
        text += "store_buffer %o, %z, %q" + std::to_string(i) + " align(4)\n";
    }
    return text + "return\n";
}

void Expect(const std::string& before, const std::string& after) {
    ExpectPassAndCompact([](ir::Kernel& kernel) { ChainHalfSums(kernel); }, before, after);
}

const std::string kRounded = Converted("n", "f16", "p") + Converted("w", "f32", "n");

TEST(ChainHalfSums, StayWideBetweenProducts) {
    Expect(TwoProducts(ir::kMatrixHalfSums, ir::kMatrixHalfSums, kRounded, "w"),
           TwoProducts(ir::kMatrixHalfSums, ir::kMatrixHalfSums, "", "p"));
}

// The shader itself rounds sums of f32, or adds to something else.
TEST(ChainHalfSums, NotWhatTheShaderRounds) {
    for (const auto& [first, second] : {std::pair<uint64_t, uint64_t>{0, ir::kMatrixHalfSums},
                                        {ir::kMatrixHalfSums, 0},
                                        {0, 0}}) {
        const std::string text = TwoProducts(first, second, kRounded, "w");
        Expect(text, text);
    }
    std::string one_else = kRounded;
    const std::string last = std::to_string(kCount - 1);
    one_else.replace(one_else.find("%w" + last), 3 + last.size(), "%v" + last + ":");
    one_else += "%w" + last + ":f32 = fadd %v" + last + ", %f\n";
    const std::string text = TwoProducts(ir::kMatrixHalfSums, ir::kMatrixHalfSums, one_else, "w");
    Expect(text, text);
}

}  // namespace
}  // namespace fornax::kernel
