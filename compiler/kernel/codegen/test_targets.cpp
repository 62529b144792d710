#include "compiler/kernel/codegen/test_targets.h"

namespace fornax::kernel {

const std::vector<std::string>& TestCpus() {
    static const std::vector<std::string> cpus = [] {
        std::vector<std::string> list;
        for (const char* name : {"", "x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
            if (DetectTarget(name).ok()) {
                list.emplace_back(name);
            }
        }
        return list;
    }();
    return cpus;
}

const std::vector<TargetInfo>& TestTargets() {
    static const std::vector<TargetInfo> targets = [] {
        std::vector<TargetInfo> list;
        for (const std::string& cpu : TestCpus()) {
            list.push_back(*DetectTarget(cpu));
        }
        return list;
    }();
    return targets;
}

}  // namespace fornax::kernel
