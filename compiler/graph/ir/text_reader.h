// Reads the words of a graph's text: names, numbers, strings and sizes, each with its line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "compiler/graph/ir/expr.h"

namespace fornax::graph {

class TextReader {
  public:
    explicit TextReader(std::string_view text) : text_(text) {}

    // Spaces and comments are skipped before everything that is read.
    bool AtEnd();
    // Whether the text goes on with this, which is then skipped.
    bool Accept(std::string_view expected);
    Status Expect(std::string_view expected);
    // A letter or _, then letters, digits and _; empty if there is none.
    std::string_view Identifier();
    // What Identifier() would give.
    std::string_view Peek();
    bool AtString();
    Result<std::string> String();
    Result<int64_t> Integer();
    // A decimal number, inf or nan, as it stands.
    Result<std::string_view> Number();
    Result<Expr> Size();

    // "Line 3: the message, but the text goes on with ..." of where the reader is.
    Error Failure(std::string_view message);
    Error FailureAt(size_t line, std::string_view message) const;
    size_t line();

  private:
    void SkipSpace();
    Result<Expr> Sum(int depth);
    Result<Expr> Product(bool negative, int depth);
    Result<Expr> Factor(int depth);

    std::string_view text_;
    size_t at_ = 0;
    size_t line_ = 1;
    size_t size_parts_ = 0;  // of the size that is being read
};

}  // namespace fornax::graph
