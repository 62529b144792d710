// Asks LLVM for the host's CPU and makes target machines for it or for an older one.
#include "compiler/kernel/codegen/target.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

namespace fornax::kernel {

namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

// Below these the maths library would need calls (floor, round): x86-64-v2.
constexpr const char* kRequiredFeatures[] = {"sse4.1", "sse4.2", "ssse3", "popcnt"};
// What a 256-bit kernel takes for granted: every AVX2 machine has the rest.
constexpr const char* kAvx2Features[] = {"avx2", "fma", "f16c"};
// What a 512-bit kernel takes for granted beyond that.
constexpr const char* kAvx512Features[] = {"avx512f", "avx512vl", "avx512dq", "avx512bw"};

void InitializeLlvm() {
    static std::once_flag once;
    std::call_once(once, [] {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
    });
}

bool Has(const llvm::StringMap<bool>& features, const char* name) {
    auto it = features.find(name);
    return it != features.end() && it->second;
}

template <size_t N>
bool HasAll(const llvm::StringMap<bool>& features, const char* const (&names)[N]) {
    return std::all_of(std::begin(names), std::end(names),
                       [&](const char* name) { return Has(features, name); });
}

// "+a,-b", sorted, because the text is part of the key of cached code.
std::string FeatureString(const llvm::StringMap<bool>& features) {
    std::vector<std::string> parts;
    for (const auto& feature : features)
        parts.push_back((feature.second ? "+" : "-") + feature.first().str());
    std::sort(parts.begin(), parts.end(),
              [](const std::string& a, const std::string& b) { return a.substr(1) < b.substr(1); });
    std::string text;
    for (const std::string& part : parts)
        text += (text.empty() ? "" : ",") + part;
    return text;
}

uint32_t VectorBits(const llvm::StringMap<bool>& features) {
    if (!HasAll(features, kAvx2Features))
        return 128;
    return HasAll(features, kAvx512Features) ? 512 : 256;
}

}  // namespace

Result<TargetInfo> DetectTarget(const std::string& cpu_override) {
    llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
    TargetInfo target;
    target.cpu_name = llvm::sys::getHostCPUName().str();
    llvm::StringMap<bool> features = host;
    if (!cpu_override.empty()) {
        if (llvm::X86::parseArchX86(cpu_override, /*Only64Bit=*/true) == llvm::X86::CK_None) {
            return Error{ErrorCode::kUnsupported, "FORNAX_CPU is \"" + cpu_override +
                                                      "\", which is not an x86-64 CPU that LLVM "
                                                      "knows."};
        }
        llvm::SmallVector<llvm::StringRef, 64> named;
        llvm::X86::getFeaturesForCPU(cpu_override, named);
        for (auto& feature : features)
            feature.second = false;
        for (llvm::StringRef name : named) {
            auto it = host.find(name);
            // Not everything in LLVM's list is a property that a CPU reports.
            if (it == host.end())
                continue;
            if (!it->second) {
                return Error{ErrorCode::kUnsupported,
                             "FORNAX_CPU is \"" + cpu_override + "\", whose feature " + name.str() +
                                 " this machine's CPU (" + target.cpu_name + ") lacks."};
            }
            features[name] = true;
            llvm::X86::updateImpliedFeatures(name, true, features);
        }
        target.cpu_name = cpu_override;
        features["64bit"] = true;  // LLVM leaves it out of a CPU's list
        // LLVM's own CPU tables count 512-bit registers as a feature of their own.
        if (Has(features, "avx512f"))
            features["evex512"] = true;
    }
    for (const char* name : kRequiredFeatures) {
        if (!Has(features, name)) {
            return Error{ErrorCode::kUnsupported,
                         "The CPU " + target.cpu_name + " lacks " + name +
                             ", which Fornax needs (x86-64-v2 is the least it runs on)."};
        }
    }
    target.features = FeatureString(features);
    target.vector_bits = VectorBits(features);
    return target;
}

Result<std::unique_ptr<llvm::TargetMachine>> CreateTargetMachine(const TargetInfo& target,
                                                                 llvm::CodeGenOptLevel level) {
    InitializeLlvm();
    std::string message;
    const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(kTriple, message);
    if (!backend)
        return Error{ErrorCode::kInternal, "LLVM has no x86-64 backend: " + message + "."};
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
}

void SetFunctionAttributes(llvm::Module& module, const TargetInfo& target) {
    std::string bits = std::to_string(target.vector_bits);
    for (llvm::Function& function : module) {
        if (function.isDeclaration())
            continue;
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
