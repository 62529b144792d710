// Random loop kernels as functions of C against their interpreter.
//
// FORNAX_KERNEL_SEEDS chooses them, "1000" or "5000-9000".
#include "compiler/graph/c/kernel_writer.h"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/environment.h"
#include "compiler/graph/c/compiled_library.h"
#include "compiler/graph/c/index_text.h"
#include "compiler/graph/c/support.h"
#include "compiler/graph/loop/random_kernel.h"

namespace fornax::graph::c {
namespace {

using loop::Kernel;
using loop::RandomKernel;
using Buffers = std::vector<std::vector<uint8_t>>;
using Function = void(void* const* blocks);

constexpr uint64_t kBatch = 150;
constexpr size_t kMaxFailures = 10;

struct Seeds {
    uint64_t first = 0, end = 600;
};

Seeds ChosenSeeds() {
    Seeds seeds;
    if (const std::optional<std::string> text = EnvironmentText("FORNAX_KERNEL_SEEDS")) {
        char* rest = nullptr;
        seeds.end = std::strtoull(text->c_str(), &rest, 10);
        if (*rest == '-') {
            seeds.first = seeds.end;
            seeds.end = std::strtoull(rest + 1, nullptr, 10);
        }
    }
    return seeds;
}

// A source with functions k0, k1, ... that others can call.
std::string SourceOf(const std::string& functions, size_t count) {
    std::string text =
        "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
        "#include <string.h>\n\n";
    text += ScalarSupport();
    text += functions;
    text += "void (*const kernels[])(void* const*) = {";
    for (size_t i = 0; i < count; ++i) {
        text += fmt::format("k{}, ", i);
    }
    return text + "NULL};\n";
}

Result<CompiledLibrary> Compile(const ScratchDirectory& directory, const std::string& source) {
    std::ofstream(directory / "kernels.c") << source;
    return CompiledLibrary::Compile(directory, "kernels.c", "-O1");
}

void Call(Function* function, Buffers& buffers) {
    std::vector<void*> blocks;
    for (std::vector<uint8_t>& buffer : buffers) {
        buffer.reserve(1);
        blocks.push_back(buffer.data());
    }
    function(blocks.data());
}

TEST(KernelWriter, RandomKernelsComputeWhatTheInterpreterComputes) {
    const Seeds seeds = ChosenSeeds();
    size_t refused = 0, failures = 0;
    for (uint64_t first = seeds.first; first < seeds.end; first += kBatch) {
        std::vector<RandomKernel> randoms;
        std::vector<uint64_t> of_seed;
        std::string functions;
        for (uint64_t seed = first; seed < std::min(first + kBatch, seeds.end); ++seed) {
            RandomKernel random = loop::MakeRandomKernel(seed);
            const Result<std::string> text = WriteKernel(WithSizes(random.kernel, random.sizes),
                                                         fmt::format("k{}", randoms.size()));
            if (!text.ok()) {
                ++refused;
                continue;
            }
            functions += *text;
            randoms.push_back(std::move(random));
            of_seed.push_back(seed);
        }
        Result<ScratchDirectory> directory = ScratchDirectory::Create("kernels");
        ASSERT_TRUE(directory.ok());
        const Result<CompiledLibrary> library =
            Compile(*directory, SourceOf(functions, randoms.size()));
        ASSERT_TRUE(library.ok()) << library.error().message;
        Function* const* const kernels = library->Find<Function* const>("kernels");
        for (size_t i = 0; i < randoms.size() && failures < kMaxFailures; ++i) {
            const RandomKernel& random = randoms[i];
            Buffers expected = random.buffers, actual = random.buffers;
            ASSERT_TRUE(loop::Interpret(random.kernel, random.sizes, expected).ok());
            Call(kernels[i], actual);
            if (const auto difference = loop::FindDifference(random, expected, actual)) {
                ++failures;
                ADD_FAILURE() << "seed " << of_seed[i] << ": " << *difference << "\n"
                              << loop::ToText(random.kernel) << "\n"
                              << *WriteKernel(WithSizes(random.kernel, random.sizes), "k");
            }
        }
    }
    EXPECT_LE(refused, (seeds.end - seeds.first) / 50);
}

Kernel Parsed(std::string_view text) {
    const Result<Kernel> kernel = loop::ParseKernel(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return kernel.ok() ? *kernel : Kernel();
}

std::string Written(std::string_view text, const Bindings& sizes = {}) {
    const Result<std::string> written = WriteKernel(WithSizes(Parsed(text), sizes), "k");
    return written.ok() ? *written : written.error().message;
}

// What the function looks like, word by word.
TEST(KernelWriter, AFunctionReadsAsOneWouldWriteIt) {
    EXPECT_EQ(Written(R"(kernel relu(in x: f32[4], out y: f32[4])
  parallel $i0 < 4
  %0 = constant f32 0
  %1 = load x[$i0]
  %2 = max %1, %0
  store y[$i0] = %2
)"),
              R"(static void k(void* const* blocks) {
    const float* const b0 = blocks[0];  // f32[4]
    float* const b1 = blocks[1];  // f32[4]
    const float v0 = 0x0p+0f;
    for (int64_t i0 = 0; i0 < 4; ++i0) {
        const float v1 = b0[i0];
        const float v2 = fx_greatest_float(v1, v0);
        b1[i0] = v2;
    }
}
)");
}

// The scores of an attention are computed once for all elements of a value.
TEST(KernelWriter, WhatIsDearIsKeptInATable) {
    const std::string text =
        Written(R"(kernel values(in q: f32[5,4], in v: f32[6,3], out y: f32[5,3])
  parallel $i0 < 5, $i1 < 3
  %0 = load q[$i0,$r1]
  %1 = reduce sum $r1 < 4 of %0
  %2 = index $r0
  %3 = cast f32 %2
  %4 = mul %1, %3
  %5 = exp %4
  %6 = load v[$r0,$i1]
  %7 = mul %5, %6
  %8 = reduce sum $r0 < 6 of %7
  store y[$i0,$i1] = %8
)");
    EXPECT_THAT(text, ::testing::HasSubstr("static float t5[6];"));
    EXPECT_LT(text.find("t5[r0] = v5"), text.find("i1 < 3")) << text;
}

TEST(KernelWriter, DivisorsThatMayBe0AreRefused) {
    EXPECT_EQ(Written(R"(kernel divides(in n: i64[1], out y: i64[4])
  parallel $i0 < 4
  %0 = load n[0]
  %1 = index floor($i0, $v0)
  store y[$i0] = %1
)"),
              "it divides by what may be 0 in floor($i0, $v0)");
}

// Indices from memory that leave 64 bits when they are multiplied are outside.
TEST(KernelWriter, IndicesThatOverflowAreOutside) {
    RandomKernel random;
    random.kernel = Parsed(R"(kernel gather(in at: i64[4], in x: f32[4], out y: f32[4])
  parallel $i0 < 4
  %0 = load at[$i0]
  %1 = load x[4611686018427387904*$v0 + $i0]
  store y[$i0] = %1
)");
    random.tolerances = {0, 0, 0};
    random.buffers = {std::vector<uint8_t>(32), std::vector<uint8_t>(16), std::vector<uint8_t>(16)};
    for (size_t i = 0; i < 4; ++i) {
        const std::array<int64_t, 4> at = {0, 4, -4, 8};  // 2^62 times 4 is 0 in 64 bits
        WriteElement(ElementType::kI64, Scalar::Integer(at[i]), random.buffers[0].data() + i * 8);
        WriteElement(ElementType::kF32, Scalar::Float(1.0 + static_cast<double>(i)),
                     random.buffers[1].data() + i * 4);
    }
    Buffers expected = random.buffers, actual = random.buffers;
    ASSERT_TRUE(loop::Interpret(random.kernel, {}, expected).ok());
    const Result<ScratchDirectory> directory = ScratchDirectory::Create("kernels");
    ASSERT_TRUE(directory.ok());
    const Result<std::string> text = WriteKernel(random.kernel, "k0");
    ASSERT_TRUE(text.ok()) << text.error().message;
    const Result<CompiledLibrary> library = Compile(*directory, SourceOf(*text, 1));
    ASSERT_TRUE(library.ok()) << library.error().message;
    Call(library->Find<Function* const>("kernels")[0], actual);
    EXPECT_EQ(loop::FindDifference(random, expected, actual), std::nullopt);
}

}  // namespace
}  // namespace fornax::graph::c
