// The values that a plan's states keep between runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/result.h"
#include "runtime/vulkan/buffer.h"

namespace fornax::runtime {

// States by name, on one device. Plans of one graph that are compiled for different sizes share
// them. The store is thread-safe, the states' bytes are not: only one run at a time may use them.
class StateStore {
  public:
    explicit StateStore(std::shared_ptr<vulkan::Device> device) : device_(std::move(device)) {}

    // The state's memory; made with `initial` bytes, or zeros if that is empty, when it is first
    // asked for. An error if it was made with another size.
    Result<std::shared_ptr<vulkan::Buffer>> Get(const std::string& name,
                                                uint64_t size_bytes,
                                                std::span<const uint8_t> initial);
    // Gives a state its memory, which the owner of the store may share with others: it holds the
    // state's value from here on. Instances that hold the state keep the old one.
    void Set(const std::string& name, uint64_t size_bytes, std::shared_ptr<vulkan::Buffer> buffer);
    // All states begin anew, also with another size. Instances that hold a state keep the old one,
    // so no session may be using the store.
    void Clear();

  private:
    struct State {
        uint64_t size_bytes = 0;
        std::shared_ptr<vulkan::Buffer> buffer;
    };
    const std::shared_ptr<vulkan::Device> device_;
    std::mutex mutex_;
    std::map<std::string, State> states_;
};

}  // namespace fornax::runtime
