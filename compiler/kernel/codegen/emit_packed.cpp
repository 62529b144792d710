// Runs of elements without transposition. What a lane loads as a run, computes alike for each
// element and stores as a run can stay in the order of memory, lane after lane, instead of one
// vector an element: then neither side shuffles. Such a value is "packed": element i of lane l is
// at l * count + i. Loads leave their packed form beside the vectors of lanes, a store asks whether
// all of its values can be had packed, and LLVM deletes the forms that nobody used.
#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::Value;

namespace {

constexpr uint32_t kMostPackedOperations = 64;  // of one store

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
            return true;
        default:
            return false;
    }
}

}  // namespace

// The row of lane l to address + lane_bytes[l].
void Emitter::StorePackedRows(const MemoryRegion& region,
                              Value* address,
                              llvm::ArrayRef<uint64_t> lane_bytes,
                              Value* packed) {
    auto* type = llvm::cast<llvm::FixedVectorType>(packed->getType());
    const unsigned elements = type->getNumElements() / lanes_;
    const unsigned row_bytes = elements * type->getScalarSizeInBits() / 8;
    uint32_t rows = 0;
    for (uint32_t lane = 0; lane < lanes_; lane += rows) {
        // Rows of lanes that follow each other, as many as a register has.
        for (rows = 1; lane + rows < lanes_ && (rows + 1) * row_bytes <= vector_bits_ / 8; ++rows) {
            if (lane_bytes[lane + rows] != lane_bytes[lane] + uint64_t{rows} * row_bytes) {
                break;
            }
        }
        Value* part = vectors::Slice(builder_, packed, lane * elements, rows * elements);
        Value* at = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, lane_bytes[lane]);
        Annotate(region, builder_.CreateAlignedStore(part, at, llvm::Align(1)));
    }
}

// EitherWay of loads, with the packed form that the usual one may leave in `packed`.
Emitter::Values Emitter::PackedEitherWay(Value* condition,
                                         const std::string& name,
                                         llvm::function_ref<Values()> usual,
                                         llvm::function_ref<Values()> other,
                                         Value*& packed) {
    Values results = EitherWay(
        condition, name,
        [&] {
            Values values = usual();
            if (packed) {
                values.push_back(packed);
            }
            return values;
        },
        [&] {
            Values values = other();
            if (packed) {
                values.push_back(vectors::Pack(builder_, values));
            }
            return values;
        });
    if (packed) {
        packed = results.pop_back_val();
    }
    return results;
}

void Emitter::KeepPacked(const ir::Instruction& load, Value* packed) {
    const ir::ValueId first = load.results[0];
    if (packed && held_[first.index].epoch != UINT32_MAX) {
        packed_loads_[first.index] = {packed, held_[first.index].raw};
    }
}

// Null if not all values can be had packed, or it is not worth it.
Value* Emitter::Packed(std::span<const ir::ValueId> values) {
    if (lanes_ == 1 || !PackableRun(values.size()) || kernel_.type(values[0]) == ir::Type::kBool) {
        return nullptr;
    }
    // First without emitting anything: what cannot be finished would be work for nothing.
    uint32_t budget = kMostPackedOperations;
    bool loads = false;
    if (!FindPacked(values, budget, loads) || !loads) {
        return nullptr;
    }
    return EmitPacked(values);
}

bool Emitter::FindPacked(std::span<const ir::ValueId> values, uint32_t& budget, bool& loads) const {
    if (budget == 0) {
        return false;
    }
    --budget;
    const auto here = [&](ir::ValueId value) {
        const uint32_t epoch = held_[value.index].epoch;
        return held_[value.index].raw != nullptr && (epoch == epoch_ || epoch == 0);
    };
    const ir::ValueId first = values[0];
    if (std::ranges::all_of(values, [&](ir::ValueId value) { return value == first; }) ||
        std::ranges::all_of(values, [&](ir::ValueId value) { return kernel_.IsConst(value); })) {
        return std::ranges::all_of(values, here);
    }
    const ir::Instruction* inst = kernel_.Definition(first);
    if (inst == nullptr) {
        return false;
    }
    const auto packed = packed_loads_.find(first.index);
    if (packed != packed_loads_.end()) {
        loads = true;
        return here(first) && packed->second.column == held_[first.index].raw &&
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
                fusable_[other->operands[i].index]) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < inst->operands.size(); ++i) {
        llvm::SmallVector<ir::ValueId, 16> operands;
        for (ir::ValueId value : values) {
            operands.push_back(kernel_.Definition(value)->operands[i]);
        }
        if (!FindPacked(operands, budget, loads)) {
            return false;
        }
    }
    return true;
}

Value* Emitter::EmitPacked(std::span<const ir::ValueId> values) {
    const auto count = static_cast<unsigned>(values.size());
    const ir::ValueId first = values[0];
    if (std::ranges::all_of(values, [&](ir::ValueId value) { return value == first; })) {
        if (shapes_.shape(first).uniform()) {
            return builder_.CreateVectorSplat(lanes_ * count, Scalar(first));
        }
        llvm::SmallVector<int, 256> pick;
        for (unsigned i = 0; i < lanes_ * count; ++i) {
            pick.push_back(static_cast<int>(i / count));
        }
        return builder_.CreateShuffleVector(Vector(first), pick);
    }
    if (kernel_.IsConst(first)) {
        llvm::SmallVector<llvm::Constant*, 256> constants;
        for (unsigned i = 0; i < lanes_ * count; ++i) {
            constants.push_back(llvm::cast<llvm::Constant>(Scalar(values[i % count])));
        }
        return llvm::ConstantVector::get(constants);
    }
    const auto packed = packed_loads_.find(first.index);
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
        parts.push_back(EmitPacked(operands));
    }
    return EmitPureOp(builder_, kernel_, inst, parts)[0];
}

}  // namespace fornax::kernel
