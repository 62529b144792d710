#include "runtime/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "runtime/model_cache.h"

namespace fornax::runtime {
namespace {

// Version 1 of what drivers give; the key names driver and kernels.
constexpr CacheKind kPipelines = {"graphpipelines", "bin", 1, true};

// The key depends on kernels and driver but not on weights: a model whose weights alone changed
// finds its pipelines.
Hash128 PipelineKey(const graph::Plan& plan, const vulkan::Device& device) {
    Hasher hasher;
    const VkPhysicalDeviceProperties& properties = device.properties();
    hasher.Append(device.name()).Append(properties.driverVersion);
    hasher.AppendArray(std::span<const uint8_t>(properties.pipelineCacheUUID));
    hasher.AppendListSize(plan.kernels.size());
    for (const graph::PlanKernel& kernel : plan.kernels) {
        hasher.Append(graph::ToText(kernel));
    }
    return hasher.Finish();
}

ModelPort PortOf(const std::string& name, const graph::TensorType& type) {
    ModelPort port{name, type.element, {}, {}};
    for (const graph::Expr& dim : type.shape.dims()) {
        port.dims.push_back(dim.constant().value_or(-1));
        port.dim_names.push_back(dim.is_constant() ? std::string() : dim.ToString());
    }
    return port;
}

std::vector<ModelPort> PortsOf(std::span<const graph::PlanPort> ports,
                               std::span<const graph::TensorType> types) {
    std::vector<ModelPort> made;
    for (size_t i = 0; i < ports.size(); ++i) {
        made.push_back(
            PortOf(ports[i].name, types.size() == ports.size() ? types[i] : ports[i].type));
    }
    return made;
}

bool SameValue(const graph::Tensor& a, const graph::Tensor& b) {
    const bool same_strings =
        a.strings == b.strings ||
        (a.strings != nullptr && b.strings != nullptr && *a.strings == *b.strings);
    const bool same_data =
        bool{a.data} == bool{b.data} && (!a.data || std::ranges::equal(*a.data, *b.data));
    return a.element == b.element && a.dims == b.dims && same_strings && same_data;
}

bool Serves(const ModelPlan& plan, std::span<const graph::Tensor> inputs, const Fit& fit) {
    return fit.ok &&
           std::all_of(plan.fixed_inputs.begin(), plan.fixed_inputs.end(), [&](const auto& fixed) {
               return SameValue(fixed.second, inputs[fixed.first]);
           });
}

std::vector<Dims> DimsOf(std::span<const graph::Tensor> inputs) {
    std::vector<Dims> dims;
    for (const graph::Tensor& input : inputs) {
        dims.push_back(input.dims);
    }
    return dims;
}

}  // namespace

Result<std::shared_ptr<Model>> Model::Load(const std::string& path,
                                           ModelOptions options,
                                           ModelCompiler compiler) {
    std::shared_ptr<Model> model(new Model);
    model->file_.path = path;
    model->options_ = std::move(options);
    model->compiler_ = std::move(compiler);
    FORNAX_RETURN_IF_ERROR(model->Start());
    return model;
}

Result<std::shared_ptr<Model>> Model::Load(ModelFile file,
                                           ModelOptions options,
                                           ModelCompiler compiler) {
    std::shared_ptr<Model> model(new Model);
    model->file_ = std::move(file);
    model->options_ = std::move(options);
    model->compiler_ = std::move(compiler);
    FORNAX_RETURN_IF_ERROR(model->Start());
    return model;
}

Status Model::Start() {
    if (options_.cache.empty()) {
        FORNAX_ASSIGN_OR_RETURN(std::string directory, CacheDirectory());
        cache_ = std::make_unique<DiskCache>(std::move(directory));
    } else if (options_.cache != "none") {
        cache_ = std::make_unique<DiskCache>(options_.cache);
    }
    device_ = options_.opened_device;
    if (device_ == nullptr) {
        FORNAX_ASSIGN_OR_RETURN(device_, vulkan::Device::Open(options_.device, options_.driver));
    }
    FORNAX_ASSIGN_OR_RETURN(const std::optional<ModelDescription> description,
                            compiler_.describe(file_));
    if (description) {
        FORNAX_RETURN_IF_ERROR(
            CheckSizeNames(file_.name(), options_.dynamic_sizes.names, description->types));
    }
    if (description && !KnowsSizes(*description)) {
        for (size_t i = 0; i < description->names.size(); ++i) {
            inputs_.push_back(PortOf(description->names[i], description->types[i]));
        }
        output_count_ = description->output_count;
        return OkStatus();
    }
    const std::lock_guard lock(compile_mutex_);
    FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelPlan> plan, Compile({}));
    Keep(plan);
    const graph::Plan& first = plan->program->plan();
    inputs_ = PortsOf(first.inputs, first.model_inputs);
    output_count_ = first.outputs.size();
    return OkStatus();
}

bool Model::KnowsSizes(const ModelDescription& description) const {
    for (size_t i = 0; i < description.names.size(); ++i) {
        if (options_.input_shapes.contains(description.names[i]) ||
            options_.input_values.contains(description.names[i])) {
            continue;
        }
        for (const graph::Expr& dim : description.types[i].shape.dims()) {
            for (const graph::Symbol& symbol : dim.Symbols()) {
                if (!options_.dims.contains(std::string(symbol.name()))) {
                    return false;
                }
            }
        }
    }
    return true;
}

Result<std::span<const ModelPort>> Model::Outputs() {
    const auto known = [&]() -> std::optional<std::span<const ModelPort>> {
        const std::lock_guard lock(mutex_);
        return outputs_ ? std::optional<std::span<const ModelPort>>(*outputs_) : std::nullopt;
    };
    if (const auto ports = known()) {
        return *ports;
    }
    const std::lock_guard lock(compile_mutex_);
    if (!known()) {
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const ModelPlan> plan, Compile({}));
        Keep(std::move(plan));
    }
    return *known();
}

Result<std::shared_ptr<const ModelPlan>> Model::Compile(std::span<const graph::Tensor> inputs) {
    CompileRequest request;
    request.file = file_;
    request.dims = options_.dims;
    request.dynamic_sizes = options_.dynamic_sizes;
    request.input_values = options_.input_values;
    if (inputs.empty()) {
        request.input_shapes = options_.input_shapes;
    }
    for (const auto& [name, value] : options_.input_values) {
        request.input_shapes[name] = value.dims;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        request.input_shapes[inputs_[i].name] = inputs[i].dims;
        if (inputs[i].data != nullptr || inputs[i].strings != nullptr) {
            request.input_values[inputs_[i].name] = inputs[i];
        }
    }
    request.precision = options_.precision;
    request.bfloat16_products = device_->features().bfloat16_dot;
    request.strict = options_.strict;
    request.progress = options_.progress;
    request.with_boundaries = options_.with_boundaries;
    const std::map<std::string, graph::Tensor> values = request.input_values;
    Result<CompiledModel> result =
        cache_ == nullptr ? compiler_.compile(std::move(request))
                          : CompileThroughCache(*cache_, compiler_, std::move(request));
    FORNAX_ASSIGN_OR_RETURN(CompiledModel compiled, std::move(result));

    auto plan = std::make_shared<ModelPlan>();
    plan->host_functions = compiled.host_functions;
    plan->boundaries = std::move(compiled.boundaries);
    plan->graph_text = std::move(compiled.graph_text);
    for (const uint32_t input : compiled.plan.fixed_inputs) {
        const auto value = values.find(compiled.plan.inputs[input].name);
        if (value != values.end()) {
            plan->fixed_inputs[input] = value->second;
        }
    }
    std::optional<std::vector<std::byte>> pipelines;
    const Hash128 key = PipelineKey(compiled.plan, *device_);
    if (cache_ != nullptr) {
        pipelines = cache_->Get(kPipelines, key);
    }
    FORNAX_ASSIGN_OR_RETURN(plan->program,
                            Program::Create(device_, std::move(compiled.plan),
                                            pipelines ? std::span<const std::byte>(*pipelines)
                                                      : std::span<const std::byte>(),
                                            options_.progress));
    const PipelineReport& report = plan->program->report();
    const bool is_complete = report.cache_known && report.from_cache == report.pipelines;
    if (cache_ != nullptr && !is_complete) {
        const std::vector<std::byte> data = plan->program->PipelineCacheData();
        if (!data.empty() && (!pipelines || data != *pipelines)) {
            cache_->Put(kPipelines, key, data);
        }
    }
    return std::shared_ptr<const ModelPlan>(std::move(plan));
}

Result<std::shared_ptr<const ModelPlan>> Model::PlanFor(std::span<const graph::Tensor> inputs) {
    const std::vector<Dims> dims = DimsOf(inputs);
    if (inputs.size() != inputs_.size()) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("{} inputs are given; the model has {}.", inputs.size(), inputs_.size())};
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].element != inputs_[i].element) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The input {} has elements of type {} and is given as {}.",
                                     inputs_[i].name, graph::Name(inputs_[i].element),
                                     inputs[i].type().ToString())};
        }
        if (inputs[i].dims.size() != inputs_[i].dims.size()) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("The input {} is given with {} dimensions; it has {}.", inputs_[i].name,
                            inputs[i].dims.size(), inputs_[i].dims.size())};
        }
    }
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const ModelPlan> plan, Find(inputs, dims));
    if (plan != nullptr) {
        return plan;
    }
    const std::lock_guard lock(compile_mutex_);
    // Another thread may have made it meanwhile.
    FORNAX_ASSIGN_OR_RETURN(plan, Find(inputs, dims));
    if (plan != nullptr) {
        return plan;
    }
    FORNAX_ASSIGN_OR_RETURN(plan, Compile(inputs));
    FORNAX_ASSIGN_OR_RETURN(const Fit fit, FitSizes(plan->program->plan(), dims));
    if (!fit.ok) {
        return Error{ErrorCode::kInvalidArgument, fit.reason};
    }
    Keep(plan);
    return plan;
}

Result<std::shared_ptr<const ModelPlan>> Model::Find(std::span<const graph::Tensor> inputs,
                                                     std::span<const Dims> dims) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < plans_.size(); ++i) {
        FORNAX_ASSIGN_OR_RETURN(const Fit fit, FitSizes(plans_[i]->program->plan(), dims));
        if (Serves(*plans_[i], inputs, fit)) {
            std::rotate(plans_.begin(), plans_.begin() + static_cast<ptrdiff_t>(i),
                        plans_.begin() + static_cast<ptrdiff_t>(i) + 1);
            return plans_.front();
        }
    }
    return std::shared_ptr<const ModelPlan>();
}

void Model::Keep(std::shared_ptr<const ModelPlan> plan) {
    const std::lock_guard lock(mutex_);
    if (!outputs_) {
        const graph::Plan& first = plan->program->plan();
        outputs_ = PortsOf(first.outputs, first.model_outputs);
    }
    plans_.insert(plans_.begin(), std::move(plan));
    if (plans_.size() > std::max<size_t>(options_.kept_plans, 1)) {
        plans_.pop_back();
    }
}

// --- Sessions ------------------------------------------------------------------------------------

ModelSession::ModelSession(std::shared_ptr<Model> model)
    : model_(std::move(model)), states_(std::make_shared<StateStore>(model_->device())) {}

std::shared_ptr<Session> ModelSession::SessionOf(const std::shared_ptr<const ModelPlan>& plan) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < sessions_.size(); ++i) {
        if (sessions_[i].plan == plan) {
            std::rotate(sessions_.begin(), sessions_.begin() + static_cast<ptrdiff_t>(i),
                        sessions_.begin() + static_cast<ptrdiff_t>(i) + 1);
            return sessions_.front().session;
        }
    }
    SessionOptions options;
    options.kept_sizes = model_->options().kept_sizes;
    options.host_functions = plan->host_functions;
    options.states = states_;
    if (sessions_.size() >= std::max<size_t>(model_->options().kept_plans, 1)) {
        sessions_.pop_back();
    }
    sessions_.insert(sessions_.begin(), {plan, std::make_shared<Session>(plan->program, options)});
    return sessions_.front().session;
}

Result<RunResult> ModelSession::Run(std::span<const graph::Tensor> inputs,
                                    bool with_times,
                                    std::shared_ptr<const ModelPlan>* plan) {
    FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelPlan> found, model_->PlanFor(inputs));
    if (plan != nullptr) {
        *plan = found;
    }
    const std::lock_guard lock(run_mutex_);
    return SessionOf(found)->Run(inputs, with_times);
}

Status ModelSession::With(std::span<const graph::Tensor> inputs,
                          const std::function<Status(Instance&, const ModelPlan&)>& use) {
    FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelPlan> plan, model_->PlanFor(inputs));
    const std::lock_guard lock(run_mutex_);
    Fit fit;
    FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<Instance> instance,
                            SessionOf(plan)->For(DimsOf(inputs), fit));
    return use(*instance, *plan);
}

Result<std::shared_ptr<Instance>> ModelSession::For(std::span<const graph::Tensor> inputs,
                                                    std::shared_ptr<const ModelPlan>* plan) {
    FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelPlan> found, model_->PlanFor(inputs));
    if (plan != nullptr) {
        *plan = found;
    }
    Fit fit;
    return SessionOf(found)->For(DimsOf(inputs), fit);
}

void ModelSession::ResetStates() {
    const std::lock_guard run_lock(run_mutex_);
    const std::lock_guard lock(mutex_);
    sessions_.clear();
    states_ = std::make_shared<StateStore>(model_->device());
}

}  // namespace fornax::runtime
