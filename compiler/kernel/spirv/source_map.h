// What a module says of itself, for tools: the names and source lines of its instructions, and the
// resources that it wants.
#pragma once

#include <map>
#include <string>

#include "compiler/kernel/spirv/module.h"

namespace fornax::kernel::spirv {

// Reads OpLine (SPIR-V 1.6, section 3.52.2) and DebugLine of NonSemantic.Shader.DebugInfo. The
// module must outlive it.
class SourceMap {
  public:
    explicit SourceMap(const Module& module);

    // "OpLoad"; "" if no instruction begins at the word.
    std::string Instruction(uint32_t word) const;
    // "file:line"; "" if the module does not tell.
    std::string Source(uint32_t word) const;

  private:
    struct Line {
        uint32_t file = 0;  // id of an OpString
        uint32_t line = 0;
    };
    std::string FileName(uint32_t id) const;

    const Module& module_;
    std::map<uint32_t, Line> lines_;  // by the first word that it holds for
};

// A pipeline layout with what the module's variables are decorated with: descriptors side by side,
// arrays of an unknown or specialised length with `kAssumedArrayLength` elements, all push
// constants.
inline constexpr uint32_t kAssumedArrayLength = 16;
ResourceLayout LayoutOf(const Module& module);

}  // namespace fornax::kernel::spirv
