// Recognises products of bytes and of bf16.
#include "compiler/graph/loop/byte_product.h"

#include <algorithm>

namespace fornax::graph::loop {
namespace {

constexpr int64_t kWordBytes = 4;

// The load of bytes, or of bf16, that the operand widens.
const Load* WidenedLoad(const Kernel& kernel, ScalarId operand, bool floats) {
    const auto* cast = std::get_if<Cast>(&kernel[operand].value);
    if (cast == nullptr) {
        return nullptr;
    }
    const ElementType type = kernel[cast->argument].type;
    const bool is_byte = type == ElementType::kI8 || type == ElementType::kU8;
    if (floats ? type != ElementType::kBF16 : !is_byte) {
        return nullptr;
    }
    const auto* load = std::get_if<Load>(&kernel[cast->argument].value);
    const bool written = load != nullptr && kernel[load->buffer].written;
    return written ? nullptr : load;
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
    const Load* a = WidenedLoad(kernel, product.a, floats);
    const Load* b = WidenedLoad(kernel, product.b, floats);
    if (a == nullptr || b == nullptr) {
        return std::nullopt;
    }
    Domain domain;
    domain.ranges = kernel.sizes;
    for (const Loop& loop : scope.variables) {
        domain.AddVariable(loop.variable, loop.extent);
    }
    const Symbol& place = product.k.back().variable;
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
    bytes.a_signed = IsSigned(kernel[a->buffer].type.element);
    bytes.b_signed = IsSigned(kernel[b->buffer].type.element);
    bytes.a = std::move(*a_word);
    bytes.b = std::move(*b_word);
    return bytes;
}

}  // namespace fornax::graph::loop
