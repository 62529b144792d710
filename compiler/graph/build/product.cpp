// Matrix products and einsum over op::Contract.
#include "compiler/graph/build/product.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/byte_product.h"

namespace fornax::graph {

Val MatMul(Val a, Val b, std::optional<ElementType> accumulate) {
    if (a.rank() == 0 || b.rank() == 0) {
        FailInvalid("a factor has no dimensions");
    }
    if (!accumulate) {
        if (const std::optional<Val> y = MultiplyBytes(a, b, false)) {
            return *y;
        }
        if (const std::optional<Val> y = MultiplyBlocks(a, b, false)) {
            return *y;
        }
    }
    const bool row = a.rank() == 1, column = b.rank() == 1;
    if (row) {
        a = Unsqueeze(a, 0);
    }
    if (column) {
        b = Unsqueeze(b, 1);
    }
    const Shape a_shape = a.shape(), b_shape = b.shape();
    if (!a.builder().sizes().Equal(a.dim(-1), b.dim(-2))) {
        FailInvalid(
            fmt::format("the factors are {} and {}", a_shape.ToString(), b_shape.ToString()));
    }
    // Where only one factor has batch dimensions, they need no copy of the other: they are labels
    // that it lacks.
    const size_t a_batch = a_shape.rank() - 2, b_batch = b_shape.rank() - 2;
    const Shape batch_shapes[] = {
        Shape(std::vector<Expr>(a_shape.dims().begin(), a_shape.dims().end() - 2)),
        Shape(std::vector<Expr>(b_shape.dims().begin(), b_shape.dims().end() - 2))};
    const Shape batch = a.builder().CommonShape(batch_shapes);
    if (batch.rank() > 20) {
        FailUnsupported("a factor has too many dimensions");
    }
    std::string labels, a_labels, b_labels;
    std::vector<Expr> a_dims, b_dims;
    for (size_t i = 0; i < batch.rank(); ++i) {
        const char label = static_cast<char>('A' + i);
        labels += label;
        const auto add = [&](const Shape& shape, size_t rank, std::string& mine,
                             std::vector<Expr>& dims) {
            if (i + rank < batch.rank()) {
                return;
            }
            const Expr& dim = shape[i + rank - batch.rank()];
            if (dim == batch[i] ||
                (!(dim == Expr(1)) && a.builder().sizes().Equal(dim, batch[i]))) {
                mine += label;
                dims.push_back(dim);
            }
        };
        add(a_shape, a_batch, a_labels, a_dims);
        add(b_shape, b_batch, b_labels, b_dims);
        if (a_labels.find(label) == std::string::npos &&
            b_labels.find(label) == std::string::npos) {
            FailInvalid(
                fmt::format("the factors are {} and {}", a_shape.ToString(), b_shape.ToString()));
        }
    }
    a_dims.insert(a_dims.end(), a_shape.dims().end() - 2, a_shape.dims().end());
    b_dims.insert(b_dims.end(), b_shape.dims().end() - 2, b_shape.dims().end());
    Val y = Contract(Reshape(a, Shape(std::move(a_dims))), Reshape(b, Shape(std::move(b_dims))),
                     a_labels + "ik," + b_labels + "kj->" + labels + "ij", accumulate);
    if (column) {
        y = Squeeze(y, -1);
    }
    return row ? Squeeze(y, column ? -1 : -2) : y;
}

Val Gemm(Val a, Val b, Val c, double alpha, double beta, bool transpose_a, bool transpose_b) {
    if (a.rank() != 2 || b.rank() != 2) {
        FailInvalid(fmt::format("the factors are {} and {}, not matrices", a.shape().ToString(),
                                b.shape().ToString()));
    }
    std::optional<Val> product;
    if (!transpose_a) {
        product = MultiplyBytes(a, b, transpose_b);
        product = product ? product : MultiplyBlocks(a, b, transpose_b);
    }
    Val y = product ? *product
                    : Contract(a, b,
                               std::string(transpose_a ? "ki" : "ik") + "," +
                                   (transpose_b ? "jk" : "kj") + "->ij");
    if (alpha != 1) {
        y = y * alpha;
    }
    return c ? y + (beta == 1 ? c : c * beta) : y;
}

// --- Einsum --------------------------------------------------------------------------------------

namespace {

// The elements where both axes' positions are the same, in place of the first axis.
Val Diagonal(Val x, int64_t first, int64_t second) {
    const Shape shape = x.shape();
    std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
    dims.erase(dims.begin() + second);
    std::vector<int64_t> sources;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        sources.push_back(axis == second ? first : axis < second ? axis : axis - 1);
    }
    return Gather(x, sources, {}, Shape(std::move(dims)));
}

struct EinsumTerm {
    std::string labels;
    Val value;
};

// Labels of dimensions that an ellipsis stands for: one byte each, above letters.
char EllipsisLabel(size_t from_end) {
    return static_cast<char>('0' + from_end);
}

std::string ReadLabels(std::string_view text, size_t rank, bool known_rank, size_t ellipsis_rank) {
    std::string labels;
    size_t letters = 0;
    for (const char c : text) {
        letters += c != '.' ? 1 : 0;
    }
    for (size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i, 3) == "...") {
            const size_t count =
                known_rank ? (rank >= letters ? rank - letters : 0) : ellipsis_rank;
            if (count > 10) {
                FailUnsupported("the ellipsis stands for more than 10 dimensions");
            }
            for (size_t n = count; n-- > 0;) {
                labels += EllipsisLabel(n);
            }
            i += 2;
        } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
            labels += text[i];
        } else {
            FailInvalid(fmt::format("the equation has the character '{}'", text[i]));
        }
    }
    if (known_rank && labels.size() != rank) {
        FailInvalid(fmt::format("the term \"{}\" is for an operand of {} dimensions", text, rank));
    }
    return labels;
}

// Sums over labels that nobody else needs, and takes diagonals.
EinsumTerm Tidy(EinsumTerm term, const std::string& needed) {
    for (size_t i = 0; i < term.labels.size(); ++i) {
        for (size_t j = term.labels.size() - 1; j > i; --j) {
            if (term.labels[i] == term.labels[j]) {
                term.value = Diagonal(term.value, static_cast<int64_t>(i), static_cast<int64_t>(j));
                term.labels.erase(j, 1);
            }
        }
    }
    for (size_t i = term.labels.size(); i-- > 0;) {
        if (needed.find(term.labels[i]) == std::string::npos) {
            term.value = Sum(term.value, {static_cast<int64_t>(i)}, false);
            term.labels.erase(i, 1);
        }
    }
    return term;
}

}  // namespace

Val Einsum(const std::string& equation, const Vals& operands) {
    std::string text = equation;
    std::erase(text, ' ');
    const size_t arrow = text.find("->");
    std::vector<std::string> inputs = {""};
    for (const char c : text.substr(0, arrow)) {
        if (c == ',') {
            inputs.emplace_back();
        } else {
            inputs.back() += c;
        }
    }
    if (inputs.size() != operands.size() || operands.empty()) {
        FailInvalid(fmt::format("the equation has {} terms for {} operands", inputs.size(),
                                operands.size()));
    }
    std::vector<EinsumTerm> terms;
    size_t ellipsis_rank = 0;
    std::map<char, int> counts;
    std::map<char, Expr> sizes;
    SizeFacts& facts = operands[0].builder().sizes();
    for (size_t i = 0; i < operands.size(); ++i) {
        const Shape shape = operands[i].shape();
        const std::string labels = ReadLabels(inputs[i], shape.rank(), true, 0);
        for (size_t axis = 0; axis < labels.size(); ++axis) {
            const char label = labels[axis];
            ++counts[label];
            const auto [known, added] = sizes.emplace(label, shape[axis]);
            if (!added && known->second == Expr(1)) {
                known->second = shape[axis];
            } else if (!added && !(shape[axis] == Expr(1)) &&
                       !facts.Equal(known->second, shape[axis])) {
                FailInvalid(fmt::format("the label {} is for sizes {} and {}", label,
                                        known->second.ToString(), shape[axis].ToString()));
            }
            if (label >= '0' && label <= '9') {
                ellipsis_rank = std::max(ellipsis_rank, static_cast<size_t>(label - '0') + 1);
            }
        }
        terms.push_back({labels, operands[i]});
    }
    std::string result;
    if (arrow != std::string::npos) {
        result = ReadLabels(text.substr(arrow + 2), 0, false, ellipsis_rank);
    } else {
        for (size_t n = ellipsis_rank; n-- > 0;) {
            result += EllipsisLabel(n);
        }
        for (const auto& [label, count] : counts) {
            if (count == 1 && label > '9') {
                result += label;
            }
        }
    }
    for (const char label : result) {
        if (!counts.contains(label) || std::ranges::count(result, label) != 1) {
            FailInvalid(fmt::format("the result's label {} is not once in the operands", label));
        }
    }
    // Dimensions of 1 where the label has more are left out: the product repeats them.
    for (EinsumTerm& term : terms) {
        for (size_t i = term.labels.size(); i-- > 0;) {
            if (term.value.dim(static_cast<int64_t>(i)) == Expr(1) &&
                !(sizes[term.labels[i]] == Expr(1))) {
                term.value = Squeeze(term.value, static_cast<int64_t>(i));
                term.labels.erase(i, 1);
            }
        }
    }
    const auto needed_by = [&](size_t from) {
        std::string needed = result;
        for (size_t i = from; i < terms.size(); ++i) {
            needed += terms[i].labels;
        }
        return needed;
    };
    EinsumTerm product = Tidy(terms[0], needed_by(1));
    for (size_t i = 1; i < terms.size(); ++i) {
        const EinsumTerm next = Tidy(terms[i], needed_by(i + 1) + product.labels);
        const std::string needed = needed_by(i + 1);
        std::string labels;
        for (const char label : product.labels + next.labels) {
            if (needed.find(label) != std::string::npos &&
                labels.find(label) == std::string::npos) {
                labels += label;
            }
        }
        product = {labels, Contract(product.value, next.value,
                                    product.labels + "," + next.labels + "->" + labels)};
    }
    std::vector<int64_t> order;
    for (const char label : result) {
        order.push_back(static_cast<int64_t>(product.labels.find(label)));
    }
    return Permute(product.value, order);
}

Val Determinant(Val x) {
    if (x.rank() < 2 || !x.builder().sizes().Equal(x.dim(-1), x.dim(-2))) {
        FailInvalid(fmt::format("the input {} is not of square matrices", x.shape().ToString()));
    }
    // Gaussian elimination with the greatest pivot of each column; sizes are fixed for that.
    constexpr int64_t kMaxSize = 64;
    const int64_t n = x.builder().sizes().Fix(x.dim(-1));
    if (n > kMaxSize) {
        FailUnsupported(fmt::format("the matrices have {} rows; the limit is {}", n, kMaxSize));
    }
    Val rest = x;
    Val product;
    for (int64_t size = n; size > 0; --size) {
        // The row of the pivot goes first; the swap changes the sign.
        const Val column = Select(rest, -1, 0);
        const Val pivot_row = ArgReduce(Combine::kMax, map::Abs(column), -1, true);  // [..., 1]
        const Val row = x.builder().Iota(ElementType::kI64, column.shape(), column.rank() - 1);
        const Val is_pivot = map::Equal(row, pivot_row);
        const Val zero = Like(x, 0);
        const Val pivots = Sum(Where(Unsqueeze(is_pivot, -1), rest, zero), {-2});  // [..., 1, size]
        const Val first = SliceAxis(rest, -2, 0, 1);
        const Val swapped = Where(Unsqueeze(is_pivot, -1), first, rest);
        const Val pivot = SliceAxis(pivots, -1, 0, 1);  // [..., 1, 1]
        const Val sign = Where(Equal(pivot_row, 0), Like(x, 1), Like(x, -1));
        const Val factor = Squeeze(Squeeze(pivot, -1), -1) * Squeeze(sign, -1);
        product = product ? product * factor : factor;
        if (size == 1) {
            break;
        }
        const Val below = SliceAxis(swapped, -2, 1, size - 1);
        const Val safe = Where(Equal(pivot, 0), Like(x, 1), pivot);
        const Val reduced = below - SliceAxis(below, -1, 0, 1) / safe * pivots;
        rest = SliceAxis(reduced, -1, 1, size - 1);
    }
    if (product) {
        return product;
    }
    // A matrix without elements has the determinant 1. shape() returns a copy, and both iterators
    // have to be into the same one.
    const Shape shape = x.shape();
    return x.builder().Full(
        x.element(), Shape(std::vector<Expr>(shape.dims().begin(), shape.dims().end() - 2)), 1);
}

}  // namespace fornax::graph
