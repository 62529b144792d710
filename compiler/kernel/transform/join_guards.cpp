// Loads of neighbouring elements, each under a condition of its own, become one load.
//
// A texel outside of an image reads 0, so the load of a texel stands in a branch. A shader that
// computes a tile of texels, or the products of one, has several such branches side by side, which
// CombineMemoryAccesses does not look across. Where the conditions differ between the invocations
// of a workgroup, all is loaded if one of the conditions holds, and each value is chosen by its own
// condition: an element of a robust buffer may be read wherever it lies. Where the conditions are
// the workgroup's, they nearly always hold all together, and the branches stay for when they do
// not.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "compiler/kernel/index/index_builder.h"
#include "compiler/kernel/ir/any_inside.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/condition_parts.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr size_t kMostInstructions = 32;  // of a branch
constexpr size_t kMostElements = 16;      // of a joined load
constexpr size_t kMostOpen = 64;          // branches that may be joined with one another
constexpr int64_t kFarthest = 64;         // bytes from the first element
constexpr size_t kMostGroups = 64;        // of a kernel

// A branch that loads on one side and does nothing but compute on both.
struct Guarded {
    InstId branch;
    InstId load;
};

struct Group {
    BlockId block;
    std::vector<Guarded> members;  // in the order of the text
    bool choose = false;           // each value by its own condition
};

class Joiner {
  public:
    explicit Joiner(Kernel& kernel) : kernel_(kernel), index_(kernel, {.alike_lanes = true}) {}

    bool Run() {
        Find(kernel_.body);
        bool any = false;
        for (Group& group : groups_) {
            // What joins members of one group may part those of another one, or change their order.
            SortMembers(group);
            if (IsIndependent(group)) {
                Rewrite(group);
                kernel_.ReplaceUses(map_);
                any = true;
            }
        }
        return any;
    }

  private:
    // --- which branches are joined ---

    bool IsComputed(const Instruction& inst) const {
        return HasProperty(inst.op, kPure) && inst.op != Op::kLaneRange;
    }
    bool IsLoad(const Instruction& inst) const {
        return inst.op == Op::kLoadBuffer && (inst.flags & kVolatile) == 0;
    }

    // Neither writes memory nor leaves the block.
    bool MayPass(InstId id) const {
        const Instruction& inst = kernel_.inst(id);
        return IsComputed(inst) || IsLoad(inst) ||
               (inst.op == Op::kIf && (inst.flags & kVote) == 0 &&
                std::ranges::all_of(inst.blocks, [&](BlockId block) {
                    return std::ranges::all_of(kernel_.block(block).insts, [&](InstId inner) {
                        return kernel_.inst(inner).op == Op::kYield || MayPass(inner);
                    });
                }));
    }

    // The loads of a block that does nothing else but compute, and yields.
    bool FindLoads(BlockId block, std::vector<InstId>& loads) const {
        const std::vector<InstId>& insts = kernel_.block(block).insts;
        if (insts.size() > kMostInstructions || kernel_.inst(insts.back()).op != Op::kYield) {
            return false;
        }
        for (size_t i = 0; i + 1 < insts.size(); ++i) {
            const Instruction& inst = kernel_.inst(insts[i]);
            if (IsLoad(inst)) {
                loads.push_back(insts[i]);
            } else if (!IsComputed(inst)) {
                return false;
            }
        }
        return true;
    }

    bool FindGuarded(InstId id, Guarded& guarded) const {
        const Instruction& inst = kernel_.inst(id);
        std::vector<InstId> loads;
        if (inst.op != Op::kIf || (inst.flags & kVote) != 0 || !FindLoads(inst.blocks[0], loads) ||
            loads.size() != 1 || !FindLoads(inst.blocks[1], loads) || loads.size() != 1) {
            return false;
        }
        guarded = {id, loads[0]};
        return std::ranges::none_of(
            inst.results, [&](ValueId result) { return kernel_.type(result) == Type::kBuffer; });
    }

    void Find(BlockId block) {
        std::vector<Guarded> open;
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            Guarded guarded;
            if (FindGuarded(id, guarded)) {
                open.push_back(guarded);
                if (open.size() == kMostOpen) {
                    Close(block, open);
                }
                continue;
            }
            for (BlockId inner : inst.blocks) {
                Find(inner);
            }
            if (!IsComputed(inst) && !IsLoad(inst)) {
                Close(block, open);
            }
        }
        Close(block, open);
    }

    bool IsSameBuffer(ValueId a, ValueId b) const {
        const Instruction* first = kernel_.Definition(a);
        const Instruction* second = kernel_.Definition(b);
        return a == b || (first && second && first->op == Op::kBuffer && second->op == first->op &&
                          first->imm == second->imm && first->operands == second->operands);
    }

    int64_t BytesOf(const Guarded& guarded) const {
        const Instruction& load = kernel_.inst(guarded.load);
        return int64_t{ByteSize(kernel_.type(load.results[0]))} *
               static_cast<int64_t>(load.results.size());
    }

    // Sorts the branches into those whose elements lie side by side.
    void Close(BlockId block, std::vector<Guarded>& open) {
        while (open.size() > 1 && groups_.size() < kMostGroups) {
            const Instruction& first = kernel_.inst(open[0].load);
            std::vector<std::pair<int64_t, size_t>> near = {{0, 0}};  // bytes from the first; which
            for (size_t i = 1; i < open.size(); ++i) {
                const Instruction& other = kernel_.inst(open[i].load);
                if (kernel_.type(other.results[0]) != kernel_.type(first.results[0]) ||
                    !IsSameBuffer(other.operands[0], first.operands[0])) {
                    continue;
                }
                const auto distance = index_.Distance(first.operands[1], other.operands[1]);
                if (distance && std::abs(*distance) <= kFarthest) {
                    near.emplace_back(*distance, i);
                }
            }
            std::ranges::sort(near);
            // The run that the first one is in.
            size_t begin = static_cast<size_t>(
                std::ranges::find(near, size_t{0}, &std::pair<int64_t, size_t>::second) -
                near.begin());
            size_t end = begin + 1;
            size_t elements = kernel_.inst(open[0].load).results.size();
            const auto joins = [&](size_t before, size_t more) {
                const size_t count = kernel_.inst(open[near[more].second].load).results.size();
                const bool fits = near[before].first + BytesOf(open[near[before].second]) ==
                                      near[before + 1].first &&
                                  elements + count <= kMostElements;
                elements += fits ? count : 0;
                return fits;
            };
            while (end < near.size() && joins(end - 1, end)) {
                ++end;
            }
            while (begin > 0 && joins(begin - 1, begin - 1)) {
                --begin;
            }
            std::set<size_t> chosen;
            for (size_t i = begin; i < end; ++i) {
                chosen.insert(near[i].second);
            }
            Group group = {.block = block, .members = {}};
            for (size_t i : chosen) {
                group.members.push_back(open[i]);
            }
            const bool same = HaveOneCondition(group);
            group.choose = same || DifferInWorkgroup(group);
            if (group.members.size() > 1 &&
                (!group.choose || same || kernel_.robust_buffer_access) && IsIndependent(group)) {
                groups_.push_back(std::move(group));
            } else {
                chosen = {0};
            }
            for (auto at = chosen.rbegin(); at != chosen.rend(); ++at) {
                open.erase(open.begin() + static_cast<std::ptrdiff_t>(*at));
            }
        }
        open.clear();
    }

    bool HaveOneCondition(const Group& group) const {
        return std::ranges::all_of(group.members, [&](const Guarded& member) {
            return kernel_.inst(member.branch).operands[0] ==
                   kernel_.inst(group.members[0].branch).operands[0];
        });
    }

    // What the conditions do not share depends on the invocation. An assumption on which nothing
    // but speed depends.
    bool DifferInWorkgroup(const Group& group) {
        std::vector<std::set<ValueId>> parts;
        std::set<ValueId> all;
        for (const Guarded& member : group.members) {
            parts.emplace_back();
            AddParts(kernel_.inst(member.branch).operands[0], parts.back());
            all.insert(parts.back().begin(), parts.back().end());
        }
        return std::ranges::any_of(all, [&](ValueId part) {
            return (index_.Axes(part) & kLaneAxis) != 0 &&
                   std::ranges::any_of(parts, [&](const auto& of) { return !of.contains(part); });
        });
    }

    void AddParts(ValueId condition, std::set<ValueId>& parts) const {
        const std::vector<ValueId> found = PartsOfCondition(kernel_, condition);
        parts.insert(found.begin(), found.end());
    }

    // What of the block's instructions before `end`, if it is valid, follows from the results of
    // those of the group.
    std::set<InstId> Following(const Group& group, InstId end = {}) const {
        std::set<ValueId> values;
        std::set<InstId> following;
        const std::vector<InstId>& insts = kernel_.block(group.block).insts;
        for (auto at = std::ranges::find(insts, group.members[0].branch);
             at != insts.end() && *at != end; ++at) {
            const bool is_member = std::ranges::any_of(
                group.members, [&](const Guarded& one) { return one.branch == *at; });
            if (is_member || Uses(*at, values)) {
                const std::vector<ValueId>& results = kernel_.inst(*at).results;
                values.insert(results.begin(), results.end());
                following.insert(*at);
            }
        }
        return following;
    }

    bool Uses(InstId id, const std::set<ValueId>& values) const {
        return AnyInside(kernel_, id, [&](const Instruction& inst) {
            return std::ranges::any_of(inst.operands,
                                       [&](ValueId value) { return values.contains(value); });
        });
    }

    void SortMembers(Group& group) const {
        const std::vector<InstId>& insts = kernel_.block(group.block).insts;
        std::ranges::sort(group.members, {}, [&](const Guarded& member) {
            return std::ranges::find(insts, member.branch) - insts.begin();
        });
    }

    // No branch needs what another one gives.
    bool IsIndependent(const Group& group) const {
        std::set<ValueId> values;
        for (InstId id : Following(group, group.members.back().branch)) {
            const std::vector<ValueId>& results = kernel_.inst(id).results;
            values.insert(results.begin(), results.end());
        }
        return std::ranges::none_of(
            group.members, [&](const Guarded& member) { return Uses(member.branch, values); });
    }

    // --- the rewriting ---

    void Rewrite(const Group& group) {
        const std::set<InstId> following = Following(group);
        const std::vector<InstId> old = std::move(kernel_.block(group.block).insts);
        // As late as possible, so that few values wait for their use: what nothing of the group
        // leads to comes before it. Bitcasts are no use.
        auto last = std::ranges::find(old, group.members.back().branch);
        while (MayPass(last[1]) &&
               (!following.contains(last[1]) || kernel_.inst(last[1]).op == Op::kBitcast)) {
            ++last;
        }
        std::vector<InstId>& insts = kernel_.block(group.block).insts;
        insts.clear();
        std::copy_if(old.begin(), last + 1, std::back_inserter(insts),
                     [&](InstId id) { return !following.contains(id); });
        if (group.choose) {
            Choose(group);
        } else {
            Specialize(group);
        }
        std::vector<InstId>& now = kernel_.block(group.block).insts;
        std::copy_if(old.begin(), last + 1, std::back_inserter(now), [&](InstId id) {
            return following.contains(id) &&
                   std::ranges::none_of(group.members,
                                        [&](const Guarded& one) { return one.branch == id; });
        });
        now.insert(now.end(), last + 1, old.end());
    }

    // A branch with all results of the group's, in place of theirs.
    InstId NewBranch(const Group& group, ValueId condition) {
        std::vector<ValueId> old;
        std::vector<Type> types;
        for (const Guarded& member : group.members) {
            for (ValueId result : kernel_.inst(member.branch).results) {
                old.push_back(result);
                types.push_back(kernel_.type(result));
            }
        }
        const InstId branch = kernel_.NewInst(Op::kIf, std::array{condition}, types);
        kernel_.inst(branch).origin = kernel_.inst(group.members[0].branch).origin;
        kernel_.block(group.block).insts.push_back(branch);
        for (int side = 0; side < 2; ++side) {
            const BlockId block = kernel_.NewBlock(branch);
            kernel_.inst(branch).blocks.push_back(block);
        }
        map_.resize(kernel_.num_values());
        for (size_t i = 0; i < old.size(); ++i) {
            map_[old[i].value()] = kernel_.inst(branch).results[i];
        }
        return branch;
    }

    // Moves a block's instructions to the end of another one; gives what it yielded.
    std::vector<ValueId> MoveInto(BlockId from, BlockId to) {
        const std::vector<InstId> insts = std::move(kernel_.block(from).insts);
        std::vector<InstId>& into = kernel_.block(to).insts;
        into.insert(into.end(), insts.begin(), insts.end() - 1);
        return kernel_.inst(insts.back()).operands;
    }

    // All of the parts; invalid for none.
    ValueId And(const std::set<ValueId>& parts, Builder& builder) {
        ValueId all;
        for (ValueId part : parts) {
            all = all.valid() ? builder.Emit(Op::kAnd, Type::kBool, {all, part}) : part;
        }
        return all;
    }

    // What all conditions share stays outside of what values are chosen by: lanes often have it in
    // common.
    void Choose(const Group& group) {
        std::vector<ValueId> others;
        std::vector<std::vector<BlockId>> blocks;
        std::vector<std::set<ValueId>> parts;
        std::set<ValueId> common;
        Builder before(kernel_, group.block);
        before.SetOrigin(kernel_.inst(group.members[0].branch).origin);
        for (const Guarded& member : group.members) {
            const Instruction& branch = kernel_.inst(member.branch);
            blocks.push_back(branch.blocks);
            parts.emplace_back();
            AddParts(branch.operands[0], parts.back());
            const auto is_elsewhere = [&](ValueId part) { return !parts.back().contains(part); };
            if (parts.size() == 1) {
                common = parts[0];
            }
            std::erase_if(common, is_elsewhere);
            const std::vector<ValueId> values = MoveInto(blocks.back()[1], group.block);
            others.insert(others.end(), values.begin(), values.end());
        }
        std::vector<ValueId> own;  // by member: what its values are chosen by; invalid for nothing
        ValueId any;
        bool always = false;
        for (std::set<ValueId>& of : parts) {
            std::erase_if(of, [&](ValueId part) { return common.contains(part); });
            own.push_back(And(of, before));
            always |= of.empty();
        }
        for (size_t i = 0; i < own.size() && !always; ++i) {
            any = i == 0 ? own[0] : before.Emit(Op::kOr, Type::kBool, {any, own[i]});
        }
        if (!always) {
            common.insert(any);
        }
        const InstId branch = NewBranch(group, And(common, before));
        const std::vector<BlockId> sides = kernel_.inst(branch).blocks;
        Builder builder(kernel_, sides[0]);
        std::vector<ValueId> chosen;
        for (size_t i = 0; i < group.members.size(); ++i) {
            builder.SetOrigin(kernel_.inst(group.members[i].branch).origin);
            for (ValueId value : MoveInto(blocks[i][0], sides[0])) {
                const ValueId other = others[chosen.size()];
                chosen.push_back(
                    value == other || !own[i].valid()
                        ? value
                        : builder.Emit(Op::kSelect, kernel_.type(value), {own[i], value, other}));
            }
        }
        builder.Append(Op::kYield, chosen, {});
        Builder(kernel_, sides[1]).Append(Op::kYield, others, {});
    }

    void Specialize(const Group& group) {
        Builder before(kernel_, group.block);
        before.SetOrigin(kernel_.inst(group.members[0].branch).origin);
        std::set<ValueId> parts;
        for (const Guarded& member : group.members) {
            AddParts(kernel_.inst(member.branch).operands[0], parts);
        }
        const InstId branch = NewBranch(group, And(parts, before));
        const std::vector<BlockId> sides = kernel_.inst(branch).blocks;
        Cloner cloner(kernel_);
        std::vector<ValueId> separate;
        for (const Guarded& member : group.members) {
            const InstId copy = cloner.CloneOne(member.branch, sides[1]);
            const std::vector<ValueId>& results = kernel_.inst(copy).results;
            separate.insert(separate.end(), results.begin(), results.end());
        }
        std::vector<ValueId> together;
        for (const Guarded& member : group.members) {
            const BlockId block = kernel_.inst(member.branch).blocks[0];
            const std::vector<ValueId> values = MoveInto(block, sides[0]);
            together.insert(together.end(), values.begin(), values.end());
        }
        Builder(kernel_, sides[0]).Append(Op::kYield, together, {});
        Builder(kernel_, sides[1]).Append(Op::kYield, separate, {});
    }

    Kernel& kernel_;
    IndexBuilder index_;  // before anything changes
    std::vector<Group> groups_;
    std::vector<ValueId> map_;
};

}  // namespace

bool JoinGuards(Kernel& kernel) {
    return Joiner(kernel).Run();
}

}  // namespace fornax::kernel
