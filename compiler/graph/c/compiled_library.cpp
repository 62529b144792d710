// Runs the compiler in the directory, and opens what it makes.
#include "compiler/graph/c/compiled_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace fornax::graph::c {

Result<CompiledLibrary> CompiledLibrary::Compile(const ScratchDirectory& directory,
                                                 const std::string& sources,
                                                 const std::string& options) {
    const std::string library = directory / "library.so";
    const std::string command = fmt::format(
        "cd {} && {} -std=gnu11 -Wall -Werror -Wno-unused-variable -Wno-tautological-compare "
        "-ffp-contract=off -fwrapv -fno-strict-aliasing -fPIC "
        "-shared {} {} -lm -o {} 2>&1",
        directory / ".", FORNAX_C_COMPILER, options, sources, library);
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
        return Error{ErrorCode::kInternal, "The compiler did not start."};
    }
    std::string said;
    char buffer[256];
    while (const size_t count = std::fread(buffer, 1, sizeof(buffer), pipe)) {
        said.append(buffer, count);
    }
    if (pclose(pipe) != 0) {
        said.resize(std::min<size_t>(said.size(), 4000));
        return Error{ErrorCode::kInternal, fmt::format("{}\n{}", command, said)};
    }
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        return Error{ErrorCode::kInternal, dlerror()};
    }
    return CompiledLibrary(handle);
}

CompiledLibrary::CompiledLibrary(CompiledLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)) {}

CompiledLibrary::~CompiledLibrary() {
    if (handle_ != nullptr) {
        dlclose(handle_);
    }
}

void* CompiledLibrary::Address(const std::string& name) const {
    return dlsym(handle_, name.c_str());
}

}  // namespace fornax::graph::c
