// What a parser of the kernel IR's text is made of: the token it looks at, errors, numbers, types.
// Every function gives false after it has recorded the first error; callers only pass that on.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/kernel/ir/lexer.h"
#include "compiler/kernel/ir/types.h"

namespace fornax::kernel::ir {

class TokenParser {
  protected:
    explicit TokenParser(std::string_view text) : lexer_(text) { Advance(); }

    void Advance() { token_ = lexer_.Next(); }

    bool FailAt(uint32_t line, const std::string& message) {
        if (error_.empty()) {
            error_ = "Kernel IR text, line " + std::to_string(line) + ": " + message + ".";
        }
        return false;
    }
    bool Fail(const std::string& message) { return FailAt(token_.line, message); }
    bool FailExpected(const std::string& what) {
        std::string found(token_.text.substr(0, 40));
        if (token_.kind == TokenKind::kEnd) {
            return Fail("expected " + what + " but the text ends");
        }
        return Fail("expected " + what + " but found '" + found + "'");
    }

    bool At(char c) const { return token_.kind == TokenKind::kPunctuation && token_.text[0] == c; }
    bool AtWord(std::string_view word) const {
        return token_.kind == TokenKind::kWord && token_.text == word;
    }
    bool Accept(char c) {
        if (!At(c)) {
            return false;
        }
        Advance();
        return true;
    }
    bool AcceptWord(std::string_view word) {
        if (!AtWord(word)) {
            return false;
        }
        Advance();
        return true;
    }
    bool Expect(char c) { return Accept(c) || FailExpected(std::string("'") + c + "'"); }
    bool ExpectWord(std::string_view word) {
        return AcceptWord(word) || FailExpected("'" + std::string(word) + "'");
    }

    static bool ReadUnsigned(std::string_view text, uint64_t* value) {
        int base = 10;
        if (text.starts_with("0x")) {
            text.remove_prefix(2);
            base = 16;
        }
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
        return error == std::errc() && end == text.data() + text.size();
    }
    bool ParseNumber(uint64_t* value, uint64_t limit = UINT32_MAX) {
        if (token_.kind != TokenKind::kNumber || !ReadUnsigned(token_.text, value)) {
            return FailExpected("a number");
        }
        if (*value > limit) {
            return Fail("the number " + std::to_string(*value) + " exceeds its limit " +
                        std::to_string(limit));
        }
        Advance();
        return true;
    }
    bool ParseNumber32(uint32_t* value) {
        uint64_t wide = 0;
        if (!ParseNumber(&wide)) {
            return false;
        }
        *value = static_cast<uint32_t>(wide);
        return true;
    }
    // "(" int ")"
    bool ParseArgument(uint32_t* value) {
        return Expect('(') && ParseNumber32(value) && Expect(')');
    }
    bool ParseType(Type* type) {
        for (uint32_t i = 0; i <= static_cast<uint32_t>(Type::kBuffer); ++i) {
            if (AcceptWord(TypeName(static_cast<Type>(i)))) {
                *type = static_cast<Type>(i);
                return true;
            }
        }
        return FailExpected("a type");
    }

    Lexer lexer_;
    Token token_;
    std::string error_;
};

}  // namespace fornax::kernel::ir
