// Products whose operands lie in workgroup memory, where subgroups share them: native code against
// sums that are computed here.
#include <gtest/gtest.h>
#include <llvm/IR/Module.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/half.h"
#include "compiler/kernel/analysis/matrix_shared_operands.h"
#include "compiler/kernel/codegen/matrix_vectors.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/codegen/two_buffer_kernel.h"
#include "compiler/kernel/ir/matrix.h"
#include "compiler/kernel/ir/text.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kElements = ir::kMatrixElements;
constexpr uint32_t kLineBytes = 64;  // two matrices side by side
constexpr uint32_t kHalfBytes = 1024;
constexpr uint32_t kSharedBytes = 2 * kHalfBytes;

// Four subgroups copy two matrices A and two B into workgroup memory; each adds the product of one
// A and one B up twice, and once more with `again` behind a barrier.
enum class Writes : uint8_t { kNothing, kBehindAll, kBothA, kWhoKnowsWhere };
struct Choice {
    uint32_t size = 32;                // of a subgroup
    bool bfloat = false;               // or f16
    bool columns = false;              // B lies column by column
    Writes writes = Writes::kNothing;  // to workgroup memory, between the barriers
    uint32_t iterations = 1;           // of a loop around it all, with matrices of its own each
};

ir::Kernel SharedKernel(const Choice& choice) {
    const std::string type = choice.bfloat ? "i16" : "f16";
    const uint32_t size = choice.size;
    const uint32_t count = kElements / size;
    auto number = [](uint32_t value) { return std::to_string(value); };
    std::string text = "kernel \"test\" workgroup_size(" + number(4 * size) +
                       ", 1, 1) subgroup_size(" + number(size) + ") shared(" +
                       number(kSharedBytes + kHalfBytes) + R"() push_constants(4) {
binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
binding 1: storage_buffer set(0) binding(1) count(1) offset(16)
local 0: f32[)" + number(count) +
                       R"(]
body {
    %zero:i32 = const 0
    %in:buffer = buffer 0, %zero
    %out:buffer = buffer 1, %zero
    %index:i32 = builtin local_index
    %two:i32 = const 2
    %one:i32 = const 1
    %four:i32 = const 4
    %five:i32 = const 5
    %six:i32 = const 6
    %ten:i32 = const 10
    %fifteen:i32 = const 15
    %float0:f32 = const 0.0
    %word:i32 = shl %index, %two
    %lane:i32 = builtin subgroup_lane
    %group:i32 = builtin subgroup_id
    %half:i32 = const )" +
                       number(kHalfBytes) + R"(
    %odd:i32 = and %group, %one
    %upper:i32 = lshr %group, %one
    %column:i32 = and %lane, %fifteen
    %line:i32 = lshr %lane, %four
    %to_column:i32 = shl %column, %one
    %to_line:i32 = shl %line, %six
    %in_matrix:i32 = iadd %to_column, %to_line
    %which_a:i32 = shl %odd, %five
    %which_b:i32 = shl %upper, %five
    %at_a:i32 = iadd %in_matrix, %which_a
    %at_b0:i32 = iadd %in_matrix, %which_b
    %at_b:i32 = iadd %at_b0, %half
)";
    for (uint32_t e = 0; e < count; ++e) {
        text += "%n" + number(e) + ":i32 = const " + number(e) + "\n%e" + number(e) +
                ":i32 = const " + number(e * size / 16 * kLineBytes + e * size % 16 * 2) +
                "\nstore_local 0, %n" + number(e) + ", %float0\n";
    }
    const bool loop = choice.iterations > 1;
    if (loop) {
        text += "%bytes:i32 = const " + number(kSharedBytes) + "\n%all:i32 = const " +
                number(choice.iterations * kSharedBytes) +
                "\nloop @0 (%iteration:i32 = %zero) {\n%more:bool = ult %iteration, %all\n"
                "if %more {\nyield\n} else {\nexit @0\n}\n";
    }
    for (uint32_t i = 0; i < kSharedBytes / (16 * size); ++i) {
        const std::string id = "c" + number(i);
        text += "%" + id + "_n:i32 = const " + number(i * 16 * size) + "\n%" + id +
                "_at:i32 = iadd %word, %" + id + "_n\n%" + id + "_in:i32 = iadd %" + id + "_at, %" +
                (loop ? "iteration" : "zero") + "\n%" + id + ":i32 = load_buffer %in, %" + id +
                "_in align(4)\nstore_shared %" + id + "_at, %" + id + " align(4)\n";
    }
    auto list = [&](const std::string& name, const char* of = nullptr) {
        std::string all;
        for (uint32_t e = 0; e < count; ++e) {
            all += (e ? ", %" : "%") + name + number(e);
            if (of) {
                all += std::string(":") + of;
            }
        }
        return all;
    };
    for (uint32_t round = 0; round < 2; ++round) {
        const std::string id = number(round);
        text += "barrier\n";
        if (choice.writes != Writes::kNothing) {
            const bool behind = choice.writes == Writes::kBehindAll;
            const bool known = choice.writes != Writes::kWhoKnowsWhere;
            text += "%w" + id + ":i32 = load_shared %word align(4)\n%f" + id + ":i32 = const " +
                    number(behind ? kSharedBytes : 0) + "\n%g" + id + ":i32 = and %w" + id +
                    ", %zero\n%h" + id + ":i32 = iadd %word, %" + (known ? "f" : "g") + id +
                    "\nstore_shared %h" + id + ", %w" + id + " align(4)\n";
        }
        for (const std::string name : {"a", "b"}) {
            for (uint32_t e = 0; e < count; ++e) {
                const std::string at = name + id + "_to" + number(e);
                text += "%" + at + ":i32 = iadd %at_" + name + ", %e" + number(e) + "\n%" + name +
                        id + "_" + number(e) + ":" + type + " = load_shared %" + at + " align(2)\n";
            }
        }
        std::string b = "b" + id + "_";
        if (choice.columns) {
            text += list("t" + id + "_", type.c_str()) + " = matrix_transpose " + list(b) + "\n";
            b = "t" + id + "_";
        }
        for (uint32_t twice = 0; twice < 2; ++twice) {
            const std::string sum = "s" + id + number(twice) + "_";
            const std::string result = "p" + id + number(twice) + "_";
            for (uint32_t e = 0; e < count; ++e) {
                text += "%" + sum + number(e) + ":f32 = load_local 0, %n" + number(e) + "\n";
            }
            text += list(result, "f32") + " = matrix_muladd " +
                    number(choice.bfloat ? uint32_t{ir::kMatrixBFloat16} : 0) + ", " +
                    list("a" + id + "_") + ", " + list(b) + ", " + list(sum) + "\n";
            for (uint32_t e = 0; e < count; ++e) {
                text += "store_local 0, %n" + number(e) + ", %" + result + number(e) + "\n";
            }
        }
    }
    if (loop) {
        text +=
            "barrier\ncontinue @0\n} continuing () {\n%next:i32 = iadd %iteration, %bytes\n"
            "next %next\n}\n";
    }
    text +=
        "%to_group:i32 = shl %group, %ten\n%to_lane:i32 = shl %lane, %two\n"
        "%to:i32 = iadd %to_group, %to_lane\n";
    for (uint32_t e = 0; e < count; ++e) {
        const std::string id = "r" + number(e);
        text += "%" + id + ":f32 = load_local 0, %n" + number(e) + "\n%" + id + "_n:i32 = const " +
                number(e * size * 4) + "\n%" + id + "_to:i32 = iadd %to, %" + id +
                "_n\nstore_buffer %out, %" + id + "_to, %" + id + " align(4)\n";
    }
    Result<ir::Kernel> kernel = ir::ParseKernel(text + "return\n}\n}\n");
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return kernel.ok() ? std::move(*kernel) : ir::Kernel();
}

float ValueOf(uint16_t bits, bool bfloat) {
    return bfloat ? std::bit_cast<float>(uint32_t{bits} << 16) : HalfToFloat(bits);
}
uint16_t BitsOf(float value, bool bfloat) {
    return bfloat ? static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16)
                  : FloatToHalf(value);
}
void Put(std::vector<uint32_t>& words, uint32_t at_bytes, uint16_t bits) {
    uint32_t& word = words[at_bytes / 4];
    const uint32_t shift = at_bytes % 4 * 8;
    word = (word & ~(0xffffu << shift)) | uint32_t{bits} << shift;
}
uint16_t Get(const std::vector<uint32_t>& words, uint32_t at_bytes) {
    return static_cast<uint16_t>(words[at_bytes / 4] >> at_bytes % 4 * 8);
}

uint32_t PackedPlaces(const ir::Kernel& kernel) {
    const std::vector<bool> level = FindWorkgroupLevel(kernel);
    const LaneAnalysis patterns(kernel, kernel.subgroup_size, level);
    const BarrierRegions regions(kernel, patterns, level);
    const MatrixSharedOperands found =
        FindMatrixSharedOperands(kernel, regions, [](const ir::Instruction&, bool) { return 0u; });
    for (const auto& [region, in_region] : found.regions) {
        EXPECT_TRUE(in_region.shared) << region;
    }
    return found.max_panels;
}

// `special`: infinities and NaN among the numbers.
void Check(const Choice& choice, bool special, uint32_t packed = 4) {
    SCOPED_TRACE(testing::Message() << "size " << choice.size << ", bfloat " << choice.bfloat
                                    << ", columns " << choice.columns << ", writes "
                                    << static_cast<int>(choice.writes) << ", special " << special);
    std::mt19937 random(choice.size);
    std::vector<uint32_t> in(choice.iterations * kSharedBytes / 4);
    for (uint32_t at = 0; at < choice.iterations * kSharedBytes; at += 2) {
        // All products and sums of them are exact.
        float value = (static_cast<float>(random() % 63) - 31) / 8;
        if (special && random() % 60 == 0) {
            value = random() % 3 == 0   ? std::numeric_limits<float>::quiet_NaN()
                    : random() % 2 == 0 ? std::numeric_limits<float>::infinity()
                                        : -std::numeric_limits<float>::infinity();
        }
        if (!special && !choice.bfloat && random() % 16 == 0) {
            value = 2047.0f / 1024;  // all bits of f16
        }
        Put(in, at, BitsOf(value, choice.bfloat));
    }
    const ir::Kernel kernel = SharedKernel(choice);
    ASSERT_EQ(PackedPlaces(kernel), packed);
    const Buffers buffers = {in, std::vector<uint32_t>(4 * kElements, 7)};
    for (const std::string& cpu : TestCpus()) {
        SCOPED_TRACE(testing::Message() << "cpu '" << cpu << "'");
        Result<RunnableKernel> native = RunnableKernel::Create(kernel, 0, cpu);
        ASSERT_TRUE(native.ok()) << native.error().message;
        Buffers results = buffers;
        const Status status = native->Run(results, {0}, {1, 1, 1});
        ASSERT_TRUE(status.ok()) << status.error().message;
        for (uint32_t i = 0; i < 4 * kElements; ++i) {
            const uint32_t group = i / kElements;
            const uint32_t row = i % kElements / 16;
            const uint32_t column = i % 16;
            float sum = 0;
            for (uint32_t all_k = 0; all_k < 16 * choice.iterations; ++all_k) {
                const uint32_t k = all_k % 16;
                const uint32_t start = all_k / 16 * kSharedBytes;
                const uint32_t b_line = choice.columns ? column : k;
                const uint32_t b_column = choice.columns ? k : column;
                sum += ValueOf(Get(in, start + row * kLineBytes + group % 2 * 32 + k * 2),
                               choice.bfloat) *
                       ValueOf(Get(in, start + kHalfBytes + b_line * kLineBytes + group / 2 * 32 +
                                           b_column * 2),
                               choice.bfloat);
            }
            const float got = std::bit_cast<float>(results[1][i]);
            if (std::isnan(sum)) {
                ASSERT_TRUE(std::isnan(got)) << i << ": " << got;
            } else if (std::isinf(sum)) {
                ASSERT_EQ(got, sum) << i;
            } else {
                ASSERT_NEAR(got, 4 * sum, 1e-4 * std::abs(sum) + 1e-3) << i;
            }
        }
    }
}

TEST(EmitMatrixShared, OperandsOfSeveralSubgroups) {
    for (const uint32_t size : {8u, 16u, 32u, 64u}) {
        for (const bool bfloat : {false, true}) {
            for (const bool columns : {false, true}) {
                for (const bool special : {false, true}) {
                    Check({.size = size, .bfloat = bfloat, .columns = columns}, special);
                }
            }
        }
        if (HasFailure()) {
            return;
        }
    }
}

std::string EmittedText(const Choice& choice) {
    Result<RunnableKernel> native = RunnableKernel::Create(SharedKernel(choice), 0, "");
    EXPECT_TRUE(native.ok()) << native.error().message;
    return native.ok() ? native->llvm_ir() : std::string();
}

// Where the processor multiplies pairs of bfloat16, the rows of A are multiplied where they lie.
TEST(EmitMatrixShared, RowsOfBFloatsStayWhereTheyLie) {
    const std::string text = EmittedText({.bfloat = true});
    if (text.find("matrix_vectors_bf16") == std::string::npos) {
        GTEST_SKIP() << "the processor has tile registers, or no products of bfloat16";
    }
    EXPECT_NE(text.find("_rows_64("), std::string::npos);
    EXPECT_EQ(EmittedText({.bfloat = true, .writes = Writes::kWhoKnowsWhere}).find("_rows_"),
              std::string::npos);
    EXPECT_EQ(EmittedText({.bfloat = false}).find("_rows_"), std::string::npos);
}

// The loops of the products prefetch what the next iteration loads.
TEST(EmitMatrixShared, NextIterationsTileIsPrefetchedByProducts) {
    for (const bool bfloat : {false, true}) {
        const Choice choice = {.bfloat = bfloat, .iterations = 3};
        Check(choice, /*special=*/false);
        const std::string text = EmittedText(choice);
        EXPECT_NE(text.find("call void @llvm.prefetch"), std::string::npos);
        EXPECT_EQ(text.find("matrix_vectors") != std::string::npos,
                  text.find("_fetch_") != std::string::npos);
    }
}

// An iteration prefetches one line at most: the rest is left to the caller.
TEST(EmitMatrixShared, ProductsPrefetchALineAnIteration) {
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    module.addModuleFlag(llvm::Module::Override, kVectorBitsFlag, 512);
    EXPECT_EQ(VectorLines(module, VectorStep::kFloats, 1, 1, 0), 0u);
    EXPECT_EQ(VectorLines(module, VectorStep::kFloats, 1, 1, 8), 8u);
    EXPECT_EQ(VectorLines(module, VectorStep::kFloats, 1, 1, 64), 16u);
    EXPECT_EQ(VectorLines(module, VectorStep::kPairsOfBFloats, 1, 1, 64), 8u);
    // 16 loops: two rows of two sums, half of a row's sums at a time, in four steps.
    EXPECT_EQ(VectorLines(module, VectorStep::kPairsOfBFloats, 2, 4, 15), 0u);
    EXPECT_EQ(VectorLines(module, VectorStep::kPairsOfBFloats, 2, 4, 40), 32u);
    EXPECT_EQ(VectorLines(module, VectorStep::kPairsOfBFloats, 2, 4, 500), 128u);
}

// Then each subgroup has to look at the memory itself, but only at what may have changed.
TEST(EmitMatrixShared, OperandsThatAreWrittenMeanwhile) {
    Check({.columns = true, .writes = Writes::kBehindAll}, false, 4);
    Check({.columns = true, .writes = Writes::kBothA}, false, 2);
    Check({.columns = true, .writes = Writes::kWhoKnowsWhere}, false, 0);
}

}  // namespace
}  // namespace fornax::kernel
