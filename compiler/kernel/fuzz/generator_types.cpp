// Types, with std430's layout or scalar alignment.
#include "compiler/kernel/fuzz/generator_types.h"

#include <algorithm>

namespace fornax::kernel::fuzz {

namespace {

uint32_t AlignUp(uint32_t value, uint32_t align) {
    return (value + align - 1) / align * align;
}

}  // namespace

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

// Scalar alignment if packed, else std430's.
MemoryType MemoryTypes::ValueInMemory(ValueType type, bool packed, bool has_layout) {
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

MemoryType MemoryTypes::ArrayOf(MemoryType element, uint32_t count, bool has_layout, bool) {
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
void MemoryTypes::FinishStruct(MemoryType& type, bool has_layout, bool packed, uint32_t) {
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

MemoryType MemoryTypes::LaidOutType(uint32_t depth, bool packed, uint32_t room) {
    MemoryType type;
    for (int tries = 0; tries < 6; ++tries) {
        uint32_t choice = depth ? Below(10) : Below(6);
        if (choice < 6) {
            ValueType value{
                state_.memory_kinds[Below(static_cast<uint32_t>(state_.memory_kinds.size()))],
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

MemoryType MemoryTypes::LaidOutStruct(uint32_t members,
                                      uint32_t depth,
                                      bool packed,
                                      uint32_t room) {
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

MemoryType MemoryTypes::PlainType(uint32_t depth) {
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

}  // namespace fornax::kernel::fuzz
