// Text out of files that are not trusted, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace fornax {

// The text with every control character and every byte that is not part of valid UTF-8 replaced by
// '?'.
std::string Printable(std::string_view text);

}  // namespace fornax
