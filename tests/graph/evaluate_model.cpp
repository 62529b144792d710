// Runs ONNX models on tensors in files: the program behind onnx_nodes.py.
//
// Reads one job a line from standard input, fields separated by tabs: the model's file, the folder
// for outputs, then inputs as NAME=FILE.pb, or NAME#COUNT for a sequence, whose items are inputs of
// their own (NAME.0, ...), or NAME#-1 for an optional that is empty. Writes FOLDER/OUTPUT.pb and
// answers with one line: "ok", the number of modules that were validated, and OUTPUT#COUNT of each
// output (-1: a tensor, -2: nothing), or "unsupported", "error" or "invalid" and a sentence,
// separated by tabs. With --device NAME the model runs on the Vulkan device whose name contains
// that, else in the interpreter; with --validate behind it spirv-val checks every kernel's module.
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "compiler/frontends/onnx/importer.h"
#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/graph/build/build_error.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/host/host_functions.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "runtime/session.h"
#include "runtime/vulkan/device.h"
#include "runtime/vulkan/instance.h"
#include "tests/graph/spirv_check.h"
#include "tools/tensors/tensor_proto.h"

namespace fornax {
namespace {

struct Job {
    std::string model;
    std::string folder;
    std::map<std::string, graph::Tensor> inputs;
    std::map<std::string, int64_t> lengths;
};

std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Job ParseJob(const std::string& line) {
    Job job;
    std::istringstream fields(line);
    std::getline(fields, job.model, '\t');
    std::getline(fields, job.folder, '\t');
    for (std::string field; std::getline(fields, field, '\t');) {
        const size_t length = field.rfind('#');
        if (length != std::string::npos) {
            job.lengths[field.substr(0, length)] = std::stoll(field.substr(length + 1));
            continue;
        }
        const size_t equals = field.rfind('=');
        onnx::TensorProto proto;
        if (!proto.ParseFromString(ReadFile(field.substr(equals + 1)))) {
            graph::FailInvalid("an input's file is not a tensor");
        }
        job.inputs[field.substr(0, equals)] = onnx_frontend::ReadTensor(proto, "");
    }
    return job;
}

std::string Describe(const Error& error) {
    return fmt::format("{}\t{}", error.code == ErrorCode::kUnsupported ? "unsupported" : "error",
                       error.message);
}

// Null: the interpreter runs the models.
std::shared_ptr<vulkan::Device> g_device;
bool g_validate = false;

Status OpenDevice(const std::string& choice) {
    FORNAX_ASSIGN_OR_RETURN(const auto instance, vulkan::Instance::Create({}));
    FORNAX_ASSIGN_OR_RETURN(const auto physical, instance->Choose(choice));
    FORNAX_ASSIGN_OR_RETURN(g_device, vulkan::Device::Open(instance, physical));
    return OkStatus();
}

struct Outcome {
    std::vector<graph::Tensor> outputs;
    size_t validated = 0;  // modules
    std::string invalid;   // what the validator says against the first that is not valid
};

// Counts the modules of a plan's kernels that are valid, until one is not.
Status ValidateKernels(const graph::Plan& plan, Outcome& outcome) {
    for (const graph::PlanKernel& kernel : plan.kernels) {
        FORNAX_ASSIGN_OR_RETURN(const graph::KernelCode code,
                                graph::CodeOf(kernel, runtime::TargetOf(*g_device)));
        const std::string said = test::Validate(code.module.words);
        if (!said.empty()) {
            outcome.invalid = fmt::format("The kernel {}: {}", graph::NameOf(kernel), said);
            break;
        }
        ++outcome.validated;
    }
    return OkStatus();
}

Result<Outcome> Compute(const graph::Graph& graph, const std::vector<graph::Tensor>& inputs) {
    Outcome outcome;
    const graph::HostFunctions& functions = graph::StandardHostFunctions();
    if (g_device == nullptr) {
        graph::InterpretOptions options;
        options.host_functions = &functions;
        FORNAX_ASSIGN_OR_RETURN(outcome.outputs, graph::Interpret(graph, inputs, options));
        return outcome;
    }
    FORNAX_ASSIGN_OR_RETURN(graph::Plan plan, graph::Compile(graph, {}));
    if (g_validate) {
        FORNAX_RETURN_IF_ERROR(ValidateKernels(plan, outcome));
    }
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program,
                            runtime::Program::Create(g_device, std::move(plan), {}));
    runtime::SessionOptions options;
    options.host_functions = &functions;
    FORNAX_ASSIGN_OR_RETURN(runtime::RunResult result,
                            runtime::Session(std::move(program), options).Run(inputs));
    if (!result.fit.ok) {
        return Error{ErrorCode::kInternal, result.fit.reason};
    }
    outcome.outputs = std::move(result.outputs);
    return outcome;
}

std::string Run(const std::string& line) {
    const Job job = ParseJob(line);
    onnx_frontend::ImportOptions options;
    options.input_values = job.inputs;
    options.sequence_lengths = job.lengths;
    for (const auto& [name, tensor] : job.inputs) {
        options.input_shapes[name] = tensor.dims;
    }
    const std::filesystem::path path(job.model);
    Result<onnx_frontend::ImportedModel> model = onnx_frontend::ImportModel(
        ReadFile(job.model), path.filename(), path.parent_path(), options);
    if (!model.ok()) {
        return Describe(model.error());
    }
    const Status valid = Verify(model->graph);
    if (!valid.ok()) {
        return fmt::format("error\tThe graph is not valid: {}", valid.error().message);
    }
    std::vector<graph::Tensor> inputs;
    for (const graph::ValueId id : model->graph.inputs()) {
        const auto input = job.inputs.find(model->graph[id].name);
        if (input == job.inputs.end()) {
            return fmt::format("error\tThe input {} has no value.", model->graph[id].name);
        }
        inputs.push_back(input->second);
    }
    const Result<Outcome> outcome = Compute(model->graph, inputs);
    if (!outcome.ok()) {
        return Describe(outcome.error());
    }
    if (!outcome->invalid.empty()) {
        return fmt::format("invalid\t{}", outcome->invalid);
    }
    for (size_t i = 0; i < outcome->outputs.size(); ++i) {
        onnx::TensorProto proto;
        tensors::WriteTensor(outcome->outputs[i], proto);
        std::ofstream file(job.folder + "/" + model->graph.outputs()[i].name + ".pb",
                           std::ios::binary);
        proto.SerializeToOstream(&file);
    }
    std::string answer = fmt::format("ok\t{}", outcome->validated);
    for (const auto& [name, length] : model->output_lengths) {
        answer += fmt::format("\t{}#{}", name, length);
    }
    return answer;
}

std::string RunSafely(const std::string& line) {
    try {
        return Run(line);
    } catch (const graph::BuildError& error) {
        return fmt::format("error\tBuilding failed outside of the importer: {}.", error.what());
    }
}

}  // namespace
}  // namespace fornax

int main(int count, char** arguments) {
    if (count > 2 && std::string_view(arguments[1]) == "--device") {
        const fornax::Status opened = fornax::OpenDevice(arguments[2]);
        if (!opened.ok()) {
            std::cerr << opened.error().message << '\n';
            return 2;
        }
        fornax::g_validate = count > 3 && std::string_view(arguments[3]) == "--validate";
    }
    for (std::string line; std::getline(std::cin, line);) {
        std::string answer = fornax::RunSafely(line);
        std::ranges::replace(answer, '\n', ' ');
        std::cout << answer << std::endl;
    }
}
