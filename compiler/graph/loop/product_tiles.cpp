// Finds strides of an operand along its rows and along k.
#include "compiler/graph/loop/product_tiles.h"

#include <algorithm>
#include <map>

#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {
namespace {

constexpr int64_t kSide = 16;

// The stride of loops that together count one index, innermost last: their own strides must be
// those of one array. Nullopt if they are not.
std::optional<Expr> LinearStride(const Expr& offset, std::span<const Loop> loops) {
    std::optional<Expr> stride;
    Expr next;  // what the loop outside of the last one must have
    for (size_t i = loops.size(); i-- > 0;) {
        const std::optional<Expr> coefficient = offset.Coefficient(loops[i].variable);
        if (!coefficient || (stride && *coefficient != next)) {
            return std::nullopt;
        }
        if (!stride) {
            stride = coefficient;
        }
        next = *coefficient * loops[i].extent;
    }
    return stride.value_or(Expr(0));
}

Expr WithoutLoops(Expr expr, std::span<const Loop> loops) {
    for (const Loop& loop : loops) {
        expr = expr.Without(loop.variable);
    }
    return expr;
}

// The access if both strides are those of whole arrays.
std::optional<TileAccess> Linear(const Expr& offset,
                                 std::span<const Loop> rows,
                                 std::span<const Loop> depth) {
    const std::optional<Expr> row_stride = LinearStride(offset, rows);
    const std::optional<Expr> depth_stride = LinearStride(offset, depth);
    if (!row_stride || !depth_stride || (*row_stride != Expr(1) && *depth_stride != Expr(1))) {
        return std::nullopt;
    }
    TileAccess access;
    access.unit_depth = *depth_stride == Expr(1);
    access.stride = access.unit_depth ? *row_stride : *depth_stride;
    access.offset = WithoutLoops(WithoutLoops(offset, rows), depth) +
                    *row_stride * Expr(access.row) + *depth_stride * Expr(access.depth);
    return access;
}

// Panels of 16 rows, one loop: the row's panel and its place in it have strides of their own.
std::optional<TileAccess> Panels(const Expr& offset,
                                 const Kernel& kernel,
                                 BufferId buffer,
                                 const Domain& domain,
                                 std::span<const Loop> rows,
                                 std::span<const Loop> depth) {
    const std::optional<Expr> depth_stride = LinearStride(offset, depth);
    if (rows.size() != 1 || !depth_stride) {
        return std::nullopt;
    }
    const Symbol panel("$panel"), place("$place");
    const Expr panels = CeilDiv(rows[0].extent, kSide);
    Domain inner = domain;
    inner.AddVariable(panel, panels);
    inner.AddVariable(place, kSide);
    const Expr apart =
        offset.Substitute({{rows[0].variable, kSide * Expr(panel) + Expr(place)}}).Simplify(inner);
    const std::optional<Expr> panel_stride = apart.Coefficient(panel);
    if (!panel_stride || apart.Coefficient(place) != Expr(1)) {
        return std::nullopt;
    }
    // The last panel is whole in memory.
    if (!inner.IsLess(apart, kernel[buffer].type.shape.Volume())) {
        return std::nullopt;
    }
    TileAccess access;
    access.stride = *depth_stride;
    access.offset = WithoutLoops(apart.Without(panel).Without(place), depth) +
                    *panel_stride * FloorDiv(Expr(access.row), kSide) +
                    *depth_stride * Expr(access.depth);
    access.padded_rows = panels * kSide;
    return access;
}

}  // namespace

std::optional<TileAccess> FindTileAccess(const Kernel& kernel,
                                         const Domain& domain,
                                         ScalarId operand,
                                         std::span<const Loop> rows,
                                         std::span<const Loop> depth) {
    const auto* load = std::get_if<Load>(&kernel[operand].value);
    if (load == nullptr || kernel[operand].type != ElementType::kF32) {
        return std::nullopt;
    }
    const Shape& shape = kernel[load->buffer].type.shape;
    Expr offset, stride(1);
    for (size_t axis = shape.rank(); axis-- > 0;) {
        const Expr index = load->index[axis].Simplify(domain);
        // What memory says has no stride.
        const std::vector<Symbol> symbols = index.Symbols();
        if (std::any_of(symbols.begin(), symbols.end(), ScalarOfSymbol)) {
            return std::nullopt;
        }
        if (!domain.IsNotNegative(index) || !domain.IsLess(index, shape[axis])) {
            return std::nullopt;
        }
        offset += index * stride;
        stride *= shape[axis];
    }
    offset = offset.Simplify(domain);
    std::optional<TileAccess> access = Linear(offset, rows, depth);
    if (!access) {
        access = Panels(offset, kernel, load->buffer, domain, rows, depth);
    }
    if (access) {
        access->buffer = load->buffer;
    }
    return access;
}

}  // namespace fornax::graph::loop
