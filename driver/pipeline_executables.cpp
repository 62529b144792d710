// VK_KHR_pipeline_executable_properties: what a pipeline's kernel takes. Only offered with
// FORNAX_PIPELINE_STATISTICS, because programs that see it ask it of every pipeline.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "driver/chain.h"
#include "driver/compute_pipeline.h"
#include "driver/entry_point.h"

namespace fornax::driver {
namespace {

template <size_t kSize>
void CopyText(std::string_view text, char (&destination)[kSize]) {
    const size_t size = std::min(text.size(), kSize - 1);
    std::copy_n(text.data(), size, destination);
    std::fill(destination + size, destination + kSize, '\0');
}

struct Statistic {
    const char* name;
    const char* description;
    uint64_t value;
};

auto StatisticsOf(const ComputePipeline& pipeline) {
    const kernel::CompiledKernel& kernel = pipeline.compiled();
    const auto& size = kernel.workgroup_size;
    return std::array{
        Statistic{"Native code", "Bytes of the kernel's object, with the facts about it",
                  kernel.storable ? kernel.Serialized().size() : 0},
        Statistic{"Workgroup memory", "Bytes that a workgroup shares", kernel.shared_bytes},
        Statistic{"Scratch memory", "Bytes of private memory that a workgroup takes",
                  kernel.scratch_bytes},
        Statistic{"Invocations", "Invocations of a workgroup",
                  uint64_t{size[0]} * size[1] * size[2]},
        Statistic{"Independent workgroups", "Whether no workgroup can wait for another one",
                  kernel.independent_workgroups},
    };
}

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkGetPipelineExecutablePropertiesKHR(VkDevice,
                                     const VkPipelineInfoKHR* info,
                                     uint32_t* count,
                                     VkPipelineExecutablePropertiesKHR* properties) {
    const auto& pipeline = *FromHandle<ComputePipeline>(info->pipeline);
    return WriteArray(1, count, properties, [&](VkPipelineExecutablePropertiesKHR& out, uint32_t) {
        out.stages = VK_SHADER_STAGE_COMPUTE_BIT;
        CopyText(pipeline.compiled().name, out.name);
        CopyText("A kernel in native code", out.description);
        out.subgroupSize = pipeline.subgroup_size();
    });
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPipelineExecutableStatisticsKHR(VkDevice,
                                     const VkPipelineExecutableInfoKHR* info,
                                     uint32_t* count,
                                     VkPipelineExecutableStatisticKHR* statistics) {
    const auto all = StatisticsOf(*FromHandle<ComputePipeline>(info->pipeline));
    return WriteArray(static_cast<uint32_t>(all.size()), count, statistics,
                      [&](VkPipelineExecutableStatisticKHR& out, uint32_t i) {
                          CopyText(all[i].name, out.name);
                          CopyText(all[i].description, out.description);
                          out.format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR;
                          out.value.u64 = all[i].value;
                      });
}

// FORNAX_DUMP writes them all, at a kernel's compilation; none are kept.
FORNAX_ENTRY_POINT(VkResult)
vkGetPipelineExecutableInternalRepresentationsKHR(VkDevice,
                                                  const VkPipelineExecutableInfoKHR*,
                                                  uint32_t* count,
                                                  VkPipelineExecutableInternalRepresentationKHR*) {
    *count = 0;
    return VK_SUCCESS;
}

}  // namespace fornax::driver
