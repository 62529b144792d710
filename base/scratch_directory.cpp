#include "base/scratch_directory.h"

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/file.h"

namespace fornax {

Result<ScratchDirectory> ScratchDirectory::Create(const std::string& purpose) {
    const std::string parent = EnvironmentText("TMPDIR").value_or("/tmp");
    std::string path = fmt::format("{}/fornax-{}-XXXXXX", parent, purpose);
    if (::mkdtemp(path.data()) == nullptr) {
        return Error{ErrorCode::kIo, fmt::format("No directory can be created in {}: {}.", parent,
                                                 ErrnoMessage(errno))};
    }
    return ScratchDirectory(path);
}

ScratchDirectory::~ScratchDirectory() {
    if (!path_.empty()) {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
}

}  // namespace fornax
