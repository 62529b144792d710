// Random views, and nodes that move elements.
#include <algorithm>

#include "compiler/graph/testing/random_nodes.h"
#include "compiler/graph/testing/random_tensor.h"

namespace fornax::graph::testing {

bool RandomNodes::AddReshape() {
    const Known a = Pick();
    const Shape& from = ShapeOf(a.id);
    if (from.Constants() && random_.OneIn(2)) {
        std::vector<int64_t> factors;
        int64_t rest = *from.Volume().constant();
        for (int64_t factor = 2; rest > 1 && factor <= rest; ++factor) {
            for (; rest % factor == 0; rest /= factor) {
                factors.push_back(factor);
            }
        }
        const int64_t volume = *from.Volume().constant();
        std::vector<int64_t> dims(
            static_cast<size_t>(random_.Between(volume == 1 ? 0 : 1, random_.OneIn(8) ? 8 : 4)), 1);
        if (volume == 0) {
            dims[0] = 0;
        }
        for (const int64_t factor : factors) {
            dims[static_cast<size_t>(random_.Between(0, static_cast<int64_t>(dims.size()) - 1))] *=
                factor;
        }
        return Add(op::Reshape{Shape::Of(dims)}, {a.id}, a);
    }
    // Neighbours join, a dimension splits, dimensions of 1 come and go.
    std::vector<Expr> dims;
    for (const Expr& dim : from.dims()) {
        if (!dims.empty() && random_.OneIn(3)) {
            dims.back() *= dim;
        } else if (dim != Expr(1) || random_.OneIn(2)) {
            const int64_t part = random_.Between(2, 4);
            if (random_.OneIn(3) && Hint(dim) % part == 0) {
                const bool first = random_.OneIn(2);
                dims.push_back(first ? Expr(part) : FloorDiv(dim, part));
                dims.push_back(first ? FloorDiv(dim, part) : Expr(part));
            } else {
                dims.push_back(dim);
            }
        }
        if (random_.OneIn(6)) {
            dims.emplace_back(1);
        }
    }
    return dims.size() <= 8 && Add(op::Reshape{Shape(std::move(dims))}, {a.id}, a);
}

bool RandomNodes::AddPermute() {
    const Known a = Pick();
    Axes order;
    for (size_t i = 0; i < RankOf(a.id); ++i) {
        order.push_back(static_cast<int64_t>(i));
    }
    std::shuffle(order.begin(), order.end(), random_.engine);
    return Add(op::Permute{order}, {a.id}, a);
}

bool RandomNodes::AddBroadcast() {
    const Known a = Pick();
    Shape shape = ShapeOf(a.id);
    bool any = false;
    for (Expr& dim : shape.mutable_dims()) {
        if (Hint(dim) == 1 && random_.OneIn(2)) {
            dim = RandomDim();
            any = true;
        }
    }
    return any && FitsSize(shape) && Add(op::Broadcast{shape}, {a.id}, a);
}

bool RandomNodes::AddSlice() {
    const Known a = Pick();
    op::Slice slice;
    for (const Expr& dim : ShapeOf(a.id).dims()) {
        const int64_t hint = Hint(dim);
        Expr start(0), count = dim;
        int64_t step = 1;
        if (random_.OneIn(2) && hint > 0) {
            switch (random_.Between(0, 3)) {
                case 0:  // any part of the size there is
                    start = random_.Between(0, hint - 1);
                    step = random_.OneIn(2) ? 1 : random_.OneIn(2) ? -1 : random_.Between(2, 3);
                    count =
                        random_.Between(0, 1 + (step > 0 ? (hint - 1 - start.constant_part()) / step
                                                         : start.constant_part()));
                    break;
                case 1:  // backwards
                    start = dim - 1;
                    step = -1;
                    break;
                case 2:  // all from a place on
                    start = random_.Between(0, hint);
                    count = dim - start;
                    break;
                default:
                    step = random_.Between(2, 3);
                    count = CeilDiv(dim, step);
                    break;
            }
        }
        slice.starts.push_back(start);
        slice.steps.push_back(step);
        slice.shape.mutable_dims().push_back(count);
    }
    return Add(slice, {a.id}, a);
}

bool RandomNodes::AddPad() {
    const Known a = Pick();
    op::Pad pad;
    for (size_t i = 0; i < RankOf(a.id); ++i) {
        pad.low.push_back(!random_.OneIn(2)  ? Expr(0)
                          : random_.OneIn(4) ? RandomDim()
                                             : Expr(random_.Between(0, 2)));
        pad.high.emplace_back(random_.OneIn(2) ? random_.Between(0, 2) : 0);
        pad.interior.push_back(random_.OneIn(4) ? random_.Between(1, 2) : 0);
    }
    const ElementType type = ElementOf(a.id);
    const ValueId value =
        graph_.AddConstant("pad", RandomTensor(type, {}, LowOf(type), HighOf(type)));
    Known known = a;
    known.bound = std::max(known.bound, 4.0);
    return Add(pad, {a.id, value}, known);
}

bool RandomNodes::AddWindow() {
    const Known a = Pick();
    if (RankOf(a.id) == 0) {
        return false;
    }
    const int64_t axis = RandomAxis(a.id);
    const int64_t size = Hint(ShapeOf(a.id)[static_cast<size_t>(axis)]);
    return size > 0 && Add(op::Window{axis, random_.Between(1, std::min<int64_t>(size, 3)),
                                      random_.Between(1, 2), random_.Between(1, 2)},
                           {a.id}, a);
}

bool RandomNodes::AddConcat() {
    const Known a = Pick();
    if (RankOf(a.id) == 0) {
        return false;
    }
    const Known b = Same(a);
    std::vector<ValueId> operands = {a.id, b.id};
    if (random_.OneIn(3)) {
        operands.push_back(a.id);
    }
    return Add(op::Concat{RandomAxis(a.id)}, operands,
               {{}, std::max(a.bound, b.bound), a.exact && b.exact, std::max(a.error, b.error)});
}

// One source per dimension of `data`: a dimension of `shape` or the next index operand.
std::vector<int64_t> RandomNodes::RandomSources(ValueId data,
                                                const Shape& shape,
                                                std::vector<ValueId>& operands,
                                                bool distinct) {
    std::vector<int64_t> sources;
    int64_t indices = 0;
    std::vector<bool> taken(shape.rank(), false);
    const std::vector<Expr> dims(ShapeOf(data).dims().begin(), ShapeOf(data).dims().end());
    for (const Expr& dim : dims) {
        const int64_t source =
            shape.rank() == 0 ? -1 : random_.Between(-1, static_cast<int64_t>(shape.rank()) - 1);
        if (source >= 0 && !(distinct && taken[static_cast<size_t>(source)])) {
            taken[static_cast<size_t>(source)] = true;
            sources.push_back(source);
            continue;
        }
        const ElementType type = random_.OneIn(2) ? ElementType::kI64 : ElementType::kI32;
        ValueId index;
        if (const auto constants = shape.Constants()) {
            index = graph_.AddConstant("index", RandomTensor(type, *constants, -1, Hint(dim)));
        } else {
            index = graph_[*graph_.AddNode(
                               "index",
                               op::Iota{type, shape,
                                        random_.Between(0, static_cast<int64_t>(shape.rank()) - 1)},
                               {})]
                        .results[0];
        }
        operands.push_back(index);
        sources.push_back(--indices);
    }
    return sources;
}

bool RandomNodes::AddGather() {
    const Known a = Pick();
    std::vector<ValueId> operands = {a.id};
    op::Gather gather;
    gather.shape = RandomShape();
    gather.sources = RandomSources(a.id, gather.shape, operands, false);
    return Add(gather, operands, a);
}

bool RandomNodes::AddScatter() {
    const Known a = Pick(), updates = Any();
    const int64_t volume = Most(ShapeOf(updates.id).Volume());
    if (ElementOf(updates.id) != ElementOf(a.id) || volume > 200) {
        return false;
    }
    std::vector<ValueId> operands = {a.id, updates.id};
    op::Scatter scatter;
    scatter.sources = RandomSources(a.id, Shape(ShapeOf(updates.id)), operands, true);
    scatter.combine = ElementOf(a.id) == ElementType::kBool || random_.OneIn(2) ? Combine::kReplace
                                                                                : Combine::kSum;
    Known known = {{},
                   std::max(a.bound, updates.bound),
                   a.exact && updates.exact,
                   std::max(a.error, updates.error)};
    if (scatter.combine == Combine::kSum) {
        known.bound = a.bound + updates.bound * static_cast<double>(volume);
        known.error = a.error + updates.error * static_cast<double>(volume);
    }
    return Fits(known, ElementOf(a.id)) && Add(scatter, operands, known);
}

}  // namespace fornax::graph::testing
