// Batched matrix product with bias and activation: each invocation computes eight rows of one column.
//
// Lanes follow columns, which are contiguous in b and the output; the values of a that a step uses are the
// same for all lanes of a row. Kernel selection makes the workgroup as wide as narrow matrices are and gives
// the rest of its invocations to further rows. Bindings: a [batch..,M,K], b [batch..,K,N], bias [N],
// output [batches,M,N]. Grid: x counts columns, y tiles of eight rows, z batches. The batch index is split into four
// coordinates with strides for either operand; a stride of 0 broadcasts.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/activation.glsl"
#include "shaders/include/matmul.glsl"

void main() {
    uint column = gl_GlobalInvocationID.x;
    uint first = gl_GlobalInvocationID.y * 8;
    if (column >= kColumns || first >= kRows)
        return;
    uvec2 base = BatchBase(gl_WorkGroupID.z);

    // A last, partial tile computes its last row several times and stores it once.
    uvec4 low = base.x + min(uvec4(first, first + 1, first + 2, first + 3), uvec4(kRows - 1)) * kDepth;
    uvec4 high =
        base.x + min(uvec4(first + 4, first + 5, first + 6, first + 7), uvec4(kRows - 1)) * kDepth;
    uint right = base.y + column;

    float start = 0.0;
    if (kHasBias)
        start = bias[column];
    vec4 low_sum = vec4(start);
    vec4 high_sum = vec4(start);
    for (uint k = 0; k < kDepth; ++k) {
        float value = b[right];
        low_sum += value * vec4(a[low.x + k], a[low.y + k], a[low.z + k], a[low.w + k]);
        high_sum += value * vec4(a[high.x + k], a[high.y + k], a[high.z + k], a[high.w + k]);
        right += kColumns;
    }
    uint batch = gl_WorkGroupID.z;
    Store(batch, first, column, low_sum.x);
    Store(batch, first + 1, column, low_sum.y);
    Store(batch, first + 2, column, low_sum.z);
    Store(batch, first + 3, column, low_sum.w);
    Store(batch, first + 4, column, high_sum.x);
    Store(batch, first + 5, column, high_sum.y);
    Store(batch, first + 6, column, high_sum.z);
    Store(batch, first + 7, column, high_sum.w);
}
