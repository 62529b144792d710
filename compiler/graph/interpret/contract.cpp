// Contract: products summed over labels.
//
// Both operands become matrices of a batch, [batch, m, k] and [batch, k, n], in double or in
// 64-bit integers that wrap; what only one operand has and the result lacks is summed on the way.
#include <map>

#include <fmt/format.h>

#include "compiler/graph/interpret/evaluation.h"

namespace fornax::graph::interpret {
namespace {

// The labels by what they do, each group in a fixed order, and their sizes.
struct Labels {
    std::string batch, m, n, k, only_a, only_b;
    std::map<char, int64_t> sizes;

    int64_t Volume(const std::string& labels) const {
        int64_t volume = 1;
        for (const char label : labels) {
            volume *= sizes.at(label);  // the operands' sizes bound it
        }
        return volume;
    }
    Dims DimsOf(const std::string& labels) const {
        Dims dims;
        for (const char label : labels) {
            dims.push_back(sizes.at(label));
        }
        return dims;
    }
};

bool Has(const std::string& labels, char label) {
    return labels.find(label) != std::string::npos;
}

Result<Labels> SortLabels(const op::Contract& contract, Operands operands) {
    Labels labels;
    const std::string* of[] = {&contract.a, &contract.b};
    for (size_t i = 0; i < 2; ++i) {
        for (size_t axis = 0; axis < of[i]->size(); ++axis) {
            const char label = (*of[i])[axis];
            const auto [found, inserted] = labels.sizes.emplace(label, operands[i].dims[axis]);
            if (!inserted && found->second != operands[i].dims[axis]) {
                return Invalid(fmt::format("the label {} has the sizes {} and {}", label,
                                           found->second, operands[i].dims[axis]));
            }
        }
    }
    for (const auto& [label, size] : labels.sizes) {
        const bool in_a = Has(contract.a, label), in_b = Has(contract.b, label);
        if (Has(contract.result, label)) {
            (in_a && in_b ? labels.batch : in_a ? labels.m : labels.n) += label;
        } else {
            (in_a && in_b ? labels.k : in_a ? labels.only_a : labels.only_b) += label;
        }
    }
    return labels;
}

// The strides of a tensor whose axes are named `labels`, in the order `order`.
std::vector<int64_t> StridesIn(const std::string& order,
                               const std::string& labels,
                               const Dims& dims) {
    const std::vector<int64_t> strides = RowMajorStrides(dims);
    std::vector<int64_t> result;
    for (const char label : order) {
        result.push_back(strides[labels.find(label)]);
    }
    return result;
}

double As(double, const Scalar& scalar) {
    return scalar.number;
}

uint64_t As(uint64_t, const Scalar& scalar) {
    return static_cast<uint64_t>(scalar.integer);
}

Scalar FromNumber(double value) {
    return Scalar::Float(value);
}

Scalar FromNumber(uint64_t value) {
    return Scalar::Integer(static_cast<int64_t>(value));
}

// The operand's elements as a row-major array with the axes `order`, summed over `summed`.
template <typename T>
std::vector<T> Arrange(const Tensor& operand,
                       const std::string& operand_labels,
                       const std::string& order,
                       const std::string& summed,
                       const Labels& labels,
                       ElementType accumulate) {
    const Dims dims = labels.DimsOf(order), summed_dims = labels.DimsOf(summed);
    const std::vector<int64_t> strides = StridesIn(order, operand_labels, operand.dims);
    const std::vector<int64_t> summed_strides = StridesIn(summed, operand_labels, operand.dims);
    std::vector<T> result;
    result.reserve(static_cast<size_t>(labels.Volume(order)));
    for (Walk walk(dims, strides); walk.valid(); walk.Next()) {
        T total{};
        for (Walk inner(summed_dims, summed_strides, walk.offset()); inner.valid(); inner.Next()) {
            total +=
                As(T{}, ConvertScalar(operand.At(inner.offset()), operand.element, accumulate));
        }
        result.push_back(total);
    }
    return result;
}

template <typename T>
void Multiply(const op::Contract& contract,
              const Labels& labels,
              Operands operands,
              NewTensor& result) {
    const std::vector<T> a = Arrange<T>(operands[0], contract.a, labels.batch + labels.m + labels.k,
                                        labels.only_a, labels, contract.accumulate);
    const std::vector<T> b = Arrange<T>(operands[1], contract.b, labels.batch + labels.k + labels.n,
                                        labels.only_b, labels, contract.accumulate);
    const int64_t m = labels.Volume(labels.m), n = labels.Volume(labels.n);
    const int64_t k = labels.Volume(labels.k);
    const std::string order = labels.batch + labels.m + labels.n;
    const Dims dims = labels.DimsOf(order);
    const std::vector<int64_t> strides = StridesIn(order, contract.result, result.tensor.dims);
    const uint32_t bytes = BytesOf(contract.accumulate);
    std::vector<T> row(static_cast<size_t>(n));
    Walk target(dims, strides);
    for (int64_t i = 0; target.valid(); ++i) {  // rows of all matrices of the batch
        std::fill(row.begin(), row.end(), T{});
        for (int64_t p = 0; p < k; ++p) {
            const T factor = a[static_cast<size_t>(i * k + p)];
            const T* other = b.data() + (i / m * k + p) * n;
            for (size_t j = 0; j < row.size(); ++j) {
                row[j] += factor * other[j];
            }
        }
        for (const T value : row) {
            WriteElement(contract.accumulate, FromNumber(value),
                         result.data + target.offset() * bytes);
            target.Next();
        }
    }
}

}  // namespace

Result<Tensor> Evaluate(const op::Contract& contract, Operands operands, const Context& context) {
    FORNAX_ASSIGN_OR_RETURN(const Labels labels, SortLabels(contract, operands));
    FORNAX_ASSIGN_OR_RETURN(NewTensor result,
                            context.Allocate(contract.accumulate, labels.DimsOf(contract.result)));
    // The budget counts the operands as double or integers; all of these products are within range.
    FORNAX_RETURN_IF_ERROR(context.budget.Check(
        sizeof(double) * static_cast<uint64_t>(operands[0].count() + operands[1].count())));
    uint64_t products = static_cast<uint64_t>(result.tensor.count());
    if (__builtin_mul_overflow(products, static_cast<uint64_t>(labels.Volume(labels.k)),
                               &products)) {
        products = UINT64_MAX;
    }
    FORNAX_RETURN_IF_ERROR(context.budget.Spend(products));
    if (IsFloat(contract.accumulate)) {
        Multiply<double>(contract, labels, operands, result);
    } else {
        Multiply<uint64_t>(contract, labels, operands, result);
    }
    return std::move(result.tensor);
}

}  // namespace fornax::graph::interpret
