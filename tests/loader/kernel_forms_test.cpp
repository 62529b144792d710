// How kernels come to run: compiled or interpreted (FORNAX_KERNEL), and what is refused before they
// do.
#include <array>
#include <cstdlib>

#include "tests/loader/shaders/add.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

constexpr uint32_t kCount = 100;

// Sets a variable of the environment while it lives. The driver reads FORNAX_KERNEL at the first
// pipeline of an instance.
class ScopedVariable {
  public:
    ScopedVariable(const char* name, const char* value) : name_(name) {
        const char* old = std::getenv(name);
        if (old) {
            old_ = old;
        }
        setenv(name, value, 1);
    }
    ~ScopedVariable() {
        if (old_) {
            setenv(name_, old_->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }

  private:
    const char* name_;
    std::optional<std::string> old_;
};

class KernelFormsTest : public VulkanTest {
  protected:
    void RunAdd() {
        std::array buffers = {MakeBuffer(kCount), MakeBuffer(kCount)};
        for (uint32_t i = 0; i < kCount; ++i) {
            buffers[0].words[i] = i * i;
        }
        TestPipeline pipeline = MakePipeline(spirv::kAdd, buffers);
        VkCommandBuffer commands = Begin();
        Bind(commands, pipeline);
        const uint32_t push[] = {1000, kCount - 3};
        vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push),
                           push);
        vkCmdDispatch(commands, 4, 1, 1);
        Run(commands);
        for (uint32_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(buffers[1].words[i], i < kCount - 3 ? i * i + 1000 : 0);
        }
    }

    // The size of a pipeline cache that the shader was compiled into. Interpreted kernels are not
    // stored, so it tells how the kernel was made.
    size_t CacheBytes() {
        VkPipelineCacheCreateInfo cache_info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
        VkPipelineCache cache = VK_NULL_HANDLE;
        EXPECT_VK(vkCreatePipelineCache(device_, &cache_info, nullptr, &cache));
        std::array buffers = {MakeBuffer(kCount), MakeBuffer(kCount)};
        const TestPipeline made = MakePipeline(spirv::kAdd, buffers);
        VkComputePipelineCreateInfo info{
            .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                      .module = made.module,
                      .pName = "main"},
            .layout = made.layout};
        VkPipeline pipeline = VK_NULL_HANDLE;
        EXPECT_VK(vkCreateComputePipelines(device_, cache, 1, &info, nullptr, &pipeline));
        size_t bytes = 0;
        EXPECT_VK(vkGetPipelineCacheData(device_, cache, &bytes, nullptr));
        vkDestroyPipeline(device_, pipeline, nullptr);
        vkDestroyPipelineCache(device_, cache, nullptr);
        return bytes;
    }
};

TEST_F(KernelFormsTest, CompiledKernelsAreStored) {
    const ScopedVariable form("FORNAX_KERNEL", "compile");
    RunAdd();
    EXPECT_GT(CacheBytes(), sizeof(VkPipelineCacheHeaderVersionOne));
}

TEST_F(KernelFormsTest, InterpretedKernelsGiveTheSameAndAreNotStored) {
    const ScopedVariable form("FORNAX_KERNEL", "interpret");
    RunAdd();
    EXPECT_EQ(CacheBytes(), sizeof(VkPipelineCacheHeaderVersionOne));
}

TEST_F(KernelFormsTest, OtherFormsAreRefused) {
    if (Validated()) {
        GTEST_SKIP() << "The validation layer rightly complains of the empty layout.";
    }
    const ScopedVariable form("FORNAX_KERNEL", "guess");
    VkShaderModuleCreateInfo module_info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = sizeof(spirv::kAdd),
                                         .pCode = spirv::kAdd};
    VkShaderModule module = VK_NULL_HANDLE;
    ASSERT_VK(vkCreateShaderModule(device_, &module_info, nullptr, &module));
    VkPipelineLayoutCreateInfo layout_info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    VkPipelineLayout layout = VK_NULL_HANDLE;
    ASSERT_VK(vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout));
    VkComputePipelineCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = layout};
    VkPipeline pipeline = VK_NULL_HANDLE;
    EXPECT_LT(vkCreateComputePipelines(device_, {}, 1, &info, nullptr, &pipeline), 0);
    ASSERT_EQ(messages_.size(), 1u);
    EXPECT_NE(messages_[0].find("guess"), std::string::npos) << messages_[0];
    messages_.clear();
    vkDestroyPipelineLayout(device_, layout, nullptr);
    vkDestroyShaderModule(device_, module, nullptr);
}

// VUID-vkCmdDispatch-None-08600.
TEST_F(KernelFormsTest, ADispatchWithoutItsSetIsRefused) {
    if (Validated()) {
        GTEST_SKIP() << "The validation layer rightly complains.";
    }
    std::array buffers = {MakeBuffer(kCount), MakeBuffer(kCount)};
    const TestPipeline pipeline = MakePipeline(spirv::kAdd, buffers);
    VkCommandBuffer commands = Begin();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
    vkCmdDispatch(commands, 1, 1, 1);
    EXPECT_LT(vkEndCommandBuffer(commands), 0);
    ASSERT_EQ(messages_.size(), 1u);
    EXPECT_NE(messages_[0].find("descriptor set 0"), std::string::npos) << messages_[0];
    messages_.clear();
}

}  // namespace
}  // namespace fornax::test
