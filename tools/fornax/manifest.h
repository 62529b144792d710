// Where the Fornax driver's loader manifest is: what `exec`, `info` and `bench` point the loader
// to.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace fornax::tool {

// The running program.
Result<std::filesystem::path> ExecutablePath();

// The manifest's file name, fornax_icd.<arch>.json.
std::filesystem::path ManifestFileName();

// Finds the manifest. `override_path` (the FORNAX_MANIFEST variable; null or empty means unset)
// wins and must name a file. Otherwise the places beside `executable` are tried, in this order: the
// build tree's icd/ folder, then the installed share/vulkan/icd.d. The result is absolute.
Result<std::filesystem::path> FindManifest(const std::filesystem::path& executable,
                                           const char* override_path);

// FindManifest for the running process and its environment.
Result<std::filesystem::path> FindManifest();

// Makes the Vulkan loader of this process, and of processes started from it, see the driver of
// `manifest` and no other. To be called before the loader's first use and before any thread starts.
void SelectDriver(const std::filesystem::path& manifest);

// libggml-fornax.so beside this program, in the build's or an installation's folder.
Result<std::filesystem::path> FindGgmlBackend();
// Makes programs of ggml load it, and ggml's Vulkan backend leave the device alone.
void SelectGgmlBackend(const std::filesystem::path& backend);

}  // namespace fornax::tool
