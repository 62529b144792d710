// Writes SPIR-V modules with one compute entry point: for loop kernels and kernel templates.
//
// Types, constants and pure instructions are written once where control flow lets their first
// result be used again. Capabilities and extensions follow from the types and built-ins that are
// asked for; those of instructions are the caller's to add. Control flow is structured by If and
// For, which take the code of their parts as functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

namespace fornax::graph::spirv {

// 0 names nothing.
using Id = uint32_t;
using Ids = std::vector<Id>;

inline constexpr uint32_t kVersion13 = 0x00010300;
inline constexpr uint32_t kVersion15 = 0x00010500;

class ModuleBuilder {
  public:
    explicit ModuleBuilder(uint32_t version = kVersion13);

    uint32_t version() const { return version_; }
    Id NewId() { return bound_++; }
    void Capability(spv::Capability capability) { capabilities_.insert(capability); }
    void Extension(const std::string& name) { extensions_.insert(name); }
    Id Glsl();  // the import of GLSL.std.450

    // --- Types. Integers have no sign: instructions do.
    Id Void();
    Id Bool();
    Id Int(uint32_t bits);
    Id Float(uint32_t bits);
    Id BFloat16();
    Id U32() { return Int(32); }
    Id F32() { return Float(32); }
    Id Vector(Id component, uint32_t count);
    Id Array(Id element, uint32_t length, uint32_t stride = 0);
    Id CooperativeMatrix(Id component,
                         uint32_t rows,
                         uint32_t columns,
                         spv::CooperativeMatrixUse use);
    Id Pointer(spv::StorageClass storage, Id type);
    // The type of a value.
    Id TypeOf(Id value) const { return types_[value]; }
    // The width of an integer or float type.
    uint32_t BitsOf(Id type) const;

    // --- Constants.
    Id Constant(Id type, uint64_t bits);  // of integers, floats and bools
    Id Uint(uint32_t value) { return Constant(U32(), value); }
    Id FloatConstant(float value);
    Id DoubleConstant(double value);
    Id True() { return Constant(Bool(), 1); }
    Id False() { return Constant(Bool(), 0); }
    Id Composite(Id type, std::span<const Id> parts);
    Id Null(Id type);
    // The bits of a constant of Constant().
    std::optional<uint64_t> ConstantBits(Id value) const;

    // --- Variables.
    // A storage buffer: a struct of one array of `element` without end, at `binding` of set 0.
    Id StorageBuffer(uint32_t binding, Id element, bool written);
    // The values of a block of `count` u32 push constants.
    Ids PushConstants(uint32_t count);
    // An array in workgroup memory.
    Id WorkgroupArray(Id element, uint32_t length);
    // An array of values that this invocation alone has; to be asked for inside of the entry point.
    Id FunctionArray(Id element, uint32_t length);
    // The value of a built-in input, at the place of the first use.
    Id BuiltIn(spv::BuiltIn which);
    Id Component(Id vector, uint32_t index);
    // A pointer to element `index` of a StorageBuffer(), WorkgroupArray() or FunctionArray().
    Id ElementPointer(Id buffer, Id index);
    Id Load(Id pointer);
    void Store(Id pointer, Id value);

    // --- Instructions.
    // A pure instruction: an earlier one like it, if there is one whose result may be used here.
    Id Op(spv::Op op, Id type, std::span<const uint32_t> operands);
    Id Op(spv::Op op, Id type, std::initializer_list<uint32_t> operands) {
        return Op(op, type, std::span(operands.begin(), operands.size()));
    }
    // An instruction of GLSL.std.450 (enum GLSLstd450).
    Id Ext(Id type, uint32_t number, std::initializer_list<Id> operands);
    // Always a new instruction.
    Id Emit(spv::Op op, Id type, std::span<const uint32_t> operands);
    Id Emit(spv::Op op, Id type, std::initializer_list<uint32_t> operands) {
        return Emit(op, type, std::span(operands.begin(), operands.size()));
    }
    void EmitVoid(spv::Op op, std::initializer_list<uint32_t> operands);
    // Makes memory that the workgroup shares the same for all its invocations.
    void WorkgroupBarrier();

    // Arithmetic of integers of one type, on constants done at once.
    Id Add(Id a, Id b);
    Id Sub(Id a, Id b);
    Id Mul(Id a, Id b);
    Id UDiv(Id a, Id b);
    Id UMod(Id a, Id b);
    Id ULess(Id a, Id b);
    Id And(Id a, Id b);  // of bools
    Id Or(Id a, Id b);
    Id Not(Id a);
    Id Select(Id condition, Id a, Id b);

    // --- Control flow.
    using Code = std::function<Ids()>;
    // The values of the side that is run. Both sides give as many values of the same types.
    Ids If(Id condition, const Code& then, const Code& otherwise);
    void If(Id condition, const std::function<void()>& then);
    // for (i = begin; i < end; i += step), unsigned. `body` gets i and the carried values, and
    // gives the values for the next iteration. The result are the carried values at the end.
    using LoopBody = std::function<Ids(Id, std::span<const Id>)>;
    enum class Unroll : uint8_t { kMay, kDont };
    Ids For(Id begin,
            Id end,
            Id step,
            std::span<const Id> initial,
            const LoopBody& body,
            Unroll unroll = Unroll::kMay);

    // --- The entry point. Begin() starts the code, Finish() ends it and gives the words.
    void Begin(const std::string& name = "main");
    void SetLocalSize(std::array<uint32_t, 3> size) { local_size_ = size; }
    void ExecutionMode(spv::ExecutionMode mode, std::initializer_list<uint32_t> operands = {});
    void Decorate(Id id, spv::Decoration decoration, std::initializer_list<uint32_t> operands = {});
    std::vector<uint32_t> Finish();
    size_t code_words() const { return body_.size(); }  // so far
    bool HasVulkanMemoryModel() const {
        return capabilities_.contains(spv::Capability::VulkanMemoryModel);
    }

  private:
    using Words = std::vector<uint32_t>;
    static void Append(Words& words, spv::Op op, std::span<const uint32_t> operands);
    static void AppendString(Words& words, const std::string& text);
    Id Declare(spv::Op op, std::span<const uint32_t> operands);
    Id DeclareConstant(spv::Op op, Id type, std::span<const uint32_t> operands);
    Id GlobalVariable(spv::StorageClass storage, Id type);
    void SetType(Id id, Id type);
    void BeginBlock(Id label);
    void Branch(Id target);
    // The bits of two constants; nullopt if one is none.
    std::optional<std::pair<uint64_t, uint64_t>> BothConstant(Id a, Id b) const;

    uint32_t version_;
    Id bound_ = 1;
    std::set<spv::Capability> capabilities_;
    std::set<std::string> extensions_;
    Id glsl_ = 0;
    std::map<Words, Id> declared_;
    std::vector<Id> types_;  // by id
    std::map<Id, uint64_t> constants_;
    std::map<Id, uint32_t> bits_;  // of number types
    std::map<Id, Id> elements_;    // what a pointer or an array variable leads to
    std::set<Id> shared_;          // variables in workgroup memory
    std::set<Id> private_;         // variables of the function
    std::map<spv::BuiltIn, Id> built_ins_;
    Words modes_;
    Words annotations_;
    Words globals_;
    std::vector<std::pair<spv::StorageClass, Id>> variables_;
    Words body_;
    size_t first_instruction_ = 0;            // of the function, in body_
    std::vector<std::map<Words, Id>> known_;  // pure instructions, by nested construct
    Id block_ = 0;                            // the label of the block that is being written
    Id entry_ = 0;
    std::string name_;
    std::array<uint32_t, 3> local_size_ = {1, 1, 1};
};

}  // namespace fornax::graph::spirv
