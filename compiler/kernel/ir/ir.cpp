// Storage of the kernel IR: making instructions, values and blocks. Printing, parsing and
// verification have files of their own.
#include "compiler/kernel/ir/ir.h"

#include <bit>

namespace fornax::kernel::ir {

namespace {

constexpr OpInfo kOpInfos[] = {
#define FORNAX_OP(name, text, operands, results, properties) \
    {text, operands, results, static_cast<uint8_t>(properties)},
#include "compiler/kernel/ir/ops.def"
#undef FORNAX_OP
};

}  // namespace

const OpInfo& InfoOf(Op op) {
    return kOpInfos[static_cast<size_t>(op)];
}

uint32_t BitWidth(Type type) {
    switch (type) {
        case Type::kBool:
            return 1;
        case Type::kI8:
            return 8;
        case Type::kI16:
        case Type::kF16:
            return 16;
        case Type::kI32:
        case Type::kF32:
            return 32;
        case Type::kI64:
        case Type::kF64:
            return 64;
        case Type::kVoid:
        case Type::kBuffer:
            return 0;
    }
    return 0;
}

uint32_t ByteSize(Type type) {
    return type == Type::kBool ? 4 : BitWidth(type) / 8;
}

bool IsInteger(Type type) {
    return type >= Type::kI8 && type <= Type::kI64;
}

bool IsFloat(Type type) {
    return type >= Type::kF16 && type <= Type::kF64;
}

Type IntegerType(uint32_t bits) {
    switch (bits) {
        case 8:
            return Type::kI8;
        case 16:
            return Type::kI16;
        case 64:
            return Type::kI64;
        default:
            assert(bits == 32);
            return Type::kI32;
    }
}

Type FloatType(uint32_t bits) {
    switch (bits) {
        case 16:
            return Type::kF16;
        case 64:
            return Type::kF64;
        default:
            assert(bits == 32);
            return Type::kF32;
    }
}

const Instruction* Kernel::Definition(ValueId id) const {
    const Value& v = value(id);
    return v.inst.valid() ? &inst(v.inst) : nullptr;
}

bool Kernel::IsConst(ValueId id, uint64_t* bits) const {
    const Instruction* definition = Definition(id);
    if (!definition || definition->op != Op::kConst) {
        return false;
    }
    if (bits) {
        *bits = definition->imm;
    }
    return true;
}

BlockId Kernel::NewBlock(InstId parent) {
    BlockId id{static_cast<uint32_t>(blocks_.size())};
    blocks_.emplace_back().parent = parent;
    return id;
}

ValueId Kernel::AddParam(BlockId block_id, Type type) {
    ValueId id{static_cast<uint32_t>(values_.size())};
    auto& params = block(block_id).params;
    values_.push_back({type, {}, block_id, static_cast<uint32_t>(params.size())});
    params.push_back(id);
    return id;
}

InstId Kernel::NewInst(Op op,
                       std::span<const ValueId> operands,
                       std::span<const Type> result_types) {
    InstId id{static_cast<uint32_t>(insts_.size())};
    Instruction& instruction = insts_.emplace_back();
    instruction.op = op;
    instruction.operands.assign(operands.begin(), operands.end());
    for (Type type : result_types) {
        AddResult(id, type);
    }
    return id;
}

ValueId Kernel::AddResult(InstId inst_id, Type type) {
    ValueId id{static_cast<uint32_t>(values_.size())};
    auto& results = inst(inst_id).results;
    values_.push_back({type, inst_id, {}, static_cast<uint32_t>(results.size())});
    results.push_back(id);
    return id;
}

void Kernel::ReplaceUses(std::span<const ValueId> map) {
    for (Instruction& instruction : insts_) {
        for (ValueId& operand : instruction.operands) {
            while (operand.index < map.size() && map[operand.index].valid()) {
                operand = map[operand.index];
            }
        }
    }
}

InstId Builder::Append(Op op,
                       std::span<const ValueId> operands,
                       std::span<const Type> result_types,
                       uint64_t imm,
                       uint8_t flags) {
    assert(!Terminated());
    InstId id = kernel_->NewInst(op, operands, result_types);
    Instruction& instruction = kernel_->inst(id);
    instruction.imm = imm;
    instruction.flags = flags;
    instruction.origin = origin_;
    kernel_->block(block_).insts.push_back(id);
    return id;
}

ValueId Builder::Emit(Op op,
                      Type type,
                      std::initializer_list<ValueId> operands,
                      uint64_t imm,
                      uint8_t flags) {
    InstId id = Append(op, {operands.begin(), operands.size()}, {&type, 1}, imm, flags);
    return kernel_->inst(id).results[0];
}

ValueId Builder::Const(Type type, uint64_t bits) {
    uint32_t width = BitWidth(type);
    if (width < 64) {
        bits &= (uint64_t{1} << width) - 1;
    }
    return Emit(Op::kConst, type, {}, bits);
}

ValueId Builder::ConstF32(float value) {
    return Const(Type::kF32, std::bit_cast<uint32_t>(value));
}

bool Builder::Terminated() const {
    const auto& insts = kernel_->block(block_).insts;
    return !insts.empty() && (InfoOf(kernel_->inst(insts.back()).op).properties & kTerminator);
}

}  // namespace fornax::kernel::ir
