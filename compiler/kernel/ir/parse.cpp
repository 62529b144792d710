// Reads the text form of the kernel IR (grammar: print.cpp). The text is untrusted: nesting is
// bounded, every mistake gives a sentence with its line, and what parses still passes the verifier.
#include <charconv>
#include <unordered_map>

#include "base/half.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/group.h"
#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/text_tables.h"
#include "compiler/kernel/ir/token_parser.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel::ir {

namespace {

class Parser : TokenParser {
  public:
    explicit Parser(std::string_view text) : TokenParser(text) {
        for (size_t i = 0; i < kNumOps; ++i) {
            ops_.emplace(InfoOf(static_cast<Op>(i)).text, static_cast<Op>(i));
        }
    }

    Result<Kernel> Parse() {
        if (!ParseKernelText()) {
            return Error{ErrorCode::kInvalidArgument, std::move(error_)};
        }
        FORNAX_RETURN_IF_ERROR(Verify(kernel_));
        return std::move(kernel_);
    }

  private:
    static constexpr size_t kNumOps = 0
#define FORNAX_OP(name, text, operands, results, properties) +1
#include "compiler/kernel/ir/ops.def"
#undef FORNAX_OP
        ;

    struct Definition {
        std::string_view name;
        Type type;
        uint32_t line;
    };

    bool ParseKernelText() {
        if (!ExpectWord("kernel")) {
            return false;
        }
        if (token_.kind != TokenKind::kString) {
            return FailExpected("the kernel's name in quotes");
        }
        for (size_t i = 0; i < token_.text.size(); ++i) {
            if (token_.text[i] == '\\' && i + 1 < token_.text.size()) {
                ++i;
            }
            kernel_.name += token_.text[i];
        }
        Advance();
        while (!At('{')) {
            if (!ParseAttribute()) {
                return false;
            }
        }
        Advance();
        while (!AtWord("body")) {
            if (!ParseDeclaration()) {
                return false;
            }
        }
        Advance();
        kernel_.body = kernel_.NewBlock({});
        if (!ParseBlock(kernel_.body) || !Expect('}')) {
            return false;
        }
        return token_.kind == TokenKind::kEnd || FailExpected("the end of the text");
    }

    bool ParseAttribute() {
        if (AcceptWord("workgroup_size")) {
            auto& size = kernel_.workgroup_size;
            return Expect('(') && ParseNumber32(&size[0]) && Expect(',') &&
                   ParseNumber32(&size[1]) && Expect(',') && ParseNumber32(&size[2]) && Expect(')');
        }
        if (AcceptWord("subgroup_size")) {
            return ParseArgument(&kernel_.subgroup_size);
        }
        if (AcceptWord("shared")) {
            return ParseArgument(&kernel_.shared_bytes);
        }
        if (AcceptWord("push_constants")) {
            return ParseArgument(&kernel_.push_constant_bytes);
        }
        if (AcceptWord("zero_shared")) {
            return kernel_.zero_shared = true;
        }
        if (AcceptWord("robust")) {
            return kernel_.robust_buffer_access = true;
        }
        return FailExpected("an attribute of the kernel or '{'");
    }

    bool ParseDeclaration() {
        uint64_t index = 0;
        if (AcceptWord("binding")) {
            if (!ParseNumber(&index)) {
                return false;
            }
            if (index != kernel_.bindings.size()) {
                return Fail("bindings are numbered in order; this is number " +
                            std::to_string(kernel_.bindings.size()));
            }
            return Expect(':') && ParseBinding(kernel_.bindings.emplace_back());
        }
        if (AcceptWord("local")) {
            if (!ParseNumber(&index)) {
                return false;
            }
            if (index != kernel_.locals.size()) {
                return Fail("locals are numbered in order; this is number " +
                            std::to_string(kernel_.locals.size()));
            }
            Local& local = kernel_.locals.emplace_back();
            return Expect(':') && ParseType(&local.type) && Expect('[') &&
                   ParseNumber32(&local.count) && Expect(']');
        }
        if (AcceptWord("data")) {
            return ParseData();
        }
        return FailExpected("'binding', 'local', 'data' or 'body'");
    }

    bool ParseBinding(Binding& binding) {
        uint32_t kind = 0;
        while (kind < kNumBindingKinds &&
               !AcceptWord(BindingKindName(static_cast<BindingLayout::Kind>(kind)))) {
            ++kind;
        }
        if (kind == kNumBindingKinds) {
            return FailExpected("a kind of descriptor, such as 'storage_buffer'");
        }
        binding.layout.kind = static_cast<BindingLayout::Kind>(kind);
        if (!ExpectWord("set") || !ParseArgument(&binding.set) || !ExpectWord("binding") ||
            !ParseArgument(&binding.binding)) {
            return false;
        }
        binding.layout.binding = binding.binding;
        if (!ExpectWord("count") || !ParseArgument(&binding.layout.count) ||
            !ExpectWord("offset") || !ParseArgument(&binding.layout.offset_bytes)) {
            return false;
        }
        if (AcceptWord("stride") && !ParseArgument(&binding.layout.stride_bytes)) {
            return false;
        }
        if (AcceptWord("inline") && !ParseArgument(&binding.layout.inline_bytes)) {
            return false;
        }
        if (AcceptWord("dynamic") && !ParseArgument(&binding.layout.first_dynamic_offset)) {
            return false;
        }
        binding.layout.variable_count = AcceptWord("variable");
        binding.writable = !AcceptWord("readonly");
        return true;
    }

    bool ParseData() {
        if (token_.kind != TokenKind::kString || token_.text.size() % 2) {
            return FailExpected("a string of pairs of hexadecimal digits");
        }
        for (size_t i = 0; i < token_.text.size(); i += 2) {
            uint8_t byte = 0;
            const char* begin = token_.text.data() + i;
            if (std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2) {
                return FailExpected("a string of pairs of hexadecimal digits");
            }
            kernel_.constant_data.push_back(byte);
        }
        Advance();
        return true;
    }

    bool Define(const Definition& definition, ValueId id) {
        if (!values_.emplace(definition.name, id).second) {
            return FailAt(definition.line, "the value %" + std::string(definition.name) +
                                               " is defined a second time");
        }
        return true;
    }
    bool ParseDefinition(Definition* definition) {
        if (token_.kind != TokenKind::kName) {
            return FailExpected("a value's name");
        }
        *definition = {token_.text, Type::kVoid, token_.line};
        Advance();
        return Expect(':') && ParseType(&definition->type);
    }
    bool ParseName(ValueId* id) {
        if (token_.kind != TokenKind::kName) {
            return FailExpected("a value's name");
        }
        auto found = values_.find(token_.text);
        if (found == values_.end()) {
            return Fail("the value %" + std::string(token_.text) + " is not defined before");
        }
        *id = found->second;
        Advance();
        return true;
    }
    bool ParseNames(std::vector<ValueId>* ids) {
        do {
            if (!ParseName(&ids->emplace_back())) {
                return false;
            }
        } while (Accept(','));
        return true;
    }

    bool ParseBlock(BlockId block) {
        if (++depth_ > kMaxNesting) {
            return Fail("constructs are nested more than " + std::to_string(kMaxNesting) +
                        " levels deep");
        }
        if (!Expect('{')) {
            return false;
        }
        while (!At('}')) {
            if (!ParseInst(block)) {
                return false;
            }
        }
        Advance();
        --depth_;
        return true;
    }

    bool ParseInst(BlockId block) {
        std::vector<Definition> results;
        if (token_.kind == TokenKind::kName) {
            do {
                if (!ParseDefinition(&results.emplace_back())) {
                    return false;
                }
            } while (Accept(','));
            if (!Expect('=')) {
                return false;
            }
        }
        if (token_.kind != TokenKind::kWord) {
            return FailExpected("an operation");
        }
        auto found = ops_.find(token_.text);
        if (found == ops_.end()) {
            return FailExpected("an operation");
        }
        Advance();
        std::vector<Type> types;
        for (const Definition& result : results) {
            types.push_back(result.type);
        }
        InstId id = kernel_.NewInst(found->second, {}, types);
        kernel_.block(block).insts.push_back(id);
        for (size_t i = 0; i < results.size(); ++i) {
            if (!Define(results[i], kernel_.inst(id).results[i])) {
                return false;
            }
        }
        if (HasProperty(found->second, kRegions)) {
            return ParseConstruct(id);
        }
        return ParseSimple(id) && ParseFlags(id);
    }

    bool ParseFlags(InstId id) {
        while (token_.kind == TokenKind::kWord) {
            const FlagName* found = nullptr;
            for (const FlagName& flag : kFlagNames) {
                if (token_.text == flag.text) {
                    found = &flag;
                }
            }
            if (!found) {
                return true;
            }
            kernel_.inst(id).flags |= found->bit;
            Advance();
        }
        return true;
    }

    bool ParseConst(Type type, uint64_t* bits) {
        if (type == Type::kBool) {
            *bits = AtWord("true");
            return AcceptWord("true") || AcceptWord("false") || FailExpected("'true' or 'false'");
        }
        if (token_.kind != TokenKind::kNumber) {
            return FailExpected("a number");
        }
        std::string_view text = token_.text;
        uint32_t width = BitWidth(type);
        if (width == 0) {
            return Fail(std::string("a constant cannot be of type ") + TypeName(type));
        }
        uint64_t mask = ~uint64_t{0} >> (64 - width);
        if (IsFloat(type) && !text.starts_with("0x")) {
            double wide = 0;
            float single = 0;
            const char* end = text.data() + text.size();
            auto read = type == Type::kF32 ? std::from_chars(text.data(), end, single)
                                           : std::from_chars(text.data(), end, wide);
            if (read.ec != std::errc() || read.ptr != end) {
                return FailExpected("a float within the type's range");
            }
            *bits = type == Type::kF32   ? std::bit_cast<uint32_t>(single)
                    : type == Type::kF16 ? DoubleToHalf(wide)
                                         : std::bit_cast<uint64_t>(wide);
        } else {
            bool negative = text.starts_with("-");
            if (!ReadUnsigned(text.substr(negative ? 1 : 0), bits)) {
                return FailExpected("an integer");
            }
            if (*bits > (negative ? mask / 2 + 1 : mask)) {
                return Fail("the constant " + std::string(text) + " does not fit into " +
                            TypeName(type));
            }
            if (negative) {
                *bits = (~*bits + 1) & mask;
            }
        }
        Advance();
        return true;
    }

    // Finds the word in an enumeration of `count` names.
    template <typename NameOf>
    bool ParseEnum(uint32_t count, NameOf name_of, const char* what, uint64_t* imm) {
        for (uint32_t i = 0; i < count; ++i) {
            if (AcceptWord(name_of(i))) {
                *imm = i;
                return true;
            }
        }
        return FailExpected(what);
    }

    bool ParseSimple(InstId id) {
        Op op = kernel_.inst(id).op;
        uint64_t imm = 0;
        // After an operation without operands a name begins the next instruction.
        bool more = token_.kind == TokenKind::kName && InfoOf(op).operands != 0;
        switch (ImmKindOf(op)) {
            case ImmKind::kNone:
            case ImmKind::kAlignment:
                break;
            case ImmKind::kBits: {
                const auto& results = kernel_.inst(id).results;
                if (results.size() != 1) {
                    return Fail("const gives one value");
                }
                if (!ParseConst(kernel_.type(results[0]), &imm)) {
                    return false;
                }
                more = false;
                break;
            }
            case ImmKind::kBuiltin:
                if (!ParseEnum(
                        kNumBuiltins,
                        [](uint32_t i) { return BuiltinName(static_cast<BuiltinId>(i)); },
                        "a builtin", &imm)) {
                    return false;
                }
                more = false;
                break;
            case ImmKind::kAtomicOp:
                if (!ParseEnum(
                        kNumAtomicOps,
                        [](uint32_t i) { return AtomicOpName(static_cast<AtomicOp>(i)); },
                        "an atomic operation", &imm)) {
                    return false;
                }
                more = Accept(',');
                break;
            case ImmKind::kGroupOp: {
                uint64_t group_op = 0;
                if (!ParseEnum(
                        kNumGroupOps,
                        [](uint32_t i) { return GroupOpName(static_cast<GroupOp>(i)); },
                        "a group operation", &group_op)) {
                    return false;
                }
                uint32_t cluster = 0;
                if (AcceptWord("cluster") && !ParseArgument(&cluster)) {
                    return false;
                }
                imm = GroupImm(static_cast<GroupOp>(group_op), cluster);
                more = Accept(',');
                break;
            }
            case ImmKind::kIndex:
                if (!ParseNumber(&imm)) {
                    return false;
                }
                more = Accept(',');
                break;
            case ImmKind::kTarget:
                if (!ParseTarget(id)) {
                    return false;
                }
                more = token_.kind == TokenKind::kName;
                break;
        }
        std::vector<ValueId> operands;
        if (more && !ParseNames(&operands)) {
            return false;
        }
        if (ImmKindOf(op) == ImmKind::kAlignment &&
            (!ExpectWord("align") || !Expect('(') || !ParseNumber(&imm) || !Expect(')'))) {
            return false;
        }
        Instruction& inst = kernel_.inst(id);
        inst.imm = imm;
        inst.operands = std::move(operands);
        return true;
    }

    bool ParseTarget(InstId id) {
        if (token_.kind != TokenKind::kLabel) {
            return FailExpected("a label");
        }
        for (size_t i = labels_.size(); i-- > 0;) {
            if (labels_[i].first == token_.text) {
                kernel_.inst(id).target = labels_[i].second;
                Advance();
                return true;
            }
        }
        return Fail("no enclosing construct has the label @" + std::string(token_.text));
    }

    bool ParseInner(InstId id) {
        BlockId block = kernel_.NewBlock(id);
        kernel_.inst(id).blocks.push_back(block);
        return ParseBlock(block);
    }

    bool ParseConstruct(InstId id) {
        size_t outer_labels = labels_.size();
        if (token_.kind == TokenKind::kLabel) {
            labels_.emplace_back(token_.text, id);
            Advance();
        }
        if (!ParseFlags(id) || !ParseConstructBlocks(id)) {
            return false;
        }
        labels_.resize(outer_labels);
        return true;
    }

    bool ParseConstructBlocks(InstId id) {
        ValueId operand;
        switch (kernel_.inst(id).op) {
            case Op::kIf: {
                if (!ParseName(&operand)) {
                    return false;
                }
                kernel_.inst(id).operands = {operand};
                if (!ParseInner(id)) {
                    return false;
                }
                if (AcceptWord("else")) {
                    return ParseInner(id);
                }
                BlockId block = kernel_.NewBlock(id);
                kernel_.inst(id).blocks.push_back(block);
                Builder(kernel_, block).Append(Op::kYield, {}, {});
                return true;
            }
            case Op::kSwitch:
                if (!ParseName(&operand)) {
                    return false;
                }
                kernel_.inst(id).operands = {operand};
                if (!ExpectWord("default") || !ParseInner(id)) {
                    return false;
                }
                while (AcceptWord("case")) {
                    uint64_t value = 0;
                    if (!ParseNumber(&value, UINT64_MAX)) {
                        return false;
                    }
                    kernel_.inst(id).case_values.push_back(value);
                    if (!ParseInner(id)) {
                        return false;
                    }
                }
                return true;
            case Op::kLoop:
                return ParseLoop(id);
            default:
                return ParseInner(id);
        }
    }

    bool ParseLoop(InstId id) {
        BlockId body = kernel_.NewBlock(id);
        BlockId continuing = kernel_.NewBlock(id);
        kernel_.inst(id).blocks = {body, continuing};
        if (!Expect('(')) {
            return false;
        }
        while (!Accept(')')) {
            Definition param;
            ValueId init;
            if (!ParseDefinition(&param) || !Expect('=') || !ParseName(&init) ||
                !Define(param, kernel_.AddParam(body, param.type))) {
                return false;
            }
            kernel_.inst(id).operands.push_back(init);
            if (!Accept(',') && !At(')')) {
                return FailExpected("',' or ')'");
            }
        }
        if (!ParseBlock(body) || !ExpectWord("continuing") || !Expect('(')) {
            return false;
        }
        while (!Accept(')')) {
            Definition param;
            if (!ParseDefinition(&param) ||
                !Define(param, kernel_.AddParam(continuing, param.type))) {
                return false;
            }
            if (!Accept(',') && !At(')')) {
                return FailExpected("',' or ')'");
            }
        }
        return ParseBlock(continuing);
    }

    Kernel kernel_;
    uint32_t depth_ = 0;
    std::unordered_map<std::string_view, Op> ops_;
    std::unordered_map<std::string_view, ValueId> values_;
    std::vector<std::pair<std::string_view, InstId>> labels_;  // of the constructs around
};

}  // namespace

Result<Kernel> ParseKernel(std::string_view text) {
    return Parser(text).Parse();
}

}  // namespace fornax::kernel::ir
