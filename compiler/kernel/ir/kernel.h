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
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "compiler/kernel/interface/binding_layout.h"
#include "compiler/kernel/ir/ops.h"
#include "compiler/kernel/ir/types.h"

namespace fornax::kernel::ir {

const char* BindingKindName(BindingLayout::Kind kind);
inline constexpr uint32_t kNumBindingKinds = 9;

using ValueId = StrongId<struct ValueTag>;
using InstId = StrongId<struct InstTag>;
using BlockId = StrongId<struct BlockTag>;

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
    uint32_t position = 0;  // which result or parameter
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
    // Words of descriptors that decide what the code does, formats above all: those whose values
    // the reader was told, and those that it would like to be told. At most kMaxDecidingWords.
    std::vector<DescriptorWord> known_words;
    std::vector<DescriptorPlace> deciding_words;
    BlockId body;

    Instruction& inst(InstId id) { return insts_[id.value()]; }
    const Instruction& inst(InstId id) const { return insts_[id.value()]; }
    Value& value(ValueId id) { return values_[id.value()]; }
    const Value& value(ValueId id) const { return values_[id.value()]; }
    Block& block(BlockId id) { return blocks_[id.value()]; }
    const Block& block(BlockId id) const { return blocks_[id.value()]; }
    Type type(ValueId id) const { return values_[id.value()].type; }

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
    // Replaces every use of value v by map[v.value()] where that is valid; chains are followed.
    // `map` may be shorter than the number of values.
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

}  // namespace fornax::kernel::ir
