// Matrix products.
#include "compiler/frontends/ggml/node.h"

namespace fornax::ggml_frontend {
namespace {

using graph::Expr;
using graph::Shape;
using graph::Val;

// result[i3, i2, n, m] = sum over k of a[i3 / r3, i2 / r2, m, k] * b[i3, i2, n, k]: several
// matrices of b share one of a.
Val MatMulNode(const Node& node) {
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

constexpr Operator kOperators[] = {
    {"MUL_MAT", MatMulNode},
};

}  // namespace

std::span<const Operator> ProductOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend
