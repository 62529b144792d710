// Names out of model files, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace fornax::legacy_graph {

// The text with every control character and every byte that is not part of valid UTF-8 replaced by
// '?'.
std::string Printable(std::string_view text);

}  // namespace fornax::legacy_graph
