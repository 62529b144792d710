// What the parts of the generator of random modules share: the module that is made, the function
// and the point in it, and the base that each part has.
//
//   generator_types.h         types of variables
//   generator_declarations.h  the module's interface
//   generator_values.h        values by type: constants, picks, composites, conversions
//   generator_arithmetic.h    integer, float, bool and matrix operations
//   generator_variables.h     parts of variables
//   generator_memory.h        statements that load, store and copy
//   generator_atomics.h       atomics, values exchanged between invocations
//   generator_wide.h          what only some drivers have
//   generator_subgroups.h     operations between lanes
//   generator_control.h       statements and structured control flow
//   generator.h               functions, main
//
// Each statement draws from a random sequence of its own, so that one can be left out without
// changing the others' shapes.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "compiler/kernel/fuzz/module_builder.h"
#include "compiler/kernel/fuzz/random_module.h"
#include "compiler/kernel/interpret/random_kernel.h"

namespace fornax::kernel::fuzz {

inline constexpr ValueType kUint{Kind::kU32, 1, 1};
inline constexpr ValueType kBool{Kind::kBool, 1, 1};

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

struct GeneratorState {
    GeneratorState(uint64_t the_seed, const RandomModuleOptions& the_options);
    GeneratorState(const GeneratorState&) = delete;
    GeneratorState& operator=(const GeneratorState&) = delete;

    ModuleBuilder builder;
    Random random;
    const uint64_t seed;
    const RandomModuleOptions& options;
    RandomModule module;

    std::vector<Kind> kinds;  // that values have; some more than once
    std::vector<Kind> memory_kinds;
    bool exact = false;   // floats are exact
    bool parts = false;   // invocations part between barriers
    bool nevers = false;  // barriers that none meets stand anywhere
    bool small_storage = false;
    std::array<uint32_t, 3> size = {1, 1, 1};
    Id local_index = 0;
    Id workgroup_id = 0;
    Id num_workgroups = 0;
    Id local_id = 0;
    Id lane_variable = 0;  // 0: no subgroup operations
    std::vector<std::pair<ValueType, Id>> spec_constants;
    std::vector<Variable> globals;
    Variable own_words;
    Id push_variable = 0;          // its first member is a word
    std::vector<Variable> shared;  // arrays with an element for each invocation
    Id tally = 0;                  // a word of workgroup memory
    Id wide_tally = 0;             // another type's
    ValueType wide_tally_type;
    std::map<Kind, Variable> wide_views;  // of the output, by the elements' type
    std::vector<Variable> addressed;      // what the push constants hold the addresses of
    Id push_struct = 0;
    uint32_t push_address_member = 0;  // the input's; the output's follows
    Image own_image;
    Image input_image;
    bool pointers = false;
    bool wide_indexing = false;
    bool wide_atomics = false;
    bool dots = false;
    std::vector<Function> functions;

    // The function that is being made.
    std::vector<Pooled> pool;
    std::vector<Variable> locals;
    std::vector<Variable> addressed_here;  // with this function's pointers
    std::vector<Around> around;
    std::vector<Id> uniform_words;  // counters of loops that all invocations run together
    Id block = 0;
    bool dead = false;      // the block has ended
    bool uniform = true;    // all invocations of the workgroup are here
    bool returned = false;  // some invocations have returned
    bool in_main = false;
    bool has_barriers = false;  // the function may hold barriers
    ValueType result;
    bool returns_value = false;
    Id digest = 0;  // main's running digest
    Id own_index = 0;
    uint32_t depth = 0;  // of the expression that is being made
    uint64_t statement = 0;
};

// A part of the generator: what all of them do.
class GeneratorPart {
  public:
    GeneratorPart(const GeneratorPart&) = delete;
    GeneratorPart& operator=(const GeneratorPart&) = delete;

  protected:
    using Op = spv::Op;

    explicit GeneratorPart(GeneratorState& state) : state_(state) {}
    ~GeneratorPart() = default;

    uint32_t Below(uint32_t limit) { return state_.random.Below(limit); }
    bool Chance(uint32_t percent) { return state_.random.Chance(percent); }
    Kind AnyKind();
    Kind AnyIntKind();
    Kind AnyFloatKind();
    ValueType AnyType();
    void Add(ValueType type, Id id) { state_.pool.push_back({type, id}); }
    Id Emit(Op op, ValueType type, std::initializer_list<Id> operands);
    Id Glsl(uint32_t number, ValueType type, std::initializer_list<Id> operands);
    uint64_t FloatBits(Kind kind, double value);
    Id RandomConstant(ValueType type);
    std::optional<Id> Pick(ValueType type);
    Id Fold(Id a, Id b);
    void Digest(Id word);
    void StoreDigest();
    void StartBlock(Id label);
    void OnlyIf(Id condition, const std::function<void()>& body);
    void ControlBarrier();
    Variable NewLocal(const MemoryType& type);

    GeneratorState& state_;
    ModuleBuilder& b_ = state_.builder;
};

}  // namespace fornax::kernel::fuzz
