// The SPIR-V grammar as data: names for messages, and one routine that checks every instruction's
// operands before anything else looks at them.
//
// First station of the reader: module.cpp runs CheckInstruction over all words, so later stations
// may index an instruction's mandatory operands without looking at its length again. The tables are
// made from the SPIR-V grammar at build time (gen_grammar_tables.py).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

#include "base/result.h"

namespace fornax::kernel::spirv {

enum class Category : uint8_t { kId, kLiteral, kValueEnum, kBitEnum, kComposite };
enum class Quantifier : uint8_t { kOne, kOptional, kAny };

struct OperandInfo {
    uint8_t kind;  // index into kKinds
    Quantifier quantifier;
};

struct KindInfo {
    Category category;
    const char* name;
    uint16_t first_enumerant;
    uint16_t num_enumerants;
    uint16_t first_base;  // Composite: the kinds it is made of, in kOperands
    uint16_t num_bases;
};

struct EnumerantInfo {
    uint32_t value;
    const char* name;
    uint16_t first_parameter;  // in kOperands
    uint16_t num_parameters;
};

struct InstructionInfo {
    uint16_t opcode;
    const char* name;
    uint16_t first_operand;  // in kOperands
    uint16_t num_operands;
};

// Null for a number that the grammar does not know.
const InstructionInfo* FindInstruction(uint32_t opcode);
const InstructionInfo* FindGlslInstruction(uint32_t number);

// Names for messages; an unknown number prints as itself.
std::string OpcodeName(uint32_t opcode);
std::string GlslName(uint32_t number);
std::string CapabilityName(uint32_t value);
std::string StorageClassName(uint32_t value);
std::string DecorationName(uint32_t value);
std::string BuiltInName(uint32_t value);
std::string ExecutionModeName(uint32_t value);

// What CheckInstruction must know of the instructions before: how many words a literal of a type
// takes.
class LiteralSizes {
  public:
    virtual ~LiteralSizes() = default;
    // 0 if `type_id` is not an integer or float type seen so far.
    virtual uint32_t WordsOfType(uint32_t type_id) const = 0;
    // 0 if `id` is not a value of such a type.
    virtual uint32_t WordsOfValue(uint32_t id) const = 0;
};

struct InstructionIds {
    uint32_t result_type = 0;  // 0: none
    uint32_t result = 0;
};

// Checks that `words` (exactly one instruction, at `offset` in its module) has all operands that
// the grammar asks for, nothing after them, known enumerants, and ids in [1, bound).
Result<InstructionIds> CheckInstruction(std::span<const uint32_t> words,
                                        uint32_t offset,
                                        uint32_t bound,
                                        const LiteralSizes& sizes);

// A literal string that CheckInstruction has accepted, starting at `words[0]`; and its size in
// words.
std::string LiteralString(std::span<const uint32_t> words, uint32_t* num_words = nullptr);

}  // namespace fornax::kernel::spirv
