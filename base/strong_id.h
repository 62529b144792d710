// Indices that do not mix: StrongId<struct BlockTag> and StrongId<struct ValueTag> are different
// types.
//
// IR and plans name their parts by position in a table; such an id costs what an integer costs and
// can neither be added up nor passed for another table's.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace fornax {

template <typename Tag, typename Rep = uint32_t>
class StrongId {
  public:
    // Names nothing.
    constexpr StrongId() = default;
    constexpr explicit StrongId(size_t index) : value_(static_cast<Rep>(index)) {}

    constexpr bool valid() const { return value_ != kNone; }
    constexpr Rep value() const { return value_; }

    constexpr auto operator<=>(const StrongId&) const = default;

  private:
    static constexpr Rep kNone = std::numeric_limits<Rep>::max();
    Rep value_ = kNone;
};

}  // namespace fornax

template <typename Tag, typename Rep>
struct std::hash<fornax::StrongId<Tag, Rep>> {
    size_t operator()(fornax::StrongId<Tag, Rep> id) const noexcept {
        return std::hash<Rep>{}(id.value());
    }
};
