// Running through the C interface.
#include <cstring>

#include <fmt/format.h>

#include "runtime/fornax_objects.h"
#include "runtime/plan_report.h"

namespace fornax::runtime {
namespace {

// Values of larger inputs do not decide shapes, and are not copied to look at them.
constexpr int64_t kMaxValueElements = 1024;

Status CheckIndex(size_t index, size_t count, const char* what) {
    if (index >= count) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("The {} number {} is asked for; there are {}.", what, index, count)};
    }
    return OkStatus();
}

// The inputs' sizes, and data where they may decide shapes.
Result<std::vector<graph::Tensor>> SizesOf(const Model& model,
                                           std::span<const fornax_tensor> inputs,
                                           bool with_types) {
    if (inputs.size() != model.inputs().size()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} inputs are given; the model has {}.", inputs.size(),
                                 model.inputs().size())};
    }
    std::vector<graph::Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
        fornax_tensor input = inputs[i];
        if (!with_types) {
            input.type = static_cast<fornax_type>(model.inputs()[i].element);
        }
        FORNAX_ASSIGN_OR_RETURN(graph::Tensor tensor, ToTensor(input, false));
        const bool may_decide = tensor.count() <= kMaxValueElements && tensor.count() > 0;
        if (input.type == FORNAX_STRING || (may_decide && input.data != nullptr)) {
            FORNAX_ASSIGN_OR_RETURN(tensor, ToTensor(input, input.data != nullptr));
        }
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

Status CopyInput(Instance& instance,
                 size_t index,
                 const fornax_tensor& input,
                 const graph::Tensor& tensor) {
    if (input.type == FORNAX_STRING) {
        return instance.SetInputStrings(index, tensor.strings);
    }
    FORNAX_RETURN_IF_ERROR(instance.BindInput(index, nullptr, 0).ok()
                               ? OkStatus()
                               : instance.BindInput(index, nullptr, 0).error());
    const std::span<uint8_t> bytes = instance.InputBytes(index);
    if (input.size_bytes != bytes.size() || (input.data == nullptr && !bytes.empty())) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The input {} of type {} has {} bytes; it is given with {}.",
                                 index, tensor.type().ToString(), bytes.size(),
                                 input.data == nullptr ? 0 : input.size_bytes)};
    }
    if (!bytes.empty()) {
        std::memcpy(bytes.data(), input.data, bytes.size());
    }
    return OkStatus();
}

// Pointers to the strings and then the strings, in one allocation.
Status AllocateStrings(const std::vector<std::string>& strings, fornax_tensor& output) {
    size_t size = strings.size() * sizeof(char*);
    for (const std::string& text : strings) {
        size += text.size() + 1;
    }
    void* memory = std::malloc(std::max<size_t>(size, 1));
    if (memory == nullptr) {
        return Error{ErrorCode::kOutOfHostMemory,
                     fmt::format("An output of {} bytes finds no memory.", size)};
    }
    auto* pointers = static_cast<char**>(memory);
    auto* text = reinterpret_cast<char*>(pointers + strings.size());
    for (size_t i = 0; i < strings.size(); ++i) {
        pointers[i] = text;
        std::memcpy(text, strings[i].c_str(), strings[i].size() + 1);
        text += strings[i].size() + 1;
    }
    output.data = memory;
    output.owner = memory;
    output.size_bytes = strings.size() * sizeof(char*);
    return OkStatus();
}

Status CopyOutput(const Instance& instance,
                  size_t index,
                  const graph::PlanPort& port,
                  fornax_tensor& output) {
    const std::optional<Dims> dims = instance.OutputDims(index);
    if (!dims) {
        return Error{ErrorCode::kInternal,
                     fmt::format("The output {} has no size after the run.", port.name)};
    }
    if (port.type.element == graph::ElementType::kString) {
        const graph::Strings strings = instance.OutputStrings(index);
        if (output.data != nullptr || strings == nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The output {} holds strings, for which the caller has no "
                                     "memory.",
                                     port.name)};
        }
        SetDims(output, port.type.element, *dims);
        return AllocateStrings(*strings, output);
    }
    const std::span<const uint8_t> bytes = instance.OutputBytes(index);
    if (output.data == nullptr) {
        void* memory = std::malloc(std::max<size_t>(bytes.size(), 1));
        if (memory == nullptr) {
            return Error{
                ErrorCode::kOutOfHostMemory,
                fmt::format("The output {} of {} bytes finds no memory.", port.name, bytes.size())};
        }
        output.data = memory;
        output.owner = memory;
        output.size_bytes = bytes.size();
    } else if (output.size_bytes < bytes.size()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The output {} has {} bytes; there is room for {}.", port.name,
                                 bytes.size(), output.size_bytes)};
    }
    SetDims(output, port.type.element, *dims);
    if (!bytes.empty()) {
        std::memcpy(output.data, bytes.data(), bytes.size());
    }
    return OkStatus();
}

Status CheckIsIdle(const fornax_session* session) {
    FORNAX_RETURN_IF_NULL(session);
    if (session->is_running) {
        return Error{ErrorCode::kInvalidArgument,
                     "A run of the session is under way: fornax_session_wait() ends it."};
    }
    return OkStatus();
}

Status CheckIsReady(const fornax_session* session) {
    FORNAX_RETURN_IF_ERROR(CheckIsIdle(session));
    if (session->instance == nullptr) {
        return Error{ErrorCode::kInvalidArgument,
                     "The sizes of the inputs are not set: fornax_session_set_sizes() does it."};
    }
    return OkStatus();
}

Status RunInstance(fornax_session& session, std::vector<StepTime>* times) {
    session.has_run = false;
    FORNAX_RETURN_IF_ERROR(session.instance->Run(times));
    session.has_run = true;
    return OkStatus();
}

}  // namespace
}  // namespace fornax::runtime

using namespace fornax;
using namespace fornax::runtime;

fornax_status fornax_session_create(fornax_model* model, fornax_session** session) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(model);
        FORNAX_RETURN_IF_NULL(session);
        *session = new fornax_session{ModelSession(model->model)};
        return OkStatus();
    });
}

void fornax_session_destroy(fornax_session* session) {
    delete session;  // instances wait for their runs
}

fornax_status fornax_session_reset(fornax_session* session) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsIdle(session));
        session->instance.reset();
        session->plan.reset();
        session->session.ResetStates();
        return OkStatus();
    });
}

fornax_status fornax_run(fornax_session* session,
                         const fornax_tensor* inputs,
                         size_t input_count,
                         fornax_tensor* outputs,
                         size_t output_count) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsIdle(session));
        const Model& model = session->session.model();
        if (input_count != 0) {
            FORNAX_RETURN_IF_NULL(inputs);
        }
        if (output_count != model.output_count()) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("{} outputs are asked for; the model has {}.", output_count,
                                     model.output_count())};
        }
        if (output_count != 0) {
            FORNAX_RETURN_IF_NULL(outputs);
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<graph::Tensor> sizes,
                                SizesOf(model, {inputs, input_count}, true));
        // The caller's outputs change only if all is well.
        std::vector<fornax_tensor> made(outputs, outputs + output_count);
        for (fornax_tensor& output : made) {
            output.owner = nullptr;
        }
        Status status =
            session->session.With(sizes, [&](Instance& instance, const ModelPlan& plan) -> Status {
                const std::vector<graph::PlanPort>& ports = plan.program->plan().outputs;
                if (ports.size() != output_count) {
                    return Error{ErrorCode::kUnsupported,
                                 fmt::format("The model has {} outputs for these inputs, and {} by "
                                             "what it says.",
                                             ports.size(), output_count)};
                }
                for (size_t i = 0; i < input_count; ++i) {
                    FORNAX_RETURN_IF_ERROR(CopyInput(instance, i, inputs[i], sizes[i]));
                }
                FORNAX_RETURN_IF_ERROR(instance.Run());
                for (size_t i = 0; i < output_count; ++i) {
                    FORNAX_RETURN_IF_ERROR(CopyOutput(instance, i, ports[i], made[i]));
                }
                return OkStatus();
            });
        if (!status.ok()) {
            for (fornax_tensor& output : made) {
                std::free(output.owner);
            }
            return status;
        }
        std::copy(made.begin(), made.end(), outputs);
        return OkStatus();
    });
}

fornax_status fornax_session_set_sizes(fornax_session* session,
                                       const fornax_tensor* inputs,
                                       size_t input_count) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsIdle(session));
        if (input_count != 0) {
            FORNAX_RETURN_IF_NULL(inputs);
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<graph::Tensor> sizes,
                                SizesOf(session->session.model(), {inputs, input_count}, false));
        std::shared_ptr<const ModelPlan> plan;
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<Instance> instance,
                                session->session.For(sizes, &plan));
        session->has_run = session->has_run && session->instance == instance;
        session->instance = std::move(instance);
        session->plan = std::move(plan);
        return OkStatus();
    });
}

int fornax_session_input_decides(const fornax_session* session, size_t index) {
    return session != nullptr && session->plan != nullptr &&
                   session->plan->fixed_inputs.contains(index)
               ? 1
               : 0;
}

fornax_status fornax_session_input_memory(fornax_session* session,
                                          size_t index,
                                          void** data,
                                          size_t* size_bytes) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        FORNAX_RETURN_IF_NULL(data);
        FORNAX_RETURN_IF_NULL(size_bytes);
        FORNAX_RETURN_IF_ERROR(
            CheckIndex(index, session->session.model().inputs().size(), "input"));
        const std::span<uint8_t> bytes = session->instance->InputBytes(index);
        *data = bytes.data();
        *size_bytes = bytes.size();
        return OkStatus();
    });
}

fornax_status fornax_session_bind_input(fornax_session* session,
                                        size_t index,
                                        const void* data,
                                        size_t size_bytes,
                                        int* in_place) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        FORNAX_RETURN_IF_ERROR(
            CheckIndex(index, session->session.model().inputs().size(), "input"));
        FORNAX_ASSIGN_OR_RETURN(const bool is_in_place,
                                session->instance->BindInput(index, data, size_bytes));
        if (in_place != nullptr) {
            *in_place = is_in_place ? 1 : 0;
        }
        return OkStatus();
    });
}

fornax_status fornax_session_bind_output(fornax_session* session,
                                         size_t index,
                                         void* data,
                                         size_t size_bytes,
                                         int* in_place) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        FORNAX_RETURN_IF_ERROR(
            CheckIndex(index, session->plan->program->plan().outputs.size(), "output"));
        FORNAX_ASSIGN_OR_RETURN(const bool is_in_place,
                                session->instance->BindOutput(index, data, size_bytes));
        if (in_place != nullptr) {
            *in_place = is_in_place ? 1 : 0;
        }
        return OkStatus();
    });
}

fornax_status fornax_session_bind_state(fornax_session* session,
                                        const char* name,
                                        void* data,
                                        size_t size_bytes,
                                        int* in_place) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        FORNAX_RETURN_IF_NULL(name);
        FORNAX_ASSIGN_OR_RETURN(const bool is_in_place,
                                session->instance->BindState(name, data, size_bytes));
        if (in_place != nullptr) {
            *in_place = is_in_place ? 1 : 0;
        }
        return OkStatus();
    });
}

fornax_status fornax_session_run(fornax_session* session) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        return RunInstance(*session, nullptr);
    });
}

fornax_status fornax_session_start(fornax_session* session) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        session->has_run = false;
        FORNAX_RETURN_IF_ERROR(session->instance->Start());
        session->is_running = true;
        return OkStatus();
    });
}

fornax_status fornax_session_wait(fornax_session* session, uint64_t timeout_nanoseconds) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(session);
        if (!session->is_running) {
            return Error{ErrorCode::kInvalidArgument,
                         "No run of the session is under way: fornax_session_start() begins one."};
        }
        session->is_running = false;  // whatever fails or is thrown
        FORNAX_ASSIGN_OR_RETURN(session->has_run, session->instance->Wait(timeout_nanoseconds));
        if (!session->has_run) {
            session->is_running = true;
            return Error{ErrorCode::kTimeout,
                         fmt::format("The run is still under way after {} nanoseconds.",
                                     timeout_nanoseconds)};
        }
        return OkStatus();
    });
}

fornax_status fornax_session_output(const fornax_session* session,
                                    size_t index,
                                    fornax_tensor* output) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        FORNAX_RETURN_IF_NULL(output);
        const std::vector<graph::PlanPort>& ports = session->plan->program->plan().outputs;
        FORNAX_RETURN_IF_ERROR(CheckIndex(index, ports.size(), "output"));
        const std::optional<Dims> dims = session->instance->OutputDims(index);
        if (!dims) {
            return Error{ErrorCode::kNotFound,
                         fmt::format("The size of the output {} depends on values, and the model "
                                     "has not run.",
                                     ports[index].name)};
        }
        fornax_tensor made = {};
        SetDims(made, ports[index].type.element, *dims);
        if (session->has_run) {
            const std::span<const uint8_t> bytes = session->instance->OutputBytes(index);
            made.data = const_cast<uint8_t*>(bytes.data());
            made.size_bytes = bytes.size();
        }
        *output = made;
        return OkStatus();
    });
}

fornax_status fornax_session_record(fornax_session* session, void* command_buffer) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        FORNAX_RETURN_IF_NULL(command_buffer);
        FORNAX_RETURN_IF_ERROR(
            session->instance->Record(static_cast<VkCommandBuffer>(command_buffer)));
        session->has_run = true;  // outputs will be where they are after a run
        return OkStatus();
    });
}

fornax_status fornax_session_profile(fornax_session* session) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        std::vector<StepTime> times;
        FORNAX_RETURN_IF_ERROR(RunInstance(*session, &times));
        session->times = std::move(times);
        session->profiled_plan = session->plan;
        session->profiled_sizes = session->instance->bindings();
        return OkStatus();
    });
}

fornax_status fornax_session_report(fornax_session* session, const char** json) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_ERROR(CheckIsReady(session));
        FORNAX_RETURN_IF_NULL(json);
        const bool has_times = session->profiled_plan == session->plan &&
                               session->profiled_sizes == session->instance->bindings();
        session->report = ReportOf(*session->plan, *session->instance,
                                   has_times ? session->times : std::vector<StepTime>());
        *json = session->report.c_str();
        return OkStatus();
    });
}

size_t fornax_session_step_count(const fornax_session* session) {
    return session == nullptr ? 0 : session->times.size();
}

fornax_status fornax_session_step(const fornax_session* session, size_t index, fornax_step* step) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(session);
        FORNAX_RETURN_IF_NULL(step);
        FORNAX_RETURN_IF_ERROR(CheckIndex(index, session->times.size(), "step"));
        const StepTime& time = session->times[index];
        const graph::PlanStep& from = session->profiled_plan->program->plan().steps[time.step];
        *step = {};
        step->nanoseconds = time.nanoseconds;
        step->on_host = time.on_host ? 1 : 0;
        step->reason = "";
        step->operations = step->bytes_read = step->bytes_written = -1;
        if (const auto* host = std::get_if<graph::HostStep>(&from)) {
            step->name = host->name.c_str();
            step->reason = host->reason.c_str();
            return OkStatus();
        }
        const auto& dispatch = std::get<graph::DispatchStep>(from);
        const graph::Bindings& sizes = session->profiled_sizes;
        step->name = dispatch.name.c_str();
        step->operations = dispatch.operations.Evaluate(sizes).value_or(-1);
        step->bytes_read = dispatch.bytes_read.Evaluate(sizes).value_or(-1);
        step->bytes_written = dispatch.bytes_written.Evaluate(sizes).value_or(-1);
        return OkStatus();
    });
}
