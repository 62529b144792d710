// Matrix products.
#include <algorithm>

#include "compiler/frontends/ggml/node.h"
#include "compiler/graph/build/index.h"
#include "compiler/graph/build/product.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Expr;
using graph::Shape;
using graph::Val;

// The rows of the second operand times weights in panels.
Val PackedProduct(const Node& node) {
    const TypeInfo& type = *node.source(0).type;
    const PackForm form = *PackFormOf(type);
    const int64_t k = node.source(0).ne[0], n = node.source(0).ne[1];
    const int64_t panels = (n + graph::kPanelColumns - 1) / graph::kPanelColumns;
    const Val x = node.Float(1);
    if (form.bits == 0) {
        const Val w =
            node.PackPart(0, Part::kCodes, type.element, Shape({panels, k, graph::kPanelColumns}));
        const Expr rows = x.dim(0) * x.dim(1) * x.dim(2);
        Val y = Contract(Reshape(x, Shape({rows, k})), Cast(w, ElementType::kF32), "mk,pkc->mpc");
        y = Reshape(y, Shape({rows, panels * graph::kPanelColumns}));
        return Reshape(SliceAxis(y, 1, 0, n), node.shape());
    }
    const int64_t words = form.block * form.bits / 32;
    const Val codes =
        node.PackPart(0, Part::kCodes, ElementType::kU8,
                      Shape({panels, k / form.block, words, graph::kPanelColumns, 4}));
    const Val high =
        form.high_bits == 0
            ? Val()
            : node.PackPart(0, Part::kHighCodes, ElementType::kU8,
                            Shape({panels, k / form.block, 1, graph::kPanelColumns, 4}));
    const auto of_blocks = [&](Part part, Part units) {
        const Shape blocks({panels, k / form.block, graph::kPanelColumns});
        if (form.group == 0) {
            return node.PackPart(0, part, ElementType::kF16, blocks);
        }
        const Val bytes = node.PackPart(
            0, part, form.signed_scales ? ElementType::kI8 : ElementType::kU8, blocks);
        const Val unit = node.PackPart(0, units, ElementType::kF16,
                                       Shape({panels, k / form.group, graph::kPanelColumns}));
        const Shape groups({panels, k / form.group, form.group / form.block, graph::kPanelColumns});
        const Val product = Reshape(Cast(bytes, ElementType::kF32), groups) *
                            Unsqueeze(Cast(unit, ElementType::kF32), 2);
        return Reshape(product, blocks);
    };
    const Val scales = of_blocks(Part::kScales, Part::kScaleUnits);
    const Val least = form.has_least ? of_blocks(Part::kLeast, Part::kLeastUnits) : Val();
    return MatMulByteBlocks(
        x, codes, high, scales, form.zero, least,
        {.k = k, .n = n, .bits = form.bits, .block = form.block, .high_bits = form.high_bits});
}

// The rows of the second operand times one matrix of blocks where it lies. Sums go over blocks and
// their elements, which so lie side by side.
Val ProductOfBlocks(const Node& node) {
    const Tensor &matrix = node.source(0), &rows = node.source(1);
    const int64_t block = matrix.type->block_elements, blocks = matrix.ne[0] / block;
    const int64_t count = rows.ne[1] * rows.ne[2] * rows.ne[3];
    const Val a = Reshape(node.Float(1), Shape({count, blocks, block}));
    const Val b = DecodeBlocks(node.Raw(0), *matrix.type);
    return Reshape(Contract(a, b, "mbi,nbi->mn"), node.shape());
}

// result[i3, i2, n, m] = sum over k of a[i3 / r3, i2 / r2, m, k] * b[i3, i2, n, k]: several
// matrices of b share one of a.
Val MatMulNode(const Node& node) {
    if (node.IsPacked(0)) {
        return PackedProduct(node);
    }
    if (node.IsInPlace(0) && node.source(0).type->is_quantised()) {
        return ProductOfBlocks(node);
    }
    const Val a = node.Float(0), b = node.Float(1);
    const Tensor &of_a = node.source(0), &of_b = node.source(1);
    for (const size_t d : {size_t{2}, size_t{3}}) {
        if (of_a.ne[d] == 0 || of_b.ne[d] % of_a.ne[d] != 0) {
            graph::FailInvalid("the matrices cannot be repeated");
        }
    }
    const Shape split({of_a.ne[3], of_b.ne[3] / of_a.ne[3], of_a.ne[2], of_b.ne[2] / of_a.ne[2],
                       of_b.ne[1], of_b.ne[0]});
    const Val product = Contract(Reshape(b, split), a, "hrgsnk,hgmk->hrgsnm");
    return Reshape(product, node.shape());
}

// Rows b [tokens, used, k] times the matrices of their indices [tokens, used] among those of
// `data`, [experts, rows, k or bytes].
Val ProductsByIndex(const TypeInfo& type, Val data, Val b, Val index) {
    const Expr tokens = b.dim(0), used = b.dim(1), rows = data.dim(1);
    const Val at = Reshape(index, Shape({tokens, used, 1, 1}));
    const Val gathered = Gather(data, {-1, 2, 3}, {at}, Shape({tokens, used, rows, data.dim(2)}));
    const Val a = type.is_quantised() ? Decode(gathered, type) : Cast(gathered, ElementType::kF32);
    return Contract(b, a, "tuk,tumk->tum");
}

// The most tokens that divide all and whose matrices have no more elements than that together.
int64_t TokensAtOnce(int64_t tokens, int64_t elements_of_token) {
    constexpr int64_t kMostGathered = int64_t{1} << 26;
    int64_t best = 1;
    for (int64_t count = 1; count <= tokens; ++count) {
        if (tokens % count == 0 &&
            count <= kMostGathered / std::max<int64_t>(elements_of_token, 1)) {
            best = count;
        }
    }
    return best;
}

// result[1, t, u, m] = sum over k of a[ids[t, u], m, k] * b[t, u % nb, k].
Val MatMulByIndex(const Node& node) {
    const Tensor &of_a = node.source(0), &of_b = node.source(1), &of_ids = node.source(2);
    const int64_t k = of_a.ne[0], rows = of_a.ne[1], used = of_ids.ne[0], tokens = of_ids.ne[1];
    if (of_a.ne[3] != 1 || of_b.ne[3] != 1 || of_ids.ne[2] != 1 || of_ids.ne[3] != 1 ||
        of_b.ne[2] != tokens || of_b.ne[0] != k) {
        graph::FailInvalid("the operands do not have the dimensions of the indices");
    }
    const TypeInfo& type = *of_a.type;
    const Val raw = node.Raw(0);
    const Val data = Reshape(raw, Shape({raw.dim(1), raw.dim(2), raw.dim(3)}));
    const Val b = RepeatTo(node.Float(1), Shape({1, tokens, used, k}));
    const Val index = Reshape(node.Integer(2), Shape({tokens, used}));
    const int64_t count = TokensAtOnce(tokens, used * rows * k);
    if (count == tokens) {
        return Reshape(ProductsByIndex(type, data, Reshape(b, Shape({tokens, used, k})), index),
                       node.shape());
    }
    // Many large matrices: some tokens after the others, as each has its own.
    graph::Builder& builder = node.builder();
    const int64_t parts = tokens / count;
    const Val empty = builder.Full(ElementType::kF32, Shape({parts, count, used, rows}), 0);
    const Val all = builder.Loop(builder.Size(parts), {empty},
                                 {data, Reshape(b, Shape({parts, count, used, k})),
                                  Reshape(index, Shape({parts, count, used}))},
                                 [&](graph::Builder&, graph::Vals v) -> graph::Vals {
                                     const Val product =
                                         ProductsByIndex(type, v[2], graph::TakeOne(v[3], v[0], 0),
                                                         graph::TakeOne(v[4], v[0], 0));
                                     return {graph::PutOne(v[1], v[0], product, 0)};
                                 })[0];
    return Reshape(all, node.shape());
}

// Each row plus the row of a table that its index names.
Val AddByIndex(const Node& node) {
    const Val a = node.Float(0), table = node.Float(1);
    const Tensor &of_a = node.source(0), &of_ids = node.source(2);
    if (of_a.ne[3] != 1 || node.source(1).ne[2] != 1 || node.source(1).ne[3] != 1 ||
        of_ids.ne[0] != of_a.ne[1] || of_ids.ne[1] != of_a.ne[2] || of_ids.ne[2] != 1 ||
        of_ids.ne[3] != 1) {
        graph::FailInvalid("the operands do not have the dimensions of the indices");
    }
    const Val index = Reshape(node.Integer(2), Shape({1, of_ids.ne[1], of_ids.ne[0], 1}));
    return a + Gather(Reshape(table, Shape({table.dim(2), table.dim(3)})), {-1, 3}, {index},
                      node.shape());
}

// result[i3, i2, n, m] = sum over k of a[i3 / r3, i2 / r2, k, m] * b[i3, i2, k, n].
Val OuterProduct(const Node& node) {
    const Val a = node.Float(0), b = node.Float(1);
    const Tensor &of_a = node.source(0), &of_b = node.source(1);
    for (const size_t d : {size_t{2}, size_t{3}}) {
        if (of_a.ne[d] == 0 || of_b.ne[d] % of_a.ne[d] != 0) {
            graph::FailInvalid("the matrices cannot be repeated");
        }
    }
    const Shape split({of_a.ne[3], of_b.ne[3] / of_a.ne[3], of_a.ne[2], of_b.ne[2] / of_a.ne[2],
                       of_b.ne[1], of_b.ne[0]});
    return Reshape(Contract(Reshape(b, split), a, "hrgskn,hgkm->hrgsnm"), node.shape());
}

constexpr Operator kOperators[] = {
    {"MUL_MAT", MatMulNode},
    {"MUL_MAT_ID", MatMulByIndex},
    {"ADD_ID", AddByIndex},
    {"OUT_PROD", OuterProduct},
};

}  // namespace

std::span<const Operator> ProductOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend
