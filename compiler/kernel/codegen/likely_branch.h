// What the weights of a branch say about it.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/ProfDataUtils.h>

#include <cstdint>
#include <optional>

namespace fornax::kernel {

inline constexpr uint64_t kLikely = 100;  // to one

// Which way a branch nearly always goes.
inline std::optional<bool> Likely(const llvm::BranchInst& branch) {
    uint64_t taken = 0;
    uint64_t other = 0;
    if (!branch.isConditional() || !llvm::extractBranchWeights(branch, taken, other)) {
        return {};
    }
    if (taken > other * kLikely) {
        return true;
    }
    return other > taken * kLikely ? std::optional(false) : std::nullopt;
}

// Where a branch goes that is likely to go one way.
inline llvm::BasicBlock* UsualSuccessor(const llvm::BranchInst& branch) {
    return branch.getSuccessor(*Likely(branch) ? 0 : 1);
}

}  // namespace fornax::kernel
