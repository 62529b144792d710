// Matrix products and attention.
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/torch/import_quantised.h"
#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/attention.h"
#include "compiler/graph/build/index.h"
#include "compiler/graph/build/product.h"

namespace fornax::torch_frontend {
namespace {

namespace map = graph::map;

Val Multiply(Val a, Val b) {
    const std::optional<Val> y = ProductOfIntegers(a, b);
    return y ? *y : graph::MatMul(a, b);
}

void ImportMm(Node& node) {
    node.Out(Multiply(node.In("self"), node.In("mat2")));
}

void ImportMatmul(Node& node) {
    node.Out(Multiply(node.In("self"), node.In("other")));
}

void ImportDot(Node& node) {
    node.Out(graph::MatMul(node.In("self"), node.In("tensor")));
}

void ImportMv(Node& node) {
    node.Out(graph::MatMul(node.In("self"), node.In("vec")));
}

bool IsOne(const Operand& number) {
    return !number.tensor && (number.is_float ? number.number == 1 : number.integer == 1);
}

bool IsZero(const Operand& number) {
    return !number.tensor && (number.is_float ? number.number == 0 : number.integer == 0);
}

// Narrow floats are multiplied as they are and added up in f32, which the result is then in.
Val Product(Val a, Val b) {
    const ElementType type = a.element(), compute = graph::ComputeType(type);
    return compute == type ? Multiply(a, b) : graph::MatMul(a, b, compute);
}

// beta * self + alpha * a b, rounded once.
void OutSum(Node& node, Val a, Val b) {
    const ElementType type = a.element(), compute = graph::ComputeType(type);
    const Operand alpha = node.Number("alpha"), beta = node.Number("beta");
    Builder& builder = node.builder();
    Val product = Product(a, b);
    if (!IsOne(alpha)) {
        product = product * ToTensor(builder, alpha, compute);
    }
    // A NaN is ignored where it counts nothing.
    if (IsZero(beta)) {
        return node.Out(product);
    }
    Val bias = node.As("self", compute);
    if (!IsOne(beta)) {
        bias = bias * ToTensor(builder, beta, compute);
    }
    node.Out(product + bias);
}

void ImportAddmm(Node& node) {
    OutSum(node, node.In("mat1"), node.In("mat2"));
}

void ImportAddmv(Node& node) {
    OutSum(node, node.In("mat"), node.In("vec"));
}

void ImportBaddbmm(Node& node) {
    OutSum(node, node.In("batch1"), node.In("batch2"));
}

void ImportLinear(Node& node) {
    const Val x = node.In("input");
    const ElementType compute = graph::ComputeType(x.element());
    Val weight = node.In("weight");
    weight = weight.rank() < 2 ? weight : graph::TransposeMatrix(weight);
    if (!node.Has("bias")) {
        return node.Out(Multiply(x, weight));
    }
    node.Out(Product(x, weight) + node.As("bias", compute));
}

// [batch, heads, positions, size] of a value with any number of dimensions before the last two.
Val FourDimensions(Val x) {
    if (x.rank() < 2) {
        FailInvalid(fmt::format("an operand is {}", x.shape().ToString()));
    }
    while (x.rank() < 4) {
        x = graph::Unsqueeze(x, 0);
    }
    return x.rank() == 4 ? x : graph::Flatten(x, 0, x.rank() - 3);
}

void ImportAttention(Node& node) {
    graph::AttentionOperands in;
    const Val query = node.In("query");
    in.query = FourDimensions(query);
    in.key = FourDimensions(node.In("key"));
    in.value = FourDimensions(node.In("value"));
    if (node.Float("dropout_p", 0) != 0) {
        FailUnsupported("it drops values at random");
    }
    if (!node.builder().sizes().Equal(in.key.dim(0), in.query.dim(0))) {
        in.key = graph::BroadcastTo(in.key,
                                    {in.query.dim(0), in.key.dim(1), in.key.dim(2), in.key.dim(3)});
        in.value = graph::BroadcastTo(
            in.value, {in.query.dim(0), in.value.dim(1), in.value.dim(2), in.value.dim(3)});
    }
    if (node.Has("attn_mask")) {
        Val mask = node.In("attn_mask");
        if (mask.rank() > 4) {
            mask = graph::Flatten(mask, 0, mask.rank() - 3);
        }
        in.mask = mask;
    }
    graph::AttentionOptions options;
    options.causal = node.Bool("is_causal", false);
    options.softmax = graph::ComputeType(query.element());
    const int64_t size = node.builder().sizes().Fix(query.dim(-1));
    options.scale =
        node.Float("scale", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(size, 1))));
    const graph::AttentionResult result = graph::Attention(in, options, graph::Scores::kNone);
    node.Out(0, graph::Reshape(result.y, node.ResultType().shape));
}

// The p-norms of differences along the last axis.
Val Distances(Val a, Val b, double p) {
    return graph::Widened(a, [&](Val wide) {
        const Val size = map::Abs(wide - graph::Cast(b, wide.element()));
        if (p == 2) {
            return map::Sqrt(graph::Sum(size * size, {-1}, false));
        }
        if (p == 1) {
            return graph::Sum(size, {-1}, false);
        }
        if (p == 0) {
            return graph::Sum(graph::Cast(graph::Not(graph::Equal(size, 0)), size.element()), {-1},
                              false);
        }
        if (std::isinf(p)) {
            return graph::Reduce(graph::Combine::kMax, size, {-1}, false);
        }
        return map::Pow(graph::Sum(map::Pow(size, graph::Like(size, p)), {-1}, false),
                        graph::Like(size, 1 / p));
    });
}

// The distances of all pairs of rows of two tensors.
void ImportCdist(Node& node) {
    node.Out(Distances(graph::Unsqueeze(node.In("x1"), -2), graph::Unsqueeze(node.In("x2"), -3),
                       node.Float("p")));
}

// The distances of each two rows of one tensor.
void ImportPdist(Node& node) {
    const Val x = node.In("self");
    const int64_t rows = node.builder().sizes().Fix(x.dim(0));
    constexpr int64_t kMostRows = 2048;
    if (rows > kMostRows) {
        FailUnsupported(fmt::format("it has {} rows, more than {}", rows, kMostRows));
    }
    std::vector<int64_t> first, second;
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = i + 1; j < rows; ++j) {
            first.push_back(i);
            second.push_back(j);
        }
    }
    Builder& b = node.builder();
    node.Out(Distances(graph::Take(x, b.Integers(first), 0), graph::Take(x, b.Integers(second), 0),
                       node.Float("p")));
}

constexpr OperatorEntry kOperators[] = {
    {"_cdist_forward.default", ImportCdist},
    {"_pdist_forward.default", ImportPdist},
    {"_scaled_dot_product_flash_attention_for_cpu.default", ImportAttention},
    {"addmm.default", ImportAddmm},
    {"addmv.default", ImportAddmv},
    {"baddbmm.default", ImportBaddbmm},
    {"bmm.default", ImportMm},
    {"dot.default", ImportDot},
    {"linear.default", ImportLinear},
    {"matmul.default", ImportMatmul},
    {"mm.default", ImportMm},
    {"mv.default", ImportMv},
    {"scaled_dot_product_attention.default", ImportAttention},
};

}  // namespace

std::span<const OperatorEntry> ProductOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
