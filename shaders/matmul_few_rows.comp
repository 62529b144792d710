// Batched matrix product for few rows (a vector times a matrix above all): each invocation computes one
// value. Same bindings and specialisation constants as matmul.comp. Grid: x counts columns, y rows, z batches.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/activation.glsl"
#include "shaders/include/matmul.glsl"

void main() {
    uint column = gl_GlobalInvocationID.x;
    uint row = gl_GlobalInvocationID.y;
    if (column >= kColumns || row >= kRows)
        return;
    uvec2 base = BatchBase(gl_WorkGroupID.z);
    uint left = base.x + row * kDepth;
    uint right = base.y + column;

    float sum = 0.0;
    if (kHasBias)
        sum = bias[column];
    for (uint k = 0; k < kDepth; ++k) {
        sum += a[left + k] * b[right];
        right += kColumns;
    }
    Store(gl_WorkGroupID.z, row, column, sum);
}
