#include "compiler/kernel/cost/add_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/kernel/cost/access_costs.h"
#include "compiler/kernel/cost/operation_kind.h"
#include "compiler/kernel/cost/value_use.h"
#include "compiler/kernel/ir/any_inside.h"
#include "compiler/kernel/ir/matrix.h"
#include "compiler/kernel/transform/structure.h"
#include "compiler/kernel/transform/trip_count.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// A side of a branch with more operations is worth a counter.
constexpr size_t kShortSide = 8;
// Constant trip counts are found by running what is known of a loop so often.
constexpr uint32_t kMostTrips = 4096;

class CostFinder {
  public:
    CostFinder(Kernel& kernel, const SourceNamer& source, std::map<BlockId, CostCount>* blocks)
        : kernel_(kernel),
          source_(source),
          blocks_(blocks),
          structure_(kernel),
          trips_(kernel, structure_),
          use_(FindValueUse(kernel, structure_)),
          accesses_(kernel, use_.varies),
          edges_(kernel.num_insts()) {}

    KernelCost Run() {
        const auto& size = kernel_.workgroup_size;
        cost_.workgroup_invocations = size[0] * size[1] * size[2];
        cost_.subgroup_size = kernel_.subgroup_size;
        cost_.shared_bytes = kernel_.shared_bytes;
        Walk(kernel_.body, {.invocations = 1, .counters = {}});
        accesses_.Finish(cost_.regions);
        std::erase_if(cost_.regions, [](const CostRegion& region) { return region.empty(); });
        InsertCounts();
        cost_.counters = next_counter_;
        return std::move(cost_);
    }

  private:
    // The products of one kind in a block.
    struct Products {
        std::set<uint32_t> a, b;  // first elements
        uint32_t count = 0;
        uint32_t source = kNone;
        uint32_t pass = 0;     // of the last of them
        bool carried = false;  // a loop around carries sums
    };

    // --- counters -------------------------------------------------------------------------------

    // Before the instruction at the position.
    CostCount NewCounter(BlockId block, size_t position) {
        inserted_.push_back({block, position, next_counter_});
        return CostCount::Of(next_counter_++);
    }

    void InsertCounts() {
        // From the back of each block, so that positions hold.
        std::ranges::sort(inserted_, [](const Inserted& a, const Inserted& b) {
            return a.block == b.block ? a.position > b.position : a.block < b.block;
        });
        for (const Inserted& inserted : inserted_) {
            const InstId id = kernel_.NewInst(Op::kCount, {}, {});
            kernel_.inst(id).imm = inserted.counter;
            auto& insts = kernel_.block(inserted.block).insts;
            insts.insert(insts.begin() + static_cast<std::ptrdiff_t>(inserted.position), id);
        }
    }

    size_t RegionOf(const CostCount& count, uint32_t pass) {
        const auto [found, is_new] =
            region_of_.try_emplace(std::pair(count, pass), cost_.regions.size());
        if (is_new) {
            cost_.regions.push_back({.count = count, .pass = pass});
        }
        return found->second;
    }
    size_t RegionOf(const CostCount& count) { return RegionOf(count, pass_); }

    CostCount Sum(const std::vector<InstId>& edges) const {
        CostCount sum;
        for (InstId edge : edges) {
            sum.Add(edges_[edge.value()]);
        }
        return sum;
    }

    // --- the walk -------------------------------------------------------------------------------

    void Walk(BlockId block, CostCount count) {
        if (blocks_ != nullptr) {
            blocks_->emplace(block, count);
        }
        std::map<uint32_t, Products> products;  // by format
        CostCount multiply_count;               // of the last of them
        const size_t number = kernel_.block(block).insts.size();
        for (size_t i = 0; i < number; ++i) {
            const InstId id = kernel_.block(block).insts[i];
            const Instruction& inst = kernel_.inst(id);
            if (HasProperty(inst.op, kTerminator)) {
                edges_[id.value()] = count;
                continue;
            }
            if (inst.blocks.empty()) {
                Account(id, block, count);
                if (inst.op == Op::kMatrixMulAdd) {
                    AddMultiply(inst, products);
                    multiply_count = count;
                }
                continue;
            }
            switch (inst.op) {
                case Op::kIf:
                    WalkIf(id, block, i, count);
                    break;
                case Op::kSwitch:
                    WalkSwitch(id, count);
                    break;
                case Op::kLoop:
                    WalkLoop(id, count);
                    break;
                default:
                    Walk(inst.blocks[0], count);
                    break;
            }
            count = Sum(structure_.Exits(id));
        }
        if (!products.empty()) {
            FinishProducts(block, products, multiply_count);
        }
    }

    const Instruction& Last(BlockId block) const {
        return kernel_.inst(kernel_.block(block).insts.back());
    }
    bool IsOnly(BlockId block) const { return kernel_.block(block).insts.size() == 1; }

    bool IsShortSide(BlockId block) const {
        const auto& insts = kernel_.block(block).insts;
        return insts.size() <= kShortSide && Last(block).op == Op::kYield &&
               std::all_of(insts.begin(), insts.end() - 1,
                           [&](InstId id) { return HasProperty(kernel_.inst(id).op, kPure); });
    }

    // All who come to the loop leave it by one exit, and it is the end of this straight block.
    bool IsOnlyExit(BlockId block) const {
        const Instruction& last = Last(block);
        return last.op == Op::kExit && single_exits_.contains(last.target) &&
               std::ranges::none_of(kernel_.block(block).insts,
                                    [&](InstId id) { return !kernel_.inst(id).blocks.empty(); });
    }

    void WalkIf(InstId id, BlockId parent, size_t position, const CostCount& count) {
        const std::vector<BlockId> sides = kernel_.inst(id).blocks;
        if (IsShortSide(sides[0]) && IsShortSide(sides[1])) {
            Walk(sides[0], count);
            Walk(sides[1], count);
            // Who comes back is counted once.
            edges_[kernel_.block(sides[1]).insts.back().value()] = {};
            if (blocks_ != nullptr) {
                blocks_->erase(sides[0]);
                blocks_->erase(sides[1]);
            }
            return;
        }
        CostCount first;
        if (IsOnlyExit(sides[0])) {
            first = single_exits_.at(Last(sides[0]).target);
        } else if (IsOnlyExit(sides[1])) {
            first = count;
            first.Add(single_exits_.at(Last(sides[1]).target), -1);
        } else {
            // Code looks for sides that only leave, so the count stands elsewhere.
            const bool second_leaves = OnlyLeaves(sides[1]);
            const size_t side =
                OnlyLeaves(sides[0]) || (!second_leaves && IsOnly(sides[0])) ? 1 : 0;
            const bool behind =
                IsOnly(sides[side]) && !OnlyLeaves(sides[side]) && OnlyLeaves(sides[1 - side]);
            const CostCount counted =
                behind ? NewCounter(parent, position + 1) : NewCounter(sides[side], 0);
            first = counted;
            if (side == 1) {
                first = count;
                first.Add(counted, -1);
            }
        }
        CostCount second = count;
        second.Add(first, -1);
        Walk(sides[0], first);
        Walk(sides[1], second);
    }
    bool OnlyLeaves(BlockId block) const { return IsOnly(block) && Last(block).op != Op::kYield; }

    void WalkSwitch(InstId id, const CostCount& count) {
        const std::vector<BlockId> blocks = kernel_.inst(id).blocks;
        CostCount others = count;
        for (size_t i = 1; i < blocks.size(); ++i) {
            const CostCount taken = NewCounter(blocks[i], 0);
            others.Add(taken, -1);
            Walk(blocks[i], taken);
        }
        Walk(blocks[0], others);
    }

    // Whether invocations may leave the construct for somewhere else than its end.
    bool Leaks(InstId construct) const {
        std::set<InstId> inside = {construct};
        const auto leaks = [&](auto& self, BlockId block) -> bool {
            return std::ranges::any_of(kernel_.block(block).insts, [&](InstId id) {
                const Instruction& inst = kernel_.inst(id);
                if (inst.op == Op::kReturn || inst.op == Op::kUnreachable) {
                    return true;
                }
                if (inst.op == Op::kExit || inst.op == Op::kContinue) {
                    return !inside.contains(inst.target);
                }
                inside.insert(id);
                return std::ranges::any_of(inst.blocks,
                                           [&](BlockId inner) { return self(self, inner); });
            });
        };
        return std::ranges::any_of(kernel_.inst(construct).blocks,
                                   [&](BlockId block) { return leaks(leaks, block); });
    }

    void WalkLoop(InstId id, const CostCount& count) {
        const std::vector<BlockId> blocks = kernel_.inst(id).blocks;
        entries_[id] = count;
        const std::vector<InstId>& continues = structure_.Continues(id);
        const InstId next = structure_.Next(id);
        const bool one_way = structure_.Exits(id).size() == 1 && !Leaks(id);
        if (one_way) {
            single_exits_[id] = count;
        }
        const std::optional<uint32_t> trips = one_way ? trips_.Count(id, kMostTrips) : std::nullopt;
        CostCount again;  // who comes to another iteration
        if (trips) {
            again.Add(count, *trips - 1);
        } else if (next.valid() && !continues.empty()) {
            // At the end of the body if all come there: it has code already that counts can join.
            const auto& insts = kernel_.block(blocks[0]).insts;
            const bool straight = std::ranges::all_of(
                kernel_.block(blocks[1]).insts,
                [&](InstId inner) { return kernel_.inst(inner).blocks.empty(); });
            again = straight && continues.size() == 1 && continues[0] == insts.back()
                        ? NewCounter(blocks[0], insts.size() - 1)
                        : NewCounter(blocks[1], kernel_.block(blocks[1]).insts.size() - 1);
        }
        CostCount body = count;
        body.Add(again);
        Walk(blocks[0], body);
        Walk(blocks[1], Sum(continues));
    }

    // --- what instructions do -------------------------------------------------------------------

    void Account(InstId id, BlockId block, const CostCount& count) {
        const Instruction& inst = kernel_.inst(id);
        switch (inst.op) {
            case Op::kLoadBuffer:
            case Op::kStoreBuffer:
            case Op::kAtomicBuffer:
            case Op::kMatrixLoad:
                AddAccess(inst, inst.operands[0], inst.operands[1], 2, block, count);
                return;
            case Op::kLoadGlobal:
            case Op::kStoreGlobal:
            case Op::kAtomicGlobal:
                AddAccess(inst, {}, inst.operands[0], 1, block, count);
                return;
            case Op::kLoadShared:
            case Op::kStoreShared:
            case Op::kAtomicShared:
                AddShared(inst, count);
                return;
            case Op::kBarrier:
                ++cost_.regions[RegionOf(count)].barriers;
                pass_ = std::min(pass_ + 1, kMostPasses - 1);
                return;
            default:
                AddOperation(inst, count);
                return;
        }
    }

    uint32_t SourceOf(const Instruction& inst) {
        if (!source_ || inst.origin == 0) {
            return kNone;
        }
        const auto [found, is_new] = source_of_.try_emplace(inst.origin, kNone);
        if (is_new) {
            if (const std::string text = source_(inst.origin); !text.empty()) {
                const auto number = static_cast<uint32_t>(cost_.sources.size());
                const auto [same, is_first] = source_numbers_.try_emplace(text, number);
                if (is_first) {
                    cost_.sources.push_back(text);
                }
                found->second = same->second;
            }
        }
        return found->second;
    }

    // The number in KernelCost::buffers of a binding, or of an element whose place is constant.
    // Sets may have fewer elements than a binding of a variable count says.
    uint32_t BufferOf(ValueId value) {
        const Instruction* buffer = value.valid() ? kernel_.Definition(value) : nullptr;
        if (buffer == nullptr || buffer->op != Op::kBuffer) {
            return kNone;
        }
        const Instruction* element = kernel_.Definition(buffer->operands[0]);
        const Binding& binding = kernel_.bindings[buffer->imm];
        const BindingLayout& layout = binding.layout;
        const bool is_buffer = layout.kind == BindingLayout::Kind::kStorageBuffer ||
                               layout.kind == BindingLayout::Kind::kUniformBuffer;
        if (element == nullptr || element->op != Op::kConst || element->imm >= layout.count ||
            !is_buffer || layout.inline_bytes != 0 || layout.variable_count) {
            return kNone;
        }
        const auto number = static_cast<uint32_t>(element->imm);
        CostBuffer found{.set = binding.set,
                         .offset_bytes = layout.offset_bytes + number * layout.Stride()};
        if (layout.first_dynamic_offset != BindingLayout::kNotDynamic) {
            found.dynamic_offset = layout.first_dynamic_offset + number;
        }
        const auto same = std::ranges::find(cost_.buffers, found);
        if (same != cost_.buffers.end()) {
            return static_cast<uint32_t>(same - cost_.buffers.begin());
        }
        cost_.buffers.push_back(found);
        return static_cast<uint32_t>(cost_.buffers.size() - 1);
    }

    uint64_t BytesOf(const Instruction& inst, size_t first_value) const {
        if (inst.op == Op::kAtomicBuffer || inst.op == Op::kAtomicGlobal ||
            inst.op == Op::kAtomicShared) {
            return ByteSize(kernel_.type(inst.results[0]));
        }
        if (inst.op == Op::kMatrixLoad) {
            return uint64_t{MatrixLaneElements(kernel_)} * sizeof(float);
        }
        const bool writes = HasProperty(inst.op, kWritesMemory);
        uint64_t bytes = 0;
        for (size_t i = first_value; writes && i < inst.operands.size(); ++i) {
            bytes += ByteSize(kernel_.type(inst.operands[i]));
        }
        for (size_t i = 0; !writes && i < inst.results.size(); ++i) {
            bytes += ByteSize(kernel_.type(inst.results[i]));
        }
        return bytes;
    }

    bool IsInside(ValueId value, InstId construct) const {
        BlockId block = structure_.DefinitionBlock(kernel_, value);
        for (InstId at = kernel_.block(block).parent; at.valid();
             at = kernel_.block(structure_.block_of[at.value()]).parent) {
            if (at == construct) {
                return true;
            }
        }
        return false;
    }

    void AddAccess(const Instruction& inst,
                   ValueId buffer,
                   ValueId offset,
                   size_t first_value,
                   BlockId block,
                   CostCount count) {
        FoundAccess access{
            .buffer = buffer,
            .offset = offset,
            .bytes = BytesOf(inst, first_value),
            .source = SourceOf(inst),
            .bound = BufferOf(buffer),
            .writes = HasProperty(inst.op, kWritesMemory),
            .is_atomic = inst.op == Op::kAtomicBuffer || inst.op == Op::kAtomicGlobal,
            .is_matrix = inst.op == Op::kMatrixLoad};
        InstId parent = kernel_.block(block).parent;
        // A place that the iterations of a loop share is brought once, before it.
        while (parent.valid() && kernel_.inst(parent).op == Op::kLoop && !access.is_atomic &&
               !IsInside(offset, parent) && (!buffer.valid() || !IsInside(buffer, parent))) {
            count = entries_.at(parent);
            parent = kernel_.block(structure_.block_of[parent.value()]).parent;
        }
        while (parent.valid() && kernel_.inst(parent).op != Op::kLoop) {
            parent = kernel_.block(structure_.block_of[parent.value()]).parent;
        }
        access.loop = parent;
        access.loop_waits = parent.valid() && HoldsBarrier(kernel_, parent);
        access.region = RegionOf(count);
        access.times = times_.try_emplace(count, times_.size()).first->second;
        accesses_.Add(access);
    }

    void AddShared(const Instruction& inst, const CostCount& count) {
        if (inst.op == Op::kAtomicShared) {
            CostRegion& region = cost_.regions[RegionOf(count)];
            ++region.shared_atomics;
            region.lines[SourceOf(inst)].shared_bytes += BytesOf(inst, 1);
            return;
        }
        const int64_t stride = accesses_.LaneStride(inst.operands[0]).value_or(4);
        const auto words = static_cast<uint32_t>(std::max<int64_t>(1, std::abs(stride) / 4));
        CostRegion& region = cost_.regions[RegionOf(count)];
        region.shared_bytes[words] += BytesOf(inst, 1);
        region.lines[SourceOf(inst)].shared_bytes += BytesOf(inst, 1);
    }

    void AddOperation(const Instruction& inst, const CostCount& count) {
        const OperationKind kind = OperationKindOf(inst.op);
        const bool is_pure = HasProperty(inst.op, kPure);
        const auto varies = [&](ValueId value) { return bool{use_.varies[value.value()]}; };
        if (is_pure && kind != OperationKind::kNone && !inst.results.empty() &&
            std::ranges::none_of(inst.results, varies)) {
            ++cost_.scalar_operations[count];
            return;
        }
        const auto computed = [&](ValueId value) {
            return use_.varies[value.value()] && use_.is_data[value.value()];
        };
        if (kind == OperationKind::kNone ||
            (is_pure && std::ranges::none_of(inst.results, computed))) {
            return;
        }
        CostRegion& region = cost_.regions[RegionOf(count)];
        uint32_t bits = 8;
        for (const std::vector<ValueId>* values : {&inst.operands, &inst.results}) {
            for (ValueId value : *values) {
                bits = std::max(bits, BitWidth(kernel_.type(value)));
            }
        }
        region.operation_bits += bits;
        npu::Operations& of_line = region.lines[SourceOf(inst)].operations;
        switch (kind) {
            case OperationKind::kDivision:
                ++region.operations.division;
                ++of_line.division;
                return;
            case OperationKind::kMultiplyAdd:
                ++region.operations.multiply_add;
                ++of_line.multiply_add;
                return;
            case OperationKind::kSpecial:
                ++region.operations.special;
                ++of_line.special;
                return;
            default:
                ++region.operations.simple;
                ++of_line.simple;
                return;
        }
    }

    // --- products -------------------------------------------------------------------------------

    void AddMultiply(const Instruction& inst, std::map<uint32_t, Products>& products) {
        const uint32_t elements = MatrixLaneElements(kernel_);
        Products& found = products[static_cast<uint32_t>(MatrixFormatOf(kernel_, inst))];
        found.a.insert(inst.operands[0].value());
        found.b.insert(inst.operands[elements].value());
        ++found.count;
        found.source = found.source == kNone ? SourceOf(inst) : found.source;
        found.pass = pass_;
        const Instruction* sum = kernel_.Definition(inst.operands[size_t{2} * elements]);
        found.carried = found.carried || sum == nullptr || sum->op == Op::kLoadLocal;
    }

    static npu::MatrixType TypeOf(hal::MatrixFormat format) {
        switch (format) {
            case hal::MatrixFormat::kF16:
                return npu::MatrixType::kF16;
            case hal::MatrixFormat::kBF16:
                return npu::MatrixType::kBF16;
            case hal::MatrixFormat::kF32:
                return npu::MatrixType::kF32;
            case hal::MatrixFormat::kInt8:
                break;
        }
        return npu::MatrixType::kInt8;
    }

    // All lanes must be there for each, so all of a block's products run equally often.
    void FinishProducts(BlockId block,
                        const std::map<uint32_t, Products>& products,
                        const CostCount& count) {
        const InstId parent = kernel_.block(block).parent;
        const bool in_loop = parent.valid() && kernel_.inst(parent).op == Op::kLoop;
        for (const auto& [format, found] : products) {
            CostProduct product{.type = TypeOf(static_cast<hal::MatrixFormat>(format)),
                                .m = kMatrixSize,
                                .n = kMatrixSize,
                                .k = kMatrixSize,
                                .sums = found.carried && in_loop ? entries_.at(parent) : count,
                                .source = found.source};
            const auto a = static_cast<uint32_t>(found.a.size());
            const auto b = static_cast<uint32_t>(found.b.size());
            // A grid of `rows` x `columns` sums with as many steps each.
            if (found.count % a == 0 && found.count % b == 0 && a * b % found.count == 0) {
                product.m *= found.count / b;
                product.n *= found.count / a;
                product.k *= a * b / found.count;
            } else {
                product.k *= found.count;
            }
            cost_.regions[RegionOf(count, found.pass)].products.push_back(product);
        }
    }

    struct Inserted {
        BlockId block;
        size_t position;
        uint32_t counter;
    };

    Kernel& kernel_;
    const SourceNamer& source_;
    std::map<uint32_t, uint32_t> source_of_;  // by word: the number of its line
    std::map<std::string, uint32_t> source_numbers_;
    std::map<BlockId, CostCount>* const blocks_;
    const Structure structure_;
    TripCounter trips_;
    const ValueUse use_;
    AccessCosts accesses_;
    KernelCost cost_;
    uint32_t next_counter_ = 0;
    std::vector<Inserted> inserted_;
    std::vector<CostCount> edges_;              // by terminator: who comes there
    std::map<InstId, CostCount> entries_;       // by loop: who comes to it
    std::map<InstId, CostCount> single_exits_;  // by loop that all leave by one exit
    std::map<std::pair<CostCount, uint32_t>, size_t> region_of_;
    std::map<CostCount, size_t> times_;
    uint32_t pass_ = 0;
};

}  // namespace

KernelCost AddCosts(Kernel& kernel,
                    const SourceNamer& source,
                    std::map<BlockId, CostCount>* blocks) {
    return CostFinder(kernel, source, blocks).Run();
}

}  // namespace fornax::kernel
