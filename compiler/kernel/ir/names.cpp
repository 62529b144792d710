// Names of the kernel IR's enumerators, as the text form writes them.
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

const char* TypeName(Type type) {
    switch (type) {
        case Type::kVoid:
            return "void";
        case Type::kBool:
            return "bool";
        case Type::kI8:
            return "i8";
        case Type::kI16:
            return "i16";
        case Type::kI32:
            return "i32";
        case Type::kI64:
            return "i64";
        case Type::kF16:
            return "f16";
        case Type::kF32:
            return "f32";
        case Type::kF64:
            return "f64";
        case Type::kBuffer:
            return "buffer";
    }
    return "?";
}

const char* BuiltinName(BuiltinId builtin) {
    static constexpr const char* kNames[] = {
        "workgroup_id_x",   "workgroup_id_y",   "workgroup_id_z", "num_workgroups_x",
        "num_workgroups_y", "num_workgroups_z", "local_id_x",     "local_id_y",
        "local_id_z",       "local_index",      "subgroup_id",    "subgroup_lane",
        "num_subgroups",    "subgroup_size",
    };
    static_assert(std::size(kNames) == kNumBuiltins);
    auto index = static_cast<size_t>(builtin);
    return index < kNumBuiltins ? kNames[index] : "?";
}

const char* BindingKindName(BindingLayout::Kind kind) {
    static constexpr const char* kNames[] = {
        "storage_buffer", "uniform_buffer",         "storage_image",        "sampled_image",
        "sampler",        "combined_image_sampler", "storage_texel_buffer", "uniform_texel_buffer",
        "mutable",
    };
    static_assert(std::size(kNames) == kNumBindingKinds);
    return kNames[static_cast<size_t>(kind)];
}

const char* AtomicOpName(AtomicOp op) {
    static constexpr const char* kNames[] = {
        "load", "store", "exchange", "compare_exchange",
        "add",  "sub",   "umin",     "umax",
        "smin", "smax",  "and",      "or",
        "xor",  "fadd",  "fmin",     "fmax",
    };
    static_assert(std::size(kNames) == kNumAtomicOps);
    auto index = static_cast<size_t>(op);
    return index < kNumAtomicOps ? kNames[index] : "?";
}

const char* GroupOpName(GroupOp op) {
    static constexpr const char* kNames[] = {"iadd", "imul", "umin", "umax", "smin", "smax", "and",
                                             "or",   "xor",  "fadd", "fmul", "fmin", "fmax"};
    static_assert(std::size(kNames) == kNumGroupOps);
    auto index = static_cast<size_t>(op);
    return index < kNumGroupOps ? kNames[index] : "?";
}

}  // namespace fornax::kernel::ir
