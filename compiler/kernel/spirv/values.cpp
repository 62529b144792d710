// Uses and definitions of ids.
#include "compiler/kernel/spirv/values.h"

#include "compiler/kernel/spirv/variables.h"

namespace fornax::kernel::spirv {

using spv::Op;

bool Values::HasLargeValue(uint32_t id) const {
    if (!code_.frame) {
        return false;
    }
    const auto found = code_.frame->values.find(id);
    return found != code_.frame->values.end() && found->second.is_large;
}

Status Values::DefineLarge(const Inst& inst, Pointer place) {
    place.type = inst.type;
    Value value;
    value.type = inst.type;
    value.pointer = std::move(place);
    value.is_large = true;
    return SetValue(inst, std::move(value));
}

Result<Pointer> Values::UsePointer(const Inst& user, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Value value, Use(user, id));
    if (!value.pointer || value.is_large) {
        return access_.PointerFromScalars(user, value);
    }
    return std::move(*value.pointer);
}

Status Values::DefinePointer(const Inst& inst, Pointer pointer) {
    Value value;
    value.type = inst.type;
    value.pointer = std::move(pointer);
    return SetValue(inst, std::move(value));
}

Result<Tuple> Values::UsePlace(const Inst& inst, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Value value, Use(inst, id));
    if (value.pointer && !value.is_large) {
        return access_.PlaceScalars(inst, *value.pointer);
    }
    return std::move(value.scalars);
}

Result<Value> Values::Use(const Inst& user, uint32_t id) {
    if (code_.frame) {
        auto it = code_.frame->values.find(id);
        if (it != code_.frame->values.end()) {
            FORNAX_RETURN_IF_ERROR(Spend(user, it->second.scalars.size()));
            return InScope(it->second.block) ? it->second : Rescue(id, it->second);
        }
    }
    auto global = code_.globals.find(id);
    if (global == code_.globals.end()) {
        // A variable of module scope gets its place from its first use: others, of other entry
        // points perhaps, may be of kinds that are not covered.
        const Inst* declaration = module_.Find(id);
        if (declaration &&
            (declaration->op == Op::OpVariable || declaration->op == Op::OpUntypedVariableKHR) &&
            declaration < module_.globals().data() + module_.globals().size()) {
            FORNAX_RETURN_IF_ERROR(variables_.Variable(*declaration));
            global = code_.globals.find(id);
        }
    }
    if (global != code_.globals.end()) {
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

Result<Tuple> Values::UseTuple(const Inst& user, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, UseParts(user, id));
    if (tuple.empty()) {  // instructions that compute look at the first scalar of what they read
        return Invalid(user, "uses id " + std::to_string(id) + ", which has no scalar");
    }
    return tuple;
}

Result<Tuple> Values::UseParts(const Inst& user, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Value value, Use(user, id));
    if (value.is_large) {
        FORNAX_ASSIGN_OR_RETURN(value.scalars, access_.LoadFrom(user, *value.pointer));
        FORNAX_RETURN_IF_ERROR(Spend(user, value.scalars.size()));
    } else if (value.pointer) {
        return access_.PointerScalars(user, *value.pointer);
    }
    if (code_.in_modes) {
        for (ir::ValueId& scalar : value.scalars) {
            scalar = modes_.Flush(scalar);
        }
    }
    return std::move(value.scalars);
}

Result<ir::ValueId> Values::UseScalar(const Inst& user, uint32_t id) {
    FORNAX_ASSIGN_OR_RETURN(Tuple tuple, UseTuple(user, id));
    if (tuple.size() != 1) {
        return Invalid(user, "uses id " + std::to_string(id) + " as a scalar");
    }
    return tuple[0];
}

Result<const Type*> Values::ValueType(const Inst& user, uint32_t id) {
    if (code_.frame) {
        auto it = code_.frame->values.find(id);
        if (it != code_.frame->values.end()) {
            return TypeOf(user, it->second.type);
        }
    }
    if (const Constant* constant = constants_.Find(id)) {
        return TypeOf(user, constant->type);
    }
    auto global = code_.globals.find(id);
    if (global != code_.globals.end()) {
        return TypeOf(user, global->second.type);
    }
    return Invalid(user, "uses id " + std::to_string(id) + ", which has no value there");
}

Status Values::Define(const Inst& inst, Tuple scalars) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    if (scalars.empty() && !type->empty) {
        return Unsupported(inst, "makes a value without any scalar");
    }
    if (type->scalars != scalars.size()) {
        return Invalid(inst, "has operands that do not fit its result type");
    }
    if (code_.in_modes) {
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

Status Values::SetValue(const Inst& inst, Value value) {
    FORNAX_RETURN_IF_ERROR(Spend(inst, value.scalars.size()));
    value.block = builder_.block();
    auto [it, inserted] = code_.frame->values.try_emplace(inst.result);
    if (!inserted) {
        // The block is translated again. If its value is used elsewhere, this one is, too.
        if (auto slots = code_.frame->spill_slots.find(inst.result);
            slots != code_.frame->spill_slots.end()) {
            StoreSpilled(value, slots->second);
        } else {
            code_.frame->older[inst.result].push_back(it->second);
        }
    }
    it->second = std::move(value);
    return OkStatus();
}

}  // namespace fornax::kernel::spirv
