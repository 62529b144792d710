// The rules of loop kernels. Kernels may come from files: nothing here trusts an id or a size.
#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/ir/parse_expr.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/limits.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {
namespace {

Error Clause(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

Status CheckCount(std::string_view what, size_t count, size_t limit) {
    if (count > limit) {
        return Clause(fmt::format("it has {} {}, more than {}", count, what, limit));
    }
    return OkStatus();
}

bool IsStored(ElementType type) {
    return static_cast<size_t>(type) <= static_cast<size_t>(kLastElementType) && BytesOf(type) != 0;
}

template <typename Enum>
bool IsEnumerator(Enum value, Enum last) {
    return static_cast<size_t>(value) <= static_cast<size_t>(last);
}

// The number of atoms and terms, as far as `limit`: expressions share parts, so that small ones may
// be large when written out.
size_t CountParts(const Expr& expr, size_t limit) {
    size_t count = 1;
    for (const ExprTerm& term : expr.terms()) {
        count += 1 + term.factors.size();
        for (const AtomRef& atom : term.factors) {
            if (count > limit) {
                return count;
            }
            if (atom->kind != AtomKind::kSymbol) {
                count += CountParts(atom->a, limit - count);
                count += count > limit ? 0 : CountParts(atom->b, limit - count);
            }
        }
    }
    return count;
}

// Works through a kernel in its own order. Its errors are clauses; Verify() makes sentences.
class Verifier {
  public:
    explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

    Status Head() {
        FORNAX_RETURN_IF_ERROR(CheckCount("buffers", kernel_.buffers.size(), kMaxBuffers));
        FORNAX_RETURN_IF_ERROR(
            CheckCount("loops", kernel_.parallel.size() + kernel_.sequential.size(), kMaxLoops));
        FORNAX_RETURN_IF_ERROR(CheckCount("scalars", kernel_.scalars.size(), kMaxScalars));
        FORNAX_RETURN_IF_ERROR(CheckCount("stores", kernel_.stores.size(), kMaxStores));
        FORNAX_RETURN_IF_ERROR(CheckCount("sizes", kernel_.sizes.size(), kMaxSizes));
        FORNAX_RETURN_IF_ERROR(CheckCount("local tensors", kernel_.locals.size(), kMaxLocals));
        FORNAX_RETURN_IF_ERROR(CheckCount("phases", kernel_.phases.size(), kMaxPhases));
        FORNAX_RETURN_IF_ERROR(Phases());
        FORNAX_RETURN_IF_ERROR(CheckName(kernel_.name));
        if (!IsEnumerator(kernel_.mapping, Mapping::kAttention)) {
            return Clause("its mapping does not exist");
        }
        if (kernel_.row_loops > kernel_.parallel.size()) {
            return Clause(fmt::format("a row has {} loops of {} parallel ones", kernel_.row_loops,
                                      kernel_.parallel.size()));
        }
        if (kernel_.mapping != Mapping::kRow && kernel_.row_loops != 0) {
            return Clause("it has loops of a row without the mapping to rows");
        }
        for (const auto& [symbol, range] : kernel_.sizes) {
            if (!IsSymbolName(symbol.name()) || symbol.name().starts_with('$')) {
                return Clause(fmt::format("'{}' is no name of a size", symbol.name()));
            }
            if (range.low < 0 || range.high > UINT32_MAX || range.low > range.high) {
                return Clause(fmt::format("the size {} is {} to {}, not within 0 to {}",
                                          symbol.name(), range.low, range.high, UINT32_MAX));
            }
        }
        return OkStatus();
    }

    Status Buffers() {
        std::set<std::string_view> names;
        for (const std::vector<Buffer>* buffers : {&kernel_.buffers, &kernel_.locals}) {
            for (const Buffer& buffer : *buffers) {
                if (!names.insert(buffer.name).second) {
                    return Clause(fmt::format("two buffers have the name '{}'", buffer.name));
                }
                FORNAX_RETURN_IF_ERROR(CheckName(buffer.name));
                if (!IsStored(buffer.type.element)) {
                    return Clause(
                        fmt::format("the buffer {} is of a type that has no bytes", buffer.name));
                }
                const Shape& shape = buffer.type.shape;
                FORNAX_RETURN_IF_ERROR(
                    CheckCount("dimensions in a buffer", shape.rank(), kMaxRank));
                for (const Expr& dim : shape.dims()) {
                    FORNAX_RETURN_IF_ERROR(CheckSizesOnly(dim));
                }
            }
        }
        return CheckLocals();
    }

    // Collects the variables; extents of reductions are checked with their scalars.
    Status Loops() {
        std::vector<const std::vector<Loop>*> outer_loops = {&kernel_.parallel,
                                                             &kernel_.sequential};
        for (const Phase& phase : kernel_.phases) {
            outer_loops.push_back(&phase.lanes);
        }
        for (const std::vector<Loop>* loops : outer_loops) {
            for (const Loop& loop : *loops) {
                FORNAX_RETURN_IF_ERROR(CheckSizesOnly(loop.extent));
                if (Find(loop.variable) != nullptr) {
                    return Clause(
                        fmt::format("two loops have the variable {}", loop.variable.name()));
                }
                FORNAX_RETURN_IF_ERROR(AddVariable(loop));
            }
        }
        const size_t outer = variables_.size();
        for (const ScalarNode& node : kernel_.scalars) {
            const std::span<const Loop> loops = LoopsOf(node);
            FORNAX_RETURN_IF_ERROR(CheckCount("loops in a reduction", loops.size(), kMaxLoops));
            for (size_t i = 0; i < loops.size(); ++i) {
                const Symbol& variable = loops[i].variable;
                const bool twice =
                    std::any_of(loops.begin(), loops.begin() + i,
                                [&](const Loop& l) { return l.variable == variable; });
                const Loop* known = Find(variable);
                if (twice || (known != nullptr && known < variables_.data() + outer)) {
                    return Clause(fmt::format("two loops have the variable {}", variable.name()));
                }
                FORNAX_RETURN_IF_ERROR(CheckExprSize(loops[i].extent));
                if (known != nullptr && known->extent != loops[i].extent) {
                    return Clause(fmt::format("the variable {} has the extents {} and {}",
                                              variable.name(), known->extent.ToString(),
                                              loops[i].extent.ToString()));
                }
                if (known == nullptr) {
                    FORNAX_RETURN_IF_ERROR(AddVariable(loops[i]));
                }
            }
        }
        return OkStatus();
    }

    Status CheckScalar(size_t index) {
        const ScalarNode& node = kernel_.scalars[index];
        scalars_ = index;
        if (!IsStored(node.type)) {
            return Clause("its type has no bytes");
        }
        const Result<ElementType> type =
            std::visit([&](const auto& value) { return Check(node, value); }, node.value);
        if (!type.ok()) {
            return type.error();
        }
        if (*type != node.type) {
            return Clause(fmt::format("its type is {}, not {}", Name(node.type), Name(*type)));
        }
        return OkStatus();
    }

    Status CheckStore(const Store& store) {
        scalars_ = kernel_.scalars.size();
        FORNAX_RETURN_IF_ERROR(CheckIndex(store.buffer, store.index));
        const Buffer& buffer = kernel_[store.buffer];
        if (!buffer.written && !Kernel::IsLocal(store.buffer)) {
            return Clause(fmt::format("the buffer {} is not written", buffer.name));
        }
        FORNAX_ASSIGN_OR_RETURN(const ElementType type, TypeOf(store.value));
        if (type != buffer.type.element) {
            return Clause(fmt::format("{} is stored to the buffer {} of {}", Name(type),
                                      buffer.name, Name(buffer.type.element)));
        }
        if (store.condition.valid()) {
            FORNAX_ASSIGN_OR_RETURN(const ElementType condition, TypeOf(store.condition));
            if (condition != ElementType::kBool) {
                return Clause(fmt::format("its condition is {}, not bool", Name(condition)));
            }
        }
        return OkStatus();
    }

    // After all scalars: reductions bind only what is theirs, stores see no variable of a
    // reduction, and reductions are not nested too deep.
    Status CheckScopes() {
        const Scope scope = FindScope(kernel_);
        for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
            const ScalarNode& node = kernel_.scalars[i];
            for (const Loop& loop : LoopsOf(node)) {
                for (const Loop& own : LoopsOf(node)) {
                    const VariableSet bit = VariableSet{1} << *scope.Find(own.variable);
                    if ((scope.FreeIn(loop.extent) & bit) != 0) {
                        return Clause(fmt::format("the extent {} in %{} depends on {} itself",
                                                  loop.extent.ToString(), i, own.variable.name()));
                    }
                }
            }
            const VariableSet inner =
                scope.free[i] & ~(scope.parallel | scope.sequential | scope.lanes);
            if (std::popcount(inner) > kMaxNestedVariables) {
                return Clause(fmt::format("%{} depends on {} variables of reductions, more than {}",
                                          i, std::popcount(inner), kMaxNestedVariables));
            }
        }
        size_t index = 0;
        for (const Store& store : kernel_.stores) {
            FORNAX_RETURN_IF_ERROR(
                CheckScope(scope, store, index++, scope.parallel | scope.sequential));
        }
        for (const Phase& phase : kernel_.phases) {
            VariableSet bound = scope.parallel;
            bound |= phase.when == When::kEach ? scope.sequential : 0;
            for (const Loop& loop : phase.lanes) {
                bound |= VariableSet{1} << *scope.Find(loop.variable);
            }
            for (const Store& store : phase.stores) {
                FORNAX_RETURN_IF_ERROR(CheckScope(scope, store, index++, bound));
            }
        }
        return OkStatus();
    }

  private:
    Status Phases() const {
        size_t stores = 0;
        When last = When::kBefore;
        for (const Phase& phase : kernel_.phases) {
            if (!IsEnumerator(phase.when, When::kAfter) || phase.when < last) {
                return Clause("its phases are not in order");
            }
            last = phase.when;
            stores += phase.stores.size();
            FORNAX_RETURN_IF_ERROR(CheckCount("loops in a phase", phase.lanes.size(), kMaxLoops));
        }
        FORNAX_RETURN_IF_ERROR(CheckCount("stores", stores, kMaxStores));
        if (kernel_.phases.empty() && !kernel_.locals.empty()) {
            return Clause("it has local tensors without phases");
        }
        if (!kernel_.phases.empty() &&
            (!kernel_.stores.empty() || kernel_.mapping != Mapping::kFlat)) {
            return Clause("it has phases beside stores or another mapping");
        }
        return OkStatus();
    }

    // Local tensors are of types that workgroup memory always has, and fit into it.
    Status CheckLocals() const {
        int64_t total = 0;
        for (const Buffer& local : kernel_.locals) {
            const ElementType element = local.type.element;
            const int64_t bytes = BytesOf(element);
            if (element == ElementType::kBool || bytes < 4) {
                return Clause(fmt::format("the local tensor {} is {}, which has not 4 or 8 bytes",
                                          local.name, Name(element)));
            }
            int64_t size = bytes;
            for (const Expr& dim : local.type.shape.dims()) {
                const int64_t extent = dim.constant().value_or(0);
                if (extent < 1 || extent > kMaxLocalBytes || (size *= extent) > kMaxLocalBytes) {
                    return Clause(fmt::format("the local tensor {} of {} has not 1 to {} bytes",
                                              local.name, local.type.ToString(), kMaxLocalBytes));
                }
            }
            total += size;
        }
        if (total > kMaxLocalBytes) {
            return Clause(fmt::format("its local tensors have {} bytes, more than {}", total,
                                      kMaxLocalBytes));
        }
        return OkStatus();
    }

    Status CheckScope(const Scope& scope,
                      const Store& store,
                      size_t index,
                      VariableSet bound) const {
        VariableSet free = scope.free[store.value.value()];
        if (store.condition.valid()) {
            free |= scope.free[store.condition.value()];
        }
        for (const Expr& expr : store.index) {
            free |= scope.FreeIn(expr);
        }
        for (size_t i = 0; i < scope.variables.size(); ++i) {
            const VariableSet bit = VariableSet{1} << i;
            if ((free & bit & ~bound) != 0) {
                const bool of_phase = (bit & (scope.sequential | scope.lanes)) != 0;
                return Clause(fmt::format("store {} depends on {} outside of its {}", index,
                                          scope.variables[i].variable.name(),
                                          of_phase ? "phase" : "reduction"));
            }
        }
        return OkStatus();
    }

    const Loop* Find(const Symbol& variable) const {
        const auto found =
            std::find_if(variables_.begin(), variables_.end(),
                         [&](const Loop& loop) { return loop.variable == variable; });
        return found == variables_.end() ? nullptr : &*found;
    }

    Status AddVariable(const Loop& loop) {
        const std::string& name = loop.variable.name();
        if (!name.starts_with('$') || !IsSymbolName(name) || name.starts_with("$v")) {
            return Clause(fmt::format(
                "'{}' is no name of a loop's variable: they begin with '$' but not with \"$v\"",
                name));
        }
        variables_.push_back(loop);
        return CheckCount("variables of loops", variables_.size(), kMaxVariables);
    }

    static Status CheckName(const std::string& name) {
        if (name.empty() || name.size() > kMaxName) {
            return Clause(fmt::format("a name has {} bytes, not 1 to {}", name.size(), kMaxName));
        }
        return OkStatus();
    }

    Status CheckSizesOnly(const Expr& expr) const {
        FORNAX_RETURN_IF_ERROR(CheckExprSize(expr));
        for (const Symbol& symbol : expr.Symbols()) {
            if (!kernel_.sizes.contains(symbol)) {
                return Clause(fmt::format("{} in {} is not one of its sizes", symbol.name(),
                                          expr.ToString()));
            }
        }
        return OkStatus();
    }

    Status CheckExpr(const Expr& expr) const {
        FORNAX_RETURN_IF_ERROR(CheckExprSize(expr));
        for (const Symbol& symbol : expr.Symbols()) {
            if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
                FORNAX_ASSIGN_OR_RETURN(const ElementType type, TypeOf(*scalar));
                if (!IsInteger(type)) {
                    return Clause(fmt::format("{} is an index but {}, not an integer",
                                              symbol.name(), Name(type)));
                }
            } else if (!kernel_.sizes.contains(symbol) && Find(symbol) == nullptr) {
                return Clause(fmt::format("{} in {} is neither a size nor a loop's variable",
                                          symbol.name(), expr.ToString()));
            }
        }
        return OkStatus();
    }

    // The type of an operand, which is computed earlier.
    Result<ElementType> TypeOf(ScalarId id) const {
        if (!id.valid() || id.value() >= kernel_.scalars.size()) {
            return Clause("an operand does not exist");
        }
        if (id.value() >= scalars_) {
            return Clause(fmt::format("its operand %{} is not computed before", id.value()));
        }
        return kernel_[id].type;
    }

    Status CheckIndex(BufferId id, const std::vector<Expr>& index) const {
        const bool local = id.valid() && Kernel::IsLocal(id);
        if (!id.valid() || (local ? id.value() - kFirstLocal >= kernel_.locals.size()
                                  : id.value() >= kernel_.buffers.size())) {
            return Clause("its buffer does not exist");
        }
        const Buffer& buffer = kernel_[id];
        if (index.size() != buffer.type.shape.rank()) {
            return Clause(fmt::format("the buffer {} of {} dimensions is accessed with {} indices",
                                      buffer.name, buffer.type.shape.rank(), index.size()));
        }
        for (const Expr& expr : index) {
            FORNAX_RETURN_IF_ERROR(CheckExpr(expr));
        }
        return OkStatus();
    }

    // Check(): the type that a scalar must have.

    Result<ElementType> Check(const ScalarNode& node, const Constant& constant) const {
        const Scalar& value = constant.value;
        if (value.is_float != IsFloat(node.type)) {
            return Clause("the constant is of another kind than its type");
        }
        const bool exact =
            value.is_float
                ? value.number != value.number ||
                      RoundToType(value.number, node.type) == value.number
                : ConvertScalar(value, ElementType::kI64, node.type).integer == value.integer;
        if (!exact) {
            return Clause(fmt::format("{} does not have the constant", Name(node.type)));
        }
        return node.type;
    }

    Result<ElementType> Check(const ScalarNode&, const Load& load) const {
        FORNAX_RETURN_IF_ERROR(CheckIndex(load.buffer, load.index));
        if (!kernel_.phases.empty() && !Kernel::IsLocal(load.buffer) &&
            kernel_[load.buffer].written) {
            return Clause(fmt::format("a kernel of phases loads from {}, to which it stores",
                                      kernel_[load.buffer].name));
        }
        const ElementType type = kernel_[load.buffer].type.element;
        if (load.otherwise.valid()) {
            FORNAX_ASSIGN_OR_RETURN(const ElementType otherwise, TypeOf(load.otherwise));
            if (otherwise != type) {
                return Clause(
                    fmt::format("it loads {} and is otherwise {}", Name(type), Name(otherwise)));
            }
        }
        return type;
    }

    Result<ElementType> Check(const ScalarNode&, const Index& index) const {
        FORNAX_RETURN_IF_ERROR(CheckExpr(index.value));
        return ElementType::kI64;
    }

    Result<ElementType> Check(const ScalarNode&, const InRange& range) const {
        FORNAX_RETURN_IF_ERROR(CheckExpr(range.value));
        FORNAX_RETURN_IF_ERROR(CheckExpr(range.extent));
        return ElementType::kBool;
    }

    Result<ElementType> Check(const ScalarNode&, const Map& map) const {
        if (!IsEnumerator(map.function, kLastScalarFunction)) {
            return Clause("its function does not exist");
        }
        if (map.arguments.size() != ArgumentCount(map.function)) {
            return Clause(fmt::format("{} takes {} arguments, not {}", Name(map.function),
                                      ArgumentCount(map.function), map.arguments.size()));
        }
        const bool select = map.function == ScalarFunction::kSelect;
        FORNAX_ASSIGN_OR_RETURN(const ElementType type, TypeOf(map.arguments[select ? 1 : 0]));
        for (size_t i = 0; i < map.arguments.size(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const ElementType actual, TypeOf(map.arguments[i]));
            const ElementType wanted = select && i == 0 ? ElementType::kBool : type;
            if (actual != wanted) {
                return Clause(fmt::format("argument {} of {} is {}, not {}", i, Name(map.function),
                                          Name(actual), Name(wanted)));
            }
        }
        if (!Accepts(map.function, type)) {
            return Clause(fmt::format("{} is not defined for {}", Name(map.function), Name(type)));
        }
        return ResultType(map.function, type);
    }

    Result<ElementType> Check(const ScalarNode& node, const Cast& cast) const {
        if (!IsEnumerator(cast.overflow, Overflow::kSpecial) ||
            !IsEnumerator(cast.rounding, Rounding::kDown)) {
            return Clause("its rounding does not exist");
        }
        FORNAX_RETURN_IF_ERROR(TypeOf(cast.argument));
        return node.type;
    }

    Result<ElementType> Check(const ScalarNode& node, const Bitcast& cast) const {
        FORNAX_ASSIGN_OR_RETURN(const ElementType from, TypeOf(cast.argument));
        if (BytesOf(from) != BytesOf(node.type)) {
            return Clause(
                fmt::format("{} and {} are not of one width", Name(from), Name(node.type)));
        }
        return node.type;
    }

    Result<ElementType> Check(const ScalarNode&, const Reduce& reduce) const {
        if (!IsEnumerator(reduce.combine, kLastCombine) || reduce.combine == Combine::kReplace) {
            return Clause("it reduces by a combination that does not exist");
        }
        if (reduce.loops.empty()) {
            return Clause("the reduction has no loop");
        }
        FORNAX_RETURN_IF_ERROR(CheckExtents(reduce.loops));
        FORNAX_ASSIGN_OR_RETURN(const ElementType type, TypeOf(reduce.body));
        if (!Accepts(reduce.combine, type)) {
            return Clause(fmt::format("{} of {} is not defined", Name(reduce.combine), Name(type)));
        }
        return type;
    }

    Result<ElementType> Check(const ScalarNode&, const ArgReduce& reduce) const {
        if (reduce.combine != Combine::kMax && reduce.combine != Combine::kMin) {
            return Clause("it finds the position of neither the greatest nor the least");
        }
        FORNAX_RETURN_IF_ERROR(CheckExtents({&reduce.loop, 1}));
        FORNAX_ASSIGN_OR_RETURN(const ElementType type, TypeOf(reduce.body));
        if (!Accepts(reduce.combine, type)) {
            return Clause(fmt::format("{} of {} is not defined", Name(reduce.combine), Name(type)));
        }
        return ElementType::kI64;
    }

    Status CheckExtents(std::span<const Loop> loops) const {
        for (const Loop& loop : loops) {
            FORNAX_RETURN_IF_ERROR(CheckExpr(loop.extent));
        }
        return OkStatus();
    }

    const Kernel& kernel_;
    std::vector<Loop> variables_;
    size_t scalars_ = 0;  // those before it may be used
};

Error InKernel(const Kernel& kernel, const Error& error, std::string_view where) {
    return {error.code,
            fmt::format("The kernel {} is wrong{}: {}.", kernel.name, where, error.message)};
}

}  // namespace

Status CheckExprSize(const Expr& expr) {
    const size_t parts = CountParts(expr, kMaxExprParts);
    if (parts > kMaxExprParts) {
        return Clause(fmt::format("an expression has more than {} parts", kMaxExprParts));
    }
    if (expr.ToString().size() > kMaxExprText) {
        return Clause(fmt::format("an expression is longer than {} characters", kMaxExprText));
    }
    return OkStatus();
}

Status Verify(const Kernel& kernel) {
    Verifier verifier(kernel);
    for (const auto step : {&Verifier::Head, &Verifier::Buffers, &Verifier::Loops}) {
        if (const Status status = (verifier.*step)(); !status.ok()) {
            return InKernel(kernel, status.error(), "");
        }
    }
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        if (const Status status = verifier.CheckScalar(i); !status.ok()) {
            return InKernel(kernel, status.error(), fmt::format(" in %{}", i));
        }
    }
    const std::vector<const Store*> stores = StoresOf(kernel);
    for (size_t i = 0; i < stores.size(); ++i) {
        if (const Status status = verifier.CheckStore(*stores[i]); !status.ok()) {
            return InKernel(kernel, status.error(), fmt::format(" in store {}", i));
        }
    }
    if (const Status status = verifier.CheckScopes(); !status.ok()) {
        return InKernel(kernel, status.error(), "");
    }
    return OkStatus();
}

std::vector<Symbol> SizeSymbols(const Kernel& kernel) {
    std::set<Symbol> symbols;
    const auto add = [&](const Expr& expr) {
        for (const Symbol& symbol : expr.Symbols()) {
            if (!symbol.name().starts_with('$')) {
                symbols.insert(symbol);
            }
        }
    };
    for (const Buffer& buffer : kernel.buffers) {
        std::for_each(buffer.type.shape.dims().begin(), buffer.type.shape.dims().end(), add);
    }
    for (const std::vector<Loop>* loops : {&kernel.parallel, &kernel.sequential}) {
        for (const Loop& loop : *loops) {
            add(loop.extent);
        }
    }
    for (const Phase& phase : kernel.phases) {
        for (const Loop& loop : phase.lanes) {
            add(loop.extent);
        }
    }
    for (const ScalarNode& node : kernel.scalars) {
        for (const Expr& expr : ExpressionsOf(node)) {
            add(expr);
        }
    }
    for (const Store* store : StoresOf(kernel)) {
        std::for_each(store->index.begin(), store->index.end(), add);
    }
    return {symbols.begin(), symbols.end()};
}

}  // namespace fornax::graph::loop
