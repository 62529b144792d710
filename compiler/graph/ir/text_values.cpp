// The values in a graph's text.
#include "compiler/graph/ir/text_values.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "compiler/graph/ir/text.h"

namespace fornax::graph {
namespace {

// Calls `function` with one operation of each kind until it returns true.
template <typename Function, size_t... kIndices>
bool FindOperation(Function function, std::index_sequence<kIndices...>) {
    return (function(std::variant_alternative_t<kIndices, Operation>()) || ...);
}

// The number of a decimal text; nullopt if it is none or does not fit.
template <typename T>
std::optional<T> NumberOf(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

bool LooksLikeInteger(std::string_view text) {
    return text.find_first_of(".eEnN") == std::string_view::npos;
}

// The elements of a constant's shape, if that is one.
std::optional<uint64_t> CountElements(const Shape& shape) {
    int64_t count = 1;
    bool is_empty = false;
    for (const Expr& dim : shape.dims()) {
        const std::optional<int64_t> size = dim.constant();
        if (!size || *size < 0 ||
            __builtin_mul_overflow(count, std::max<int64_t>(*size, 1), &count) ||
            count > kMaxElements) {
            return std::nullopt;
        }
        is_empty = is_empty || *size == 0;
    }
    return is_empty ? 0 : static_cast<uint64_t>(count);
}

int HexDigit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads the field of one name.
struct FieldReader {
    ValueReader& reader;
    std::string_view wanted;
    bool found = false;
    Status status = {};

    void operator()(const char* name, auto& value) {
        if (!found && wanted == name) {
            found = true;
            status = reader.Value(value);
        }
    }
};

}  // namespace

std::optional<Operation> ValueReader::OperationByName(std::string_view name) {
    std::optional<Operation> found;
    FindOperation(
        [&](auto operation) {
            if (operation.kName == name) {
                found = std::move(operation);
            }
            return found.has_value();
        },
        std::make_index_sequence<std::variant_size_v<Operation>>());
    return found;
}

template <typename T>
Status ValueReader::NamedValue(T& value,
                               std::optional<T> (*by_name)(std::string_view),
                               const char* what) {
    const size_t line = in_.line();
    const std::string_view name = in_.Identifier();
    const std::optional<T> found = by_name(name);
    if (!found) {
        return in_.FailureAt(line, fmt::format("'{}' is no {}", name, what));
    }
    value = *found;
    return OkStatus();
}

template <typename T>
Status ValueReader::ListValue(Attribute& value) {
    std::vector<T> list;
    FORNAX_RETURN_IF_ERROR(Value(list));
    value = std::move(list);
    return OkStatus();
}

Status ValueReader::Value(std::string& value) {
    FORNAX_ASSIGN_OR_RETURN(value, in_.String());
    return OkStatus();
}

Status ValueReader::Value(bool& value) {
    value = in_.Peek() == "true";
    if (!value && in_.Peek() != "false") {
        return in_.Failure("true or false is expected");
    }
    in_.Identifier();
    return OkStatus();
}

Status ValueReader::Value(int64_t& value) {
    FORNAX_ASSIGN_OR_RETURN(value, in_.Integer());
    return OkStatus();
}

Status ValueReader::Value(double& value) {
    const size_t line = in_.line();
    FORNAX_ASSIGN_OR_RETURN(const std::string_view text, in_.Number());
    const std::optional<double> number = NumberOf<double>(text);
    if (!number) {
        return in_.FailureAt(line, fmt::format("'{}' is no number of 64 bits", text));
    }
    value = *number;
    return OkStatus();
}

Status ValueReader::Value(Expr& value) {
    FORNAX_ASSIGN_OR_RETURN(value, in_.Size());
    return OkStatus();
}

Status ValueReader::Value(ElementType& value) {
    return NamedValue(value, ElementTypeByName, "element type");
}

Status ValueReader::Value(ScalarFunction& value) {
    return NamedValue(value, ScalarFunctionByName, "scalar function");
}

Status ValueReader::Value(Combine& value) {
    return NamedValue(value, CombineByName, "combination");
}

Status ValueReader::Value(Overflow& value) {
    const auto by_name = [](std::string_view name) {
        return name == "saturate"  ? std::optional(Overflow::kSaturate)
               : name == "special" ? std::optional(Overflow::kSpecial)
                                   : std::nullopt;
    };
    return NamedValue<Overflow>(value, by_name, "way to overflow");
}

Status ValueReader::Value(Rounding& value) {
    const auto by_name = [](std::string_view name) {
        return name == "nearest_even" ? std::optional(Rounding::kNearestEven)
               : name == "up"         ? std::optional(Rounding::kUp)
               : name == "down"       ? std::optional(Rounding::kDown)
                                      : std::nullopt;
    };
    return NamedValue<Rounding>(value, by_name, "rounding");
}

Status ValueReader::Value(Shape& value) {
    const size_t line = in_.line();
    std::vector<Expr> dims;
    FORNAX_RETURN_IF_ERROR(Value(dims));
    if (dims.size() > kMaxRank) {
        return in_.FailureAt(line, fmt::format("a shape has {} dimensions, at most {} are possible",
                                               dims.size(), kMaxRank));
    }
    value = Shape(std::move(dims));
    return OkStatus();
}

Status ValueReader::Value(TensorType& value) {
    FORNAX_RETURN_IF_ERROR(Value(value.element));
    return Value(value.shape);
}

Status ValueReader::Value(Attribute& value) {
    const std::string_view word = in_.Peek();
    for (const std::string_view prefix : {"ints", "floats", "strings"}) {
        if (word == prefix) {
            in_.Identifier();
            return prefix == "ints"     ? ListValue<int64_t>(value)
                   : prefix == "floats" ? ListValue<double>(value)
                                        : ListValue<std::string>(value);
        }
    }
    if (in_.AtString()) {
        FORNAX_ASSIGN_OR_RETURN(value, in_.String());
        return OkStatus();
    }
    const size_t line = in_.line();
    FORNAX_ASSIGN_OR_RETURN(const std::string_view text, in_.Number());
    if (const std::optional<int64_t> integer = NumberOf<int64_t>(text); integer) {
        value = *integer;
    } else if (const std::optional<double> number = NumberOf<double>(text);
               number && !LooksLikeInteger(text)) {
        value = *number;
    } else {
        return in_.FailureAt(line, fmt::format("'{}' is no attribute's value", text));
    }
    return OkStatus();
}

Status ValueReader::Value(Attributes& value) {
    FORNAX_RETURN_IF_ERROR(in_.Expect("{"));
    value.clear();
    if (in_.Accept("}")) {
        return OkStatus();
    }
    do {
        const size_t line = in_.line();
        FORNAX_ASSIGN_OR_RETURN(std::string name, in_.String());
        FORNAX_RETURN_IF_ERROR(in_.Expect("="));
        Attribute attribute;
        FORNAX_RETURN_IF_ERROR(Value(attribute));
        if (!value.emplace(name, std::move(attribute)).second) {
            return in_.FailureAt(line, fmt::format("the attribute {} is given twice", name));
        }
    } while (in_.Accept(","));
    return in_.Expect("}");
}

Status ValueReader::Fields(Operation& operation) {
    FORNAX_RETURN_IF_ERROR(in_.Expect("{"));
    if (in_.Accept("}")) {
        return OkStatus();
    }
    std::set<std::string_view> given;
    do {
        const size_t line = in_.line();
        const std::string_view name = in_.Identifier();
        FORNAX_RETURN_IF_ERROR(in_.Expect("="));
        FieldReader field{*this, name};
        std::visit([&](auto& held) { held.Visit(field, held); }, operation);
        FORNAX_RETURN_IF_ERROR(field.status);
        if (!field.found) {
            return in_.FailureAt(line, fmt::format("{} has no field {}", Name(operation), name));
        }
        if (!given.insert(name).second) {
            return in_.FailureAt(line, fmt::format("the field {} is given twice", name));
        }
    } while (in_.Accept(","));
    return in_.Expect("}");
}

Status ValueReader::Element(ElementType type, uint8_t* data) {
    const size_t line = in_.line();
    FORNAX_ASSIGN_OR_RETURN(const std::string_view text, in_.Number());
    std::optional<Scalar> scalar;
    if (IsFloat(type)) {
        if (const auto number = NumberOf<double>(text)) {
            scalar = Scalar::Float(*number);
        }
    } else if (const auto integer = NumberOf<int64_t>(text)) {
        scalar = Scalar::Integer(*integer);
    } else if (const auto large = NumberOf<uint64_t>(text); large && type == ElementType::kU64) {
        scalar = Scalar::Integer(static_cast<int64_t>(*large));
    }
    const bool fits =
        scalar && (IsFloat(type) || ConvertScalar(*scalar, ElementType::kI64, type) == *scalar);
    if (!fits) {
        return in_.FailureAt(line, fmt::format("'{}' is no {}", text, Name(type)));
    }
    WriteElement(type, *scalar, data);
    return OkStatus();
}

Status ValueReader::Strings(std::vector<std::string>& strings) {
    FORNAX_RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("}")) {
        if (!strings.empty()) {
            FORNAX_RETURN_IF_ERROR(in_.Expect(","));
        }
        FORNAX_ASSIGN_OR_RETURN(std::string text, in_.String());
        strings.push_back(std::move(text));
    }
    return OkStatus();
}

Status ValueReader::Hexadecimal(std::vector<uint8_t>& data) {
    const size_t line = in_.line();
    FORNAX_ASSIGN_OR_RETURN(const std::string text, in_.String());
    for (size_t i = 0; i + 1 < text.size(); i += 2) {
        const int high = HexDigit(text[i]), low = HexDigit(text[i + 1]);
        if (high < 0 || low < 0) {
            return in_.FailureAt(line, "a constant has a digit that is not hexadecimal");
        }
        data.push_back(static_cast<uint8_t>(high * 16 + low));
    }
    return OkStatus();
}

Status ValueReader::Filled(ElementType type, uint64_t count, std::vector<uint8_t>& data) {
    const uint64_t bytes = count * BytesOf(type);
    if (bytes > kMaxFilledBytes - filled_bytes_) {
        return in_.Failure(fmt::format("{} bytes are filled beside {} before, the limit is {}",
                                       bytes, filled_bytes_, kMaxFilledBytes));
    }
    filled_bytes_ += bytes;
    std::array<uint8_t, sizeof(uint64_t)> element = {};
    FORNAX_RETURN_IF_ERROR(Element(type, element.data()));
    for (uint64_t i = 0; i < count; ++i) {
        data.insert(data.end(), element.begin(), element.begin() + BytesOf(type));
    }
    return OkStatus();
}

Status ValueReader::Listed(ElementType type, std::vector<uint8_t>& data) {
    FORNAX_RETURN_IF_ERROR(in_.Expect("{"));
    while (!in_.Accept("}")) {
        if (!data.empty()) {
            FORNAX_RETURN_IF_ERROR(in_.Expect(","));
        }
        std::array<uint8_t, sizeof(uint64_t)> element = {};
        FORNAX_RETURN_IF_ERROR(Element(type, element.data()));
        data.insert(data.end(), element.begin(), element.begin() + BytesOf(type));
    }
    return OkStatus();
}

// A constant's type and elements. But for filled ones, which have a limit, its memory follows the
// text's length.
Result<Tensor> ValueReader::Constant() {
    const size_t line = in_.line();
    TensorType type;
    FORNAX_RETURN_IF_ERROR(Value(type));
    const std::optional<uint64_t> count = CountElements(type.shape);
    if (!count) {
        return in_.FailureAt(line, fmt::format("{} is no type of a constant", type.ToString()));
    }
    const auto wrong_size = [&](uint64_t given, uint64_t wanted, const char* unit) {
        return in_.FailureAt(
            line, fmt::format("{} has {} {}, {} are given", type.ToString(), wanted, unit, given));
    };
    Tensor tensor{type.element, *type.shape.Constants(), nullptr, nullptr};
    if (type.element == ElementType::kString) {
        auto strings = std::make_shared<std::vector<std::string>>();
        FORNAX_RETURN_IF_ERROR(Strings(*strings));
        if (strings->size() != *count) {
            return wrong_size(strings->size(), *count, "strings");
        }
        tensor.strings = std::move(strings);
        return tensor;
    }
    if (in_.Peek() == "elided") {
        return in_.FailureAt(line, "the constant's elements were left out by the writer");
    }
    const uint32_t width = BytesOf(type.element);
    auto data = std::make_shared<std::vector<uint8_t>>();
    if (in_.Accept("hex")) {
        FORNAX_RETURN_IF_ERROR(Hexadecimal(*data));
    } else if (in_.Accept("fill")) {
        FORNAX_RETURN_IF_ERROR(Filled(type.element, *count, *data));
    } else {
        FORNAX_RETURN_IF_ERROR(Listed(type.element, *data));
        if (data->size() != *count * width) {
            return wrong_size(data->size() / width, *count, "elements");
        }
    }
    if (data->size() != *count * width) {
        return wrong_size(data->size(), *count * width, "bytes");
    }
    tensor.data = std::move(data);
    return tensor;
}

}  // namespace fornax::graph
