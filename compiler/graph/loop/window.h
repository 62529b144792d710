// Kernels whose work is a reduction over a small window that slides over a tensor: depthwise
// convolutions and pooling. Neighbouring points read nearly the same elements, so these are
// computed once for a tile of points and kept in workgroup memory.
#pragma once

#include <optional>
#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

// A parallel loop along which the window slides: elements are read at stride * point + offset, plus
// what does not depend on the two.
struct WindowAxis {
    Loop point;
    int64_t stride = 1;
    std::optional<Loop> offset = {};  // of the reduction; none where the window is one element wide
    int64_t width = 1;                // the offset's extent
};

struct Window {
    // One or two; the last is the one along which elements lie side by side, if there are no lanes.
    std::vector<WindowAxis> axes;
    // The last parallel loop, if elements lie side by side along it and the window does not slide
    // there: channels that come last.
    std::optional<Loop> lanes;
    // The other parallel loops.
    std::vector<Loop> outer;
    // What depends on the axes' loops only through the elements' places.
    std::vector<ScalarId> staged;
    // All reductions of the kernel. None reads memory at a place that depends on the points, beside
    // through what is staged.
    std::vector<ScalarId> reductions;
    ScalarId main;  // the reduction that reads memory

    int64_t taps() const { return axes.front().width * (axes.size() > 1 ? axes[1].width : 1); }
};

// Nullopt for kernels that are not of this form, and where a window's elements are hardly shared.
std::optional<Window> FindWindow(const Kernel& kernel, const Scope& scope);

}  // namespace fornax::graph::loop
