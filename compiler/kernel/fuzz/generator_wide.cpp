// What only some drivers have: device addresses, pointers as values, arrays of descriptors, storage
// images, wide and float atomics, integer dot products.
#include <algorithm>
#include <iterator>

#include "compiler/kernel/fuzz/generator.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr ValueType kUint{Kind::kU32, 1, 1};
constexpr ValueType kBool{Kind::kBool, 1, 1};
constexpr ValueType kWide{Kind::kU64, 1, 1};

struct Format {
    spv::ImageFormat format;
    hal::TexelLayout layout;
    hal::TexelClass texel_class;
    bool extended;  // needs StorageImageExtendedFormats
};
using hal::TexelClass;
using hal::TexelLayout;
constexpr Format kFormats[] = {
    {spv::ImageFormat::R32ui, TexelLayout::k32, TexelClass::kUint, false},
    {spv::ImageFormat::R32i, TexelLayout::k32, TexelClass::kSint, false},
    {spv::ImageFormat::Rgba32ui, TexelLayout::k32x4, TexelClass::kUint, false},
    {spv::ImageFormat::Rgba16i, TexelLayout::k16x4, TexelClass::kSint, false},
    {spv::ImageFormat::Rgba8ui, TexelLayout::k8x4, TexelClass::kUint, false},
    {spv::ImageFormat::Rgba8i, TexelLayout::k8x4, TexelClass::kSint, false},
    {spv::ImageFormat::Rg16ui, TexelLayout::k16x2, TexelClass::kUint, true},
    {spv::ImageFormat::R8ui, TexelLayout::k8, TexelClass::kUint, true},
    {spv::ImageFormat::R16i, TexelLayout::k16, TexelClass::kSint, true},
    {spv::ImageFormat::Rgb10a2ui, TexelLayout::k10_10_10_2, TexelClass::kUint, true},
};

}  // namespace

// --- what the module declares

Generator::Image Generator::DeclareImage(uint32_t binding, bool known) {
    const Format& format = kFormats[Below(std::size(kFormats))];
    if (known && format.extended) {
        b_.Capability(spv::Capability::StorageImageExtendedFormats);
    }
    Image image;
    image.texel = hal::MakeTexelFormat(format.layout, format.texel_class);
    image.component.kind = format.texel_class == TexelClass::kUint ? Kind::kU32 : Kind::kI32;
    image.atomic = known && format.layout == TexelLayout::k32;
    image.type =
        b_.Image(b_.Type(image.component), known ? format.format : spv::ImageFormat::Unknown);
    image.id = b_.GlobalVariable(spv::StorageClass::UniformConstant, image.type);
    b_.Decorate(image.id, spv::Decoration::DescriptorSet, {0});
    b_.Decorate(image.id, spv::Decoration::Binding, {binding});
    if (!known) {
        b_.Capability(spv::Capability::StorageImageReadWithoutFormat);
        b_.Capability(spv::Capability::StorageImageWriteWithoutFormat);
    }
    return image;
}

void Generator::DeclareWide() {
    if (Chance(40)) {
        own_image_ = DeclareImage(kOwnImageBinding, Chance(70));
        module_.own_texel = own_image_.texel;
        input_image_ = DeclareImage(kInputImageBinding, Chance(70));
        module_.input_texel = input_image_.texel;
    }
    pointers_ = Chance(40);
    if (pointers_) {
        b_.Capability(spv::Capability::VariablePointers);
    }
    wide_atomics_ = Chance(40);
    dots_ = Chance(40);
    if (dots_) {
        b_.Capability(spv::Capability::DotProduct);
        b_.Capability(spv::Capability::DotProductInput4x8BitPacked);
        b_.Capability(spv::Capability::DotProductInputAll);
        if (b_.version() < 0x10600) {
            b_.Extension("SPV_KHR_integer_dot_product");
        }
    }
    if (wide_atomics_ && Chance(60)) {
        const Kind kind = WideKind();
        wide_tally_type_ = {kind, 1, 1};
        wide_tally_ = b_.GlobalVariable(spv::StorageClass::Workgroup, b_.Type(wide_tally_type_));
    }
}

// --- offsets of 64 bits

// By the pipeline or by a mode of the module.
void Generator::DeclareWideIndexing() {
    wide_indexing_ = Chance(35);
    module_.wide_indexing = wide_indexing_ && Chance(50);
    if (!wide_indexing_ || module_.wide_indexing) {
        return;
    }
    b_.Capability(spv::Capability::Shader64BitIndexingEXT);
    b_.Extension("SPV_EXT_shader_64bit_indexing");
    b_.AddExecutionMode(spv::ExecutionMode::Shader64BitIndexingEXT);
}

// The index of an element of a run-time array, perhaps as a wider integer; where reads may go
// outside, some are 2^32 elements away and more.
Id Generator::Widened(Id index, const Variable& variable) {
    if (!wide_indexing_ || Chance(50)) {
        return index;
    }
    const bool is_signed = Chance(50);
    const ValueType type{is_signed ? Kind::kI64 : Kind::kU64, 1, 1};
    Id wide = Emit(is_signed ? Op::OpSConvert : Op::OpUConvert, type, {index});
    const bool has_bounds = variable.storage != spv::StorageClass::PhysicalStorageBuffer;
    if (!options_.robust || !has_bounds || variable.own || !Chance(10)) {
        return wide;
    }
    return Emit(Op::OpIAdd, type, {wide, b_.Constant(type.kind, uint64_t{1 + Below(3)} << 32)});
}

// --- device addresses

// The memory that the addresses in the push constants lead to, as this function's pointers.
void Generator::LoadAddresses() {
    addressed_here_.clear();
    for (const Variable& view : addressed_) {
        Variable variable = view;
        Id word =
            b_.Emit(Op::OpAccessChain, b_.Pointer(spv::StorageClass::PushConstant, b_.Type(kWide)),
                    {push_struct_, b_.Uint(push_address_member_ + (variable.own ? 1 : 0))});
        Id address = b_.Emit(Op::OpLoad, b_.Type(kWide), {word});
        variable.id =
            b_.Emit(Op::OpConvertUToPtr, b_.Pointer(variable.storage, variable.type.id), {address});
        addressed_here_.push_back(std::move(variable));
    }
}

uint32_t Generator::ScalarAlign(const MemoryType& type) const {
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
void Generator::AddAccess(std::vector<uint32_t>& operands,
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

// --- pointers as values

// One of two places that hold such a value, chosen when the module runs.
void Generator::ChosenPointer() {
    const bool writes = Chance(40);
    ValueType type{memory_kinds_[Below(static_cast<uint32_t>(memory_kinds_.size()))],
                   static_cast<uint8_t>(Chance(60) ? 1 : 2 + Below(3)), 1};
    std::vector<std::pair<const Variable*, Part>> places;
    const auto storage = Chance(70) || addressed_here_.empty()
                             ? spv::StorageClass::StorageBuffer
                             : spv::StorageClass::PhysicalStorageBuffer;
    if (storage == spv::StorageClass::StorageBuffer && !pointers_) {
        return;
    }
    for (int tries = 0; tries < 12 && places.size() < 2; ++tries) {
        const auto& list = storage == spv::StorageClass::StorageBuffer ? globals_ : addressed_here_;
        const Variable& variable = list[Below(static_cast<uint32_t>(list.size()))];
        if (variable.storage != storage || !Usable(variable, writes)) {
            continue;
        }
        auto part = FindPart(variable, [&](const MemoryType& candidate) {
            return candidate.form == MemoryType::Form::kValue && candidate.value == type &&
                   !candidate.row_major;
        });
        if (part && !InMatrix(variable, *part)) {
            places.push_back({&variable, std::move(*part)});
        }
    }
    if (places.size() < 2) {
        return;
    }
    depth_ = 1;
    Id a = PointerTo(*places[0].first, places[0].second, writes);
    Id b = PointerTo(*places[1].first, places[1].second, writes);
    depth_ = 0;
    const Id pointer_type = b_.Pointer(storage, places[0].second.type.id);
    Id chosen = b_.Emit(Op::OpSelect, pointer_type, {Condition(), a, b});
    if (Chance(40)) {
        Id variable = b_.FunctionVariable(pointer_type);
        b_.EmitVoid(Op::OpStore, {variable, a});
        Id inside = b_.NewId();
        Id behind = b_.NewId();
        Id condition = Condition();
        b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
        b_.EmitVoid(Op::OpBranchConditional, {condition, inside, behind});
        StartBlock(inside);
        b_.EmitVoid(Op::OpStore, {variable, chosen});
        b_.EmitVoid(Op::OpBranch, {behind});
        StartBlock(behind);
        chosen = b_.Emit(Op::OpLoad, pointer_type, {variable});
    }
    if (writes) {
        std::vector<uint32_t> operands = {chosen, Observable(type)};
        AddAccess(operands, *places[0].first, places[0].second.type, false);
        b_.EmitVoid(Op::OpStore, operands);
    } else {
        std::vector<uint32_t> operands = {chosen};
        AddAccess(operands, *places[0].first, places[0].second.type, false);
        Add(type, Fit(type, b_.Emit(Op::OpLoad, b_.Type(type), operands)));
    }
}

// A value fit for memory that others see.
Id Generator::Observable(ValueType type) {
    Id value = Value(type, 1);
    return IsFloat(type.kind) ? Observable(type, value) : value;
}

// True if the part lies in a matrix: such pointers are not chosen at run time.
bool Generator::InMatrix(const Variable& variable, const Part& part) const {
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

// --- atomics

Kind Generator::WideKind() {
    static constexpr Kind kKinds[] = {Kind::kU64, Kind::kI64, Kind::kF32, Kind::kF64, Kind::kF16};
    return kKinds[Below(std::size(kKinds))];
}

// What it needs to add to values of the kind, or to take the least.
void Generator::DeclareAtomic(Kind kind, bool adds) {
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
Id Generator::AtomicOperand(ValueType type) {
    if (!IsFloat(type.kind)) {
        return Value(type, 1);
    }
    Id whole = Emit(Op::OpBitwiseAnd, kUint, {Value(kUint, 1), b_.Uint(15)});
    whole = Emit(Op::OpIAdd, kUint, {whole, b_.Uint(1)});
    return Emit(Op::OpConvertUToF, type, {whole});
}

Id Generator::AnyAtomic(ValueType type, Id pointer, spv::Scope scope) {
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
void Generator::OwnWideAtomic() {
    if (!own_index_) {
        return;
    }
    const ValueType type{WideKind(), 1, 1};
    const uint32_t bytes = BitsOf(type.kind) / 8;
    if (bytes == 2 && !small_storage_) {
        return;
    }
    const Variable& view = WideView(type.kind);
    Id at = Emit(Op::OpIMul, kUint, {own_index_, b_.Uint(kOwnBytes / bytes)});
    at = Emit(Op::OpIAdd, kUint, {at, b_.Uint(Below(kOwnBytes / bytes))});
    Id pointer = b_.Emit(Op::OpAccessChain, b_.Pointer(view.storage, b_.Type(type)),
                         {view.id, b_.Uint(0), at});
    if (IsFloat(type.kind) || Chance(30)) {
        b_.EmitVoid(Op::OpStore, {pointer, AtomicOperand(type)});
    }
    for (uint32_t count = 1 + Below(2); count > 0; --count) {
        Add(type, Fit(type, AnyAtomic(type, pointer, spv::Scope::Device)));
    }
}

const Variable& Generator::WideView(Kind kind) {
    auto [at, added] = wide_views_.try_emplace(kind);
    if (added) {
        const uint32_t bytes = BitsOf(kind) / 8;
        if (bytes == 2) {
            b_.Capability(spv::Capability::StorageBuffer16BitAccess);
        }
        at->second = OutputView(ValueInMemory({kind, 1, 1}, false, true), bytes);
    }
    return at->second;
}

// Workgroup memory that some invocations change in any order.
void Generator::WideTally() {
    const ValueType type = wide_tally_type_;
    Id local = b_.Emit(Op::OpLoad, b_.Type(kUint), {local_index_});
    Id first = Emit(Op::OpIEqual, kBool, {local, b_.Uint(0)});
    Id start = AtomicOperand(type);
    OnlyIf(first, [&] { b_.EmitVoid(Op::OpStore, {wide_tally_, start}); });
    ControlBarrier();
    const size_t mark = pool_.size();
    // All of them take one operation, so that the order is free; all sums are exact.
    OnlyIf(Condition(), [&] { AnyAtomic(type, wide_tally_, spv::Scope::Workgroup); });
    pool_.resize(mark);
    ControlBarrier();
    Add(type, Fit(type, b_.Emit(Op::OpLoad, b_.Type(type), {wide_tally_})));
    ControlBarrier();
}

// --- images

void Generator::ImageStatement() {
    if (own_image_.id == 0) {
        return;
    }
    const ValueType at_type{Kind::kU32, 2, 1};
    auto texel = [&](const Image& image) { return ValueType{image.component.kind, 4, 1}; };
    auto own_place = [&] {
        return b_.Emit(Op::OpCompositeConstruct, b_.Type(at_type),
                       {own_index_, b_.Uint(Below(kOwnTexels))});
    };
    auto load = [&](const Image& image) { return b_.Emit(Op::OpLoad, image.type, {image.id}); };
    const uint32_t choice = Below(4);
    if (choice == 0 || own_index_ == 0) {
        Id x = Masked(kUint, kInputImageSide - 1);
        Id y = Masked(kUint, kInputImageSide - 1);
        if (options_.robust && Chance(20)) {
            y = Value(kUint, 1);
        }
        Id at = b_.Emit(Op::OpCompositeConstruct, b_.Type(at_type), {x, y});
        const ValueType type = texel(input_image_);
        Add(type, b_.Emit(Op::OpImageRead, b_.Type(type), {load(input_image_), at}));
    } else if (choice == 1) {
        const ValueType type = texel(own_image_);
        Id value = Masked(type, 0x7f);
        b_.EmitVoid(Op::OpImageWrite, {load(own_image_), own_place(), value});
    } else if (choice == 2 && own_image_.atomic) {
        static constexpr Op kOps[] = {Op::OpAtomicIAdd, Op::OpAtomicUMax, Op::OpAtomicSMin,
                                      Op::OpAtomicXor, Op::OpAtomicExchange};
        const ValueType type = own_image_.component;
        Id value = Value(type, 1);
        Id pointer =
            b_.Emit(Op::OpImageTexelPointer, b_.Pointer(spv::StorageClass::Image, b_.Type(type)),
                    {own_image_.id, own_place(), b_.Uint(0)});
        Add(type,
            Emit(kOps[Below(std::size(kOps))], type,
                 {pointer, b_.Uint(static_cast<uint32_t>(spv::Scope::Device)), b_.Uint(0), value}));
    } else {
        const ValueType type = texel(own_image_);
        Add(type, b_.Emit(Op::OpImageRead, b_.Type(type), {load(own_image_), own_place()}));
    }
}

// --- integer dot products (SPV_KHR_integer_dot_product)

void Generator::DotStatement() {
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
        operands = {Value(kUint, 1), Value(kUint, 1)};
    } else {
        // No product or sum overflows but of the widest.
        const Kind kind = is_unsigned ? Kind::kU32 : Kind::kI32;
        const auto rows = static_cast<uint8_t>(2 + Below(3));
        operands = {Value({kind, rows, 1}, 1), Value({mixed ? Kind::kU32 : kind, rows, 1}, 1)};
        if (saturates) {
            for (uint32_t& operand : operands) {
                const ValueType type{&operand == &operands[1] && mixed ? Kind::kU32 : kind, rows,
                                     1};
                operand = Emit(Op::OpBitwiseAnd, type, {operand, b_.Splat(type, 0xfff)});
            }
        }
    }
    if (saturates) {
        operands.push_back(Value(result, 1));
    }
    if (packed) {
        operands.push_back(0);  // PackedVectorFormat4x8Bit
    }
    Add(result, b_.Emit(op, b_.Type(result), operands));
}

// False if there is nothing of this.
bool Generator::WideStatement() {
    switch (Below(6)) {
        case 0:
            if (dots_) {
                DotStatement();
            }
            return dots_;
        case 1:
            if (wide_atomics_) {
                OwnWideAtomic();
            }
            return wide_atomics_;
        case 2:
            if (wide_tally_ == 0 || !uniform_ || !has_barriers_) {
                return false;
            }
            WideTally();
            return true;
        case 3:
            if (own_image_.id != 0) {
                ImageStatement();
            }
            return own_image_.id != 0;
        default:
            if (!pointers_ && addressed_here_.empty()) {
                return false;
            }
            ChosenPointer();
            return true;
    }
}

}  // namespace fornax::kernel::fuzz
