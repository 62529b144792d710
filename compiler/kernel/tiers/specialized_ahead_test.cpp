// Code that is made before a dispatch asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <thread>

#include "base/log.h"
#include "compiler/kernel/kernel_compiler.h"
#include "compiler/kernel/tiers/specialized_kernel.h"
#include "compiler/kernel/tiers/test_reader.h"

namespace fornax::kernel {
namespace {

using KernelPtr = std::shared_ptr<const CompiledKernel>;
using Words = std::vector<DescriptorWord>;

constexpr DescriptorPlace kPlace = {.set = 0, .offset_bytes = 40};

// Two words decide.
KernelPtr Facts() {
    auto facts = std::make_shared<CompiledKernel>();
    facts->deciding_words = {kPlace, {.set = 0, .offset_bytes = 44}};
    return facts;
}

KernelPtr Code(uint32_t scratch_bytes = 0) {
    auto code = std::make_shared<CompiledKernel>();
    code->entry = [](const hal::DispatchFrame*, hal::WorkerFrame*, uint64_t, uint64_t) {};
    code->scratch_bytes = scratch_bytes;
    return code;
}

Result<KernelPtr> Make(const Words&) {
    return Code();
}

hal::Foresight::ReadWord Reads(uint32_t first, uint32_t second) {
    return [=](uint32_t set, uint32_t offset_bytes, uint32_t& word) {
        EXPECT_EQ(set, 0u);
        word = offset_bytes == kPlace.offset_bytes ? first : second;
        return true;
    };
}

void Dispatch(const CompiledKernel& kernel, uint32_t first, uint32_t second) {
    std::array<uint32_t, 12> set = {};
    set[10] = first;
    set[11] = second;
    const void* sets[] = {set.data()};
    hal::DispatchFrame dispatch = {.descriptor_sets = sets, .workgroup_count = {1, 1, 1}};
    dispatch.kernel_context = kernel.context;
    hal::WorkerFrame worker = {};
    kernel.entry(&dispatch, &worker, 0, 1);
    EXPECT_EQ(worker.fault, 0u);
}

class ForeseenKernel : public testing::Test {
  protected:
    std::vector<std::vector<uint32_t>> asked_;
    int made_ = 0;
    const std::shared_ptr<SpecializedKernel> owner_ = std::make_shared<SpecializedKernel>(
        Facts(),
        [this](const Words& words) {
            ++made_;
            return Make(words);
        },
        [this](const std::weak_ptr<const SpecializedKernel>& kernel, const Words& words) {
            EXPECT_EQ(kernel.lock(), owner_);
            EXPECT_EQ(words.at(0).place, kPlace);
            asked_.push_back({words.at(0).value, words.at(1).value});
        });
    SpecializedKernel& kernel_ = *owner_;
};

TEST_F(ForeseenKernel, EachSetOfWordsIsAskedForOnce) {
    for (int i = 0; i < 2; ++i) {
        kernel_.Foresee(Reads(1, 2));
        kernel_.Foresee(Reads(1, 3));
    }
    kernel_.Foresee([](uint32_t, uint32_t, uint32_t&) { return false; });
    EXPECT_THAT(asked_, testing::ElementsAre(std::vector{1u, 2u}, std::vector{1u, 3u}));
    for (uint32_t i = 10; i < 20; ++i) {
        kernel_.Foresee(Reads(i, i));
    }
    EXPECT_EQ(asked_.size(), SpecializedKernel::kMaxAhead);
    EXPECT_EQ(kernel_.VariantCount(), 0u);
}

TEST_F(ForeseenKernel, ADispatchTakesWhatWasMade) {
    const Words words = {{kPlace, 1}, {{.set = 0, .offset_bytes = 44}, 2}};
    EXPECT_TRUE(kernel_.WantsToForesee());
    EXPECT_FALSE(kernel_.HasVariant(words));
    kernel_.Offer(words, Code());
    kernel_.Offer(words, Code());
    EXPECT_TRUE(kernel_.HasVariant(words));
    EXPECT_FALSE(kernel_.WantsToForesee());
    Dispatch(kernel_, 1, 2);
    EXPECT_EQ(made_, 0);
    Dispatch(kernel_, 1, 3);
    EXPECT_EQ(made_, 1);
    EXPECT_EQ(kernel_.VariantCount(), 2u);
}

TEST_F(ForeseenKernel, CodeThatDoesNotFitIsNotTaken) {
    kernel_.Offer(Words{{kPlace, 1}, {kPlace, 2}}, Code(64u << 20));
    EXPECT_EQ(kernel_.VariantCount(), 0u);
    for (uint32_t i = 0; i < SpecializedKernel::kMaxVariants + 2; ++i) {
        kernel_.Offer(Words{{kPlace, i}, {kPlace, i}}, Code());
    }
    EXPECT_EQ(kernel_.VariantCount(), SpecializedKernel::kMaxVariants);
}

TEST_F(ForeseenKernel, NothingIsAskedForOnceThereIsAVariant) {
    Dispatch(kernel_, 1, 2);
    EXPECT_FALSE(kernel_.WantsToForesee());
    kernel_.Foresee(Reads(1, 3));
    EXPECT_THAT(asked_, testing::IsEmpty());
}

TEST_F(ForeseenKernel, NothingIsAskedForOnceTheCompilerIsGone) {
    kernel_.SetMakeCode(Make);
    kernel_.Foresee(Reads(1, 2));
    EXPECT_THAT(asked_, testing::IsEmpty());
}

// Who submits must not wait for a compilation.
TEST_F(ForeseenKernel, WhoForeseesDoesNotWait) {
    std::promise<void> begins, goes_on;
    kernel_.SetMakeCode(
        [&](const Words& words) {
            begins.set_value();
            goes_on.get_future().wait();
            return Make(words);
        },
        [](const auto&, const Words&) { ADD_FAILURE(); });
    std::thread worker([&] { Dispatch(kernel_, 1, 2); });
    begins.get_future().wait();
    kernel_.Foresee(Reads(1, 3));
    goes_on.set_value();
    worker.join();
}

// c[0] = the word + `plus`; the reader of this test program takes the word for a deciding one.
std::vector<uint32_t> KernelOfWord(uint32_t plus = 0) {
    const std::string text = R"(kernel "word" workgroup_size(1, 1, 1) subgroup_size(32) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  binding 1: storage_image set(0) binding(1) count(1) offset(16)
  body {
    %0:i32 = const 0
    %1:buffer = buffer 0, %0
    %2:i32 = const 40
    %3:i32 = load_descriptor 1, %2
    %4:i32 = const )" + std::to_string(plus) +
                             R"(
    %5:i32 = iadd %3, %4
    store_buffer %1, %0, %5 align(4)
    return
  }
}
)";
    std::vector<uint32_t> words((text.size() + 3) / 4);
    std::memcpy(words.data(), text.data(), text.size());
    return words;
}

uint32_t RunOn(const CompiledKernel& kernel, uint32_t word) {
    uint32_t output = 0;
    struct {
        hal::BufferDescriptor out;
        hal::ImageDescriptor image;
    } set;
    set.out = {reinterpret_cast<uint64_t>(&output), sizeof(output)};
    static_assert(offsetof(hal::ImageDescriptor, levels) == kPlace.offset_bytes);
    set.image.levels = word;
    const void* sets[] = {&set};
    hal::DispatchFrame dispatch = {.descriptor_sets = sets, .workgroup_count = {1, 1, 1}};
    dispatch.kernel_context = kernel.context;
    hal::WorkerFrame worker = {};
    kernel.entry(&dispatch, &worker, 0, 1);
    EXPECT_EQ(worker.fault, 0u);
    return output;
}

class ForeseenByTheCompiler : public testing::Test {
  protected:
    ForeseenByTheCompiler() {
        auto compiler = KernelCompiler::Create("");
        EXPECT_TRUE(compiler.ok()) << compiler.error().message;
        compiler_ = std::move(compiler).value();
    }

    KernelPtr Compile(uint32_t plus) {
        const std::vector<uint32_t> spirv = KernelOfWord(plus);
        auto kernel = compiler_->Compile({.spirv = spirv});
        EXPECT_TRUE(kernel.ok()) << kernel.error().message;
        return std::move(kernel).value();
    }
    static uint32_t VariantsOf(const CompiledKernel& kernel) {
        return dynamic_cast<const SpecializedKernel&>(kernel).VariantCount();
    }

    std::unique_ptr<KernelCompiler> compiler_;
};

TEST_F(ForeseenByTheCompiler, CodeIsThereBeforeTheDispatch) {
    if (std::thread::hardware_concurrency() < 2) {
        GTEST_SKIP() << "With one processor nothing is made ahead.";
    }
    const KernelPtr kernel = Compile(0);
    const int reads = SpirvReads();
    kernel->foresight()->Foresee(Reads(7, 7));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (VariantsOf(*kernel) == 0 && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    ASSERT_EQ(VariantsOf(*kernel), 1u);
    EXPECT_EQ(RunOn(*kernel, 7), 7u);
    EXPECT_EQ(SpirvReads(), reads + 1);
    EXPECT_EQ(VariantsOf(*kernel), 1u);
}

// Whoever comes first makes the code, once.
TEST_F(ForeseenByTheCompiler, DispatchesMayComeAtOnce) {
    std::vector<KernelPtr> kernels;
    for (uint32_t i = 0; i < 16; ++i) {
        kernels.push_back(Compile(i));
    }
    const int reads = SpirvReads();
    for (const KernelPtr& kernel : kernels) {
        kernel->foresight()->Foresee(Reads(100, 100));
    }
    std::vector<std::thread> workers;
    for (int i = 0; i < 2; ++i) {
        workers.emplace_back([&] {
            for (uint32_t j = 0; j < kernels.size(); ++j) {
                EXPECT_EQ(RunOn(*kernels[j], 100), 100 + j);
            }
        });
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    for (const KernelPtr& kernel : kernels) {
        EXPECT_EQ(VariantsOf(*kernel), 1u);
    }
    EXPECT_EQ(SpirvReads(), reads + static_cast<int>(kernels.size()));
}

TEST_F(ForeseenByTheCompiler, KernelsAndTheCompilerMayGo) {
    KernelPtr stays = Compile(1);
    for (uint32_t i = 2; i < 12; ++i) {
        Compile(i)->foresight()->Foresee(Reads(9, 9));
    }
    stays->foresight()->Foresee(Reads(9, 9));
    compiler_ = nullptr;
    stays->foresight()->Foresee(Reads(10, 10));
    EXPECT_EQ(RunOn(*stays, 9), 10u);
}

}  // namespace
}  // namespace fornax::kernel
