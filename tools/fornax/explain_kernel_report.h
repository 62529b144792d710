// The two forms of what `fornax explain-kernel` shows: tables to read, JSON to keep.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "compiler/kernel/explain/explain.h"

namespace fornax::tool {

std::string FormatExplanation(const kernel::KernelExplanation& explanation);
nlohmann::json ExplanationToJson(const kernel::KernelExplanation& explanation);

}  // namespace fornax::tool
