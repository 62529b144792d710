// Factors of matrix products that lie in workgroup memory at places known when the kernel is
// compiled: the matrix unit's form of one is made once for all subgroups that use it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "compiler/kernel/analysis/regions.h"

namespace fornax::kernel {

struct MatrixFactors {
    static constexpr uint32_t kNone = UINT32_MAX;

    // A matrix, its lines 16 elements each.
    struct Factor {
        bool is_b = false;
        bool columns = false;  // its lines are columns
        uint32_t form = 0;     // what the unit makes of it
        uint32_t type_bytes = 0;
        uint32_t stride = 0;            // bytes from a line to the next
        std::vector<uint32_t> offsets;  // of the first line in workgroup memory, by subgroup
        std::vector<uint32_t> places;   // by subgroup: the same number is the same matrix
        friend bool operator==(const Factor&, const Factor&) = default;
    };
    struct InSegment {
        uint32_t places = 0;  // how many different matrices the subgroups have, all in all
        bool shared = false;  // some of them several times
    };
    std::vector<Factor> factors;
    // By first result of a matrix_muladd: which factors its A and B are, kNone if they are values.
    std::map<uint32_t, std::array<uint32_t, 2>> products;
    std::map<uint32_t, InSegment> segments;  // that have such products
    // Instructions, by index: what nobody needs but these products.
    std::set<uint32_t> unused;
    uint32_t max_places = 0;
};

// What the unit makes of a product's A or B: a number that tells its forms apart.
using FactorFormOf = std::function<uint32_t(const ir::Instruction& product, bool is_b)>;

// Invocations must be taken in order, a subgroup at a time.
MatrixFactors FindMatrixFactors(const ir::Kernel& kernel,
                                const Regions& regions,
                                const FactorFormOf& form_of);

}  // namespace fornax::kernel
