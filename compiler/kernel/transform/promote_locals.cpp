// Private memory to SSA values.
//
// glslang keeps every variable in memory, so this pass is what the others live on. It takes the
// elements of private arrays that are only indexed by constants ("slots") and gives each load the
// value that reaches it, on demand, like Braun et al.'s SSA construction: looking for the value
// before a point finds a store, or a construct that stores the slot inside, which then gets one
// more result; at the start of a loop's block it gets one more parameter. The values of their edges
// are looked up the same way from a work list, in the order in which the results and parameters
// were made, so that every edge's operands stay in that order too. Only what is loaded is ever
// carried.
#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "compiler/kernel/ir/matrix.h"
#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;
constexpr uint32_t kMaxSplitElements = 65536;  // larger arrays stay in memory

class Promoter {
  public:
    explicit Promoter(Kernel& kernel) : kernel_(kernel), structure_(kernel) {}

    void Run() {
        FindSlots();
        if (!has_accesses_) {
            return;
        }
        FindStores();
        map_.resize(kernel_.num_values());
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op != Op::kLoadLocal || !IsPromoted(inst)) {
                continue;
            }
            ValueId result = inst.results[0];
            if (!used_[result.value()]) {
                continue;
            }
            uint32_t slot = SlotOf(inst);
            ValueId value = slot == kNoSlot ? Undef(kernel_.type(result))
                                            : Lookup(slot, structure_.block_of[id.value()],
                                                     structure_.position[id.value()]);
            map_[result.value()] = Resolve(value);
        }
        FillEdges();
        kernel_.ReplaceUses(map_);
        RemoveAccesses();
        auto& body = kernel_.block(kernel_.body).insts;
        body.insert(body.begin(), undefs_.begin(), undefs_.end());
        ForwardSingleValues(kernel_);
        EliminateDeadCode(kernel_);
    }

  private:
    // A store to a slot, or a construct with one inside, at its place in a block.
    struct Store {
        uint32_t slot;
        BlockId block;
        uint32_t position;
        InstId inst;
        auto Key() const { return std::tuple(slot, block, position); }
    };
    // A result (block invalid) or parameter of a construct that needs its edges' operands.
    struct Merge {
        InstId construct;
        BlockId block;
        uint32_t slot;
    };

    bool IsPromoted(const Instruction& inst) const { return promoted_[inst.imm]; }
    // kNoSlot: outside of the array.
    uint32_t SlotOf(const Instruction& inst) const {
        uint64_t element = 0;
        kernel_.IsConst(inst.operands[0], &element);
        const auto& slots = slots_[inst.imm];
        return element < slots.size() ? slots[element] : kNoSlot;
    }
    ValueId Resolve(ValueId id) const {
        while (id.value() < map_.size() && map_[id.value()].valid()) {
            id = map_[id.value()];
        }
        return id;
    }

    // Accumulators of f32 products stay in memory, where several products wait for one another
    // (analysis/matrix_accumulators.h).
    void KeepAccumulators() {
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op != Op::kMatrixMulAdd ||
                MatrixFormatOf(kernel_, inst) != hal::MatrixFormat::kF32) {
                continue;
            }
            const Instruction* accumulator =
                kernel_.Definition(inst.operands[2 * inst.results.size()]);
            if (accumulator && accumulator->op == Op::kLoadLocal) {
                promoted_[accumulator->imm] = false;
            }
        }
    }
    void FindSlots() {
        promoted_.assign(kernel_.locals.size(), true);
        slots_.resize(kernel_.locals.size());
        used_.resize(kernel_.num_values());
        for (size_t i = 0; i < kernel_.locals.size(); ++i) {
            promoted_[i] = kernel_.locals[i].count <= kMaxSplitElements;
        }
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            for (ValueId operand : inst.operands) {
                used_[operand.value()] = true;
            }
            bool access = inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal;
            if (access && !kernel_.IsConst(inst.operands[0])) {
                promoted_[inst.imm] = false;
            }
        }
        KeepAccumulators();
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if ((inst.op != Op::kLoadLocal && inst.op != Op::kStoreLocal) || !IsPromoted(inst)) {
                continue;
            }
            has_accesses_ = true;
            uint64_t element = 0;
            kernel_.IsConst(inst.operands[0], &element);
            const Local& local = kernel_.locals[inst.imm];
            auto& slots = slots_[inst.imm];
            if (slots.empty()) {
                slots.assign(local.count, kNoSlot);
            }
            if (element < local.count && slots[element] == kNoSlot) {
                slots[element] = static_cast<uint32_t>(slot_types_.size());
                slot_types_.push_back(local.type);
            }
        }
    }

    // Lists each store with its block, and each construct that holds one with the construct's.
    void FindStores() {
        last_listed_.assign(kernel_.num_insts(), kNoSlot);
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op != Op::kStoreLocal || !IsPromoted(inst) || SlotOf(inst) == kNoSlot) {
                continue;
            }
            uint32_t slot = SlotOf(inst);
            for (InstId at = id; at.valid();) {
                BlockId block = structure_.block_of[at.value()];
                Store store{slot, block, structure_.position[at.value()], at};
                // What follows was listed with the store before, if that is in the same place.
                if (at != id && last_listed_[at.value()] == slot) {
                    break;
                }
                last_listed_[at.value()] = slot;
                stores_.push_back(store);
                at = kernel_.block(block).parent;
            }
        }
        std::ranges::sort(stores_, {}, &Store::Key);
        auto rest = std::ranges::unique(stores_, {}, &Store::Key);
        stores_.erase(rest.begin(), rest.end());
    }

    // The last store of the slot in the block before the position; null if there is none.
    const Store* StoreBefore(uint32_t slot, BlockId block, uint32_t position) const {
        auto after =
            std::ranges::lower_bound(stores_, std::tuple(slot, block, position), {}, &Store::Key);
        if (after == stores_.begin()) {
            return nullptr;
        }
        const Store& store = *std::prev(after);
        return store.slot == slot && store.block == block ? &store : nullptr;
    }
    bool StoredIn(uint32_t slot, BlockId block) const {
        return StoreBefore(slot, block, UINT32_MAX) != nullptr;
    }

    ValueId Undef(Type type) {
        ValueId& value = undef_of_type_[static_cast<size_t>(type)];
        if (!value.valid()) {
            undefs_.push_back(kernel_.NewInst(Op::kUndef, {}, {&type, 1}));
            value = kernel_.inst(undefs_.back()).results[0];
        }
        return value;
    }

    // The slot's value before the given place.
    ValueId Lookup(uint32_t slot, BlockId block, uint32_t position) {
        for (;;) {
            if (const Store* store = StoreBefore(slot, block, position)) {
                const Instruction& inst = kernel_.inst(store->inst);
                return inst.op == Op::kStoreLocal ? inst.operands[1]
                                                  : MergeOf(store->inst, BlockId{}, slot);
            }
            InstId parent = kernel_.block(block).parent;
            if (!parent.valid()) {
                return Undef(slot_types_[slot]);
            }
            if (kernel_.inst(parent).op == Op::kLoop) {
                BlockId body = kernel_.inst(parent).blocks[0];
                BlockId continuing = kernel_.inst(parent).blocks[1];
                bool stored_in_body = StoredIn(slot, body);
                if (block == continuing && stored_in_body) {
                    return MergeOf(parent, continuing, slot);
                }
                if (stored_in_body || StoredIn(slot, continuing)) {
                    return MergeOf(parent, body, slot);
                }
            }
            block = structure_.block_of[parent.value()];
            position = structure_.position[parent.value()];
        }
    }

    // The construct's result, or the block's parameter, that carries the slot.
    ValueId MergeOf(InstId construct, BlockId block, uint32_t slot) {
        // A result and the two kinds of parameters have keys of their own.
        uint64_t place =
            block.valid() ? uint64_t{block.value()} << 1 | 1 : uint64_t{construct.value()} << 1;
        auto [found, is_new] = merges_.try_emplace({place, slot});
        if (is_new) {
            found->second = block.valid() ? kernel_.AddParam(block, slot_types_[slot])
                                          : kernel_.AddResult(construct, slot_types_[slot]);
            work_.push_back({construct, block, slot});
        }
        return found->second;
    }

    void AddOperand(InstId edge, uint32_t slot) {
        ValueId value =
            Lookup(slot, structure_.block_of[edge.value()], structure_.position[edge.value()]);
        kernel_.inst(edge).operands.push_back(value);
    }

    void FillEdges() {
        for (size_t i = 0; i < work_.size(); ++i) {  // grows on the way
            auto [construct, block, slot] = work_[i];
            if (!block.valid()) {
                for (InstId edge : structure_.Exits(construct)) {
                    AddOperand(edge, slot);
                }
            } else if (block == kernel_.inst(construct).blocks[1]) {
                for (InstId edge : structure_.Continues(construct)) {
                    AddOperand(edge, slot);
                }
            } else {
                AddOperand(construct, slot);
                AddOperand(structure_.Next(construct), slot);
            }
        }
    }

    void RemoveAccesses() {
        for (uint32_t i = 0; i < kernel_.num_blocks(); ++i) {
            std::erase_if(kernel_.block(BlockId{i}).insts, [&](InstId id) {
                const Instruction& inst = kernel_.inst(id);
                return (inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal) &&
                       IsPromoted(inst);
            });
        }
    }

    struct KeyHash {
        size_t operator()(const std::pair<uint64_t, uint32_t>& key) const {
            return (key.first * 0x9e3779b97f4a7c15u) ^ (key.second * 0xff51afd7ed558ccdu);
        }
    };

    Kernel& kernel_;
    Structure structure_;
    std::vector<bool> promoted_;                // by local
    std::vector<std::vector<uint32_t>> slots_;  // by local, by element
    std::vector<Type> slot_types_;              // by slot
    std::vector<bool> used_;                    // by value
    bool has_accesses_ = false;                 // to promoted locals
    std::vector<Store> stores_;                 // sorted by Key
    std::vector<uint32_t> last_listed_;         // by construct: the slot it was last listed for
    std::unordered_map<std::pair<uint64_t, uint32_t>, ValueId, KeyHash> merges_;
    std::vector<Merge> work_;
    std::vector<ValueId> map_;  // by value: what replaces a load's result
    std::vector<InstId> undefs_;
    std::array<ValueId, 16> undef_of_type_;
};

// An index that is one constant or another makes one of two elements, each of which has a constant
// index.
void LoadBoth(Kernel& kernel) {
    std::vector<ValueId> map(kernel.num_values());
    bool changed = false;
    for (uint32_t b = 0; b < kernel.num_blocks(); ++b) {
        std::vector<InstId> insts;
        for (InstId id : std::vector(kernel.block(BlockId{b}).insts)) {
            const Instruction load = kernel.inst(id);
            const Instruction* index =
                load.op == Op::kLoadLocal ? kernel.Definition(load.operands[0]) : nullptr;
            if (!index || index->op != Op::kSelect || !kernel.IsConst(index->operands[1]) ||
                !kernel.IsConst(index->operands[2])) {
                insts.push_back(id);
                continue;
            }
            const std::array types = {kernel.type(load.results[0])};
            std::array<ValueId, 3> choice = {index->operands[0], index->operands[1],
                                             index->operands[2]};
            for (size_t i = 1; i < choice.size(); ++i) {
                insts.push_back(kernel.NewInst(Op::kLoadLocal, std::array{choice[i]}, types));
                kernel.inst(insts.back()).imm = load.imm;
                kernel.inst(insts.back()).origin = load.origin;
                choice[i] = kernel.inst(insts.back()).results[0];
            }
            insts.push_back(kernel.NewInst(Op::kSelect, choice, types));
            map[load.results[0].value()] = kernel.inst(insts.back()).results[0];
            changed = true;
        }
        kernel.block(BlockId{b}).insts = std::move(insts);
    }
    if (changed) {
        kernel.ReplaceUses(map);
    }
}

}  // namespace

void PromoteLocals(Kernel& kernel) {
    LoadBoth(kernel);
    Promoter(kernel).Run();
}

}  // namespace fornax::kernel
