// A plan for given sizes: its memory, descriptor sets and recorded commands.
//
// Where a host step gives a size, the plan goes on in a new stage, whose memory and commands are
// made when the size is known, and kept as long as the size stays.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan.h"
#include "runtime/plan/launches.h"
#include "runtime/plan/sizes.h"
#include "runtime/program.h"
#include "runtime/states.h"
#include "runtime/vulkan/buffer.h"
#include "runtime/vulkan/commands.h"

namespace fornax::runtime {

// What one step took in a run.
struct StepTime {
    uint32_t step = 0;
    double nanoseconds = 0;
    bool on_host = false;
};

// Not thread-safe.
class Instance {
  public:
    // `bindings` fit the plan (FitSizes). `host_functions` may be null, and outlives the instance.
    static Result<std::unique_ptr<Instance>> Create(std::shared_ptr<const Program> program,
                                                    graph::Bindings bindings,
                                                    std::shared_ptr<StateStore> states,
                                                    const graph::HostFunctions* host_functions);
    ~Instance();

    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;

    // --- Inputs and outputs, by number -----------------------------------------------------------

    // The dimensions and bytes of an input, and its bytes where a run reads them: the instance's
    // memory, which keeps what is written to it, or the caller's after BindInput().
    Dims InputDims(size_t index) const;
    std::span<uint8_t> InputBytes(size_t index);
    // For inputs of strings, which have no bytes.
    Status SetInputStrings(size_t index, graph::Strings strings);

    // An output's dimensions and its bytes after a run, valid until the next one. Before the first
    // run the dimensions that a host step gives are not known: nullopt.
    std::optional<Dims> OutputDims(size_t index) const;
    std::span<const uint8_t> OutputBytes(size_t index) const;
    graph::Strings OutputStrings(size_t index) const;

    // Runs read an input from, or write an output to, memory of the caller: in place where the
    // device can, else with one copy a run. It must stay until the binding ends: with another one,
    // with null, or with the instance. Too few bytes are an error; an output whose size a host step
    // gives is checked in the run. True if it is in place.
    Result<bool> BindInput(size_t index, const void* data, uint64_t size_bytes);
    Result<bool> BindOutput(size_t index, void* data, uint64_t size_bytes);
    // The same for a state: while it is bound, its value is what the caller's memory holds, and
    // then it begins anew. kNotFound if the plan has no such state.
    Result<bool> BindState(std::string_view name, void* data, uint64_t size_bytes);

    // --- Running ---------------------------------------------------------------------------------

    // Runs the plan and waits. With `times`, takes the time of each step. After an error the
    // outputs and the states are undefined.
    Status Run(std::vector<StepTime>* times = nullptr);

    // The same in two halves: Start() begins a run, which goes on by itself, and Wait() ends it. In
    // between nothing else is called but the destructor, which waits, and the other instances of
    // the session do not run.
    Status Start();
    // False if the run is not done after the time: then it goes on. An error of the run ends it.
    Result<bool> Wait(uint64_t timeout_nanoseconds);

    // Records the plan into a command buffer of the program's device, for a plan without host steps
    // (else kUnsupported). Inputs are read from, and outputs written to, InputBytes() and
    // OutputBytes() or what is bound in place. The caller makes earlier writes visible to compute
    // shaders; what the plan writes is made visible to the host, to compute shaders and to copies.
    // The instance must outlive the execution and stay as it is until then, and no other one of its
    // session may run meanwhile.
    Status Record(VkCommandBuffer commands);

    // The values of the plan's symbols: after a run, also of those that host steps gave.
    const graph::Bindings& bindings() const { return bindings_; }
    uint64_t memory_bytes() const;  // on the device, without constants and states
    const graph::MemoryPlan& memory() const { return stages_[0].memory; }

  private:
    // What is bound for tensors without elements: a half that is read and one that is written.
    static constexpr uint64_t kNothingBytes = 512;

    // Dispatches between host steps, recorded.
    struct Segment {
        std::vector<Launch> launches;
        std::unique_ptr<vulkan::DescriptorSets> sets;
        std::vector<uint32_t> set_of_launch;
        std::unique_ptr<vulkan::Commands> commands;  // null if there is nothing to do
        bool timed = false;
    };
    struct StageState {
        graph::MemoryPlan memory;
        graph::Bindings bindings;  // that it is placed for
        bool is_placed = false;
        bool is_recorded = false;
        std::shared_ptr<vulkan::Buffer> arena;  // of all instances with these states
        std::unique_ptr<vulkan::Buffer> ports;
        std::map<uint32_t, Segment> segments;  // by first step
    };
    // Where a block's bytes are.
    struct Memory {
        Place place;
        VkBuffer buffer = VK_NULL_HANDLE;
        uint64_t buffer_offset = 0;
        uint8_t* data = nullptr;
        bool is_known = false;
    };
    // The caller's memory for an input or output.
    struct Bound {
        uint8_t* data = nullptr;
        uint64_t size_bytes = 0;
        std::unique_ptr<vulkan::Buffer> in_place;  // null if it is copied
    };

    explicit Instance(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
    const graph::Plan& plan() const { return program_->plan(); }
    const graph::PlanBlock& block(graph::BlockId id) const { return plan().blocks[id.value()]; }
    bool IsString(graph::BlockId id) const {
        return block(id).type.element == graph::ElementType::kString;
    }

    // instance.cpp: memory and host steps.
    Status PlaceStage(size_t index);
    Status PlaceBlock(size_t index, size_t stage);
    void SetMemory(size_t block,
                   uint32_t region,
                   const vulkan::Buffer& buffer,
                   uint64_t offset,
                   uint64_t size_bytes);
    void ForgetRecordings(size_t first);
    Result<bool> Bind(graph::BlockId id,
                      std::vector<Bound>& ports,
                      size_t index,
                      uint8_t* data,
                      uint64_t size_bytes);
    // Ends a binding, and puts the block where it would be without.
    Status Unbind(graph::BlockId id, Bound& bound);
    // Puts the block into memory of the caller, if the device can.
    bool PlaceInPlace(graph::BlockId id, Bound& bound);
    bool OverlapsOtherBinding(const Bound* self, const uint8_t* data, uint64_t size_bytes) const;
    Status RunHostStep(const graph::HostStep& step, size_t stage, bool ends_stage);
    Status BindResultSizes(const graph::HostStep& step, std::span<const graph::Tensor> results);
    graph::Tensor TensorOf(graph::BlockId id, const Dims& dims) const;
    void Store(graph::BlockId id, const graph::Tensor& tensor);
    void CopyInputs();
    Status CopyOutputs();
    void CopyStates(bool to_caller);

    // instance_commands.cpp: what goes to the device.
    Result<Segment> PrepareSegment(uint32_t first, uint32_t end);
    void RecordLaunches(const Segment& segment, VkCommandBuffer commands, vulkan::Commands* timed);
    Status RecordStage(size_t index, bool timed);
    Status RunSegment(Segment& segment, std::vector<StepTime>* times);

    std::shared_ptr<const Program> program_;
    std::shared_ptr<StateStore> states_;
    const graph::HostFunctions* host_functions_ = nullptr;
    graph::Bindings input_bindings_;
    graph::Bindings bindings_;  // of the run: also what host steps gave
    std::map<size_t, std::shared_ptr<vulkan::Buffer>> state_buffers_;  // by block
    std::unique_ptr<vulkan::Buffer> nothing_;  // what tensors without elements are bound to
    std::vector<Memory> memory_;               // by block
    // By block: strings.
    std::vector<std::optional<graph::Tensor>> host_values_;
    std::vector<Bound> bound_inputs_, bound_outputs_;
    std::map<graph::BlockId, Bound> bound_states_;
    std::vector<StageState> stages_;  // behind what they refer to
    std::vector<Segment> recorded_;   // of Record()
    // What Start() began: work of the device, or a thread for plans with host steps.
    vulkan::Commands* submitted_ = nullptr;
    std::future<Status> thread_;
};

}  // namespace fornax::runtime
