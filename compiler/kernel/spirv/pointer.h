// Pointers, and values in general, as the translator has them.
//
// A SPIR-V value is a tuple of IR scalars, in declaration order. A pointer is resolved to a place
// when it is made; it becomes a tuple (Type::pointer_scalars) only where it is chosen at run time
// or stored.
#pragma once

#include <optional>
#include <vector>

#include "compiler/kernel/interface/heap_mappings.h"
#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/spirv/grammar.h"

namespace fornax::kernel::spirv {

// Buffers and workgroup memory are aligned to this many bytes at least.
inline constexpr uint32_t kMaxAlign = 16;

using Tuple = std::vector<ir::ValueId>;

struct Pointer {
    // kImage: an image, a sampler or a texel buffer, which a load of it is, too.
    // kHeap: descriptors in a heap, whose bytes only say where they are.
    enum class Space : uint8_t {
        kBuffer,
        kPush,
        kShared,
        kAddress,
        kLocal,
        kBuiltin,
        kImage,
        kHeap
    };
    // A step into an array of a private variable.
    struct Term {
        ir::ValueId index;
        uint32_t element = 0;  // type id of the array's element
        uint32_t leaf = 0;     // first leaf of that element in the variable
    };

    Space space = Space::kLocal;
    uint32_t type = 0;  // pointee's type id; what uses an untyped pointer says its own
    bool untyped = false;
    bool is_volatile = false;

    // Memory with bytes: kBuffer, kPush, kShared, kAddress.
    uint32_t binding = 0;        // kBuffer: index into Kernel::bindings; kHeap: the heap's set
    ir::ValueId element;         // kBuffer: descriptor array element, or invalid for 0
    bool needs_element = false;  // kBuffer: an array of blocks, not indexed yet
    bool nonuniform = false;
    ir::ValueId view_address;  // kBuffer, in place of a binding: address and size, i64
    ir::ValueId view_size;
    // kBuffer, kImage with descriptor heaps, until ResolveHeap: `element` indexes what is mapped,
    // from the binding `mapped_binding` of the mapping on.
    const HeapMapping* mapping = nullptr;
    uint32_t mapped_binding = 0;
    // The dynamic part in bytes, of OffsetType, or invalid for 0; kAddress: always there.
    ir::ValueId offset;
    uint64_t const_offset = 0;
    uint32_t align = 16;     // of the dynamic part
    bool row_major = false;  // of the matrix pointed to, or held by the arrays pointed to
    uint32_t matrix_stride = 0;
    uint32_t component_stride = 0;  // a column of a row-major matrix; 0: components are adjacent

    // kImage that was made of an image and a sampler.
    bool has_sampler = false;
    bool sampler_nonuniform = false;
    uint32_t sampler_binding = 0;
    ir::ValueId sampler_element;

    // A texel: what is outside of its image is not there. Invalid for all other memory.
    ir::ValueId guard;

    // kLocal.
    uint32_t variable = 0;  // index into Translation::variables
    uint32_t leaf = 0;      // first leaf of the pointee
    std::vector<Term> terms;

    // kBuiltin.
    spv::BuiltIn builtin = spv::BuiltIn::Max;
    ir::ValueId component;  // of the vector, or invalid for all
};

struct Value {
    uint32_t type = 0;
    Tuple scalars;
    std::optional<Pointer> pointer;
    ir::BlockId block;  // where it was made
    // The value itself is in private memory, where `pointer` says, and is not written again.
    bool is_large = false;
};

// A private variable: one IR local a leaf.
struct LocalVariable {
    std::vector<uint32_t> locals;
};

}  // namespace fornax::kernel::spirv
