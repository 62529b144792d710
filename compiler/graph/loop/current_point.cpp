// What has a value at the current point (current_point.h).
#include "compiler/graph/loop/current_point.h"

#include <algorithm>

namespace fornax::graph::loop {

CurrentPoint::Values CurrentPoint::Close() {
    Values known = std::move(scopes_.back());
    scopes_.pop_back();
    return known;
}

Id CurrentPoint::Find(uint32_t key) const {
    for (const Values& scope : scopes_) {
        if (const auto found = scope.find(key); found != scope.end()) {
            return found->second;
        }
    }
    return 0;
}

Id CurrentPoint::ValueOf(const Symbol& symbol) const {
    const auto found = bound_.find(symbol);
    return found == bound_.end() ? 0 : found->second.value;
}

size_t CurrentPoint::DepthOf(const Expr& expr) const {
    size_t depth = 0;
    for (const Symbol& symbol : expr.Symbols()) {
        const auto found = bound_.find(symbol);
        depth = std::max(depth, found == bound_.end() ? scopes_.size() : found->second.depth);
    }
    return depth;
}

}  // namespace fornax::graph::loop
