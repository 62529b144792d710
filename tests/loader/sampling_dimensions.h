// What sampling_test.cpp samples: an image of each dimension, with the kernel that does it.
#pragma once

#include <span>

#include "tests/loader/image_fixture.h"
#include "tests/loader/shaders/image_sample_cube.spv.h"
#include "tests/loader/shaders/image_sample_cube_array.spv.h"
#include "tests/loader/shaders/image_sample_int.spv.h"
#include "tests/loader/shaders/image_sample_line.spv.h"
#include "tests/loader/shaders/image_sample_lines.spv.h"
#include "tests/loader/shaders/image_sample_plain.spv.h"
#include "tests/loader/shaders/image_sample_plane.spv.h"
#include "tests/loader/shaders/image_sample_planes.spv.h"
#include "tests/loader/shaders/image_sample_space.spv.h"
#include "tests/loader/shaders/image_sample_uint.spv.h"

namespace fornax::test::sampling {

inline constexpr uint32_t kQueries = 256;
enum Operation : uint32_t {
    kLod,
    kGrad,
    kOffset,
    kFetch,
    kGather,
    kSizes,
    kGatherOffsets,
    kGatherOffset
};

// As the shaders' structure.
struct Query {
    float position[4];
    float gradient_x[4];
    float gradient_y[4];
    float lod[4];
};

struct Dimension {
    VkImageViewType view;
    VkImageType type;
    std::span<const uint32_t> spirv;
    VkExtent3D extent;
    uint32_t layers;
    int offset[3];
    bool offsets;
    bool gathers;
};

inline const Dimension kDimensions[] = {
    {VK_IMAGE_VIEW_TYPE_1D,
     VK_IMAGE_TYPE_1D,
     spirv::kImageSampleLine,
     {37, 1, 1},
     1,
     {3, 0, 0},
     true,
     false},
    {VK_IMAGE_VIEW_TYPE_1D_ARRAY,
     VK_IMAGE_TYPE_1D,
     spirv::kImageSampleLines,
     {16, 1, 1},
     5,
     {-2, 0, 0},
     true,
     false},
    {VK_IMAGE_VIEW_TYPE_2D,
     VK_IMAGE_TYPE_2D,
     spirv::kImageSamplePlane,
     {23, 14, 1},
     1,
     {3, -2, 0},
     true,
     true},
    {VK_IMAGE_VIEW_TYPE_2D_ARRAY,
     VK_IMAGE_TYPE_2D,
     spirv::kImageSamplePlanes,
     {8, 16, 1},
     4,
     {-8, 7, 0},
     true,
     true},
    {VK_IMAGE_VIEW_TYPE_3D,
     VK_IMAGE_TYPE_3D,
     spirv::kImageSampleSpace,
     {9, 6, 7},
     1,
     {1, -1, 2},
     true,
     false},
    {VK_IMAGE_VIEW_TYPE_CUBE,
     VK_IMAGE_TYPE_2D,
     spirv::kImageSampleCube,
     {12, 12, 1},
     6,
     {},
     false,
     true},
    {VK_IMAGE_VIEW_TYPE_CUBE_ARRAY,
     VK_IMAGE_TYPE_2D,
     spirv::kImageSampleCubeArray,
     {8, 8, 1},
     12,
     {},
     false,
     true},
};

}  // namespace fornax::test::sampling
