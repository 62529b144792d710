// Runs spirv-val on a file.
#include "tests/graph/spirv_check.h"

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace fornax::test {

std::string Validate(std::span<const uint32_t> words) {
    const std::string path =
        std::filesystem::temp_directory_path() / fmt::format("spirv_check_{}.spv", getpid());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()),
               static_cast<std::streamsize>(words.size_bytes()));
    const std::string command =
        fmt::format("{} --target-env vulkan1.2 {} 2>&1", FORNAX_SPIRV_VAL, path);
    std::string said;
    if (FILE* pipe = popen(command.c_str(), "r"); pipe != nullptr) {
        char buffer[256];
        while (const size_t count = std::fread(buffer, 1, sizeof(buffer), pipe)) {
            said.append(buffer, count);
        }
        const int status = pclose(pipe);
        if (status != 0 && said.empty()) {
            said = fmt::format("the validator ended with {}", status);
        }
    } else {
        said = "the validator did not start";
    }
    std::remove(path.c_str());
    return said;
}

}  // namespace fornax::test
