// Sums of products in tiles, by cooperative matrices.
//
// A workgroup computes a tile of sums: rows m, columns n. Along k it takes matrices of its operands
// and multiplies them. An operand whose elements lie as a matrix load wants them is loaded where it
// is; any other is computed into workgroup memory first (staged), with 0 where there is no row,
// column or k, so that what follows needs no conditions. At the end the sums go through workgroup
// memory to the epilogue, the scalars and stores of each point.
//
// The last tile of rows may have fewer matrices, and some rows more that are multiplied without
// matrices. Tiles that would go over the edge of an operand that is loaded in place all the same
// begin earlier instead, and leave the stores of rows that the tile before has to that one.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "compiler/graph/loop/mapping_part.h"
#include "compiler/graph/loop/product.h"
#include "compiler/graph/loop/product_tiles.h"

namespace fornax::graph::loop {

// Products of any kind: of bytes, of few rows, in registers or in tiles. False if the kernel or the
// device has none.
bool EmitProduct(KernelParts& parts);

class ProductMapping : MappingPart {
  public:
    static constexpr uint32_t kSide = 16;  // of a matrix

    ProductMapping(KernelParts& parts, const Product& product);
    void Run();

  private:
    // An operand: where its matrices come from.
    struct Operand {
        bool in_place = false;
        TileAccess access;  // of an operand in place
        Expr rows;          // its rows (or columns), with those that only memory has
        // Whether neighbours in k lie side by side in workgroup memory, else neighbours in rows.
        bool unit_depth = false;
        uint32_t run = 0;  // so many ks from a multiple of them lie side by side in memory
        Id shared = 0;
        uint32_t shared_stride = 0;
    };

    void ChooseTiles();
    std::pair<uint32_t, uint32_t> ChooseColumns(uint32_t most_subgroups) const;
    // How the rows that are left over by whole tiles are computed.
    void ChooseLastRows();
    // Takes these numbers if they suit the product and the device.
    bool TryTiles(uint32_t matrix_rows,
                  uint32_t matrix_columns,
                  uint32_t subgroup_rows,
                  uint32_t subgroup_columns,
                  uint32_t steps);
    // Whether the last ks of a sum are fewer than a matrix has.
    bool HasRest() const;
    // The ks of an operand that workgroup memory holds: those of one iteration, or of the rest.
    uint32_t SharedDepth(const Operand& operand) const;
    uint32_t SharedBytes() const;
    uint32_t invocations() const {
        return subgroup_rows_ * subgroup_columns_ * target_.subgroup_size;
    }
    // The lesser of an index and the last place where a tile begins.
    Id NotBehind(Id first, const Expr& last);

    Id MatrixType(spv::CooperativeMatrixUse use);
    Id LoadMatrix(bool is_a, Id pointer, bool by_rows, Id stride);
    // A matrix of an operand in place, whose first row (or column, of b) and k are given.
    Id LoadInPlace(const Operand& operand, bool is_a, Id row, Id k);
    Id LoadShared(const Operand& operand, bool is_a, Id row, Id k);
    Id SumPointer(uint32_t i) { return b_.ElementPointer(sums_, U(i)); }
    // Multiplies `steps` steps of 16 from k on, of so many rows of matrices. What is not in place
    // has been staged.
    void Multiply(Id k, uint32_t steps, uint32_t rows, bool a_in_place, bool b_in_place);
    // The same of the extra rows: each invocation takes columns.
    void MultiplyExtraRows(Id k, uint32_t steps, bool a_in_place, bool b_in_place);
    Id LoadElement(const Operand& operand, bool is_a, bool in_place, Id row, Id k, Id offset);
    void StoreExtraRows(Id results);
    Id LaneOfSubgroup();
    Id SubgroupColumn();
    void EmitStep(Id k, uint32_t steps, bool a_in_place, bool b_in_place);
    void EmitSums();
    void EmitEpilogue();
    // Whether first <= index < end.
    Id Between(Id first, Id index, const Expr& end);

    // --- emit_product_staging.cpp
    // The ks of a, from a multiple of their number on, that lie side by side in memory; 0: none.
    uint32_t RunOf(ScalarId operand) const;
    // The stride, at most `most`, of what the operand loads along the loop; 0: there is none.
    int64_t StrideAlong(ScalarId operand, const Loop& loop, int64_t most) const;
    // Whether neighbouring rows lie near each other.
    bool HasRowStride(ScalarId operand) const;
    // Gives the loops' variables values; rows that are a multiple of 16 share most of them.
    void BindRow(std::span<const Loop> loops, Id first, Id row);
    // Computes an operand's elements for `steps` steps of 16 into workgroup memory.
    void Stage(const Operand& operand, bool is_a, Id k, uint32_t steps);
    void StageElements(const Operand& operand, bool is_a, Id k, uint32_t steps);
    void StageRuns(Id k, uint32_t steps);
    // The loops' variables at an index that goes up by `stride`, without divisions.
    bool CanCount(std::span<const Loop> loops, uint32_t stride) const;
    Ids NextVariables(std::span<const Loop> loops, std::span<const Id> variables, uint32_t stride);

    const Product& product_;
    Expr m_, n_, k_;
    Operand a_, b_operand_;
    // A subgroup has so many matrices of sums, a workgroup so many subgroups.
    uint32_t matrix_rows_ = 1, matrix_columns_ = 1, subgroup_rows_ = 1, subgroup_columns_ = 1;
    uint32_t steps_ = 1;
    uint32_t tile_m_ = kSide, tile_n_ = kSide;
    // The last tile has its own number of rows of matrices, and rows behind these.
    uint32_t last_rows_ = 1, extra_rows_ = 0;
    Expr m_tiles_;
    Id is_last_ = 0;     // whether this is the last tile, if that differs from others
    Id rows_ = 0;        // of this tile
    Id extra_sums_ = 0;  // of extra rows, by row and column
    Id m_nominal_ = 0, n_nominal_ = 0;  // where the tile's own rows and columns begin
    Id m_first_ = 0, n_first_ = 0;      // where the tile begins
    Id sums_ = 0;
};

}  // namespace fornax::graph::loop
