// Walks pNext chains. Structures that the driver does not know are skipped, as the specification
// asks of implementations ("Valid Usage for Structure Pointer Chains").
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/allocator.h"

namespace fornax::driver {

// The first structure of type T in the chain that starts at `next`, or null.
template <typename T>
const T* FindInChain(const void* next, VkStructureType s_type) {
    for (auto* s = static_cast<const VkBaseInStructure*>(next); s; s = s->pNext) {
        if (s->sType == s_type) {
            return reinterpret_cast<const T*>(s);
        }
    }
    return nullptr;
}

template <typename T>
T* FindInChain(void* next, VkStructureType s_type) {
    return const_cast<T*>(FindInChain<T>(const_cast<const void*>(next), s_type));
}

// Copies the structures of one type in a chain, of which there may be several. False when there is
// no memory.
template <typename T>
bool CopyAllInChain(const Allocator& allocator,
                    const void* chain,
                    VkStructureType s_type,
                    VkSystemAllocationScope scope,
                    HostArray<T>& copies) {
    size_t count = 0;
    for (auto* s = FindInChain<T>(chain, s_type); s; s = FindInChain<T>(s->pNext, s_type)) {
        ++count;
    }
    copies = HostArray<T>(allocator, count, scope);
    if (!copies.Has(count)) {
        return false;
    }
    auto* s = FindInChain<T>(chain, s_type);
    for (T& copy : copies) {
        copy = *s;
        s = FindInChain<T>(s->pNext, s_type);
    }
    return true;
}

// Calls `visit(VkBaseOutStructure&)` for each structure of an output chain. The visitor must leave
// sType and pNext alone.
template <typename Visitor>
void ForEachInChain(void* next, Visitor&& visit) {
    for (auto* s = static_cast<VkBaseOutStructure*>(next); s; s = s->pNext) {
        visit(*s);
    }
}

// Copies properties into a structure of the application, whose sType and pNext stay.
template <typename T>
void FillStruct(VkBaseOutStructure& destination, T source) {
    auto& target = reinterpret_cast<T&>(destination);
    source.sType = target.sType;
    source.pNext = target.pNext;
    target = source;
}

// vkEnumerate* and vkGet* that return arrays: writes what fits into (count, out), VK_INCOMPLETE
// when not all did ("Retrieving Arrays" of commands that return counts). `write(element, i)` fills
// one.
template <typename T, typename Write>
VkResult WriteArray(uint32_t available, uint32_t* count, T* out, Write&& write) {
    if (!out) {
        *count = available;
        return VK_SUCCESS;
    }
    const bool all = *count >= available;
    *count = all ? available : *count;
    for (uint32_t i = 0; i < *count; ++i) {
        write(out[i], i);
    }
    return all ? VK_SUCCESS : VK_INCOMPLETE;
}

}  // namespace fornax::driver
