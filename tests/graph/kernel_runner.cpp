// The Vulkan objects of one kernel, made for each run.
#include "tests/graph/kernel_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

#include <fmt/format.h>

#include "runtime/program.h"
#include "runtime/vulkan/buffer.h"
#include "runtime/vulkan/commands.h"
#include "runtime/vulkan/pipeline.h"

namespace fornax::test {
namespace {

// Around each buffer in its memory.
constexpr size_t kMargin = 4096;
constexpr uint8_t kPoison = 0xA5;
constexpr uint32_t kTimedDispatches = 2;

bool IsPoison(std::span<const uint8_t> bytes) {
    return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == kPoison; });
}

double CpuTime() {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

struct KernelRunner::Objects {
    std::vector<std::unique_ptr<vulkan::Buffer>> buffers;
    std::unique_ptr<vulkan::PipelineFactory> pipelines;
    std::unique_ptr<vulkan::DescriptorSets> sets;
    std::unique_ptr<vulkan::Commands> commands;

    Status Run() const {
        FORNAX_RETURN_IF_ERROR(commands->Submit());
        return commands->Wait();
    }
};

KernelRunner::KernelRunner(std::shared_ptr<vulkan::Device> device)
    : device_(std::move(device)), target_(runtime::TargetOf(*device_)) {}

Result<std::unique_ptr<KernelRunner>> KernelRunner::Open() {
    Result<std::shared_ptr<vulkan::Device>> device = vulkan::Device::Open("0");
    if (!device.ok()) {
        return std::move(device).error();
    }
    return std::unique_ptr<KernelRunner>(new KernelRunner(std::move(*device)));
}

Result<KernelRunner::Objects> KernelRunner::Record(const Dispatch& dispatch,
                                                   std::span<const std::vector<uint8_t>> buffers,
                                                   uint32_t count) const {
    Objects objects;
    vulkan::DescriptorSets::Set set;
    for (const std::vector<uint8_t>& bytes : buffers) {
        const size_t size = std::max<size_t>((bytes.size() + 3) / 4 * 4, 4);
        FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::Buffer> buffer,
                                vulkan::Buffer::Create(device_, size + 2 * kMargin));
        std::fill_n(buffer->data(), buffer->size_bytes(), kPoison);
        std::ranges::copy(bytes, buffer->data() + kMargin);
        set.buffers.push_back({buffer->handle(), kMargin, size});
        objects.buffers.push_back(std::move(buffer));
    }
    FORNAX_ASSIGN_OR_RETURN(objects.pipelines, vulkan::PipelineFactory::Create(device_, {}));
    FORNAX_ASSIGN_OR_RETURN(
        const vulkan::ComputePipeline pipeline,
        objects.pipelines->Make(
            {.name = "kernel",
             .words = dispatch.words,
             .binding_count = static_cast<uint32_t>(buffers.size()),
             .push_constant_count = static_cast<uint32_t>(dispatch.push_constants.size()),
             .constants = {}}));
    set.layout = pipeline.set_layout;
    FORNAX_ASSIGN_OR_RETURN(objects.sets, vulkan::DescriptorSets::Create(device_, {&set, 1}));
    FORNAX_ASSIGN_OR_RETURN(objects.commands, vulkan::Commands::Create(device_, 0));

    const VolkDeviceTable& vk = device_->vk();
    const VkCommandBuffer commands = objects.commands->handle();
    FORNAX_RETURN_IF_ERROR(objects.commands->Begin());
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
    const VkDescriptorSet bound = (*objects.sets)[0];
    vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1,
                               &bound, 0, nullptr);
    if (!dispatch.push_constants.empty()) {
        vk.vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              static_cast<uint32_t>(dispatch.push_constants.size() * 4),
                              dispatch.push_constants.data());
    }
    const auto& [x, y, z] = dispatch.workgroups;
    for (uint32_t i = 0; i < count; ++i) {
        vulkan::ComputeBarrier(vk, commands);
        vk.vkCmdDispatch(commands, x, y, z);
    }
    vulkan::FinalBarrier(vk, commands);
    FORNAX_RETURN_IF_ERROR(objects.commands->End());
    return objects;
}

Status KernelRunner::Run(const Dispatch& dispatch, std::span<std::vector<uint8_t>> buffers) {
    FORNAX_ASSIGN_OR_RETURN(const Objects objects, Record(dispatch, buffers, 1));
    FORNAX_RETURN_IF_ERROR(objects.Run());
    for (size_t i = 0; i < buffers.size(); ++i) {
        const uint8_t* const bytes = objects.buffers[i]->data() + kMargin;
        std::copy_n(bytes, buffers[i].size(), buffers[i].data());
        if (!IsPoison({bytes - kMargin, kMargin}) ||
            !IsPoison({bytes + buffers[i].size(), kMargin})) {
            return Error{ErrorCode::kInternal,
                         fmt::format("The kernel wrote outside of buffer {}.", i)};
        }
    }
    return OkStatus();
}

Result<KernelRunner::Timing> KernelRunner::Time(const Dispatch& dispatch,
                                                std::span<std::vector<uint8_t>> buffers,
                                                uint32_t repeats) {
    using Clock = std::chrono::steady_clock;
    FORNAX_ASSIGN_OR_RETURN(const Objects objects, Record(dispatch, buffers, kTimedDispatches));
    Timing least;
    for (uint32_t i = 0; i < repeats; ++i) {
        const double cpu_start = CpuTime();
        const Clock::time_point start = Clock::now();
        FORNAX_RETURN_IF_ERROR(objects.Run());
        const std::chrono::duration<double, std::nano> time = Clock::now() - start;
        least.wall_ns = std::min(least.wall_ns, time.count() / kTimedDispatches);
        least.cpu_ns = std::min(least.cpu_ns, (CpuTime() - cpu_start) / kTimedDispatches);
    }
    return least;
}

Result<KernelRunner::Dispatch> DispatchOf(const graph::loop::Kernel& kernel,
                                          const graph::loop::Module& module,
                                          const graph::Bindings& sizes) {
    KernelRunner::Dispatch dispatch;
    dispatch.words = module.words;
    for (const graph::Symbol& symbol : SizeSymbols(kernel)) {
        dispatch.push_constants.push_back(static_cast<uint32_t>(sizes.at(symbol)));
    }
    for (size_t i = 0; i < 3; ++i) {
        const std::optional<int64_t> count = module.workgroups[i].Evaluate(sizes);
        if (!count || *count < 0 || *count > UINT32_MAX) {
            return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no number of workgroups.",
                                                                  module.workgroups[i].ToString())};
        }
        dispatch.workgroups[i] = static_cast<uint32_t>(*count);
    }
    return dispatch;
}

}  // namespace fornax::test
