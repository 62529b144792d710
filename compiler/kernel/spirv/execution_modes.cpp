// Execution modes: the workgroup's size, and how strictly float arithmetic is to be taken
// (SPV_KHR_float_controls and SPV_KHR_float_controls2), which decorations of instructions say too.
//
// Kernels always keep denormals, round to nearest even, and keep signed zeros, infinities and NaN:
// the modes that ask for these ask for nothing new. The one liberty that is taken, fusing a product
// into a sum, is what the decorations decide.
#include <algorithm>

#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using spv::Op;

Status Translator::ReadExecutionModes(const Inst& entry_point) {
    for (const Inst& inst : module_.globals()) {
        const bool with_ids = inst.op == Op::OpExecutionModeId;
        if ((inst.op != Op::OpExecutionMode && !with_ids) || inst[0] != entry_point[1])
            continue;
        auto mode = static_cast<spv::ExecutionMode>(inst[1]);
        if (mode == spv::ExecutionMode::LocalSize || mode == spv::ExecutionMode::LocalSizeId) {
            for (uint32_t i = 0; i < 3; ++i) {
                kernel_.workgroup_size[i] = inst[2 + i];
                if (with_ids) {
                    FORNAX_ASSIGN_OR_RETURN(uint64_t size, constants_.Integer(inst, inst[2 + i]));
                    kernel_.workgroup_size[i] =
                        static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
                }
            }
        } else if (mode == spv::ExecutionMode::SubgroupUniformControlFlowKHR ||
                   mode == spv::ExecutionMode::MaximallyReconvergesKHR) {
            // Lanes always come together again at the end of the construct in which they parted.
        } else {
            FORNAX_RETURN_IF_ERROR(FloatControl(inst));
        }
    }
    // "If an object is decorated with the WorkgroupSize decoration, this must take precedence"
    // (Vulkan, Built-In Variables).
    for (const Inst& inst : module_.globals()) {
        if (inst.op != Op::OpDecorate ||
            static_cast<spv::Decoration>(inst[1]) != spv::Decoration::BuiltIn ||
            static_cast<spv::BuiltIn>(inst[2]) != spv::BuiltIn::WorkgroupSize) {
            continue;
        }
        const Constant* size = constants_.Find(inst[0]);
        if (!size || size->bits.size() != 3)
            return Invalid(inst, "decorates what is no constant of three components");
        for (uint32_t i = 0; i < 3; ++i)
            kernel_.workgroup_size[i] = static_cast<uint32_t>(size->bits[i]);
    }
    uint64_t invocations = 1;
    for (uint32_t size : kernel_.workgroup_size) {
        invocations *= size;
        if (size == 0 || invocations > kReaderLimits.workgroup_invocations) {
            return Invalid(entry_point,
                           "has a workgroup of " + std::to_string(kernel_.workgroup_size[0]) +
                               " x " + std::to_string(kernel_.workgroup_size[1]) + " x " +
                               std::to_string(kernel_.workgroup_size[2]) +
                               " invocations, and the limit is " +
                               std::to_string(kReaderLimits.workgroup_invocations) + " in all");
        }
    }
    return OkStatus();
}

Status Translator::FloatControl(const Inst& inst) {
    switch (static_cast<spv::ExecutionMode>(inst[1])) {
        case spv::ExecutionMode::DenormPreserve:
        case spv::ExecutionMode::SignedZeroInfNanPreserve:
        case spv::ExecutionMode::RoundingModeRTE: {
            const uint32_t width = inst.size() > 2 ? inst[2] : 0;
            if (width != 16 && width != 32 && width != 64) {
                return Invalid(inst, "is for floats of " + std::to_string(width) +
                                         " bits, which there are none of");
            }
            return OkStatus();
        }
        case spv::ExecutionMode::FPFastMathDefault: {
            if (inst.size() < 4)
                return Invalid(inst, "names no type and flags");
            FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst[2]));
            FORNAX_ASSIGN_OR_RETURN(uint64_t flags, constants_.Integer(inst, inst[3]));
            if (!ir::IsFloat(types_.ScalarOf(*type)))
                return Invalid(inst, "is for a type that is no float");
            fast_math_defaults_[types_.ScalarOf(*type)] = static_cast<uint32_t>(flags);
            return OkStatus();
        }
        default:
            return Unsupported(inst,
                               "sets " + ExecutionModeName(inst[1]) + ", which is not supported");
    }
}

// The IR's flags for the result `id`.
uint8_t Translator::FloatFlags(uint32_t id) const {
    constexpr auto kAllowContract = static_cast<uint32_t>(spv::FPFastMathModeMask::AllowContract);
    if (module_.FindDecoration(id, spv::Decoration::NoContraction))
        return ir::kNoContraction;
    if (const Decoration* mode = module_.FindDecoration(id, spv::Decoration::FPFastMathMode))
        return mode->params[0] & kAllowContract ? 0 : ir::kNoContraction;
    if (fast_math_defaults_.empty())
        return 0;
    const Inst* inst = module_.Find(id);
    const Type* type = inst ? types_.Find(inst->type) : nullptr;
    const auto found =
        type ? fast_math_defaults_.find(types_.ScalarOf(*type)) : fast_math_defaults_.end();
    if (found == fast_math_defaults_.end())
        return 0;
    return found->second & kAllowContract ? 0 : ir::kNoContraction;
}

}  // namespace fornax::kernel::spirv
