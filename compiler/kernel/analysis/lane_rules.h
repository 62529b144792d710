// What an operation makes of lanes that differ from a base by offsets: one rule for each operation.
// A new rule is added here.
//
// A lane has base + offset. The operation on the base plus the operation on the offset is what it
// gives, if something holds of the base: no lane wraps, or what lanes add stays below the bits that
// are dropped. `Rules` says whether that holds, and what the lanes become. The exact analysis
// proves it from known zeros and bounds (pure_lane_patterns.cpp), the speculation assumes it
// (lane_speculation.cpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// Where base + offset, as exact numbers, lie for all lanes.
enum class LaneRange : uint8_t {
    kUnsigned,     // in the type, read as unsigned
    kSigned,       // in the type, read as signed
    kNotNegative,  // in both
};

template <typename Map>
std::vector<int64_t> EachLane(std::vector<int64_t> by_lane, Map map) {
    for (int64_t& at : by_lane) {
        at = map(at);
    }
    return by_lane;
}

// The bits that any lane has.
inline uint64_t BitsOfLanes(const std::vector<int64_t>& by_lane) {
    uint64_t bits = 0;
    for (int64_t at : by_lane) {
        bits |= static_cast<uint64_t>(at);
    }
    return bits;
}

// The first + the second * `sign`, modulo 2^64; an empty list is zeros.
inline std::vector<int64_t> SumOfLanes(std::vector<int64_t> first,
                                       const std::vector<int64_t>& second,
                                       int64_t sign) {
    first.resize(std::max(first.size(), second.size()));
    for (size_t i = 0; i < second.size(); ++i) {
        const uint64_t more = static_cast<uint64_t>(second[i]) * static_cast<uint64_t>(sign);
        first[i] = static_cast<int64_t>(static_cast<uint64_t>(first[i]) + more);
    }
    return first;
}

// `Rules` knows the operands' lanes. It has
//   Result           the lanes of the operation's result; None() if no rule is known
//   kMaxSize         shifts by more than this power of two, and masks from it on, are not followed
// What has to hold of the first operand, and of both:
//   StaysIn(range)   no lane leaves the range
//   HasRoom(size)    base % size + offset % size < size for all lanes
//   AddsFreeBits()   base and offsets share no bits
//   NoCommonBits()   `or` of the operands is their sum, in all lanes
// The result, which follows from the operands' bases if `follows`:
//   Converted(follows), Times(factor), Quotient(follows, size), Remainder(follows, size),
//   Masked(follows, mask)   by the first operand
//   Sum(follows, sign), Product()   by both
template <typename Rules>
typename Rules::Result LanesOfResult(Rules& rules,
                                     const ir::Kernel& kernel,
                                     const ir::Instruction& inst) {
    using ir::Op;
    const ir::Type type = kernel.type(inst.operands[0]);
    if (!ir::IsInteger(type)) {
        return rules.None();
    }
    const uint32_t bits = ir::BitWidth(type);
    uint64_t number = 0;
    const bool by_constant = inst.operands.size() == 2 && kernel.IsConst(inst.operands[1], &number);
    // What is shifted down or divided.
    const bool is_signed = inst.op == Op::kAShr || inst.op == Op::kSDiv || inst.op == Op::kSRem ||
                           inst.op == Op::kSMod;
    const auto has_quotient = [&](uint64_t size) {
        return rules.StaysIn(is_signed ? LaneRange::kNotNegative : LaneRange::kUnsigned) &&
               rules.HasRoom(size);
    };
    const uint64_t power = by_constant && number < bits ? uint64_t{1} << number : 0;
    const bool shifts = power != 0 && power <= Rules::kMaxSize;
    const bool divides = by_constant && number != 0 && (!is_signed || number >> (bits - 1) == 0);
    switch (inst.op) {
        case Op::kIAdd:
            return rules.Sum(true, 1);
        case Op::kISub:
            return rules.Sum(true, -1);
        case Op::kOr:
        case Op::kXor:
            return rules.Sum(rules.NoCommonBits(), 1);
        case Op::kIMul:
            return by_constant ? rules.Times(number) : rules.Product();
        case Op::kShl:
            return shifts ? rules.Times(power) : rules.None();
        case Op::kLShr:
        case Op::kAShr:
            return shifts ? rules.Quotient(has_quotient(power), power) : rules.None();
        case Op::kUDiv:
        case Op::kSDiv:
            return divides ? rules.Quotient(has_quotient(number), number) : rules.None();
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
            return divides ? rules.Remainder(has_quotient(number), number) : rules.None();
        case Op::kAnd:
            if (!by_constant || number >= Rules::kMaxSize) {
                return rules.None();
            }
            // Low bits do not care what wraps.
            return std::has_single_bit(number + 1)
                       ? rules.Remainder(rules.HasRoom(number + 1), number + 1)
                       : rules.Masked(rules.AddsFreeBits(), number);
        case Op::kZExt:
            return rules.Converted(rules.StaysIn(LaneRange::kUnsigned));
        case Op::kSExt:
            return rules.Converted(rules.StaysIn(LaneRange::kSigned));
        case Op::kTrunc:
        case Op::kBitcast:
            return rules.Converted(true);
        default:
            return rules.None();
    }
}

}  // namespace fornax::kernel
