// What a device counts while it works: the raw material of reports and of tests that prove that
// work was done. counters.def lists the counters, which everything here is made of. Modelled
// cycles, stalls and energy are those of npu/.
#pragma once

#include <cstdint>

namespace fornax::hal {

// What a query may count: a queue's part of the totals below.
enum class CounterId : uint8_t {
#define FORNAX_TOTAL(field)
#define FORNAX_COUNTER(id, field, unit, name, category, description) id,
#include "hal/counters.def"
};

// One of the counters from kMultiplyAddsF16 on, by MatrixFormat (hal/matrix_unit.h).
constexpr CounterId MultiplyAddsOf(uint32_t matrix_format) {
    return static_cast<CounterId>(static_cast<uint32_t>(CounterId::kMultiplyAddsF16) +
                                  matrix_format);
}

// Totals since the device was created, over all its queues. A snapshot: fields may be of slightly
// different moments while work is running, and are exact once a timeline wait has returned.
struct Counters {
#define FORNAX_TOTAL(field) uint64_t field = 0;
#define FORNAX_COUNTER(id, field, unit, name, category, description) uint64_t field = 0;
#include "hal/counters.def"

    uint64_t of(CounterId id) const {
        switch (id) {
#define FORNAX_TOTAL(field)
#define FORNAX_COUNTER(id, field, unit, name, category, description) \
    case CounterId::id:                                              \
        return field;
#include "hal/counters.def"
        }
        return 0;
    }
};

// A counter as people read of it.
struct CounterInfo {
    enum class Unit : uint8_t { kThings, kBytes };

    CounterId id;
    const char* name;
    const char* category;
    const char* description;
    Unit unit;
};

// By id.
inline constexpr CounterInfo kCounterInfos[] = {
#define FORNAX_TOTAL(field)
#define FORNAX_COUNTER(id, field, unit, name, category, description) \
    {CounterId::id, name, category, description, CounterInfo::Unit::unit},
#include "hal/counters.def"
};
inline constexpr uint32_t kCounterIds = sizeof(kCounterInfos) / sizeof(kCounterInfos[0]);

}  // namespace fornax::hal
