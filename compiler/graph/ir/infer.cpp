// The rule of each primitive: which operands fit, and the types of its results.
//
// One Infer function a structure of operation.h. Errors are clauses that name the values and the
// limit.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph {
namespace {

using Types = std::vector<TensorType>;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status CheckAxis(int64_t axis, const Shape& shape) {
    if (axis < 0 || axis >= static_cast<int64_t>(shape.rank())) {
        return Invalid(fmt::format("the axis {} is not one of {}", axis, shape.ToString()));
    }
    return OkStatus();
}

Status CheckIntegers(const TensorType& type, const char* what) {
    if (!IsInteger(type.element)) {
        return Invalid(fmt::format("{} is {}, not integers", what, type.ToString()));
    }
    return OkStatus();
}

// The sources of a gather or scatter of `data`, by operands of `shape`.
Status CheckSources(const std::vector<int64_t>& sources,
                    const Shape& data,
                    const Shape& shape,
                    std::span<const TensorType> indices,
                    SizeFacts& sizes) {
    if (sources.size() != data.rank()) {
        return Invalid(fmt::format("{} sources are given for the {} dimensions of the data",
                                   sources.size(), data.rank()));
    }
    for (const int64_t source : sources) {
        if (source >= static_cast<int64_t>(shape.rank()) ||
            source < -static_cast<int64_t>(indices.size())) {
            return Invalid(
                fmt::format("the source {} names neither a dimension nor an operand", source));
        }
    }
    for (const TensorType& index : indices) {
        FORNAX_RETURN_IF_ERROR(CheckIntegers(index, "an index"));
        if (!sizes.Equal(index.shape, shape)) {
            return Invalid(fmt::format("an index has the shape {}, the elements {}",
                                       index.shape.ToString(), shape.ToString()));
        }
    }
    return OkStatus();
}

struct Infer {
    std::span<const TensorType> in;
    std::span<const Body> bodies;
    SizeFacts& sizes;

    // The number of operands is checked before: see OperandCount.

    Result<Types> operator()(const op::Map& map) const {
        const bool select = map.function == ScalarFunction::kSelect;
        const ElementType element = in[select ? 1 : 0].element;
        for (size_t i = 0; i < in.size(); ++i) {
            const ElementType wanted = select && i == 0 ? ElementType::kBool : element;
            if (in[i].element != wanted) {
                return Invalid(fmt::format("operand {} of {} is {}, not {}", i, Name(map.function),
                                           Name(in[i].element), Name(wanted)));
            }
            if (!sizes.Equal(in[i].shape, in[0].shape)) {
                return Invalid(fmt::format("the operands' shapes are {} and {}",
                                           in[0].shape.ToString(), in[i].shape.ToString()));
            }
        }
        if (!Accepts(map.function, element)) {
            return Invalid(
                fmt::format("{} is not defined for {}", Name(map.function), Name(element)));
        }
        return Types{{ResultType(map.function, element), in[0].shape}};
    }

    Result<Types> operator()(const op::Cast& cast) const {
        if (in[0].element == ElementType::kString || cast.to == ElementType::kString) {
            return Invalid("strings are converted on the host only");
        }
        return Types{{cast.to, in[0].shape}};
    }

    Result<Types> operator()(const op::Bitcast& cast) const {
        if (BytesOf(in[0].element) != BytesOf(cast.to) || BytesOf(cast.to) == 0) {
            return Invalid(
                fmt::format("{} and {} are not of one width", Name(in[0].element), Name(cast.to)));
        }
        return Types{{cast.to, in[0].shape}};
    }

    Result<Types> operator()(const op::Reduce& reduce) const {
        const TensorType& type = in[0];
        if (!Accepts(reduce.combine, type.element)) {
            return Invalid(
                fmt::format("{} of {} is not defined", Name(reduce.combine), Name(type.element)));
        }
        std::set<int64_t> axes;
        for (const int64_t axis : reduce.axes) {
            FORNAX_RETURN_IF_ERROR(CheckAxis(axis, type.shape));
            if (!axes.insert(axis).second || axis != *axes.rbegin()) {
                return Invalid(fmt::format("the axis {} is not in ascending order", axis));
            }
        }
        std::vector<Expr> dims;
        for (size_t axis = 0; axis < type.shape.rank(); ++axis) {
            if (!axes.contains(static_cast<int64_t>(axis))) {
                dims.push_back(type.shape[axis]);
            }
        }
        return Types{{type.element, Shape(std::move(dims))}};
    }

    Result<Types> operator()(const op::ArgReduce& reduce) const {
        FORNAX_RETURN_IF_ERROR(CheckAxis(reduce.axis, in[0].shape));
        if ((reduce.combine != Combine::kMax && reduce.combine != Combine::kMin) ||
            !Accepts(reduce.combine, in[0].element)) {
            return Invalid(fmt::format("the position of {} of {} is not defined",
                                       Name(reduce.combine), Name(in[0].element)));
        }
        std::vector<Expr> dims(in[0].shape.dims().begin(), in[0].shape.dims().end());
        const Expr size = dims[static_cast<size_t>(reduce.axis)];
        dims.erase(dims.begin() + reduce.axis);
        const Shape result(std::move(dims));
        if (!sizes.Less(0, size) && !sizes.Equal(result.Volume(), 0)) {
            return Invalid(fmt::format("axis {} of {} has no elements to choose from", reduce.axis,
                                       in[0].shape.ToString()));
        }
        return Types{{ElementType::kI64, result}};
    }

    Result<Types> operator()(const op::Scan& scan) const {
        FORNAX_RETURN_IF_ERROR(CheckAxis(scan.axis, in[0].shape));
        if (!Accepts(scan.combine, in[0].element)) {
            return Invalid(fmt::format("a scan by {} of {} is not defined", Name(scan.combine),
                                       Name(in[0].element)));
        }
        return Types{in[0]};
    }

    Result<Types> operator()(const op::Sort& sort) const {
        FORNAX_RETURN_IF_ERROR(CheckAxis(sort.axis, in[0].shape));
        if (in[0].element == ElementType::kString) {
            return Invalid("strings are sorted on the host only");
        }
        Shape shape = in[0].shape;
        const auto axis = static_cast<size_t>(sort.axis);
        if (sizes.Less(sort.count, 0) || sizes.Less(shape[axis], sort.count)) {
            return Invalid(fmt::format("{} elements are wanted of {}", sort.count.ToString(),
                                       shape[axis].ToString()));
        }
        shape[axis] = sort.count;
        return Types{{in[0].element, shape}, {ElementType::kI64, shape}};
    }

    Result<Types> operator()(const op::Reshape& reshape) const {
        if (!sizes.Equal(in[0].shape.Volume(), reshape.shape.Volume())) {
            return Invalid(fmt::format("{} and {} have different numbers of elements",
                                       in[0].shape.ToString(), reshape.shape.ToString()));
        }
        return Types{{in[0].element, reshape.shape}};
    }

    Result<Types> operator()(const op::Permute& permute) const {
        const size_t rank = in[0].shape.rank();
        const std::set<int64_t> distinct(permute.order.begin(), permute.order.end());
        if (permute.order.size() != rank || distinct.size() != rank ||
            (rank > 0 &&
             (*distinct.begin() != 0 || *distinct.rbegin() != static_cast<int64_t>(rank) - 1))) {
            return Invalid(fmt::format("[{}] is not an order of the axes of {}",
                                       fmt::join(permute.order, ","), in[0].shape.ToString()));
        }
        std::vector<Expr> dims;
        for (const int64_t axis : permute.order) {
            dims.push_back(in[0].shape[static_cast<size_t>(axis)]);
        }
        return Types{{in[0].element, Shape(std::move(dims))}};
    }

    Result<Types> operator()(const op::Broadcast& broadcast) const {
        const Shape& shape = in[0].shape;
        bool fits = shape.rank() == broadcast.shape.rank();
        for (size_t axis = 0; fits && axis < shape.rank(); ++axis) {
            fits = shape[axis] == Expr(1) || sizes.Equal(shape[axis], broadcast.shape[axis]);
        }
        if (!fits) {
            return Invalid(fmt::format("{} does not repeat to {}", shape.ToString(),
                                       broadcast.shape.ToString()));
        }
        return Types{{in[0].element, broadcast.shape}};
    }

    Result<Types> operator()(const op::Slice& slice) const {
        const Shape& shape = in[0].shape;
        if (slice.starts.size() != shape.rank() || slice.steps.size() != shape.rank() ||
            slice.shape.rank() != shape.rank()) {
            return Invalid(fmt::format("{} starts, {} steps and {} sizes are given for {}",
                                       slice.starts.size(), slice.steps.size(), slice.shape.rank(),
                                       shape.ToString()));
        }
        for (size_t axis = 0; axis < shape.rank(); ++axis) {
            const Expr& start = slice.starts[axis];
            const int64_t step = slice.steps[axis];
            const Expr end = start + (slice.shape[axis] - 1) * step;
            const bool fits = step != 0 && step != INT64_MIN &&
                              (sizes.Equal(slice.shape[axis], 0) ||
                               (sizes.LessEqual(0, start) && sizes.Less(start, shape[axis]) &&
                                sizes.LessEqual(0, end) && sizes.Less(end, shape[axis])));
            if (!fits) {
                return Invalid(fmt::format(
                    "axis {} of {} has no {} elements from {} on in steps of {}", axis,
                    shape.ToString(), slice.shape[axis].ToString(), start.ToString(), step));
            }
        }
        return Types{{in[0].element, slice.shape}};
    }

    Result<Types> operator()(const op::Pad& pad) const {
        const Shape& shape = in[0].shape;
        if (in[1].shape.rank() != 0 || in[1].element != in[0].element) {
            return Invalid(
                fmt::format("{} cannot surround {}", in[1].ToString(), in[0].ToString()));
        }
        if (pad.low.size() != shape.rank() || pad.high.size() != shape.rank() ||
            pad.interior.size() != shape.rank()) {
            return Invalid(fmt::format("{}, {} and {} amounts are given for {}", pad.low.size(),
                                       pad.high.size(), pad.interior.size(), shape.ToString()));
        }
        Shape result = shape;
        for (size_t axis = 0; axis < shape.rank(); ++axis) {
            const int64_t interior = pad.interior[axis];
            if (interior < 0 || interior > INT32_MAX || sizes.Less(pad.low[axis], 0) ||
                sizes.Less(pad.high[axis], 0)) {
                return Invalid(fmt::format("axis {} is padded by {}, {} and {} between", axis,
                                           pad.low[axis].ToString(), pad.high[axis].ToString(),
                                           interior));
            }
            const Expr between = interior == 0 || sizes.Equal(shape[axis], 0)
                                     ? Expr(0)
                                     : (shape[axis] - 1) * interior;
            result[axis] = pad.low[axis] + shape[axis] + between + pad.high[axis];
        }
        return Types{{in[0].element, result}};
    }

    Result<Types> operator()(const op::Window& window) const {
        FORNAX_RETURN_IF_ERROR(CheckAxis(window.axis, in[0].shape));
        if (window.stride <= 0 || window.dilation <= 0 || window.stride > INT32_MAX ||
            window.dilation > INT32_MAX || sizes.Less(window.size, 1)) {
            return Invalid(fmt::format("windows of {} elements have the stride {}, the dilation {}",
                                       window.size.ToString(), window.stride, window.dilation));
        }
        Shape shape = in[0].shape;
        Expr& dim = shape[static_cast<size_t>(window.axis)];
        const Expr span = (window.size - 1) * window.dilation + 1;
        dim = sizes.Less(dim, span) ? Expr(0) : FloorDiv(dim - span, window.stride) + 1;
        shape.mutable_dims().push_back(window.size);
        return Types{{in[0].element, shape}};
    }

    Result<Types> operator()(const op::Concat& concat) const {
        FORNAX_RETURN_IF_ERROR(CheckAxis(concat.axis, in[0].shape));
        Shape result = in[0].shape;
        const auto axis = static_cast<size_t>(concat.axis);
        for (size_t i = 1; i < in.size(); ++i) {
            Shape other = in[i].shape;
            if (other.rank() != result.rank() || in[i].element != in[0].element) {
                return Invalid(
                    fmt::format("the operands are {} and {}", in[0].ToString(), in[i].ToString()));
            }
            const Expr size = other[axis];
            other[axis] = result[axis];
            if (!sizes.Equal(other, result)) {
                return Invalid(
                    fmt::format("the operands are {} and {}", in[0].ToString(), in[i].ToString()));
            }
            result[axis] += size;
        }
        return Types{{in[0].element, result}};
    }

    Result<Types> operator()(const op::Gather& gather) const {
        FORNAX_RETURN_IF_ERROR(
            CheckSources(gather.sources, in[0].shape, gather.shape, in.subspan(1), sizes));
        return Types{{in[0].element, gather.shape}};
    }

    Result<Types> operator()(const op::Scatter& scatter) const {
        FORNAX_RETURN_IF_ERROR(
            CheckSources(scatter.sources, in[0].shape, in[1].shape, in.subspan(2), sizes));
        if (in[1].element != in[0].element ||
            (scatter.combine != Combine::kReplace && !Accepts(scatter.combine, in[0].element))) {
            return Invalid(fmt::format("{} does not update {} by {}", Name(in[1].element),
                                       Name(in[0].element), Name(scatter.combine)));
        }
        return Types{in[0]};
    }

    Result<Types> operator()(const op::Contract& contract) const {
        const std::array<std::string_view, 2> labels = {contract.a, contract.b};
        std::map<char, Expr> dims;
        for (size_t i = 0; i < 2; ++i) {
            if (labels[i].size() != in[i].shape.rank()) {
                return Invalid(
                    fmt::format("the labels {} do not fit {}", labels[i], in[i].ToString()));
            }
            std::set<char> seen;
            for (size_t axis = 0; axis < labels[i].size(); ++axis) {
                const auto [found, inserted] = dims.emplace(labels[i][axis], in[i].shape[axis]);
                if (!seen.insert(labels[i][axis]).second ||
                    (!inserted && !sizes.Equal(found->second, in[i].shape[axis]))) {
                    return Invalid(fmt::format("the label {} does not fit {} and {}",
                                               labels[i][axis], in[0].ToString(),
                                               in[1].ToString()));
                }
            }
        }
        const auto is_number = [](ElementType type) { return IsFloat(type) || IsInteger(type); };
        if (!is_number(in[0].element) || !is_number(in[1].element) ||
            !is_number(contract.accumulate) ||
            IsFloat(in[0].element) != IsFloat(contract.accumulate) ||
            IsFloat(in[1].element) != IsFloat(contract.accumulate)) {
            return Invalid(fmt::format("{} and {} are not multiplied to {}", Name(in[0].element),
                                       Name(in[1].element), Name(contract.accumulate)));
        }
        std::vector<Expr> shape;
        std::set<char> seen;
        for (const char label : contract.result) {
            const auto found = dims.find(label);
            if (found == dims.end() || !seen.insert(label).second) {
                return Invalid(fmt::format("the result's label {} is not one of {} and {}", label,
                                           contract.a, contract.b));
            }
            shape.push_back(found->second);
        }
        return Types{{contract.accumulate, Shape(std::move(shape))}};
    }

    Result<Types> operator()(const op::Iota& iota) const {
        FORNAX_RETURN_IF_ERROR(CheckAxis(iota.axis, iota.shape));
        if (iota.element == ElementType::kBool || iota.element == ElementType::kString) {
            return Invalid(fmt::format("positions cannot be {}", Name(iota.element)));
        }
        return Types{{iota.element, iota.shape}};
    }

    Result<Types> operator()(const op::SizeOf&) const { return Types{{ElementType::kI64, {}}}; }

    Result<Types> operator()(const op::RandomBits& random) const {
        if (in[0] != TensorType{ElementType::kU32, {2}}) {
            return Invalid(fmt::format("the key is {}, not u32[2]", in[0].ToString()));
        }
        return Types{{ElementType::kU32, random.shape}};
    }

    // Whether `operands` fit the inputs of a body from `first` on.
    Status CheckBody(const Graph& body,
                     std::span<const TensorType> operands,
                     size_t first,
                     bool is_composite = false) const {
        if (body.inputs().size() != first + operands.size()) {
            return Invalid(fmt::format("the body {} has {} inputs, not {}", body.name(),
                                       body.inputs().size(), first + operands.size()));
        }
        // First, because the inputs' sizes may be the body's own symbols. The body of a composite
        // becomes part of the graph; the other bodies check what their host calls tell.
        sizes.Merge(body.sizes(), is_composite ? std::set<Symbol>() : SizesToldWithin(body));
        for (size_t i = 0; i < operands.size(); ++i) {
            const TensorType& wanted = body.TypeOf(body.inputs()[first + i]);
            if (wanted.element != operands[i].element ||
                !sizes.Equal(wanted.shape, operands[i].shape)) {
                return Invalid(fmt::format("the body {} takes {} as input {}, not {}", body.name(),
                                           wanted.ToString(), first + i, operands[i].ToString()));
            }
        }
        return OkStatus();
    }

    static Types OutputTypes(const Graph& body, size_t first = 0) {
        Types types;
        for (size_t i = first; i < body.outputs().size(); ++i) {
            types.push_back(body.TypeOf(body.outputs()[i].value));
        }
        return types;
    }

    Result<Types> operator()(const op::Composite&) const {
        FORNAX_RETURN_IF_ERROR(CheckBody(*bodies[0], in, 0, true));
        return OutputTypes(*bodies[0]);
    }

    Result<Types> operator()(const op::If&) const {
        if (in[0] != TensorType{ElementType::kBool, {}}) {
            return Invalid(fmt::format("the condition is {}, not one bool", in[0].ToString()));
        }
        FORNAX_RETURN_IF_ERROR(CheckBody(*bodies[0], in.subspan(1), 0));
        FORNAX_RETURN_IF_ERROR(CheckBody(*bodies[1], in.subspan(1), 0));
        const Types types = OutputTypes(*bodies[0]), others = OutputTypes(*bodies[1]);
        if (types.size() != others.size()) {
            return Invalid(
                fmt::format("the branches give {} and {} results", types.size(), others.size()));
        }
        for (size_t i = 0; i < types.size(); ++i) {
            if (types[i].element != others[i].element ||
                !sizes.Equal(types[i].shape, others[i].shape)) {
                return Invalid(fmt::format("the branches' result {} is {} and {}", i,
                                           types[i].ToString(), others[i].ToString()));
            }
        }
        return types;
    }

    Result<Types> operator()(const op::Loop& loop) const {
        const auto carried = static_cast<size_t>(loop.carried);
        if (loop.carried < 0 || in.size() < 2 + carried ||
            in[0] != TensorType{ElementType::kI64, {}} ||
            in[1] != TensorType{ElementType::kBool, {}}) {
            return Invalid(fmt::format(
                "{} operands do not begin with a count, a condition and {} carried values",
                in.size(), loop.carried));
        }
        const Graph& body = *bodies[0];
        FORNAX_RETURN_IF_ERROR(CheckBody(body, in.subspan(2), 1));
        if (body.TypeOf(body.inputs()[0]) != TensorType{ElementType::kI64, {}} ||
            body.outputs().size() != 1 + carried ||
            body.TypeOf(body.outputs()[0].value) != TensorType{ElementType::kBool, {}}) {
            return Invalid(fmt::format("the body {} has the wrong inputs or outputs", body.name()));
        }
        Types types = OutputTypes(body, 1);
        for (size_t i = 0; i < carried; ++i) {
            if (types[i].element != in[2 + i].element ||
                !sizes.Equal(types[i].shape, in[2 + i].shape)) {
                return Invalid(fmt::format("the carried value {} is {} and becomes {}", i,
                                           in[2 + i].ToString(), types[i].ToString()));
            }
        }
        return types;
    }

    Result<Types> operator()(const op::HostCall& call) const { return call.types; }
    Result<Types> operator()(const op::ReadState& read) const { return Types{read.type}; }
    Result<Types> operator()(const op::WriteState&) const { return Types{}; }
};

// How many operands and bodies an operation has; `most` operands -1 means any number.
struct Counts {
    size_t least = 1;
    int64_t most = 1;
    size_t bodies = 0;
};

struct CountOf {
    Counts operator()(const op::Map& map) const {
        const size_t count = ArgumentCount(map.function);
        return {count, static_cast<int64_t>(count)};
    }
    Counts operator()(const op::Pad&) const { return {2, 2}; }
    Counts operator()(const op::Concat&) const { return {1, -1}; }
    Counts operator()(const op::Gather&) const { return {1, -1}; }
    Counts operator()(const op::Scatter&) const { return {2, -1}; }
    Counts operator()(const op::Contract&) const { return {2, 2}; }
    Counts operator()(const op::Iota&) const { return {0, 0}; }
    Counts operator()(const op::SizeOf&) const { return {0, 0}; }
    Counts operator()(const op::Composite&) const { return {0, -1, 1}; }
    Counts operator()(const op::If&) const { return {1, -1, 2}; }
    Counts operator()(const op::Loop&) const { return {2, -1, 1}; }
    Counts operator()(const op::HostCall&) const { return {0, -1}; }
    Counts operator()(const op::ReadState&) const { return {0, 0}; }
    Counts operator()(const auto&) const { return {1, 1}; }
};

Status CheckResult(const TensorType& type, const SizeFacts& sizes) {
    if (type.shape.rank() > kMaxRank) {
        return Invalid(fmt::format("the result has {} dimensions, at most {} are possible",
                                   type.shape.rank(), kMaxRank));
    }
    int64_t elements = 1;
    for (const Expr& dim : type.shape.dims()) {
        const int64_t size = sizes.Hint(dim);
        if (size < 0) {
            return Invalid(fmt::format("the result's shape is {}", type.shape.ToString()));
        }
        if (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) ||
            elements > kMaxElements) {
            return Invalid(fmt::format("the result {} has more than {} elements", type.ToString(),
                                       kMaxElements));
        }
    }
    return OkStatus();
}

}  // namespace

Result<std::vector<TensorType>> InferTypes(const Operation& operation,
                                           std::span<const TensorType> operands,
                                           std::span<const Body> bodies,
                                           SizeFacts& sizes) {
    const Counts counts = std::visit(CountOf{}, operation);
    if (operands.size() < counts.least ||
        (counts.most >= 0 && operands.size() > static_cast<size_t>(counts.most)) ||
        bodies.size() != counts.bodies) {
        return Invalid(fmt::format("{} operands and {} bodies do not fit the operation",
                                   operands.size(), bodies.size()));
    }
    FORNAX_ASSIGN_OR_RETURN(Types types, std::visit(Infer{operands, bodies, sizes}, operation));
    for (const TensorType& type : types) {
        FORNAX_RETURN_IF_ERROR(CheckResult(type, sizes));
    }
    return types;
}

}  // namespace fornax::graph
