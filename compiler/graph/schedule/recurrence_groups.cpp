// Copies of local tensors, and the groups of a recurrence's kernel.
#include "compiler/graph/schedule/recurrence_groups.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/graph/loop/scope.h"

namespace fornax::graph {
namespace {

using loop::BufferId;
using loop::Kernel;
using loop::Phase;
using Indices = std::vector<Expr>;

// With fewer workgroups some of a device's processors have nothing to do.
constexpr int64_t kLeastGroups = 2;

struct Access {
    BufferId buffer;
    Indices* index;
};

struct PhaseAccesses {
    std::vector<Access> loads, stores;  // of local tensors
};

std::vector<PhaseAccesses> LocalAccesses(Kernel& kernel) {
    std::vector<PhaseAccesses> all;
    for (Phase& phase : kernel.phases) {
        PhaseAccesses& accesses = all.emplace_back();
        std::vector<const loop::Store*> stores;
        for (loop::Store& store : phase.stores) {
            stores.push_back(&store);
            if (Kernel::IsLocal(store.buffer)) {
                accesses.stores.push_back({store.buffer, &store.index});
            }
        }
        const std::vector<bool> needed = loop::Needed(kernel, loop::RootsOf(stores));
        for (size_t i = 0; i < needed.size(); ++i) {
            auto* load = std::get_if<loop::Load>(&kernel.scalars[i].value);
            if (needed[i] && load != nullptr && Kernel::IsLocal(load->buffer)) {
                accesses.loads.push_back({load->buffer, &load->index});
            }
        }
    }
    return all;
}

bool AreEqual(std::span<const Expr> a, std::span<const Expr> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// Whether one copy of a local tensor is enough: in each iteration it is only read before the phase
// that stores it, or there at the very place that is stored.
bool OneCopyIsEnough(const Kernel& kernel,
                     const std::vector<PhaseAccesses>& accesses,
                     BufferId local) {
    const Indices* stored = nullptr;
    for (size_t p = 0; p < kernel.phases.size(); ++p) {
        if (kernel.phases[p].when != loop::When::kEach) {
            continue;
        }
        for (const Access& store : accesses[p].stores) {
            if (store.buffer == local) {
                if (stored != nullptr) {
                    return false;
                }
                stored = store.index;
            }
        }
        for (const Access& load : accesses[p].loads) {
            const auto behind_copy = [](const Indices& index) {
                return std::span(index).subspan(1);
            };
            if (load.buffer == local && stored != nullptr &&
                (!AreEqual(behind_copy(*load.index), behind_copy(*stored)) ||
                 std::none_of(accesses[p].stores.begin(), accesses[p].stores.end(),
                              [&](const Access& store) { return store.buffer == local; }))) {
                return false;
            }
        }
    }
    return true;
}

// A variable of each phase that is the same dimension to all of them: every access of a local
// tensor has it by itself in one place, the tensor's dimension of the class.
struct Class {
    std::map<size_t, Symbol> variables;     // by phase
    std::map<uint32_t, size_t> dimensions;  // by local tensor
    Expr extent;
};

const loop::Loop* LaneOf(const Phase& phase, const Expr& expr) {
    for (const loop::Loop& loop : phase.lanes) {
        if (expr == Expr(loop.variable)) {
            return &loop;
        }
    }
    return nullptr;
}

class ClassFinder {
  public:
    explicit ClassFinder(Kernel& kernel) : kernel_(kernel), accesses_(LocalAccesses(kernel)) {}

    std::optional<Class> Find(size_t phase, const loop::Loop& lane) {
        class_ = {{{phase, lane.variable}}, {}, lane.extent};
        size_t known = 0;
        while (known != class_.variables.size() + class_.dimensions.size()) {
            known = class_.variables.size() + class_.dimensions.size();
            for (size_t p = 0; p < kernel_.phases.size(); ++p) {
                if (!Visit(p)) {
                    return std::nullopt;
                }
            }
        }
        if (class_.variables.size() != kernel_.phases.size()) {
            return std::nullopt;
        }
        return class_;
    }

  private:
    bool Visit(size_t p) {
        for (const std::vector<Access>* accesses : {&accesses_[p].stores, &accesses_[p].loads}) {
            for (const Access& access : *accesses) {
                if (!Visit(p, access, accesses == &accesses_[p].stores)) {
                    return false;
                }
            }
        }
        return true;
    }

    bool Visit(size_t p, const Access& access, bool stores) {
        const auto variable = class_.variables.find(p);
        const auto dimension = class_.dimensions.find(access.buffer.value());
        if (dimension != class_.dimensions.end()) {
            const Expr& place = (*access.index)[dimension->second];
            if (variable != class_.variables.end()) {
                return place == Expr(variable->second);
            }
            const loop::Loop* lane = LaneOf(kernel_.phases[p], place);
            if (lane == nullptr || lane->extent != class_.extent) {
                return false;
            }
            class_.variables.emplace(p, lane->variable);
            return true;
        }
        if (variable == class_.variables.end() || !stores) {
            return true;
        }
        for (size_t d = 0; d < access.index->size(); ++d) {
            if ((*access.index)[d] == Expr(variable->second)) {
                class_.dimensions.emplace(access.buffer.value(), d);
                return true;
            }
        }
        return false;  // every group would store it
    }

    Kernel& kernel_;
    std::vector<PhaseAccesses> accesses_;
    Class class_;
};

void SubstituteIn(Kernel& kernel, const std::map<Symbol, Expr>& values) {
    const auto all = [&](Indices& index) {
        for (Expr& expr : index) {
            expr = expr.Substitute(values);
        }
    };
    for (loop::ScalarNode& node : kernel.scalars) {
        if (auto* load = std::get_if<loop::Load>(&node.value)) {
            all(load->index);
        } else if (auto* index = std::get_if<loop::Index>(&node.value)) {
            index->value = index->value.Substitute(values);
        } else if (auto* range = std::get_if<loop::InRange>(&node.value)) {
            range->value = range->value.Substitute(values);
            range->extent = range->extent.Substitute(values);
        }
    }
    for (Phase& phase : kernel.phases) {
        for (loop::Store& store : phase.stores) {
            all(store.index);
        }
    }
}

void MakeGroups(Kernel& kernel, const Class& of, int64_t tile) {
    const Symbol group("$g" + std::to_string(kernel.parallel.size()));
    kernel.parallel.push_back({group, CeilDiv(of.extent, tile)});
    std::map<Symbol, Expr> values;
    for (const auto& [p, variable] : of.variables) {
        values.emplace(variable, tile == 1 ? Expr(group) : Expr(group) * tile + Expr(variable));
        std::vector<loop::Loop>& lanes = kernel.phases[p].lanes;
        for (size_t i = 0; i < lanes.size(); ++i) {
            if (lanes[i].variable == variable) {
                lanes[i].extent = tile;
                if (tile == 1) {
                    lanes.erase(lanes.begin() + static_cast<std::ptrdiff_t>(i));
                }
                break;
            }
        }
    }
    SubstituteIn(kernel, values);
    for (const auto& [local, d] : of.dimensions) {
        kernel.locals[local - loop::kFirstLocal].type.shape[d] = tile;
    }
    const std::vector<PhaseAccesses> accesses = LocalAccesses(kernel);
    for (const auto& [p, variable] : of.variables) {
        for (const std::vector<Access>* list : {&accesses[p].loads, &accesses[p].stores}) {
            for (const Access& access : *list) {
                (*access.index)[of.dimensions.at(access.buffer.value())] =
                    tile == 1 ? Expr(0) : Expr(variable);
            }
        }
    }
}

}  // namespace

void DropCopies(Kernel& kernel, const std::vector<BufferId>& copied) {
    const std::vector<PhaseAccesses> accesses = LocalAccesses(kernel);
    for (const BufferId local : copied) {
        if (!OneCopyIsEnough(kernel, accesses, local)) {
            continue;
        }
        kernel.locals[local.value() - loop::kFirstLocal].type.shape[0] = 1;
        for (const PhaseAccesses& phase : accesses) {
            for (const std::vector<Access>* list : {&phase.loads, &phase.stores}) {
                for (const Access& access : *list) {
                    if (access.buffer == local) {
                        (*access.index)[0] = 0;
                    }
                }
            }
        }
    }
}

void FormGroups(Kernel& kernel, const SizeFacts& sizes, int64_t tile) {
    // The phase with the most dimensions; its last one is what the invocations share.
    size_t widest = 0;
    for (size_t p = 0; p < kernel.phases.size(); ++p) {
        if (kernel.phases[p].lanes.size() > kernel.phases[widest].lanes.size()) {
            widest = p;
        }
    }
    if (kernel.phases.empty() || kernel.phases[widest].lanes.size() < 2) {
        return;
    }
    const std::vector<loop::Loop> lanes = kernel.phases[widest].lanes;
    ClassFinder finder(kernel);
    std::vector<Class> classes;
    for (size_t i = 0; i + 1 < lanes.size(); ++i) {
        if (std::optional<Class> found = finder.Find(widest, lanes[i])) {
            classes.push_back(std::move(*found));
        }
    }
    int64_t groups = 1;
    for (size_t i = 0; i < classes.size(); ++i) {
        const int64_t extent = sizes.Hint(classes[i].extent);
        int64_t together = i + 1 < classes.size() ? 1 : std::min(tile, extent);
        while (together > 1 && ((together & (together - 1)) != 0 ||
                                (extent + together - 1) / together * groups < kLeastGroups)) {
            --together;
        }
        groups *= (extent + together - 1) / std::max<int64_t>(together, 1);
        if (classes[i].extent != Expr(together)) {
            MakeGroups(kernel, classes[i], std::max<int64_t>(together, 1));
        }
    }
}

}  // namespace fornax::graph
