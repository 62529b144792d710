#include "runtime/hal/hal_recording.h"

#include <map>

#include <fmt/format.h>

#include "hal/kernel_abi.h"

namespace fornax::runtime {
namespace {

// Kernels may load vectors that are as large.
constexpr uint64_t kAddressAlignment = 16;

// Addresses are of one space, so blocks may share a region whoever owns their memory.
constexpr uint32_t kRegion = 0;

Status CheckAddress(const std::string& what, uint64_t address, uint64_t size_bytes) {
    if (size_bytes != 0 && (address == 0 || address % kAddressAlignment != 0)) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} of {} bytes is to be at the address {:#x}, which is no "
                                 "multiple of {}.",
                                 what, size_bytes, address, kAddressAlignment)};
    }
    return OkStatus();
}

Status CheckCount(const char* what, size_t given, size_t needed) {
    if (given != needed) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("{} addresses of {} are given; the plan has {}.", given, what, needed)};
    }
    return OkStatus();
}

}  // namespace

Result<HalRecording> HalRecording::Create(std::shared_ptr<const HalProgram> program,
                                          graph::Bindings bindings) {
    HalRecording recording;
    recording.program_ = std::move(program);
    recording.bindings_ = std::move(bindings);
    const graph::Plan& plan = recording.program_->plan();
    FORNAX_ASSIGN_OR_RETURN(recording.memory_, graph::PlanMemory(plan, recording.bindings_));
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
        if (recording.memory_.sizes[i] == graph::kUnknownSize) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The tensor {} of type {} has no size.", plan.blocks[i].name,
                                     plan.blocks[i].type.ToString())};
        }
        if (plan.blocks[i].kind == graph::BlockKind::kState) {
            recording.states_.emplace_back(i);
        }
    }
    return recording;
}

Result<std::vector<Place>> HalRecording::PlaceBlocks(const PlanAddresses& addresses,
                                                     std::vector<Copy>& copies) const {
    const graph::Plan& plan = program_->plan();
    FORNAX_RETURN_IF_ERROR(CheckCount("inputs", addresses.inputs.size(), plan.inputs.size()));
    FORNAX_RETURN_IF_ERROR(CheckCount("outputs", addresses.outputs.size(), plan.outputs.size()));
    FORNAX_RETURN_IF_ERROR(CheckCount("states", addresses.states.size(), states_.size()));
    FORNAX_RETURN_IF_ERROR(CheckAddress("The arena", addresses.arena, memory_.arena_bytes));
    std::vector<Place> places(plan.blocks.size());
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
        const graph::BlockKind kind = plan.blocks[i].kind;
        places[i] = {kRegion, 0, memory_.sizes[i]};
        if (places[i].size == 0) {
            places[i].offset = program_->nothing();
        } else if (kind == graph::BlockKind::kConstant) {
            places[i].offset = program_->constant(graph::BlockId(i));
        } else if (kind == graph::BlockKind::kTemporary) {
            places[i].offset = addresses.arena + memory_.offsets[i];
        }
    }
    const auto place = [&](graph::BlockId id, uint64_t address) -> Status {
        Place& at = places[id.value()];
        FORNAX_RETURN_IF_ERROR(CheckAddress(plan.blocks[id.value()].name, address, at.size));
        at.offset = at.size == 0 ? at.offset : address;
        return OkStatus();
    };
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(place(plan.inputs[i].block, addresses.inputs[i]));
    }
    for (size_t i = 0; i < states_.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(place(states_[i], addresses.states[i]));
    }
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
        const graph::BlockId id = plan.outputs[i].block;
        Place& at = places[id.value()];
        if (plan.blocks[id.value()].kind == graph::BlockKind::kOutput && at.offset == 0) {
            FORNAX_RETURN_IF_ERROR(place(id, addresses.outputs[i]));
            continue;
        }
        FORNAX_RETURN_IF_ERROR(CheckAddress(plan.outputs[i].name, addresses.outputs[i], at.size));
        if (at.size != 0) {
            copies.push_back({at.offset, addresses.outputs[i], at.size});
        }
    }
    return places;
}

Status HalRecording::Record(const PlanAddresses& addresses,
                            hal::CommandStreamBuilder& builder) const {
    const graph::Plan& plan = program_->plan();
    std::vector<Copy> copies;
    FORNAX_ASSIGN_OR_RETURN(const std::vector<Place> places, PlaceBlocks(addresses, copies));
    FORNAX_ASSIGN_OR_RETURN(
        const std::vector<Launch> launches,
        PlanLaunches(plan, 0, static_cast<uint32_t>(plan.steps.size()), bindings_, places,
                     program_->kernels(), program_->limits()));
    // Launches of the same blocks share a set.
    std::map<std::vector<graph::BlockId>, uint64_t> sets;
    std::vector<hal::BufferDescriptor> descriptors;
    for (const Launch& launch : launches) {
        const auto& step = std::get<graph::DispatchStep>(plan.steps[launch.step]);
        if (launch.barrier_before) {
            builder.Barrier();
        }
        const auto [set, is_new] = sets.emplace(step.bindings, 0);
        if (is_new) {
            descriptors.clear();
            for (const graph::BlockId id : step.bindings) {
                const Place& place = places[id.value()];
                descriptors.push_back(
                    {place.offset, place.size == 0 ? HalProgram::kNothingBytes : place.size});
            }
            set->second = builder.StoreSideData(descriptors.data(),
                                                descriptors.size() * sizeof(hal::BufferDescriptor));
        }
        builder.Bind(program_->executable(step.kernel), {&set->second, 1}, {});
        if (!launch.push_constants.empty()) {
            builder.Constants(
                launch.push_constants.data(),
                static_cast<uint32_t>(launch.push_constants.size() * sizeof(uint32_t)));
        }
        builder.Dispatch(launch.workgroups);
    }
    if (!copies.empty() && !launches.empty()) {
        builder.Barrier();
    }
    for (const Copy& copy : copies) {
        builder.Copy(copy.source, copy.destination, copy.size_bytes);
    }
    return OkStatus();
}

Status HalRecording::RecordInitialStates(const PlanAddresses& addresses,
                                         hal::CommandStreamBuilder& builder) const {
    FORNAX_RETURN_IF_ERROR(CheckCount("states", addresses.states.size(), states_.size()));
    for (size_t i = 0; i < states_.size(); ++i) {
        const graph::PlanBlock& block = program_->plan().blocks[states_[i].value()];
        const uint64_t size = BytesOf(states_[i]);
        FORNAX_RETURN_IF_ERROR(CheckAddress(block.name, addresses.states[i], size));
        if (block.data != nullptr && block.data->size() != size) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The state {} of {} bytes begins with {} bytes.", block.name,
                                     size, block.data->size())};
        }
        if (size == 0) {
            continue;
        }
        if (block.data != nullptr) {
            builder.Update(addresses.states[i], std::as_bytes(std::span(*block.data)));
            continue;
        }
        const uint64_t words = size / sizeof(uint32_t) * sizeof(uint32_t);
        constexpr std::byte kZeros[sizeof(uint32_t)] = {};
        if (words != 0) {
            builder.Fill(addresses.states[i], words, 0);
        }
        if (words != size) {
            builder.Update(addresses.states[i] + words, {kZeros, size - words});
        }
    }
    return OkStatus();
}

}  // namespace fornax::runtime
