// For tests: what a pass over LLVM IR makes of a function's text.
#pragma once

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdint>
#include <memory>
#include <string>

#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

// LLVM's analyses, as passes ask for them.
struct PassAnalyses {
    PassAnalyses() {
        builder.registerModuleAnalyses(modules);
        builder.registerCGSCCAnalyses(sccs);
        builder.registerFunctionAnalyses(functions);
        builder.registerLoopAnalyses(loops);
        builder.crossRegisterProxies(loops, functions, sccs, modules);
    }

    llvm::PassBuilder builder;
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager sccs;
    llvm::ModuleAnalysisManager modules;
};

// The body from its first line on, or what is wrong with it. `passes` are run one after the other
// for a target with vectors of so many bits.
template <typename... Passes>
std::string BodyAfter(const std::string& parameters,
                      const std::string& body,
                      uint32_t vector_bits,
                      Passes... passes) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
        "define void @f(" + parameters + ") {\n" + body + "}\n", problem, context);
    if (!module) {
        return problem.getMessage().str();
    }
    module->addModuleFlag(llvm::Module::Error, kVectorBitsFlag, vector_bits);
    llvm::Function& function = *module->getFunction("f");
    PassAnalyses analyses;
    llvm::FunctionPassManager manager;
    (manager.addPass(std::move(passes)), ...);
    manager.run(function, analyses.functions);
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (llvm::verifyFunction(function, &stream)) {
        return text;
    }
    function.print(stream);
    const size_t begin = text.find("{\n") + 2;
    return text.substr(begin, text.rfind('}') - begin);
}

}  // namespace fornax::kernel
