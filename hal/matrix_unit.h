// The matrix unit of a core: what it multiplies, its registers, its commands and what it counts.
//
// The kernel compiler issues its commands (compiler/kernel/codegen/matrix_unit.h), the driver
// tells applications what it multiplies, and the device counts what it did. The software device
// carries the commands out as code for the host: on its tiles (AMX) or its vector registers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "hal/kernel_abi.h"

namespace fornax::hal {

// A product is of matrices of 16 x 16 that a subgroup holds together, added to another.
inline constexpr uint32_t kMatrixUnitSize = 16;
// Multiplications in one product, each of which is added to a sum.
inline constexpr uint64_t kMultiplyAddsPerProduct =
    uint64_t{kMatrixUnitSize} * kMatrixUnitSize * kMatrixUnitSize;

enum class MatrixElement : uint8_t { kF16, kBF16, kF32, kS8, kU8, kS32, kU32 };

struct MatrixProduct {
    MatrixElement a, b;
    MatrixElement sum;
    bool saturates = false;
};

// What the unit multiplies. Some clients take the first of a type that they know.
inline constexpr MatrixProduct kMatrixProducts[] = {
    {MatrixElement::kF16, MatrixElement::kF16, MatrixElement::kF32},
    {MatrixElement::kBF16, MatrixElement::kBF16, MatrixElement::kF32},
    {MatrixElement::kF32, MatrixElement::kF32, MatrixElement::kF32},
    {MatrixElement::kS8, MatrixElement::kS8, MatrixElement::kS32},
    {MatrixElement::kU8, MatrixElement::kU8, MatrixElement::kU32},
    {MatrixElement::kU8, MatrixElement::kU8, MatrixElement::kS32},
    {MatrixElement::kS8, MatrixElement::kU8, MatrixElement::kS32},
    {MatrixElement::kU8, MatrixElement::kS8, MatrixElement::kS32},
    {MatrixElement::kS8, MatrixElement::kS8, MatrixElement::kS32, true},
    {MatrixElement::kU8, MatrixElement::kU8, MatrixElement::kU32, true},
    {MatrixElement::kU8, MatrixElement::kU8, MatrixElement::kS32, true},
    {MatrixElement::kS8, MatrixElement::kU8, MatrixElement::kS32, true},
    {MatrixElement::kU8, MatrixElement::kS8, MatrixElement::kS32, true},
};

// How the unit is configured: the kind of its factors.
enum class MatrixFormat : uint8_t { kF16, kBF16, kInt8, kF32 };
inline constexpr uint32_t kMatrixFormats = 4;
inline constexpr std::array<const char*, kMatrixFormats> kMatrixFormatNames = {"f16", "bf16",
                                                                               "int8", "f32"};

// Registers: the format; factors, each in the order in which the multipliers take it; sums. Factors
// that all subgroups of a workgroup take from its memory may be registers of the workgroup beside
// these, loaded by the first that comes to them.
inline constexpr uint32_t kMatrixFactorRegisters = 8;
inline constexpr uint32_t kMatrixSumRegisters = 4;

// A worker configures the unit before the first of the workgroups that it runs in a row and
// releases it behind the last. How often that is depends on how a grid is dealt out, so only what
// comes in between is counted.
enum class MatrixCommand : uint8_t {
    kMultiplyAdd,  // a sum register gains the product of two factor registers
    kLoadFactor,   // a matrix of the subgroup becomes a factor register, as A or as B
    kLoadSum,      // a matrix of the subgroup becomes a sum register
    kStoreSum,     // and the other way round
};

// Commands that a worker's kernels issued. They are the words of WorkerFrame::unit_counts, so part
// of the binary contract: what changes here changes kKernelAbiVersion.
struct MatrixCounts {
    uint64_t products[kMatrixFormats] = {};  // kMultiplyAdd by MatrixFormat
    uint64_t factors_loaded = 0;
    uint64_t sums_loaded = 0;
    uint64_t sums_stored = 0;

    uint64_t commands() const {
        uint64_t count = factors_loaded + sums_loaded + sums_stored;
        for (const uint64_t number : products) {
            count += number;
        }
        return count;
    }
    bool empty() const { return commands() == 0; }
    // The counter that a command belongs to.
    uint64_t& of(MatrixCommand command, MatrixFormat format) {
        switch (command) {
            case MatrixCommand::kMultiplyAdd:
                break;
            case MatrixCommand::kLoadFactor:
                return factors_loaded;
            case MatrixCommand::kLoadSum:
                return sums_loaded;
            case MatrixCommand::kStoreSum:
                return sums_stored;
        }
        return products[static_cast<uint32_t>(format)];
    }
    MatrixCounts& operator+=(const MatrixCounts& other) {
        for (uint32_t i = 0; i < kMatrixFormats; ++i) {
            products[i] += other.products[i];
        }
        factors_loaded += other.factors_loaded;
        sums_loaded += other.sums_loaded;
        sums_stored += other.sums_stored;
        return *this;
    }
    bool operator==(const MatrixCounts&) const = default;
};
static_assert(sizeof(MatrixCounts) == sizeof(UnitCounts));

inline MatrixCounts MatrixCountsOf(const UnitCounts& counts) {
    return std::bit_cast<MatrixCounts>(counts);
}
inline UnitCounts UnitCountsOf(const MatrixCounts& counts) {
    return std::bit_cast<UnitCounts>(counts);
}

}  // namespace fornax::hal
