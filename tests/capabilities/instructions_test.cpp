// Every SPIR-V instruction that the accepted capabilities enable is in a module of a test.
//
// Modules are of three kinds: those of the loader tests, which are compiled at build time, SPIR-V
// as text in the sources of tests, and the subgroup tests', which are compiled when they run. The
// exceptions below are the instructions that no kernel can have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

#include "compiler/kernel/spirv/derivative_cases.h"
#include "compiler/kernel/spirv/reader.h"
#include "compiler/kernel/spirv/shader_harness.h"
#include "compiler/kernel/spirv/subgroup_cases.h"

namespace fornax {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

struct Instruction {
    uint32_t opcode;
    std::vector<std::string> names;             // the aliases, too
    std::vector<spv::Capability> capabilities;  // any of them enables it; none: always there
};

const Instruction kInstructions[] = {
#include "tests/capabilities/instructions.inc"
};

const Instruction kGlslInstructions[] = {
#include "tests/capabilities/glsl_instructions.inc"
};

const std::map<std::string, const char*> kExceptions = {
    {"OpUntypedPrefetchKHR", "for kernels of OpenCL"},
    {"OpUntypedGroupAsyncCopyKHR", "for kernels of OpenCL"},
};

const std::map<std::string, const char*> kGlslExceptions = {
    {"IMix", "reserved, no instruction (GLSL.std.450, section 2)"},
};

std::string ReadFile(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

constexpr uint32_t kGLSL = 'G' | 'L' << 8 | 'S' << 16 | 'L' << 24;  // of "GLSL.std.450"

// What modules use: opcodes, and numbers of GLSL.std.450, the only set that kernels compute with.
struct Numbers {
    std::set<uint32_t> opcodes;
    std::set<uint32_t> glsl;
};

void AddNumbers(const std::vector<uint32_t>& words, Numbers& numbers) {
    std::set<uint32_t> glsl_sets;
    // An instruction's first word holds its number of words and its opcode (SPIR-V 1.6, 2.3).
    for (size_t at = 5; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16) {
        const uint32_t opcode = words[at] & 0xffff;
        numbers.opcodes.insert(opcode);
        if (opcode == static_cast<uint32_t>(spv::Op::OpExtInstImport) && words[at + 2] == kGLSL) {
            glsl_sets.insert(words[at + 1]);
        }
        if (opcode == static_cast<uint32_t>(spv::Op::OpExtInst) &&
            glsl_sets.contains(words[at + 3])) {
            numbers.glsl.insert(words[at + 4]);
        }
    }
}

Numbers NumbersInTests() {
    Numbers numbers;
    for (const auto& entry : fs::recursive_directory_iterator(FORNAX_TEST_SHADERS)) {
        if (entry.path().extension() != ".spv") {
            continue;
        }
        const std::string bytes = ReadFile(entry.path());
        std::vector<uint32_t> words(bytes.size() / 4);
        std::memcpy(words.data(), bytes.data(), words.size() * 4);
        AddNumbers(words, numbers);
    }
    std::set<kernel::SubgroupCase::Needs> needs;
    for (const kernel::SubgroupCase& c : kernel::SubgroupCases()) {
        needs.insert(c.needs);
    }
    for (kernel::SubgroupCase::Needs each : needs) {
        const kernel::SubgroupRun run = {.needs = each};
        AddNumbers(kernel::CompileGlsl(run.Shader(), "--target-env vulkan1.3"), numbers);
    }
    const kernel::DerivativeRun derivatives;
    AddNumbers(kernel::CompileGlsl(derivatives.Shader()), numbers);
    return numbers;
}

// The words of the form OpName in the text, and those behind "%glsl".
void AddNames(const std::string& text, std::set<std::string>& names) {
    for (size_t at = 0; at < text.size(); ++at) {
        if (text.compare(at, 6, "%glsl ") == 0) {
            at += 6;
        } else if (text.compare(at, 2, "Op") != 0) {
            continue;
        }
        size_t end = at;
        while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) {
            ++end;
        }
        names.insert(text.substr(at, end - at));
    }
}

std::set<std::string> NamesInTests() {
    const fs::path sources = FORNAX_TEST_SOURCES;
    std::set<std::string> names;
    for (const fs::path& folder : {sources / "compiler" / "kernel", sources / "tests" / "loader"}) {
        for (const auto& entry : fs::recursive_directory_iterator(folder)) {
            const std::string name = entry.path().filename().string();
            if (name.ends_with("_test.cpp") || name.ends_with(".spvasm")) {
                AddNames(ReadFile(entry.path()), names);
            }
        }
    }
    return names;
}

class Instructions : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        numbers_ = NumbersInTests();
        names_ = NamesInTests();
    }

    static void Check(std::span<const Instruction> instructions,
                      const std::set<uint32_t>& numbers,
                      const std::map<std::string, const char*>& exceptions) {
        const std::vector<uint32_t> accepted = kernel::AcceptedCapabilities();
        std::vector<std::string> missing;
        std::vector<std::string> needless;
        for (const Instruction& instruction : instructions) {
            const bool enabled =
                instruction.capabilities.empty() ||
                std::ranges::any_of(instruction.capabilities, [&](spv::Capability capability) {
                    return std::ranges::count(accepted, static_cast<uint32_t>(capability)) != 0;
                });
            const bool tested = numbers.contains(instruction.opcode) ||
                                std::ranges::any_of(instruction.names, [&](const auto& name) {
                                    return names_.contains(name);
                                });
            const bool listed = exceptions.contains(instruction.names.front());
            if (enabled && !tested && !listed) {
                missing.push_back(instruction.names.front());
            }
            if (listed && (tested || !enabled)) {
                needless.push_back(instruction.names.front());
            }
        }
        EXPECT_THAT(missing, IsEmpty()) << "reader_instructions_test.cpp is for instructions that "
                                           "no other test has a reason to use";
        EXPECT_THAT(needless, IsEmpty()) << "these have a test, so they are no exceptions";
    }

    static inline Numbers numbers_;
    static inline std::set<std::string> names_;
};

TEST_F(Instructions, WhatIsEnabledIsTested) {
    ASSERT_TRUE(numbers_.opcodes.contains(static_cast<uint32_t>(spv::Op::OpEntryPoint)));
    ASSERT_TRUE(names_.contains("OpEntryPoint"));
    Check(kInstructions, numbers_.opcodes, kExceptions);
}

TEST_F(Instructions, WhatGlslHasIsTested) {
    ASSERT_GT(std::size(kGlslInstructions), 70u);
    Check(kGlslInstructions, numbers_.glsl, kGlslExceptions);
}

}  // namespace
}  // namespace fornax
