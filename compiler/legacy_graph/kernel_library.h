// The kernels of shaders/ as the graph compiler sees them: parameters, bindings, and what a
// dispatch of one touches.
//
// A kernel's parameters are its specialisation constants, numbered from 0 in the order of the
// structures below, which mirror the GLSL. From the parameters alone, Footprint() computes the grid
// and how many elements of every binding a dispatch reads or writes. Lowering uses it to build
// plans; the plan reader uses it to prove that a plan from a file stays inside its buffers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compiler/legacy_graph/operators.h"

namespace fornax::legacy_graph {

// In the order of shaders::EmbeddedKernels().
enum class KernelId : uint32_t {
    kBinary,
    kConcat,
    kConv2d,
    kConv2dDepthwise,
    kMatMul,
    kMatMulFewRows,
    kPool2d,
    kReduce,
    kSoftmax,
    kTranspose,
    kUnary,
};
inline constexpr KernelId kLastKernelId = KernelId::kUnary;

inline constexpr uint32_t kWorkgroupInvocations = 64;

namespace parameters {

// shaders/include/workgroup.glsl
struct Workgroup {
    uint32_t width = kWorkgroupInvocations;
    uint32_t height = 1;
};

// shaders/include/activation.glsl
struct Activation {
    uint32_t function = 0;
    uint32_t a_bits = 0;
    uint32_t b_bits = 0;

    Activation() = default;
    explicit Activation(const legacy_graph::Activation& activation)
        : function(static_cast<uint32_t>(activation.function)),
          a_bits(std::bit_cast<uint32_t>(activation.a)),
          b_bits(std::bit_cast<uint32_t>(activation.b)) {}
};

// shaders/include/window.glsl
struct Window {
    uint32_t images = 1, channels = 1, height = 1, width = 1, out_height = 1, out_width = 1;
    uint32_t kernel_height = 1, kernel_width = 1, stride_y = 1, stride_x = 1;
    uint32_t dilation_y = 1, dilation_x = 1, pad_top = 0, pad_left = 0;
};

struct Conv2d {
    Workgroup workgroup;
    Activation activation;
    Window window;
    uint32_t out_channels = 1, groups = 1, has_bias = 0;
};

struct Pool2d {
    Workgroup workgroup;
    uint32_t unused[3] = {};  // activation, which pool2d.comp does not have
    Window window;
    uint32_t kind = 0, count_pads = 0, pad_bottom = 0, pad_right = 0;
};

struct MatMul {
    Workgroup workgroup;
    Activation activation;
    uint32_t rows = 1, depth = 1, columns = 1, has_bias = 0;
    std::array<uint32_t, 4> batch = {1, 1, 1, 1};
    std::array<uint32_t, 4> strides_a = {}, strides_b = {};
};

struct Unary {
    Workgroup workgroup;
    Activation activation;
    uint32_t elements = 1;
};

struct Binary {
    Workgroup workgroup;
    Activation activation;
    std::array<uint32_t, 6> dims = {1, 1, 1, 1, 1, 1};
    std::array<uint32_t, 6> strides_a = {}, strides_b = {};
    uint32_t function = 0;
};

struct Transpose {
    Workgroup workgroup;
    uint32_t unused[3] = {};
    std::array<uint32_t, 6> dims = {1, 1, 1, 1, 1, 1};
    std::array<uint32_t, 6> strides = {};
};

struct Concat {
    Workgroup workgroup;
    uint32_t outer = 1, part = 1, row = 1, first = 0;
};

// shaders/include/axis.glsl
struct Softmax {
    Workgroup workgroup;
    uint32_t outer = 1, axis = 1, inner = 1;
};

struct Reduce {
    Workgroup workgroup;
    uint32_t outer = 1, axis = 1, inner = 1, kind = 0;
};

}  // namespace parameters

// The parameters as the list of specialisation constants.
template <typename Parameters>
std::vector<uint32_t> ToWords(const Parameters& parameters) {
    using Words = std::array<uint32_t, sizeof(Parameters) / sizeof(uint32_t)>;
    const Words words = std::bit_cast<Words>(parameters);
    return {words.begin(), words.end()};
}

struct KernelFootprint {
    // For each binding, how many f32 elements from its beginning a dispatch may touch. The last
    // binding is the one that is written.
    std::vector<uint64_t> elements;
    std::array<uint32_t, 3> grid = {1, 1, 1};  // workgroups
    uint64_t operations = 0;                   // arithmetic, a multiply-add counted as two
};

struct KernelInfo {
    std::string_view name;  // of shaders/NAME.comp
    uint32_t parameter_count = 0;
    uint32_t binding_count = 0;
    Result<KernelFootprint> (*footprint)(std::span<const uint32_t> parameters) = nullptr;
    std::span<const uint32_t> spirv;
};

const KernelInfo& Kernel(KernelId id);

// Fails when the parameters are not what the kernel takes, are outside of its limits, or describe
// tensors or a grid that are too large. Safe for any input.
Result<KernelFootprint> Footprint(KernelId id, std::span<const uint32_t> parameters);

// A digest of all kernels' SPIR-V: a plan made with other kernels than the ones at hand is not run.
uint64_t KernelLibraryDigest();

}  // namespace fornax::legacy_graph
