// The words of a graph's text, and sizes.
#include "compiler/graph/ir/text_reader.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "compiler/graph/ir/text.h"

namespace fornax::graph {
namespace {

// A size of more terms and factors is not from a writer, and would take long to bring into its
// normal form.
constexpr size_t kMaxSizeParts = 1000;

bool IsDigit(char c) {
    return c >= '0' && c <= '9';
}

bool IsLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

void TextReader::SkipSpace() {
    for (; at_ < text_.size(); ++at_) {
        const char c = text_[at_];
        if (c == '#') {
            at_ = std::min(text_.find('\n', at_), text_.size() - 1);
        }
        if (text_[at_] == '\n') {
            ++line_;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '#') {
            return;
        }
    }
}

bool TextReader::AtEnd() {
    SkipSpace();
    return at_ == text_.size();
}

bool TextReader::Accept(std::string_view expected) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(expected)) {
        return false;
    }
    at_ += expected.size();
    return true;
}

Status TextReader::Expect(std::string_view expected) {
    if (!Accept(expected)) {
        return Failure(fmt::format("'{}' is expected", expected));
    }
    return OkStatus();
}

std::string_view TextReader::Peek() {
    SkipSpace();
    size_t end = at_;
    while (end < text_.size() && (IsLetter(text_[end]) || (end > at_ && IsDigit(text_[end])))) {
        ++end;
    }
    return text_.substr(at_, end - at_);
}

std::string_view TextReader::Identifier() {
    const std::string_view identifier = Peek();
    at_ += identifier.size();
    return identifier;
}

bool TextReader::AtString() {
    SkipSpace();
    return at_ < text_.size() && text_[at_] == '"';
}

Result<std::string> TextReader::String() {
    FORNAX_RETURN_IF_ERROR(Expect("\""));
    std::string value;
    while (at_ < text_.size() && text_[at_] != '\n') {
        const char c = text_[at_++];
        if (c == '"') {
            return value;
        }
        if (c != '\\') {
            value += c;
            continue;
        }
        const char escaped = at_ < text_.size() ? text_[at_++] : '\0';
        if (escaped == 'n') {
            value += '\n';
        } else if (escaped == '"' || escaped == '\\') {
            value += escaped;
        } else if (escaped == 'x' && at_ + 2 <= text_.size()) {
            uint8_t byte = 0;
            const char* begin = text_.data() + at_;
            if (std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2) {
                return Failure("two hexadecimal digits are expected after \\x");
            }
            value += static_cast<char>(byte);
            at_ += 2;
        } else {
            return Failure("\\ is followed by none of n, x, \" and \\");
        }
    }
    return Failure("a string has no end");
}

Result<int64_t> TextReader::Integer() {
    SkipSpace();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) {
        return Failure(error == std::errc::result_out_of_range
                           ? "the integer does not fit into 64 bits"
                           : "an integer is expected");
    }
    at_ += static_cast<size_t>(end - begin);
    return value;
}

Result<std::string_view> TextReader::Number() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]) ||
                                  text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '+')) {
        ++at_;
    }
    if (at_ == begin) {
        return Failure("a number is expected");
    }
    return text_.substr(begin, at_ - begin);
}

Result<Expr> TextReader::Size() {
    size_parts_ = 0;
    return Sum(0);
}

Result<Expr> TextReader::Sum(int depth) {
    if (depth > kMaxTextDepth) {
        return Failure(fmt::format("a size is nested in more than {} functions", kMaxTextDepth));
    }
    FORNAX_ASSIGN_OR_RETURN(Expr sum, Product(Accept("-"), depth));
    while (true) {
        const bool negative = Accept("-");
        if (!negative && !Accept("+")) {
            return sum;
        }
        FORNAX_ASSIGN_OR_RETURN(const Expr term, Product(negative, depth));
        sum += term;
    }
}

Result<Expr> TextReader::Product(bool negative, int depth) {
    Expr product(negative ? -1 : 1);
    SkipSpace();
    if (negative && at_ < text_.size() && IsDigit(text_[at_])) {
        // Read with its sign, without which the least integer would not fit.
        const std::string literal =
            "-" + std::string(text_.substr(at_, std::min<size_t>(32, text_.size() - at_)));
        int64_t value = 0;
        const auto [end, error] =
            std::from_chars(literal.data(), literal.data() + literal.size(), value);
        if (error != std::errc()) {
            return Failure("the integer does not fit into 64 bits");
        }
        at_ += static_cast<size_t>(end - literal.data()) - 1;
        product = value;
        if (!Accept("*")) {
            return product;
        }
    }
    do {
        FORNAX_ASSIGN_OR_RETURN(const Expr factor, Factor(depth));
        product *= factor;
    } while (Accept("*"));
    return product;
}

Result<Expr> TextReader::Factor(int depth) {
    if (++size_parts_ > kMaxSizeParts) {
        return Failure(fmt::format("a size has more than {} parts", kMaxSizeParts));
    }
    if (Accept("(")) {
        FORNAX_ASSIGN_OR_RETURN(Expr inner, Sum(depth + 1));
        FORNAX_RETURN_IF_ERROR(Expect(")"));
        return inner;
    }
    if (AtString()) {
        FORNAX_ASSIGN_OR_RETURN(const std::string name, String());
        return Expr(Symbol(name));
    }
    const std::string_view name = Identifier();
    if (name.empty()) {
        FORNAX_ASSIGN_OR_RETURN(const int64_t value, Integer());
        return Expr(value);
    }
    const bool is_function =
        name == "floor" || name == "mod" || name == "min" || name == "max" || name == "product";
    if (!is_function) {
        return Expr(Symbol(name));
    }
    FORNAX_RETURN_IF_ERROR(Expect("("));
    FORNAX_ASSIGN_OR_RETURN(const Expr a, Sum(depth + 1));
    FORNAX_RETURN_IF_ERROR(Expect(","));
    FORNAX_ASSIGN_OR_RETURN(const Expr b, Sum(depth + 1));
    FORNAX_RETURN_IF_ERROR(Expect(")"));
    return name == "floor" ? FloorDiv(a, b)
           : name == "mod" ? Mod(a, b)
           : name == "min" ? Min(a, b)
           : name == "max" ? Max(a, b)
                           : a * b;
}

size_t TextReader::line() {
    SkipSpace();
    return line_;
}

Error TextReader::FailureAt(size_t line, std::string_view message) const {
    return {ErrorCode::kInvalidArgument, fmt::format("Line {}: {}.", line, message)};
}

Error TextReader::Failure(std::string_view message) {
    SkipSpace();
    if (at_ == text_.size()) {
        return FailureAt(line_, fmt::format("{}, but the text ends", message));
    }
    constexpr size_t kShown = 20;
    const std::string_view rest = text_.substr(at_, kShown);
    return FailureAt(line_, fmt::format("{}, but the text goes on with '{}'", message,
                                        rest.substr(0, rest.find('\n'))));
}

}  // namespace fornax::graph
