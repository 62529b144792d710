// A private directory for files of this process alone, removed with its contents at the end.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace fornax {

class ScratchDirectory {
  public:
    // In TMPDIR, else in /tmp; `purpose` is a part of the name: "fornax-run-4RzQx1". Only the user
    // may read it.
    static Result<ScratchDirectory> Create(const std::string& purpose);
    ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchDirectory& operator=(ScratchDirectory&&) = delete;
    ~ScratchDirectory();

    const std::filesystem::path& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ / name; }

  private:
    explicit ScratchDirectory(std::filesystem::path path) : path_(std::move(path)) {}

    std::filesystem::path path_;
};

}  // namespace fornax
