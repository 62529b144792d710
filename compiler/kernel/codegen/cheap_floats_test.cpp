// Quotients by what all lanes or all iterations share, and minima and maxima that keep NaN: to the
// last bit what the plain operations give.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kGroup = 64;

// Any NaN is as good as another.
uint32_t Canonical(float value) {
    return std::isnan(value) ? 0x7fc00000U : std::bit_cast<uint32_t>(value);
}

std::vector<float> Numbers() {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> numbers = {
        0.0F,     1.0F,     3.0F,      0.1F,       0x1p-80F,  0x1.fffffep-81F,
        0x1p-81F, 0x1p80F,  0x1p79F,   0x1p100F,   0x1p127F,  0x1.fffffep127F,
        0x1p-20F, 0x1p-21F, 0x1p40F,   0x1p39F,    0x1p-126F, 0x1p-149F,
        infinity, 0x1p-60F, 0x1p-130F, 16777215.0F};
    std::mt19937 random(1);
    while (numbers.size() < 96) {
        // Close to 1, where the processor's own rounding is the hardest to get right.
        numbers.push_back(std::ldexp(1 + static_cast<float>(random() % (1U << 23)) * 0x1p-23F,
                                     static_cast<int>(random() % 60) - 30));
    }
    const size_t positive = numbers.size();
    for (size_t i = 0; i < positive; ++i) {
        numbers.push_back(-numbers[i]);
    }
    numbers.resize(191);
    numbers.push_back(std::numeric_limits<float>::quiet_NaN());
    return numbers;
}

std::vector<uint32_t> Bits(const std::vector<float>& numbers) {
    std::vector<uint32_t> bits;
    for (const float number : numbers) {
        bits.push_back(std::bit_cast<uint32_t>(number));
    }
    return bits;
}

constexpr char kPlace[] = R"(
    %w:i32 = builtin workgroup_id_x
    %li:i32 = builtin local_index
    %size:i32 = const 64
    %first:i32 = imul %w, %size
    %i:i32 = iadd %first, %li
    %o:i32 = shl %i, %two
)";

constexpr char kDivideByScalar[] = R"(
    %a:f32 = load_buffer %in, %o align(4)
    %b:f32 = load_push %zero align(4)
    %q:f32 = fdiv %a, %b
    store_buffer %out, %o, %q align(4)
    return
)";

// Quotients of all numbers and of one in turn, by the same lane's number.
constexpr char kDivideInLoop[] = R"(
    %one:i32 = const 1
    %b:f32 = load_buffer %in, %o align(4)
    %count:i32 = load_push %zero align(4)
    loop @0 (%k:i32 = %zero) {
      %goes:bool = ult %k, %count
      if %goes {
        yield
      } else {
        exit @0
      }
      %from:i32 = shl %k, %two
      %a:f32 = load_buffer %in, %from align(4)
      %other:f32 = fneg %b
      %mixed:f32 = fadd %a, %a
      %li1:i32 = and %li, %one
      %odd:bool = ine %li1, %zero
      %x:f32 = select %odd, %a, %mixed
      %q:f32 = fdiv %x, %other
      %row:i32 = imul %k, %count
      %at0:i32 = iadd %row, %i
      %at:i32 = shl %at0, %two
      store_buffer %out, %at, %q align(4)
      continue @0 %k
    } continuing (%k2:i32) {
      %next:i32 = iadd %k2, %one
      next %next
    }
    return
)";

TEST(CheapFloats, QuotientsByAScalarAreThoseOfDivisions) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, kDivideByScalar);
    const std::vector<float> numbers = Numbers();
    for (size_t i = 0; i < numbers.size(); i += 3) {
        const float divisor = numbers[i];
        SCOPED_TRACE(divisor);
        Launch launch = {.push_constants = {std::bit_cast<uint32_t>(divisor)}};
        launch.groups[0] = static_cast<uint32_t>(numbers.size()) / kGroup;
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 0);
        ASSERT_TRUE(native.ok()) << native.error().message;
        std::vector<std::vector<uint32_t>> buffers = {Bits(numbers),
                                                      std::vector<uint32_t>(numbers.size())};
        const uint32_t groups[3] = {launch.groups[0], 1, 1};
        ASSERT_TRUE(native->Run(buffers, launch.push_constants, groups).ok());
        for (size_t k = 0; k < numbers.size(); ++k) {
            volatile float quotient = numbers[k] / divisor;
            ASSERT_EQ(Canonical(std::bit_cast<float>(buffers[1][k])), Canonical(quotient))
                << numbers[k] << " / " << divisor;
        }
    }
}

TEST(CheapFloats, QuotientsByAnInvariantAreThoseOfDivisions) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, kDivideInLoop);
    const std::vector<float> numbers = Numbers();
    const auto count = static_cast<uint32_t>(numbers.size());
    Launch launch = {.push_constants = {count}};
    launch.groups[0] = count / kGroup;
    ForEachWidth(kernel, {Bits(numbers), std::vector<uint32_t>(size_t{count} * count)}, launch,
                 [&](const Buffers& results) {
                     for (uint32_t k = 0; k < count; ++k) {
                         for (uint32_t i = 0; i < count; ++i) {
                             volatile float a = i % 2 == 1 ? numbers[k] : numbers[k] + numbers[k];
                             volatile float quotient = a / -numbers[i];
                             ASSERT_EQ(Canonical(std::bit_cast<float>(results[1][k * count + i])),
                                       Canonical(quotient))
                                 << a << " / " << -numbers[i];
                         }
                     }
                 });
}

// Zeros of both signs among ordinary numbers, whose vectors are products as long as no -0 is there.
TEST(CheapFloats, QuotientsOfZerosKeepTheirSigns) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, kDivideByScalar);
    std::vector<float> numbers(4 * kGroup);
    for (size_t i = 0; i < numbers.size(); ++i) {
        const float zero = i >= 2 * kGroup && i % 7 == 0 ? -0.0F : 0.0F;
        numbers[i] = i % 3 == 0 ? zero : static_cast<float>(i) - 100.5F;
    }
    for (const float divisor : {3.0F, -0.7F}) {
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 0);
        ASSERT_TRUE(native.ok()) << native.error().message;
        std::vector<std::vector<uint32_t>> buffers = {Bits(numbers),
                                                      std::vector<uint32_t>(numbers.size())};
        const std::vector<uint32_t> constants = {std::bit_cast<uint32_t>(divisor)};
        const uint32_t groups[3] = {4, 1, 1};
        ASSERT_TRUE(native->Run(buffers, constants, groups).ok());
        for (size_t k = 0; k < numbers.size(); ++k) {
            volatile float quotient = numbers[k] / divisor;
            const float expected = quotient;
            EXPECT_EQ(buffers[1][k], std::bit_cast<uint32_t>(expected))
                << numbers[k] << " / " << divisor;
        }
    }
}

// Else the tests above say nothing.
TEST(CheapFloats, QuotientsAreProducts) {
    for (const char* body : {kDivideByScalar, kDivideInLoop}) {
        const ir::Kernel kernel =
            TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, body);
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v3");
        ASSERT_TRUE(native.ok());
        EXPECT_NE(native->optimized_llvm_ir().find("fdiv"), std::string::npos);
        EXPECT_NE(native->optimized_llvm_ir().find("llvm.fma.v16f32"), std::string::npos);
    }
}

// Quotients of clamped numbers as whole numbers.
constexpr char kQuantise[] = R"(
    %a:f32 = load_buffer %in, %o align(4)
    %least:f32 = const -3.125
    %most:f32 = const 2.5
    %divisor:f32 = const 0.024574565
    %above:bool = folt %least, %a
    %a1:f32 = select %above, %a, %least
    %below:bool = folt %a1, %most
    %a2:f32 = select %below, %a1, %most
    %q:f32 = fdiv %a2, %divisor
    %rounded:f32 = round_even %q
    %whole:i32 = ftos %rounded
    store_buffer %out, %o, %whole align(4)
    return
)";

TEST(CheapFloats, QuotientsOfClampedNumbersNeedNoTest) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, kQuantise);
    constexpr float kDivisor = 0.024574565F;
    std::vector<float> numbers = Numbers();
    for (int i = -256; i < 256; ++i) {
        const float tie = (static_cast<float>(i) + 0.5F) * kDivisor;
        numbers.push_back(tie);
        numbers.push_back(std::nextafter(tie, 100.0F));
        numbers.push_back(std::nextafter(tie, -100.0F));
    }
    numbers.resize(numbers.size() / kGroup * kGroup);
    Launch launch;
    launch.groups[0] = static_cast<uint32_t>(numbers.size()) / kGroup;
    ForEachWidth(kernel, {Bits(numbers), std::vector<uint32_t>(numbers.size())}, launch,
                 [&](const Buffers& results) {
                     for (size_t i = 0; i < numbers.size(); ++i) {
                         const float least = numbers[i] > -3.125F ? numbers[i] : -3.125F;
                         volatile float quotient = (least < 2.5F ? least : 2.5F) / kDivisor;
                         ASSERT_EQ(static_cast<int32_t>(results[1][i]),
                                   static_cast<int32_t>(std::nearbyint(quotient)))
                             << numbers[i];
                     }
                 });
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v3");
    ASSERT_TRUE(native.ok());
    EXPECT_EQ(native->optimized_llvm_ir().find("fdiv"), std::string::npos);
    EXPECT_NE(native->optimized_llvm_ir().find("llvm.lrint.v16i32"), std::string::npos);
}

// Adding 0 clears the sign of 0, so the quotient's does not matter.
TEST(CheapFloats, RoundedQuotientsWithoutASignOfZeroNeedNoTest) {
    std::string body = kQuantise;
    const std::string whole = "%whole:i32 = ftos %rounded";
    body.replace(body.find(whole), whole.size(),
                 "%nothing:f32 = const 0.0\n%whole:f32 = fadd %rounded, %nothing");
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, body);
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v3");
    ASSERT_TRUE(native.ok());
    EXPECT_EQ(native->optimized_llvm_ir().find("fdiv"), std::string::npos);
}

// A zero's sign is seen, and a dividend without a bound may overflow: these are tested.
TEST(CheapFloats, OtherRoundedQuotientsAreTested) {
    for (const auto& [from, to] :
         {std::pair("%whole:i32 = ftos %rounded", "%whole:i32 = bitcast %rounded"),
          std::pair("select %above, %a, %least", "select %above, %a, %a")}) {
        std::string body = kQuantise;
        body.replace(body.find(from), std::string(from).size(), to);
        const ir::Kernel kernel =
            TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, body);
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v3");
        ASSERT_TRUE(native.ok());
        EXPECT_NE(native->optimized_llvm_ir().find("fdiv"), std::string::npos);
    }
}

// Every field of a word as a number, after an offset.
TEST(CheapFloats, FieldsAreTheirNumbers) {
    struct Case {
        int bits, plus;
        bool is_cast;  // in the code for vectors
    };
    for (const Case& c :
         {Case{4, -8, false}, Case{4, 0, true}, Case{8, -128, false}, Case{2, -1, false},
          Case{5, 3, false}, Case{16, -32768, false}, Case{20, -9, true}}) {
        SCOPED_TRACE(c.bits);
        const int fields = 32 / c.bits;
        std::string body = fmt::format(
            "%word:i32 = load_buffer %in, %o align(4)\n%mask:i32 = const {}\n%plus:f32 = const "
            "{}.0\n%fields:i32 = const {}\n%four:i32 = const 4\n%to0:i32 = imul %o, %fields\n",
            (1U << c.bits) - 1, c.plus, fields);
        for (int i = 0; i < fields; ++i) {
            body += fmt::format(
                "%p{0}:i32 = const {1}\n%s{0}:i32 = lshr %word, %p{0}\n%f{0}:i32 = and %s{0}, "
                "%mask\n"
                "%g{0}:f32 = utof %f{0}\n%n{0}:f32 = fadd %g{0}, %plus\n"
                "store_buffer %out, %to{0}, %n{0} align(4)\n%to{2}:i32 = iadd %to{0}, %four\n",
                i, i * c.bits, i + 1);
        }
        const ir::Kernel kernel = TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)",
                                                  kPlace, body + "return\n");
        std::vector<uint32_t> words = {0, ~0U, 0x0F1E2D3C, 0x80000001};
        std::mt19937 random(c.bits);
        while (words.size() < 2 * kGroup) {
            words.push_back(static_cast<uint32_t>(random()));
        }
        Launch launch;
        launch.groups[0] = 2;
        ForEachWidth(
            kernel, {words, std::vector<uint32_t>(words.size() * fields)}, launch,
            [&](const Buffers& results) {
                for (size_t i = 0; i < words.size() * fields; ++i) {
                    const uint32_t word = words[i / fields];
                    const uint32_t field = word >> (i % fields * c.bits) & ((1U << c.bits) - 1);
                    const float number = static_cast<float>(field) + static_cast<float>(c.plus);
                    ASSERT_EQ(results[1][i], std::bit_cast<uint32_t>(number))
                        << word << " " << i % fields;
                }
            });
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v3");
        ASSERT_TRUE(native.ok());
        EXPECT_EQ(native->optimized_llvm_ir().find("tofp") != std::string::npos, c.is_cast);
    }
}

// Differences of the same field of two words, as texels' components have in a filter, and the
// second field as a number.
TEST(CheapFloats, DifferencesOfFields) {
    for (const int bits : {4, 8, 16}) {
        SCOPED_TRACE(bits);
        const int fields = 32 / bits;
        std::string body = fmt::format(
            "%word:i32 = load_buffer %in, %o align(4)\n%mask:i32 = const {}\n%times:i32 = const "
            "2654435761\n%other:i32 = imul %word, %times\n%fields:i32 = const {}\n%four:i32 = "
            "const 4\n%to0:i32 = imul %o, %fields\n",
            (1U << bits) - 1, 2 * fields);
        for (int i = 0; i < fields; ++i) {
            body += fmt::format("%p{}:i32 = const {}\n", i, i * bits);
            for (const auto& [name, word] : {std::pair("a", "word"), std::pair("b", "other")}) {
                body += fmt::format(
                    "%s{0}{1}:i32 = lshr %{2}, %p{1}\n%f{0}{1}:i32 = and %s{0}{1}, "
                    "%mask\n%{0}{1}:f32 = utof %f{0}{1}\n",
                    name, i, word);
            }
            body += fmt::format(
                "%n{0}:f32 = fsub %a{0}, %b{0}\n"
                "store_buffer %out, %to{1}, %n{0} align(4)\n%to{2}:i32 = iadd %to{1}, %four\n"
                "store_buffer %out, %to{2}, %b{0} align(4)\n%to{3}:i32 = iadd %to{2}, %four\n",
                i, 2 * i, 2 * i + 1, 2 * i + 2);
        }
        const ir::Kernel kernel = TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)",
                                                  kPlace, body + "return\n");
        std::vector<uint32_t> words = {0, ~0U, 0x0F1E2D3C, 0x80000001};
        std::mt19937 random(7);
        while (words.size() < 2 * kGroup) {
            words.push_back(static_cast<uint32_t>(random()));
        }
        Launch launch;
        launch.groups[0] = 2;
        ForEachWidth(
            kernel, {words, std::vector<uint32_t>(words.size() * 2 * fields)}, launch,
            [&](const Buffers& results) {
                for (size_t i = 0; i < words.size() * fields; ++i) {
                    const auto field = [&](uint32_t word) {
                        return static_cast<float>(word >> i % fields * bits & ((1U << bits) - 1));
                    };
                    const uint32_t word = words[i / fields];
                    const float other = field(word * 2654435761U);
                    ASSERT_EQ(results[1][2 * i], std::bit_cast<uint32_t>(field(word) - other))
                        << word << " " << i % fields;
                    ASSERT_EQ(results[1][2 * i + 1], std::bit_cast<uint32_t>(other));
                }
            });
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v3");
        ASSERT_TRUE(native.ok());
        EXPECT_EQ(native->optimized_llvm_ir().find("tofp"), std::string::npos);
    }
}

// Bytes of a word, each less a number, as vectors of bytes are unpacked: with a sign where the sum
// may be negative. Bytes that may have their highest bit set are converted as they are.
TEST(CheapFloats, BytesAreTheirNumbers) {
    struct Case {
        uint32_t mask;  // of the word
        int plus;
        const char* convert;
        bool is_cast;  // in the code for vectors
    };
    for (const Case& c :
         {Case{0x3F3F3F3F, -32, "stof", false}, Case{0x7F7F7F7F, -127, "stof", false},
          Case{0x7F7F7F7F, 1, "stof", true}, Case{0xFFFFFFFF, -32, "stof", true},
          Case{0x7F7F7F7F, 127, "utof", false}, Case{0x7F7F7F7F, 130, "utof", true},
          Case{0x3F3F3F3F, -32, "utof", true}}) {
        SCOPED_TRACE(fmt::format("{:x} {} {}", c.mask, c.plus, c.convert));
        std::string body = fmt::format(
            "%whole:i32 = load_buffer %in, %o align(4)\n%mask:i32 = const {}\n%word:i32 = and "
            "%whole, %mask\n%plus:i8 = const {}\n%four:i32 = const 4\n%to0:i32 = imul %o, %four\n",
            c.mask, c.plus);
        for (int i = 0; i < 4; ++i) {
            body += fmt::format(
                "%p{0}:i32 = const {1}\n%s{0}:i32 = lshr %word, %p{0}\n%b{0}:i8 = trunc %s{0}\n"
                "%g{0}:i8 = iadd %b{0}, %plus\n%n{0}:f32 = {3} %g{0}\n"
                "store_buffer %out, %to{0}, %n{0} align(4)\n%to{2}:i32 = iadd %to{0}, %four\n",
                i, i * 8, i + 1, c.convert);
        }
        const ir::Kernel kernel = TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)",
                                                  kPlace, body + "return\n");
        std::vector<uint32_t> words = {0, ~0U, 0x0F1E2D3C, 0x80000001};
        std::mt19937 random(c.mask);
        while (words.size() < 2 * kGroup) {
            words.push_back(static_cast<uint32_t>(random()));
        }
        Launch launch;
        launch.groups[0] = 2;
        ForEachWidth(
            kernel, {words, std::vector<uint32_t>(words.size() * 4)}, launch,
            [&](const Buffers& results) {
                for (size_t i = 0; i < words.size() * 4; ++i) {
                    const auto byte = static_cast<uint8_t>(
                        ((words[i / 4] & c.mask) >> (i % 4 * 8)) + static_cast<uint32_t>(c.plus));
                    const float number = c.convert == std::string("stof")
                                             ? static_cast<float>(static_cast<int8_t>(byte))
                                             : static_cast<float>(byte);
                    ASSERT_EQ(results[1][i], std::bit_cast<uint32_t>(number))
                        << words[i / 4] << " " << i % 4;
                }
            });
        const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16, "x86-64-v3");
        ASSERT_TRUE(native.ok());
        EXPECT_EQ(native->optimized_llvm_ir().find("tofp") != std::string::npos, c.is_cast);
    }
}

// The greater of each number and another one, or NaN if either is.
constexpr char kGreatest[] = R"(
    %a:f32 = load_buffer %in, %o align(4)
    %shift:i32 = load_push %zero align(4)
    %p:i32 = xor %o, %shift
    %b:f32 = load_buffer %in, %p align(4)
    %beyond:bool = folt %b, %a
    %number:f32 = select %beyond, %a, %b
    %nan:bool = is_nan %a
    %g:f32 = select %nan, %a, %number
    store_buffer %out, %o, %g align(4)
    return
)";

TEST(CheapFloats, MaximaKeepNan) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPlace, kGreatest);
    std::vector<float> numbers = Numbers();
    numbers[5] = std::numeric_limits<float>::quiet_NaN();
    for (const uint32_t other : {0U, 1U, 32U, 63U}) {
        Launch launch = {.push_constants = {other * 4}};
        launch.groups[0] = static_cast<uint32_t>(numbers.size()) / kGroup;
        ForEachWidth(
            kernel, {Bits(numbers), std::vector<uint32_t>(numbers.size())}, launch,
            [&](const Buffers& results) {
                for (uint32_t i = 0; i < numbers.size(); ++i) {
                    const float a = numbers[i], b = numbers[i ^ other];
                    const float greatest = std::isnan(a) ? a : b < a ? a : b;
                    ASSERT_EQ(Canonical(std::bit_cast<float>(results[1][i])), Canonical(greatest))
                        << a << ", " << b;
                }
            });
    }
    const Result<RunnableKernel> native = RunnableKernel::Create(kernel, 16);
    ASSERT_TRUE(native.ok());
    EXPECT_EQ(native->optimized_llvm_ir().find("or <16 x i1>"), std::string::npos);
}

}  // namespace
}  // namespace fornax::kernel
