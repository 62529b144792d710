// Sums of products of few rows: matrix times vector, and times a handful of vectors.
//
// Such a product is bound by reading b once. An invocation computes one column with an accumulator
// for each row: invocations side by side read neighbouring columns, and each element of b is used
// for all rows while it is in a register.
#include "compiler/graph/loop/emitter.h"
#include "compiler/graph/loop/few_rows.h"

namespace fornax::graph::loop {

namespace {

// Points of the innermost loops.
constexpr int64_t kMostUnrolled = 32;

}  // namespace

// The innermost loops are written out: what weights of few bits have in common there, words and
// scales, is loaded once.
size_t Emitter::UnrolledFrom(std::span<const Loop> loops) const {
    size_t first = loops.size();
    int64_t points = 1;
    while (first > 0) {
        const std::optional<int64_t> extent = loops[first - 1].extent.constant();
        if (!extent || *extent < 1 || points * *extent > kMostUnrolled) {
            break;
        }
        points *= *extent;
        --first;
    }
    return first;
}

Ids Emitter::FewRowsSums(const Product& product, const Ids& initial, const AtRow& at_row) {
    const ElementType type = kernel_[product.sum].type;
    const size_t first_unrolled = UnrolledFrom(product.k);
    const std::span<const Loop> all(product.k);
    const std::span<const Loop> outer = all.first(first_unrolled);
    const std::span<const Loop> inner = all.subspan(first_unrolled);
    // A factor of b that is the same at all points that are written out, such as the scale of a
    // block, multiplies their sum.
    VariableSet inside = 0;
    for (const Loop& loop : inner) {
        inside |= VariableSet{1} << *scope_.Find(loop.variable);
    }
    ScalarId term_of_b = product.b, factor;
    const auto* map = std::get_if<Map>(&kernel_[product.b].value);
    if (map != nullptr && map->function == ScalarFunction::kMul && type == ElementType::kF32) {
        for (size_t i = 0; i < 2; ++i) {
            if ((scope_.free[map->arguments[i].value()] & inside) == 0 && inside != 0) {
                factor = map->arguments[i];
                term_of_b = map->arguments[1 - i];
            }
        }
    }
    const auto point = [&](std::span<const Id> carried) {
        Ids next;
        const Id b = Value(term_of_b);
        for (uint32_t row = 0; row < carried.size(); ++row) {
            at_row(row, [&] {
                const Ids operands = {Value(product.a), b};
                const Id term = functions_.Apply(ScalarFunction::kMul, type, operands);
                next.push_back(functions_.CombineValues(Combine::kSum, type, carried[row], term));
            });
        }
        return next;
    };
    const std::vector<bool> needed = Needed(std::vector{product.a, product.b});
    const auto unrolled = [&](std::span<const Id> carried) {
        Hoist(needed);
        const VariableSet saved = bound_variables_;
        bound_variables_ |= inside;
        const Ids zeros(carried.size(), F(0));
        Ids next = Unrolled(inner, factor.valid() ? std::span<const Id>(zeros) : carried, point);
        bound_variables_ = saved;
        for (size_t row = 0; factor.valid() && row < next.size(); ++row) {
            next[row] = b_.Op(spv::Op::OpFAdd, b_.F32(),
                              {carried[row], Binary(spv::Op::OpFMul, next[row], Value(factor))});
        }
        return next;
    };
    if (outer.empty()) {
        return unrolled(initial);
    }
    const size_t merges = merges_.size();
    std::vector<bool> varying = needed;
    VariableSet variables = 0;
    for (const Loop& loop : outer) {
        variables |= VariableSet{1} << *scope_.Find(loop.variable);
    }
    for (size_t i = 0; i < varying.size(); ++i) {
        varying[i] = varying[i] && (scope_.free[i] & variables) != 0;
    }
    const Nest nest = Collapse(outer, UsesIn(varying, {}));
    Hoist(needed);
    const VariableSet saved = bound_variables_;
    bound_variables_ |= variables;
    Ids result = ForNest(nest, 0, initial, unrolled);
    bound_variables_ = saved;
    merges_.erase(merges_.begin() + static_cast<std::ptrdiff_t>(merges), merges_.end());
    return result;
}

void Emitter::EmitFewRows(const Product& product) {
    const ElementType type = kernel_[product.sum].type;
    const auto rows = static_cast<uint32_t>(*PointsOf(product.m).constant());
    std::vector<const Store*> stores;
    for (const Store& store : kernel_.stores) {
        stores.push_back(&store);
    }
    local_size_ = target_.subgroup_size;
    group_ = {local_size_, 1, 1};
    const Expr columns = PointsOf(product.n);
    const Expr chunks = CeilDiv(columns, local_size_).Simplify(domain_);
    const Id workgroup = WorkgroupIndex(PointsOf(product.batch) * chunks);
    lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex);
    const AtRow at_row = [&](uint32_t row, const std::function<void()>& code) {
        OpenScope();
        BindFromIndex(product.m, U(row));
        code();
        for (const Loop& loop : product.m) {
            Unbind(loop.variable);
        }
        CloseScope();
    };
    const auto sums = [&] {
        const Ids initial(rows, ConstantOf(type, NeutralElement(Combine::kSum, type)));
        return FewRowsSums(product, initial, at_row);
    };
    const auto emit_columns = [&](Id column) {
        OpenScope();
        BindFromIndex(product.n, column);
        const Ids results = sums();
        for (uint32_t row = 0; row < rows; ++row) {
            at_row(row, [&] {
                const Id sum = IsFloat(type) ? results[row] : Wrap(type, results[row]);
                scopes_.back().emplace(product.sum.value(), sum);
                EmitStores(stores);
            });
        }
        CloseScope();
    };
    b_.If(in_grid_ == 0 ? b_.True() : in_grid_, [&] {
        OpenScope();
        const Id count = EmitExpr(chunks);
        BindFromIndex(product.batch, b_.UDiv(workgroup, count));
        for (const std::vector<Loop>* loops : {&product.batch, &product.n}) {
            for (const Loop& loop : *loops) {
                bound_variables_ |= VariableSet{1} << *scope_.Find(loop.variable);
            }
        }
        const Id first = b_.Mul(b_.UMod(workgroup, count), U(local_size_));
        const Id column = b_.Add(first, lane_);
        const Id end = EmitExpr(Simplified(columns));
        // The condition of the last columns would be one of every load.
        const std::optional<int64_t> constant = columns.constant();
        const Id whole = constant && *constant % local_size_ == 0
                             ? b_.True()
                             : b_.Not(b_.ULess(end, b_.Add(first, U(local_size_))));
        b_.If(
            whole,
            [&] {
                emit_columns(column);
                return Ids();
            },
            [&] {
                b_.If(b_.ULess(column, end), [&] { emit_columns(column); });
                return Ids();
            });
        CloseScope();
    });
}

}  // namespace fornax::graph::loop
