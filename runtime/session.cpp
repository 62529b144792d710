#include "runtime/session.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace fornax::runtime {

Session::Session(std::shared_ptr<const Program> program, SessionOptions options)
    : program_(std::move(program)), options_(std::move(options)) {
    options_.kept_sizes = std::max<size_t>(options_.kept_sizes, 1);
    if (options_.states == nullptr) {
        options_.states = std::make_shared<StateStore>(program_->device());
    }
}

Result<std::shared_ptr<Instance>> Session::For(std::span<const Dims> dims, Fit& fit) {
    const std::lock_guard lock(mutex_);
    return Find(dims, fit);
}

Result<std::shared_ptr<Instance>> Session::Find(std::span<const Dims> dims, Fit& fit) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
        return std::equal(kept.dims.begin(), kept.dims.end(), dims.begin(), dims.end());
    });
    if (found != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, found);
        fit = {};
        return kept_.front().instance;
    }
    FORNAX_ASSIGN_OR_RETURN(fit, FitSizes(program_->plan(), dims));
    if (!fit.ok) {
        return std::shared_ptr<Instance>();
    }
    // Before the new one is made, so that there is memory for it.
    while (kept_.size() >= options_.kept_sizes) {
        kept_.pop_back();
    }
    FORNAX_ASSIGN_OR_RETURN(
        std::shared_ptr<Instance> instance,
        Instance::Create(program_, fit.bindings, options_.states, options_.host_functions));
    kept_.push_front({{dims.begin(), dims.end()}, instance});
    return instance;
}

Result<RunResult> Session::Run(std::span<const graph::Tensor> inputs, bool with_times) {
    const graph::Plan& plan = program_->plan();
    std::vector<Dims> dims;
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (i < plan.inputs.size() && inputs[i].element != plan.inputs[i].type.element) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The input {} is {} and given as {}.", plan.inputs[i].name,
                                     plan.inputs[i].type.ToString(), inputs[i].type().ToString())};
        }
        dims.push_back(inputs[i].dims);
    }
    const std::lock_guard lock(mutex_);
    RunResult result;
    FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<Instance> instance, Find(dims, result.fit));
    if (instance == nullptr) {
        return result;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].element == graph::ElementType::kString) {
            FORNAX_RETURN_IF_ERROR(instance->SetInputStrings(i, inputs[i].strings));
            continue;
        }
        FORNAX_RETURN_IF_ERROR(instance->BindInput(i, nullptr, 0));
        const std::span<uint8_t> bytes = instance->InputBytes(i);
        const size_t given = inputs[i].data == nullptr ? 0 : inputs[i].data->size();
        if (given != bytes.size()) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("The input {} of type {} is given with {} bytes instead of "
                            "{}.",
                            plan.inputs[i].name, inputs[i].type().ToString(), given, bytes.size())};
        }
        if (!bytes.empty()) {
            std::memcpy(bytes.data(), inputs[i].data->data(), bytes.size());
        }
    }
    FORNAX_RETURN_IF_ERROR(instance->Run(with_times ? &result.times : nullptr));
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
        const graph::ElementType element = plan.outputs[i].type.element;
        const std::optional<Dims> output_dims = instance->OutputDims(i);
        if (!output_dims) {
            return Error{ErrorCode::kInternal,
                         fmt::format("The output {} of type {} has no size after the run.",
                                     plan.outputs[i].name, plan.outputs[i].type.ToString())};
        }
        if (element == graph::ElementType::kString) {
            result.outputs.push_back({element, *output_dims, nullptr, instance->OutputStrings(i)});
            continue;
        }
        uint8_t* data = nullptr;
        graph::Tensor tensor = graph::Tensor::Zeros(element, *output_dims, &data);
        const std::span<const uint8_t> bytes = instance->OutputBytes(i);
        if (!bytes.empty()) {
            std::memcpy(data, bytes.data(), std::min(bytes.size(), tensor.data->size()));
        }
        result.outputs.push_back(std::move(tensor));
    }
    return result;
}

}  // namespace fornax::runtime
