// LLVM's objects for the target.
#include "compiler/kernel/codegen/target_machine.h"

#include <mutex>
#include <utility>

#include <llvm/IR/Constants.h>
#include <llvm/IR/Metadata.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>

namespace fornax::kernel {

namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

// What keeps the time of code generation in proportion to the kernel. Global in LLVM, so set once.
constexpr std::pair<const char*, const char*> kLlvmOptions[] = {
    // A pass that looks for scalar values to be moved into mask registers. It gains nothing for
    // kernels, and its time grows with the square of a long run of scalar integers.
    {"disable-x86-domain-reassignment", "true"},
    // How many loads and stores of a block the scheduler compares with one another. Beyond that it
    // keeps them in order; unrolled matrix kernels have thousands, and LLVM's 1,000 take seconds.
    {"dag-maps-huge-region", "100"},
    // From how many basic blocks on CodeGenPrepare looks again only at those that it changed,
    // instead of beginning anew after each change of the control flow.
    {"cgpp-huge-func", "200"},
};

void InitializeLlvm() {
    static std::once_flag once;
    std::call_once(once, [] {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        auto& options = llvm::cl::getRegisteredOptions();
        for (const auto& [name, value] : kLlvmOptions) {
            if (auto found = options.find(name); found != options.end()) {
                found->second->addOccurrence(0, found->first(), value);
            }
        }
    });
}

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(const TargetInfo& target,
                                                                 llvm::CodeGenOptLevel level) {
    InitializeLlvm();
    std::string message;
    const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(kTriple, message);
    if (!backend) {
        return Error{ErrorCode::kInternal, "LLVM has no x86-64 backend: " + message + "."};
    }
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // only what is flagged `contract`
    options.TrapUnreachable = true;
    options.ExceptionModel = llvm::ExceptionHandling::None;
    std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
        kTriple, target.cpu_name, target.features, options, llvm::Reloc::PIC_,
        llvm::CodeModel::Small, level, /*JIT=*/false));
    if (!machine) {
        return Error{ErrorCode::kInternal,
                     "LLVM cannot make code for the CPU " + target.cpu_name + "."};
    }
    return machine;
}

uint64_t FlagOf(const llvm::Module& module, const char* name) {
    auto* flag = llvm::mdconst::dyn_extract_or_null<llvm::ConstantInt>(module.getModuleFlag(name));
    return flag ? flag->getZExtValue() : 0;
}

void PrepareModule(llvm::Module& module,
                   const llvm::TargetMachine& machine,
                   const TargetInfo& target) {
    module.setTargetTriple(kTriple);
    module.setDataLayout(machine.createDataLayout());
    module.setPICLevel(llvm::PICLevel::BigPIC);
    module.addModuleFlag(llvm::Module::Error, kVectorBitsFlag, target.vector_bits);
    const bool native_half =
        target.vector_bits >= 512 && target.features.find("+avx512fp16") != std::string::npos;
    module.addModuleFlag(llvm::Module::Error, kNativeHalfFlag, native_half ? 1 : 0);
    const bool fma = (target.features + ",").find("+fma,") != std::string::npos;
    module.addModuleFlag(llvm::Module::Error, kFmaFlag, fma ? 1 : 0);
    const char* vnni_feature = target.vector_bits >= 512 ? "+avx512vnni" : "+avxvnni,";
    const bool vnni = target.vector_bits >= 256 &&
                      (target.features + ",").find(vnni_feature) != std::string::npos;
    module.addModuleFlag(llvm::Module::Error, kVnniFlag, vnni ? 1 : 0);
    module.addModuleFlag(llvm::Module::Error, kBFloatDotFlag, HasBFloatDot(target) ? 1 : 0);
    module.addModuleFlag(llvm::Module::Error, kTilesFlag, HasTiles(target) ? 1 : 0);
}

void SetFunctionAttributes(llvm::Module& module, const TargetInfo& target) {
    std::string bits = std::to_string(target.vector_bits);
    for (llvm::Function& function : module) {
        if (function.isDeclaration()) {
            continue;
        }
        function.addFnAttr("target-cpu", target.cpu_name);
        function.addFnAttr("target-features", target.features);
        // Without both, LLVM prefers 256-bit registers on CPUs that once throttled on 512-bit ones.
        function.addFnAttr("prefer-vector-width", bits);
        function.addFnAttr("min-legal-vector-width", bits);
        function.addFnAttr("frame-pointer", "none");
        function.addFnAttr("no-builtins");
        function.addFnAttr(llvm::Attribute::NoUnwind);
        function.setDSOLocal(true);
    }
}

}  // namespace fornax::kernel
