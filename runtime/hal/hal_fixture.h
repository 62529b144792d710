// A device of the HAL on which tests play plans, in memory whose other bytes nobody may touch.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/kernel/kernel_compiler.h"
#include "hal/command_stream_builder.h"
#include "hal/device.h"
#include "runtime/hal/hal_program.h"
#include "runtime/hal/hal_recording.h"
#include "runtime/plan/sizes.h"

namespace fornax::runtime {

// Pieces of one allocation, behind each of which lie bytes that nobody may change.
class PoisonedMemory {
  public:
    static constexpr std::byte kPoison{0xa5};

    explicit PoisonedMemory(std::shared_ptr<hal::Memory> memory) : memory_(std::move(memory)) {
        std::memset(memory_->host_pointer(), static_cast<int>(kPoison), memory_->size_bytes());
    }
    // `alignment`: of addresses, but no more than it.
    uint64_t Take(uint64_t size_bytes, uint64_t alignment = 16) {
        const uint64_t begin =
            (used_ + 2 * alignment - 1) / (2 * alignment) * 2 * alignment + alignment;
        gaps_.emplace_back(used_, begin);
        used_ = begin + size_bytes;
        EXPECT_LE(used_ + kRoom, memory_->size_bytes());
        return memory_->address() + begin;
    }
    std::byte* At(uint64_t address) const {
        return memory_->host_pointer() + (address - memory_->address());
    }
    bool IsIntact() const {
        std::vector<std::pair<uint64_t, uint64_t>> gaps = gaps_;
        gaps.emplace_back(used_, memory_->size_bytes());
        return std::ranges::all_of(gaps, [&](const auto& gap) {
            return std::all_of(memory_->host_pointer() + gap.first,
                               memory_->host_pointer() + gap.second,
                               [](std::byte byte) { return byte == kPoison; });
        });
    }
    static constexpr uint64_t kRoom = 4096;

  private:
    std::shared_ptr<hal::Memory> memory_;
    std::vector<std::pair<uint64_t, uint64_t>> gaps_;
    uint64_t used_ = kRoom;
};

class HalBench {
  public:
    // Failures are GoogleTest failures.
    HalBench() {
        auto device = hal::CreateDevice("model", {.worker_count = 2});
        EXPECT_TRUE(device.ok()) << device.error().message;
        device_ = *device;
        auto queue = device_->CreateQueue();
        EXPECT_TRUE(queue.ok()) << queue.error().message;
        queue_ = *queue;
        auto compiler = kernel::KernelCompiler::Create("");
        EXPECT_TRUE(compiler.ok()) << compiler.error().message;
        compiler_ = std::move(*compiler);
    }

    // What keeps its value from run to run.
    struct States {
        std::shared_ptr<hal::Memory> memory;
        std::vector<uint64_t> addresses;
    };

    Status Submit(hal::CommandStreamBuilder& builder) {
        FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const hal::CommandStream> stream,
                                builder.Finish());
        FORNAX_RETURN_IF_ERROR(
            queue_->Submit({.waits = {}, .streams = {&stream, 1}, .signals = {}}));
        return queue_->WaitIdle(60'000'000'000);
    }

    // Runs in memory that is made for it. States begin anew if there are none yet.
    Result<std::vector<graph::Tensor>> Play(const std::shared_ptr<const HalProgram>& program,
                                            std::span<const graph::Tensor> inputs,
                                            States& states) {
        const graph::Plan& plan = program->plan();
        std::vector<Dims> dims;
        for (const graph::Tensor& input : inputs) {
            dims.push_back(input.dims);
        }
        FORNAX_ASSIGN_OR_RETURN(const Fit fit, FitSizes(plan, dims));
        EXPECT_TRUE(fit.ok) << fit.reason;
        FORNAX_ASSIGN_OR_RETURN(const HalRecording recording,
                                HalRecording::Create(program, fit.bindings));
        hal::CommandStreamBuilder builder;
        PlanAddresses addresses;
        if (states.memory == nullptr) {
            uint64_t total = 64;
            for (const graph::BlockId id : recording.states()) {
                states.addresses.push_back(total);
                total += (recording.BytesOf(id) + 63) / 64 * 64;
            }
            FORNAX_ASSIGN_OR_RETURN(states.memory, device_->AllocateMemory(total));
            std::memset(states.memory->host_pointer(), 0x5a, total);
            for (uint64_t& address : states.addresses) {
                address += states.memory->address();
            }
            addresses.states = states.addresses;
            FORNAX_RETURN_IF_ERROR(recording.RecordInitialStates(addresses, builder));
            builder.Barrier();
        }
        addresses.states = states.addresses;
        uint64_t total = 64 * PoisonedMemory::kRoom + 2 * recording.memory().arena_bytes;
        for (size_t i = 0; i < plan.inputs.size(); ++i) {
            total += recording.InputBytes(i) + 64;
        }
        for (size_t i = 0; i < plan.outputs.size(); ++i) {
            total += recording.OutputBytes(i) + 64;
        }
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<hal::Memory> allocated,
                                device_->AllocateMemory(total));
        PoisonedMemory memory(std::move(allocated));
        addresses.arena = memory.Take(recording.memory().arena_bytes);
        for (size_t i = 0; i < plan.inputs.size(); ++i) {
            addresses.inputs.push_back(memory.Take(recording.InputBytes(i)));
            if (recording.InputBytes(i) != 0) {
                std::memcpy(memory.At(addresses.inputs[i]), inputs[i].data->data(),
                            inputs[i].data->size());
            }
        }
        for (size_t i = 0; i < plan.outputs.size(); ++i) {
            addresses.outputs.push_back(memory.Take(recording.OutputBytes(i)));
        }
        FORNAX_RETURN_IF_ERROR(recording.Record(addresses, builder));
        packet_count_ = builder.packet_count();
        FORNAX_RETURN_IF_ERROR(Submit(builder));
        EXPECT_TRUE(memory.IsIntact());
        std::vector<graph::Tensor> outputs;
        for (size_t i = 0; i < plan.outputs.size(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const Dims shape,
                                    EvaluateShape(plan.outputs[i].type.shape, fit.bindings));
            uint8_t* data = nullptr;
            outputs.push_back(graph::Tensor::Zeros(plan.outputs[i].type.element, shape, &data));
            if (recording.OutputBytes(i) != 0) {
                std::memcpy(data, memory.At(addresses.outputs[i]), recording.OutputBytes(i));
            }
        }
        return outputs;
    }

    Result<std::shared_ptr<const HalProgram>> Make(graph::Plan plan) {
        return HalProgram::Create(device_, *compiler_, std::move(plan));
    }

    hal::Device& device() { return *device_; }
    size_t packet_count() const { return packet_count_; }  // of the last run

  private:
    std::shared_ptr<hal::Device> device_;
    std::shared_ptr<hal::Queue> queue_;
    std::unique_ptr<kernel::KernelCompiler> compiler_;
    size_t packet_count_ = 0;
};

}  // namespace fornax::runtime
