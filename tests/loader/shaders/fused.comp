#version 450
// Products and sums that are rounded once (OpFmaKHR), at each width; results as bits. The test adds execution modes.
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_spirv_intrinsics : require
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4464, 4465, 4466, 4467, 4468], 4461, 64);
spirv_instruction(extensions = ["SPV_KHR_fma"], capabilities = [6030], id = 4427)
float16_t fused(float16_t a, float16_t b, float16_t c);
spirv_instruction(extensions = ["SPV_KHR_fma"], capabilities = [6030], id = 4427)
float fused(float a, float b, float c);
spirv_instruction(extensions = ["SPV_KHR_fma"], capabilities = [6030], id = 4427)
double fused(double a, double b, double c);
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint64_t operands[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint64_t results[]; };

void main() {
    uint i = gl_GlobalInvocationID.x * 3u;
    if (i >= operands.length())
        return;
    uint64_t a = operands[i];
    uint64_t b = operands[i + 1u];
    uint64_t c = operands[i + 2u];
    results[i] = float16BitsToUint16(fused(uint16BitsToFloat16(uint16_t(a)), uint16BitsToFloat16(uint16_t(b)),
                                           uint16BitsToFloat16(uint16_t(c))));
    results[i + 1u] = floatBitsToUint(fused(uintBitsToFloat(uint(a)), uintBitsToFloat(uint(b)), uintBitsToFloat(uint(c))));
    results[i + 2u] = doubleBitsToUint64(fused(uint64BitsToDouble(a), uint64BitsToDouble(b), uint64BitsToDouble(c)));
}
