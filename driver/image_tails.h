// Tails of the descriptors of sampled images in descriptor heaps (hal::SampledImageTail): memory of
// the device's, which the descriptors point to.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "hal/image_abi.h"

namespace fornax::driver {

// Equal tails are one, so equal views give equal descriptors, and there are only as many as there
// are sizes and formats of images. They live as long as the device. Any thread may ask for them.
class ImageTails {
  public:
    Result<uint64_t> AddressOf(hal::Device& device, const hal::SampledImageTail& tail);

  private:
    static constexpr uint32_t kTailsPerChunk = 64;
    using Key = std::array<uint32_t, sizeof(hal::SampledImageTail) / sizeof(uint32_t)>;

    std::mutex mutex_;
    std::map<Key, uint64_t> addresses_;
    std::vector<std::shared_ptr<hal::Memory>> chunks_;
    uint32_t used_ = kTailsPerChunk;  // of the last chunk
};

}  // namespace fornax::driver
