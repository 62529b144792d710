// Factorisations and linear systems: torch.linalg.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/product.h"

namespace fornax::torch_frontend {
namespace {

namespace map = graph::map;

// [batch, rows, columns] of any number of batch dimensions.
Val Matrices(Val x) {
    if (x.rank() < 2) {
        FailInvalid(fmt::format("an operand is {}, no matrix", x.shape().ToString()));
    }
    x = graph::Cast(x, graph::ComputeType(x.element()));
    return x.rank() == 2 ? graph::Unsqueeze(x, 0) : graph::Flatten(x, 0, x.rank() - 2);
}

// The same with the batch dimensions of `batch`, which the matrices' are broadcast to.
Val Matrices(Val x, std::span<const Expr> batch) {
    if (x.rank() < 2) {
        FailInvalid(fmt::format("an operand is {}, no matrix", x.shape().ToString()));
    }
    std::vector<Expr> dims(batch.begin(), batch.end());
    dims.push_back(x.dim(-2));
    dims.push_back(x.dim(-1));
    return Matrices(graph::BroadcastTo(x, Shape(std::move(dims))));
}

std::vector<Expr> BatchOf(const Shape& shape) {
    return {shape.dims().begin(),
            shape.dims().end() - std::min<int64_t>(2, static_cast<int64_t>(shape.rank()))};
}

void RequireSquare(Val x) {
    if (x.rank() < 2 || !x.builder().sizes().Equal(x.dim(-1), x.dim(-2))) {
        FailInvalid(fmt::format("its matrices are {}, not square", x.shape().ToString()));
    }
}

// A result in the shape that the file says.
void OutAs(Node& node, size_t index, Val value) {
    if (node.Wants(index)) {
        node.Out(index, graph::Reshape(value, node.ResultType(index).shape));
    }
}

Val Upper(Val x) {
    Builder& b = x.builder();
    const Val row = b.Iota(ElementType::kI64, x.shape(), 1);
    const Val column = b.Iota(ElementType::kI64, x.shape(), 2);
    return graph::Where(map::LessEqual(row, column), x, graph::Like(x, 0));
}

// L, with ones on the diagonal.
Val UnitLower(Val x) {
    Builder& b = x.builder();
    const Val row = b.Iota(ElementType::kI64, x.shape(), 1);
    const Val column = b.Iota(ElementType::kI64, x.shape(), 2);
    return graph::Where(map::Less(column, row), x,
                        graph::Cast(map::Equal(row, column), x.element()));
}

// --- Elimination ---

void ImportLuFactor(Node& node) {
    const graph::LuFactors factors =
        graph::FactorLu(Matrices(node.In("A")), node.Bool("pivot", true));
    OutAs(node, 0, factors.lu);
    OutAs(node, 1, factors.pivots + 1.0);  // counted from 1 on
    OutAs(node, 2, factors.info);
}

// P, L and U of factors.
void OutUnpacked(Node& node, Val lu, Val pivots) {
    Builder& b = node.builder();
    const Expr rows = lu.dim(1), columns = lu.dim(2), count = graph::Min(rows, columns);
    if (node.Wants(0)) {
        if (pivots) {
            const Val order = graph::PermutationOf(pivots, rows);
            const Shape shape{lu.dim(0), rows, rows};
            const Val row = b.Iota(ElementType::kI64, shape, 1);
            OutAs(node, 0, map::Equal(row, graph::Unsqueeze(order, 1)));
        } else {
            OutAs(node, 0, b.Full(ElementType::kF32, node.ResultType(0).shape, 0));
        }
    }
    if (node.Wants(1)) {
        OutAs(node, 1, UnitLower(graph::SliceAxis(lu, 2, 0, count)));
    }
    if (node.Wants(2)) {
        OutAs(node, 2, Upper(graph::SliceAxis(lu, 1, 0, count)));
    }
}

void ImportLu(Node& node) {
    const bool swaps = node.Bool("pivot", true);
    const graph::LuFactors factors = graph::FactorLu(Matrices(node.In("A")), swaps);
    OutUnpacked(node, factors.lu, swaps ? factors.pivots : Val());
}

// [batch, count] of vectors with any number of batch dimensions.
Val Vectors(Val x) {
    if (x.rank() < 1) {
        FailInvalid("an operand has no dimensions");
    }
    return x.rank() == 1 ? graph::Unsqueeze(x, 0) : graph::Flatten(x, 0, x.rank() - 1);
}

// torch's pivots as those of FactorLu(), [batch, count].
Val PivotsFrom(Val pivots) {
    return Vectors(graph::Cast(pivots, ElementType::kI64) - 1.0);
}

void ImportLuUnpack(Node& node) {
    if (!node.Bool("unpack_data", true) && (node.Wants(1) || node.Wants(2))) {
        FailUnsupported("it gives factors without data");
    }
    OutUnpacked(node, Matrices(node.In("LU_data")), PivotsFrom(node.In("LU_pivots")));
}

// From the left, or transposed from the right.
Val FromLeft(Val x, bool left) {
    return left ? x : graph::TransposeMatrix(x);
}

void ImportLuSolve(Node& node) {
    const std::vector<Expr> batch = BatchOf(node.ResultType().shape);
    const bool left = node.Bool("left", true);
    const Val lu = Matrices(node.In("LU"), batch);
    RequireSquare(lu);
    Val pivots = node.In("pivots");
    std::vector<Expr> dims = batch;
    dims.push_back(lu.dim(1));
    pivots = PivotsFrom(graph::BroadcastTo(pivots, Shape(std::move(dims))));
    const Val b = FromLeft(Matrices(node.In("B"), batch), left);
    OutAs(node, 0,
          FromLeft(graph::SolveLu(lu, pivots, b, left == node.Bool("adjoint", false)), left));
}

void ImportInverse(Node& node) {
    const Val a = Matrices(node.In("A"));
    RequireSquare(a);
    const graph::LuFactors factors = graph::FactorLu(a, true);
    Builder& b = node.builder();
    const Val ones = graph::Cast(map::Equal(b.Iota(ElementType::kI64, a.shape(), 1),
                                            b.Iota(ElementType::kI64, a.shape(), 2)),
                                 a.element());
    OutAs(node, 0, graph::SolveLu(factors.lu, factors.pivots, ones, false));
    OutAs(node, 1, factors.info);
}

void ImportSolveTriangular(Node& node) {
    const std::vector<Expr> batch = BatchOf(node.ResultType().shape);
    const bool left = node.Bool("left", true);
    const Val a = Matrices(node.In("self"), batch);
    RequireSquare(a);
    // From the right, the transposed matrix has the other triangle.
    const graph::TriangularOptions options{.upper = node.Bool("upper") == left,
                                           .unit = node.Bool("unitriangular", false)};
    const Val b = FromLeft(Matrices(node.In("B"), batch), left);
    OutAs(node, 0, FromLeft(graph::SolveTriangular(FromLeft(a, left), b, options), left));
}

// The older form of the same.
void ImportTriangularSolve(Node& node) {
    const std::vector<Expr> batch = BatchOf(node.ResultType(node.Wants(0) ? 0 : 1).shape);
    const bool transposed = node.Bool("transpose", false);
    const Val a = Matrices(node.In("A"), batch);
    RequireSquare(a);
    const graph::TriangularOptions options{.upper = node.Bool("upper", true) != transposed,
                                           .unit = node.Bool("unitriangular", false)};
    OutAs(node, 0,
          graph::SolveTriangular(FromLeft(a, !transposed), Matrices(node.In("self"), batch),
                                 options));
    if (node.Wants(1)) {
        OutAs(node, 1, a);
    }
}

void ImportCholesky(Node& node) {
    const Val a = Matrices(node.In("self"));
    RequireSquare(a);
    const bool upper = node.Bool("upper", false);
    const graph::CholeskyFactor factor = graph::FactorCholesky(FromLeft(a, !upper));
    OutAs(node, 0, FromLeft(factor.lower, !upper));
    OutAs(node, 1, factor.info);
}

// Solves for the matrix that is `lower` times its transposition.
Val SolveCholesky(Val lower, Val b) {
    const Val y = graph::SolveTriangular(lower, b, {.upper = false, .unit = false});
    return graph::SolveTriangular(graph::TransposeMatrix(lower), y, {.upper = true, .unit = false});
}

void ImportCholeskySolve(Node& node) {
    const std::vector<Expr> batch = BatchOf(node.ResultType().shape);
    const Val factor = Matrices(node.In("input2"), batch);
    RequireSquare(factor);
    OutAs(node, 0,
          SolveCholesky(FromLeft(factor, !node.Bool("upper", false)),
                        Matrices(node.In("self"), batch)));
}

void ImportCholeskyInverse(Node& node) {
    const Val factor = Matrices(node.In("self"));
    RequireSquare(factor);
    Builder& b = node.builder();
    const Val ones = graph::Cast(map::Equal(b.Iota(ElementType::kI64, factor.shape(), 1),
                                            b.Iota(ElementType::kI64, factor.shape(), 2)),
                                 factor.element());
    OutAs(node, 0, SolveCholesky(FromLeft(factor, !node.Bool("upper", false)), ones));
}

// --- Reflections ---

void ImportGeqrf(Node& node) {
    const graph::QrFactors factors = graph::FactorQr(Matrices(node.In("self")));
    OutAs(node, 0, factors.packed);
    OutAs(node, 1, factors.factors);
}

void ImportQr(Node& node) {
    const Val a = Matrices(node.In("A"));
    const std::string mode = node.Text("mode", "reduced");
    const graph::QrFactors factors = graph::FactorQr(a);
    const Expr rows = a.dim(1);
    const Expr kept = mode == "complete" ? rows : graph::Min(rows, a.dim(2));
    if (node.Wants(0) && mode != "r") {
        OutAs(node, 0, graph::OrthogonalOf(factors.packed, factors.factors, kept));
    } else if (node.Wants(0)) {
        const TensorType type = node.ResultType(0);
        node.Out(0, node.builder().Full(type.element, type.shape, 0));
    }
    if (node.Wants(1)) {
        OutAs(node, 1, graph::SliceAxis(Upper(factors.packed), 1, 0, kept));
    }
}

// Factors of reflections as [batch, count].
Val FactorsOf(Val tau) {
    return Vectors(graph::Cast(tau, graph::ComputeType(tau.element())));
}

template <bool old_names>
void ImportOrthogonal(Node& node) {
    const Val packed = Matrices(node.In(old_names ? "self" : "input"));
    OutAs(node, 0,
          graph::OrthogonalOf(packed, FactorsOf(node.In(old_names ? "input2" : "tau")),
                              packed.dim(2)));
}

void ImportOrmqr(Node& node) {
    const Val packed = Matrices(node.In("self")), factors = FactorsOf(node.In("input2"));
    const bool left = node.Bool("left", true), transposed = node.Bool("transpose", false);
    const Val x = FromLeft(Matrices(node.In("input3")), left);
    // Q x applies the last reflection first; x Q is transposed (Q' x').
    OutAs(node, 0, FromLeft(graph::Reflect(packed, factors, x, transposed == left), left));
}

// --- Rotations ---

// The symmetric matrix of one triangle.
Val Symmetric(Val a, bool upper) {
    Builder& b = a.builder();
    const Val row = b.Iota(ElementType::kI64, a.shape(), 1);
    const Val column = b.Iota(ElementType::kI64, a.shape(), 2);
    const Val own = upper ? map::LessEqual(row, column) : map::LessEqual(column, row);
    return graph::Where(own, a, graph::TransposeMatrix(a));
}

void ImportEigh(Node& node) {
    const Val a = Matrices(node.In("A"));
    RequireSquare(a);
    const std::string triangle = node.Text("UPLO", "L");
    const graph::Eigen result =
        graph::SymmetricEigen(Symmetric(a, triangle == "U" || triangle == "u"));
    OutAs(node, 0, result.values);
    if (node.Bool("compute_v", true)) {
        OutAs(node, 1, result.vectors);
    } else if (node.Wants(1)) {
        const TensorType type = node.ResultType(1);
        node.Out(1, node.builder().Full(type.element, type.shape, 0));
    }
}

void ImportSvd(Node& node) {
    const bool vectors = node.Bool("compute_uv", true) && (node.Wants(0) || node.Wants(2));
    const graph::SingularValues result =
        graph::FactorSvd(Matrices(node.In("A")), vectors, node.Bool("full_matrices", false));
    OutAs(node, 1, result.values);
    if (vectors) {
        OutAs(node, 0, result.left);
        OutAs(node, 2, graph::TransposeMatrix(result.right));
        return;
    }
    for (const size_t index : {0, 2}) {
        if (node.Wants(index)) {
            const TensorType type = node.ResultType(index);
            node.Out(index, node.builder().Full(type.element, type.shape, 0));
        }
    }
}

constexpr OperatorEntry kOperators[] = {
    {"_linalg_eigh.default", ImportEigh},
    {"_linalg_svd.default", ImportSvd},
    {"cholesky.default", ImportCholesky},
    {"cholesky_inverse.default", ImportCholeskyInverse},
    {"cholesky_solve.default", ImportCholeskySolve},
    {"geqrf.default", ImportGeqrf},
    {"linalg_cholesky_ex.default", ImportCholesky},
    {"linalg_householder_product.default", ImportOrthogonal<false>},
    {"linalg_inv_ex.default", ImportInverse},
    {"linalg_lu.default", ImportLu},
    {"linalg_lu_factor_ex.default", ImportLuFactor},
    {"linalg_lu_solve.default", ImportLuSolve},
    {"linalg_qr.default", ImportQr},
    {"linalg_solve_triangular.default", ImportSolveTriangular},
    {"lu_unpack.default", ImportLuUnpack},
    {"orgqr.default", ImportOrthogonal<true>},
    {"ormqr.default", ImportOrmqr},
    {"triangular_solve.default", ImportTriangularSolve},
};

}  // namespace

std::span<const OperatorEntry> LinearAlgebraOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
