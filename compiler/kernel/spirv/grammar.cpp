// Look-ups in the generated grammar tables, and the walk over one instruction's operands.
#include "compiler/kernel/spirv/grammar.h"

#include <algorithm>
#include <bit>

#include "compiler/kernel/spirv/grammar_tables.h"

namespace fornax::kernel::spirv {

namespace {

const InstructionInfo* Find(std::span<const InstructionInfo> table, uint32_t opcode) {
    auto it = std::lower_bound(
        table.begin(), table.end(), opcode,
        [](const InstructionInfo& info, uint32_t value) { return info.opcode < value; });
    return it != table.end() && it->opcode == opcode ? &*it : nullptr;
}

const EnumerantInfo* FindEnumerant(const KindInfo& kind, uint32_t value) {
    std::span<const EnumerantInfo> all(kEnumerants + kind.first_enumerant, kind.num_enumerants);
    auto it = std::lower_bound(
        all.begin(), all.end(), value,
        [](const EnumerantInfo& info, uint32_t wanted) { return info.value < wanted; });
    return it != all.end() && it->value == value ? &*it : nullptr;
}

std::string EnumerantName(uint8_t kind, uint32_t value) {
    const EnumerantInfo* info = FindEnumerant(kKinds[kind], value);
    return info ? info->name : std::string(kKinds[kind].name) + " " + std::to_string(value);
}

// Words up to and including the one that holds the terminating zero byte; 0 if there is none.
uint32_t StringWords(std::span<const uint32_t> words) {
    for (size_t i = 0; i < words.size(); ++i) {
        for (int byte = 0; byte < 4; ++byte) {
            if ((words[i] >> (8 * byte) & 0xff) == 0) {
                return static_cast<uint32_t>(i + 1);
            }
        }
    }
    return 0;
}

// Walks the operands of one instruction. Every Take* consumes words or fails.
class Walker {
  public:
    Walker(std::span<const uint32_t> words,
           uint32_t offset,
           uint32_t bound,
           const LiteralSizes& sizes)
        : words_(words), offset_(offset), bound_(bound), sizes_(sizes) {}

    Result<InstructionIds> Run() {
        const InstructionInfo* info = FindInstruction(words_[0] & 0xffff);
        if (!info) {
            return Error{ErrorCode::kUnsupported, "Opcode " + std::to_string(words_[0] & 0xffff) +
                                                      " at word " + std::to_string(offset_) +
                                                      " is not known."};
        }
        name_ = info->name;
        FORNAX_RETURN_IF_ERROR(TakeAll(info->first_operand, info->num_operands));
        if (position_ != words_.size()) {
            return Bad("has " + std::to_string(words_.size() - position_) + " words too many");
        }
        return ids_;
    }

  private:
    Error Bad(const std::string& what) const {
        return {ErrorCode::kInvalidArgument,
                name_ + " at word " + std::to_string(offset_) + " " + what + "."};
    }
    size_t left() const { return words_.size() - position_; }

    Status TakeAll(uint32_t first, uint32_t count, bool skip_result = false) {
        for (uint32_t i = first; i < first + count; ++i) {
            const OperandInfo& operand = kOperands[i];
            if (skip_result &&
                (operand.kind == kKindIdResultType || operand.kind == kKindIdResult)) {
                continue;
            }
            switch (operand.quantifier) {
                case Quantifier::kOne:
                    FORNAX_RETURN_IF_ERROR(Take(operand.kind));
                    break;
                case Quantifier::kOptional:
                    if (left() > 0) {
                        FORNAX_RETURN_IF_ERROR(Take(operand.kind));
                    }
                    break;
                case Quantifier::kAny:
                    while (left() > 0) {
                        FORNAX_RETURN_IF_ERROR(Take(operand.kind));
                    }
                    break;
            }
        }
        return OkStatus();
    }

    Status Take(uint8_t kind_index) {
        const KindInfo& kind = kKinds[kind_index];
        if (left() == 0) {
            return Bad(std::string("ends before its ") + kind.name + " operand");
        }
        switch (kind.category) {
            case Category::kId:
                return TakeId(kind_index);
            case Category::kLiteral:
                return TakeLiteral(kind_index);
            case Category::kValueEnum: {
                uint32_t value = words_[position_++];
                const EnumerantInfo* enumerant = FindEnumerant(kind, value);
                if (!enumerant) {
                    return Error{ErrorCode::kUnsupported,
                                 name_ + " at word " + std::to_string(offset_) + " uses " +
                                     kind.name + " " + std::to_string(value) +
                                     ", which is not known."};
                }
                return TakeAll(enumerant->first_parameter, enumerant->num_parameters);
            }
            case Category::kBitEnum: {
                uint32_t mask = words_[position_++];
                for (uint32_t bits = mask; bits != 0; bits &= bits - 1) {
                    uint32_t bit = bits & -bits;
                    const EnumerantInfo* enumerant = FindEnumerant(kind, bit);
                    if (!enumerant) {
                        return Error{ErrorCode::kUnsupported,
                                     name_ + " at word " + std::to_string(offset_) + " uses bit " +
                                         std::to_string(std::countr_zero(bit)) + " of " +
                                         kind.name + ", which is not known."};
                    }
                    FORNAX_RETURN_IF_ERROR(
                        TakeAll(enumerant->first_parameter, enumerant->num_parameters));
                }
                return OkStatus();
            }
            case Category::kComposite:
                if (kind_index == kKindPairLiteralIntegerIdRef) {
                    return TakeSwitchCase();
                }
                return TakeAll(kind.first_base, kind.num_bases);
        }
        return OkStatus();
    }

    Status TakeId(uint8_t kind_index) {
        uint32_t id = words_[position_];
        if (id == 0 || id >= bound_) {
            return Bad("uses id " + std::to_string(id) + ", which is not below the bound " +
                       std::to_string(bound_));
        }
        if (kind_index == kKindIdResultType) {
            ids_.result_type = id;
        }
        if (kind_index == kKindIdResult) {
            ids_.result = id;
        }
        ++position_;
        return OkStatus();
    }

    Status TakeWords(uint32_t count) {
        if (count == 0) {
            return Bad("has a literal whose type is not a scalar number");
        }
        if (left() < count) {
            return Bad("ends inside a literal");
        }
        position_ += count;
        return OkStatus();
    }

    Status TakeLiteral(uint8_t kind_index) {
        if (kind_index == kKindLiteralString) {
            uint32_t count = StringWords(words_.subspan(position_));
            if (count == 0) {
                return Bad("holds a string without an end");
            }
            position_ += count;
            return OkStatus();
        }
        if (kind_index == kKindLiteralContextDependentNumber) {
            return TakeWords(sizes_.WordsOfType(ids_.result_type));
        }
        if (kind_index == kKindLiteralSpecConstantOpInteger) {
            uint32_t opcode = words_[position_++];
            const InstructionInfo* inner = FindInstruction(opcode);
            // The operation's own operands follow it; an operation that nests another has none.
            if (!inner || opcode == static_cast<uint32_t>(spv::Op::OpSpecConstantOp)) {
                return Bad("holds opcode " + std::to_string(opcode) + ", which it may not");
            }
            return TakeAll(inner->first_operand, inner->num_operands, true);
        }
        ++position_;  // LiteralInteger, LiteralFloat, LiteralExtInstInteger
        return OkStatus();
    }

    // OpSwitch: the literal is as wide as the selector, which is the instruction's first operand.
    Status TakeSwitchCase() {
        FORNAX_RETURN_IF_ERROR(TakeWords(sizes_.WordsOfValue(words_[1])));
        return Take(kKindIdRef);
    }

    std::span<const uint32_t> words_;
    uint32_t offset_;
    uint32_t bound_;
    const LiteralSizes& sizes_;
    std::string name_;
    size_t position_ = 1;
    InstructionIds ids_;
};

}  // namespace

const InstructionInfo* FindInstruction(uint32_t opcode) {
    return Find(kInstructions, opcode);
}

const InstructionInfo* FindGlslInstruction(uint32_t number) {
    return Find(kGlslInstructions, number);
}

std::string OpcodeName(uint32_t opcode) {
    const InstructionInfo* info = FindInstruction(opcode);
    return info ? info->name : "Opcode " + std::to_string(opcode);
}

std::string GlslName(uint32_t number) {
    const InstructionInfo* info = FindGlslInstruction(number);
    return "GLSL.std.450 " + (info ? std::string(info->name) : std::to_string(number));
}

std::string CapabilityName(uint32_t value) {
    return EnumerantName(kKindCapability, value);
}

std::string StorageClassName(uint32_t value) {
    return EnumerantName(kKindStorageClass, value);
}

std::string DecorationName(uint32_t value) {
    return EnumerantName(kKindDecoration, value);
}

std::string BuiltInName(uint32_t value) {
    return EnumerantName(kKindBuiltIn, value);
}

std::string ExecutionModeName(uint32_t value) {
    return EnumerantName(kKindExecutionMode, value);
}

Result<InstructionIds> CheckInstruction(std::span<const uint32_t> words,
                                        uint32_t offset,
                                        uint32_t bound,
                                        const LiteralSizes& sizes) {
    return Walker(words, offset, bound, sizes).Run();
}

std::string LiteralString(std::span<const uint32_t> words, uint32_t* num_words) {
    std::string text;
    uint32_t count = StringWords(words);
    for (uint32_t i = 0; i < count; ++i) {
        for (int byte = 0; byte < 4; ++byte) {
            char c = static_cast<char>(words[i] >> (8 * byte) & 0xff);
            if (c == 0) {
                break;
            }
            text.push_back(c);
        }
    }
    if (num_words) {
        *num_words = count;
    }
    return text;
}

}  // namespace fornax::kernel::spirv
