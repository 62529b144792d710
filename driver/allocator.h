// Host memory for Vulkan objects: the application's VkAllocationCallbacks, or the C library's heap.
//
// A command's pAllocator, where given, is used for what the command creates; otherwise the
// allocator of the device is, and below it that of the instance (Memory Allocation, "Host Memory").
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include <vulkan/vulkan_core.h>

namespace fornax::driver {

class Allocator {
  public:
    // The C library's heap.
    Allocator();
    // `callbacks`, or `parent` when it is null.
    Allocator(const VkAllocationCallbacks* callbacks, const Allocator& parent)
        : callbacks_(callbacks ? *callbacks : parent.callbacks_) {}

    // Null when there is no memory. `alignment` is a power of two.
    [[nodiscard]] void* Allocate(size_t size_bytes,
                                 size_t alignment,
                                 VkSystemAllocationScope scope) const {
        return callbacks_.pfnAllocation(callbacks_.pUserData, size_bytes, alignment, scope);
    }

    void Free(void* memory) const {
        if (memory) {
            callbacks_.pfnFree(callbacks_.pUserData, memory);
        }
    }

    // Places a T, followed by `trailing_bytes` that the object arranges itself (TrailingOf). Null
    // when there is no memory.
    template <typename T, typename... Args>
    [[nodiscard]] T* New(VkSystemAllocationScope scope,
                         size_t trailing_bytes,
                         Args&&... args) const {
        void* memory = Allocate(sizeof(T) + trailing_bytes, alignof(T), scope);
        if (!memory) {
            return nullptr;
        }
        try {
            return new (memory) T(std::forward<Args>(args)...);
        } catch (...) {
            Free(memory);
            throw;
        }
    }

    template <typename T>
    void Delete(T* object) const {
        if (!object) {
            return;
        }
        object->~T();
        Free(object);
    }

  private:
    VkAllocationCallbacks callbacks_;
};

// Deletes what an Allocator made, unless it is released: what an object goes through between its
// construction and its handle may fail or throw.
template <typename T>
class Owned {
  public:
    Owned(const Allocator& allocator, T* object) : allocator_(allocator), object_(object) {}
    ~Owned() { allocator_.Delete(object_); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;

    explicit operator bool() const { return object_ != nullptr; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    T* Release() { return std::exchange(object_, nullptr); }

  private:
    Allocator allocator_;
    T* object_;
};

// The bytes behind an object made by Allocator::New, as `count` elements that start
// `offset_bytes` after its end. Elements are not constructed.
template <typename Element, typename T>
std::span<Element> TrailingOf(T* object, size_t count, size_t offset_bytes = 0) {
    static_assert(alignof(Element) <= alignof(T) && std::is_trivially_destructible_v<Element>);
    static_assert(std::is_const_v<Element> || !std::is_const_v<T>);
    const auto start = reinterpret_cast<uintptr_t>(object) + sizeof(T) + offset_bytes;
    return {reinterpret_cast<Element*>(start), count};
}

// An array that lives as long as one command (VK_SYSTEM_ALLOCATION_SCOPE_COMMAND) or one object.
// Elements are value-initialised.
template <typename T>
class HostArray {
  public:
    HostArray() = default;
    HostArray(const Allocator& allocator,
              size_t count,
              VkSystemAllocationScope scope = VK_SYSTEM_ALLOCATION_SCOPE_COMMAND)
        : allocator_(allocator) {
        if (count == 0) {
            return;
        }
        data_ = static_cast<T*>(allocator.Allocate(count * sizeof(T), alignof(T), scope));
        if (data_) {
            std::uninitialized_value_construct_n(data_, count);
            count_ = count;
        }
    }
    HostArray(HostArray&& other) noexcept { *this = std::move(other); }
    HostArray& operator=(HostArray&& other) noexcept {
        std::swap(allocator_, other.allocator_);
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~HostArray() {
        std::destroy_n(data_, count_);
        if (data_) {
            allocator_.Free(data_);
        }
    }

    // False when `wanted` elements could not be had.
    bool Has(size_t wanted) const { return count_ == wanted; }

    T* data() const { return data_; }
    size_t size() const { return count_; }
    T& operator[](size_t index) const { return data_[index]; }
    T* begin() const { return data_; }
    T* end() const { return data_ + count_; }

  private:
    Allocator allocator_;
    T* data_ = nullptr;
    size_t count_ = 0;
};

}  // namespace fornax::driver
