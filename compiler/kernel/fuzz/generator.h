// The generator of random modules. Shared by
//
//   random_module.cpp          the module's interface, main, functions
//   generator_values.cpp       values by type: constants, picks, composites, conversions
//   generator_arithmetic.cpp   integer, float, bool and matrix operations
//   generator_memory.cpp       variables, buffers, workgroup memory, atomics
//   generator_subgroups.cpp    operations between lanes
//   generator_wide.cpp         what only some drivers have
//   generator_control.cpp      statements and structured control flow
//   generator_barriers.cpp     invocations that part between barriers
//
// Each statement draws from a random sequence of its own, so that one can be left out without
// changing the others' shapes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/kernel/fuzz/module_builder.h"
#include "compiler/kernel/fuzz/random_module.h"
#include "compiler/kernel/interpret/random_kernel.h"

namespace fornax::kernel::fuzz {

// A type in memory, with its layout if it has one.
struct MemoryType {
    enum class Form : uint8_t { kValue, kArray, kRuntimeArray, kStruct };
    Form form = Form::kValue;
    ValueType value;
    Id id = 0;
    uint32_t count = 0;   // of an array: a power of two
    uint32_t stride = 0;  // of an array
    uint32_t size = 0;
    uint32_t align = 1;
    bool row_major = false;
    uint32_t matrix_stride = 0;
    uint32_t least_offset = 0;      // of a structure's member
    std::vector<MemoryType> parts;  // the element, or the members
    std::vector<uint32_t> offsets;
};

struct Variable {
    MemoryType type;
    Id id = 0;
    spv::StorageClass storage = spv::StorageClass::Function;
    // What is read from a buffer may be any bits, so that floats are made fit for use.
    bool foreign = false;
    bool writable = true;
    // The first index must be the invocation's own element.
    bool own = false;
    bool descriptors = false;  // an array of buffers
};

class Generator {
  public:
    Generator(uint64_t seed, const RandomModuleOptions& options);
    RandomModule Run();

  private:
    using Op = spv::Op;
    struct Pooled {
        ValueType type;
        Id id;
    };
    // Where jumps go that leave a construct, with the values for its phis.
    struct Target {
        Id label = 0;
        std::vector<ValueType> phis;
        struct Incoming {
            Id from;
            std::vector<Id> values;
        };
        std::vector<Incoming> incoming;
    };
    struct Around {
        Target* merge = nullptr;
        Target* continuing = nullptr;  // of a loop whose body this is
        bool is_loop = false;
        bool must_stay = false;  // holds barriers: only left by all invocations together
        bool left = false;       // some invocations left or skipped what follows
        bool returned = false;   // where it ends, some invocations have returned
    };
    struct Image {
        Id id = 0;
        Id type = 0;
        ValueType component;
        hal::TexelFormat texel;
        bool atomic = false;
    };
    struct Function {
        Id id = 0;
        Id result_id = 0;
        ValueType result;
        std::vector<ValueType> params;
        std::vector<MemoryType> pointers;  // further parameters: pointers to function variables
        bool has_barrier = false;
    };

    // --- random_module.cpp
    void DeclareShape();
    void DeclareBuffers();
    Variable Block(MemoryType type, spv::StorageClass storage, uint32_t binding);
    MemoryType InputView();
    MemoryType OutputType(MemoryType element, uint32_t stride);
    Variable OutputView(MemoryType element, uint32_t stride);
    void DeclarePush();
    void MakeFunction(uint32_t number);
    void MakeMain();
    void FillFunction(uint32_t budget);
    void DeclareLocals(uint32_t count);
    Id Input(spv::BuiltIn builtin, ValueType type);
    void Digest(Id word);
    Id GlobalIndex();
    void StoreDigest();
    Id Call(const Function& function);

    // --- generator_values.cpp
    uint32_t Below(uint32_t limit) { return random_.Below(limit); }
    bool Chance(uint32_t percent) { return random_.Chance(percent); }
    Kind AnyKind();
    Kind AnyIntKind();
    Kind AnyFloatKind();
    ValueType AnyType();
    void Add(ValueType type, Id id) { pool_.push_back({type, id}); }
    Id Emit(Op op, ValueType type, std::initializer_list<Id> operands);
    Id Glsl(uint32_t number, ValueType type, std::initializer_list<Id> operands);
    Id RandomConstant(ValueType type);
    std::optional<Id> Pick(ValueType type);
    Id Leaf(ValueType type);
    Id Value(ValueType type, uint32_t depth);
    Id Any(ValueType type) { return Value(type, depth_); }
    Id Condition();         // a bool
    Id UniformCondition();  // one that is the same for the whole workgroup
    Id UniformWord();
    Id Masked(ValueType type, uint64_t mask);
    Id Construct(ValueType type);
    Id Component(ValueType type);
    Id Shuffled(ValueType type);
    Id Selected(ValueType type);
    Id Converted(ValueType type);
    Id Word(ValueType type, Id value);  // any value folded to 32 bits
    Id Fold(Id a, Id b);
    Id Observable(ValueType type, Id value);
    Id Fit(ValueType type, Id value);  // floats from foreign memory
    uint64_t FloatBits(Kind kind, double value);

    // --- generator_arithmetic.cpp
    Id IntegerValue(ValueType type);
    Id Glsl32(ValueType type);
    Id BitField(ValueType type);
    Id FloatValue(ValueType type);
    Id ExactFloat(ValueType type);
    Id FreeFloat(ValueType type);
    Id Small(ValueType type, Id value);
    Id MatrixValue(ValueType type, uint32_t depth);
    Id MatrixProduct(ValueType type);
    Id BoolValue(ValueType type);

    // --- generator_memory.cpp
    MemoryType PlainType(uint32_t depth);
    MemoryType ValueInMemory(ValueType type, bool packed, bool has_layout);
    MemoryType LaidOutType(uint32_t depth, bool packed, uint32_t room);
    MemoryType LaidOutStruct(uint32_t members, uint32_t depth, bool packed, uint32_t room);
    MemoryType ArrayOf(MemoryType element, uint32_t count, bool has_layout, bool packed);
    void FinishStruct(MemoryType& type, bool has_layout, bool packed, uint32_t room);
    // A part of a variable, as the steps that lead to it.
    struct Step {
        enum class Form : uint8_t { kMember, kElement, kRuntimeElement, kColumn, kComponent };
        Form form;
        uint32_t count;  // of elements, or the member's number
    };
    struct Part {
        MemoryType type;
        std::vector<Step> steps;
    };
    using PartTest = std::function<bool(const MemoryType&)>;
    void CollectParts(const MemoryType& type, std::vector<Step>& steps, std::vector<Part>& parts);
    std::optional<Part> FindPart(const Variable& variable, const PartTest& test);
    Id PointerTo(const Variable& variable, const Part& part, bool writes);
    Id Index(Step step, const Variable& variable);
    Id RuntimeIndex(Step step, const Variable& variable);
    Id IndexBelow(uint32_t count, ValueType type);
    Id PatternIndex();
    bool Usable(const Variable& variable, bool writes) const;
    Variable* AnyVariable(bool writes);
    Id Load(const Variable& variable, const Part& part);
    bool HoldsFloat(const MemoryType& type) const;
    std::optional<Id> LoadOf(ValueType type);
    Id ValueFor(const MemoryType& type, bool observable);
    Variable NewLocal(const MemoryType& type);
    std::pair<ValueType, Id> ExtractLeaf(const MemoryType& type, Id value);
    void LoadStatement();
    void StoreStatement();
    void CopyStatement();
    void OwnAtomic();
    void CounterAtomic();
    void Exchange();
    void Tally();
    void OnlyIf(Id condition, const std::function<void()>& body);
    void ControlBarrier();

    // --- generator_wide.cpp
    Image DeclareImage(uint32_t binding, bool known);
    void DeclareWide();
    void DeclareWideIndexing();
    Id Widened(Id index, const Variable& variable);
    void LoadAddresses();
    uint32_t ScalarAlign(const MemoryType& type) const;
    void AddAccess(std::vector<uint32_t>& operands,
                   const Variable& variable,
                   const MemoryType& part,
                   bool is_volatile);
    void ChosenPointer();
    Id Observable(ValueType type);
    bool InMatrix(const Variable& variable, const Part& part) const;
    Kind WideKind();
    void DeclareAtomic(Kind kind, bool adds);
    Id AtomicOperand(ValueType type);
    Id AnyAtomic(ValueType type, Id pointer, spv::Scope scope);
    void OwnWideAtomic();
    const Variable& WideView(Kind kind);
    void WideTally();
    void ImageStatement();
    void DotStatement();
    bool WideStatement();

    // --- generator_subgroups.cpp
    Id Group(Op op, ValueType type, std::initializer_list<uint32_t> operands);
    Id LaneIndex();
    Id FromLane(ValueType type, Id value, Id lane, Id read);
    void ShuffleStatement();
    void VoteStatement();
    void ReduceStatement();
    void SubgroupStatement();
    void DeclareSubgroups();

    // --- generator_barriers.cpp
    enum class Way : uint8_t { kReturn, kBreak, kContinue };
    void NeverBarrier();
    void PartStatement(uint32_t budget, uint32_t depth);
    void Leave(Way way);
    void Return();
    Around* InnermostTarget();
    Around* InnermostLoop();

    // --- generator_control.cpp
    void Statements(uint32_t budget, uint32_t depth);
    void Statement(uint32_t budget, uint32_t depth);
    void PureStatement();
    void IfStatement(uint32_t budget, uint32_t depth);
    void SwitchStatement(uint32_t budget, uint32_t depth);
    void LoopStatement(uint32_t budget, uint32_t depth);
    void LeaveStatement();
    void ReturnStatement();
    void CallStatement();
    bool CanLeave() const;
    Target NewTarget(uint32_t max_phis);
    std::vector<Id> PhiValues(const Target& target);
    void Jump(Target& target);
    void BranchTo(Id condition, Target& if_true, Target& if_false);
    void StartBlock(Id label);
    void Begin(Target& target);
    void BackToUniform(bool was_uniform);

    ModuleBuilder b_;
    Random random_;
    const uint64_t seed_;
    const RandomModuleOptions& options_;
    RandomModule module_;

    std::vector<Kind> kinds_;  // that values have; some more than once
    std::vector<Kind> memory_kinds_;
    bool exact_ = false;   // floats are exact
    bool parts_ = false;   // invocations part between barriers
    bool nevers_ = false;  // barriers that none meets stand anywhere
    bool small_storage_ = false;
    std::array<uint32_t, 3> size_ = {1, 1, 1};
    Id local_index_ = 0;
    Id workgroup_id_ = 0;
    Id num_workgroups_ = 0;
    Id local_id_ = 0;
    Id lane_variable_ = 0;  // 0: no subgroup operations
    std::vector<std::pair<ValueType, Id>> spec_constants_;
    std::vector<Variable> globals_;
    Variable own_words_;
    Id push_variable_ = 0;          // its first member is a word
    std::vector<Variable> shared_;  // arrays with an element for each invocation
    Id tally_ = 0;                  // a word of workgroup memory
    Id wide_tally_ = 0;             // another type's
    ValueType wide_tally_type_;
    std::map<Kind, Variable> wide_views_;  // of the output, by the elements' type
    std::vector<Variable> addressed_;      // what the push constants hold the addresses of
    Id push_struct_ = 0;
    uint32_t push_address_member_ = 0;  // the input's; the output's follows
    Image own_image_;
    Image input_image_;
    bool pointers_ = false;
    bool wide_indexing_ = false;
    bool wide_atomics_ = false;
    bool dots_ = false;
    std::vector<Function> functions_;

    // The function that is being made.
    std::vector<Pooled> pool_;
    std::vector<Variable> locals_;
    std::vector<Variable> addressed_here_;  // with this function's pointers
    std::vector<Around> around_;
    std::vector<Id> uniform_words_;  // counters of loops that all invocations run together
    Id block_ = 0;
    bool dead_ = false;      // the block has ended
    bool uniform_ = true;    // all invocations of the workgroup are here
    bool returned_ = false;  // some invocations have returned
    bool in_main_ = false;
    bool has_barriers_ = false;  // the function may hold barriers
    ValueType result_;
    bool returns_value_ = false;
    Id digest_ = 0;  // main's running digest
    Id own_index_ = 0;
    uint32_t depth_ = 0;  // of the expression that is being made
    uint64_t statement_ = 0;
};

}  // namespace fornax::kernel::fuzz
