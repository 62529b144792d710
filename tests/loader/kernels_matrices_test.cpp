// VK_KHR_cooperative_matrix through the loader: products of every kind that is listed, in every
// layout and subgroup size, and what else may be done with a matrix.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string_view>

#include "base/half.h"
#include "tests/loader/matrix_features.h"
#include "tests/loader/shaders/matrices_bf16.spv.h"
#include "tests/loader/shaders/matrices_f16.spv.h"
#include "tests/loader/shaders/matrices_f32.spv.h"
#include "tests/loader/shaders/matrices_s8_s8.spv.h"
#include "tests/loader/shaders/matrices_s8_u8.spv.h"
#include "tests/loader/shaders/matrices_saturating.spv.h"
#include "tests/loader/shaders/matrices_u8_s8.spv.h"
#include "tests/loader/shaders/matrices_u8_u8.spv.h"
#include "tests/loader/shaders/matrices_u8_u8_u32.spv.h"
#include "tests/loader/shaders/matrices_u_saturating.spv.h"
#include "tests/loader/shaders/matrix_forms.spv.h"
#include "tests/loader/shaders/matrix_rounds.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

constexpr uint32_t kRows = 32;
constexpr uint32_t kColumns = 48;
constexpr uint32_t kProducts = 64;

uint16_t Half(float value) {
    return FloatToHalf(value);
}
float Float(float value) {
    return value;
}
uint16_t Bfloat(float value) {
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
}

class KernelsMatricesTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_3;
        more_extensions_ = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                            VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME};
        more_features_ = features_.first();
        VulkanTest::SetUp();
    }

    MatrixFeatures features_;

    // Runs one of the variants of matrices.comp over matrices whose elements the functions give by
    // row and column, and calls `check` with row, column and the result's bits.
    template <typename Element>
    struct Matrices {
        std::function<Element(uint32_t, uint32_t)> a, b;
        std::function<uint32_t(uint32_t, uint32_t)> c;
        std::function<void(uint32_t, uint32_t, uint32_t)> check;
    };
    template <typename Element>
    void RunMatrices(std::span<const uint32_t> spirv,
                     uint32_t subgroup_size,
                     uint32_t layouts,
                     const Matrices<Element>& matrices) {
        const bool column_major[] = {(layouts & 1) != 0, (layouts & 2) != 0, (layouts & 4) != 0};
        const uint32_t rows[] = {kRows, kProducts, kRows};
        const uint32_t columns[] = {kProducts, kColumns, kColumns};
        // Rows and columns begin at multiples of 16 bytes.
        const uint32_t pad = 16 / sizeof(Element);
        uint32_t strides[3];
        for (uint32_t i = 0; i < 3; ++i) {
            strides[i] = (column_major[i] ? rows[i] : columns[i]) + pad;
        }
        auto place = [&](uint32_t which, uint32_t row, uint32_t column) {
            return column_major[which] ? column * strides[which] + row
                                       : row * strides[which] + column;
        };
        std::vector<TestBuffer> buffers;
        for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t which = std::min(i, 2u);
            const uint32_t count =
                strides[which] * (column_major[which] ? columns[which] : rows[which]);
            const uint32_t bytes = count * (i < 2 ? static_cast<uint32_t>(sizeof(Element)) : 4);
            buffers.push_back(MakeBuffer(bytes / 4));
            std::ranges::fill(buffers[i].span(), 0xdeadbeef);
        }
        for (uint32_t i = 0; i < 2; ++i) {
            for (uint32_t row = 0; row < rows[i]; ++row) {
                for (uint32_t column = 0; column < columns[i]; ++column) {
                    reinterpret_cast<Element*>(buffers[i].words)[place(i, row, column)] =
                        (i == 0 ? matrices.a : matrices.b)(row, column);
                }
            }
        }
        for (uint32_t row = 0; row < kRows; ++row) {
            for (uint32_t column = 0; column < kColumns; ++column) {
                buffers[2].words[place(2, row, column)] = matrices.c(row, column);
            }
        }
        const uint32_t values[] = {subgroup_size, column_major[0], column_major[1],
                                   column_major[2]};
        const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}, {3, 12, 4}};
        const VkSpecializationInfo specialization{4, entries, sizeof(values), values};
        required_subgroup_size_ = subgroup_size;
        const TestPipeline pipeline =
            MakePipeline(spirv, std::span<const TestBuffer>(buffers), &specialization);
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        const uint32_t sizes[] = {strides[0], strides[1], strides[2], kProducts};
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(sizes),
                           sizes);
        vkCmdDispatch(commands, kColumns / 16, kRows / 16, 1);
        Barrier(commands);
        Run(commands);
        for (uint32_t row = 0; row < kRows; ++row) {
            for (uint32_t column = 0; column < kColumns; ++column) {
                matrices.check(row, column, buffers[3].words[place(2, row, column)]);
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    }
    template <typename Element>
    void RunAll(std::span<const uint32_t> spirv, const Matrices<Element>& matrices) {
        for (const uint32_t size : {8u, 16u, 32u, 64u}) {
            for (const uint32_t layouts : {0u, 3u, 5u, 6u}) {
                SCOPED_TRACE(testing::Message()
                             << "subgroups of " << size << ", layouts " << layouts);
                RunMatrices(spirv, size, layouts, matrices);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }

    // Sums of small integers, which are exact in any order.
    template <typename Element>
    void RunSmallNumbers(std::span<const uint32_t> spirv, Element (*narrow)(float)) {
        auto a = [](uint32_t row, uint32_t k) {
            return static_cast<float>((row * 7 + k * 3) % 31) - 15;
        };
        auto b = [](uint32_t k, uint32_t column) {
            return (static_cast<float>((k * 5 + column * 11) % 29) - 14) / 4;
        };
        auto c = [](uint32_t row, uint32_t column) {
            return static_cast<float>(row * 100 + column);
        };
        RunAll<Element>(
            spirv,
            {[=](uint32_t row, uint32_t k) { return narrow(a(row, k)); },
             [=](uint32_t k, uint32_t column) { return narrow(b(k, column)); },
             [=](uint32_t row, uint32_t column) { return std::bit_cast<uint32_t>(c(row, column)); },
             [=](uint32_t row, uint32_t column, uint32_t bits) {
                 float expected = c(row, column);
                 for (uint32_t k = 0; k < kProducts; ++k) {
                     expected += a(row, k) * b(k, column);
                 }
                 ASSERT_EQ(std::bit_cast<float>(bits), expected) << row << ", " << column;
             }});
    }

    // Any bits at all: against sums in double precision, with the error that f32 may leave.
    void RunAnyNumbers(std::span<const uint32_t> spirv, float (*wide)(uint16_t)) {
        std::mt19937 random(5);
        std::vector<uint16_t> a(kRows * kProducts), b(kProducts * kColumns);
        std::vector<uint32_t> c(kRows * kColumns);
        // Rows of their own kind: moderate numbers, denormals, with one infinity, with a NaN, the
        // greatest.
        auto element = [&](uint32_t kind) -> uint16_t {
            const auto bits = static_cast<uint16_t>(random());
            switch (kind % 4) {
                case 0:
                    return wide == &Narrowest ? bits & 0x83ff : bits & 0xbfff;
                case 1:
                    return static_cast<uint16_t>((bits & 0x8fff) | 0x3000);
                default:
                    return static_cast<uint16_t>((bits & 0x83ff) | 0x3c00);
            }
        };
        for (uint32_t i = 0; i < a.size(); ++i) {
            a[i] = element(i / kProducts);
        }
        for (uint32_t i = 0; i < b.size(); ++i) {
            b[i] = element(i % kColumns + 1);
        }
        for (uint32_t& value : c) {
            value = std::bit_cast<uint32_t>(static_cast<float>(random() % 1000) / 64);
        }
        const uint16_t infinity = wide == &FromBfloat ? 0x7f80 : 0x7c00;
        a[5 * kProducts + 3] = infinity;
        a[6 * kProducts + 60] = infinity | 1;  // not a number
        b[17 * kColumns + 9] = infinity | 0x8000;
        a[7 * kProducts + 17] = 0;  // times infinity
        c[8 * kColumns + 2] = 0x7f800000;
        c[9 * kColumns + 3] = 0x7fc00000;
        RunAll<uint16_t>(
            spirv,
            {[&](uint32_t row, uint32_t k) { return a[row * kProducts + k]; },
             [&](uint32_t k, uint32_t column) { return b[k * kColumns + column]; },
             [&](uint32_t row, uint32_t column) { return c[row * kColumns + column]; },
             [&](uint32_t row, uint32_t column, uint32_t bits) {
                 double expected = std::bit_cast<float>(c[row * kColumns + column]);
                 double magnitude = std::abs(expected);
                 for (uint32_t k = 0; k < kProducts; ++k) {
                     const double product =
                         double{wide(a[row * kProducts + k])} * wide(b[k * kColumns + column]);
                     expected += product;
                     magnitude += std::abs(product);
                 }
                 const float result = std::bit_cast<float>(bits);
                 if (!std::isfinite(expected)) {
                     ASSERT_EQ(std::isnan(result), std::isnan(expected)) << row << ", " << column;
                     ASSERT_TRUE(std::isnan(result) || result == expected) << row << ", " << column;
                     return;
                 }
                 ASSERT_NEAR(result, expected, magnitude * 0x1p-17 + 0x1p-120)
                     << row << ", " << column;
             }});
    }
    static float Narrowest(uint16_t bits) { return HalfToFloat(bits); }
    static float FromBfloat(uint16_t bits) {
        return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }

    void RunIntegers(std::span<const uint32_t> spirv,
                     bool signed_a,
                     bool signed_b,
                     bool signed_c,
                     bool saturating) {
        auto value = [](uint8_t bits, bool is_signed) {
            return is_signed ? int64_t{static_cast<int8_t>(bits)} : int64_t{bits};
        };
        auto a = [](uint32_t row, uint32_t k) {
            return static_cast<uint8_t>(row == 3 ? 0x80 : row == 4 ? 0xff : row * 37 + k * 101);
        };
        auto b = [](uint32_t k, uint32_t column) {
            return static_cast<uint8_t>(column == 3   ? 0x80
                                        : column == 4 ? 0xff
                                                      : k * 71 + column * 13);
        };
        auto c = [](uint32_t row, uint32_t column) {
            constexpr uint32_t kEdges[] = {0, 5, 0x7ffffff0, 0x80000010, 0xfffffff0, 1000000};
            return kEdges[(row * 5 + column) % 6];
        };
        RunAll<uint8_t>(spirv,
                        {a, b, c, [=](uint32_t row, uint32_t column, uint32_t bits) {
                             const uint32_t start = c(row, column);
                             int64_t sum =
                                 signed_c ? int64_t{static_cast<int32_t>(start)} : int64_t{start};
                             for (uint32_t k = 0; k < kProducts; ++k) {
                                 sum += value(a(row, k), signed_a) * value(b(k, column), signed_b);
                                 // Each product of 16 x 16 matrices saturates by itself.
                                 if (saturating && k % 16 == 15) {
                                     sum = signed_c ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX)
                                                    : std::clamp<int64_t>(sum, 0, UINT32_MAX);
                                 }
                             }
                             ASSERT_EQ(bits, static_cast<uint32_t>(sum)) << row << ", " << column;
                         }});
    }
};

TEST_F(KernelsMatricesTest, HalfProductsOfSmallNumbers) {
    RunSmallNumbers(spirv::kMatricesF16, &Half);
}

TEST_F(KernelsMatricesTest, BfloatProductsOfSmallNumbers) {
    RunSmallNumbers(spirv::kMatricesBf16, &Bfloat);
}

TEST_F(KernelsMatricesTest, FloatProductsOfSmallNumbers) {
    RunSmallNumbers(spirv::kMatricesF32, &Float);
}

// All 24 bits of each factor count; numbers are of both signs and of magnitudes far apart, with
// infinities, a NaN and denormals among them.
TEST_F(KernelsMatricesTest, FloatProductsOfAnyNumbers) {
    std::mt19937 random(5);
    std::vector<float> a(kRows * kProducts), b(kProducts * kColumns), c(kRows * kColumns);
    const auto number = [&](int least) {
        const auto fraction = static_cast<float>(static_cast<int32_t>(random() << 1) >> 8);
        return std::ldexp(fraction, static_cast<int>(random() % 40) + least);
    };
    for (size_t i = 0; i < a.size(); ++i) {
        // A row of denormals, which B makes ordinary numbers.
        a[i] = number(i / kProducts == 11 ? -165 : -40);
    }
    std::ranges::generate(b, [&] { return number(-25); });
    std::ranges::generate(c, [&] { return number(-40); });
    const float infinity = std::numeric_limits<float>::infinity();
    a[5 * kProducts + 3] = infinity;
    a[6 * kProducts + 60] = std::numeric_limits<float>::quiet_NaN();
    b[17 * kColumns + 9] = -infinity;
    a[7 * kProducts + 17] = 0;  // times infinity
    c[8 * kColumns + 2] = infinity;
    RunAll<float>(
        spirv::kMatricesF32,
        {[&](uint32_t row, uint32_t k) { return a[row * kProducts + k]; },
         [&](uint32_t k, uint32_t column) { return b[k * kColumns + column]; },
         [&](uint32_t row, uint32_t column) {
             return std::bit_cast<uint32_t>(c[row * kColumns + column]);
         },
         [&](uint32_t row, uint32_t column, uint32_t bits) {
             double expected = c[row * kColumns + column];
             double magnitude = std::abs(expected);
             for (uint32_t k = 0; k < kProducts; ++k) {
                 const double product = double{a[row * kProducts + k]} * b[k * kColumns + column];
                 expected += product;
                 magnitude += std::abs(product);
             }
             const float result = std::bit_cast<float>(bits);
             if (!std::isfinite(expected)) {
                 ASSERT_EQ(std::isnan(result), std::isnan(expected)) << row << ", " << column;
                 ASSERT_TRUE(std::isnan(result) || result == expected) << row << ", " << column;
                 return;
             }
             // Each of 64 sums is rounded by half a unit, its product likewise.
             ASSERT_NEAR(result, expected, magnitude * 0x1p-18) << row << ", " << column;
         }});
}

TEST_F(KernelsMatricesTest, HalfProductsOfAnyNumbers) {
    RunAnyNumbers(spirv::kMatricesF16, &Narrowest);
}

TEST_F(KernelsMatricesTest, BfloatProductsOfAnyNumbers) {
    RunAnyNumbers(spirv::kMatricesBf16, &FromBfloat);
}

TEST_F(KernelsMatricesTest, IntegerProducts) {
    RunIntegers(spirv::kMatricesS8S8, true, true, true, false);
    RunIntegers(spirv::kMatricesS8U8, true, false, true, false);
    RunIntegers(spirv::kMatricesU8S8, false, true, true, false);
    RunIntegers(spirv::kMatricesU8U8, false, false, true, false);
    RunIntegers(spirv::kMatricesU8U8U32, false, false, false, false);
}

TEST_F(KernelsMatricesTest, SaturatingProducts) {
    RunIntegers(spirv::kMatricesSaturating, true, false, true, true);
    RunIntegers(spirv::kMatricesUSaturating, false, false, false, true);
}

TEST_F(KernelsMatricesTest, TilesAndElements) {
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        SCOPED_TRACE(testing::Message() << "subgroups of " << size);
        constexpr uint32_t kSteps = 5;
        constexpr uint32_t kLength = kSteps * 32;
        std::array buffers = {MakeBuffer(32 * kLength / 2), MakeBuffer(64 * kLength / 2),
                              MakeBuffer(32 * 64), MakeBuffer(4 * 256), MakeBuffer(size * 4)};
        auto a = [](uint32_t row, uint32_t k) {
            return static_cast<float>((row * 3 + k * 7) % 17) - 8;
        };
        auto b = [](uint32_t k, uint32_t column) {
            return static_cast<float>((k + column * 5) % 13) - 6;
        };
        auto* halves_a = reinterpret_cast<uint16_t*>(buffers[0].words);
        auto* halves_b = reinterpret_cast<uint16_t*>(buffers[1].words);
        for (uint32_t k = 0; k < kLength; ++k) {
            for (uint32_t row = 0; row < 32; ++row) {
                halves_a[row * kLength + k] = Half(a(row, k));
            }
            for (uint32_t column = 0; column < 64; ++column) {
                halves_b[column * kLength + k] = Half(b(k, column));
            }
        }
        const uint32_t values[] = {size * 4, size * 4, kSteps};
        const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}, {2, 8, 4}};
        const VkSpecializationInfo specialization{3, entries, sizeof(values), values};
        required_subgroup_size_ = size;
        Run(MakePipeline(spirv::kMatrixForms, buffers, &specialization), 1);
        for (uint32_t row = 0; row < 32; ++row) {
            for (uint32_t column = 0; column < 64; ++column) {
                float sum = 0;
                for (uint32_t k = 0; k < kLength; ++k) {
                    sum += a(row, k) * b(k, column);
                }
                const float expected = 3 * sum + 1.5f;
                ASSERT_EQ(buffers[2].floats()[row * 64 + column], expected)
                    << row << ", " << column;
                if (column % 32 >= 16) {
                    continue;
                }
                const uint32_t subgroup = row / 16 + column / 32 * 2;
                ASSERT_EQ(buffers[3].words[subgroup * 256 + row % 16 * 16 + column % 16],
                          static_cast<uint32_t>(static_cast<int32_t>(expected)))
                    << row << ", " << column;
            }
        }
        for (const uint32_t length : buffers[4].span()) {
            ASSERT_EQ(length, 256 / size);
        }
    }
}

// What large products take: tiles in workgroup memory for one iteration or several at once, numbers
// of iterations that are not divisible, and infinities.
TEST_F(KernelsMatricesTest, IterationsOfLargeProducts) {
    constexpr uint32_t kSide = 128;
    for (const uint32_t depth : {16u, 32u}) {
        for (const uint32_t rounds : {1u, 2u, 7u}) {
            SCOPED_TRACE(testing::Message() << rounds << " rounds of " << depth);
            const uint32_t length = rounds * depth;
            std::array buffers = {MakeBuffer(kSide * length / 2), MakeBuffer(kSide * length / 2),
                                  MakeBuffer(kSide * kSide), MakeBuffer(1)};
            const float infinity = std::numeric_limits<float>::infinity();
            auto a = [&](uint32_t row, uint32_t k) {
                if (row == 3 && k == length - 1) {
                    return infinity;
                }
                return static_cast<float>((row * 3 + k * 7) % 17) - 8;
            };
            auto b = [&](uint32_t k, uint32_t column) {
                if (column == 70 && k == 1) {
                    return -infinity;
                }
                // The value uses all bits that f16 has.
                return (static_cast<float>((k + column * 5) % 1023) + 0.5f) / 8;
            };
            auto* halves_a = reinterpret_cast<uint16_t*>(buffers[0].words);
            auto* halves_b = reinterpret_cast<uint16_t*>(buffers[1].words);
            for (uint32_t k = 0; k < length; ++k) {
                for (uint32_t i = 0; i < kSide; ++i) {
                    halves_a[i * length + k] = std::isinf(a(i, k)) ? 0x7c00 : Half(a(i, k));
                    halves_b[i * length + k] = std::isinf(b(k, i)) ? 0xfc00 : Half(b(k, i));
                }
            }
            buffers[3].words[0] = rounds;
            const uint32_t values[] = {kSide, depth};
            const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}};
            const VkSpecializationInfo specialization{2, entries, sizeof(values), values};
            required_subgroup_size_ = 32;
            Run(MakePipeline(spirv::kMatrixRounds, buffers, &specialization), 1);
            for (uint32_t row = 0; row < kSide; ++row) {
                for (uint32_t column = 0; column < kSide; ++column) {
                    float sum = 0;  // exact
                    for (uint32_t k = 0; k < length; ++k) {
                        sum += a(row, k) * b(k, column);
                    }
                    const float got = buffers[2].floats()[column * kSide + row];
                    if (std::isnan(sum)) {
                        ASSERT_TRUE(std::isnan(got)) << row << ", " << column << ": " << got;
                    } else {
                        ASSERT_EQ(got, sum) << row << ", " << column;
                    }
                }
            }
        }
    }
}

TEST_F(KernelsMatricesTest, TheFirstIsOfHalves) {
    uint32_t count = 0;
    ASSERT_VK(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_, &count, nullptr));
    ASSERT_GE(count, 2u);
    std::vector<VkCooperativeMatrixPropertiesKHR> matrices(
        count, {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
    uint32_t fewer = count - 1;
    EXPECT_EQ(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_, &fewer, matrices.data()),
              VK_INCOMPLETE);
    EXPECT_EQ(fewer, count - 1);
    ASSERT_VK(
        vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(physical_, &count, matrices.data()));
    EXPECT_EQ(matrices[0].AType, VK_COMPONENT_TYPE_FLOAT16_KHR);
    EXPECT_EQ(matrices[0].ResultType, VK_COMPONENT_TYPE_FLOAT32_KHR);
    // A described machine has those that its description names.
    VkPhysicalDeviceProperties device;
    vkGetPhysicalDeviceProperties(physical_, &device);
    const bool is_described =
        std::string_view(device.deviceName).find("modelled") != std::string::npos;
    EXPECT_EQ(std::ranges::count_if(matrices,
                                    [](const auto& matrix) {
                                        return matrix.AType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                                               matrix.BType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
                                               matrix.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
                                    }),
              is_described ? 0 : 1);
    for (const auto& matrix : matrices) {
        EXPECT_EQ(matrix.MSize * matrix.NSize * matrix.KSize, 16u * 16 * 16);
        EXPECT_EQ(matrix.scope, VK_SCOPE_SUBGROUP_KHR);
        EXPECT_EQ(matrix.CType, matrix.ResultType);
    }
    VkPhysicalDeviceCooperativeMatrixPropertiesKHR stages{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = &stages};
    vkGetPhysicalDeviceProperties2(physical_, &properties);
    EXPECT_EQ(stages.cooperativeMatrixSupportedStages, VK_SHADER_STAGE_COMPUTE_BIT);
}

}  // namespace
}  // namespace fornax::test
