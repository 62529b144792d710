// Shader objects of compute: from SPIR-V and from binaries, beside pipelines.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

class ShaderObjectTest : public VulkanTest {
  protected:
    // As aligned as binary code must be (VUID-VkShaderCreateInfoEXT-pCode-08736).
    struct alignas(16) Block {
        std::array<std::byte, 16> bytes;
    };
    struct Binary {
        std::vector<Block> blocks;
        size_t size = 0;
        std::byte* data() { return blocks.data()->bytes.data(); }
    };

    void SetUp() override {
        api_version_ = VK_API_VERSION_1_3;
        more_extensions_ = {VK_EXT_SHADER_OBJECT_EXTENSION_NAME};
        more_features_ = &shader_object_;
        VulkanTest::SetUp();
        if (HasFatalFailure()) {
            return;
        }
        in_ = MakeBuffer(100);
        out_ = MakeBuffer(100);
        std::iota(in_.span().begin(), in_.span().end(), 1000u);
        std::array buffers = {in_, out_};
        add_ = MakePipeline(spirv::kAdd, buffers);
    }

    VkShaderCreateInfoEXT Info(std::span<const uint32_t> code) const {
        return {.sType = VK_STRUCTURE_TYPE_SHADER_CREATE_INFO_EXT,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .codeType = VK_SHADER_CODE_TYPE_SPIRV_EXT,
                .codeSize = code.size_bytes(),
                .pCode = code.data(),
                .pName = "main",
                .setLayoutCount = 1,
                .pSetLayouts = &add_.set_layout,
                .pushConstantRangeCount = 1,
                .pPushConstantRanges = &kRange};
    }
    VkShaderCreateInfoEXT Info(Binary& binary) const {
        VkShaderCreateInfoEXT info = Info(std::span<const uint32_t>());
        info.codeType = VK_SHADER_CODE_TYPE_BINARY_EXT;
        info.codeSize = binary.size;
        info.pCode = binary.data();
        return info;
    }
    VkShaderEXT Make(const VkShaderCreateInfoEXT& info) {
        VkShaderEXT shader = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateShadersEXT(device_, 1, &info, nullptr, &shader));
        AtEnd([this, shader] { vkDestroyShaderEXT(device_, shader, nullptr); });
        return shader;
    }
    Binary BinaryOf(VkShaderEXT shader) {
        Binary binary;
        EXPECT_VK(vkGetShaderBinaryDataEXT(device_, shader, &binary.size, nullptr));
        binary.blocks.resize((binary.size + sizeof(Block) - 1) / sizeof(Block));
        EXPECT_VK(vkGetShaderBinaryDataEXT(device_, shader, &binary.size, binary.data()));
        return binary;
    }
    void BindShader(VkCommandBuffer commands, VkShaderEXT shader) {
        constexpr VkShaderStageFlagBits kStage = VK_SHADER_STAGE_COMPUTE_BIT;
        vkCmdBindShadersEXT(commands, 1, &kStage, shader ? &shader : nullptr);
    }
    void RecordSets(VkCommandBuffer commands, uint32_t addend) {
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, add_.layout, 0, 1,
                                &add_.set, 0, nullptr);
        const uint32_t constants[] = {addend, 100};
        vkCmdPushConstants(commands, add_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                           constants);
    }
    void RunShader(VkShaderEXT shader, uint32_t addend) {
        std::ranges::fill(out_.span(), 0u);
        VkCommandBuffer commands = Begin();
        BindShader(commands, shader);
        RecordSets(commands, addend);
        vkCmdDispatch(commands, 4, 1, 1);
        Barrier(commands);
        Run(commands);
    }
    void ExpectAdded(uint32_t addend, uint32_t scale = 1) {
        for (uint32_t i = 0; i < 100; ++i) {
            ASSERT_EQ(out_.words[i], (1000 + i) * scale + addend) << i;
        }
    }

    static constexpr VkPushConstantRange kRange = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 128};
    VkPhysicalDeviceShaderObjectFeaturesEXT shader_object_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_OBJECT_FEATURES_EXT,
        .shaderObject = VK_TRUE};
    TestBuffer in_;
    TestBuffer out_;
    TestPipeline add_;
};

TEST_F(ShaderObjectTest, RunsWithItsOwnSpecialization) {
    RunShader(Make(Info(spirv::kAdd)), 5);
    ExpectAdded(5);
    const uint32_t scale = 3;
    const VkSpecializationMapEntry entry = {7, 0, sizeof(scale)};
    const VkSpecializationInfo specialization = {1, &entry, sizeof(scale), &scale};
    VkShaderCreateInfoEXT info = Info(spirv::kAdd);
    info.pSpecializationInfo = &specialization;
    VkShaderEXT scaled = Make(info);
    RunShader(scaled, 2);
    ExpectAdded(2, 3);
    // What was specialised is part of the binary.
    Binary binary = BinaryOf(scaled);
    RunShader(Make(Info(binary)), 9);
    ExpectAdded(9, 3);
}

TEST_F(ShaderObjectTest, BinariesMakeTheSameShader) {
    VkShaderEXT shader = Make(Info(spirv::kAdd));
    Binary binary = BinaryOf(shader);
    EXPECT_GT(binary.size, sizeof(spirv::kAdd));
    VkShaderEXT again = Make(Info(binary));
    RunShader(again, 7);
    ExpectAdded(7);
    Binary second = BinaryOf(again);
    ASSERT_EQ(second.size, binary.size);
    EXPECT_TRUE(std::equal(binary.data(), binary.data() + binary.size, second.data()));
    // With too little room nothing is written.
    std::fill_n(second.data(), second.size, std::byte{0x5a});
    size_t size = binary.size - 1;
    EXPECT_EQ(vkGetShaderBinaryDataEXT(device_, shader, &size, second.data()), VK_INCOMPLETE);
    EXPECT_EQ(size, 0u);
    EXPECT_EQ(std::count(second.data(), second.data() + second.size, std::byte{0x5a}),
              static_cast<ptrdiff_t>(second.size));
}

TEST_F(ShaderObjectTest, DamagedBinariesAreIncompatible) {
    Binary binary = BinaryOf(Make(Info(spirv::kAdd)));
    std::mt19937 random(1);
    const auto expect_incompatible = [&](const VkShaderCreateInfoEXT& info) {
        VkShaderEXT shader = reinterpret_cast<VkShaderEXT>(uintptr_t{0xdead});
        EXPECT_EQ(vkCreateShadersEXT(device_, 1, &info, nullptr, &shader),
                  VK_INCOMPATIBLE_SHADER_BINARY_EXT);
        EXPECT_EQ(shader, VkShaderEXT(VK_NULL_HANDLE));
    };
    for (int i = 0; i < 500; ++i) {
        std::byte& byte = binary.data()[i < 64 ? static_cast<size_t>(i) : random() % binary.size];
        const std::byte good = byte;
        byte ^= static_cast<std::byte>(1 + random() % 255);
        expect_incompatible(Info(binary));
        byte = good;
    }
    for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, binary.size - 1}) {
        VkShaderCreateInfoEXT info = Info(binary);
        info.codeSize = size;
        expect_incompatible(info);
    }
    if (Validated()) {
        return;
    }
    // Code of no bytes, and of another stage.
    VkShaderCreateInfoEXT info = Info(binary);
    info.codeSize = 0;
    expect_incompatible(info);
    info = Info(binary);
    info.stage = VK_SHADER_STAGE_VERTEX_BIT;
    expect_incompatible(info);
}

// Pipelines and shader objects replace one another ("Interaction with Pipelines").
TEST_F(ShaderObjectTest, TakesTurnsWithPipelines) {
    const uint32_t scale = 3;
    const VkSpecializationMapEntry entry = {7, 0, sizeof(scale)};
    const VkSpecializationInfo specialization = {1, &entry, sizeof(scale), &scale};
    VkShaderCreateInfoEXT info = Info(spirv::kAdd);
    info.pSpecializationInfo = &specialization;
    VkShaderEXT shader = Make(info);
    for (const bool shader_last : {false, true}) {
        VkCommandBuffer commands = Begin();
        RecordSets(commands, 1);
        if (!shader_last) {
            BindShader(commands, shader);
        }
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, add_.pipeline);
        if (shader_last) {
            BindShader(commands, shader);
        }
        vkCmdDispatchBase(commands, 0, 0, 0, 4, 1, 1);
        Barrier(commands);
        Run(commands);
        ExpectAdded(1, shader_last ? 3 : 1);
    }
}

// "If creation fails, the first null handle tells of which": those before it are made.
TEST_F(ShaderObjectTest, CreationStopsAtTheFirstFailure) {
    Binary binary = BinaryOf(Make(Info(spirv::kAdd)));
    binary.data()[100] ^= std::byte{1};
    const VkShaderCreateInfoEXT infos[] = {Info(spirv::kAdd), Info(binary), Info(spirv::kAdd)};
    VkShaderEXT shaders[3];
    std::ranges::fill(shaders, reinterpret_cast<VkShaderEXT>(uintptr_t{0xdead}));
    EXPECT_EQ(vkCreateShadersEXT(device_, 3, infos, nullptr, shaders),
              VK_INCOMPATIBLE_SHADER_BINARY_EXT);
    EXPECT_NE(shaders[0], VkShaderEXT(VK_NULL_HANDLE));
    EXPECT_EQ(shaders[1], VkShaderEXT(VK_NULL_HANDLE));
    EXPECT_EQ(shaders[2], VkShaderEXT(VK_NULL_HANDLE));
    RunShader(shaders[0], 4);
    ExpectAdded(4);
    vkDestroyShaderEXT(device_, shaders[0], nullptr);
}

// Binaries with one UUID are good on every device that shows it, so also where buffers are checked
// and where they are not.
TEST_F(ShaderObjectTest, BinariesServeDevicesWithOtherFeatures) {
    Binary binary = BinaryOf(Make(Info(spirv::kAdd)));
    TearDown();
    in_ = out_ = {};
    robust_ = true;
    SetUp();
    if (HasFatalFailure()) {
        return;
    }
    RunShader(Make(Info(binary)), 11);
    ExpectAdded(11);
}

}  // namespace
}  // namespace fornax::test
