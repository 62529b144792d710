// PyTorch modules as scripts that run by themselves: a line for each operator of ONNX.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "compiler/graph/build/build_error.h"
#include "compiler/graph/export/exported_model.h"

namespace fornax::graph {
namespace {

// What torch's functions do not do in one expression.
constexpr std::string_view kHelpers = R"(
def _divide(a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _reduce_prod(x, axes):
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis)
    return x


def _arg(x, axis, greatest, last):
    find = torch.argmax if greatest else torch.argmin
    if not last:
        return find(x, axis)
    return x.shape[axis] - 1 - find(x.flip(axis), axis)


def _cumsum(x, axis, exclusive, reverse):
    x = x.flip(axis) if reverse else x
    sums = torch.cumsum(x, axis, dtype=x.dtype)
    sums = sums - x if exclusive else sums
    return sums.flip(axis) if reverse else sums


def _top(x, count, axis, largest):
    values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, count), places.narrow(axis, 0, count)


def _slice(x, starts, ends, axes, steps):
    for start, end, axis, step in zip(starts, ends, axes, steps):
        places = range(x.shape[axis])[start:None if end < -x.shape[axis] else end:step]
        if list(places) != list(range(x.shape[axis])):
            x = torch.index_select(x, axis, torch.tensor(list(places), dtype=torch.int64))
    return x


def _pad(x, pads, value):
    rank = x.dim()
    result = torch.empty([pads[i] + n + pads[i + rank] for i, n in enumerate(x.shape)], dtype=x.dtype)
    result[...] = value
    result[tuple(slice(pads[i], pads[i] + n) for i, n in enumerate(x.shape))] = x
    return result


def _gather(x, index, axis):
    return torch.index_select(x, axis, index.reshape(-1)).reshape(
        x.shape[:axis] + index.shape + x.shape[axis + 1:])


def _scatter(x, index, updates, reduction):
    if reduction == "none":
        # The last of equal places counts, which torch does not promise.
        order = torch.argsort(index, stable=True)
        index, updates = index[order], updates[order]
        last = torch.ones_like(index, dtype=torch.bool)
        last[:-1] = index[1:] != index[:-1]
        x = x.clone()
        x[index[last]] = updates[last]
        return x
    names = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}
    return x.scatter_reduce(0, index, updates, names[reduction])

)";

std::string_view DtypeOf(ElementType element) {
    switch (element) {
        case ElementType::kBool:
            return "bool";
        case ElementType::kI8:
            return "int8";
        case ElementType::kI16:
            return "int16";
        case ElementType::kI32:
            return "int32";
        case ElementType::kI64:
            return "int64";
        case ElementType::kU8:
            return "uint8";
        case ElementType::kU16:
            return "uint16";
        case ElementType::kU32:
            return "uint32";
        case ElementType::kF16:
            return "float16";
        case ElementType::kBF16:
            return "bfloat16";
        case ElementType::kF32:
            return "float32";
        case ElementType::kF64:
            return "float64";
        // Shifts alone are of u64, and never reach the highest bit.
        case ElementType::kU64:
            return "int64";
        default:
            FailUnsupported(fmt::format("{} is no type of PyTorch", Name(element)));
    }
}

ElementType ElementOf(int64_t onnx_type) {
    for (int i = 0; i <= static_cast<int>(kLastElementType); ++i) {
        const auto element = static_cast<ElementType>(i);
        const Result<int32_t> type = OnnxTypeOf(element);
        if (type.ok() && *type == onnx_type) {
            return element;
        }
    }
    FailUnsupported(fmt::format("the type {} of ONNX is not covered", onnx_type));
}

// Operators that are one function or expression of their operands.
std::string_view PatternOf(const std::string& op) {
    static const std::map<std::string_view, std::string_view> patterns = {
        {"Neg", "-{0}"},
        {"Abs", "torch.abs({0})"},
        {"Sign", "torch.sign({0})"},
        {"Floor", "torch.floor({0})"},
        {"Ceil", "torch.ceil({0})"},
        {"Round", "torch.round({0})"},
        {"Sqrt", "torch.sqrt({0})"},
        {"Reciprocal", "torch.reciprocal({0})"},
        {"Exp", "torch.exp({0})"},
        {"Log", "torch.log({0})"},
        {"Sin", "torch.sin({0})"},
        {"Cos", "torch.cos({0})"},
        {"Tan", "torch.tan({0})"},
        {"Asin", "torch.asin({0})"},
        {"Acos", "torch.acos({0})"},
        {"Atan", "torch.atan({0})"},
        {"Sinh", "torch.sinh({0})"},
        {"Cosh", "torch.cosh({0})"},
        {"Tanh", "torch.tanh({0})"},
        {"Asinh", "torch.asinh({0})"},
        {"Acosh", "torch.acosh({0})"},
        {"Atanh", "torch.atanh({0})"},
        {"Erf", "torch.erf({0})"},
        {"Sigmoid", "torch.sigmoid({0})"},
        {"IsNaN", "torch.isnan({0})"},
        {"IsInf", "torch.isinf({0})"},
        {"Add", "{0} + {1}"},
        {"Sub", "{0} - {1}"},
        {"Mul", "{0} * {1}"},
        {"Div", "_divide({0}, {1})"},
        {"Pow", "torch.pow({0}, {1})"},
        {"Min", "torch.minimum({0}, {1})"},
        {"Max", "torch.maximum({0}, {1})"},
        {"Equal", "{0} == {1}"},
        {"Less", "{0} < {1}"},
        {"LessOrEqual", "{0} <= {1}"},
        {"Not", "~{0}"},
        {"And", "{0} & {1}"},
        {"Or", "{0} | {1}"},
        {"Xor", "{0} ^ {1}"},
        {"Where", "torch.where({0}, {1}, {2})"},
        {"BitwiseNot", "~{0}"},
        {"BitwiseAnd", "{0} & {1}"},
        {"BitwiseOr", "{0} | {1}"},
        {"BitwiseXor", "{0} ^ {1}"},
        {"BitShift", "{0} << {1}"},
        {"Identity", "{0}"},
    };
    const auto found = patterns.find(op);
    return found == patterns.end() ? std::string_view() : found->second;
}

class Script {
  public:
    explicit Script(const ExportedModel& model) : model_(model) {
        for (const auto& [name, tensor] : model.weights) {
            weights_[name] = &tensor;
        }
        for (const ExportedSizes& sizes : model.sizes) {
            sizes_.insert(sizes.name);
        }
        for (const ExportedSymbol& symbol : model.symbols) {
            hints_[symbol.symbol] = symbol.hint;
            symbols_[symbol.symbol] = fmt::format("_n{}", symbols_.size());
        }
    }

    // Throws BuildError.
    std::string Run(const std::string& weights_file) {
        std::string forward = Sizes();
        for (const ExportedNode& node : model_.nodes) {
            forward += fmt::format("        {} = {}\n", fmt::join(node.outputs, ", "), Value(node));
        }
        std::string text = fmt::format(
            "\"\"\"{}: {} operators, as a PyTorch module.\n\n"
            "Usage: python3 FILE [-o MODULE.pt] [INPUTS.npz [OUTPUTS.npz]]: traces the module, "
            "with\n"
            "random inputs if there are none, and computes the outputs. Inputs:\n",
            PythonIdentifier(model_.name), model_.nodes.size());
        for (const ExportedPort& input : model_.inputs) {
            text += fmt::format("    {}: {}{}\n", input.name, Name(input.element),
                                Shape(input.dims).ToString());
        }
        for (const std::string& condition : model_.conditions) {
            text += fmt::format("For sizes for which {}.\n", condition);
        }
        text += "\"\"\"\n\nimport argparse\nimport os\n\nimport torch\n\n";
        text += "INPUTS = [\n";
        for (const ExportedPort& input : model_.inputs) {
            text += fmt::format("    (\"{}\", torch.{}, [{}]),\n", input.name,
                                DtypeOf(input.element), fmt::join(HintsOf(input), ", "));
        }
        text += "]\nOUTPUTS = [\n";
        for (const ExportedPort& output : model_.outputs) {
            text += fmt::format("    \"{}\",\n", output.name);
        }
        text +=
            fmt::format("]\nSIZES_ARE_OPEN = {}\n\n", model_.symbols.empty() ? "False" : "True");
        text += kHelpers;
        text +=
            "\nclass Model(torch.nn.Module):\n    def __init__(self, weights):\n"
            "        super().__init__()\n";
        text += Weights();
        text += fmt::format("\n    def forward(self{}):\n", InputNames());
        text += forward;
        text += "        return (";
        for (const ExportedPort& output : model_.outputs) {
            text += output.name + ", ";
        }
        text += ")\n\n\n";
        text += fmt::format(kMain, fmt::arg("weights", weights_file));
        return text;
    }

    // The weights that the script reads, in order.
    const std::vector<std::span<const std::byte>>& data() const { return data_; }

  private:
    static constexpr const char* kMain = R"(def load():
    """The module with its weights, which lie beside this file."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "{weights}")
    size = os.path.getsize(path)
    weights = torch.from_file(path, size=size, dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
    return Model(weights).eval()


def main():
    parser = argparse.ArgumentParser(description="Runs the module.")
    parser.add_argument("-o", "--output", help="the traced module, for torch.jit.load")
    parser.add_argument("inputs", nargs="?", help="arrays by the inputs' names, as numpy.savez writes them")
    parser.add_argument("outputs", nargs="?", help="gets the outputs")
    arguments = parser.parse_args()
    if arguments.inputs:
        import numpy
        arrays = numpy.load(arguments.inputs)
        inputs = [torch.from_numpy(arrays[name]).to(dtype) for name, dtype, _ in INPUTS]
        if not SIZES_ARE_OPEN:
            inputs = [array.reshape(shape) for array, (_, _, shape) in zip(inputs, INPUTS)]
    else:
        inputs = [torch.rand(shape).to(dtype) for _, dtype, shape in INPUTS]
    model = load()
    with torch.no_grad():
        if arguments.output:
            model = torch.jit.trace(model, tuple(inputs), check_trace=False)
            model.save(arguments.output)
        results = model(*inputs)
    if arguments.outputs:
        import numpy
        numpy.savez(arguments.outputs, **{{name: result.numpy() for name, result in zip(OUTPUTS, results)}})
    else:
        for name, result in zip(OUTPUTS, results):
            print(name, result.dtype, list(result.shape), float(result.double().sum()))


if __name__ == "__main__":
    main()
)";

    std::string InputNames() const {
        std::string names;
        for (const ExportedPort& input : model_.inputs) {
            names += ", " + input.name;
        }
        return names;
    }

    // Operands that are weights are buffers of the module.
    std::string Operand(const ExportedNode& node, size_t index) {
        const std::string& name = node.inputs.at(index);
        if (!weights_.contains(name)) {
            return name;
        }
        used_.insert(name);
        return "self." + name;
    }

    // Sizes of the inputs with the symbols' hints.
    std::vector<int64_t> HintsOf(const ExportedPort& port) const {
        std::vector<int64_t> dims;
        for (const Expr& dim : port.dims) {
            dims.push_back(dim.Evaluate(hints_).value_or(1));
        }
        return dims;
    }

    // The lines that compute the sizes, as integers of Python.
    std::string Sizes() const {
        std::string text;
        for (const ExportedSymbol& symbol : model_.symbols) {
            text += fmt::format("        {} = (int({}.shape[{}]) - {}) // {}\n",
                                symbols_.at(symbol.symbol), symbol.input, symbol.axis,
                                symbol.offset, symbol.scale);
        }
        for (const ExportedSizes& sizes : model_.sizes) {
            std::vector<std::string> values;
            for (const Expr& size : sizes.values) {
                values.push_back(Text(size));
            }
            text += fmt::format(
                "        {} = {}\n", sizes.name,
                sizes.is_number ? values[0] : fmt::format("[{}]", fmt::join(values, ", ")));
        }
        return text;
    }

    std::string Text(const Expr& size) const {
        std::string text = fmt::to_string(size.constant_part());
        for (const ExprTerm& term : size.terms()) {
            text += fmt::format(" + {}", term.coefficient);
            for (const AtomRef& factor : term.factors) {
                text += " * " + Text(*factor);
            }
        }
        return text;
    }

    std::string Text(const ExprAtom& atom) const {
        if (atom.kind == AtomKind::kSymbol) {
            return symbols_.at(*atom.symbol);
        }
        const std::string a = Text(atom.a), b = Text(atom.b);
        switch (atom.kind) {
            case AtomKind::kMod:
                return fmt::format("(({}) % ({}))", a, b);
            case AtomKind::kMin:
                return fmt::format("min({}, {})", a, b);
            case AtomKind::kMax:
                return fmt::format("max({}, {})", a, b);
            case AtomKind::kProduct:
                return fmt::format("(({}) * ({}))", a, b);
            default:
                return fmt::format("(({}) // ({}))", a, b);
        }
    }

    std::string Numbers(const ExportedNode& node, size_t index) const {
        if (sizes_.contains(node.inputs.at(index))) {
            return node.inputs[index];
        }
        const Tensor& tensor = *weights_.at(node.inputs.at(index));
        std::string list;
        for (int64_t i = 0; i < tensor.count(); ++i) {
            list += fmt::format("{}{}", i == 0 ? "" : ", ", tensor.At(i).integer);
        }
        return "[" + list + "]";
    }

    template <typename T>
    static const T& Attribute(const ExportedNode& node, const char* name) {
        return std::get<T>(node.attributes.at(name));
    }
    static int64_t Int(const ExportedNode& node, const char* name) {
        return Attribute<int64_t>(node, name);
    }
    static std::string_view Flag(const ExportedNode& node, const char* name) {
        return Int(node, name) != 0 ? "True" : "False";
    }

    std::string Value(const ExportedNode& node) {
        if (const std::string_view pattern = PatternOf(node.op); !pattern.empty()) {
            std::string text;
            for (size_t i = 0; i < pattern.size(); ++i) {
                if (pattern[i] == '{') {
                    text += Operand(node, static_cast<size_t>(pattern[i + 1] - '0'));
                    i += 2;
                } else {
                    text += pattern[i];
                }
            }
            return text;
        }
        if (node.op == "Mod") {
            return fmt::format("torch.{}({}, {})",
                               node.attributes.contains("fmod") ? "fmod" : "remainder",
                               Operand(node, 0), Operand(node, 1));
        }
        if (node.op == "Cast") {
            return fmt::format("{}.to(torch.{})", Operand(node, 0),
                               DtypeOf(ElementOf(Int(node, "to"))));
        }
        if (node.op == "Reshape") {
            return fmt::format("{}.reshape({})", Operand(node, 0), Numbers(node, 1));
        }
        if (node.op == "Expand") {
            return fmt::format("torch.broadcast_to({}, {})", Operand(node, 0), Numbers(node, 1));
        }
        if (node.op == "Transpose") {
            return fmt::format("{}.permute([{}])", Operand(node, 0),
                               fmt::join(Attribute<std::vector<int64_t>>(node, "perm"), ", "));
        }
        if (node.op == "Concat") {
            std::string list;
            for (size_t i = 0; i < node.inputs.size(); ++i) {
                list += Operand(node, i) + ", ";
            }
            return fmt::format("torch.cat([{}], {})", list, Int(node, "axis"));
        }
        if (node.op == "Range") {  // from 0 in steps of 1
            return fmt::format("torch.arange({})", node.inputs.at(1));
        }
        if (node.op == "Einsum") {
            return fmt::format("torch.einsum(\"{}\", {}, {})",
                               Attribute<std::string>(node, "equation"), Operand(node, 0),
                               Operand(node, 1));
        }
        return AlongAxes(node);
    }

    std::string AlongAxes(const ExportedNode& node) {
        const std::string x = Operand(node, 0);
        if (node.op == "ReduceSum") {
            return fmt::format("{0}.sum({1}, dtype={0}.dtype)", x, Numbers(node, 1));
        }
        if (node.op == "ReduceMin" || node.op == "ReduceMax") {
            return fmt::format("{}.{}({})", x, node.op == "ReduceMin" ? "amin" : "amax",
                               Numbers(node, 1));
        }
        if (node.op == "ReduceProd") {
            return fmt::format("_reduce_prod({}, {})", x, Numbers(node, 1));
        }
        if (node.op == "ArgMax" || node.op == "ArgMin") {
            return fmt::format("_arg({}, {}, {}, {})", x, Int(node, "axis"),
                               node.op == "ArgMax" ? "True" : "False",
                               Flag(node, "select_last_index"));
        }
        if (node.op == "CumSum") {
            return fmt::format("_cumsum({}, {}, {}, {})", x,
                               weights_.at(node.inputs[1])->At(0).integer, Flag(node, "exclusive"),
                               Flag(node, "reverse"));
        }
        if (node.op == "TopK") {
            return fmt::format("_top({}, {}[0], {}, {})", x, Numbers(node, 1), Int(node, "axis"),
                               Flag(node, "largest"));
        }
        if (node.op == "Slice") {
            const bool has_steps = node.inputs.size() > 4;
            return fmt::format(
                "_slice({}, {}, {}, {}, {})", x, Numbers(node, 1), Numbers(node, 2),
                Numbers(node, 3),
                has_steps ? Numbers(node, 4) : fmt::format("[1] * len({})", Numbers(node, 3)));
        }
        if (node.op == "Pad") {
            return fmt::format("_pad({}, {}, {})", x, Numbers(node, 1), Operand(node, 2));
        }
        if (node.op == "Gather") {
            return fmt::format("_gather({}, {}, {})", x, Operand(node, 1), Int(node, "axis"));
        }
        if (node.op == "ScatterElements") {
            return fmt::format("_scatter({}, {}, {}, \"{}\")", x, Operand(node, 1),
                               Operand(node, 2), Attribute<std::string>(node, "reduction"));
        }
        FailUnsupported(fmt::format("{} has no expression of PyTorch", node.op));
    }

    // The buffers that operands name, as parts of one file.
    std::string Weights() {
        std::string text;
        uint64_t offset = 0;
        for (const auto& [name, tensor] : model_.weights) {
            if (!used_.contains(name)) {
                continue;
            }
            // Views of other types want aligned bytes, and saved modules a storage of one type.
            constexpr uint64_t kAlignment = 16;
            static constexpr std::byte kZeros[kAlignment] = {};
            const uint64_t gap = (kAlignment - offset % kAlignment) % kAlignment;
            data_.push_back(std::span(kZeros).first(gap));
            offset += gap;
            const uint64_t bytes = tensor.data->size();
            data_.push_back(std::as_bytes(*tensor.data));
            text += fmt::format(
                "        self.register_buffer(\"{}\", "
                "weights[{}:{}].view(torch.{}).reshape([{}]).clone())\n",
                name, offset, offset + bytes, DtypeOf(tensor.element),
                fmt::join(tensor.dims, ", "));
            offset += bytes;
        }
        return text;
    }

    const ExportedModel& model_;
    std::map<std::string, const Tensor*> weights_;
    std::set<std::string> sizes_;
    Bindings hints_;
    std::map<Symbol, std::string> symbols_;  // their names in the script
    std::set<std::string> used_;
    std::vector<std::span<const std::byte>> data_;
};

}  // namespace

Status WriteTorch(const ExportedModel& model, const std::string& path) {
    const std::string weights_path = path + ".weights";
    Script script(model);
    std::string text;
    try {
        text = script.Run(std::filesystem::path(weights_path).filename());
    } catch (const BuildError& error) {
        return Error{error.code(), fmt::format("{}: {}.", model.name, error.what())};
    }
    FORNAX_RETURN_IF_ERROR(WriteFileAtomically(weights_path, script.data(), 0644));
    return WriteFileAtomically(path, text, 0644);
}

}  // namespace fornax::graph
