// FORNAX_DUMP=<directory>: writes every stage of every kernel that is compiled, for debugging the
// compiler.
//
// The files are <name>-<first digits of the key>.<stage>, with the stages
//   spv       the SPIR-V module
//   constants specialisation constants if there are any, ID=VALUE
//   read.ir   kernel IR as it was read
//   ir        kernel IR after the passes
//   llvm      LLVM IR as it was emitted
//   opt.llvm  LLVM IR after LLVM's passes
//   s         assembly
// Kernels that come out of a cache write nothing. A file that cannot be written costs a warning.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace fornax::kernel {

// <name>-<first digits of the key>: what messages and dumps call a kernel, since most are named
// main.
std::string KernelLabel(std::string_view entry_point, const Hash128& key);

class KernelDump {
  public:
    // Does nothing unless FORNAX_DUMP is set.
    KernelDump(std::string_view entry_point, const Hash128& key);

    bool enabled() const { return !prefix_.empty(); }
    void Write(std::string_view extension, std::string_view text) const;
    void WriteWords(std::string_view extension, std::span<const uint32_t> words) const;

  private:
    std::string prefix_;
};

}  // namespace fornax::kernel
