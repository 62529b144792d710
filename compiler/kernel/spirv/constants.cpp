// Constants, composites of them, and OpSpecConstantOp, which is translated like any instruction and
// then evaluated.
#include "compiler/kernel/spirv/constants.h"

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/ir/signature.h"
#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// A limit for all constants together: a short module can name many large ones.
constexpr uint64_t kMaxConstantScalars = 8u << 20;

}  // namespace

Status ConstantTable::Read(TypeTable& types) {
    for (const Inst& inst : module_.globals()) {
        if (inst.op == Op::OpTypeForwardPointer) {
            FORNAX_RETURN_IF_ERROR(types.AddForward(inst));
        } else if ((inst.op >= Op::OpTypeVoid && inst.op <= Op::OpTypeFunction) ||
                   inst.op == Op::OpTypeUntypedPointerKHR || inst.op == Op::OpTypeVectorIdEXT ||
                   inst.op == Op::OpTypeBufferEXT || inst.op == Op::OpTypeCooperativeMatrixKHR) {
            FORNAX_RETURN_IF_ERROR(
                types.Add(inst, [&](const Inst& user, uint32_t id) { return Integer(user, id); }));
        } else if (inst.type != 0) {
            FORNAX_RETURN_IF_ERROR(Add(inst, types));
        }
    }
    return OkStatus();
}

Result<uint64_t> ConstantTable::Integer(const Inst& user, uint32_t id) const {
    const Constant* constant = Find(id);
    if (!constant || constant->bits.size() != 1) {
        return Invalid(user, "needs id " + std::to_string(id) + " to be an integer constant");
    }
    return constant->bits[0];
}

// Vulkan, "Specialization Constants": a boolean is a VkBool32; others have the size of the
// constant.
uint64_t ConstantTable::Specialized(const Inst& inst, uint64_t bits, ir::Type type) const {
    const Decoration* id = module_.FindDecoration(inst.result, spv::Decoration::SpecId);
    if (!id) {
        return bits;
    }
    for (const SpecializationValue& value : request_.specialization) {
        if (value.constant_id != id->params[0]) {
            continue;
        }
        if (type == ir::Type::kBool) {
            return value.bits != 0;
        }
        const uint32_t width = ir::BitWidth(type);
        return width >= 64 ? value.bits : value.bits & ((uint64_t{1} << width) - 1);
    }
    return bits;
}

Status ConstantTable::Add(const Inst& inst, const TypeTable& types) {
    Constant constant;
    constant.type = inst.type;
    switch (inst.op) {
        case Op::OpConstantTrue:
        case Op::OpConstantFalse:
        case Op::OpConstant:
        case Op::OpSpecConstantTrue:
        case Op::OpSpecConstantFalse:
        case Op::OpSpecConstant:
        case Op::OpConstantComposite:
        case Op::OpSpecConstantComposite:
        case Op::OpConstantCompositeReplicateEXT:
        case Op::OpSpecConstantCompositeReplicateEXT:
        case Op::OpConstantNull:
        case Op::OpUndef:
        case Op::OpSpecConstantOp:
        case Op::OpConstantSizeOfEXT:
            break;
        case Op::OpVariable:
        case Op::OpUntypedVariableKHR:
        case Op::OpExtInst:
        case Op::OpExtInstWithForwardRefsKHR:
            return OkStatus();  // the translator's, or debugging information
        default:
            return Unsupported(inst, "is not supported at module scope");
    }
    const Type* type = types.Find(inst.type);
    if (!type || (type->scalars == 0 && !type->empty)) {
        // A null of a type without values (a pointer, an image) is an error where it is used.
        if (inst.op == Op::OpConstantNull || inst.op == Op::OpUndef) {
            return OkStatus();
        }
        return Invalid(inst, "has a type that no constant can have");
    }
    total_scalars_ += type->scalars;
    if (type->scalars > kReaderLimits.composite_scalars || total_scalars_ > kMaxConstantScalars) {
        return Unsupported(inst,
                           "has " + std::to_string(type->scalars) + " scalars, and the limit is " +
                               std::to_string(kReaderLimits.composite_scalars) + " in one and " +
                               std::to_string(kMaxConstantScalars) + " in all constants");
    }
    const bool is_scalar = type->kind == Type::Kind::kScalar;
    switch (inst.op) {
        case Op::OpConstantTrue:
        case Op::OpSpecConstantTrue:
        case Op::OpConstantFalse:
        case Op::OpSpecConstantFalse: {
            if (!is_scalar || type->scalar != ir::Type::kBool) {
                return Invalid(inst, "does not have the type bool");
            }
            const bool value = inst.op == Op::OpConstantTrue || inst.op == Op::OpSpecConstantTrue;
            constant.bits = {Specialized(inst, value, ir::Type::kBool)};
            break;
        }
        case Op::OpConstant:
        case Op::OpSpecConstant: {
            if (!is_scalar || type->scalar == ir::Type::kBool) {
                return Invalid(inst, "does not have a numeric scalar type");
            }
            uint64_t bits = inst[0];
            const uint32_t width = ir::BitWidth(type->scalar);
            if (width == 64) {
                bits |= uint64_t{inst[1]} << 32;
            } else {
                bits &= (uint64_t{1} << width) - 1;  // narrow literals are sign extended
            }
            constant.bits = {Specialized(inst, bits, type->scalar)};
            break;
        }
        case Op::OpConstantSizeOfEXT: {
            const auto size = HeapDescriptorBytes(module_.Find(inst[0]));
            if (!is_scalar || !ir::IsInteger(type->scalar) || !size) {
                return Invalid(inst, "is no integer, or of what is no descriptor");
            }
            constant.bits = {*size};
            break;
        }
        case Op::OpConstantComposite:
        case Op::OpSpecConstantComposite: {
            std::vector<ir::Type> wanted;
            types.Flatten(*type, wanted);
            for (uint32_t id : inst.operands) {
                const Constant* part = Find(id);
                if (!part) {
                    return Invalid(inst, "names id " + std::to_string(id) +
                                             ", which is no constant declared before it");
                }
                constant.bits.insert(constant.bits.end(), part->bits.begin(), part->bits.end());
                if (constant.bits.size() > wanted.size()) {
                    break;
                }
            }
            // "If the type is a cooperative matrix, there must be exactly one constituent, with
            // which every component is initialized" (SPV_KHR_cooperative_matrix).
            if (type->kind == Type::Kind::kCooperativeMatrix && inst.size() == 1 &&
                constant.bits.size() == 1) {
                constant.bits.assign(wanted.size(), constant.bits[0]);
            }
            if (constant.bits.size() != wanted.size()) {
                return Invalid(inst, "does not have the constituents that its type asks for");
            }
            break;
        }
        case Op::OpConstantCompositeReplicateEXT:
        case Op::OpSpecConstantCompositeReplicateEXT: {
            const Constant* part = Find(inst[0]);
            if (!part || part->bits.empty() || type->scalars % part->bits.size() != 0) {
                return Invalid(inst, "replicates what is no constituent of its type");
            }
            while (constant.bits.size() < type->scalars) {
                constant.bits.insert(constant.bits.end(), part->bits.begin(), part->bits.end());
            }
            break;
        }
        case Op::OpConstantNull:
        case Op::OpUndef:
            constant.bits.assign(type->scalars, 0);
            break;
        default: {
            FORNAX_ASSIGN_OR_RETURN(constant.bits, EvaluateSpecOp(inst, types));
            break;
        }
    }
    constants_.emplace(inst.result, std::move(constant));
    return OkStatus();
}

Result<std::vector<uint64_t>> ConstantTable::EvaluateSpecOp(const Inst& inst,
                                                            const TypeTable& types) {
    // The operation as the instruction that it would be in a function.
    Inst operation = inst;
    operation.op = static_cast<Op>(inst[0]);
    operation.operands = inst.operands.subspan(1);
    FORNAX_ASSIGN_OR_RETURN(auto translated,
                            TranslateConstantOp(module_, types, *this, request_, operation));
    const ir::Kernel& kernel = translated.first;
    std::vector<uint64_t> known(kernel.num_values(), 0);
    for (ir::InstId id : kernel.block(kernel.body).insts) {
        const ir::Instruction& step = kernel.inst(id);
        if (step.op == ir::Op::kConst) {
            known[step.results[0].value()] = step.imm;
            continue;
        }
        if (step.op == ir::Op::kUndef) {
            continue;  // a component that a shuffle leaves open: zero is as good as any
        }
        // What is in a function, ir::Verify proves.
        if (const std::string fault = ir::SignatureFault(kernel, step); !fault.empty()) {
            return Invalid(inst, "has operands of other types than it takes: " + fault);
        }
        std::vector<uint64_t> operands;
        for (ir::ValueId operand : step.operands) {
            operands.push_back(known[operand.value()]);
        }
        std::vector<uint64_t> results(step.results.size());
        if (!ir::Evaluate(kernel, step, operands, results)) {
            return Unsupported(inst, "is not an operation on constants");
        }
        for (size_t i = 0; i < results.size(); ++i) {
            known[step.results[i].value()] = results[i];
        }
    }
    std::vector<uint64_t> bits;
    for (ir::ValueId value : translated.second) {
        bits.push_back(known[value.value()]);
    }
    return bits;
}

}  // namespace fornax::kernel::spirv
