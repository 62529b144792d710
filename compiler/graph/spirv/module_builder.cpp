// Declarations, instructions and control flow of SPIR-V modules; sections as in the specification's
// 2.4, Logical Layout of a Module.
#include "compiler/graph/spirv/module_builder.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace fornax::graph::spirv {
namespace {

constexpr uint32_t kGenerator = 0;

}  // namespace

ModuleBuilder::ModuleBuilder(uint32_t version) : version_(version) {
    Capability(spv::Capability::Shader);
    known_.emplace_back();
}

void ModuleBuilder::Append(Words& words, spv::Op op, std::span<const uint32_t> operands) {
    words.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | static_cast<uint32_t>(op));
    words.insert(words.end(), operands.begin(), operands.end());
}

void ModuleBuilder::AppendString(Words& words, const std::string& text) {
    const size_t first = words.size();
    words.resize(first + text.size() / 4 + 1, 0);
    std::memcpy(words.data() + first, text.data(), text.size());
}

void ModuleBuilder::SetType(Id id, Id type) {
    if (types_.size() <= id) {
        types_.resize(id + 1, 0);
    }
    types_[id] = type;
}

Id ModuleBuilder::Glsl() {
    if (glsl_ == 0) {
        glsl_ = NewId();
    }
    return glsl_;
}

Id ModuleBuilder::Declare(spv::Op op, std::span<const uint32_t> operands) {
    Words key = {static_cast<uint32_t>(op)};
    key.insert(key.end(), operands.begin(), operands.end());
    const auto [found, is_new] = declared_.try_emplace(std::move(key), bound_);
    if (is_new) {
        Words words = {NewId()};
        words.insert(words.end(), operands.begin(), operands.end());
        Append(globals_, op, words);
    }
    return found->second;
}

Id ModuleBuilder::DeclareConstant(spv::Op op, Id type, std::span<const uint32_t> operands) {
    Words key = {static_cast<uint32_t>(op), type};
    key.insert(key.end(), operands.begin(), operands.end());
    const auto [found, is_new] = declared_.try_emplace(std::move(key), bound_);
    if (is_new) {
        Words words = {type, NewId()};
        words.insert(words.end(), operands.begin(), operands.end());
        Append(globals_, op, words);
        SetType(found->second, type);
    }
    return found->second;
}

// --- Variables -----------------------------------------------------------------------------------

Id ModuleBuilder::GlobalVariable(spv::StorageClass storage, Id type) {
    const Id pointer = Pointer(storage, type);
    const Id id = NewId();
    const uint32_t operands[] = {pointer, id, static_cast<uint32_t>(storage)};
    Append(globals_, spv::Op::OpVariable, operands);
    SetType(id, pointer);
    variables_.emplace_back(storage, id);
    return id;
}

Id ModuleBuilder::StorageBuffer(uint32_t binding, Id element, bool written) {
    const uint32_t bits = BitsOf(element);
    if (bits == 8) {
        Capability(spv::Capability::StorageBuffer8BitAccess);
        Extension("SPV_KHR_8bit_storage");
    } else if (bits == 16) {
        Capability(spv::Capability::StorageBuffer16BitAccess);
    }
    const Id before = bound_;
    const Id array = Declare(spv::Op::OpTypeRuntimeArray, {&element, 1});
    if (array >= before) {
        Decorate(array, spv::Decoration::ArrayStride, {bits / 8});
    }
    const Id block = NewId();  // each its own, because of the decoration of what is only read
    const uint32_t block_words[] = {block, array};
    Append(globals_, spv::Op::OpTypeStruct, block_words);
    Decorate(block, spv::Decoration::Block);
    const auto member = [&](spv::Decoration decoration, std::initializer_list<uint32_t> more) {
        Words words = {block, 0, static_cast<uint32_t>(decoration)};
        words.insert(words.end(), more);
        Append(annotations_, spv::Op::OpMemberDecorate, words);
    };
    member(spv::Decoration::Offset, {0});
    if (!written) {
        member(spv::Decoration::NonWritable, {});
    }
    const Id variable = GlobalVariable(spv::StorageClass::StorageBuffer, block);
    Decorate(variable, spv::Decoration::DescriptorSet, {0});
    Decorate(variable, spv::Decoration::Binding, {binding});
    elements_[variable] = element;
    return variable;
}

Ids ModuleBuilder::PushConstants(uint32_t count) {
    if (count == 0) {
        return {};
    }
    const Id block = NewId();
    Words words = {block};
    words.insert(words.end(), count, U32());
    Append(globals_, spv::Op::OpTypeStruct, words);
    Decorate(block, spv::Decoration::Block);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t member[] = {block, i, static_cast<uint32_t>(spv::Decoration::Offset), 4 * i};
        Append(annotations_, spv::Op::OpMemberDecorate, member);
    }
    const Id variable = GlobalVariable(spv::StorageClass::PushConstant, block);
    const Id pointer = Pointer(spv::StorageClass::PushConstant, U32());
    Ids values;
    for (uint32_t i = 0; i < count; ++i) {
        const Id member = Op(spv::Op::OpAccessChain, pointer, {variable, Uint(i)});
        values.push_back(Op(spv::Op::OpLoad, U32(), {member}));
    }
    return values;
}

Id ModuleBuilder::WorkgroupArray(Id element, uint32_t length) {
    const Id variable = GlobalVariable(spv::StorageClass::Workgroup, Array(element, length));
    elements_[variable] = element;
    shared_.insert(variable);
    return variable;
}

Id ModuleBuilder::FunctionArray(Id element, uint32_t length) {
    const Id pointer = Pointer(spv::StorageClass::Function, Array(element, length));
    const Id id = NewId();
    // Variables stand at the beginning of the function's first block.
    Words words;
    const uint32_t operands[] = {pointer, id, static_cast<uint32_t>(spv::StorageClass::Function)};
    Append(words, spv::Op::OpVariable, operands);
    body_.insert(body_.begin() + static_cast<ptrdiff_t>(first_instruction_), words.begin(),
                 words.end());
    SetType(id, pointer);
    elements_[id] = element;
    private_.insert(id);
    return id;
}

Id ModuleBuilder::BuiltIn(spv::BuiltIn which) {
    const bool is_vector =
        which == spv::BuiltIn::GlobalInvocationId || which == spv::BuiltIn::LocalInvocationId ||
        which == spv::BuiltIn::WorkgroupId || which == spv::BuiltIn::NumWorkgroups;
    const bool is_subgroup =
        which == spv::BuiltIn::SubgroupSize || which == spv::BuiltIn::NumSubgroups ||
        which == spv::BuiltIn::SubgroupId || which == spv::BuiltIn::SubgroupLocalInvocationId;
    if (is_subgroup) {
        Capability(spv::Capability::GroupNonUniform);
    }
    const Id type = is_vector ? Vector(U32(), 3) : U32();
    const auto [found, is_new] = built_ins_.try_emplace(which, 0);
    if (is_new) {
        found->second = GlobalVariable(spv::StorageClass::Input, type);
        Decorate(found->second, spv::Decoration::BuiltIn, {static_cast<uint32_t>(which)});
    }
    return Op(spv::Op::OpLoad, type, {found->second});
}

Id ModuleBuilder::Component(Id vector, uint32_t index) {
    return Op(spv::Op::OpCompositeExtract, U32(), {vector, index});
}

Id ModuleBuilder::ElementPointer(Id buffer, Id index) {
    const Id element = elements_.at(buffer);
    const bool is_array = shared_.contains(buffer) || private_.contains(buffer);
    const Id type = Pointer(private_.contains(buffer)  ? spv::StorageClass::Function
                            : shared_.contains(buffer) ? spv::StorageClass::Workgroup
                                                       : spv::StorageClass::StorageBuffer,
                            element);
    const Id id = is_array ? Op(spv::Op::OpAccessChain, type, {buffer, index})
                           : Op(spv::Op::OpAccessChain, type, {buffer, Uint(0), index});
    elements_[id] = element;
    return id;
}

Id ModuleBuilder::Load(Id pointer) {
    return Emit(spv::Op::OpLoad, elements_.at(pointer), {pointer});
}

void ModuleBuilder::Store(Id pointer, Id value) {
    EmitVoid(spv::Op::OpStore, {pointer, value});
}

// --- Instructions --------------------------------------------------------------------------------

Id ModuleBuilder::Emit(spv::Op op, Id type, std::span<const uint32_t> operands) {
    const Id id = NewId();
    Words words = {type, id};
    words.insert(words.end(), operands.begin(), operands.end());
    Append(body_, op, words);
    SetType(id, type);
    return id;
}

Id ModuleBuilder::Op(spv::Op op, Id type, std::span<const uint32_t> operands) {
    Words key = {static_cast<uint32_t>(op), type};
    key.insert(key.end(), operands.begin(), operands.end());
    for (const std::map<Words, Id>& known : known_) {
        const auto found = known.find(key);
        if (found != known.end()) {
            return found->second;
        }
    }
    const Id id = Emit(op, type, operands);
    known_.back().emplace(std::move(key), id);
    return id;
}

Id ModuleBuilder::Ext(Id type, uint32_t number, std::initializer_list<Id> operands) {
    Words words = {Glsl(), number};
    words.insert(words.end(), operands);
    return Op(spv::Op::OpExtInst, type, words);
}

void ModuleBuilder::EmitVoid(spv::Op op, std::initializer_list<uint32_t> operands) {
    Append(body_, op, std::span(operands.begin(), operands.size()));
}

void ModuleBuilder::WorkgroupBarrier() {
    constexpr uint32_t kAcquireRelease = 0x8, kWorkgroupMemory = 0x100;
    const Id scope = Uint(static_cast<uint32_t>(spv::Scope::Workgroup));
    EmitVoid(spv::Op::OpControlBarrier, {scope, scope, Uint(kAcquireRelease | kWorkgroupMemory)});
}

std::optional<std::pair<uint64_t, uint64_t>> ModuleBuilder::BothConstant(Id a, Id b) const {
    const auto first = ConstantBits(a), second = ConstantBits(b);
    return first && second ? std::optional(std::pair(*first, *second)) : std::nullopt;
}

Id ModuleBuilder::Add(Id a, Id b) {
    if (const auto both = BothConstant(a, b)) {
        return Constant(TypeOf(a), both->first + both->second);
    }
    if (ConstantBits(a) == 0U) {
        return b;
    }
    return ConstantBits(b) == 0U ? a : Op(spv::Op::OpIAdd, TypeOf(a), {a, b});
}

Id ModuleBuilder::Sub(Id a, Id b) {
    if (const auto both = BothConstant(a, b)) {
        return Constant(TypeOf(a), both->first - both->second);
    }
    return ConstantBits(b) == 0U ? a : Op(spv::Op::OpISub, TypeOf(a), {a, b});
}

Id ModuleBuilder::Mul(Id a, Id b) {
    if (const auto both = BothConstant(a, b)) {
        return Constant(TypeOf(a), both->first * both->second);
    }
    if (ConstantBits(a)) {
        std::swap(a, b);
    }
    if (ConstantBits(b) == 0U) {
        return b;
    }
    return ConstantBits(b) == 1U ? a : Op(spv::Op::OpIMul, TypeOf(a), {a, b});
}

Id ModuleBuilder::UDiv(Id a, Id b) {
    const auto both = BothConstant(a, b);
    if (both && both->second != 0) {
        return Constant(TypeOf(a), both->first / both->second);
    }
    return ConstantBits(b) == 1U ? a : Op(spv::Op::OpUDiv, TypeOf(a), {a, b});
}

Id ModuleBuilder::UMod(Id a, Id b) {
    const auto both = BothConstant(a, b);
    if (both && both->second != 0) {
        return Constant(TypeOf(a), both->first % both->second);
    }
    return ConstantBits(b) == 1U ? Constant(TypeOf(a), 0) : Op(spv::Op::OpUMod, TypeOf(a), {a, b});
}

Id ModuleBuilder::ULess(Id a, Id b) {
    if (const auto both = BothConstant(a, b)) {
        return Constant(Bool(), both->first < both->second ? 1 : 0);
    }
    return Op(spv::Op::OpULessThan, Bool(), {a, b});
}

Id ModuleBuilder::And(Id a, Id b) {
    if (const auto first = ConstantBits(a)) {
        return *first != 0 ? b : a;
    }
    if (const auto second = ConstantBits(b)) {
        return *second != 0 ? a : b;
    }
    return a == b ? a : Op(spv::Op::OpLogicalAnd, Bool(), {a, b});
}

Id ModuleBuilder::Or(Id a, Id b) {
    if (const auto first = ConstantBits(a)) {
        return *first != 0 ? a : b;
    }
    if (const auto second = ConstantBits(b)) {
        return *second != 0 ? b : a;
    }
    return a == b ? a : Op(spv::Op::OpLogicalOr, Bool(), {a, b});
}

Id ModuleBuilder::Not(Id a) {
    const auto bits = ConstantBits(a);
    return bits ? Constant(Bool(), *bits ^ 1) : Op(spv::Op::OpLogicalNot, Bool(), {a});
}

Id ModuleBuilder::Select(Id condition, Id a, Id b) {
    if (const auto bits = ConstantBits(condition)) {
        return *bits != 0 ? a : b;
    }
    return a == b ? a : Op(spv::Op::OpSelect, TypeOf(a), {condition, a, b});
}

// --- Control flow --------------------------------------------------------------------------------

void ModuleBuilder::BeginBlock(Id label) {
    EmitVoid(spv::Op::OpLabel, {label});
    block_ = label;
}

void ModuleBuilder::Branch(Id target) {
    EmitVoid(spv::Op::OpBranch, {target});
}

Ids ModuleBuilder::If(Id condition, const Code& then, const Code& otherwise) {
    if (const auto bits = ConstantBits(condition)) {
        return *bits != 0 ? then() : otherwise();
    }
    const Id then_label = NewId(), otherwise_label = NewId(), merge = NewId();
    EmitVoid(spv::Op::OpSelectionMerge, {merge, 0});
    EmitVoid(spv::Op::OpBranchConditional, {condition, then_label, otherwise_label});
    const auto side = [&](Id label, const Code& code, Id* from) {
        BeginBlock(label);
        known_.emplace_back();
        Ids values = code();
        known_.pop_back();
        *from = block_;
        Branch(merge);
        return values;
    };
    Id from_then = 0, from_otherwise = 0;
    const Ids a = side(then_label, then, &from_then);
    const Ids b = side(otherwise_label, otherwise, &from_otherwise);
    assert(a.size() == b.size());
    BeginBlock(merge);
    Ids values;
    for (size_t i = 0; i < a.size(); ++i) {
        values.push_back(a[i] == b[i] ? a[i]
                                      : Emit(spv::Op::OpPhi, TypeOf(a[i]),
                                             {a[i], from_then, b[i], from_otherwise}));
    }
    return values;
}

void ModuleBuilder::If(Id condition, const std::function<void()>& then) {
    if (const auto bits = ConstantBits(condition)) {
        if (*bits != 0) {
            then();
        }
        return;
    }
    const Id label = NewId(), merge = NewId();
    EmitVoid(spv::Op::OpSelectionMerge, {merge, 0});
    EmitVoid(spv::Op::OpBranchConditional, {condition, label, merge});
    BeginBlock(label);
    known_.emplace_back();
    then();
    known_.pop_back();
    Branch(merge);
    BeginBlock(merge);
}

Ids ModuleBuilder::For(Id begin,
                       Id end,
                       Id step,
                       std::span<const Id> initial,
                       const LoopBody& body,
                       Unroll unroll) {
    const Id header = NewId(), body_label = NewId(), continue_label = NewId(), merge = NewId();
    const Id before = block_;
    Branch(header);
    BeginBlock(header);
    // The last two words of a phi are the value of the next iteration and the block it is from.
    std::vector<size_t> ends;
    const auto phi = [&](Id first) {
        const Id id = Emit(spv::Op::OpPhi, TypeOf(first), {first, before, 0, continue_label});
        ends.push_back(body_.size());
        return id;
    };
    const Id index = phi(begin);
    Ids carried;
    for (const Id value : initial) {
        carried.push_back(phi(value));
    }
    const Id in_range = Emit(spv::Op::OpULessThan, Bool(), {index, end});
    const auto control =
        unroll == Unroll::kDont ? spv::LoopControlMask::DontUnroll : spv::LoopControlMask::MaskNone;
    EmitVoid(spv::Op::OpLoopMerge, {merge, continue_label, static_cast<uint32_t>(control)});
    EmitVoid(spv::Op::OpBranchConditional, {in_range, body_label, merge});
    BeginBlock(body_label);
    known_.emplace_back();
    Ids next = body(index, carried);
    assert(next.size() == carried.size());
    Branch(continue_label);
    BeginBlock(continue_label);
    next.insert(next.begin(), Emit(spv::Op::OpIAdd, TypeOf(index), {index, step}));
    Branch(header);
    known_.pop_back();
    for (size_t i = 0; i < ends.size(); ++i) {
        body_[ends[i] - 2] = next[i];
    }
    BeginBlock(merge);
    return carried;
}

// --- The entry point -----------------------------------------------------------------------------

void ModuleBuilder::Begin(const std::string& name) {
    name_ = name;
    entry_ = NewId();
    const Id void_type = Void();
    const Id type = Declare(spv::Op::OpTypeFunction, {&void_type, 1});
    EmitVoid(spv::Op::OpFunction, {void_type, entry_, 0, type});
    BeginBlock(NewId());
    first_instruction_ = body_.size();
}

void ModuleBuilder::ExecutionMode(spv::ExecutionMode mode,
                                  std::initializer_list<uint32_t> operands) {
    assert(entry_ != 0);
    Words words = {entry_, static_cast<uint32_t>(mode)};
    words.insert(words.end(), operands);
    Append(modes_, spv::Op::OpExecutionMode, words);
}

void ModuleBuilder::Decorate(Id id,
                             spv::Decoration decoration,
                             std::initializer_list<uint32_t> operands) {
    Words words = {id, static_cast<uint32_t>(decoration)};
    words.insert(words.end(), operands);
    Append(annotations_, spv::Op::OpDecorate, words);
}

std::vector<uint32_t> ModuleBuilder::Finish() {
    EmitVoid(spv::Op::OpReturn, {});
    EmitVoid(spv::Op::OpFunctionEnd, {});
    ExecutionMode(spv::ExecutionMode::LocalSize, {local_size_[0], local_size_[1], local_size_[2]});
    const bool vulkan_model = HasVulkanMemoryModel();
    if (vulkan_model && version_ < kVersion15) {
        Extension("SPV_KHR_vulkan_memory_model");
    }
    Words module = {spv::MagicNumber, version_, kGenerator, bound_, 0};
    for (const spv::Capability capability : capabilities_) {
        const auto word = static_cast<uint32_t>(capability);
        Append(module, spv::Op::OpCapability, {&word, 1});
    }
    for (const std::string& extension : extensions_) {
        Words words;
        AppendString(words, extension);
        Append(module, spv::Op::OpExtension, words);
    }
    if (glsl_ != 0) {
        Words words = {glsl_};
        AppendString(words, "GLSL.std.450");
        Append(module, spv::Op::OpExtInstImport, words);
    }
    const uint32_t model[] = {
        static_cast<uint32_t>(spv::AddressingModel::Logical),
        static_cast<uint32_t>(vulkan_model ? spv::MemoryModel::Vulkan : spv::MemoryModel::GLSL450)};
    Append(module, spv::Op::OpMemoryModel, model);
    Words entry = {static_cast<uint32_t>(spv::ExecutionModel::GLCompute), entry_};
    AppendString(entry, name_);
    for (const auto& [storage, id] : variables_) {
        // Before SPIR-V 1.4 the interface holds inputs and outputs only.
        if (storage == spv::StorageClass::Input || version_ > kVersion13) {
            entry.push_back(id);
        }
    }
    Append(module, spv::Op::OpEntryPoint, entry);
    for (const Words* section : {&modes_, &annotations_, &globals_, &body_}) {
        module.insert(module.end(), section->begin(), section->end());
    }
    return module;
}

}  // namespace fornax::graph::spirv
