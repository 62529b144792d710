// Cuts the kernel IR's text into tokens, for parse.cpp. Tokens point into the text.
#pragma once

#include <cstdint>
#include <string_view>

namespace fornax::kernel::ir {

enum class TokenKind : uint8_t {
    kEnd,
    kWord,         // an operation, a type, an attribute
    kNumber,       // also what only looks like one: its reader decides
    kName,         // without its %
    kLabel,        // without its @
    kString,       // without its quotes, escapes kept
    kPunctuation,  // one of ( ) { } [ ] , : =
    kBad,
};

struct Token {
    TokenKind kind = TokenKind::kEnd;
    std::string_view text;
    uint32_t line = 1;
};

class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}

    Token Next() {
        SkipBlanks();
        if (at_ == text_.size()) {
            return {TokenKind::kEnd, {}, line_};
        }
        char c = text_[at_];
        if (c == '%' || c == '@') {
            size_t begin = ++at_;
            while (at_ < text_.size() && IsWord(text_[at_])) {
                ++at_;
            }
            return {c == '%' ? TokenKind::kName : TokenKind::kLabel, Cut(begin), line_};
        }
        if (c == '"') {
            return String();
        }
        if (IsDigit(c) || c == '-') {
            return Number();
        }
        size_t begin = at_;
        if (IsWord(c)) {
            while (at_ < text_.size() && IsWord(text_[at_])) {
                ++at_;
            }
            return {TokenKind::kWord, Cut(begin), line_};
        }
        ++at_;
        bool known = std::string_view("(){}[],:=").find(c) != std::string_view::npos;
        return {known ? TokenKind::kPunctuation : TokenKind::kBad, Cut(begin), line_};
    }

  private:
    static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
    static bool IsWord(char c) {
        return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    }
    std::string_view Cut(size_t begin) const { return text_.substr(begin, at_ - begin); }

    void SkipBlanks() {
        for (; at_ < text_.size(); ++at_) {
            char c = text_[at_];
            if (c == '\n') {
                ++line_;
            } else if (c == ';' || text_.substr(at_, 2) == "//") {
                while (at_ < text_.size() && text_[at_] != '\n') {
                    ++at_;
                }
                --at_;
            } else if (c != ' ' && c != '\t' && c != '\r') {
                return;
            }
        }
    }

    Token String() {
        size_t begin = ++at_;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
            at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
        }
        if (at_ >= text_.size() || text_[at_] != '"') {
            return {TokenKind::kBad, "\"", line_};
        }
        Token token{TokenKind::kString, Cut(begin), line_};
        ++at_;
        return token;
    }

    // A sign is part of the number at its start and after a decimal exponent's e.
    Token Number() {
        size_t begin = at_++;
        bool hex = text_.substr(begin, 2) == "0x";
        while (at_ < text_.size()) {
            char c = text_[at_];
            bool exponent_sign =
                (c == '+' || c == '-') && !hex && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
            if (!IsWord(c) && c != '.' && !exponent_sign) {
                break;
            }
            ++at_;
        }
        return {TokenKind::kNumber, Cut(begin), line_};
    }

    std::string_view text_;
    size_t at_ = 0;
    uint32_t line_ = 1;
};

}  // namespace fornax::kernel::ir
