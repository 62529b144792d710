#include "compiler/kernel/transform/barrier_paths.h"

#include <algorithm>

namespace fornax::kernel {

using namespace ir;

namespace {

// Branches with more sides are not looked at in pairs.
constexpr size_t kMaxSides = 8;

bool IsOfProgram(const Instruction& inst) {
    return inst.op == Op::kBarrier && (inst.flags & kVote) == 0;
}

}  // namespace

std::vector<SideWays> BarrierPaths::Sides(InstId branch) const {
    std::vector<InstId> inside = {branch};
    auto visit = [&](auto& self, BlockId block, SideWays& side) -> void {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            side.returns |= inst.op == Op::kReturn;
            side.falls |= inst.op == Op::kYield && kernel_.block(block).parent == branch;
            if (inst.target == branch) {
                side.falls = true;
            } else if (inst.target.valid() &&
                       std::ranges::find(inside, inst.target) == inside.end()) {
                const Way way{inst.target, inst.op == Op::kContinue};
                if (std::ranges::find(side.leaves, way) == side.leaves.end()) {
                    side.leaves.push_back(way);
                }
            }
            if (inst.blocks.empty()) {
                continue;
            }
            inside.push_back(id);
            for (BlockId inner : inst.blocks) {
                self(self, inner, side);
            }
            inside.pop_back();
        }
    };
    std::vector<SideWays> sides;
    for (BlockId block : kernel_.inst(branch).blocks) {
        visit(visit, block, sides.emplace_back());
    }
    return sides;
}

Way BarrierPaths::Innermost(const std::vector<Way>& ways) const {
    auto depth = [&](Way way) {
        return std::pair(structure_.depth[structure_.block_of[way.target.value()].value()],
                         way.continues);
    };
    return *std::ranges::max_element(ways, {}, depth);
}

bool BarrierPaths::TakenTogether(InstId branch) {
    const std::vector<BlockId>& blocks = kernel_.inst(branch).blocks;
    if (blocks.size() > kMaxSides) {
        return false;
    }
    const std::vector<SideWays> sides = Sides(branch);
    // Where invocations of the one side and of the other can come together first lies at the end of
    // what encloses all ways of one of them.
    auto meets = [&](size_t side, size_t other) {
        if (sides[other].returns) {
            return false;
        }
        std::vector<Way> ways = sides[other].leaves;
        if (sides[other].falls) {
            ways = {{branch, false}};
        }
        if (ways.empty()) {
            return false;
        }
        visited_.clear();
        return Meets(blocks[side], 0, Innermost(ways));
    };
    for (size_t a = 0; a < blocks.size(); ++a) {
        for (size_t b = a + 1; b < blocks.size(); ++b) {
            if (!meets(a, b) && !meets(b, a)) {
                return false;
            }
        }
    }
    return true;
}

bool BarrierPaths::Inside(BlockId block, Way region) const {
    while (block.valid()) {
        const InstId parent = kernel_.block(block).parent;
        if (!parent.valid()) {
            return false;
        }
        if (parent == region.target) {
            return !region.continues || kernel_.inst(parent).blocks[0] == block;
        }
        block = structure_.block_of[parent.value()];
    }
    return false;
}

// True if all ways from there meet a barrier before they leave the region.
bool BarrierPaths::Meets(BlockId block, size_t index, Way region) {
    if (!Inside(block, region)) {
        return false;
    }
    if (!visited_.insert({block, index}).second) {
        return true;  // an iteration without effect, or what was followed already
    }
    const std::vector<InstId>& insts = kernel_.block(block).insts;
    for (size_t i = index; i < insts.size(); ++i) {
        const Instruction& inst = kernel_.inst(insts[i]);
        if (IsOfProgram(inst)) {
            return true;
        }
        if (HasProperty(inst.op, kTerminator)) {
            return MeetsAfter(insts[i], region);
        }
        if (inst.blocks.empty()) {
            continue;
        }
        const Through& through = GoThrough(insts[i]);
        for (InstId leave : through.leaves) {
            if (!MeetsAfter(leave, region)) {
                return false;
            }
        }
        if (!through.falls) {
            return true;
        }
    }
    return false;
}

bool BarrierPaths::MeetsAfter(InstId terminator, Way region) {
    const Instruction& inst = kernel_.inst(terminator);
    const BlockId block = structure_.block_of[terminator.value()];
    auto after = [&](InstId construct) {
        return Meets(structure_.block_of[construct.value()],
                     structure_.position[construct.value()] + 1, region);
    };
    switch (inst.op) {
        case Op::kYield:
            return after(kernel_.block(block).parent);
        case Op::kExit:
            return after(inst.target);
        case Op::kContinue:
            return Meets(kernel_.inst(inst.target).blocks[1], 0, region);
        case Op::kNext:
            return Meets(kernel_.inst(kernel_.block(block).parent).blocks[0], 0, region);
        default:
            return false;
    }
}

const BarrierPaths::Through& BarrierPaths::GoThrough(InstId construct) {
    auto [at, added] = through_.try_emplace(construct.value());
    if (!added) {
        return at->second;
    }
    Through found;
    const Instruction& inst = kernel_.inst(construct);
    for (BlockId block : inst.blocks) {
        Walk(block, construct, found);
    }
    std::ranges::sort(found.leaves);
    const auto same = std::ranges::unique(found.leaves);
    found.leaves.erase(same.begin(), same.end());
    return through_[construct.value()] = std::move(found);
}

// A loop's continuing block is walked as if it were always reached: one way more is no harm.
void BarrierPaths::Walk(BlockId block, InstId construct, Through& found) {
    for (InstId id : kernel_.block(block).insts) {
        const Instruction& inst = kernel_.inst(id);
        if (IsOfProgram(inst)) {
            return;
        }
        if (inst.op == Op::kYield || (inst.op == Op::kExit && inst.target == construct)) {
            found.falls = true;
        } else if (inst.op == Op::kNext || (inst.target.valid() && inst.target == construct)) {
            continue;  // inside
        } else if (HasProperty(inst.op, kTerminator)) {
            found.leaves.push_back(id);
        } else if (!inst.blocks.empty()) {
            const Through inner = GoThrough(id);
            for (InstId leave : inner.leaves) {
                const Instruction& left = kernel_.inst(leave);
                if (left.target != construct) {
                    found.leaves.push_back(leave);
                } else if (left.op == Op::kExit) {
                    found.falls = true;
                }
            }
            if (!inner.falls) {
                return;
            }
        }
    }
}

}  // namespace fornax::kernel
