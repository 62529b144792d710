// The kernel IR as text, for tests, for FORNAX_KERNEL_DUMP-like tools and for people. One
// instruction a line, two spaces a nesting level, so that a diff of two dumps shows what a pass
// did.
//
//   kernel    := "kernel" string {attribute} "{" {binding | local | data} body "}"
//   attribute := "workgroup_size" "(" int "," int "," int ")" | "subgroup_size" "(" int ")"
//              | "shared" "(" int ")" | "zero_shared" | "push_constants" "(" int ")" | "robust"
//   binding   := "binding" int ":" word "set" "(" int ")"          word: "storage_buffer", ...
//                "binding" "(" int ")" "count" "(" int ")" "offset" "(" int ")"
//                ["dynamic" "(" int ")"] ["readonly"]
//   local     := "local" int ":" type "[" int "]"
//   data      := "data" hexstring           several follow one another
//   body      := "body" block
//   block     := "{" {instruction} "}"
//   inst      := [value {"," value} "="] operation {flag}
//   value     := name ":" type              name := "%" word; printed names count up from %0
//   operation := "const" literal | "builtin" word
//              | ("buffer" | "load_descriptor") int "," name the binding's index; the array element
//                                                            or the offset
//              | ("load_local" | "store_local") int "," names     the local's index, the operands
//              | ("atomic_buffer" | "atomic_shared") word "," names
//              | op word ["cluster" "(" int ")"] "," names   reductions and scans over lanes
//              | op [names] ["align" "(" int ")"]            align: loads and stores of memory
//              | "if" [label] name block ["else" block]      no else: one that only yields nothing
//              | "switch" [label] name "default" block {"case" int block}
//              | "loop" [label] "(" inits ")" block "continuing" "(" [values] ")" block
//              | "scope" [label] block
//              | ("exit" | "continue") label [names]
//   inits     := [value "=" name {"," value "=" name}]       a loop's parameters, initial values
//   label     := "@" int                                     on constructs that are a target
//   flag      := "no_contraction" | "volatile" | "nonuniform" | "unroll" | "dont_unroll"
//              | "dont_flatten"                              a construct's flags: before its
//              "("/name
//   literal   := "true" | "false" | int | float | "0x" bits
// A comment runs from "//" or ";" to the end of the line.
#include <charconv>
#include <cmath>

#include "base/half.h"
#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/ir/group.h"
#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/text_tables.h"

namespace fornax::kernel::ir {

namespace {

class Printer {
  public:
    explicit Printer(const Kernel& kernel)
        : kernel_(kernel),
          names_(kernel.num_values(), UINT32_MAX),
          labels_(kernel.num_insts(), kNoLabel) {}

    std::string Print() {
        FindTargets(kernel_.body);
        PrintHeader();
        out_ += "  body ";
        PrintBlock(kernel_.body, 1);
        out_ += "\n}\n";
        return std::move(out_);
    }

  private:
    static constexpr uint32_t kNoLabel = UINT32_MAX;
    static constexpr uint32_t kTargeted = UINT32_MAX - 1;

    void Number(uint64_t number) {
        char buffer[24];
        auto end = std::to_chars(buffer, std::end(buffer), number).ptr;
        out_.append(buffer, end);
    }
    void SignedNumber(int64_t number) {
        char buffer[24];
        auto end = std::to_chars(buffer, std::end(buffer), number).ptr;
        out_.append(buffer, end);
    }
    void Argument(const char* word, uint64_t number) {
        out_ += ' ';
        out_ += word;
        out_ += '(';
        Number(number);
        out_ += ')';
    }
    void Indent(uint32_t depth) { out_.append(size_t{depth} * 2, ' '); }

    // Marks the constructs that an exit or a continue names: only those print a label.
    void FindTargets(BlockId block) {
        for (InstId id : kernel_.block(block).insts) {
            const Instruction& inst = kernel_.inst(id);
            if ((inst.op == Op::kExit || inst.op == Op::kContinue) &&
                inst.target.value() < labels_.size()) {
                labels_[inst.target.value()] = kTargeted;
            }
            for (BlockId inner : inst.blocks) {
                FindTargets(inner);
            }
        }
    }

    void PrintHeader() {
        out_ += "kernel \"";
        for (char c : kernel_.name) {
            if (c == '"' || c == '\\') {
                out_ += '\\';
            }
            out_ += c == '\n' ? ' ' : c;
        }
        out_ += "\" workgroup_size(";
        Number(kernel_.workgroup_size[0]);
        out_ += ", ";
        Number(kernel_.workgroup_size[1]);
        out_ += ", ";
        Number(kernel_.workgroup_size[2]);
        out_ += ')';
        Argument("subgroup_size", kernel_.subgroup_size);
        if (kernel_.shared_bytes) {
            Argument("shared", kernel_.shared_bytes);
        }
        if (kernel_.zero_shared) {
            out_ += " zero_shared";
        }
        if (kernel_.push_constant_bytes) {
            Argument("push_constants", kernel_.push_constant_bytes);
        }
        if (kernel_.robust_buffer_access) {
            out_ += " robust";
        }
        out_ += " {\n";
        for (size_t i = 0; i < kernel_.bindings.size(); ++i) {
            const Binding& binding = kernel_.bindings[i];
            out_ += "  binding ";
            Number(i);
            out_ += ": ";
            out_ += BindingKindName(binding.layout.kind);
            Argument("set", binding.set);
            Argument("binding", binding.binding);
            Argument("count", binding.layout.count);
            Argument("offset", binding.layout.offset_bytes);
            if (binding.layout.stride_bytes != 0) {
                Argument("stride", binding.layout.stride_bytes);
            }
            if (binding.layout.inline_bytes != 0) {
                Argument("inline", binding.layout.inline_bytes);
            }
            if (binding.layout.first_dynamic_offset != BindingLayout::kNotDynamic) {
                Argument("dynamic", binding.layout.first_dynamic_offset);
            }
            if (binding.layout.variable_count) {
                out_ += " variable";
            }
            if (!binding.writable) {
                out_ += " readonly";
            }
            out_ += '\n';
        }
        for (size_t i = 0; i < kernel_.locals.size(); ++i) {
            out_ += "  local ";
            Number(i);
            out_ += ": ";
            out_ += TypeName(kernel_.locals[i].type);
            out_ += '[';
            Number(kernel_.locals[i].count);
            out_ += "]\n";
        }
        constexpr char kHex[] = "0123456789abcdef";
        for (size_t i = 0; i < kernel_.constant_data.size(); ++i) {
            if (i % 32 == 0) {
                out_ += i ? "\"\n  data \"" : "  data \"";
            }
            out_ += kHex[kernel_.constant_data[i] >> 4];
            out_ += kHex[kernel_.constant_data[i] & 15];
        }
        if (!kernel_.constant_data.empty()) {
            out_ += "\"\n";
        }
    }

    void Define(ValueId id) {
        names_[id.value()] = next_name_++;
        Name(id);
        out_ += ':';
        out_ += TypeName(kernel_.type(id));
    }
    void Name(ValueId id) {
        out_ += '%';
        // A use that no definition precedes is the verifier's business; dumps must survive it.
        if (id.value() < names_.size() && names_[id.value()] != UINT32_MAX) {
            Number(names_[id.value()]);
        } else {
            out_ += "undefined";
        }
    }
    void Names(std::span<const ValueId> ids, const char* before) {
        for (ValueId id : ids) {
            out_ += before;
            Name(id);
            before = ", ";
        }
    }

    void PrintFlags(uint8_t flags) {
        for (const FlagName& flag : kFlagNames) {
            if (flags & flag.bit) {
                out_ += ' ';
                out_ += flag.text;
            }
        }
    }

    void PrintLabel(InstId id) {
        if (labels_[id.value()] == kNoLabel) {
            return;
        }
        labels_[id.value()] = next_label_++;
        out_ += " @";
        Number(labels_[id.value()]);
    }

    void PrintConst(Type type, uint64_t bits) {
        out_ += ' ';
        if (type == Type::kBool) {
            out_ += bits ? "true" : "false";
            return;
        }
        if (IsInteger(type)) {
            SignedNumber(SignExtend(bits, BitWidth(type)));
            return;
        }
        char buffer[64];
        char* end = buffer;
        if (type == Type::kF32 &&
            std::isfinite(std::bit_cast<float>(static_cast<uint32_t>(bits)))) {
            end = std::to_chars(buffer, std::end(buffer),
                                std::bit_cast<float>(static_cast<uint32_t>(bits)))
                      .ptr;
        } else if (type == Type::kF64 && std::isfinite(std::bit_cast<double>(bits))) {
            end = std::to_chars(buffer, std::end(buffer), std::bit_cast<double>(bits)).ptr;
        } else if (type == Type::kF16 && std::isfinite(HalfToDouble(static_cast<uint16_t>(bits)))) {
            end = std::to_chars(buffer, std::end(buffer), HalfToFloat(static_cast<uint16_t>(bits)))
                      .ptr;
        }
        if (end == buffer) {
            out_ += "0x";
            end = std::to_chars(buffer, std::end(buffer), bits, 16).ptr;
            out_.append(buffer, end);
            return;
        }
        std::string_view text(buffer, static_cast<size_t>(end - buffer));
        out_ += text;
        if (text.find_first_of(".e") == text.npos) {
            out_ += ".0";
        }
    }

    void PrintBlock(BlockId block, uint32_t depth) {
        out_ += "{\n";
        for (InstId id : kernel_.block(block).insts) {
            PrintInst(id, depth + 1);
        }
        Indent(depth);
        out_ += '}';
    }

    bool OnlyYieldsNothing(BlockId block) const {
        const auto& insts = kernel_.block(block).insts;
        return insts.size() == 1 && kernel_.inst(insts[0]).op == Op::kYield &&
               kernel_.inst(insts[0]).operands.empty();
    }

    void PrintInst(InstId id, uint32_t depth) {
        const Instruction& inst = kernel_.inst(id);
        Indent(depth);
        for (size_t i = 0; i < inst.results.size(); ++i) {
            if (i) {
                out_ += ", ";
            }
            Define(inst.results[i]);
        }
        if (!inst.results.empty()) {
            out_ += " = ";
        }
        out_ += InfoOf(inst.op).text;
        if (HasProperty(inst.op, kRegions)) {
            PrintLabel(id);
            PrintFlags(inst.flags);
            PrintConstruct(inst, depth);
        } else {
            PrintSimple(inst);
            PrintFlags(inst.flags);
        }
        out_ += '\n';
    }

    void PrintConstruct(const Instruction& inst, uint32_t depth) {
        switch (inst.op) {
            case Op::kIf:
                Names(inst.operands, " ");
                out_ += ' ';
                PrintBlock(inst.blocks[0], depth);
                if (!OnlyYieldsNothing(inst.blocks[1])) {
                    out_ += " else ";
                    PrintBlock(inst.blocks[1], depth);
                }
                break;
            case Op::kSwitch:
                Names(inst.operands, " ");
                out_ += " default ";
                PrintBlock(inst.blocks[0], depth);
                for (size_t i = 1; i < inst.blocks.size(); ++i) {
                    out_ += " case ";
                    Number(inst.case_values[i - 1]);
                    out_ += ' ';
                    PrintBlock(inst.blocks[i], depth);
                }
                break;
            case Op::kLoop: {
                out_ += " (";
                const auto& params = kernel_.block(inst.blocks[0]).params;
                for (size_t i = 0; i < params.size(); ++i) {
                    if (i) {
                        out_ += ", ";
                    }
                    Define(params[i]);
                    out_ += " = ";
                    if (i < inst.operands.size()) {
                        Name(inst.operands[i]);
                    }
                }
                out_ += ") ";
                PrintBlock(inst.blocks[0], depth);
                out_ += " continuing (";
                const auto& continuing = kernel_.block(inst.blocks[1]).params;
                for (size_t i = 0; i < continuing.size(); ++i) {
                    if (i) {
                        out_ += ", ";
                    }
                    Define(continuing[i]);
                }
                out_ += ") ";
                PrintBlock(inst.blocks[1], depth);
                break;
            }
            default:
                out_ += ' ';
                PrintBlock(inst.blocks[0], depth);
                break;
        }
    }

    void PrintSimple(const Instruction& inst) {
        const char* separator = " ";
        switch (ImmKindOf(inst.op)) {
            case ImmKind::kNone:
            case ImmKind::kAlignment:
                break;
            case ImmKind::kBits:
                PrintConst(kernel_.type(inst.results[0]), inst.imm);
                break;
            case ImmKind::kBuiltin:
                out_ += ' ';
                out_ += BuiltinName(static_cast<BuiltinId>(inst.imm));
                break;
            case ImmKind::kAtomicOp:
                out_ += ' ';
                out_ += AtomicOpName(static_cast<AtomicOp>(inst.imm));
                separator = ", ";
                break;
            case ImmKind::kGroupOp:
                out_ += ' ';
                out_ += GroupOpName(GroupOpOf(inst));
                if (ClusterSizeOf(inst) != 0) {
                    Argument("cluster", ClusterSizeOf(inst));
                }
                separator = ", ";
                break;
            case ImmKind::kIndex:
                out_ += ' ';
                Number(inst.imm);
                separator = ", ";
                break;
            case ImmKind::kTarget:
                out_ += " @";
                if (inst.target.value() < labels_.size() &&
                    labels_[inst.target.value()] < kTargeted) {
                    Number(labels_[inst.target.value()]);
                } else {
                    out_ += "undefined";
                }
                break;
        }
        Names(inst.operands, separator);
        if (ImmKindOf(inst.op) == ImmKind::kAlignment) {
            Argument("align", inst.imm);
        }
    }

    const Kernel& kernel_;
    std::vector<uint32_t> names_;   // by value
    std::vector<uint32_t> labels_;  // by instruction
    uint32_t next_name_ = 0;
    uint32_t next_label_ = 0;
    std::string out_;
};

}  // namespace

std::string PrintKernel(const Kernel& kernel) {
    return Printer(kernel).Print();
}

}  // namespace fornax::kernel::ir
