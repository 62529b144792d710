// Finding and making tails.
#include "driver/image_tails.h"

#include <cstring>

#include "hal/memory.h"

namespace fornax::driver {

Result<uint64_t> ImageTails::AddressOf(hal::Device& device, const hal::SampledImageTail& tail) {
    Key key;
    std::memcpy(key.data(), &tail, sizeof(tail));
    const std::lock_guard lock(mutex_);
    const auto found = addresses_.find(key);
    if (found != addresses_.end()) {
        return found->second;
    }
    if (used_ == kTailsPerChunk) {
        FORNAX_ASSIGN_OR_RETURN(auto chunk, device.AllocateMemory(kTailsPerChunk * sizeof(tail)));
        chunks_.push_back(std::move(chunk));
        used_ = 0;
    }
    const uint64_t offset = used_++ * sizeof(tail);
    std::memcpy(chunks_.back()->host_pointer() + offset, &tail, sizeof(tail));
    return addresses_[key] = chunks_.back()->address() + offset;
}

}  // namespace fornax::driver
