// Asks LLVM for the host's CPU. Only its library of CPUs is used here, not its compiler.
#include "compiler/kernel/codegen/target.h"

#include <algorithm>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

namespace fornax::kernel {

namespace {

// Below these the maths library would need calls (floor, round): x86-64-v2.
constexpr const char* kRequiredFeatures[] = {"sse4.1", "sse4.2", "ssse3", "popcnt"};
// What a 256-bit kernel takes for granted: every AVX2 machine has the rest.
constexpr const char* kAvx2Features[] = {"avx2", "fma", "f16c"};
// What a 512-bit kernel takes for granted beyond that.
constexpr const char* kAvx512Features[] = {"avx512f", "avx512vl", "avx512dq", "avx512bw"};

// What a product of tiles takes, beside AVX-512.
constexpr const char* kTileFeatures[] = {"amx-tile", "amx-bf16", "amx-int8"};

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
    for (const auto& feature : features) {
        parts.push_back((feature.second ? "+" : "-") + feature.first().str());
    }
    std::sort(parts.begin(), parts.end(),
              [](const std::string& a, const std::string& b) { return a.substr(1) < b.substr(1); });
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : ",") + part;
    }
    return text;
}

uint32_t VectorBits(const llvm::StringMap<bool>& features) {
    if (!HasAll(features, kAvx2Features)) {
        return 128;
    }
    return HasAll(features, kAvx512Features) ? 512 : 256;
}

// Tiles are 8 KiB more to save, which signal stacks of threads have to take: Linux wants to be
// asked (Documentation/arch/x86/xstate.rst), and refuses where one that is registered is too small.
bool MayUseTiles() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
    constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
    constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

bool HasFeature(const TargetInfo& target, const std::string& name) {
    return ("," + target.features + ",").find(",+" + name + ",") != std::string::npos;
}

}  // namespace

bool HasTiles(const TargetInfo& target) {
    return target.vector_bits >= 512 &&
           std::all_of(std::begin(kTileFeatures), std::end(kTileFeatures),
                       [&](const char* name) { return HasFeature(target, name); });
}

bool HasBFloatDot(const TargetInfo& target) {
    return target.vector_bits >= 512 && HasFeature(target, "avx512bf16");
}

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
        for (auto& feature : features) {
            feature.second = false;
        }
        for (llvm::StringRef name : named) {
            auto it = host.find(name);
            // Not everything in LLVM's list is a property that a CPU reports.
            if (it == host.end()) {
                continue;
            }
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
        if (Has(features, "avx512f")) {
            features["evex512"] = true;
        }
    }
    for (const char* name : kRequiredFeatures) {
        if (!Has(features, name)) {
            return Error{ErrorCode::kUnsupported,
                         "The CPU " + target.cpu_name + " lacks " + name +
                             ", which Fornax needs (x86-64-v2 is the least it runs on)."};
        }
    }
    if (!HasAll(features, kTileFeatures) || !MayUseTiles()) {
        for (const char* name : kTileFeatures) {
            features[name] = false;
        }
    }
    target.features = FeatureString(features);
    target.vector_bits = VectorBits(features);
    return target;
}

}  // namespace fornax::kernel
