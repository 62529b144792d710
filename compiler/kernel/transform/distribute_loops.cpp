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
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// A loop over 0, 1, ... with as many iterations as invocations.
struct Counted {
    InstId loop;
    ValueId counter;
    std::vector<InstId> body;  // without what ends it
};

// scale * counter + constant + a sum of values that are the same in all iterations, each with a
// factor, and if it is opaque something else that is.
struct Affine {
    int64_t scale = 0;
    int64_t constant = 0;
    std::map<uint32_t, int64_t> terms = {};  // factors by value
    bool opaque = false;
};

// What a kernel does with workgroup memory or with a buffer, all of it in places of an iteration's
// own: bytes low to high behind scale * counter + terms.
struct Memory {
    bool is_stored = false;
    bool is_own = true;
    std::optional<Affine> offset = {};  // of the first access
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
        for (InstId id : kernel_.block(kernel_.body).insts) {
            if (std::optional<Counted> loop = Find(id)) {
                loops_.push_back(std::move(*loop));
            }
        }
        if (loops_.empty() || !HaveOwnMemory()) {
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
            block = parent.valid() ? structure_.block_of[parent.index] : BlockId{};
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
    std::optional<Counted> Find(InstId id) const {
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
            !CountsUp(kernel_.inst(end.insts.back()), found.counter)) {
            return {};
        }
        return found;
    }

    bool Tests(const Instruction& test, ValueId counter) const {
        uint64_t count = 0;
        return (test.op == Op::kSLt || test.op == Op::kULt) && test.operands[0] == counter &&
               kernel_.IsConst(test.operands[1], &count) && count == invocations_;
    }

    bool CountsUp(const Instruction& next, ValueId counter) const {
        const Instruction* sum = kernel_.Definition(next.operands[0]);
        uint64_t step = 0;
        return sum && sum->op == Op::kIAdd && sum->operands[0] == counter &&
               kernel_.IsConst(sum->operands[1], &step) && step == 1;
    }

    // How many instructions inside go to the loop's end or out of it; returns count as many.
    uint32_t Leaves(InstId loop) const {
        uint32_t count = 0;
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if ((inst.target == loop && inst.op != Op::kLoop) ||
                (inst.op == Op::kReturn && IsInside(structure_.block_of[id.index], loop))) {
                ++count;
            }
        }
        return count;
    }

    const Counted* LoopAround(InstId id) const {
        for (const Counted& loop : loops_) {
            if (IsInside(structure_.block_of[id.index], loop.loop)) {
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
    bool HaveOwnMemory() {
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
            const auto offset = loop ? AffineOf(inst.operands[is_shared ? 0 : 1], *loop, 0)
                                     : std::optional<Affine>();
            memory.is_own = memory.is_own && offset && AddAccess(memory, *offset, BytesOf(inst));
        }
        return std::ranges::all_of(memories_, [](const auto& item) {
            return item.second.is_own || !item.second.is_stored;
        });
    }

    // Offsets of 32 bits do not come back to where another iteration was.
    bool IsApart(const Affine& offset) const {
        return offset.scale > 0 && offset.scale * static_cast<int64_t>(invocations_) <= INT32_MAX;
    }

    bool AddAccess(Memory& memory, const Affine& offset, int64_t bytes) const {
        if (!memory.offset) {
            memory.offset = offset;
            memory.low = offset.constant;
            memory.high = offset.constant;
        }
        memory.low = std::min(memory.low, offset.constant);
        memory.high = std::max(memory.high, offset.constant + bytes);
        return !offset.opaque && IsApart(offset) && offset.scale == memory.offset->scale &&
               offset.terms == memory.offset->terms && memory.high - memory.low <= offset.scale;
    }

    std::optional<Affine> AffineOf(ValueId value, const Counted& loop, uint32_t depth) const {
        constexpr uint32_t kMaxDepth = 24;
        constexpr int64_t kMaxScale = 1 << 24;
        constexpr int64_t kMaxShift = 24;
        uint64_t bits = 0;
        if (value == loop.counter) {
            return Affine{.scale = 1};
        }
        if (kernel_.IsConst(value, &bits)) {
            return Affine{.constant = static_cast<int32_t>(bits)};
        }
        const Instruction* inst = kernel_.Definition(value);
        if (!inst) {
            return {};  // of a loop inside
        }
        const InstId id = kernel_.value(value).inst;
        if (!IsInside(structure_.block_of[id.index], loop.loop)) {
            return Affine{.terms = {{value.index, 1}}};
        }
        if (!HasProperty(inst->op, kPure) || depth == kMaxDepth ||
            kernel_.type(value) != Type::kI32) {
            return {};
        }
        std::vector<Affine> in;
        for (ValueId operand : inst->operands) {
            const auto part = AffineOf(operand, loop, depth + 1);
            if (!part) {
                return {};
            }
            in.push_back(*part);
        }
        const bool by_number = in.size() == 2 && kernel_.IsConst(inst->operands[1]);
        Affine result;
        if (inst->op == Op::kIAdd) {
            result = std::move(in[0]);
            result.scale += in[1].scale;
            result.constant += in[1].constant;
            result.opaque |= in[1].opaque;
            for (const auto& [term, factor] : in[1].terms) {
                result.terms[term] += factor;
            }
        } else if (by_number && (inst->op == Op::kIMul || inst->op == Op::kShl)) {
            const int64_t number = in[1].constant;
            if (inst->op == Op::kShl && (number < 0 || number > kMaxShift)) {
                return {};
            }
            const int64_t factor = inst->op == Op::kShl ? int64_t{1} << number : number;
            result = std::move(in[0]);
            result.scale *= factor;
            result.constant *= factor;
            for (auto& [term, of_term] : result.terms) {
                of_term *= factor;
            }
        } else {
            result.opaque = true;
            for (const Affine& part : in) {
                if (part.scale != 0) {
                    return {};
                }
            }
        }
        const auto is_large = [](const auto& term) { return std::abs(term.second) > INT32_MAX; };
        // Nothing wraps that would bring two iterations together.
        const bool small = std::abs(result.scale) <= kMaxScale &&
                           std::abs(result.constant) <= INT32_MAX &&
                           std::ranges::none_of(result.terms, is_large);
        return small ? std::optional(std::move(result)) : std::nullopt;
    }

    // Whether each iteration of `loop` comes to the instruction: through loops only that run.
    bool IsReached(InstId id, InstId loop) const {
        InstId parent = kernel_.block(structure_.block_of[id.index]).parent;
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
            parent = kernel_.block(structure_.block_of[parent.index]).parent;
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
            repeats |= kernel_.block(structure_.block_of[id.index]).parent != loop.loop;
            accesses.push_back(id);
        }
        return memory.is_stored && is_read && is_reached && (repeats || accesses.size() > 2);
    }

    // The body, with what `memory` keeps in a local of its own.
    void KeepLocally(const Memory& memory, std::vector<InstId> accesses, Counted& loop) {
        const Instruction first = kernel_.inst(accesses[0]);
        const bool loads = first.op == Op::kLoadBuffer;
        const Type type = kernel_.type(loads ? first.results[0] : first.operands.back());
        const auto local = kernel_.locals.size();
        kernel_.locals.push_back({.type = type, .count = 1});
        std::vector<InstId> begin;
        const auto make = [&](std::vector<InstId>& into, Op op, Type result,
                              std::initializer_list<ValueId> operands, uint64_t imm) {
            const bool has_result = result != Type::kVoid;
            const InstId made = kernel_.NewInst(op, {operands.begin(), operands.size()},
                                                {&result, has_result ? size_t{1} : size_t{0}});
            kernel_.inst(made).imm = imm;
            into.push_back(made);
            return has_result ? kernel_.inst(made).results[0] : ValueId();
        };
        const auto number = [&](int64_t bits) {
            return make(begin, Op::kConst, Type::kI32, {}, static_cast<uint32_t>(bits));
        };
        const auto product = [&](ValueId value, int64_t factor) {
            return make(begin, Op::kIMul, Type::kI32, {value, number(factor)}, 0);
        };
        const auto sum = [&](ValueId a, ValueId b) {
            return make(begin, Op::kIAdd, Type::kI32, {a, b}, 0);
        };
        ValueId offset = sum(product(loop.counter, memory.offset->scale), number(memory.low));
        for (const auto& [term, factor] : memory.offset->terms) {
            offset = sum(offset, product(ValueId{term}, factor));
        }
        const ValueId zero = number(0);
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
                    KeepLocally(memory, accesses, loop);
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
            map[loop->counter.index] = kernel_.inst(builtin).results[0];
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
