// Index expressions as integer arithmetic, and accesses with their checks.
//
// Offsets are u32 and computed modulo 2^32, which is exact for what is inside of a buffer; only
// dividends and what is compared must not wrap. Terms are added up from the outermost loop's
// variables to the innermost one's, so that what a loop does not change is computed before it.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "compiler/graph/loop/emit_convert.h"
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

// What computes a kernel's scalars: indices may be such.
class ScalarSource {
  public:
    virtual Id Value(ScalarId id) = 0;

  protected:
    ~ScalarSource() = default;
};

// An element that is accessed.
struct Access {
    Expr offset;
    std::vector<std::pair<Expr, Expr>> checks;  // index, extent
    Id inside = 0;                              // of indices that are scalars; 0: true
};

class IndexCode : KernelPart {
  public:
    IndexCode(KernelCode& code, Conversions& conversions)
        : KernelPart(code), conversions_(conversions) {}
    // To be given before any expression that has scalars.
    void UseScalars(ScalarSource& scalars) { scalars_ = &scalars; }

    // --- Variables
    void Bind(const Symbol& symbol, const Expr& extent, Id value);
    void Unbind(const Symbol& symbol) { point_.Unbind(symbol); }
    void Unbind(std::span<const Loop> loops);
    // The loops' variables at a point of all of them; or bound to these values.
    Ids VariablesAt(std::span<const Loop> loops, Id index);
    void BindFromIndex(std::span<const Loop> loops, Id index);

    // --- Expressions
    Id Emit(const Expr& expr);  // u32, of a simplified expression
    Id EmitSimplified(const Expr& expr) { return Emit(nests_.Simplified(expr)); }
    Id EmitWide(const Expr& expr);  // i64, of any
    // Extents that may be negative have no points.
    Id EmitExtent(const Expr& extent);
    Id EmitInRange(const InRange& range);
    // The expression is computed in 32 bits: if it may exceed them, that is a limit of the code.
    void CheckNarrow(const Expr& expr);
    void AddLimit(const Expr& expr) { limits_.push_back(expr); }
    // Expressions of sizes that may not exceed an i32, each once.
    std::vector<Expr> Limits() const;

    // --- Accesses
    Access AccessOf(BufferId buffer, const std::vector<Expr>& index);
    Id EmitChecks(const Access& access);

  private:
    Id EmitAtom(const ExprAtom& atom);
    Id EmitQuotient(const ExprAtom& atom, bool wide);
    Id EmitWideAtom(const ExprAtom& atom);
    Id Widened(Id value);
    std::vector<ExprTerm> ByDepth(const Expr& expr) const;
    Expr GreatestMagnitude(const Expr& expr) const;

    Conversions& conversions_;
    ScalarSource* scalars_ = nullptr;
    std::vector<Expr> limits_;
    uint32_t opaque_ = 0;  // symbols that stand for scalars in offsets
};

}  // namespace fornax::graph::loop
