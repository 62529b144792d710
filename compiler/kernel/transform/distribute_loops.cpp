// Kernels whose invocations all do the same, each iteration of their loops: the invocations of a
// workgroup share the iterations instead.
//
// IREE distributes a convolution's channels over the invocations of a workgroup; where the rest of
// its tile does not fit it gives up, and each invocation runs a loop over all channels, with one
// word of workgroup memory for each. Nothing of that depends on the invocation, so it would run as
// scalar code, once for each vector of the workgroup. A loop with as many iterations as there are
// invocations, whose iterations touch memory of their own only, becomes its body, with the
// invocation's index for the counter: a vector of iterations.
//
// Other invocations are no obstacle: what two of them write without synchronisation, and one of
// them reads, is a data race already ("Vulkan Memory Model").
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/kernel/index/index_builder.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// What computes where a sum is kept, of those that are kept in private variables.
constexpr uint32_t kMaxOffsetInstructions = 64;

// A loop over 0, 1, ... with as many iterations as invocations.
struct Counted {
    InstId loop;
    ValueId counter;
    std::vector<InstId> body;  // without what ends it
};

// Bytes `at` and on behind scale * counter + base, which is the same in all iterations.
struct OwnPlace {
    int64_t scale = 0;
    int64_t at = 0;
    IndexExpr base;  // without a constant
};

// What a kernel does with workgroup memory or with a buffer, all of it in places of an iteration's
// own: bytes low to high behind scale * counter + base of the first access.
struct Memory {
    bool is_stored = false;
    bool is_own = true;
    std::optional<OwnPlace> place = {};  // of the first access
    int64_t low = 0;
    int64_t high = 0;
    std::vector<InstId> accesses = {};
};

class DistributedLoops {
  public:
    explicit DistributedLoops(Kernel& kernel) : kernel_(kernel), structure_(kernel) {}

    bool Run() {
        const auto& size = kernel_.workgroup_size;
        invocations_ = uint64_t{size[0]} * size[1] * size[2];
        if (invocations_ < 2 || !AllDoTheSame()) {
            return false;
        }
        IndexBuilder index(kernel_);
        for (InstId id : kernel_.block(kernel_.body).insts) {
            if (std::optional<Counted> loop = Find(id, index)) {
                loops_.push_back(std::move(*loop));
            }
        }
        if (loops_.empty() || !HaveOwnMemory(index)) {
            return false;
        }
        Rewrite();
        return true;
    }

  private:
    // Nothing tells invocations apart or lets them talk.
    bool AllDoTheSame() const {
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            const bool plain = HasProperty(inst.op, kPure) || HasProperty(inst.op, kRegions) ||
                               HasProperty(inst.op, kTerminator);
            const bool memory = inst.op == Op::kLoadBuffer || inst.op == Op::kStoreBuffer ||
                                inst.op == Op::kLoadShared || inst.op == Op::kStoreShared;
            const bool own =
                inst.op == Op::kBuiltin && inst.imm >= static_cast<uint64_t>(BuiltinId::kLocalIdX);
            if ((!plain && !memory) || own || inst.op == Op::kUnreachable ||
                (memory && (inst.flags & kVolatile) != 0)) {
                return false;
            }
        }
        return true;
    }

    bool IsInside(BlockId block, InstId construct) const {
        while (block.valid()) {
            const InstId parent = kernel_.block(block).parent;
            if (parent == construct) {
                return true;
            }
            block = parent.valid() ? structure_.block_of[parent.value()] : BlockId{};
        }
        return false;
    }

    // Whether a test of what its block begins with is the only way out of the loop; `body` is what
    // follows it in an iteration.
    bool IsTestedFirst(InstId id, std::vector<InstId>& body) const {
        const Instruction& loop = kernel_.inst(id);
        const Block& begin = kernel_.block(loop.blocks[0]);
        const Block& end = kernel_.block(loop.blocks[1]);
        if (begin.insts.size() < 3) {
            return false;
        }
        const Instruction& branch = kernel_.inst(begin.insts[1]);
        if (branch.op != Op::kIf || !branch.results.empty() ||
            kernel_.value(branch.operands[0]).inst != begin.insts[0]) {
            return false;
        }
        const auto goes = [&](BlockId block, Op op) {
            const Block& arm = kernel_.block(block);
            return arm.insts.size() == 1 && kernel_.inst(arm.insts[0]).op == op &&
                   (op == Op::kYield || kernel_.inst(arm.insts[0]).target == id);
        };
        const Instruction& last = kernel_.inst(begin.insts.back());
        if (goes(branch.blocks[0], Op::kYield) && goes(branch.blocks[1], Op::kExit) &&
            last.op == Op::kContinue) {
            body.assign(begin.insts.begin() + 2, begin.insts.end() - 1);
        } else if (!goes(branch.blocks[0], Op::kContinue) || !goes(branch.blocks[1], Op::kYield) ||
                   last.op != Op::kExit || begin.insts.size() != 3) {
            return false;
        }
        body.insert(body.end(), end.insts.begin(), end.insts.end() - 1);
        return Leaves(id) == 2;
    }

    // One test at the start, of the counter, and no other way out.
    std::optional<Counted> Find(InstId id, IndexBuilder& index) const {
        const Instruction& loop = kernel_.inst(id);
        uint64_t first = 0;
        if (loop.op != Op::kLoop || loop.operands.size() != 1 || !loop.results.empty() ||
            !kernel_.IsConst(loop.operands[0], &first) || first != 0) {
            return {};
        }
        const Block& begin = kernel_.block(loop.blocks[0]);
        const Block& end = kernel_.block(loop.blocks[1]);
        Counted found{.loop = id, .counter = begin.params[0], .body = {}};
        if (!end.params.empty() || kernel_.type(found.counter) != Type::kI32 ||
            !IsTestedFirst(id, found.body) || !Tests(kernel_.inst(begin.insts[0]), found.counter) ||
            index.StepOf(found.counter) != 1) {
            return {};
        }
        return found;
    }

    bool Tests(const Instruction& test, ValueId counter) const {
        uint64_t count = 0;
        return (test.op == Op::kSLt || test.op == Op::kULt) && test.operands[0] == counter &&
               kernel_.IsConst(test.operands[1], &count) && count == invocations_;
    }

    // How many instructions inside go to the loop's end or out of it; returns count as many.
    uint32_t Leaves(InstId loop) const {
        uint32_t count = 0;
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if ((inst.target == loop && inst.op != Op::kLoop) ||
                (inst.op == Op::kReturn && IsInside(structure_.block_of[id.value()], loop))) {
                ++count;
            }
        }
        return count;
    }

    const Counted* LoopAround(InstId id) const {
        for (const Counted& loop : loops_) {
            if (IsInside(structure_.block_of[id.value()], loop.loop)) {
                return &loop;
            }
        }
        return nullptr;
    }

    int64_t BytesOf(const Instruction& inst) const {
        const bool loads = inst.op == Op::kLoadBuffer || inst.op == Op::kLoadShared;
        const size_t first = inst.op == Op::kStoreBuffer ? 2 : 1;
        const size_t count = loads ? inst.results.size() : inst.operands.size() - first;
        const Type type = kernel_.type(loads ? inst.results[0] : inst.operands[first]);
        return static_cast<int64_t>(count * ByteSize(type));
    }

    // No iteration reads what another one writes, or writes where another one does.
    bool HaveOwnMemory(IndexBuilder& index) {
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            const bool is_shared = inst.op == Op::kLoadShared || inst.op == Op::kStoreShared;
            if (!is_shared && inst.op != Op::kLoadBuffer && inst.op != Op::kStoreBuffer) {
                continue;
            }
            std::pair place(UINT32_MAX, UINT32_MAX);
            if (!is_shared) {
                const Instruction* buffer = kernel_.Definition(inst.operands[0]);
                uint64_t element = 0;
                if (!buffer || buffer->op != Op::kBuffer ||
                    !kernel_.IsConst(buffer->operands[0], &element) || element != 0) {
                    return false;
                }
                const Binding& binding = kernel_.bindings[buffer->imm];
                place = {binding.set, binding.binding};
            }
            Memory& memory = memories_[place];
            memory.is_stored |= inst.op == Op::kStoreBuffer || inst.op == Op::kStoreShared;
            memory.accesses.push_back(id);
            const Counted* loop = LoopAround(id);
            const auto own = loop ? PlaceOf(inst.operands[is_shared ? 0 : 1], *loop, index)
                                  : std::optional<OwnPlace>();
            memory.is_own = memory.is_own && own && AddAccess(memory, *own, BytesOf(inst));
        }
        return std::ranges::all_of(memories_, [](const auto& item) {
            return item.second.is_own || !item.second.is_stored;
        });
    }

    bool AddAccess(Memory& memory, const OwnPlace& own, int64_t bytes) const {
        if (!memory.place) {
            memory.place = own;
            memory.low = own.at;
            memory.high = own.at;
        }
        memory.low = std::min(memory.low, own.at);
        memory.high = std::max(memory.high, own.at + bytes);
        return own.scale == memory.place->scale && own.base == memory.place->base &&
               memory.high - memory.low <= own.scale;
    }

    // Nothing that the loop changes, but for its counter, is in the offset.
    std::optional<OwnPlace> PlaceOf(ValueId offset, const Counted& loop, IndexBuilder& index) {
        if (kernel_.type(offset) != Type::kI32) {
            return {};
        }
        IndexAlgebra& algebra = index.algebra();
        const IndexExpr expr = index.Of(offset);
        const IndexSum sum = algebra.sum(expr);
        OwnPlace own = {.at = sum.constant};
        IndexExpr counted = algebra.Constant(own.at);
        for (const IndexSum::Part& part : sum.parts) {
            const IndexTerm term = algebra.term(part.term);
            if (term.kind == IndexTerm::Kind::kSymbol && CountsIterations(term.symbol, loop)) {
                own.scale = part.factor;
                const IndexExpr scale = algebra.Constant(part.factor);
                counted =
                    algebra.Add(counted, algebra.Multiply(algebra.Symbol(term.symbol), scale));
            }
        }
        const auto if_steady = [&](const IndexSymbol& symbol) {
            return IsSteady(symbol, loop) ? algebra.Symbol(symbol) : IndexExpr();
        };
        own.base = algebra.Substitute(algebra.Subtract(expr, counted), 32, if_steady);
        // Offsets of 32 bits do not come back to where another iteration was.
        const bool apart =
            own.scale > 0 && own.scale <= INT32_MAX / static_cast<int64_t>(invocations_);
        return apart && own.base.valid() ? std::optional(own) : std::nullopt;
    }

    static bool CountsIterations(const IndexSymbol& symbol, const Counted& loop) {
        return symbol.kind == IndexSymbol::Kind::kIteration && symbol.number == loop.loop.value();
    }

    // The same in all iterations of the loop.
    bool IsSteady(const IndexSymbol& symbol, const Counted& loop) const {
        if ((symbol.axes & kIterationAxis) == 0) {
            return true;
        }
        return symbol.kind == IndexSymbol::Kind::kValue &&
               !IsInside(structure_.DefinitionBlock(kernel_, ValueId{symbol.number}), loop.loop);
    }

    // Whether each iteration of `loop` comes to the instruction: through loops only that run.
    bool IsReached(InstId id, InstId loop) const {
        InstId parent = kernel_.block(structure_.block_of[id.value()]).parent;
        while (parent != loop) {
            const Instruction& inside = kernel_.inst(parent);
            uint64_t first = 0;
            uint64_t count = 0;
            std::vector<InstId> body;
            if (inside.op != Op::kLoop || inside.operands.empty() ||
                !kernel_.IsConst(inside.operands[0], &first) || !IsTestedFirst(parent, body)) {
                return false;
            }
            const Block& begin = kernel_.block(inside.blocks[0]);
            const Instruction& test = kernel_.inst(begin.insts[0]);
            if ((test.op != Op::kSLt && test.op != Op::kULt) ||
                test.operands[0] != begin.params[0] || !kernel_.IsConst(test.operands[1], &count) ||
                count > INT32_MAX || first >= count) {
                return false;
            }
            parent = kernel_.block(structure_.block_of[parent.value()]).parent;
        }
        return true;
    }

    // A sum that iterations keep in one element of a buffer, which each of them reads and writes
    // more than once, is a private variable in between. That another binding may be the same memory
    // is no obstacle either: then an invocation would read what another one writes.
    bool IsSum(const Memory& memory, const Counted& loop, std::vector<InstId>& accesses) const {
        bool is_read = false;
        bool is_reached = false;
        bool repeats = false;  // in a loop inside
        Type type = Type::kVoid;
        for (InstId id : memory.accesses) {
            const Instruction& inst = kernel_.inst(id);
            const bool loads = inst.op == Op::kLoadBuffer;
            const ValueId value = loads ? inst.results[0] : inst.operands.back();
            if (type == Type::kVoid) {
                type = kernel_.type(value);
            }
            if ((!loads && inst.op != Op::kStoreBuffer) || kernel_.type(value) != type ||
                memory.high - memory.low != ByteSize(type)) {
                return false;
            }
            if (LoopAround(id) != &loop) {
                continue;
            }
            is_read |= loads;
            is_reached |= IsReached(id, loop.loop);
            repeats |= kernel_.block(structure_.block_of[id.value()]).parent != loop.loop;
            accesses.push_back(id);
        }
        return memory.is_stored && is_read && is_reached && (repeats || accesses.size() > 2);
    }

    // Makes the value anew at the beginning of an iteration, if that can be done with so many
    // instructions.
    bool CloneToBegin(ValueId value,
                      const Counted& loop,
                      Cloner& cloner,
                      std::vector<InstId>& begin,
                      uint32_t& budget) {
        if (value == loop.counter || cloner.Value(value) != value ||
            !IsInside(structure_.DefinitionBlock(kernel_, value), loop.loop)) {
            return true;
        }
        const InstId id = kernel_.value(value).inst;
        if (!id.valid() || !HasProperty(kernel_.inst(id).op, kPure) || budget == 0) {
            return false;
        }
        --budget;
        for (ValueId operand : std::vector(kernel_.inst(id).operands)) {
            if (!CloneToBegin(operand, loop, cloner, begin, budget)) {
                return false;
            }
        }
        begin.push_back(cloner.Clone(id));
        return true;
    }

    // The body, with what an element keeps in a local of its own.
    void KeepLocally(std::vector<InstId> accesses, Counted& loop) {
        const Instruction first = kernel_.inst(accesses[0]);
        std::vector<InstId> begin;
        Cloner cloner(kernel_);
        uint32_t budget = kMaxOffsetInstructions;
        if (!CloneToBegin(first.operands[1], loop, cloner, begin, budget)) {
            return;
        }
        const ValueId offset = cloner.Value(first.operands[1]);
        const bool loads = first.op == Op::kLoadBuffer;
        const Type type = kernel_.type(loads ? first.results[0] : first.operands.back());
        const auto local = kernel_.locals.size();
        kernel_.locals.push_back({.type = type, .count = 1});
        const auto make = [&](std::vector<InstId>& into, Op op, Type result,
                              std::initializer_list<ValueId> operands, uint64_t imm) {
            const bool has_result = result != Type::kVoid;
            const InstId made = kernel_.NewInst(op, {operands.begin(), operands.size()},
                                                {&result, has_result ? size_t{1} : size_t{0}});
            kernel_.inst(made).imm = imm;
            into.push_back(made);
            return has_result ? kernel_.inst(made).results[0] : ValueId();
        };
        const ValueId zero = make(begin, Op::kConst, Type::kI32, {}, 0);
        const ValueId buffer = make(begin, Op::kBuffer, Type::kBuffer, {zero},
                                    kernel_.Definition(first.operands[0])->imm);
        const ValueId old = make(begin, Op::kLoadBuffer, type, {buffer, offset}, first.imm);
        make(begin, Op::kStoreLocal, Type::kVoid, {zero, old}, local);
        for (InstId id : accesses) {
            Instruction& inst = kernel_.inst(id);
            const bool is_load = inst.op == Op::kLoadBuffer;
            inst.operands = is_load ? std::vector{zero} : std::vector{zero, inst.operands.back()};
            inst.op = is_load ? Op::kLoadLocal : Op::kStoreLocal;
            inst.imm = local;
        }
        loop.body.insert(loop.body.begin(), begin.begin(), begin.end());
        const ValueId last = make(loop.body, Op::kLoadLocal, type, {zero}, local);
        make(loop.body, Op::kStoreBuffer, Type::kVoid, {buffer, offset, last}, first.imm);
    }

    void Rewrite() {
        for (const auto& [place, memory] : memories_) {
            for (Counted& loop : loops_) {
                std::vector<InstId> accesses;
                if (IsSum(memory, loop, accesses)) {
                    KeepLocally(accesses, loop);
                }
            }
        }
        const Type i32 = Type::kI32;
        const InstId builtin = kernel_.NewInst(Op::kBuiltin, {}, {&i32, 1});
        kernel_.inst(builtin).imm = static_cast<uint64_t>(BuiltinId::kLocalIndex);
        std::vector<InstId> insts = {builtin};
        std::vector<ValueId> map(kernel_.num_values());
        for (InstId id : kernel_.block(kernel_.body).insts) {
            const auto loop = std::ranges::find(loops_, id, &Counted::loop);
            if (loop == loops_.end()) {
                insts.push_back(id);
                continue;
            }
            insts.insert(insts.end(), loop->body.begin(), loop->body.end());
            map[loop->counter.value()] = kernel_.inst(builtin).results[0];
        }
        kernel_.block(kernel_.body).insts = std::move(insts);
        kernel_.ReplaceUses(map);
    }

    Kernel& kernel_;
    const Structure structure_;
    uint64_t invocations_ = 0;
    std::vector<Counted> loops_;
    std::map<std::pair<uint32_t, uint32_t>, Memory> memories_;  // by set and binding
};

}  // namespace

bool DistributeLoops(Kernel& kernel) {
    return DistributedLoops(kernel).Run();
}

}  // namespace fornax::kernel
