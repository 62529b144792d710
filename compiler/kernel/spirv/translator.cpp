// The entry point, the table of opcodes, and values with their scopes.
#include "compiler/kernel/spirv/translator.h"

#include <algorithm>
#include <bit>

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// Scalars that all instructions together define and use, with inlined calls: instructions that only
// rearrange large composites make no IR, whose size would bound them.
constexpr uint64_t kMaxScalars = uint64_t{32} << 20;

}  // namespace

// The one place that says which function translates an opcode.
Translator::Handler Translator::FindHandler(Op op) {
    switch (op) {
        case Op::OpNop:
        case Op::OpLine:
        case Op::OpNoLine:
        case Op::OpName:
        case Op::OpAssumeTrueKHR:
            return &Translator::Ignore;
        case Op::OpReadClockKHR:
            return &Translator::ReadClock;
        case Op::OpExpectKHR:
            return &Translator::Expect;
        case Op::OpFmaKHR:
            return &Translator::Fma;
        case Op::OpCompositeConstructReplicateEXT:
            return &Translator::CompositeReplicate;
        case Op::OpKill:
        case Op::OpTerminateInvocation:
        case Op::OpDemoteToHelperInvocation:
        case Op::OpIsHelperInvocationEXT:
            return &Translator::FragmentOnly;
        case Op::OpUndef:
            return &Translator::Undefined;
        case Op::OpVariable:
            return &Translator::FunctionVariable;
        case Op::OpAccessChain:
        case Op::OpInBoundsAccessChain:
        case Op::OpUntypedAccessChainKHR:
        case Op::OpUntypedInBoundsAccessChainKHR:
            return &Translator::AccessChain;
        case Op::OpPtrAccessChain:
        case Op::OpInBoundsPtrAccessChain:
        case Op::OpUntypedPtrAccessChainKHR:
        case Op::OpUntypedInBoundsPtrAccessChainKHR:
            return &Translator::PtrAccessChain;
        case Op::OpPtrEqual:
        case Op::OpPtrNotEqual:
        case Op::OpPtrDiff:
            return &Translator::ComparePointers;
        case Op::OpConvertPtrToU:
            return &Translator::PointerToInteger;
        case Op::OpConvertUToPtr:
            return &Translator::IntegerToPointer;
        case Op::OpBufferPointerEXT:
            return &Translator::BufferPointer;
        case Op::OpUntypedArrayLengthKHR:
        case Op::OpArrayLength:
            return &Translator::ArrayLength;
        case Op::OpCopyObject:
        case Op::OpCopyLogical:
            return &Translator::CopyObject;
        case Op::OpLoad:
            return &Translator::Load;
        case Op::OpStore:
            return &Translator::Store;
        case Op::OpCopyMemory:
            return &Translator::CopyMemory;
        case Op::OpCopyMemorySized:
            return &Translator::CopyMemorySized;
        case Op::OpAtomicLoad:
        case Op::OpAtomicStore:
        case Op::OpAtomicExchange:
        case Op::OpAtomicCompareExchange:
        case Op::OpAtomicIIncrement:
        case Op::OpAtomicIDecrement:
        case Op::OpAtomicIAdd:
        case Op::OpAtomicISub:
        case Op::OpAtomicSMin:
        case Op::OpAtomicUMin:
        case Op::OpAtomicSMax:
        case Op::OpAtomicUMax:
        case Op::OpAtomicAnd:
        case Op::OpAtomicOr:
        case Op::OpAtomicXor:
        case Op::OpAtomicFAddEXT:
        case Op::OpAtomicFMinEXT:
        case Op::OpAtomicFMaxEXT:
            return &Translator::Atomic;
        case Op::OpFunctionCall:
            return &Translator::Call;
        case Op::OpControlBarrier:
            return &Translator::ControlBarrier;
        case Op::OpMemoryBarrier:
            return &Translator::MemoryBarrier;
        case Op::OpCompositeConstruct:
            return &Translator::CompositeConstruct;
        case Op::OpCompositeExtract:
            return &Translator::CompositeExtract;
        case Op::OpCompositeInsert:
            return &Translator::CompositeInsert;
        case Op::OpVectorShuffle:
            return &Translator::VectorShuffle;
        case Op::OpVectorExtractDynamic:
            return &Translator::VectorExtractDynamic;
        case Op::OpVectorInsertDynamic:
            return &Translator::VectorInsertDynamic;
        case Op::OpCooperativeMatrixLoadKHR:
            return &Translator::MatrixLoad;
        case Op::OpCooperativeMatrixStoreKHR:
            return &Translator::MatrixStore;
        case Op::OpCooperativeMatrixMulAddKHR:
            return &Translator::MatrixMulAdd;
        case Op::OpCooperativeMatrixLengthKHR:
            return &Translator::MatrixLength;
        case Op::OpTranspose:
            return &Translator::Transpose;
        case Op::OpMatrixTimesScalar:
        case Op::OpVectorTimesScalar:
            return &Translator::VectorTimesScalar;
        case Op::OpVectorTimesMatrix:
        case Op::OpMatrixTimesVector:
        case Op::OpMatrixTimesMatrix:
            return &Translator::MatrixTimes;
        case Op::OpOuterProduct:
            return &Translator::OuterProduct;
        case Op::OpDot:
            return &Translator::Dot;
        case Op::OpSDot:
        case Op::OpUDot:
        case Op::OpSUDot:
        case Op::OpSDotAccSat:
        case Op::OpUDotAccSat:
        case Op::OpSUDotAccSat:
            return &Translator::IntegerDot;
        case Op::OpFDot2MixAcc32VALVE:
        case Op::OpFDot2MixAcc16VALVE:
            return &Translator::MixedFloatDot;
        case Op::OpConvertFToU:
        case Op::OpConvertFToS:
        case Op::OpConvertSToF:
        case Op::OpConvertUToF:
        case Op::OpUConvert:
        case Op::OpSConvert:
        case Op::OpFConvert:
            return &Translator::Convert;
        case Op::OpBitcast:
            return &Translator::Bitcast;
        case Op::OpSelect:
            return &Translator::Select;
        case Op::OpAny:
        case Op::OpAll:
            return &Translator::AnyAll;
        case Op::OpIAddCarry:
        case Op::OpISubBorrow:
        case Op::OpUMulExtended:
        case Op::OpSMulExtended:
            return &Translator::TwoResults;
        case Op::OpShiftRightLogical:
        case Op::OpShiftRightArithmetic:
        case Op::OpShiftLeftLogical:
            return &Translator::Shift;
        case Op::OpDPdx:
        case Op::OpDPdy:
        case Op::OpFwidth:
        case Op::OpDPdxFine:
        case Op::OpDPdyFine:
        case Op::OpFwidthFine:
        case Op::OpDPdxCoarse:
        case Op::OpDPdyCoarse:
        case Op::OpFwidthCoarse:
            return &Translator::Derivative;
        case Op::OpBitFieldInsert:
        case Op::OpBitFieldSExtract:
        case Op::OpBitFieldUExtract:
            return &Translator::BitField;
        case Op::OpExtInst:
        case Op::OpExtInstWithForwardRefsKHR:
            return &Translator::ExtInst;
        case Op::OpSNegate:
        case Op::OpFNegate:
        case Op::OpIAdd:
        case Op::OpFAdd:
        case Op::OpISub:
        case Op::OpFSub:
        case Op::OpIMul:
        case Op::OpFMul:
        case Op::OpUDiv:
        case Op::OpSDiv:
        case Op::OpFDiv:
        case Op::OpUMod:
        case Op::OpSRem:
        case Op::OpSMod:
        case Op::OpFRem:
        case Op::OpFMod:
        case Op::OpBitwiseOr:
        case Op::OpBitwiseXor:
        case Op::OpBitwiseAnd:
        case Op::OpNot:
        case Op::OpBitReverse:
        case Op::OpBitCount:
        case Op::OpLogicalEqual:
        case Op::OpLogicalNotEqual:
        case Op::OpLogicalOr:
        case Op::OpLogicalAnd:
        case Op::OpLogicalNot:
        case Op::OpIEqual:
        case Op::OpINotEqual:
        case Op::OpUGreaterThan:
        case Op::OpSGreaterThan:
        case Op::OpUGreaterThanEqual:
        case Op::OpSGreaterThanEqual:
        case Op::OpULessThan:
        case Op::OpSLessThan:
        case Op::OpULessThanEqual:
        case Op::OpSLessThanEqual:
        case Op::OpFOrdEqual:
        case Op::OpFUnordEqual:
        case Op::OpFOrdNotEqual:
        case Op::OpFUnordNotEqual:
        case Op::OpFOrdLessThan:
        case Op::OpFUnordLessThan:
        case Op::OpFOrdGreaterThan:
        case Op::OpFUnordGreaterThan:
        case Op::OpFOrdLessThanEqual:
        case Op::OpFUnordLessThanEqual:
        case Op::OpFOrdGreaterThanEqual:
        case Op::OpFUnordGreaterThanEqual:
        case Op::OpIsNan:
        case Op::OpIsInf:
        case Op::OpQuantizeToF16:
            return &Translator::Componentwise;
        default:
            return IsSubgroupOp(op) ? &Translator::Subgroup : FindImageHandler(op);
    }
}

Status Translator::Instruction(const Inst& inst) {
    Handler handler = FindHandler(inst.op);
    if (!handler) {
        return Unsupported(inst, "is not supported");
    }
    if (kernel_.num_insts() > kReaderLimits.instructions) {
        return Unsupported(inst, "takes the kernel beyond the limit of " +
                                     std::to_string(kReaderLimits.instructions) + " instructions");
    }
    builder_.SetOrigin(inst.offset);
    if (handler == &Translator::Atomic) {
        return GuardedAtomic(inst, handler);
    }
    in_modes_ = modes_.Any() && HasFloatModes(inst.op);
    Status status = (this->*handler)(inst);
    in_modes_ = false;
    return status;
}

ir::ValueId Translator::EmitSpan(ir::Op op,
                                 ir::Type type,
                                 std::span<const ir::ValueId> operands,
                                 uint8_t flags,
                                 uint64_t imm) {
    if (in_modes_ && modes_.RoundsTowardsZero(type)) {
        const ir::ValueId rounded = modes_.Rounded(op, type, operands);
        if (rounded.valid()) {
            return rounded;
        }
    }
    const ir::InstId inst = builder_.Append(op, operands, {&type, 1}, imm, flags);
    return kernel_.inst(inst).results[0];
}

Result<ir::Kernel> Translator::TranslateEntryPoint(const Inst& entry_point) {
    FORNAX_RETURN_IF_ERROR(CheckCapabilities());
    kernel_.name = request_.entry_point;
    kernel_.subgroup_size = request_.options.subgroup_size;
    kernel_.robust_buffer_access = request_.options.robust_buffer_access;
    kernel_.push_constant_bytes = request_.layout.push_constant_bytes;
    kernel_.known_words = request_.known_words;
    FORNAX_RETURN_IF_ERROR(ReadExecutionModes(entry_point));
    const Function* function = module_.FindFunction(entry_point[1]);
    if (!function || function->entry_label == 0 || !function->params.empty()) {
        return Invalid(entry_point, "names no function with a body and without parameters");
    }
    kernel_.body = kernel_.NewBlock({});
    outer_.push_back({});
    builder_.SetBlock(kernel_.body);
    FORNAX_RETURN_IF_ERROR(GlobalVariables());
    Frame frame;
    frame.function = function;
    frame_ = &frame;
    call_stack_.push_back(function->id);
    FORNAX_RETURN_IF_ERROR(From(0, function->entry_label));
    frame_ = nullptr;
    InsertHomeStores();
    // Nobody can tell how many quads run together, so they may be as many as registers like.
    constexpr uint32_t kLanesOfQuads = 16;
    if (sees_quads_ && !sees_subgroups_) {
        kernel_.subgroup_size = std::min(kernel_.subgroup_size, kLanesOfQuads);
    }
    // How far heaps reach is only known when a kernel runs.
    if (request_.layout.heaps || kernel_.deciding_words.size() > kMaxDecidingWords) {
        kernel_.deciding_words.clear();
    }
    std::ranges::sort(kernel_.deciding_words);
    return std::move(kernel_);
}

Result<Tuple> Translator::TranslateAlone(const Inst& inst) {
    kernel_.body = kernel_.NewBlock({});
    outer_.push_back({});
    builder_.SetBlock(kernel_.body);
    const Result<const Inst*> entry_point = module_.FindEntryPoint(request_.entry_point);
    if (entry_point.ok()) {
        FORNAX_RETURN_IF_ERROR(ReadFloatModes(**entry_point));
    }
    Frame frame;
    frame_ = &frame;
    Status status = Instruction(inst);
    frame_ = nullptr;
    FORNAX_RETURN_IF_ERROR(std::move(status));
    auto it = frame.values.find(inst.result);
    if (it == frame.values.end()) {
        return Unsupported(inst, "is not an operation on constants");
    }
    return it->second.scalars;
}

Result<std::pair<ir::Kernel, Tuple>> TranslateConstantOp(const Module& module,
                                                         const TypeTable& types,
                                                         const ConstantTable& constants,
                                                         const CompileRequest& request,
                                                         const Inst& inst) {
    Translator translator(module, types, constants, request);
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, translator.TranslateAlone(inst));
    return std::make_pair(translator.TakeKernel(), std::move(tuple));
}

ir::BlockId Translator::NewChild(ir::InstId parent) {
    ir::BlockId block = kernel_.NewBlock(parent);
    outer_.resize(kernel_.num_blocks());
    outer_[block.index] = builder_.block();
    return block;
}

bool Translator::InScope(ir::BlockId block) const {
    for (ir::BlockId at = builder_.block(); at.valid(); at = outer_[at.index]) {
        if (at == block) {
            return true;
        }
    }
    return false;
}

uint32_t Translator::NewLocal(ir::Type type, uint32_t count) {
    kernel_.locals.push_back({type, count});
    return static_cast<uint32_t>(kernel_.locals.size() - 1);
}

void Translator::StoreLocal(uint32_t local, ir::ValueId value) {
    ir::ValueId operands[] = {Int(0), value};
    builder_.Append(ir::Op::kStoreLocal, operands, {}, local);
}

ir::ValueId Translator::LoadLocal(uint32_t local) {
    return Emit(ir::Op::kLoadLocal, kernel_.locals[local].type, {Int(0)}, 0, local);
}

Tuple Translator::Materialize(const Constant& constant) {
    std::vector<ir::Type> scalar_types;
    types_.Flatten(types_.Get(constant.type), scalar_types);
    Tuple tuple;
    tuple.reserve(constant.bits.size());
    for (size_t i = 0; i < constant.bits.size(); ++i) {
        tuple.push_back(builder_.Const(scalar_types[i], constant.bits[i]));
    }
    return tuple;
}

Status Translator::Spend(const Inst& inst, uint64_t scalars) {
    spent_scalars_ += scalars + 1;
    if (spent_scalars_ > kMaxScalars) {
        return Unsupported(inst, "takes the translation beyond the limit of " +
                                     std::to_string(kMaxScalars) + " scalars in all values");
    }
    return OkStatus();
}

Result<Value> Translator::Use(const Inst& user, uint32_t id) {
    if (frame_) {
        auto it = frame_->values.find(id);
        if (it != frame_->values.end()) {
            FORNAX_RETURN_IF_ERROR(Spend(user, it->second.scalars.size()));
            return InScope(it->second.block) ? it->second : Rescue(id, it->second);
        }
    }
    auto global = globals_.find(id);
    if (global == globals_.end()) {
        // A variable of module scope gets its place from its first use: others, of other entry
        // points perhaps, may be of kinds that are not covered.
        const Inst* declaration = module_.Find(id);
        if (declaration &&
            (declaration->op == Op::OpVariable || declaration->op == Op::OpUntypedVariableKHR) &&
            declaration < module_.globals().data() + module_.globals().size()) {
            FORNAX_RETURN_IF_ERROR(Variable(*declaration));
            global = globals_.find(id);
        }
    }
    if (global != globals_.end()) {
        return global->second;
    }
    if (const Constant* constant = constants_.Find(id)) {
        Value value;
        value.type = constant->type;
        value.scalars = Materialize(*constant);
        return value;
    }
    return Invalid(user, "uses id " + std::to_string(id) + ", which has no value there");
}

Result<Tuple> Translator::UseTuple(const Inst& user, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, UseParts(user, id));
    if (tuple.empty()) {  // instructions that compute look at the first scalar of what they read
        return Invalid(user, "uses id " + std::to_string(id) + ", which has no scalar");
    }
    return tuple;
}

Result<Tuple> Translator::UseParts(const Inst& user, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Value value, Use(user, id));
    if (value.is_large) {
        FORNAX_ASSIGN_OR_RETURN(value.scalars, LoadFrom(user, *value.pointer));
        FORNAX_RETURN_IF_ERROR(Spend(user, value.scalars.size()));
    } else if (value.pointer) {
        return PointerScalars(user, *value.pointer);
    }
    if (in_modes_) {
        for (ir::ValueId& scalar : value.scalars) {
            scalar = modes_.Flush(scalar);
        }
    }
    return std::move(value.scalars);
}

Result<ir::ValueId> Translator::UseScalar(const Inst& user, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, UseTuple(user, id));
    if (tuple.size() != 1) {
        return Invalid(user, "uses id " + std::to_string(id) + " as a scalar");
    }
    return tuple[0];
}

Result<const Type*> Translator::TypeOf(const Inst& user, uint32_t type_id) {
    const Type* type = types_.Find(type_id);
    if (!type) {
        return Invalid(user, "names id " + std::to_string(type_id) + " as a type");
    }
    return type;
}

Result<const Type*> Translator::ValueType(const Inst& user, uint32_t id) {
    if (frame_) {
        auto it = frame_->values.find(id);
        if (it != frame_->values.end()) {
            return TypeOf(user, it->second.type);
        }
    }
    if (const Constant* constant = constants_.Find(id)) {
        return TypeOf(user, constant->type);
    }
    auto global = globals_.find(id);
    if (global != globals_.end()) {
        return TypeOf(user, global->second.type);
    }
    return Invalid(user, "uses id " + std::to_string(id) + ", which has no value there");
}

Status Translator::Define(const Inst& inst, Tuple scalars) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    if (scalars.empty() && !type->empty) {
        return Unsupported(inst, "makes a value without any scalar");
    }
    if (type->scalars != scalars.size()) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    if (in_modes_) {
        for (ir::ValueId& scalar : scalars) {
            scalar = modes_.Flush(scalar);
        }
    }
    if (scalars.size() <= 16) {
        std::vector<ir::Type> wanted;
        types_.Flatten(*type, wanted);
        for (size_t i = 0; i < wanted.size(); ++i) {
            if (kernel_.type(scalars[i]) != wanted[i]) {
                return Invalid(inst, "has operands that do not fit its result type");
            }
        }
    }
    Value value;
    value.type = inst.type;
    value.scalars = std::move(scalars);
    return SetValue(inst, std::move(value));
}

Status Translator::SetValue(const Inst& inst, Value value) {
    FORNAX_RETURN_IF_ERROR(Spend(inst, value.scalars.size()));
    value.block = builder_.block();
    auto [it, inserted] = frame_->values.try_emplace(inst.result);
    if (!inserted) {
        // The block is translated again. If its value is used elsewhere, this one is, too.
        if (auto home = frame_->homes.find(inst.result); home != frame_->homes.end()) {
            StoreHome(value, home->second);
        } else {
            frame_->older[inst.result].push_back(it->second);
        }
    }
    it->second = std::move(value);
    return OkStatus();
}

Status Translator::Undefined(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    if (type->scalars == 0 && !type->empty) {
        return OkStatus();  // an image or runtime array: an error only where it is used
    }
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (frame_ && IsLarge(*type)) {
        FORNAX_ASSIGN_OR_RETURN(Pointer place, NewLargePlace(inst, *type));
        return DefineLarge(inst, std::move(place));
    }
    std::vector<ir::Type> scalar_types;
    types_.Flatten(*type, scalar_types);
    Tuple tuple;
    for (ir::Type scalar : scalar_types) {
        tuple.push_back(Emit(ir::Op::kUndef, scalar, {}));
    }
    return Define(inst, std::move(tuple));
}

}  // namespace fornax::kernel::spirv
