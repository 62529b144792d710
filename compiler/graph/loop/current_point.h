// The point that the code of a kernel has come to: what has a value there.
//
// Scalars' values are kept in the innermost scope, which is a loop, a guarded block or the whole
// entry point, and are known in all scopes inside of it.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/graph/loop/emit_values.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

class CurrentPoint {
  public:
    using Values = std::map<uint32_t, Id>;  // by scalar, or a key that is none

    // --- Values of scalars. The innermost scope takes what is added.
    void Open(Values known = {}) { scopes_.push_back(std::move(known)); }
    Values Close();
    Id Find(uint32_t key) const;  // 0: it has no value here
    Id Find(ScalarId id) const { return Find(id.value()); }
    // A value that the scope has already stays.
    void Add(uint32_t key, Id value) { scopes_.back().emplace(key, value); }
    void Add(ScalarId id, Id value) { Add(id.value(), value); }
    void Replace(ScalarId id, Id value) { scopes_.back()[id.value()] = value; }

    // --- Values of symbols: sizes, which have theirs everywhere, and what is bound in a scope.
    void BindSize(const Symbol& symbol, Id value) { bound_[symbol] = {value, 0}; }
    void Bind(const Symbol& symbol, Id value) { bound_[symbol] = {value, scopes_.size()}; }
    void Unbind(const Symbol& symbol) { bound_.erase(symbol); }
    Id ValueOf(const Symbol& symbol) const;  // 0: it has none
    // The number of the innermost scope that has a part of the expression.
    size_t DepthOf(const Expr& expr) const;

    // The kernel's variables that have a value: scalars of no others can be computed here.
    VariableSet variables() const { return variables_; }
    void AddVariables(VariableSet more) { variables_ |= more; }
    void SetVariables(VariableSet variables) { variables_ = variables; }

    // Whether all invocations of the workgroup run the code together.
    bool uniform() const { return uniform_; }
    void SetUniform(bool uniform) { uniform_ = uniform; }

  private:
    struct Binding {
        Id value = 0;
        size_t depth = 0;
    };
    std::vector<Values> scopes_;
    std::map<Symbol, Binding> bound_;
    VariableSet variables_ = 0;
    bool uniform_ = false;
};

// A scope of values, as long as this lives.
class ValueScope {
  public:
    explicit ValueScope(CurrentPoint& point, CurrentPoint::Values known = {}) : point_(point) {
        point.Open(std::move(known));
    }
    ~ValueScope() { point_.Close(); }
    ValueScope(const ValueScope&) = delete;
    ValueScope& operator=(const ValueScope&) = delete;

  private:
    CurrentPoint& point_;
};

// More variables that have a value, as long as this lives.
class BoundVariables {
  public:
    explicit BoundVariables(CurrentPoint& point, VariableSet more = 0)
        : point_(point), before_(point.variables()) {
        point.AddVariables(more);
    }
    ~BoundVariables() { point_.SetVariables(before_); }
    BoundVariables(const BoundVariables&) = delete;
    BoundVariables& operator=(const BoundVariables&) = delete;

  private:
    CurrentPoint& point_;
    VariableSet before_;
};

// Code that all invocations of the workgroup run, or not all, as long as this lives.
class UniformCode {
  public:
    UniformCode(CurrentPoint& point, bool uniform) : point_(point), before_(point.uniform()) {
        point.SetUniform(uniform);
    }
    ~UniformCode() { point_.SetUniform(before_); }
    UniformCode(const UniformCode&) = delete;
    UniformCode& operator=(const UniformCode&) = delete;

  private:
    CurrentPoint& point_;
    bool before_;
};

}  // namespace fornax::graph::loop
