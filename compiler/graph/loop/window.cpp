// Recognises reductions over sliding windows.
#include "compiler/graph/loop/window.h"

#include <algorithm>

namespace fornax::graph::loop {
namespace {

constexpr int64_t kMaxWidth = 64;
constexpr int64_t kMaxTaps = 256;
constexpr size_t kMaxStaged = 2;
// How often an element is read at least.
constexpr int64_t kLeastReuse = 2;

class Finder {
  public:
    Finder(const Kernel& kernel, const Scope& scope) : kernel_(kernel), scope_(scope) {}

    std::optional<Window> Run() {
        if (!kernel_.sequential.empty() || !FindReductions() || !FindAxes()) {
            return std::nullopt;
        }
        const auto& reduce = std::get<Reduce>(kernel_[main_].value);
        if (!Stage(reduce.body) || window_.staged.empty() || window_.staged.size() > kMaxStaged) {
            return std::nullopt;
        }
        int64_t strides = 1;
        for (const WindowAxis& axis : window_.axes) {
            strides *= axis.stride;
        }
        if (window_.taps() < kLeastReuse * strides || window_.taps() > kMaxTaps) {
            return std::nullopt;
        }
        window_.main = main_;
        for (size_t i = 0; i < kernel_.parallel.size(); ++i) {
            if ((points_ & Bit(i)) == 0 && !(window_.lanes && i + 1 == kernel_.parallel.size())) {
                window_.outer.push_back(kernel_.parallel[i]);
            }
        }
        return std::move(window_);
    }

  private:
    static VariableSet Bit(size_t variable) { return VariableSet{1} << variable; }

    // One reduction reads memory; others may count, say.
    bool FindReductions() {
        for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
            const ScalarNode& node = kernel_.scalars[i];
            if (const auto* load = std::get_if<Load>(&node.value);
                load != nullptr && kernel_[load->buffer].written) {
                return false;
            }
            if (LoopsOf(node).empty()) {
                continue;
            }
            const auto* reduce = std::get_if<Reduce>(&node.value);
            if (reduce == nullptr || (scope_.free[i] & ~scope_.parallel) != 0) {
                return false;
            }
            window_.reductions.emplace_back(i);
            bool reads = false;
            const std::vector<bool> needed = Needed(kernel_, {&reduce->body, 1});
            for (size_t j = 0; j < needed.size(); ++j) {
                if (needed[j] && !LoopsOf(kernel_.scalars[j]).empty()) {
                    return false;
                }
                reads =
                    reads || (needed[j] && std::holds_alternative<Load>(kernel_.scalars[j].value));
            }
            if (reads && main_.valid()) {
                return false;
            }
            main_ = reads ? ScalarId(i) : main_;
        }
        return main_.valid();
    }

    // The parallel loop that an index depends on, and with which stride; nullopt if there is none
    // or several.
    std::optional<std::pair<size_t, int64_t>> PointIn(const Expr& index) const {
        std::optional<std::pair<size_t, int64_t>> found;
        for (size_t i = 0; i < kernel_.parallel.size(); ++i) {
            const Symbol& variable = kernel_.parallel[i].variable;
            if (!index.Uses(variable)) {
                continue;
            }
            const std::optional<Expr> stride = index.Coefficient(variable);
            const std::optional<int64_t> constant = stride ? stride->constant() : std::nullopt;
            if (found || !constant || *constant < 1) {
                return std::nullopt;
            }
            found = {i, *constant};
        }
        return found;
    }

    bool FindAxes() {
        const auto& reduce = std::get<Reduce>(kernel_[main_].value);
        for (const Loop& loop : reduce.loops) {
            const std::optional<int64_t> width = loop.extent.constant();
            if (!width || *width < 1 || *width > kMaxWidth) {
                return false;
            }
        }
        const std::vector<bool> needed = Needed(kernel_, {&reduce.body, 1});
        std::optional<size_t> last;  // the parallel loop along which elements lie side by side
        for (size_t i = 0; i < needed.size(); ++i) {
            const auto* load = std::get_if<Load>(&kernel_.scalars[i].value);
            if (!needed[i] || load == nullptr) {
                continue;
            }
            for (const Loop& loop : reduce.loops) {
                for (const Expr& index : load->index) {
                    if (!AddPair(loop, index)) {
                        return false;
                    }
                }
            }
            if ((scope_.free[i] & scope_.parallel) != 0 && !FindLast(*load, last)) {
                return false;
            }
        }
        return last && OrderAxes(*last);
    }

    // Adds the axis of a reduction's loop if it occurs in the index with a parallel one.
    bool AddPair(const Loop& loop, const Expr& index) {
        if (!index.Uses(loop.variable)) {
            return true;
        }
        const std::optional<std::pair<size_t, int64_t>> point = PointIn(index);
        if (!point) {
            return (scope_.FreeIn(index) & scope_.parallel) == 0;
        }
        if (index.Coefficient(loop.variable) != Expr(1)) {
            return false;
        }
        const WindowAxis axis = {kernel_.parallel[point->first], point->second, loop,
                                 *loop.extent.constant()};
        for (const WindowAxis& other : window_.axes) {
            const bool same_point = other.point.variable == axis.point.variable;
            const bool same_offset = other.offset->variable == loop.variable;
            if (same_point != same_offset || (same_point && other.stride != axis.stride)) {
                return false;
            }
            if (same_point) {
                return true;
            }
        }
        window_.axes.push_back(axis);
        points_ |= Bit(point->first);
        return true;
    }

    // The parallel loop in the load's innermost dimension of more than one element.
    bool FindLast(const Load& load, std::optional<size_t>& last) const {
        const Shape& shape = kernel_[load.buffer].type.shape;
        for (size_t axis = load.index.size(); axis-- > 0;) {
            if (shape[axis] == Expr(1)) {
                continue;
            }
            const std::optional<std::pair<size_t, int64_t>> point = PointIn(load.index[axis]);
            if (!point) {
                return (scope_.FreeIn(load.index[axis]) & scope_.parallel) == 0;
            }
            if (point->first + 1 == kernel_.parallel.size()) {
                last = point->first;
            }
            return true;
        }
        return true;
    }

    bool OrderAxes(size_t last) {
        std::vector<WindowAxis>& axes = window_.axes;
        const Loop& x = kernel_.parallel[last];
        const auto is_last = [&](const WindowAxis& axis) {
            return axis.point.variable == x.variable;
        };
        if (std::none_of(axes.begin(), axes.end(), is_last)) {
            window_.lanes = x;
            return !axes.empty() && axes.size() <= 2;
        }
        const auto found = std::find_if(axes.begin(), axes.end(), is_last);
        std::rotate(found, found + 1, axes.end());
        return axes.size() <= 2;
    }

    // Whether the scalar depends on the axes' loops only through the elements' places.
    bool IsStageable(ScalarId id) const {
        VariableSet allowed = scope_.parallel;
        std::map<Symbol, Expr> places;
        for (const WindowAxis& axis : window_.axes) {
            if (axis.offset) {
                allowed |= Bit(*scope_.Find(axis.offset->variable));
                places.emplace(axis.offset->variable, Expr(axis.offset->variable) -
                                                          axis.stride * Expr(axis.point.variable));
            }
        }
        if (kernel_[id].type == ElementType::kBool || (scope_.free[id.value()] & ~allowed) != 0) {
            return false;
        }
        const std::vector<bool> needed = Needed(kernel_, {&id, 1});
        for (size_t i = 0; i < needed.size(); ++i) {
            if (!needed[i]) {
                continue;
            }
            for (const Expr& expr : ExpressionsOf(kernel_.scalars[i])) {
                const Expr of_places = expr.Substitute(places);
                for (const WindowAxis& axis : window_.axes) {
                    if (axis.offset && of_places.Uses(axis.point.variable)) {
                        return false;
                    }
                }
            }
        }
        return true;
    }

    // Along lanes elements lie side by side; what has none is read by all lanes alike.
    bool HasLanes(ScalarId id) const {
        return !window_.lanes || (scope_.free[id.value()] & Bit(kernel_.parallel.size() - 1)) != 0;
    }

    // Finds the greatest parts of a reduction's body that can be staged. False if something that
    // depends on the points is read otherwise.
    bool Stage(ScalarId id) {
        if ((scope_.free[id.value()] & points_) == 0) {
            return true;
        }
        const std::vector<bool> needed = Needed(kernel_, {&id, 1});
        bool reads = false;
        for (size_t i = 0; i < needed.size(); ++i) {
            reads = reads || (needed[i] && (scope_.free[i] & points_) != 0 &&
                              std::holds_alternative<Load>(kernel_.scalars[i].value));
        }
        if (!reads) {
            return true;
        }
        if (IsStageable(id) && HasLanes(id)) {
            if (std::find(window_.staged.begin(), window_.staged.end(), id) ==
                window_.staged.end()) {
                window_.staged.push_back(id);
            }
            return true;
        }
        if (std::holds_alternative<Load>(kernel_[id].value)) {
            return false;
        }
        const std::vector<ScalarId> operands = OperandsOf(kernel_[id]);
        for (const Expr& expr : ExpressionsOf(kernel_[id])) {
            for (const Symbol& symbol : expr.Symbols()) {
                if (ScalarOfSymbol(symbol)) {
                    return false;
                }
            }
        }
        return std::all_of(operands.begin(), operands.end(),
                           [&](ScalarId operand) { return Stage(operand); });
    }

    const Kernel& kernel_;
    const Scope& scope_;
    Window window_;
    ScalarId main_;           // the reduction that reads memory
    VariableSet points_ = 0;  // the axes' parallel loops
};

}  // namespace

std::optional<Window> FindWindow(const Kernel& kernel, const Scope& scope) {
    return Finder(kernel, scope).Run();
}

}  // namespace fornax::graph::loop
