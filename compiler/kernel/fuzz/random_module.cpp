#include "compiler/kernel/fuzz/random_module.h"

#include <algorithm>

#include "compiler/kernel/fuzz/generator.h"

namespace fornax::kernel::fuzz {

namespace {

constexpr ValueType kUint{Kind::kU32, 1, 1};

}  // namespace

Generator::Generator(uint64_t seed, const RandomModuleOptions& options)
    : b_([&] {
          static constexpr uint32_t kVersions[] = {0x10300, 0x10300, 0x10400, 0x10500, 0x10600};
          return kVersions[Random(seed ^ 0x5eed).Below(5)];
      }()),
      random_(seed),
      seed_(seed),
      options_(options) {}

void Generator::DeclareShape() {
    static constexpr std::array<uint32_t, 3> kSizes[] = {
        {8, 1, 1},  {16, 1, 1}, {32, 1, 1}, {4, 4, 1}, {8, 4, 1},  {7, 3, 1},
        {24, 1, 1}, {33, 1, 1}, {2, 2, 4},  {1, 1, 1}, {2, 16, 1}, {40, 1, 1},
        {64, 1, 1}, {8, 8, 1},  {16, 2, 1}, {4, 8, 1}, {2, 2, 1},  {16, 4, 1}};
    size_ = kSizes[Below(std::size(kSizes))];
    module_.invocations = size_[0] * size_[1] * size_[2];
    b_.SetLocalSize(size_);
    exact_ = options_.portable || Chance(40);
    parts_ = Chance(30);
    nevers_ = !options_.portable && Chance(20);
    kinds_ = {Kind::kU32, Kind::kU32, Kind::kI32, Kind::kF32, Kind::kF32};
    auto may_use = [&](std::initializer_list<Kind> kinds) {
        if (Chance(30)) {
            kinds_.insert(kinds_.end(), kinds);
        }
    };
    may_use({Kind::kI64, Kind::kU64});
    may_use({Kind::kI16, Kind::kU16});
    may_use({Kind::kI8, Kind::kU8});
    may_use({Kind::kF64});
    may_use({Kind::kF16});
    small_storage_ = Chance(60);
    for (Kind kind : kinds_) {
        if (BitsOf(kind) >= 32 || small_storage_) {
            memory_kinds_.push_back(kind);
        }
    }
    const bool has_8 = std::ranges::count(memory_kinds_, Kind::kI8) != 0;
    const bool has_16 =
        std::ranges::count_if(memory_kinds_, [](Kind kind) { return BitsOf(kind) == 16; }) != 0;
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

Id Generator::Input(spv::BuiltIn builtin, ValueType type) {
    Id id = b_.GlobalVariable(spv::StorageClass::Input, b_.Type(type));
    b_.Decorate(id, spv::Decoration::BuiltIn, {static_cast<uint32_t>(builtin)});
    return id;
}

Variable Generator::Block(MemoryType type, spv::StorageClass storage, uint32_t binding) {
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

MemoryType Generator::InputView() {
    const bool packed = Chance(50);
    MemoryType type = LaidOutStruct(Below(4), 2, packed, 512);
    MemoryType element = LaidOutType(1, packed, 64);
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
    FinishStruct(whole, true, packed, kInputBytes);
    return whole;
}

// An element for each invocation.
MemoryType Generator::OutputType(MemoryType element, uint32_t stride) {
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

Variable Generator::OutputView(MemoryType element, uint32_t stride) {
    Variable variable =
        Block(OutputType(std::move(element), stride), spv::StorageClass::StorageBuffer, 1);
    variable.own = true;
    b_.Decorate(variable.id, spv::Decoration::Aliased);
    return variable;
}

void Generator::DeclareBuffers() {
    // Several views of one buffer, as ggml's shaders have them.
    for (uint32_t views = 1 + Below(3); views > 0; --views) {
        Variable variable = Block(InputView(), spv::StorageClass::StorageBuffer, 0);
        variable.writable = false;
        if (Chance(50)) {
            b_.Decorate(variable.id, spv::Decoration::NonWritable);
        }
        globals_.push_back(std::move(variable));
    }
    auto own_element = [&] {
        const bool packed = Chance(50);
        return Chance(70) ? LaidOutStruct(1 + Below(4), 1, packed, kOwnBytes)
                          : LaidOutType(1, packed, kOwnBytes);
    };
    own_words_ = OutputView(ValueInMemory(kUint, false, true), 4);
    for (uint32_t views = 1 + Below(2); views > 0; --views) {
        MemoryType element = own_element();
        if (element.size <= kOwnBytes) {
            globals_.push_back(OutputView(std::move(element), kOwnBytes));
        }
    }
    if (options_.portable) {
        return;
    }
    if (Chance(60)) {
        Variable variable =
            Block(LaidOutStruct(1 + Below(4), 2, Chance(50), 768), spv::StorageClass::Uniform, 2);
        variable.writable = false;
        globals_.push_back(std::move(variable));
    }
    module_.addressed = options_.wide && Chance(45);
    if (module_.addressed) {
        b_.UseAddresses();
        auto view = [&](MemoryType type, bool own) {
            b_.Decorate(type.id, spv::Decoration::Block);
            Variable variable;
            variable.storage = spv::StorageClass::PhysicalStorageBuffer;
            variable.foreign = true;
            variable.own = variable.writable = own;
            variable.type = std::move(type);
            addressed_.push_back(std::move(variable));
        };
        view(InputView(), false);
        MemoryType element = own_element();
        if (element.size <= kOwnBytes) {
            view(OutputType(std::move(element), kOwnBytes), true);
        }
    }
    if (module_.addressed || Chance(60)) {
        DeclarePush();
    }
    if (options_.wide && Chance(40)) {
        MemoryType type = LaidOutStruct(1 + Below(4), 1, Chance(50), kArrayBufferBytes);
        b_.Decorate(type.id, spv::Decoration::Block);
        Variable variable;
        variable.type = ArrayOf(std::move(type), kArrayBuffers, false, true);
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
        globals_.push_back(std::move(variable));
    }
}

void Generator::DeclarePush() {
    MemoryType type;
    type.form = MemoryType::Form::kStruct;
    const bool packed = Chance(50);
    type.parts = {ValueInMemory(kUint, packed, true)};
    uint32_t used = type.parts[0].size;
    for (uint32_t i = Below(4); i > 0; --i) {
        MemoryType part = LaidOutType(1, packed, 24);
        used = (used + 15) / 16 * 16 + part.size + 2 * part.align;
        if (used <= kPushBytes - kAddressBytes) {
            type.parts.push_back(std::move(part));
        }
    }
    if (module_.addressed) {
        push_address_member_ = static_cast<uint32_t>(type.parts.size());
        for (uint32_t i = 0; i < 2; ++i) {
            MemoryType address = ValueInMemory({Kind::kU64, 1, 1}, false, true);
            address.least_offset = kPushBytes - kAddressBytes + 8 * i;
            type.parts.push_back(std::move(address));
        }
    }
    FinishStruct(type, true, packed && !module_.addressed, kPushBytes);
    if (type.size > kPushBytes) {
        return;
    }
    // What lies elsewhere each time is not for arithmetic.
    if (module_.addressed) {
        type.parts.resize(push_address_member_);
    }
    Variable variable = Block(std::move(type), spv::StorageClass::PushConstant, 0);
    variable.writable = false;
    push_struct_ = variable.id;
    // A gap before the first member would move it.
    if (variable.type.offsets[0] == 0) {
        push_variable_ = variable.id;
    }
    globals_.push_back(std::move(variable));
}

Variable Generator::NewLocal(const MemoryType& type) {
    Variable variable;
    variable.type = type;
    variable.id = b_.FunctionVariable(type.id, b_.Null(type.id));
    return variable;
}

void Generator::DeclareLocals(uint32_t count) {
    for (; count > 0; --count) {
        locals_.push_back(NewLocal(PlainType(2)));
        if (Chance(40)) {
            const Variable variable = locals_.back();
            auto part = FindPart(variable, [](const MemoryType& type) {
                return type.form == MemoryType::Form::kValue;
            });
            Id value = ValueFor(part->type, false);
            Id pointer = PointerTo(variable, *part, true);
            b_.EmitVoid(Op::OpStore, {pointer, value});
        }
    }
}

// The invocation's linear index over all workgroups.
Id Generator::GlobalIndex() {
    ValueType triple{Kind::kU32, 3, 1};
    auto component = [&](Id vector, uint32_t i) {
        return b_.Emit(Op::OpCompositeExtract, b_.Type(kUint), {vector, i});
    };
    auto linear = [&](Id at, Id x, Id y) {  // (z * y + y) * x + x
        Id sum = Emit(Op::OpIMul, kUint, {component(at, 2), y});
        sum = Emit(Op::OpIAdd, kUint, {sum, component(at, 1)});
        sum = Emit(Op::OpIMul, kUint, {sum, x});
        return Emit(Op::OpIAdd, kUint, {sum, component(at, 0)});
    };
    Id groups = b_.Emit(Op::OpLoad, b_.Type(triple), {num_workgroups_});
    Id group = b_.Emit(Op::OpLoad, b_.Type(triple), {workgroup_id_});
    Id group_index = linear(group, component(groups, 0), component(groups, 1));
    Id local = 0;
    if (Chance(50)) {
        local = b_.Emit(Op::OpLoad, b_.Type(kUint), {local_index_});
    } else {
        Id at = b_.Emit(Op::OpLoad, b_.Type(triple), {local_id_});
        local = linear(at, b_.Uint(size_[0]), b_.Uint(size_[1]));
        Add(triple, at);
    }
    Add(kUint, local);
    Id first = Emit(Op::OpIMul, kUint, {group_index, b_.Uint(module_.invocations)});
    Id index = Emit(Op::OpIAdd, kUint, {first, local});
    Add(kUint, index);
    return index;
}

void Generator::Digest(Id word) {
    Id old = b_.Emit(Op::OpLoad, b_.Type(kUint), {digest_});
    b_.EmitVoid(Op::OpStore, {digest_, Fold(old, word)});
}

void Generator::StoreDigest() {
    Id word = b_.Emit(Op::OpLoad, b_.Type(kUint), {digest_});
    Id at = Emit(Op::OpIMul, kUint, {own_index_, b_.Uint(kOwnBytes / 4)});
    at = Emit(Op::OpIAdd, kUint, {at, b_.Uint(kOwnBytes / 4 - 1)});
    Id pointer =
        b_.Emit(Op::OpAccessChain, b_.Pointer(spv::StorageClass::StorageBuffer, b_.Type(kUint)),
                {own_words_.id, b_.Uint(0), at});
    b_.EmitVoid(Op::OpStore, {pointer, word});
}

Id Generator::Call(const Function& function) {
    std::vector<uint32_t> operands = {function.id};
    for (ValueType type : function.params) {
        operands.push_back(Value(type, Below(3)));
    }
    for (const MemoryType& type : function.pointers) {
        std::vector<Id> found;
        for (const Variable& local : locals_) {
            if (local.type.id == type.id && local.storage == spv::StorageClass::Function) {
                found.push_back(local.id);
            }
        }
        if (found.empty()) {
            locals_.push_back(NewLocal(type));
            found.push_back(locals_.back().id);
        }
        operands.push_back(found[Below(static_cast<uint32_t>(found.size()))]);
    }
    return b_.Emit(Op::OpFunctionCall, function.result_id, operands);
}

void Generator::FillFunction(uint32_t budget) {
    around_.clear();
    uniform_words_.clear();
    dead_ = false;
    returned_ = false;
    uniform_ = has_barriers_;
    own_index_ = in_main_ || Chance(50) ? GlobalIndex() : 0;
    LoadAddresses();
    DeclareLocals(1 + Below(in_main_ ? 5 : 3));
    Statements(budget, 0);
}

void Generator::MakeFunction(uint32_t number) {
    Function function;
    function.result = AnyType();
    function.result_id = b_.Type(function.result);
    std::vector<Id> param_types;
    for (uint32_t i = Below(3); i > 0; --i) {
        function.params.push_back(AnyType());
        param_types.push_back(b_.Type(function.params.back()));
    }
    if (Chance(40)) {
        function.pointers.push_back(PlainType(1));
        param_types.push_back(b_.Pointer(spv::StorageClass::Function, function.pointers.back().id));
    }
    function.has_barrier = has_barriers_ = !shared_.empty() && Chance(25);
    std::vector<Id> params;
    function.id = b_.BeginFunction(function.result_id, param_types, &params, &block_);
    pool_.clear();
    locals_.clear();
    in_main_ = false;
    result_ = function.result;
    returns_value_ = true;
    for (size_t i = 0; i < function.params.size(); ++i) {
        Add(function.params[i], params[i]);
    }
    for (size_t i = 0; i < function.pointers.size(); ++i) {
        Variable variable;
        variable.type = function.pointers[i];
        variable.id = params[function.params.size() + i];
        locals_.push_back(std::move(variable));
    }
    statement_ = seed_ + (number + 1) * 0x632be59bd9b4e019u;
    FillFunction(2 + Below(5));
    if (!dead_) {
        Id value = Value(result_, 2);
        b_.EmitVoid(Op::OpReturnValue, {value});
    }
    b_.EndFunction();
    functions_.push_back(std::move(function));
}

void Generator::MakeMain() {
    pool_.clear();
    locals_.clear();
    in_main_ = true;
    has_barriers_ = !shared_.empty();
    returns_value_ = false;
    Id main = b_.BeginFunction(b_.Void(), {}, nullptr, &block_);
    b_.SetEntryPoint(main);
    digest_ = b_.FunctionVariable(b_.Type(kUint), b_.Uint(17));
    statement_ = seed_;
    FillFunction(5 + Below(18));
    if (!dead_) {
        // Some of what is visible here, and of what the variables hold.
        for (size_t i = pool_.size(), count = 0; i > 0 && count < 3; --i) {
            if (pool_[i - 1].type.columns == 1) {
                Digest(Word(pool_[i - 1].type, pool_[i - 1].id));
                ++count;
            }
        }
        for (size_t i = 0; i < std::min<size_t>(locals_.size(), 3); ++i) {
            const Variable& variable = locals_[i];
            auto part = FindPart(variable, [](const MemoryType& type) {
                return type.form == MemoryType::Form::kValue && type.value.columns == 1;
            });
            Id value = b_.Emit(Op::OpLoad, part->type.id, {PointerTo(variable, *part, false)});
            Digest(Word(part->type.value, value));
        }
        StoreDigest();
        b_.EmitVoid(Op::OpReturn, {});
    }
    b_.EndFunction();
}

RandomModule Generator::Run() {
    DeclareShape();
    ValueType triple{Kind::kU32, 3, 1};
    local_index_ = Input(spv::BuiltIn::LocalInvocationIndex, kUint);
    workgroup_id_ = Input(spv::BuiltIn::WorkgroupId, triple);
    num_workgroups_ = Input(spv::BuiltIn::NumWorkgroups, triple);
    local_id_ = Input(spv::BuiltIn::LocalInvocationId, triple);
    if (options_.subgroups && !options_.portable) {
        DeclareSubgroups();
    }
    for (uint32_t i = Below(4); i > 0; --i) {
        Kind kind = Chance(50) ? Kind::kU32 : AnyKind();
        if (IsFloat(kind) || BitsOf(kind) < 32) {
            kind = Kind::kBool;
        }
        uint64_t bits = kind == Kind::kBool ? Below(2) : Below(6);
        spec_constants_.push_back({{kind, 1, 1}, b_.SpecConstant(kind, bits, i)});
        if (!options_.portable && Chance(50)) {
            module_.specialization.push_back(
                {i, kind == Kind::kBool ? 4u : BitsOf(kind) / 8,
                 kind == Kind::kBool ? Below(2) : static_cast<uint64_t>(Below(9))});
        }
    }
    if (!spec_constants_.empty() && IsInt(spec_constants_[0].first.kind)) {
        ValueType type = spec_constants_[0].first;
        static constexpr Op kOps[] = {Op::OpIAdd, Op::OpIMul, Op::OpBitwiseXor, Op::OpISub};
        spec_constants_.push_back(
            {type, b_.SpecOp(kOps[Below(4)], b_.Type(type),
                             {spec_constants_[0].second, b_.Splat(type, 3)})});
    }
    if (Chance(15)) {
        Id parts[] = {b_.SpecConstant(Kind::kU32, size_[0], 20), b_.Uint(size_[1]),
                      b_.Uint(size_[2])};
        Id size = b_.SpecComposite(b_.Type(triple), parts);
        b_.Decorate(size, spv::Decoration::BuiltIn,
                    {static_cast<uint32_t>(spv::BuiltIn::WorkgroupSize)});
    }
    DeclareBuffers();
    for (uint32_t i = Below(3); i > 0; --i) {
        MemoryType type = PlainType(2);
        Variable variable;
        variable.storage = spv::StorageClass::Private;
        variable.id = b_.GlobalVariable(variable.storage, type.id, b_.Null(type.id));
        variable.type = std::move(type);
        globals_.push_back(std::move(variable));
    }
    if (Chance(60)) {
        for (uint32_t i = 1 + Below(2); i > 0; --i) {
            Variable variable;
            variable.storage = spv::StorageClass::Workgroup;
            variable.type = ArrayOf(PlainType(1), module_.invocations, false, true);
            variable.id = b_.GlobalVariable(variable.storage, variable.type.id);
            shared_.push_back(std::move(variable));
        }
        tally_ = b_.GlobalVariable(spv::StorageClass::Workgroup, b_.Type(kUint));
    }
    if (options_.wide && !options_.portable) {
        DeclareWide();
        DeclareWideIndexing();
    }
    for (uint32_t i = 0, count = Below(3); i < count; ++i) {
        MakeFunction(i);
    }
    MakeMain();
    module_.words = b_.Finish();
    return std::move(module_);
}

RandomModule MakeRandomModule(uint64_t seed, const RandomModuleOptions& options) {
    return Generator(seed, options).Run();
}

CompileRequest MakeRequest(const RandomModule& module, const RandomModuleOptions& options) {
    CompileRequest request;
    request.spirv = module.words;
    request.specialization = module.specialization;
    request.options.robust_buffer_access = options.robust;
    request.options.wide_indexing = module.wide_indexing;
    request.options.subgroup_size = options.subgroup_size;
    SetLayout set;
    using Binding = BindingLayout::Kind;
    static constexpr Binding kKinds[] = {Binding::kStorageBuffer, Binding::kStorageBuffer,
                                         Binding::kUniformBuffer, Binding::kStorageBuffer,
                                         Binding::kStorageImage,  Binding::kStorageImage};
    uint32_t offset = 0;
    for (uint32_t i = 0; i < std::size(kKinds); ++i) {
        BindingLayout binding;
        binding.binding = i;
        binding.kind = kKinds[i];
        binding.count = i == kBufferArrayBinding ? kArrayBuffers : 1;
        binding.offset_bytes = offset;
        offset += DescriptorBytes(binding.kind) * binding.count;
        set.bindings.push_back(binding);
    }
    request.layout.sets = {set};
    request.layout.push_constant_bytes = kPushBytes;
    return request;
}

}  // namespace fornax::kernel::fuzz
