// Records a kernel's dispatches once; every run submits the same command buffer.
#include "tools/bench/kernel_workload.h"

#include <fmt/format.h>

namespace fornax::bench {

Status KernelWorkload::Prepare(std::span<const uint32_t> spirv,
                               const std::vector<uint8_t>& constants,
                               Grid grid,
                               uint32_t dispatches) {
    FORNAX_ASSIGN_OR_RETURN(
        kernel_, device_.CreateKernel(spirv, buffers_, static_cast<uint32_t>(constants.size())));
    FORNAX_ASSIGN_OR_RETURN(warm_up_commands_, Record(constants, Grid(), 1));
    FORNAX_ASSIGN_OR_RETURN(commands_, Record(constants, grid, dispatches));
    return OkStatus();
}

Result<VkCommandBuffer> KernelWorkload::Record(const std::vector<uint8_t>& constants,
                                               Grid grid,
                                               uint32_t dispatches) {
    FORNAX_ASSIGN_OR_RETURN(VkCommandBuffer commands, device_.BeginCommands());
    const VkDescriptorSet set = kernel_.descriptor_set();
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel_.pipeline());
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel_.layout(), 0, 1, &set,
                            0, nullptr);
    if (!constants.empty()) {
        vkCmdPushConstants(commands, kernel_.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<uint32_t>(constants.size()), constants.data());
    }
    for (uint32_t i = 0; i < dispatches; ++i) {
        if (i != 0) {
            RecordBarrier(commands);
        }
        vkCmdDispatch(commands, grid.x, grid.y, 1);
    }
    FORNAX_RETURN_IF_ERROR(device_.EndCommands(commands));
    return commands;
}

Status KernelWorkload::WarmUp() {
    Result<double> seconds = device_.Submit(warm_up_commands_);
    return seconds.ok() ? OkStatus() : Status(seconds.error());
}

Result<double> KernelWorkload::Run() {
    return device_.Submit(commands_);
}

Error WrongResult(const char* workload, size_t index, double actual, double expected) {
    return Error{ErrorCode::kInternal, fmt::format("{}: element {} is {} instead of {}.", workload,
                                                   index, actual, expected)};
}

}  // namespace fornax::bench
