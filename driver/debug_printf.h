// What shaders print with NonSemantic.DebugPrintf ("debugPrintfEXT"): with FORNAX_DEBUG_PRINTF set,
// a device has a buffer that kernels write records into (compiler/kernel/interface/debug_printf.h),
// and the waits of its application empty it: to the messengers of VK_EXT_debug_utils as
// information, and to standard error where none took it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <vulkan/vulkan_core.h>

#include "hal/device.h"

namespace fornax::driver {

class Device;

// A format of debugPrintf and the values behind it, as text: the conversions of C, `v2` to `v4`
// before one for vectors, whose components are parted by ", ", and `l` or `ul` for 64-bit integers.
// What has no value is said in its place. `letters` are a record's, one for each component.
std::string FormatPrintf(std::string_view format,
                         std::string_view letters,
                         std::span<const uint32_t> words);

class DebugPrintf {
  public:
    // Null unless FORNAX_DEBUG_PRINTF asks for it: 1, or the buffer's size in bytes.
    static Result<std::unique_ptr<DebugPrintf>> Create(hal::Device& device);

    explicit DebugPrintf(std::shared_ptr<hal::Memory> memory) : memory_(std::move(memory)) {}

    // What kernels are compiled with.
    uint64_t address() const { return memory_->address(); }
    uint32_t capacity_words() const;

    // Prints what is complete. Messages of kernels that still run wait for a later call. Any
    // thread.
    void Print(const Device& origin);

  private:
    void PrintRecords(const Device& origin, uint32_t end);

    std::shared_ptr<hal::Memory> memory_;
    std::mutex mutex_;
    uint32_t printed_ = 0;  // words
};

}  // namespace fornax::driver
