// Random reductions, scans, sorts and products.
#include <algorithm>

#include "compiler/graph/testing/random_nodes.h"

namespace fornax::graph::testing {

bool RandomNodes::AddReduce() {
    const Known a = Pick();
    const ElementType type = ElementOf(a.id);
    Axes axes;
    double volume = 1;
    bool empty = false;
    for (size_t axis = 0; axis < RankOf(a.id); ++axis) {
        const Expr& dim = ShapeOf(a.id)[axis];
        if (random_.OneIn(2)) {
            axes.push_back(static_cast<int64_t>(axis));
            volume *= static_cast<double>(std::max<int64_t>(Most(dim), 1));
            empty = empty || !dim.is_constant() || dim.constant_part() == 0;
        }
    }
    if (axes.empty()) {
        return false;
    }
    Combine combine = Combine::kSum;
    if (type == ElementType::kBool) {
        combine = random_.OneIn(2) ? Combine::kAnd : Combine::kOr;
    } else if (!random_.OneIn(2) && !(empty && IsFloat(type))) {
        // The greatest of no floats is infinite, and no function here bounds what follows from
        // that.
        combine = random_.OneIn(2) ? Combine::kMax : Combine::kMin;
    } else if (IsInteger(type) && random_.OneIn(4)) {
        combine = random_.OneIn(2) ? Combine::kXor : Combine::kProduct;
    }
    Known known = a;
    if (IsInteger(type) && (empty || combine == Combine::kXor || combine == Combine::kProduct)) {
        known.bound = 2e19;
    } else if (combine == Combine::kSum) {
        known.bound *= volume;
        known.error *= volume;
    }
    return Fits(known, type) && Add(op::Reduce{combine, axes}, {a.id}, known);
}

bool RandomNodes::AddArgReduce() {
    const Known a = Pick();
    if (RankOf(a.id) == 0 || !a.exact) {
        return false;
    }
    const int64_t axis = RandomAxis(a.id);
    const Expr size = ShapeOf(a.id)[static_cast<size_t>(axis)];
    return Add(
        op::ArgReduce{random_.OneIn(2) ? Combine::kMax : Combine::kMin, axis, random_.OneIn(2)},
        {a.id}, {{}, static_cast<double>(Most(size)), true, 0});
}

bool RandomNodes::AddScan() {
    const Known a = Pick();
    if (RankOf(a.id) == 0 || ElementOf(a.id) == ElementType::kBool) {
        return false;
    }
    const int64_t axis = RandomAxis(a.id);
    const auto size = static_cast<double>(Most(ShapeOf(a.id)[static_cast<size_t>(axis)]));
    const Combine combine = random_.OneIn(2) ? Combine::kSum : Combine::kMax;
    Known known = a;
    if (combine == Combine::kSum) {
        known.bound *= std::max(1.0, size);
        known.error *= std::max(1.0, size);
    }
    const bool exclusive = combine == Combine::kSum && random_.OneIn(2);
    return Fits(known, ElementOf(a.id)) &&
           Add(op::Scan{combine, axis, exclusive, random_.OneIn(2)}, {a.id}, known);
}

void RandomNodes::AddInPlace() {
    if (!AddScan()) {
        return;
    }
    const Known a = pool_.back();
    pool_.pop_back();
    const Known b = Same(a);
    Add(op::Map{ScalarFunction::kMax}, {a.id, b.id},
        {{}, std::max(a.bound, b.bound), a.exact && b.exact, std::max(a.error, b.error)});
}

bool RandomNodes::AddSort() {
    const Known a = Pick();
    if (RankOf(a.id) == 0 || !a.exact) {
        return false;
    }
    const int64_t axis = RandomAxis(a.id);
    const Expr size = ShapeOf(a.id)[static_cast<size_t>(axis)];
    const Expr count = random_.OneIn(2) ? size : Expr(random_.Between(0, Hint(size)));
    if (!Add(op::Sort{axis, random_.OneIn(2), count}, {a.id}, a)) {
        return false;
    }
    const ValueId positions = graph().Producer(pool_.back().id)->results[1];
    pool_.push_back({positions, static_cast<double>(Most(size)), true, 0});
    return true;
}

bool RandomNodes::AddContract() {
    const Known a = Pick();
    const ElementType type = ElementOf(a.id);
    if (type == ElementType::kBool || RankOf(a.id) == 0) {
        return false;
    }
    op::Contract contract;
    contract.accumulate = type;
    if (random_.OneIn(2)) {
        const bool narrow = BytesOf(type) < 4;
        contract.accumulate = !narrow         ? type
                              : IsFloat(type) ? ElementType::kF32
                                              : ElementType::kI32;
    }
    contract.a = std::string("abcdefghijklmnop").substr(0, RankOf(a.id));
    std::vector<Expr> dims;
    double summed = 1;
    for (size_t i = 0; i < contract.a.size(); ++i) {
        const Expr& dim = ShapeOf(a.id)[i];
        const int64_t role = random_.Between(0, 2);  // of a alone, summed, of both
        if (role > 0) {
            contract.b += contract.a[i];
            dims.push_back(dim);
        }
        if (role == 1) {
            summed *= static_cast<double>(std::max<int64_t>(Most(dim), 1));
        } else {
            contract.result += contract.a[i];
        }
    }
    if (random_.OneIn(2)) {
        contract.b += 'x';
        contract.result += 'x';
        dims.emplace_back(random_.OneIn(4) ? RandomDim() : Expr(random_.Between(1, 6)));
    }
    std::shuffle(contract.result.begin(), contract.result.end(), random_.engine);
    const Shape shape(std::move(dims));
    if (!FitsSize(shape)) {
        return false;
    }
    Known b = {{}, 4, true, 0};
    if (random_.OneIn(3)) {  // another value of the graph
        for (const Known& other : pool_) {
            if (graph().TypeOf(other.id) == TensorType{type, shape}) {
                b = other;
            }
        }
    }
    if (!b.id.valid()) {
        b.id = Numbers(type, shape);
    }
    Known known = {{},
                   a.bound * b.bound * summed,
                   a.exact && b.exact,
                   (a.error * b.bound + b.error * a.bound) * summed};
    return Fits(known, contract.accumulate) && Add(contract, {a.id, b.id}, known);
}

}  // namespace fornax::graph::testing
