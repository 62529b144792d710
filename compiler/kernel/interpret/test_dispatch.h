// Memory and descriptors for one dispatch of a random kernel.
#pragma once

#include <array>
#include <vector>

#include "compiler/kernel/ir/kernel.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

// Owns what its frame points to; the three bindings of RandomKernel lie in one arena, at offsets
// that are not 0, with poison between.
class TestDispatch {
  public:
    static constexpr uint32_t kWorkgroups = 3;
    static constexpr uint32_t kOwnBytes = 64;  // of binding 0, for each invocation
    static constexpr uint32_t kBinding1Bytes = 256;
    static constexpr uint32_t kBinding2Bytes = 1021;  // ends inside of a word
    // Push constants are random but for the workgroup's width, at this offset.
    static constexpr uint32_t kWidthOffset = 64;
    static constexpr uint32_t kPushBytes = 68;

    // `overlap`: binding 1 lies inside of binding 0.
    TestDispatch(const ir::Kernel& kernel, uint64_t seed, bool overlap);
    TestDispatch(const TestDispatch&) = delete;
    TestDispatch& operator=(const TestDispatch&) = delete;

    const hal::DispatchFrame& frame() const { return frame_; }
    const std::vector<uint8_t>& memory() const { return memory_; }
    // For ways to run a kernel that bring memory of their own.
    std::vector<uint32_t> BindingWords(uint32_t binding) const;
    std::vector<uint32_t> PushWords() const;

  private:
    std::vector<uint8_t> memory_;
    std::vector<uint8_t> push_;
    std::array<hal::BufferDescriptor, 3> descriptors_;
    std::array<const void*, 1> sets_;
    hal::DispatchFrame frame_;
};

}  // namespace fornax::kernel
