// Operands of matrix multiply-accumulates (MMAs) that lie in workgroup memory, at offsets known
// when the kernel is compiled: one is packed once for all subgroups that use it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "compiler/kernel/analysis/barrier_regions.h"

namespace fornax::kernel {

struct MatrixSharedOperands {
    static constexpr uint32_t kNone = UINT32_MAX;

    // A matrix, its lines 16 elements each.
    struct Operand {
        bool is_b = false;
        bool columns = false;  // its lines are columns
        uint32_t form = 0;     // what the unit makes of it
        uint32_t type_bytes = 0;
        uint32_t stride = 0;            // bytes from a line to the next
        std::vector<uint32_t> offsets;  // of the first line in workgroup memory, by subgroup
        std::vector<uint32_t> panels;   // by subgroup: the same number, the same matrix
        friend bool operator==(const Operand&, const Operand&) = default;
    };
    struct InRegion {
        uint32_t panels = 0;  // how many different matrices the subgroups have, all in all
        bool shared = false;  // some of them several times
    };
    std::vector<Operand> operands;
    // By first result of a matrix_muladd: which operands its A and B are, kNone if they are values.
    std::map<uint32_t, std::array<uint32_t, 2>> mmas;
    std::map<uint32_t, InRegion> regions;  // that have such MMAs
    // Instructions, by index: what nobody needs but these MMAs.
    std::set<uint32_t> unused;
    uint32_t max_panels = 0;
};

// What the unit makes of an MMA's A or B: a number that tells its forms apart.
using OperandFormOf = std::function<uint32_t(const ir::Instruction& mma, bool is_b)>;

// Invocations must be taken in order, a subgroup at a time.
MatrixSharedOperands FindMatrixSharedOperands(const ir::Kernel& kernel,
                                              const BarrierRegions& regions,
                                              const OperandFormOf& form_of);

}  // namespace fornax::kernel
