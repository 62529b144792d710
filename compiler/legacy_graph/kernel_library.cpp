// The table of kernels, and the footprint of each.
#include "compiler/legacy_graph/kernel_library.h"

#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "base/hash.h"
#include "shaders/embedded_kernels.h"

namespace fornax::legacy_graph {
namespace {

namespace p = parameters;

// Vulkan's guaranteed maxComputeWorkGroupCount in every direction and
// maxComputeWorkGroupInvocations.
constexpr uint32_t kMaxGridExtent = 65535;
constexpr uint64_t kMaxInvocations = 128;

// Arithmetic that sticks to the greatest number instead of wrapping: parameters may come from a
// file.
struct Saturating {
    uint64_t value;
    Saturating(uint64_t v) : value(v) {}
    friend Saturating operator*(Saturating a, Saturating b) {
        uint64_t product;
        return __builtin_mul_overflow(a.value, b.value, &product) ? UINT64_MAX : product;
    }
    friend Saturating operator+(Saturating a, Saturating b) {
        uint64_t sum;
        return __builtin_add_overflow(a.value, b.value, &sum) ? UINT64_MAX : sum;
    }
};

uint64_t CeilDiv(uint64_t value, uint64_t divisor) {
    return value / divisor + (value % divisor != 0);
}

Error Bad(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status CheckPositive(std::initializer_list<uint32_t> values) {
    for (uint32_t value : values) {
        if (value == 0) {
            return Bad("a size of 0 among a kernel's parameters");
        }
    }
    return OkStatus();
}

Status CheckWorkgroup(const p::Workgroup& workgroup) {
    const uint64_t invocations = uint64_t{workgroup.width} * workgroup.height;
    if (invocations == 0 || invocations > kMaxInvocations) {
        return Bad(fmt::format("a workgroup of {}x{} invocations is not in 1..{}", workgroup.width,
                               workgroup.height, kMaxInvocations));
    }
    return OkStatus();
}

// Checks the sizes that a footprint function computed and turns them into a KernelFootprint.
Result<KernelFootprint> Checked(std::initializer_list<Saturating> elements,
                                std::array<uint64_t, 3> grid,
                                Saturating operations) {
    KernelFootprint footprint;
    for (Saturating count : elements) {
        if (count.value > static_cast<uint64_t>(Shape::kMaxElements)) {
            return Bad(fmt::format("a buffer of {} elements exceeds the limit of {}", count.value,
                                   Shape::kMaxElements));
        }
        footprint.elements.push_back(count.value);
    }
    for (size_t i = 0; i < 3; ++i) {
        if (grid[i] > kMaxGridExtent) {
            return Bad(fmt::format("a grid of {} workgroups in one direction exceeds {}", grid[i],
                                   kMaxGridExtent));
        }
        footprint.grid[i] = static_cast<uint32_t>(grid[i]);
    }
    footprint.operations = operations.value;
    return footprint;
}

// The grid of a kernel that uses LinearIndex() of workgroup.glsl, with `y` rows of workgroups.
std::array<uint64_t, 3> LinearGrid(Saturating items,
                                   const p::Workgroup& workgroup,
                                   uint64_t y = 1) {
    const uint64_t groups = CeilDiv(items.value, workgroup.width);
    const uint64_t x = std::min<uint64_t>(groups, kMaxGridExtent);
    return {x, y, CeilDiv(groups, x)};
}

Status CheckWindow(const p::Window& window) {
    return CheckPositive({window.images, window.channels, window.height, window.width,
                          window.out_height, window.out_width, window.kernel_height,
                          window.kernel_width, window.stride_y, window.stride_x, window.dilation_y,
                          window.dilation_x});
}

Result<KernelFootprint> ConvFootprint(const p::Conv2d& conv, uint32_t tile) {
    const p::Window& w = conv.window;
    FORNAX_RETURN_IF_ERROR(CheckWindow(w));
    FORNAX_RETURN_IF_ERROR(CheckPositive({conv.out_channels, conv.groups}));
    if (w.channels % conv.groups != 0 || conv.out_channels % conv.groups != 0) {
        return Bad(fmt::format("{} and {} channels cannot be split into {} groups", w.channels,
                               conv.out_channels, conv.groups));
    }
    const Saturating filter =
        Saturating(w.channels / conv.groups) * w.kernel_height * w.kernel_width;
    const Saturating pixels = Saturating(w.images) * w.out_height * w.out_width;
    const Saturating outputs = pixels * conv.out_channels;
    const uint64_t tiles = conv.groups * CeilDiv(conv.out_channels / conv.groups, tile);
    return Checked({Saturating(w.images) * w.channels * w.height * w.width,
                    filter * conv.out_channels, conv.has_bias ? conv.out_channels : 1, outputs},
                   LinearGrid(pixels, conv.workgroup, tiles), outputs * filter * 2);
}

Result<KernelFootprint> Conv2d(const p::Conv2d& conv) {
    return ConvFootprint(conv, 8);
}

Result<KernelFootprint> Conv2dDepthwise(const p::Conv2d& conv) {
    return ConvFootprint(conv, 1);
}

Result<KernelFootprint> Pool2d(const p::Pool2d& pool) {
    const p::Window& w = pool.window;
    FORNAX_RETURN_IF_ERROR(CheckWindow(w));
    const Saturating planes = Saturating(w.images) * w.channels;
    const Saturating outputs = planes * w.out_height * w.out_width;
    return Checked({planes * w.height * w.width, outputs}, LinearGrid(outputs, pool.workgroup),
                   outputs * w.kernel_height * w.kernel_width);
}

Result<KernelFootprint> MatMulFootprint(const p::MatMul& matmul, uint32_t tile) {
    FORNAX_RETURN_IF_ERROR(CheckPositive({matmul.rows, matmul.depth, matmul.columns}));
    Saturating batches = 1, end_a = 0, end_b = 0;
    for (size_t i = 0; i < 4; ++i) {
        FORNAX_RETURN_IF_ERROR(CheckPositive({matmul.batch[i]}));
        batches = batches * matmul.batch[i];
        end_a = end_a + Saturating(matmul.batch[i] - 1) * matmul.strides_a[i];
        end_b = end_b + Saturating(matmul.batch[i] - 1) * matmul.strides_b[i];
    }
    const Saturating product = Saturating(matmul.rows) * matmul.columns * batches;
    return Checked({end_a + Saturating(matmul.rows) * matmul.depth,
                    end_b + Saturating(matmul.depth) * matmul.columns,
                    matmul.has_bias ? matmul.columns : 1, product},
                   {CeilDiv(matmul.columns, matmul.workgroup.width),
                    CeilDiv(matmul.rows, uint64_t{tile} * matmul.workgroup.height), batches.value},
                   product * matmul.depth * 2);
}

Result<KernelFootprint> MatMul(const p::MatMul& matmul) {
    return MatMulFootprint(matmul, 8);
}

Result<KernelFootprint> MatMulFewRows(const p::MatMul& matmul) {
    return MatMulFootprint(matmul, 1);
}

Result<KernelFootprint> Unary(const p::Unary& unary) {
    FORNAX_RETURN_IF_ERROR(CheckPositive({unary.elements}));
    return Checked({unary.elements, unary.elements}, LinearGrid(unary.elements, unary.workgroup),
                   unary.elements);
}

// The elements of a strided operand: one behind the last that is touched.
Saturating StridedEnd(const std::array<uint32_t, 6>& dims, const std::array<uint32_t, 6>& strides) {
    Saturating last = 1;
    for (size_t i = 0; i < 6; ++i) {
        last = last + Saturating(dims[i] - 1) * strides[i];
    }
    return last;
}

Result<Saturating> ProductOf(const std::array<uint32_t, 6>& dims) {
    Saturating product = 1;
    for (uint32_t dim : dims) {
        FORNAX_RETURN_IF_ERROR(CheckPositive({dim}));
        product = product * dim;
    }
    return product;
}

Result<KernelFootprint> Binary(const p::Binary& binary) {
    FORNAX_ASSIGN_OR_RETURN(const Saturating elements, ProductOf(binary.dims));
    Saturating end_a = StridedEnd(binary.dims, binary.strides_a);
    Saturating end_b = StridedEnd(binary.dims, binary.strides_b);
    // One dimension without broadcasting is addressed by the linear index, whatever the stride.
    if (elements.value == binary.dims[5] && binary.strides_a[5] != 0 && binary.strides_b[5] != 0) {
        end_a = end_b = elements;
    }
    return Checked({end_a, end_b, elements}, LinearGrid(elements, binary.workgroup), elements);
}

Result<KernelFootprint> Transpose(const p::Transpose& transpose) {
    FORNAX_ASSIGN_OR_RETURN(const Saturating elements, ProductOf(transpose.dims));
    return Checked({StridedEnd(transpose.dims, transpose.strides), elements},
                   LinearGrid(elements, transpose.workgroup), 0);
}

Result<KernelFootprint> Concat(const p::Concat& concat) {
    FORNAX_RETURN_IF_ERROR(CheckPositive({concat.outer, concat.part, concat.row}));
    if (concat.part > concat.row || concat.first > concat.row - concat.part) {
        return Bad(fmt::format("a part of {} at {} does not fit a row of {}", concat.part,
                               concat.first, concat.row));
    }
    const Saturating elements = Saturating(concat.outer) * concat.part;
    return Checked({elements, Saturating(concat.outer) * concat.row},
                   LinearGrid(elements, concat.workgroup), 0);
}

Result<KernelFootprint> Softmax(const p::Softmax& softmax) {
    FORNAX_RETURN_IF_ERROR(CheckPositive({softmax.outer, softmax.axis, softmax.inner}));
    const Saturating lines = Saturating(softmax.outer) * softmax.inner;
    const Saturating elements = lines * softmax.axis;
    return Checked({elements, elements}, LinearGrid(lines, softmax.workgroup), elements * 5);
}

Result<KernelFootprint> Reduce(const p::Reduce& reduce) {
    FORNAX_RETURN_IF_ERROR(CheckPositive({reduce.outer, reduce.axis, reduce.inner}));
    const Saturating lines = Saturating(reduce.outer) * reduce.inner;
    return Checked({lines * reduce.axis, lines}, LinearGrid(lines, reduce.workgroup),
                   lines * reduce.axis);
}

// Turns the words back into the structure that `function` takes.
template <typename Parameters, Result<KernelFootprint> (*function)(const Parameters&)>
Result<KernelFootprint> FromWords(std::span<const uint32_t> words) {
    Parameters parameters;
    static_assert(std::is_trivially_copyable_v<Parameters>);
    std::memcpy(static_cast<void*>(&parameters), words.data(), sizeof(parameters));
    FORNAX_RETURN_IF_ERROR(CheckWorkgroup(parameters.workgroup));
    return function(parameters);
}

template <typename Parameters, Result<KernelFootprint> (*function)(const Parameters&)>
constexpr KernelInfo Describe(std::string_view name, uint32_t bindings) {
    return {name,
            sizeof(Parameters) / sizeof(uint32_t),
            bindings,
            &FromWords<Parameters, function>,
            {}};
}

std::array<KernelInfo, static_cast<size_t>(kLastKernelId) + 1> MakeTable() {
    std::array<KernelInfo, static_cast<size_t>(kLastKernelId) + 1> table = {
        Describe<p::Binary, Binary>("binary", 3),
        Describe<p::Concat, Concat>("concat", 2),
        Describe<p::Conv2d, Conv2d>("conv2d", 4),
        Describe<p::Conv2d, Conv2dDepthwise>("conv2d_depthwise", 4),
        Describe<p::MatMul, MatMul>("matmul", 4),
        Describe<p::MatMul, MatMulFewRows>("matmul_few_rows", 4),
        Describe<p::Pool2d, Pool2d>("pool2d", 2),
        Describe<p::Reduce, Reduce>("reduce", 2),
        Describe<p::Softmax, Softmax>("softmax", 2),
        Describe<p::Transpose, Transpose>("transpose", 2),
        Describe<p::Unary, Unary>("unary", 2),
    };
    const std::span<const shaders::EmbeddedKernel> embedded = shaders::EmbeddedKernels();
    assert(embedded.size() == table.size());
    for (size_t i = 0; i < table.size(); ++i) {
        assert(embedded[i].name == table[i].name);
        table[i].spirv = embedded[i].spirv;
    }
    return table;
}

}  // namespace

const KernelInfo& Kernel(KernelId id) {
    static const auto table = MakeTable();
    return table[static_cast<size_t>(id)];
}

Result<KernelFootprint> Footprint(KernelId id, std::span<const uint32_t> parameters) {
    const KernelInfo& kernel = Kernel(id);
    if (parameters.size() != kernel.parameter_count) {
        return Bad(fmt::format("the kernel {} takes {} parameters, not {}", kernel.name,
                               kernel.parameter_count, parameters.size()));
    }
    return kernel.footprint(parameters);
}

uint64_t KernelLibraryDigest() {
    static const uint64_t digest = [] {
        Hasher hasher;
        for (const shaders::EmbeddedKernel& kernel : shaders::EmbeddedKernels()) {
            hasher.Append(kernel.name);
            hasher.AppendArray(kernel.spirv);
        }
        return hasher.Finish().low;
    }();
    return digest;
}

}  // namespace fornax::legacy_graph
