// Random loop kernels on a device against the interpreter: generated code in every form.
//
// FORNAX_KERNEL_SEEDS chooses them, "1000" or "5000-9000"; the fast default is for every build.
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/loop/random_kernel.h"
#include "tests/graph/kernel_check.h"
#include "tests/graph/spirv_check.h"

namespace fornax::graph::loop {
namespace {

constexpr uint64_t kMaxFailures = 20;

struct Seeds {
    uint64_t first = 0, end = 300;
};

Seeds ChosenSeeds() {
    Seeds seeds;
    if (const char* text = std::getenv("FORNAX_KERNEL_SEEDS"); text != nullptr) {
        char* rest = nullptr;
        seeds.end = std::strtoull(text, &rest, 10);
        if (*rest == '-') {
            seeds.first = seeds.end;
            seeds.end = std::strtoull(rest + 1, nullptr, 10);
        }
    }
    return seeds;
}

std::string SizesText(const Bindings& sizes) {
    std::string text;
    for (const auto& [symbol, value] : sizes) {
        text += fmt::format(" {}={}", symbol.name(), value);
    }
    return text;
}

class RandomKernelsOnDevice : public test::KernelCheck {
  protected:
    // An error is what went wrong. False if the device does not have what the kernel needs.
    static Result<bool> Compare(const RandomKernel& random) {
        const Result<Module> module = EmitSpirv(random.kernel, runner_->target());
        if (!module.ok()) {
            return module.error().code == ErrorCode::kUnsupported ? Result<bool>(false)
                                                                  : module.error();
        }
        if (const std::string said = test::Validate(module->words); !said.empty()) {
            return Error{ErrorCode::kInternal, said};
        }
        test::Buffers expected = random.buffers, actual = random.buffers;
        FORNAX_RETURN_IF_ERROR(Interpret(random.kernel, random.sizes, expected));
        FORNAX_ASSIGN_OR_RETURN(const test::KernelRunner::Dispatch dispatch,
                                test::DispatchOf(random.kernel, *module, random.sizes));
        FORNAX_RETURN_IF_ERROR(runner_->Run(dispatch, actual));
        if (const auto difference = FindDifference(random, expected, actual)) {
            return Error{ErrorCode::kInternal, *difference};
        }
        return true;
    }
};

TEST_F(RandomKernelsOnDevice, ComputeWhatTheInterpreterComputes) {
    const Seeds seeds = ChosenSeeds();
    uint64_t ran = 0, failures = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end && failures < kMaxFailures; ++seed) {
        const RandomKernel random = MakeRandomKernel(seed);
        const Result<bool> result = Compare(random);
        if (result.ok()) {
            ran += *result ? 1 : 0;
            continue;
        }
        ++failures;
        ADD_FAILURE() << "seed " << seed << SizesText(random.sizes) << ": "
                      << result.error().message << "\n"
                      << ToText(random.kernel);
    }
    EXPECT_GE(ran + failures, (seeds.end - seeds.first) * 9 / 10)
        << "too many kernels are not supported";
}

// A valid kernel's text with other numbers in it.
std::string ChangeNumbers(std::string text, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
        const size_t at = text.find_first_of("0123456789", random() % text.size());
        if (at == std::string::npos) {
            continue;
        }
        text[at] = static_cast<char>('0' + random() % 10);
        if (random() % 6 == 0) {
            text.insert(at, 1, static_cast<char>('1' + random() % 9));
        }
    }
    return text;
}

// What passes the rules of kernels becomes a module that passes the validator, or is refused.
TEST_F(RandomKernelsOnDevice, KernelsFromStrangersBecomeValidModules) {
    const Seeds seeds = ChosenSeeds();
    uint64_t valid = 0;
    for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
        const std::string text = ChangeNumbers(ToText(MakeRandomKernel(seed).kernel), seed);
        const Result<Kernel> kernel = ParseKernel(text);
        if (!kernel.ok()) {
            continue;
        }
        const Result<Module> module = EmitSpirv(*kernel, runner_->target());
        if (!module.ok()) {
            EXPECT_EQ(module.error().code, ErrorCode::kUnsupported) << module.error().message;
            continue;
        }
        EXPECT_EQ(test::Validate(module->words), "") << "seed " << seed << "\n" << text;
        ++valid;
    }
    EXPECT_GT(valid, (seeds.end - seeds.first) / 20);
}

}  // namespace
}  // namespace fornax::graph::loop
