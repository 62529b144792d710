#include "compiler/kernel/fuzz/random_module.h"

#include <algorithm>
#include <iterator>

#include "compiler/kernel/fuzz/generator.h"

namespace fornax::kernel::fuzz {

void Generator::DeclareLocals(uint32_t count) {
    for (; count > 0; --count) {
        state_.locals.push_back(NewLocal(types_.PlainType(2)));
        if (Chance(40)) {
            const Variable variable = state_.locals.back();
            auto part = access_.FindPart(variable, [](const MemoryType& type) {
                return type.form == MemoryType::Form::kValue;
            });
            Id value = access_.ValueFor(part->type, false);
            Id pointer = access_.PointerTo(variable, *part, true);
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
    Id groups = b_.Emit(Op::OpLoad, b_.Type(triple), {state_.num_workgroups});
    Id group = b_.Emit(Op::OpLoad, b_.Type(triple), {state_.workgroup_id});
    Id group_index = linear(group, component(groups, 0), component(groups, 1));
    Id local = 0;
    if (Chance(50)) {
        local = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.local_index});
    } else {
        Id at = b_.Emit(Op::OpLoad, b_.Type(triple), {state_.local_id});
        local = linear(at, b_.Uint(state_.size[0]), b_.Uint(state_.size[1]));
        Add(triple, at);
    }
    Add(kUint, local);
    Id first = Emit(Op::OpIMul, kUint, {group_index, b_.Uint(state_.module.invocations)});
    Id index = Emit(Op::OpIAdd, kUint, {first, local});
    Add(kUint, index);
    return index;
}

void Generator::FillFunction(uint32_t budget) {
    state_.around.clear();
    state_.uniform_words.clear();
    state_.dead = false;
    state_.returned = false;
    state_.uniform = state_.has_barriers;
    state_.own_index = state_.in_main || Chance(50) ? GlobalIndex() : 0;
    declarations_.LoadAddresses();
    DeclareLocals(1 + Below(state_.in_main ? 5 : 3));
    statements_.Statements(budget, 0);
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
        function.pointers.push_back(types_.PlainType(1));
        param_types.push_back(b_.Pointer(spv::StorageClass::Function, function.pointers.back().id));
    }
    function.has_barrier = state_.has_barriers = !state_.shared.empty() && Chance(25);
    std::vector<Id> params;
    function.id = b_.BeginFunction(function.result_id, param_types, &params, &state_.block);
    state_.pool.clear();
    state_.locals.clear();
    state_.in_main = false;
    state_.result = function.result;
    state_.returns_value = true;
    for (size_t i = 0; i < function.params.size(); ++i) {
        Add(function.params[i], params[i]);
    }
    for (size_t i = 0; i < function.pointers.size(); ++i) {
        Variable variable;
        variable.type = function.pointers[i];
        variable.id = params[function.params.size() + i];
        state_.locals.push_back(std::move(variable));
    }
    state_.statement = state_.seed + (number + 1) * 0x632be59bd9b4e019u;
    FillFunction(2 + Below(5));
    if (!state_.dead) {
        Id value = values_.Value(state_.result, 2);
        b_.EmitVoid(Op::OpReturnValue, {value});
    }
    b_.EndFunction();
    state_.functions.push_back(std::move(function));
}

void Generator::MakeMain() {
    state_.pool.clear();
    state_.locals.clear();
    state_.in_main = true;
    state_.has_barriers = !state_.shared.empty();
    state_.returns_value = false;
    Id main = b_.BeginFunction(b_.Void(), {}, nullptr, &state_.block);
    b_.SetEntryPoint(main);
    state_.digest = b_.FunctionVariable(b_.Type(kUint), b_.Uint(17));
    state_.statement = state_.seed;
    FillFunction(5 + Below(18));
    if (!state_.dead) {
        // Some of what is visible here, and of what the variables hold.
        for (size_t i = state_.pool.size(), count = 0; i > 0 && count < 3; --i) {
            if (state_.pool[i - 1].type.columns == 1) {
                Digest(values_.Word(state_.pool[i - 1].type, state_.pool[i - 1].id));
                ++count;
            }
        }
        for (size_t i = 0; i < std::min<size_t>(state_.locals.size(), 3); ++i) {
            const Variable& variable = state_.locals[i];
            auto part = access_.FindPart(variable, [](const MemoryType& type) {
                return type.form == MemoryType::Form::kValue && type.value.columns == 1;
            });
            Id value =
                b_.Emit(Op::OpLoad, part->type.id, {access_.PointerTo(variable, *part, false)});
            Digest(values_.Word(part->type.value, value));
        }
        StoreDigest();
        b_.EmitVoid(Op::OpReturn, {});
    }
    b_.EndFunction();
}

RandomModule Generator::Run() {
    declarations_.DeclareShape();
    ValueType triple{Kind::kU32, 3, 1};
    state_.local_index = declarations_.Input(spv::BuiltIn::LocalInvocationIndex, kUint);
    state_.workgroup_id = declarations_.Input(spv::BuiltIn::WorkgroupId, triple);
    state_.num_workgroups = declarations_.Input(spv::BuiltIn::NumWorkgroups, triple);
    state_.local_id = declarations_.Input(spv::BuiltIn::LocalInvocationId, triple);
    if (state_.options.subgroups && !state_.options.portable) {
        declarations_.DeclareSubgroups();
    }
    for (uint32_t i = Below(4); i > 0; --i) {
        Kind kind = Chance(50) ? Kind::kU32 : AnyKind();
        if (IsFloat(kind) || BitsOf(kind) < 32) {
            kind = Kind::kBool;
        }
        uint64_t bits = kind == Kind::kBool ? Below(2) : Below(6);
        state_.spec_constants.push_back({{kind, 1, 1}, b_.SpecConstant(kind, bits, i)});
        if (!state_.options.portable && Chance(50)) {
            state_.module.specialization.push_back(
                {i, kind == Kind::kBool ? 4u : BitsOf(kind) / 8,
                 kind == Kind::kBool ? Below(2) : static_cast<uint64_t>(Below(9))});
        }
    }
    if (!state_.spec_constants.empty() && IsInt(state_.spec_constants[0].first.kind)) {
        ValueType type = state_.spec_constants[0].first;
        static constexpr Op kOps[] = {Op::OpIAdd, Op::OpIMul, Op::OpBitwiseXor, Op::OpISub};
        state_.spec_constants.push_back(
            {type, b_.SpecOp(kOps[Below(4)], b_.Type(type),
                             {state_.spec_constants[0].second, b_.Splat(type, 3)})});
    }
    if (Chance(15)) {
        Id parts[] = {b_.SpecConstant(Kind::kU32, state_.size[0], 20), b_.Uint(state_.size[1]),
                      b_.Uint(state_.size[2])};
        Id size = b_.SpecComposite(b_.Type(triple), parts);
        b_.Decorate(size, spv::Decoration::BuiltIn,
                    {static_cast<uint32_t>(spv::BuiltIn::WorkgroupSize)});
    }
    declarations_.DeclareBuffers();
    for (uint32_t i = Below(3); i > 0; --i) {
        MemoryType type = types_.PlainType(2);
        Variable variable;
        variable.storage = spv::StorageClass::Private;
        variable.id = b_.GlobalVariable(variable.storage, type.id, b_.Null(type.id));
        variable.type = std::move(type);
        state_.globals.push_back(std::move(variable));
    }
    if (Chance(60)) {
        for (uint32_t i = 1 + Below(2); i > 0; --i) {
            Variable variable;
            variable.storage = spv::StorageClass::Workgroup;
            variable.type =
                types_.ArrayOf(types_.PlainType(1), state_.module.invocations, false, true);
            variable.id = b_.GlobalVariable(variable.storage, variable.type.id);
            state_.shared.push_back(std::move(variable));
        }
        state_.tally = b_.GlobalVariable(spv::StorageClass::Workgroup, b_.Type(kUint));
    }
    if (state_.options.wide && !state_.options.portable) {
        declarations_.DeclareWide();
        declarations_.DeclareWideIndexing();
    }
    for (uint32_t i = 0, count = Below(3); i < count; ++i) {
        MakeFunction(i);
    }
    MakeMain();
    state_.module.words = b_.Finish();
    return std::move(state_.module);
}

RandomModule MakeRandomModule(uint64_t seed, const RandomModuleOptions& options) {
    GeneratorState state(seed, options);
    return Generator(state).Run();
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
