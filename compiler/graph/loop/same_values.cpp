// Two scalars, operand by operand.
#include "compiler/graph/loop/same_values.h"

namespace fornax::graph::loop {
namespace {

// What nodes have beside operands and expressions.
bool IsSameKind(const ScalarNode& x, const ScalarNode& y) {
    if (const auto* load = std::get_if<Load>(&x.value)) {
        const auto& other = std::get<Load>(y.value);
        return load->buffer == other.buffer && load->otherwise.valid() == other.otherwise.valid();
    }
    if (const auto* map = std::get_if<Map>(&x.value)) {
        return map->function == std::get<Map>(y.value).function;
    }
    if (const auto* cast = std::get_if<Cast>(&x.value)) {
        const auto& other = std::get<Cast>(y.value);
        return cast->overflow == other.overflow && cast->rounding == other.rounding;
    }
    return std::holds_alternative<Index>(x.value) || std::holds_alternative<InRange>(x.value);
}

// Scalars have many paths to one operand.
constexpr int kMostComparisons = 1000;

class Comparison {
  public:
    Comparison(const Kernel& kernel, const Scope& scope, const Symbol& x, const Symbol& y)
        : kernel_(kernel), scope_(scope), x_(x), y_(y) {}

    bool IsSame(ScalarId a, ScalarId b) {
        const ScalarNode &one = kernel_[a], &other = kernel_[b];
        if (a == b) {
            return (scope_.free[a.value()] & VariableSet{1} << *scope_.Find(x_)) == 0;
        }
        if (++comparisons_ > kMostComparisons || one.type != other.type ||
            one.value.index() != other.value.index()) {
            return false;
        }
        const std::vector<Expr> ours = ExpressionsOf(one), theirs = ExpressionsOf(other);
        const std::vector<ScalarId> operands = OperandsOf(one), others = OperandsOf(other);
        if (ours.size() != theirs.size() || operands.size() != others.size() ||
            !IsSameKind(one, other)) {
            return false;
        }
        for (size_t i = 0; i < ours.size(); ++i) {
            if (ours[i].Substitute({{x_, Expr(y_)}}) != theirs[i]) {
                return false;
            }
        }
        for (size_t i = 0; i < operands.size(); ++i) {
            if (!IsSame(operands[i], others[i])) {
                return false;
            }
        }
        return true;
    }

  private:
    const Kernel& kernel_;
    const Scope& scope_;
    const Symbol& x_;
    const Symbol& y_;
    int comparisons_ = 0;
};

}  // namespace

bool IsSameAt(const Kernel& kernel,
              const Scope& scope,
              ScalarId a,
              const Symbol& x,
              ScalarId b,
              const Symbol& y) {
    return Comparison(kernel, scope, x, y).IsSame(a, b);
}

}  // namespace fornax::graph::loop
