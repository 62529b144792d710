// The matrix unit: a systolic array of rows x columns multiply-accumulators.
//
// Source: the analytical equations of A. Samajdar et al., "A Systematic Methodology for
// Characterizing Scalability of DNN Accelerators using SCALE-Sim" (ISPASS 2020), section III. With
// an array of R x C and a product of M x K by K x N, a fold is one filling of the array:
//
//   weight-stationary  (2R + C + M - 2) * ceil(K/R) * ceil(N/C)
//   output-stationary  (R + C + K - 2)  * ceil(M/R) * ceil(N/C)
//   input-stationary   (2R + C + N - 2) * ceil(K/R) * ceil(M/C)
//
// SCALE-Sim's own simulation counts cycles from 0 and so publishes one less.
#pragma once

#include "npu/description/description.h"
#include "npu/units/cycles.h"

namespace fornax::npu {

struct ArrayShape {
    uint64_t rows = 1;
    uint64_t columns = 1;
};

struct ProductShape {
    uint64_t m = 0;
    uint64_t n = 0;
    uint64_t k = 0;
    bool empty() const { return m == 0 || n == 0 || k == 0; }
};

struct ProductCycles {
    Cycles cycles = 0;
    uint64_t folds = 0;
    Dataflow dataflow = Dataflow::kWeightStationary;  // never kBest
};

// At one multiply-accumulate of each element of the array in a cycle.
ProductCycles CyclesOfProduct(const ArrayShape& array,
                              const ProductShape& product,
                              Dataflow dataflow);

// On one matrix unit of the description, at the rate that it has for the type, which is not 0.
ProductCycles CyclesOfProduct(const Description& description,
                              const ProductShape& product,
                              MatrixType type);

// Bytes that the unit takes from the scratchpad and puts there for a product: for each fold the
// operand that stays and the rows or columns that stream, and each result once in 32 bits. Partial
// sums stay in the unit's accumulators.
uint64_t ScratchpadBytesOfProduct(const ArrayShape& array,
                                  const ProductShape& product,
                                  const ProductCycles& cycles,
                                  MatrixType type);

}  // namespace fornax::npu
