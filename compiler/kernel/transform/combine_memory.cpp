// Joins loads and stores of neighbouring elements into runs.
//
// One walk over each block keeps groups of accesses to one buffer (or shared memory) whose offsets
// are one value plus constants. A group of loads is open while nothing is written that it might
// read, before or after: its loads may all stand where the first one does. A group of stores is
// open while nothing reads or writes what it might write: its stores may all stand where the last
// one does. Different bindings may alias; shared memory and buffers do not. When a group closes,
// its accesses are sorted by offset and neighbours become runs.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr size_t kMaxRun = 16;     // elements
constexpr size_t kMaxGroup = 256;  // accesses; bounds the search for overlaps
constexpr uint64_t kMaxAlignment = 64;
constexpr int64_t kMaxDistance = int64_t{1} << 30;

// Device addresses may point into any buffer.
enum class Space : uint8_t { kBuffer, kShared };

// Where an access goes, but for a constant: equal places differ by known distances.
struct Place {
    Space space;
    ValueId buffer;  // invalid for shared memory and device addresses
    ValueId base;    // invalid for a constant offset
    Type offset_type;
    auto operator<=>(const Place&) const = default;
};

struct Access {
    InstId inst;
    uint32_t position;  // in the block
    int64_t begin;      // bytes from the place
    int64_t end;
};

struct Group {
    Place place;
    Type type;
    bool stores;
    std::vector<Access> accesses;
    // What was written since a group of loads was opened, which no load may pass.
    std::vector<Access> written;
};

class Combiner {
  public:
    explicit Combiner(Kernel& kernel) : kernel_(kernel) {}

    void Run() {
        VisitBlock(kernel_.body);
        kernel_.ReplaceUses(map_);
    }

  private:
    // Open groups of one kind. Ordered, so that the output is deterministic.
    using Groups = std::map<std::pair<Place, Type>, Group>;
    struct Insertion {
        uint32_t position;
        InstId inst;
    };

    void VisitBlock(BlockId block) {
        for (InstId id : std::vector(kernel_.block(block).insts)) {
            for (BlockId inner : std::vector(kernel_.inst(id).blocks)) {
                VisitBlock(inner);
            }
        }
        insertions_.clear();
        deleted_.assign(kernel_.block(block).insts.size(), false);
        const std::vector<InstId> insts = kernel_.block(block).insts;
        for (uint32_t i = 0; i < insts.size(); ++i) {
            Visit(insts[i], i);
        }
        CloseAll();
        if (!insertions_.empty()) {
            Rebuild(block, insts);
        }
    }

    void Visit(InstId id, uint32_t position) {
        const Instruction& inst = kernel_.inst(id);
        switch (inst.op) {
            case Op::kLoadBuffer:
            case Op::kLoadShared:
            case Op::kLoadGlobal:
            case Op::kStoreGlobal:
            case Op::kStoreBuffer:
            case Op::kStoreShared:
                VisitAccess(id, position);
                break;
            case Op::kAtomicBuffer:
            case Op::kAtomicGlobal:
                CloseSpace(Space::kBuffer);
                break;
            case Op::kAtomicShared:
                CloseSpace(Space::kShared);
                break;
            case Op::kLoadLocal:
            case Op::kStoreLocal:
            case Op::kCount:
                break;
            default:
                // Constructs, barriers, and what depends on which invocations are here.
                if (!HasProperty(inst.op, kPure)) {
                    CloseAll();
                }
                break;
        }
    }

    void VisitAccess(InstId id, uint32_t position) {
        const Instruction& inst = kernel_.inst(id);
        bool buffer = inst.op == Op::kLoadBuffer || inst.op == Op::kStoreBuffer;
        bool global = inst.op == Op::kLoadGlobal || inst.op == Op::kStoreGlobal;
        bool store = HasProperty(inst.op, kWritesMemory);
        Space space = buffer || global ? Space::kBuffer : Space::kShared;
        if (inst.flags & kVolatile) {
            CloseSpace(space);
            return;
        }
        size_t offset_at = buffer ? 1 : 0;
        auto [place, begin] =
            PlaceOf(space, buffer ? inst.operands[0] : ValueId{}, inst.operands[offset_at]);
        Type type = kernel_.type(store ? inst.operands.back() : inst.results[0]);
        size_t count = store ? inst.operands.size() - offset_at - 1 : inst.results.size();
        Access access{id, position, begin, begin + static_cast<int64_t>(count * ByteSize(type))};
        auto conflicts = [&](const Group& group) {
            return group.place != place || Overlap(group.accesses, access);
        };
        CloseIf(StoresOf(space), conflicts);
        if (store) {
            CloseIf(LoadsOf(space), conflicts);
            for (auto& [key, loads] : LoadsOf(space)) {
                loads.written.push_back(access);
            }
        }
        Groups& groups = store ? StoresOf(space) : LoadsOf(space);
        Group& group =
            groups.try_emplace({place, type}, Group{place, type, store, {}, {}}).first->second;
        if (group.accesses.size() >= kMaxGroup || group.written.size() >= kMaxGroup ||
            Overlap(group.written, access)) {
            Close(group);
            group.accesses.clear();
            group.written.clear();
        }
        group.accesses.push_back(access);
    }

    // Splits an offset into a value and a constant, read as signed.
    std::pair<Place, int64_t> PlaceOf(Space space, ValueId buffer, ValueId offset) const {
        Type type = kernel_.type(offset);
        auto as_signed = [type](uint64_t bits) {
            return type == Type::kI32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
        };
        // Distances must not wrap, or far accesses could meet.
        auto is_near = [](int64_t distance) { return std::abs(distance) < kMaxDistance; };
        uint64_t constant = 0;
        if (kernel_.IsConst(offset, &constant) && is_near(as_signed(constant))) {
            return {{space, buffer, ValueId{}, type}, as_signed(constant)};
        }
        const Instruction* inst = kernel_.Definition(offset);
        if (inst && inst->op == Op::kIAdd && kernel_.IsConst(inst->operands[1], &constant) &&
            is_near(as_signed(constant))) {
            return {{space, buffer, inst->operands[0], type}, as_signed(constant)};
        }
        return {{space, buffer, offset, type}, 0};
    }

    static bool Overlap(const std::vector<Access>& accesses, const Access& access) {
        return std::ranges::any_of(accesses, [&](const Access& other) {
            return access.begin < other.end && other.begin < access.end;
        });
    }

    Groups& LoadsOf(Space space) { return groups_[static_cast<size_t>(space)]; }
    Groups& StoresOf(Space space) { return groups_[2 + static_cast<size_t>(space)]; }

    template <typename Condition>
    void CloseIf(Groups& groups, Condition condition) {
        for (auto it = groups.begin(); it != groups.end();) {
            if (!condition(it->second)) {
                ++it;
                continue;
            }
            Close(it->second);
            it = groups.erase(it);
        }
    }
    void CloseSpace(Space space) {
        auto always = [](const Group&) { return true; };
        CloseIf(LoadsOf(space), always);
        CloseIf(StoresOf(space), always);
    }
    void CloseAll() {
        CloseSpace(Space::kBuffer);
        CloseSpace(Space::kShared);
    }

    void Close(Group& group) {
        if (group.accesses.size() < 2) {
            return;
        }
        std::ranges::sort(group.accesses, {}, [](const Access& access) {
            return std::pair(access.begin, access.position);
        });
        std::span<const Access> rest(group.accesses);
        while (!rest.empty()) {
            size_t size = ByteSize(group.type);
            size_t length = 1;
            while (length < rest.size() && rest[length].begin == rest[length - 1].end &&
                   static_cast<size_t>(rest[length].end - rest[0].begin) <= kMaxRun * size) {
                ++length;
            }
            if (length > 1) {
                Join(group, rest.first(length));
            }
            rest = rest.subspan(length);
        }
    }

    // The alignment of the run's start that its members' alignments prove.
    uint64_t AlignmentOf(std::span<const Access> run) const {
        uint64_t best = 1;
        for (const Access& access : run) {
            uint64_t alignment = std::min(kernel_.inst(access.inst).imm, kMaxAlignment);
            auto distance = static_cast<uint64_t>(access.begin - run[0].begin);
            if (distance != 0) {
                alignment = std::min(alignment, distance & (0 - distance));
            }
            best = std::max(best, alignment);
        }
        return best;
    }

    InstId Insert(uint32_t position,
                  Op op,
                  std::span<const ValueId> operands,
                  std::span<const Type> types,
                  uint64_t imm,
                  InstId like) {
        InstId id = kernel_.NewInst(op, operands, types);
        Instruction& inst = kernel_.inst(id);
        inst.imm = imm;
        inst.origin = kernel_.inst(like).origin;
        insertions_.push_back({position, id});
        return id;
    }

    // The offset of the run's first element at a place where that access's own may not be visible
    // yet.
    ValueId MakeOffset(const Group& group, int64_t begin, uint32_t position, InstId like) {
        Type type = group.place.offset_type;
        uint64_t bits = static_cast<uint64_t>(begin);
        if (type == Type::kI32) {
            bits &= UINT32_MAX;
        }
        if (group.place.base.valid() && bits == 0) {
            return group.place.base;
        }
        InstId constant = Insert(position, Op::kConst, {}, {&type, 1}, bits, like);
        ValueId value = kernel_.inst(constant).results[0];
        if (!group.place.base.valid()) {
            return value;
        }
        ValueId operands[] = {group.place.base, value};
        InstId sum = Insert(position, Op::kIAdd, operands, {&type, 1}, 0, like);
        return kernel_.inst(sum).results[0];
    }

    void Join(const Group& group, std::span<const Access> run) {
        auto [first, last] = std::ranges::minmax_element(run, {}, &Access::position);
        const Access& stands = group.stores ? *last : *first;
        uint64_t alignment = AlignmentOf(run);
        std::vector<ValueId> operands;
        if (group.place.buffer.valid()) {
            operands.push_back(group.place.buffer);
        }
        operands.push_back(MakeOffset(group, run[0].begin, stands.position, stands.inst));
        size_t head = operands.size();
        std::vector<ValueId> elements;
        for (const Access& access : run) {
            deleted_[access.position] = true;
            const Instruction& inst = kernel_.inst(access.inst);
            if (group.stores) {
                operands.insert(operands.end(), inst.operands.begin() + head, inst.operands.end());
            } else {
                elements.insert(elements.end(), inst.results.begin(), inst.results.end());
            }
        }
        std::vector<Type> types(elements.size(), group.type);
        InstId id = Insert(stands.position, kernel_.inst(stands.inst).op, operands, types,
                           alignment, stands.inst);
        map_.resize(kernel_.num_values());
        for (size_t i = 0; i < elements.size(); ++i) {
            map_[elements[i].value()] = kernel_.inst(id).results[i];
        }
    }

    // New instructions stand before what was at their position, in the order of their ids.
    void Rebuild(BlockId block, const std::vector<InstId>& insts) {
        std::ranges::sort(insertions_, {}, [](const Insertion& insertion) {
            return std::pair(insertion.position, insertion.inst);
        });
        std::vector<InstId> rebuilt;
        auto next = insertions_.begin();
        for (uint32_t i = 0; i < insts.size(); ++i) {
            for (; next != insertions_.end() && next->position == i; ++next) {
                rebuilt.push_back(next->inst);
            }
            if (!deleted_[i]) {
                rebuilt.push_back(insts[i]);
            }
        }
        kernel_.block(block).insts = std::move(rebuilt);
    }

    Kernel& kernel_;
    std::array<Groups, 4> groups_;  // loads by space, stores by space
    std::vector<Insertion> insertions_;
    std::vector<bool> deleted_;  // by position
    std::vector<ValueId> map_;   // by value: joined loads' elements
};

}  // namespace

void CombineMemoryAccesses(Kernel& kernel) {
    Combiner(kernel).Run();
}

}  // namespace fornax::kernel
