// What the instances of a session have in common: the values that states keep between runs, and the
// memory of temporaries.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

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
    // The memory of a stage's temporaries, of at least `size_bytes`, which are not 0. It is used
    // within a run only, so one serves all instances whose runs take turns. Instances that hold an
    // earlier, smaller one keep it.
    Result<std::shared_ptr<vulkan::Buffer>> Arena(size_t stage, uint64_t size_bytes);
    uint64_t arena_bytes() const;  // of all stages

    // Gives a state its memory, which the owner of the store may share with others: it holds the
    // state's value from here on. Instances that hold the state keep the old one.
    void Set(const std::string& name, uint64_t size_bytes, std::shared_ptr<vulkan::Buffer> buffer);
    // The state begins anew. Instances that hold it keep the old value.
    void Forget(const std::string& name);
    // All states begin anew, also with another size. Instances that hold a state keep the old one,
    // so no session may be using the store.
    void Clear();

  private:
    struct State {
        uint64_t size_bytes = 0;
        std::shared_ptr<vulkan::Buffer> buffer;
    };
    const std::shared_ptr<vulkan::Device> device_;
    mutable std::mutex mutex_;
    std::map<std::string, State> states_;
    std::vector<std::shared_ptr<vulkan::Buffer>> arenas_;  // by stage
};

}  // namespace fornax::runtime
