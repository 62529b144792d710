// How the building of a graph fails: an exception whose text is a clause.
//
// Decompositions nest deeply and each of their steps may meet operands that do not fit, so building
// throws. CatchBuildErrors() makes a Result of it at a frontend's edge; nothing else escapes.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "base/result.h"

namespace fornax::graph {

class BuildError : public std::runtime_error {
  public:
    BuildError(ErrorCode code, const std::string& clause)
        : std::runtime_error(clause), code_(code) {}
    ErrorCode code() const { return code_; }

  private:
    ErrorCode code_;
};

// A value would have to be known while the graph is built, and is not.
class DependsOnData : public BuildError {
  public:
    explicit DependsOnData(const std::string& clause)
        : BuildError(ErrorCode::kUnsupported, clause) {}
};

// The input breaks a rule: "the axis 4 is not in -3..2".
[[noreturn]] void FailInvalid(const std::string& clause);
// The input is valid but not covered.
[[noreturn]] void FailUnsupported(const std::string& clause);

// A clause with text of a file, printable, and cut where it is too long.
std::string PrintableClause(std::string clause);

// A frontend's edge: what `function` returns, or the error of what it throws. `name` is the file's.
template <typename Function>
auto CatchBuildErrors(const std::string& name, const Function& function)
    -> Result<decltype(function())> {
    try {
        return function();
    } catch (const BuildError& error) {
        return Error{error.code(), name + ": " + PrintableClause(error.what()) + "."};
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kOutOfHostMemory,
                     name + ": there is not enough memory to import it."};
    }
}

}  // namespace fornax::graph
