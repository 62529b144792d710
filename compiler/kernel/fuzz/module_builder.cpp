#include "compiler/kernel/fuzz/module_builder.h"

namespace fornax::kernel::fuzz {

using spv::Op;

uint32_t BitsOf(Kind kind) {
    switch (kind) {
        case Kind::kBool:
            return 1;
        case Kind::kI8:
        case Kind::kU8:
            return 8;
        case Kind::kI16:
        case Kind::kU16:
        case Kind::kF16:
            return 16;
        case Kind::kI64:
        case Kind::kU64:
        case Kind::kF64:
            return 64;
        default:
            return 32;
    }
}

Kind IntKind(uint32_t bits, bool is_signed) {
    switch (bits) {
        case 8:
            return is_signed ? Kind::kI8 : Kind::kU8;
        case 16:
            return is_signed ? Kind::kI16 : Kind::kU16;
        case 64:
            return is_signed ? Kind::kI64 : Kind::kU64;
        default:
            return is_signed ? Kind::kI32 : Kind::kU32;
    }
}

void ModuleBuilder::Append(Words& words, Op op, std::span<const uint32_t> operands) {
    words.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | static_cast<uint32_t>(op));
    words.insert(words.end(), operands.begin(), operands.end());
}

void ModuleBuilder::AppendString(Words& words, const std::string& text) {
    for (size_t i = 0; i <= text.size(); i += 4) {
        uint32_t word = 0;
        for (size_t k = 0; k < 4 && i + k < text.size(); ++k) {
            word |= static_cast<uint32_t>(static_cast<uint8_t>(text[i + k])) << (8 * k);
        }
        words.push_back(word);
    }
}

void ModuleBuilder::Capability(spv::Capability capability) {
    capabilities_.insert(capability);
}

Id ModuleBuilder::Glsl() {
    if (!glsl_) {
        glsl_ = NewId();
    }
    return glsl_;
}

// The instruction's result id; `tag` tells declarations apart whose words are the same.
Id ModuleBuilder::Declare(Op op, std::span<const uint32_t> operands, uint32_t tag) {
    Words key = {static_cast<uint32_t>(op), tag};
    key.insert(key.end(), operands.begin(), operands.end());
    auto [it, is_new] = declared_.try_emplace(key, 0);
    if (is_new) {
        it->second = NewId();
        Words words = {it->second};
        words.insert(words.end(), operands.begin(), operands.end());
        Append(globals_, op, words);
    }
    return it->second;
}

Id ModuleBuilder::DeclareConstant(Op op, Id type, std::span<const uint32_t> operands) {
    Words key = {static_cast<uint32_t>(op), 0, type};
    key.insert(key.end(), operands.begin(), operands.end());
    auto [it, is_new] = declared_.try_emplace(key, 0);
    if (is_new) {
        it->second = NewId();
        Words words = {type, it->second};
        words.insert(words.end(), operands.begin(), operands.end());
        Append(globals_, op, words);
    }
    return it->second;
}

Id ModuleBuilder::Void() {
    return Declare(Op::OpTypeVoid, {});
}

Id ModuleBuilder::Type(ValueType type) {
    if (type.columns > 1) {
        Capability(spv::Capability::Matrix);
        uint32_t operands[] = {Type(type.Column()), type.columns};
        return Declare(Op::OpTypeMatrix, operands);
    }
    if (type.rows > 1) {
        uint32_t operands[] = {Type(type.Scalar()), type.rows};
        return Declare(Op::OpTypeVector, operands);
    }
    if (type.kind == Kind::kBool) {
        return Declare(Op::OpTypeBool, {});
    }
    uint32_t bits = BitsOf(type.kind);
    if (IsFloat(type.kind)) {
        if (bits != 32) {
            Capability(bits == 16 ? spv::Capability::Float16 : spv::Capability::Float64);
        }
        return Declare(Op::OpTypeFloat, {&bits, 1});
    }
    if (bits != 32) {
        Capability(bits == 8    ? spv::Capability::Int8
                   : bits == 16 ? spv::Capability::Int16
                                : spv::Capability::Int64);
    }
    uint32_t operands[] = {bits, IsSigned(type.kind)};
    return Declare(Op::OpTypeInt, operands);
}

Id ModuleBuilder::Array(Id element, Id length, uint32_t stride) {
    uint32_t operands[] = {element, length};
    size_t before = globals_.size();
    Id id = Declare(Op::OpTypeArray, operands, stride);
    if (stride && globals_.size() != before) {
        Decorate(id, spv::Decoration::ArrayStride, {stride});
    }
    return id;
}

Id ModuleBuilder::RuntimeArray(Id element, uint32_t stride) {
    size_t before = globals_.size();
    Id id = Declare(Op::OpTypeRuntimeArray, {&element, 1}, stride);
    if (globals_.size() != before) {
        Decorate(id, spv::Decoration::ArrayStride, {stride});
    }
    return id;
}

Id ModuleBuilder::Struct(std::span<const Id> members) {
    return Declare(Op::OpTypeStruct, members, bound_);
}

Id ModuleBuilder::PairStruct(Id member) {
    uint32_t members[] = {member, member};
    return Declare(Op::OpTypeStruct, members);
}

Id ModuleBuilder::Pointer(spv::StorageClass storage, Id type) {
    uint32_t operands[] = {static_cast<uint32_t>(storage), type};
    return Declare(Op::OpTypePointer, operands);
}

Id ModuleBuilder::FunctionType(Id result, std::span<const Id> params) {
    Words operands = {result};
    operands.insert(operands.end(), params.begin(), params.end());
    return Declare(Op::OpTypeFunction, operands);
}

// "If the width is less than 32 bits the value appears in the low-order bits; the high-order bits
// must be 0 for a floating-point or unsigned type, or sign extended" (2.2.1, Literal).
Id ModuleBuilder::Constant(Kind kind, uint64_t bits) {
    Id type = Type({kind, 1, 1});
    if (kind == Kind::kBool) {
        return DeclareConstant(bits ? Op::OpConstantTrue : Op::OpConstantFalse, type, {});
    }
    const uint32_t width = BitsOf(kind);
    uint32_t words[] = {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
    if (width < 32) {
        words[0] &= (1u << width) - 1;
        if (IsSigned(kind) && words[0] >> (width - 1)) {
            words[0] |= ~((1u << width) - 1);
        }
    }
    return DeclareConstant(Op::OpConstant, type, {words, width == 64 ? 2u : 1u});
}

Id ModuleBuilder::Splat(ValueType type, uint64_t bits) {
    Id scalar = Constant(type.kind, bits);
    if (type.rows == 1) {
        return scalar;
    }
    std::vector<Id> column(type.rows, scalar);
    Id vector = Composite(Type(type.Column()), column);
    if (type.columns == 1) {
        return vector;
    }
    std::vector<Id> columns(type.columns, vector);
    return Composite(Type(type), columns);
}

Id ModuleBuilder::Composite(Id type, std::span<const Id> parts) {
    return DeclareConstant(Op::OpConstantComposite, type, parts);
}

Id ModuleBuilder::Null(Id type) {
    return DeclareConstant(Op::OpConstantNull, type, {});
}

Id ModuleBuilder::SpecConstant(Kind kind, uint64_t bits, uint32_t spec_id) {
    Id type = Type({kind, 1, 1});
    Id id = NewId();
    if (kind == Kind::kBool) {
        uint32_t words[] = {type, id};
        Append(globals_, bits ? Op::OpSpecConstantTrue : Op::OpSpecConstantFalse, words);
    } else {
        uint32_t words[] = {type, id, static_cast<uint32_t>(bits),
                            static_cast<uint32_t>(bits >> 32)};
        Append(globals_, Op::OpSpecConstant, {words, BitsOf(kind) == 64 ? 4u : 3u});
    }
    Decorate(id, spv::Decoration::SpecId, {spec_id});
    return id;
}

Id ModuleBuilder::SpecOp(Op op, Id type, std::initializer_list<Id> operands) {
    Id id = NewId();
    Words words = {type, id, static_cast<uint32_t>(op)};
    words.insert(words.end(), operands.begin(), operands.end());
    Append(globals_, Op::OpSpecConstantOp, words);
    return id;
}

Id ModuleBuilder::SpecComposite(Id type, std::span<const Id> parts) {
    Id id = NewId();
    Words words = {type, id};
    words.insert(words.end(), parts.begin(), parts.end());
    Append(globals_, Op::OpSpecConstantComposite, words);
    return id;
}

void ModuleBuilder::Decorate(Id id,
                             spv::Decoration decoration,
                             std::initializer_list<uint32_t> params) {
    Words words = {id, static_cast<uint32_t>(decoration)};
    words.insert(words.end(), params.begin(), params.end());
    Append(annotations_, Op::OpDecorate, words);
}

void ModuleBuilder::MemberDecorate(Id id,
                                   uint32_t member,
                                   spv::Decoration decoration,
                                   std::initializer_list<uint32_t> params) {
    Words words = {id, member, static_cast<uint32_t>(decoration)};
    words.insert(words.end(), params.begin(), params.end());
    Append(annotations_, Op::OpMemberDecorate, words);
}

Id ModuleBuilder::Image(Id component, spv::ImageFormat format) {
    const uint32_t operands[] = {component, static_cast<uint32_t>(spv::Dim::Dim2D), 0, 0, 0,
                                 2,         static_cast<uint32_t>(format)};
    return Declare(Op::OpTypeImage, operands);
}

Id ModuleBuilder::GlobalVariable(spv::StorageClass storage, Id type, Id initializer) {
    Id pointer = Pointer(storage, type);
    Id id = NewId();
    Words words = {pointer, id, static_cast<uint32_t>(storage)};
    if (initializer) {
        words.push_back(initializer);
    }
    Append(globals_, Op::OpVariable, words);
    variables_.push_back({storage, id});
    return id;
}

Id ModuleBuilder::BeginFunction(Id result,
                                std::span<const Id> params,
                                std::vector<Id>* param_ids,
                                Id* label) {
    Id type = FunctionType(result, params);
    Id id = NewId();
    uint32_t words[] = {result, id, 0, type};
    Append(head_, Op::OpFunction, words);
    for (Id param : params) {
        Id param_id = NewId();
        uint32_t param_words[] = {param, param_id};
        Append(head_, Op::OpFunctionParameter, param_words);
        param_ids->push_back(param_id);
    }
    *label = NewId();
    Append(head_, Op::OpLabel, {label, 1});
    return id;
}

Id ModuleBuilder::FunctionVariable(Id type, Id initializer) {
    Id pointer = Pointer(spv::StorageClass::Function, type);
    Id id = NewId();
    Words words = {pointer, id, static_cast<uint32_t>(spv::StorageClass::Function)};
    if (initializer) {
        words.push_back(initializer);
    }
    Append(function_variables_, Op::OpVariable, words);
    return id;
}

void ModuleBuilder::EndFunction() {
    for (Words* part : {&head_, &function_variables_, &body_}) {
        functions_.insert(functions_.end(), part->begin(), part->end());
        part->clear();
    }
    Append(functions_, Op::OpFunctionEnd, {});
}

Id ModuleBuilder::Emit(Op op, Id type, std::span<const uint32_t> operands) {
    Id id = NewId();
    Words words = {type, id};
    words.insert(words.end(), operands.begin(), operands.end());
    Append(body_, op, words);
    return id;
}

void ModuleBuilder::EmitVoid(Op op, std::span<const uint32_t> operands) {
    Append(body_, op, operands);
}

Id ModuleBuilder::Ext(Id type, uint32_t number, std::initializer_list<Id> operands) {
    Words words = {Glsl(), number};
    words.insert(words.end(), operands.begin(), operands.end());
    return Emit(Op::OpExtInst, type, words);
}

size_t ModuleBuilder::EmitOpenPhi(Id id, Id type, Id first, Id first_from) {
    uint32_t words[] = {type, id, first, first_from, 0, 0};
    Append(body_, Op::OpPhi, words);
    return body_.size() - 2;
}

void ModuleBuilder::SetLastPhiValue(size_t position, Id value, Id from) {
    body_[position] = value;
    body_[position + 1] = from;
}

std::vector<uint32_t> ModuleBuilder::Finish() {
    Words words = {spv::MagicNumber, version_, 0, bound_, 0};
    capabilities_.insert(spv::Capability::Shader);
    if (addresses_) {
        capabilities_.insert(spv::Capability::PhysicalStorageBufferAddresses);
        if (version_ < 0x10500) {
            extensions_.insert("SPV_KHR_physical_storage_buffer");
        }
    }
    for (spv::Capability capability : capabilities_) {
        auto number = static_cast<uint32_t>(capability);
        Append(words, Op::OpCapability, {&number, 1});
    }
    for (const std::string& extension : extensions_) {
        Words text;
        AppendString(text, extension);
        Append(words, Op::OpExtension, text);
    }
    if (glsl_) {
        Words import = {glsl_};
        AppendString(import, "GLSL.std.450");
        Append(words, Op::OpExtInstImport, import);
    }
    uint32_t model[] = {
        static_cast<uint32_t>(addresses_ ? spv::AddressingModel::PhysicalStorageBuffer64
                                         : spv::AddressingModel::Logical),
        static_cast<uint32_t>(spv::MemoryModel::GLSL450)};
    Append(words, Op::OpMemoryModel, model);
    Words entry = {static_cast<uint32_t>(spv::ExecutionModel::GLCompute), entry_};
    AppendString(entry, "main");
    // From 1.4 on all global variables, before only inputs (OpEntryPoint).
    for (auto [storage, id] : variables_) {
        if (version_ >= 0x10400 || storage == spv::StorageClass::Input) {
            entry.push_back(id);
        }
    }
    Append(words, Op::OpEntryPoint, entry);
    uint32_t size[] = {entry_, static_cast<uint32_t>(spv::ExecutionMode::LocalSize), local_size_[0],
                       local_size_[1], local_size_[2]};
    Append(words, Op::OpExecutionMode, size);
    for (spv::ExecutionMode mode : modes_) {
        uint32_t operands[] = {entry_, static_cast<uint32_t>(mode)};
        Append(words, Op::OpExecutionMode, operands);
    }
    for (const Words* part : {&annotations_, &globals_, &functions_}) {
        words.insert(words.end(), part->begin(), part->end());
    }
    words[3] = bound_;
    return words;
}

}  // namespace fornax::kernel::fuzz
