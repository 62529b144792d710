// Parts of variables, and indices that lead to them.
#include "compiler/kernel/fuzz/generator_variables.h"

#include <algorithm>

namespace fornax::kernel::fuzz {

namespace {

constexpr uint32_t kPatternLimit = 236;

}  // namespace

void VariableAccess::CollectParts(const MemoryType& type,
                                  std::vector<Step>& steps,
                                  std::vector<Part>& parts) {
    using Form = MemoryType::Form;
    auto below = [&](const MemoryType& part, Step step) {
        steps.push_back(step);
        CollectParts(part, steps, parts);
        steps.pop_back();
    };
    switch (type.form) {
        case Form::kRuntimeArray:
            below(type.parts[0], {Step::Form::kRuntimeElement, type.count});
            return;
        case Form::kArray:
            parts.push_back({type, steps});
            below(type.parts[0], {Step::Form::kElement, type.count});
            return;
        case Form::kStruct:
            if (type.parts.empty() || type.parts.back().form != Form::kRuntimeArray) {
                parts.push_back({type, steps});
            }
            for (uint32_t i = 0; i < type.parts.size(); ++i) {
                below(type.parts[i], {Step::Form::kMember, i});
            }
            return;
        default:
            break;
    }
    parts.push_back({type, steps});
    MemoryType inner;
    if (type.value.columns > 1) {
        inner.value = type.value.Column();
        inner.id = b_.Type(inner.value);
        below(inner, {Step::Form::kColumn, type.value.columns});
    } else if (type.value.rows > 1) {
        inner.value = type.value.Scalar();
        inner.id = b_.Type(inner.value);
        below(inner, {Step::Form::kComponent, type.value.rows});
    }
}

std::optional<VariableAccess::Part> VariableAccess::FindPart(const Variable& variable,
                                                             const PartTest& test) {
    std::vector<Step> steps;
    std::vector<Part> parts;
    CollectParts(variable.type, steps, parts);
    std::erase_if(parts, [&](const Part& part) {
        return !test(part.type) || (variable.descriptors && part.steps.empty());
    });
    if (parts.empty()) {
        return std::nullopt;
    }
    return parts[Below(static_cast<uint32_t>(parts.size()))];
}

Id VariableAccess::Index(Step step, const Variable& variable) {
    if (step.form == Step::Form::kMember) {
        return b_.Uint(step.count);
    }
    if (step.form == Step::Form::kRuntimeElement) {
        return Widened(RuntimeIndex(step, variable), variable);
    }
    if (Chance(state_.depth ? 45 : 75)) {
        return b_.Uint(Below(step.count));
    }
    ValueType type = Chance(70) ? kUint : ValueType{AnyIntKind(), 1, 1};
    return IndexBelow(step.count, type);
}

// An index of an element of a run-time array, a uint.
Id VariableAccess::RuntimeIndex(Step step, const Variable& variable) {
    if (variable.own) {
        return state_.own_index;
    }
    if (Chance(state_.depth ? 45 : 75)) {
        return b_.Uint(Below(step.count));
    }
    const bool has_bounds = variable.storage != spv::StorageClass::PhysicalStorageBuffer;
    if (state_.options.robust && has_bounds && Chance(15)) {
        return values_.Value(kUint, state_.depth ? state_.depth - 1 : 0);
    }
    if (step.count >= kPatternLimit && Chance(60)) {
        return PatternIndex();
    }
    return IndexBelow(step.count, kUint);  // the count needs more than 7 bits
}

Id VariableAccess::IndexBelow(uint32_t count, ValueType type) {
    const uint32_t depth = state_.depth ? state_.depth - 1 : 0;
    uint32_t mask = 1;  // below the largest power of two that is not above the count
    while (2 * mask <= count) {
        mask *= 2;
    }
    return Emit(Op::OpBitwiseAnd, type,
                {values_.Value(type, depth), b_.Constant(type.kind, mask - 1)});
}

// Rows, tiles and strides, known or uniform, as kernels address memory: below kPatternLimit.
Id VariableAccess::PatternIndex() {
    ValueType triple{Kind::kU32, 3, 1};
    auto times = [&](Id a, Id b) { return Emit(Op::OpIMul, kUint, {a, b}); };
    auto plus = [&](Id a, Id b) { return Emit(Op::OpIAdd, kUint, {a, b}); };
    Id stride = Chance(50) ? b_.Uint(1 + Below(7))
                           : Emit(Op::OpBitwiseAnd, kUint, {values_.UniformWord(), b_.Uint(7)});
    Id sum = 0;
    uint32_t choice = Below(3);
    if (choice == 0) {  // at most 63 * 2
        sum =
            times(b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index}), b_.Uint(1 + Below(2)));
    } else if (choice == 1) {  // at most 15 * 7 + 63
        Id at = b_.Emit(Op::OpLoad, b_.Type(triple), {state_.local_id});
        const uint32_t flip = Below(2) && state_.size[0] <= 16 ? 1 : 0;
        Id x = b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {at, flip});
        Id y = b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {at, 1 - flip});
        sum = plus(times(y, stride), x);
    } else {  // at most 31 * 7 + 7
        Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index});
        Id width = b_.Uint(2u << Below(3));
        sum = plus(times(Emit(Op::OpUDiv, kUint, {local, width}), stride),
                   Emit(Op::OpUMod, kUint, {local, width}));
    }
    return Chance(50) ? plus(sum, b_.Uint(Below(8))) : sum;
}

Id VariableAccess::PointerTo(const Variable& variable, const Part& part, bool) {
    if (part.steps.empty()) {
        return variable.id;
    }
    std::vector<uint32_t> operands = {variable.id};
    const MemoryType* type = &variable.type;
    const Op op = Chance(50) ? Op::OpAccessChain : Op::OpInBoundsAccessChain;
    // Robust reads may be out of bounds.
    const Op used = state_.options.robust ? Op::OpAccessChain : op;
    for (const Step& step : part.steps) {
        operands.push_back(Index(step, variable));
        if (step.form == Step::Form::kMember) {
            type = &type->parts[step.count];
        } else if (step.form == Step::Form::kElement || step.form == Step::Form::kRuntimeElement) {
            type = &type->parts[0];
        }
        // A chain of chains, as other tools make them.
        if (type->form != MemoryType::Form::kValue && Chance(15) && &step != &part.steps.back()) {
            Id pointer = b_.Emit(used, b_.Pointer(variable.storage, type->id), operands);
            operands = {pointer};
        }
    }
    Id pointer = b_.Emit(used, b_.Pointer(variable.storage, part.type.id), operands);
    if (variable.descriptors) {
        b_.Decorate(pointer, spv::Decoration::NonUniform);
    }
    return pointer;
}

bool VariableAccess::Usable(const Variable& variable, bool writes) const {
    return (!writes || variable.writable) && (!variable.own || state_.own_index != 0);
}

Variable* VariableAccess::AnyVariable(bool writes) {
    std::vector<Variable*> found;
    const bool own = state_.own_index != 0 && Chance(35);
    for (std::vector<Variable>* list : {&state_.locals, &state_.globals, &state_.addressed_here}) {
        for (Variable& variable : *list) {
            if (Usable(variable, writes) && (!own || variable.own)) {
                found.push_back(&variable);
            }
        }
    }
    return found.empty() ? nullptr : found[Below(static_cast<uint32_t>(found.size()))];
}

bool VariableAccess::HoldsFloat(const MemoryType& type) const {
    if (type.form == MemoryType::Form::kValue) {
        return IsFloat(type.value.kind);
    }
    return std::ranges::any_of(type.parts,
                               [&](const MemoryType& part) { return HoldsFloat(part); });
}

Id VariableAccess::Load(const Variable& variable, const Part& part) {
    std::vector<uint32_t> operands = {PointerTo(variable, part, false)};
    AddAccess(operands, variable, part.type, variable.foreign && Chance(4));
    return b_.Emit(Op::OpLoad, part.type.id, operands);
}

std::optional<Id> VariableAccess::LoadOf(ValueType type) {
    for (int tries = 0; tries < 4; ++tries) {
        Variable* variable = AnyVariable(false);
        if (!variable) {
            return std::nullopt;
        }
        auto part = FindPart(*variable, [&](const MemoryType& candidate) {
            return candidate.form == MemoryType::Form::kValue && candidate.value == type;
        });
        if (!part) {
            continue;
        }
        Id value = Load(*variable, *part);
        if (variable->foreign && type.columns == 1) {
            value = values_.Fit(type, value);
        }
        return value;
    }
    return std::nullopt;
}

// A value inside of an aggregate.
std::pair<ValueType, Id> VariableAccess::ExtractLeaf(const MemoryType& type, Id value) {
    if (type.form == MemoryType::Form::kValue && type.value.columns == 1) {
        return {type.value, value};
    }
    std::vector<uint32_t> operands = {value};
    const MemoryType* part = &type;
    while (part->form != MemoryType::Form::kValue) {
        const bool is_array = part->form == MemoryType::Form::kArray;
        const uint32_t count = is_array ? part->count : static_cast<uint32_t>(part->parts.size());
        operands.push_back(Below(count));
        part = &part->parts[is_array ? 0 : operands.back()];
    }
    ValueType leaf = part->value;
    if (leaf.columns > 1) {
        operands.push_back(Below(leaf.columns));
        leaf = leaf.Column();
    }
    return {leaf, b_.Emit(Op::OpCompositeExtract, b_.Type(leaf), operands)};
}

Id VariableAccess::ValueFor(const MemoryType& type, bool observable) {
    if (type.form == MemoryType::Form::kValue) {
        Id value = values_.Value(type.value, type.value.columns > 1 ? 1 : Below(3));
        if (!observable || !IsFloat(type.value.kind)) {
            return value;
        }
        if (type.value.columns == 1) {
            return values_.Observable(type.value, value);
        }
        std::vector<Id> columns;
        for (uint32_t i = 0; i < type.value.columns; ++i) {
            Id column = b_.Emit(Op::OpCompositeExtract, b_.Type(type.value.Column()), {value, i});
            columns.push_back(values_.Observable(type.value.Column(), column));
        }
        return b_.Emit(Op::OpCompositeConstruct, type.id, columns);
    }
    std::vector<Id> parts;
    const bool is_array = type.form == MemoryType::Form::kArray;
    const size_t count = is_array ? type.count : type.parts.size();
    for (size_t i = 0; i < count; ++i) {
        parts.push_back(ValueFor(type.parts[is_array ? 0 : i], observable));
    }
    return b_.Emit(Op::OpCompositeConstruct, type.id, parts);
}

// The index of an element of a run-time array, perhaps as a wider integer; where reads may go
// outside, some are 2^32 elements away and more.
Id VariableAccess::Widened(Id index, const Variable& variable) {
    if (!state_.wide_indexing || Chance(50)) {
        return index;
    }
    const bool is_signed = Chance(50);
    const ValueType type{is_signed ? Kind::kI64 : Kind::kU64, 1, 1};
    Id wide = Emit(is_signed ? Op::OpSConvert : Op::OpUConvert, type, {index});
    const bool has_bounds = variable.storage != spv::StorageClass::PhysicalStorageBuffer;
    if (!state_.options.robust || !has_bounds || variable.own || !Chance(10)) {
        return wide;
    }
    return Emit(Op::OpIAdd, type, {wide, b_.Constant(type.kind, uint64_t{1 + Below(3)} << 32)});
}

uint32_t VariableAccess::ScalarAlign(const MemoryType& type) const {
    if (type.form == MemoryType::Form::kValue) {
        return std::max(1u, BitsOf(type.value.kind) / 8);
    }
    uint32_t least = 16;
    for (const MemoryType& part : type.parts) {
        least = std::min(least, ScalarAlign(part));
    }
    return least;
}

// The memory operands of an access (3.26, Memory Operands): by device address its alignment.
void VariableAccess::AddAccess(std::vector<uint32_t>& operands,
                               const Variable& variable,
                               const MemoryType& part,
                               bool is_volatile) {
    const bool aligned = variable.storage == spv::StorageClass::PhysicalStorageBuffer;
    if (!aligned && !is_volatile) {
        return;
    }
    operands.push_back((is_volatile ? 1u : 0u) | (aligned ? 2u : 0u));
    if (aligned) {
        operands.push_back(ScalarAlign(part));
    }
}

// True if the part lies in a matrix: such pointers are not chosen at run time.
bool VariableAccess::InMatrix(const Variable& variable, const Part& part) const {
    const MemoryType* type = &variable.type;
    for (const Step& step : part.steps) {
        if (step.form == Step::Form::kColumn) {
            return true;
        }
        if (step.form == Step::Form::kComponent) {
            continue;
        }
        type = &type->parts[step.form == Step::Form::kMember ? step.count : 0];
    }
    return false;
}

}  // namespace fornax::kernel::fuzz
