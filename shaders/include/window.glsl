// Images of [images][channels][height][width] and windows that slide over them: what convolution and
// pooling share. Specialisation constants 5 to 18.
layout(constant_id = 5) const uint kImages = 1;
layout(constant_id = 6) const uint kChannels = 1;
layout(constant_id = 7) const uint kHeight = 1;
layout(constant_id = 8) const uint kWidth = 1;
layout(constant_id = 9) const uint kOutHeight = 1;
layout(constant_id = 10) const uint kOutWidth = 1;
layout(constant_id = 11) const uint kKernelHeight = 1;
layout(constant_id = 12) const uint kKernelWidth = 1;
layout(constant_id = 13) const uint kStrideY = 1;
layout(constant_id = 14) const uint kStrideX = 1;
layout(constant_id = 15) const uint kDilationY = 1;
layout(constant_id = 16) const uint kDilationX = 1;
layout(constant_id = 17) const uint kPadTop = 0;
layout(constant_id = 18) const uint kPadLeft = 0;

const uint kPlane = kHeight * kWidth;
const uint kOutPlane = kOutHeight * kOutWidth;

// The top left corner of the window of output pixel `pixel` of a plane. Coordinates before the plane wrap
// to huge unsigned numbers, so that one comparison with the extent finds both kinds of padding.
uvec2 WindowCorner(uint pixel) {
    return uvec2(pixel % kOutWidth * kStrideX - kPadLeft, pixel / kOutWidth * kStrideY - kPadTop);
}
