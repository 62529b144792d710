// The object loader: a kernel's object file, fresh from the backend or out of a cache, to memory
// that runs.
//
// It takes only what the emitter makes: code and constants, relocated against each other. An object
// that names anything outside itself is refused, so a kernel can never call a library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace fornax::kernel {

// The kernel's function in every object.
inline constexpr char kKernelSymbol[] = "fornax_kernel";

// An object in memory: code is read-only and executable, constants read-only; nothing was ever
// writable and executable at once. Immutable.
class LoadedObject {
  public:
    // Maps `object` and finds the function `symbol`. kDataLoss if it is not an object that
    // EmitObject makes.
    static Result<std::unique_ptr<LoadedObject>> Load(std::span<const uint8_t> object,
                                                      const std::string& symbol);
    ~LoadedObject();
    LoadedObject(const LoadedObject&) = delete;
    LoadedObject& operator=(const LoadedObject&) = delete;

    const void* entry() const { return entry_; }
    size_t mapped_bytes() const { return mapped_bytes_; }

  private:
    LoadedObject() = default;

    void* base_ = nullptr;
    size_t mapped_bytes_ = 0;
    const void* entry_ = nullptr;
};

}  // namespace fornax::kernel
