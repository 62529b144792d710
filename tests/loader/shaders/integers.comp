#version 450
// Every integer function of GLSL 4.5 on pairs of words; one record for each pair.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uvec2 pairs[]; };
struct Record {
    uint udiv; uint umod; int sdiv; int smod;
    uint bit_count; int lsb; int umsb; int smsb;
    uint uextract; int sextract; uint insert; uint reverse;
    uint sum; uint carry; uint difference; uint borrow;
    uint umsb_product; uint ulsb_product; int imsb_product; int ilsb_product;
    uint left; uint uright; int sright; int sign_abs;
    uint uminimum; uint umaximum; int sminimum; int smaximum;
    uint uclamped; int sclamped; uint compared; uint uniform_shift;
};
layout(set = 0, binding = 1) writeonly buffer Out { Record records[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= pairs.length())
        return;
    uint a = pairs[i].x;
    uint b = pairs[i].y;
    int sa = int(a);
    int sb = int(b);
    Record r;
    // Vulkan leaves division by zero and the remainder of negative numbers open.
    r.udiv = b != 0u ? a / b : 0u;
    r.umod = b != 0u ? a % b : 0u;
    r.sdiv = sb != 0 && !(a == 0x80000000u && sb == -1) ? sa / sb : 0;
    r.smod = sa >= 0 && sb > 0 ? sa % sb : 0;
    r.bit_count = bitCount(a);
    r.lsb = findLSB(a);
    r.umsb = findMSB(a);
    r.smsb = findMSB(sa);
    int offset = int(b & 31u);
    int bits = int((b >> 5) % uint(33 - offset));
    r.uextract = bitfieldExtract(a, offset, bits);
    r.sextract = bitfieldExtract(sa, offset, bits);
    r.insert = bitfieldInsert(a, b, offset, bits);
    r.reverse = bitfieldReverse(a);
    r.sum = uaddCarry(a, b, r.carry);
    r.difference = usubBorrow(a, b, r.borrow);
    umulExtended(a, b, r.umsb_product, r.ulsb_product);
    imulExtended(sa, sb, r.imsb_product, r.ilsb_product);
    r.left = a << (b & 31u);
    r.uright = a >> (b & 31u);
    r.sright = sa >> (b & 31u);
    r.sign_abs = sign(sa) * 4 + (abs(sa) == sa ? 1 : 0);
    r.uminimum = min(a, b);
    r.umaximum = max(a, b);
    r.sminimum = min(sa, sb);
    r.smaximum = max(sa, sb);
    r.uclamped = clamp(a, 5u, 0x80000001u);
    r.sclamped = clamp(sa, -7, 0x7ffffffe);
    r.compared = uint(a < b) | uint(a <= b) << 1 | uint(sa < sb) << 2 | uint(sa >= sb) << 3 |
                 uint(a == b) << 4;
    r.uniform_shift = (a << 31) | (~a >> 1);
    records[i] = r;
}
