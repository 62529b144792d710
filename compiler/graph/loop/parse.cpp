// Reads loop kernels from text, whose form text.cpp describes. What it returns passes Verify().
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "compiler/graph/ir/parse_expr.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/limits.h"
#include "compiler/graph/loop/text.h"

namespace fornax::graph::loop {
namespace {

Error Clause(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

// One line from left to right. Its errors are clauses.
class Line {
  public:
    explicit Line(std::string_view text) : rest_(text) {}

    bool AtEnd() {
        SkipSpaces();
        return rest_.empty();
    }
    // Takes `token` if it comes next; a word only as a whole.
    bool Take(std::string_view token) {
        SkipSpaces();
        if (!rest_.starts_with(token)) {
            return false;
        }
        const bool word = IsPlainName(token);
        if (word && rest_.size() > token.size() && IsPlainName(rest_.substr(0, token.size() + 1))) {
            return false;
        }
        rest_.remove_prefix(token.size());
        return true;
    }
    Status Expect(std::string_view token) {
        return Take(token) ? OkStatus() : Status(Missing(fmt::format("'{}'", token)));
    }
    Error Missing(std::string_view what) const {
        return Clause(fmt::format("{} is missing at '{}'", what, rest_.substr(0, 20)));
    }

    // A word, or nothing where none comes.
    std::string_view Word() {
        SkipSpaces();
        size_t length = 0;
        while (length < rest_.size() && IsPlainName(rest_.substr(0, length + 1))) {
            ++length;
            if (length > kMaxName) {
                break;
            }
        }
        const std::string_view word = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return word;
    }

    Result<std::string> Name() {
        if (!Take("\"")) {
            const std::string_view word = Word();
            return word.empty() ? Result<std::string>(Missing("a name")) : std::string(word);
        }
        std::string name;
        while (!rest_.empty() && rest_[0] != '"') {
            if (!rest_.starts_with("\\x")) {
                name += rest_[0];
                rest_.remove_prefix(1);
                continue;
            }
            uint8_t byte = 0;
            const std::string_view digits = rest_.substr(2, 2);
            const auto [end, error] =
                std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
            if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) {
                return Missing("a byte of two digits");
            }
            name += static_cast<char>(byte);
            rest_.remove_prefix(4);
        }
        FORNAX_RETURN_IF_ERROR(Expect("\""));
        return name;
    }

    template <typename T>
    Result<T> Number() {
        SkipSpaces();
        T value = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (error != std::errc()) {
            return Missing("a number that fits");
        }
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
        return value;
    }

    Result<ScalarId> Scalar() {
        FORNAX_RETURN_IF_ERROR(Expect("%"));
        FORNAX_ASSIGN_OR_RETURN(const uint32_t index, Number<uint32_t>());
        return ScalarId(index);
    }

    Result<ElementType> Type() {
        const std::string_view word = Word();
        const std::optional<ElementType> type = ElementTypeByName(word);
        if (!type) {
            return Clause(fmt::format("'{}' is no element type", word));
        }
        return *type;
    }

    // An expression ends before ')' or a character of `ends` outside of its parentheses, before
    // "of", or with the line.
    Result<Expr> Expression(std::string_view ends) {
        size_t length = 0;
        int depth = 0;
        for (; length < rest_.size(); ++length) {
            const char c = rest_[length];
            if (depth == 0 && (c == ')' || ends.find(c) != std::string_view::npos ||
                               rest_.substr(length).starts_with(" of "))) {
                break;
            }
            depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        }
        FORNAX_ASSIGN_OR_RETURN(Expr expr, ParseExpr(rest_.substr(0, length)));
        rest_.remove_prefix(length);
        return expr;
    }

    // "[a,b]".
    Result<std::vector<Expr>> Expressions() {
        FORNAX_RETURN_IF_ERROR(Expect("["));
        std::vector<Expr> list;
        if (Take("]")) {
            return list;
        }
        do {
            FORNAX_ASSIGN_OR_RETURN(Expr expr, Expression(",]"));
            list.push_back(std::move(expr));
            if (list.size() > kMaxRank) {
                return Clause(fmt::format("there are more than {} dimensions", kMaxRank));
            }
        } while (Take(","));
        FORNAX_RETURN_IF_ERROR(Expect("]"));
        return list;
    }

    // "$i0 < n, $i1 < 128".
    Result<std::vector<Loop>> Loops() {
        std::vector<Loop> loops;
        do {
            FORNAX_RETURN_IF_ERROR(Expect("$"));
            const std::string_view word = Word();
            FORNAX_RETURN_IF_ERROR(Expect("<"));
            FORNAX_ASSIGN_OR_RETURN(Expr extent, Expression(","));
            loops.push_back({Symbol(fmt::format("${}", word)), std::move(extent)});
            if (loops.size() > kMaxLoops) {
                return Clause(fmt::format("there are more than {} loops", kMaxLoops));
            }
        } while (Take(","));
        return loops;
    }

  private:
    void SkipSpaces() {
        while (rest_.starts_with(' ')) {
            rest_.remove_prefix(1);
        }
    }

    std::string_view rest_;
};

class KernelParser {
  public:
    Status Parse(std::string_view text) {
        Line line(text);
        if (line.AtEnd()) {
            return OkStatus();
        }
        FORNAX_RETURN_IF_ERROR(Dispatch(line));
        return line.AtEnd() ? OkStatus() : Status(line.Missing("the end of the line"));
    }

    bool has_head() const { return has_head_; }
    Kernel& kernel() { return kernel_; }

  private:
    // What a line begins with says what it is. Scalars come before stores, and all else before
    // scalars.
    Status Dispatch(Line& line) {
        if (!has_head_) {
            FORNAX_RETURN_IF_ERROR(line.Expect("kernel"));
            return Head(line);
        }
        if (line.Take("store")) {
            return StoreLine(line);
        }
        for (const auto& [word, when] :
             {std::pair("before", When::kBefore), std::pair("each", When::kEach),
              std::pair("after", When::kAfter)}) {
            if (line.Take(word)) {
                return PhaseLine(line, when);
            }
        }
        if (!kernel_.stores.empty() || !kernel_.phases.empty()) {
            return line.Missing("'store', or a phase");
        }
        if (line.Take("%")) {
            return ScalarLine(line);
        }
        if (!kernel_.scalars.empty()) {
            return line.Missing("'%' or 'store'");
        }
        if (kernel_.sizes.empty() && line.Take("sizes")) {
            return Sizes(line);
        }
        if (line.Take("local")) {
            if (kernel_.locals.size() == kMaxLocals) {
                return Clause(fmt::format("there are more than {} local tensors", kMaxLocals));
            }
            return NameAndType(line, kernel_.locals.emplace_back());
        }
        if (kernel_.parallel.empty() && line.Take("parallel")) {
            FORNAX_ASSIGN_OR_RETURN(kernel_.parallel, line.Loops());
            return OkStatus();
        }
        if (kernel_.sequential.empty() && line.Take("sequential")) {
            FORNAX_ASSIGN_OR_RETURN(kernel_.sequential, line.Loops());
            return OkStatus();
        }
        if (kernel_.mapping == Mapping::kFlat && line.Take("rows")) {
            kernel_.mapping = Mapping::kRow;
            FORNAX_ASSIGN_OR_RETURN(kernel_.row_loops, line.Number<uint32_t>());
            return OkStatus();
        }
        if (kernel_.mapping == Mapping::kFlat && line.Take("product")) {
            kernel_.mapping = Mapping::kProduct;
            return OkStatus();
        }
        if (kernel_.mapping == Mapping::kFlat && line.Take("attention")) {
            kernel_.mapping = Mapping::kAttention;
            return OkStatus();
        }
        return line.Missing(
            "'sizes', 'local', 'parallel', 'sequential', 'rows', 'product', 'attention', '%' or "
            "'store'");
    }

    Status NameAndType(Line& line, Buffer& buffer) {
        FORNAX_ASSIGN_OR_RETURN(buffer.name, line.Name());
        FORNAX_RETURN_IF_ERROR(line.Expect(":"));
        FORNAX_ASSIGN_OR_RETURN(buffer.type.element, line.Type());
        FORNAX_ASSIGN_OR_RETURN(std::vector<Expr> dims, line.Expressions());
        buffer.type.shape = Shape(std::move(dims));
        return OkStatus();
    }

    Status PhaseLine(Line& line, When when) {
        if (kernel_.phases.size() == kMaxPhases) {
            return Clause(fmt::format("there are more than {} phases", kMaxPhases));
        }
        Phase& phase = kernel_.phases.emplace_back();
        phase.when = when;
        if (!line.AtEnd()) {
            FORNAX_ASSIGN_OR_RETURN(phase.lanes, line.Loops());
        }
        return OkStatus();
    }

    Status Head(Line& line) {
        has_head_ = true;
        FORNAX_ASSIGN_OR_RETURN(kernel_.name, line.Name());
        FORNAX_RETURN_IF_ERROR(line.Expect("("));
        if (line.Take(")")) {
            return OkStatus();
        }
        do {
            if (kernel_.buffers.size() == kMaxBuffers) {
                return Clause(fmt::format("there are more than {} buffers", kMaxBuffers));
            }
            Buffer& buffer = kernel_.buffers.emplace_back();
            buffer.written = line.Take("out");
            if (!buffer.written) {
                FORNAX_RETURN_IF_ERROR(line.Expect("in"));
            }
            FORNAX_RETURN_IF_ERROR(NameAndType(line, buffer));
        } while (line.Take(","));
        return line.Expect(")");
    }

    Status Sizes(Line& line) {
        do {
            const Symbol symbol(line.Word());
            FORNAX_RETURN_IF_ERROR(line.Expect("in"));
            Range range;
            FORNAX_ASSIGN_OR_RETURN(range.low, line.Number<int64_t>());
            FORNAX_RETURN_IF_ERROR(line.Expect(".."));
            FORNAX_ASSIGN_OR_RETURN(range.high, line.Number<int64_t>());
            if (!kernel_.sizes.emplace(symbol, range).second) {
                return Clause(fmt::format("the size {} is there twice", symbol.name()));
            }
        } while (line.Take(","));
        return OkStatus();
    }

    Result<BufferId> BufferName(Line& line) {
        FORNAX_ASSIGN_OR_RETURN(const std::string name, line.Name());
        for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
            if (kernel_.buffers[i].name == name) {
                return BufferId(i);
            }
        }
        for (size_t i = 0; i < kernel_.locals.size(); ++i) {
            if (kernel_.locals[i].name == name) {
                return BufferId(kFirstLocal + i);
            }
        }
        return Clause(fmt::format("there is no buffer '{}'", name));
    }

    // An operand's type is needed before Verify() sees its id.
    Result<ElementType> TypeOf(ScalarId id) const {
        if (!id.valid() || id.value() >= kernel_.scalars.size()) {
            return Clause(fmt::format("%{} is not computed before", id.value()));
        }
        return kernel_[id].type;
    }

    Status StoreLine(Line& line) {
        std::vector<Store>& stores =
            kernel_.phases.empty() ? kernel_.stores : kernel_.phases.back().stores;
        if (stores.size() == kMaxStores) {
            return Clause(fmt::format("there are more than {} stores", kMaxStores));
        }
        Store store;
        FORNAX_ASSIGN_OR_RETURN(store.buffer, BufferName(line));
        FORNAX_ASSIGN_OR_RETURN(store.index, line.Expressions());
        FORNAX_RETURN_IF_ERROR(line.Expect("="));
        FORNAX_ASSIGN_OR_RETURN(store.value, line.Scalar());
        if (line.Take("if")) {
            FORNAX_ASSIGN_OR_RETURN(store.condition, line.Scalar());
        }
        stores.push_back(std::move(store));
        return OkStatus();
    }

    Status ScalarLine(Line& line) {
        FORNAX_ASSIGN_OR_RETURN(const uint32_t index, line.Number<uint32_t>());
        if (index != kernel_.scalars.size()) {
            return Clause(fmt::format("%{} comes where %{} has to", index, kernel_.scalars.size()));
        }
        if (index == kMaxScalars) {
            return Clause(fmt::format("there are more than {} scalars", kMaxScalars));
        }
        FORNAX_RETURN_IF_ERROR(line.Expect("="));
        const std::string_view word = line.Word();
        FORNAX_ASSIGN_OR_RETURN(ScalarNode node, Node(line, word));
        kernel_.scalars.push_back(std::move(node));
        return OkStatus();
    }

    Result<ScalarNode> Node(Line& line, std::string_view word) {
        if (word == "constant") {
            return ConstantNode(line);
        }
        if (word == "load") {
            return LoadNode(line);
        }
        if (word == "index") {
            FORNAX_ASSIGN_OR_RETURN(Expr value, line.Expression(""));
            return ScalarNode{ElementType::kI64, Index{std::move(value)}};
        }
        if (word == "inrange") {
            FORNAX_ASSIGN_OR_RETURN(Expr value, line.Expression("<"));
            FORNAX_RETURN_IF_ERROR(line.Expect("<"));
            FORNAX_ASSIGN_OR_RETURN(Expr extent, line.Expression(""));
            return ScalarNode{ElementType::kBool, InRange{std::move(value), std::move(extent)}};
        }
        if (word == "cast") {
            return CastNode(line);
        }
        if (word == "bitcast") {
            ScalarNode node;
            Bitcast cast;
            FORNAX_ASSIGN_OR_RETURN(node.type, line.Type());
            FORNAX_ASSIGN_OR_RETURN(cast.argument, line.Scalar());
            node.value = cast;
            return node;
        }
        if (word == "reduce" || word == "position") {
            return ReduceNode(line, word == "position");
        }
        const std::optional<ScalarFunction> function = ScalarFunctionByName(word);
        if (!function) {
            return Clause(fmt::format("'{}' is no scalar", word));
        }
        return MapNode(line, *function);
    }

    static Result<ScalarNode> ConstantNode(Line& line) {
        FORNAX_ASSIGN_OR_RETURN(const ElementType type, line.Type());
        if (IsFloat(type)) {
            FORNAX_ASSIGN_OR_RETURN(const double number, line.Number<double>());
            return ScalarNode{type, Constant{Scalar::Float(number)}};
        }
        if (type == ElementType::kU64) {
            FORNAX_ASSIGN_OR_RETURN(const uint64_t integer, line.Number<uint64_t>());
            return ScalarNode{type, Constant{Scalar::Integer(static_cast<int64_t>(integer))}};
        }
        FORNAX_ASSIGN_OR_RETURN(const int64_t integer, line.Number<int64_t>());
        return ScalarNode{type, Constant{Scalar::Integer(integer)}};
    }

    Result<ScalarNode> LoadNode(Line& line) {
        Load load;
        FORNAX_ASSIGN_OR_RETURN(load.buffer, BufferName(line));
        FORNAX_ASSIGN_OR_RETURN(load.index, line.Expressions());
        if (line.Take("otherwise")) {
            FORNAX_ASSIGN_OR_RETURN(load.otherwise, line.Scalar());
        }
        const ElementType type = kernel_[load.buffer].type.element;
        return ScalarNode{type, std::move(load)};
    }

    static Result<ScalarNode> CastNode(Line& line) {
        ScalarNode node;
        Cast cast;
        FORNAX_ASSIGN_OR_RETURN(node.type, line.Type());
        FORNAX_ASSIGN_OR_RETURN(cast.argument, line.Scalar());
        if (line.Take("saturate")) {
            cast.overflow = Overflow::kSaturate;
        }
        if (line.Take("up")) {
            cast.rounding = Rounding::kUp;
        } else if (line.Take("down")) {
            cast.rounding = Rounding::kDown;
        }
        node.value = cast;
        return node;
    }

    Result<ScalarNode> MapNode(Line& line, ScalarFunction function) {
        Map map{function, {}};
        for (size_t i = 0; i < ArgumentCount(function); ++i) {
            if (i != 0) {
                FORNAX_RETURN_IF_ERROR(line.Expect(","));
            }
            FORNAX_ASSIGN_OR_RETURN(const ScalarId argument, line.Scalar());
            map.arguments.push_back(argument);
        }
        FORNAX_ASSIGN_OR_RETURN(const ElementType type, TypeOf(map.arguments.back()));
        return ScalarNode{ResultType(function, type), std::move(map)};
    }

    Result<ScalarNode> ReduceNode(Line& line, bool position) {
        const std::string_view word = line.Word();
        const std::optional<Combine> combine = CombineByName(word);
        if (!combine) {
            return Clause(fmt::format("'{}' is no combination", word));
        }
        const bool last = position && line.Take("last");
        FORNAX_ASSIGN_OR_RETURN(std::vector<Loop> loops, line.Loops());
        FORNAX_RETURN_IF_ERROR(line.Expect("of"));
        FORNAX_ASSIGN_OR_RETURN(const ScalarId body, line.Scalar());
        if (!position) {
            FORNAX_ASSIGN_OR_RETURN(const ElementType type, TypeOf(body));
            return ScalarNode{type, Reduce{*combine, std::move(loops), body}};
        }
        if (loops.size() != 1) {
            return Clause(fmt::format("a position has one loop, not {}", loops.size()));
        }
        return ScalarNode{ElementType::kI64, ArgReduce{*combine, last, loops[0], body}};
    }

    Kernel kernel_;
    bool has_head_ = false;
};

}  // namespace

Result<Kernel> ParseKernel(std::string_view text) {
    if (text.size() > kMaxKernelText) {
        return Clause(fmt::format("The text of a kernel has {} bytes, more than {}.", text.size(),
                                  kMaxKernelText));
    }
    KernelParser parser;
    for (size_t number = 1; !text.empty(); ++number) {
        const size_t length = std::min(text.find('\n'), text.size());
        if (const Status status = parser.Parse(text.substr(0, length)); !status.ok()) {
            return Clause(fmt::format("Line {} of a kernel's text is wrong: {}.", number,
                                      status.error().message));
        }
        text.remove_prefix(std::min(length + 1, text.size()));
    }
    if (!parser.has_head()) {
        return Clause("The text of a kernel is empty.");
    }
    FORNAX_RETURN_IF_ERROR(Verify(parser.kernel()));
    return std::move(parser.kernel());
}

}  // namespace fornax::graph::loop
