// What is known of variables for a part of the code only.
#pragma once

#include "compiler/graph/ir/expr.h"

namespace fornax::graph::loop {

// The domain is again as it was when this ends.
class DomainScope {
  public:
    explicit DomainScope(Domain& domain) : domain_(domain), before_(domain) {}
    ~DomainScope() { domain_ = before_; }
    DomainScope(const DomainScope&) = delete;
    DomainScope& operator=(const DomainScope&) = delete;

  private:
    Domain& domain_;
    const Domain before_;
};

// The same of one variable, which has a range.
class RangeScope {
  public:
    RangeScope(Domain& domain, const Symbol& variable)
        : domain_(domain), variable_(variable), before_(domain.ranges.at(variable)) {}
    ~RangeScope() { Set(before_); }
    RangeScope(const RangeScope&) = delete;
    RangeScope& operator=(const RangeScope&) = delete;

    void Set(const Range& range) { domain_.ranges[variable_] = range; }

  private:
    Domain& domain_;
    const Symbol variable_;
    const Range before_;
};

}  // namespace fornax::graph::loop
