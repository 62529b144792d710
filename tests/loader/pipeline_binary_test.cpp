// Pipeline binaries, and pipelines from the identifiers of their modules.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/shaders/count.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

struct Keyed {
    VkPipelineBinaryKeyKHR key{.sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_KEY_KHR};
    std::vector<uint8_t> data;
};

class PipelineBinaryTest : public VulkanTest {
  protected:
    void SetUp() override {
        api_version_ = VK_API_VERSION_1_4;
        more_extensions_ = {VK_KHR_PIPELINE_BINARY_EXTENSION_NAME,
                            VK_EXT_SHADER_MODULE_IDENTIFIER_EXTENSION_NAME};
        more_features_ = &binary_features_;
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

    // A pipeline whose scale nobody else uses, so that no cache has it.
    VkComputePipelineCreateInfo Info(const void* chain, uint32_t scale) {
        scale_ = scale;
        return {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                .pNext = chain,
                .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                          .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                          .module = add_.module,
                          .pName = "main",
                          .pSpecializationInfo = &specialization_},
                .layout = add_.layout};
    }
    VkResult Create(const VkComputePipelineCreateInfo& info, VkPipeline& pipeline) {
        const VkResult result =
            vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
        AtEnd([this, pipeline] { vkDestroyPipeline(device_, pipeline, nullptr); });
        return result;
    }
    VkPipeline Capture(uint32_t scale) {
        const VkPipelineCreateFlags2CreateInfo flags{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_FLAGS_2_CREATE_INFO,
            .flags = VK_PIPELINE_CREATE_2_CAPTURE_DATA_BIT_KHR};
        VkPipeline pipeline = VK_NULL_HANDLE;
        EXPECT_VK(Create(Info(&flags, scale), pipeline));
        return pipeline;
    }
    VkResult MakeBinary(const VkPipelineBinaryCreateInfoKHR& info, VkPipelineBinaryKHR& binary) {
        binary = VK_NULL_HANDLE;
        VkPipelineBinaryHandlesInfoKHR handles{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_HANDLES_INFO_KHR};
        EXPECT_VK(vkCreatePipelineBinariesKHR(device_, &info, nullptr, &handles));
        EXPECT_EQ(handles.pipelineBinaryCount, 1u);
        handles.pPipelineBinaries = &binary;
        const VkResult result = vkCreatePipelineBinariesKHR(device_, &info, nullptr, &handles);
        AtEnd([this, made = binary] { vkDestroyPipelineBinaryKHR(device_, made, nullptr); });
        return result;
    }
    VkPipelineBinaryKHR BinaryOf(VkPipeline pipeline) {
        VkPipelineBinaryKHR binary = VK_NULL_HANDLE;
        EXPECT_VK(MakeBinary(
            {.sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, .pipeline = pipeline},
            binary));
        return binary;
    }
    Keyed DataOf(VkPipelineBinaryKHR binary) {
        Keyed keyed;
        const VkPipelineBinaryDataInfoKHR info{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_DATA_INFO_KHR, .pipelineBinary = binary};
        size_t size = 0;
        EXPECT_VK(vkGetPipelineBinaryDataKHR(device_, &info, &keyed.key, &size, nullptr));
        keyed.data.resize(size);
        size = keyed.data.size() - 1;
        EXPECT_EQ(vkGetPipelineBinaryDataKHR(device_, &info, &keyed.key, &size, keyed.data.data()),
                  VK_ERROR_NOT_ENOUGH_SPACE_KHR);
        EXPECT_EQ(size, keyed.data.size());
        EXPECT_VK(vkGetPipelineBinaryDataKHR(device_, &info, &keyed.key, &size, keyed.data.data()));
        return keyed;
    }
    VkResult FromData(Keyed& keyed, VkPipelineBinaryKHR& binary) {
        const VkPipelineBinaryDataKHR data = {keyed.data.size(), keyed.data.data()};
        const VkPipelineBinaryKeysAndDataKHR keys{
            .binaryCount = 1, .pPipelineBinaryKeys = &keyed.key, .pPipelineBinaryData = &data};
        return MakeBinary(
            {.sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, .pKeysAndDataInfo = &keys},
            binary);
    }
    // Without the module, so without compilation.
    VkPipeline FromBinary(VkPipelineBinaryKHR binary, uint32_t scale) {
        const VkPipelineBinaryInfoKHR binaries{.sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_INFO_KHR,
                                               .binaryCount = 1,
                                               .pPipelineBinaries = &binary};
        VkComputePipelineCreateInfo info = Info(&binaries, scale);
        info.stage.module = VK_NULL_HANDLE;
        VkPipeline pipeline = VK_NULL_HANDLE;
        EXPECT_VK(Create(info, pipeline));
        return pipeline;
    }
    Keyed KeyOf(const VkComputePipelineCreateInfo* info) {
        Keyed keyed;
        VkPipelineCreateInfoKHR outer{.sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_INFO_KHR,
                                      .pNext = const_cast<VkComputePipelineCreateInfo*>(info)};
        EXPECT_VK(vkGetPipelineKeyKHR(device_, info ? &outer : nullptr, &keyed.key));
        EXPECT_GT(keyed.key.keySize, 0u);
        return keyed;
    }
    static bool SameKey(const Keyed& a, const Keyed& b) {
        return a.key.keySize == b.key.keySize &&
               std::memcmp(a.key.key, b.key.key, a.key.keySize) == 0;
    }
    void ExpectAdds(VkPipeline pipeline, uint32_t scale) {
        std::ranges::fill(out_.span(), 0u);
        VkCommandBuffer commands = Begin();
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, add_.layout, 0, 1,
                                &add_.set, 0, nullptr);
        const uint32_t constants[] = {5, 100};
        vkCmdPushConstants(commands, add_.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants),
                           constants);
        vkCmdDispatch(commands, 4, 1, 1);
        Barrier(commands);
        Run(commands);
        for (uint32_t i = 0; i < 100; ++i) {
            ASSERT_EQ(out_.words[i], (1000 + i) * scale + 5) << i;
        }
    }

    uint32_t scale_ = 1;
    const VkSpecializationMapEntry entry_ = {7, 0, sizeof(uint32_t)};
    const VkSpecializationInfo specialization_ = {1, &entry_, sizeof(uint32_t), &scale_};
    VkPhysicalDeviceShaderModuleIdentifierFeaturesEXT identifier_features_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MODULE_IDENTIFIER_FEATURES_EXT,
        .shaderModuleIdentifier = VK_TRUE};
    VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES,
        .pNext = &identifier_features_,
        .pipelineCreationCacheControl = VK_TRUE};
    VkPhysicalDeviceMaintenance5Features maintenance5_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_5_FEATURES,
        .pNext = &cache_control_,
        .maintenance5 = VK_TRUE};
    VkPhysicalDevicePipelineBinaryFeaturesKHR binary_features_{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_BINARY_FEATURES_KHR,
        .pNext = &maintenance5_,
        .pipelineBinaries = VK_TRUE};
    TestBuffer in_;
    TestBuffer out_;
    TestPipeline add_;
};

TEST_F(PipelineBinaryTest, PipelinesAreMadeOfWhatWasCaptured) {
    VkPipeline captured = Capture(3);
    ExpectAdds(captured, 3);
    Keyed first = DataOf(BinaryOf(captured));
    // The same again, through the application's hands.
    VkPipelineBinaryKHR binary = VK_NULL_HANDLE;
    EXPECT_VK(FromData(first, binary));
    ExpectAdds(FromBinary(binary, 3), 3);
    Keyed second = DataOf(binary);
    EXPECT_TRUE(SameKey(first, second));
    EXPECT_EQ(first.data, second.data);
    // What was captured can be given up; the pipeline stays.
    const VkReleaseCapturedPipelineDataInfoKHR release{
        .sType = VK_STRUCTURE_TYPE_RELEASE_CAPTURED_PIPELINE_DATA_INFO_KHR, .pipeline = captured};
    EXPECT_VK(vkReleaseCapturedPipelineDataKHR(device_, &release, nullptr));
    ExpectAdds(captured, 3);
}

TEST_F(PipelineBinaryTest, KeysTellPipelinesApart) {
    const Keyed global = KeyOf(nullptr);
    VkComputePipelineCreateInfo info = Info(nullptr, 3);
    const Keyed three = KeyOf(&info);
    EXPECT_TRUE(SameKey(three, KeyOf(&info)));
    info = Info(nullptr, 4);
    EXPECT_FALSE(SameKey(three, KeyOf(&info)));
    EXPECT_FALSE(SameKey(three, global));
    EXPECT_TRUE(SameKey(global, KeyOf(nullptr)));
}

TEST_F(PipelineBinaryTest, DamagedDataIsRefused) {
    Keyed good = DataOf(BinaryOf(Capture(3)));
    VkPipelineBinaryKHR binary = VK_NULL_HANDLE;
    std::mt19937 random(1);
    // Each refusal is told, which here counts as a failure unless it is taken.
    for (int i = 0; i < 200; ++i) {
        Keyed bad = good;
        bad.data[i < 80 ? static_cast<size_t>(i) : random() % bad.data.size()] ^=
            static_cast<uint8_t>(1 + random() % 255);
        EXPECT_EQ(FromData(bad, binary), VK_ERROR_INITIALIZATION_FAILED) << i;
        EXPECT_EQ(binary, VkPipelineBinaryKHR(VK_NULL_HANDLE));
    }
    for (const size_t size : {size_t{0}, size_t{40}, good.data.size() - 1}) {
        Keyed bad = good;
        bad.data.resize(size);
        EXPECT_EQ(FromData(bad, binary), VK_ERROR_INITIALIZATION_FAILED) << size;
    }
    messages_.clear();
}

// The driver's own cache can be asked without a pipeline.
TEST_F(PipelineBinaryTest, InternalCacheIsProbed) {
    VkComputePipelineCreateInfo info = Info(nullptr, 0x5eed0001);
    VkPipelineCreateInfoKHR outer{.sType = VK_STRUCTURE_TYPE_PIPELINE_CREATE_INFO_KHR,
                                  .pNext = &info};
    const VkPipelineBinaryCreateInfoKHR probe{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_BINARY_CREATE_INFO_KHR, .pPipelineCreateInfo = &outer};
    VkPipeline pipeline = VK_NULL_HANDLE;
    EXPECT_VK(Create(info, pipeline));
    VkPipelineBinaryKHR binary = VK_NULL_HANDLE;
    EXPECT_VK(MakeBinary(probe, binary));
    ExpectAdds(FromBinary(binary, 0x5eed0001), 0x5eed0001);
    // A scale from the clock: nobody has made that pipeline.
    info = Info(nullptr, static_cast<uint32_t>(std::random_device{}()));
    EXPECT_EQ(MakeBinary(probe, binary), VK_PIPELINE_BINARY_MISSING_KHR);
}

TEST_F(PipelineBinaryTest, IdentifiersStandForModules) {
    VkShaderModuleIdentifierEXT of_module{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_IDENTIFIER_EXT};
    VkShaderModuleIdentifierEXT of_info = of_module;
    VkShaderModuleIdentifierEXT of_other = of_module;
    vkGetShaderModuleIdentifierEXT(device_, add_.module, &of_module);
    VkShaderModuleCreateInfo info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                  .codeSize = sizeof(spirv::kAdd),
                                  .pCode = spirv::kAdd};
    vkGetShaderModuleCreateInfoIdentifierEXT(device_, &info, &of_info);
    info.codeSize = sizeof(spirv::kCount);
    info.pCode = spirv::kCount;
    vkGetShaderModuleCreateInfoIdentifierEXT(device_, &info, &of_other);
    ASSERT_EQ(of_module.identifierSize, of_info.identifierSize);
    EXPECT_EQ(std::memcmp(of_module.identifier, of_info.identifier, of_info.identifierSize), 0);
    EXPECT_NE(std::memcmp(of_module.identifier, of_other.identifier, of_info.identifierSize), 0);

    // add_ exists, so its kernel is at hand.
    const auto create = [&](const VkShaderModuleIdentifierEXT& identifier, uint32_t size,
                            VkPipeline& pipeline) {
        const VkPipelineShaderStageModuleIdentifierCreateInfoEXT by_identifier{
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_MODULE_IDENTIFIER_CREATE_INFO_EXT,
            .identifierSize = size,
            .pIdentifier = identifier.identifier};
        VkComputePipelineCreateInfo pipeline_info = Info(nullptr, 1);
        pipeline_info.flags = VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT;
        pipeline_info.stage.module = VK_NULL_HANDLE;
        pipeline_info.stage.pNext = &by_identifier;
        return Create(pipeline_info, pipeline);
    };
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipeline by_module = VK_NULL_HANDLE;
    EXPECT_VK(Create(Info(nullptr, 1), by_module));
    EXPECT_VK(create(of_module, of_module.identifierSize, pipeline));
    ExpectAdds(pipeline, 1);
    VkShaderModuleIdentifierEXT unknown = of_module;
    unknown.identifier[3] ^= 1;
    EXPECT_EQ(create(unknown, unknown.identifierSize, pipeline), VK_PIPELINE_COMPILE_REQUIRED);
    EXPECT_EQ(create(of_module, of_module.identifierSize - 1, pipeline),
              VK_PIPELINE_COMPILE_REQUIRED);
}

}  // namespace
}  // namespace fornax::test
