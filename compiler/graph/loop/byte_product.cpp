// Recognises products of bytes and of bf16.
#include "compiler/graph/loop/byte_product.h"

#include <algorithm>

namespace fornax::graph::loop {
namespace {

constexpr int64_t kWordBytes = 4;

// Bits of an operand before it is widened: a load, and what is taken of the bytes that it loads.
struct Narrow {
    const Load* load = nullptr;
    Expr shift = 0;
    uint32_t mask = 0xFF;
    uint32_t place = 0;
};

// The number of a scalar that is an integer constant.
std::optional<int64_t> ConstantOf(const Kernel& kernel, ScalarId id) {
    const auto* constant = std::get_if<Constant>(&kernel[id].value);
    return constant != nullptr && IsInteger(kernel[id].type)
               ? std::optional(constant->value.integer)
               : std::nullopt;
}

// An integer scalar as an expression of loop variables.
std::optional<Expr> ExpressionOf(const Kernel& kernel, ScalarId id) {
    const ScalarNode& node = kernel[id];
    if (const auto* cast = std::get_if<Cast>(&node.value)) {
        return IsInteger(kernel[cast->argument].type) ? ExpressionOf(kernel, cast->argument)
                                                      : std::nullopt;
    }
    if (std::holds_alternative<Constant>(node.value)) {
        const std::optional<int64_t> constant = ConstantOf(kernel, id);
        return constant ? std::optional(Expr(*constant)) : std::nullopt;
    }
    if (const auto* index = std::get_if<Index>(&node.value)) {
        return index->value;
    }
    const auto* map = std::get_if<Map>(&node.value);
    if (map == nullptr ||
        (map->function != ScalarFunction::kMul && map->function != ScalarFunction::kAdd)) {
        return std::nullopt;
    }
    const std::optional<Expr> a = ExpressionOf(kernel, map->arguments[0]),
                              b = ExpressionOf(kernel, map->arguments[1]);
    if (!a || !b) {
        return std::nullopt;
    }
    return map->function == ScalarFunction::kMul ? *a * *b : *a + *b;
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

// What of bytes `id` takes, as bits of an element at a place.
std::optional<Narrow> BitsAtPlace(const Kernel& kernel,
                                  ScalarId id,
                                  const Symbol& place,
                                  const Domain& domain) {
    const Map* shift = MapOf(kernel, id, ScalarFunction::kShiftLeft);
    if (shift == nullptr) {
        return BitsOfBytes(kernel, id, place, domain);
    }
    const std::optional<int64_t> amount = ConstantOf(kernel, shift->arguments[1]);
    std::optional<Narrow> narrow = BitsOfBytes(kernel, shift->arguments[0], place, domain);
    // No bit leaves the byte.
    if (!narrow || !amount || *amount < 0 || *amount > 7 || narrow->mask >> (8 - *amount) != 0) {
        return std::nullopt;
    }
    narrow->place = static_cast<uint32_t>(*amount);
    return narrow;
}

// The bits that an element is made of.
std::vector<Narrow> AllBits(const Kernel& kernel,
                            ScalarId id,
                            const Symbol& place,
                            const Domain& domain) {
    std::vector<ScalarId> parts = {id};
    if (const Map* both = MapOf(kernel, id, ScalarFunction::kOr)) {
        parts = both->arguments;
    }
    std::vector<Narrow> all;
    for (const ScalarId part : parts) {
        std::optional<Narrow> narrow = BitsAtPlace(kernel, part, place, domain);
        if (!narrow) {
            return {};
        }
        all.push_back(*std::move(narrow));
    }
    return all;
}

// What the operand widens: bytes, or bf16. Nothing for what is neither.
std::vector<Narrow> Widened(const Kernel& kernel,
                            ScalarId operand,
                            bool floats,
                            const Symbol& place,
                            const Domain& domain) {
    const auto* cast = std::get_if<Cast>(&kernel[operand].value);
    if (cast == nullptr) {
        return {};
    }
    const ElementType type = kernel[cast->argument].type;
    const bool is_byte = type == ElementType::kI8 || type == ElementType::kU8;
    if (floats ? type != ElementType::kBF16 : !is_byte) {
        return {};
    }
    std::vector<Narrow> all(1);
    all[0].load = std::get_if<Load>(&kernel[cast->argument].value);
    if (all[0].load == nullptr) {
        all = AllBits(kernel, cast->argument, place, domain);
    }
    const bool is_written = std::ranges::any_of(
        all, [&](const Narrow& narrow) { return kernel[narrow.load->buffer].written; });
    return is_written ? std::vector<Narrow>() : all;
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
    const std::vector<Narrow> narrow_a = Widened(kernel, product.a, floats, place, domain);
    const std::vector<Narrow> narrow_b = Widened(kernel, product.b, floats, place, domain);
    if (narrow_a.size() != 1 || narrow_a[0].mask != 0xFF || narrow_b.empty()) {
        return std::nullopt;
    }
    const Load* a = narrow_a[0].load;
    std::optional<Load> a_word = WordOf(kernel, *a, place, word, domain);
    if (!a_word) {
        return std::nullopt;
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
    for (const Narrow& narrow : narrow_b) {
        std::optional<Load> b_word = WordOf(kernel, *narrow.load, place, word, domain);
        if (!b_word) {
            return std::nullopt;
        }
        for (size_t axis = 0; axis < b_word->index.size(); ++axis) {
            const Expr index = b_word->index[axis].Simplify(domain);
            if (!domain.IsNotNegative(index) ||
                !domain.IsLess(index, kernel[b_word->buffer].type.shape[axis])) {
                return std::nullopt;
            }
        }
        bytes.b.push_back({*std::move(b_word), narrow.shift, narrow.mask, narrow.place});
    }
    bytes.floats = floats;
    bytes.a_signed = IsSigned(kernel[a->buffer].type.element);
    bytes.b_signed = IsSigned(kernel[narrow_b[0].load->buffer].type.element);
    bytes.a = std::move(*a_word);
    return bytes;
}

}  // namespace fornax::graph::loop
