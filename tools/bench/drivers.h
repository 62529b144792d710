// Which Vulkan drivers there are to measure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace fornax::bench {

struct Driver {
    std::string name;  // "Fornax", "lavapipe", "SwiftShader", or what the driver calls itself
    std::filesystem::path manifest;
    std::string device;       // the device's name
    std::string driver_info;  // version of the driver, if it says
    std::string api_version;
    bool is_cpu = false;
    bool is_fornax = false;
};

// Manifests that may describe a CPU driver: the loader's own search path, and the folders of
// Chromium, which carries SwiftShader. Sorted, without doubles.
std::vector<std::filesystem::path> CandidateManifests();

// The short name under which a driver is known, from the name that it reports.
std::string ShortDriverName(const std::string& reported_name);

// A name for one more build of Fornax beside `drivers`, which has no other driver of that name.
std::string OtherBuildName(const std::vector<Driver>& drivers);

// Keeps the drivers that `wanted` names: by their name without regard to case, by a part of it, or
// by their manifest's path. Nothing wanted keeps all. A wanted name that matches none is an error.
Result<std::vector<Driver>> SelectDrivers(std::vector<Driver> drivers,
                                          const std::vector<std::string>& wanted);

}  // namespace fornax::bench
