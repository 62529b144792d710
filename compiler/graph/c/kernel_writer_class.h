// How kernel_writer.h writes a function: loops in kernel_loops.cpp, scalars and memory in
// kernel_scalars.cpp.
//
// Scalars are computed in the outermost loop in which what they depend on is known. What a
// reduction computes again for each point of a loop inside of which it lies, and what several loops
// compute alike, is kept in tables (tables.h, shared_values.h) if it is dear.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "compiler/graph/c/index_text.h"
#include "compiler/graph/c/shared_values.h"
#include "compiler/graph/c/tables.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::c {

class KernelWriter {
  public:
    explicit KernelWriter(const loop::Kernel& kernel);
    Result<std::string> Write(const std::string& name);

  private:
    using Loop = loop::Loop;
    using ScalarId = loop::ScalarId;
    using Body = std::function<void()>;

    // What is known where code is written.
    struct State {
        std::vector<bool> computed;    // scalars
        std::vector<ScalarId> tabled;  // scalars that a table has
        std::vector<Table> tables;     // of those
        loop::VariableSet bound = 0;
    };

    // An element of a buffer.
    struct Place {
        std::string buffer;
        std::string offset;
        std::string condition;  // whether it is inside of the buffer; empty: always
    };

    template <typename... Args>
    void Line(fmt::format_string<Args...> format, Args&&... args) {
        text_ += std::string(4 * depth_, ' ');
        text_ += fmt::format(format, std::forward<Args>(args)...);
        text_ += '\n';
    }
    void Open(const std::string& head);
    void Close();
    // What `body` makes known is not known behind it.
    void Scoped(const Body& body);
    std::string IndexOf(const Expr& expr, int64_t otherwise);

    loop::VariableSet BitOf(const Symbol& variable) const {
        return loop::VariableSet{1} << *scope_.Find(variable);
    }
    bool InLanes(ScalarId id) const { return (scope_.free[id.value()] & lanes_) != 0; }
    std::string Ref(ScalarId id) const { return index_.Name(loop::SymbolOfScalar(id)); }

    // Loops.
    void FindWhatSeesStores();
    std::vector<Loop> OrderedLoops(std::span<const ScalarId> roots) const;
    // All points of the loops from `level` on, and what `roots` need at each.
    void Points(std::span<const Loop> loops,
                size_t level,
                std::span<const ScalarId> roots,
                const Body& body);
    void ForEach(const Loop& loop, const Body& body);
    void Bind(const Symbol& variable);
    int64_t LanesOf(const Loop& loop, std::span<const ScalarId> roots) const;
    void InGroups(const Loop& loop, int64_t lanes, const Body& body);
    void ForLanes(bool in_lanes, const Body& body);
    void Phases(loop::When when);
    // Computes what `roots` need and what is known here.
    void ComputeReady(std::span<const ScalarId> roots);

    // Tables.
    TableChoice Choice(const std::vector<bool>& needed,
                       std::span<const Loop> inner,
                       std::span<const ScalarId> roots) const;
    void MakeTables(std::span<const Loop> inner, std::span<const ScalarId> roots);
    void MakeSharedTables(std::span<const Loop> inner, std::span<const ScalarId> roots);
    void FillTable(const Table& table);
    void TablePoints(const Table& table, size_t level, const Body& body);
    void UseTable(ScalarId scalar, const Table& table);
    std::string TableIndex(const Table& table);

    // Scalars.
    void Compute(ScalarId id);
    void Define(ScalarId id, const std::function<std::string()>& value);
    void Declare(ScalarId id,
                 const std::string& name,
                 std::string_view type,
                 const std::string& value);
    std::string Value(ElementType type, const loop::Constant& constant);
    std::string Value(ElementType type, const loop::Load& load);
    std::string Value(ElementType type, const loop::Index& index);
    std::string Value(ElementType type, const loop::InRange& range);
    std::string Value(ElementType type, const loop::Map& map);
    std::string Value(ElementType type, const loop::Cast& cast);
    std::string Value(ElementType type, const loop::Bitcast& cast);
    std::string Value(ElementType type, const loop::Reduce& reduce);
    std::string Value(ElementType type, const loop::ArgReduce& reduce);
    void ReductionPoints(std::span<const Loop> loops,
                         size_t level,
                         ScalarId body,
                         const Body& at_point);
    void ComputeReduction(ScalarId id, const loop::Reduce& reduce);
    void ComputePosition(ScalarId id, const loop::ArgReduce& reduce);

    // Memory.
    std::string Temporary(const std::string& value);
    Place PlaceOf(loop::BufferId buffer, const std::vector<Expr>& index);
    void Stores(std::span<const loop::Store> stores);

    const loop::Kernel& kernel_;
    const loop::Scope scope_;
    IndexText index_;
    State state_;
    std::vector<bool> sees_stores_;  // scalars that see what the kernel stores
    bool in_phase_ = false;
    loop::VariableSet lanes_ = 0;  // the variable of which several points are computed together
    int64_t lane_count_ = 1;
    size_t temporaries_ = 0;
    std::string text_;
    size_t depth_ = 0;
    std::optional<std::string> problem_;
};

}  // namespace fornax::graph::c
