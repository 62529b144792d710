// Loop kernels computed one point after the other: the definition that generated code is tested
// against, so obvious rather than fast.
//
// f64 is computed in double. Every other float is computed in double and rounded to f32 after each
// operation; sums and products of reductions stay in double until their end, so that a reduction
// in f32, in whatever order, differs from this by its own rounding only.
//
// An expression whose value does not exist (it divides by 0 or leaves 64 bits) is outside of every
// dimension and range; as a scalar and as an extent it is 0.
#include <array>
#include <bit>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {
namespace {

// The type that a scalar of `type` is computed in.
ElementType ComputedType(ElementType type) {
    return IsFloat(type) && type != ElementType::kF64 ? ElementType::kF32 : type;
}

// The type that a reduction of `type` accumulates in.
ElementType AccumulatorType(ElementType type) {
    return IsFloat(type) ? ElementType::kF64 : type;
}

bool IsNan(const Scalar& value) {
    return value.is_float && std::isnan(value.number);
}

class Interpreter {
  public:
    Interpreter(const Kernel& kernel,
                const Bindings& sizes,
                std::span<std::vector<uint8_t>> buffers)
        : kernel_(kernel),
          scope_(FindScope(kernel)),
          buffers_(buffers),
          bindings_(sizes),
          cache_(kernel.scalars.size()) {
        for (const Loop& loop : scope_.variables) {
            values_.push_back(&(bindings_[loop.variable] = 0));
        }
    }

    Status CheckBindings() {
        if (buffers_.size() != kernel_.buffers.size()) {
            return Invalid(fmt::format("{} buffers are bound, not {}", buffers_.size(),
                                       kernel_.buffers.size()));
        }
        for (const auto& [symbol, range] : kernel_.sizes) {
            const auto found = bindings_.find(symbol);
            if (found == bindings_.end()) {
                return Invalid(fmt::format("the size {} is not bound", symbol.name()));
            }
            if (found->second < range.low || found->second > range.high) {
                return Invalid(fmt::format("the size {} is {}, not {} to {}", symbol.name(),
                                           found->second, range.low, range.high));
            }
        }
        for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
            const Buffer& buffer = kernel_.buffers[i];
            int64_t count = 1;
            for (const Expr& expr : buffer.type.shape.dims()) {
                const std::optional<int64_t> dim = expr.Evaluate(bindings_);
                if (!dim || *dim < 0 || __builtin_mul_overflow(count, *dim, &count) ||
                    count > kMaxElements) {
                    return Invalid(
                        fmt::format("the buffer {} has no size with these sizes", buffer.name));
                }
                dims_[i].push_back(*dim);
            }
            const size_t size_bytes = static_cast<size_t>(count) * BytesOf(buffer.type.element);
            if (buffers_[i].size() != size_bytes) {
                return Invalid(fmt::format("the buffer {} has {} bytes, not {}", buffer.name,
                                           buffers_[i].size(), size_bytes));
            }
        }
        return OkStatus();
    }

    void Run() {
        for (const Buffer& local : kernel_.locals) {
            const int64_t count = *local.type.shape.Volume().constant();
            locals_.emplace_back(static_cast<size_t>(count) * BytesOf(local.type.element));
        }
        Outer(0);
    }

  private:
    // What a store does, computed before any store of its point happens.
    struct Write {
        BufferId buffer;
        std::optional<size_t> element;
        Scalar value;
    };
    using NamedScalar = std::pair<ScalarId, int64_t*>;
    // A scalar's value while its free variables keep theirs.
    struct Cached {
        bool valid = false;
        std::vector<int64_t> values;
        Scalar scalar;
    };

    Error Invalid(std::string_view clause) const {
        return {ErrorCode::kInvalidArgument,
                fmt::format("The kernel {} cannot run: {}.", kernel_.name, clause)};
    }

    // The parallel loops, then the sequential ones inside of them.
    void Outer(size_t index) {
        const bool phases = !kernel_.phases.empty();
        if (phases && index == kernel_.parallel.size()) {
            RunPhases(When::kBefore);
            Iterations(index);
            RunPhases(When::kAfter);
            return;
        }
        if (index == kernel_.parallel.size() + kernel_.sequential.size()) {
            std::vector<Write> writes;
            Compute(kernel_.stores, writes);
            Apply(writes);
            return;
        }
        ForEach(index, [&] { Outer(index + 1); });
    }

    void Iterations(size_t index) {
        if (index == kernel_.parallel.size() + kernel_.sequential.size()) {
            RunPhases(When::kEach);
            return;
        }
        ForEach(index, [&] { Iterations(index + 1); });
    }

    void RunPhases(When when) {
        for (const Phase& phase : kernel_.phases) {
            if (phase.when == when) {
                // What local tensors hold is another in each phase.
                std::fill(cache_.begin(), cache_.end(), Cached());
                std::vector<Write> writes;
                Nest(phase.lanes, [&] { Compute(phase.stores, writes); });
                Apply(writes);
            }
        }
    }

    template <typename F>
    void ForEach(size_t variable, const F& body) {
        const Loop& loop = scope_.variables[variable];
        const int64_t extent = Evaluate(loop.extent).value_or(0);
        for (int64_t i = 0; i < extent; ++i) {
            *values_[variable] = i;
            body();
        }
    }

    void Compute(std::span<const Store> stores, std::vector<Write>& writes) {
        for (const Store& store : stores) {
            if (!store.condition.valid() || Value(store.condition).integer != 0) {
                writes.push_back(
                    {store.buffer, Element(store.buffer, store.index), Value(store.value)});
            }
        }
    }

    void Apply(std::span<const Write> writes) {
        for (const Write& write : writes) {
            if (write.element) {
                const ElementType type = kernel_[write.buffer].type.element;
                WriteElement(type, write.value,
                             DataOf(write.buffer) + *write.element * BytesOf(type));
            }
        }
    }

    uint8_t* DataOf(BufferId buffer) {
        return Kernel::IsLocal(buffer) ? locals_[buffer.value() - kFirstLocal].data()
                                       : buffers_[buffer.value()].data();
    }

    std::optional<int64_t> Evaluate(const Expr& expr) {
        if (expr.is_constant()) {
            return expr.constant_part();
        }
        for (const auto& [scalar, value] : ScalarsIn(expr)) {
            *value = Value(scalar).integer;
        }
        return expr.EvaluateWith([this](const ExprAtom& symbol) { return ValueOf(symbol); });
    }

    // The scalars that an expression of the kernel names, and where their values are bound.
    const std::vector<NamedScalar>& ScalarsIn(const Expr& expr) {
        const auto [found, added] = scalars_in_.try_emplace(&expr);
        if (added) {
            for (const Symbol& symbol : expr.Symbols()) {
                if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
                    found->second.emplace_back(*scalar, &bindings_[symbol]);
                }
            }
        }
        return found->second;
    }

    // A symbol's value. Its place is looked up once for each place of the symbol in an expression:
    // names take longer to compare than all the rest of an evaluation.
    std::optional<int64_t> ValueOf(const ExprAtom& symbol) {
        const auto [found, added] = places_.try_emplace(&symbol);
        if (added) {
            const auto bound = bindings_.find(*symbol.symbol);
            found->second = bound == bindings_.end() ? nullptr : &bound->second;
        }
        return found->second == nullptr ? std::nullopt : std::optional(*found->second);
    }

    // The element's position in its buffer, if the index is inside.
    std::optional<size_t> Element(BufferId buffer, const std::vector<Expr>& index) {
        int64_t element = 0;
        for (size_t axis = 0; axis < index.size(); ++axis) {
            const int64_t dim = Kernel::IsLocal(buffer)
                                    ? *kernel_[buffer].type.shape[axis].constant()
                                    : dims_[buffer.value()][axis];
            const std::optional<int64_t> i = Evaluate(index[axis]);
            if (!i || *i < 0 || *i >= dim) {
                return std::nullopt;
            }
            element = element * dim + *i;
        }
        return static_cast<size_t>(element);
    }

    Scalar Value(ScalarId id) {
        const VariableSet free = scope_.free[id.value()];
        if (const Cached& cached = cache_[id.value()]; cached.valid && HaveValues(free, cached)) {
            return cached.scalar;
        }
        const ScalarNode& node = kernel_[id];
        const Scalar scalar =
            std::visit([&](const auto& value) { return Compute(node.type, value); }, node.value);
        Cached& cached = cache_[id.value()];
        cached.valid = true;
        cached.scalar = scalar;
        cached.values.clear();
        ForEachOf(free, [&](size_t variable) { cached.values.push_back(*values_[variable]); });
        return scalar;
    }

    // Whether the variables have the values that a scalar was computed with.
    bool HaveValues(VariableSet free, const Cached& cached) const {
        size_t at = 0;
        bool same = true;
        ForEachOf(free,
                  [&](size_t variable) { same &= cached.values[at++] == *values_[variable]; });
        return same;
    }

    template <typename F>
    static void ForEachOf(VariableSet variables, const F& body) {
        for (; variables != 0; variables &= variables - 1) {
            body(static_cast<size_t>(std::countr_zero(variables)));
        }
    }

    Scalar Compute(ElementType, const Constant& constant) { return constant.value; }

    Scalar Compute(ElementType type, const Load& load) {
        if (const std::optional<size_t> element = Element(load.buffer, load.index)) {
            return ReadElement(type, DataOf(load.buffer) + *element * BytesOf(type));
        }
        if (load.otherwise.valid()) {
            return Value(load.otherwise);
        }
        return IsFloat(type) ? Scalar::Float(0) : Scalar::Integer(0);
    }

    Scalar Compute(ElementType, const Index& index) {
        return Scalar::Integer(Evaluate(index.value).value_or(0));
    }

    Scalar Compute(ElementType, const InRange& range) {
        const std::optional<int64_t> value = Evaluate(range.value);
        const std::optional<int64_t> extent = Evaluate(range.extent);
        return Scalar::Integer(value && extent && *value >= 0 && *value < *extent ? 1 : 0);
    }

    Scalar Compute(ElementType, const Map& map) {
        std::vector<Scalar> arguments;
        for (const ScalarId argument : map.arguments) {
            arguments.push_back(Value(argument));
        }
        const ElementType type = kernel_[map.arguments.back()].type;
        return EvaluateScalar(map.function, ComputedType(type), arguments);
    }

    Scalar Compute(ElementType type, const Cast& cast) {
        return ConvertScalar(Value(cast.argument), kernel_[cast.argument].type, type, cast.overflow,
                             cast.rounding);
    }

    Scalar Compute(ElementType type, const Bitcast& cast) {
        std::array<uint8_t, 8> bytes = {};
        WriteElement(kernel_[cast.argument].type, Value(cast.argument), bytes.data());
        return ReadElement(type, bytes.data());
    }

    Scalar Compute(ElementType type, const Reduce& reduce) {
        const ElementType accumulator = AccumulatorType(type);
        Scalar result = NeutralElement(reduce.combine, type);
        Nest(reduce.loops, [&] {
            result = EvaluateCombine(reduce.combine, accumulator, result, Value(reduce.body));
        });
        return ConvertScalar(result, accumulator, ComputedType(type));
    }

    Scalar Compute(ElementType, const ArgReduce& reduce) {
        const ElementType type = ComputedType(kernel_[reduce.body].type);
        const size_t variable = *scope_.Find(reduce.loop.variable);
        std::optional<Scalar> best;
        int64_t position = 0;
        Nest({&reduce.loop, 1}, [&] {
            const Scalar value = Value(reduce.body);
            if (!best || Precedes(reduce, type, value, *best)) {
                best = value;
                position = *values_[variable];
            }
        });
        return Scalar::Integer(position);
    }

    // Whether a later value takes the place of the best one. NaN is the greatest and the least.
    static bool Precedes(const ArgReduce& reduce,
                         ElementType type,
                         const Scalar& value,
                         const Scalar& best) {
        if (IsNan(value) || IsNan(best)) {
            return IsNan(value) && (reduce.last || !IsNan(best));
        }
        const bool greatest = reduce.combine == Combine::kMax;
        const std::array<Scalar, 2> ordered = {greatest ? best : value, greatest ? value : best};
        const ScalarFunction less =
            reduce.last ? ScalarFunction::kLessEqual : ScalarFunction::kLess;
        return EvaluateScalar(less, type, ordered).integer != 0;
    }

    // Every point of a reduction's loops. A variable that an outer reduction has too gets its value
    // back: reductions inside of one another may share it.
    template <typename F>
    void Nest(std::span<const Loop> loops, const F& body) {
        if (loops.empty()) {
            body();
            return;
        }
        const size_t variable = *scope_.Find(loops[0].variable);
        const int64_t outer = *values_[variable];
        ForEach(variable, [&] { Nest(loops.subspan(1), body); });
        *values_[variable] = outer;
    }

    const Kernel& kernel_;
    const Scope scope_;
    std::span<std::vector<uint8_t>> buffers_;
    std::vector<std::vector<uint8_t>> locals_;
    std::map<size_t, std::vector<int64_t>> dims_;  // of each buffer
    Bindings bindings_;
    std::vector<int64_t*> values_;  // of the scope's variables, in bindings_
    std::vector<Cached> cache_;     // of each scalar
    std::unordered_map<const Expr*, std::vector<NamedScalar>> scalars_in_;
    std::unordered_map<const ExprAtom*, const int64_t*>
        places_;  // of symbols in bindings_, which keeps them where they are
};

}  // namespace

Status Interpret(const Kernel& kernel,
                 const Bindings& sizes,
                 std::span<std::vector<uint8_t>> buffers) {
    FORNAX_RETURN_IF_ERROR(Verify(kernel));
    Interpreter interpreter(kernel, sizes, buffers);
    FORNAX_RETURN_IF_ERROR(interpreter.CheckBindings());
    interpreter.Run();
    return OkStatus();
}

}  // namespace fornax::graph::loop
