// Operands of matrix multiply-accumulates that are multiplied where they lie in a buffer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

struct MatrixViews {
    // An MMA's A or B.
    struct View {
        ir::InstId load;       // its matrix_load, or not valid: the operand is values
        bool columns = false;  // it is the transpose of what is loaded
    };
    // By first result of a matrix_muladd that has any: A and B. Nothing between the load and the
    // MMA writes buffers, and both are in one block.
    std::map<uint32_t, std::array<View, 2>> mmas;
    // Instructions, by index: matrix_loads and transposes whose results nothing else uses.
    std::set<uint32_t> unused;
};

MatrixViews FindMatrixViews(const ir::Kernel& kernel);

}  // namespace fornax::kernel
