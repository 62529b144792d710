#include "compiler/kernel/interpret/subgroup.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "base/half.h"
#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/ir/group.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// The lanes among which a scan or reduction of `lane` takes place: all that are there, those of its
// cluster, or those of its set of the partition.
uint64_t Companions(const Instruction& inst, Lanes lanes, uint32_t lane) {
    uint64_t set = 0;
    const uint32_t cluster = ClusterSizeOf(inst);
    for (uint32_t other = 0; other < lanes.size(); ++other) {
        bool together = lanes[other] != nullptr;
        if (cluster != 0) {
            together = together && other / cluster == lane / cluster;
        }
        set |= uint64_t{together} << other;
    }
    if (inst.operands.size() > 1) {
        set &= lanes[lane][inst.operands[1].value()];
    }
    return set;
}

// Combines every `step`th lane from `first` on, those in `set`; the others count as the identity.
// Like a tree that joins the two halves of a vector first: only the rounding of floats shows it.
uint64_t Combine(const Kernel& kernel,
                 const Instruction& inst,
                 Lanes lanes,
                 uint64_t set,
                 uint32_t first = 0,
                 uint32_t step = 1) {
    const ValueId operand = inst.operands[0];
    const GroupOp op = GroupOpOf(inst);
    if (step >= lanes.size()) {
        return set >> first & 1 ? lanes[first][operand.value()]
                                : GroupIdentity(op, kernel.type(operand));
    }
    const uint64_t parts[] = {Combine(kernel, inst, lanes, set, first, 2 * step),
                              Combine(kernel, inst, lanes, set, first + step, 2 * step)};
    Instruction combine = inst;
    combine.op = CombineOp(op);
    combine.operands = {operand, operand};
    combine.imm = 0;
    uint64_t result = 0;
    bool evaluated = Evaluate(kernel, combine, parts, {&result, 1});
    assert(evaluated);
    (void)evaluated;
    return result;
}

uint64_t LanesUpTo(uint32_t lane) {
    return ~uint64_t{0} >> (63 - lane);
}

using Matrix = std::array<uint64_t, kMatrixElements>;

// The matrix whose elements are in the operands from `first` on; 0 where a lane is not there.
Matrix ReadMatrix(const Kernel& kernel, const Instruction& inst, Lanes lanes, size_t first) {
    Matrix matrix = {};
    for (uint32_t i = 0; i < kMatrixElements; ++i) {
        if (const uint64_t* lane = lanes[i % kernel.subgroup_size]) {
            matrix[i] = lane[inst.operands[first + i / kernel.subgroup_size].value()];
        }
    }
    return matrix;
}

// An element of A or B; `is_signed` is for integers.
double OperandOf(const Kernel& kernel, const Instruction& inst, uint64_t bits, bool is_signed) {
    if (inst.imm & kMatrixBFloat16) {
        return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    }
    if (kernel.type(inst.operands[0]) == Type::kF32) {
        return std::bit_cast<float>(static_cast<uint32_t>(bits));
    }
    if (kernel.type(inst.operands[0]) == Type::kF16) {
        return HalfToFloat(static_cast<uint16_t>(bits));
    }
    return is_signed ? static_cast<int8_t>(bits) : static_cast<uint8_t>(bits);
}

// One after the other, as fused multiplications and additions round.
uint64_t FloatSum(std::span<const double> a, std::span<const double> b, uint64_t c) {
    float sum = std::bit_cast<float>(static_cast<uint32_t>(c));
    for (uint32_t k = 0; k < kMatrixSize; ++k) {
        sum = std::fma(static_cast<float>(a[k]), static_cast<float>(b[k]), sum);
    }
    return std::bit_cast<uint32_t>(sum);
}

uint64_t IntegerSum(const Instruction& inst,
                    std::span<const double> a,
                    std::span<const double> b,
                    uint64_t c) {
    const auto bits = static_cast<uint32_t>(c);
    int64_t sum = inst.imm & kMatrixSignedC ? int64_t{static_cast<int32_t>(bits)} : int64_t{bits};
    for (uint32_t k = 0; k < kMatrixSize; ++k) {
        sum += static_cast<int64_t>(a[k] * b[k]);
    }
    if (inst.imm & kMatrixSaturating) {
        sum = inst.imm & kMatrixSignedC ? std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX)
                                        : std::clamp<int64_t>(sum, 0, UINT32_MAX);
    }
    return static_cast<uint32_t>(sum);
}

void RunMatrixOp(const Kernel& kernel, const Instruction& inst, Lanes lanes) {
    const size_t elements = inst.results.size();
    const Matrix a = ReadMatrix(kernel, inst, lanes, 0);
    Matrix result;
    if (inst.op == Op::kMatrixTranspose) {
        for (uint32_t i = 0; i < kMatrixElements; ++i) {
            result[i] = a[i % kMatrixSize * kMatrixSize + i / kMatrixSize];
        }
    } else {
        const Matrix b = ReadMatrix(kernel, inst, lanes, elements);
        const Matrix c = ReadMatrix(kernel, inst, lanes, 2 * elements);
        for (uint32_t i = 0; i < kMatrixElements; ++i) {
            std::array<double, kMatrixSize> row, column;
            for (uint32_t k = 0; k < kMatrixSize; ++k) {
                row[k] = OperandOf(kernel, inst, a[i / kMatrixSize * kMatrixSize + k],
                                   (inst.imm & kMatrixSignedA) != 0);
                column[k] = OperandOf(kernel, inst, b[k * kMatrixSize + i % kMatrixSize],
                                      (inst.imm & kMatrixSignedB) != 0);
            }
            const bool integer = kernel.type(inst.results[0]) == Type::kI32;
            result[i] = integer ? IntegerSum(inst, row, column, c[i]) : FloatSum(row, column, c[i]);
        }
    }
    for (uint32_t i = 0; i < kMatrixElements; ++i) {
        if (uint64_t* lane = lanes[i % kernel.subgroup_size]) {
            lane[inst.results[i / kernel.subgroup_size].value()] = result[i];
        }
    }
}

}  // namespace

void RunSubgroupOp(const Kernel& kernel, const Instruction& inst, Lanes lanes) {
    if (inst.op == Op::kMatrixMulAdd || inst.op == Op::kMatrixTranspose) {
        RunMatrixOp(kernel, inst, lanes);
        return;
    }
    const auto count = static_cast<uint32_t>(lanes.size());
    auto operand = [&](uint32_t lane, size_t i = 0) {
        return lanes[lane][inst.operands[i].value()];
    };
    uint64_t ballot = 0;
    uint32_t first = count;
    for (uint32_t lane = count; lane-- > 0;) {
        if (!lanes[lane]) {
            continue;
        }
        first = lane;
        if (inst.op == Op::kSubgroupBallot && operand(lane)) {
            ballot |= uint64_t{1} << lane;
        }
    }
    // All results are computed before the first is written: an operation in a loop may see its own
    // result of the iteration before.
    std::vector<uint64_t> results(count);
    for (uint32_t lane = 0; lane < count; ++lane) {
        if (!lanes[lane]) {
            continue;
        }
        uint64_t& result = results[lane];
        switch (inst.op) {
            case Op::kSubgroupElect:
                result = lane == first;
                break;
            case Op::kSubgroupBallot:
                result = ballot;
                break;
            case Op::kSubgroupBroadcastFirst:
                result = operand(first);
                break;
            case Op::kSubgroupShuffle: {
                const uint64_t from = operand(lane, 1);
                result = from < count && lanes[from] ? operand(static_cast<uint32_t>(from)) : 0;
                break;
            }
            case Op::kSubgroupPartition:
                for (uint32_t other = 0; other < count; ++other) {
                    if (lanes[other] && operand(other) == operand(lane)) {
                        result |= uint64_t{1} << other;
                    }
                }
                break;
            case Op::kSubgroupReduce:
            case Op::kPartitionedReduce:
                result = Combine(kernel, inst, lanes, Companions(inst, lanes, lane));
                break;
            case Op::kSubgroupInclusiveScan:
            case Op::kPartitionedInclusiveScan:
                result =
                    Combine(kernel, inst, lanes, Companions(inst, lanes, lane) & LanesUpTo(lane));
                break;
            case Op::kSubgroupExclusiveScan:
            case Op::kPartitionedExclusiveScan:
                result = Combine(kernel, inst, lanes,
                                 Companions(inst, lanes, lane) & LanesUpTo(lane) >> 1);
                break;
            default:
                assert(inst.op == Op::kSubgroupBarrier);
                break;
        }
    }
    for (uint32_t lane = 0; lane < count; ++lane) {
        if (lanes[lane] && !inst.results.empty()) {
            lanes[lane][inst.results[0].value()] = results[lane];
        }
    }
}

}  // namespace fornax::kernel
