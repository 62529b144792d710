// The stores of a point (emit_stores.h).
#include "compiler/graph/loop/emit_stores.h"

namespace fornax::graph::loop {

void StoreCode::Compute(std::span<const Store* const> stores, std::vector<Write>& writes) {
    for (const Store* store : stores) {
        const Access access = index_.AccessOf(store->buffer, store->index);
        Id condition = index_.EmitChecks(access);
        if (store->condition.valid()) {
            condition = b_.And(condition, scalars_.Value(store->condition));
        }
        const Id value = conversions_.ToStorage(scalars_.Value(store->value),
                                                kernel_[store->buffer].type.element);
        writes.push_back({condition, index_.Emit(access.offset), value, store->buffer});
    }
}

void StoreCode::Do(std::span<const Write> writes) {
    for (const Write& write : writes) {
        b_.If(write.condition, [&] {
            b_.Store(b_.ElementPointer(code_.ArrayOf(write.buffer), write.offset), write.value);
        });
    }
}

void StoreCode::Emit(std::span<const Store* const> stores) {
    std::vector<Write> writes;
    Compute(stores, writes);
    Do(writes);
}

}  // namespace fornax::graph::loop
