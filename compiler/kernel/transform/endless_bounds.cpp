// Loops that are bounded by a counter of 64 bits, which no run reaches, lose the test of it.
//
// naga, the shader compiler of wgpu, gives each loop a variable of two words that begin as all
// ones, counts them down by one an iteration and leaves the loop when both are 0, so that no loop
// of a page is endless. The second exit keeps trip counts from being known, carries two values
// through all loops around, and parts the invocations before barriers. 2^64 iterations take
// centuries, so the test is false.
#include <array>
#include <map>

#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

class EndlessBounds {
  public:
    explicit EndlessBounds(Kernel& kernel)
        : kernel_(kernel), structure_(kernel), counters_(kernel.locals.size()) {}

    void Run() {
        for (size_t i = 0; i < counters_.size(); ++i) {
            const Local& local = kernel_.locals[i];
            counters_[i].possible = local.type == Type::kI32 && local.count == 2;
        }
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op == Op::kStoreLocal || inst.op == Op::kLoadLocal) {
                Counter& counter = counters_[inst.imm];
                counter.possible =
                    counter.possible &&
                    (inst.op == Op::kLoadLocal ? AddLoad(id, inst) : AddStore(id, inst));
            }
        }
        bool any = false;
        for (InstId id : structure_.preorder) {
            if (Instruction& inst = kernel_.inst(id); IsEnd(inst)) {
                inst.op = Op::kConst;
                inst.imm = 0;
                inst.operands.clear();
                any = true;
            }
        }
        if (any) {
            EliminateDeadCode(kernel_);
        }
    }

  private:
    struct Counter {
        bool possible = false;
        BlockId block;  // where it begins; everything else is in there
        std::array<bool, 2> begun = {};
        // Stores and what is loaded in between: both words are read, then both are written.
        uint32_t state = 0;
        uint32_t stored = 0;  // bits of the words that the state's successor has so far
        BlockId stored_in;
        int low = -1;  // which of the words counts iterations
    };

    struct Word {
        size_t local;
        uint64_t element;
        uint32_t state;
        BlockId block;
    };

    bool IsInside(BlockId block, BlockId outer) const {
        while (block.valid() && block != outer) {
            const InstId parent = kernel_.block(block).parent;
            block = parent.valid() ? structure_.block_of[parent.value()] : BlockId{};
        }
        return block.valid();
    }

    bool AddLoad(InstId id, const Instruction& inst) {
        const Counter& counter = counters_[inst.imm];
        const BlockId block = structure_.block_of[id.value()];
        uint64_t element = 0;
        if (!kernel_.IsConst(inst.operands[0], &element) || element > 1 || !counter.begun[0] ||
            !counter.begun[1] || counter.stored != 0 || !IsInside(block, counter.block)) {
            return false;
        }
        words_[inst.results[0].value()] = {inst.imm, element, counter.state, block};
        return true;
    }

    bool AddStore(InstId id, const Instruction& inst) {
        Counter& counter = counters_[inst.imm];
        const BlockId block = structure_.block_of[id.value()];
        uint64_t element = 0, bits = 0;
        if (!kernel_.IsConst(inst.operands[0], &element) || element > 1) {
            return false;
        }
        if (!counter.begun[element]) {
            const bool other = counter.begun[1 - element];
            counter.begun[element] = true;
            counter.block = block;
            return (!other || counter.block == block) && kernel_.IsConst(inst.operands[1], &bits) &&
                   bits == UINT32_MAX;
        }
        if (!counter.begun[1 - element] || !IsCountedDown(inst, element, block)) {
            return false;
        }
        // No load and no other block may come between the two stores.
        if ((counter.stored & 1u << element) != 0 ||
            (counter.stored != 0 && counter.stored_in != block)) {
            return false;
        }
        counter.stored_in = block;
        counter.stored |= 1u << element;
        if (counter.stored == 3) {
            counter.stored = 0;
            ++counter.state;
        }
        return true;
    }

    // The word that a value was loaded from.
    const Word* WordOf(ValueId value) const {
        const auto found = words_.find(value.value());
        return found == words_.end() ? nullptr : &found->second;
    }

    // The word of this state that the value was loaded from, in the block of what is done with it.
    bool IsWord(ValueId value, size_t local, uint64_t element, BlockId block) const {
        const Word* word = WordOf(value);
        return word != nullptr && word->local == local && word->element == element &&
               word->state == counters_[local].state && word->block == block;
    }

    // `word == 0`: the word's value, else an invalid id.
    ValueId ComparedWithZero(ValueId condition) const {
        const Instruction* test = kernel_.Definition(condition);
        if (test == nullptr || test->op != Op::kIEq) {
            return {};
        }
        for (size_t side = 0; side < 2; ++side) {
            uint64_t bits = 1;
            if (kernel_.IsConst(test->operands[side], &bits) && bits == 0) {
                return test->operands[1 - side];
            }
        }
        return {};
    }

    // The low word minus 1, or the high one minus (the low one is 0 ? 1 : 0).
    bool IsCountedDown(const Instruction& store, uint64_t element, BlockId block) {
        const size_t local = store.imm;
        Counter& counter = counters_[local];
        const Instruction* next = kernel_.Definition(store.operands[1]);
        if (next == nullptr || next->op != Op::kISub ||
            !IsWord(next->operands[0], local, element, block)) {
            return false;
        }
        uint64_t step = 0;
        const bool is_low = kernel_.IsConst(next->operands[1], &step);
        const int low = static_cast<int>(is_low ? element : 1 - element);
        if (counter.low >= 0 && counter.low != low) {
            return false;
        }
        counter.low = low;
        if (is_low) {
            return step == 1;
        }
        const Instruction* borrow = kernel_.Definition(next->operands[1]);
        uint64_t one = 0, zero = 1;
        if (borrow == nullptr || borrow->op != Op::kSelect ||
            !kernel_.IsConst(borrow->operands[1], &one) || one != 1 ||
            !kernel_.IsConst(borrow->operands[2], &zero) || zero != 0) {
            return false;
        }
        const ValueId compared = ComparedWithZero(borrow->operands[0]);
        return compared.valid() && IsWord(compared, local, 1 - element, block);
    }

    // Both words of a counter, as they are at one time, are 0.
    bool IsEnd(const Instruction& inst) const {
        if (inst.op != Op::kAnd || kernel_.type(inst.results[0]) != Type::kBool) {
            return false;
        }
        std::array<const Word*, 2> words = {};
        for (size_t side = 0; side < 2; ++side) {
            const ValueId compared = ComparedWithZero(inst.operands[side]);
            words[side] = compared.valid() ? WordOf(compared) : nullptr;
            if (words[side] == nullptr) {
                return false;
            }
        }
        const Word &first = *words[0], &second = *words[1];
        return first.local == second.local && first.element != second.element &&
               first.state == second.state && first.block == second.block &&
               counters_[first.local].possible && counters_[first.local].stored == 0;
    }

    Kernel& kernel_;
    Structure structure_;
    std::vector<Counter> counters_;   // by local
    std::map<uint32_t, Word> words_;  // by loaded value
};

}  // namespace

void RemoveEndlessBounds(Kernel& kernel) {
    if (!kernel.locals.empty()) {
        EndlessBounds(kernel).Run();
    }
}

}  // namespace fornax::kernel
