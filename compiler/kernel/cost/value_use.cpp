#include "compiler/kernel/cost/value_use.h"

#include <algorithm>

namespace fornax::kernel {

using namespace ir;

namespace {

bool IsLocalBuiltin(BuiltinId id) {
    switch (id) {
        case BuiltinId::kLocalIdX:
        case BuiltinId::kLocalIdY:
        case BuiltinId::kLocalIdZ:
        case BuiltinId::kLocalIndex:
        case BuiltinId::kSubgroupId:
        case BuiltinId::kSubgroupLane:
            return true;
        default:
            return false;
    }
}

class Finder {
  public:
    Finder(const Kernel& kernel, const Structure& structure)
        : kernel_(kernel), structure_(structure) {
        use_.varies.assign(kernel.num_values(), false);
        use_.is_data.assign(kernel.num_values(), false);
    }

    ValueUse Run() {
        // Only grows, and a loop's parameters are behind its body: as often as something changes.
        do {
            changed_ = false;
            for (InstId id : structure_.preorder) {
                FindVarying(id);
            }
        } while (changed_);
        for (InstId id : structure_.preorder) {
            MarkRoots(kernel_.inst(id));
        }
        while (!work_.empty()) {
            const ValueId value = work_.back();
            work_.pop_back();
            Follow(value);
        }
        return std::move(use_);
    }

  private:
    bool Varies(ValueId value) const { return use_.varies[value.value()]; }
    bool AnyVaries(const std::vector<ValueId>& values) const {
        return std::ranges::any_of(values, [&](ValueId value) { return Varies(value); });
    }
    void SetVaries(ValueId value, bool varies) {
        if (varies && !use_.varies[value.value()]) {
            use_.varies[value.value()] = true;
            changed_ = true;
        }
    }

    // Whether invocations may come to the terminator at different times or not all of them.
    bool Parts(InstId edge, InstId construct) const {
        for (InstId at = edge;;) {
            at = kernel_.block(structure_.block_of[at.value()]).parent;
            const Instruction& inst = kernel_.inst(at);
            if ((inst.op == Op::kIf || inst.op == Op::kSwitch) && Varies(inst.operands[0])) {
                return true;
            }
            if (at == construct) {
                return false;
            }
        }
    }

    void Merge(const std::vector<InstId>& edges, InstId construct, const std::vector<ValueId>& to) {
        for (InstId edge : edges) {
            const bool parts = Parts(edge, construct);
            const std::vector<ValueId>& from = kernel_.inst(edge).operands;
            for (size_t i = 0; i < to.size() && i < from.size(); ++i) {
                SetVaries(to[i], parts || Varies(from[i]));
            }
        }
    }

    void FindVarying(InstId id) {
        const Instruction& inst = kernel_.inst(id);
        if (!inst.blocks.empty()) {
            Merge(structure_.Exits(id), id, inst.results);
            if (inst.op == Op::kLoop) {
                const std::vector<ValueId>& params = kernel_.block(inst.blocks[0]).params;
                for (size_t i = 0; i < params.size(); ++i) {
                    SetVaries(params[i], Varies(inst.operands[i]));
                }
                Merge(structure_.Continues(id), id, kernel_.block(inst.blocks[1]).params);
                if (const InstId next = structure_.Next(id); next.valid()) {
                    Merge({next}, id, params);
                }
            }
            return;
        }
        bool varies = AnyVaries(inst.operands);
        switch (inst.op) {
            case Op::kBuiltin:
                varies = IsLocalBuiltin(static_cast<BuiltinId>(inst.imm));
                break;
            case Op::kAtomicBuffer:
            case Op::kAtomicGlobal:
            case Op::kAtomicShared:
            case Op::kLoadLocal:
                varies = true;
                break;
            default:
                varies = varies || HasProperty(inst.op, kSubgroup);
                break;
        }
        for (ValueId result : inst.results) {
            SetVaries(result, varies);
        }
    }

    void Mark(ValueId value) {
        if (!use_.is_data[value.value()]) {
            use_.is_data[value.value()] = true;
            work_.push_back(value);
        }
    }
    void MarkFrom(const Instruction& inst, size_t first) {
        for (size_t i = first; i < inst.operands.size(); ++i) {
            Mark(inst.operands[i]);
        }
    }

    // What is not only an address: conditions, and what is stored or given to others.
    void MarkRoots(const Instruction& inst) {
        switch (inst.op) {
            case Op::kIf:
            case Op::kSwitch:
                Mark(inst.operands[0]);
                return;
            case Op::kStoreBuffer:
            case Op::kAtomicBuffer:
                MarkFrom(inst, 2);
                return;
            case Op::kStoreGlobal:
            case Op::kStoreShared:
            case Op::kStoreLocal:
            case Op::kAtomicGlobal:
            case Op::kAtomicShared:
                MarkFrom(inst, 1);
                return;
            case Op::kMatrixLoad:
                return;
            default:
                if (HasProperty(inst.op, kSubgroup)) {
                    MarkFrom(inst, 0);
                }
                return;
        }
    }

    void FollowEdges(const std::vector<InstId>& edges, uint32_t index) {
        for (InstId edge : edges) {
            const Instruction& inst = kernel_.inst(edge);
            if (index < inst.operands.size()) {
                Mark(inst.operands[index]);
            }
        }
    }

    void Follow(ValueId id) {
        const Value& value = kernel_.value(id);
        if (!value.inst.valid()) {
            const InstId loop = kernel_.block(value.block).parent;
            const Instruction& inst = kernel_.inst(loop);
            if (value.block != inst.blocks[0]) {
                FollowEdges(structure_.Continues(loop), value.position);
                return;
            }
            Mark(inst.operands[value.position]);
            if (const InstId next = structure_.Next(loop); next.valid()) {
                FollowEdges({next}, value.position);
            }
            return;
        }
        const Instruction& inst = kernel_.inst(value.inst);
        if (!inst.blocks.empty()) {
            FollowEdges(structure_.Exits(value.inst), value.position);
        } else if (HasProperty(inst.op, kPure)) {
            MarkFrom(inst, 0);
        }
    }

    const Kernel& kernel_;
    const Structure& structure_;
    ValueUse use_;
    bool changed_ = false;
    std::vector<ValueId> work_;
};

}  // namespace

ValueUse FindValueUse(const Kernel& kernel, const Structure& structure) {
    return Finder(kernel, structure).Run();
}

}  // namespace fornax::kernel
