#include "compiler/kernel/analysis/matrix_shared_operands.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "compiler/kernel/analysis/known_values.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using ir::Op;
using Operand = MatrixSharedOperands::Operand;

namespace {

// A packed panel takes up to 2 KiB.
constexpr uint32_t kMaxPanels = 96;

class Finder {
  public:
    Finder(const ir::Kernel& kernel, const BarrierRegions& regions, const OperandFormOf& form_of)
        : kernel_(kernel), form_of_(form_of), uses_(kernel.num_values(), 0) {
        const auto& size = kernel.workgroup_size;
        invocations_ = size[0] * size[1] * size[2];
        if (invocations_ % kernel.subgroup_size != 0) {
            return;
        }
        for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
            for (ir::ValueId operand : kernel.inst(ir::InstId{i}).operands) {
                ++uses_[operand.value()];
            }
        }
        for (uint32_t i = 0; i < regions.num_regions(); ++i) {
            VisitRegion(i, regions.region(i));
        }
        FindUnused();
    }
    MatrixSharedOperands Take() { return std::move(found_); }

  private:
    // One operand of an MMA.
    struct Candidate {
        uint32_t mma = 0;  // its first result
        bool is_b = false;
        ir::InstId transpose;  // or not valid
        std::vector<ir::InstId> loads;
        Operand operand;
        bool valid = true;
    };

    void VisitRegion(uint32_t number, const BarrierRegion& region) {
        candidates_.clear();
        stores_.clear();
        has_atomics_ = false;
        for (const RegionItem& item : region.items) {
            if (item.kind == RegionItem::Kind::kInstruction) {
                VisitTree(item.inst);
            }
        }
        if (candidates_.empty()) {
            return;
        }
        KnownValues invocation(kernel_);
        written_.assign(kernel_.shared_bytes, false);
        for (uint32_t i = 0; i < invocations_; ++i) {
            invocation.Begin(i);
            if (!VisitStores(invocation)) {
                return;
            }
            for (Candidate& candidate : candidates_) {
                candidate.valid = candidate.valid && VisitInvocation(invocation, i, candidate);
            }
        }
        std::erase_if(candidates_, [&](const Candidate& candidate) {
            return !candidate.valid || IsWritten(candidate.operand);
        });
        Keep(number);
    }
    // Marks what the region writes to workgroup memory; false if that is not known.
    bool VisitStores(KnownValues& invocation) {
        for (ir::InstId id : stores_) {
            const ir::Instruction& store = kernel_.inst(id);
            const auto offset = invocation.Evaluate(store.operands[0]);
            const uint64_t bytes = (store.operands.size() - 1) *
                                   std::max(1u, ir::ByteSize(kernel_.type(store.operands[1])));
            if (!offset || *offset + bytes > written_.size()) {
                return false;
            }
            const auto begin = written_.begin() + static_cast<std::ptrdiff_t>(*offset);
            std::fill(begin, begin + static_cast<std::ptrdiff_t>(bytes), true);
        }
        return !has_atomics_;
    }
    bool IsWritten(const Operand& operand) const {
        const uint32_t line_bytes = ir::kMatrixSize * operand.type_bytes;
        for (uint32_t offset : operand.offsets) {
            for (uint32_t line = 0; line < ir::kMatrixSize; ++line) {
                const auto begin =
                    written_.begin() +
                    static_cast<std::ptrdiff_t>(size_t{offset} + size_t{line} * operand.stride);
                const auto end = begin + static_cast<std::ptrdiff_t>(line_bytes);
                if (std::find(begin, end, true) != end) {
                    return true;
                }
            }
        }
        return false;
    }
    void VisitTree(ir::InstId id) {
        const ir::Instruction& inst = kernel_.inst(id);
        has_atomics_ |= inst.op == Op::kAtomicShared;
        if (inst.op == Op::kStoreShared) {
            stores_.push_back(id);
        }
        if (inst.op == Op::kMatrixMulAdd) {
            const size_t count = inst.results.size();
            const std::span<const ir::ValueId> operands(inst.operands);
            AddCandidate(id, operands.first(count), false);
            AddCandidate(id, operands.subspan(count, count), true);
        }
        for (ir::BlockId block : inst.blocks) {
            for (ir::InstId child : kernel_.block(block).insts) {
                VisitTree(child);
            }
        }
    }

    void AddCandidate(ir::InstId mma, std::span<const ir::ValueId> values, bool is_b) {
        Candidate candidate;
        candidate.mma = kernel_.inst(mma).results[0].value();
        candidate.is_b = is_b;
        const ir::Instruction* made = kernel_.Definition(values[0]);
        if (made && made->op == Op::kMatrixTranspose) {
            if (!std::equal(values.begin(), values.end(), made->results.begin())) {
                return;
            }
            candidate.transpose = kernel_.value(values[0]).inst;
            values = made->operands;
        }
        for (ir::ValueId value : values) {
            const ir::Instruction* load = kernel_.Definition(value);
            if (!load || load->op != Op::kLoadShared || load->results.size() != 1 ||
                (load->flags & ir::kVolatile) != 0) {
                return;
            }
            candidate.loads.push_back(kernel_.value(value).inst);
        }
        candidate.operand.is_b = is_b;
        candidate.operand.form = form_of_(kernel_.inst(mma), is_b);
        candidate.operand.columns = candidate.transpose.valid();
        candidate.operand.type_bytes = ir::ByteSize(kernel_.type(values[0]));
        if (candidate.operand.columns && candidate.operand.type_bytes != 2) {
            return;
        }
        if (Together(mma, candidate)) {
            candidates_.push_back(std::move(candidate));
        }
    }
    // All in one block, without anything between them that control may leave by or return to.
    bool Together(ir::InstId mma, const Candidate& candidate) {
        Positions(mma);
        const auto end = positions_.find(mma.value());
        if (end == positions_.end()) {
            return false;
        }
        size_t begin = end->second;
        for (ir::InstId load : candidate.loads) {
            const auto found = positions_.find(load.value());
            if (found == positions_.end()) {
                return false;
            }
            begin = std::min(begin, found->second);
        }
        return starts_[end->second] <= begin;
    }
    // The positions of the instructions of the MMA's block, and since where nothing was between.
    void Positions(ir::InstId mma) {
        if (positions_.contains(mma.value())) {
            return;
        }
        positions_.clear();
        starts_.clear();
        for (uint32_t i = 0; i < kernel_.num_blocks(); ++i) {
            const std::vector<ir::InstId>& insts = kernel_.block(ir::BlockId{i}).insts;
            if (std::find(insts.begin(), insts.end(), mma) == insts.end()) {
                continue;
            }
            size_t start = 0;
            for (size_t at = 0; at < insts.size(); ++at) {
                const Op op = kernel_.inst(insts[at]).op;
                if (ir::HasProperty(op, ir::kRegions | ir::kTerminator) || op == Op::kBarrier) {
                    start = at;
                }
                positions_[insts[at].value()] = at;
                starts_.push_back(start);
            }
            return;
        }
    }

    // Whether the lane's elements are where they belong, counted from the first lane's first.
    bool VisitInvocation(KnownValues& invocation, uint32_t index, Candidate& candidate) const {
        Operand& operand = candidate.operand;
        const uint32_t lanes = kernel_.subgroup_size;
        const uint32_t lane = index % lanes;
        for (size_t e = 0; e < candidate.loads.size(); ++e) {
            const auto offset = invocation.Evaluate(kernel_.inst(candidate.loads[e]).operands[0]);
            if (!offset || *offset + operand.type_bytes > kernel_.shared_bytes) {
                return false;
            }
            const auto at = static_cast<uint32_t>(*offset);
            if (lane == 0 && e == 0) {
                operand.offsets.push_back(at);
            }
            const uint32_t element = static_cast<uint32_t>(e) * lanes + lane;
            const uint32_t line = element / ir::kMatrixSize;
            const uint32_t column = element % ir::kMatrixSize * operand.type_bytes;
            const uint32_t distance = at - operand.offsets.back();
            // The very first invocation has elements of several lines.
            if (index == 0 && operand.stride == 0 && line != 0 && column == 0) {
                operand.stride = distance / line;
            }
            if (distance > kernel_.shared_bytes || distance != line * operand.stride + column) {
                return false;
            }
        }
        return true;
    }

    void Keep(uint32_t region) {
        std::map<std::tuple<bool, bool, uint32_t, uint32_t, uint32_t, uint32_t>, uint32_t> panels;
        uint32_t uses = 0;
        for (Candidate& candidate : candidates_) {
            Operand& operand = candidate.operand;
            for (uint32_t offset : operand.offsets) {
                const auto number = static_cast<uint32_t>(panels.size());
                operand.panels.push_back(
                    panels
                        .try_emplace({operand.is_b, operand.columns, operand.form,
                                      operand.type_bytes, operand.stride, offset},
                                     number)
                        .first->second);
            }
        }
        if (panels.empty() || panels.size() > kMaxPanels) {
            return;
        }
        const size_t before = found_.operands.size();
        for (const Candidate& candidate : candidates_) {
            auto known = std::find(found_.operands.begin() + static_cast<std::ptrdiff_t>(before),
                                   found_.operands.end(), candidate.operand);
            const auto number = static_cast<uint32_t>(known - found_.operands.begin());
            if (known == found_.operands.end()) {
                found_.operands.push_back(candidate.operand);
                uses += static_cast<uint32_t>(candidate.operand.panels.size());
            }
            auto& mma = found_.mmas
                            .try_emplace(candidate.mma, std::array{MatrixSharedOperands::kNone,
                                                                   MatrixSharedOperands::kNone})
                            .first->second;
            mma[candidate.is_b ? 1 : 0] = number;
            for (ir::InstId load : candidate.loads) {
                loads_.insert(load.value());
            }
            if (candidate.transpose.valid()) {
                transposes_.insert(candidate.transpose.value());
            }
        }
        const auto count = static_cast<uint32_t>(panels.size());
        found_.regions[region] = {.panels = count, .shared = uses > count};
        found_.max_panels = std::max(found_.max_panels, count);
    }

    // Transposes whose results only go to MMAs that take the matrix from memory, and such
    // loads.
    void FindUnused() {
        std::vector<uint32_t> served(kernel_.num_values(), 0);
        for (const auto& [first, operands] : found_.mmas) {
            const ir::Instruction& mma = kernel_.inst(kernel_.value(ir::ValueId{first}).inst);
            const size_t count = mma.results.size();
            for (size_t i = 0; i < 2 * count; ++i) {
                if (operands[i / count] != MatrixSharedOperands::kNone) {
                    ++served[mma.operands[i].value()];
                }
            }
        }
        auto unused = [&](uint32_t id) {
            const ir::Instruction& inst = kernel_.inst(ir::InstId{id});
            return std::all_of(inst.results.begin(), inst.results.end(), [&](ir::ValueId result) {
                return served[result.value()] == uses_[result.value()];
            });
        };
        for (uint32_t id : transposes_) {
            if (!unused(id)) {
                continue;
            }
            found_.unused.insert(id);
            for (ir::ValueId operand : kernel_.inst(ir::InstId{id}).operands) {
                ++served[operand.value()];
            }
        }
        for (uint32_t id : loads_) {
            if (unused(id)) {
                found_.unused.insert(id);
            }
        }
    }

    const ir::Kernel& kernel_;
    const OperandFormOf& form_of_;
    uint32_t invocations_ = 0;
    std::vector<uint32_t> uses_;  // by value
    // What belongs to the barrier region:
    std::vector<Candidate> candidates_;
    std::vector<ir::InstId> stores_;  // to workgroup memory
    std::vector<bool> written_;       // by byte of it
    bool has_atomics_ = false;        // likewise
    std::map<uint32_t, size_t> positions_;
    std::vector<size_t> starts_;
    std::set<uint32_t> loads_;
    std::set<uint32_t> transposes_;
    MatrixSharedOperands found_;
};

}  // namespace

MatrixSharedOperands FindMatrixSharedOperands(const ir::Kernel& kernel,
                                              const BarrierRegions& regions,
                                              const OperandFormOf& form_of) {
    return Finder(kernel, regions, form_of).Take();
}

}  // namespace fornax::kernel
