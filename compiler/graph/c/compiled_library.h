// Only for tests: sources of C compiled by the build's compiler, and loaded.
#pragma once

#include <string>

#include "base/result.h"
#include "base/scratch_directory.h"

namespace fornax::graph::c {

class CompiledLibrary {
  public:
    // A directory for the sources, and what is compiled of them. A warning of the compiler is an
    // error with all that it says.
    static Result<CompiledLibrary> Compile(const ScratchDirectory& directory,
                                           const std::string& sources,
                                           const std::string& options);
    CompiledLibrary(CompiledLibrary&& other) noexcept;
    CompiledLibrary& operator=(CompiledLibrary&&) = delete;
    ~CompiledLibrary();

    template <typename T>
    T* Find(const std::string& name) const {
        return reinterpret_cast<T*>(Address(name));
    }

  private:
    explicit CompiledLibrary(void* handle) : handle_(handle) {}
    void* Address(const std::string& name) const;

    void* handle_;
};

}  // namespace fornax::graph::c
