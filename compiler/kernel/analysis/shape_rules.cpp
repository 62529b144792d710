// How integer operations act on shapes: arithmetic on the compile-time lane offsets.
#include <algorithm>
#include <bit>

#include "compiler/kernel/analysis/shapes.h"

namespace fornax::kernel::shape_rules {

namespace {

constexpr uint32_t kZeroBase = 64;

Shape WithKind(Shape::Kind kind) {
    Shape shape;
    shape.kind = kind;
    return shape;
}

int64_t OffsetAt(const Shape& shape, size_t lane) {
    return shape.pattern() ? shape.offsets[lane] : 0;
}

size_t LaneCount(const Shape& a, const Shape& b) {
    return std::max(a.offsets.size(), b.offsets.size());
}

}  // namespace

uint64_t TypeMax(uint32_t bits) {
    return bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
}

int64_t Wrap(int64_t value, uint32_t bits) {
    if (bits >= 64)
        return value;
    uint64_t low = static_cast<uint64_t>(value) & TypeMax(bits);
    uint64_t sign = uint64_t{1} << (bits - 1);
    return static_cast<int64_t>((low ^ sign) - sign);
}

bool Disjoint(const Shape& shape) {
    if (!shape.pattern())
        return shape.uniform();
    for (int64_t offset : shape.offsets) {
        if (offset < 0)
            return false;
        if (shape.base_zeros < 64 && (static_cast<uint64_t>(offset) >> shape.base_zeros) != 0)
            return false;
    }
    return true;
}

Shape Normalize(Shape shape) {
    if (shape.pattern() && std::all_of(shape.offsets.begin(), shape.offsets.end(),
                                       [](int64_t offset) { return offset == 0; })) {
        shape.kind = Shape::Kind::kUniform;
        shape.offsets.clear();
    }
    return shape;
}

Shape Add(const Shape& a, const Shape& b, uint32_t bits, bool subtract) {
    Shape result = WithKind(Shape::Kind::kUniform);
    result.max = TypeMax(bits);
    if (!subtract && a.max <= result.max && b.max <= result.max - a.max)
        result.max = a.max + b.max;
    if (a.varying() || b.varying()) {
        result.kind = Shape::Kind::kVarying;
        return result;
    }
    result.workgroup = a.workgroup && b.workgroup;
    result.base_zeros = std::min(a.base_zeros, b.base_zeros);
    size_t lanes = LaneCount(a, b);
    if (lanes != 0) {
        result.kind = Shape::Kind::kPattern;
        result.offsets.resize(lanes);
        for (size_t lane = 0; lane < lanes; ++lane) {
            uint64_t x = static_cast<uint64_t>(OffsetAt(a, lane));
            uint64_t y = static_cast<uint64_t>(OffsetAt(b, lane));
            result.offsets[lane] = Wrap(static_cast<int64_t>(subtract ? x - y : x + y), bits);
        }
    }
    return Normalize(std::move(result));
}

Shape MulConst(const Shape& a, uint64_t factor, uint32_t bits) {
    Shape result = a;
    result.max = TypeMax(bits);
    if (factor == 0)
        result.max = 0;
    else if (a.max <= result.max / factor)
        result.max = a.max * factor;
    if (!a.varying()) {
        uint32_t zeros = factor == 0 ? kZeroBase : static_cast<uint32_t>(std::countr_zero(factor));
        result.base_zeros = static_cast<uint8_t>(std::min(kZeroBase, a.base_zeros + zeros));
        for (int64_t& offset : result.offsets)
            offset = Wrap(static_cast<int64_t>(static_cast<uint64_t>(offset) * factor), bits);
    }
    return Normalize(std::move(result));
}

Shape ShiftRightConst(const Shape& a, uint32_t amount) {
    Shape result = a;
    result.max = a.max >> amount;
    if (a.varying())
        return result;
    if (!Disjoint(a)) {
        Shape varying = WithKind(Shape::Kind::kVarying);
        varying.max = result.max;
        return varying;
    }
    result.base_zeros =
        a.base_zeros == kZeroBase
            ? kZeroBase
            : static_cast<uint8_t>(a.base_zeros > amount ? a.base_zeros - amount : 0);
    for (int64_t& offset : result.offsets)
        offset >>= amount;
    return Normalize(std::move(result));
}

Shape AndConst(const Shape& a, uint64_t mask) {
    Shape result = a;
    result.max = std::min(a.max, mask);
    if (a.varying())
        return result;
    if (!Disjoint(a)) {
        Shape varying = WithKind(Shape::Kind::kVarying);
        varying.max = result.max;
        return varying;
    }
    uint32_t mask_zeros = mask == 0 ? kZeroBase : static_cast<uint32_t>(std::countr_zero(mask));
    result.base_zeros = static_cast<uint8_t>(std::max<uint32_t>(a.base_zeros, mask_zeros));
    if (a.base_zeros >= 64 || (mask >> a.base_zeros) == 0)
        result.base_zeros = kZeroBase;
    for (int64_t& offset : result.offsets)
        offset = static_cast<int64_t>(static_cast<uint64_t>(offset) & mask);
    return Normalize(std::move(result));
}

}  // namespace fornax::kernel::shape_rules
