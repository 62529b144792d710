// What an offset that shapes do not follow probably looks like.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compiler/kernel/analysis/shapes.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// Guesses how the lanes' values differ from a value that they share, if all goes well: uniform
// values are multiples of what they are shifted and divided by, and so are the strides of rows, a
// division by a value that is known at run time only gives all lanes one quotient, what is
// multiplied by such a value is multiplied by 1, and what becomes a float comes back as it was. A
// guess is to be tested at run time.
class LaneGuesses {
  public:
    // A lane's value is the shared one + its offset + its row * a stride.
    struct Lanes {
        std::vector<int64_t> offsets;
        std::vector<int64_t> rows;  // of several lanes each, none below 0; empty: no stride
        // The stride: a uniform value, multiplied and divided without a rest.
        ir::ValueId stride;
        uint64_t times = 1;
        uint64_t by = 1;

        bool HasRows() const { return !rows.empty(); }
        // All have the same value, if not that of a row.
        bool IsOne() const;
        friend bool operator==(const Lanes&, const Lanes&) = default;
    };
    using Guess = std::optional<Lanes>;

    LaneGuesses(const ir::Kernel& kernel, const ShapeAnalysis& shapes)
        : kernel_(kernel),
          shapes_(shapes),
          same_({.offsets = std::vector<int64_t>(shapes.lanes(), 0), .rows = {}, .stride = {}}) {}

    // By lane. Nothing if there is no guess, because the value depends on what lanes have loaded.
    Guess Of(ir::ValueId value);
    bool IsSame(ir::ValueId value) { return Of(value) == same_; }

  private:
    Guess OfRows(const Shape& shape);
    Guess OfVarying(ir::ValueId value);
    Guess OfOperation(const ir::Instruction& inst, const std::vector<Lanes>& in);
    Guess OnlyOne(const std::vector<Lanes>& in);
    Guess Product(const std::vector<Lanes>& in);
    Guess OfParameter(ir::ValueId value);
    Guess OfBranches(const ir::Instruction& branch, ir::ValueId value);
    Guess OfExits(ir::InstId loop, ir::ValueId value);

    const ir::Kernel& kernel_;
    const ShapeAnalysis& shapes_;
    const Lanes same_;
    std::map<uint32_t, Guess> guesses_;  // by value
};

}  // namespace fornax::kernel
