// Convolution and pooling: ONNX's window attributes, and one-dimensional windows as two-dimensional
// ones.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "compiler/frontends/legacy_onnx/node_importer.h"

namespace fornax::legacy_onnx {
namespace {

using legacy_graph::Shape;
using legacy_graph::ValueId;
using legacy_graph::Window;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

Result<uint32_t> ToUnsigned(std::string_view attribute, int64_t value) {
    if (value < 0 || value > std::numeric_limits<int32_t>::max()) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("its attribute {} contains {}", attribute, value)};
    }
    return static_cast<uint32_t>(value);
}

// The values of an attribute with `count` entries, or `count` times the default.
Result<std::vector<uint32_t>> PerAxis(const NodeImporter& node,
                                      std::string_view attribute,
                                      size_t count,
                                      uint32_t default_value) {
    const std::vector<int64_t> values = node.Integers(attribute);
    if (values.empty()) {
        return std::vector<uint32_t>(count, default_value);
    }
    if (values.size() != count) {
        return Invalid(fmt::format("its attribute {} has {} entries instead of {}", attribute,
                                   values.size(), count));
    }
    std::vector<uint32_t> result;
    for (int64_t value : values) {
        FORNAX_ASSIGN_OR_RETURN(const uint32_t entry, ToUnsigned(attribute, value));
        result.push_back(entry);
    }
    return result;
}

// The padding that auto_pad asks for on an axis: as much as makes ceil(extent / stride) windows.
std::array<uint32_t, 2> SamePadding(const Window& window,
                                    size_t axis,
                                    uint32_t extent,
                                    bool upper) {
    const int64_t stride = std::max(window.strides[axis], 1u);
    const int64_t windows = (extent + stride - 1) / stride;
    const int64_t reach = int64_t{window.dilations[axis]} * (int64_t{window.kernel[axis]} - 1) + 1;
    const int64_t total = std::max<int64_t>((windows - 1) * stride + reach - extent, 0);
    const auto half = static_cast<uint32_t>(std::min<int64_t>(total / 2, UINT32_MAX / 2));
    const auto rest = static_cast<uint32_t>(std::min<int64_t>(total - total / 2, UINT32_MAX / 2));
    return upper ? std::array{half, rest} : std::array{rest, half};
}

// Reads the window attributes for an input of `spatial` (1 or 2) spatial axes.
Result<Window> ReadWindow(const NodeImporter& node,
                          const Shape& input,
                          size_t spatial,
                          const std::vector<uint32_t>& kernel) {
    FORNAX_ASSIGN_OR_RETURN(const auto strides, PerAxis(node, "strides", spatial, 1));
    FORNAX_ASSIGN_OR_RETURN(const auto dilations, PerAxis(node, "dilations", spatial, 1));
    FORNAX_ASSIGN_OR_RETURN(const auto pads, PerAxis(node, "pads", 2 * spatial, 0));
    Window window;
    for (size_t i = 0; i < spatial; ++i) {
        const size_t axis = 2 - spatial + i;  // one spatial axis is the width
        window.kernel[axis] = kernel[i];
        window.strides[axis] = strides[i];
        window.dilations[axis] = dilations[i];
        window.pads[axis] = pads[i];
        window.pads[axis + 2] = pads[spatial + i];
    }
    const std::string auto_pad = node.Text("auto_pad", "NOTSET");
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
        for (size_t i = 0; i < spatial; ++i) {
            const size_t axis = 2 - spatial + i;
            const auto padding = SamePadding(window, axis, input[2 + i], auto_pad == "SAME_UPPER");
            window.pads[axis] = padding[0];
            window.pads[axis + 2] = padding[1];
        }
    } else if (auto_pad == "VALID") {
        window.pads = {0, 0, 0, 0};
    } else if (auto_pad != "NOTSET") {
        return Invalid(fmt::format("its auto_pad is {}", auto_pad));
    }
    return window;
}

// The number of spatial axes, 1 or 2.
Result<size_t> SpatialAxes(const Shape& input) {
    if (input.rank() < 3 || input.rank() > 4) {
        return Error{
            ErrorCode::kUnsupported,
            fmt::format("its input {} does not have one or two spatial axes", input.ToString())};
    }
    return input.rank() - 2;
}

// [A,B,L] becomes [A,B,1,L]; a tensor with two spatial axes stays as it is.
Result<ValueId> ToTwoAxes(NodeImporter& node, ValueId value) {
    const Shape& shape = node.ShapeOf(value);
    if (shape.rank() == 4) {
        return value;
    }
    return node.Reshape(value, std::array<int64_t, 4>{shape[0], shape[1], 1, shape[2]});
}

// Gives the result [A,B,1,L] the shape [A,B,L] if the input had one spatial axis, and names it.
Status SetWindowOutput(NodeImporter& node, Result<ValueId> result, size_t spatial) {
    FORNAX_RETURN_IF_ERROR(result);
    if (spatial == 2) {
        return node.SetOutput(*result);
    }
    const Shape& shape = node.ShapeOf(*result);
    return node.SetOutput(
        node.Reshape(*result, std::array<int64_t, 3>{shape[0], shape[1], shape[3]}));
}

Status ImportPool(NodeImporter& node, legacy_graph::op::PoolKind kind) {
    FORNAX_ASSIGN_OR_RETURN(const size_t spatial, SpatialAxes(node.InputShape(0)));
    FORNAX_ASSIGN_OR_RETURN(const auto kernel, PerAxis(node, "kernel_shape", spatial, 0));
    legacy_graph::op::Pool pool;
    pool.kind = kind;
    FORNAX_ASSIGN_OR_RETURN(pool.window, ReadWindow(node, node.InputShape(0), spatial, kernel));
    pool.ceil_mode = node.Integer("ceil_mode", 0) != 0;
    pool.count_include_pad = node.Integer("count_include_pad", 0) != 0;
    FORNAX_ASSIGN_OR_RETURN(const ValueId input, ToTwoAxes(node, node.Input(0)));
    return SetWindowOutput(node, node.Add(pool, {input}), spatial);
}

}  // namespace

Status ImportConv(NodeImporter& node) {
    FORNAX_ASSIGN_OR_RETURN(const size_t spatial, SpatialAxes(node.InputShape(0)));
    const Shape& weight_shape = node.InputShape(1);
    if (weight_shape.rank() != spatial + 2) {
        return Invalid(fmt::format("its weight {} does not fit its input {}",
                                   weight_shape.ToString(), node.InputShape(0).ToString()));
    }
    const std::vector<uint32_t> kernel(weight_shape.dims().begin() + 2, weight_shape.dims().end());
    if (node.Attribute("kernel_shape") != nullptr) {
        FORNAX_ASSIGN_OR_RETURN(const auto declared, PerAxis(node, "kernel_shape", spatial, 0));
        if (declared != kernel) {
            return Invalid(fmt::format("its kernel_shape [{}] is not that of its weight {}",
                                       fmt::join(declared, ","), weight_shape.ToString()));
        }
    }
    legacy_graph::op::Conv conv;
    FORNAX_ASSIGN_OR_RETURN(conv.window, ReadWindow(node, node.InputShape(0), spatial, kernel));
    FORNAX_ASSIGN_OR_RETURN(conv.group, ToUnsigned("group", node.Integer("group", 1)));
    FORNAX_ASSIGN_OR_RETURN(const ValueId input, ToTwoAxes(node, node.Input(0)));
    FORNAX_ASSIGN_OR_RETURN(const ValueId weight, ToTwoAxes(node, node.Input(1)));
    std::vector<ValueId> operands = {input, weight};
    if (node.HasInput(2)) {
        operands.push_back(node.Input(2));
    }
    return SetWindowOutput(node, node.Add(conv, std::move(operands)), spatial);
}

Status ImportMaxPool(NodeImporter& node) {
    return ImportPool(node, legacy_graph::op::PoolKind::kMax);
}

Status ImportAveragePool(NodeImporter& node) {
    return ImportPool(node, legacy_graph::op::PoolKind::kAverage);
}

}  // namespace fornax::legacy_onnx
