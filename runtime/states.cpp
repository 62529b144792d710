#include "runtime/states.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace fornax::runtime {

Result<std::shared_ptr<vulkan::Buffer>> StateStore::Get(const std::string& name,
                                                        uint64_t size_bytes,
                                                        std::span<const uint8_t> initial) {
    const std::lock_guard lock(mutex_);
    const auto found = states_.find(name);
    if (found != states_.end()) {
        if (found->second.size_bytes != size_bytes) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The state {} has {} bytes; for these sizes it would have {}.",
                                     name, found->second.size_bytes, size_bytes)};
        }
        return found->second.buffer;
    }
    // Empty ones have memory too, to be bound.
    FORNAX_ASSIGN_OR_RETURN(
        std::shared_ptr<vulkan::Buffer> buffer,
        vulkan::Buffer::Create(device_, std::max<uint64_t>((size_bytes + 3) / 4 * 4, 4)));
    std::memset(buffer->data(), 0, buffer->size_bytes());
    if (!initial.empty()) {
        if (initial.size() != size_bytes) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The state {} of {} bytes begins with {} bytes.", name,
                                     size_bytes, initial.size())};
        }
        std::memcpy(buffer->data(), initial.data(), initial.size());
    }
    states_[name] = {size_bytes, buffer};
    return buffer;
}

Result<std::shared_ptr<vulkan::Buffer>> StateStore::Arena(size_t stage, uint64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    arenas_.resize(std::max(arenas_.size(), stage + 1));
    std::shared_ptr<vulkan::Buffer>& arena = arenas_[stage];
    if (arena == nullptr || arena->size_bytes() < size_bytes) {
        arena.reset();  // the old memory goes before the new comes
        FORNAX_ASSIGN_OR_RETURN(arena, vulkan::Buffer::Create(device_, size_bytes));
    }
    return arena;
}

uint64_t StateStore::arena_bytes() const {
    const std::lock_guard lock(mutex_);
    uint64_t total = 0;
    for (const std::shared_ptr<vulkan::Buffer>& arena : arenas_) {
        total += arena == nullptr ? 0 : arena->size_bytes();
    }
    return total;
}

void StateStore::Set(const std::string& name,
                     uint64_t size_bytes,
                     std::shared_ptr<vulkan::Buffer> buffer) {
    const std::lock_guard lock(mutex_);
    states_[name] = {size_bytes, std::move(buffer)};
}

void StateStore::Forget(const std::string& name) {
    const std::lock_guard lock(mutex_);
    states_.erase(name);
}

void StateStore::Clear() {
    const std::lock_guard lock(mutex_);
    states_.clear();
}

}  // namespace fornax::runtime
