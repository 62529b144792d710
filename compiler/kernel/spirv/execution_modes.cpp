// Execution modes: the workgroup's size, and how strictly float arithmetic is to be taken
// (SPV_KHR_float_controls and SPV_KHR_float_controls2), which decorations of instructions say too;
// whether offsets in buffers have 64 bits (SPV_EXT_shader_64bit_indexing).
//
// Without modes kernels keep denormals, round to nearest even, and keep signed zeros, infinities
// and NaN: the modes that ask for these ask for nothing new. The one liberty that is taken, fusing
// a product into a sum, is what the decorations decide. The other modes are float_modes.h.
#include "compiler/kernel/spirv/execution_modes.h"

#include <algorithm>

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

bool DeclaresCapability(const Module& module, spv::Capability capability) {
    return std::ranges::any_of(module.globals(), [&](const Inst& inst) {
        return inst.op == Op::OpCapability && static_cast<spv::Capability>(inst[0]) == capability;
    });
}

}  // namespace

bool AsksForWideIndexing(const Module& module, const Inst& entry_point) {
    return std::ranges::any_of(module.globals(), [&](const Inst& inst) {
        return inst.op == Op::OpExecutionMode && inst[0] == entry_point[1] &&
               static_cast<spv::ExecutionMode>(inst[1]) ==
                   spv::ExecutionMode::Shader64BitIndexingEXT;
    });
}

Status ExecutionModes::ReadExecutionModes(const Inst& entry_point) {
    for (const Inst& inst : module_.globals()) {
        const bool with_ids = inst.op == Op::OpExecutionModeId;
        if ((inst.op != Op::OpExecutionMode && !with_ids) || inst[0] != entry_point[1]) {
            continue;
        }
        auto mode = static_cast<spv::ExecutionMode>(inst[1]);
        if (mode == spv::ExecutionMode::LocalSize || mode == spv::ExecutionMode::LocalSizeId) {
            for (uint32_t i = 0; i < 3; ++i) {
                code_.workgroup_size[i] = inst[2 + i];
                if (with_ids) {
                    FORNAX_ASSIGN_OR_RETURN(uint64_t size, constants_.Integer(inst, inst[2 + i]));
                    code_.workgroup_size[i] =
                        static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
                }
            }
        } else if (mode == spv::ExecutionMode::SubgroupUniformControlFlowKHR ||
                   mode == spv::ExecutionMode::MaximallyReconvergesKHR) {
            // Lanes always come together again at the end of the construct in which they parted.
        } else if (mode == spv::ExecutionMode::Shader64BitIndexingEXT) {
            // AsksForWideIndexing has seen it.
            if (!DeclaresCapability(module_, spv::Capability::Shader64BitIndexingEXT)) {
                return Invalid(inst,
                               "sets Shader64BitIndexingEXT in a module that does not declare the "
                               "capability of that name");
            }
        } else if (mode == spv::ExecutionMode::QuadDerivativesKHR) {
            // Derivative groups are quads here ("Derivative Operations").
        } else if (mode == spv::ExecutionMode::DerivativeGroupQuadsKHR) {
            FORNAX_RETURN_IF_ERROR(SetDerivativeGroup(inst, DerivativeGroup::kQuads));
        } else if (mode == spv::ExecutionMode::DerivativeGroupLinearKHR) {
            FORNAX_RETURN_IF_ERROR(SetDerivativeGroup(inst, DerivativeGroup::kLinear));
        } else {
            FORNAX_RETURN_IF_ERROR(FloatControl(inst));
        }
    }
    FORNAX_RETURN_IF_ERROR(ReadFloatModes(entry_point));
    // "If an object is decorated with the WorkgroupSize decoration, this must take precedence"
    // (Vulkan, Built-In Variables).
    for (const Inst& inst : module_.globals()) {
        if (inst.op != Op::OpDecorate ||
            static_cast<spv::Decoration>(inst[1]) != spv::Decoration::BuiltIn ||
            static_cast<spv::BuiltIn>(inst[2]) != spv::BuiltIn::WorkgroupSize) {
            continue;
        }
        const Constant* size = constants_.Find(inst[0]);
        if (!size || size->bits.size() != 3) {
            return Invalid(inst, "decorates what is no constant of three components");
        }
        for (uint32_t i = 0; i < 3; ++i) {
            code_.workgroup_size[i] = static_cast<uint32_t>(size->bits[i]);
        }
    }
    uint64_t invocations = 1;
    for (uint32_t size : code_.workgroup_size) {
        invocations *= size;
        if (size == 0 || invocations > kReaderLimits.workgroup_invocations) {
            return Invalid(entry_point,
                           "has a workgroup of " + std::to_string(code_.workgroup_size[0]) + " x " +
                               std::to_string(code_.workgroup_size[1]) + " x " +
                               std::to_string(code_.workgroup_size[2]) +
                               " invocations, and the limit is " +
                               std::to_string(kReaderLimits.workgroup_invocations) + " in all");
        }
    }
    return ArrangeWorkgroup(entry_point);
}

Status ExecutionModes::FloatControl(const Inst& inst) {
    switch (static_cast<spv::ExecutionMode>(inst[1])) {
        case spv::ExecutionMode::DenormPreserve:
        case spv::ExecutionMode::DenormFlushToZero:
        case spv::ExecutionMode::SignedZeroInfNanPreserve:
        case spv::ExecutionMode::RoundingModeRTE:
        case spv::ExecutionMode::RoundingModeRTZ: {
            const uint32_t width = inst.size() > 2 ? inst[2] : 0;
            if (width != 16 && width != 32 && width != 64) {
                return Invalid(inst, "is for floats of " + std::to_string(width) +
                                         " bits, which there are none of");
            }
            return OkStatus();
        }
        case spv::ExecutionMode::FPFastMathDefault: {
            if (inst.size() < 4) {
                return Invalid(inst, "names no type and flags");
            }
            FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst[2]));
            FORNAX_ASSIGN_OR_RETURN(uint64_t flags, constants_.Integer(inst, inst[3]));
            if (!ir::IsFloat(types_.ScalarOf(*type))) {
                return Invalid(inst, "is for a type that is no float");
            }
            code_.fast_math_defaults[types_.ScalarOf(*type)] = static_cast<uint32_t>(flags);
            return OkStatus();
        }
        default:
            return Unsupported(inst,
                               "sets " + ExecutionModeName(inst[1]) + ", which is not supported");
    }
}

// The modes alone, which also hold for operations on constants (OpSpecConstantOp).
Status ExecutionModes::ReadFloatModes(const Inst& entry_point) {
    for (const Inst& inst : module_.globals()) {
        if (inst.op != Op::OpExecutionMode || inst[0] != entry_point[1] || inst.size() < 3) {
            continue;
        }
        const auto mode = static_cast<spv::ExecutionMode>(inst[1]);
        const bool flush = mode == spv::ExecutionMode::DenormFlushToZero;
        const bool zeros = mode == spv::ExecutionMode::SignedZeroInfNanPreserve;
        const bool preserve = mode == spv::ExecutionMode::DenormPreserve;
        if (!flush && !zeros && !preserve && mode != spv::ExecutionMode::RoundingModeRTZ) {
            continue;
        }
        FORNAX_RETURN_IF_ERROR(FloatControl(inst));
        const ir::Type type = ir::FloatType(inst[2]);
        if (flush) {
            modes_.FlushDenormals(type);
        } else if (preserve) {
            modes_.PreserveDenormals(type);
        } else if (zeros) {
            modes_.KeepZeroSigns(type);
        } else {
            modes_.RoundTowardsZero(type);
        }
    }
    return OkStatus();
}

// "Denormalized values ... flushed to zero" by instructions that compute; those that only move bits
// (loads, OpSelect, OpPhi, OpBitcast, composites, OpTranspose, ...) must keep them (Vulkan,
// Precision and Operation of SPIR-V Instructions).
bool ExecutionModes::HasFloatModes(Op op) {
    switch (op) {
        case Op::OpExtInst:
        case Op::OpConvertFToU:
        case Op::OpConvertFToS:
        case Op::OpConvertSToF:
        case Op::OpConvertUToF:
        case Op::OpFConvert:
        case Op::OpQuantizeToF16:
        case Op::OpFNegate:
        case Op::OpFmaKHR:
        case Op::OpFAdd:
        case Op::OpFSub:
        case Op::OpFMul:
        case Op::OpFDiv:
        case Op::OpFRem:
        case Op::OpFMod:
        case Op::OpVectorTimesScalar:
        case Op::OpMatrixTimesScalar:
        case Op::OpVectorTimesMatrix:
        case Op::OpMatrixTimesVector:
        case Op::OpMatrixTimesMatrix:
        case Op::OpOuterProduct:
        case Op::OpDot:
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
        case Op::OpGroupNonUniformFAdd:
        case Op::OpGroupNonUniformFMul:
        case Op::OpGroupNonUniformFMin:
        case Op::OpGroupNonUniformFMax:
        case Op::OpDPdx:
        case Op::OpDPdy:
        case Op::OpFwidth:
        case Op::OpDPdxFine:
        case Op::OpDPdyFine:
        case Op::OpFwidthFine:
        case Op::OpDPdxCoarse:
        case Op::OpDPdyCoarse:
        case Op::OpFwidthCoarse:
            return true;
        default:
            return false;
    }
}

Status ExecutionModes::SetDerivativeGroup(const Inst& inst, DerivativeGroup group) {
    if (code_.derivative_group != DerivativeGroup::kNone && code_.derivative_group != group) {
        return Invalid(inst, "asks for a second kind of derivative group");
    }
    code_.derivative_group = group;
    return OkStatus();
}

// VUID-StandaloneSpirv-DerivativeGroupQuadsKHR-10151 and DerivativeGroupLinearKHR-10152.
Status ExecutionModes::ArrangeWorkgroup(const Inst& entry_point) {
    kernel_.workgroup_size = code_.workgroup_size;
    const auto [x, y, z] = code_.workgroup_size;
    const std::string size =
        std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z);
    if (code_.derivative_group == DerivativeGroup::kLinear && x * y * z % 4 != 0) {
        return Invalid(entry_point, "has linear derivative groups and a workgroup of " + size +
                                        " invocations, which is no multiple of 4");
    }
    if (code_.derivative_group == DerivativeGroup::kQuads) {
        if (x % 2 != 0 || y % 2 != 0) {
            return Invalid(entry_point, "has derivative groups of quads and a workgroup of " +
                                            size + " invocations; x and y must be multiples of 2");
        }
        kernel_.workgroup_size = {2 * x, y / 2, z};
    }
    return OkStatus();
}

}  // namespace fornax::kernel::spirv
