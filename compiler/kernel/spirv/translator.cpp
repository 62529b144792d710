// The entry point, and the table of opcodes.
#include "compiler/kernel/spirv/translator.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using spv::Op;

// The one place that says which function translates an opcode.
Translator::Handler Translator::FindHandler(Op op) {
    switch (op) {
        case Op::OpNop:
        case Op::OpLine:
        case Op::OpNoLine:
        case Op::OpName:
        case Op::OpAssumeTrueKHR:
            return Handle<&Translator::extensions_, &Extensions::Ignore>;
        case Op::OpReadClockKHR:
            return Handle<&Translator::extensions_, &Extensions::ReadClock>;
        case Op::OpExpectKHR:
            return Handle<&Translator::extensions_, &Extensions::Expect>;
        case Op::OpFmaKHR:
            return Handle<&Translator::extensions_, &Extensions::Fma>;
        case Op::OpCompositeConstructReplicateEXT:
            return Handle<&Translator::extensions_, &Extensions::CompositeReplicate>;
        case Op::OpKill:
        case Op::OpTerminateInvocation:
        case Op::OpDemoteToHelperInvocation:
        case Op::OpIsHelperInvocationEXT:
            return Handle<&Translator::extensions_, &Extensions::FragmentOnly>;
        case Op::OpUndef:
            return Handle<&Translator::extensions_, &Extensions::Undefined>;
        case Op::OpVariable:
            return Handle<&Translator::variables_, &Variables::FunctionVariable>;
        case Op::OpAccessChain:
        case Op::OpInBoundsAccessChain:
        case Op::OpUntypedAccessChainKHR:
        case Op::OpUntypedInBoundsAccessChainKHR:
            return Handle<&Translator::pointers_, &Pointers::AccessChain>;
        case Op::OpPtrAccessChain:
        case Op::OpInBoundsPtrAccessChain:
        case Op::OpUntypedPtrAccessChainKHR:
        case Op::OpUntypedInBoundsPtrAccessChainKHR:
            return Handle<&Translator::pointers_, &Pointers::PtrAccessChain>;
        case Op::OpPtrEqual:
        case Op::OpPtrNotEqual:
        case Op::OpPtrDiff:
            return Handle<&Translator::pointers_, &Pointers::ComparePointers>;
        case Op::OpConvertPtrToU:
            return Handle<&Translator::pointers_, &Pointers::PointerToInteger>;
        case Op::OpConvertUToPtr:
            return Handle<&Translator::pointers_, &Pointers::IntegerToPointer>;
        case Op::OpBufferPointerEXT:
            return Handle<&Translator::pointers_, &Pointers::BufferPointer>;
        case Op::OpUntypedArrayLengthKHR:
        case Op::OpArrayLength:
            return Handle<&Translator::pointers_, &Pointers::ArrayLength>;
        case Op::OpCopyObject:
        case Op::OpCopyLogical:
            return Handle<&Translator::pointers_, &Pointers::CopyObject>;
        case Op::OpLoad:
            return Handle<&Translator::memory_, &MemoryInstructions::Load>;
        case Op::OpStore:
            return Handle<&Translator::memory_, &MemoryInstructions::Store>;
        case Op::OpCopyMemory:
            return Handle<&Translator::memory_, &MemoryInstructions::CopyMemory>;
        case Op::OpCopyMemorySized:
            return Handle<&Translator::memory_, &MemoryInstructions::CopyMemorySized>;
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
            return Handle<&Translator::atomics_, &Atomics::GuardedAtomic>;
        case Op::OpFunctionCall:
            return Handle<&Translator::control_, &ControlFlow::Call>;
        case Op::OpControlBarrier:
            return Handle<&Translator::control_, &ControlFlow::ControlBarrier>;
        case Op::OpMemoryBarrier:
            return Handle<&Translator::control_, &ControlFlow::MemoryBarrier>;
        case Op::OpCompositeConstruct:
            return Handle<&Translator::composites_, &Composites::CompositeConstruct>;
        case Op::OpCompositeExtract:
            return Handle<&Translator::composites_, &Composites::CompositeExtract>;
        case Op::OpCompositeInsert:
            return Handle<&Translator::composites_, &Composites::CompositeInsert>;
        case Op::OpVectorShuffle:
            return Handle<&Translator::composites_, &Composites::VectorShuffle>;
        case Op::OpVectorExtractDynamic:
            return Handle<&Translator::composites_, &Composites::VectorExtractDynamic>;
        case Op::OpVectorInsertDynamic:
            return Handle<&Translator::composites_, &Composites::VectorInsertDynamic>;
        case Op::OpCooperativeMatrixLoadKHR:
            return Handle<&Translator::matrices_, &CooperativeMatrices::MatrixLoad>;
        case Op::OpCooperativeMatrixStoreKHR:
            return Handle<&Translator::matrices_, &CooperativeMatrices::MatrixStore>;
        case Op::OpCooperativeMatrixMulAddKHR:
            return Handle<&Translator::matrices_, &CooperativeMatrices::MatrixMulAdd>;
        case Op::OpCooperativeMatrixLengthKHR:
            return Handle<&Translator::matrices_, &CooperativeMatrices::MatrixLength>;
        case Op::OpTranspose:
            return Handle<&Translator::composites_, &Composites::Transpose>;
        case Op::OpMatrixTimesScalar:
        case Op::OpVectorTimesScalar:
            return Handle<&Translator::arithmetic_, &Arithmetic::VectorTimesScalar>;
        case Op::OpVectorTimesMatrix:
        case Op::OpMatrixTimesVector:
        case Op::OpMatrixTimesMatrix:
            return Handle<&Translator::composites_, &Composites::MatrixTimes>;
        case Op::OpOuterProduct:
            return Handle<&Translator::composites_, &Composites::OuterProduct>;
        case Op::OpDot:
            return Handle<&Translator::composites_, &Composites::Dot>;
        case Op::OpSDot:
        case Op::OpUDot:
        case Op::OpSUDot:
        case Op::OpSDotAccSat:
        case Op::OpUDotAccSat:
        case Op::OpSUDotAccSat:
            return Handle<&Translator::arithmetic_, &Arithmetic::IntegerDot>;
        case Op::OpFDot2MixAcc32VALVE:
        case Op::OpFDot2MixAcc16VALVE:
            return Handle<&Translator::arithmetic_, &Arithmetic::MixedFloatDot>;
        case Op::OpConvertFToU:
        case Op::OpConvertFToS:
        case Op::OpConvertSToF:
        case Op::OpConvertUToF:
        case Op::OpUConvert:
        case Op::OpSConvert:
        case Op::OpFConvert:
            return Handle<&Translator::arithmetic_, &Arithmetic::Convert>;
        case Op::OpBitcast:
            return Handle<&Translator::arithmetic_, &Arithmetic::Bitcast>;
        case Op::OpSelect:
            return Handle<&Translator::arithmetic_, &Arithmetic::Select>;
        case Op::OpAny:
        case Op::OpAll:
            return Handle<&Translator::arithmetic_, &Arithmetic::AnyAll>;
        case Op::OpIAddCarry:
        case Op::OpISubBorrow:
        case Op::OpUMulExtended:
        case Op::OpSMulExtended:
            return Handle<&Translator::arithmetic_, &Arithmetic::TwoResults>;
        case Op::OpShiftRightLogical:
        case Op::OpShiftRightArithmetic:
        case Op::OpShiftLeftLogical:
            return Handle<&Translator::arithmetic_, &Arithmetic::Shift>;
        case Op::OpDPdx:
        case Op::OpDPdy:
        case Op::OpFwidth:
        case Op::OpDPdxFine:
        case Op::OpDPdyFine:
        case Op::OpFwidthFine:
        case Op::OpDPdxCoarse:
        case Op::OpDPdyCoarse:
        case Op::OpFwidthCoarse:
            return Handle<&Translator::derivatives_, &Derivatives::Derivative>;
        case Op::OpBitFieldInsert:
        case Op::OpBitFieldSExtract:
        case Op::OpBitFieldUExtract:
            return Handle<&Translator::arithmetic_, &Arithmetic::BitField>;
        case Op::OpExtInst:
        case Op::OpExtInstWithForwardRefsKHR:
            return Handle<&Translator::glsl_, &GlslInstructions::ExtInst>;
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
            return Handle<&Translator::arithmetic_, &Arithmetic::Componentwise>;
        default:
            if (Subgroups::IsSubgroupOp(op)) {
                return Handle<&Translator::subgroups_, &Subgroups::Subgroup>;
            }
            return FindImageHandler(op);
    }
}

Status Translator::Instruction(const Inst& inst) {
    Handler handler = FindHandler(inst.op);
    if (!handler) {
        return Unsupported(inst, "is not supported");
    }
    if (code_.kernel.num_insts() > kReaderLimits.instructions) {
        return Unsupported(inst, "takes the kernel beyond the limit of " +
                                     std::to_string(kReaderLimits.instructions) + " instructions");
    }
    code_.builder.SetOrigin(inst.offset);
    code_.in_modes = code_.modes.Any() && ExecutionModes::HasFloatModes(inst.op);
    Status status = handler(*this, inst);
    code_.in_modes = false;
    return status;
}

Result<ir::Kernel> Translator::TranslateEntryPoint(const Inst& entry_point) {
    FORNAX_RETURN_IF_ERROR(CheckCapabilities());
    code_.kernel.name = code_.request.entry_point;
    code_.kernel.subgroup_size = code_.request.options.subgroup_size;
    code_.kernel.robust_buffer_access = code_.request.options.robust_buffer_access;
    code_.kernel.push_constant_bytes = code_.request.layout.push_constant_bytes;
    code_.kernel.known_words = code_.request.known_words;
    FORNAX_RETURN_IF_ERROR(execution_modes_.ReadExecutionModes(entry_point));
    const Function* function = code_.module.FindFunction(entry_point[1]);
    if (!function || function->entry_label == 0 || !function->params.empty()) {
        return Invalid(entry_point, "names no function with a body and without parameters");
    }
    code_.kernel.body = code_.kernel.NewBlock({});
    code_.outer.push_back({});
    code_.builder.SetBlock(code_.kernel.body);
    FORNAX_RETURN_IF_ERROR(variables_.GlobalVariables());
    Frame frame;
    frame.function = function;
    code_.frame = &frame;
    code_.call_stack.push_back(function->id);
    FORNAX_RETURN_IF_ERROR(control_.From(0, function->entry_label));
    code_.frame = nullptr;
    values_.InsertSpillStores();
    // Nobody can tell how many quads run together, so they may be as many as registers like.
    constexpr uint32_t kLanesOfQuads = 16;
    if (code_.sees_quads && !code_.sees_subgroups) {
        code_.kernel.subgroup_size = std::min(code_.kernel.subgroup_size, kLanesOfQuads);
    }
    // How far heaps reach is only known when a kernel runs.
    if (code_.request.layout.heaps || code_.kernel.deciding_words.size() > kMaxDecidingWords) {
        code_.kernel.deciding_words.clear();
    }
    std::ranges::sort(code_.kernel.deciding_words);
    return std::move(code_.kernel);
}

Result<Tuple> Translator::TranslateAlone(const Inst& inst) {
    code_.kernel.body = code_.kernel.NewBlock({});
    code_.outer.push_back({});
    code_.builder.SetBlock(code_.kernel.body);
    const Result<const Inst*> entry_point = code_.module.FindEntryPoint(code_.request.entry_point);
    if (entry_point.ok()) {
        FORNAX_RETURN_IF_ERROR(execution_modes_.ReadFloatModes(**entry_point));
    }
    Frame frame;
    code_.frame = &frame;
    Status status = Instruction(inst);
    code_.frame = nullptr;
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

// As FindHandler, of which this is a part.
Translator::Handler Translator::FindImageHandler(Op op) {
    switch (op) {
        case Op::OpSampledImage:
            return Handle<&Translator::sampled_images_, &SampledImages::SampledImage>;
        case Op::OpImage:
            return Handle<&Translator::sampled_images_, &SampledImages::ImageOf>;
        case Op::OpImageRead:
        case Op::OpImageFetch:
            return Handle<&Translator::images_, &Images::ImageRead>;
        case Op::OpImageSampleImplicitLod:
        case Op::OpImageSampleDrefImplicitLod:
        case Op::OpImageSampleProjImplicitLod:
        case Op::OpImageSampleProjDrefImplicitLod:
        case Op::OpImageSampleExplicitLod:
        case Op::OpImageSampleDrefExplicitLod:
        case Op::OpImageSampleProjExplicitLod:
        case Op::OpImageSampleProjDrefExplicitLod:
            return Handle<&Translator::sampled_images_, &SampledImages::ImageSample>;
        case Op::OpImageGather:
        case Op::OpImageDrefGather:
            return Handle<&Translator::sampled_images_, &SampledImages::ImageGather>;
        case Op::OpImageWrite:
            return Handle<&Translator::images_, &Images::ImageWrite>;
        case Op::OpImageTexelPointer:
        case Op::OpUntypedImageTexelPointerEXT:
            return Handle<&Translator::atomics_, &Atomics::TexelPointer>;
        case Op::OpImageQueryLod:
            return Handle<&Translator::sampled_images_, &SampledImages::ImageQueryLod>;
        case Op::OpImageQuerySize:
        case Op::OpImageQuerySizeLod:
        case Op::OpImageQueryLevels:
        case Op::OpImageQuerySamples:
            return Handle<&Translator::images_, &Images::ImageQuery>;
        default:
            return nullptr;
    }
}

}  // namespace fornax::kernel::spirv
