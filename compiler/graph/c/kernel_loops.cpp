// The loops of a kernel, from outside to inside, and the tables before them.
#include <algorithm>

#include "compiler/graph/c/element_text.h"
#include "compiler/graph/c/kernel_writer.h"
#include "compiler/graph/c/kernel_writer_class.h"

namespace fornax::graph::c {

using loop::Kernel;
using loop::ScalarNode;
using loop::Store;
using loop::VariableSet;
using loop::When;

namespace {

// Points of the innermost loop that go through a reduction together. So a product reads an element
// of its first operand once for all of them, and a compiler may use vectors.
constexpr int64_t kLanes = 8;
constexpr int64_t kMostLanes = 12;

}  // namespace

Result<std::string> WriteKernel(const Kernel& kernel, const std::string& name) {
    return KernelWriter(kernel).Write(name);
}

KernelWriter::KernelWriter(const Kernel& kernel)
    : kernel_(kernel),
      scope_(loop::FindScope(kernel)),
      index_(kernel, scope_),
      state_{std::vector<bool>(kernel.scalars.size()), {}, {}, 0},
      sees_stores_(kernel.scalars.size()) {
    FindWhatSeesStores();
}

Result<std::string> KernelWriter::Write(const std::string& name) {
    text_ = fmt::format("static void {}(void* const* blocks) {{\n", name);
    depth_ = 1;
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
        const loop::Buffer& buffer = kernel_.buffers[i];
        Line("{}{}* const b{} = blocks[{}];  // {}", buffer.written ? "" : "const ",
             StorageTypeOf(buffer.type.element), i, i, buffer.type.ToString());
    }
    for (size_t i = 0; i < kernel_.locals.size(); ++i) {
        const loop::Buffer& local = kernel_.locals[i];
        Line("static {} l{}[{}];  // {}", StorageTypeOf(local.type.element), i,
             *local.type.shape.Volume().constant(), local.type.ToString());
    }
    const std::vector<ScalarId> roots = loop::RootsOf(loop::StoresOf(kernel_));
    std::vector<Loop> loops = OrderedLoops(roots);
    if (kernel_.phases.empty()) {
        loops.insert(loops.end(), kernel_.sequential.begin(), kernel_.sequential.end());
        Points(loops, 0, roots, [&] { Stores(kernel_.stores); });
    } else {
        Points(loops, 0, roots, [&] {
            Phases(When::kBefore);
            Points(kernel_.sequential, 0, roots, [&] { Phases(When::kEach); });
            Phases(When::kAfter);
        });
    }
    text_ += "}\n";
    if (problem_) {
        return Error{ErrorCode::kUnsupported, *problem_};
    }
    return text_;
}

void KernelWriter::Open(const std::string& head) {
    Line("{}{{", head.empty() ? "" : head + " ");
    ++depth_;
}

void KernelWriter::Close() {
    --depth_;
    Line("}}");
}

void KernelWriter::Scoped(const Body& body) {
    State outer = state_;
    body();
    state_ = std::move(outer);
}

std::string KernelWriter::IndexOf(const Expr& expr, int64_t otherwise) {
    const std::optional<std::string> text = index_.Write(expr, otherwise);
    if (!text) {
        problem_ = fmt::format("it divides by what may be 0 in {}", expr.ToString());
        return "0";
    }
    return *text;
}

// What phases store has another value in each phase.
void KernelWriter::FindWhatSeesStores() {
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
        const ScalarNode& node = kernel_.scalars[i];
        const auto* load = std::get_if<loop::Load>(&node.value);
        bool sees =
            load != nullptr && (Kernel::IsLocal(load->buffer) || kernel_[load->buffer].written);
        for (const ScalarId operand : loop::OperandsOf(node)) {
            sees = sees || sees_stores_[operand.value()];
        }
        for (const Expr& expr : loop::ExpressionsOf(node)) {
            for (const Symbol& symbol : expr.Symbols()) {
                const std::optional<ScalarId> scalar = loop::ScalarOfSymbol(symbol);
                sees = sees || (scalar && sees_stores_[scalar->value()]);
            }
        }
        sees_stores_[i] = sees;
    }
}

// Parallel loops, so that reductions which do not depend on all of them lie outside of the others:
// those of a softmax over a middle axis, for example.
std::vector<loop::Loop> KernelWriter::OrderedLoops(std::span<const ScalarId> roots) const {
    const std::vector<bool> needed = loop::Needed(kernel_, roots);
    // With how many reductions do not depend on each.
    std::vector<std::pair<size_t, size_t>> order;
    for (size_t n = 0; n < kernel_.parallel.size(); ++n) {
        size_t count = 0;
        for (size_t i = 0; i < needed.size(); ++i) {
            const bool reduces = !loop::LoopsOf(kernel_.scalars[i]).empty();
            count += needed[i] && reduces && (scope_.free[i] >> n & 1) == 0 ? 1 : 0;
        }
        order.emplace_back(count, n);
    }
    std::sort(order.begin(), order.end());
    std::vector<Loop> loops;
    for (const auto& [count, n] : order) {
        loops.push_back(kernel_.parallel[n]);
    }
    return loops;
}

void KernelWriter::ComputeReady(std::span<const ScalarId> roots) {
    const std::vector<bool> needed = loop::Needed(kernel_, roots, state_.tabled);
    const bool no_phase = !kernel_.phases.empty() && !in_phase_;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] && !state_.computed[i] && (scope_.free[i] & ~state_.bound) == 0 &&
            !(no_phase && sees_stores_[i])) {
            Compute(ScalarId(i));
            state_.computed[i] = true;
        }
    }
}

void KernelWriter::ForEach(const Loop& loop, const Body& body) {
    Scoped([&] {
        const std::string name = index_.Name(loop.variable);
        Open(fmt::format("for (int64_t {} = 0; {} < {}; ++{})", name, name, IndexOf(loop.extent, 0),
                         name));
        Bind(loop.variable);
        body();
        Close();
    });
}

// Scalars that depend on an outer value of the variable are computed again.
void KernelWriter::Bind(const Symbol& variable) {
    const VariableSet bit = BitOf(variable);
    for (size_t i = 0; i < state_.computed.size(); ++i) {
        if ((scope_.free[i] & bit) != 0) {
            state_.computed[i] = false;
        }
    }
    state_.bound |= bit;
}

void KernelWriter::Points(std::span<const Loop> loops,
                          size_t level,
                          std::span<const ScalarId> roots,
                          const Body& body) {
    MakeSharedTables(loops.subspan(level), roots);
    ComputeReady(roots);
    if (level == loops.size()) {
        return body();
    }
    Scoped([&] {
        MakeTables(loops.subspan(level), roots);
        const auto inside = [&] { Points(loops, level + 1, roots, body); };
        const int64_t lanes = level + 1 == loops.size() ? LanesOf(loops[level], roots) : 1;
        if (lanes == 1) {
            ForEach(loops[level], inside);
        } else {
            InGroups(loops[level], lanes, inside);
        }
    });
}

// Several points of the loop at once, then those that are left one by one.
void KernelWriter::InGroups(const Loop& loop, int64_t lanes, const Body& body) {
    const std::string name = index_.Name(loop.variable);
    const int64_t extent = *loop.extent.constant(), whole = extent / lanes * lanes;
    Scoped([&] {
        Open(
            fmt::format("for (int64_t {} = 0; {} < {}; {} += {})", name, name, whole, name, lanes));
        Bind(loop.variable);
        lanes_ = BitOf(loop.variable);
        lane_count_ = lanes;
        index_.SetLanes(&scope_, lanes_);
        body();
        lanes_ = 0;
        index_.SetLanes(nullptr, 0);
        Close();
    });
    if (whole == extent) {
        return;
    }
    Scoped([&] {
        Open(fmt::format("for (int64_t {} = {}; {} < {}; ++{})", name, whole, name, extent, name));
        Bind(loop.variable);
        body();
        Close();
    });
}

// How many points of the innermost loop are computed together.
int64_t KernelWriter::LanesOf(const Loop& loop, std::span<const ScalarId> roots) const {
    const std::optional<int64_t> extent = loop.extent.constant();
    const VariableSet bit = BitOf(loop.variable);
    if (!kernel_.phases.empty() || !kernel_.sequential.empty() || !extent || *extent < 2) {
        return 1;
    }
    const std::vector<bool> needed = loop::Needed(kernel_, roots, state_.tabled);
    bool has_reduction = false;
    for (size_t i = 0; i < needed.size(); ++i) {
        const std::span<const Loop> loops = loop::LoopsOf(kernel_.scalars[i]);
        if (!needed[i] || state_.computed[i] || loops.empty() || (scope_.free[i] & bit) == 0) {
            continue;
        }
        has_reduction |= std::holds_alternative<loop::Reduce>(kernel_.scalars[i].value);
        for (const Loop& own : loops) {
            if ((scope_.FreeIn(own.extent) & bit) != 0) {
                return 1;
            }
        }
    }
    return !has_reduction ? 1 : *extent <= kMostLanes ? *extent : kLanes;
}

void KernelWriter::ForLanes(bool in_lanes, const Body& body) {
    if (in_lanes) {
        Open(fmt::format("for (int lane = 0; lane < {}; ++lane)", lane_count_));
    }
    body();
    if (in_lanes) {
        Close();
    }
}

void KernelWriter::Phases(When when) {
    for (const loop::Phase& phase : kernel_.phases) {
        if (phase.when != when) {
            continue;
        }
        std::vector<const Store*> stores;
        for (const Store& store : phase.stores) {
            stores.push_back(&store);
        }
        const std::vector<ScalarId> roots = loop::RootsOf(stores);
        Scoped([&] {
            Open("");
            in_phase_ = true;
            Points(phase.lanes, 0, roots, [&] { Stores(phase.stores); });
            in_phase_ = false;
            Close();
        });
    }
}

// --- Tables --------------------------------------------------------------------------------------

TableChoice KernelWriter::Choice(const std::vector<bool>& needed,
                                 std::span<const Loop> inner,
                                 std::span<const ScalarId> roots) const {
    return {kernel_, scope_, needed, state_.computed, state_.bound, inner, sees_stores_, roots};
}

// For each point of the next loop the same.
void KernelWriter::MakeTables(std::span<const Loop> inner, std::span<const ScalarId> roots) {
    const std::vector<bool> needed = loop::Needed(kernel_, roots, state_.tabled);
    for (const Table& table : ChooseTables(Choice(needed, inner, roots))) {
        FillTable(table);
        UseTable(table.scalar, table);
    }
}

// What several loops compute alike.
void KernelWriter::MakeSharedTables(std::span<const Loop> inner, std::span<const ScalarId> roots) {
    if (lanes_ != 0) {
        return;
    }
    const std::vector<bool> needed = loop::Needed(kernel_, roots, state_.tabled);
    for (const SharedValues& values : FindSharedValues(Choice(needed, inner, roots))) {
        const ValueOfLoop& first = values.front();
        const std::vector<ScalarId> root = {first.scalar};
        ComputeReady(root);
        FillTable({first.scalar, {first.loop}, *first.loop.extent.constant()});
        for (const ValueOfLoop& value : values) {
            UseTable(value.scalar, {first.scalar, {value.loop}, 0});
        }
    }
}

void KernelWriter::FillTable(const Table& table) {
    Line("static {} t{}[{}];", CTypeOf(kernel_[table.scalar].type), table.scalar.value(),
         table.count);
    const std::vector<ScalarId> root = {table.scalar};
    Scoped([&] {
        TablePoints(table, 0, [&] {
            ComputeReady(root);
            Line("t{}[{}] = {};", table.scalar.value(), TableIndex(table), Ref(table.scalar));
        });
    });
}

void KernelWriter::TablePoints(const Table& table, size_t level, const Body& body) {
    if (level == table.loops.size()) {
        return body();
    }
    ForEach(table.loops[level], [&] {
        if (level + 1 < table.loops.size()) {
            const std::vector<ScalarId> root = {table.scalar};
            ComputeReady(root);
        }
        TablePoints(table, level + 1, body);
    });
}

// From here on the scalar is an element of the table.
void KernelWriter::UseTable(ScalarId scalar, const Table& table) {
    state_.tabled.push_back(scalar);
    state_.tables.push_back(table);
}

std::string KernelWriter::TableIndex(const Table& table) {
    Expr index;
    for (const Loop& loop : table.loops) {
        index = index * loop.extent + Expr(loop.variable);
    }
    return IndexOf(index, 0);
}

}  // namespace fornax::graph::c
