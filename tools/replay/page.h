// A profile as a page: one HTML file that needs nothing beside it and asks nothing of a network.
#pragma once

#include <string>

#include "tools/replay/profile.h"
#include "tools/replay/what_if.h"

namespace fornax::tool {

// `changes` are of ReplayChanges(). Without the chart library (docs/dependencies.md) in this build,
// the page has its tables only, and says so.
std::string PageOf(const Profile& profile, std::span<const WhatIf> changes);

// What the page's script draws, for tests.
nlohmann::json PageData(const Profile& profile, std::span<const WhatIf> changes);

}  // namespace fornax::tool
