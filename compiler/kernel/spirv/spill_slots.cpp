// Spill slots in private memory for values that are used outside of the IR block that makes them.
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

namespace {

// Every IR id that a value is made of.
template <typename Visit>
void VisitIds(Value& value, Visit&& visit) {
    for (ir::ValueId& scalar : value.scalars) {
        visit(scalar);
    }
    if (!value.pointer) {
        return;
    }
    Pointer& pointer = *value.pointer;
    for (ir::ValueId* id :
         {&pointer.element, &pointer.offset, &pointer.component, &pointer.sampler_element,
          &pointer.guard, &pointer.view_address, &pointer.view_size}) {
        if (id->valid()) {
            visit(*id);
        }
    }
    for (Pointer::Term& term : pointer.terms) {
        visit(term.index);
    }
}

}  // namespace

// A definition may dominate a use in SPIR-V without enclosing it in the IR's tree. Such a value is
// stored to private memory where it is made and loaded here; PromoteLocals makes it a result of the
// constructs.
Value Values::Rescue(uint32_t id, const Value& value) {
    auto [it, is_new] = code_.frame->spill_slots.try_emplace(id);
    if (is_new) {
        Value copy = value;
        VisitIds(copy, [&](ir::ValueId& scalar) {
            it->second.push_back(NewLocal(kernel_.type(scalar)));
        });
        for (const Value& definition : code_.frame->older[id]) {
            StoreSpilled(definition, it->second);
        }
        StoreSpilled(value, it->second);
    }
    Value loaded = value;
    size_t index = 0;
    VisitIds(loaded, [&](ir::ValueId& scalar) { scalar = LoadLocal(it->second[index++]); });
    return loaded;
}

void Values::StoreSpilled(const Value& definition, const std::vector<uint32_t>& slots) {
    Value copy = definition;
    size_t index = 0;
    VisitIds(copy, [&](ir::ValueId& scalar) {
        spill_stores_[definition.block.value()].push_back({scalar, slots[index++]});
    });
}

// Behind the definition, or first of all in the block where it is made in an enclosing one.
void Values::InsertSpillStores() {
    for (auto& [block, stores] : spill_stores_) {
        std::unordered_map<uint32_t, std::vector<SpillStore>> by_inst;
        for (const SpillStore& store : stores) {
            by_inst[kernel_.value(store.value).inst.value()].push_back(store);
        }
        std::vector<ir::InstId> first;
        std::vector<ir::InstId> behind;
        auto append = [&](std::vector<ir::InstId>& insts, const SpillStore& store) {
            const ir::Type i32 = ir::Type::kI32;
            ir::InstId zero = kernel_.NewInst(ir::Op::kConst, {}, {&i32, 1});
            ir::ValueId operands[] = {kernel_.inst(zero).results[0], store.value};
            ir::InstId inst = kernel_.NewInst(ir::Op::kStoreLocal, operands, {});
            kernel_.inst(inst).imm = store.local;
            insts.insert(insts.end(), {zero, inst});
        };
        const std::vector<ir::InstId> old = kernel_.block(ir::BlockId{block}).insts;
        for (ir::InstId inst : old) {
            behind.push_back(inst);
            auto it = by_inst.find(inst.value());
            if (it == by_inst.end()) {
                continue;
            }
            for (const SpillStore& store : it->second) {
                append(behind, store);
            }
            by_inst.erase(it);
        }
        for (const SpillStore& store : stores) {
            if (by_inst.count(kernel_.value(store.value).inst.value())) {
                append(first, store);
            }
        }
        first.insert(first.end(), behind.begin(), behind.end());
        kernel_.block(ir::BlockId{block}).insts = std::move(first);
    }
}

}  // namespace fornax::kernel::spirv
