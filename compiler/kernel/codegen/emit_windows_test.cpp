// Windows over images, as convolutions load them: strides, edges and pitches that are known at run
// time only.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr char kPlaces[] = R"(
    %x:i32 = builtin local_id_x
    %y:i32 = builtin local_id_y
    %wx:i32 = builtin workgroup_id_x
    %li:i32 = builtin local_index
    %size:i32 = const 4
    %first:i32 = imul %wx, %size
    %px:i32 = iadd %first, %x
    %four:i32 = const 4
    %eight:i32 = const 8
    %twelve:i32 = const 12
    %s:i32 = load_push %zero align(4)
    %t:i32 = load_push %four align(4)
    %pad:i32 = load_push %eight align(4)
    %pitch:i32 = load_push %twelve align(4)
    %sx:i32 = imul %px, %s
    %sy:i32 = imul %y, %t
    %ux:i32 = isub %sx, %pad
    %uy:i32 = isub %sy, %pad
    %c64:i32 = const 64
    %group:i32 = imul %wx, %c64
    %place:i32 = iadd %group, %li
    %to:i32 = shl %place, %four
)";

// Texel (ux, uy), which lies nowhere below 0, of rows of `pitch` bytes.
constexpr char kTexel[] = R"(
    %from0:i32 = imul %vy, %pitch
    %from1:i32 = shl %vx, %four
    %from:i32 = iadd %from0, %from1
    %a:i32, %b:i32, %c:i32, %d:i32 = load_buffer %in, %from align(16)
)";

// Where the window begins inside of the image, and the weight which that is.
constexpr char kClamped[] = R"(
    %vx:i32 = smax %ux, %zero
    %vy:i32 = smax %uy, %zero
    %wx0:i32 = isub %vx, %ux
    %weight:i32 = shl %wx0, %four
    %e:i32, %f:i32, %g:i32, %h:i32 = load_buffer %in, %weight align(16)
)";

constexpr char kSum[] = R"(
    %i:i32 = iadd %a, %e
    %j:i32 = iadd %b, %f
    %k:i32 = iadd %c, %g
    %l:i32 = iadd %d, %h
    store_buffer %out, %to, %i, %j, %k, %l align(16)
    return
)";

struct Window {
    uint32_t strides[2];
    uint32_t pad;
    uint32_t pitch;  // texels
};

void Check(const ir::Kernel& kernel, const Window& window, bool clamps) {
    SCOPED_TRACE(testing::Message() << "strides " << window.strides[0] << ", " << window.strides[1]
                                    << ", pad " << window.pad << ", pitch " << window.pitch);
    constexpr uint32_t kGroups = 3;
    constexpr uint32_t kTexels = 300;
    const Buffers buffers = {Counting(kTexels * 4), std::vector<uint32_t>(kGroups * 64 * 4, 7)};
    std::vector<uint32_t> wanted = buffers[1];
    for (uint32_t lane = 0; lane < kGroups * 64; ++lane) {
        const auto x = static_cast<int>((lane / 64 * 4 + lane % 4) * window.strides[0]) -
                       static_cast<int>(window.pad);
        const auto y =
            static_cast<int>(lane % 64 / 4 % 16 * window.strides[1]) - static_cast<int>(window.pad);
        const int from_x = clamps ? std::max(x, 0) : x;
        const int from_y = clamps ? std::max(y, 0) : y;
        const auto texel = static_cast<uint32_t>(from_y * static_cast<int>(window.pitch) + from_x);
        const auto weight = clamps ? static_cast<uint32_t>(from_x - x) : 0;
        for (uint32_t word = 0; word < 4; ++word) {
            const uint32_t value = texel < kTexels ? 100 + texel * 4 + word : 0;
            const uint32_t of_weight = clamps ? 100 + weight * 4 + word : 0;
            wanted[lane * 4 + word] = value + of_weight;
        }
    }
    ForEachWidth(
        kernel, buffers,
        {.groups = {kGroups, 1, 1},
         .push_constants = {window.strides[0], window.strides[1], window.pad, window.pitch * 16}},
        [&](const Buffers& results) { ASSERT_EQ(results[1], wanted); });
}

constexpr char kAttributes[] = "workgroup_size(4, 16, 1) push_constants(16) robust";

// Windows that begin before the image are cut, so one texel's weight is another's.
TEST(EmitWindows, ClampedBeginnings) {
    const ir::Kernel kernel =
        TwoBufferKernel(kAttributes, std::string(kPlaces) + kClamped, std::string(kTexel) + kSum);
    for (const Window& window :
         {Window{{1, 1}, 0, 14}, Window{{1, 1}, 1, 14}, Window{{2, 1}, 1, 17}, Window{{1, 2}, 2, 9},
          Window{{2, 2}, 3, 33}, Window{{0, 0}, 0, 5}, Window{{1, 0}, 5, 5},
          Window{{3, 1}, 0, 0}}) {
        Check(kernel, window, true);
    }
}

// Without padding: rows whose pitch is a product, of texels that are a stride apart.
TEST(EmitWindows, StridesOfTexelsAndOfRows) {
    const ir::Kernel kernel = TwoBufferKernel(
        kAttributes,
        std::string(kPlaces) + "%vx:i32 = iadd %ux, %zero\n%vy:i32 = iadd %uy, %zero\n",
        std::string(kTexel) + "    store_buffer %out, %to, %a, %b, %c, %d align(16)\n    return\n");
    for (const Window& window :
         {Window{{1, 1}, 0, 14}, Window{{2, 1}, 0, 17}, Window{{1, 3}, 0, 6}, Window{{2, 2}, 0, 40},
          Window{{0, 1}, 0, 14}, Window{{1, 0}, 0, 14}, Window{{5, 7}, 0, 3}, Window{{1, 1}, 0, 0},
          Window{{1, 1}, 1, 14}}) {
        Check(kernel, window, false);
    }
}

}  // namespace
}  // namespace fornax::kernel
