// Dot products of signed bytes that are added up one after the other.
#include <gtest/gtest.h>

#include <string>

#include "compiler/kernel/codegen/target.h"
#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

// out[i] = in[i] . in[i + 1] + in[i + 2] . in[i + 3] + in[i + 4] . in[i + 5] + s, or the second
// product apart from the others, which are then taken twice.
std::string Chain(bool uses_partial_sum) {
    return std::string(R"(
    %b0:i32 = shl %i, %two
    %x0:i32, %x1:i32, %x2:i32, %x3:i32, %x4:i32, %x5:i32 = load_buffer %in, %b0 align(4)
    %p0:i32 = sdot4 %x0, %x1, %s
    %p1:i32 = sdot4 %x2, %x3, %p0
    %p2:i32 = sdot4 %x4, %x5, %p1
)") + (uses_partial_sum ? "    %r:i32 = iadd %p2, %p1\n" : "    %r:i32 = iadd %p2, %zero\n") +
           R"(
    store_buffer %out, %b0, %r align(4)
    return
)";
}

bool HasProductsOf512Bits() {
    const Result<TargetInfo> target = DetectTarget("");
    return target.ok() && target->vector_bits >= 512 &&
           target->features.find("+avx512vnni") != std::string::npos;
}

uint32_t Dot(uint32_t a, uint32_t b, uint32_t sum) {
    for (uint32_t at = 0; at < 32; at += 8) {
        const int x = static_cast<int8_t>(a >> at);
        const int y = static_cast<int8_t>(b >> at);
        sum += static_cast<uint32_t>(x * y);
    }
    return sum;
}

TEST(EmitDot, ChainsOfSums) {
    std::vector<uint32_t> in = Counting(69, 0x01020304);
    for (uint32_t i = 0; i < in.size(); ++i) {
        in[i] = i % 5 == 0 ? 0x80808080 : i % 5 == 1 ? 0x7f80ff00 : in[i] * 2654435761U;
    }
    for (const bool uses_partial_sum : {false, true}) {
        const ir::Kernel kernel = TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)",
                                                  kInvocationsOf64, Chain(uses_partial_sum));
        for (const uint32_t sum : {0u, 0xfffffff0u}) {
            ForEachWidth(kernel, {in, std::vector<uint32_t>(64, 7)}, {.push_constants = {sum}},
                         [&](const Buffers& results) {
                             for (uint32_t i = 0; i < 64; ++i) {
                                 const uint32_t p1 =
                                     Dot(in[i + 2], in[i + 3], Dot(in[i], in[i + 1], sum));
                                 const uint32_t p2 = Dot(in[i + 4], in[i + 5], p1);
                                 ASSERT_EQ(results[1][i], uses_partial_sum ? p2 + p1 : p2) << i;
                             }
                         });
        }
    }
}

// What bytes were moved by is taken off once, at the end.
TEST(EmitDot, AChainHasOneDifference) {
    const ir::Kernel kernel = TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)",
                                              kInvocationsOf64, Chain(false));
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 32);
    ASSERT_TRUE(native.ok()) << native.error().message;
    const std::string& code = native->optimized_llvm_ir();
    if (!HasProductsOf512Bits()) {
        GTEST_SKIP() << "This processor has no such products of 512 bits.";
    }
    EXPECT_NE(code.find("vpdpbusd.512"), std::string::npos) << code;
    size_t differences = 0;
    for (size_t at = code.find(" = sub <"); at != std::string::npos;
         at = code.find(" = sub <", at + 1)) {
        ++differences;
    }
    EXPECT_EQ(differences, 2u) << code;
}

// Four bits of one word and a fifth one of another are no negative bytes, however the fifth got to
// its place.
TEST(EmitDot, FieldsAreNotMoved) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kInvocationsOf64, R"(
    %nibbles:i32 = const 252645135
    %bits:i32 = const 16843009
    %sixteen:i32 = const 16
    %b0:i32 = shl %i, %two
    %x0:i32, %x1:i32, %x2:i32 = load_buffer %in, %b0 align(4)
    %low:i32 = and %x0, %nibbles
    %high:i32 = and %x1, %bits
    %moved:i32 = imul %high, %sixteen
    %five:i32 = or %low, %moved
    %r:i32 = sdot4 %five, %x2, %s
    store_buffer %out, %b0, %r align(4)
    return
)");
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 32);
    ASSERT_TRUE(native.ok()) << native.error().message;
    const std::string& code = native->optimized_llvm_ir();
    if (!HasProductsOf512Bits()) {
        GTEST_SKIP() << "This processor has no such products of 512 bits.";
    }
    EXPECT_NE(code.find("vpdpbusd.512"), std::string::npos) << code;
    EXPECT_EQ(code.find("-2139062144"), std::string::npos) << code;  // 0x80808080
}

}  // namespace
}  // namespace fornax::kernel
