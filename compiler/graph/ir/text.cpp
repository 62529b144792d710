// Writes graphs as text; text.h describes the form, parse.cpp reads it.
#include "compiler/graph/ir/text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace fornax::graph {
namespace {

std::string Quoted(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (c == '\n') {
            quoted += "\\n";
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

bool IsIdentifier(std::string_view text) {
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    return !text.empty() && is_letter(text[0]) &&
           std::all_of(text.begin(), text.end(),
                       [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string SymbolText(const Symbol& symbol) {
    const std::string& name = symbol.name();
    const bool is_function =
        name == "floor" || name == "mod" || name == "min" || name == "max" || name == "product";
    return IsIdentifier(name) && !is_function ? name : Quoted(name);
}

std::string ExprText(const Expr& expr);

std::string AtomText(const ExprAtom& atom) {
    const char* name = "product";
    switch (atom.kind) {
        case AtomKind::kSymbol:
            return SymbolText(*atom.symbol);
        case AtomKind::kFloorDiv:
            name = "floor";
            break;
        case AtomKind::kMod:
            name = "mod";
            break;
        case AtomKind::kMin:
            name = "min";
            break;
        case AtomKind::kMax:
            name = "max";
            break;
        case AtomKind::kProduct:
            break;
    }
    return fmt::format("{}({}, {})", name, ExprText(atom.a), ExprText(atom.b));
}

std::string ExprText(const Expr& expr) {
    std::string text;
    for (const ExprTerm& term : expr.terms()) {
        const bool negative = term.coefficient < 0;
        text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
        const auto coefficient = static_cast<uint64_t>(term.coefficient);
        const uint64_t magnitude = negative ? -coefficient : coefficient;
        if (magnitude != 1) {
            text += fmt::format("{}*", magnitude);
        }
        for (size_t i = 0; i < term.factors.size(); ++i) {
            text += (i == 0 ? "" : "*") + AtomText(*term.factors[i]);
        }
    }
    const int64_t constant = expr.constant_part();
    if (text.empty()) {
        return fmt::format("{}", constant);
    }
    if (constant != 0) {
        text += constant < 0 ? fmt::format(" - {}", -static_cast<uint64_t>(constant))
                             : fmt::format(" + {}", constant);
    }
    return text;
}

// With a point or an exponent, so that it is no integer.
std::string DoubleText(double value) {
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string FieldText(const std::string& value) {
    return Quoted(value);
}

std::string FieldText(bool value) {
    return value ? "true" : "false";
}

std::string FieldText(int64_t value) {
    return fmt::format("{}", value);
}

std::string FieldText(double value) {
    return DoubleText(value);
}

std::string FieldText(const Expr& value) {
    return ExprText(value);
}

std::string FieldText(Overflow value) {
    return value == Overflow::kSaturate ? "saturate" : "special";
}

std::string FieldText(Rounding value) {
    return value == Rounding::kNearestEven ? "nearest_even"
           : value == Rounding::kUp        ? "up"
                                           : "down";
}

template <typename T>
    requires std::is_enum_v<T>
std::string FieldText(T value) {
    return std::string(Name(value));
}

std::string FieldText(const Shape& value);
std::string FieldText(const TensorType& value);

template <typename T>
std::string ListText(const T& values, const char* separator = ", ") {
    std::string text = "[";
    for (const auto& value : values) {
        text += (text.size() == 1 ? "" : separator) + FieldText(value);
    }
    return text + "]";
}

std::string FieldText(const Shape& value) {
    return ListText(value.dims(), ",");
}

std::string FieldText(const TensorType& value) {
    return std::string(Name(value.element)) + FieldText(value.shape);
}

template <typename T>
std::string FieldText(const std::vector<T>& values) {
    return ListText(values);
}

std::string AttributeText(const Attribute& attribute) {
    constexpr const char* kPrefixes[] = {"", "", "", "ints", "floats", "strings"};
    return kPrefixes[attribute.index()] +
           std::visit([](const auto& value) { return FieldText(value); }, attribute);
}

std::string FieldText(const Attributes& attributes) {
    std::string text = "{";
    for (const auto& [name, value] : attributes) {
        text += fmt::format("{}{} = {}", text.size() == 1 ? "" : ", ", Quoted(name),
                            AttributeText(value));
    }
    return text + "}";
}

struct FieldWriter {
    std::string text = "{";

    void operator()(const char* name, const auto& value) {
        text += fmt::format("{}{} = {}", text.size() == 1 ? "" : ", ", name, FieldText(value));
    }
};

std::string FieldsText(const Operation& operation) {
    FieldWriter writer;
    std::visit([&](const auto& held) { held.Visit(writer, held); }, operation);
    return writer.text + "}";
}

std::string ElementText(ElementType type, const uint8_t* data) {
    const Scalar scalar = ReadElement(type, data);
    if (type == ElementType::kF32) {
        return fmt::format("{}", static_cast<float>(scalar.number));  // fewer digits suffice
    }
    if (scalar.is_float) {
        return fmt::format("{}", scalar.number);
    }
    return type == ElementType::kU64 ? fmt::format("{}", static_cast<uint64_t>(scalar.integer))
                                     : fmt::format("{}", scalar.integer);
}

// Whether reading and writing the element gives the same bytes, so that its decimal form does.
bool IsExact(ElementType type, const uint8_t* data) {
    uint8_t copy[sizeof(uint64_t)] = {};
    const Scalar scalar = ReadElement(type, data);
    const bool is_nan = scalar.is_float && std::isnan(scalar.number);
    // A NaN is read from text as a positive one.
    WriteElement(type, is_nan ? Scalar::Float(std::nan("")) : scalar, copy);
    return std::memcmp(copy, data, BytesOf(type)) == 0;
}

class GraphWriter {
  public:
    explicit GraphWriter(const TextOptions& options) : options_(options) {}

    void Write(const Graph& graph, int depth);
    std::string Take() { return std::move(text_); }

  private:
    void Line(int depth, std::string_view text) {
        text_.append(static_cast<size_t>(depth) * 4, ' ');
        text_ += text;
        text_ += '\n';
    }
    void WriteSizes(const SizeFacts& sizes, int depth);
    void WriteSource(const Graph& graph, ValueId id, int depth);
    void WriteNode(const Graph& graph, const Node& node, int depth);
    std::string ConstantText(const Tensor& tensor);

    const TextOptions& options_;
    std::string text_;
    size_t filled_bytes_ = 0;
};

std::string IdText(ValueId id) {
    return fmt::format("%{}", id.value());
}

void GraphWriter::WriteSizes(const SizeFacts& sizes, int depth) {
    constexpr const char* kRelations[] = {"==", "!=", "<", "<="};
    for (const auto& [symbol, hint] : sizes.hints()) {
        const auto found = sizes.ranges().find(symbol);
        const Range range = found == sizes.ranges().end() ? Range() : found->second;
        Line(depth, fmt::format("symbol {} = {} in {}..{}", SymbolText(symbol), hint, range.low,
                                range.high));
    }
    for (const Guard& guard : sizes.guards()) {
        Line(depth,
             fmt::format("guard {} {} {}", ExprText(guard.a),
                         kRelations[static_cast<size_t>(guard.relation)], ExprText(guard.b)));
    }
}

std::string GraphWriter::ConstantText(const Tensor& tensor) {
    std::string text = FieldText(tensor.type()) + " ";
    if (tensor.element == ElementType::kString) {
        std::string list = ListText(*tensor.strings);
        list.front() = '{';
        list.back() = '}';
        return text + list;
    }
    const std::span<const uint8_t> bytes = *tensor.data;
    const size_t width = BytesOf(tensor.element), count = bytes.size() / width;
    bool exact = true;
    if (count <= options_.listed_elements) {
        std::string list;
        for (size_t i = 0; i < count && exact; ++i) {
            exact = IsExact(tensor.element, bytes.data() + i * width);
            list += (i == 0 ? "" : ", ") + ElementText(tensor.element, bytes.data() + i * width);
        }
        if (exact) {
            return text + "{" + list + "}";
        }
    }
    // Equal elements: the bytes are those that lie one element further on.
    if (count > 0 && IsExact(tensor.element, bytes.data()) &&
        std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0 &&
        bytes.size() <= kMaxFilledBytes - filled_bytes_) {
        filled_bytes_ += bytes.size();
        return text + "fill " + ElementText(tensor.element, bytes.data());
    }
    if (options_.elide_constants && count > options_.listed_elements) {
        return text + fmt::format("elided {} bytes", bytes.size());
    }
    constexpr char kDigits[] = "0123456789abcdef";
    text.reserve(text.size() + bytes.size() * 2 + 6);
    text += "hex \"";
    for (const uint8_t byte : bytes) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text + '"';
}

// An input, or a constant that is no node's result.
void GraphWriter::WriteSource(const Graph& graph, ValueId id, int depth) {
    const Value& value = graph[id];
    if (value.kind == ValueKind::kInput) {
        Line(depth, fmt::format("{} = input {} {}", IdText(id), Quoted(value.name),
                                FieldText(value.type)));
    } else if (value.kind == ValueKind::kConstant) {
        Line(depth, fmt::format("{} = constant {} {}", IdText(id), Quoted(value.name),
                                ConstantText(value.constant)));
    }
}

void GraphWriter::WriteNode(const Graph& graph, const Node& node, int depth) {
    std::string results, operands, types;
    for (const ValueId id : node.results) {
        results += (results.empty() ? "" : ", ") + IdText(id);
        types += (types.empty() ? " : " : ", ") + FieldText(graph.TypeOf(id));
    }
    for (const ValueId id : node.operands) {
        operands += (operands.empty() ? "" : ", ") + IdText(id);
    }
    Line(depth, fmt::format("{}{}{} {} ({}) {}{}", results, results.empty() ? "" : " = ",
                            Name(node.operation), Quoted(node.name), operands,
                            FieldsText(node.operation), types));
    for (const Body& body : node.bodies) {
        Write(*body, depth + 1);
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
        const ValueId id = node.results[i];
        const Value& value = graph[id];
        if (value.name != (i == 0 ? node.name : fmt::format("{}.{}", node.name, i))) {
            Line(depth, fmt::format("name {} {}", IdText(id), Quoted(value.name)));
        }
        if (value.kind == ValueKind::kConstant) {
            Line(depth, fmt::format("fold {} {}", IdText(id), ConstantText(value.constant)));
        }
    }
}

void GraphWriter::Write(const Graph& graph, int depth) {
    Line(depth, fmt::format("graph {} {{", Quoted(graph.name())));
    WriteSizes(graph.sizes(), depth + 1);
    std::vector<bool> is_result(graph.values().size(), false);
    for (const Node& node : graph.nodes()) {
        for (const ValueId id : node.results) {
            is_result[id.value()] = true;
        }
    }
    // Values are numbered by their order in the text, so what lies before a node comes first.
    size_t next = 0;
    const auto write_sources = [&](size_t end) {
        for (; next < end; ++next) {
            if (!is_result[next]) {
                WriteSource(graph, ValueId(next), depth + 1);
            }
        }
    };
    for (const Node& node : graph.nodes()) {
        size_t end = node.results.empty() ? 0 : node.results[0].value();
        for (const ValueId operand : node.operands) {
            end = std::max<size_t>(end, node.results.empty() ? operand.value() + 1 : 0);
        }
        write_sources(end);
        WriteNode(graph, node, depth + 1);
    }
    write_sources(graph.values().size());
    for (const Output& output : graph.outputs()) {
        Line(depth + 1, fmt::format("output {} {}", Quoted(output.name), IdText(output.value)));
    }
    Line(depth, "}");
}

}  // namespace

std::string ToText(const Graph& graph, const TextOptions& options) {
    GraphWriter writer(options);
    writer.Write(graph, 0);
    return writer.Take();
}

std::string ToText(const Graph& graph) {
    return ToText(graph, TextOptions());
}

std::string ToText(const Operation& operation) {
    return fmt::format("{} {}", Name(operation), FieldsText(operation));
}

}  // namespace fornax::graph
