// The rest of a loop from somewhere in its body on is the rest of that iteration and then the loop
// itself:
//   loop @0 (%p = %a) {
//     A; if %c {...} else {...}; B; continue @0 %x
//   } continuing (%q) { C; next %y }
// gives
//   scope @1 {
//     %q = scope @2 { if %c {...} else {...}; B; exit @2 %x }
//     C
//     %r = loop @3 (%p = %y) {
//       A; if %c {...} else {...}; B; continue @3 %x
//     } continuing (%q) { C; next %y }
//     yield %r
//   }
// where exits from @0 are exits from @1 in the first part. Values of A that are used in it, and
// ways out of the whole, go through private variables, so that those who stay together pay nothing.
#include "compiler/kernel/transform/barrier_rest.h"
#include "compiler/kernel/ir/builder.h"

#include <algorithm>
#include <utility>

namespace fornax::kernel {

using namespace ir;

namespace {

// Made again rather than kept. Buffers cannot be kept.
bool IsMadeAgain(Op op) {
    return op == Op::kConst || op == Op::kUndef || op == Op::kBuiltin || op == Op::kBuffer ||
           op == Op::kBufferFrom;
}

}  // namespace

uint32_t BarrierRest::NewLocal(Type type) {
    kernel_.locals.push_back({type, 1});
    return static_cast<uint32_t>(kernel_.locals.size() - 1);
}

ValueId BarrierRest::LoadLocal(Builder& builder, uint32_t local) {
    return builder.Emit(Op::kLoadLocal, kernel_.locals[local].type, {builder.ConstI32(0)}, local);
}

void BarrierRest::StoreLocal(Builder& builder, uint32_t local, ValueId value) {
    builder.Append(Op::kStoreLocal, std::vector{builder.ConstI32(0), value}, {}, local);
}

void BarrierRest::Copy(const Structure& structure, InstId around, InstId branch) {
    branch_ = branch;
    for (InstId id = branch; id != around;) {
        const BlockId block = structure.block_of[id.value()];
        const InstId parent = kernel_.block(block).parent;
        steps_.push_back({parent, block, structure.position[id.value()]});
        id = parent;
    }
    std::ranges::reverse(steps_);
    // What is visible at the branch and not outside.
    for (const Step& step : steps_) {
        for (ValueId param : kernel_.block(kernel_.inst(step.construct).blocks[0]).params) {
            kept_[param.value()] = {};
        }
        for (ValueId param : kernel_.block(step.block).params) {
            kept_[param.value()] = {};
        }
        for (size_t i = 0; i < step.index; ++i) {
            for (ValueId result : kernel_.inst(kernel_.block(step.block).insts[i]).results) {
                kept_[result.value()] = {};
            }
        }
    }
    head_ = kernel_.NewBlock(InstId{});
    const BlockId hold = kernel_.NewBlock(InstId{});
    if (steps_.empty()) {
        // A scope of its own, for the ways out.
        BlockId contents;
        scope_ = NewScope(kernel_.inst(branch).results, contents);
        const InstId copy = cloner_.CloneOne(branch, contents);
        Builder(kernel_, contents).Append(Op::kYield, std::vector(kernel_.inst(copy).results), {});
    } else {
        scope_ = CopyFrom(0, hold);
    }
    std::vector<InstId> inside = {scope_};
    Detach(kernel_.inst(scope_).blocks[0], inside);
    Builder before(kernel_, head_);
    UseKept(kernel_.inst(scope_).blocks[0], before);
    if (way_local_ != UINT32_MAX) {
        StoreLocal(before, way_local_, before.ConstI32(0));
    }
}

InstId BarrierRest::NewScope(std::span<const ValueId> results, BlockId& contents) {
    std::vector<Type> types;
    for (ValueId result : results) {
        types.push_back(kernel_.type(result));
    }
    const InstId scope = kernel_.NewInst(Op::kScope, {}, types);
    contents = kernel_.NewBlock(scope);
    kernel_.inst(scope).blocks = {contents};
    return scope;
}

// Appends the copy of a construct on the way to the branch, from the branch on.
InstId BarrierRest::CopyFrom(size_t level, BlockId into) {
    if (level == steps_.size()) {
        return cloner_.CloneOne(branch_, into);
    }
    const Step step = steps_[level];
    const Instruction construct = kernel_.inst(step.construct);
    BlockId contents;
    const InstId scope = NewScope(construct.results, contents);
    kernel_.block(into).insts.push_back(scope);
    if (construct.op != Op::kLoop) {
        cloner_.MapConstruct(step.construct, scope);
        CopyRest(level, contents, true);
    } else {
        const BlockId continuing = construct.blocks[1];
        if (step.block == continuing) {
            cloner_.MapLoop(step.construct, scope, InstId{});
            CopyRest(level, contents, false);
        } else {
            const std::vector<ValueId> params = kernel_.block(continuing).params;
            BlockId iteration_contents;
            const InstId iteration = NewScope(params, iteration_contents);
            kernel_.block(contents).insts.push_back(iteration);
            cloner_.MapLoop(step.construct, scope, iteration);
            CopyRest(level, iteration_contents, true);
            for (size_t i = 0; i < params.size(); ++i) {
                cloner_.MapValue(params[i], kernel_.inst(iteration).results[i]);
            }
            cloner_.CloneInto(continuing, contents, false);
        }
        cloner_.UnmapLoop();
        std::vector<ValueId> next = kernel_.inst(kernel_.block(continuing).insts.back()).operands;
        for (ValueId& value : next) {
            value = cloner_.Value(value);
        }
        const InstId loop = cloner_.CloneOne(step.construct, contents);
        kernel_.inst(loop).operands = next;
        Builder(kernel_, contents).Append(Op::kYield, std::vector(kernel_.inst(loop).results), {});
    }
    for (size_t i = 0; i < construct.results.size(); ++i) {
        cloner_.MapValue(construct.results[i], kernel_.inst(scope).results[i]);
    }
    return scope;
}

void BarrierRest::CopyRest(size_t level, BlockId into, bool with_terminator) {
    CopyFrom(level + 1, into);
    cloner_.CloneInto(steps_[level].block, into, with_terminator, steps_[level].index + 1);
}

// Those who have parted vote no more, in memory that others may still read: each has its own value
// for the common one, and nobody another. A vote stands in one block, in this order: a value is
// stored, loaded, the mark is cleared, set, loaded.
void BarrierRest::DropVotes(BlockId block) {
    ValueId mine;
    bool is_marked = false;
    std::erase_if(kernel_.block(block).insts, [&](InstId id) {
        Instruction& inst = kernel_.inst(id);
        if ((inst.flags & kVote) == 0) {
            return false;
        }
        if (inst.op != Op::kLoadShared) {
            if (inst.op == Op::kStoreShared && !std::exchange(is_marked, !is_marked)) {
                mine = inst.operands[1];
            }
            return true;
        }
        inst.flags = 0;
        inst.imm = 0;
        inst.op = mine.valid() ? Op::kOr : Op::kConst;
        inst.operands = mine.valid() ? std::vector{mine, mine} : std::vector<ValueId>();
        mine = {};
        return false;
    });
}

// Takes barriers out, and the ways that lead out of the scope.
void BarrierRest::Detach(BlockId block, std::vector<InstId>& inside) {
    DropVotes(block);
    for (InstId id : std::vector(kernel_.block(block).insts)) {
        Instruction& inst = kernel_.inst(id);
        if (inst.op == Op::kBarrier) {
            inst.op = Op::kMemoryBarrier;
        }
        if (inst.target.valid() && std::ranges::find(inside, inst.target) == inside.end()) {
            LeaveLater(block);
        }
        const std::vector<BlockId> blocks = kernel_.inst(id).blocks;
        if (blocks.empty()) {
            continue;
        }
        inside.push_back(id);
        for (BlockId inner : blocks) {
            Detach(inner, inside);
        }
        inside.pop_back();
    }
}

// Makes the block, which leaves the scope for what lies around it, note that and leave the scope.
void BarrierRest::LeaveLater(BlockId block) {
    const Instruction leave = kernel_.inst(kernel_.block(block).insts.back());
    kernel_.block(block).insts.pop_back();
    const Way way{leave.target, leave.op == Op::kContinue};
    if (way_local_ == UINT32_MAX) {
        way_local_ = NewLocal(Type::kI32);
    }
    auto found = std::ranges::find(exits_, way, &Exit::way);
    if (found == exits_.end()) {
        Exit exit{way, {}};
        for (ValueId value : leave.operands) {
            exit.locals.push_back(NewLocal(kernel_.type(value)));
        }
        found = exits_.insert(exits_.end(), std::move(exit));
    }
    Builder builder(kernel_, block);
    StoreLocal(builder, way_local_,
               builder.ConstI32(static_cast<uint32_t>(found - exits_.begin()) + 1));
    for (size_t i = 0; i < leave.operands.size(); ++i) {
        StoreLocal(builder, found->locals[i], leave.operands[i]);
    }
    std::vector<ValueId> nothing;
    for (ValueId result : std::vector(kernel_.inst(scope_).results)) {
        nothing.push_back(builder.Emit(Op::kUndef, kernel_.type(result), {}));
    }
    const InstId exit = builder.Append(Op::kExit, nothing, {});
    kernel_.inst(exit).target = scope_;
}

void BarrierRest::UseKept(BlockId block, Builder& before) {
    for (InstId id : std::vector(kernel_.block(block).insts)) {
        std::vector<ValueId> operands = kernel_.inst(id).operands;
        for (ValueId& operand : operands) {
            operand = Kept(operand, before);
        }
        kernel_.inst(id).operands = operands;
        for (BlockId inner : std::vector(kernel_.inst(id).blocks)) {
            UseKept(inner, before);
        }
    }
}

ValueId BarrierRest::Kept(ValueId value, Builder& before) {
    auto found = kept_.find(value.value());
    if (found == kept_.end()) {
        return value;
    }
    if (found->second.valid()) {
        return found->second;
    }
    ValueId again;
    const Instruction* definition = kernel_.Definition(value);
    if (definition && IsMadeAgain(definition->op)) {
        const Instruction original = *definition;
        std::vector<ValueId> operands = original.operands;
        for (ValueId& operand : operands) {
            operand = Kept(operand, before);
        }
        const Type type = kernel_.type(value);
        const InstId copy =
            before.Append(original.op, operands, {&type, 1}, original.imm, original.flags);
        again = kernel_.inst(copy).results[0];
    } else {
        const uint32_t local = NewLocal(kernel_.type(value));
        stores_.push_back({local, value});
        again = LoadLocal(before, local);
    }
    kept_[value.value()] = again;
    return again;
}

void BarrierRest::Keep(BlockId block) {
    Builder builder(kernel_, block);
    for (auto [local, value] : stores_) {
        StoreLocal(builder, local, value);
    }
}

std::vector<ValueId> BarrierRest::Append(BlockId block) {
    const std::vector<InstId> head = kernel_.block(head_).insts;
    kernel_.block(head_).insts.clear();
    for (InstId id : head) {
        kernel_.block(block).insts.push_back(id);
    }
    kernel_.block(block).insts.push_back(scope_);
    for (size_t i = 0; i < exits_.size(); ++i) {
        Builder builder(kernel_, block);
        const ValueId way = LoadLocal(builder, way_local_);
        const ValueId taken = builder.Emit(Op::kIEq, Type::kBool,
                                           {way, builder.ConstI32(static_cast<uint32_t>(i) + 1)});
        const InstId test = builder.Append(Op::kIf, std::vector{taken}, {});
        const BlockId then = kernel_.NewBlock(test);
        const BlockId otherwise = kernel_.NewBlock(test);
        kernel_.inst(test).blocks = {then, otherwise};
        Builder leaving(kernel_, then);
        std::vector<ValueId> values;
        for (uint32_t local : exits_[i].locals) {
            values.push_back(LoadLocal(leaving, local));
        }
        const InstId leave =
            leaving.Append(exits_[i].way.continues ? Op::kContinue : Op::kExit, values, {});
        kernel_.inst(leave).target = exits_[i].way.target;
        Builder(kernel_, otherwise).Append(Op::kYield, {}, {});
    }
    return kernel_.inst(scope_).results;
}

}  // namespace fornax::kernel
