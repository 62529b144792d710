// Attention: scores that nobody keeps, in one pass over the keys.
//
// A workgroup of one subgroup takes a tile of queries. For each tile of keys it multiplies keys by
// queries, so that the scores of a query lie along a column; each invocation has a query, and finds
// the greatest score so far, the exponentials and their sum. What was summed up with a smaller
// maximum is scaled before the tile's values, times the exponentials, are added. Operands of the
// products are loaded as matrices where they lie, if they lie so; those of a tile that is not whole
// and all others are computed into workgroup memory, with 0 where there is nothing.
//
// A few queries, as a token has, go another way (emit_attention_few.cpp). Devices without matrices
// of f32 give each query to an invocation, key after key.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include <spirv/unified1/GLSL.std.450.h>

#include "compiler/graph/loop/attention.h"
#include "compiler/graph/loop/mapping_part.h"
#include "compiler/graph/loop/product_tiles.h"

namespace fornax::graph::loop {

// False if the kernel is no attention.
bool EmitAttention(KernelParts& parts);

// One attention; the state that its parts share.
class AttentionMapping : MappingPart {
  public:
    static constexpr uint32_t kSide = 16;  // of a matrix
    static constexpr uint32_t kMostKeys = 64;
    static constexpr uint32_t kMostQueries = 32;

    AttentionMapping(KernelParts& parts, const Attention& attention);

    // False if the tiles do not fit into workgroup memory.
    bool RunTiles();

    // False if there are many queries, columns that are fewer than the invocations or do not lie
    // side by side, or no arithmetic of subgroups.
    bool RunFewQueries();

    // Each invocation computes a query.
    void RunSerially();

  private:
    bool ChooseTiles();

    // The keys of the largest tile of which an operand is computed.
    uint32_t StagedKeys(bool in_place) const;
    // What is computed of keys, and of values, and at last the results, have one array.
    uint32_t StagedFloats() const;
    uint32_t SharedFloats() const;

    void Declare();

    // --- Matrices

    Id MatrixType(spv::CooperativeMatrixUse use);
    Id SumType() { return MatrixType(spv::CooperativeMatrixUse::MatrixAccumulatorKHR); }

    Id LoadMatrix(spv::CooperativeMatrixUse use, Id pointer, bool by_rows, Id stride);

    Id LoadInPlace(const TileAccess& access, Id row, Id depth);

    // The array has rows of `width` floats.
    Id LoadShared(spv::CooperativeMatrixUse use,
                  Id array,
                  uint32_t place,
                  uint32_t width,
                  bool by_rows = true);

    void StoreShared(Id array, uint32_t place, uint32_t width, Id matrix);

    void Clear(Id sums, uint32_t count);

    // sums += a * b, of rows x depth and depth x tile_m matrices. `load` gives a's (row, depth).
    template <typename Load>
    void Multiply(Id sums, uint32_t rows, uint32_t depth, Id b, const Load& load);

    // --- What is computed into workgroup memory

    // Calls `store` with each (row, column), in bounds of the array; neighbouring invocations have
    // neighbouring columns.
    template <typename Body>
    void ForEach(uint32_t rows, uint32_t columns, const Body& body);

    Id ValueOrZero(Id inside, ScalarId scalar);

    // A sum over no keys is 0, whatever its terms would be.
    Id FirstDenominator();

    // Emits what the score needs of its row, before the loop over the keys.
    void HoistRow();

    Id Below(Id index, const Expr& end) { return b_.ULess(index, index_.EmitSimplified(end)); }

    // The queries, one along a column; no maximum yet.
    void Begin();

    // [keys][columns] of an operand from key `first` on, `count` of them.
    void Stage(ScalarId operand,
               std::span<const Loop> column_loops,
               uint32_t columns,
               uint32_t whole_columns,
               uint32_t place,
               Id first,
               Id count,
               uint32_t tile_keys);

    // --- Tiles of keys

    void EmitKeys();

    void EmitTile(Id first, Id count, uint32_t tile_keys, bool keys_in_place, bool values_in_place);

    // --- The softmax

    Id Exp(Id x);
    // NaN may or may not win: its exponential makes the sum NaN anyway.
    Id Greater(Id a, Id b) { return b_.Ext(b_.F32(), GLSLstd450FMax, {a, b}); }
    // What is subtracted from scores. While all are -inf that is 0, so that their exponentials are
    // 0; if they all stay -inf the sum is 0 and the result 0 / 0, as by the definition.
    Id Subtracted(Id greatest);

    // The scores of the keys of a tile become exponentials.
    void EmitSoftmax(Id first, Id count, uint32_t tile_keys);

    // Queries behind the last one compute what the last one does: no load may leave its buffer.
    void BindRow(Id m);

    // --- The results

    void EmitResults();

    // A denominator below 0 is that of a row without keys.
    void EmitStores(Id sum, Id denominator);

    // --- emit_attention_few.cpp
    struct Part {
        uint32_t begin, end;
    };
    void EmitFewQueries();
    // Runs code with the variables of one query, of one key, or of this invocation's column in a
    // chunk, which may not be inside of the values.
    void AtQuery(uint32_t query, const std::function<void()>& code);
    Ids AtKey(Id key, const std::function<Ids()>& code);
    Id AtColumn(uint32_t chunk, const std::function<Id(Id)>& code);
    Ids FewScores();
    void EmitFewKeys(Id first, Id count);
    // Adds `count` values from key `first` on, times their exponentials, to the sums of these
    // queries and chunks of columns.
    void AddFewValues(Part queries, Part chunks, Id first, Id count);
    void EmitFewResults();

    // --- emit_attention_serial.cpp
    void EmitSerial(Id m);
    Id SumSerially(Id m);
    // Runs code with the variables of each column, and where its sum is.
    void ForColumns(const std::function<void(Id)>& body);

    const Attention& attention_;
    Expr m_;
    uint32_t n_, depth_;
    Expr keys_;
    uint32_t whole_depth_, whole_n_;  // with rows and columns that matrices have and operands not
    VariableSet row_variables_ = 0;
    uint32_t tile_m_ = kMostQueries, tile_keys_ = kMostKeys;
    uint32_t rest_keys_ = 0;  // of the last tile, at most
    std::optional<TileAccess> key_access_, value_access_;
    Id m_first_ = 0;
    // In workgroup memory: [depth][query], [key][query], 16 equal rows of factors of the sums so
    // far, one number a query, and what is computed of keys [key][depth] and values [key][n]. Of
    // few queries: [query][depth], [query][key], and private arrays of one number a query.
    Id queries_ = 0, scores_ = 0, factors_ = 0, greatest_ = 0, denominators_ = 0, staged_ = 0;
    uint32_t values_at_ = 0;      // in staged_
    Id sums_ = 0, products_ = 0;  // private arrays of matrices; of few queries: [query][chunk]
    uint32_t chunks_ = 0;         // of as many columns as there are invocations
};

template <typename Body>
void AttentionMapping::ForEach(uint32_t rows, uint32_t columns, const Body& body) {
    const uint32_t invocations = target_.subgroup_size;
    const Id end = U(rows * columns);
    b_.For(U(0), end, U(invocations), {}, [&](Id base, std::span<const Id>) -> Ids {
        const Id index = b_.Add(base, grid_.lane());
        const auto point = [&] {
            const ValueScope scope(point_);
            body(b_.UDiv(index, U(columns)), b_.UMod(index, U(columns)));
        };
        b_.If(rows * columns % invocations == 0 ? b_.True() : b_.ULess(index, end), point);
        return {};
    });
}

}  // namespace fornax::graph::loop
