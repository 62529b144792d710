// Compiling: nodes and constants of onnxruntime through the importer, or compiled ones as they are.
#include "plugins/onnxruntime/partition.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/graph_hash.h"
#include "compiler/graph/host/host_functions.h"
#include "compiler/graph/plan/plan_file.h"
#include "plugins/onnxruntime/capture.h"
#include "plugins/onnxruntime/claim.h"
#include "plugins/onnxruntime/context.h"
#include "plugins/onnxruntime/context_bytes.h"
#include "plugins/onnxruntime/partition_compiler.h"

namespace fornax::onnxruntime_plugin {
namespace {

using onnx_frontend::InitializerValues;
using runtime::Dims;

// Where constants are while a thread compiles: in onnxruntime's memory of the call that it is in.
using WeightProvider = std::function<Result<InitializerValues>()>;
thread_local const WeightProvider* current_weights = nullptr;

class WeightScope {
  public:
    explicit WeightScope(const WeightProvider& provider) { current_weights = &provider; }
    ~WeightScope() { current_weights = nullptr; }
    WeightScope(const WeightScope&) = delete;
    WeightScope& operator=(const WeightScope&) = delete;
};

runtime::ModelCompiler CompilerOf(const std::shared_ptr<const onnx::ModelProto>& partition) {
    runtime::ModelCompiler compiler;
    compiler.describe = runtime::DescribeModel;
    compiler.compile =
        [partition](const runtime::CompileRequest& request) -> Result<runtime::CompiledModel> {
        if (current_weights == nullptr) {
            return Error{ErrorCode::kInternal, "A partition is compiled outside of a run."};
        }
        FORNAX_ASSIGN_OR_RETURN(const InitializerValues weights, (*current_weights)());
        return CompilePartition(*partition, weights, request);
    };
    compiler.digest = graph::CompilerDigest();
    compiler.host_functions = &graph::StandardHostFunctions();
    return compiler;
}

Result<std::map<std::string, size_t>> IndexesOf(const Api& api,
                                                const std::vector<const OrtValueInfo*>& values) {
    std::map<std::string, size_t> indexes;
    for (size_t i = 0; i < values.size(); ++i) {
        FORNAX_ASSIGN_OR_RETURN(std::string name, NameOf(api, values[i]));
        indexes.emplace(std::move(name), i);
    }
    return indexes;
}

}  // namespace

Result<std::unique_ptr<Partition>> Partition::Create(const Api& api,
                                                     const Options& options,
                                                     std::shared_ptr<vulkan::Device> device,
                                                     const OrtGraph* graph,
                                                     const OrtNode* fused) {
    std::unique_ptr<Partition> partition(new Partition(api, options));
    // Other drivers may hold on to the pages that were at an address.
    const std::string name = device->name();
    partition->binds_ = name.find("Fornax") != std::string::npos ||
                        device->properties().deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    runtime::ModelOptions model;
    model.opened_device = std::move(device);
    model.precision = options.precision;
    model.strict = options.strict;
    model.cache = options.cache;
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtNode*> nodes, NodesOf(api, graph));
    partition->node_count_ = nodes.size();
    bool is_context = false;
    if (nodes.size() == 1) {
        FORNAX_ASSIGN_OR_RETURN(is_context, IsContextNode(api, nodes[0]));
    }
    FORNAX_RETURN_IF_ERROR(is_context ? partition->Load(graph, nodes[0], fused, std::move(model))
                                      : partition->Compile(graph, fused, std::move(model)));
    return partition;
}

Status Partition::Compile(const OrtGraph* graph,
                          const OrtNode* fused,
                          runtime::ModelOptions model) {
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtNode*> nodes, NodesOf(api_, graph));
    FORNAX_ASSIGN_OR_RETURN(
        Capture capture, CaptureNodes(api_, graph, nodes, [](const std::string&) { return true; }));
    for (const std::string& reason : capture.refused) {
        if (!reason.empty()) {
            return Error{ErrorCode::kInternal,
                         fmt::format("Fornax: a node that was taken cannot be read: {}.", reason)};
        }
    }
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtValueInfo*> outputs, OutputsOf(api_, fused));
    onnx::GraphProto& proto = *capture.model.mutable_graph();
    for (const OrtValueInfo* output : outputs) {
        FORNAX_ASSIGN_OR_RETURN(const std::string name, NameOf(api_, output));
        proto.add_output()->set_name(name);
    }
    proto.clear_value_info();
    proto.set_doc_string(DigestOf(capture.weights));
    FORNAX_RETURN_IF_ERROR(FindPorts(fused, proto));
    if (is_open_) {
        for (const auto& [name, weight] : capture.weights) {
            if (std::ranges::none_of(weights_,
                                     [&](const Port& port) { return port.name == name; })) {
                kept_weights_[name] = weight;
                kept_weights_[name].data = CopyOf(*weight.data);
            }
        }
    }
    return Start(std::move(capture.model), capture.weights, std::move(model));
}

Status Partition::Load(const OrtGraph* graph,
                       const OrtNode* node,
                       const OrtNode* fused,
                       runtime::ModelOptions model) {
    FORNAX_ASSIGN_OR_RETURN(std::string bytes, ReadContext(api_, graph, node));
    FORNAX_ASSIGN_OR_RETURN(Context context, ParseContext(std::move(bytes)));
    if (auto* message = std::get_if<onnx::ModelProto>(&context)) {
        FORNAX_RETURN_IF_ERROR(FindPorts(fused, message->graph()));
        FORNAX_ASSIGN_OR_RETURN(const InitializerValues weights, WeightsOf(node));
        FORNAX_RETURN_IF_ERROR(CheckPartition(message->graph(), weights));
        return Start(std::move(*message), {}, std::move(model));
    }
    FORNAX_ASSIGN_OR_RETURN(model_,
                            runtime::Model::Load({.bytes = std::get<PlanBytes>(context).bytes},
                                                 std::move(model), runtime::LinkedCompiler()));
    return FindPlanPorts(fused);
}

// The ports by the names in the message.
Status Partition::FindPorts(const OrtNode* fused, const onnx::GraphProto& graph) {
    FORNAX_ASSIGN_OR_RETURN(const auto input_values, InputsOf(api_, fused));
    FORNAX_ASSIGN_OR_RETURN(const auto indexes, IndexesOf(api_, input_values));
    std::vector<std::string> inputs, outputs;
    for (const onnx::ValueInfoProto& input : graph.input()) {
        inputs.push_back(input.name());
    }
    for (const onnx::ValueInfoProto& output : graph.output()) {
        outputs.push_back(output.name());
    }
    for (const onnx::TensorProto& tensor : graph.initializer()) {
        const auto index = indexes.find(tensor.name());
        if (!tensor.has_raw_data() && index != indexes.end()) {
            weights_.push_back({tensor.name(), index->second, {}});
        }
    }
    is_open_ = IsOpen(graph);
    return SetPorts(fused, inputs, outputs);
}

Status Partition::FindPlanPorts(const OrtNode* fused) {
    FORNAX_ASSIGN_OR_RETURN(const auto output_ports, model_->Outputs());
    std::vector<std::string> inputs, outputs;
    for (const runtime::ModelPort& input : model_->inputs()) {
        inputs.push_back(input.name);
    }
    for (const runtime::ModelPort& output : output_ports) {
        outputs.push_back(output.name);
    }
    FORNAX_RETURN_IF_ERROR(SetPorts(fused, inputs, outputs));
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs_[i].element != model_->inputs()[i].element) {
            return Error{
                ErrorCode::kDataLoss,
                fmt::format("Fornax: a compiled partition of the model reads {} as {}, the model "
                            "has it as {}.",
                            inputs[i], graph::Name(model_->inputs()[i].element),
                            graph::Name(inputs_[i].element))};
        }
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs_[i].element != output_ports[i].element) {
            return Error{
                ErrorCode::kDataLoss,
                fmt::format("Fornax: a compiled partition of the model gives {} as {}, the "
                            "model wants {}.",
                            outputs[i], graph::Name(output_ports[i].element),
                            graph::Name(outputs_[i].element))};
        }
    }
    return OkStatus();
}

Status Partition::SetPorts(const OrtNode* fused,
                           const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs) {
    const auto find = [&](const std::vector<const OrtValueInfo*>& values,
                          const std::vector<std::string>& names,
                          std::vector<Port>& ports) -> Status {
        FORNAX_ASSIGN_OR_RETURN(const auto indexes, IndexesOf(api_, values));
        for (const std::string& name : names) {
            const auto index = indexes.find(name);
            if (index == indexes.end()) {
                return Error{
                    ErrorCode::kDataLoss,
                    fmt::format("Fornax: the model has no value {} for a partition of it.", name)};
            }
            FORNAX_ASSIGN_OR_RETURN(const ValueType type, TypeOf(api_, values[index->second]));
            const std::optional<graph::ElementType> element = ElementOf(type.number);
            if (!type.is_tensor() || !element || !HasWholeBytes(*element)) {
                return Error{ErrorCode::kUnsupported,
                             fmt::format("Fornax: the value {} is of no type that a partition "
                                         "reads or writes.",
                                         name)};
            }
            ports.push_back({name, index->second, *element});
        }
        return OkStatus();
    };
    FORNAX_ASSIGN_OR_RETURN(const auto input_values, InputsOf(api_, fused));
    FORNAX_ASSIGN_OR_RETURN(const auto output_values, OutputsOf(api_, fused));
    FORNAX_RETURN_IF_ERROR(find(input_values, inputs, inputs_));
    return find(output_values, outputs, outputs_);
}

Status Partition::Start(onnx::ModelProto message,
                        const InitializerValues& weights,
                        runtime::ModelOptions options) {
    const auto shared = std::make_shared<const onnx::ModelProto>(std::move(message));
    const WeightProvider provider = [&]() -> Result<InitializerValues> { return weights; };
    const WeightScope scope(provider);
    runtime::ModelCompiler compiler = CompilerOf(shared);
    auto bytes = std::make_shared<const std::string>(shared->SerializeAsString());
    if (options_.writes_context && !is_open_) {
        runtime::CompileRequest request;
        request.file.bytes = bytes;
        request.precision = options.precision;
        request.bfloat16_products = options.opened_device->features().bfloat16_dot;
        request.strict = options.strict;
        FORNAX_ASSIGN_OR_RETURN(const runtime::CompiledModel compiled,
                                compiler.compile(std::move(request)));
        FORNAX_ASSIGN_OR_RETURN(const std::vector<std::byte> plan,
                                graph::SerializePlan(compiled.plan));
        context_.assign(reinterpret_cast<const char*>(plan.data()), plan.size());
        bytes = std::make_shared<const std::string>(context_);
        compiler = runtime::LinkedCompiler();
    } else if (options_.writes_context) {
        context_ = SerializeContext(*shared);
    }
    FORNAX_ASSIGN_OR_RETURN(model_, runtime::Model::Load({.bytes = std::move(bytes)},
                                                         std::move(options), std::move(compiler)));
    return OkStatus();
}

// Constants that the node reads, where onnxruntime has them while it compiles.
Result<InitializerValues> Partition::WeightsOf(const OrtNode* node) const {
    FORNAX_ASSIGN_OR_RETURN(const auto values, InputsOf(api_, node));
    InitializerValues weights;
    for (const OrtValueInfo* value : values) {
        FORNAX_ASSIGN_OR_RETURN(const std::string name, NameOf(api_, value));
        bool is_constant = false;
        const bool is_wanted =
            std::ranges::any_of(weights_, [&](const Port& port) { return port.name == name; });
        if (is_wanted) {
            FORNAX_ORT(api_, ValueInfo_IsConstantInitializer(value, &is_constant));
        }
        const OrtValue* tensor = nullptr;
        if (is_constant) {
            FORNAX_ORT(api_, ValueInfo_GetInitializerValue(value, &tensor));
        }
        if (tensor != nullptr) {
            FORNAX_ASSIGN_OR_RETURN(weights[name], WeightOf(name, tensor));
        }
    }
    return weights;
}

// A constant in onnxruntime's memory.
Result<graph::Tensor> Partition::WeightOf(const std::string& name, const OrtValue* value) const {
    static const auto nobody = std::make_shared<const char>();
    FORNAX_ASSIGN_OR_RETURN(const TensorView view, ViewOf(api_, value));
    const std::optional<graph::ElementType> element = ElementOf(view.number);
    // The compiler's elements are whole bytes, and packed ones are never left out of a message.
    if (!element || !HasWholeBytes(*element)) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("Fornax: the constant {} is of no type that there is.", name)};
    }
    return graph::Tensor{
        *element, view.dims,
        graph::Bytes(graph::ByteSpan(static_cast<const uint8_t*>(view.data), view.size_bytes),
                     nobody),
        nullptr};
}

// --- Running -------------------------------------------------------------------------------------

Result<InitializerValues> Partition::WeightsOf(OrtKernelContext* context) const {
    InitializerValues weights = kept_weights_;
    for (const Port& port : weights_) {
        const OrtValue* value = nullptr;
        FORNAX_ORT(api_, KernelContext_GetInput(context, port.index, &value));
        if (value == nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("Fornax: the constant {} is not given.", port.name)};
        }
        FORNAX_ASSIGN_OR_RETURN(weights[port.name], WeightOf(port.name, value));
    }
    return weights;
}

Status Partition::Run(OrtKernelContext* context) {
    const WeightProvider provider = [&] { return WeightsOf(context); };
    const WeightScope scope(provider);
    std::vector<TensorView> views;
    for (const Port& port : inputs_) {
        const OrtValue* value = nullptr;
        FORNAX_ORT(api_, KernelContext_GetInput(context, port.index, &value));
        if (value == nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("Fornax: the input {} is not given.", port.name)};
        }
        FORNAX_ASSIGN_OR_RETURN(TensorView view, ViewOf(api_, value));
        if (ElementOf(view.number) != port.element) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("Fornax: the input {} is not given as {}.", port.name,
                                     graph::Name(port.element))};
        }
        views.push_back(std::move(view));
    }
    std::unique_ptr<Slot> slot = Acquire();
    const Status status = RunIn(*slot, views, context);
    if (status.ok()) {
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(slot));
    }
    return status;
}

std::unique_ptr<Slot> Partition::Acquire() {
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            std::unique_ptr<Slot> slot = std::move(free_.back());
            free_.pop_back();
            return slot;
        }
    }
    return std::make_unique<Slot>(model_, binds_);
}

Status Partition::RunIn(Slot& slot,
                        const std::vector<TensorView>& views,
                        OrtKernelContext* context) {
    std::vector<graph::Tensor> sizes;
    for (size_t i = 0; i < views.size(); ++i) {
        sizes.push_back({inputs_[i].element, views[i].dims, nullptr, nullptr});
    }
    FORNAX_ASSIGN_OR_RETURN(Slot::Use use, slot.For(sizes));
    runtime::Instance& instance = *use.instance;
    const std::vector<graph::PlanPort>& ports = use.plan->program->plan().outputs;
    if (ports.size() != outputs_.size()) {
        return Error{ErrorCode::kInternal,
                     fmt::format("Fornax: the partition gives {} values instead of {}.",
                                 ports.size(), outputs_.size())};
    }
    for (size_t i = 0; i < views.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(slot.SetInput(use, i, views[i].data, views[i].size_bytes));
    }
    const auto allocate = [&](size_t i, const Dims& dims) -> Result<std::span<uint8_t>> {
        if (ports[i].type.element != outputs_[i].element) {
            return Error{ErrorCode::kInternal,
                         fmt::format("Fornax: the value {} is computed as {} instead of {}.",
                                     outputs_[i].name, graph::Name(ports[i].type.element),
                                     graph::Name(outputs_[i].element))};
        }
        OrtValue* value = nullptr;
        FORNAX_ORT(api_, KernelContext_GetOutput(context, outputs_[i].index, dims.data(),
                                                 dims.size(), &value));
        if (value == nullptr) {
            return std::span<uint8_t>();
        }
        void* data = nullptr;
        size_t size_bytes = 0;
        FORNAX_ORT(api_, GetTensorMutableData(value, &data));
        FORNAX_ORT(api_, GetTensorSizeInBytes(value, &size_bytes));
        return std::span<uint8_t>(static_cast<uint8_t*>(data), size_bytes);
    };
    std::vector<std::span<uint8_t>> memory(outputs_.size());
    std::vector<bool> is_allocated(outputs_.size(), false);
    for (size_t i = 0; i < outputs_.size(); ++i) {
        const std::optional<Dims> dims = instance.OutputDims(i);
        if (dims) {  // else the run tells
            FORNAX_ASSIGN_OR_RETURN(memory[i], allocate(i, *dims));
            FORNAX_RETURN_IF_ERROR(slot.SetOutput(use, i, memory[i].data(), memory[i].size()));
            is_allocated[i] = true;
        }
    }
    FORNAX_RETURN_IF_ERROR(instance.Run());
    for (size_t i = 0; i < outputs_.size(); ++i) {
        if (!is_allocated[i]) {
            const std::optional<Dims> dims = instance.OutputDims(i);
            if (!dims) {
                return Error{ErrorCode::kInternal,
                             fmt::format("Fornax: the value {} has no size after the run.",
                                         outputs_[i].name)};
            }
            FORNAX_ASSIGN_OR_RETURN(memory[i], allocate(i, *dims));
        }
        FORNAX_RETURN_IF_ERROR(slot.TakeOutput(use, i, memory[i]));
    }
    return OkStatus();
}

}  // namespace fornax::onnxruntime_plugin
