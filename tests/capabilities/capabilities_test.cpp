// Advertised, accepted and tested SPIR-V capabilities are the same.
//
//   advertised  what vk.xml lets a shader declare on this device (gen_capabilities.py)
//   accepted    what the SPIR-V reader lets a module declare
//   tested      what a module among the loader tests' shaders declares
//
// The exceptions below are sentences, so that each has a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

#include "compiler/kernel/spirv/reader.h"
#include "driver/supported_api.h"
#include "driver/test_device.h"

namespace fornax {
namespace {

namespace fs = std::filesystem;
using driver::ApiSet;
using driver::FeatureSet;
using testing::IsEmpty;

struct Properties {
    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceFloatControlsProperties floats = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
};

struct Rule {
    spv::Capability capability;
    const char* name;
    bool (*allowed)(const ApiSet& api, const FeatureSet& features, const Properties& p);
};

constexpr Rule kRules[] = {
#include "tests/capabilities/capability_rules.inc"
};

// A module that declares the first declares the second with it.
struct Implication {
    spv::Capability from;
    spv::Capability to;
};

constexpr Implication kImplied[] = {
#include "tests/capabilities/capability_implied.inc"
};

using Exceptions = std::map<spv::Capability, const char*>;

// Advertised, but a compute kernel cannot use it.
const Exceptions kNotAccepted = {
    {spv::Capability::InputAttachment, "fragment shaders only"},
};

// Accepted, but not advertised: none should be left once its feature is.
const Exceptions kNotAdvertised = {};

// Accepted, but no kernel of a test can declare it.
constexpr char kAtRunTime[] = "subgroups_test.cpp compiles its modules at run time";
const Exceptions kNotTested = {
    {spv::Capability::GroupNonUniform, kAtRunTime},
    {spv::Capability::GroupNonUniformVote, kAtRunTime},
    {spv::Capability::GroupNonUniformArithmetic, kAtRunTime},
    {spv::Capability::GroupNonUniformBallot, kAtRunTime},
    {spv::Capability::GroupNonUniformShuffle, kAtRunTime},
    {spv::Capability::GroupNonUniformShuffleRelative, kAtRunTime},
    {spv::Capability::GroupNonUniformClustered, kAtRunTime},
    {spv::Capability::GroupNonUniformQuad, kAtRunTime},
    {spv::Capability::GroupNonUniformPartitionedEXT, kAtRunTime},
    {spv::Capability::GroupNonUniformRotateKHR, kAtRunTime},
    {spv::Capability::SubgroupBallotKHR, kAtRunTime},
    {spv::Capability::SubgroupVoteKHR, kAtRunTime},
    {spv::Capability::QuadControlKHR, kAtRunTime},
    {spv::Capability::UniformTexelBufferArrayDynamicIndexing,
     "image_nonuniform.comp asks for more"},
    {spv::Capability::StorageTexelBufferArrayDynamicIndexing,
     "image_nonuniform.comp asks for more"},
    {spv::Capability::UniformBufferArrayDynamicIndexing, "descriptor_indexing.comp asks for more"},
    {spv::Capability::StorageBufferArrayDynamicIndexing, "descriptor_indexing.comp asks for more"},
    {spv::Capability::SampledImageArrayDynamicIndexing, "the image tests do not declare it yet"},
    {spv::Capability::StorageImageArrayDynamicIndexing, "the image tests do not declare it yet"},
    {spv::Capability::StorageImageExtendedFormats, "the image tests do not declare it yet"},
    {spv::Capability::DeviceGroup, "a device group has one device, so its index is always 0"},
    {spv::Capability::DemoteToHelperInvocation,
     "fragment shaders only; reader_extensions_test.cpp"},
};

// What the modules in the folder and below declare, in so many words or not.
std::set<spv::Capability> DeclaredBelow(const fs::path& folder) {
    std::set<spv::Capability> declared;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".spv") {
            continue;
        }
        std::ifstream file(entry.path(), std::ios::binary);
        std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
        std::vector<uint32_t> words(bytes.size() / 4);
        std::memcpy(words.data(), bytes.data(), words.size() * 4);
        // Capabilities come first (SPIR-V 1.6, section 2.4).
        for (size_t at = 5; at + 1 < words.size() && (words[at] & 0xffff) == 17; at += 2) {
            declared.insert(static_cast<spv::Capability>(words[at + 1]));
        }
    }
    for (size_t before = 0; before != declared.size();) {
        before = declared.size();
        for (const Implication& implication : kImplied) {
            if (declared.contains(implication.from)) {
                declared.insert(implication.to);
            }
        }
    }
    return declared;
}

class Capabilities : public driver_test::TestDevice {
  protected:
    std::vector<const Rule*> Advertised() {
        EXPECT_EQ(CreateInstance(), VK_SUCCESS);
        uint32_t count = 1;
        VkPhysicalDevice device = VK_NULL_HANDLE;
        EXPECT_EQ(vkEnumeratePhysicalDevices(instance_, &count, &device), VK_SUCCESS);
        Properties properties;
        properties.subgroup.pNext = &properties.floats;
        VkPhysicalDeviceProperties2 query = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &properties.subgroup};
        vkGetPhysicalDeviceProperties2(device, &query);
        std::vector<const Rule*> advertised;
        for (const Rule& rule : kRules) {
            if (rule.allowed(driver::SupportedApi(), driver::SupportedFeatures(), properties)) {
                advertised.push_back(&rule);
            }
        }
        return advertised;
    }

    static std::set<spv::Capability> Accepted() {
        std::set<spv::Capability> accepted;
        for (uint32_t number : kernel::AcceptedCapabilities()) {
            accepted.insert(static_cast<spv::Capability>(number));
        }
        return accepted;
    }
};

TEST_F(Capabilities, WhatIsAdvertisedIsAccepted) {
    const auto accepted = Accepted();
    std::vector<std::string> missing;
    for (const Rule* rule : Advertised()) {
        if (!accepted.contains(rule->capability) && !kNotAccepted.contains(rule->capability)) {
            missing.push_back(rule->name);
        }
    }
    EXPECT_THAT(missing, IsEmpty()) << "capabilities.cpp lists what the reader accepts";
}

TEST_F(Capabilities, WhatIsAcceptedIsAdvertised) {
    std::set<spv::Capability> advertised;
    for (const Rule* rule : Advertised()) {
        advertised.insert(rule->capability);
    }
    std::vector<std::string> wrong;
    for (const Rule& rule : kRules) {
        if (Accepted().contains(rule.capability) && !advertised.contains(rule.capability) &&
            !kNotAdvertised.contains(rule.capability)) {
            wrong.push_back(rule.name);
        }
    }
    EXPECT_THAT(wrong, IsEmpty()) << "driver/supported_api.cpp lists what is advertised";
}

TEST_F(Capabilities, VectorsAreAsLongAsTheReaderTakesThem) {
    ASSERT_EQ(CreateInstance(), VK_SUCCESS);
    uint32_t count = 1;
    VkPhysicalDevice device = VK_NULL_HANDLE;
    ASSERT_EQ(vkEnumeratePhysicalDevices(instance_, &count, &device), VK_SUCCESS);
    VkPhysicalDeviceShaderLongVectorPropertiesEXT vectors = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_LONG_VECTOR_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 query = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &vectors};
    vkGetPhysicalDeviceProperties2(device, &query);
    EXPECT_EQ(vectors.maxVectorComponents, kernel::kReaderLimits.vector_components);
}

TEST_F(Capabilities, WhatIsAdvertisedIsTested) {
    const auto declared = DeclaredBelow(FORNAX_TEST_SHADERS);
    ASSERT_TRUE(declared.contains(spv::Capability::Shader)) << "no modules were found";
    const auto accepted = Accepted();
    std::vector<std::string> missing;
    for (const Rule* rule : Advertised()) {
        if (accepted.contains(rule->capability) && !declared.contains(rule->capability) &&
            !kNotTested.contains(rule->capability)) {
            missing.push_back(rule->name);
        }
    }
    EXPECT_THAT(missing, IsEmpty()) << "no module in tests/loader/shaders declares these";
}

}  // namespace
}  // namespace fornax
