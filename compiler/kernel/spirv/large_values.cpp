// Large values: what holds arrays of hundreds of scalars is kept in a private variable of its own
// and copied by loops, part by part, so that compiling takes no longer for larger arrays.
//
// Such a value is loaded from memory, given to functions and returned by them, stored again, and
// its parts are taken out or replaced. What else is done with it takes all of its scalars
// (UseTuple).
#include "compiler/kernel/spirv/large_values.h"

#include <algorithm>

#include "compiler/kernel/ir/builder.h"

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// Smaller arrays may become registers, which takes constant indices.
constexpr uint64_t kLargeScalars = 256;
// Fewer elements than this are copied without a loop.
constexpr uint32_t kLoopElements = 4;

// What may write memory that a load before reads.
bool MayWrite(Op op) {
    switch (op) {
        case Op::OpLoad:
        case Op::OpAccessChain:
        case Op::OpInBoundsAccessChain:
        case Op::OpCompositeExtract:
        case Op::OpLine:
        case Op::OpNoLine:
            return false;
        default:
            return true;
    }
}

}  // namespace

bool LargeValues::IsLarge(const Type& type) const {
    return type.scalars > kLargeScalars &&
           (type.kind == Type::Kind::kArray || type.kind == Type::Kind::kStruct);
}

// The place of the value that the instruction makes: one for each result in a function, so that
// what is translated more than once writes the same.
Result<Pointer> LargeValues::NewLargePlace(const Inst& inst, const Type& type) {
    const auto found = code_.frame->large_places.find(inst.result);
    if (found != code_.frame->large_places.end()) {
        return found->second;
    }
    std::vector<Pointer>& free = free_places_[type.id];
    if (free.empty()) {
        FORNAX_ASSIGN_OR_RETURN(Pointer place, access_.PrivatePlace(inst, type));
        free.push_back(std::move(place));
    }
    const Pointer place = free.back();
    free.pop_back();
    code_.frame->large_places.emplace(inst.result, place);
    return place;
}

// When a function has returned, its values are gone.
void LargeValues::FreeLargePlaces(const Frame& frame) {
    for (const auto& [id, place] : frame.large_places) {
        free_places_[place.type].push_back(place);
    }
}

Status LargeValues::LoadLarge(const Inst& inst, const Pointer& from) {
    if (from.needs_element) {
        return Invalid(inst, "loads an array of buffer blocks");
    }
    if (IsOnlyStored(inst)) {
        return values_.DefineLarge(inst, from);
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(Pointer place, NewLargePlace(inst, *type));
    FORNAX_RETURN_IF_ERROR(CopyPlace(inst, place, from));
    return values_.DefineLarge(inst, std::move(place));
}

// True if the only use of the loaded value is to be stored, before anything else is written: then
// it is copied from where it is.
bool LargeValues::IsOnlyStored(const Inst& load) const {
    const auto at_load = static_cast<size_t>(&load - module_.insts().data());
    const std::span<const Inst> rest = module_.insts().subspan(at_load + 1);
    size_t at = 0;
    while (at < rest.size() && !MayWrite(rest[at].op)) {
        if (std::ranges::count(rest[at].operands, load.result) != 0) {
            return false;
        }
        ++at;
    }
    if (at == rest.size() || rest[at].op != Op::OpStore || rest[at][1] != load.result) {
        return false;
    }
    // Buffers may overlap one another in any way, private variables nothing.
    const auto target = code_.frame->values.find(rest[at][0]);
    if (target == code_.frame->values.end() || !target->second.pointer ||
        target->second.pointer->space != Pointer::Space::kLocal) {
        return false;
    }
    return std::ranges::none_of(rest.subspan(at + 1), [&](const Inst& inst) {
        return std::ranges::count(inst.operands, load.result) != 0;
    });
}

Status LargeValues::CopyLarge(const Inst& inst, const Pointer& to, const Pointer& from) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, to.type));
    FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
    if (to.space != Pointer::Space::kLocal) {
        FORNAX_RETURN_IF_ERROR(access_.CheckWritable(inst, to));
    }
    if (from.needs_element) {
        return Invalid(inst, "loads an array of buffer blocks");
    }
    return CopyPlace(inst, to, from);
}

// From place to place; both have types of one shape.
Status LargeValues::CopyPlace(const Inst& inst, const Pointer& to, const Pointer& from) {
    FORNAX_ASSIGN_OR_RETURN(const Type* to_type, TypeOf(inst, to.type));
    FORNAX_ASSIGN_OR_RETURN(const Type* from_type, TypeOf(inst, from.type));
    if (to_type->kind != from_type->kind || to_type->scalars != from_type->scalars) {
        return Invalid(inst, "copies a value to memory of another type");
    }
    FORNAX_RETURN_IF_ERROR(Spend(inst, 1));
    const bool is_array = to_type->kind == Type::Kind::kArray;
    if (to_type->kind == Type::Kind::kStruct ||
        (is_array && to_type->count < kLoopElements && to_type->scalars > kLoopElements)) {
        const size_t parts = is_array ? to_type->count : to_type->members.size();
        if (!is_array && from_type->members.size() != parts) {
            return Invalid(inst, "copies a value to memory of another type");
        }
        for (uint32_t i = 0; i < parts; ++i) {
            FORNAX_RETURN_IF_ERROR(CopyPlace(inst, places_.PartOf(to, *to_type, i),
                                             places_.PartOf(from, *from_type, i)));
        }
        return OkStatus();
    }
    if (!is_array || to_type->count < kLoopElements) {
        FORNAX_ASSIGN_OR_RETURN(const Tuple value, access_.LoadFrom(inst, from));
        return access_.StoreTo(inst, to, value);
    }
    if (from_type->count != to_type->count) {
        return Invalid(inst, "copies a value to memory of another type");
    }
    Status status;
    ForEach(to_type->count, [&](ir::ValueId index) {
        status = CopyPlace(inst, places_.ElementOf(to, *to_type, index),
                           places_.ElementOf(from, *from_type, index));
    });
    return status;
}

// A loop that stays one: what it does is for thousands of elements.
template <typename Body>
void LargeValues::ForEach(uint32_t count, Body&& body) {
    const ir::ValueId initial[] = {Int(0)};
    const ir::InstId loop = builder_.Append(ir::Op::kLoop, initial, {}, 0, ir::kDontUnrollHint);
    const ir::BlockId before = builder_.block();
    const ir::BlockId contents = NewChild(loop);
    const ir::BlockId continuing = NewChild(loop);
    kernel_.inst(loop).blocks = {contents, continuing};
    const ir::ValueId index = kernel_.AddParam(contents, ir::Type::kI32);
    builder_.SetBlock(contents);
    body(index);
    kernel_.inst(builder_.Append(ir::Op::kContinue, {}, {})).target = loop;
    builder_.SetBlock(continuing);
    const ir::ValueId next = Emit(ir::Op::kIAdd, ir::Type::kI32, {index, Int(1)});
    const ir::ValueId ends = Emit(ir::Op::kIEq, ir::Type::kBool, {next, Int(count)});
    const ir::ValueId condition[] = {ends};
    const ir::InstId test = builder_.Append(ir::Op::kIf, condition, {});
    const ir::BlockId leave = NewChild(test);
    const ir::BlockId stay = NewChild(test);
    kernel_.inst(test).blocks = {leave, stay};
    ir::Builder leaving(kernel_, leave);
    kernel_.inst(leaving.Append(ir::Op::kExit, {}, {})).target = loop;
    ir::Builder(kernel_, stay).Append(ir::Op::kYield, {}, {});
    const ir::ValueId again[] = {next};
    builder_.Append(ir::Op::kNext, again, {});
    builder_.SetBlock(before);
}

Status LargeValues::ExtractLarge(const Inst& inst, const Pointer& whole) {
    FORNAX_ASSIGN_OR_RETURN(Pointer part, places_.PartAt(inst, whole, inst.operands.subspan(1)));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, part.type));
    if (part.type != inst.type) {
        return Invalid(inst, "has another result type than the part that it takes");
    }
    if (IsLarge(*type)) {
        return values_.DefineLarge(inst, std::move(part));
    }
    FORNAX_ASSIGN_OR_RETURN(Tuple value, access_.LoadFrom(inst, part));
    return values_.Define(inst, std::move(value));
}

Status LargeValues::StoreValue(const Inst& inst, const Pointer& to, uint32_t id) {
    if (values_.HasLargeValue(id)) {
        FORNAX_ASSIGN_OR_RETURN(const Value value, values_.Use(inst, id));
        return CopyLarge(inst, to, *value.pointer);
    }
    FORNAX_ASSIGN_OR_RETURN(const Tuple tuple, values_.UseParts(inst, id));
    return access_.StoreTo(inst, to, tuple);
}

// Constructs a value of parts, some of which may be large.
Status LargeValues::ConstructLarge(const Inst& inst, const Type& type) {
    const size_t parts = type.kind == Type::Kind::kStruct ? type.members.size() : type.count;
    if (inst.size() != parts) {
        return Invalid(inst, "has another number of parts than its type");
    }
    FORNAX_ASSIGN_OR_RETURN(Pointer place, NewLargePlace(inst, type));
    for (uint32_t i = 0; i < parts; ++i) {
        FORNAX_RETURN_IF_ERROR(StoreValue(inst, places_.PartOf(place, type, i), inst[i]));
    }
    return values_.DefineLarge(inst, std::move(place));
}

Status LargeValues::InsertLarge(const Inst& inst, const Pointer& whole) {
    FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
    FORNAX_ASSIGN_OR_RETURN(Pointer place, NewLargePlace(inst, *type));
    FORNAX_RETURN_IF_ERROR(CopyPlace(inst, place, whole));
    FORNAX_ASSIGN_OR_RETURN(const Pointer part,
                            places_.PartAt(inst, place, inst.operands.subspan(2)));
    FORNAX_RETURN_IF_ERROR(StoreValue(inst, part, inst[0]));
    return values_.DefineLarge(inst, std::move(place));
}

}  // namespace fornax::kernel::spirv
