#include "compiler/kernel/transform/clone.h"

#include <algorithm>

namespace fornax::kernel {

using namespace ir;

void Cloner::CloneInto(BlockId from, BlockId to, bool with_terminator, size_t first) {
    const std::vector<InstId> insts = kernel_.block(from).insts;
    const size_t end = with_terminator ? insts.size() : insts.size() - 1;
    for (size_t i = first; i < end; ++i) {
        CloneOne(insts[i], to);
    }
}

InstId Cloner::CloneOne(InstId id, BlockId to) {
    InstId copy = Clone(id);
    kernel_.block(to).insts.push_back(copy);
    return copy;
}

const Cloner::LoopTargets* Cloner::Mapped(InstId loop) const {
    auto found = std::find_if(loops_.rbegin(), loops_.rend(),
                              [&](const LoopTargets& one) { return one.loop == loop; });
    return loop.valid() && found != loops_.rend() ? &*found : nullptr;
}

InstId Cloner::Clone(InstId id) {
    const Instruction original = kernel_.inst(id);
    std::vector<ValueId> operands;
    operands.reserve(original.operands.size());
    for (ValueId operand : original.operands) {
        operands.push_back(Value(operand));
    }
    std::vector<Type> types;
    for (ValueId result : original.results) {
        types.push_back(kernel_.type(result));
    }
    InstId copy_id = kernel_.NewInst(original.op, operands, types);
    Instruction& copy = kernel_.inst(copy_id);
    copy.flags = original.flags;
    copy.imm = original.imm;
    copy.case_values = original.case_values;
    copy.origin = original.origin;
    const LoopTargets* mapped = Mapped(original.target);
    if (mapped && original.op == Op::kContinue) {
        copy.op = Op::kExit;
        copy.target = mapped->continue_to;
    } else if (mapped) {
        copy.target = mapped->exit_to;
    } else if (original.target.valid()) {
        copy.target = Target(original.target);
    }
    if (!original.blocks.empty()) {
        if (insts_.size() <= id.value()) {
            insts_.resize(kernel_.num_insts());
        }
        insts_[id.value()] = copy_id;
    }
    for (BlockId block : original.blocks) {
        BlockId copy_block = kernel_.NewBlock(copy_id);
        kernel_.inst(copy_id).blocks.push_back(copy_block);
        for (ValueId param : std::vector(kernel_.block(block).params)) {
            MapValue(param, kernel_.AddParam(copy_block, kernel_.type(param)));
        }
        CloneInto(block, copy_block, true);
    }
    for (size_t i = 0; i < original.results.size(); ++i) {
        MapValue(original.results[i], kernel_.inst(copy_id).results[i]);
    }
    return copy_id;
}

std::vector<InstId> TakeEnd(Kernel& kernel, BlockId block, size_t at) {
    std::vector<InstId>& insts = kernel.block(block).insts;
    std::vector<InstId> end(insts.begin() + static_cast<ptrdiff_t>(at), insts.end());
    insts.resize(at);
    return end;
}

InstId AppendForms(Kernel& kernel,
                   BlockId block,
                   std::vector<InstId> end,
                   const SecondForm& form,
                   Cloner& cloner) {
    const InstId terminator = end.back();
    end.pop_back();
    std::vector<bool> inside(kernel.num_values());
    for (InstId id : end) {
        for (ValueId result : kernel.inst(id).results) {
            inside[result.value()] = true;
        }
    }
    std::vector<ValueId> given;
    std::vector<Type> types;
    for (ValueId operand : kernel.inst(terminator).operands) {
        if (inside[operand.value()] && std::ranges::find(given, operand) == given.end()) {
            given.push_back(operand);
            types.push_back(kernel.type(operand));
        }
    }

    const InstId branch = kernel.NewInst(Op::kIf, {&form.condition, 1}, types);
    const BlockId yes = kernel.NewBlock(branch);
    const BlockId no = kernel.NewBlock(branch);
    kernel.inst(branch).blocks = {yes, no};
    const BlockId copy = form.copy_if ? yes : no;
    for (size_t i = form.copied_from; i < end.size(); ++i) {
        cloner.CloneOne(end[i], copy);
    }
    std::vector<ValueId> copied;
    for (ValueId value : given) {
        copied.push_back(cloner.Value(value));
    }
    kernel.block(copy).insts.push_back(kernel.NewInst(Op::kYield, copied, {}));
    end.push_back(kernel.NewInst(Op::kYield, given, {}));
    kernel.block(form.copy_if ? no : yes).insts = std::move(end);

    for (ValueId& operand : kernel.inst(terminator).operands) {
        const auto found = std::ranges::find(given, operand);
        if (found != given.end()) {
            operand = kernel.inst(branch).results[static_cast<size_t>(found - given.begin())];
        }
    }
    std::vector<InstId>& insts = kernel.block(block).insts;
    insts.insert(insts.end(), {branch, terminator});
    return branch;
}

}  // namespace fornax::kernel
