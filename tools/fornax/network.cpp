// Tells models from plan files and reads their inputs.
#include "tools/fornax/network.h"

#include <charconv>

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/frontends/onnx/model_inputs.h"
#include "compiler/frontends/torch/graph_file.h"
#include "compiler/graph/plan/plan_file.h"
#include "runtime/compile_model.h"

namespace fornax::tool {
namespace {

Result<Network> DescribePlan(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const graph::Plan plan,
                            graph::ReadPlanFile(path, graph::WeightCheck::kTrust));
    Network network{path, true, {}};
    for (const graph::PlanPort& port : plan.inputs) {
        network.inputs.push_back({port.name, port.type, true});
    }
    return network;
}

// An FX graph of PyTorch.
Result<Network> DescribeTorchGraph(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const std::optional<runtime::ModelDescription> description,
                            runtime::DescribeModel({path, nullptr}));
    Network network{path, false, {}};
    for (size_t i = 0; description && i < description->names.size(); ++i) {
        network.inputs.push_back({description->names[i], description->types[i], true});
    }
    return network;
}

}  // namespace

Result<Network> DescribeNetwork(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    if (graph::LooksLikePlan(file->bytes())) {
        return DescribePlan(path);
    }
    if (torch_frontend::LooksLikeGraphFile(file->bytes())) {
        return DescribeTorchGraph(path);
    }
    FORNAX_ASSIGN_OR_RETURN(const onnx_frontend::ModelPorts ports,
                            onnx_frontend::ReadModelPorts(file->bytes(), path));
    Network network{path, false, {}};
    for (const onnx_frontend::ModelInput& input : ports.inputs) {
        if (!input.type.has_value()) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The input {} of {} is a sequence, a map or optional; the "
                                     "command has values for tensors only.",
                                     input.name, path)};
        }
        network.inputs.push_back({input.name, *input.type, input.has_shape});
    }
    return network;
}

void NetworkOptions::AddTo(CLI::App& command) {
    command
        .add_option(
            "model", path,
            "An ONNX model, a file of fornax.torch.export, or a plan file of `fornax compile`")
        ->required();
    command
        .add_option("--dim", dims,
                    "NAME=SIZE: a size that the model leaves open (else the inputs' or 1)")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        .add_option("--dynamic", dynamic,
                    "A size that the plan serves whatever it is, by name, which makes slower "
                    "kernels")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command.add_flag("--strict", strict, "Refuse a model of which a part would run on the host");
    command
        .add_option("--precision", precision,
                    "Of f32 products: highest (f32), high (no less than bf16 in parts) or medium "
                    "(operands may be rounded to bf16)")
        ->check(CLI::IsMember({"highest", "high", "medium"}))
        ->capture_default_str();
}

graph::Precision NetworkOptions::ParsedPrecision() const {
    return precision == "medium" ? graph::Precision::kMedium
           : precision == "high" ? graph::Precision::kHigh
                                 : graph::Precision::kHighest;
}

Result<std::map<std::string, int64_t>> NetworkOptions::ParseDims() const {
    std::map<std::string, int64_t> sizes;
    for (const std::string& dim : dims) {
        const size_t equals = dim.rfind('=');
        int64_t size = 0;
        const char* end = dim.data() + dim.size();
        const bool good = equals != std::string::npos && equals != 0 && equals + 1 != dim.size() &&
                          std::from_chars(dim.data() + equals + 1, end, size).ptr == end &&
                          size >= 0 && size <= INT32_MAX;
        if (!good) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("--dim {} is not of the form NAME=SIZE with a size of 0 to "
                                     "{}.",
                                     dim, INT32_MAX)};
        }
        sizes[dim.substr(0, equals)] = size;
    }
    return sizes;
}

}  // namespace fornax::tool
