// Code for what dispatches find bound: right for any descriptors, whatever code there is.
#include "compiler/kernel/tiers/specialized_kernel.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/log.h"
#include "base/sanitized.h"
#include "compiler/kernel/kernel_compiler.h"
#include "compiler/kernel/tiers/scratch.h"
#include "compiler/kernel/tiers/test_reader.h"
#include "compiler/kernel/tiers/tiered_kernel.h"

namespace fornax::kernel {
namespace {

namespace fs = std::filesystem;

using KernelPtr = std::shared_ptr<const CompiledKernel>;

constexpr uint32_t kImageAt = 16;  // in the set
constexpr uint32_t kInvocations = 16;
constexpr uint32_t kFault = UINT32_MAX;

// c[i] = 256 * the format's word + the number of levels, which the reader of this test program
// takes for deciding words both. `between` goes before the store.
std::vector<uint32_t> KernelOfWords(const std::string& between = "",
                                    const std::string& locals = "") {
    const std::string text =
        R"(kernel "words" workgroup_size(16, 1, 1) subgroup_size(32) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  binding 1: storage_image set(0) binding(1) count(1) offset(16)
)" + locals +
        R"(  body {
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
)" + between +
        R"(    store_buffer %4, %2, %11 align(4)
    return
  }
}
)";
    std::vector<uint32_t> words((text.size() + 3) / 4);
    std::memcpy(words.data(), text.data(), text.size());
    return words;
}

// The same result, by way of the first element of a private array.
std::vector<uint32_t> KernelOfWordsWithArray(uint32_t elements) {
    return KernelOfWords("    store_local 0, %3, %11\n    %copy:i32 = load_local 0, %3\n",
                         "  local 0: i32[" + std::to_string(elements) + "]\n");
}

// Long enough for a baseline tier, and the same result.
std::vector<uint32_t> LongKernelOfWords() {
    std::string text = "    %f:f32 = load_buffer %4, %2 align(4)\n    %start:f32 = utof %11\n";
    std::string last = "%start";
    for (int i = 0; i < 200; ++i) {
        const std::string next = "%x" + std::to_string(i);
        text += "    " + next + ":f32 = " + (i % 2 == 0 ? "fadd " : "fdiv ") + last + ", %f\n";
        last = next;
    }
    text += "    %other:i32 = const 64\n    store_buffer %4, %other, " + last + " align(4)\n";
    return KernelOfWords(text);
}

// What the kernel stores, or kFault.
uint32_t RunOn(const CompiledKernel& kernel, uint8_t layout, uint32_t levels) {
    uint32_t output[kInvocations + 1] = {};
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
    if (worker.fault != 0) {
        EXPECT_EQ(worker.fault, static_cast<uint32_t>(hal::KernelFault::kNoCode));
        return kFault;
    }
    for (uint32_t i = 0; i < kInvocations; ++i) {
        EXPECT_EQ(output[i], output[0]);
    }
    return output[0];
}

const SpecializedKernel& Specialized(const CompiledKernel& kernel) {
    const auto* specialized = dynamic_cast<const SpecializedKernel*>(&kernel);
    if (!specialized) {
        throw std::runtime_error("The kernel is not specialized.");
    }
    return *specialized;
}

class SpecializedKernelTest : public testing::Test {
  public:
    ~SpecializedKernelTest() override {
        unsetenv("FORNAX_TIER");
        SetLogLevel(previous_level_);
        fs::remove_all(directory_);
    }

  protected:
    SpecializedKernelTest() {
        const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
        directory_ = fs::temp_directory_path() /
                     ("fornax-specialized-kernel-test-" + std::to_string(getpid()) + "-" + name);
        fs::create_directories(directory_);
        SetLogLevel(LogLevel::kOff);
    }

    std::unique_ptr<KernelCompiler> MakeCompiler(bool with_cache = true) {
        auto compiler = KernelCompiler::Create(with_cache ? directory_.string() : "");
        EXPECT_TRUE(compiler.ok()) << compiler.error().message;
        return std::move(compiler).value();
    }
    KernelPtr Compile(KernelCompiler& compiler) {
        auto kernel = compiler.Compile({.spirv = words_});
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
        return std::move(kernel).value();
    }

    std::vector<uint32_t> words_ = KernelOfWords();
    fs::path directory_;
    const LogLevel previous_level_ = GetLogLevel();
};

TEST_F(SpecializedKernelTest, WhatIsBoundGetsCodeOfItsOwnAtTheFirstDispatch) {
    for (const bool only_optimized : {false, true}) {
        if (only_optimized) {
            setenv("FORNAX_TIER", "1", 1);
        }
        auto compiler = MakeCompiler(/*with_cache=*/false);
        const auto kernel = Compile(*compiler);
        const SpecializedKernel& specialized = Specialized(*kernel);
        EXPECT_EQ(kernel->deciding_words.size(), 2u);
        EXPECT_EQ(specialized.VariantCount(), 0u);
        EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
        EXPECT_EQ(specialized.VariantCount(), 1u);
        EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
        EXPECT_EQ(specialized.VariantCount(), 1u);
        EXPECT_EQ(RunOn(*kernel, 4, 1), 4 * 256u + 1);
        EXPECT_EQ(RunOn(*kernel, 4, 2), 4 * 256u + 2);
        EXPECT_EQ(specialized.VariantCount(), 3u);
        EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
        EXPECT_EQ(Compile(*compiler), kernel);
        EXPECT_FALSE(specialized.HasCommon()) << "code for all formats was made for nothing";
    }
}

TEST_F(SpecializedKernelTest, VariantsHaveBothTiers) {
    words_ = LongKernelOfWords();
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    EXPECT_EQ(RunOn(*kernel, 2, 9), 2 * 256u + 9);
    const CompileRequest request = {
        .spirv = words_,
        .known_words = {{.place = kernel->deciding_words.at(0), .value = 2},
                        {.place = kernel->deciding_words.at(1), .value = 9}}};
    const auto variant = compiler->Lookup(request);
    ASSERT_TRUE(variant.ok() && *variant) << "the variant is not what a request for it finds";
    const auto* tiered = dynamic_cast<const TieredKernel*>(variant->get());
    ASSERT_NE(tiered, nullptr);
    EXPECT_FALSE(tiered->Serialized().empty());  // waits
    EXPECT_TRUE(tiered->is_optimized());
    EXPECT_EQ(RunOn(*kernel, 2, 9), 2 * 256u + 9);
}

TEST_F(SpecializedKernelTest, TheNinthSetOfValuesHasTheCommonCode) {
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    const SpecializedKernel& specialized = Specialized(*kernel);
    for (uint32_t turn = 0; turn < 2; ++turn) {
        for (uint32_t levels = 0; levels < SpecializedKernel::kMaxVariants; ++levels) {
            EXPECT_EQ(RunOn(*kernel, 1, levels), 256u + levels);
            EXPECT_EQ(specialized.HasCommon(), turn > 0);
        }
        EXPECT_EQ(RunOn(*kernel, 1, 100), 256u + 100);
        EXPECT_EQ(RunOn(*kernel, 2, 100), 512u + 100);
        EXPECT_TRUE(specialized.HasCommon());
    }
    EXPECT_EQ(specialized.VariantCount(), SpecializedKernel::kMaxVariants);
}

TEST_F(SpecializedKernelTest, ManyWorkersWaitForOneVariant) {
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    const int reads = SpirvReads();
    std::atomic<uint32_t> wrong = 0;
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            const uint32_t levels = i % 2;
            wrong += RunOn(*kernel, 6, levels) == 6 * 256u + levels ? 0 : 1;
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(Specialized(*kernel).VariantCount(), 2u);
    EXPECT_EQ(SpirvReads(), reads + 2);
}

TEST_F(SpecializedKernelTest, AVariantThatCannotBeMadeLeavesTheCommonCode) {
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(RunOn(*kernel, 1, kUnreadableWord), 256u + kUnreadableWord);
        EXPECT_EQ(RunOn(*kernel, 1, 1), 257u);
    }
    EXPECT_EQ(Specialized(*kernel).VariantCount(), 1u);
    EXPECT_TRUE(Specialized(*kernel).HasCommon());
}

// What is not certain to become code is tried when the pipeline is made.
TEST_F(SpecializedKernelTest, KernelsWithBarriersHaveTheCommonCodeFromTheStart) {
    words_ = KernelOfWords("    barrier\n");
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    EXPECT_TRUE(Specialized(*kernel).HasCommon());
    EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
    EXPECT_EQ(Specialized(*kernel).VariantCount(), 1u);
}

// The passes that promote private arrays take longer than reading the kernel does, so they are left
// to the variants, whose scratch memory has to be enough for what they find.
TEST_F(SpecializedKernelTest, PassesAreNotRunForFacts) {
    constexpr uint32_t kElementBytes = 8 * 64;  // of scratch memory, at most
    for (const uint32_t elements : {16u, 2048u, 2049u}) {
        words_ = KernelOfWordsWithArray(elements);
        auto compiler = MakeCompiler(/*with_cache=*/false);
        const auto kernel = Compile(*compiler);
        // Those whose arrays would take more than 1 MB have their passes after all.
        const uint32_t first_bytes = elements <= 2048 ? elements * kElementBytes : 0;
        EXPECT_EQ(kernel->scratch_bytes, ScratchForBoth(first_bytes)) << elements;
        EXPECT_FALSE(Specialized(*kernel).HasCommon());
        EXPECT_EQ(RunOn(*kernel, 3, 1), 3 * 256u + 1);
        EXPECT_EQ(Specialized(*kernel).VariantCount(), 1u);
    }
}

TEST_F(SpecializedKernelTest, NothingIsReadAgainThatIsOnDisk) {
    {
        auto compiler = MakeCompiler();
        EXPECT_EQ(RunOn(*Compile(*compiler), 7, 5), 7 * 256u + 5);
    }
    size_t entries = 0;
    for (const auto& file : fs::directory_iterator(directory_)) {
        entries += file.path().filename().string().starts_with("kernel-") ? 1 : 0;
    }
    EXPECT_EQ(entries, 2u) << "the facts, and the variant";
    const int reads = SpirvReads();
    auto compiler = MakeCompiler();
    // Without SPIR-V no code could be made.
    const Hash128 digest = SpirvDigest(words_);
    EXPECT_EQ(*compiler->Lookup({.spirv = {}, .spirv_digest = digest}), nullptr);
    const auto kernel = Compile(*compiler);
    EXPECT_TRUE(kernel->from_disk_cache);
    EXPECT_EQ(RunOn(*kernel, 7, 5), 7 * 256u + 5);
    EXPECT_EQ(Specialized(*kernel).VariantCount(), 1u);
    EXPECT_EQ(SpirvReads(), reads);
    // Now somebody has the SPIR-V.
    EXPECT_EQ(*compiler->Lookup({.spirv = {}, .spirv_digest = digest}), kernel);
    EXPECT_EQ(RunOn(*kernel, 7, 6), 7 * 256u + 6);
    EXPECT_EQ(SpirvReads(), reads + 1);
}

TEST_F(SpecializedKernelTest, CommonCodeIsKeptOnDiskOnceItIsMade) {
    Compile(*MakeCompiler())->Serialized();
    const auto kernel = Compile(*MakeCompiler());
    EXPECT_TRUE(kernel->from_disk_cache);
    EXPECT_TRUE(Specialized(*kernel).HasCommon());
    auto compiler = MakeCompiler();
    auto found = compiler->Lookup({.spirv = {}, .spirv_digest = SpirvDigest(words_)});
    ASSERT_TRUE(found.ok() && *found);
    EXPECT_EQ(RunOn(**found, 5, 5), 5 * 256u + 5);
}

// Kernels may outlive what compiled them.
TEST_F(SpecializedKernelTest, WithoutTheCompilerThereIsCommonCode) {
    for (const bool dispatched : {false, true}) {
        auto compiler = MakeCompiler();
        const auto kernel = Compile(*compiler);
        if (dispatched) {
            EXPECT_EQ(RunOn(*kernel, 2, 8), 2 * 256u + 8);
        }
        compiler = nullptr;
        EXPECT_EQ(RunOn(*kernel, 2, 9), 2 * 256u + 9);
        EXPECT_EQ(RunOn(*kernel, 2, 8), 2 * 256u + 8);
        EXPECT_EQ(Specialized(*kernel).VariantCount(), dispatched ? 1u : 0u);
        EXPECT_FALSE(kernel->Serialized().empty());
    }
}

TEST_F(SpecializedKernelTest, WhatIsSerializedWorksWithoutSpirv) {
    const CompileRequest request = {.spirv = words_};
    std::vector<uint8_t> bytes;
    {
        auto compiler = MakeCompiler();
        const auto kernel = Compile(*compiler);
        EXPECT_EQ(RunOn(*kernel, 5, 4), 5 * 256u + 4);
        bytes = kernel->Serialized();
        EXPECT_TRUE(Specialized(*kernel).HasCommon());
        EXPECT_EQ(RunOn(*kernel, 5, 4), 5 * 256u + 4);
    }
    const int reads = SpirvReads();
    auto compiler = MakeCompiler();
    const auto loaded = compiler->Load(compiler->Key(request), bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(RunOn(**loaded, 5, 5), 5 * 256u + 5);
    // Nothing to compile anew.
    CompileRequest digest = request;
    digest.spirv = {};
    EXPECT_EQ(compiler->Specialize(digest, *loaded), *loaded);
    EXPECT_EQ(SpirvReads(), reads);
    const auto specialized = compiler->Specialize(request, *loaded);
    EXPECT_EQ(RunOn(*specialized, 5, 5), 5 * 256u + 5);
    EXPECT_EQ(Specialized(*specialized).VariantCount(), 1u);
    EXPECT_EQ(specialized->Serialized(), bytes);
}

// A kernel without code takes what an application's cache brings; one for another use of the disk
// does not become part of itself.
TEST_F(SpecializedKernelTest, CommonCodeFromElsewhereIsTaken) {
    const CompileRequest request = {.spirv = words_};
    std::vector<uint8_t> bytes;
    {
        auto compiler = MakeCompiler();
        bytes = Compile(*compiler)->Serialized();
    }
    for (const auto& file : fs::directory_iterator(directory_)) {
        if (file.path().filename().string().starts_with("kernel-")) {
            fs::remove(file);
        }
    }
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    EXPECT_FALSE(Specialized(*kernel).HasCommon());
    CompileRequest reading = request;
    reading.disk = DiskUse::kRead;
    const auto other = compiler->Specialize(reading, kernel);
    EXPECT_NE(other, kernel);
    EXPECT_EQ(compiler->Specialize(request, other), kernel);
    EXPECT_FALSE(Specialized(*kernel).HasCommon());
    const auto loaded = compiler->Load(compiler->Key(request), bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(compiler->Specialize(request, *loaded), kernel);
    EXPECT_TRUE(Specialized(*kernel).HasCommon());
    EXPECT_EQ(kernel->Serialized(), bytes);
    EXPECT_EQ(compiler->Specialize(reading, kernel), other);
    EXPECT_EQ(other->Serialized(), bytes);
}

TEST_F(SpecializedKernelTest, AnEntryWithoutCodeIsNotLoaded) {
    {
        Compile(*MakeCompiler());
    }
    auto compiler = MakeCompiler();
    const auto kernel = Compile(*compiler);
    const std::string key = compiler->Key({.spirv = words_});
    for (const auto& file : fs::directory_iterator(directory_)) {
        if (!file.path().filename().string().starts_with("kernel-")) {
            continue;
        }
        // Behind the disk cache's header, whose length does not matter here.
        std::ifstream stream(file.path(), std::ios::binary);
        const std::string all((std::istreambuf_iterator<char>(stream)), {});
        const size_t begin = all.find("FRNXKRNL");
        ASSERT_NE(begin, std::string::npos);
        const std::vector<uint8_t> entry(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                         all.end());
        const auto loaded = compiler->Load(key, entry);
        ASSERT_FALSE(loaded.ok());
        EXPECT_NE(loaded.error().message.find("no code"), std::string::npos)
            << loaded.error().message;
    }
}

// --- Without a compiler
// --------------------------------------------------------------------------

// Code that stores what it was made for.
class Code : public CompiledKernel {
  public:
    explicit Code(uint32_t value) : value_(value) {
        entry = [](const hal::DispatchFrame* dispatch, hal::WorkerFrame*, uint64_t, uint64_t) {
            hal::BufferDescriptor out;
            std::memcpy(&out, dispatch->descriptor_sets[0], sizeof(out));
            const auto* self = static_cast<const Code*>(dispatch->kernel_context);
            std::fill_n(reinterpret_cast<uint32_t*>(out.address), kInvocations, self->value_);
        };
        context = this;
    }

  private:
    uint32_t value_;
};

// The number of levels decides.
KernelPtr Facts() {
    auto facts = std::make_shared<CompiledKernel>();
    facts->deciding_words = {{.set = 0, .offset_bytes = kImageAt + 40}};
    return facts;
}

constexpr uint32_t kCommon = 1'000'000;

Result<KernelPtr> MakeAny(const std::vector<DescriptorWord>& words) {
    return KernelPtr(std::make_shared<Code>(words.empty() ? kCommon : words[0].value));
}

bool AllSignalsAreBlocked() {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, SIGURG) == 1 && sigismember(&mask, SIGSEGV) == 1;
}

TEST(SpecializedKernel, SignalsAreBlockedOnlyWhileCodeIsMade) {
    int made = 0;
    const SpecializedKernel kernel(Facts(), [&](const std::vector<DescriptorWord>& words) {
        made += AllSignalsAreBlocked() ? 1 : 100;
        return MakeAny(words);
    });
    EXPECT_EQ(RunOn(kernel, 0, 7), 7u);
    EXPECT_FALSE(AllSignalsAreBlocked());
    EXPECT_EQ(made, 1);
    kernel.Serialized();
    EXPECT_FALSE(AllSignalsAreBlocked());
    EXPECT_EQ(made, 2);
}

// What cannot be made now may be possible later, but a variant is not tried twice.
TEST(SpecializedKernel, WithoutAnyCodeADispatchIsAFault) {
    bool has_memory = false;
    int tried = 0;
    const SpecializedKernel kernel(
        Facts(), [&](const std::vector<DescriptorWord>& words) -> Result<KernelPtr> {
            ++tried;
            if (!has_memory) {
                throw std::bad_alloc();
            }
            return MakeAny(words);
        });
    EXPECT_EQ(RunOn(kernel, 0, 7), kFault);
    EXPECT_TRUE(kernel.Serialized().empty());
    EXPECT_EQ(tried, 3);
    has_memory = true;
    EXPECT_EQ(RunOn(kernel, 0, 7), kCommon);
    EXPECT_EQ(RunOn(kernel, 0, 8), 8u);
    EXPECT_EQ(tried, 5);
}

TEST(SpecializedKernel, CodeThatNeedsMoreScratchIsNotRun) {
    const SpecializedKernel kernel(Facts(), [&](const std::vector<DescriptorWord>& words) {
        auto code = std::make_shared<Code>(words.empty() ? kCommon : words[0].value);
        code->scratch_bytes = words.empty() ? 0 : 64u << 20;
        return Result<KernelPtr>(std::move(code));
    });
    EXPECT_LT(kernel.scratch_bytes, 64u << 20);
    EXPECT_EQ(RunOn(kernel, 0, 7), kCommon);
}

#ifndef FORNAX_THREAD_SANITIZER

// A thread of the parent that makes code does not exist in a child.
TEST(SpecializedKernel, AChildProcessDoesNotWaitForItsParentsThread) {
    for (const bool common : {false, true}) {
        std::atomic<int> state = 0;
        const SpecializedKernel kernel(Facts(), [&](const std::vector<DescriptorWord>& words) {
            if (words.empty() == common && state.exchange(1) == 0) {
                while (state != 2) {
                    usleep(1000);
                }
            }
            return MakeAny(words);
        });
        std::thread maker([&] {
            if (common) {
                kernel.Serialized();
            } else {
                EXPECT_EQ(RunOn(kernel, 0, 7), 7u);
            }
        });
        while (state == 0) {
            usleep(1000);
        }
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(100);  // a child that hangs dies of it
            const bool right = RunOn(kernel, 0, 7) == 7 && RunOn(kernel, 0, 8) == 8;
            kernel.Serialized();
            _exit(right && kernel.HasCommon() && kernel.VariantCount() == 2 ? 0 : 1);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), 0);
        state = 2;
        maker.join();
        EXPECT_EQ(kernel.VariantCount(), common ? 0u : 1u);
    }
}

#endif

}  // namespace
}  // namespace fornax::kernel
