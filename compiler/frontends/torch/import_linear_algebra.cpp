// Factorisations and linear systems: torch.linalg. Each is also an operator of the package's own of
// complex numbers, whose parts are a last dimension of two: a function's Number says which it is.
#include <algorithm>
#include <concepts>

#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/product.h"

namespace fornax::torch_frontend {
namespace {

namespace map = graph::map;
using graph::Complex;
using graph::RealOrComplex;

// An argument's numbers.
template <RealOrComplex Number>
Number In(Node& node, std::string_view name) {
    const Val x = node.In(name);
    if constexpr (std::same_as<Number, Val>) {
        return x;
    } else {
        if (x.rank() < 1 || !x.builder().sizes().Equal(x.dim(-1), 2)) {
            FailInvalid(fmt::format("its argument {} is {}, whose numbers have no two parts", name,
                                    x.shape().ToString()));
        }
        return {graph::Select(x, -1, 0), graph::Select(x, -1, 1)};
    }
}

template <RealOrComplex Number>
void RequireMatrix(const Number& x) {
    if (x.rank() < 2) {
        FailInvalid(fmt::format("an operand is {}, no matrix", x.shape().ToString()));
    }
}

// [batch, rows, columns] of any number of batch dimensions.
template <RealOrComplex Number>
Number Matrices(const Number& x) {
    RequireMatrix(x);
    return graph::Each(x, [](Val part) {
        part = graph::Cast(part, graph::ComputeType(part.element()));
        return part.rank() == 2 ? graph::Unsqueeze(part, 0)
                                : graph::Flatten(part, 0, part.rank() - 2);
    });
}

// The same with the batch dimensions of `batch`, which the matrices' are broadcast to.
template <RealOrComplex Number>
Number Matrices(const Number& x, std::span<const Expr> batch) {
    RequireMatrix(x);
    std::vector<Expr> dims(batch.begin(), batch.end());
    dims.push_back(x.dim(-2));
    dims.push_back(x.dim(-1));
    const Shape shape(std::move(dims));
    return Matrices(graph::Each(x, [&](Val part) { return graph::BroadcastTo(part, shape); }));
}

// The batch dimensions of a result of matrices.
template <RealOrComplex Number>
std::vector<Expr> BatchOf(Node& node, size_t index = 0) {
    const Shape shape = node.ResultType(index).shape;
    const int64_t others = std::same_as<Number, Complex> ? 3 : 2;
    return {shape.dims().begin(),
            shape.dims().end() - std::min(others, static_cast<int64_t>(shape.rank()))};
}

template <RealOrComplex Number>
void RequireSquare(const Number& x) {
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

void OutAs(Node& node, size_t index, const Complex& value) {
    OutAs(node, index, graph::Stack({value.real, value.imaginary}, value.rank()));
}

// Zeros of the type that the file says.
void OutZeros(Node& node, size_t index) {
    if (node.Wants(index)) {
        const TensorType type = node.ResultType(index);
        node.Out(index, node.builder().Full(type.element, type.shape, 0));
    }
}

template <RealOrComplex Number>
Number IdentityLike(const Number& x) {
    Builder& b = x.builder();
    return graph::FromReal<Number>(graph::Cast(map::Equal(b.Iota(ElementType::kI64, x.shape(), 1),
                                                          b.Iota(ElementType::kI64, x.shape(), 2)),
                                               x.element()));
}

template <RealOrComplex Number>
Number Upper(const Number& x) {
    Builder& b = x.builder();
    const Val row = b.Iota(ElementType::kI64, x.shape(), 1);
    const Val column = b.Iota(ElementType::kI64, x.shape(), 2);
    return graph::Where(map::LessEqual(row, column), x, graph::Like(x, 0));
}

// L, with ones on the diagonal.
template <RealOrComplex Number>
Number UnitLower(const Number& x) {
    Builder& b = x.builder();
    const Val row = b.Iota(ElementType::kI64, x.shape(), 1);
    const Val column = b.Iota(ElementType::kI64, x.shape(), 2);
    return graph::Where(map::Less(column, row), x, IdentityLike(x));
}

// --- Elimination ---

template <RealOrComplex Number>
void ImportLuFactor(Node& node) {
    const graph::LuFactors factors =
        graph::FactorLu(Matrices(In<Number>(node, "A")), node.Bool("pivot", true));
    OutAs(node, 0, factors.lu);
    OutAs(node, 1, factors.pivots + 1.0);  // counted from 1 on
    OutAs(node, 2, factors.info);
}

// P, L and U of factors.
template <RealOrComplex Number>
void OutUnpacked(Node& node, const Number& lu, Val pivots) {
    Builder& b = node.builder();
    const Expr rows = lu.dim(1), columns = lu.dim(2), count = graph::Min(rows, columns);
    if (!pivots) {
        OutZeros(node, 0);
    } else if (node.Wants(0)) {
        const Val order = graph::PermutationOf(pivots, rows);
        const Shape shape{lu.dim(0), rows, rows};
        const Val row = b.Iota(ElementType::kI64, shape, 1);
        const Val ones = map::Equal(row, graph::Unsqueeze(order, 1));
        OutAs(node, 0, graph::FromReal<Number>(graph::Cast(ones, lu.element())));
    }
    if (node.Wants(1)) {
        OutAs(node, 1, UnitLower(graph::SliceAxis(lu, 2, 0, count)));
    }
    if (node.Wants(2)) {
        OutAs(node, 2, Upper(graph::SliceAxis(lu, 1, 0, count)));
    }
}

template <RealOrComplex Number>
void ImportLu(Node& node) {
    const bool swaps = node.Bool("pivot", true);
    const graph::LuFactors factors = graph::FactorLu(Matrices(In<Number>(node, "A")), swaps);
    OutUnpacked(node, factors.lu, swaps ? factors.pivots : Val());
}

// [batch, count] of vectors with any number of batch dimensions.
template <RealOrComplex Number>
Number Vectors(const Number& x) {
    if (x.rank() < 1) {
        FailInvalid("an operand has no dimensions");
    }
    return graph::Each(x, [](Val part) {
        return part.rank() == 1 ? graph::Unsqueeze(part, 0)
                                : graph::Flatten(part, 0, part.rank() - 1);
    });
}

// torch's pivots as those of FactorLu(), [batch, count].
Val PivotsFrom(Val pivots) {
    return Vectors(graph::Cast(pivots, ElementType::kI64) - 1.0);
}

template <RealOrComplex Number>
void ImportLuUnpack(Node& node) {
    if (!node.Bool("unpack_data", true) && (node.Wants(1) || node.Wants(2))) {
        FailUnsupported("it gives factors without data");
    }
    const Val pivots = node.Bool("unpack_pivots", true) ? PivotsFrom(node.In("LU_pivots")) : Val();
    OutUnpacked(node, Matrices(In<Number>(node, "LU_data")), pivots);
}

// From the left, or transposed from the right.
template <RealOrComplex Number>
Number FromLeft(const Number& x, bool left) {
    return left ? x : graph::TransposeMatrix(x);
}

template <RealOrComplex Number>
void ImportLuSolve(Node& node) {
    const std::vector<Expr> batch = BatchOf<Number>(node);
    const bool left = node.Bool("left", true), adjoint = node.Bool("adjoint", false);
    Number lu = Matrices(In<Number>(node, "LU"), batch);
    RequireSquare(lu);
    if (adjoint) {
        lu = graph::Conjugate(lu);
    }
    std::vector<Expr> dims = batch;
    dims.push_back(lu.dim(1));
    const Val pivots = PivotsFrom(graph::BroadcastTo(node.In("pivots"), Shape(std::move(dims))));
    const Number b = FromLeft(Matrices(In<Number>(node, "B"), batch), left);
    OutAs(node, 0, FromLeft(graph::SolveLu(lu, pivots, b, left == adjoint), left));
}

template <RealOrComplex Number>
void ImportInverse(Node& node) {
    const Number a = Matrices(In<Number>(node, "A"));
    RequireSquare(a);
    const graph::LuFactors factors = graph::FactorLu(a, true);
    OutAs(node, 0, graph::SolveLu(factors.lu, factors.pivots, IdentityLike(a), false));
    OutAs(node, 1, factors.info);
}

template <RealOrComplex Number>
void ImportSolveTriangular(Node& node) {
    const std::vector<Expr> batch = BatchOf<Number>(node);
    const bool left = node.Bool("left", true);
    const Number a = Matrices(In<Number>(node, "self"), batch);
    RequireSquare(a);
    // From the right, the transposed matrix has the other triangle.
    const graph::TriangularOptions options{.upper = node.Bool("upper") == left,
                                           .unit = node.Bool("unitriangular", false)};
    const Number b = FromLeft(Matrices(In<Number>(node, "B"), batch), left);
    OutAs(node, 0, FromLeft(graph::SolveTriangular(FromLeft(a, left), b, options), left));
}

// The older form of the same.
template <RealOrComplex Number>
void ImportTriangularSolve(Node& node) {
    const std::vector<Expr> batch = BatchOf<Number>(node, node.Wants(0) ? 0 : 1);
    const bool transposed = node.Bool("transpose", false);
    const Number a = Matrices(In<Number>(node, "A"), batch);
    RequireSquare(a);
    const graph::TriangularOptions options{.upper = node.Bool("upper", true) != transposed,
                                           .unit = node.Bool("unitriangular", false)};
    OutAs(node, 0,
          graph::SolveTriangular(FromLeft(a, !transposed),
                                 Matrices(In<Number>(node, "self"), batch), options));
    if (node.Wants(1)) {
        OutAs(node, 1, a);
    }
}

// The lower factor of one that is lower or upper, or the other way round.
template <RealOrComplex Number>
Number LowerFrom(const Number& x, bool upper) {
    return upper ? graph::Adjoint(x) : x;
}

template <RealOrComplex Number>
void ImportCholesky(Node& node) {
    const Number a = Matrices(In<Number>(node, "self"));
    RequireSquare(a);
    const bool upper = node.Bool("upper", false);
    const graph::CholeskyFactor factor = graph::FactorCholesky(LowerFrom(a, upper));
    OutAs(node, 0, LowerFrom(factor.lower, upper));
    OutAs(node, 1, factor.info);
}

// Solves for the matrix that is `lower` times its adjoint.
template <RealOrComplex Number>
Number SolveCholesky(const Number& lower, const Number& b) {
    const Number y = graph::SolveTriangular(lower, b, {.upper = false, .unit = false});
    return graph::SolveTriangular(graph::Adjoint(lower), y, {.upper = true, .unit = false});
}

template <RealOrComplex Number>
void ImportCholeskySolve(Node& node) {
    const std::vector<Expr> batch = BatchOf<Number>(node);
    const Number factor = Matrices(In<Number>(node, "input2"), batch);
    RequireSquare(factor);
    OutAs(node, 0,
          SolveCholesky(LowerFrom(factor, node.Bool("upper", false)),
                        Matrices(In<Number>(node, "self"), batch)));
}

template <RealOrComplex Number>
void ImportCholeskyInverse(Node& node) {
    const Number factor = Matrices(In<Number>(node, "self"));
    RequireSquare(factor);
    OutAs(node, 0,
          SolveCholesky(LowerFrom(factor, node.Bool("upper", false)), IdentityLike(factor)));
}

// --- Reflections ---

template <RealOrComplex Number>
void ImportGeqrf(Node& node) {
    const graph::QrFactors factors = graph::FactorQr(Matrices(In<Number>(node, "self")));
    OutAs(node, 0, factors.packed);
    OutAs(node, 1, factors.factors);
}

template <RealOrComplex Number>
void ImportQr(Node& node) {
    const Number a = Matrices(In<Number>(node, "A"));
    const std::string mode = node.Text("mode", "reduced");
    const graph::QrFactors factors = graph::FactorQr(a);
    const Expr rows = a.dim(1);
    const Expr kept = mode == "complete" ? rows : graph::Min(rows, a.dim(2));
    if (mode == "r") {
        OutZeros(node, 0);
    } else if (node.Wants(0)) {
        OutAs(node, 0, graph::OrthogonalOf(factors.packed, factors.factors, kept));
    }
    if (node.Wants(1)) {
        OutAs(node, 1, graph::SliceAxis(Upper(factors.packed), 1, 0, kept));
    }
}

// Factors of reflections as [batch, count].
template <RealOrComplex Number>
Number FactorsOf(const Number& tau) {
    return Vectors(graph::Each(
        tau, [](Val part) { return graph::Cast(part, graph::ComputeType(part.element())); }));
}

template <RealOrComplex Number, bool old_names>
void ImportOrthogonal(Node& node) {
    const Number packed = Matrices(In<Number>(node, old_names ? "self" : "input"));
    const Number factors = FactorsOf(In<Number>(node, old_names ? "input2" : "tau"));
    OutAs(node, 0, graph::OrthogonalOf(packed, factors, packed.dim(2)));
}

template <RealOrComplex Number>
void ImportOrmqr(Node& node) {
    const Number packed = Matrices(In<Number>(node, "self"));
    const Number factors = FactorsOf(In<Number>(node, "input2"));
    const bool left = node.Bool("left", true), adjoint = node.Bool("transpose", false);
    const Number given = Matrices(In<Number>(node, "input3"));
    // Q x applies the last reflection first; x Q is the adjoint of (Q' x').
    const Number x = left ? given : graph::Adjoint(given);
    const Number product = graph::Reflect(packed, factors, x, adjoint == left);
    OutAs(node, 0, left ? product : graph::Adjoint(product));
}

// --- Rotations ---

// The symmetric or Hermitian matrix of one triangle.
template <RealOrComplex Number>
Number Symmetric(const Number& a, bool upper) {
    Builder& b = a.builder();
    const Val row = b.Iota(ElementType::kI64, a.shape(), 1);
    const Val column = b.Iota(ElementType::kI64, a.shape(), 2);
    const Val own = upper ? map::LessEqual(row, column) : map::LessEqual(column, row);
    const Number whole = graph::Where(own, a, graph::Adjoint(a));
    if constexpr (std::same_as<Number, Complex>) {
        // The diagonal is real, whatever is there.
        return {whole.real, graph::Where(map::Equal(row, column), graph::Like(whole.imaginary, 0),
                                         whole.imaginary)};
    } else {
        return whole;
    }
}

template <RealOrComplex Number>
void ImportEigh(Node& node) {
    const Number a = Matrices(In<Number>(node, "A"));
    RequireSquare(a);
    const std::string triangle = node.Text("UPLO", "L");
    const graph::Eigen result =
        graph::SymmetricEigen(Symmetric(a, triangle == "U" || triangle == "u"));
    OutAs(node, 0, result.values);
    if (node.Bool("compute_v", true)) {
        OutAs(node, 1, result.vectors);
    } else {
        OutZeros(node, 1);
    }
}

template <RealOrComplex Number>
void ImportSvd(Node& node) {
    const bool vectors = node.Bool("compute_uv", true) && (node.Wants(0) || node.Wants(2));
    const graph::SingularValues result = graph::FactorSvd(Matrices(In<Number>(node, "A")), vectors,
                                                          node.Bool("full_matrices", false));
    OutAs(node, 1, result.values);
    if (vectors) {
        OutAs(node, 0, result.left);
        OutAs(node, 2, graph::Adjoint(result.right));
    } else {
        OutZeros(node, 0);
        OutZeros(node, 2);
    }
}

constexpr OperatorEntry kOperators[] = {
    {"_linalg_eigh.default", ImportEigh<Val>},
    {"_linalg_svd.default", ImportSvd<Val>},
    {"cholesky.default", ImportCholesky<Val>},
    {"cholesky_inverse.default", ImportCholeskyInverse<Val>},
    {"cholesky_solve.default", ImportCholeskySolve<Val>},
    {"geqrf.default", ImportGeqrf<Val>},
    {"linalg_cholesky_ex.default", ImportCholesky<Val>},
    {"linalg_householder_product.default", ImportOrthogonal<Val, false>},
    {"linalg_inv_ex.default", ImportInverse<Val>},
    {"linalg_lu.default", ImportLu<Val>},
    {"linalg_lu_factor_ex.default", ImportLuFactor<Val>},
    {"linalg_lu_solve.default", ImportLuSolve<Val>},
    {"linalg_qr.default", ImportQr<Val>},
    {"linalg_solve_triangular.default", ImportSolveTriangular<Val>},
    {"lu_unpack.default", ImportLuUnpack<Val>},
    {"orgqr.default", ImportOrthogonal<Val, true>},
    {"ormqr.default", ImportOrmqr<Val>},
    {"triangular_solve.default", ImportTriangularSolve<Val>},
    // complex_matrices.py.
    {"fornax.complex_linalg_eigh.default", ImportEigh<Complex>},
    {"fornax.complex_linalg_svd.default", ImportSvd<Complex>},
    {"fornax.complex_cholesky.default", ImportCholesky<Complex>},
    {"fornax.complex_cholesky_inverse.default", ImportCholeskyInverse<Complex>},
    {"fornax.complex_cholesky_solve.default", ImportCholeskySolve<Complex>},
    {"fornax.complex_geqrf.default", ImportGeqrf<Complex>},
    {"fornax.complex_linalg_cholesky_ex.default", ImportCholesky<Complex>},
    {"fornax.complex_linalg_householder_product.default", ImportOrthogonal<Complex, false>},
    {"fornax.complex_linalg_inv_ex.default", ImportInverse<Complex>},
    {"fornax.complex_linalg_lu.default", ImportLu<Complex>},
    {"fornax.complex_linalg_lu_factor_ex.default", ImportLuFactor<Complex>},
    {"fornax.complex_linalg_lu_solve.default", ImportLuSolve<Complex>},
    {"fornax.complex_linalg_qr.default", ImportQr<Complex>},
    {"fornax.complex_linalg_solve_triangular.default", ImportSolveTriangular<Complex>},
    {"fornax.complex_lu_unpack.default", ImportLuUnpack<Complex>},
    {"fornax.complex_orgqr.default", ImportOrthogonal<Complex, true>},
    {"fornax.complex_ormqr.default", ImportOrmqr<Complex>},
    {"fornax.complex_triangular_solve.default", ImportTriangularSolve<Complex>},
};

}  // namespace

std::span<const OperatorEntry> LinearAlgebraOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
