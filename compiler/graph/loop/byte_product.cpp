// Recognises products of bytes and of bf16.
#include "compiler/graph/loop/byte_product.h"

#include <algorithm>

namespace fornax::graph::loop {
namespace {

constexpr int64_t kWordBytes = 4;

// An operand before it is widened: a load, and what is taken of the bytes that it loads.
struct Narrow {
    const Load* load = nullptr;
    Expr shift = 0;
    uint32_t mask = 0xFF;
};

// An integer scalar as an expression of loop variables.
std::optional<Expr> ExpressionOf(const Kernel& kernel, ScalarId id) {
    const ScalarNode& node = kernel[id];
    if (const auto* cast = std::get_if<Cast>(&node.value)) {
        return IsInteger(kernel[cast->argument].type) ? ExpressionOf(kernel, cast->argument)
                                                      : std::nullopt;
    }
    if (const auto* constant = std::get_if<Constant>(&node.value)) {
        return IsInteger(node.type) ? std::optional(Expr(constant->value.integer)) : std::nullopt;
    }
    if (const auto* index = std::get_if<Index>(&node.value)) {
        return index->value;
    }
    const auto* map = std::get_if<Map>(&node.value);
    if (map == nullptr || map->function != ScalarFunction::kMul) {
        return std::nullopt;
    }
    const std::optional<Expr> a = ExpressionOf(kernel, map->arguments[0]),
                              b = ExpressionOf(kernel, map->arguments[1]);
    return a && b ? std::optional(*a * *b) : std::nullopt;
}

const Map* MapOf(const Kernel& kernel, ScalarId id, ScalarFunction function) {
    const auto* map = std::get_if<Map>(&kernel[id].value);
    return map != nullptr && map->function == function ? map : nullptr;
}

// What of bytes `id` takes: (byte >> shift) & mask, where no bit of the next byte passes the mask.
std::optional<Narrow> BitsOfBytes(const Kernel& kernel,
                                  ScalarId id,
                                  const Symbol& place,
                                  const Domain& domain) {
    const Map* mask = MapOf(kernel, id, ScalarFunction::kAnd);
    if (mask == nullptr || kernel[id].type != ElementType::kU8) {
        return std::nullopt;
    }
    for (size_t side = 0; side < 2; ++side) {
        const auto* constant = std::get_if<Constant>(&kernel[mask->arguments[1 - side]].value);
        ScalarId bytes = mask->arguments[side];
        if (constant == nullptr) {
            continue;
        }
        Narrow narrow;
        narrow.mask = static_cast<uint32_t>(constant->value.integer) & 0xFFU;
        if (const Map* shift = MapOf(kernel, bytes, ScalarFunction::kShiftRight)) {
            const std::optional<Expr> amount = ExpressionOf(kernel, shift->arguments[1]);
            const Range bits = amount ? amount->Bounds(domain.ranges) : Range{-1, -1};
            if (bits.low < 0 || bits.high > 7 || amount->Uses(place) ||
                narrow.mask >> (8 - bits.high) != 0) {
                return std::nullopt;
            }
            narrow.shift = *amount;
            bytes = shift->arguments[0];
        }
        narrow.load = std::get_if<Load>(&kernel[bytes].value);
        return narrow.load == nullptr ? std::nullopt : std::optional(narrow);
    }
    return std::nullopt;
}

// What the operand widens: bytes, or bf16.
std::optional<Narrow> Widened(const Kernel& kernel,
                              ScalarId operand,
                              bool floats,
                              const Symbol& place,
                              const Domain& domain) {
    const auto* cast = std::get_if<Cast>(&kernel[operand].value);
    if (cast == nullptr) {
        return std::nullopt;
    }
    const ElementType type = kernel[cast->argument].type;
    const bool is_byte = type == ElementType::kI8 || type == ElementType::kU8;
    if (floats ? type != ElementType::kBF16 : !is_byte) {
        return std::nullopt;
    }
    Narrow narrow;
    narrow.load = std::get_if<Load>(&kernel[cast->argument].value);
    if (narrow.load == nullptr) {
        std::optional<Narrow> bits = BitsOfBytes(kernel, cast->argument, place, domain);
        if (!bits) {
            return std::nullopt;
        }
        narrow = *std::move(bits);
    }
    return kernel[narrow.load->buffer].written ? std::nullopt : std::optional(narrow);
}

// The load of a word's first element, if the last loop's points follow each other in one word.
std::optional<Load> WordOf(const Kernel& kernel,
                           const Load& load,
                           const Symbol& place,
                           int64_t word,
                           const Domain& domain) {
    const Shape& shape = kernel[load.buffer].type.shape;
    Load first = load;
    Expr offset, stride(1);
    for (size_t axis = shape.rank(); axis-- > 0;) {
        const Expr index = load.index[axis].Simplify(domain);
        for (const Symbol& symbol : index.Symbols()) {
            if (ScalarOfSymbol(symbol)) {
                return std::nullopt;
            }
        }
        // A word is inside or outside as a whole.
        if (index.Uses(place) &&
            !(domain.IsNotNegative(index) && domain.IsLess(index, shape[axis]))) {
            return std::nullopt;
        }
        offset += index * stride;
        stride *= shape[axis];
        if (index.Uses(place)) {
            if (!index.Coefficient(place)) {
                return std::nullopt;
            }
            first.index[axis] = index.Without(place);
        }
    }
    offset = offset.Simplify(domain);
    if (offset.Coefficient(place) != Expr(1) ||
        Mod(offset.Without(place), word).Simplify(domain) != Expr(0)) {
        return std::nullopt;
    }
    return first;
}

}  // namespace

std::optional<ByteProduct> FindByteProduct(const Kernel& kernel,
                                           const Scope& scope,
                                           const Product& product) {
    const ElementType sum = kernel[product.sum].type;
    const bool floats = sum == ElementType::kF32;
    const int64_t word = floats ? kWordBytes / 2 : kWordBytes;
    if ((!floats && sum != ElementType::kI32) || product.k.empty() || product.n.empty() ||
        product.k.back().extent != Expr(word)) {
        return std::nullopt;
    }
    Domain domain;
    domain.ranges = kernel.sizes;
    for (const Loop& loop : scope.variables) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    const Symbol& place = product.k.back().variable;
    const std::optional<Narrow> narrow_a = Widened(kernel, product.a, floats, place, domain);
    const std::optional<Narrow> narrow_b = Widened(kernel, product.b, floats, place, domain);
    if (!narrow_a || !narrow_b || narrow_a->mask != 0xFF) {
        return std::nullopt;
    }
    const Load *a = narrow_a->load, *b = narrow_b->load;
    std::optional<Load> a_word = WordOf(kernel, *a, place, word, domain);
    std::optional<Load> b_word = WordOf(kernel, *b, place, word, domain);
    if (!a_word || !b_word) {
        return std::nullopt;
    }
    for (size_t axis = 0; axis < b_word->index.size(); ++axis) {
        const Expr index = b_word->index[axis].Simplify(domain);
        if (!domain.IsNotNegative(index) ||
            !domain.IsLess(index, kernel[b_word->buffer].type.shape[axis])) {
            return std::nullopt;
        }
    }
    ByteProduct bytes;
    if (a->otherwise.valid()) {
        const auto* constant = std::get_if<Constant>(&kernel[a->otherwise].value);
        if (constant == nullptr) {
            return std::nullopt;
        }
        uint8_t element[kWordBytes] = {};
        WriteElement(kernel[a->otherwise].type, constant->value, element);
        bytes.otherwise =
            floats ? (element[0] | element[1] << 8U) * 0x00010001U : element[0] * 0x01010101U;
    }
    bytes.floats = floats;
    bytes.b_shift = narrow_b->shift;
    bytes.b_mask = narrow_b->mask;
    bytes.a_signed = IsSigned(kernel[a->buffer].type.element);
    bytes.b_signed = IsSigned(kernel[b->buffer].type.element);
    bytes.a = std::move(*a_word);
    bytes.b = std::move(*b_word);
    return bytes;
}

}  // namespace fornax::graph::loop
