#include "compiler/kernel/codegen/emit_packed.h"

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;

namespace {

constexpr uint32_t kMostPackedOperations = 160;  // of one store

// Operations of one instruction or few for vectors of any length.
bool CanPack(Op op) {
    switch (op) {
        case Op::kIAdd:
        case Op::kISub:
        case Op::kIMul:
        case Op::kINeg:
        case Op::kShl:
        case Op::kLShr:
        case Op::kAShr:
        case Op::kAnd:
        case Op::kOr:
        case Op::kXor:
        case Op::kNot:
        case Op::kUMin:
        case Op::kUMax:
        case Op::kSMin:
        case Op::kSMax:
        case Op::kTrunc:
        case Op::kZExt:
        case Op::kSExt:
        case Op::kFConvert:
        case Op::kSToF:
        case Op::kUToF:
        case Op::kBitcast:
        case Op::kFAdd:
        case Op::kFSub:
        case Op::kFMul:
        case Op::kFNeg:
        case Op::kFAbs:
        case Op::kFma:
        case Op::kFMin:
        case Op::kFMax:
        case Op::kSelect:
        case Op::kFOLt:
        case Op::kFUNe:
            return true;
        default:
            return false;
    }
}

std::vector<uint32_t> NumbersOf(std::span<const ir::ValueId> values) {
    std::vector<uint32_t> numbers;
    for (ir::ValueId value : values) {
        numbers.push_back(value.value());
    }
    return numbers;
}

}  // namespace

void PackedValues::KeepPacked(const ir::Instruction& load, Value* packed) {
    const ir::ValueId first = load.results[0];
    const HeldValue& held = values_.held(first);
    if (packed && held.epoch != UINT32_MAX) {
        packed_loads_[first.value()] = {packed, held.raw};
    }
}

// Null if not all values can be had packed, or it is not worth it.
Value* PackedValues::Packed(std::span<const ir::ValueId> values) {
    if (code_.lanes == 1 || !PackableRun(values.size()) ||
        kernel_.type(values[0]) == ir::Type::kBool) {
        return nullptr;
    }
    // First without emitting anything: what cannot be finished would be work for nothing.
    Search search{.budget = kMostPackedOperations, .loads = false, .known = {}};
    if (!FindPacked(values, search) || !search.loads) {
        return nullptr;
    }
    std::map<Run, Value*> emitted;
    return EmitPacked(values, emitted);
}

// A condition that all elements of a lane share: comparing spread values takes less than spreading
// what a comparison gave.
bool PackedValues::IsOneComparison(std::span<const ir::ValueId> values) const {
    const ir::Instruction* inst = kernel_.Definition(values[0]);
    return kernel_.type(values[0]) == ir::Type::kBool && inst != nullptr &&
           (inst->op == Op::kFOLt || inst->op == Op::kFUNe) &&
           std::ranges::all_of(values, [&](ir::ValueId value) { return value == values[0]; });
}

bool PackedValues::FindPacked(std::span<const ir::ValueId> values, Search& search) const {
    const auto [known, is_new] = search.known.try_emplace(NumbersOf(values), false);
    if (!is_new) {
        return known->second;
    }
    if (search.budget == 0) {
        return false;
    }
    --search.budget;
    const bool can = CanBePacked(values, search);
    search.known[NumbersOf(values)] = can;
    return can;
}

bool PackedValues::CanBePacked(std::span<const ir::ValueId> values, Search& search) const {
    const auto here = [&](ir::ValueId value) {
        return values_.held(value).raw != nullptr && values_.IsHere(value);
    };
    const ir::ValueId first = values[0];
    const bool is_same = std::ranges::all_of(values, [&](auto value) { return value == first; });
    if (!IsOneComparison(values) && (is_same || std::ranges::all_of(values, [&](auto value) {
                                         return kernel_.IsConst(value);
                                     }))) {
        return std::ranges::all_of(values, here);
    }
    const ir::Instruction* inst = kernel_.Definition(first);
    if (inst == nullptr) {
        return false;
    }
    const auto packed = packed_loads_.find(first.value());
    if (packed != packed_loads_.end()) {
        search.loads = true;
        return here(first) && packed->second.column == values_.held(first).raw &&
               std::ranges::equal(values, inst->results);
    }
    if (!CanPack(inst->op)) {
        return false;
    }
    for (ir::ValueId value : values) {
        const ir::Instruction* other = kernel_.Definition(value);
        if (other == nullptr || other->op != inst->op || other->flags != inst->flags ||
            other->imm != inst->imm || kernel_.type(value) != kernel_.type(first)) {
            return false;
        }
        for (size_t i = 0; i < inst->operands.size(); ++i) {
            // A product that is fused into its sums stays where that is decided.
            if (kernel_.type(other->operands[i]) != kernel_.type(inst->operands[i]) ||
                values_.is_fusable(other->operands[i])) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < inst->operands.size(); ++i) {
        llvm::SmallVector<ir::ValueId, 16> operands;
        for (ir::ValueId value : values) {
            operands.push_back(kernel_.Definition(value)->operands[i]);
        }
        if (!FindPacked(operands, search)) {
            return false;
        }
    }
    return true;
}

Value* PackedValues::EmitPacked(std::span<const ir::ValueId> values,
                                std::map<Run, Value*>& emitted) {
    const Run run = NumbersOf(values);
    const auto found = emitted.find(run);
    if (found != emitted.end()) {
        return found->second;
    }
    Value* made = MakePacked(values, emitted);
    emitted[run] = made;
    return made;
}

Value* PackedValues::MakePacked(std::span<const ir::ValueId> values,
                                std::map<Run, Value*>& emitted) {
    const auto count = static_cast<unsigned>(values.size());
    const ir::ValueId first = values[0];
    if (!IsOneComparison(values) &&
        std::ranges::all_of(values, [&](ir::ValueId value) { return value == first; })) {
        if (patterns_.pattern(first).uniform()) {
            return builder_.CreateVectorSplat(code_.lanes * count, values_.Scalar(first));
        }
        llvm::SmallVector<int, 256> pick;
        for (unsigned i = 0; i < code_.lanes * count; ++i) {
            pick.push_back(static_cast<int>(i / count));
        }
        return builder_.CreateShuffleVector(values_.Vector(first), pick);
    }
    if (kernel_.IsConst(first)) {
        llvm::SmallVector<llvm::Constant*, 256> constants;
        for (unsigned i = 0; i < code_.lanes * count; ++i) {
            constants.push_back(llvm::cast<llvm::Constant>(values_.Scalar(values[i % count])));
        }
        return llvm::ConstantVector::get(constants);
    }
    const auto packed = packed_loads_.find(first.value());
    if (packed != packed_loads_.end()) {
        return packed->second.packed;
    }
    const ir::Instruction& inst = *kernel_.Definition(first);
    llvm::SmallVector<Value*, 4> parts;
    for (size_t i = 0; i < inst.operands.size(); ++i) {
        llvm::SmallVector<ir::ValueId, 16> operands;
        for (ir::ValueId value : values) {
            operands.push_back(kernel_.Definition(value)->operands[i]);
        }
        parts.push_back(EmitPacked(operands, emitted));
    }
    return EmitPureOp(builder_, kernel_, inst, parts)[0];
}

}  // namespace fornax::kernel
