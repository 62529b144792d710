// Which indices of custom border colors are registered (VK_EXT_descriptor_heap).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace fornax::driver {

// Descriptors of samplers hold their border, so an index stands for nothing but itself. Any thread
// may register.
class BorderColors {
  public:
    // The lowest index that is free, if one is.
    std::optional<uint32_t> Register();
    // False if the index is not free.
    bool Register(uint32_t index);
    void Unregister(uint32_t index);

  private:
    std::mutex mutex_;
    std::vector<bool> registered_;  // those behind its end are not
    uint32_t first_free_ = 0;       // or less: none below it is free
};

}  // namespace fornax::driver
