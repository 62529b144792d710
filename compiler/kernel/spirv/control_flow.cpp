// Structured control flow: SPIR-V's blocks and merge instructions to the IR's tree.
//
// A walk from the entry block: a header makes a construct and goes on at its merge block; a branch
// to the merge block or continue target of a construct around is a jump out of the tree's blocks. A
// block that several blocks without a merge reach (a switch case that others fall into) is
// translated once for each. Phis go through private memory, which is promoted to values later.
#include "compiler/kernel/spirv/control_flow.h"

#include <algorithm>

#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel::spirv {

using spv::Op;

namespace {

// What may stand among the phis at the beginning of a block.
bool HasNoMeaning(const Module& module, const Inst& inst) {
    return inst.op == Op::OpLine || inst.op == Op::OpNoLine || inst.op == Op::OpNop ||
           module.IsNonSemantic(inst);
}

}  // namespace

Status ControlFlow::LoadPhis(const Block& block) {
    for (uint32_t i = block.first; i < block.end; ++i) {
        const Inst& inst = module_.insts()[i];
        if (HasNoMeaning(module_, inst)) {
            continue;
        }
        if (inst.op != Op::OpPhi) {
            break;
        }
        std::vector<uint32_t>& locals = code_.frame->phi_locals[inst.result];
        if (locals.empty()) {
            FORNAX_ASSIGN_OR_RETURN(const Type* type, TypeOf(inst, inst.type));
            if (type->kind == Type::Kind::kPointer && type->scalars == 0) {
                return Unsupported(inst, "chooses between pointers that cannot be values");
            }
            FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *type));
            std::vector<ir::Type> scalar_types;
            types_.Flatten(*type, scalar_types);
            for (ir::Type scalar : scalar_types) {
                locals.push_back(NewLocal(scalar));
            }
        }
        Tuple tuple;
        for (uint32_t local : locals) {
            tuple.push_back(LoadLocal(local));
        }
        FORNAX_RETURN_IF_ERROR(values_.Define(inst, std::move(tuple)));
    }
    return OkStatus();
}

Status ControlFlow::StorePhis(uint32_t from, uint32_t label) {
    auto found = code_.frame->function->blocks.find(label);
    if (found == code_.frame->function->blocks.end()) {
        return Error{ErrorCode::kInvalidArgument,
                     "A branch names id " + std::to_string(label) + ", which is no block."};
    }
    if (from == 0) {
        return OkStatus();
    }
    // A parallel copy: all sources are read before the first phi changes.
    std::vector<std::pair<uint32_t, ir::ValueId>> stores;
    for (uint32_t i = found->second.first; i < found->second.end; ++i) {
        const Inst& inst = module_.insts()[i];
        if (HasNoMeaning(module_, inst)) {
            continue;
        }
        if (inst.op != Op::OpPhi) {
            break;
        }
        for (size_t k = 0; k + 1 < inst.size(); k += 2) {
            if (inst[k + 1] != from) {
                continue;
            }
            FORNAX_ASSIGN_OR_RETURN(Tuple source, values_.UseParts(inst, inst[k]));
            std::vector<uint32_t>& locals = code_.frame->phi_locals[inst.result];
            if (locals.empty()) {
                for (ir::ValueId scalar : source) {
                    locals.push_back(NewLocal(kernel_.type(scalar)));
                }
            }
            if (locals.size() != source.size()) {
                return Invalid(inst, "has values of different types");
            }
            for (size_t s = 0; s < source.size(); ++s) {
                if (kernel_.locals[locals[s]].type != kernel_.type(source[s])) {
                    return Invalid(inst, "has values of different types");
                }
                stores.push_back({locals[s], source[s]});
            }
            break;
        }
    }
    for (auto [local, value] : stores) {
        StoreLocal(local, value);
    }
    return OkStatus();
}

const ControlFlow::Jump* ControlFlow::FindJump(uint32_t label) const {
    for (auto it = jumps_.rbegin(); it != jumps_.rend(); ++it) {
        if (it->label == label) {
            return &*it;
        }
    }
    return nullptr;
}

Status ControlFlow::EmitJump(const Inst& inst, const Jump& jump) {
    ir::Op op = ir::Op::kExit;
    const ir::InstId parent = kernel_.block(builder_.block()).parent;
    switch (jump.kind) {
        case Jump::Kind::kMerge:
            if (parent == jump.construct && kernel_.inst(parent).op != ir::Op::kLoop) {
                op = ir::Op::kYield;
            }
            break;
        case Jump::Kind::kContinue:
            op = ir::Op::kContinue;
            break;
        case Jump::Kind::kNext:
            if (parent != jump.construct) {
                return Unsupported(inst, "branches back to a loop header from inside a selection");
            }
            op = ir::Op::kNext;
            break;
    }
    ir::InstId exit = builder_.Append(op, {}, {});
    if (op == ir::Op::kExit || op == ir::Op::kContinue) {
        kernel_.inst(exit).target = jump.construct;
    }
    return OkStatus();
}

// A block may be translated several times, but not on its own path, which would never end, and not
// so often that a small module takes long.
Status ControlFlow::CountRepeat(uint32_t label, const Block& block) {
    if (code_.frame->translated.insert(label).second) {
        return OkStatus();
    }
    if (code_.frame->on_path.contains(label)) {
        return Error{ErrorCode::kInvalidArgument, "Control flow comes back to block " +
                                                      std::to_string(label) +
                                                      ", which is no loop header."};
    }
    repeated_instructions_ += block.end - block.first;
    if (repeated_instructions_ > kReaderLimits.repeated_instructions) {
        return Error{ErrorCode::kUnsupported,
                     "The shader's control flow is not structured: blocks that several others lead "
                     "to come to more than the limit of " +
                         std::to_string(kReaderLimits.repeated_instructions) + " instructions."};
    }
    return OkStatus();
}

Status ControlFlow::From(uint32_t from, uint32_t label) {
    const size_t path_length = code_.frame->path.size();
    if (++nesting_ > kReaderLimits.nesting) {
        return Error{ErrorCode::kUnsupported,
                     "The shader nests control flow deeper than the limit of " +
                         std::to_string(kReaderLimits.nesting) + "."};
    }
    while (label != 0) {
        FORNAX_RETURN_IF_ERROR(StorePhis(from, label));
        const Block& block = code_.frame->function->blocks.at(label);
        if (block.first >= block.end) {
            return Error{ErrorCode::kInvalidArgument,
                         "Block " + std::to_string(label) + " is empty."};
        }
        if (const Jump* jump = FindJump(label)) {
            FORNAX_RETURN_IF_ERROR(EmitJump(module_.insts()[block.first], *jump));
            break;
        }
        FORNAX_RETURN_IF_ERROR(CountRepeat(label, block));
        code_.frame->path.push_back(label);
        code_.frame->on_path.insert(label);
        // Instructions are bounded; blocks without any are here.
        if (++walked_blocks_ > kReaderLimits.instructions) {
            return Error{ErrorCode::kUnsupported,
                         "The shader's control flow is beyond the limit of " +
                             std::to_string(kReaderLimits.instructions) + " blocks."};
        }
        const Inst* merge = nullptr;
        for (uint32_t i = block.first; i < block.end; ++i) {
            if (module_.insts()[i].op == Op::OpLoopMerge) {
                merge = &module_.insts()[i];
            }
        }
        uint32_t next = 0;
        uint32_t next_from = 0;
        if (merge) {
            FORNAX_RETURN_IF_ERROR(Loop(label, block, *merge, next));
        } else {
            FORNAX_RETURN_IF_ERROR(Contents(label, block, next, next_from));
        }
        from = next_from;
        label = next;
    }
    while (code_.frame->path.size() > path_length) {
        code_.frame->on_path.erase(code_.frame->path.back());
        code_.frame->path.pop_back();
    }
    --nesting_;
    return OkStatus();
}

Status ControlFlow::Side(ir::BlockId block, uint32_t from, uint32_t label) {
    const ir::BlockId before = builder_.block();
    builder_.SetBlock(block);
    FORNAX_RETURN_IF_ERROR(From(from, label));
    if (!builder_.Terminated()) {
        builder_.Append(ir::Op::kUnreachable, {}, {});
    }
    builder_.SetBlock(before);
    return OkStatus();
}

Status ControlFlow::Loop(uint32_t header, const Block& block, const Inst& merge, uint32_t& next) {
    const uint32_t merge_label = merge[0];
    const uint32_t continue_label = merge[1];
    const ir::InstId loop = builder_.Append(ir::Op::kLoop, {}, {});
    kernel_.inst(loop).flags = static_cast<uint8_t>(((merge[2] & 1) ? ir::kUnrollHint : 0) |
                                                    ((merge[2] & 2) ? ir::kDontUnrollHint : 0));
    const ir::BlockId body = NewChild(loop);
    const ir::BlockId continuing = NewChild(loop);
    kernel_.inst(loop).blocks = {body, continuing};
    const ir::BlockId before = builder_.block();

    jumps_.push_back({merge_label, Jump::Kind::kMerge, loop});
    jumps_.push_back({continue_label, Jump::Kind::kContinue, loop});
    builder_.SetBlock(body);
    uint32_t body_next = 0;
    uint32_t body_from = 0;
    FORNAX_RETURN_IF_ERROR(Contents(header, block, body_next, body_from));
    if (body_next != 0) {
        FORNAX_RETURN_IF_ERROR(From(body_from, body_next));
    }
    if (!builder_.Terminated()) {
        builder_.Append(ir::Op::kUnreachable, {}, {});
    }

    jumps_.back() = {header, Jump::Kind::kNext, loop};
    builder_.SetBlock(continuing);
    if (continue_label != header) {
        FORNAX_RETURN_IF_ERROR(From(0, continue_label));
    }
    // A loop of one block, or a continue target that never comes back.
    if (!builder_.Terminated()) {
        builder_.Append(ir::Op::kNext, {}, {});
    }
    jumps_.pop_back();
    jumps_.pop_back();
    builder_.SetBlock(before);
    next = merge_label;
    return OkStatus();
}

Status ControlFlow::Contents(uint32_t label, const Block& block, uint32_t& next, uint32_t& from) {
    FORNAX_RETURN_IF_ERROR(LoadPhis(block));
    uint32_t merge = 0;
    for (uint32_t i = block.first; i < block.end; ++i) {
        const Inst& inst = module_.insts()[i];
        switch (inst.op) {
            case Op::OpPhi:
            case Op::OpLoopMerge:
                continue;
            case Op::OpSelectionMerge:
                merge = inst[0];
                continue;
            case Op::OpBranch:
            case Op::OpBranchConditional:
            case Op::OpSwitch:
                builder_.SetOrigin(inst.offset);
                return Branch(inst, label, merge, next, from);
            case Op::OpReturn:
            case Op::OpReturnValue:
                return Return(inst);
            case Op::OpUnreachable:
                builder_.Append(ir::Op::kUnreachable, {}, {});
                return OkStatus();
            default:
                FORNAX_RETURN_IF_ERROR(translator_.Instruction(inst));
        }
    }
    return Error{ErrorCode::kInvalidArgument, "Block " + std::to_string(label) + " has no end."};
}

Status ControlFlow::Branch(const Inst& inst,
                           uint32_t label,
                           uint32_t merge,
                           uint32_t& next,
                           uint32_t& from) {
    if (inst.op == Op::OpBranchConditional) {
        return Conditional(inst, label, merge, next, from);
    }
    if (inst.op == Op::OpSwitch) {
        return Switch(inst, label, merge, next, from);
    }
    next = inst[0];
    from = label;
    return OkStatus();
}

Status ControlFlow::Conditional(const Inst& inst,
                                uint32_t label,
                                uint32_t merge,
                                uint32_t& next,
                                uint32_t& from) {
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId condition, values_.UseScalar(inst, inst[0]));
    if (kernel_.type(condition) != ir::Type::kBool) {
        return Invalid(inst, "has a condition that is no boolean");
    }
    const uint32_t then_label = inst[1];
    const uint32_t else_label = inst[2];
    if (then_label == else_label && merge == 0) {
        next = then_label;
        from = label;
        return OkStatus();
    }
    const ir::InstId branch = builder_.Append(ir::Op::kIf, {&condition, 1}, {});
    const ir::BlockId then_block = NewChild(branch);
    const ir::BlockId else_block = NewChild(branch);
    kernel_.inst(branch).blocks = {then_block, else_block};
    if (merge != 0) {
        jumps_.push_back({merge, Jump::Kind::kMerge, branch});
        FORNAX_RETURN_IF_ERROR(Side(then_block, label, then_label));
        FORNAX_RETURN_IF_ERROR(Side(else_block, label, else_label));
        jumps_.pop_back();
        next = merge;
        return OkStatus();
    }
    // Without a merge, one side leaves a construct around and the other goes on here. A loop's back
    // edge can only be taken here.
    const Jump* then_jump = FindJump(then_label);
    const Jump* else_jump = FindJump(else_label);
    const bool then_leaves =
        then_jump && (then_jump->kind != Jump::Kind::kNext || then_label == else_label);
    const bool else_leaves = else_jump && else_jump->kind != Jump::Kind::kNext;
    if (then_leaves || else_leaves) {
        FORNAX_RETURN_IF_ERROR(Side(then_leaves ? then_block : else_block, label,
                                    then_leaves ? then_label : else_label));
        const ir::BlockId before = builder_.block();
        builder_.SetBlock(then_leaves ? else_block : then_block);
        builder_.Append(ir::Op::kYield, {}, {});
        builder_.SetBlock(before);
        next = then_leaves ? else_label : then_label;
        from = label;
        return OkStatus();
    }
    // Neither leaves at once: both sides run to their ends.
    FORNAX_RETURN_IF_ERROR(Side(then_block, label, then_label));
    FORNAX_RETURN_IF_ERROR(Side(else_block, label, else_label));
    builder_.Append(ir::Op::kUnreachable, {}, {});
    return OkStatus();
}

Status ControlFlow::Switch(const Inst& inst,
                           uint32_t label,
                           uint32_t merge,
                           uint32_t& next,
                           uint32_t& from) {
    if (merge == 0) {
        return Unsupported(inst, "has no merge block");
    }
    FORNAX_ASSIGN_OR_RETURN(ir::ValueId selector, values_.UseScalar(inst, inst[0]));
    const ir::Type type = kernel_.type(selector);
    if (!ir::IsInteger(type)) {
        return Invalid(inst, "has a selector that is no integer");
    }
    const uint32_t default_label = inst[1];
    const uint32_t words = ir::BitWidth(type) > 32 ? 2 : 1;
    const uint32_t bits = ir::BitWidth(type);

    // Several literals of one target become one of them; those of the default's need no case.
    std::vector<std::pair<uint32_t, uint64_t>> cases;  // label, literal
    std::unordered_map<uint32_t, uint64_t> first_literal;
    for (size_t i = 2; i + words < inst.size(); i += words + 1) {
        uint64_t literal = inst[i];
        if (words == 2) {
            literal |= uint64_t{inst[i + 1]} << 32;
        }
        if (bits < 64) {
            literal &= (uint64_t{1} << bits) - 1;
        }
        const uint32_t target = inst[i + words];
        if (target == default_label) {
            continue;
        }
        auto [it, inserted] = first_literal.try_emplace(target, literal);
        if (inserted) {
            cases.push_back({target, literal});
            continue;
        }
        const ir::ValueId matches =
            Emit(ir::Op::kIEq, ir::Type::kBool, {selector, builder_.Const(type, literal)});
        selector =
            Emit(ir::Op::kSelect, type, {matches, builder_.Const(type, it->second), selector});
    }
    const ir::InstId construct = builder_.Append(ir::Op::kSwitch, {&selector, 1}, {});
    std::vector<ir::BlockId> blocks = {NewChild(construct)};
    std::vector<uint64_t> literals;
    for (auto [target, literal] : cases) {
        blocks.push_back(NewChild(construct));
        literals.push_back(literal);
    }
    kernel_.inst(construct).blocks = blocks;
    kernel_.inst(construct).case_values = literals;
    jumps_.push_back({merge, Jump::Kind::kMerge, construct});
    FORNAX_RETURN_IF_ERROR(Side(blocks[0], label, default_label));
    for (size_t i = 0; i < cases.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(Side(blocks[i + 1], label, cases[i].first));
    }
    jumps_.pop_back();
    next = merge;
    from = 0;
    return OkStatus();
}

Status ControlFlow::Return(const Inst& inst) {
    if (!code_.frame->return_scope.valid()) {
        builder_.Append(ir::Op::kReturn, {}, {});
        return OkStatus();
    }
    if (inst.op == Op::OpReturnValue && code_.frame->return_place) {
        FORNAX_RETURN_IF_ERROR(large_.StoreValue(inst, *code_.frame->return_place, inst[0]));
    } else if (inst.op == Op::OpReturnValue) {
        FORNAX_ASSIGN_OR_RETURN(Tuple value, values_.UseParts(inst, inst[0]));
        if (value.size() != code_.frame->return_locals.size()) {
            return Invalid(inst, "returns a value of another type than its function's");
        }
        for (size_t i = 0; i < value.size(); ++i) {
            if (kernel_.locals[code_.frame->return_locals[i]].type != kernel_.type(value[i])) {
                return Invalid(inst, "returns a value of another type than its function's");
            }
            StoreLocal(code_.frame->return_locals[i], value[i]);
        }
    }
    return EmitJump(inst, {0, Jump::Kind::kMerge, code_.frame->return_scope});
}

Status ControlFlow::Call(const Inst& inst) {
    const Function* function = module_.FindFunction(inst[0]);
    if (!function || function->entry_label == 0) {
        return Invalid(
            inst, "calls id " + std::to_string(inst[0]) + ", which is no function with a body");
    }
    if (function->params.size() != inst.size() - 1) {
        return Invalid(inst, "has another number of arguments than its function");
    }
    if (std::ranges::count(code_.call_stack, function->id)) {
        return Invalid(inst, "makes a function call itself");
    }
    if (code_.call_stack.size() >= kReaderLimits.nesting) {
        return Unsupported(
            inst, "nests calls deeper than the limit of " + std::to_string(kReaderLimits.nesting));
    }
    FORNAX_ASSIGN_OR_RETURN(const Type* result, TypeOf(inst, inst.type));

    Frame callee;
    callee.function = function;
    std::vector<Value> arguments;
    for (size_t i = 0; i < function->params.size(); ++i) {
        FORNAX_ASSIGN_OR_RETURN(Value argument, values_.Use(inst, inst[i + 1]));
        arguments.push_back(std::move(argument));
    }
    const ir::InstId scope = builder_.Append(ir::Op::kScope, {}, {});
    const ir::BlockId before = builder_.block();
    const ir::BlockId body = NewChild(scope);
    kernel_.inst(scope).blocks = {body};
    callee.return_scope = scope;
    if (result->kind != Type::Kind::kVoid) {
        if (result->kind == Type::Kind::kPointer && result->scalars == 0) {
            return Unsupported(inst,
                               "calls a function that returns a pointer to memory whose "
                               "pointers cannot be values");
        }
        FORNAX_RETURN_IF_ERROR(CheckComposite(inst, *result));
        std::vector<ir::Type> scalar_types;
        if (large_.IsLarge(*result)) {
            FORNAX_ASSIGN_OR_RETURN(callee.return_place, large_.NewLargePlace(inst, *result));
        } else {
            types_.Flatten(*result, scalar_types);
        }
        for (ir::Type scalar : scalar_types) {
            callee.return_locals.push_back(NewLocal(scalar));
        }
    }
    builder_.SetBlock(body);
    for (size_t i = 0; i < arguments.size(); ++i) {
        arguments[i].block = body;
        callee.values[function->params[i]] = std::move(arguments[i]);
    }
    // The callee sees no construct of its caller.
    std::vector<Jump> jumps;
    std::swap(jumps, jumps_);
    Frame* caller = code_.frame;
    code_.frame = &callee;
    code_.call_stack.push_back(function->id);
    Status status = From(0, function->entry_label);
    code_.call_stack.pop_back();
    code_.frame = caller;
    large_.FreeLargePlaces(callee);
    std::swap(jumps, jumps_);
    FORNAX_RETURN_IF_ERROR(std::move(status));
    if (!builder_.Terminated()) {
        builder_.Append(ir::Op::kUnreachable, {}, {});
    }
    builder_.SetBlock(before);
    if (result->kind == Type::Kind::kVoid) {
        return OkStatus();
    }
    if (callee.return_place) {
        return values_.DefineLarge(inst, std::move(*callee.return_place));
    }
    Tuple tuple;
    for (uint32_t local : callee.return_locals) {
        tuple.push_back(LoadLocal(local));
    }
    return values_.Define(inst, std::move(tuple));
}

Status ControlFlow::ControlBarrier(const Inst& inst) {
    FORNAX_ASSIGN_OR_RETURN(uint64_t scope, constants_.Integer(inst, inst[0]));
    switch (static_cast<spv::Scope>(scope)) {
        case spv::Scope::Workgroup:
            builder_.Append(ir::Op::kBarrier, {}, {});
            return OkStatus();
        case spv::Scope::Subgroup:
            code_.sees_subgroups = true;
            builder_.Append(ir::Op::kSubgroupBarrier, {}, {});
            return OkStatus();
        default:
            return Unsupported(inst, "has the execution scope " + std::to_string(scope) +
                                         "; workgroup and subgroup are supported");
    }
}

Status ControlFlow::MemoryBarrier(const Inst&) {
    builder_.Append(ir::Op::kMemoryBarrier, {}, {});
    return OkStatus();
}

}  // namespace fornax::kernel::spirv
