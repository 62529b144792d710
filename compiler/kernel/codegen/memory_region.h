// What the emitter knows of the memory that an access goes to.
#pragma once

#include <llvm/IR/Metadata.h>
#include <llvm/IR/Value.h>

#include <cstdint>

#include "compiler/kernel/access/access_plan.h"
#include "compiler/kernel/codegen/fetch_line.h"

namespace fornax::kernel {

// Where an access goes and what may be assumed of it.
struct MemoryRegion : AccessMemory {
    llvm::Value* base = nullptr;  // ptr
    llvm::Value* size = nullptr;  // bytes, i64
    // Instead of these, where lanes have buffers of their own: vectors of i64.
    llvm::Value* lane_bases = nullptr;
    llvm::Value* lane_sizes = nullptr;
    uint64_t align = 1;          // bytes: what the offset is known to be a multiple of
    bool may_pass_2gib = false;  // offsets use all of 32 bits
    bool is_volatile = false;
    bool invariant = false;  // never written while the kernel runs
    PrefetchTarget prefetch;
    // i64: an aligned store to an address with none of these bits may be non-temporal.
    llvm::Value* stream_mask = nullptr;
    llvm::MDNode* scope = nullptr;
    llvm::MDNode* noalias = nullptr;
};

// For the record: `checked` is what a test of bounds would be.
inline AccessCheck CheckOf(const MemoryRegion& region, AccessCheck checked) {
    if (region.bounds == MemoryRegion::Bounds::kTrusted) {
        return AccessCheck::kNone;
    }
    return region.bounds == MemoryRegion::Bounds::kChecked ? checked : AccessCheck::kClamped;
}

// A byte offset as memory selection sees it.
struct Offset {
    const LanePattern* pattern = nullptr;
    llvm::Value* scalar = nullptr;  // uniform value or pattern's base, i32 or i64
    llvm::Value* stride = nullptr;  // of rows, if it is not the value that the pattern names
};

}  // namespace fornax::kernel
