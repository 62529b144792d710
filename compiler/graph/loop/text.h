// What the printer and the parser of loop kernels share.
#pragma once

#include <string_view>

namespace fornax::graph::loop {

// Whether a name is written without quotes.
bool IsPlainName(std::string_view name);

}  // namespace fornax::graph::loop
