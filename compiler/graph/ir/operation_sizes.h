// The sizes in the fields of an operation.
#pragma once

#include <type_traits>
#include <variant>
#include <vector>

#include "compiler/graph/ir/operation.h"

namespace fornax::graph {

// A visitor of fields that calls `each` with every size in them, in order.
template <typename Each>
class SizeFields {
  public:
    explicit SizeFields(Each& each) : each_(each) {}

    void operator()(const char*, Expr& expr) const { each_(expr); }
    void operator()(const char* name, Shape& shape) const { (*this)(name, shape.mutable_dims()); }
    void operator()(const char* name, TensorType& type) const { (*this)(name, type.shape); }
    template <typename T>
    void operator()(const char* name, std::vector<T>& fields) const {
        if constexpr (std::is_same_v<T, Expr> || std::is_same_v<T, TensorType>) {
            for (T& field : fields) {
                (*this)(name, field);
            }
        }
    }
    void operator()(const char*, auto&) const {}

  private:
    Each& each_;
};

// Calls `each` with every size in the fields of an operation; it may change them.
template <typename Each>
void ForEachSize(Operation& operation, Each each) {
    const SizeFields<Each> fields(each);
    std::visit([&](auto& held) { held.Visit(fields, held); }, operation);
}

}  // namespace fornax::graph
