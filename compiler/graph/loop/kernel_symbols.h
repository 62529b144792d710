// The scalars that index expressions name.
#pragma once

#include <charconv>
#include <optional>

#include "compiler/graph/loop/kernel.h"

namespace fornax::graph::loop {

// The scalar that "$v7" names; nullopt for other symbols.
inline std::optional<ScalarId> ScalarOfSymbol(const Symbol& symbol) {
    const std::string& name = symbol.name();
    uint32_t number = 0;
    if (!name.starts_with("$v")) {
        return std::nullopt;
    }
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + 2, end, number);
    return error == std::errc() && rest == end ? std::optional(ScalarId(number)) : std::nullopt;
}

}  // namespace fornax::graph::loop
