// FORNAX_COMPAT: what is shown to programs that refuse a device for what they never use. By default
// nothing is; what each word departs from is told in docs/vulkan.md (Compatibility).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fornax::driver {

struct CompatModes {
    // A queue family for graphics, the names of surfaces and swapchains, and features, limits,
    // formats and stages that programs demand beside them. What draws or presents fails.
    bool graphics = false;
    // A conformance version, though no results were submitted.
    bool conformance = false;
    // Every device has robustBufferAccess enabled, for programs that access buffers beyond their
    // end.
    bool bounds = false;
};

struct ParsedCompatModes {
    CompatModes modes;
    std::vector<std::string> unknown_words;
};

// Words are separated by commas; spaces around them and empty words mean nothing.
ParsedCompatModes ParseCompatModes(std::string_view text);

// Those of the process. FORNAX_COMPAT is read at the first call, which warns of unknown words. Any
// thread may call this.
const CompatModes& GetCompatModes();

}  // namespace fornax::driver
