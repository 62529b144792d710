// Code for any descriptors first, code for those at hand later: the same results from either.
#include "compiler/kernel/specialized_kernel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kImageAt = 16;  // in the set
constexpr uint32_t kInvocations = 16;

// c[i] = the format's word and the number of levels, which the reader of this test program
// (kernel_compiler_test.cpp) takes for deciding words both.
std::vector<uint32_t> KernelOfWords() {
    const std::string text =
        R"(kernel "words" workgroup_size(16, 1, 1) subgroup_size(32) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  binding 1: storage_image set(0) binding(1) count(1) offset(16)
  body {
    %0:i32 = builtin local_id_x
    %1:i32 = const 2
    %2:i32 = shl %0, %1
    %3:i32 = const 0
    %4:buffer = buffer 0, %3
    %5:i32 = const 16
    %6:i32 = load_descriptor 1, %5
    %7:i32 = const 40
    %8:i32 = load_descriptor 1, %7
    %9:i32 = const 256
    %10:i32 = imul %6, %9
    %11:i32 = iadd %10, %8
    store_buffer %4, %2, %11 align(4)
    return
  }
}
)";
    std::vector<uint32_t> words((text.size() + 3) / 4);
    std::memcpy(words.data(), text.data(), text.size());
    return words;
}

uint32_t RunOn(const CompiledKernel& kernel, uint8_t layout, uint32_t levels) {
    uint32_t output[kInvocations] = {};
    struct {
        hal::BufferDescriptor out;
        hal::ImageDescriptor image;
    } set;
    static_assert(offsetof(decltype(set), image) == kImageAt);
    set.out = {reinterpret_cast<uint64_t>(output), sizeof(output)};
    set.image.format = {.layout = static_cast<hal::TexelLayout>(layout),
                        .texel_class = hal::TexelClass::kUint,
                        .bytes = 0};
    set.image.levels = levels;
    const void* sets[] = {&set};
    hal::DispatchFrame dispatch = {.descriptor_sets = sets, .workgroup_count = {1, 1, 1}};
    dispatch.kernel_context = kernel.context;
    std::vector<uint8_t> scratch(kernel.scratch_bytes + 64);
    const uintptr_t aligned = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
    hal::WorkerFrame worker = {.scratch = reinterpret_cast<void*>(aligned)};
    kernel.entry(&dispatch, &worker, 0, 1);
    for (const uint32_t value : output) {
        EXPECT_EQ(value, output[0]);
    }
    return output[0];
}

class SpecializedKernelTest : public testing::Test {
  public:
    ~SpecializedKernelTest() override {
        unsetenv("FORNAX_TIER");
        fs::remove_all(directory_);
    }

  protected:
    SpecializedKernelTest() {
        const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
        directory_ = fs::temp_directory_path() /
                     ("fornax-specialized-kernel-test-" + std::to_string(getpid()) + "-" + name);
        fs::create_directories(directory_);
    }

    std::unique_ptr<KernelCompiler> MakeCompiler() {
        auto compiler = KernelCompiler::Create(directory_.string());
        EXPECT_TRUE(compiler.ok()) << compiler.error().message;
        return std::move(compiler).value();
    }
    std::shared_ptr<const CompiledKernel> Compile(KernelCompiler& compiler) {
        auto kernel = compiler.Compile({.spirv = words_});
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
        return std::move(kernel).value();
    }
    static uint32_t Variants(const CompiledKernel& kernel) {
        const auto* specialized = dynamic_cast<const SpecializedKernel*>(&kernel);
        return specialized ? specialized->InstalledCount() : UINT32_MAX;
    }

    const std::vector<uint32_t> words_ = KernelOfWords();
    fs::path directory_;
};

TEST_F(SpecializedKernelTest, WhatIsBoundGetsCodeOfItsOwn) {
    setenv("FORNAX_TIER", "1", 1);  // dispatches wait for it
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    EXPECT_EQ(kernel->deciding_words.size(), 2u);
    EXPECT_EQ(Variants(*kernel), 0u);
    EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
    EXPECT_EQ(Variants(*kernel), 1u);
    EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
    EXPECT_EQ(Variants(*kernel), 1u);
    EXPECT_EQ(RunOn(*kernel, 4, 1), 4 * 256u + 1);
    EXPECT_EQ(RunOn(*kernel, 4, 2), 4 * 256u + 2);
    EXPECT_EQ(Variants(*kernel), 3u);
    EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
    EXPECT_EQ(Compile(*compiler), kernel);
}

TEST_F(SpecializedKernelTest, OnlySoManyGetTheirOwn) {
    setenv("FORNAX_TIER", "1", 1);
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    for (uint32_t turn = 0; turn < 2; ++turn) {
        for (uint32_t levels = 0; levels < 2 * SpecializedKernel::kMaxVariants; ++levels) {
            EXPECT_EQ(RunOn(*kernel, 1, levels), 256u + levels);
        }
    }
    EXPECT_EQ(Variants(*kernel), SpecializedKernel::kMaxVariants);
}

TEST_F(SpecializedKernelTest, TheirCodeIsKeptOnDisk) {
    setenv("FORNAX_TIER", "1", 1);
    {
        auto compiler = MakeCompiler();
        EXPECT_EQ(RunOn(*Compile(*compiler), 7, 5), 7 * 256u + 5);
    }
    size_t entries = 0;
    for (const auto& file : fs::directory_iterator(directory_)) {
        entries += file.path().filename().string().starts_with("kernel-") ? 1 : 0;
    }
    EXPECT_EQ(entries, 2u);
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    EXPECT_TRUE(kernel->from_disk_cache);
    EXPECT_EQ(RunOn(*kernel, 7, 5), 7 * 256u + 5);
    EXPECT_EQ(Variants(*kernel), 1u);
}

TEST_F(SpecializedKernelTest, InTheBackgroundItComesLater) {
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    while (Variants(*kernel) == 0 && std::chrono::steady_clock::now() < end) {
        EXPECT_EQ(RunOn(*kernel, 2, 9), 2 * 256u + 9);
    }
    EXPECT_EQ(Variants(*kernel), 1u);
    EXPECT_EQ(RunOn(*kernel, 2, 9), 2 * 256u + 9);
}

// Kernels may outlive what compiled them.
TEST_F(SpecializedKernelTest, WithoutTheCompilerTheCommonCodeStays) {
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    compiler = nullptr;
    EXPECT_EQ(RunOn(*kernel, 2, 9), 2 * 256u + 9);
    EXPECT_EQ(Variants(*kernel), 0u);
}

TEST_F(SpecializedKernelTest, StoredKernelsAreSpecializedWithTheirRequest) {
    setenv("FORNAX_TIER", "1", 1);
    const CompileRequest request = {.spirv = words_};
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    const auto loaded = compiler->Load(compiler->Key(request), kernel->Serialized());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(RunOn(**loaded, 5, 5), 5 * 256u + 5);
    const auto specialized = compiler->Specialize(request, *loaded);
    EXPECT_EQ(RunOn(*specialized, 5, 5), 5 * 256u + 5);
    EXPECT_EQ(Variants(*specialized), 1u);
    // Nothing to compile anew.
    CompileRequest digest = request;
    digest.spirv = {};
    EXPECT_EQ(compiler->Specialize(digest, *loaded), *loaded);
}

}  // namespace
}  // namespace fornax::kernel
