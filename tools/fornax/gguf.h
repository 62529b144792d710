// The header of a GGUF file, as far as it tells whether the file is whole.
//
// The layout is that of ggml's docs/gguf.md, versions 2 and 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace fornax::tool {

struct GgufSummary {
    uint32_t version = 0;
    uint64_t tensors = 0;
    std::string architecture;  // "llama"; empty if the file does not say
};

// Fails with a sentence that names `path` if the bytes are no GGUF file, or end before the last
// tensor does. Tensors of types that are not known are taken to have a byte.
Result<GgufSummary> ReadGguf(std::span<const std::byte> file, const std::string& path);

}  // namespace fornax::tool
