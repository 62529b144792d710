// A directory of its own for a test that writes files; removed with its contents at the end.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace fornax {

class TestDirectory {
  public:
    TestDirectory() : path_(testing::TempDir() + "fornax-test-XXXXXX") {
        if (::mkdtemp(path_.data()) == nullptr) {
            std::abort();
        }
    }
    ~TestDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TestDirectory(const TestDirectory&) = delete;
    TestDirectory& operator=(const TestDirectory&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

    // How many files and folders it holds.
    size_t size() const {
        const std::filesystem::directory_iterator items(path_);
        return static_cast<size_t>(std::distance(begin(items), end(items)));
    }

  private:
    std::string path_;
};

}  // namespace fornax
