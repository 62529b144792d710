// What only some drivers have: device addresses, pointers as values, arrays of descriptors, storage
// images, wide and float atomics, integer dot products.
#include "compiler/kernel/fuzz/generator_wide.h"

#include <iterator>

namespace fornax::kernel::fuzz {

// One of two places that hold such a value, chosen when the module runs.
void WideStatements::ChosenPointer() {
    const bool writes = Chance(40);
    ValueType type{state_.memory_kinds[Below(static_cast<uint32_t>(state_.memory_kinds.size()))],
                   static_cast<uint8_t>(Chance(60) ? 1 : 2 + Below(3)), 1};
    std::vector<std::pair<const Variable*, VariableAccess::Part>> places;
    const auto storage = Chance(70) || state_.addressed_here.empty()
                             ? spv::StorageClass::StorageBuffer
                             : spv::StorageClass::PhysicalStorageBuffer;
    if (storage == spv::StorageClass::StorageBuffer && !state_.pointers) {
        return;
    }
    for (int tries = 0; tries < 12 && places.size() < 2; ++tries) {
        const auto& list =
            storage == spv::StorageClass::StorageBuffer ? state_.globals : state_.addressed_here;
        const Variable& variable = list[Below(static_cast<uint32_t>(list.size()))];
        if (variable.storage != storage || !access_.Usable(variable, writes)) {
            continue;
        }
        auto part = access_.FindPart(variable, [&](const MemoryType& candidate) {
            return candidate.form == MemoryType::Form::kValue && candidate.value == type &&
                   !candidate.row_major;
        });
        if (part && !access_.InMatrix(variable, *part)) {
            places.push_back({&variable, std::move(*part)});
        }
    }
    if (places.size() < 2) {
        return;
    }
    state_.depth = 1;
    Id a = access_.PointerTo(*places[0].first, places[0].second, writes);
    Id b = access_.PointerTo(*places[1].first, places[1].second, writes);
    state_.depth = 0;
    const Id pointer_type = b_.Pointer(storage, places[0].second.type.id);
    Id chosen = b_.Emit(Op::OpSelect, pointer_type, {values_.Condition(), a, b});
    if (Chance(40)) {
        Id variable = b_.FunctionVariable(pointer_type);
        b_.EmitVoid(Op::OpStore, {variable, a});
        Id inside = b_.NewId();
        Id behind = b_.NewId();
        Id condition = values_.Condition();
        b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
        b_.EmitVoid(Op::OpBranchConditional, {condition, inside, behind});
        StartBlock(inside);
        b_.EmitVoid(Op::OpStore, {variable, chosen});
        b_.EmitVoid(Op::OpBranch, {behind});
        StartBlock(behind);
        chosen = b_.Emit(Op::OpLoad, pointer_type, {variable});
    }
    if (writes) {
        std::vector<uint32_t> operands = {chosen, values_.Observable(type)};
        access_.AddAccess(operands, *places[0].first, places[0].second.type, false);
        b_.EmitVoid(Op::OpStore, operands);
    } else {
        std::vector<uint32_t> operands = {chosen};
        access_.AddAccess(operands, *places[0].first, places[0].second.type, false);
        Add(type, values_.Fit(type, b_.Emit(Op::OpLoad, b_.Type(type), operands)));
    }
}

// What it needs to add to values of the kind, or to take the least.
void WideStatements::DeclareAtomic(Kind kind, bool adds) {
    switch (kind) {
        case Kind::kU64:
        case Kind::kI64:
            b_.Capability(spv::Capability::Int64Atomics);
            return;
        case Kind::kF16:
            b_.Capability(adds ? spv::Capability::AtomicFloat16AddEXT
                               : spv::Capability::AtomicFloat16MinMaxEXT);
            b_.Extension(adds ? "SPV_EXT_shader_atomic_float16_add"
                              : "SPV_EXT_shader_atomic_float_min_max");
            return;
        case Kind::kF32:
            b_.Capability(adds ? spv::Capability::AtomicFloat32AddEXT
                               : spv::Capability::AtomicFloat32MinMaxEXT);
            break;
        default:
            b_.Capability(adds ? spv::Capability::AtomicFloat64AddEXT
                               : spv::Capability::AtomicFloat64MinMaxEXT);
            break;
    }
    b_.Extension(adds ? "SPV_EXT_shader_atomic_float_add" : "SPV_EXT_shader_atomic_float_min_max");
}

// A whole number of 1 to 16, or any integer.
Id WideStatements::AtomicOperand(ValueType type) {
    if (!IsFloat(type.kind)) {
        return values_.Value(type, 1);
    }
    Id whole = Emit(Op::OpBitwiseAnd, kUint, {values_.Value(kUint, 1), b_.Uint(15)});
    whole = Emit(Op::OpIAdd, kUint, {whole, b_.Uint(1)});
    return Emit(Op::OpConvertUToF, type, {whole});
}

Id WideStatements::AnyAtomic(ValueType type, Id pointer, spv::Scope scope) {
    static constexpr Op kInteger[] = {Op::OpAtomicIAdd, Op::OpAtomicOr,   Op::OpAtomicAnd,
                                      Op::OpAtomicXor,  Op::OpAtomicUMin, Op::OpAtomicUMax,
                                      Op::OpAtomicSMin, Op::OpAtomicSMax};
    static constexpr Op kFloat[] = {Op::OpAtomicFAddEXT, Op::OpAtomicFMinEXT, Op::OpAtomicFMaxEXT};
    const Op op = IsFloat(type.kind) ? kFloat[Below(std::size(kFloat))]
                                     : kInteger[Below(std::size(kInteger))];
    DeclareAtomic(type.kind, op == Op::OpAtomicFAddEXT);
    return Emit(op, type,
                {pointer, b_.Uint(static_cast<uint32_t>(scope)), b_.Uint(0), AtomicOperand(type)});
}

// On memory of the invocation's own, which holds a number first.
void WideStatements::OwnWideAtomic() {
    if (!state_.own_index) {
        return;
    }
    const ValueType type{declarations_.WideKind(), 1, 1};
    const uint32_t bytes = BitsOf(type.kind) / 8;
    if (bytes == 2 && !state_.small_storage) {
        return;
    }
    const Variable& view = WideView(type.kind);
    Id at = Emit(Op::OpIMul, kUint, {state_.own_index, b_.Uint(kOwnBytes / bytes)});
    at = Emit(Op::OpIAdd, kUint, {at, b_.Uint(Below(kOwnBytes / bytes))});
    Id pointer = b_.Emit(Op::OpAccessChain, b_.Pointer(view.storage, b_.Type(type)),
                         {view.id, b_.Uint(0), at});
    if (IsFloat(type.kind) || Chance(30)) {
        b_.EmitVoid(Op::OpStore, {pointer, AtomicOperand(type)});
    }
    for (uint32_t count = 1 + Below(2); count > 0; --count) {
        Add(type, values_.Fit(type, AnyAtomic(type, pointer, spv::Scope::Device)));
    }
}

const Variable& WideStatements::WideView(Kind kind) {
    auto [at, added] = state_.wide_views.try_emplace(kind);
    if (added) {
        const uint32_t bytes = BitsOf(kind) / 8;
        if (bytes == 2) {
            b_.Capability(spv::Capability::StorageBuffer16BitAccess);
        }
        at->second =
            declarations_.OutputView(types_.ValueInMemory({kind, 1, 1}, false, true), bytes);
    }
    return at->second;
}

// Workgroup memory that some invocations change in any order.
void WideStatements::WideTally() {
    const ValueType type = state_.wide_tally_type;
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index});
    Id first = Emit(Op::OpIEqual, kBool, {local, b_.Uint(0)});
    Id start = AtomicOperand(type);
    OnlyIf(first, [&] { b_.EmitVoid(Op::OpStore, {state_.wide_tally, start}); });
    ControlBarrier();
    const size_t mark = state_.pool.size();
    // All of them take one operation, so that the order is free; all sums are exact.
    OnlyIf(values_.Condition(), [&] { AnyAtomic(type, state_.wide_tally, spv::Scope::Workgroup); });
    state_.pool.resize(mark);
    ControlBarrier();
    Add(type, values_.Fit(type, b_.Emit(Op::OpLoad, b_.Type(type), {state_.wide_tally})));
    ControlBarrier();
}

void WideStatements::ImageStatement() {
    if (state_.own_image.id == 0) {
        return;
    }
    const ValueType at_type{Kind::kU32, 2, 1};
    auto texel = [&](const Image& image) { return ValueType{image.component.kind, 4, 1}; };
    auto own_place = [&] {
        return b_.Emit(Op::OpCompositeConstruct, b_.Type(at_type),
                       {state_.own_index, b_.Uint(Below(kOwnTexels))});
    };
    auto load = [&](const Image& image) { return b_.Emit(Op::OpLoad, image.type, {image.id}); };
    const uint32_t choice = Below(4);
    if (choice == 0 || state_.own_index == 0) {
        Id x = values_.Masked(kUint, kInputImageSide - 1);
        Id y = values_.Masked(kUint, kInputImageSide - 1);
        if (state_.options.robust && Chance(20)) {
            y = values_.Value(kUint, 1);
        }
        Id at = b_.Emit(Op::OpCompositeConstruct, b_.Type(at_type), {x, y});
        const ValueType type = texel(state_.input_image);
        Add(type, b_.Emit(Op::OpImageRead, b_.Type(type), {load(state_.input_image), at}));
    } else if (choice == 1) {
        const ValueType type = texel(state_.own_image);
        Id value = values_.Masked(type, 0x7f);
        b_.EmitVoid(Op::OpImageWrite, {load(state_.own_image), own_place(), value});
    } else if (choice == 2 && state_.own_image.atomic) {
        static constexpr Op kOps[] = {Op::OpAtomicIAdd, Op::OpAtomicUMax, Op::OpAtomicSMin,
                                      Op::OpAtomicXor, Op::OpAtomicExchange};
        const ValueType type = state_.own_image.component;
        Id value = values_.Value(type, 1);
        Id pointer =
            b_.Emit(Op::OpImageTexelPointer, b_.Pointer(spv::StorageClass::Image, b_.Type(type)),
                    {state_.own_image.id, own_place(), b_.Uint(0)});
        Add(type,
            Emit(kOps[Below(std::size(kOps))], type,
                 {pointer, b_.Uint(static_cast<uint32_t>(spv::Scope::Device)), b_.Uint(0), value}));
    } else {
        const ValueType type = texel(state_.own_image);
        Add(type, b_.Emit(Op::OpImageRead, b_.Type(type), {load(state_.own_image), own_place()}));
    }
}

void WideStatements::DotStatement() {
    const bool is_unsigned = Chance(40);
    const bool mixed = !is_unsigned && Chance(30);
    const bool saturates = Chance(40);
    const ValueType result{is_unsigned ? Kind::kU32 : Kind::kI32, 1, 1};
    auto op = [&] {
        if (saturates) {
            return is_unsigned ? Op::OpUDotAccSat : mixed ? Op::OpSUDotAccSat : Op::OpSDotAccSat;
        }
        return is_unsigned ? Op::OpUDot : mixed ? Op::OpSUDot : Op::OpSDot;
    }();
    std::vector<uint32_t> operands;
    const bool packed = Chance(60);
    if (packed) {
        operands = {values_.Value(kUint, 1), values_.Value(kUint, 1)};
    } else {
        // No product or sum overflows but of the widest.
        const Kind kind = is_unsigned ? Kind::kU32 : Kind::kI32;
        const auto rows = static_cast<uint8_t>(2 + Below(3));
        operands = {values_.Value({kind, rows, 1}, 1),
                    values_.Value({mixed ? Kind::kU32 : kind, rows, 1}, 1)};
        if (saturates) {
            for (uint32_t& operand : operands) {
                const ValueType type{&operand == &operands[1] && mixed ? Kind::kU32 : kind, rows,
                                     1};
                operand = Emit(Op::OpBitwiseAnd, type, {operand, b_.Splat(type, 0xfff)});
            }
        }
    }
    if (saturates) {
        operands.push_back(values_.Value(result, 1));
    }
    if (packed) {
        operands.push_back(0);  // PackedVectorFormat4x8Bit
    }
    Add(result, b_.Emit(op, b_.Type(result), operands));
}

// False if there is nothing of this.
bool WideStatements::WideStatement() {
    switch (Below(6)) {
        case 0:
            if (state_.dots) {
                DotStatement();
            }
            return state_.dots;
        case 1:
            if (state_.wide_atomics) {
                OwnWideAtomic();
            }
            return state_.wide_atomics;
        case 2:
            if (state_.wide_tally == 0 || !state_.uniform || !state_.has_barriers) {
                return false;
            }
            WideTally();
            return true;
        case 3:
            if (state_.own_image.id != 0) {
                ImageStatement();
            }
            return state_.own_image.id != 0;
        default:
            if (!state_.pointers && state_.addressed_here.empty()) {
                return false;
            }
            ChosenPointer();
            return true;
    }
}

}  // namespace fornax::kernel::fuzz
