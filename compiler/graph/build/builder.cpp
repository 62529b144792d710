// The builder itself: sources, nodes, bodies. views.cpp has the functions of Vals, known.cpp what
// is known of values.
#include "compiler/graph/build/builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"

namespace fornax::graph {

void FailInvalid(const std::string& clause) {
    throw BuildError(ErrorCode::kInvalidArgument, clause);
}

void FailUnsupported(const std::string& clause) {
    throw BuildError(ErrorCode::kUnsupported, clause);
}

std::string PrintableClause(std::string clause) {
    constexpr size_t kMaxLength = 4000;
    if (clause.size() > kMaxLength) {
        clause = clause.substr(0, kMaxLength) + "...";
    }
    return Printable(clause);
}

TensorType Val::type() const {
    return builder_->graph_.TypeOf(id_);
}

ElementType Val::element() const {
    return builder_->graph_.TypeOf(id_).element;
}

int64_t Val::rank() const {
    return static_cast<int64_t>(builder_->graph_.ShapeOf(id_).rank());
}

Expr Val::dim(int64_t axis) const {
    return builder_->graph_.ShapeOf(id_)[static_cast<size_t>(Builder::Axis(axis, rank()))];
}

int64_t Builder::Axis(int64_t axis, int64_t rank) {
    if (axis < -rank || axis >= rank) {
        if (rank == 0) {
            FailInvalid(fmt::format("the axis is {}, but the tensor has no dimensions", axis));
        }
        FailInvalid(fmt::format("the axis {} is not in {}..{}", axis, -rank, rank - 1));
    }
    return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> Builder::AxesOf(std::span<const int64_t> axes, int64_t rank) {
    std::vector<int64_t> result;
    for (const int64_t axis : axes) {
        result.push_back(Axis(axis, rank));
    }
    std::ranges::sort(result);
    if (std::ranges::adjacent_find(result) != result.end()) {
        FailInvalid("an axis is given twice");
    }
    return result;
}

// --- Sources -------------------------------------------------------------------------------------

Val Builder::Input(std::string name, TensorType type) {
    return {*this, graph_.AddInput(std::move(name), std::move(type))};
}

Val Builder::Constant(Tensor tensor, std::string name) {
    if (tensor.element == ElementType::kString && tensor.strings == nullptr) {
        FailInvalid("it needs a number where the tensor is of strings");
    }
    return {*this, graph_.AddConstant(name.empty() ? name_ : std::move(name), std::move(tensor))};
}

namespace {

Tensor NumberOf(ElementType element, const graph::Scalar& value) {
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(element, {}, &data);
    WriteElement(element, value, data);
    return tensor;
}

}  // namespace

Val Builder::Scalar(ElementType element, double value) {
    return Constant(NumberOf(element, Scalar::Float(value)));
}

Val Builder::Integer(ElementType element, int64_t value) {
    return Constant(NumberOf(element, IsFloat(element) ? Scalar::Float(static_cast<double>(value))
                                                       : Scalar::Integer(value)));
}

Val Builder::Text(std::string value) {
    Tensor tensor;
    tensor.element = ElementType::kString;
    tensor.strings = std::make_shared<const std::vector<std::string>>(
        std::vector<std::string>{std::move(value)});
    return Constant(std::move(tensor));
}

Val Builder::Integers(std::span<const int64_t> values) {
    return Constant(Tensor::FromIntegers({static_cast<int64_t>(values.size())}, values));
}

Val Builder::Sizes(std::span<const Expr> values) {
    return FromContents(ElementType::kI64, Shape{static_cast<int64_t>(values.size())}, values);
}

Val Builder::FromContents(ElementType element, const Shape& shape, std::span<const Expr> values) {
    const bool constant =
        std::ranges::all_of(values, [](const Expr& value) { return value.is_constant(); });
    if (constant) {
        const std::optional<std::vector<int64_t>> dims = shape.Constants();
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(element, *dims, &data);
        for (size_t i = 0; i < values.size(); ++i) {
            const int64_t value = *values[i].constant();
            WriteElement(element,
                         IsFloat(element) ? Scalar::Float(static_cast<double>(value))
                                          : Scalar::Integer(value),
                         data + i * BytesOf(element));
        }
        return Constant(std::move(tensor));
    }
    // What is built here has known elements, too, but is not to be built from them.
    struct Restore {
        bool& flag;
        bool before;
        ~Restore() { flag = before; }
    } restore{building_contents_, building_contents_};
    building_contents_ = true;
    Vals parts;
    std::vector<int64_t> run;
    const auto end_run = [&] {
        if (!run.empty()) {
            parts.push_back(Cast(Integers(run), element));
            run.clear();
        }
    };
    for (const Expr& value : values) {
        if (const std::optional<int64_t> number = value.constant()) {
            run.push_back(*number);
            continue;
        }
        end_run();
        parts.push_back(Reshape(Cast(Size(value), element), {1}));
    }
    end_run();
    const Val result = Reshape(Concat(parts, 0), shape);
    contents_[result.id()] = std::vector<Expr>(values.begin(), values.end());
    return result;
}

Val Builder::Size(const Expr& value) {
    if (const std::optional<int64_t> number = value.constant()) {
        return Integer(ElementType::kI64, *number);
    }
    Val& known = sizes_[value.ToString()];
    if (!known) {
        known = AddOne(op::SizeOf{value}, {});
        contents_[known.id()] = {value};
    }
    return known;
}

Val Builder::Full(ElementType element, const Shape& shape, double value) {
    return BroadcastTo(Scalar(element, value), shape);
}

Val Builder::Iota(ElementType element, const Shape& shape, int64_t axis) {
    return AddOne(op::Iota{element, shape, axis}, {});
}

Val Builder::RandomBits(Val key, const Shape& shape) {
    return AddOne(op::RandomBits{shape}, {key});
}

// --- Nodes ---------------------------------------------------------------------------------------

Vals Builder::Add(Operation operation, const Vals& operands, std::vector<Body> bodies) {
    std::vector<ValueId> ids;
    for (const Val& operand : operands) {
        ids.push_back(operand.id());
    }
    Result<NodeId> node =
        graph_.AddNode(name_, std::move(operation), std::move(ids), std::move(bodies));
    if (!node.ok()) {
        throw BuildError(node.error().code, node.error().message);
    }
    for (const ValueId id : graph_[*node].results) {
        RequireVisibleSizes(graph_.TypeOf(id));
    }
    Fold(*node);
    const std::vector<ValueId>& results = graph_[*node].results;
    Vals values;
    for (const ValueId id : results) {
        values.emplace_back(*this, id);
    }
    if (values.size() == 1 && !building_contents_ &&
        graph_[values[0].id()].kind == ValueKind::kResult) {
        std::optional<std::vector<Expr>> contents = ContentsOf(graph_[*node]);
        if (contents.has_value()) {
            const TensorType type = values[0].type();
            const bool view = graph_.ProducerAs<op::Reshape>(values[0].id()) != nullptr;
            if (view) {
                contents_[values[0].id()] = std::move(*contents);
            } else {
                return {FromContents(type.element, type.shape, *contents)};
            }
        }
    }
    return values;
}

Shape Builder::CommonShape(std::span<const Shape> shapes) {
    size_t rank = 0;
    for (const Shape& shape : shapes) {
        rank = std::max(rank, shape.rank());
    }
    std::vector<Expr> dims(rank, Expr(1));
    for (const Shape& shape : shapes) {
        for (size_t i = 0; i < shape.rank(); ++i) {
            Expr& dim = dims[rank - shape.rank() + i];
            const Expr& other = shape[i];
            if (dim == other || other == Expr(1)) {
                continue;
            }
            if (dim == Expr(1)) {
                dim = other;
            } else if (dim.is_constant() && other.is_constant()) {
                FailInvalid(fmt::format("the sizes {} and {} of the operands {} do not fit",
                                        dim.ToString(), other.ToString(), [&] {
                                            std::string text;
                                            for (const Shape& one : shapes) {
                                                text += (text.empty() ? "" : ", ") + one.ToString();
                                            }
                                            return text;
                                        }()));
            } else if (sizes().Equal(dim, other)) {
                dim = dim.is_constant() ? dim : other.is_constant() ? other : dim;
            } else if (sizes().Equal(dim, 1)) {
                dim = other;
            } else if (!sizes().Equal(other, 1)) {
                FailInvalid(fmt::format("the sizes {} and {} of operands are not the same",
                                        dim.ToString(), other.ToString()));
            }
        }
    }
    return Shape(std::move(dims));
}

Val Builder::Map(ScalarFunction function, Vals operands) {
    const bool select = function == ScalarFunction::kSelect;
    if (select && operands[0].element() != ElementType::kBool) {
        FailInvalid("the condition is not a bool");
    }
    if (!Accepts(function, operands[select ? 1 : 0].element())) {
        FailUnsupported(fmt::format("{} is not defined for {}", Name(function),
                                    Name(operands[select ? 1 : 0].element())));
    }
    std::vector<Shape> shapes;
    for (const Val& operand : operands) {
        shapes.push_back(operand.shape());
    }
    const Shape shape = CommonShape(shapes);
    for (Val& operand : operands) {
        operand = BroadcastTo(operand, shape);
    }
    return AddOne(op::Map{function}, operands);
}

void Builder::RequireVisibleSizes(const TensorType& type) const {
    if (hidden_sizes_.empty()) {
        return;
    }
    for (const Expr& dim : type.shape.dims()) {
        for (const Symbol& symbol : dim.Symbols()) {
            if (hidden_sizes_.contains(symbol)) {
                FailUnsupported(
                    fmt::format("its result is {}, where {} depends on the data "
                                "within a loop or a branch",
                                type.ToString(), symbol.name()));
            }
        }
    }
}

Body Builder::MakeBody(const std::string& name,
                       const Vals& operands,
                       const BodyFunction& function,
                       size_t varying) {
    Body body = BuildBody(name, operands, function, varying);
    for (const auto& [symbol, hint] : body->sizes().hints()) {
        if (!sizes().hints().contains(symbol)) {
            hidden_sizes_.insert(symbol);
        }
    }
    sizes().Merge(body->sizes(), hidden_sizes_);
    return body;
}

Body Builder::BuildBody(const std::string& name,
                        const Vals& operands,
                        const BodyFunction& function,
                        size_t varying) {
    auto body = std::make_shared<Graph>(name);
    body->sizes().Merge(sizes());
    Builder builder(*body);
    builder.SetName(name_);
    Vals inputs;
    std::map<ValueId, Val> outer;
    for (size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i]) {
            inputs.emplace_back();
            continue;
        }
        inputs.push_back(builder.Input(fmt::format("{}", i), operands[i].type()));
        if (i < varying) {
            continue;
        }
        outer[inputs.back().id()] = operands[i];
        const auto contents = contents_.find(operands[i].id());
        if (contents != contents_.end()) {
            builder.contents_[inputs.back().id()] = contents->second;
        }
    }
    builder.SetInputValue([&](ValueId id) -> std::optional<Tensor> {
        const auto found = outer.find(id);
        return found == outer.end() || &found->second.builder() != this
                   ? std::nullopt
                   : TryEvaluate(found->second);
    });
    const Vals outputs = function(builder, std::move(inputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
        body->AddOutput(fmt::format("{}", i), outputs[i].id());
    }
    body->Compact();
    return body;
}

Vals Builder::Composite(std::string name,
                        Attributes attributes,
                        const Vals& operands,
                        const BodyFunction& function) {
    Body body = BuildBody(name, operands, function, 0);
    sizes().Merge(body->sizes());
    Vals given;
    std::vector<int64_t> present;
    for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i]) {
            given.push_back(operands[i]);
            present.push_back(static_cast<int64_t>(i));
        }
    }
    // What the operands are, for templates: which of the operator's were given.
    if (given.size() != operands.size()) {
        attributes["operands"] = std::move(present);
    }
    return Add(op::Composite{std::move(name), std::move(attributes)}, given, {std::move(body)});
}

Vals Builder::Loop(Val count, const Vals& carried, const Vals& read, const BodyFunction& function) {
    Vals inputs = {Integer(ElementType::kI64, 0)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    inputs.insert(inputs.end(), read.begin(), read.end());
    const BodyFunction iteration = [&](Builder& b, Vals values) {
        Vals results = {b.Integer(ElementType::kBool, 1)};
        const Vals next = function(b, std::move(values));
        results.insert(results.end(), next.begin(), next.end());
        return results;
    };
    Body body = MakeBody("loop", inputs, iteration, 1 + carried.size());
    Vals operands = {count, Integer(ElementType::kBool, 1)};
    operands.insert(operands.end(), inputs.begin() + 1, inputs.end());
    return Add(op::Loop{static_cast<int64_t>(carried.size())}, operands, {std::move(body)});
}

Vals Builder::HostCall(std::string name,
                       Attributes attributes,
                       const Vals& operands,
                       std::vector<TensorType> types) {
    return Add(op::HostCall{std::move(name), std::move(attributes), std::move(types)}, operands);
}

Expr Builder::UnknownSize(std::string_view what, int64_t hint, Range range) {
    std::string name = fmt::format("{}.{}", what, unknown_sizes_++);
    while (sizes().hints().contains(Symbol(name))) {
        name = fmt::format("{}.{}", what, unknown_sizes_++);
    }
    return sizes().Declare(name, hint, range);
}

}  // namespace fornax::graph
