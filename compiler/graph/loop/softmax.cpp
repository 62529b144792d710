// An element is exp(0) = 1 where it is the maximum. The difference of two infinities and of NaN to
// anything is NaN, and so is the sum then.
#include "compiler/graph/loop/softmax.h"

#include <algorithm>

#include "compiler/graph/loop/same_values.h"

namespace fornax::graph::loop {
namespace {

class Finder {
  public:
    Finder(const Kernel& kernel, const Scope& scope)
        : kernel_(kernel), scope_(scope), users_(kernel.scalars.size()) {
        for (size_t i = 0; i < kernel.scalars.size(); ++i) {
            for (const ScalarId operand : OperandsOf(kernel.scalars[i])) {
                users_[operand.value()].emplace_back(i);
            }
            for (const Expr& expr : ExpressionsOf(kernel.scalars[i])) {
                for (const Symbol& symbol : expr.Symbols()) {
                    if (const std::optional<ScalarId> scalar = ScalarOfSymbol(symbol)) {
                        users_[scalar->value()].emplace_back(i);
                    }
                }
            }
        }
        const std::vector<const Store*> stores = StoresOf(kernel);
        roots_ = RootsOf(stores);
    }

    SoftmaxReductions Find() const {
        SoftmaxReductions found;
        if (ReadsWhatItWrites()) {  // then the same scalar is not the same value everywhere
            return found;
        }
        for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
            const Reduce* max = ReductionOf(ScalarId(i), Combine::kMax);
            if (max == nullptr) {
                continue;
            }
            const std::vector<ScalarId> sums = SumsOf(ScalarId(i), *max);
            found.sums.insert(found.sums.end(), sums.begin(), sums.end());
            if (!sums.empty() && IsWithin(ScalarId(i), sums)) {
                found.maxima.emplace_back(i);
            }
        }
        return found;
    }

  private:
    bool ReadsWhatItWrites() const {
        return std::any_of(
            kernel_.scalars.begin(), kernel_.scalars.end(), [&](const ScalarNode& node) {
                const auto* load = std::get_if<Load>(&node.value);
                return load != nullptr &&
                       (Kernel::IsLocal(load->buffer) || kernel_[load->buffer].written);
            });
    }

    // A reduction of f32 over one loop.
    const Reduce* ReductionOf(ScalarId id, Combine combine) const {
        const auto* reduce = std::get_if<Reduce>(&kernel_[id].value);
        return reduce != nullptr && reduce->combine == combine && reduce->loops.size() == 1 &&
                       kernel_[id].type == ElementType::kF32
                   ? reduce
                   : nullptr;
    }

    const Map* MapOf(ScalarId id, ScalarFunction function) const {
        const auto* map = std::get_if<Map>(&kernel_[id].value);
        return map != nullptr && map->function == function && kernel_[id].type == ElementType::kF32
                   ? map
                   : nullptr;
    }

    std::vector<ScalarId> SumsOf(ScalarId id, const Reduce& max) const {
        std::vector<ScalarId> sums;
        for (size_t i = id.value() + 1; i < kernel_.scalars.size(); ++i) {
            const Reduce* sum = ReductionOf(ScalarId(i), Combine::kSum);
            if (sum == nullptr || sum->loops[0].extent != max.loops[0].extent ||
                scope_.free[i] != scope_.free[id.value()]) {
                continue;
            }
            const Map* exp = MapOf(sum->body, ScalarFunction::kExp);
            const Map* shifted =
                exp != nullptr ? MapOf(exp->arguments[0], ScalarFunction::kSub) : nullptr;
            if (shifted != nullptr && shifted->arguments[1] == id &&
                IsSameAt(kernel_, scope_, max.body, max.loops[0].variable, shifted->arguments[0],
                         sum->loops[0].variable)) {
                sums.emplace_back(i);
            }
        }
        return sums;
    }

    bool IsAnyOf(ScalarId id, std::span<const ScalarId> ids) const {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
    }

    // Whether all that the maximum is used for becomes NaN with the sums.
    bool IsWithin(ScalarId max, std::span<const ScalarId> sums) const {
        return OnlyFor(max, [&](ScalarId user) {
            const Map* shifted = MapOf(user, ScalarFunction::kSub);
            return shifted != nullptr && shifted->arguments[0] != max &&
                   OnlyFor(user, [&](ScalarId next) {
                       return IsMinusLogarithm(next, user, sums) ||
                              (MapOf(next, ScalarFunction::kExp) != nullptr &&
                               OnlyFor(next, [&](ScalarId last) {
                                   return IsAnyOf(last, sums) || IsQuotient(last, next, sums);
                               }));
                   });
        });
    }

    template <typename Test>
    bool OnlyFor(ScalarId id, const Test& test) const {
        const std::vector<ScalarId>& users = users_[id.value()];
        return !IsAnyOf(id, roots_) && std::all_of(users.begin(), users.end(), test);
    }

    bool IsQuotient(ScalarId id, ScalarId dividend, std::span<const ScalarId> sums) const {
        const Map* map = MapOf(id, ScalarFunction::kDiv);
        return map != nullptr && map->arguments[0] == dividend && IsAnyOf(map->arguments[1], sums);
    }

    bool IsMinusLogarithm(ScalarId id, ScalarId shifted, std::span<const ScalarId> sums) const {
        const Map* map = MapOf(id, ScalarFunction::kSub);
        const Map* logarithm =
            map != nullptr ? MapOf(map->arguments[1], ScalarFunction::kLog) : nullptr;
        return logarithm != nullptr && map->arguments[0] == shifted &&
               IsAnyOf(logarithm->arguments[0], sums);
    }

    const Kernel& kernel_;
    const Scope& scope_;
    std::vector<std::vector<ScalarId>> users_;
    std::vector<ScalarId> roots_;
};

}  // namespace

SoftmaxReductions FindSoftmaxReductions(const Kernel& kernel, const Scope& scope) {
    return Finder(kernel, scope).Find();
}

}  // namespace fornax::graph::loop
