// The matrix unit of a core: what it multiplies, its registers, its commands and what it counts.
//
// The kernel compiler issues its commands (compiler/kernel/codegen/matrix_unit.h), the driver
// tells applications what it multiplies, and the device counts what it did. The software device
// carries the commands out as code for the host: in its tile registers (AMX) or its vector
// registers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "hal/kernel_abi.h"

namespace fornax::hal {

// A multiply-accumulate (MMA) multiplies matrices A and B of 16 x 16, which a subgroup holds
// together, and adds the product to the accumulator.
inline constexpr uint32_t kMatrixUnitSize = 16;
// Multiplications in an MMA, each of which is added to an element of the accumulator.
inline constexpr uint64_t kMultiplyAddsPerMma =
    uint64_t{kMatrixUnitSize} * kMatrixUnitSize * kMatrixUnitSize;

enum class MatrixElement : uint8_t { kF16, kBF16, kF32, kS8, kU8, kS32, kU32 };

// The types of A, B and the accumulator.
struct MmaTypes {
    MatrixElement a, b;
    MatrixElement accumulator;
    bool saturates = false;
};

// What the unit multiplies. Some clients take the first of a type that they know.
inline constexpr MmaTypes kMmaTypes[] = {
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

// How the unit is configured: the kind of its operands.
enum class MatrixFormat : uint8_t { kF16, kBF16, kInt8, kF32 };
inline constexpr uint32_t kMatrixFormats = 4;
inline constexpr std::array<const char*, kMatrixFormats> kMatrixFormatNames = {"f16", "bf16",
                                                                               "int8", "f32"};

// Registers: the format; operands, each in the order in which the multipliers take it;
// accumulators. Operands that all subgroups of a workgroup take from its memory may be registers of
// the workgroup beside these, loaded by the first that comes to them.
inline constexpr uint32_t kMatrixOperandRegisters = 8;
inline constexpr uint32_t kMatrixAccumulatorRegisters = 4;

// A worker configures the unit before the first of the workgroups that it runs in a row and
// releases it behind the last. How often that is depends on how a grid is distributed, so only what
// comes in between is counted.
enum class MatrixCommand : uint8_t {
    kMultiplyAdd,       // an accumulator register gains the product of two operand registers
    kLoadOperand,       // a matrix of the subgroup becomes an operand register, as A or as B
    kLoadAccumulator,   // a matrix of the subgroup becomes an accumulator register
    kStoreAccumulator,  // and the other way round
};

// Commands that a worker's kernels issued. They are the words of WorkerFrame::unit_counts, so part
// of the binary contract: what changes here changes kKernelAbiVersion.
struct MatrixCounts {
    uint64_t mmas[kMatrixFormats] = {};  // kMultiplyAdd by MatrixFormat
    uint64_t operands_loaded = 0;
    uint64_t accumulators_loaded = 0;
    uint64_t accumulators_stored = 0;

    uint64_t commands() const {
        uint64_t count = operands_loaded + accumulators_loaded + accumulators_stored;
        for (const uint64_t number : mmas) {
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
            case MatrixCommand::kLoadOperand:
                return operands_loaded;
            case MatrixCommand::kLoadAccumulator:
                return accumulators_loaded;
            case MatrixCommand::kStoreAccumulator:
                return accumulators_stored;
        }
        return mmas[static_cast<uint32_t>(format)];
    }
    MatrixCounts& operator+=(const MatrixCounts& other) {
        for (uint32_t i = 0; i < kMatrixFormats; ++i) {
            mmas[i] += other.mmas[i];
        }
        operands_loaded += other.operands_loaded;
        accumulators_loaded += other.accumulators_loaded;
        accumulators_stored += other.accumulators_stored;
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
