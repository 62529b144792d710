// Failures that tests ask for, so that what follows from each kind of them is tested.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/result.h"

namespace fornax::ggml_plugin {

// An error if FORNAX_GGML_FAULT names this place: "buffer", "prepare", "compile", "packs", "bind"
// or "run".
inline Status InjectedFault(std::string_view place, ErrorCode code = ErrorCode::kInternal) {
    const std::optional<std::string> chosen = EnvironmentText("FORNAX_GGML_FAULT");
    if (chosen && *chosen == place) {
        return Error{code, fmt::format("FORNAX_GGML_FAULT asks for a failure in \"{}\".", place)};
    }
    return OkStatus();
}

}  // namespace fornax::ggml_plugin
