// What the interpreter's invocations read and write, with every access checked.
#pragma once

#include <cstring>
#include <vector>

#include "compiler/kernel/ir/kernel.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

// A piece of memory with a known end.
struct MemoryRange {
    uint8_t* data = nullptr;
    uint64_t size_bytes = 0;

    bool Contains(uint64_t offset, uint64_t bytes) const {
        return offset <= size_bytes && bytes <= size_bytes - offset;
    }
};

// An element's bits, zero extended; 0 outside.
inline uint64_t LoadElement(const MemoryRange& range, ir::Type type, uint64_t offset) {
    uint64_t bits = 0;
    if (range.Contains(offset, ir::ByteSize(type))) {
        std::memcpy(&bits, range.data + offset, ir::ByteSize(type));
    }
    return type == ir::Type::kBool ? bits != 0 : bits;
}
inline void StoreElement(const MemoryRange& range, ir::Type type, uint64_t offset, uint64_t bits) {
    if (range.Contains(offset, ir::ByteSize(type))) {
        std::memcpy(range.data + offset, &bits, ir::ByteSize(type));
    }
}

// A buffer value is the index of its binding and the array element.
inline uint64_t EncodeBuffer(uint64_t binding, uint64_t element) {
    return binding << 32 | element;
}
// The bytes of a binding's descriptors.
MemoryRange DescriptorRange(const ir::Kernel& kernel,
                            const hal::DispatchFrame& dispatch,
                            uint64_t binding);
// The bound range; empty for an element outside of the array.
MemoryRange BufferRange(const ir::Kernel& kernel,
                        const hal::DispatchFrame& dispatch,
                        uint64_t buffer);

// The new contents of an element and, in `old`, what was there: see ir::AtomicOp.
uint64_t ApplyAtomic(ir::AtomicOp op,
                     ir::Type type,
                     uint64_t old,
                     uint64_t value,
                     uint64_t comparand);

}  // namespace fornax::kernel
