#version 450
// d = a * b + c, of matrices of several tiles; each subgroup makes one. Both layouts of each operand, strides
// that are known only when the shader runs.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#ifdef BFLOAT
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_shader_16bit_storage : require
#endif
#pragma use_vulkan_memory_model
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int kLayoutA = gl_CooperativeMatrixLayoutRowMajor;
layout(constant_id = 2) const int kLayoutB = gl_CooperativeMatrixLayoutRowMajor;
layout(constant_id = 3) const int kLayoutC = gl_CooperativeMatrixLayoutRowMajor;
layout(set = 0, binding = 0) readonly buffer A { A_TYPE a[]; };
layout(set = 0, binding = 1) readonly buffer B { B_TYPE b[]; };
layout(set = 0, binding = 2) readonly buffer C { SUM_TYPE c[]; };
layout(set = 0, binding = 3) writeonly buffer D { SUM_TYPE d[]; };
// The whole matrices: elements from row to row, or from column to column; products in a sum.
layout(push_constant) uniform Sizes { uint stride_a; uint stride_b; uint stride_c; uint products; };

uint Place(uint row, uint column, uint stride, int how) {
    return how == gl_CooperativeMatrixLayoutRowMajor ? row * stride + column : column * stride + row;
}

void main() {
    uint row = gl_WorkGroupID.y * 16;
    uint column = gl_WorkGroupID.x * 16;
    coopmat<SUM_TYPE, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sum;
    coopMatLoad(sum, c, Place(row, column, stride_c, kLayoutC), stride_c, kLayoutC);
    for (uint k = 0; k < products; k += 16) {
        coopmat<A_TYPE, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> left;
        coopmat<B_TYPE, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> right;
        coopMatLoad(left, a, Place(row, k, stride_a, kLayoutA), stride_a, kLayoutA);
        coopMatLoad(right, b, Place(k, column, stride_b, kLayoutB), stride_b, kLayoutB);
#ifdef SATURATING
        sum = coopMatMulAdd(left, right, sum, gl_MatrixOperandsSaturatingAccumulation);
#else
        sum = coopMatMulAdd(left, right, sum);
#endif
    }
    coopMatStore(sum, d, Place(row, column, stride_c, kLayoutC), stride_c, kLayoutC);
}
