// Private arrays that only ever hold constants become tables of the kernel.
//
// glslang stores a constant array into a private variable right before each place that indexes it.
// If all stores to a variable put constants at constant places, then the loads may read a table
// instead in two cases: all stores stand in one block, before everything that loads; or no two
// stores disagree about an element, and each load stands behind a block's stores to all of them (a
// function that is called twice has its array twice).
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr size_t kMaxTableBytes = 65536;  // of the whole kernel
constexpr size_t kTableAlignment = 16;

class TableMaker {
  public:
    explicit TableMaker(Kernel& kernel)
        : kernel_(kernel), structure_(kernel), tables_(kernel.locals.size()) {}

    void Run() {
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op == Op::kStoreLocal) {
                AddStore(id, inst);
            } else if (inst.op == Op::kLoadLocal) {
                AddLoad(id, inst);
            }
        }
        bool any = false;
        for (size_t i = 0; i < tables_.size(); ++i) {
            any |= Place(i);
        }
        if (!any) {
            return;
        }
        RewriteBlock(kernel_.body);
        kernel_.ReplaceUses(map_);
        EliminateDeadCode(kernel_);  // the stores, now that nothing loads
    }

  private:
    struct Table {
        bool possible = true;
        bool ordered = true;  // the first case
        bool agree = true;    // the second, if `covered` is the size of `stored`
        bool loaded = false;
        BlockId block;  // of the first store
        std::vector<uint8_t> bytes;
        std::set<uint64_t> stored;                         // elements
        std::map<uint32_t, std::set<uint64_t>> stored_in;  // by block
        size_t covered = SIZE_MAX;  // elements that are stored before each load, at least
        size_t offset = SIZE_MAX;   // in the kernel's constant data
    };

    void AddStore(InstId id, const Instruction& inst) {
        Table& table = tables_[inst.imm];
        const Local& local = kernel_.locals[inst.imm];
        uint32_t size = ByteSize(local.type);
        uint64_t element = 0, bits = 0;
        if (local.type == Type::kBool || uint64_t{size} * local.count > kMaxTableBytes ||
            !kernel_.IsConst(inst.operands[0], &element) ||
            !kernel_.IsConst(inst.operands[1], &bits)) {
            table.possible = false;
            return;
        }
        BlockId block = structure_.block_of[id.value()];
        if (!table.block.valid()) {
            table.block = block;
        }
        table.ordered &= !table.loaded && table.block == block;
        table.bytes.resize(size_t{size} * local.count);
        if (element >= local.count) {
            return;
        }
        uint8_t* place = table.bytes.data() + element * size;
        table.agree &= table.stored.insert(element).second || std::memcmp(place, &bits, size) == 0;
        table.stored_in[block.value()].insert(element);
        std::memcpy(place, &bits, size);
    }

    // The preorder puts a load that stands behind the stores, or in a construct behind them, after
    // them; what is left to see is that it is inside of their block.
    void AddLoad(InstId id, const Instruction& inst) {
        Table& table = tables_[inst.imm];
        table.loaded = true;
        bool in_block = false;
        size_t covered = 0;
        BlockId block = structure_.block_of[id.value()];
        while (block.valid()) {
            in_block |= block == table.block;
            if (auto found = table.stored_in.find(block.value()); found != table.stored_in.end()) {
                covered = std::max(covered, found->second.size());
            }
            InstId parent = kernel_.block(block).parent;
            block = parent.valid() ? structure_.block_of[parent.value()] : BlockId{};
        }
        table.ordered &= in_block;
        table.covered = std::min(table.covered, covered);
    }

    // Puts the table into the constant data, unless an equal one is there. False if it stays
    // private.
    bool Place(size_t local) {
        Table& table = tables_[local];
        const bool agree = table.agree && table.covered == table.stored.size();
        if (!table.possible || !(table.ordered || agree) || !table.loaded || table.bytes.empty()) {
            return false;
        }
        auto found = placed_.find(table.bytes);
        if (found == placed_.end()) {
            auto& data = kernel_.constant_data;
            size_t offset = (data.size() + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
            if (offset + table.bytes.size() > kMaxTableBytes) {
                return false;
            }
            data.resize(offset);
            data.insert(data.end(), table.bytes.begin(), table.bytes.end());
            found = placed_.emplace(table.bytes, offset).first;
        }
        table.offset = found->second;
        return true;
    }

    void RewriteBlock(BlockId block) {
        std::vector<InstId> old = std::move(kernel_.block(block).insts);
        kernel_.block(block).insts.clear();
        Builder builder(kernel_, block);
        for (InstId id : old) {
            for (BlockId inner : std::vector(kernel_.inst(id).blocks)) {
                RewriteBlock(inner);
            }
            const Instruction& inst = kernel_.inst(id);
            if (inst.op != Op::kLoadLocal || tables_[inst.imm].offset == SIZE_MAX) {
                kernel_.block(block).insts.push_back(id);
                continue;
            }
            ValueId result = inst.results[0];
            ValueId index = inst.operands[0];
            Type type = kernel_.type(result);
            auto offset = static_cast<uint32_t>(tables_[inst.imm].offset);
            builder.SetOrigin(inst.origin);
            ValueId scaled =
                builder.Emit(Op::kIMul, Type::kI32, {index, builder.ConstI32(ByteSize(type))});
            ValueId at = builder.Emit(Op::kIAdd, Type::kI32, {scaled, builder.ConstI32(offset)});
            ValueId loaded = builder.Emit(Op::kLoadConstant, type, {at}, ByteSize(type));
            map_.resize(kernel_.num_values());
            map_[result.value()] = loaded;
        }
    }

    Kernel& kernel_;
    Structure structure_;
    std::vector<Table> tables_;  // by local
    std::map<std::vector<uint8_t>, size_t> placed_;
    std::vector<ValueId> map_;
};

}  // namespace

void MakeConstantTables(Kernel& kernel) {
    if (!kernel.locals.empty()) {
        TableMaker(kernel).Run();
    }
}

}  // namespace fornax::kernel
