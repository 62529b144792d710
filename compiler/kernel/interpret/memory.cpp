#include "compiler/kernel/interpret/memory.h"

#include <algorithm>
#include <bit>

#include "base/half.h"
#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

using ir::AtomicOp;

MemoryRange DescriptorRange(const ir::Kernel& kernel,
                            const hal::DispatchFrame& dispatch,
                            uint64_t binding) {
    const ir::Binding& from = kernel.bindings[binding];
    const auto* set = static_cast<const uint8_t*>(dispatch.descriptor_sets[from.set]);
    // Only read.
    return {const_cast<uint8_t*>(set) + from.layout.offset_bytes,
            uint64_t{from.layout.count} * from.layout.Stride()};
}

MemoryRange BufferRange(const ir::Kernel& kernel,
                        const hal::DispatchFrame& dispatch,
                        uint64_t buffer) {
    const ir::Binding& binding = kernel.bindings[buffer >> 32];
    uint64_t element = buffer & UINT32_MAX;
    if (element >= binding.layout.count) {
        return {};
    }
    hal::BufferDescriptor descriptor;
    const auto* set = static_cast<const uint8_t*>(dispatch.descriptor_sets[binding.set]);
    if (binding.layout.inline_bytes != 0) {
        // Only read.
        return {const_cast<uint8_t*>(set) + binding.layout.offset_bytes,
                binding.layout.inline_bytes};
    }
    if (binding.layout.variable_count) {
        uint32_t last = 0;
        std::memcpy(&last, set + binding.layout.offset_bytes - BindingLayout::kVariableHeaderBytes,
                    sizeof(last));
        if (element > last) {
            return {};
        }
    }
    std::memcpy(&descriptor, set + binding.layout.offset_bytes + element * binding.layout.Stride(),
                sizeof(descriptor));
    if (descriptor.size_bytes == 0) {
        return {};
    }
    if (binding.layout.first_dynamic_offset != BindingLayout::kNotDynamic) {
        descriptor.address +=
            dispatch.dynamic_offsets[binding.layout.first_dynamic_offset + element];
    }
    return {reinterpret_cast<uint8_t*>(descriptor.address), descriptor.size_bytes};
}

namespace {

double ToDouble(ir::Type type, uint64_t bits) {
    if (type == ir::Type::kF16) {
        return HalfToDouble(static_cast<uint16_t>(bits));
    }
    return type == ir::Type::kF32 ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                                  : std::bit_cast<double>(bits);
}

uint64_t ApplyFloatAtomic(AtomicOp op, ir::Type type, uint64_t old, uint64_t value) {
    const double a = ToDouble(type, old);
    const double b = ToDouble(type, value);
    if (op != AtomicOp::kFAdd) {
        const bool keep = op == AtomicOp::kFMin ? a <= b : a >= b;
        return keep || b != b ? old : value;
    }
    // The second rounding does not change sums of f32 or f16.
    if (type == ir::Type::kF16) {
        return DoubleToHalf(a + b);
    }
    return type == ir::Type::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(a + b))
                                  : std::bit_cast<uint64_t>(a + b);
}

}  // namespace

uint64_t ApplyAtomic(AtomicOp op, ir::Type type, uint64_t old, uint64_t value, uint64_t comparand) {
    auto is_signed = [&](uint64_t bits) { return ir::SignExtend(bits, ir::BitWidth(type)); };
    switch (op) {
        case AtomicOp::kLoad:
            return old;
        case AtomicOp::kStore:
        case AtomicOp::kExchange:
            return value;
        case AtomicOp::kCompareExchange:
            return old == comparand ? value : old;
        case AtomicOp::kAdd:
            return old + value;
        case AtomicOp::kSub:
            return old - value;
        case AtomicOp::kUMin:
            return std::min(old, value);
        case AtomicOp::kUMax:
            return std::max(old, value);
        case AtomicOp::kSMin:
            return is_signed(old) < is_signed(value) ? old : value;
        case AtomicOp::kSMax:
            return is_signed(old) > is_signed(value) ? old : value;
        case AtomicOp::kAnd:
            return old & value;
        case AtomicOp::kOr:
            return old | value;
        case AtomicOp::kXor:
            return old ^ value;
        case AtomicOp::kFAdd:
        case AtomicOp::kFMin:
        case AtomicOp::kFMax:
            return ApplyFloatAtomic(op, type, old, value);
    }
    return old;
}

}  // namespace fornax::kernel
