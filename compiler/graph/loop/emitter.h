// The state of EmitSpirv(): one kernel becomes one module. Not for others than emit_*.cpp.
//
// Scalars are emitted where they are asked for and kept in the innermost scope, which is a loop, a
// guarded block or the whole entry point. Before a loop begins, what it needs and does not depend
// on it is emitted, so nothing is computed again in each iteration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph/loop/emit_convert.h"
#include "compiler/graph/loop/emit_functions.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/loop/emit_values.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/loop/softmax.h"
#include "compiler/graph/spirv/module_builder.h"

namespace fornax::graph::loop {

// Loops that become one: their variables by the collapsed one.
struct Nest {
    std::vector<Loop> loops;
    VariableSet variables = 0;  // of the kernel
};

// Invocations for so many points in a row: whole vectors, little waste.
uint32_t LocalSizeFor(const Expr& points);

// What a workgroup of a product in tiles computes: numbers of the batch and of tiles.
struct TileGrid {
    Id batch = 0, m = 0, n = 0;
    Id inside = 0;  // whether there is such a tile
};

class WindowEmitter;
struct Window;
struct Quantised;

class Emitter : ValueOps {
  public:
    Emitter(const Kernel& kernel, ModuleCode& module);
    Result<Module> Run();

  private:
    friend class ProductEmitter;
    friend class ByteProductEmitter;
    friend class RegisterProductEmitter;
    friend class AttentionEmitter;
    // --- emit_product.cpp: tiles of a sum of products; false if the kernel or the device has none
    bool EmitProduct();
    TileGrid OpenTileGrid(const Product& product,
                          const Expr& m_tiles,
                          const Expr& n_tiles,
                          uint32_t tile_rows = 32);
    // --- emit_phases.cpp: a group of invocations for each point of the parallel loops; false if
    // the kernel has no phases
    bool EmitPhases();
    void RunPhases(When when);
    void Iterations(size_t sequential);
    void EmitPhase(const Phase& phase);
    void EmitBlock(const Phase& phase, std::span<const Loop> block);
    void ForBlock(std::span<const Loop> block, const std::function<void(size_t)>& body);
    std::vector<std::vector<ScalarId>> JointReductions(const std::vector<bool>& needed) const;
    // --- emit_window.cpp: tiles of a sliding window; false if the kernel has none
    friend class WindowEmitter;
    bool EmitWindow();
    // --- emit_columns.cpp: sliding windows with lanes; false if the lanes are too few
    friend class ColumnEmitter;
    bool EmitColumns(const Window& window);
    // The value of a scalar that is in workgroup memory, or that an earlier iteration of the same
    // unrolled reduction has computed; 0 if there is none.
    Id StagedValue(ScalarId id);
    void KeepUnrolled(ScalarId id, Id value);
    std::optional<std::vector<int64_t>> UnrolledPlace(ScalarId id) const;
    // --- emit_few_rows.cpp: a product that HasFewRows()
    void EmitFewRows(const Product& product);
    // --- emit_few_dots.cpp: a product that HasFewDots()
    void EmitFewDots(const Product& product);
    // --- emit_bytes.cpp: false if the product or the device is not made for it
    bool EmitByteProduct(const Product& product);
    bool EmitBlockProduct();
    // --- emit_register_product.cpp: false if matrices are as fast, or the product is no such one
    bool EmitRegisterProduct(const Product& product);
    // Runs code with the variables of one row, or column.
    using AtRow = std::function<void(uint32_t row, const std::function<void()>& code)>;
    Ids FewRowsSums(const Product& product, const Ids& initial, const AtRow& at_row);
    size_t UnrolledFrom(std::span<const Loop> loops) const;
    Ids FewDotsSums(const Product& product,
                    std::pair<uint32_t, uint32_t> rows,
                    uint32_t columns,
                    const AtRow& at_row,
                    const AtRow& at_column);
    // --- emit_attention.cpp: tiles of scores; false if the kernel is no attention
    bool EmitAttention();
    // --- emit_across.cpp: reductions row by row; false if rows do not lie across the memory
    friend class AcrossEmitter;
    bool EmitAcross(const Nest& nest, std::span<const Expr> uses);
    // --- emit_runs.cpp: a run of points for each invocation
    struct Runs {
        size_t lanes = 0;    // the loop whose points neighbouring invocations take
        size_t run = 0;      // the loop that has the runs
        int64_t points = 1;  // of a run
    };
    std::optional<Runs> FindRuns(const Nest& nest,
                                 std::span<const Expr> uses,
                                 const std::vector<bool>& needed) const;
    void EmitRuns(const Nest& nest, const Runs& runs);
    void EmitRun(const Loop& loop, Id first, int64_t points);
    // --- emit_spirv.cpp: the mapping of points to invocations
    // Whether no loop's extent may be negative: tiles are counted without signs.
    bool HasNoNegativeExtents() const;
    void EmitFlat();
    void EmitTiles(const Nest& nest, size_t other);
    bool EmitShortRows(const Nest& nest, std::span<const Expr> uses);
    std::optional<size_t> TiledLoop(const Nest& nest, std::span<const Expr> uses) const;
    Id EmitBelow(Id point, const Expr& points, uint32_t size);
    // --- emit_rows.cpp
    bool CanMapRows() const;
    void EmitRows();
    struct Row {
        uint32_t number = 0;           // in the workgroup
        Ids place;                     // of the row loops' variables
        std::map<uint32_t, Id> known;  // a scope: scalars that are one value in the row
    };
    uint32_t RowsTogether(const Nest& rows,
                          std::span<const Loop> lane_loops,
                          const std::vector<bool>& needed) const;
    void InRow(const Nest& rows, Row& row, bool keep, const std::function<void()>& code);
    void ReduceRows(const Nest& rows, std::vector<Row>& each, const std::vector<bool>& needed);
    Ids ReduceTogether(const Nest& rows, std::vector<Row>& each, ScalarId id);
    void EmitRowStores(std::span<const Store* const> stores, std::span<const Loop> lane_loops);
    // The sequential loops and in them the stores.
    void EmitPoint(size_t sequential);
    std::vector<const Store*> AllStores() const;
    struct Write {
        Id condition, offset, value;
        BufferId buffer;
    };
    // What the stores write at the point that is bound, and writing it.
    void ComputeWrites(std::span<const Store* const> stores, std::vector<Write>& writes);
    void Do(std::span<const Write> writes);
    void EmitStores(std::span<const Store* const> stores);
    VariableSet FreeOf(const Store& store) const;
    void MarkAliases();
    // The number of this workgroup among `count`, and the sizes of the grid that has them.
    Id WorkgroupIndex(const Expr& count);
    void BindFromIndex(std::span<const Loop> loops, Id index);

    // --- emit_index.cpp: expressions
    // One loop for adjacent ones wherever all accesses of `users` allow it.
    Nest Collapse(std::span<const Loop> loops, std::span<const Expr> users);
    // What is computed of the scalars' and stores' variables: offsets, checks, extents.
    std::vector<Expr> UsesIn(const std::vector<bool>& scalars, std::span<const Store> stores);
    struct Access {
        Expr offset;
        std::vector<std::pair<Expr, Expr>> checks;  // index, extent
        Id inside = 0;                              // of indices that are scalars; 0: true
    };
    Access AccessOf(BufferId buffer, const std::vector<Expr>& index);
    Expr Simplified(const Expr& expr) const;
    Expr UnmergedValue(const Symbol& symbol) const;
    Expr Offset(BufferId buffer, const std::vector<Expr>& index) const;
    bool Proven(const Expr& index, const Expr& extent) const;
    bool FitsI32(const Expr& expr) const;
    Id EmitExpr(const Expr& expr);      // u32, of a simplified expression
    Id EmitWideExpr(const Expr& expr);  // i64, of any
    Id EmitAtom(const ExprAtom& atom);
    Id EmitQuotient(const ExprAtom& atom, bool wide);
    Id EmitWideAtom(const ExprAtom& atom);
    Id Widened(Id value);
    std::vector<ExprTerm> ByDepth(const Expr& expr) const;
    Id EmitChecks(const Access& access);
    Id EmitInRange(const InRange& range);
    size_t DepthOf(const Expr& expr) const;
    bool UsesScalar(const Expr& expr) const;
    Expr GreatestMagnitude(const Expr& expr) const;
    void CheckNarrow(const Expr& expr);
    void Bind(const Symbol& symbol, const Expr& extent, Id value);
    void Unbind(const Symbol& symbol);

    // --- emit_scalars.cpp
    Id Value(ScalarId id);
    Id Compute(const ScalarNode& node, const Constant& constant);
    Id Compute(const ScalarNode& node, const Load& load);
    Id Compute(const ScalarNode& node, const Index& index);
    Id Compute(const ScalarNode& node, const InRange& range);
    Id Compute(const ScalarNode& node, const Map& map);
    Id Compute(const ScalarNode& node, const Cast& cast);
    Id Compute(const ScalarNode& node, const Bitcast& cast);
    Id Compute(const ScalarNode& node, const Reduce& reduce);
    Id Compute(const ScalarNode& node, const ArgReduce& reduce);
    // The f32 of an integer that was quantised, without the integer; 0 if it was not.
    Id Dequantised(const Cast& cast);
    // The whole number of a quotient, clamped; without the zero point.
    Id WholeQuotient(ScalarId id, const Quantised& quantised);
    // The scalars that `roots` need, themselves included, up to those that are staged.
    std::vector<bool> Needed(std::span<const ScalarId> roots) const;
    // The same without `end` and what only that needs.
    std::vector<bool> NeededBefore(std::span<const ScalarId> roots, ScalarId end) const;
    ScalarId IdOf(const ScalarNode& node) const {
        return ScalarId(static_cast<uint32_t>(&node - kernel_.scalars.data()));
    }
    bool IsSumOfSoftmax(ScalarId id) const;
    // The reciprocal of a softmax's sum that was hoisted; 0 if there is none.
    Id HoistedReciprocal(ScalarId sum) const;
    // Emits what is needed and has only variables that are bound.
    void Hoist(const std::vector<bool>& needed);
    void HoistScalar(ScalarId id);
    void OpenScope() { scopes_.emplace_back(); }
    void CloseScope() { scopes_.pop_back(); }

    // --- emit_reduce.cpp
    bool IsOfNumbers(ScalarId reduce) const;  // a maximum that NaN need not reach
    // Values of this reduction that become one.
    Id Combined(ScalarId reduce, Id a, Id b);
    using PointBody = std::function<Ids(std::span<const Id>)>;
    // Runs `body` at all points, one after the other; it gets and gives the carried values.
    Ids ForNest(const Nest& nest, size_t first, std::span<const Id> carried, const PointBody& body);
    // The same, with the points distributed over the workgroup's invocations. There are `ways` sets
    // of carried values, which different points may take so that they do not wait for each other.
    Ids ForLanes(const Nest& nest,
                 std::span<const Id> carried,
                 const PointBody& body,
                 size_t ways = 1,
                 size_t several = 1);
    // How many points' code is written out, of what varies with the variables.
    size_t SeveralOf(const std::vector<bool>& needed, VariableSet variables) const;
    size_t WaysOf(std::span<const Loop> loops) const;
    Ids Unrolled(std::span<const Loop> loops, std::span<const Id> carried, const PointBody& body);
    bool ShouldUnroll(std::span<const Loop> loops, const std::vector<bool>& needed) const;
    Id EmitExtent(const Expr& extent);
    Ids Reduction(std::span<const Loop> loops,
                  std::span<const ScalarId> bodies,
                  std::span<const Id> initial,
                  bool cooperative,
                  const PointBody& body,
                  size_t ways = 1);
    // `with_nan`: whether a maximum or minimum of NaN is NaN, and not that of the numbers.
    Id AcrossInvocations(Combine combine, ElementType type, Id value, bool with_nan = true);
    Id AcrossSubgroup(Combine combine, ElementType type, Id value, bool with_nan);
    Ids ArgStep(const ArgReduce& reduce, ElementType type, Id best, Id position, Id value, Id at);

    const Kernel& kernel_;
    Scope scope_;
    SoftmaxReductions softmax_;
    ScalarFunctions functions_;
    Conversions conversions_;
    Id ArrayOf(BufferId buffer) const {
        return Kernel::IsLocal(buffer) ? locals_[buffer.value() - kFirstLocal]
                                       : buffers_[buffer.value()];
    }
    Ids buffers_, locals_;
    Domain domain_;
    uint32_t local_size_ = 64;  // invocations in a workgroup
    std::array<uint32_t, 3> group_ = {1, 1, 1};
    std::array<Expr, 3> workgroups_ = {1, 1, 1};
    std::vector<Expr> limits_;
    // Two variables that became one: merged = outer * inner_extent + inner.
    struct Merge {
        Symbol outer, inner, merged;
        Expr inner_extent;
    };
    std::vector<Merge> merges_;  // inner ones first
    struct Binding {
        Id value = 0;
        size_t depth = 0;
    };
    std::map<Symbol, Binding> bound_;
    VariableSet bound_variables_ = 0;
    std::vector<std::map<uint32_t, Id>> scopes_;
    uint32_t opaque_ = 0;
    uint32_t merge_count_ = 0;
    Id in_grid_ = 0;        // whether the workgroup's number is below their count; 0: it is
    bool uniform_ = false;  // in code that all invocations of the workgroup run
    Id lane_ = 0;           // of this invocation in the workgroup
    // The row mapping's values that are kept in workgroup memory, one a point.
    struct Kept {
        Id array = 0;
        Symbol point;
        uint32_t points = 0;
    };
    uint32_t kept_row_ = 0;                              // of the workgroup's rows
    std::map<uint32_t, Kept> writes_kept_, reads_kept_;  // by scalar
    Id KeptPlace(const Kept& kept);
    std::map<Id, Id> shared_;  // arrays in workgroup memory, by their elements' type
    // These are set while the points of a sliding window are computed.
    WindowEmitter* window_ = nullptr;
    std::vector<ScalarId> staged_;  // scalars that are in workgroup memory
    // Values in unrolled reductions that do not depend on the point, by scalar and place.
    std::map<std::pair<uint32_t, std::vector<int64_t>>, Id> unrolled_;
};

}  // namespace fornax::graph::loop
