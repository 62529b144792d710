// Coverage-guided fuzzing of what the provider reads from nodes EPContext: any bytes end as a
// sentence, as a plan that is valid, or as a partition that compiles with the model's weights.
#include "plugins/onnxruntime/context_bytes.h"

#include <algorithm>
#include <array>

#include "base/fuzz_outcomes.h"
#include "base/hash.h"
#include "compiler/frontends/onnx/fuzz_mutations.h"
#include "compiler/graph/plan/plan_file.h"
#include "compiler/graph/testing/fuzz_checks.h"
#include "plugins/onnxruntime/partition_compiler.h"

namespace {

using namespace fornax;
using namespace fornax::graph::fuzzing;
using namespace fornax::onnxruntime_plugin;
using Random = std::mt19937;

constexpr size_t kMaxCompiledNodes = 2000;
constexpr int64_t kMaxWeightElements = 1 << 12;

// What the model has for the constants without data: mostly of the type and sizes that the
// partition says, as an honest model has them.
onnx_frontend::InitializerValues WeightsFor(const onnx::GraphProto& graph) {
    onnx_frontend::InitializerValues weights;
    for (const onnx::TensorProto& tensor : graph.initializer()) {
        if (tensor.has_raw_data()) {
            continue;
        }
        std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
        int64_t count = 1;
        for (int64_t& dim : dims) {
            dim = std::clamp<int64_t>(dim, 0, kMaxWeightElements);
            count *= dim;
            if (count > kMaxWeightElements) {
                dim = 1;
                count = std::max<int64_t>(count / kMaxWeightElements, 1);
            }
        }
        count = 1;
        for (const int64_t dim : dims) {
            count *= dim;
        }
        if (count > kMaxWeightElements || dims.size() > 8) {
            dims = {3};
        }
        const uint64_t choice = HashBytes(std::as_bytes(std::span(tensor.name()))).low;
        if (choice % 8 == 0) {
            dims.push_back(2);
        }
        const auto element = tensor.data_type() == onnx::TensorProto::INT64
                                 ? graph::ElementType::kI64
                             : choice % 8 == 1 ? graph::ElementType::kF16
                                               : graph::ElementType::kF32;
        uint8_t* data = nullptr;
        weights[tensor.name()] = graph::Tensor::Zeros(element, dims, &data);
    }
    return weights;
}

// The model in a context, in a context whose checksum is wrong, or in a file of ONNX.
bool Read(const uint8_t* data, size_t size, onnx::ModelProto& model) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    Result<Context> context = ParseContext(bytes);
    if (context.ok() && std::holds_alternative<onnx::ModelProto>(*context)) {
        model = std::get<onnx::ModelProto>(*std::move(context));
        return model.has_graph();
    }
    return model.ParseFromArray(data, static_cast<int>(size)) && model.has_graph();
}

// An input becomes a constant of the model, or a size of it opens.
void ChangeInputs(onnx::GraphProto& graph, Random& random) {
    if (graph.input_size() == 0) {
        return;
    }
    const int index = static_cast<int>(random() % static_cast<uint32_t>(graph.input_size()));
    onnx::ValueInfoProto& input = *graph.mutable_input(index);
    auto& type = *input.mutable_type()->mutable_tensor_type();
    if (index > 0 && random() % 2 == 0) {
        onnx::TensorProto& tensor = *graph.add_initializer();
        tensor.set_name(input.name());
        tensor.set_data_type(type.elem_type());
        for (const auto& dim : type.shape().dim()) {
            tensor.add_dims(dim.dim_value());
        }
        graph.mutable_input()->DeleteSubrange(index, 1);
    } else if (type.shape().dim_size() != 0) {
        type.mutable_shape()->mutable_dim(0)->set_dim_param(random() % 4 == 0 ? "m" : "n");
    }
}

// A plan that a compiled model of fixed sizes has.
const std::string& SomePlan() {
    static const std::string plan = [] {
        onnx::ModelProto model;
        model.set_ir_version(8);
        model.add_opset_import()->set_version(17);
        onnx::GraphProto& graph = *model.mutable_graph();
        graph.add_input()->set_name("x");
        auto& type = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type();
        type.set_elem_type(onnx::TensorProto::FLOAT);
        type.mutable_shape()->add_dim()->set_dim_value(4);
        onnx::NodeProto& node = *graph.add_node();
        node.set_op_type("Relu");
        node.add_input("x");
        node.add_output("y");
        graph.add_output()->set_name("y");
        const Result<runtime::CompiledModel> compiled = CompilePartition(model, {}, {});
        if (!compiled.ok()) {
            Fail("CompilePartition", compiled.error().message);
        }
        const auto bytes = graph::SerializePlan(compiled->plan).value();
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }();
    return plan;
}

size_t Write(const std::string& bytes, uint8_t* data, size_t max_size) {
    if (bytes.size() > max_size) {
        return 0;
    }
    std::ranges::copy(bytes, reinterpret_cast<char*>(data));
    return bytes.size();
}

// A run's sizes, which the bytes choose, so that a finding is one file.
std::map<std::string, std::vector<int64_t>> SizesFor(const onnx::GraphProto& graph,
                                                     uint64_t choice) {
    std::map<std::string, std::vector<int64_t>> sizes;
    for (const onnx::ValueInfoProto& input : graph.input()) {
        std::vector<int64_t>& dims = sizes[input.name()];
        for (const auto& dim : input.type().tensor_type().shape().dim()) {
            dims.push_back(dim.has_dim_value() ? dim.dim_value()
                                               : std::array{1, 2, 3, 17}[choice % 4]);
        }
    }
    return sizes;
}

// Whether it was accepted.
bool Compile(const onnx::ModelProto& model, uint64_t choice) {
    const onnx_frontend::InitializerValues weights = WeightsFor(model.graph());
    if (const Status fits = CheckPartition(model.graph(), weights); !fits.ok()) {
        CheckError("CheckPartition", fits.error());
        return false;
    }
    runtime::CompileRequest request;
    request.file.bytes = std::make_shared<const std::string>(model.SerializeAsString());
    if (const auto described = runtime::DescribeModel(request.file); !described.ok()) {
        CheckError("DescribeModel", described.error());
        return false;
    }
    request.input_shapes = SizesFor(model.graph(), choice);
    request.strict = choice / 4 % 4 == 0;
    onnx_frontend::ImportOptions options;
    options.input_shapes = request.input_shapes;
    options.strict = request.strict;
    onnx::ModelProto copy = model;
    const auto imported = onnx_frontend::ImportModelMessage(copy, "Fornax", weights, options);
    if (!imported.ok()) {
        CheckError("ImportModelMessage", imported.error());
        return false;
    }
    // Compiling takes as long as the graph is large, which the importer bounds.
    if (PrimitivesOf(imported->graph) > kMaxCompiledNodes) {
        return true;
    }
    const Result<runtime::CompiledModel> compiled = CompilePartition(model, weights, request);
    if (!compiled.ok()) {
        CheckError("CompilePartition", compiled.error());
        return false;
    }
    CheckPlan(compiled->plan);
    return true;
}

}  // namespace

// Changed bytes have a wrong checksum; changed nodes get a right one, and mostly weights that fit.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    if (size != 0 && random() % 16 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    if (random() % 32 == 0) {
        size_t written = Write(SomePlan(), data, max_size);
        return random() % 2 == 0 && written != 0 ? LLVMFuzzerMutate(data, written, max_size)
                                                 : written;
    }
    onnx::ModelProto model;
    if (!Read(data, size, model)) {
        model.Clear();
    }
    for (uint32_t changes = random() % 3 + 1; changes != 0; --changes) {
        if (random() % 2 == 0) {
            onnx_frontend::ChangeModel(model, random);
        } else {
            ChangeInputs(*model.mutable_graph(), random);
        }
    }
    if (random() % 16 != 0) {
        model.mutable_graph()->set_doc_string(DigestOf(WeightsFor(model.graph())));
    }
    const size_t written = Write(SerializeContext(model), data, max_size);
    return written != 0 ? written : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    const uint64_t choice = HashBytes(std::as_bytes(std::span(data, size))).low;
    const Result<Context> context = ParseContext(std::move(bytes));
    if (!context.ok()) {
        CheckError("ParseContext", context.error());
        FuzzOutcomes::Count(false);
    } else if (const auto* plan = std::get_if<PlanBytes>(&*context)) {
        const auto parsed = graph::ParsePlan(std::as_bytes(std::span(*plan->bytes)));
        if (!parsed.ok()) {
            CheckError("ParsePlan", parsed.error());
        }
        FuzzOutcomes::Count(parsed.ok());
    } else {
        FuzzOutcomes::Count(Compile(std::get<onnx::ModelProto>(*context), choice));
    }
    return 0;
}
