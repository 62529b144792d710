#include "npu/units/matrix_unit.h"

namespace fornax::npu {

ProductCycles CyclesOfProduct(const ArrayShape& array,
                              const ProductShape& product,
                              Dataflow dataflow) {
    if (product.empty()) {
        return {};
    }
    const auto [rows, columns] = array;
    const auto [m, n, k] = product;
    switch (dataflow) {
        case Dataflow::kWeightStationary: {
            const uint64_t folds = CeilDivide(k, rows) * CeilDivide(n, columns);
            return {(2 * rows + columns + m - 2) * folds, folds, dataflow};
        }
        case Dataflow::kOutputStationary: {
            const uint64_t folds = CeilDivide(m, rows) * CeilDivide(n, columns);
            return {(rows + columns + k - 2) * folds, folds, dataflow};
        }
        case Dataflow::kInputStationary: {
            const uint64_t folds = CeilDivide(k, rows) * CeilDivide(m, columns);
            return {(2 * rows + columns + n - 2) * folds, folds, dataflow};
        }
        case Dataflow::kBest:
            break;
    }
    ProductCycles best = CyclesOfProduct(array, product, Dataflow::kWeightStationary);
    for (const Dataflow other : {Dataflow::kOutputStationary, Dataflow::kInputStationary}) {
        const ProductCycles cycles = CyclesOfProduct(array, product, other);
        best = cycles.cycles < best.cycles ? cycles : best;
    }
    return best;
}

ProductCycles CyclesOfProduct(const Description& description,
                              const ProductShape& product,
                              MatrixType type) {
    const Description::Matrix& matrix = description.matrix;
    ProductCycles result = CyclesOfProduct({matrix.rows, matrix.columns}, product, matrix.dataflow);
    result.cycles = WholeCycles(static_cast<double>(result.cycles) / matrix.rate(type));
    return result;
}

uint64_t ScratchpadBytesOfProduct(const ArrayShape& array,
                                  const ProductShape& product,
                                  const ProductCycles& cycles,
                                  MatrixType type) {
    constexpr std::array<uint64_t, kMatrixTypes> kElementBytes = {1, 2, 2, 4};
    const uint64_t element = kElementBytes[static_cast<size_t>(type)];
    uint64_t elements = 0;  // of a fold
    switch (cycles.dataflow) {
        case Dataflow::kWeightStationary:
            elements = array.rows * (array.columns + product.m);
            break;
        case Dataflow::kOutputStationary:
            elements = product.k * (array.rows + array.columns);
            break;
        case Dataflow::kInputStationary:
            elements = array.rows * (array.columns + product.n);
            break;
        case Dataflow::kBest:
            break;
    }
    return cycles.folds * elements * element + product.m * product.n * 4;
}

}  // namespace fornax::npu
