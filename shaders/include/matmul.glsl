// What the matrix products share: specialisation constants 5 to 20, bindings, batch addressing, the store.
layout(constant_id = 5) const uint kRows = 1;
layout(constant_id = 6) const uint kDepth = 1;
layout(constant_id = 7) const uint kColumns = 1;
layout(constant_id = 8) const bool kHasBias = false;
// The batch coordinates, outermost first, and how far each one moves in a and b, in elements.
layout(constant_id = 9) const uint kBatch0 = 1;
layout(constant_id = 10) const uint kBatch1 = 1;
layout(constant_id = 11) const uint kBatch2 = 1;
layout(constant_id = 12) const uint kBatch3 = 1;
layout(constant_id = 13) const uint kStrideA0 = 0;
layout(constant_id = 14) const uint kStrideA1 = 0;
layout(constant_id = 15) const uint kStrideA2 = 0;
layout(constant_id = 16) const uint kStrideA3 = 0;
layout(constant_id = 17) const uint kStrideB0 = 0;
layout(constant_id = 18) const uint kStrideB1 = 0;
layout(constant_id = 19) const uint kStrideB2 = 0;
layout(constant_id = 20) const uint kStrideB3 = 0;

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer Output { float y[]; };

// Where the operands of one batch begin: x in a, y in b.
uvec2 BatchBase(uint batch) {
    uint c3 = batch % kBatch3;
    batch /= kBatch3;
    uint c2 = batch % kBatch2;
    batch /= kBatch2;
    uint c1 = batch % kBatch1;
    uint c0 = batch / kBatch1;
    return c0 * uvec2(kStrideA0, kStrideB0) + c1 * uvec2(kStrideA1, kStrideB1) +
           c2 * uvec2(kStrideA2, kStrideB2) + c3 * uvec2(kStrideA3, kStrideB3);
}

void Store(uint batch, uint row, uint column, float value) {
    if (row < kRows)
        y[(batch * kRows + row) * kColumns + column] = Activate(value);
}
