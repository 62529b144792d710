// Loads, stores and copies of parts of variables.
#include "compiler/kernel/fuzz/generator_memory.h"

namespace fornax::kernel::fuzz {

void MemoryStatements::LoadStatement() {
    Variable* variable = access_.AnyVariable(false);
    if (!variable) {
        return;
    }
    auto part =
        access_.FindPart(*variable, [](const MemoryType& type) { return Leaves(type) <= 24; });
    if (!part) {
        return;
    }
    Id value = access_.Load(*variable, *part);
    auto [type, leaf] = access_.ExtractLeaf(part->type, value);
    Add(type, variable->foreign ? values_.Fit(type, leaf) : leaf);
}

void MemoryStatements::StoreStatement() {
    Variable* variable = access_.AnyVariable(true);
    if (!variable) {
        return;
    }
    auto part =
        access_.FindPart(*variable, [](const MemoryType& type) { return Leaves(type) <= 8; });
    if (!part) {
        return;
    }
    state_.depth = 2;
    Id value = access_.ValueFor(part->type, variable->foreign);
    state_.depth = 1;
    Id pointer = access_.PointerTo(*variable, *part, true);
    state_.depth = 0;
    std::vector<uint32_t> operands = {pointer, value};
    access_.AddAccess(operands, *variable, part->type, variable->foreign && Chance(6));
    b_.EmitVoid(Op::OpStore, operands);
}

// Between two parts of one type, whatever the variables.
void MemoryStatements::CopyStatement() {
    Variable* to = access_.AnyVariable(true);
    Variable* from = access_.AnyVariable(false);
    if (!to || !from) {
        return;
    }
    auto source = access_.FindPart(*from, [&](const MemoryType& type) {
        return Leaves(type) <= 24 && !(from->foreign && access_.HoldsFloat(type));
    });
    if (!source) {
        return;
    }
    auto target = access_.FindPart(*to, [&](const MemoryType& type) {
        return type.id == source->type.id && !(to->foreign && access_.HoldsFloat(type));
    });
    if (!target) {
        return;
    }
    // The parts of one variable could overlap in part.
    if (to == from && source->type.form != MemoryType::Form::kValue) {
        return;
    }
    Id to_pointer = access_.PointerTo(*to, *target, true);
    Id from_pointer = access_.PointerTo(*from, *source, false);
    std::vector<uint32_t> operands = {to_pointer, from_pointer};
    access_.AddAccess(operands,
                      to->storage == spv::StorageClass::PhysicalStorageBuffer ? *to : *from,
                      source->type, false);
    b_.EmitVoid(Op::OpCopyMemory, operands);
}

}  // namespace fornax::kernel::fuzz
