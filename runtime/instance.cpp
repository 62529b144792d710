// Memory, bindings, host steps, and the order of a run. instance_commands.cpp has what goes to the
// device.
#include "runtime/instance.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

namespace fornax::runtime {
namespace {

// Regions of memory that share no bytes (see Place).
constexpr uint32_t kConstantRegion = 0;
constexpr uint32_t kNothingRegion = 1;
constexpr uint32_t kFirstStageRegion = 2;                  // two a stage: the arena and the ports
constexpr uint32_t kFirstBlockRegion = uint32_t{1} << 31;  // one a block with its own buffer

bool IsSymbol(const graph::Expr& expression) {
    const std::vector<graph::Symbol> symbols = expression.Symbols();
    return symbols.size() == 1 && expression == graph::Expr(symbols[0]);
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::Create(std::shared_ptr<const Program> program,
                                                   graph::Bindings bindings,
                                                   std::shared_ptr<StateStore> states,
                                                   const graph::HostFunctions* host_functions) {
    std::unique_ptr<Instance> instance(new Instance(std::move(program)));
    instance->states_ = std::move(states);
    instance->host_functions_ = host_functions;
    instance->input_bindings_ = bindings;
    instance->bindings_ = std::move(bindings);
    const graph::Plan& plan = instance->plan();
    instance->memory_.resize(plan.blocks.size());
    instance->host_values_.resize(plan.blocks.size());
    instance->bound_inputs_.resize(plan.inputs.size());
    instance->bound_outputs_.resize(plan.outputs.size());
    instance->stages_.resize(instance->program_->stages().size());
    FORNAX_ASSIGN_OR_RETURN(instance->nothing_,
                            vulkan::Buffer::Create(instance->program_->device(), kNothingBytes));
    FORNAX_RETURN_IF_ERROR(instance->PlaceStage(0));
    FORNAX_RETURN_IF_ERROR(instance->RecordStage(0, false));
    return instance;
}

Instance::~Instance() {
    if (thread_.valid()) {
        thread_.wait();
    }
    ForgetRecordings(0);
}

// Forgets the recordings of stage `first` and of those behind it.
void Instance::ForgetRecordings(size_t first) {
    for (size_t i = first; i < stages_.size(); ++i) {
        stages_[i].segments.clear();
        stages_[i].is_recorded = false;
    }
    if (first == 0) {
        recorded_.clear();
    }
}

void Instance::SetMemory(size_t block,
                         uint32_t region,
                         const vulkan::Buffer& buffer,
                         uint64_t offset,
                         uint64_t size_bytes) {
    Memory& memory = memory_[block];
    memory.place = {region, offset, size_bytes};
    memory.buffer = buffer.handle();
    memory.buffer_offset = buffer.offset() + offset;
    memory.data = buffer.data() + offset;
    memory.is_known = true;
}

// Plans the memory of what is known now and was not before, and places it.
Status Instance::PlaceStage(size_t index) {
    StageState& stage = stages_[index];
    ForgetRecordings(index);
    // What later stages placed depends on this one.
    for (size_t later = index; later < stages_.size(); ++later) {
        stages_[later].is_placed = false;
    }
    const graph::MemoryPlan* earlier = index == 0 ? nullptr : &stages_[index - 1].memory;
    FORNAX_ASSIGN_OR_RETURN(stage.memory, graph::PlanMemory(plan(), bindings_, earlier));
    stage.arena.reset();  // the old memory goes before the new comes
    if (stage.memory.arena_bytes != 0) {
        FORNAX_ASSIGN_OR_RETURN(stage.arena, states_->Arena(index, stage.memory.arena_bytes));
    }
    const uint64_t port_bytes = stage.memory.port_bytes;
    if (port_bytes != 0 && (stage.ports == nullptr || stage.ports->size_bytes() < port_bytes)) {
        stage.ports.reset();
        FORNAX_ASSIGN_OR_RETURN(stage.ports,
                                vulkan::Buffer::Create(program_->device(), port_bytes));
    }
    for (size_t block = 0; block < plan().blocks.size(); ++block) {
        const bool is_new = earlier == nullptr || earlier->sizes[block] == graph::kUnknownSize;
        if (stage.memory.sizes[block] == graph::kUnknownSize) {
            memory_[block].is_known = false;
        } else if (is_new) {
            FORNAX_RETURN_IF_ERROR(PlaceBlock(block, index));
        }
    }
    stage.bindings = bindings_;
    stage.is_placed = true;
    return OkStatus();
}

Status Instance::PlaceBlock(size_t index, size_t stage_index) {
    const graph::PlanBlock& block = plan().blocks[index];
    const StageState& stage = stages_[stage_index];
    const uint64_t size = stage.memory.sizes[index];
    const uint64_t offset = stage.memory.offsets[index];
    const uint32_t region = kFirstStageRegion + 2 * static_cast<uint32_t>(stage_index);
    if (block.strings != nullptr) {
        host_values_[index] = graph::Tensor{block.type.element, {}, nullptr, block.strings};
        FORNAX_ASSIGN_OR_RETURN(host_values_[index]->dims,
                                EvaluateShape(block.type.shape, bindings_));
    }
    if (block.kind == graph::BlockKind::kState) {
        std::span<const uint8_t> initial;
        if (block.data != nullptr) {
            initial = *block.data;
        }
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<vulkan::Buffer> buffer,
                                states_->Get(block.name, size, initial));
        SetMemory(index, kFirstBlockRegion + static_cast<uint32_t>(index), *buffer, 0, size);
        state_buffers_[index] = std::move(buffer);
        return OkStatus();
    }
    if (size == 0) {
        SetMemory(index, kNothingRegion, *nothing_, 0, 0);
        return OkStatus();
    }
    switch (block.kind) {
        case graph::BlockKind::kConstant:
            SetMemory(index, kConstantRegion, *program_->constant(graph::BlockId(index)).buffer,
                      program_->constant(graph::BlockId(index)).offset, size);
            break;
        case graph::BlockKind::kInput:
        case graph::BlockKind::kOutput:
            SetMemory(index, region + 1, *stage.ports, offset, size);
            break;
        default:
            SetMemory(index, region, *stage.arena, offset, size);
            break;
    }
    return OkStatus();
}

// --- Inputs and outputs --------------------------------------------------------------------------

Dims Instance::InputDims(size_t index) const {
    // FitSizes evaluated them.
    return *EvaluateShape(plan().inputs[index].type.shape, input_bindings_);
}

std::span<uint8_t> Instance::InputBytes(size_t index) {
    const Memory& memory = memory_[plan().inputs[index].block.value()];
    return {memory.data, memory.place.size};
}

Status Instance::SetInputStrings(size_t index, graph::Strings strings) {
    const graph::PlanPort& port = plan().inputs[index];
    graph::Tensor tensor{graph::ElementType::kString, InputDims(index), nullptr, nullptr};
    if (!IsString(port.block) || strings == nullptr ||
        strings->size() != static_cast<size_t>(tensor.count())) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The input {} is {} and given as {} strings.", port.name,
                                 port.type.ToString(), strings == nullptr ? 0 : strings->size())};
    }
    tensor.strings = std::move(strings);
    host_values_[port.block.value()] = std::move(tensor);
    return OkStatus();
}

std::optional<Dims> Instance::OutputDims(size_t index) const {
    const graph::PlanPort& port = plan().outputs[index];
    if (!memory_[port.block.value()].is_known) {
        return std::nullopt;
    }
    Result<Dims> dims = EvaluateShape(port.type.shape, bindings_);
    return dims.ok() ? std::optional(*std::move(dims)) : std::nullopt;
}

std::span<const uint8_t> Instance::OutputBytes(size_t index) const {
    const Memory& memory = memory_[plan().outputs[index].block.value()];
    return memory.is_known ? std::span<const uint8_t>(memory.data, memory.place.size)
                           : std::span<const uint8_t>();
}

graph::Strings Instance::OutputStrings(size_t index) const {
    const std::optional<graph::Tensor>& value = host_values_[plan().outputs[index].block.value()];
    return value ? value->strings : nullptr;
}

bool Instance::OverlapsOtherBinding(const Bound* self,
                                    const uint8_t* data,
                                    uint64_t size_bytes) const {
    const auto overlaps = [&](const Bound& other) {
        return &other != self && other.in_place != nullptr &&
               data < other.data + other.size_bytes && other.data < data + size_bytes;
    };
    return std::ranges::any_of(bound_inputs_, overlaps) ||
           std::ranges::any_of(bound_outputs_, overlaps) ||
           std::ranges::any_of(bound_states_,
                               [&](const auto& state) { return overlaps(state.second); });
}

Status Instance::Unbind(graph::BlockId id, Bound& bound) {
    if (bound.in_place != nullptr) {
        ForgetRecordings(0);
        bound.in_place.reset();
        // A port whose size is known from the start is in the first stage, and so are states.
        FORNAX_RETURN_IF_ERROR(PlaceBlock(id.value(), 0));
    }
    bound = {};
    return OkStatus();
}

bool Instance::PlaceInPlace(graph::BlockId id, Bound& bound) {
    const uint64_t needed = memory_[id.value()].place.size;
    const bool exact = needed % 4 == 0 || program_->device()->features().storage_8bit;
    // Bytes must not be two tensors' at once.
    if (needed == 0 || !exact || OverlapsOtherBinding(&bound, bound.data, needed)) {
        return false;
    }
    Result<std::unique_ptr<vulkan::Buffer>> imported =
        vulkan::Buffer::Import(program_->device(), bound.data, needed);
    if (!imported.ok()) {
        return false;  // copied instead
    }
    ForgetRecordings(0);
    bound.in_place = std::move(imported).value();
    SetMemory(id.value(), kFirstBlockRegion + id.value(), *bound.in_place, 0, needed);
    return true;
}

Result<bool> Instance::Bind(graph::BlockId id,
                            std::vector<Bound>& ports,
                            size_t index,
                            uint8_t* data,
                            uint64_t size_bytes) {
    Bound& bound = ports[index];
    const Memory& memory = memory_[id.value()];
    const uint64_t needed = memory.is_known ? memory.place.size : 0;
    if (IsString(id)) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} holds strings, which no memory is bound to.", block(id).name)};
    }
    if (data != nullptr && size_bytes < needed) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} has {} bytes; the memory that is bound to it has {}.",
                                 block(id).name, needed, size_bytes)};
    }
    FORNAX_RETURN_IF_ERROR(Unbind(id, bound));
    if (data == nullptr) {
        return false;
    }
    bound = {data, size_bytes, nullptr};
    const graph::BlockKind kind = block(id).kind;
    const bool is_own =
        kind == (&ports == &bound_inputs_ ? graph::BlockKind::kInput : graph::BlockKind::kOutput);
    const uint32_t own_region = kFirstStageRegion + 1;
    // Another port of the same block may have it in place.
    return is_own && memory.is_known && memory.place.region == own_region &&
           PlaceInPlace(id, bound);
}

Result<bool> Instance::BindState(std::string_view name, void* data, uint64_t size_bytes) {
    const auto found = std::ranges::find_if(plan().blocks, [&](const graph::PlanBlock& block) {
        return block.kind == graph::BlockKind::kState && block.name == name;
    });
    if (found == plan().blocks.end()) {
        return Error{ErrorCode::kNotFound, fmt::format("The model has no state {}.", name)};
    }
    const graph::BlockId id(static_cast<size_t>(found - plan().blocks.begin()));
    const uint64_t needed = memory_[id.value()].place.size;
    if (data != nullptr && size_bytes != needed) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The state {} has {} bytes; the memory that is bound to it has "
                                 "{}.",
                                 name, needed, size_bytes)};
    }
    FORNAX_RETURN_IF_ERROR(Unbind(id, bound_states_[id]));
    if (data == nullptr) {
        bound_states_.erase(id);
        return false;
    }
    Bound& bound = bound_states_[id];
    bound = {static_cast<uint8_t*>(data), size_bytes, nullptr};
    const bool is_in_place = PlaceInPlace(id, bound);
    if (is_in_place) {
        // Memory of its own would be in vain.
        state_buffers_.erase(id.value());
        states_->Forget(found->name);
    }
    return is_in_place;
}

// Copies states that are bound and not in place, before a run or after it.
void Instance::CopyStates(bool to_caller) {
    for (const auto& [id, bound] : bound_states_) {
        if (bound.in_place == nullptr && bound.size_bytes != 0) {
            uint8_t* const own = memory_[id.value()].data;
            std::memcpy(to_caller ? bound.data : own, to_caller ? own : bound.data,
                        bound.size_bytes);
        }
    }
}

Result<bool> Instance::BindInput(size_t index, const void* data, uint64_t size_bytes) {
    // The plan reads it only.
    return Bind(plan().inputs[index].block, bound_inputs_, index,
                static_cast<uint8_t*>(const_cast<void*>(data)), size_bytes);
}

Result<bool> Instance::BindOutput(size_t index, void* data, uint64_t size_bytes) {
    return Bind(plan().outputs[index].block, bound_outputs_, index, static_cast<uint8_t*>(data),
                size_bytes);
}

void Instance::CopyInputs() {
    for (size_t i = 0; i < bound_inputs_.size(); ++i) {
        const Bound& bound = bound_inputs_[i];
        const std::span<uint8_t> bytes = InputBytes(i);
        if (bound.data != nullptr && bound.in_place == nullptr && !bytes.empty()) {
            std::memcpy(bytes.data(), bound.data, bytes.size());
        }
    }
    CopyStates(false);
}

Status Instance::CopyOutputs() {
    for (size_t i = 0; i < bound_outputs_.size(); ++i) {
        const Bound& bound = bound_outputs_[i];
        if (bound.data == nullptr || bound.in_place != nullptr) {
            continue;
        }
        const std::span<const uint8_t> bytes = OutputBytes(i);
        if (bytes.size() > bound.size_bytes) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The output {} has {} bytes; the memory that is bound to it "
                                     "has {}.",
                                     plan().outputs[i].name, bytes.size(), bound.size_bytes)};
        }
        if (!bytes.empty()) {
            std::memcpy(bound.data, bytes.data(), bytes.size());
        }
    }
    CopyStates(true);
    return OkStatus();
}

// --- Running -------------------------------------------------------------------------------------

Status Instance::Run(std::vector<StepTime>* times) {
    if (times != nullptr) {
        times->clear();
    }
    bindings_ = input_bindings_;
    CopyInputs();
    for (size_t s = 0; s < stages_.size(); ++s) {
        FORNAX_RETURN_IF_ERROR(RecordStage(s, times != nullptr));
        const Stage& range = program_->stages()[s];
        for (uint32_t step = range.first; step < range.end;) {
            if (const auto* host = std::get_if<graph::HostStep>(&plan().steps[step])) {
                const auto start = std::chrono::steady_clock::now();
                FORNAX_RETURN_IF_ERROR(RunHostStep(*host, s, step + 1 == range.end));
                if (times != nullptr) {
                    const std::chrono::duration<double, std::nano> time =
                        std::chrono::steady_clock::now() - start;
                    times->push_back({step, time.count(), true});
                }
                ++step;
                continue;
            }
            FORNAX_RETURN_IF_ERROR(RunSegment(stages_[s].segments.at(step), times));
            while (step < range.end &&
                   std::holds_alternative<graph::DispatchStep>(plan().steps[step])) {
                ++step;
            }
        }
    }
    return CopyOutputs();
}

Status Instance::Start() {
    const bool has_host_steps = std::ranges::any_of(plan().steps, [](const graph::PlanStep& step) {
        return std::holds_alternative<graph::HostStep>(step);
    });
    // Somebody has to submit what follows a host step, also while nobody waits.
    if (has_host_steps) {
        thread_ = std::async(std::launch::async, [this] { return Run(); });
        return OkStatus();
    }
    CopyInputs();
    FORNAX_RETURN_IF_ERROR(RecordStage(0, false));
    // All steps are one segment, if there are any.
    for (const auto& [first, segment] : stages_[0].segments) {
        if (segment.commands != nullptr) {
            FORNAX_RETURN_IF_ERROR(segment.commands->Submit());
            submitted_ = segment.commands.get();
        }
    }
    return OkStatus();
}

Result<bool> Instance::Wait(uint64_t timeout_nanoseconds) {
    if (thread_.valid()) {
        // The clock of some libraries overflows with more.
        constexpr uint64_t kLongest = uint64_t{1} << 60;
        const std::chrono::nanoseconds timeout(std::min(timeout_nanoseconds, kLongest));
        if (thread_.wait_for(timeout) != std::future_status::ready) {
            return false;
        }
        FORNAX_RETURN_IF_ERROR(thread_.get());
        return true;
    }
    if (submitted_ != nullptr) {
        Result<bool> done = submitted_->WaitFor(timeout_nanoseconds);
        if (done.ok() && !*done) {
            return false;
        }
        submitted_ = nullptr;
        FORNAX_RETURN_IF_ERROR(done);
    }
    FORNAX_RETURN_IF_ERROR(CopyOutputs());
    return true;
}

graph::Tensor Instance::TensorOf(graph::BlockId id, const Dims& dims) const {
    if (host_values_[id.value()]) {
        return *host_values_[id.value()];
    }
    const Memory& memory = memory_[id.value()];
    uint8_t* data = nullptr;
    graph::Tensor tensor = graph::Tensor::Zeros(block(id).type.element, dims, &data);
    if (!tensor.data->empty()) {
        std::memcpy(data, memory.data, std::min<uint64_t>(tensor.data->size(), memory.place.size));
    }
    return tensor;
}

void Instance::Store(graph::BlockId id, const graph::Tensor& tensor) {
    const Memory& memory = memory_[id.value()];
    if (IsString(id)) {
        host_values_[id.value()] = tensor;
    } else if (memory.place.size != 0) {
        std::memcpy(memory.data, tensor.data->data(),
                    std::min<uint64_t>(tensor.data->size(), memory.place.size));
    }
}

// The symbols that results give their values; then all results must be as the plan says.
Status Instance::BindResultSizes(const graph::HostStep& step,
                                 std::span<const graph::Tensor> results) {
    const auto wrong = [&](size_t index) {
        const graph::TensorType& type = step.result_types[index];
        const std::string given =
            index < results.size() ? results[index].type().ToString() : std::string("missing");
        return Error{ErrorCode::kInternal,
                     fmt::format("Result {} of the host step {} is {}; the plan says {}.", index,
                                 step.name, given, type.ToString())};
    };
    for (size_t i = 0; i < step.result_types.size(); ++i) {
        const graph::TensorType& type = step.result_types[i];
        if (i >= results.size() || results[i].element != type.element ||
            results[i].dims.size() != type.shape.rank()) {
            return wrong(i);
        }
        for (size_t axis = 0; axis < results[i].dims.size(); ++axis) {
            if (IsSymbol(type.shape[axis])) {
                bindings_.emplace(type.shape[axis].Symbols()[0], results[i].dims[axis]);
            }
        }
    }
    for (size_t i = 0; i < step.result_types.size(); ++i) {
        const Result<Dims> dims = EvaluateShape(step.result_types[i].shape, bindings_);
        if (!dims.ok() || *dims != results[i].dims) {
            return wrong(i);
        }
    }
    std::string guard = FailedGuard(plan(), bindings_);
    if (!guard.empty()) {
        return Error{ErrorCode::kUnsupported, std::move(guard)};
    }
    return OkStatus();
}

Status Instance::RunHostStep(const graph::HostStep& step, size_t stage, bool ends_stage) {
    std::vector<graph::Tensor> operands;
    for (size_t i = 0; i < step.operands.size(); ++i) {
        FORNAX_ASSIGN_OR_RETURN(const Dims dims,
                                EvaluateShape(step.operand_types[i].shape, bindings_));
        operands.push_back(TensorOf(step.operands[i], dims));
    }
    graph::InterpretOptions options;
    options.host_functions = host_functions_;
    Result<std::vector<graph::Tensor>> results =
        graph::EvaluateNode(step.operation, operands, step.bodies, bindings_, options);
    if (!results.ok()) {
        Error error = std::move(results).error();
        error.message = fmt::format("The host step {}: {}", step.name, error.message);
        return error;
    }
    FORNAX_RETURN_IF_ERROR(BindResultSizes(step, *results));
    // With the sizes that are known now the results have places.
    if (ends_stage && stage + 1 < stages_.size() &&
        (!stages_[stage + 1].is_placed || stages_[stage + 1].bindings != bindings_)) {
        FORNAX_RETURN_IF_ERROR(PlaceStage(stage + 1));
    }
    for (size_t i = 0; i < step.results.size(); ++i) {
        if (step.results[i].valid()) {
            Store(step.results[i], (*results)[i]);
        }
    }
    return OkStatus();
}

uint64_t Instance::memory_bytes() const {
    uint64_t total = 0;
    for (const StageState& stage : stages_) {
        total += stage.arena == nullptr ? 0 : stage.arena->size_bytes();
        total += stage.ports == nullptr ? 0 : stage.ports->size_bytes();
    }
    return total;
}

}  // namespace fornax::runtime
