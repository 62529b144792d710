// The interface of random_module.h, in random types; images, addresses and capabilities.
#include "compiler/kernel/fuzz/generator_declarations.h"

#include <algorithm>
#include <iterator>

namespace fornax::kernel::fuzz {

namespace {

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

void Declarations::DeclareSubgroups() {
    for (spv::Capability capability :
         {spv::Capability::GroupNonUniform, spv::Capability::GroupNonUniformVote,
          spv::Capability::GroupNonUniformBallot, spv::Capability::GroupNonUniformArithmetic,
          spv::Capability::GroupNonUniformShuffle, spv::Capability::GroupNonUniformShuffleRelative,
          spv::Capability::GroupNonUniformQuad}) {
        b_.Capability(capability);
    }
    b_.Extension("SPV_KHR_maximal_reconvergence");
    b_.AddExecutionMode(spv::ExecutionMode::MaximallyReconvergesKHR);
    state_.lane_variable = Input(spv::BuiltIn::SubgroupLocalInvocationId, kUint);
}

Image Declarations::DeclareImage(uint32_t binding, bool known) {
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

void Declarations::DeclareWide() {
    if (Chance(40)) {
        state_.own_image = DeclareImage(kOwnImageBinding, Chance(70));
        state_.module.own_texel = state_.own_image.texel;
        state_.input_image = DeclareImage(kInputImageBinding, Chance(70));
        state_.module.input_texel = state_.input_image.texel;
    }
    state_.pointers = Chance(40);
    if (state_.pointers) {
        b_.Capability(spv::Capability::VariablePointers);
    }
    state_.wide_atomics = Chance(40);
    state_.dots = Chance(40);
    if (state_.dots) {
        b_.Capability(spv::Capability::DotProduct);
        b_.Capability(spv::Capability::DotProductInput4x8BitPacked);
        b_.Capability(spv::Capability::DotProductInputAll);
        if (b_.version() < 0x10600) {
            b_.Extension("SPV_KHR_integer_dot_product");
        }
    }
    if (state_.wide_atomics && Chance(60)) {
        const Kind kind = WideKind();
        state_.wide_tally_type = {kind, 1, 1};
        state_.wide_tally =
            b_.GlobalVariable(spv::StorageClass::Workgroup, b_.Type(state_.wide_tally_type));
    }
}

// By the pipeline or by a mode of the module.
void Declarations::DeclareWideIndexing() {
    state_.wide_indexing = Chance(35);
    state_.module.wide_indexing = state_.wide_indexing && Chance(50);
    if (!state_.wide_indexing || state_.module.wide_indexing) {
        return;
    }
    b_.Capability(spv::Capability::Shader64BitIndexingEXT);
    b_.Extension("SPV_EXT_shader_64bit_indexing");
    b_.AddExecutionMode(spv::ExecutionMode::Shader64BitIndexingEXT);
}

// The memory that the addresses in the push constants lead to, as this function's pointers.
void Declarations::LoadAddresses() {
    state_.addressed_here.clear();
    for (const Variable& view : state_.addressed) {
        Variable variable = view;
        Id word = b_.Emit(
            Op::OpAccessChain, b_.Pointer(spv::StorageClass::PushConstant, b_.Type(kWide)),
            {state_.push_struct, b_.Uint(state_.push_address_member + (variable.own ? 1 : 0))});
        Id address = b_.Emit(Op::OpLoad, b_.Type(kWide), {word});
        variable.id =
            b_.Emit(Op::OpConvertUToPtr, b_.Pointer(variable.storage, variable.type.id), {address});
        state_.addressed_here.push_back(std::move(variable));
    }
}

Kind Declarations::WideKind() {
    static constexpr Kind kKinds[] = {Kind::kU64, Kind::kI64, Kind::kF32, Kind::kF64, Kind::kF16};
    return kKinds[Below(std::size(kKinds))];
}

void Declarations::DeclareShape() {
    static constexpr std::array<uint32_t, 3> kSizes[] = {
        {8, 1, 1},  {16, 1, 1}, {32, 1, 1}, {4, 4, 1}, {8, 4, 1},  {7, 3, 1},
        {24, 1, 1}, {33, 1, 1}, {2, 2, 4},  {1, 1, 1}, {2, 16, 1}, {40, 1, 1},
        {64, 1, 1}, {8, 8, 1},  {16, 2, 1}, {4, 8, 1}, {2, 2, 1},  {16, 4, 1}};
    state_.size = kSizes[Below(std::size(kSizes))];
    state_.module.invocations = state_.size[0] * state_.size[1] * state_.size[2];
    b_.SetLocalSize(state_.size);
    state_.exact = state_.options.portable || Chance(40);
    state_.parts = Chance(30);
    state_.nevers = !state_.options.portable && Chance(20);
    state_.kinds = {Kind::kU32, Kind::kU32, Kind::kI32, Kind::kF32, Kind::kF32};
    auto may_use = [&](std::initializer_list<Kind> kinds) {
        if (Chance(30)) {
            state_.kinds.insert(state_.kinds.end(), kinds);
        }
    };
    may_use({Kind::kI64, Kind::kU64});
    may_use({Kind::kI16, Kind::kU16});
    may_use({Kind::kI8, Kind::kU8});
    may_use({Kind::kF64});
    may_use({Kind::kF16});
    state_.small_storage = Chance(60);
    for (Kind kind : state_.kinds) {
        if (BitsOf(kind) >= 32 || state_.small_storage) {
            state_.memory_kinds.push_back(kind);
        }
    }
    const bool has_8 = std::ranges::count(state_.memory_kinds, Kind::kI8) != 0;
    const bool has_16 = std::ranges::count_if(state_.memory_kinds,
                                              [](Kind kind) { return BitsOf(kind) == 16; }) != 0;
    if (has_8) {
        b_.Capability(spv::Capability::StorageBuffer8BitAccess);
        b_.Capability(spv::Capability::UniformAndStorageBuffer8BitAccess);
        b_.Capability(spv::Capability::StoragePushConstant8);
        if (b_.version() < 0x10500) {
            b_.Extension("SPV_KHR_8bit_storage");
        }
    }
    if (has_16) {
        b_.Capability(spv::Capability::StorageBuffer16BitAccess);
        b_.Capability(spv::Capability::UniformAndStorageBuffer16BitAccess);
        b_.Capability(spv::Capability::StoragePushConstant16);
    }
}

Id Declarations::Input(spv::BuiltIn builtin, ValueType type) {
    Id id = b_.GlobalVariable(spv::StorageClass::Input, b_.Type(type));
    b_.Decorate(id, spv::Decoration::BuiltIn, {static_cast<uint32_t>(builtin)});
    return id;
}

Variable Declarations::Block(MemoryType type, spv::StorageClass storage, uint32_t binding) {
    b_.Decorate(type.id, spv::Decoration::Block);
    Variable variable;
    variable.id = b_.GlobalVariable(storage, type.id);
    variable.storage = storage;
    variable.foreign = true;
    variable.type = std::move(type);
    if (storage != spv::StorageClass::PushConstant) {
        b_.Decorate(variable.id, spv::Decoration::DescriptorSet, {0});
        b_.Decorate(variable.id, spv::Decoration::Binding, {binding});
    }
    return variable;
}

MemoryType Declarations::InputView() {
    const bool packed = Chance(50);
    MemoryType type = types_.LaidOutStruct(Below(4), 2, packed, 512);
    MemoryType element = types_.LaidOutType(1, packed, 64);
    MemoryType tail;
    tail.form = MemoryType::Form::kRuntimeArray;
    tail.align = element.align;
    tail.row_major = element.row_major;
    tail.matrix_stride = element.matrix_stride;
    tail.stride = (element.size + element.align - 1) / element.align * element.align;
    tail.count = (kInputBytes - 1024) / tail.stride;
    tail.id = b_.RuntimeArray(element.id, tail.stride);
    tail.parts = {std::move(element)};
    MemoryType whole;
    whole.form = MemoryType::Form::kStruct;
    whole.parts = std::move(type.parts);
    whole.parts.push_back(std::move(tail));
    types_.FinishStruct(whole, true, packed, kInputBytes);
    return whole;
}

// An element for each invocation.
MemoryType Declarations::OutputType(MemoryType element, uint32_t stride) {
    MemoryType array;
    array.form = MemoryType::Form::kRuntimeArray;
    array.align = element.align;
    array.stride = stride;
    array.row_major = element.row_major;
    array.matrix_stride = element.matrix_stride;
    array.id = b_.RuntimeArray(element.id, stride);
    array.parts = {std::move(element)};
    MemoryType whole;
    whole.form = MemoryType::Form::kStruct;
    whole.id = b_.Struct({{array.id}});
    b_.MemberDecorate(whole.id, 0, spv::Decoration::Offset, {0});
    if (uint32_t matrix_stride = array.matrix_stride) {
        b_.MemberDecorate(whole.id, 0, spv::Decoration::MatrixStride, {matrix_stride});
        b_.MemberDecorate(whole.id, 0,
                          array.row_major ? spv::Decoration::RowMajor : spv::Decoration::ColMajor);
    }
    whole.parts = {std::move(array)};
    return whole;
}

Variable Declarations::OutputView(MemoryType element, uint32_t stride) {
    Variable variable =
        Block(OutputType(std::move(element), stride), spv::StorageClass::StorageBuffer, 1);
    variable.own = true;
    b_.Decorate(variable.id, spv::Decoration::Aliased);
    return variable;
}

void Declarations::DeclareBuffers() {
    // Several views of one buffer, as ggml's shaders have them.
    for (uint32_t views = 1 + Below(3); views > 0; --views) {
        Variable variable = Block(InputView(), spv::StorageClass::StorageBuffer, 0);
        variable.writable = false;
        if (Chance(50)) {
            b_.Decorate(variable.id, spv::Decoration::NonWritable);
        }
        state_.globals.push_back(std::move(variable));
    }
    auto own_element = [&] {
        const bool packed = Chance(50);
        return Chance(70) ? types_.LaidOutStruct(1 + Below(4), 1, packed, kOwnBytes)
                          : types_.LaidOutType(1, packed, kOwnBytes);
    };
    state_.own_words = OutputView(types_.ValueInMemory(kUint, false, true), 4);
    for (uint32_t views = 1 + Below(2); views > 0; --views) {
        MemoryType element = own_element();
        if (element.size <= kOwnBytes) {
            state_.globals.push_back(OutputView(std::move(element), kOwnBytes));
        }
    }
    if (state_.options.portable) {
        return;
    }
    if (Chance(60)) {
        Variable variable = Block(types_.LaidOutStruct(1 + Below(4), 2, Chance(50), 768),
                                  spv::StorageClass::Uniform, 2);
        variable.writable = false;
        state_.globals.push_back(std::move(variable));
    }
    state_.module.addressed = state_.options.wide && Chance(45);
    if (state_.module.addressed) {
        b_.UseAddresses();
        auto view = [&](MemoryType type, bool own) {
            b_.Decorate(type.id, spv::Decoration::Block);
            Variable variable;
            variable.storage = spv::StorageClass::PhysicalStorageBuffer;
            variable.foreign = true;
            variable.own = variable.writable = own;
            variable.type = std::move(type);
            state_.addressed.push_back(std::move(variable));
        };
        view(InputView(), false);
        MemoryType element = own_element();
        if (element.size <= kOwnBytes) {
            view(OutputType(std::move(element), kOwnBytes), true);
        }
    }
    if (state_.module.addressed || Chance(60)) {
        DeclarePush();
    }
    if (state_.options.wide && Chance(40)) {
        MemoryType type = types_.LaidOutStruct(1 + Below(4), 1, Chance(50), kArrayBufferBytes);
        b_.Decorate(type.id, spv::Decoration::Block);
        Variable variable;
        variable.type = types_.ArrayOf(std::move(type), kArrayBuffers, false, true);
        variable.storage = spv::StorageClass::StorageBuffer;
        variable.id = b_.GlobalVariable(variable.storage, variable.type.id);
        variable.foreign = true;
        variable.writable = false;
        variable.descriptors = true;
        b_.Decorate(variable.id, spv::Decoration::DescriptorSet, {0});
        b_.Decorate(variable.id, spv::Decoration::Binding, {kBufferArrayBinding});
        b_.Capability(spv::Capability::ShaderNonUniform);
        b_.Capability(spv::Capability::StorageBufferArrayNonUniformIndexing);
        if (b_.version() < 0x10500) {
            b_.Extension("SPV_EXT_descriptor_indexing");
        }
        state_.globals.push_back(std::move(variable));
    }
}

void Declarations::DeclarePush() {
    MemoryType type;
    type.form = MemoryType::Form::kStruct;
    const bool packed = Chance(50);
    type.parts = {types_.ValueInMemory(kUint, packed, true)};
    uint32_t used = type.parts[0].size;
    for (uint32_t i = Below(4); i > 0; --i) {
        MemoryType part = types_.LaidOutType(1, packed, 24);
        used = (used + 15) / 16 * 16 + part.size + 2 * part.align;
        if (used <= kPushBytes - kAddressBytes) {
            type.parts.push_back(std::move(part));
        }
    }
    if (state_.module.addressed) {
        state_.push_address_member = static_cast<uint32_t>(type.parts.size());
        for (uint32_t i = 0; i < 2; ++i) {
            MemoryType address = types_.ValueInMemory({Kind::kU64, 1, 1}, false, true);
            address.least_offset = kPushBytes - kAddressBytes + 8 * i;
            type.parts.push_back(std::move(address));
        }
    }
    types_.FinishStruct(type, true, packed && !state_.module.addressed, kPushBytes);
    if (type.size > kPushBytes) {
        return;
    }
    // What lies elsewhere each time is not for arithmetic.
    if (state_.module.addressed) {
        type.parts.resize(state_.push_address_member);
    }
    Variable variable = Block(std::move(type), spv::StorageClass::PushConstant, 0);
    variable.writable = false;
    state_.push_struct = variable.id;
    // A gap before the first member would move it.
    if (variable.type.offsets[0] == 0) {
        state_.push_variable = variable.id;
    }
    state_.globals.push_back(std::move(variable));
}

}  // namespace fornax::kernel::fuzz
