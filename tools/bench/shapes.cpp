// The benchmarks of `fornax bench`, one entry each.
#include "tools/bench/shapes.h"

#include <fmt/format.h>

#include "tools/bench/image_workloads.h"
#include "tools/fornax/text_table.h"

namespace fornax::bench {
namespace {

constexpr uint32_t kMiB = 1u << 20;
constexpr uint32_t kKiB = 1u << 10;

constexpr double kMilli = 1e3;
constexpr double kMicro = 1e6;
constexpr double kNano = 1e9;
constexpr double kMega = 1e6;
constexpr double kGiga = 1e9;

double One(uint32_t) {
    return 1;
}

double Itself(uint32_t size) {
    return size;
}

double Squared(uint32_t size) {
    return Itself(size) * Itself(size);
}

// saxpy reads two arrays and writes one.
double SaxpyBytes(uint32_t count) {
    return 3.0 * sizeof(float) * count;
}

std::string SaxpyTitle(uint32_t count) {
    return fmt::format("saxpy, two arrays of {}", tool::FormatBytes(count * sizeof(float)));
}

// Blocks of q4_0 in, values of a size out.
double DequantizedBytes(uint32_t blocks, uint32_t value_bytes) {
    return (kQ4BlockBytes + kQ4BlockValues * static_cast<double>(value_bytes)) * blocks;
}

// Rows are read once and written once; what else happens to them stays in the caches.
double RowBytes(uint32_t rows, uint32_t element_bytes) {
    return 2.0 * element_bytes * kLongRow * rows;
}

Shape InGigabytes(Shape shape) {
    shape.unit = "GB/s";
    shape.is_rate = true;
    shape.unit_scale = kGiga;
    return shape;
}

// Many calls of the API, of which one is told.
Shape InNanosecondsACall(Shape shape) {
    shape.unit = "ns";
    shape.is_rate = false;
    shape.unit_scale = kNano;
    return shape;
}

double DescriptorsOf(uint32_t sets) {
    return Itself(sets) * kDescriptorsOfASet;
}

// Something that happens once.
Shape InMilliseconds(Shape shape) {
    shape.unit = "ms";
    shape.is_rate = false;
    shape.unit_scale = kMilli;
    shape.work = One;
    return shape;
}

template <ImageFormat kFormat, ImageSource kSource, uint32_t kDimensions>
Shape ImageShape(const char* name) {
    return InGigabytes(
        {.name = name,
         .title =
             [](uint32_t) {
                 return ImageTitle(
                     {.format = kFormat, .source = kSource, .dimensions = kDimensions});
             },
         .work = [](uint32_t side) { return 2.0 * TexelBytes(kFormat) * Squared(side); },
         .size = 2048,
         .quick_size = 64,
         .create =
             [](Device& device, uint32_t side) {
                 return CreateImageCopy(
                     device, {.format = kFormat, .source = kSource, .dimensions = kDimensions},
                     side);
             },
         .limit = Limit::kCopy});
}

using enum ImageFormat;
using enum ImageSource;

const Shape kShapes[] = {
    InMilliseconds({.name = "start",
                    .title = [](uint32_t) -> std::string { return "instance + device start"; },
                    .create = CreateStart,
                    .runs_once = true}),
    InMilliseconds({.name = "pipelines_cold",
                    .title = [](uint32_t) -> std::string { return "six pipelines, cold"; },
                    .create = CreatePipelines,
                    .runs_once = true,
                    .cache = CacheState::kEmpty}),
    InMilliseconds(
        {.name = "pipelines_cached",
         .title = [](uint32_t) -> std::string { return "six pipelines, from disk cache"; },
         .create = CreatePipelines,
         .runs_once = true}),
    InMilliseconds({.name = "matmul_cold",
                    .title = [](uint32_t) -> std::string {
                        return "one large matrix-multiply pipeline, cold";
                    },
                    .create = CreateMatmulPipeline,
                    .runs_once = true,
                    .cache = CacheState::kEmpty}),
    InMilliseconds({.name = "matmul_cached",
                    .title = [](uint32_t) -> std::string { return "the same, from disk cache"; },
                    .create = CreateMatmulPipeline,
                    .runs_once = true}),
    {.name = "submit",
     .title = [](uint32_t) -> std::string { return "submit to fence, one tiny dispatch"; },
     .unit = "us",
     .is_rate = false,
     .unit_scale = kMicro,
     .work = One,
     .size = 1,
     .quick_size = 1,
     .create = CreateDispatches},
    InNanosecondsACall({.name = "record_dispatch",
                        .title = [](uint32_t) -> std::string {
                            return "record a bind + push constants + dispatch";
                        },
                        .work = Itself,
                        .size = 4096,
                        .quick_size = 64,
                        .create = CreateRecordDispatches}),
    InNanosecondsACall(
        {.name = "update_descriptors",
         .title = [](uint32_t) -> std::string { return "update a descriptor, 12 in a write"; },
         .work = DescriptorsOf,
         .size = 512,
         .quick_size = 8,
         .create = CreateUpdates}),
    InNanosecondsACall(
        {.name = "update_single",
         .title = [](uint32_t) -> std::string { return "update a descriptor, 12 writes"; },
         .work = DescriptorsOf,
         .size = 512,
         .quick_size = 8,
         .create = CreateSingleUpdates}),
    InNanosecondsACall(
        {.name = "update_template",
         .title = [](uint32_t) -> std::string { return "update a descriptor, by template"; },
         .work = DescriptorsOf,
         .size = 512,
         .quick_size = 8,
         .create = CreateTemplateUpdates}),
    {.name = "dispatch_barrier",
     .title = [](uint32_t n) { return fmt::format("dispatch + barrier, {} in a buffer", n); },
     .unit = "us",
     .is_rate = false,
     .unit_scale = kMicro,
     .work = Itself,
     .size = 1000,
     .quick_size = 100,
     .create = CreateDispatches},
    {.name = "empty_group",
     .title = [](uint32_t) -> std::string { return "empty workgroup of 64"; },
     .unit = "ns",
     .is_rate = false,
     .unit_scale = kNano,
     .work = Itself,
     .size = kMiB,
     .quick_size = 16 * kKiB,
     .create = CreateEmptyGroups},
    InGigabytes({.name = "saxpy",
                 .title = SaxpyTitle,
                 .work = SaxpyBytes,
                 .size = 64 * kMiB / sizeof(float),
                 .quick_size = kMiB / sizeof(float),
                 .create = CreateSaxpy,
                 .limit = Limit::kTriad}),
    InGigabytes({.name = "saxpy_cached",
                 .title = SaxpyTitle,
                 .work = [](uint32_t count) { return kCachedSaxpyDispatches * SaxpyBytes(count); },
                 .size = 256 * kKiB / sizeof(float),
                 .quick_size = 16 * kKiB / sizeof(float),
                 .create = CreateCachedSaxpy,
                 .limit = Limit::kTriadCached}),
    InGigabytes({.name = "half_axpy",
                 .title =
                     [](uint32_t count) {
                         return fmt::format("f16 axpy, two arrays of {}",
                                            tool::FormatBytes(count * 2ull));
                     },
                 .work = [](uint32_t count) { return 3.0 * 2 * count; },
                 .size = 32 * kMiB,
                 .quick_size = kMiB / 2,
                 .create = CreateHalfAxpy,
                 .limit = Limit::kTriad}),
    InGigabytes({.name = "int8_add",
                 .title =
                     [](uint32_t count) {
                         return fmt::format("int8 add, three arrays of {}",
                                            tool::FormatBytes(count));
                     },
                 .work = [](uint32_t count) { return 3.0 * count; },
                 .size = 64 * kMiB,
                 .quick_size = kMiB,
                 .create = CreateInt8Add,
                 .limit = Limit::kTriad}),
    InGigabytes({.name = "dequantize_f32",
                 .title =
                     [](uint32_t blocks) {
                         return fmt::format("q4_0 to f32, {} of blocks",
                                            tool::FormatBytes(uint64_t{blocks} * kQ4BlockBytes));
                     },
                 .work = [](uint32_t blocks) { return DequantizedBytes(blocks, 4); },
                 .size = kMiB / 2,
                 .quick_size = 8 * kKiB,
                 .create = CreateDequantizeToFloat,
                 .limit = Limit::kCopy}),
    InGigabytes({.name = "dequantize_f16",
                 .title =
                     [](uint32_t blocks) {
                         return fmt::format("q4_0 to f16, {} of blocks",
                                            tool::FormatBytes(uint64_t{blocks} * kQ4BlockBytes));
                     },
                 .work = [](uint32_t blocks) { return DequantizedBytes(blocks, 2); },
                 .size = kMiB,
                 .quick_size = 8 * kKiB,
                 .create = CreateDequantizeToHalf,
                 .limit = Limit::kCopy}),
    InGigabytes(
        {.name = "copy",
         .title = [](uint32_t size) { return fmt::format("copy of {}", tool::FormatBytes(size)); },
         .work = [](uint32_t size_bytes) { return 2.0 * size_bytes; },
         .size = 64 * kMiB,
         .quick_size = kMiB,
         .create = CreateCopy,
         .limit = Limit::kCopy}),
    {.name = "fma",
     .title = [](uint32_t) -> std::string { return "f32 fma chains"; },
     .unit = "GFLOP/s",
     .is_rate = true,
     .unit_scale = kGiga,
     .work = [](uint32_t invocations) { return 2.0 * kFmaChains * kFmaSteps * invocations; },
     .size = 64 * kKiB,
     .quick_size = kKiB,
     .create = CreateFmaChains,
     .limit = Limit::kFmaAllThreads},
    {.name = "sgemm",
     .title = [](uint32_t side) { return fmt::format("tiled SGEMM {0}x{0}x{0}", side); },
     .unit = "GFLOP/s",
     .is_rate = true,
     .unit_scale = kGiga,
     .work = [](uint32_t side) { return 2.0 * side * side * side; },
     .size = 1024,
     .quick_size = 64,
     .create = CreateSgemm,
     .limit = Limit::kFmaAllThreads},
    {.name = "matrix_sgemm",
     .title = [](uint32_t side) { return fmt::format("SGEMM {0}x{0}x{0}, packed B", side); },
     .unit = "GFLOP/s",
     .is_rate = true,
     .unit_scale = kGiga,
     .work = [](uint32_t side) { return 2.0 * side * side * side; },
     .size = 1024,
     .quick_size = 64,
     .create = CreateMatrixSgemm,
     .limit = Limit::kFmaAllThreads},
    InGigabytes(
        {.name = "row_sums",
         .title = [](uint32_t rows) { return fmt::format("row sums {}x{}", rows, kRowLength); },
         .work = [](uint32_t rows) { return double{sizeof(float)} * rows * kRowLength; },
         .size = 4096,
         .quick_size = 16,
         .create = CreateRowSums,
         .limit = Limit::kRead}),
    InGigabytes(
        {.name = "prefix_rows",
         .title =
             [](uint32_t rows) { return fmt::format("prefix sums {}x{}", rows, kPrefixRowLength); },
         .work = [](uint32_t rows) { return 2.0 * sizeof(uint32_t) * rows * kPrefixRowLength; },
         .size = 4096,
         .quick_size = 4,
         .create = CreatePrefixRows,
         .limit = Limit::kCopy}),
    InGigabytes({.name = "look_back",
                 .title = [](uint32_t count) { return fmt::format("look-back scan of {}", count); },
                 .work = [](uint32_t count) { return 2.0 * sizeof(uint32_t) * count; },
                 .size = 16 * kMiB,
                 .quick_size = 32 * kKiB,
                 .create = CreateLookBack,
                 .limit = Limit::kCopy}),
    InGigabytes(
        {.name = "softmax",
         .title = [](uint32_t rows) { return fmt::format("softmax {}x{}, f32", rows, kLongRow); },
         .work = [](uint32_t rows) { return RowBytes(rows, 4); },
         .size = 4096,
         .quick_size = 32,
         .create = CreateSoftmax,
         .limit = Limit::kCopy}),
    InGigabytes(
        {.name = "softmax_f16",
         .title = [](uint32_t rows) { return fmt::format("softmax {}x{}, f16", rows, kLongRow); },
         .work = [](uint32_t rows) { return RowBytes(rows, 2); },
         .size = 4096,
         .quick_size = 32,
         .create = CreateSoftmaxHalf,
         .limit = Limit::kCopy}),
    InGigabytes(
        {.name = "layer_norm",
         .title =
             [](uint32_t rows) { return fmt::format("layer norm {}x{}, f32", rows, kLongRow); },
         .work = [](uint32_t rows) { return RowBytes(rows, 4); },
         .size = 4096,
         .quick_size = 32,
         .create = CreateLayerNorm,
         .limit = Limit::kCopy}),
    InGigabytes(
        {.name = "layer_norm_f16",
         .title =
             [](uint32_t rows) { return fmt::format("layer norm {}x{}, f16", rows, kLongRow); },
         .work = [](uint32_t rows) { return RowBytes(rows, 2); },
         .size = 4096,
         .quick_size = 32,
         .create = CreateLayerNormHalf,
         .limit = Limit::kCopy}),
    InGigabytes(
        {.name = "gelu",
         .title = [](uint32_t rows) { return fmt::format("gelu {}x{}, f32", rows, kLongRow); },
         .work = [](uint32_t rows) { return RowBytes(rows, 4); },
         .size = 4096,
         .quick_size = 32,
         .create = CreateGelu,
         .limit = Limit::kCopy}),
    InGigabytes(
        {.name = "gelu_f16",
         .title = [](uint32_t rows) { return fmt::format("gelu {}x{}, f16", rows, kLongRow); },
         .work = [](uint32_t rows) { return RowBytes(rows, 2); },
         .size = 4096,
         .quick_size = 32,
         .create = CreateGeluHalf,
         .limit = Limit::kCopy}),
    {.name = "mandelbrot",
     .title = [](uint32_t side) { return fmt::format("Mandelbrot {0}x{0}, 256 steps", side); },
     .unit = "Minv/s",
     .is_rate = true,
     .unit_scale = kMega,
     .work = Squared,
     .size = 1024,
     .quick_size = 64,
     .create = CreateMandelbrot},
    InGigabytes(
        {.name = "transpose",
         .title = [](uint32_t side) { return fmt::format("naive transpose {0}x{0}", side); },
         .work = [](uint32_t side) { return 2.0 * sizeof(float) * Squared(side); },
         .size = 2048,
         .quick_size = 128,
         .create = CreateTranspose,
         .limit = Limit::kCopy}),
    {.name = "histogram",
     .title = [](uint32_t) -> std::string { return "histogram, 256 shared atomic bins"; },
     .unit = "G/s",
     .is_rate = true,
     .unit_scale = kGiga,
     .work = Itself,
     .size = 8 * kMiB,
     .quick_size = 4 * kHistogramPart,
     .create = CreateHistogram},
    ImageShape<kRgba8, kBuffer, 2>("image_rgba8_buffer"),
    ImageShape<kRgba8, kStorage, 2>("image_rgba8_storage_2d"),
    ImageShape<kRgba8, kFetch, 2>("image_rgba8_fetch_2d"),
    ImageShape<kRgba8, kLinear, 2>("image_rgba8_linear_2d"),
    ImageShape<kRgba16f, kBuffer, 2>("image_rgba16f_buffer"),
    ImageShape<kRgba16f, kStorage, 2>("image_rgba16f_storage_2d"),
    ImageShape<kRgba16f, kStorage, 3>("image_rgba16f_storage_3d"),
    ImageShape<kRgba16f, kFetch, 2>("image_rgba16f_fetch_2d"),
    ImageShape<kRgba16f, kFetch, 3>("image_rgba16f_fetch_3d"),
    ImageShape<kRgba16f, kNearest, 2>("image_rgba16f_nearest_2d"),
    ImageShape<kRgba16f, kNearest, 3>("image_rgba16f_nearest_3d"),
    ImageShape<kRgba16f, kLinear, 2>("image_rgba16f_linear_2d"),
    ImageShape<kRgba16f, kLinear, 3>("image_rgba16f_linear_3d"),
    ImageShape<kRgba32f, kBuffer, 2>("image_rgba32f_buffer"),
    ImageShape<kRgba32f, kStorage, 2>("image_rgba32f_storage_2d"),
    ImageShape<kRgba32f, kFetch, 2>("image_rgba32f_fetch_2d"),
    ImageShape<kRgba32f, kLinear, 2>("image_rgba32f_linear_2d"),
    ImageShape<kR32f, kBuffer, 2>("image_r32f_buffer"),
    ImageShape<kR32f, kStorage, 2>("image_r32f_storage_2d"),
    ImageShape<kR32f, kFetch, 2>("image_r32f_fetch_2d"),
    ImageShape<kR32f, kLinear, 2>("image_r32f_linear_2d"),
};

}  // namespace

std::span<const Shape> AllShapes() {
    return kShapes;
}

const Shape* FindShape(const std::string& name) {
    for (const Shape& shape : kShapes) {
        if (name == shape.name) {
            return &shape;
        }
    }
    return nullptr;
}

}  // namespace fornax::bench
