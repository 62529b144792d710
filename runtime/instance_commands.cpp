// Descriptor sets, recording and submitting of an instance.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "compiler/graph/plan/plan_kernel.h"
#include "runtime/instance.h"

namespace fornax::runtime {

Result<Instance::Segment> Instance::PrepareSegment(uint32_t first, uint32_t end) {
    Segment segment;
    std::vector<Place> places;
    places.reserve(memory_.size());
    for (const Memory& memory : memory_) {
        places.push_back(memory.place);
    }
    FORNAX_ASSIGN_OR_RETURN(segment.launches,
                            PlanLaunches(plan(), first, end, bindings_, places, program_->kernels(),
                                         program_->limits()));
    // Launches of the same blocks share a set.
    std::vector<vulkan::DescriptorSets::Set> sets;
    std::map<std::vector<graph::BlockId>, uint32_t> made;
    for (const Launch& launch : segment.launches) {
        const auto& step = std::get<graph::DispatchStep>(plan().steps[launch.step]);
        const auto [entry, is_new] =
            made.emplace(step.bindings, static_cast<uint32_t>(sets.size()));
        segment.set_of_launch.push_back(entry->second);
        if (!is_new) {
            continue;
        }
        vulkan::DescriptorSets::Set set;
        set.layout = program_->pipeline(step.kernel).set_layout;
        const std::span<const graph::loop::Buffer> buffers =
            graph::BuffersOf(plan().kernels[step.kernel.value()]);
        for (size_t b = 0; b < step.bindings.size(); ++b) {
            const Memory& memory = memory_[step.bindings[b].value()];
            // Kernels without access to single bytes access whole words.
            const uint64_t range = std::max<uint64_t>((memory.place.size + 3) / 4 * 4, 4);
            // An empty buffer is not touched; a tool that cannot know it sees no hazard.
            const bool is_written_nothing =
                memory.place.size == 0 && buffers[b].written && memory.buffer == nothing_->handle();
            set.buffers.push_back(
                {memory.buffer, memory.buffer_offset + (is_written_nothing ? kNothingBytes / 2 : 0),
                 range});
        }
        sets.push_back(std::move(set));
    }
    FORNAX_ASSIGN_OR_RETURN(segment.sets, vulkan::DescriptorSets::Create(program_->device(), sets));
    return segment;
}

void Instance::RecordLaunches(const Segment& segment,
                              VkCommandBuffer commands,
                              vulkan::Commands* timed) {
    const VolkDeviceTable& vk = program_->device()->vk();
    VkPipeline bound_pipeline = VK_NULL_HANDLE;
    for (size_t i = 0; i < segment.launches.size(); ++i) {
        const Launch& launch = segment.launches[i];
        const auto& step = std::get<graph::DispatchStep>(plan().steps[launch.step]);
        const vulkan::ComputePipeline& pipeline = program_->pipeline(step.kernel);
        if (launch.barrier_before) {
            vulkan::ComputeBarrier(vk, commands);
        }
        if (pipeline.pipeline != bound_pipeline) {
            vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
            bound_pipeline = pipeline.pipeline;
        }
        const VkDescriptorSet set = (*segment.sets)[segment.set_of_launch[i]];
        vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1,
                                   &set, 0, nullptr);
        if (!launch.push_constants.empty()) {
            vk.vkCmdPushConstants(
                commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                static_cast<uint32_t>(launch.push_constants.size() * sizeof(uint32_t)),
                launch.push_constants.data());
        }
        // The first of the two marks when what was before is done.
        if (timed != nullptr) {
            timed->WriteTimestamp(static_cast<uint32_t>(2 * i));
        }
        vk.vkCmdDispatch(commands, launch.workgroups[0], launch.workgroups[1],
                         launch.workgroups[2]);
        if (timed != nullptr) {
            timed->WriteTimestamp(static_cast<uint32_t>(2 * i + 1));
        }
    }
    vulkan::FinalBarrier(vk, commands);
}

// Records what is not recorded yet, or with timestamps if it has none and is to have them.
Status Instance::RecordStage(size_t index, bool timed) {
    StageState& stage = stages_[index];
    const Stage& range = program_->stages()[index];
    if (!stage.is_recorded) {
        stage.segments.clear();
        for (uint32_t step = range.first; step < range.end;) {
            uint32_t end = step;
            while (end < range.end &&
                   std::holds_alternative<graph::DispatchStep>(plan().steps[end])) {
                ++end;
            }
            if (end != step) {
                FORNAX_ASSIGN_OR_RETURN(stage.segments[step], PrepareSegment(step, end));
            }
            step = std::max(end, step + 1);
        }
        stage.is_recorded = true;
    }
    for (auto& [first, segment] : stage.segments) {
        if (segment.launches.empty() || (segment.commands != nullptr && segment.timed == timed)) {
            continue;
        }
        segment.commands.reset();
        const auto timestamps = static_cast<uint32_t>(timed ? 2 * segment.launches.size() : 0);
        FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<vulkan::Commands> commands,
                                vulkan::Commands::Create(program_->device(), timestamps));
        FORNAX_RETURN_IF_ERROR(commands->Begin());
        RecordLaunches(segment, commands->handle(), timed ? commands.get() : nullptr);
        FORNAX_RETURN_IF_ERROR(commands->End());
        segment.commands = std::move(commands);
        segment.timed = timed;
    }
    return OkStatus();
}

Status Instance::RunSegment(Segment& segment, std::vector<StepTime>* times) {
    if (segment.commands == nullptr) {
        return OkStatus();
    }
    FORNAX_RETURN_IF_ERROR(segment.commands->Submit());
    FORNAX_RETURN_IF_ERROR(segment.commands->Wait());
    if (times != nullptr) {
        FORNAX_ASSIGN_OR_RETURN(const std::vector<double> marks, segment.commands->Timestamps());
        for (size_t i = 0; 2 * i < marks.size(); ++i) {
            times->push_back({segment.launches[i].step, marks[2 * i + 1] - marks[2 * i], false});
        }
    }
    return OkStatus();
}

Status Instance::Record(VkCommandBuffer commands) {
    FORNAX_RETURN_IF_ERROR(CheckRecordable(plan()));
    FORNAX_ASSIGN_OR_RETURN(Segment segment,
                            PrepareSegment(0, static_cast<uint32_t>(plan().steps.size())));
    RecordLaunches(segment, commands, nullptr);
    recorded_.push_back(std::move(segment));
    return OkStatus();
}

}  // namespace fornax::runtime
