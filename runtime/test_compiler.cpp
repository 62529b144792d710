#include "runtime/test_compiler.h"

#include <algorithm>
#include <atomic>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "runtime/compile_model.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

std::atomic<int> compile_count = 0;
std::atomic<bool> gate_is_closed = false;
std::atomic<int> waiting_count = 0;

constexpr std::string_view kModels[] = {"add and double", "up to ten", "total",   "scale",
                                        "external",       "gate",      "positive"};

using graph::BlockId;
using graph::ElementType;
using graph::Expr;
using graph::Symbol;
using graph::TensorType;

const Symbol kN("n");
const TensorType kVector = {ElementType::kF32, {kN}};

// y = (x + 1) * 2. Each plan is for n up to what it is compiled for, or 4 without that, unless n is
// to stay open.
graph::Plan AddAndDouble(const CompileRequest& request) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", kVector), y = builder.Output("y", kVector);
    const BlockId t = builder.Block("t", kVector);
    builder.Dispatch(Elementwise("add", 1), {x, t});
    builder.Dispatch(Elementwise("mul", 2), {t, y});
    const auto shape = request.input_shapes.find("x");
    const auto dim = request.dims.find("n");
    int64_t limit = dim == request.dims.end() ? 4 : dim->second;
    limit = shape == request.input_shapes.end() ? limit : shape->second[0];
    if (!request.dynamic_sizes.all && !request.dynamic_sizes.names.contains("n")) {
        builder.plan().guards = {{graph::Relation::kLessEqual, kN, limit}};
    }
    std::get<graph::DispatchStep>(builder.plan().steps[0]).operations = kN;
    return builder.Finish();
}

// total += the sum of x; y = total. For n as AddAndDouble().
graph::Plan Total(const CompileRequest& request) {
    PlanBuilder builder;
    const TensorType one = {ElementType::kF32, {1}};
    const BlockId x = builder.Input("x", kVector), y = builder.Output("y", one);
    const BlockId state = builder.Block("total", one, graph::BlockKind::kState);
    builder.Dispatch(
        "kernel total(in x: f32[n], out s: f32[1], out y: f32[1])\n  sizes n in 0..1000\n"
        "  parallel $i < 1\n"
        "%0 = load x[$r]\n%1 = reduce sum $r < n of %0\n%2 = load s[$i]\n%3 = add %1, %2\n"
        "store s[$i] = %3\nstore y[$i] = %3\n",
        {x, state, y});
    const auto shape = request.input_shapes.find("x");
    const int64_t limit = shape == request.input_shapes.end() ? 4 : shape->second[0];
    builder.plan().guards = {{graph::Relation::kLessEqual, kN, limit}};
    return builder.Finish();
}

// The strings twice, on the host; one that is "nothing" leaves nothing.
graph::Plan Strings() {
    PlanBuilder builder;
    const TensorType in = {ElementType::kString, {kN}};
    const TensorType out = {ElementType::kString, {Symbol("m")}};
    const BlockId x = builder.Input("x", in), y = builder.Output("y", out);
    graph::op::HostCall call;
    call.name = "twice";
    call.types = {out};
    builder.Host(call, {x}, {y});
    return builder.Finish();
}

// y = the values of x + 1 that are above 0, twice: the device, the host and the device again, which
// knows the size then. For n as AddAndDouble().
graph::Plan Positive() {
    PlanBuilder builder;
    const TensorType out = {ElementType::kF32, {Symbol("m")}};
    const BlockId x = builder.Input("x", kVector), y = builder.Output("y", out);
    const BlockId t = builder.Block("t", kVector), u = builder.Block("u", out);
    builder.Dispatch(Elementwise("add", 1), {x, t});
    graph::op::HostCall call;
    call.name = "positive";
    call.types = {out};
    builder.Host(call, {t}, {u});
    builder.Dispatch(
        "kernel twice(in x: f32[m], out y: f32[m])\n  sizes m in 0..1000\n  parallel $i < m\n"
        "%0 = load x[$i]\n%1 = add %0, %0\nstore y[$i] = %1\n",
        {u, y});
    return builder.Finish();
}

Result<std::vector<graph::Tensor>> KeepPositive(const graph::Tensor& x) {
    ++waiting_count;
    gate_is_closed.wait(true);
    std::vector<float> kept;
    for (const float value : ToFloats(x)) {
        if (value > 1000) {
            return Error{ErrorCode::kUnsupported, fmt::format("{} is beyond 1000.", value)};
        }
        if (value > 0) {
            kept.push_back(value);
        }
    }
    return std::vector{Floats(kept)};
}

const graph::HostFunctions& Functions() {
    static const graph::HostFunctions functions = {
        {"positive",
         [](const graph::op::HostCall&, std::span<const graph::Tensor> operands) {
             return KeepPositive(operands[0]);
         }},
        {"twice",
         [](const graph::op::HostCall&,
            std::span<const graph::Tensor> operands) -> Result<std::vector<graph::Tensor>> {
             auto strings = std::make_shared<std::vector<std::string>>();
             for (const std::string& text : *operands[0].strings) {
                 if (text != "nothing") {
                     strings->push_back(text + text);
                 }
             }
             const auto count = static_cast<int64_t>(strings->size());
             return std::vector<graph::Tensor>{
                 {ElementType::kString, {count}, nullptr, std::move(strings)}};
         }},
    };
    return functions;
}

// y = x * k, where the plan is for one value of k.
graph::Plan Scale(float k, bool has_input = true) {
    PlanBuilder builder;
    const BlockId x = builder.Input("x", kVector);
    if (has_input) {
        builder.Input("k", {ElementType::kF32, {1}});
    }
    const BlockId y = builder.Output("y", kVector);
    builder.Dispatch(Elementwise("mul", k), {x, y});
    return builder.Finish();
}

Result<std::string> ContentsOf(const ModelFile& file) {
    return file.path.empty() ? *file.bytes : ReadTextFile(file.path, 1000);
}

}  // namespace

int CompileCount() {
    return compile_count;
}

void CloseGate() {
    waiting_count = 0;
    gate_is_closed = true;
}

void OpenGate() {
    gate_is_closed = false;
    gate_is_closed.notify_all();
}

int WaitingCount() {
    return waiting_count;
}

Result<CompiledModel> CompileModel(CompileRequest request) {
    ++compile_count;
    FORNAX_ASSIGN_OR_RETURN(const std::string model, ContentsOf(request.file));
    CompiledModel compiled;
    if (model == "add and double") {
        compiled.plan = AddAndDouble(request);
    } else if (model == "up to ten") {
        const auto shape = request.input_shapes.find("x");
        if (shape != request.input_shapes.end() && shape->second[0] > 10) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The size {} is beyond 10.", shape->second[0])};
        }
        compiled.plan = AddAndDouble(request);
    } else if (model == "gate") {
        ++waiting_count;
        gate_is_closed.wait(true);
        compiled.plan = AddAndDouble(request);
    } else if (model == "external") {
        FORNAX_ASSIGN_OR_RETURN(const std::string factor,
                                ReadTextFile(request.file.directory() + "/factor", 100));
        compiled.plan = Scale(std::stof(factor), false);
        compiled.external_files = {"factor"};
    } else if (model == "total") {
        compiled.plan = Total(request);
    } else if (model == "strings") {
        if (request.strict) {
            return Error{ErrorCode::kUnsupported, "1 of 1 steps would run on the host."};
        }
        compiled.plan = Strings();
        compiled.host_functions = &Functions();
    } else if (model == "positive") {
        compiled.plan = Positive();
        compiled.host_functions = &Functions();
    } else if (model == "scale") {
        const auto k = request.input_values.find("k");
        if (k == request.input_values.end()) {
            return Error{ErrorCode::kUnsupported, "The value of the input k has to be known."};
        }
        compiled.plan = Scale(static_cast<float>(k->second.At(0).number));
        compiled.plan.fixed_inputs = {1};
    } else {
        return Error{ErrorCode::kInvalidArgument, request.file.name() + " is no model."};
    }
    compiled.plan.ranges = {{kN, {0, 1'000'000}}};
    if (model == "strings" || model == "positive") {
        compiled.plan.ranges[Symbol("m")] = {0, 1000};
    }
    return compiled;
}

Result<std::optional<ModelDescription>> DescribeModel(const ModelFile& file) {
    FORNAX_ASSIGN_OR_RETURN(const std::string model, ContentsOf(file));
    if (model == "strings") {
        return std::optional<ModelDescription>();
    }
    if (!std::ranges::count(kModels, model)) {
        return Error{ErrorCode::kInvalidArgument, file.name() + " is no model."};
    }
    ModelDescription description{{"x"}, {kVector}, 1};
    if (model == "scale") {
        description.names.push_back("k");
        description.types.push_back({ElementType::kF32, {1}});
    }
    return std::optional(std::move(description));
}

// The number of bytes of such files' first pieces says which nodes are not supported.
Result<std::vector<UnsupportedNode>> CheckTorchGraph(const ModelFile& file) {
    std::vector<UnsupportedNode> nodes;
    for (uint32_t node = 1; node < file.bytes->size(); ++node) {
        nodes.push_back({node, "it is the node " + std::to_string(node)});
    }
    return nodes;
}

ModelCompiler LinkedCompiler() {
    return {DescribeModel, CompileModel, {1, 2}, &Functions()};
}

}  // namespace fornax::runtime
