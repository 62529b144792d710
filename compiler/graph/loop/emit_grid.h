// The workgroups that are dispatched, and the invocations of each.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "compiler/graph/loop/emit_index.h"
#include "compiler/graph/loop/kernel_code.h"

namespace fornax::graph::loop {

// Invocations for so many points in a row: whole vectors, little waste.
uint32_t LocalSizeFor(const Expr& points);

// What a workgroup of a product in tiles computes: numbers of the batch and of tiles.
struct TileGrid {
    Id batch = 0, m = 0, n = 0;
    Id inside = 0;  // whether there is such a tile
};

class WorkgroupGrid : KernelPart {
  public:
    WorkgroupGrid(KernelCode& code, IndexCode& index) : KernelPart(code), index_(index) {}

    // Invocations of a workgroup, along one axis or two.
    void SetLocalSize(uint32_t x, uint32_t y = 1);
    uint32_t local_size() const { return local_size_[0] * local_size_[1]; }
    const std::array<uint32_t, 3>& local_sizes() const { return local_size_; }

    // Asks for `count` workgroups. The result is the number of this one.
    Id WorkgroupIndex(const Expr& count);
    const std::array<Expr, 3>& workgroups() const { return workgroups_; }
    // Whether the workgroup's number is below their count.
    Id inside() { return in_grid_ == 0 ? b_.True() : in_grid_; }
    Id InsideAnd(Id condition) { return in_grid_ == 0 ? condition : b_.And(condition, in_grid_); }
    // Workgroups for tiles of a product: the batch's, of so many rows and columns of tiles.
    TileGrid OpenTiles(const Expr& batch,
                       const Expr& m_tiles,
                       const Expr& n_tiles,
                       uint32_t tile_rows = 32);

    // The number of this invocation in the workgroup, once it has been loaded.
    void LoadLane() { lane_ = b_.BuiltIn(spv::BuiltIn::LocalInvocationIndex); }
    Id lane() const { return lane_; }

    // Whether a point of a chunk of `size` is one of `points`.
    Id IsBelow(Id point, const Expr& points, uint32_t size);
    // Code with this invocation's point, from `first` on, if it is one of `points`. Where all
    // invocations have one the code has no condition, which would be one of every load.
    void AtLanePoint(Id first, const Expr& points, const std::function<void(Id)>& code);

  private:
    IndexCode& index_;
    std::array<uint32_t, 3> local_size_ = {1, 1, 1};
    std::array<Expr, 3> workgroups_ = {1, 1, 1};
    Id in_grid_ = 0;  // 0: all workgroups are in it
    Id lane_ = 0;
};

}  // namespace fornax::graph::loop
