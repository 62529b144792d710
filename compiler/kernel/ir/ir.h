// The kernel IR: structured SSA over scalars, between the SPIR-V reader and LLVM.
//
// Everything is one invocation's view; vectorisation happens when LLVM IR is emitted. Three choices
// make the passes small:
//   - values are scalars. The reader takes vectors, matrices, structures and arrays apart, so an
//     analysis sees each component; loads and stores keep runs of consecutive elements together.
//   - control flow is a tree (if, switch, loop, scope) whose constructs yield values; there are no
//     phis and no branches, and an exit names the construct it leaves.
//   - calls are inlined by the reader, so a kernel is one body.
//
// Scoping: a value may be used after its definition in the same block and in the blocks of
// constructs that follow there. A block's values are not visible outside of it, with one exception:
// the parameters of a loop's body are also visible in its continuing block. A construct's results
// are visible after it, not inside.
//
// Storage: a Kernel owns its instructions, values and blocks in vectors, addressed by strong ids in
// creation order, so every pass is deterministic. Deleted instructions leave their slot unused
// until Compact. Not thread-safe; one thread works on a kernel.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/binding_layout.h"

namespace fornax::kernel::ir {

enum class Type : uint8_t { kVoid, kBool, kI8, kI16, kI32, kI64, kF16, kF32, kF64, kBuffer };

// Bits of a value of the type; a bool has 1, a buffer 0.
uint32_t BitWidth(Type type);
const char* TypeName(Type type);
// Bytes of an element in memory; a bool is stored as i32, a buffer never.
uint32_t ByteSize(Type type);
bool IsInteger(Type type);  // not bool
bool IsFloat(Type type);
Type IntegerType(uint32_t bits);
Type FloatType(uint32_t bits);

enum class BuiltinId : uint8_t {
    kWorkgroupIdX,
    kWorkgroupIdY,
    kWorkgroupIdZ,
    kNumWorkgroupsX,
    kNumWorkgroupsY,
    kNumWorkgroupsZ,
    kLocalIdX,
    kLocalIdY,
    kLocalIdZ,
    kLocalIndex,
    kSubgroupId,
    kSubgroupLane,
    kNumSubgroups,
    kSubgroupSize,
};

enum class AtomicOp : uint8_t {
    kLoad,   // the value operand is ignored
    kStore,  // the result is unspecified
    kExchange,
    kCompareExchange,
    kAdd,
    kSub,
    kUMin,
    kUMax,
    kSMin,
    kSMax,
    kAnd,
    kOr,
    kXor,
    kFAdd,
    kFMin,  // a NaN operand gives either operand
    kFMax,
};

// What reductions and scans over the lanes of a subgroup combine values with (group.h).
enum class GroupOp : uint8_t {
    kIAdd,
    kIMul,
    kUMin,
    kUMax,
    kSMin,
    kSMax,
    kAnd,
    kOr,
    kXor,
    kFAdd,
    kFMul,
    kFMin,
    kFMax,
};

const char* BuiltinName(BuiltinId builtin);
const char* GroupOpName(GroupOp op);
inline constexpr uint32_t kNumGroupOps = 13;
const char* AtomicOpName(AtomicOp op);
const char* BindingKindName(BindingLayout::Kind kind);
inline constexpr uint32_t kNumBindingKinds = 9;
inline constexpr uint32_t kNumBuiltins = 14;
inline constexpr uint32_t kNumAtomicOps = 16;

enum Properties : uint8_t {
    kNoProperties = 0,
    kPure = 1,
    kReadsMemory = 2,
    kWritesMemory = 4,
    kConvergent = 8,
    kRegions = 16,
    kTerminator = 32,
    kSubgroup = 64,
};

inline constexpr uint8_t kVariadic = 255;

// Constructs inside one another; Verify refuses more, so passes may recurse over the tree.
inline constexpr uint32_t kMaxNesting = 1024;
// Lanes of a subgroup: a set of them is an i64.
inline constexpr uint32_t kMaxSubgroupSize = 64;
// Bytes of all private arrays of one invocation.
inline constexpr uint64_t kMaxLocalBytes = uint64_t{1} << 24;

enum class Op : uint8_t {
#define FORNAX_OP(name, text, operands, results, properties) k##name,
#include "compiler/kernel/ir/ops.def"
#undef FORNAX_OP
};

struct OpInfo {
    const char* text;
    uint8_t operands;
    uint8_t results;
    uint8_t properties;
};
const OpInfo& InfoOf(Op op);
inline bool HasProperty(Op op, uint8_t property) {
    return (InfoOf(op).properties & property) != 0;
}

// Instruction::flags.
enum InstructionFlags : uint8_t {
    kNoContraction = 1,  // float arithmetic must not be fused or reassociated (SPIR-V decoration)
    kVolatile = 2,       // memory: Volatile, or Coherent without the Vulkan memory model
    kNonUniform = 4,     // Buffer: the array index may differ between lanes (a hint)
    kUnrollHint = 8,     // Loop: SPIR-V loop control Unroll
    kDontUnrollHint = 16,
    kDontFlattenHint = 32,  // If, Switch: keep the branch
    // SExt, ZExt of an index into memory: where lanes differ by known distances, the narrow values
    // of the active ones do not wrap against one another, nor does a sum of 32 bits with a small
    // constant wrap above. They are elements of one object.
    kNoLaneWrap = 64,
};

template <typename Tag>
struct Id {
    uint32_t index = UINT32_MAX;
    bool valid() const { return index != UINT32_MAX; }
    friend bool operator==(Id, Id) = default;
    friend auto operator<=>(Id, Id) = default;
};
using ValueId = Id<struct ValueTag>;
using InstId = Id<struct InstTag>;
using BlockId = Id<struct BlockTag>;

struct Instruction {
    Op op;
    uint8_t flags = 0;
    uint64_t imm = 0;  // see ops.def
    InstId target;     // Exit, Continue: the construct
    std::vector<ValueId> operands;
    std::vector<ValueId> results;
    std::vector<BlockId>
        blocks;  // If: then, else. Loop: body, continuing. Switch: default, cases...
    std::vector<uint64_t> case_values;
    uint32_t origin = 0;  // word offset of the SPIR-V instruction it came from; 0 = none
};

struct Value {
    Type type = Type::kVoid;
    // Defined either by an instruction (inst valid) or as a block's parameter (block valid).
    InstId inst;
    BlockId block;
    uint32_t index = 0;  // which result or parameter
};

struct Block {
    std::vector<ValueId> params;  // Loop blocks only
    std::vector<InstId> insts;    // the last one is a terminator
    InstId parent;                // the construct that holds the block; invalid for the body
};

// A private array: one copy an invocation. Contents are undefined at the start.
struct Local {
    Type type = Type::kF32;
    uint32_t count = 1;
};

// One resource variable of the shader, resolved against the pipeline layout.
struct Binding {
    uint32_t set = 0;
    uint32_t binding = 0;
    BindingLayout layout;
    bool writable = true;
};

class Kernel {
  public:
    std::string name;
    std::array<uint32_t, 3> workgroup_size = {1, 1, 1};
    uint32_t subgroup_size = 32;
    uint32_t shared_bytes = 0;
    bool zero_shared = false;  // shared memory is zero at the start of each workgroup
    uint32_t push_constant_bytes = 0;
    bool robust_buffer_access = false;
    std::vector<Binding> bindings;
    std::vector<Local> locals;
    std::vector<uint8_t> constant_data;  // what load_constant reads
    BlockId body;

    Instruction& inst(InstId id) { return insts_[id.index]; }
    const Instruction& inst(InstId id) const { return insts_[id.index]; }
    Value& value(ValueId id) { return values_[id.index]; }
    const Value& value(ValueId id) const { return values_[id.index]; }
    Block& block(BlockId id) { return blocks_[id.index]; }
    const Block& block(BlockId id) const { return blocks_[id.index]; }
    Type type(ValueId id) const { return values_[id.index].type; }

    uint32_t num_insts() const { return static_cast<uint32_t>(insts_.size()); }
    uint32_t num_values() const { return static_cast<uint32_t>(values_.size()); }
    uint32_t num_blocks() const { return static_cast<uint32_t>(blocks_.size()); }

    // The instruction that defines the value, or null for a block parameter.
    const Instruction* Definition(ValueId id) const;
    // The value's bits if it is a Const.
    bool IsConst(ValueId id, uint64_t* bits = nullptr) const;

    BlockId NewBlock(InstId parent);
    ValueId AddParam(BlockId block, Type type);
    // Makes an instruction that is in no block yet.
    InstId NewInst(Op op, std::span<const ValueId> operands, std::span<const Type> result_types);
    // Adds one more result to a construct.
    ValueId AddResult(InstId inst, Type type);
    // Replaces every use of value v by map[v.index] where that is valid; chains are followed. `map`
    // may be shorter than the number of values.
    void ReplaceUses(std::span<const ValueId> map);
    // Forgets deleted instructions and renumbers the rest in the order of the text; every id that
    // was taken before is stale. The kernel must be verified.
    void Compact();

  private:
    friend class Compactor;
    std::vector<Instruction> insts_;
    std::vector<Value> values_;
    std::vector<Block> blocks_;
};

// Appends instructions to a block. Cheap to make; several may work on one kernel in turn.
class Builder {
  public:
    Builder(Kernel& kernel, BlockId block) : kernel_(&kernel), block_(block) {}

    Kernel& kernel() { return *kernel_; }
    BlockId block() const { return block_; }
    void SetBlock(BlockId block) { block_ = block; }
    void SetOrigin(uint32_t word_offset) { origin_ = word_offset; }

    InstId Append(Op op,
                  std::span<const ValueId> operands,
                  std::span<const Type> result_types,
                  uint64_t imm = 0,
                  uint8_t flags = 0);
    // One-result form: gives the result.
    ValueId Emit(Op op,
                 Type type,
                 std::initializer_list<ValueId> operands,
                 uint64_t imm = 0,
                 uint8_t flags = 0);
    ValueId Const(Type type, uint64_t bits);  // bits are truncated to the type's width
    ValueId ConstI32(uint32_t value) { return Const(Type::kI32, value); }
    ValueId ConstF32(float value);
    ValueId ConstBool(bool value) { return Const(Type::kBool, value ? 1 : 0); }
    // The block ends with a terminator already.
    bool Terminated() const;

  private:
    Kernel* kernel_;
    BlockId block_;
    uint32_t origin_ = 0;
};

// Checks types, operand counts, dominance (scoping), construct structure and terminators. Every
// pass runs it in debug builds; the reader's output and parsed text always pass through it.
Status Verify(const Kernel& kernel);

// The text form (grammar: print.cpp); PrintKernel(ParseKernel(t)) == t for printed text. Values are
// renumbered in order. The words of `origin` are not part of it. Text given to ParseKernel is
// untrusted: errors name the line.
std::string PrintKernel(const Kernel& kernel);
Result<Kernel> ParseKernel(std::string_view text);

}  // namespace fornax::kernel::ir
