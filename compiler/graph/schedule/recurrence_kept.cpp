// Which values of an iteration are worth a phase of their own.
#include "compiler/graph/schedule/recurrence_kept.h"

#include <algorithm>
#include <set>

namespace fornax::graph {

bool IsPlainView(const Operation& operation) {
    return Is<op::Reshape>(operation) || Is<op::Permute>(operation) ||
           Is<op::Broadcast>(operation) || Is<op::Slice>(operation);
}

namespace {

bool IsReduction(const Operation& operation) {
    return Is<op::Contract>(operation) || Is<op::Reduce>(operation) || Is<op::ArgReduce>(operation);
}

class KeptValues {
  public:
    KeptValues(const Graph& step, std::vector<ValueId> sinks)
        : step_(step), sinks_(std::move(sinks)) {
        users_.resize(step_.values().size());
        for (size_t n = 0; n < step_.nodes().size(); ++n) {
            for (const ValueId operand : step_.nodes()[n].operands) {
                users_[operand.value()].push_back(n);
            }
        }
    }

    std::vector<ValueId> Find() {
        has_reduction_.assign(step_.values().size(), false);
        for (const Node& node : step_.nodes()) {
            for (const ValueId operand : node.operands) {
                ValueId base = operand;
                while (step_.Producer(base) != nullptr &&
                       IsPlainView(step_.Producer(base)->operation)) {
                    base = step_.Producer(base)->operands[0];
                }
                if (IsReduction(node.operation) && has_reduction_[base.value()]) {
                    Keep(base);
                }
            }
            bool reduction = IsReduction(node.operation);
            for (const ValueId operand : node.operands) {
                reduction = reduction || HasReduction(operand);
            }
            for (const ValueId result : node.results) {
                has_reduction_[result.value()] = reduction;
            }
        }
        // Readers first: what is kept for one is a phase of its own to what comes before.
        for (size_t n = step_.nodes().size(); n-- > 0;) {
            const Node& node = step_.nodes()[n];
            if (IsReduction(node.operation) && !kept_.contains(node.results[0].value()) &&
                IsReadOften(node.results[0])) {
                Keep(node.results[0]);
            }
        }
        std::vector<ValueId> values;
        for (const uint32_t value : kept_) {
            values.emplace_back(value);  // operands come first
        }
        return values;
    }

  private:
    void Keep(ValueId value) { kept_.insert(value.value()); }
    bool HasReduction(ValueId value) const {
        return has_reduction_[value.value()] && !kept_.contains(value.value());
    }
    double Volume(ValueId value) const {
        return static_cast<double>(step_.sizes().Hint(step_.ShapeOf(value).Volume()));
    }

    // Whether several phases, or phases of more points, would compute the value.
    bool IsReadOften(ValueId value) const {
        std::set<uint32_t> kept_readers;
        std::vector<Shape> shapes;
        std::set<uint32_t> seen;
        std::vector<ValueId> pending = {value};
        bool many = false;
        while (!pending.empty()) {
            const ValueId current = pending.back();
            pending.pop_back();
            if (!seen.insert(current.value()).second) {
                continue;
            }
            const bool kept = kept_.contains(current.value());
            if (kept || std::find(sinks_.begin(), sinks_.end(), current) != sinks_.end()) {
                many = many || Volume(current) > Volume(value);
                const Shape& shape = step_.ShapeOf(current);
                if (kept) {
                    kept_readers.insert(current.value());
                } else if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) {
                    shapes.push_back(shape);
                }
            }
            if (kept) {
                continue;
            }
            for (const size_t n : users_[current.value()]) {
                pending.insert(pending.end(), step_.nodes()[n].results.begin(),
                               step_.nodes()[n].results.end());
            }
        }
        return many || kept_readers.size() + shapes.size() > 1;
    }

    const Graph& step_;
    std::vector<ValueId> sinks_;
    std::vector<std::vector<size_t>> users_;
    std::vector<bool> has_reduction_;
    std::set<uint32_t> kept_;
};

}  // namespace

std::vector<ValueId> FindKeptValues(const Graph& step, const std::vector<ValueId>& sinks) {
    return KeptValues(step, sinks).Find();
}

}  // namespace fornax::graph
