// One instruction that prefetches a line of memory. It never faults, so nothing is checked.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace fornax::kernel {

// Into which caches: all, or those behind the first one.
enum class CacheLevel : uint8_t { kAll = 3, kSecond = 2 };

// How an access prefetches.
struct PrefetchTarget {
    llvm::Value* distance = nullptr;  // i64: bytes from the access on, if not the usual ones
    CacheLevel level = CacheLevel::kAll;
};

inline void FetchLine(llvm::IRBuilder<>& builder,
                      llvm::Value* address,
                      CacheLevel level,
                      bool for_store = false) {
    constexpr uint32_t kData = 1;
    builder.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {address->getType()},
        {address, builder.getInt32(for_store), builder.getInt32(static_cast<uint32_t>(level)),
         builder.getInt32(kData)});
}

}  // namespace fornax::kernel
