// Blocks, structured constructs, phis, calls, barriers. What a block holds goes back to the
// translator, instruction by instruction.
#pragma once

#include <vector>

#include "compiler/kernel/spirv/large_values.h"
#include "compiler/kernel/spirv/values.h"

namespace fornax::kernel::spirv {

class Translator;

class ControlFlow : TranslationPart {
  public:
    ControlFlow(Translation& code, Values& values, LargeValues& large, Translator& translator)
        : TranslationPart(code), values_(values), large_(large), translator_(translator) {}

    Status From(uint32_t from, uint32_t label);
    Status Call(const Inst& inst);
    Status ControlBarrier(const Inst& inst);
    Status MemoryBarrier(const Inst& inst);

  private:
    struct Jump {
        enum class Kind : uint8_t { kMerge, kContinue, kNext };
        uint32_t label = 0;
        Kind kind = Kind::kMerge;
        ir::InstId construct;
    };
    Status CountRepeat(uint32_t label, const Block& block);
    Status LoadPhis(const Block& block);
    Status StorePhis(uint32_t from, uint32_t label);
    const Jump* FindJump(uint32_t label) const;
    Status EmitJump(const Inst& inst, const Jump& jump);
    Status Loop(uint32_t header, const Block& block, const Inst& merge, uint32_t& next);
    // Translates a block's instructions and its terminator. `next` is where control goes on in the
    // same IR block, 0 if nowhere; `from` is set to the label that control comes from then (0:
    // after a merge).
    Status Contents(uint32_t label, const Block& block, uint32_t& next, uint32_t& from);
    Status Branch(const Inst& inst, uint32_t label, uint32_t merge, uint32_t& next, uint32_t& from);
    Status Conditional(const Inst& inst,
                       uint32_t label,
                       uint32_t merge,
                       uint32_t& next,
                       uint32_t& from);
    Status Switch(const Inst& inst, uint32_t label, uint32_t merge, uint32_t& next, uint32_t& from);
    Status Return(const Inst& inst);
    Status Side(ir::BlockId block, uint32_t from, uint32_t label);

    Values& values_;
    LargeValues& large_;
    Translator& translator_;
    std::vector<Jump> jumps_;
    uint32_t walked_blocks_ = 0;
    uint64_t repeated_instructions_ = 0;
    uint32_t nesting_ = 0;
};

}  // namespace fornax::kernel::spirv
