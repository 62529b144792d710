// Arguments and results of nodes.
#include "compiler/frontends/torch/node.h"

#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/torch/fx_graph_generated.h"
#include "compiler/frontends/torch/graph_file.h"

namespace fornax::torch_frontend {
namespace {

ArgumentKind KindOf(const stored::Argument& argument) {
    return static_cast<ArgumentKind>(argument.kind());
}

[[noreturn]] void FailKind(std::string_view name, std::string_view wanted) {
    FailInvalid(fmt::format("its argument {} is not {}", name, wanted));
}

// Ordered by category: bool, integers, floats.
int CategoryOf(ElementType type) {
    return type == ElementType::kBool ? 0 : graph::IsFloat(type) ? 2 : 1;
}

ElementType PromoteTypes(ElementType a, ElementType b) {
    if (a == b) {
        return a;
    }
    if (CategoryOf(a) != CategoryOf(b)) {
        return CategoryOf(a) > CategoryOf(b) ? a : b;
    }
    const uint32_t bits_a = graph::BitsOf(a), bits_b = graph::BitsOf(b);
    if (graph::IsFloat(a)) {
        // f16 and bf16 meet in f32; so do the types of 8 bits.
        return bits_a == bits_b ? ElementType::kF32 : bits_a > bits_b ? a : b;
    }
    if (graph::IsSigned(a) == graph::IsSigned(b)) {
        return bits_a > bits_b ? a : b;
    }
    const uint32_t is_signed = graph::IsSigned(a) ? bits_a : bits_b;
    const uint32_t is_unsigned = graph::IsSigned(a) ? bits_b : bits_a;
    if (is_signed > is_unsigned) {
        return graph::IsSigned(a) ? a : b;
    }
    switch (is_unsigned) {
        case 8:
            return ElementType::kI16;
        case 16:
            return ElementType::kI32;
        default:
            return ElementType::kI64;
    }
}

std::string_view TextOf(const flatbuffers::String* text) {
    return text == nullptr ? std::string_view() : text->string_view();
}

}  // namespace

ElementType ElementOf(uint32_t number) {
    if (number >= static_cast<uint32_t>(ElementType::kString)) {
        FailInvalid(fmt::format("there is no element type of the number {}", number));
    }
    return static_cast<ElementType>(number);
}

ElementType Operand::element() const {
    return tensor     ? tensor.element()
           : is_bool  ? ElementType::kBool
           : is_float ? ElementType::kF32
                      : ElementType::kI64;
}

// Tensors with dimensions decide, unless one without or a number is of a higher category.
ElementType Promote(std::span<const Operand> operands) {
    std::optional<ElementType> levels[3];
    for (const Operand& operand : operands) {
        std::optional<ElementType>& level = levels[!operand.tensor              ? 2
                                                   : operand.tensor.rank() == 0 ? 1
                                                                                : 0];
        level = level ? PromoteTypes(*level, operand.element()) : operand.element();
    }
    std::optional<ElementType> result;
    for (const std::optional<ElementType>& level : levels) {
        if (level && (!result || CategoryOf(*level) > CategoryOf(*result))) {
            result = result && CategoryOf(*result) == CategoryOf(*level)
                         ? PromoteTypes(*result, *level)
                         : *level;
        }
    }
    return result.value_or(ElementType::kF32);
}

Val ToTensor(Builder& b, const Operand& operand, ElementType element) {
    if (operand.tensor) {
        return graph::Cast(operand.tensor, element);
    }
    if (operand.is_float) {
        return graph::IsFloat(element)
                   ? b.Scalar(element, operand.number)
                   : graph::Cast(b.Scalar(ElementType::kF64, operand.number), element);
    }
    if (graph::IsFloat(element)) {
        return b.Scalar(element, static_cast<double>(operand.integer));
    }
    return b.Integer(
        element, element == ElementType::kBool ? int64_t{operand.integer != 0} : operand.integer);
}

Node::Node(Builder& builder, const NodeScope& scope, const stored::Node& stored)
    : builder_(builder), scope_(scope), stored_(stored), results_(result_count()) {}

std::string_view Node::target() const {
    return TextOf(stored_.target());
}

size_t Node::result_count() const {
    return stored_.results() == nullptr ? 0 : stored_.results()->size();
}

bool Node::Wants(size_t index) const {
    return index < result_count() &&
           stored_.results()->Get(static_cast<flatbuffers::uoffset_t>(index)) != kNoValue;
}

TensorType Node::ResultType(size_t index) const {
    if (!Wants(index)) {
        FailInvalid(fmt::format("it has no result {}", index));
    }
    return scope_.TypeOf(stored_.results()->Get(static_cast<flatbuffers::uoffset_t>(index)));
}

void Node::Out(size_t index, Val value) {
    if (!Wants(index)) {
        return;
    }
    const TensorType type = ResultType(index);
    value = graph::Cast(value, type.element);
    const Shape shape = value.shape();
    if (shape.rank() != type.shape.rank() || !builder_.sizes().Equal(shape, type.shape)) {
        FailInvalid(fmt::format("its result is {}, where the file says {}", value.type().ToString(),
                                type.ToString()));
    }
    results_[index] = value;
}

// --- Arguments -----------------------------------------------------------------------------------

const stored::Argument* Node::Find(std::string_view name) const {
    if (stored_.arguments() != nullptr) {
        for (const stored::Argument* argument : *stored_.arguments()) {
            if (TextOf(argument->name()) == name) {
                return KindOf(*argument) == ArgumentKind::kNone ? nullptr : argument;
            }
        }
    }
    return nullptr;
}

const stored::Argument& Node::Require(std::string_view name) const {
    const stored::Argument* argument = Find(name);
    if (argument == nullptr) {
        FailInvalid(fmt::format("it lacks the argument {}", name));
    }
    return *argument;
}

bool Node::Has(std::string_view name) const {
    return Find(name) != nullptr;
}

Val Node::In(std::string_view name) const {
    const Operand operand = Number(name);
    return operand.tensor ? operand.tensor : ToTensor(builder_, operand, operand.element());
}

Operand Node::ReadNumber(std::string_view name, const stored::Argument& argument) const {
    Operand operand;
    switch (KindOf(argument)) {
        case ArgumentKind::kValue:
            operand.tensor = scope_.ValueOf(argument.index());
            return operand;
        case ArgumentKind::kFloat:
            operand.is_float = true;
            operand.number = argument.number();
            return operand;
        case ArgumentKind::kBool:
            operand.is_bool = true;
            operand.integer = argument.index() != 0 ? 1 : 0;
            return operand;
        case ArgumentKind::kSize: {
            const Expr size = scope_.SizeOf(argument.index());
            if (const std::optional<int64_t> number = size.constant()) {
                operand.integer = *number;
            } else {
                operand.tensor = builder_.Size(size);
            }
            return operand;
        }
        default:
            FailKind(name, "a tensor or number");
    }
}

Operand Node::Number(std::string_view name) const {
    return ReadNumber(name, Require(name));
}

Val Node::As(std::string_view name, ElementType element) const {
    return ToTensor(builder_, Number(name), element);
}

Vals Node::List(std::string_view name) const {
    const stored::Argument& argument = Require(name);
    if (KindOf(argument) != ArgumentKind::kList) {
        FailKind(name, "a list");
    }
    Vals values;
    if (argument.items() != nullptr) {
        for (const stored::Argument* item : *argument.items()) {
            if (KindOf(*item) == ArgumentKind::kNone) {
                values.emplace_back();
            } else if (KindOf(*item) == ArgumentKind::kValue) {
                values.push_back(scope_.ValueOf(item->index()));
            } else {
                FailKind(name, "a list of tensors");
            }
        }
    }
    return values;
}

Expr Node::ReadSize(std::string_view name, const stored::Argument& argument) const {
    switch (KindOf(argument)) {
        case ArgumentKind::kSize:
            return scope_.SizeOf(argument.index());
        case ArgumentKind::kBool:
            return argument.index() != 0 ? 1 : 0;
        case ArgumentKind::kFloat:
            // Numbers like 2.0 where a schema has a Scalar.
            if (std::nearbyint(argument.number()) == argument.number() &&
                std::abs(argument.number()) < 0x1p53) {
                return static_cast<int64_t>(argument.number());
            }
            FailKind(name, "a whole number");
        default:
            FailKind(name, "a size");
    }
}

Expr Node::Size(std::string_view name) const {
    return ReadSize(name, Require(name));
}

Expr Node::Size(std::string_view name, const Expr& otherwise) const {
    return Has(name) ? Size(name) : otherwise;
}

std::vector<Expr> Node::Sizes(std::string_view name) const {
    const stored::Argument& argument = Require(name);
    if (KindOf(argument) != ArgumentKind::kList) {
        return {ReadSize(name, argument)};
    }
    std::vector<Expr> sizes;
    if (argument.items() != nullptr) {
        for (const stored::Argument* item : *argument.items()) {
            sizes.push_back(ReadSize(name, *item));
        }
    }
    return sizes;
}

int64_t Node::Int(std::string_view name) const {
    return builder_.sizes().Fix(Size(name));
}

int64_t Node::Int(std::string_view name, int64_t otherwise) const {
    return Has(name) ? Int(name) : otherwise;
}

std::vector<int64_t> Node::Ints(std::string_view name) const {
    std::vector<int64_t> numbers;
    for (const Expr& size : Sizes(name)) {
        numbers.push_back(builder_.sizes().Fix(size));
    }
    return numbers;
}

double Node::ReadFloat(std::string_view name, const stored::Argument& argument) const {
    if (KindOf(argument) == ArgumentKind::kFloat) {
        return argument.number();
    }
    if (KindOf(argument) == ArgumentKind::kValue) {
        FailUnsupported(fmt::format("its argument {} is a number that a run computes", name));
    }
    return static_cast<double>(builder_.sizes().Fix(ReadSize(name, argument)));
}

double Node::Float(std::string_view name) const {
    return ReadFloat(name, Require(name));
}

double Node::Float(std::string_view name, double otherwise) const {
    return Has(name) ? Float(name) : otherwise;
}

std::vector<double> Node::Floats(std::string_view name) const {
    const stored::Argument& argument = Require(name);
    if (KindOf(argument) != ArgumentKind::kList) {
        return {ReadFloat(name, argument)};
    }
    std::vector<double> numbers;
    if (argument.items() != nullptr) {
        for (const stored::Argument* item : *argument.items()) {
            numbers.push_back(ReadFloat(name, *item));
        }
    }
    return numbers;
}

bool Node::Bool(std::string_view name) const {
    const stored::Argument& argument = Require(name);
    if (KindOf(argument) != ArgumentKind::kBool) {
        FailKind(name, "true or false");
    }
    return argument.index() != 0;
}

bool Node::Bool(std::string_view name, bool otherwise) const {
    return Has(name) ? Bool(name) : otherwise;
}

std::vector<bool> Node::Bools(std::string_view name) const {
    const stored::Argument& argument = Require(name);
    std::vector<bool> values;
    if (argument.items() != nullptr) {
        for (const stored::Argument* item : *argument.items()) {
            values.push_back(item->index() != 0);
        }
    }
    return values;
}

std::string Node::Text(std::string_view name, std::string_view otherwise) const {
    const stored::Argument* argument = Find(name);
    if (argument == nullptr) {
        return std::string(otherwise);
    }
    if (KindOf(*argument) != ArgumentKind::kText) {
        FailKind(name, "a text");
    }
    return std::string(TextOf(argument->text()));
}

std::vector<int64_t> Node::AxesOrAll(std::string_view name, Val x) const {
    std::vector<int64_t> axes;
    if (Has(name)) {
        axes = Ints(name);
    }
    if (axes.empty()) {
        for (int64_t axis = 0; axis < x.rank(); ++axis) {
            axes.push_back(axis);
        }
        return axes;
    }
    // A tensor without dimensions has an axis 0 and -1, which is nothing.
    if (x.rank() == 0) {
        for (const int64_t axis : axes) {
            Builder::Axis(axis, 1);
        }
        return {};
    }
    return Builder::AxesOf(axes, x.rank());
}

}  // namespace fornax::torch_frontend
