#include "compiler/kernel/ir/types.h"

#include <cassert>

namespace fornax::kernel::ir {

uint32_t BitWidth(Type type) {
    switch (type) {
        case Type::kBool:
            return 1;
        case Type::kI8:
            return 8;
        case Type::kI16:
        case Type::kF16:
            return 16;
        case Type::kI32:
        case Type::kF32:
            return 32;
        case Type::kI64:
        case Type::kF64:
            return 64;
        case Type::kVoid:
        case Type::kBuffer:
            return 0;
    }
    return 0;
}

uint32_t ByteSize(Type type) {
    return type == Type::kBool ? 4 : BitWidth(type) / 8;
}

bool IsInteger(Type type) {
    return type >= Type::kI8 && type <= Type::kI64;
}

bool IsFloat(Type type) {
    return type >= Type::kF16 && type <= Type::kF64;
}

Type IntegerType(uint32_t bits) {
    switch (bits) {
        case 8:
            return Type::kI8;
        case 16:
            return Type::kI16;
        case 64:
            return Type::kI64;
        default:
            assert(bits == 32);
            return Type::kI32;
    }
}

Type FloatType(uint32_t bits) {
    switch (bits) {
        case 16:
            return Type::kF16;
        case 64:
            return Type::kF64;
        default:
            assert(bits == 32);
            return Type::kF32;
    }
}

}  // namespace fornax::kernel::ir
