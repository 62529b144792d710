// Reading SPIR-V and the passes when the host runs out of memory: each allocation fails once. What
// is thrown reaches the caller, which in the driver is icd/guard.h, and nothing leaks. LLVM comes
// after that and cannot fail.
#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <string>

#include "base/failing_new.h"
#include "compiler/kernel/fuzz/random_module.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

enum class Outcome { kDone, kOutOfMemory, kError };

Outcome ReadAndOptimize(const CompileRequest& request) {
    try {
        Result<ir::Kernel> kernel = ReadSpirv(request);
        if (!kernel) {
            return Outcome::kError;
        }
        RunPipeline(*kernel);
        return Outcome::kDone;
    } catch (const std::bad_alloc&) {
        return Outcome::kOutOfMemory;
    }
}

TEST(CompilerOutOfMemory, NothingLeaksOrEndsTheProcess) {
    int thrown = 0;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
        const fuzz::RandomModuleOptions options{.subgroups = seed % 2 == 0, .wide = seed % 3 == 0};
        const fuzz::RandomModule module = fuzz::MakeRandomModule(seed, options);
        const CompileRequest request = fuzz::MakeRequest(module, options);
        ASSERT_EQ(ReadAndOptimize(request), Outcome::kDone);  // what is made once is made now
        // Every allocation of the first modules, and then fewer: later ones take the same ways.
        const int step = seed <= 2 ? 1 : 37;
        for (int n = 0;; n += step) {
            SCOPED_TRACE("seed " + std::to_string(seed) + ", allocation " + std::to_string(n));
            const int before = LiveAllocations();
            Outcome outcome = Outcome::kError;
            const bool failed = FailsAt(n, [&] { outcome = ReadAndOptimize(request); });
            ASSERT_EQ(LiveAllocations(), before) << "leaked";
            ASSERT_NE(outcome, Outcome::kError);
            thrown += outcome == Outcome::kOutOfMemory;
            if (!failed) {
                break;
            }
        }
    }
    EXPECT_GT(thrown, 1000);
}

}  // namespace
}  // namespace fornax::kernel
