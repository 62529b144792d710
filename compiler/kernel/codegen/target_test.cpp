// Which CPU is found or chosen, and which are refused.
#include "compiler/kernel/codegen/target_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/CommandLine.h>

namespace fornax::kernel {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(DetectTarget, FindsTheHost) {
    Result<TargetInfo> target = DetectTarget("");
    ASSERT_TRUE(target.ok()) << target.error().message;
    EXPECT_FALSE(target->cpu_name.empty());
    EXPECT_THAT(target->features, HasSubstr("+sse4.2"));
    EXPECT_THAT(target->vector_bits, AnyOf(128u, 256u, 512u));
}

TEST(DetectTarget, AnOlderCpuHasNarrowerVectors) {
    Result<TargetInfo> target = DetectTarget("x86-64-v2");
    ASSERT_TRUE(target.ok()) << target.error().message;
    EXPECT_EQ(target->cpu_name, "x86-64-v2");
    EXPECT_EQ(target->vector_bits, 128u);
    EXPECT_THAT(target->features, HasSubstr("-avx2"));
    if (DetectTarget("")->vector_bits >= 256) {
        Result<TargetInfo> wider = DetectTarget("x86-64-v3");
        ASSERT_TRUE(wider.ok()) << wider.error().message;
        EXPECT_EQ(wider->vector_bits, 256u);
    }
}

TEST(DetectTarget, TilesAreOfCpusThatHaveThem) {
    const Result<TargetInfo> host = DetectTarget("");
    ASSERT_TRUE(host.ok());
    EXPECT_EQ(HasTiles(*host), host->features.find("+amx-bf16") != std::string::npos);
    for (const char* older : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
        const Result<TargetInfo> target = DetectTarget(older);
        if (target.ok()) {
            EXPECT_FALSE(HasTiles(*target)) << older;
        }
    }
}

TEST(DetectTarget, RefusesUnknownAndImpossibleCpus) {
    Result<TargetInfo> unknown = DetectTarget("i9000");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(unknown.error().message, HasSubstr("i9000"));

    // Below what the maths library needs.
    Result<TargetInfo> old = DetectTarget("x86-64");
    ASSERT_FALSE(old.ok());
    EXPECT_THAT(old.error().message, HasSubstr("lacks sse4.1"));

    // No machine has all of both makers' extensions.
    Result<TargetInfo> bulldozer = DetectTarget("bdver4");    // XOP, FMA4: AMD before Zen
    Result<TargetInfo> xeon = DetectTarget("graniterapids");  // AMX: Intel
    ASSERT_TRUE(!bulldozer.ok() || !xeon.ok());
    const Error& error = bulldozer.ok() ? xeon.error() : bulldozer.error();
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.message, HasSubstr("lacks"));
}

TEST(CreateTargetMachine, GivesTheModuleItsLayout) {
    Result<TargetInfo> target = DetectTarget("");
    ASSERT_TRUE(target.ok());
    auto machine = CreateTargetMachine(*target, llvm::CodeGenOptLevel::Default);
    ASSERT_TRUE(machine.ok()) << machine.error().message;
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    PrepareModule(module, **machine, *target);
    EXPECT_EQ(module.getDataLayout().getPointerSizeInBits(), 64u);
    EXPECT_NE(module.getModuleFlag(kVectorBitsFlag), nullptr);
}

// Found by name: another LLVM may call it otherwise.
TEST(CreateTargetMachine, TurnsOffWhatTakesQuadraticTime) {
    ASSERT_TRUE(CreateTargetMachine(*DetectTarget(""), llvm::CodeGenOptLevel::Default).ok());
    auto& options = llvm::cl::getRegisteredOptions();
    auto found = options.find("disable-x86-domain-reassignment");
    ASSERT_NE(found, options.end());
    EXPECT_TRUE(static_cast<llvm::cl::opt<bool>*>(found->second)->getValue());
    found = options.find("dag-maps-huge-region");
    ASSERT_NE(found, options.end());
    EXPECT_EQ(static_cast<llvm::cl::opt<unsigned>*>(found->second)->getValue(), 100u);
}

}  // namespace
}  // namespace fornax::kernel
