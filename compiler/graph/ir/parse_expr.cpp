// The grammar of expressions: sum = [-] product {(+|-) product}, product = atom {* atom}.
#include "compiler/graph/ir/parse_expr.h"

#include <array>
#include <optional>

#include <fmt/format.h>

namespace fornax::graph {
namespace {

// Deeper than what the compiler makes, and far from the end of the stack.
constexpr int kMaxDepth = 64;

using Function = Expr (*)(const Expr&, const Expr&);

struct NamedFunction {
    std::string_view name;
    Function function;
};

constexpr std::array<NamedFunction, 5> kFunctions = {{
    {"floor", FloorDiv},
    {"mod", Mod},
    {"min", Min},
    {"max", Max},
    {"product", [](const Expr& a, const Expr& b) { return a * b; }},
}};

Function FunctionByName(std::string_view name) {
    for (const NamedFunction& function : kFunctions) {
        if (function.name == name) {
            return function.function;
        }
    }
    return nullptr;
}

bool IsDigit(char c) {
    return c >= '0' && c <= '9';
}

bool IsNamePart(char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

class ExprParser {
  public:
    explicit ExprParser(std::string_view text) : text_(text) {}

    Result<Expr> Parse() {
        FORNAX_ASSIGN_OR_RETURN(Expr expr, Sum());
        SkipSpaces();
        if (position_ != text_.size()) {
            return Expected("an operator or the end");
        }
        return expr;
    }

  private:
    Error Expected(std::string_view what) const {
        return {ErrorCode::kInvalidArgument,
                fmt::format("{} is missing at '{}'", what, text_.substr(position_, 20))};
    }
    void SkipSpaces() {
        while (position_ < text_.size() && text_[position_] == ' ') {
            ++position_;
        }
    }
    bool Take(char c) {
        SkipSpaces();
        if (position_ == text_.size() || text_[position_] != c) {
            return false;
        }
        ++position_;
        return true;
    }

    Result<Expr> Sum() {
        if (++depth_ > kMaxDepth) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("the expression is nested deeper than {} levels", kMaxDepth)};
        }
        FORNAX_ASSIGN_OR_RETURN(Expr sum, Product(Take('-')));
        while (true) {
            const bool minus = Take('-');
            if (!minus && !Take('+')) {
                break;
            }
            FORNAX_ASSIGN_OR_RETURN(const Expr product, Product(minus));
            sum += product;
        }
        --depth_;
        return sum;
    }

    // The sign belongs to the first number, so that the least integer can be written.
    Result<Expr> Product(bool negative) {
        FORNAX_ASSIGN_OR_RETURN(Expr product, Atom(negative));
        while (Take('*')) {
            FORNAX_ASSIGN_OR_RETURN(const Expr factor, Atom(false));
            product *= factor;
        }
        return product;
    }

    Result<Expr> Atom(bool negative) {
        SkipSpaces();
        if (position_ < text_.size() && IsDigit(text_[position_])) {
            return Number(negative);
        }
        FORNAX_ASSIGN_OR_RETURN(const Expr atom, AtomWithoutSign());
        return negative ? -atom : atom;
    }

    Result<Expr> AtomWithoutSign() {
        if (Take('(')) {
            FORNAX_ASSIGN_OR_RETURN(Expr inner, Sum());
            if (!Take(')')) {
                return Expected("')'");
            }
            return inner;
        }
        const size_t begin = position_;
        position_ += position_ < text_.size() && text_[position_] == '$' ? 1 : 0;
        while (position_ < text_.size() && IsNamePart(text_[position_])) {
            ++position_;
        }
        const std::string_view name = text_.substr(begin, position_ - begin);
        if (const Function function = FunctionByName(name); function != nullptr) {
            return Call(function);
        }
        if (!IsSymbolName(name)) {
            position_ = begin;
            return Expected("a number or a name");
        }
        return Expr(Symbol(name));
    }

    Result<Expr> Call(Function function) {
        if (!Take('(')) {
            return Expected("'('");
        }
        FORNAX_ASSIGN_OR_RETURN(const Expr a, Sum());
        if (!Take(',')) {
            return Expected("','");
        }
        FORNAX_ASSIGN_OR_RETURN(const Expr b, Sum());
        if (!Take(')')) {
            return Expected("')'");
        }
        return function(a, b);
    }

    Result<Expr> Number(bool negative) {
        constexpr uint64_t kGreatest = INT64_MAX;
        const uint64_t limit = negative ? kGreatest + 1 : kGreatest;
        uint64_t magnitude = 0;
        for (; position_ < text_.size() && IsDigit(text_[position_]); ++position_) {
            const auto digit = static_cast<uint64_t>(text_[position_] - '0');
            if (magnitude > (limit - digit) / 10) {
                return Error{ErrorCode::kInvalidArgument, "a number does not fit 64 bits"};
            }
            magnitude = magnitude * 10 + digit;
        }
        return Expr(static_cast<int64_t>(negative ? -magnitude : magnitude));
    }

    std::string_view text_;
    size_t position_ = 0;
    int depth_ = 0;
};

}  // namespace

bool IsSymbolName(std::string_view name) {
    if (FunctionByName(name) != nullptr) {
        return false;
    }
    if (name.starts_with('$')) {
        name.remove_prefix(1);
    }
    if (name.empty() || IsDigit(name[0])) {
        return false;
    }
    for (const char c : name) {
        if (!IsNamePart(c)) {
            return false;
        }
    }
    return true;
}

Result<Expr> ParseExpr(std::string_view text) {
    if (text.size() > kMaxExprText) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("the expression has {} bytes, more than {}", text.size(), kMaxExprText)};
    }
    return ExprParser(text).Parse();
}

}  // namespace fornax::graph
