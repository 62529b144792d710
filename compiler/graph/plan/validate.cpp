// The rules of plans. Plans may come from files: nothing here trusts an id, a size or a count.
//
// Memory stays safe at run time because every block is as large as each buffer that sees it, for
// all sizes for which the guards hold (size_proofs.h), because kernels check their own indices
// against their buffers' shapes within the ranges that they state, and because lifetimes, which say
// which blocks may share memory, cover the uses.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/hash.h"
#include "compiler/graph/ir/parse_expr.h"
#include "compiler/graph/loop/limits.h"
#include "compiler/graph/plan/limits.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "compiler/graph/plan/size_proofs.h"

namespace fornax::graph {
namespace {

using Symbols = std::set<Symbol>;

Error Clause(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

Status CheckCount(std::string_view what, size_t count, size_t limit) {
    if (count > limit) {
        return Clause(fmt::format("it has {} {}, more than {}", count, what, limit));
    }
    return OkStatus();
}

Status CheckName(std::string_view what, const std::string& name) {
    if (name.size() > kMaxPlanName) {
        return Clause(fmt::format("{} has a name of {} bytes, more than {}", what, name.size(),
                                  kMaxPlanName));
    }
    return OkStatus();
}

template <typename Enum>
bool IsEnumerator(Enum value, Enum last) {
    return static_cast<size_t>(value) <= static_cast<size_t>(last);
}

// Works through a plan from what is needed first on. Its errors are clauses, which begin with the
// part of the plan that is wrong; ValidatePlan() makes sentences.
class Validator {
  public:
    explicit Validator(const Plan& plan)
        : plan_(plan), proofs_({}), written_(plan.blocks.size(), false) {}

    Status Run() {
        for (const auto rule :
             {&Validator::CheckCounts, &Validator::CheckSymbols, &Validator::CheckGuards,
              &Validator::CheckBlocks, &Validator::CheckInputs, &Validator::CheckSources,
              &Validator::CheckGuardSymbols, &Validator::CheckKernels, &Validator::CheckSteps,
              &Validator::CheckOutputs, &Validator::CheckModel}) {
            FORNAX_RETURN_IF_ERROR((this->*rule)());
        }
        return OkStatus();
    }

  private:
    Status CheckCounts() {
        FORNAX_RETURN_IF_ERROR(CheckName("it", plan_.name));
        if (!plan_.graph_hash.empty() && !Hash128::FromHex(plan_.graph_hash)) {
            return Clause("its graph's hash is not of 32 hexadecimal digits");
        }
        FORNAX_RETURN_IF_ERROR(CheckCount("blocks", plan_.blocks.size(), kMaxPlanBlocks));
        FORNAX_RETURN_IF_ERROR(CheckCount("inputs", plan_.inputs.size(), kMaxPlanPorts));
        FORNAX_RETURN_IF_ERROR(CheckCount("outputs", plan_.outputs.size(), kMaxPlanPorts));
        FORNAX_RETURN_IF_ERROR(CheckCount("kernels", plan_.kernels.size(), kMaxPlanKernels));
        FORNAX_RETURN_IF_ERROR(CheckCount("steps", plan_.steps.size(), kMaxPlanSteps));
        FORNAX_RETURN_IF_ERROR(CheckCount("sources", plan_.sources.size(), kMaxPlanSources));
        FORNAX_RETURN_IF_ERROR(CheckCount("symbols", plan_.ranges.size(), kMaxPlanSymbols));
        FORNAX_RETURN_IF_ERROR(CheckCount("hints", plan_.hints.size(), kMaxPlanSymbols));
        return CheckCount("guards", plan_.guards.size(), kMaxPlanGuards);
    }

    Status CheckSymbols() {
        for (const auto& [symbol, range] : plan_.ranges) {
            FORNAX_RETURN_IF_ERROR(CheckSymbolName(symbol));
            if (range.low < 0 || range.high > UINT32_MAX || range.low > range.high) {
                return Clause(fmt::format("the symbol {} is {} to {}, not within 0 to {}",
                                          symbol.name(), range.low, range.high, UINT32_MAX));
            }
        }
        for (const auto& [symbol, hint] : plan_.hints) {
            FORNAX_RETURN_IF_ERROR(CheckSymbolName(symbol));
        }
        return OkStatus();
    }

    static Status CheckSymbolName(const Symbol& symbol) {
        FORNAX_RETURN_IF_ERROR(CheckName("a symbol", symbol.name()));
        if (!IsSymbolName(symbol.name()) || symbol.name().starts_with('$')) {
            return Clause(fmt::format("'{}' is no name of a symbol", symbol.name()));
        }
        return OkStatus();
    }

    Status CheckGuards() {
        for (const Guard& guard : plan_.guards) {
            if (!IsEnumerator(guard.relation, Relation::kLessEqual)) {
                return Clause("a guard's relation does not exist");
            }
            FORNAX_RETURN_IF_ERROR(CheckExpr("a guard", guard.a));
            FORNAX_RETURN_IF_ERROR(CheckExpr("a guard", guard.b));
        }
        proofs_ = SizeProofs(plan_.guards);
        return OkStatus();
    }

    // Every symbol has a range; whether it has a value is checked where it is used.
    Status CheckExpr(std::string_view what, const Expr& expr) const {
        if (expr.is_constant()) {
            return OkStatus();
        }
        if (const Status size = loop::CheckExprSize(expr); !size.ok()) {
            return Clause(fmt::format("{}: {}", what, size.error().message));
        }
        for (const Symbol& symbol : expr.Symbols()) {
            if (!plan_.ranges.contains(symbol)) {
                return Clause(fmt::format("{} uses {}, which is not one of its symbols", what,
                                          symbol.name()));
            }
        }
        return OkStatus();
    }

    Status CheckType(std::string_view what, const TensorType& type) const {
        if (!IsEnumerator(type.element, kLastElementType)) {
            return Clause(fmt::format("{} is of a type that does not exist", what));
        }
        if (type.shape.rank() > kMaxRank) {
            return Clause(fmt::format("{} has {} dimensions, more than {}", what, type.shape.rank(),
                                      kMaxRank));
        }
        for (const Expr& dim : type.shape.dims()) {
            FORNAX_RETURN_IF_ERROR(CheckExpr(what, dim));
        }
        return OkStatus();
    }

    Status CheckBlocks() {
        const auto end = static_cast<uint32_t>(plan_.steps.size());
        uint64_t data_bytes = 0;
        for (size_t i = 0; i < plan_.blocks.size(); ++i) {
            const PlanBlock& block = plan_.blocks[i];
            const std::string what = BlockText(BlockId(i));
            FORNAX_RETURN_IF_ERROR(CheckName(fmt::format("block {}", i), block.name));
            FORNAX_RETURN_IF_ERROR(CheckType(what, block.type));
            if (!IsEnumerator(block.kind, BlockKind::kState)) {
                return Clause(fmt::format("{} is of a kind that does not exist", what));
            }
            if (block.first > block.last || block.last > end) {
                return Clause(fmt::format("{} lives from step {} to {} of {}", what, block.first,
                                          block.last, end));
            }
            if (block.kind == BlockKind::kInput && block.first != 0) {
                return Clause(
                    fmt::format("{} is an input and lives from step {} on", what, block.first));
            }
            FORNAX_RETURN_IF_ERROR(CheckData(what, block));
            data_bytes += block.data ? block.data->size() : 0;
            if (data_bytes > kMaxPlanData) {
                return Clause(fmt::format("its constants have more than {} bytes", kMaxPlanData));
            }
        }
        return OkStatus();
    }

    static Status CheckData(std::string_view what, const PlanBlock& block) {
        const bool is_constant = block.kind == BlockKind::kConstant;
        if (!block.data && block.strings == nullptr && !is_constant) {
            return OkStatus();
        }
        const bool has_strings = block.type.element == ElementType::kString;
        if (has_strings ? block.strings == nullptr || block.data
                        : !block.data || block.strings != nullptr) {
            return Clause(
                fmt::format("{} of {} is without its elements", what, block.type.ToString()));
        }
        if (!is_constant && block.kind != BlockKind::kState) {
            return Clause(fmt::format("{} holds data but is no constant and no state", what));
        }
        const std::optional<std::vector<int64_t>> dims = block.type.shape.Constants();
        if (!dims) {
            return Clause(fmt::format("{} holds data, and its type {} no constant size", what,
                                      block.type.ToString()));
        }
        uint64_t count = 1, bound = 1;
        for (const int64_t dim : *dims) {
            if (dim < 0 || dim > kMaxElements ||
                bound > static_cast<uint64_t>(kMaxElements / std::max<int64_t>(dim, 1))) {
                return Clause(fmt::format("{} of {} has a negative size or more than {} elements",
                                          what, block.type.ToString(), kMaxElements));
            }
            bound *= static_cast<uint64_t>(std::max<int64_t>(dim, 1));
            count *= static_cast<uint64_t>(dim);
        }
        const uint64_t wanted = has_strings ? count : count * BytesOf(block.type.element);
        const uint64_t given = has_strings ? block.strings->size() : block.data->size();
        if (given != wanted) {
            return Clause(fmt::format("{} of {} holds {} {}, not {}", what, block.type.ToString(),
                                      given, has_strings ? "strings" : "bytes", wanted));
        }
        return OkStatus();
    }

    std::string BlockText(BlockId id) const {
        return fmt::format("block {} ({})", id.value(), plan_.blocks[id.value()].name);
    }

    Status CheckBlockId(std::string_view what, BlockId id) const {
        if (!id.valid() || id.value() >= plan_.blocks.size()) {
            return Clause(fmt::format("{} names a block that does not exist", what));
        }
        return OkStatus();
    }

    // Whether the tensor of `type` may be seen in the block: the same elements in another shape.
    Status CheckView(std::string_view what, const TensorType& type, BlockId id) const {
        const TensorType& held = plan_.blocks[id.value()].type;
        if (held.element != type.element || !proofs_.HaveEqualVolumes(held.shape, type.shape)) {
            return Clause(fmt::format("{} sees {} as {}, but it is {}", what, BlockText(id),
                                      type.ToString(), held.ToString()));
        }
        return OkStatus();
    }

    // Whether all sizes are known by now.
    Status CheckKnown(std::string_view what, const Expr& expr) const {
        if (expr.is_constant()) {
            return OkStatus();
        }
        for (const Symbol& symbol : expr.Symbols()) {
            if (!known_.contains(symbol)) {
                return Clause(
                    fmt::format("{} uses {}, which has no value by then", what, symbol.name()));
            }
        }
        return OkStatus();
    }

    Status CheckKnown(std::string_view what, const Shape& shape) const {
        for (const Expr& dim : shape.dims()) {
            FORNAX_RETURN_IF_ERROR(CheckKnown(what, dim));
        }
        return OkStatus();
    }

    Status CheckInputs() {
        std::vector<bool> has_port(plan_.blocks.size(), false);
        for (const PlanPort& port : plan_.inputs) {
            const std::string what = fmt::format("the input {}", port.name);
            FORNAX_RETURN_IF_ERROR(CheckName("an input", port.name));
            FORNAX_RETURN_IF_ERROR(CheckType(what, port.type));
            FORNAX_RETURN_IF_ERROR(CheckBlockId(what, port.block));
            const size_t index = port.block.value();
            if (plan_.blocks[index].kind != BlockKind::kInput || has_port[index]) {
                return Clause(fmt::format("{} is in {}, which is no input block of its own", what,
                                          BlockText(port.block)));
            }
            has_port[index] = true;
            FORNAX_RETURN_IF_ERROR(CheckView(what, port.type, port.block));
        }
        for (size_t i = 0; i < plan_.blocks.size(); ++i) {
            if (plan_.blocks[i].kind == BlockKind::kInput && !has_port[i]) {
                return Clause(
                    fmt::format("{} is an input that has no port", BlockText(BlockId(i))));
            }
            // No step writes what has no elements.
            const Shape& shape = plan_.blocks[i].type.shape;
            written_[i] = std::find(shape.dims().begin(), shape.dims().end(), Expr(0)) !=
                              shape.dims().end() ||
                          plan_.blocks[i].kind == BlockKind::kInput ||
                          plan_.blocks[i].kind == BlockKind::kConstant ||
                          plan_.blocks[i].kind == BlockKind::kState;
        }
        return OkStatus();
    }

    // What the model says of its ports is told to programs, and nothing is computed from it.
    Status CheckModel() {
        FORNAX_RETURN_IF_ERROR(CheckModelTypes("an input", plan_.inputs, plan_.model_inputs));
        FORNAX_RETURN_IF_ERROR(CheckModelTypes("an output", plan_.outputs, plan_.model_outputs));
        for (const uint32_t input : plan_.fixed_inputs) {
            if (input >= plan_.inputs.size()) {
                return Clause(
                    fmt::format("input {} of {} has a fixed value", input, plan_.inputs.size()));
            }
        }
        return OkStatus();
    }

    static Status CheckModelTypes(const char* what,
                                  const std::vector<PlanPort>& ports,
                                  const std::vector<TensorType>& types) {
        if (!types.empty() && types.size() != ports.size()) {
            return Clause(
                fmt::format("its model has {} types for {} ports", types.size(), ports.size()));
        }
        for (size_t i = 0; i < types.size(); ++i) {
            if (types[i].element != ports[i].type.element ||
                types[i].shape.rank() != ports[i].type.shape.rank()) {
                return Clause(fmt::format("{} is {}, and {} in the model", what,
                                          ports[i].type.ToString(), types[i].ToString()));
            }
            for (const Expr& dim : types[i].shape.dims()) {
                if (const Status size = loop::CheckExprSize(dim); !size.ok()) {
                    return Clause(fmt::format("{}: {}", what, size.error().message));
                }
            }
        }
        return OkStatus();
    }

    Status CheckSources() {
        for (const SymbolSource& source : plan_.sources) {
            const std::string what = fmt::format("the symbol {}", source.symbol.name());
            if (!plan_.ranges.contains(source.symbol)) {
                return Clause(fmt::format("{} has a source and no range", what));
            }
            if (source.port >= plan_.inputs.size() ||
                source.axis >= plan_.inputs[source.port].type.shape.rank()) {
                return Clause(fmt::format("{} is dimension {} of input {}, which does not exist",
                                          what, source.axis, source.port));
            }
            const PlanPort& port = plan_.inputs[source.port];
            if (!MultipleOf(source.symbol, port.type.shape[source.axis])) {
                return Clause(fmt::format("{} is dimension {} of the input {}, which is {}", what,
                                          source.axis, port.name,
                                          port.type.shape[source.axis].ToString()));
            }
            known_.insert(source.symbol);
        }
        for (const PlanPort& port : plan_.inputs) {
            FORNAX_RETURN_IF_ERROR(
                CheckKnown(fmt::format("the input {}", port.name), port.type.shape));
        }
        return OkStatus();
    }

    // A guard of a symbol that never has a value would never be checked.
    Status CheckGuardSymbols() {
        Symbols given = known_;
        for (const PlanStep& step : plan_.steps) {
            if (const auto* host = std::get_if<HostStep>(&step)) {
                AddGiven(*host, given);
            }
        }
        std::swap(given, known_);
        Status status = OkStatus();
        for (const Guard& guard : plan_.guards) {
            for (const Expr* expr : {&guard.a, &guard.b}) {
                if (status.ok()) {
                    status = CheckKnown("a guard", *expr);
                }
            }
        }
        std::swap(given, known_);
        return status;
    }

    // The symbols whose values a host step's results are the source of.
    static void AddGiven(const HostStep& step, Symbols& symbols) {
        for (const TensorType& type : step.result_types) {
            for (const Expr& dim : type.shape.dims()) {
                const std::span<const ExprTerm> terms = dim.terms();
                if (terms.size() == 1 && dim.constant_part() == 0 && terms[0].coefficient == 1 &&
                    terms[0].factors.size() == 1 &&
                    terms[0].factors[0]->kind == AtomKind::kSymbol) {
                    symbols.insert(*terms[0].factors[0]->symbol);
                }
            }
        }
    }

    Status CheckKernels() {
        for (size_t i = 0; i < plan_.kernels.size(); ++i) {
            const PlanKernel& kernel = plan_.kernels[i];
            if (const Status status = VerifyKernel(kernel); !status.ok()) {
                std::string message = status.error().message;
                if (message.ends_with('.')) {
                    message.pop_back();
                }
                return Clause(fmt::format("kernel {}: {}", i, message));
            }
            for (const auto& [symbol, range] : SizesOf(kernel)) {
                const auto found = plan_.ranges.find(symbol);
                if (found == plan_.ranges.end() || found->second.low < range.low ||
                    found->second.high > range.high) {
                    return Clause(fmt::format(
                        "kernel {} ({}) takes {} from {} to {}, which the plan does not promise", i,
                        NameOf(kernel), symbol.name(), range.low, range.high));
                }
            }
        }
        return OkStatus();
    }

    Status CheckSteps() {
        for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
            const Status status =
                std::visit([&](const auto& step) { return CheckStep(i, step); }, plan_.steps[i]);
            if (!status.ok()) {
                const std::string& name =
                    std::visit([](const auto& step) -> const std::string& { return step.name; },
                               plan_.steps[i]);
                return Clause(fmt::format("step {} ({}): {}", i, name.substr(0, 200),
                                          status.error().message));
            }
        }
        return OkStatus();
    }

    Status CheckUse(uint32_t step, BlockId id, bool reads) const {
        const PlanBlock& block = plan_.blocks[id.value()];
        if (step < block.first || step > block.last) {
            return Clause(
                fmt::format("{} lives from step {} to {}", BlockText(id), block.first, block.last));
        }
        if (reads && !written_[id.value()]) {
            return Clause(fmt::format("{} is read before it is written", BlockText(id)));
        }
        return CheckKnown(BlockText(id), block.type.shape);
    }

    Status CheckWritten(BlockId id) const {
        const BlockKind kind = plan_.blocks[id.value()].kind;
        if (kind == BlockKind::kConstant || kind == BlockKind::kInput) {
            return Clause(fmt::format("it writes {}, which is {}", BlockText(id),
                                      kind == BlockKind::kInput ? "an input" : "a constant"));
        }
        return OkStatus();
    }

    Status CheckStep(uint32_t index, const DispatchStep& step) {
        FORNAX_RETURN_IF_ERROR(CheckName("it", step.name));
        if (!step.kernel.valid() || step.kernel.value() >= plan_.kernels.size()) {
            return Clause("its kernel does not exist");
        }
        const PlanKernel& kernel = plan_.kernels[step.kernel.value()];
        const std::span<const loop::Buffer> buffers = BuffersOf(kernel);
        if (step.bindings.size() != buffers.size()) {
            return Clause(fmt::format("it binds {} blocks to the {} buffers of {}",
                                      step.bindings.size(), buffers.size(), NameOf(kernel)));
        }
        for (const auto& [symbol, range] : SizesOf(kernel)) {
            FORNAX_RETURN_IF_ERROR(CheckKnown("its kernel", Expr(symbol)));
        }
        for (const Expr* expr : {&step.operations, &step.bytes_read, &step.bytes_written}) {
            FORNAX_RETURN_IF_ERROR(CheckExpr("its cost", *expr));
        }
        for (size_t i = 0; i < buffers.size(); ++i) {
            const BlockId id = step.bindings[i];
            const std::string what = fmt::format("the buffer {}", buffers[i].name);
            FORNAX_RETURN_IF_ERROR(CheckBlockId(what, id));
            FORNAX_RETURN_IF_ERROR(CheckUse(index, id, !buffers[i].written));
            FORNAX_RETURN_IF_ERROR(CheckView(what, buffers[i].type, id));
            if (buffers[i].written) {
                FORNAX_RETURN_IF_ERROR(CheckWritten(id));
            }
        }
        FORNAX_RETURN_IF_ERROR(CheckSharedBlocks(kernel, step.bindings));
        for (size_t i = 0; i < buffers.size(); ++i) {
            written_[step.bindings[i].value()] =
                written_[step.bindings[i].value()] || buffers[i].written;
        }
        return OkStatus();
    }

    Status CheckStep(uint32_t index, const HostStep& step) {
        FORNAX_RETURN_IF_ERROR(CheckName("it", step.name));
        FORNAX_RETURN_IF_ERROR(CheckName("its reason", step.reason));
        FORNAX_RETURN_IF_ERROR(CheckCount("operands", step.operands.size(), kMaxHostOperands));
        FORNAX_RETURN_IF_ERROR(CheckCount("results", step.results.size(), kMaxHostOperands));
        if (step.operands.size() != step.operand_types.size() ||
            step.results.size() != step.result_types.size()) {
            return Clause("an operand or a result is without its type");
        }
        for (size_t i = 0; i < step.operands.size(); ++i) {
            const std::string what = fmt::format("operand {}", i);
            FORNAX_RETURN_IF_ERROR(CheckType(what, step.operand_types[i]));
            FORNAX_RETURN_IF_ERROR(CheckBlockId(what, step.operands[i]));
            FORNAX_RETURN_IF_ERROR(CheckUse(index, step.operands[i], true));
            FORNAX_RETURN_IF_ERROR(CheckView(what, step.operand_types[i], step.operands[i]));
            FORNAX_RETURN_IF_ERROR(CheckKnown(what, step.operand_types[i].shape));
        }
        for (size_t i = 0; i < step.results.size(); ++i) {
            FORNAX_RETURN_IF_ERROR(CheckType(fmt::format("result {}", i), step.result_types[i]));
        }
        FORNAX_RETURN_IF_ERROR(CheckOperation(step));
        AddGiven(step, known_);
        for (size_t i = 0; i < step.results.size(); ++i) {
            const std::string what = fmt::format("result {}", i);
            FORNAX_RETURN_IF_ERROR(CheckBlockId(what, step.results[i]));
            FORNAX_RETURN_IF_ERROR(CheckWritten(step.results[i]));
            FORNAX_RETURN_IF_ERROR(CheckUse(index, step.results[i], false));
            FORNAX_RETURN_IF_ERROR(CheckView(what, step.result_types[i], step.results[i]));
            FORNAX_RETURN_IF_ERROR(CheckKnown(what, step.result_types[i].shape));
            written_[step.results[i].value()] = true;
        }
        return OkStatus();
    }

    // The results' types follow from the operands' when the guards hold.
    Status CheckOperation(const HostStep& step) const {
        if (Is<op::ReadState>(step.operation) || Is<op::WriteState>(step.operation)) {
            return Clause("states are not for the host");
        }
        for (const Body& body : step.bodies) {
            if (body == nullptr) {
                return Clause("a body is missing");
            }
            FORNAX_RETURN_IF_ERROR(Verify(*body));
        }
        SizeFacts sizes;
        for (const auto& [symbol, range] : plan_.ranges) {
            const auto hint = plan_.hints.find(symbol);
            sizes.Declare(symbol.name(), hint == plan_.hints.end() ? range.low : hint->second,
                          range);
        }
        FORNAX_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                                InferTypes(step.operation, step.operand_types, step.bodies, sizes));
        for (const Guard& guard : sizes.guards()) {
            if (!proofs_.Holds(guard)) {
                return Clause(fmt::format("its types are right only for {}, which no guard says",
                                          guard.ToString()));
            }
        }
        if (types.size() != step.results.size()) {
            return Clause(
                fmt::format("it has {} results, not {}", step.results.size(), types.size()));
        }
        for (size_t i = 0; i < types.size(); ++i) {
            if (types[i].element != step.result_types[i].element ||
                !proofs_.AreEqual(types[i].shape, step.result_types[i].shape)) {
                return Clause(fmt::format("its result {} is {}, not {}", i, types[i].ToString(),
                                          step.result_types[i].ToString()));
            }
        }
        return OkStatus();
    }

    Status CheckOutputs() {
        const auto end = static_cast<uint32_t>(plan_.steps.size());
        for (const PlanPort& port : plan_.outputs) {
            const std::string what = fmt::format("the output {}", port.name);
            FORNAX_RETURN_IF_ERROR(CheckName("an output", port.name));
            FORNAX_RETURN_IF_ERROR(CheckType(what, port.type));
            FORNAX_RETURN_IF_ERROR(CheckBlockId(what, port.block));
            const BlockKind kind = plan_.blocks[port.block.value()].kind;
            if (kind == BlockKind::kTemporary || kind == BlockKind::kState) {
                return Clause(fmt::format("{} is in {}, which is {}", what, BlockText(port.block),
                                          kind == BlockKind::kState ? "a state" : "a temporary"));
            }
            if (const Status use = CheckUse(end, port.block, true); !use.ok()) {
                return Clause(fmt::format("{}: {}", what, use.error().message));
            }
            FORNAX_RETURN_IF_ERROR(CheckView(what, port.type, port.block));
            FORNAX_RETURN_IF_ERROR(CheckKnown(what, port.type.shape));
        }
        return OkStatus();
    }

    const Plan& plan_;
    SizeProofs proofs_;
    std::vector<bool> written_;  // the blocks that hold something, up to the step that is checked
    Symbols known_;              // the symbols that have a value by then
};

}  // namespace

Status ValidatePlan(const Plan& plan) {
    if (const Status status = Validator(plan).Run(); !status.ok()) {
        const bool is_sentence = status.error().message.ends_with('.');
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The plan {} is wrong: {}{}", plan.name.substr(0, 200),
                                 status.error().message, is_sentence ? "" : ".")};
    }
    return OkStatus();
}

}  // namespace fornax::graph
