// Operand and result types of every operation that is not control flow.
#include "compiler/kernel/ir/signature.h"

#include <bit>

#include "compiler/kernel/ir/group.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel::ir {

namespace {

bool IsMemoryType(Type type) {
    return type == Type::kBool || IsInteger(type) || IsFloat(type);
}

class Checker {
  public:
    Checker(const Kernel& kernel, const Instruction& inst) : kernel_(kernel), inst_(inst) {}

    std::string Check();

  private:
    Type In(size_t i) const { return kernel_.type(inst_.operands[i]); }
    Type Out(size_t i = 0) const { return kernel_.type(inst_.results[i]); }

    std::string WrongOperand(size_t i, const char* wanted) const {
        return "operand " + std::to_string(i) + " must be " + wanted + ", not " + TypeName(In(i));
    }
    std::string WrongResult(size_t i, const char* wanted) const {
        return "result " + std::to_string(i) + " must be " + wanted + ", not " + TypeName(Out(i));
    }

    std::string NeedIn(size_t i, bool good, const char* wanted) const {
        return good ? "" : WrongOperand(i, wanted);
    }
    std::string NeedOut(size_t i, bool good, const char* wanted) const {
        return good ? "" : WrongResult(i, wanted);
    }

    // All operands from `first` on and all results have the type of the first result.
    std::string AllAlike(bool (*good)(Type), const char* wanted, size_t first = 0) const {
        if (!good(Out())) {
            return WrongResult(0, wanted);
        }
        for (size_t i = first; i < inst_.operands.size(); ++i) {
            if (In(i) != Out()) {
                return WrongOperand(i, TypeName(Out()));
            }
        }
        for (size_t i = 1; i < inst_.results.size(); ++i) {
            if (Out(i) != Out()) {
                return WrongResult(i, TypeName(Out()));
            }
        }
        return "";
    }
    std::string Comparison(bool (*good)(Type), const char* wanted) const {
        if (Out() != Type::kBool) {
            return WrongResult(0, "bool");
        }
        if (!good(In(0))) {
            return WrongOperand(0, wanted);
        }
        return NeedIn(inst_.operands.size() - 1, In(inst_.operands.size() - 1) == In(0),
                      TypeName(In(0)));
    }
    std::string Conversion(bool (*from)(Type), bool (*to)(Type)) const {
        if (!from(In(0))) {
            return WrongOperand(0, from == IsFloat ? "a float" : "an integer");
        }
        return NeedOut(0, to(Out()), to == IsFloat ? "a float" : "an integer");
    }
    std::string NeedI32(std::initializer_list<size_t> operands) const {
        for (size_t i : operands) {
            if (In(i) != Type::kI32) {
                return WrongOperand(i, "i32");
            }
        }
        return "";
    }
    std::string NeedOffset(size_t i) const {
        return NeedIn(i, In(i) == Type::kI32 || In(i) == Type::kI64, "i32 or i64");
    }
    std::string NeedAlignment() const {
        return std::has_single_bit(inst_.imm) && inst_.imm <= 4096
                   ? ""
                   : "the alignment " + std::to_string(inst_.imm) +
                         " must be a power of two up to 4096";
    }

    std::string Load() const {
        if (inst_.results.empty()) {
            return "a load must give at least one element";
        }
        if (auto fault = AllAlike(IsMemoryType, "a type of memory", inst_.operands.size());
            !fault.empty()) {
            return fault;
        }
        return NeedAlignment();
    }
    // Operands from `first` on are the elements.
    std::string Store(size_t first) const {
        if (inst_.operands.size() <= first) {
            return "a store must have at least one element";
        }
        for (size_t i = first; i < inst_.operands.size(); ++i) {
            if (!IsMemoryType(In(i)) || In(i) != In(first)) {
                return WrongOperand(i, i == first ? "of a type of memory" : TypeName(In(first)));
            }
        }
        return NeedAlignment();
    }
    std::string NeedBuffer(bool writes) const {
        if (inst_.operands.empty() || In(0) != Type::kBuffer) {
            return "operand 0 must be a buffer";
        }
        const Instruction* buffer = kernel_.Definition(inst_.operands[0]);
        if (writes && buffer && buffer->op == Op::kBuffer &&
            buffer->imm < kernel_.bindings.size() && !kernel_.bindings[buffer->imm].writable) {
            return "binding " + std::to_string(buffer->imm) + " is not writable";
        }
        return "";
    }
    std::string Local(Type element) const {
        if (inst_.imm >= kernel_.locals.size()) {
            return "local " + std::to_string(inst_.imm) + " does not exist";
        }
        Type wanted = kernel_.locals[inst_.imm].type;
        if (element != wanted) {
            return std::string("the element must be ") + TypeName(wanted) + ", not " +
                   TypeName(element);
        }
        return NeedI32({0});
    }
    std::string Group() const {
        if ((inst_.imm & 0xff) >= kNumGroupOps) {
            return "its operation is not a GroupOp";
        }
        const GroupOp op = GroupOpOf(inst_);
        const uint32_t cluster = ClusterSizeOf(inst_);
        if (cluster != 0 && (inst_.op != Op::kSubgroupReduce || !std::has_single_bit(cluster) ||
                             cluster > kernel_.subgroup_size)) {
            return "the cluster size " + std::to_string(cluster) +
                   " must be a power of two up to the subgroup's size, of a reduction";
        }
        if (op >= GroupOp::kFAdd ? !IsFloat(Out()) : !IsInteger(Out())) {
            return WrongResult(0, op >= GroupOp::kFAdd ? "a float" : "an integer");
        }
        return NeedIn(0, In(0) == Out(), TypeName(Out()));
    }
    // A lane's share of `matrices` matrices.
    std::string NeedElements(size_t matrices) const {
        if (kernel_.subgroup_size < kMatrixSize / 2) {
            return "needs a subgroup of 8 at least";
        }
        const uint32_t elements = MatrixLaneElements(kernel_);
        if (inst_.operands.size() == matrices * elements && inst_.results.size() == elements) {
            return "";
        }
        return "must have " + std::to_string(matrices * elements) + " operands and " +
               std::to_string(elements) + " results in a subgroup of " +
               std::to_string(kernel_.subgroup_size);
    }
    std::string MatrixMulAdd() const {
        std::string fault = NeedElements(3);
        if (!fault.empty()) {
            return fault;
        }
        if (inst_.imm > kAllMatrixFlags) {
            return "has unknown flags";
        }
        const size_t elements = inst_.results.size();
        const bool bfloat = (inst_.imm & kMatrixBFloat16) != 0;
        const bool floats = (In(0) == Type::kF16 || In(0) == Type::kF32) && !bfloat;
        if (!floats && In(0) != (bfloat ? Type::kI16 : Type::kI8)) {
            return WrongOperand(0, bfloat ? "i16" : "f32, f16 or i8");
        }
        const Type sum = In(0) == Type::kI8 ? Type::kI32 : Type::kF32;
        if (Out() != sum) {
            return WrongResult(0, TypeName(sum));
        }
        for (size_t i = 0; i < 2 * elements; ++i) {
            if (In(i) != In(0)) {
                return WrongOperand(i, TypeName(In(0)));
            }
        }
        return AllAlike(IsMemoryType, "a float or an integer", 2 * elements);
    }
    std::string MatrixTranspose() const {
        const std::string fault = NeedElements(1);
        return fault.empty() ? AllAlike(IsMemoryType, "a bool, an integer or a float") : fault;
    }
    std::string MatrixLoad() const {
        std::string fault = NeedBuffer(false);
        if (fault.empty()) {
            fault = NeedOffset(1);
        }
        if (fault.empty()) {
            fault = NeedIn(2, In(2) == In(1), "of the offset's type");
        }
        if (fault.empty()) {
            fault = Load();
        }
        if (!fault.empty()) {
            return fault;
        }
        if (kernel_.subgroup_size < kMatrixSize / 2) {
            return "needs a subgroup of 8 at least";
        }
        const uint32_t elements = MatrixLaneElements(kernel_);
        if (inst_.results.size() != elements) {
            return "must have " + std::to_string(elements) + " results in a subgroup of " +
                   std::to_string(kernel_.subgroup_size);
        }
        return NeedOut(0, Out() == Type::kF32, "f32");
    }
    // `first` is the operand that holds the value.
    std::string Atomic(size_t first) const {
        if (inst_.imm >= kNumAtomicOps) {
            return "its operation is not an AtomicOp";
        }
        auto op = static_cast<AtomicOp>(inst_.imm);
        size_t wanted = first + (op == AtomicOp::kCompareExchange ? 2 : 1);
        if (inst_.operands.size() != wanted) {
            return "it must have " + std::to_string(wanted) + " operands, not " +
                   std::to_string(inst_.operands.size());
        }
        bool moves = op == AtomicOp::kLoad || op == AtomicOp::kStore || op == AtomicOp::kExchange;
        const bool on_floats = op >= AtomicOp::kFAdd && op <= AtomicOp::kFMax;
        const uint32_t bits = BitWidth(Out());
        const bool integer = IsInteger(Out()) && (bits == 32 || bits == 64);
        if (!(integer && !on_floats) && !(IsFloat(Out()) && (on_floats || moves))) {
            return WrongResult(0, on_floats ? "a float" : "i32 or i64");
        }
        for (size_t i = first; i < wanted; ++i) {
            if (In(i) != Out()) {
                return WrongOperand(i, TypeName(Out()));
            }
        }
        return NeedOffset(first - 1);
    }

    const Kernel& kernel_;
    const Instruction& inst_;
};

std::string Checker::Check() {
    auto integer_or_bool = [](Type type) { return IsInteger(type) || type == Type::kBool; };
    std::string fault;
    switch (inst_.op) {
        case Op::kConst: {
            uint32_t bits = BitWidth(Out());
            if (bits == 0) {
                return WrongResult(0, "a bool, an integer or a float");
            }
            return bits == 64 || inst_.imm >> bits == 0 ? "" : "its bits exceed its type's width";
        }
        case Op::kUndef:
            return NeedOut(0, IsMemoryType(Out()), "a bool, an integer or a float");
        case Op::kBuiltin:
            return inst_.imm >= kNumBuiltins ? "it does not name a builtin"
                                             : NeedOut(0, Out() == Type::kI32, "i32");
        case Op::kShl:
        case Op::kLShr:
        case Op::kAShr:
            if (!IsInteger(Out()) || In(0) != Out()) {
                return WrongOperand(0, "an integer of the result's type");
            }
            return NeedIn(1, IsInteger(In(1)), "an integer");
        case Op::kAnd:
        case Op::kOr:
        case Op::kXor:
        case Op::kNot:
            return AllAlike(integer_or_bool, "an integer or bool");
        case Op::kBitFieldInsert:
            if (!IsInteger(Out()) || In(0) != Out() || In(1) != Out()) {
                return WrongResult(0, "an integer like operands 0 and 1");
            }
            return NeedI32({2, 3});
        case Op::kBitFieldSExtract:
        case Op::kBitFieldUExtract:
            if (!IsInteger(Out()) || In(0) != Out()) {
                return WrongResult(0, "an integer like operand 0");
            }
            return NeedI32({1, 2});
        case Op::kSDot4:
        case Op::kUDot4:
        case Op::kSUDot4:
            return AllAlike([](Type type) { return type == Type::kI32; }, "i32");
        case Op::kBFloatDot2:
            if (Out() != Type::kF32 || In(2) != Out()) {
                return WrongResult(0, "f32 like operand 2");
            }
            return NeedI32({0, 1});
        case Op::kIEq:
        case Op::kINe:
            return Comparison(integer_or_bool, "an integer or bool");
        case Op::kULt:
        case Op::kULe:
        case Op::kSLt:
        case Op::kSLe:
            return Comparison(IsInteger, "an integer");
        case Op::kFOEq:
        case Op::kFONe:
        case Op::kFOLt:
        case Op::kFOLe:
        case Op::kFUEq:
        case Op::kFUNe:
        case Op::kFULt:
        case Op::kFULe:
        case Op::kIsNan:
        case Op::kIsInf:
            return Comparison(IsFloat, "a float");
        case Op::kSelect:
            if (In(0) != Type::kBool) {
                return WrongOperand(0, "bool");
            }
            return AllAlike(IsMemoryType, "a bool, an integer or a float", 1);
        case Op::kTrunc:
        case Op::kZExt:
        case Op::kSExt:
            fault = Conversion(IsInteger, IsInteger);
            if (fault.empty() && (inst_.op == Op::kTrunc ? BitWidth(Out()) >= BitWidth(In(0))
                                                         : BitWidth(Out()) <= BitWidth(In(0)))) {
                fault = WrongResult(0, inst_.op == Op::kTrunc ? "narrower" : "wider");
            }
            return fault;
        case Op::kFConvert:
            return Conversion(IsFloat, IsFloat);
        case Op::kFToS:
        case Op::kFToU:
            return Conversion(IsFloat, IsInteger);
        case Op::kSToF:
        case Op::kUToF:
            return Conversion(IsInteger, IsFloat);
        case Op::kBitcast:
            if (!IsInteger(In(0)) && !IsFloat(In(0))) {
                return WrongOperand(0, "an integer or a float");
            }
            return NeedOut(0, Out() != Type::kBool && BitWidth(In(0)) == BitWidth(Out()),
                           "as wide as the operand");
        case Op::kQuantizeF16:
            return NeedIn(0, In(0) == Type::kF32 && Out() == Type::kF32, "f32, as the result");
        case Op::kLdexp:
            if (!IsFloat(Out()) || In(0) != Out()) {
                return WrongOperand(0, "a float of the result's type");
            }
            return NeedI32({1});
        case Op::kFrexp:
            if (!IsFloat(Out()) || In(0) != Out()) {
                return WrongOperand(0, "a float of the result's type");
            }
            return NeedOut(1, Out(1) == Type::kI32, "i32");
        case Op::kBuffer:
            if (inst_.imm >= kernel_.bindings.size()) {
                return "binding " + std::to_string(inst_.imm) + " does not exist";
            }
            if (Out() != Type::kBuffer) {
                return WrongResult(0, "buffer");
            }
            return NeedI32({0});
        case Op::kLoadDescriptor:
            if (inst_.imm >= kernel_.bindings.size()) {
                return "binding " + std::to_string(inst_.imm) + " does not exist";
            }
            if (inst_.results.empty()) {
                return "a load must give at least one element";
            }
            for (size_t i = 0; i < inst_.results.size(); ++i) {
                if (Out(i) != Type::kI32) {
                    return WrongResult(i, "i32");
                }
            }
            return NeedI32({0});
        case Op::kBufferSize:
            fault = NeedBuffer(false);
            return fault.empty()
                       ? NeedOut(0, Out() == Type::kI32 || Out() == Type::kI64, "i32 or i64")
                       : fault;
        case Op::kBufferAddress:
            fault = NeedBuffer(false);
            return fault.empty() ? NeedOut(0, Out() == Type::kI64, "i64") : fault;
        case Op::kBufferFrom:
            if (In(0) != Type::kI64 || In(1) != Type::kI64) {
                return WrongOperand(In(0) != Type::kI64 ? 0 : 1, "i64");
            }
            return NeedOut(0, Out() == Type::kBuffer, "buffer");
        case Op::kLoadGlobal:
            fault = NeedIn(0, In(0) == Type::kI64, "i64");
            return fault.empty() ? Load() : fault;
        case Op::kStoreGlobal:
            fault = Store(1);
            return fault.empty() ? NeedIn(0, In(0) == Type::kI64, "i64") : fault;
        case Op::kAtomicGlobal:
            fault = Atomic(1);
            return fault.empty() ? NeedIn(0, In(0) == Type::kI64, "i64") : fault;
        case Op::kLoadBuffer:
            fault = NeedBuffer(false);
            if (fault.empty()) {
                fault = NeedOffset(1);
            }
            return fault.empty() ? Load() : fault;
        case Op::kStoreBuffer:
            fault = NeedBuffer(true);
            if (fault.empty()) {
                fault = Store(2);
            }
            return fault.empty() ? NeedOffset(1) : fault;
        case Op::kLoadShared:
        case Op::kLoadPush:
        case Op::kLoadConstant:
            fault = NeedOffset(0);
            return fault.empty() ? Load() : fault;
        case Op::kStoreShared:
            fault = Store(1);
            return fault.empty() ? NeedOffset(0) : fault;
        case Op::kLoadLocal:
            return Local(Out());
        case Op::kStoreLocal:
            return Local(In(1));
        case Op::kAtomicBuffer:
            fault = NeedBuffer(inst_.imm != static_cast<uint64_t>(AtomicOp::kLoad));
            return fault.empty() ? Atomic(2) : fault;
        case Op::kAtomicShared:
            return Atomic(1);
        case Op::kReadClock:
            return NeedOut(0, Out() == Type::kI64, "i64");
        case Op::kCount:
            return inst_.imm < kMaxCounters ? "" : "the counter is beyond the last one";
        case Op::kMemoryBarrier:
        case Op::kBarrier:
        case Op::kSubgroupBarrier:
            return "";
        case Op::kSubgroupElect:
            return NeedOut(0, Out() == Type::kBool, "bool");
        case Op::kSubgroupBallot:
            fault = NeedIn(0, In(0) == Type::kBool, "bool");
            return fault.empty() ? NeedOut(0, Out() == Type::kI64, "i64") : fault;
        case Op::kSubgroupBroadcastFirst:
            return AllAlike(IsMemoryType, "a bool, an integer or a float");
        case Op::kSubgroupShuffle:
            if (!IsMemoryType(Out()) || In(0) != Out()) {
                return WrongOperand(0, "of the result's type");
            }
            return NeedI32({1});
        case Op::kSubgroupPartition:
            fault = NeedIn(0, IsMemoryType(In(0)), "a bool, an integer or a float");
            return fault.empty() ? NeedOut(0, Out() == Type::kI64, "i64") : fault;
        case Op::kMatrixMulAdd:
            return MatrixMulAdd();
        case Op::kMatrixTranspose:
            return MatrixTranspose();
        case Op::kMatrixLoad:
            return MatrixLoad();
        case Op::kSubgroupReduce:
        case Op::kSubgroupInclusiveScan:
        case Op::kSubgroupExclusiveScan:
            return Group();
        case Op::kPartitionedReduce:
        case Op::kPartitionedInclusiveScan:
        case Op::kPartitionedExclusiveScan:
            fault = Group();
            return fault.empty() ? NeedIn(1, In(1) == Type::kI64, "i64") : fault;
        default:
            break;
    }
    if (inst_.op >= Op::kFAdd && inst_.op <= Op::kModf) {
        return AllAlike(IsFloat, "a float");
    }
    return AllAlike(IsInteger, "an integer");
}

}  // namespace

std::string SignatureFault(const Kernel& kernel, const Instruction& inst) {
    return Checker(kernel, inst).Check();
}

}  // namespace fornax::kernel::ir
