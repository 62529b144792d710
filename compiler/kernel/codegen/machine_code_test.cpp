// What the code generator makes of LLVM IR, as assembly.
#include <gtest/gtest.h>

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/codegen/test_targets.h"

namespace fornax::kernel {
namespace {

// The indices of a permutation fit in bytes, but to extend these would be another shuffle.
TEST(MachineCode, ConstantsAreLoadedAsTheyAre) {
    for (const TargetInfo& target : TestTargets()) {
        if (target.vector_bits < 256) {
            continue;
        }
        llvm::LLVMContext context;
        llvm::SMDiagnostic problem;
        const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
            R"(define void @f(ptr %p) {
  %a = load <8 x i32>, ptr %p, align 4
  %b = shufflevector <8 x i32> %a, <8 x i32> poison, <8 x i32> <i32 5, i32 1, i32 0, i32 7, i32 2, i32 3, i32 6, i32 4>
  store <8 x i32> %b, ptr %p, align 4
  ret void
}
)",
            problem, context);
        ASSERT_TRUE(module) << problem.getMessage().str();
        auto machine = CreateTargetMachine(target, llvm::CodeGenOptLevel::Default);
        ASSERT_TRUE(machine.ok());
        PrepareModule(*module, **machine, target);
        SetFunctionAttributes(*module, target);
        const Result<std::string> text = EmitAssembly(*module, **machine);
        ASSERT_TRUE(text.ok());
        EXPECT_NE(text->find("vpermps"), std::string::npos) << *text;
        EXPECT_EQ(text->find("vpmov"), std::string::npos) << *text;
    }
}

}  // namespace
}  // namespace fornax::kernel
