// The parts of the page that are files: page/ here, and the chart library.
#pragma once

#include <string_view>

namespace fornax::tool {

std::string_view PageStyle();
std::string_view PageBody();
std::string_view PageScript();
// Empty where this build was made without it.
std::string_view ChartLibrary();

}  // namespace fornax::tool
