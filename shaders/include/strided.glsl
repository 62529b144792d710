// The coordinates of a linear index in a tensor of six dimensions, kDim0 outermost: what kernels with
// broadcast or permuted operands share. Specialisation constants 5 to 10.
layout(constant_id = 5) const uint kDim0 = 1;
layout(constant_id = 6) const uint kDim1 = 1;
layout(constant_id = 7) const uint kDim2 = 1;
layout(constant_id = 8) const uint kDim3 = 1;
layout(constant_id = 9) const uint kDim4 = 1;
layout(constant_id = 10) const uint kDim5 = 1;

const uint kElements = kDim0 * kDim1 * kDim2 * kDim3 * kDim4 * kDim5;

struct Coordinates {
    uvec3 outer;  // of dimensions 0, 1, 2
    uvec3 inner;  // of dimensions 3, 4, 5
};

Coordinates Split(uint index) {
    Coordinates c;
    c.inner.z = index % kDim5;
    index /= kDim5;
    c.inner.y = index % kDim4;
    index /= kDim4;
    c.inner.x = index % kDim3;
    index /= kDim3;
    c.outer.z = index % kDim2;
    index /= kDim2;
    c.outer.y = index % kDim1;
    c.outer.x = index / kDim1;
    return c;
}

uint Offset(Coordinates c, uvec3 outer_strides, uvec3 inner_strides) {
    uvec3 sum = c.outer * outer_strides + c.inner * inner_strides;
    return sum.x + sum.y + sum.z;
}
