// Operators on strings.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/host/tensors.h"
#include "compiler/graph/host/text_pattern.h"

namespace fornax::graph::host {
namespace {

Status CheckPair(Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 2));
    FORNAX_RETURN_IF_ERROR(CheckStrings(arguments[0]));
    FORNAX_RETURN_IF_ERROR(CheckStrings(arguments[1]));
    if (arguments[0].dims != arguments[1].dims) {
        return Invalid("the operands have different shapes");
    }
    return OkStatus();
}

bool IsSpace(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Without a delimiter at runs of white space, as Python's split; at most `most` times, if it is not
// negative.
std::vector<std::string> SplitText(const std::string& text, const std::string& delimiter, int64_t most) {
    std::vector<std::string> parts;
    const auto may_split = [&] { return most < 0 || static_cast<int64_t>(parts.size()) < most; };
    size_t at = 0;
    if (!delimiter.empty()) {
        for (size_t next = 0; may_split() && (next = text.find(delimiter, at)) != std::string::npos;) {
            parts.push_back(text.substr(at, next - at));
            at = next + delimiter.size();
        }
        parts.push_back(text.substr(at));
        return parts;
    }
    while (true) {
        while (at < text.size() && IsSpace(text[at])) {
            ++at;
        }
        if (at == text.size()) {
            return parts;
        }
        if (!may_split()) {
            size_t end = text.size();
            while (IsSpace(text[end - 1])) {
                --end;
            }
            parts.push_back(text.substr(at, end - at));
            return parts;
        }
        size_t end = at;
        while (end < text.size() && !IsSpace(text[end])) {
            ++end;
        }
        parts.push_back(text.substr(at, end - at));
        at = end;
    }
}

bool IsAscii(const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 128; });
}

std::string ChangeCase(std::string text, const std::string& action) {
    for (char& c : text) {
        if (action == "LOWER" && c >= 'A' && c <= 'Z') {
            c = static_cast<char>(c - 'A' + 'a');
        } else if (action == "UPPER" && c >= 'a' && c <= 'z') {
            c = static_cast<char>(c - 'a' + 'A');
        }
    }
    return text;
}

// Shortest digits that read back as the number.
std::string NumberText(const Scalar& value, ElementType type) {
    if (!value.is_float) {
        return type == ElementType::kU64 ? fmt::format("{}", static_cast<uint64_t>(value.integer))
                                         : fmt::format("{}", value.integer);
    }
    if (std::isnan(value.number)) {
        return "NaN";
    }
    if (std::isinf(value.number)) {
        return value.number > 0 ? "INF" : "-INF";
    }
    return type == ElementType::kF64 ? fmt::format("{}", value.number)
                                     : fmt::format("{}", static_cast<float>(value.number));
}

}  // namespace

Results StringEqual(const op::HostCall&, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckPair(arguments));
    uint8_t* data = nullptr;
    Tensor result = Tensor::Zeros(ElementType::kBool, arguments[0].dims, &data);
    for (size_t i = 0; i < arguments[0].strings->size(); ++i) {
        data[i] = (*arguments[0].strings)[i] == (*arguments[1].strings)[i] ? 1 : 0;
    }
    return std::vector<Tensor>{result};
}

Results StringConcat(const op::HostCall&, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckPair(arguments));
    std::vector<std::string> texts;
    for (size_t i = 0; i < arguments[0].strings->size(); ++i) {
        texts.push_back((*arguments[0].strings)[i] + (*arguments[1].strings)[i]);
    }
    return std::vector<Tensor>{FromStrings(arguments[0].dims, std::move(texts))};
}

Results StringSplit(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    FORNAX_RETURN_IF_ERROR(CheckStrings(arguments[0]));
    const std::string delimiter = Attribute<std::string>(call, "delimiter");
    const int64_t most = Attribute<int64_t>(call, "most");
    std::vector<std::vector<std::string>> rows;
    std::vector<int64_t> counts;
    size_t width = 0;
    for (const std::string& text : *arguments[0].strings) {
        rows.push_back(SplitText(text, delimiter, most));
        counts.push_back(static_cast<int64_t>(rows.back().size()));
        width = std::max(width, rows.back().size());
    }
    // Each row takes the longest one's place.
    constexpr size_t kMaxParts = size_t{1} << 26;
    if (width != 0 && rows.size() > kMaxParts / width) {
        return Invalid(fmt::format("{} rows of {} parts exceed the limit of {}", rows.size(), width,
                                   kMaxParts));
    }
    std::vector<std::string> texts;
    for (std::vector<std::string>& row : rows) {
        row.resize(width);
        std::ranges::move(row, std::back_inserter(texts));
    }
    std::vector<int64_t> dims = arguments[0].dims;
    dims.push_back(static_cast<int64_t>(width));
    return std::vector<Tensor>{FromStrings(std::move(dims), std::move(texts)),
                               Tensor::FromIntegers(arguments[0].dims, counts)};
}

Results StringNormalise(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    FORNAX_RETURN_IF_ERROR(CheckStrings(arguments[0]));
    const std::string action = Attribute<std::string>(call, "case");
    const bool sensitive = Attribute<int64_t>(call, "sensitive") != 0;
    std::set<std::string> stops;
    for (const std::string& word : Attribute<std::vector<std::string>>(call, "stopwords")) {
        stops.insert(sensitive ? word : ChangeCase(word, "LOWER"));
    }
    std::vector<std::string> texts;
    for (const std::string& text : *arguments[0].strings) {
        if (action != "NONE" && !IsAscii(text)) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("the case of \"{}\" is to change, which is not ASCII", text)};
        }
        if (!stops.contains(sensitive ? text : ChangeCase(text, "LOWER"))) {
            texts.push_back(ChangeCase(text, action));
        }
    }
    if (texts.empty()) {
        texts.emplace_back();
    }
    std::vector<int64_t> dims = {static_cast<int64_t>(texts.size())};
    if (arguments[0].dims.size() == 2) {
        dims.insert(dims.begin(), 1);
    }
    return std::vector<Tensor>{FromStrings(std::move(dims), std::move(texts))};
}

Results StringMatch(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    FORNAX_RETURN_IF_ERROR(CheckStrings(arguments[0]));
    FORNAX_ASSIGN_OR_RETURN(const TextPattern pattern,
                            TextPattern::Parse(Attribute<std::string>(call, "pattern")));
    uint8_t* data = nullptr;
    Tensor result = Tensor::Zeros(ElementType::kBool, arguments[0].dims, &data);
    for (size_t i = 0; i < arguments[0].strings->size(); ++i) {
        data[i] = pattern.Matches((*arguments[0].strings)[i]) ? 1 : 0;
    }
    return std::vector<Tensor>{result};
}

Results ToString(const op::HostCall&, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    const Tensor& x = arguments[0];
    std::vector<std::string> texts;
    for (int64_t i = 0; i < x.count(); ++i) {
        texts.push_back(NumberText(x.At(i), x.element));
    }
    return std::vector<Tensor>{FromStrings(x.dims, std::move(texts))};
}

Results FromString(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    FORNAX_RETURN_IF_ERROR(CheckStrings(arguments[0]));
    const ElementType type = call.types[0].element;
    uint8_t* data = nullptr;
    Tensor result = Tensor::Zeros(type, arguments[0].dims, &data);
    for (size_t i = 0; i < arguments[0].strings->size(); ++i) {
        const std::string& text = (*arguments[0].strings)[i];
        Scalar value = Scalar::Integer(0);
        const char* begin = text.data();
        const char* end = begin + text.size();
        const auto [rest, error] = std::from_chars(begin, end, value.integer);
        if (IsFloat(type) || error != std::errc() || rest != end) {
            char* stop = nullptr;
            value = Scalar::Float(std::strtod(text.c_str(), &stop));
            if (text.empty() || *stop != '\0') {
                return Invalid(fmt::format("\"{}\" is not a number", text));
            }
        }
        WriteElement(type, value.is_float ? ConvertScalar(value, ElementType::kF64, type) : value,
                     data + i * BytesOf(type));
    }
    return std::vector<Tensor>{result};
}

}  // namespace fornax::graph::host
