// Variables and their parts, loads and stores, workgroup memory, atomics.
#include <algorithm>
#include <iterator>

#include "compiler/kernel/fuzz/generator.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr ValueType kUint{Kind::kU32, 1, 1};
constexpr uint32_t kPatternLimit = 236;

uint32_t AlignUp(uint32_t value, uint32_t align) {
    return (value + align - 1) / align * align;
}

uint32_t Leaves(const MemoryType& type) {
    switch (type.form) {
        case MemoryType::Form::kValue:
            return type.value.columns;
        case MemoryType::Form::kArray:
            return type.count * Leaves(type.parts[0]);
        case MemoryType::Form::kRuntimeArray:
            return 1000;
        default: {
            uint32_t sum = 0;
            for (const MemoryType& part : type.parts) {
                sum += Leaves(part);
            }
            return sum;
        }
    }
}

}  // namespace

// --- types

// Scalar alignment if packed, else std430's.
MemoryType Generator::ValueInMemory(ValueType type, bool packed, bool has_layout) {
    MemoryType memory;
    memory.value = type;
    memory.id = b_.Type(type);
    const uint32_t scalar = std::max(1u, BitsOf(type.kind) / 8);
    auto vector_align = [&](uint32_t rows) {
        return packed ? scalar : scalar * (rows == 3 ? 4 : rows);
    };
    if (type.columns == 1) {
        memory.align = vector_align(type.rows);
        memory.size = scalar * type.rows;
        return memory;
    }
    memory.row_major = has_layout && Chance(50);
    const uint32_t rows = memory.row_major ? type.columns : type.rows;
    const uint32_t vectors = memory.row_major ? type.rows : type.columns;
    memory.align = vector_align(rows);
    memory.matrix_stride = AlignUp(scalar * rows, memory.align) + Below(2) * memory.align;
    memory.size = memory.matrix_stride * vectors;
    return memory;
}

MemoryType Generator::ArrayOf(MemoryType element, uint32_t count, bool has_layout, bool) {
    MemoryType type;
    type.form = MemoryType::Form::kArray;
    type.count = count;
    type.align = element.align;
    type.row_major = element.row_major;
    type.matrix_stride = element.matrix_stride;
    type.stride = AlignUp(element.size, element.align) + (Chance(25) ? element.align : 0);
    type.size = type.stride * count;
    Id length = b_.Uint(count);
    type.id = b_.Array(element.id, length, has_layout ? type.stride : 0);
    type.parts = {std::move(element)};
    return type;
}

// Gives the members offsets, and the structure its decorations.
void Generator::FinishStruct(MemoryType& type, bool has_layout, bool packed, uint32_t) {
    std::vector<Id> members;
    uint32_t at = 0;
    for (const MemoryType& part : type.parts) {
        members.push_back(part.id);
        at = std::max(AlignUp(at, part.align), part.least_offset);
        if (packed && Chance(15)) {
            at += part.align;
        }
        type.offsets.push_back(at);
        at += part.size;
        type.align = std::max(type.align, part.align);
    }
    type.size = AlignUp(at, type.align);
    type.id = b_.Struct(members);
    for (uint32_t i = 0; i < members.size() && has_layout; ++i) {
        b_.MemberDecorate(type.id, i, spv::Decoration::Offset, {type.offsets[i]});
        if (uint32_t stride = type.parts[i].matrix_stride) {
            b_.MemberDecorate(type.id, i, spv::Decoration::MatrixStride, {stride});
            b_.MemberDecorate(
                type.id, i,
                type.parts[i].row_major ? spv::Decoration::RowMajor : spv::Decoration::ColMajor);
        }
    }
}

MemoryType Generator::LaidOutType(uint32_t depth, bool packed, uint32_t room) {
    MemoryType type;
    for (int tries = 0; tries < 6; ++tries) {
        uint32_t choice = depth ? Below(10) : Below(6);
        if (choice < 6) {
            ValueType value{memory_kinds_[Below(static_cast<uint32_t>(memory_kinds_.size()))],
                            static_cast<uint8_t>(Chance(50) ? 1 : 2 + Below(3)), 1};
            if (value.rows > 1 && IsFloat(value.kind) && Chance(40)) {
                value.columns = static_cast<uint8_t>(2 + Below(3));
            }
            type = ValueInMemory(value, packed, true);
        } else if (choice < 8) {
            type = ArrayOf(LaidOutType(depth - 1, packed, room / 2), 2u << Below(2), true, packed);
        } else {
            type = LaidOutStruct(1 + Below(3), depth - 1, packed, room);
        }
        if (type.size <= room) {
            return type;
        }
    }
    return ValueInMemory(kUint, packed, true);
}

MemoryType Generator::LaidOutStruct(uint32_t members, uint32_t depth, bool packed, uint32_t room) {
    MemoryType type;
    type.form = MemoryType::Form::kStruct;
    uint32_t used = 0;
    for (uint32_t i = 0; i < members; ++i) {
        MemoryType part = LaidOutType(depth, packed, room / 2);
        // Each may be moved by its alignment, and once more.
        used = AlignUp(used, 16) + part.size + 2 * part.align;
        if (used > room && i > 0) {
            break;
        }
        type.parts.push_back(std::move(part));
    }
    FinishStruct(type, true, packed, room);
    return type;
}

MemoryType Generator::PlainType(uint32_t depth) {
    uint32_t choice = depth ? Below(10) : Below(6);
    if (choice < 6) {
        ValueType value = AnyType();
        if (Chance(8)) {
            value.kind = Kind::kBool;
        }
        if (value.rows > 1 && IsFloat(value.kind) && Chance(30)) {
            value.columns = static_cast<uint8_t>(2 + Below(3));
        }
        return ValueInMemory(value, true, false);
    }
    if (choice < 8) {
        return ArrayOf(PlainType(depth - 1), 2u << Below(3), false, true);
    }
    MemoryType type;
    type.form = MemoryType::Form::kStruct;
    uint32_t members = 1 + Below(3);
    for (uint32_t i = 0; i < members; ++i) {
        type.parts.push_back(PlainType(depth - 1));
    }
    FinishStruct(type, false, true, UINT32_MAX);
    return type;
}

// --- parts

void Generator::CollectParts(const MemoryType& type,
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

std::optional<Generator::Part> Generator::FindPart(const Variable& variable, const PartTest& test) {
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

Id Generator::Index(Step step, const Variable& variable) {
    if (step.form == Step::Form::kMember) {
        return b_.Uint(step.count);
    }
    if (step.form == Step::Form::kRuntimeElement) {
        return Widened(RuntimeIndex(step, variable), variable);
    }
    if (Chance(depth_ ? 45 : 75)) {
        return b_.Uint(Below(step.count));
    }
    ValueType type = Chance(70) ? kUint : ValueType{AnyIntKind(), 1, 1};
    return IndexBelow(step.count, type);
}

// An index of an element of a run-time array, a uint.
Id Generator::RuntimeIndex(Step step, const Variable& variable) {
    if (variable.own) {
        return own_index_;
    }
    if (Chance(depth_ ? 45 : 75)) {
        return b_.Uint(Below(step.count));
    }
    const bool has_bounds = variable.storage != spv::StorageClass::PhysicalStorageBuffer;
    if (options_.robust && has_bounds && Chance(15)) {
        return Value(kUint, depth_ ? depth_ - 1 : 0);
    }
    if (step.count >= kPatternLimit && Chance(60)) {
        return PatternIndex();
    }
    return IndexBelow(step.count, kUint);  // the count needs more than 7 bits
}

Id Generator::IndexBelow(uint32_t count, ValueType type) {
    const uint32_t depth = depth_ ? depth_ - 1 : 0;
    uint32_t mask = 1;  // below the largest power of two that is not above the count
    while (2 * mask <= count) {
        mask *= 2;
    }
    return Emit(Op::OpBitwiseAnd, type, {Value(type, depth), b_.Constant(type.kind, mask - 1)});
}

// Rows, tiles and strides, known or uniform, as kernels address memory: below kPatternLimit.
Id Generator::PatternIndex() {
    ValueType triple{Kind::kU32, 3, 1};
    auto times = [&](Id a, Id b) { return Emit(Op::OpIMul, kUint, {a, b}); };
    auto plus = [&](Id a, Id b) { return Emit(Op::OpIAdd, kUint, {a, b}); };
    Id stride = Chance(50) ? b_.Uint(1 + Below(7))
                           : Emit(Op::OpBitwiseAnd, kUint, {UniformWord(), b_.Uint(7)});
    Id sum = 0;
    uint32_t choice = Below(3);
    if (choice == 0) {  // at most 63 * 2
        sum = times(b_.Emit(Op::OpLoad, b_.Type(kUint), {local_index_}), b_.Uint(1 + Below(2)));
    } else if (choice == 1) {  // at most 15 * 7 + 63
        Id at = b_.Emit(Op::OpLoad, b_.Type(triple), {local_id_});
        const uint32_t flip = Below(2) && size_[0] <= 16 ? 1 : 0;
        Id x = b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {at, flip});
        Id y = b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {at, 1 - flip});
        sum = plus(times(y, stride), x);
    } else {  // at most 31 * 7 + 7
        Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {local_index_});
        Id width = b_.Uint(2u << Below(3));
        sum = plus(times(Emit(Op::OpUDiv, kUint, {local, width}), stride),
                   Emit(Op::OpUMod, kUint, {local, width}));
    }
    return Chance(50) ? plus(sum, b_.Uint(Below(8))) : sum;
}

Id Generator::PointerTo(const Variable& variable, const Part& part, bool) {
    if (part.steps.empty()) {
        return variable.id;
    }
    std::vector<uint32_t> operands = {variable.id};
    const MemoryType* type = &variable.type;
    const Op op = Chance(50) ? Op::OpAccessChain : Op::OpInBoundsAccessChain;
    // Robust reads may be out of bounds.
    const Op used = options_.robust ? Op::OpAccessChain : op;
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

bool Generator::Usable(const Variable& variable, bool writes) const {
    return (!writes || variable.writable) && (!variable.own || own_index_ != 0);
}

Variable* Generator::AnyVariable(bool writes) {
    std::vector<Variable*> found;
    const bool own = own_index_ != 0 && Chance(35);
    for (std::vector<Variable>* list : {&locals_, &globals_, &addressed_here_}) {
        for (Variable& variable : *list) {
            if (Usable(variable, writes) && (!own || variable.own)) {
                found.push_back(&variable);
            }
        }
    }
    return found.empty() ? nullptr : found[Below(static_cast<uint32_t>(found.size()))];
}

bool Generator::HoldsFloat(const MemoryType& type) const {
    if (type.form == MemoryType::Form::kValue) {
        return IsFloat(type.value.kind);
    }
    return std::ranges::any_of(type.parts,
                               [&](const MemoryType& part) { return HoldsFloat(part); });
}

Id Generator::Load(const Variable& variable, const Part& part) {
    std::vector<uint32_t> operands = {PointerTo(variable, part, false)};
    AddAccess(operands, variable, part.type, variable.foreign && Chance(4));
    return b_.Emit(Op::OpLoad, part.type.id, operands);
}

std::optional<Id> Generator::LoadOf(ValueType type) {
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
            value = Fit(type, value);
        }
        return value;
    }
    return std::nullopt;
}

// --- statements

// A value inside of an aggregate.
std::pair<ValueType, Id> Generator::ExtractLeaf(const MemoryType& type, Id value) {
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

void Generator::LoadStatement() {
    Variable* variable = AnyVariable(false);
    if (!variable) {
        return;
    }
    auto part = FindPart(*variable, [](const MemoryType& type) { return Leaves(type) <= 24; });
    if (!part) {
        return;
    }
    Id value = Load(*variable, *part);
    auto [type, leaf] = ExtractLeaf(part->type, value);
    Add(type, variable->foreign ? Fit(type, leaf) : leaf);
}

Id Generator::ValueFor(const MemoryType& type, bool observable) {
    if (type.form == MemoryType::Form::kValue) {
        Id value = Value(type.value, type.value.columns > 1 ? 1 : Below(3));
        if (!observable || !IsFloat(type.value.kind)) {
            return value;
        }
        if (type.value.columns == 1) {
            return Observable(type.value, value);
        }
        std::vector<Id> columns;
        for (uint32_t i = 0; i < type.value.columns; ++i) {
            Id column = b_.Emit(Op::OpCompositeExtract, b_.Type(type.value.Column()), {value, i});
            columns.push_back(Observable(type.value.Column(), column));
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

void Generator::StoreStatement() {
    Variable* variable = AnyVariable(true);
    if (!variable) {
        return;
    }
    auto part = FindPart(*variable, [](const MemoryType& type) { return Leaves(type) <= 8; });
    if (!part) {
        return;
    }
    depth_ = 2;
    Id value = ValueFor(part->type, variable->foreign);
    depth_ = 1;
    Id pointer = PointerTo(*variable, *part, true);
    depth_ = 0;
    std::vector<uint32_t> operands = {pointer, value};
    AddAccess(operands, *variable, part->type, variable->foreign && Chance(6));
    b_.EmitVoid(Op::OpStore, operands);
}

// Between two parts of one type, whatever the variables.
void Generator::CopyStatement() {
    Variable* to = AnyVariable(true);
    Variable* from = AnyVariable(false);
    if (!to || !from) {
        return;
    }
    auto source = FindPart(*from, [&](const MemoryType& type) {
        return Leaves(type) <= 24 && !(from->foreign && HoldsFloat(type));
    });
    if (!source) {
        return;
    }
    auto target = FindPart(*to, [&](const MemoryType& type) {
        return type.id == source->type.id && !(to->foreign && HoldsFloat(type));
    });
    if (!target) {
        return;
    }
    // The parts of one variable could overlap in part.
    if (to == from && source->type.form != MemoryType::Form::kValue) {
        return;
    }
    Id to_pointer = PointerTo(*to, *target, true);
    Id from_pointer = PointerTo(*from, *source, false);
    std::vector<uint32_t> operands = {to_pointer, from_pointer};
    AddAccess(operands, to->storage == spv::StorageClass::PhysicalStorageBuffer ? *to : *from,
              source->type, false);
    b_.EmitVoid(Op::OpCopyMemory, operands);
}

}  // namespace fornax::kernel::fuzz
