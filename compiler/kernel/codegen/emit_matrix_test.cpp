// Matrices that a subgroup holds together: native code against sums that are computed here, for
// every size of subgroup and every set of instructions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "base/half.h"
#include "compiler/kernel/analysis/matrix_accumulators.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/codegen/two_buffer_kernel.h"
#include "compiler/kernel/ir/matrix.h"
#include "compiler/kernel/ir/text.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kElements = ir::kMatrixElements;

// Element e of a lane lies at (e * size + lane) * bytes behind `start`.
std::string Load(const std::string& name,
                 const char* type,
                 uint32_t size,
                 uint32_t start,
                 uint32_t bytes) {
    std::string text;
    for (uint32_t e = 0; e < kElements / size; ++e) {
        const std::string id = name + std::to_string(e);
        text += "%" + id + "_at:i32 = const " + std::to_string(start + e * size * bytes) + "\n%" +
                id + "_to:i32 = iadd %lane" + std::to_string(bytes) + ", %" + id + "_at\n%" + id +
                ":" + type + " = load_buffer %in, %" + id + "_to align(" + std::to_string(bytes) +
                ")\n";
    }
    return text;
}
std::string List(const std::string& name, uint32_t size, const char* type = nullptr) {
    std::string text;
    for (uint32_t e = 0; e < kElements / size; ++e) {
        text += (e ? ", %" : "%") + name + std::to_string(e);
        if (type) {
            text += std::string(":") + type;
        }
    }
    return text;
}
ir::Kernel MatrixKernel(uint32_t size,
                        const std::string& body,
                        uint32_t bytes,
                        const std::string& locals = "") {
    std::string text = R"(
    %lane1:i32 = builtin subgroup_lane
    %one:i32 = const 1
    %lane2:i32 = shl %lane1, %one
    %lane4:i32 = shl %lane1, %two
)" + body;
    for (uint32_t e = 0; e < kElements / size; ++e) {
        const std::string id = "r" + std::to_string(e);
        text += "%" + id + "_at:i32 = const " + std::to_string(e * size * bytes) + "\n%" + id +
                "_to:i32 = iadd %lane" + std::to_string(bytes) + ", %" + id +
                "_at\nstore_buffer %out, %" + id + "_to, %" + id + " align(" +
                std::to_string(bytes) + ")\n";
    }
    const std::string count = std::to_string(size);
    Result<ir::Kernel> kernel =
        ir::ParseKernel("kernel \"test\" workgroup_size(" + count + ", 1, 1) subgroup_size(" +
                        count + R"() push_constants(4) {
binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
binding 1: storage_buffer set(0) binding(1) count(1) offset(16)
)" + locals + R"(body {
    %zero:i32 = const 0
    %two:i32 = const 2
    %in:buffer = buffer 0, %zero
    %out:buffer = buffer 1, %zero
)" + text + "return\n}\n}\n");
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return kernel.ok() ? std::move(*kernel) : ir::Kernel();
}
ir::Kernel MulAddKernel(uint32_t size,
                        const char* operand,
                        const char* sum,
                        uint32_t bytes,
                        uint64_t flags) {
    return MatrixKernel(size,
                        Load("a", operand, size, 0, bytes) +
                            Load("b", operand, size, kElements * bytes, bytes) +
                            Load("c", sum, size, kElements * bytes * 2, 4) + List("r", size, sum) +
                            " = matrix_muladd " + std::to_string(flags) + ", " + List("a", size) +
                            ", " + List("b", size) + ", " + List("c", size) + "\n",
                        4);
}

// The number of lanes is the subgroup's.
void ForEachCpu(const ir::Kernel& kernel,
                const Buffers& buffers,
                const std::function<void(const Buffers&)>& check) {
    for (const std::string& cpu : TestCpus()) {
        SCOPED_TRACE(testing::Message() << "cpu '" << cpu << "'");
        Result<RunnableKernel> native = RunnableKernel::Create(kernel, 0, cpu);
        ASSERT_TRUE(native.ok()) << native.error().message;
        Buffers copy = buffers;
        Status status = native->Run(copy, {0}, {1, 1, 1});
        ASSERT_TRUE(status.ok()) << status.error().message;
        check(copy);
        ASSERT_FALSE(testing::Test::HasFailure()) << native->llvm_ir();
    }
}

template <typename Element>
std::vector<uint32_t> Words(const std::vector<Element>& a,
                            const std::vector<Element>& b,
                            const std::vector<uint32_t>& c) {
    std::vector<Element> operands = a;
    operands.insert(operands.end(), b.begin(), b.end());
    std::vector<uint32_t> words(operands.size() * sizeof(Element) / 4);
    std::copy_n(reinterpret_cast<const uint8_t*>(operands.data()), words.size() * 4,
                reinterpret_cast<uint8_t*>(words.data()));
    words.insert(words.end(), c.begin(), c.end());
    return words;
}

TEST(EmitMatrix, HalfProducts) {
    std::mt19937 random(3);
    std::vector<uint16_t> a(kElements), b(kElements);
    std::vector<uint32_t> c(kElements);
    for (uint32_t i = 0; i < kElements; ++i) {
        a[i] = FloatToHalf(static_cast<float>(random() % 4096) / 64 - 32);
        b[i] = FloatToHalf(static_cast<float>(random() % 2048) / 128 - 8);
        c[i] = std::bit_cast<uint32_t>(static_cast<float>(random() % 100));
    }
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        const ir::Kernel kernel = MulAddKernel(size, "f16", "f32", 2, 0);
        const Buffers buffers = {Words(a, b, c), std::vector<uint32_t>(kElements, 7)};
        ForEachCpu(kernel, buffers, [&](const Buffers& results) {
            for (uint32_t i = 0; i < kElements; ++i) {
                double sum = std::bit_cast<float>(c[i]);
                for (uint32_t k = 0; k < 16; ++k) {
                    sum += HalfToDouble(a[i / 16 * 16 + k]) * HalfToDouble(b[k * 16 + i % 16]);
                }
                ASSERT_NEAR(std::bit_cast<float>(results[1][i]), sum, 0.01) << i;
            }
        });
        if (HasFailure()) {
            return;
        }
    }
}

// Every product of two f16 is exact, so only the sums of f32 round; denormals count.
TEST(EmitMatrix, HalfProductsAreExact) {
    std::mt19937 random(8);
    std::vector<uint16_t> a(kElements), b(kElements);
    std::vector<uint32_t> c(kElements, 0);
    for (uint32_t i = 0; i < kElements; ++i) {
        // One product a sum, of numbers with all their bits, some of them denormals.
        const uint32_t row = i / 16;
        a[i] = i % 16 == row ? static_cast<uint16_t>(random() % 0x7c00) : 0;
        b[i] = static_cast<uint16_t>(random() % (row == 3 ? 0x400 : 0x7c00));
    }
    const ir::Kernel kernel = MulAddKernel(32, "f16", "f32", 2, 0);
    ForEachCpu(kernel, {Words(a, b, c), std::vector<uint32_t>(kElements, 7)},
               [&](const Buffers& results) {
                   for (uint32_t i = 0; i < kElements; ++i) {
                       const uint32_t row = i / 16;
                       const float product =
                           HalfToFloat(a[row * 16 + row]) * HalfToFloat(b[row * 16 + i % 16]);
                       ASSERT_EQ(std::bit_cast<float>(results[1][i]), product) << i;
                   }
               });
}

// Infinities, NaN and zeros of both signs meet each other and ordinary numbers.
TEST(EmitMatrix, SpecialNumbers) {
    constexpr std::array<uint16_t, 10> kNumbers = {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff,
                                                   0x0000, 0x8000, 0x3c00, 0xc501, 0x0001};
    std::vector<uint16_t> a(kElements, 0), b(kElements, 0);
    for (uint32_t i = 0; i < 16; ++i) {
        // Row i has a number and two of 1; column j a number beside them.
        a[i * 16] = kNumbers[i % kNumbers.size()];
        a[i * 16 + 1] = 0x3c00;
        b[i] = kNumbers[i % kNumbers.size()];
        b[16 + i] = i < 12 ? 0x3c00 : 0xfc00;
    }
    for (const bool bfloat : {false, true}) {
        auto number = [&](uint16_t bits) {
            return bfloat ? std::bit_cast<float>(uint32_t{bits} << 16) : HalfToFloat(bits);
        };
        if (bfloat) {
            for (std::vector<uint16_t>* matrix : {&a, &b}) {
                for (uint16_t& bits : *matrix) {
                    const float value = HalfToFloat(bits);
                    bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
                }
            }
        }
        const ir::Kernel kernel = MulAddKernel(32, bfloat ? "i16" : "f16", "f32", 2,
                                               bfloat ? uint64_t{ir::kMatrixBFloat16} : 0);
        ForEachCpu(
            kernel,
            {Words(a, b, std::vector<uint32_t>(kElements, 0)), std::vector<uint32_t>(kElements, 7)},
            [&](const Buffers& results) {
                for (uint32_t i = 0; i < kElements; ++i) {
                    float sum = 0;
                    for (uint32_t k = 0; k < 16; ++k) {
                        sum += number(a[i / 16 * 16 + k]) * number(b[k * 16 + i % 16]);
                    }
                    const auto result = std::bit_cast<float>(results[1][i]);
                    if (std::isnan(sum)) {
                        ASSERT_TRUE(std::isnan(result)) << i << ": " << result;
                    } else {
                        ASSERT_EQ(result, sum) << i;
                    }
                }
            });
    }
}

TEST(EmitMatrix, DenormalsAreKeptWhereAsked) {
    // 2^-130 * 2^20
    std::vector<uint16_t> a(kElements, 0), b(kElements, 0x4980);
    for (uint32_t i = 0; i < 16; ++i) {
        a[i * 16 + i] = 0x0008;
    }
    for (const uint64_t flag : {uint64_t{0}, uint64_t{ir::kMatrixKeepsDenormals}}) {
        const ir::Kernel kernel = MulAddKernel(32, "i16", "f32", 2, ir::kMatrixBFloat16 | flag);
        ForEachCpu(
            kernel,
            {Words(a, b, std::vector<uint32_t>(kElements, 0)), std::vector<uint32_t>(kElements, 7)},
            [&](const Buffers& results) {
                for (uint32_t i = 0; i < kElements; ++i) {
                    const auto result = std::bit_cast<float>(results[1][i]);
                    if (flag || result != 0) {
                        ASSERT_EQ(result, 0x1p-110f) << i;
                    }
                }
            });
    }
}

// Four sums in private memory gain two products each, which share their operands; then one more.
TEST(EmitMatrix, AccumulatorsThatShareOperands) {
    std::mt19937 random(9);
    constexpr uint32_t kOperands = 4;  // of A: (row, step); of B: (step, column)
    std::vector<uint16_t> a(kOperands * kElements), b(kOperands * kElements);
    for (size_t i = 0; i < a.size(); ++i) {
        a[i] = FloatToHalf(static_cast<float>(random() % 9) - 4);
        b[i] = FloatToHalf(static_cast<float>(random() % 7) - 3);
    }
    for (const uint32_t wanted : {0u, 1u, 2u, 3u}) {
        const uint32_t size = 32;
        const uint32_t count = kElements / size;
        std::string body;
        for (uint32_t i = 0; i < kOperands; ++i) {
            body += Load("a" + std::to_string(i) + "_", "f16", size, i * kElements * 2, 2) +
                    Load("b" + std::to_string(i) + "_", "f16", size,
                         (kOperands + i) * kElements * 2, 2);
        }
        for (uint32_t i = 0; i < 4 * count; ++i) {
            body += "%n" + std::to_string(i) + ":i32 = const " + std::to_string(i) + "\n";
        }
        body += "%none:f32 = const 0.0\n";
        for (uint32_t i = 0; i < 4 * count; ++i) {
            body += "store_local 0, %n" + std::to_string(i) + ", %none\n";
        }
        uint32_t made = 0;
        auto multiply = [&](uint32_t row, uint32_t column, uint32_t step) {
            const std::string id = std::to_string(made++);
            const uint32_t first = (row * 2 + column) * count;
            auto list = [&](const std::string& name) { return List(name, size); };
            for (uint32_t e = 0; e < count; ++e) {
                body += "%x" + id + "_" + std::to_string(e) + ":f32 = load_local 0, %n" +
                        std::to_string(first + e) + "\n";
            }
            body += List("y" + id + "_", size, "f32") + " = matrix_muladd 0, " +
                    list("a" + std::to_string(row * 2 + step) + "_") + ", " +
                    list("b" + std::to_string(step * 2 + column) + "_") + ", " +
                    list("x" + id + "_") + "\n";
            for (uint32_t e = 0; e < count; ++e) {
                body += "store_local 0, %n" + std::to_string(first + e) + ", %y" + id + "_" +
                        std::to_string(e) + "\n";
            }
        };
        for (uint32_t step = 0; step < 2; ++step) {
            for (uint32_t row = 0; row < 2; ++row) {
                for (uint32_t column = 0; column < 2; ++column) {
                    multiply(row, column, step);
                }
            }
        }
        multiply(1, 0, 0);
        for (uint32_t e = 0; e < count; ++e) {
            body += "%r" + std::to_string(e) + ":f32 = load_local 0, %n" +
                    std::to_string(wanted * count + e) + "\n";
        }
        const ir::Kernel kernel =
            MatrixKernel(size, body, 4, "local 0: f32[" + std::to_string(4 * count) + "]\n");
        EXPECT_EQ(FindMatrixAccumulators(kernel).mmas.size(), 9u);
        ForEachCpu(kernel, {Words(a, b, {}), std::vector<uint32_t>(kElements, 7)},
                   [&](const Buffers& results) {
                       for (uint32_t i = 0; i < kElements; ++i) {
                           float sum = 0;
                           for (uint32_t k = 0; k < 32; ++k) {
                               const size_t of_a = (wanted / 2 * 2 + k / 16) * kElements;
                               const size_t of_b = (k / 16 * 2 + wanted % 2) * kElements;
                               sum += HalfToFloat(a[of_a + i / 16 * 16 + k % 16]) *
                                      HalfToFloat(b[of_b + k % 16 * 16 + i % 16]) *
                                      (wanted == 2 && k < 16 ? 2.0f : 1.0f);
                           }
                           ASSERT_EQ(std::bit_cast<float>(results[1][i]), sum) << i;
                       }
                   });
    }
}

TEST(EmitMatrix, IntegerProducts) {
    std::mt19937 random(4);
    std::vector<uint8_t> a(kElements), b(kElements);
    std::vector<uint32_t> c(kElements);
    for (uint32_t i = 0; i < kElements; ++i) {
        a[i] = static_cast<uint8_t>(i < 16 ? 0x80 : i < 32 ? 0xff : random());
        b[i] = static_cast<uint8_t>(i % 16 == 0 ? 0x80 : i % 16 == 1 ? 0xff : random());
        c[i] = i % 3 == 0   ? 0x7fffff00u
               : i % 3 == 1 ? 0xffffff00u
                            : static_cast<uint32_t>(random());
    }
    auto value = [](uint32_t bits, bool is_signed) {
        return is_signed ? int64_t{static_cast<int8_t>(bits)} : int64_t{bits};
    };
    for (uint32_t flags = 0; flags < 16; ++flags) {
        const uint32_t size = 8u << flags % 4;
        const ir::Kernel kernel = MulAddKernel(size, "i8", "i32", 1, flags);
        const Buffers buffers = {Words(a, b, c), std::vector<uint32_t>(kElements, 7)};
        ForEachCpu(kernel, buffers, [&](const Buffers& results) {
            for (uint32_t i = 0; i < kElements; ++i) {
                const bool is_signed = flags & ir::kMatrixSignedC;
                int64_t sum = is_signed ? int64_t{static_cast<int32_t>(c[i])} : int64_t{c[i]};
                for (uint32_t k = 0; k < 16; ++k) {
                    sum += value(a[i / 16 * 16 + k], flags & ir::kMatrixSignedA) *
                           value(b[k * 16 + i % 16], flags & ir::kMatrixSignedB);
                }
                if (flags & ir::kMatrixSaturating) {
                    sum = is_signed ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX)
                                    : std::clamp<int64_t>(sum, 0, UINT32_MAX);
                }
                ASSERT_EQ(results[1][i], static_cast<uint32_t>(sum)) << i << ", flags " << flags;
            }
        });
        if (HasFailure()) {
            return;
        }
    }
}

// Sums in an array in private memory: the first product may be made in place; the second is stored
// over what the third begins with, and read in between.
TEST(EmitMatrix, SumsInPrivateMemory) {
    std::mt19937 random(6);
    std::vector<uint16_t> a(kElements), b(kElements);
    std::vector<uint32_t> c(kElements);
    for (uint32_t i = 0; i < kElements; ++i) {
        a[i] = FloatToHalf(static_cast<float>(random() % 9) - 4);
        b[i] = FloatToHalf(static_cast<float>(random() % 7) - 3);
        c[i] = std::bit_cast<uint32_t>(static_cast<float>(random() % 100));
    }
    std::vector<float> product(kElements);
    for (uint32_t i = 0; i < kElements; ++i) {
        for (uint32_t k = 0; k < 16; ++k) {
            product[i] += HalfToFloat(a[i / 16 * 16 + k]) * HalfToFloat(b[k * 16 + i % 16]);
        }
    }
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        const uint32_t count = kElements / size;
        std::string body = Load("a", "f16", size, 0, 2) + Load("b", "f16", size, kElements * 2, 2) +
                           Load("c", "f32", size, kElements * 4, 4);
        auto index = [&](uint32_t i) { return "%n" + std::to_string(i); };
        for (uint32_t i = 0; i < 2 * count; ++i) {
            body += index(i) + ":i32 = const " + std::to_string(i) + "\n";
        }
        auto load = [&](const std::string& name, uint32_t first) {
            for (uint32_t e = 0; e < count; ++e) {
                body += "%" + name + std::to_string(e) + ":f32 = load_local 0, " +
                        index(first + e) + "\n";
            }
        };
        auto store = [&](const std::string& name, uint32_t first) {
            for (uint32_t e = 0; e < count; ++e) {
                body +=
                    "store_local 0, " + index(first + e) + ", %" + name + std::to_string(e) + "\n";
            }
        };
        auto multiply = [&](const std::string& result, const std::string& sum) {
            body += List(result, size, "f32") + " = matrix_muladd 0, " + List("a", size) + ", " +
                    List("b", size) + ", " + List(sum, size) + "\n";
        };
        store("c", 0);
        store("c", count);
        load("x", 0);
        multiply("y", "x");  // c + p
        store("y", 0);
        load("z", count);
        multiply("u", "z");  // c + p
        load("v", count);    // c, still
        multiply("w", "u");  // c + 2 p
        store("w", count);
        load("s", 0);
        load("t", count);
        for (uint32_t e = 0; e < count; ++e) {
            const std::string n = std::to_string(e);
            body += "%q" + n + ":f32 = fadd %s" + n + ", %t" + n + "\n%r" + n + ":f32 = fadd %q" +
                    n + ", %v" + n + "\n";
        }
        const ir::Kernel kernel =
            MatrixKernel(size, body, 4, "local 0: f32[" + std::to_string(2 * count) + "]\n");
        const Buffers buffers = {Words(a, b, c), std::vector<uint32_t>(kElements, 7)};
        EXPECT_EQ(FindMatrixAccumulators(kernel).mmas.size(), 1u);
        ForEachCpu(kernel, buffers, [&](const Buffers& results) {
            for (uint32_t i = 0; i < kElements; ++i) {
                ASSERT_EQ(std::bit_cast<float>(results[1][i]),
                          3 * std::bit_cast<float>(c[i]) + 3 * product[i])
                    << i;
            }
        });
        if (HasFailure()) {
            return;
        }
    }
}

// Two chains of products, one between the other's, and a sum that is looked at before it grows.
TEST(EmitMatrix, AccumulatorsThatGoFromProductToProduct) {
    std::mt19937 random(12);
    std::vector<uint16_t> a(kElements), b(kElements);
    std::vector<uint32_t> c(kElements);
    for (uint32_t i = 0; i < kElements; ++i) {
        a[i] = FloatToHalf(static_cast<float>(random() % 15) - 7);
        b[i] = FloatToHalf(static_cast<float>(random() % 31) - 15);
        c[i] = std::bit_cast<uint32_t>(static_cast<float>(random() % 100));
    }
    auto product = [](const std::vector<uint16_t>& x, const std::vector<uint16_t>& y, uint32_t i) {
        float sum = 0;
        for (uint32_t k = 0; k < 16; ++k) {
            sum += HalfToFloat(x[i / 16 * 16 + k]) * HalfToFloat(y[k * 16 + i % 16]);
        }
        return sum;
    };
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        std::string body = Load("a", "f16", size, 0, 2) + Load("b", "f16", size, kElements * 2, 2) +
                           Load("c", "f32", size, kElements * 4, 4);
        const char* const products[][4] = {{"x", "a", "b", "c"},  {"y", "b", "a", "c"},
                                           {"x_", "a", "b", "x"}, {"v", "b", "b", "c"},
                                           {"y_", "b", "a", "y"}, {"x__", "a", "a", "x_"},
                                           {"v_", "a", "a", "v"}};
        for (const auto& [to, left, right, from] : products) {
            body += List(to, size, "f32") + " = matrix_muladd 0, " + List(left, size) + ", " +
                    List(right, size) + ", " + List(from, size) + "\n";
        }
        for (uint32_t e = 0; e < kElements / size; ++e) {
            const std::string n = std::to_string(e);
            body += "%s" + n + ":f32 = fadd %x__" + n + ", %y_" + n + "\n%t" + n +
                    ":f32 = fadd %v" + n + ", %v_" + n + "\n%r" + n + ":f32 = fadd %s" + n +
                    ", %t" + n + "\n";
        }
        const ir::Kernel kernel = MatrixKernel(size, body, 4);
        EXPECT_EQ(FindMatrixAccumulators(kernel).chains.size(), 5u);
        ForEachCpu(kernel, {Words(a, b, c), std::vector<uint32_t>(kElements, 7)},
                   [&](const Buffers& results) {
                       for (uint32_t i = 0; i < kElements; ++i) {
                           const float expected = 4 * std::bit_cast<float>(c[i]) +
                                                  2 * product(a, b, i) + 2 * product(b, a, i) +
                                                  2 * product(a, a, i) + 2 * product(b, b, i);
                           ASSERT_EQ(std::bit_cast<float>(results[1][i]), expected) << i;
                       }
                   });
        if (HasFailure()) {
            return;
        }
    }
}

TEST(EmitMatrix, Transposed) {
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        const ir::Kernel kernel =
            MatrixKernel(size,
                         Load("a", "i32", size, 0, 4) + List("r", size, "i32") +
                             " = matrix_transpose " + List("a", size) + "\n",
                         4);
        ForEachCpu(kernel, {Counting(kElements), std::vector<uint32_t>(kElements, 7)},
                   [&](const Buffers& results) {
                       for (uint32_t i = 0; i < kElements; ++i) {
                           ASSERT_EQ(results[1][i], 100 + i % 16 * 16 + i / 16) << i;
                       }
                   });
    }
}

}  // namespace
}  // namespace fornax::kernel
