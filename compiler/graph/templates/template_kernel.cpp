// Templates with arguments: their rules, text, code and meaning.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "compiler/graph/ir/parse_expr.h"
#include "compiler/graph/loop/limits.h"
#include "compiler/graph/templates/template.h"
#include "shaders/embedded_kernels.h"

namespace fornax::graph {
namespace {

Error Clause(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

// The expression is part of a declaration, so it parses.
Expr Parsed(std::string_view expression) {
    return *ParseExpr(expression);
}

Status CheckArgument(const TemplateParameter& parameter,
                     const Expr& argument,
                     const Ranges& sizes) {
    FORNAX_RETURN_IF_ERROR(loop::CheckExprSize(argument));
    for (const Symbol& symbol : argument.Symbols()) {
        if (!sizes.contains(symbol)) {
            return Clause(fmt::format("{} in {} is not one of its sizes", symbol.name(),
                                      argument.ToString()));
        }
    }
    if (parameter.is_choice && !argument.is_constant()) {
        return Clause(fmt::format("{} is {}, no constant", parameter.name, argument.ToString()));
    }
    // Whether sizes fit indices is checked when they are known, as it is for loop kernels.
    const bool known_later = !argument.is_constant();
    const Range bounds = argument.Bounds(sizes);
    if ((bounds.low < parameter.low && !(known_later && parameter.low == 0)) ||
        (bounds.high > parameter.high && !(known_later && parameter.high == INT32_MAX))) {
        return Clause(fmt::format("{} is {}, which is not always within {} to {}", parameter.name,
                                  argument.ToString(), parameter.low, parameter.high));
    }
    return OkStatus();
}

Status CheckSizes(const Ranges& sizes) {
    if (sizes.size() > loop::kMaxSizes) {
        return Clause(fmt::format("it has {} sizes, more than {}", sizes.size(), loop::kMaxSizes));
    }
    for (const auto& [symbol, range] : sizes) {
        if (!IsSymbolName(symbol.name()) || symbol.name().starts_with('$')) {
            return Clause(fmt::format("'{}' is no name of a size", symbol.name()));
        }
        if (range.low < 0 || range.high > UINT32_MAX || range.low > range.high) {
            return Clause(fmt::format("the size {} is {} to {}, not within 0 to {}", symbol.name(),
                                      range.low, range.high, UINT32_MAX));
        }
    }
    return OkStatus();
}

}  // namespace

const Template* FindTemplate(std::string_view name) {
    const std::span<const Template> all = Templates();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Template& t) { return t.name == name; });
    return found == all.end() ? nullptr : &*found;
}

Result<TemplateKernel> TemplateKernel::Make(std::string_view name,
                                            std::vector<Expr> arguments,
                                            const Ranges& sizes) {
    TemplateKernel kernel;
    kernel.template_ = FindTemplate(name);
    if (kernel.template_ == nullptr) {
        return Clause(fmt::format("there is no template '{}'", name.substr(0, loop::kMaxName)));
    }
    kernel.name_ = name;
    const std::vector<TemplateParameter>& parameters = kernel.template_->parameters;
    if (arguments.size() != parameters.size()) {
        return Clause(
            fmt::format("{} has {} parameters, not {}", name, parameters.size(), arguments.size()));
    }
    for (size_t i = 0; i < arguments.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(CheckArgument(parameters[i], arguments[i], sizes));
        for (const Symbol& symbol : arguments[i].Symbols()) {
            kernel.sizes_.emplace(symbol, sizes.at(symbol));
        }
    }
    FORNAX_RETURN_IF_ERROR(CheckSizes(kernel.sizes_));
    kernel.arguments_ = std::move(arguments);
    for (const TemplateBuffer& declared : kernel.template_->buffers) {
        std::vector<Expr> dims;
        for (const std::string_view dim : declared.shape) {
            dims.push_back(kernel.Substituted(dim));
            FORNAX_RETURN_IF_ERROR(loop::CheckExprSize(dims.back()));
        }
        kernel.buffers_.push_back({std::string(declared.name),
                                   {declared.element, Shape(std::move(dims))},
                                   declared.written});
    }
    return kernel;
}

Expr TemplateKernel::Substituted(std::string_view expression) const {
    std::map<Symbol, Expr> values;
    for (size_t i = 0; i < arguments_.size(); ++i) {
        values.emplace(Symbol(template_->parameters[i].name), arguments_[i]);
    }
    return Parsed(expression).Substitute(values);
}

std::vector<Expr> TemplateKernel::PushConstants() const {
    std::vector<Expr> values;
    for (size_t i = 0; i < arguments_.size(); ++i) {
        if (!template_->parameters[i].is_choice) {
            values.push_back(arguments_[i]);
        }
    }
    return values;
}

std::vector<uint32_t> TemplateKernel::Choices() const {
    std::vector<uint32_t> values;
    for (size_t i = 0; i < arguments_.size(); ++i) {
        if (template_->parameters[i].is_choice) {
            values.push_back(static_cast<uint32_t>(*arguments_[i].constant()));
        }
    }
    return values;
}

Result<loop::Module> TemplateKernel::Module(const loop::Target& target) const {
    for (const loop::Buffer& buffer : buffers_) {
        const bool wide = BytesOf(buffer.type.element) == 8;
        if (wide && !(IsFloat(buffer.type.element) ? target.float64 : target.int64)) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The kernel {} computes with {}, which the device does not.",
                                     name_, Name(buffer.type.element))};
        }
    }
    const std::string plain = name_ + "_plain";
    std::span<const uint32_t> words;
    for (const shaders::EmbeddedKernel& kernel : shaders::EmbeddedKernels()) {
        if ((kernel.name == name_ && words.empty()) ||
            (kernel.name == plain && !target.subgroup_arithmetic)) {
            words = kernel.spirv;
        }
    }
    loop::Module module;
    module.words.assign(words.begin(), words.end());
    module.workgroups = {Substituted(template_->workgroups), 1, 1};
    for (const Expr& argument : PushConstants()) {
        module.limits.push_back(argument);
    }
    for (const loop::Buffer& buffer : buffers_) {
        module.limits.push_back(buffer.type.shape.Volume());
    }
    return module;
}

Status TemplateKernel::Interpret(const Bindings& sizes,
                                 std::span<std::vector<uint8_t>> buffers) const {
    std::vector<int64_t> values;
    for (size_t i = 0; i < arguments_.size(); ++i) {
        const TemplateParameter& parameter = template_->parameters[i];
        const std::optional<int64_t> value = arguments_[i].Evaluate(sizes);
        if (!value || *value < parameter.low || *value > parameter.high) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The kernel {} takes {} from {} to {}; it is {}.", name_,
                                     parameter.name, parameter.low, parameter.high,
                                     value ? std::to_string(*value) : "unknown")};
        }
        values.push_back(*value);
    }
    template_->interpret(values, buffers);
    return OkStatus();
}

std::string ToText(const TemplateKernel& kernel) {
    std::string text = fmt::format("template {}\n", kernel.name());
    for (size_t i = 0; i < kernel.arguments().size(); ++i) {
        text += fmt::format("  {} = {}\n", kernel.of().parameters[i].name,
                            kernel.arguments()[i].ToString());
    }
    for (const auto& [symbol, range] : kernel.sizes()) {
        text += fmt::format("  size {} in {}..{}\n", symbol.name(), range.low, range.high);
    }
    return text;
}

namespace {

// Takes the text's lines one by one.
class Lines {
  public:
    explicit Lines(std::string_view text) : text_(text) {}

    // The next line without the spaces around it, if it begins with this, which is left out too.
    std::optional<std::string_view> Take(std::string_view beginning) {
        std::string_view line = text_.substr(0, text_.find('\n'));
        const size_t length = line.size();
        while (line.starts_with(' ')) {
            line.remove_prefix(1);
        }
        while (line.ends_with(' ')) {
            line.remove_suffix(1);
        }
        if (!line.starts_with(beginning)) {
            return std::nullopt;
        }
        line.remove_prefix(beginning.size());
        text_.remove_prefix(std::min(length + 1, text_.size()));
        ++number_;
        return line;
    }
    bool AtEnd() const { return text_.empty(); }

    // The error names the line that was taken last, or the next one.
    Error Failure(std::string_view message) const {
        return {ErrorCode::kInvalidArgument,
                fmt::format("Line {} of the template: {}.", number_, message)};
    }
    Error NextFailure(std::string_view message) const {
        return {ErrorCode::kInvalidArgument,
                fmt::format("Line {} of the template: {}.", number_ + 1, message)};
    }

  private:
    std::string_view text_;
    size_t number_ = 0;
};

// "n in 0..100".
Status ReadSize(std::string_view line, Ranges& sizes) {
    const size_t in = line.find(" in "), dots = line.find("..");
    if (in == std::string_view::npos || dots == std::string_view::npos || dots < in + 4) {
        return Clause("a size is NAME in LOW..HIGH");
    }
    const std::string_view name = line.substr(0, in), low = line.substr(in + 4, dots - in - 4),
                           high = line.substr(dots + 2);
    if (!IsSymbolName(name)) {
        return Clause(fmt::format("'{}' is no name of a size", name.substr(0, loop::kMaxName)));
    }
    Range range;
    for (const auto& [text, value] : {std::pair{low, &range.low}, {high, &range.high}}) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
        if (error != std::errc() || end != text.data() + text.size()) {
            return Clause(
                fmt::format("'{}' is no integer of 64 bits", text.substr(0, loop::kMaxName)));
        }
    }
    if (!sizes.emplace(Symbol(name), range).second) {
        return Clause(fmt::format("the size {} is there twice", name.substr(0, loop::kMaxName)));
    }
    return OkStatus();
}

}  // namespace

Result<TemplateKernel> ParseTemplateKernel(std::string_view text) {
    if (text.size() > loop::kMaxKernelText) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The text of a kernel has {} bytes, more than {}.", text.size(),
                                 loop::kMaxKernelText)};
    }
    Lines lines(text);
    const std::optional<std::string_view> name = lines.Take("template ");
    if (!name) {
        return lines.NextFailure("it begins with the word template and a name");
    }
    const Template* of = FindTemplate(*name);
    if (of == nullptr) {
        return lines.Failure(
            fmt::format("there is no template '{}'", name->substr(0, loop::kMaxName)));
    }
    std::vector<Expr> arguments;
    for (const TemplateParameter& parameter : of->parameters) {
        const std::string beginning = fmt::format("{} = ", parameter.name);
        const std::optional<std::string_view> argument = lines.Take(beginning);
        if (!argument) {
            return lines.NextFailure(fmt::format("'{}' is expected", beginning));
        }
        Result<Expr> expr = ParseExpr(*argument);
        if (!expr.ok()) {
            return lines.Failure(expr.error().message);
        }
        arguments.push_back(*std::move(expr));
    }
    Ranges sizes;
    while (const std::optional<std::string_view> size = lines.Take("size ")) {
        if (const Status status = ReadSize(*size, sizes); !status.ok()) {
            return lines.Failure(status.error().message);
        }
    }
    if (!lines.AtEnd()) {
        return lines.NextFailure("a size or the end is expected");
    }
    Result<TemplateKernel> kernel = TemplateKernel::Make(*name, std::move(arguments), sizes);
    if (!kernel.ok()) {
        return lines.Failure(kernel.error().message);
    }
    return kernel;
}

}  // namespace fornax::graph
