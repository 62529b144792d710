// Sharing, caching and failing of the kernel compiler. The reader is replaced by one that takes
// kernel IR text in place of SPIR-V and counts its calls, so that these tests see what is compiled
// anew.
#include "compiler/kernel/kernel_compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/tiers/test_reader.h"

namespace fornax::kernel {

namespace {

std::atomic<int> reads = 0;

// c[i] = VALUE
constexpr char kKernel[] = R"(kernel "main" workgroup_size(16, 1, 1) subgroup_size(32) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  body {
    %0:i32 = builtin local_id_x
    %1:i32 = const 2
    %2:i32 = shl %0, %1
    %3:i32 = const 0
    %4:buffer = buffer 0, %3
    %5:i32 = const VALUE
    store_buffer %4, %2, %5 align(4)
    return
  }
}
)";

// As the reader does: known words of descriptors are constants, the others decide.
Status TellWords(ir::Kernel& kernel, const std::vector<DescriptorWord>& known) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        ir::Instruction& inst = kernel.inst(ir::InstId{i});
        uint64_t offset = 0;
        if (inst.op != ir::Op::kLoadDescriptor || !kernel.IsConst(inst.operands[0], &offset)) {
            continue;
        }
        const ir::Binding& binding = kernel.bindings[inst.imm];
        const DescriptorPlace place = {
            .set = binding.set,
            .offset_bytes = binding.layout.offset_bytes + static_cast<uint32_t>(offset)};
        const auto word = std::ranges::find(known, place, &DescriptorWord::place);
        if (word == known.end()) {
            kernel.deciding_words.push_back(place);
            continue;
        }
        if (word->value == kUnreadableWord) {
            return Error{ErrorCode::kUnsupported, "The word is not readable."};
        }
        inst.op = ir::Op::kConst;
        inst.operands.clear();
        inst.imm = word->value;
    }
    return OkStatus();
}

}  // namespace

Result<ir::Kernel> ReadSpirv(const CompileRequest& request) {
    ++reads;
    std::string text(reinterpret_cast<const char*>(request.spirv.data()),
                     request.spirv.size_bytes());
    while (!text.empty() && text.back() == '\0') {
        text.pop_back();
    }
    FORNAX_ASSIGN_OR_RETURN(ir::Kernel kernel, ir::ParseKernel(text));
    FORNAX_RETURN_IF_ERROR(TellWords(kernel, request.known_words));
    return kernel;
}

int SpirvReads() {
    return reads;
}

namespace {

namespace fs = std::filesystem;

std::vector<uint32_t> Words(std::string text) {
    std::vector<uint32_t> words((text.size() + 3) / 4);
    std::memcpy(words.data(), text.data(), text.size());
    return words;
}

std::vector<uint32_t> KernelWords(int value) {
    std::string text = kKernel;
    text.replace(text.find("VALUE"), 5, std::to_string(value));
    return Words(text);
}

int32_t RunKernel(const CompiledKernel& kernel) {
    int32_t output[16] = {};
    const hal::BufferDescriptor set[] = {{reinterpret_cast<uint64_t>(output), sizeof(output)}};
    const void* sets[] = {set};
    hal::DispatchFrame dispatch = {.descriptor_sets = sets, .workgroup_count = {1, 1, 1}};
    dispatch.kernel_context = kernel.context;
    struct alignas(64) Line {
        uint8_t bytes[64];
    };
    std::vector<Line> scratch(kernel.scratch_bytes / sizeof(Line) + 1);
    hal::WorkerFrame worker = {.scratch = scratch.data()};
    kernel.entry(&dispatch, &worker, 0, 1);
    for (int32_t value : output) {
        EXPECT_EQ(value, output[0]);
    }
    return output[0];
}

class KernelCompilerTest : public testing::Test {
  public:
    ~KernelCompilerTest() override {
        SetLogLevel(previous_level_);
        fs::permissions(directory_, fs::perms::owner_all);
        fs::remove_all(directory_);
    }

  protected:
    KernelCompilerTest() {
        std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
        directory_ = fs::temp_directory_path() /
                     ("fornax-kernel-compiler-test-" + std::to_string(getpid()) + "-" + name);
        fs::create_directories(directory_);
        previous_level_ = GetLogLevel();
        SetLogLevel(LogLevel::kOff);
        reads = 0;
    }

    std::unique_ptr<KernelCompiler> MakeCompiler(bool with_cache = true) {
        auto compiler = KernelCompiler::Create(with_cache ? directory_.string() : "");
        EXPECT_TRUE(compiler.ok()) << compiler.error().message;
        return std::move(compiler).value();
    }
    // The only entry in the cache.
    fs::path EntryFile() {
        fs::path found;
        for (const auto& file : fs::directory_iterator(directory_)) {
            if (file.path().filename().string().starts_with("kernel-")) {
                EXPECT_TRUE(found.empty());
                found = file.path();
            }
        }
        return found;
    }

    fs::path directory_;
    LogLevel previous_level_;
};

std::vector<char> ReadAll(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void WriteAll(const fs::path& path, const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

TEST_F(KernelCompilerTest, CompilesAndSharesWhatIsInUse) {
    auto compiler = MakeCompiler(/*with_cache=*/false);
    std::vector<uint32_t> words = KernelWords(7);
    CompileRequest request = {.spirv = words};
    auto kernel = compiler->Compile(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(RunKernel(**kernel), 7);
    EXPECT_TRUE((*kernel)->name.starts_with("main-")) << (*kernel)->name;
    EXPECT_THAT((*kernel)->workgroup_size, testing::ElementsAre(16, 1, 1));
    EXPECT_FALSE((*kernel)->from_disk_cache);

    auto again = compiler->Compile(request);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, *kernel);
    EXPECT_EQ(reads, 1);
    auto found = compiler->Lookup(request);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, *kernel);

    request.options.robust_buffer_access = true;
    auto other = compiler->Compile(request);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(*other, *kernel);
    EXPECT_EQ(reads, 2);

    // Nobody uses it any more and nothing was stored: compiled anew.
    *kernel = *again = *found = nullptr;
    request.options.robust_buffer_access = false;
    EXPECT_EQ(*compiler->Lookup(request), nullptr);
    ASSERT_TRUE(compiler->Compile(request).ok());
    EXPECT_EQ(reads, 3);
}

TEST_F(KernelCompilerTest, KeepsNativeCodeOnDisk) {
    std::vector<uint32_t> words = KernelWords(8);
    ASSERT_TRUE(MakeCompiler()->Compile({.spirv = words}).ok());
    EXPECT_EQ(reads, 1);
    auto compiler = MakeCompiler();
    auto kernel = compiler->Compile({.spirv = words});
    ASSERT_TRUE(kernel.ok());
    EXPECT_EQ(reads, 1);
    EXPECT_TRUE((*kernel)->from_disk_cache);
    EXPECT_EQ(RunKernel(**kernel), 8);
    EXPECT_TRUE((*kernel)->name.starts_with("main-")) << (*kernel)->name;
    kernel = MakeCompiler()->Lookup({.spirv = words});
    ASSERT_TRUE(kernel.ok());
    ASSERT_NE(*kernel, nullptr);
    EXPECT_EQ(RunKernel(**kernel), 8);
    EXPECT_EQ(reads, 1);
}

// What holds an address of this process is for nobody else.
TEST_F(KernelCompilerTest, KernelsThatPrintAreNotKept) {
    std::vector<uint32_t> words = KernelWords(9);
    const CompileRequest request = {.spirv = words, .options = {.printf_address = 4096}};
    auto kernel = MakeCompiler()->Compile(request);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(RunKernel(**kernel), 9);
    (*kernel)->Serialized();  // waits for the optimized tier
    EXPECT_EQ(*MakeCompiler()->Lookup(request), nullptr);
}

TEST_F(KernelCompilerTest, ReplacesDamagedEntries) {
    std::vector<uint32_t> words = KernelWords(9);
    ASSERT_TRUE(MakeCompiler()->Compile({.spirv = words}).ok());
    const fs::path file = EntryFile();
    const std::vector<char> good = ReadAll(file);
    ASSERT_GT(good.size(), 300u);
    int expected_reads = 1;
    for (size_t at : {size_t{0}, size_t{60}, size_t{100}, size_t{200}, good.size() - 1}) {
        std::vector<char> damaged = good;
        damaged[at] ^= 0x20;
        WriteAll(file, damaged);
        auto kernel = MakeCompiler()->Compile({.spirv = words});
        ASSERT_TRUE(kernel.ok());
        EXPECT_FALSE((*kernel)->from_disk_cache);
        EXPECT_EQ(RunKernel(**kernel), 9);
        EXPECT_EQ(reads, ++expected_reads);
        EXPECT_EQ(ReadAll(file), good) << "the entry was not replaced";
    }
    WriteAll(file, {good.begin(), good.begin() + 150});
    EXPECT_EQ(*MakeCompiler()->Lookup({.spirv = words}), nullptr);
}

TEST_F(KernelCompilerTest, DoesNotRunPlantedEntries) {
    std::vector<uint32_t> words = KernelWords(10);
    std::vector<uint32_t> other_words = KernelWords(11);
    ASSERT_TRUE(MakeCompiler()->Compile({.spirv = words}).ok());
    const fs::path file = EntryFile();
    const std::vector<char> first = ReadAll(file);
    fs::remove(file);
    // A whole entry of another key under this entry's name.
    ASSERT_TRUE(MakeCompiler()->Compile({.spirv = other_words}).ok());
    fs::rename(EntryFile(), file);
    auto kernel = MakeCompiler()->Compile({.spirv = words});
    ASSERT_TRUE(kernel.ok());
    EXPECT_FALSE((*kernel)->from_disk_cache);
    EXPECT_EQ(RunKernel(**kernel), 10);
    *kernel = nullptr;

    // A whole entry from before this user's secret was made anew, as from another account.
    fs::remove(directory_ / "fornax-secret");
    WriteAll(file, first);
    kernel = MakeCompiler()->Compile({.spirv = words});
    ASSERT_TRUE(kernel.ok());
    EXPECT_FALSE((*kernel)->from_disk_cache);
    EXPECT_EQ(RunKernel(**kernel), 10);
}

TEST_F(KernelCompilerTest, NeverCachesFailures) {
    auto compiler = MakeCompiler();
    std::vector<uint32_t> words = Words("kernel nonsense");
    for (int i = 1; i <= 2; ++i) {
        auto kernel = compiler->Compile({.spirv = words});
        ASSERT_FALSE(kernel.ok());
        EXPECT_FALSE(kernel.error().message.empty());
        EXPECT_EQ(reads, i);
    }
    EXPECT_TRUE(EntryFile().empty());
    EXPECT_EQ(*compiler->Lookup({.spirv = words}), nullptr);
}

TEST_F(KernelCompilerTest, WorksWithoutAWritableDirectory) {
    std::vector<uint32_t> words = KernelWords(12);
    fs::permissions(directory_, fs::perms::owner_read | fs::perms::owner_exec);
    auto kernel = MakeCompiler()->Compile({.spirv = words});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(RunKernel(**kernel), 12);
    fs::permissions(directory_, fs::perms::owner_all);

    // Not there at all, and a file in its place, which stops even a privileged user.
    for (bool file : {false, true}) {
        fs::remove_all(directory_);
        if (file) {
            WriteAll(directory_, {'x'});
        }
        *kernel = nullptr;
        kernel = MakeCompiler()->Compile({.spirv = words});
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        EXPECT_FALSE((*kernel)->from_disk_cache);
        EXPECT_EQ(RunKernel(**kernel), 12);
    }
}

TEST_F(KernelCompilerTest, TakesSerializedKernelsBack) {
    std::vector<uint32_t> words = KernelWords(13);
    auto kernel = MakeCompiler()->Compile({.spirv = words});
    ASSERT_TRUE(kernel.ok());
    const std::vector<uint8_t> data = (*kernel)->serialized;
    auto compiler = MakeCompiler();
    const std::string key = compiler->Key({.spirv = words});
    auto loaded = compiler->Load(key, data);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(RunKernel(**loaded), 13);
    // It is now what an equal request gets.
    auto same = compiler->Compile({.spirv = words});
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, *loaded);
    EXPECT_EQ(reads, 1);

    EXPECT_FALSE(compiler->Load("zz", data).ok());
    std::vector<uint32_t> other = KernelWords(14);
    EXPECT_FALSE(compiler->Load(compiler->Key({.spirv = other}), data).ok());
    for (size_t at = 0; at < data.size(); at += 13) {
        std::vector<uint8_t> damaged = data;
        damaged[at] ^= 1;
        EXPECT_FALSE(compiler->Load(key, damaged).ok()) << at;
    }
    EXPECT_FALSE(compiler->Load(key, {}).ok());
    // Another user's compiler, or one without a directory, has another secret.
    EXPECT_FALSE(MakeCompiler(/*with_cache=*/false)->Load(key, data).ok());
}

TEST_F(KernelCompilerTest, EqualRequestsOfManyThreadsCompileOnce) {
    auto compiler = MakeCompiler();
    std::vector<std::vector<uint32_t>> words = {KernelWords(20), KernelWords(21), KernelWords(22)};
    std::vector<std::shared_ptr<const CompiledKernel>> kernels(12);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kernels.size(); ++i) {
        threads.emplace_back([&, i] {
            auto kernel = compiler->Compile({.spirv = words[i % 3]});
            ASSERT_TRUE(kernel.ok()) << kernel.error().message;
            kernels[i] = *kernel;
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(reads, 3);
    for (size_t i = 0; i < kernels.size(); ++i) {
        EXPECT_EQ(kernels[i], kernels[i % 3]);
        EXPECT_EQ(RunKernel(*kernels[i]), static_cast<int32_t>(20 + i % 3));
    }
}

TEST_F(KernelCompilerTest, DumpsEveryStage) {
    std::vector<uint32_t> words = KernelWords(15);
    fs::path dump = directory_ / "dump";
    setenv("FORNAX_DUMP", dump.c_str(), 1);
    const SpecializationValue constant = {.constant_id = 3, .bits = 17};
    auto kernel = MakeCompiler()->Compile({.spirv = words, .specialization = {constant}});
    unsetenv("FORNAX_DUMP");
    ASSERT_TRUE(kernel.ok());
    std::vector<std::string> stages;
    for (const auto& file : fs::directory_iterator(dump)) {
        std::string name = file.path().filename();
        EXPECT_TRUE(name.starts_with("main-")) << name;
        stages.push_back(name.substr(name.find('.')));
        EXPECT_GT(file.file_size(), 0u) << name;
    }
    EXPECT_THAT(stages,
                testing::UnorderedElementsAre(".spv", ".constants", ".read.ir", ".baseline.ir",
                                              ".baseline.llvm", ".baseline.opt.llvm", ".baseline.s",
                                              ".ir", ".llvm", ".opt.llvm", ".s"));
}

TEST_F(KernelCompilerTest, ReplacesTheHostsCpu) {
    setenv("FORNAX_CPU", "x86-64-v2", 1);
    auto compiler = MakeCompiler();
    std::vector<uint32_t> words = KernelWords(16);
    const std::string key = compiler->Key({.spirv = words});
    auto kernel = compiler->Compile({.spirv = words});
    setenv("FORNAX_CPU", "6502", 1);
    auto impossible = KernelCompiler::Create(directory_);
    unsetenv("FORNAX_CPU");
    EXPECT_EQ(compiler->target().cpu_name, "x86-64-v2");
    EXPECT_EQ(compiler->target().vector_bits, 128u);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ(RunKernel(**kernel), 16);
    ASSERT_FALSE(impossible.ok());
    EXPECT_THAT(impossible.error().message, testing::HasSubstr("6502"));
    EXPECT_NE(MakeCompiler()->Key({.spirv = words}), key);
}

}  // namespace
}  // namespace fornax::kernel
