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

#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/loop/softmax.h"
#include "compiler/graph/spirv/module_builder.h"

namespace fornax::graph::loop {

using spirv::Id;
using spirv::Ids;

// How a value is held: narrower types in 32 bits, always with the bits that their own type has.
enum class Held : uint8_t { kBool, kI32, kI64, kF32, kF64 };
Held HeldAs(ElementType type);

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

class Emitter {
  public:
    Emitter(const Kernel& kernel, const Target& target);
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
    Id Reject(const std::string& why);

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
    Id ConstantOf(ElementType type, const Scalar& value);
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
    bool IsOfNumbers(ScalarId reduce) const;  // a maximum that NaN need not reach
    bool IsSumOfSoftmax(ScalarId id) const;
    // The reciprocal of a softmax's sum that was hoisted; 0 if there is none.
    Id HoistedReciprocal(ScalarId sum) const;
    // Emits what is needed and has only variables that are bound.
    void Hoist(const std::vector<bool>& needed);
    void HoistScalar(ScalarId id);
    void OpenScope() { scopes_.emplace_back(); }
    void CloseScope() { scopes_.pop_back(); }

    // --- emit_functions.cpp: scalar functions of values
    Id Function(ScalarFunction function, ElementType type, std::span<const Id> arguments);
    Id IntegerFunction(ScalarFunction function, ElementType type, std::span<const Id> arguments);
    Id FloatFunction(ScalarFunction function, ElementType type, std::span<const Id> arguments);
    Id IntegerQuotient(ScalarFunction function, ElementType type, Id a, Id b);
    Id IntegerPower(ElementType type, Id a, Id b);
    Id Shift(ScalarFunction function, ElementType type, Id a, Id b);
    Id Wrap(ElementType type, Id value);
    Id CombineValues(Combine combine, ElementType type, Id a, Id b);
    // The same for values of this reduction.
    Id Combined(ScalarId reduce, Id a, Id b);
    Id Least(Id a, Id b);
    Id Greatest(Id a, Id b);
    Id Remainder(Id a, Id b);
    Id IsNan(Id a) { return b_.Op(spv::Op::OpIsNan, b_.Bool(), {a}); }
    Id CopySign(Id magnitude, Id sign);

    // --- emit_math.cpp: transcendental functions of f32
    Id Math(ScalarFunction function, Id x, Id y);
    Id Polynomial(Id x, std::span<const float> coefficients);
    Id Fma(Id a, Id b, Id c);
    Id Expm1(Id x);
    Id Log1p(Id x);
    Id Erf(Id x);
    Id Hyperbolic(ScalarFunction function, Id x);
    Id Power(Id x, Id y);

    // --- emit_convert.cpp
    Id Convert(Id value, ElementType from, ElementType to, Overflow overflow, Rounding rounding);
    Id ConvertFloat(Id value,
                    ElementType from,
                    ElementType to,
                    Overflow overflow,
                    Rounding rounding);
    Id Saturated(Id value);
    Id FloatToInteger(Id value, ElementType from, ElementType to);
    Id IntegerToFloat(Id value, ElementType from, ElementType to);
    Id F64ToF32(Id value, Overflow overflow, Rounding rounding, bool to_odd);
    Id RoundF32(Id value, ElementType to, Overflow overflow, Rounding rounding);
    // The code of an f32 in a narrower type, rounded; and back.
    Id Encode(Id value, ElementType to, Overflow overflow, Rounding rounding);
    Id Decode(Id code, ElementType from);
    Id EncodeE8M0(Id value, Overflow overflow, Rounding rounding);
    Id StorageType(ElementType type);
    Id CodeOf(Id value, ElementType type);  // the bits of the element, in u32 or i64
    Id FromCode(Id code, ElementType type);
    Id FromStorage(Id stored, ElementType type);
    Id ToStorage(Id value, ElementType type);

    // --- emit_reduce.cpp
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
    // A position of 32 bits as the i64 that it is.
    Id WidePosition(Id position);
    Ids ArgStep(const ArgReduce& reduce, ElementType type, Id best, Id position, Id value, Id at);

    Id TypeOf(Held held);
    Id TypeFor(ElementType type) { return TypeOf(HeldAs(type)); }
    Id U(uint32_t value) { return b_.Uint(value); }
    Id F(float value) { return b_.FloatConstant(value); }
    Id Unary(spv::Op op, Id a) { return b_.Op(op, b_.TypeOf(a), {a}); }
    Id Binary(spv::Op op, Id a, Id b) { return b_.Op(op, b_.TypeOf(a), {a, b}); }
    Id Test(spv::Op op, Id a, Id b) { return b_.Op(op, b_.Bool(), {a, b}); }
    Id BitsAs(Id type, Id a) { return b_.Op(spv::Op::OpBitcast, type, {a}); }

    const Kernel& kernel_;
    const Target& target_;
    Scope scope_;
    SoftmaxReductions softmax_;
    spirv::ModuleBuilder b_;
    Id ArrayOf(BufferId buffer) const {
        return Kernel::IsLocal(buffer) ? locals_[buffer.value() - kFirstLocal]
                                       : buffers_[buffer.value()];
    }
    Ids buffers_, locals_;
    Domain domain_;
    std::optional<Error> error_;
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
    std::map<Id, Id> narrow_;    // of i64 values that are i32 values: these
    struct Binding {
        Id value = 0;
        size_t depth = 0;
    };
    std::map<Symbol, Binding> bound_;
    VariableSet bound_variables_ = 0;
    std::vector<std::map<uint32_t, Id>> scopes_;
    uint32_t opaque_ = 0;
    bool rows_ = false;  // mapped so
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
