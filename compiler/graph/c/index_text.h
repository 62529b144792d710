// Index expressions of kernels with constant sizes as expressions of C, in int64_t.
//
// Where a part of an expression may leave 64 bits, because it holds a number from memory, it is
// computed in 128 bits, so that what is outside of a dimension is never inside.
#pragma once

#include <optional>
#include <string>

#include "compiler/graph/ir/expr.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::c {

// The kernel with these numbers for its sizes, which has none of its own.
loop::Kernel WithSizes(const loop::Kernel& kernel, const Bindings& sizes);

class IndexText {
  public:
    // The kernel has no sizes, and outlives this.
    IndexText(const loop::Kernel& kernel, const loop::Scope& scope);

    Expr Simplified(const Expr& expr) const { return expr.Simplify(domain_); }
    // Whether 0 <= index < extent everywhere.
    bool Proven(const Expr& index, const Expr& extent) const {
        return domain_.IsNotNegative(index) && domain_.IsLess(index, extent);
    }
    // The value as int64_t, `otherwise` if it is no such number. Nullopt if it may divide by 0.
    std::optional<std::string> Write(const Expr& expr, int64_t otherwise) const;
    // What a variable or scalar is called in C.
    std::string Name(const Symbol& symbol) const;

    // How loop variables that several lanes have are written: "(i1 + lane)" and "v7[lane]".
    void SetLanes(const loop::Scope* scope, loop::VariableSet lanes) {
        scope_of_lanes_ = scope;
        lanes_ = lanes;
    }

  private:
    bool IsWide(const Expr& expr) const;
    // Throws away nothing: `ok` becomes false where a divisor may be 0.
    std::string Sum(const Expr& expr, bool wide, bool& ok) const;
    std::string Atom(const ExprAtom& atom, bool wide, bool& ok) const;
    Range RangeOfScalar(const loop::Kernel& kernel, loop::ScalarId id) const;

    Domain domain_;
    const loop::Scope* scope_of_lanes_ = nullptr;
    loop::VariableSet lanes_ = 0;
};

}  // namespace fornax::graph::c
