// Writes SPIR-V modules word by word, for the generator of random modules: types and constants are
// declared once, sections come out in the order of the specification (2.4, Logical Layout).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

namespace fornax::kernel::fuzz {

using Id = uint32_t;

enum class Kind : uint8_t { kBool, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kF32, kF64 };

inline bool IsFloat(Kind kind) {
    return kind >= Kind::kF16;
}
inline bool IsInt(Kind kind) {
    return kind != Kind::kBool && !IsFloat(kind);
}
inline bool IsSigned(Kind kind) {
    return kind == Kind::kI8 || kind == Kind::kI16 || kind == Kind::kI32 || kind == Kind::kI64;
}
// 1 for bool.
uint32_t BitsOf(Kind kind);
Kind IntKind(uint32_t bits, bool is_signed);

// A scalar, a vector of `rows` components, or a matrix of `columns` such columns.
struct ValueType {
    Kind kind = Kind::kU32;
    uint8_t rows = 1;
    uint8_t columns = 1;

    auto operator<=>(const ValueType&) const = default;
    ValueType WithKind(Kind other) const { return {other, rows, columns}; }
    ValueType WithRows(uint8_t other) const { return {kind, other, columns}; }
    ValueType Column() const { return {kind, rows, 1}; }
    ValueType Scalar() const { return {kind, 1, 1}; }
};

class ModuleBuilder {
  public:
    explicit ModuleBuilder(uint32_t version) : version_(version) {}

    uint32_t version() const { return version_; }
    Id NewId() { return bound_++; }
    void Capability(spv::Capability capability);
    void Extension(const std::string& name) { extensions_.insert(name); }
    Id Glsl();  // the GLSL.std.450 import

    Id Void();
    Id Type(ValueType type);
    // Arrays of one element, length and stride are one type; stride 0 is no decoration.
    Id Array(Id element, Id length, uint32_t stride);
    Id RuntimeArray(Id element, uint32_t stride);
    Id Struct(std::span<const Id> members);  // a new one each time
    Id PairStruct(Id member);                // {member, member}, one each
    Id Pointer(spv::StorageClass storage, Id type);
    Id Image(Id component, spv::ImageFormat format);  // a storage image of two dimensions
    Id FunctionType(Id result, std::span<const Id> params);

    Id Constant(Kind kind, uint64_t bits);
    Id Uint(uint32_t value) { return Constant(Kind::kU32, value); }
    // Every component the same.
    Id Splat(ValueType type, uint64_t bits);
    Id Composite(Id type, std::span<const Id> parts);
    Id Null(Id type);
    Id SpecConstant(Kind kind, uint64_t bits, uint32_t spec_id);
    Id SpecOp(spv::Op op, Id type, std::initializer_list<Id> operands);
    Id SpecComposite(Id type, std::span<const Id> parts);

    void Decorate(Id id, spv::Decoration decoration, std::initializer_list<uint32_t> params = {});
    void MemberDecorate(Id id,
                        uint32_t member,
                        spv::Decoration decoration,
                        std::initializer_list<uint32_t> params = {});
    Id GlobalVariable(spv::StorageClass storage, Id type, Id initializer = 0);

    // The function that instructions go into, until EndFunction. Its first block is begun.
    Id BeginFunction(Id result, std::span<const Id> params, std::vector<Id>* param_ids, Id* label);
    Id FunctionVariable(Id type, Id initializer = 0);
    void EndFunction();
    Id Emit(spv::Op op, Id type, std::span<const uint32_t> operands);
    Id Emit(spv::Op op, Id type, std::initializer_list<uint32_t> operands) {
        return Emit(op, type, std::span(operands.begin(), operands.size()));
    }
    void EmitVoid(spv::Op op, std::span<const uint32_t> operands);
    void EmitVoid(spv::Op op, std::initializer_list<uint32_t> operands) {
        EmitVoid(op, std::span(operands.begin(), operands.size()));
    }
    Id Ext(Id type, uint32_t number, std::initializer_list<Id> operands);
    // A phi whose last value comes later: SetLastPhiValue with the position that is returned.
    size_t EmitOpenPhi(Id id, Id type, Id first, Id first_from);
    void SetLastPhiValue(size_t position, Id value, Id from);

    void UseAddresses() { addresses_ = true; }
    void SetEntryPoint(Id function) { entry_ = function; }
    void AddExecutionMode(spv::ExecutionMode mode) { modes_.push_back(mode); }
    void SetLocalSize(std::array<uint32_t, 3> size) { local_size_ = size; }
    std::vector<uint32_t> Finish();

  private:
    using Words = std::vector<uint32_t>;
    static void Append(Words& words, spv::Op op, std::span<const uint32_t> operands);
    static void AppendString(Words& words, const std::string& text);
    Id Declare(spv::Op op, std::span<const uint32_t> operands, uint32_t tag = 0);
    Id DeclareConstant(spv::Op op, Id type, std::span<const uint32_t> operands);

    uint32_t version_;
    Id bound_ = 1;
    std::set<spv::Capability> capabilities_;
    std::set<std::string> extensions_;
    Id glsl_ = 0;
    std::map<Words, Id> declared_;
    Words annotations_;
    Words globals_;
    std::vector<std::pair<spv::StorageClass, Id>> variables_;
    Words functions_;
    Words head_;  // of the current function: up to its first label
    Words function_variables_;
    Words body_;
    Id entry_ = 0;
    bool addresses_ = false;
    std::vector<spv::ExecutionMode> modes_;  // without operands
    std::array<uint32_t, 3> local_size_ = {1, 1, 1};
};

}  // namespace fornax::kernel::fuzz
