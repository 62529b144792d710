// From words to instructions, decorations and functions.
#include "compiler/kernel/spirv/module.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

constexpr uint32_t kMinVersion = 0x00010000;
constexpr uint32_t kMaxVersion = 0x00010600;

class KnownSizes : public LiteralSizes {
  public:
    void Add(const Inst& inst) {
        if (inst.op == Op::OpTypeInt || inst.op == Op::OpTypeFloat) {
            type_words_[inst.result] = inst[0] > 32 ? 2 : 1;
        } else if (inst.type != 0 && inst.result != 0) {
            value_type_[inst.result] = inst.type;
        }
    }
    uint32_t WordsOfType(uint32_t type_id) const override {
        auto it = type_words_.find(type_id);
        return it == type_words_.end() ? 0 : it->second;
    }
    uint32_t WordsOfValue(uint32_t id) const override {
        auto it = value_type_.find(id);
        return it == value_type_.end() ? 0 : WordsOfType(it->second);
    }

  private:
    std::unordered_map<uint32_t, uint32_t> type_words_;
    std::unordered_map<uint32_t, uint32_t> value_type_;
};

bool IsTerminator(Op op) {
    switch (op) {
        case Op::OpBranch:
        case Op::OpBranchConditional:
        case Op::OpSwitch:
        case Op::OpReturn:
        case Op::OpReturnValue:
        case Op::OpKill:
        case Op::OpUnreachable:
        case Op::OpTerminateInvocation:
            return true;
        default:
            return false;
    }
}

}  // namespace

Error Invalid(const Inst& inst, const std::string& what) {
    return {ErrorCode::kInvalidArgument, OpcodeName(static_cast<uint32_t>(inst.op)) + " at word " +
                                             std::to_string(inst.offset) + " " + what + "."};
}

Error Unsupported(const Inst& inst, const std::string& what) {
    return {ErrorCode::kUnsupported, OpcodeName(static_cast<uint32_t>(inst.op)) + " at word " +
                                         std::to_string(inst.offset) + " " + what + "."};
}

Result<Module> Module::Parse(std::span<const uint32_t> words) {
    Module module;
    // SPIR-V 1.6, section 2.3, Physical Layout.
    if (words.size() < 5) {
        return Error{ErrorCode::kInvalidArgument, "The SPIR-V module has no complete header."};
    }
    if (words.size() > kReaderLimits.module_words) {
        return Error{ErrorCode::kInvalidArgument,
                     "The SPIR-V module has " + std::to_string(words.size()) +
                         " words, and the limit is " + std::to_string(kReaderLimits.module_words) +
                         "."};
    }
    if (words[0] != spv::MagicNumber) {
        return Error{ErrorCode::kInvalidArgument, "The module does not begin with SPIR-V's magic."};
    }
    if (words[1] < kMinVersion || words[1] > kMaxVersion) {
        return Error{ErrorCode::kUnsupported, "The module is of SPIR-V version " +
                                                  std::to_string(words[1] >> 16 & 0xff) + "." +
                                                  std::to_string(words[1] >> 8 & 0xff) +
                                                  "; versions 1.0 to 1.6 are supported."};
    }
    module.bound_ = words[3];
    if (module.bound_ == 0 || module.bound_ > kReaderLimits.ids) {
        return Error{ErrorCode::kInvalidArgument,
                     "The module's id bound is " + std::to_string(module.bound_) +
                         ", and the limit is " + std::to_string(kReaderLimits.ids) + "."};
    }
    FORNAX_RETURN_IF_ERROR(module.ParseInstructions(words));
    FORNAX_RETURN_IF_ERROR(module.CollectDecorations());
    FORNAX_RETURN_IF_ERROR(module.CutFunctions());
    return module;
}

Status Module::ParseInstructions(std::span<const uint32_t> words) {
    defs_.assign(bound_, 0);
    KnownSizes sizes;
    bool in_functions = false;
    for (size_t at = 5; at < words.size();) {
        const uint32_t count = words[at] >> 16;
        const auto offset = static_cast<uint32_t>(at);
        if (count == 0 || count > words.size() - at) {
            return Error{ErrorCode::kInvalidArgument,
                         "The instruction at word " + std::to_string(at) + " has " +
                             std::to_string(count) + " words, and " +
                             std::to_string(words.size() - at) + " are left."};
        }
        std::span<const uint32_t> all = words.subspan(at, count);
        FORNAX_ASSIGN_OR_RETURN(InstructionIds ids, CheckInstruction(all, offset, bound_, sizes));
        Inst inst;
        inst.op = static_cast<Op>(all[0] & 0xffff);
        inst.offset = offset;
        inst.type = ids.result_type;
        inst.result = ids.result;
        inst.operands = all.subspan(1 + (ids.result_type != 0) + (ids.result != 0));
        sizes.Add(inst);
        if (inst.op == Op::OpFunction && !in_functions) {
            in_functions = true;
            num_globals_ = insts_.size();
        }
        insts_.push_back(inst);
        if (inst.result != 0) {
            if (defs_[inst.result] != 0) {
                return Invalid(inst, "defines id " + std::to_string(inst.result) + " again");
            }
            defs_[inst.result] = static_cast<uint32_t>(insts_.size());
        }
        at += count;
    }
    if (!in_functions) {
        num_globals_ = insts_.size();
    }
    return OkStatus();
}

Status Module::CollectDecorations() {
    std::unordered_map<uint32_t, std::vector<uint32_t>> groups;
    for (const Inst& inst : globals()) {
        switch (inst.op) {
            case Op::OpDecorate:
            case Op::OpDecorateId:
            case Op::OpDecorateString:
                decorations_[inst[0]].push_back({Decoration::kNoMember,
                                                 static_cast<spv::Decoration>(inst[1]),
                                                 inst.operands.subspan(2)});
                break;
            case Op::OpMemberDecorate:
            case Op::OpMemberDecorateString:
            case Op::OpMemberDecorateIdEXT:
                decorations_[inst[0]].push_back(
                    {inst[1], static_cast<spv::Decoration>(inst[2]), inst.operands.subspan(3)});
                break;
            default:
                break;
        }
    }
    // Groups hand their decorations to their targets; the group's are complete by now.
    uint64_t copied = 0;
    for (const Inst& inst : globals()) {
        const bool members = inst.op == Op::OpGroupMemberDecorate;
        if (inst.op != Op::OpGroupDecorate && !members) {
            continue;
        }
        const std::vector<Decoration> group = decorations_[inst[0]];
        for (size_t i = 1; i < inst.size(); i += members ? 2 : 1) {
            copied += group.size();
            if (copied > kReaderLimits.instructions) {
                return Invalid(inst, "takes the decorations of groups beyond the limit of " +
                                         std::to_string(kReaderLimits.instructions));
            }
            for (Decoration decoration : group) {
                if (members) {
                    decoration.member = inst[i + 1];
                }
                decorations_[inst[i]].push_back(decoration);
            }
        }
    }
    return OkStatus();
}

Status Module::CutFunctions() {
    Function* function = nullptr;
    Block* block = nullptr;
    for (uint32_t i = static_cast<uint32_t>(num_globals_); i < insts_.size(); ++i) {
        const Inst& inst = insts_[i];
        switch (inst.op) {
            case Op::OpFunction:
                if (function) {
                    return Invalid(inst, "begins inside another function");
                }
                function = &functions_[inst.result];
                function->id = inst.result;
                function->result_type = inst.type;
                continue;
            case Op::OpFunctionEnd:
                if (!function || block) {
                    return Invalid(inst, "does not end a complete function");
                }
                function = nullptr;
                continue;
            case Op::OpFunctionParameter:
                if (!function || block || function->entry_label != 0) {
                    return Invalid(inst, "is not at the beginning of a function");
                }
                function->params.push_back(inst.result);
                continue;
            case Op::OpLabel:
                if (!function || block) {
                    return Invalid(inst, "begins a block inside another");
                }
                if (function->entry_label == 0) {
                    function->entry_label = inst.result;
                }
                block = &function->blocks[inst.result];
                block->first = i + 1;
                continue;
            default:
                break;
        }
        if (inst.op == Op::OpLine || inst.op == Op::OpNoLine || inst.op == Op::OpNop) {
            continue;
        }
        if (!block) {
            // Instructions without meaning may stand between functions (SPV_KHR_non_semantic_info).
            // Slang and DXC write those of debug information before, between and behind the blocks
            // of a function as well, and spirv-val accepts that.
            if (IsNonSemantic(inst)) {
                continue;
            }
            return Invalid(inst, "stands outside a block");
        }
        if (IsTerminator(inst.op)) {
            block->end = i + 1;
            block = nullptr;
        }
    }
    if (function) {
        return Error{ErrorCode::kInvalidArgument, "The module ends inside a function."};
    }
    return OkStatus();
}

const Function* Module::FindFunction(uint32_t id) const {
    auto it = functions_.find(id);
    return it == functions_.end() ? nullptr : &it->second;
}

std::span<const Decoration> Module::decorations(uint32_t id) const {
    auto it = decorations_.find(id);
    return it == decorations_.end() ? std::span<const Decoration>() : it->second;
}

const Decoration* Module::FindDecoration(uint32_t id, spv::Decoration kind, uint32_t member) const {
    for (const Decoration& decoration : decorations(id)) {
        if (decoration.kind == kind && decoration.member == member) {
            return &decoration;
        }
    }
    return nullptr;
}

bool Module::IsNonSemantic(const Inst& inst) const {
    const bool extended = inst.op == Op::OpExtInst || inst.op == Op::OpExtInstWithForwardRefsKHR;
    const Inst* import = extended ? Find(inst[0]) : nullptr;
    return import && import->op == Op::OpExtInstImport &&
           LiteralString(import->operands).starts_with("NonSemantic.");
}

bool Module::IsGlslImport(uint32_t id) const {
    const Inst* import = Find(id);
    return import && import->op == Op::OpExtInstImport &&
           LiteralString(import->operands) == "GLSL.std.450";
}

Result<const Inst*> Module::FindEntryPoint(const std::string& name) const {
    for (const Inst& inst : globals()) {
        if (inst.op != Op::OpEntryPoint || LiteralString(inst.operands.subspan(2)) != name) {
            continue;
        }
        if (static_cast<spv::ExecutionModel>(inst[0]) == spv::ExecutionModel::GLCompute) {
            return &inst;
        }
    }
    return Error{ErrorCode::kInvalidArgument,
                 "The module has no compute entry point \"" + name + "\"."};
}

}  // namespace fornax::kernel::spirv
