// The parts of pages that are files: page/ here, and the chart library.
#pragma once

#include <string_view>

namespace fornax::tool {

std::string_view PageStyle();
std::string_view CommonScript();
std::string_view PageBody();
std::string_view PageScript();
std::string_view SweepBody();
std::string_view SweepScript();
// Empty where this build was made without it.
std::string_view ChartLibrary();

}  // namespace fornax::tool
