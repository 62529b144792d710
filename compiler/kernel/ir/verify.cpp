// The verifier of the kernel IR: what every pass may rely on. Checks each instruction's signature
// (signature.h), the scoping of values, and the structure of the construct tree. It survives any
// contents of the vectors, ids out of range included.
#include <algorithm>
#include <bit>

#include "compiler/kernel/ir/signature.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel::ir {

namespace {

class Verifier {
  public:
    explicit Verifier(const Kernel& kernel)
        : kernel_(kernel),
          visible_(kernel.num_values()),
          seen_insts_(kernel.num_insts()),
          seen_blocks_(kernel.num_blocks()),
          open_(kernel.num_insts(), Open::kNo) {}

    Status Run() {
        std::string fault = Ranges();
        if (fault.empty()) {
            fault = Header();
        }
        if (fault.empty()) {
            fault = VerifyBlock(kernel_.body, InstId{}, 0);
        }
        if (fault.empty()) {
            return OkStatus();
        }
        return Error{ErrorCode::kInvalidArgument,
                     "The kernel IR of '" + kernel_.name + "' is malformed: " + fault + "."};
    }

  private:
    // Where the walk is inside a construct.
    enum class Open : uint8_t { kNo, kInside, kInContinuing };

    std::string At(InstId id, const std::string& fault) const {
        return "instruction " + std::to_string(id.value()) + " (" +
               InfoOf(kernel_.inst(id).op).text + "): " + fault;
    }

    // Everything below may follow ids without another look.
    std::string Ranges() const {
        auto values_in_range = [&](const std::vector<ValueId>& ids) {
            return std::ranges::all_of(
                ids, [&](ValueId id) { return id.value() < kernel_.num_values(); });
        };
        for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
            const Instruction& inst = kernel_.inst(InstId{i});
            bool blocks_in_range = std::ranges::all_of(
                inst.blocks, [&](BlockId id) { return id.value() < kernel_.num_blocks(); });
            if (!values_in_range(inst.operands) || !values_in_range(inst.results) ||
                !blocks_in_range) {
                return At(InstId{i}, "it holds an id that is out of range");
            }
        }
        for (uint32_t i = 0; i < kernel_.num_blocks(); ++i) {
            const Block& block = kernel_.block(BlockId{i});
            bool insts_in_range = std::ranges::all_of(
                block.insts, [&](InstId id) { return id.value() < kernel_.num_insts(); });
            if (!values_in_range(block.params) || !insts_in_range) {
                return "block " + std::to_string(i) + " holds an id that is out of range";
            }
        }
        return kernel_.body.value() < kernel_.num_blocks() ? "" : "the kernel has no body";
    }

    std::string Header() const {
        uint64_t invocations = 1;
        for (uint32_t size : kernel_.workgroup_size) {
            if (size == 0 || size > 65536 || (invocations *= size) > 65536) {
                return "the workgroup size must be from 1 to 65536 invocations";
            }
        }
        if (!std::has_single_bit(kernel_.subgroup_size) ||
            kernel_.subgroup_size > kMaxSubgroupSize) {
            return "the subgroup size " + std::to_string(kernel_.subgroup_size) +
                   " must be a power of two up to " + std::to_string(kMaxSubgroupSize);
        }
        uint64_t local_bytes = 0;
        for (const Local& local : kernel_.locals) {
            if (ByteSize(local.type) == 0 || local.count == 0) {
                return "a local must have at least one element of a type of memory";
            }
            local_bytes += uint64_t{ByteSize(local.type)} * local.count;
            if (local_bytes > kMaxLocalBytes) {
                return "the locals take more than " + std::to_string(kMaxLocalBytes) + " bytes";
            }
        }
        return "";
    }

    std::string CheckDefinitions(std::span<const ValueId> ids, InstId inst, BlockId block) const {
        for (size_t i = 0; i < ids.size(); ++i) {
            const Value& value = kernel_.value(ids[i]);
            if (value.inst != inst || value.block != block || value.position != i) {
                return "value " + std::to_string(ids[i].value()) + " does not name its definition";
            }
        }
        return "";
    }

    void Define(std::span<const ValueId> ids) {
        for (ValueId id : ids) {
            visible_[id.value()] = true;
            scope_.push_back(id);
        }
    }
    void CloseScope(size_t mark) {
        for (; scope_.size() > mark; scope_.pop_back()) {
            visible_[scope_.back().value()] = false;
        }
    }

    // The values' types are those that the construct or block takes.
    std::string CheckTypes(std::span<const ValueId> given, std::span<const ValueId> taken) const {
        if (given.size() != taken.size()) {
            return "it gives " + std::to_string(given.size()) + " values where " +
                   std::to_string(taken.size()) + " are taken";
        }
        for (size_t i = 0; i < given.size(); ++i) {
            if (kernel_.type(given[i]) != kernel_.type(taken[i])) {
                return "value " + std::to_string(i) + " must be " +
                       TypeName(kernel_.type(taken[i])) + ", not " +
                       TypeName(kernel_.type(given[i]));
            }
        }
        return "";
    }

    std::string VerifyBlock(BlockId id, InstId parent, uint32_t depth) {
        if (depth > kMaxNesting) {
            return "constructs are nested more than " + std::to_string(kMaxNesting) +
                   " levels deep";
        }
        if (seen_blocks_[id.value()]) {
            return "block " + std::to_string(id.value()) + " is used twice";
        }
        seen_blocks_[id.value()] = true;
        const Block& block = kernel_.block(id);
        if (block.parent != parent) {
            return "block " + std::to_string(id.value()) + " does not name its construct";
        }
        bool may_have_params = parent.valid() && kernel_.inst(parent).op == Op::kLoop;
        if (!block.params.empty() && !may_have_params) {
            return "block " + std::to_string(id.value()) +
                   " has parameters, which only loops may have";
        }
        if (auto fault = CheckDefinitions(block.params, InstId{}, id); !fault.empty()) {
            return fault;
        }
        for (ValueId param : block.params) {
            if (BitWidth(kernel_.type(param)) == 0) {
                return "a parameter must be a bool, an integer or a float";
            }
        }
        size_t mark = scope_.size();
        Define(block.params);
        if (block.insts.empty()) {
            return "block " + std::to_string(id.value()) + " is empty and has no terminator";
        }
        for (size_t i = 0; i < block.insts.size(); ++i) {
            InstId inst = block.insts[i];
            bool last = i + 1 == block.insts.size();
            if (auto fault = VerifyInst(inst, id, last, depth); !fault.empty()) {
                return fault;
            }
        }
        bool continuing = may_have_params && kernel_.inst(parent).blocks[1] == id;
        if (continuing && kernel_.inst(block.insts.back()).op != Op::kNext) {
            return At(block.insts.back(), "a continuing block must end with next");
        }
        CloseScope(mark);
        return "";
    }

    std::string VerifyInst(InstId id, BlockId block, bool last, uint32_t depth) {
        const Instruction& inst = kernel_.inst(id);
        if (seen_insts_[id.value()]) {
            return At(id, "it is used twice");
        }
        seen_insts_[id.value()] = true;
        const OpInfo& info = InfoOf(inst.op);
        if (HasProperty(inst.op, kTerminator) != last) {
            return At(id, last ? "the block must end with a terminator"
                               : "a terminator may only end a block");
        }
        if (info.operands != kVariadic && inst.operands.size() != info.operands) {
            return At(id, "it must have " + std::to_string(info.operands) + " operands, not " +
                              std::to_string(inst.operands.size()));
        }
        if (info.results != kVariadic && inst.results.size() != info.results) {
            return At(id, "it must have " + std::to_string(info.results) + " results, not " +
                              std::to_string(inst.results.size()));
        }
        for (ValueId operand : inst.operands) {
            if (!visible_[operand.value()]) {
                return At(id, "it uses a value that is not defined there");
            }
        }
        if (auto fault = CheckDefinitions(inst.results, id, BlockId{}); !fault.empty()) {
            return At(id, fault);
        }
        std::string fault;
        if (HasProperty(inst.op, kRegions)) {
            fault = VerifyConstruct(id, depth);
        } else if (!inst.blocks.empty()) {
            fault = At(id, "it may not hold blocks");
        } else if (HasProperty(inst.op, kTerminator)) {
            fault = VerifyTerminator(id, block);
        } else if (fault = SignatureFault(kernel_, inst); !fault.empty()) {
            fault = At(id, fault);
        }
        Define(inst.results);
        return fault;
    }

    std::string VerifyConstruct(InstId id, uint32_t depth) {
        const Instruction& inst = kernel_.inst(id);
        for (ValueId result : inst.results) {
            if (BitWidth(kernel_.type(result)) == 0) {
                return At(id, "a result must be a bool, an integer or a float");
            }
        }
        if (auto fault = ConstructFault(inst); !fault.empty()) {
            return At(id, fault);
        }
        for (size_t i = 0; i < inst.blocks.size(); ++i) {
            bool continuing = inst.op == Op::kLoop && i == 1;
            open_[id.value()] = continuing ? Open::kInContinuing : Open::kInside;
            size_t mark = scope_.size();
            if (continuing) {
                Define(kernel_.block(inst.blocks[0]).params);
            }
            if (auto fault = VerifyBlock(inst.blocks[i], id, depth + 1); !fault.empty()) {
                return fault;
            }
            CloseScope(mark);
        }
        open_[id.value()] = Open::kNo;
        return "";
    }

    std::string ConstructFault(const Instruction& inst) const {
        size_t blocks = inst.blocks.size();
        switch (inst.op) {
            case Op::kIf:
                if (blocks != 2) {
                    return "it must have two blocks";
                }
                if (kernel_.type(inst.operands[0]) != Type::kBool) {
                    return "its condition must be bool";
                }
                return "";
            case Op::kSwitch: {
                Type selector = kernel_.type(inst.operands[0]);
                if (!IsInteger(selector)) {
                    return "its selector must be an integer";
                }
                if (blocks == 0 || inst.case_values.size() != blocks - 1) {
                    return "it must have one block for the default and one for each case";
                }
                std::vector<uint64_t> sorted = inst.case_values;
                std::sort(sorted.begin(), sorted.end());
                if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
                    return "two of its cases have one value";
                }
                uint32_t width = BitWidth(selector);
                if (width < 64 && !sorted.empty() && sorted.back() >> width) {
                    return "a case's value exceeds the selector's width";
                }
                return "";
            }
            case Op::kLoop:
                if (blocks != 2) {
                    return "it must have two blocks";
                }
                return CheckTypes(inst.operands, kernel_.block(inst.blocks[0]).params);
            default:
                return blocks == 1 ? "" : "it must have one block";
        }
    }

    std::string VerifyTerminator(InstId id, BlockId block_id) const {
        const Instruction& inst = kernel_.inst(id);
        InstId parent_id = kernel_.block(block_id).parent;
        const Instruction* parent = parent_id.valid() ? &kernel_.inst(parent_id) : nullptr;
        bool has_target = inst.op == Op::kExit || inst.op == Op::kContinue;
        if (has_target && (inst.target.value() >= kernel_.num_insts() ||
                           open_[inst.target.value()] == Open::kNo)) {
            return At(id, "its target does not enclose it");
        }
        std::string fault;
        switch (inst.op) {
            case Op::kYield:
                if (!parent || parent->op == Op::kLoop) {
                    return At(id, "only blocks of if, switch and scope may end with it");
                }
                fault = CheckTypes(inst.operands, parent->results);
                break;
            case Op::kExit:
                fault = CheckTypes(inst.operands, kernel_.inst(inst.target).results);
                break;
            case Op::kContinue: {
                const Instruction& target = kernel_.inst(inst.target);
                if (target.op != Op::kLoop || open_[inst.target.value()] != Open::kInside) {
                    return At(id, "its target must be a loop in whose body it is");
                }
                fault = CheckTypes(inst.operands, kernel_.block(target.blocks[1]).params);
                break;
            }
            case Op::kNext:
                if (!parent || parent->op != Op::kLoop || parent->blocks[1] != block_id) {
                    return At(id, "only continuing blocks of loops may end with it");
                }
                fault = CheckTypes(inst.operands, kernel_.block(parent->blocks[0]).params);
                break;
            default:
                break;
        }
        return fault.empty() ? "" : At(id, fault);
    }

    const Kernel& kernel_;
    std::vector<bool> visible_;      // by value
    std::vector<bool> seen_insts_;   // by instruction
    std::vector<bool> seen_blocks_;  // by block
    std::vector<Open> open_;         // by instruction
    std::vector<ValueId> scope_;     // what is visible, innermost last
};

}  // namespace

Status Verify(const Kernel& kernel) {
    return Verifier(kernel).Run();
}

}  // namespace fornax::kernel::ir
