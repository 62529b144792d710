// Kernels of every mapping and form, as small as they can be, for the fuzz target of plan files.
#pragma once

namespace fornax::graph {

inline constexpr const char* kFuzzKernels[] = {
    // A product in tiles of matrices.
    "kernel floats(in a: f32[17,8], in b: f32[2,8,16], in s: f32[32], out y: f32[17,32])\n"
    "  parallel $i < 17, $j < 32\n"
    "  product\n"
    "  %0 = load a[$i,$r]\n"
    "  %1 = load b[floor($j, 16),$r,mod($j, 16)]\n"
    "  %2 = mul %0, %1\n"
    "  %3 = reduce sum $r < 8 of %2\n"
    "  %4 = load s[$j]\n"
    "  %5 = add %3, %4\n"
    "  store y[$i,$j] = %5\n",
    // One over a window with padding.
    "kernel conv(in x: f32[6,6,2], in w: f32[1,3,3,2,16], out y: f32[6,6,16])\n"
    "  parallel $i < 6, $j < 6, $o < 16\n"
    "  product\n"
    "  %0 = constant f32 0\n"
    "  %1 = load x[$i + $r - 1,$j + $s - 1,$t] otherwise %0\n"
    "  %2 = load w[floor($o, 16),$r,$s,$t,mod($o, 16)]\n"
    "  %3 = mul %1, %2\n"
    "  %4 = reduce sum $r < 3, $s < 3, $t < 2 of %3\n"
    "  store y[$i,$j,$o] = %4\n",
    // One of bytes.
    "kernel bytes(in a: u8[3,8], in b: i8[1,2,16,4], out y: i32[3,16])\n"
    "  parallel $i < 3, $j < 16\n"
    "  product\n"
    "  %0 = load a[$i,4*$r + $u]\n"
    "  %1 = cast i32 %0\n"
    "  %2 = load b[floor($j, 16),$r,mod($j, 16),$u]\n"
    "  %3 = cast i32 %2\n"
    "  %4 = mul %1, %3\n"
    "  %5 = reduce sum $r < 2, $u < 4 of %4\n"
    "  store y[$i,$j] = %5\n",
    // One of few rows, with weights of four bits in words.
    "kernel words(in x: f32[n,16], in w: u32[1,2,16], out y: f32[n,16])\n"
    "  sizes n in 1..4\n"
    "  parallel $i < n, $j < 16\n"
    "  product\n"
    "  %0 = load x[$i,8*$r + $u]\n"
    "  %1 = load w[floor($j, 16),$r,mod($j, 16)]\n"
    "  %2 = index 4*$u\n"
    "  %3 = cast u32 %2\n"
    "  %4 = shr %1, %3\n"
    "  %5 = constant u32 15\n"
    "  %6 = and %4, %5\n"
    "  %7 = cast f32 %6\n"
    "  %8 = mul %0, %7\n"
    "  %9 = reduce sum $r < 2, $u < 8 of %8\n"
    "  store y[$i,$j] = %9\n",
    // An attention of one head.
    "kernel attention(in q: f32[3,2], in k: f32[n,2], in v: f32[n,2], out y: f32[3,2])\n"
    "  sizes n in 1..100\n"
    "  parallel $m < 3, $n < 2\n"
    "  attention\n"
    "  %0 = load q[$m,$i]\n"
    "  %1 = load k[$a,$i]\n"
    "  %2 = mul %0, %1\n"
    "  %3 = reduce sum $i < 2 of %2\n"
    "  %4 = reduce max $a < n of %3\n"
    "  %5 = load q[$m,$j]\n"
    "  %6 = load k[$b,$j]\n"
    "  %7 = mul %5, %6\n"
    "  %8 = reduce sum $j < 2 of %7\n"
    "  %9 = sub %8, %4\n"
    "  %10 = exp %9\n"
    "  %11 = reduce sum $b < n of %10\n"
    "  %12 = load q[$m,$k]\n"
    "  %13 = load k[$c,$k]\n"
    "  %14 = mul %12, %13\n"
    "  %15 = reduce sum $k < 2 of %14\n"
    "  %16 = sub %15, %4\n"
    "  %17 = exp %16\n"
    "  %18 = div %17, %11\n"
    "  %19 = load v[$c,$n]\n"
    "  %20 = mul %18, %19\n"
    "  %21 = reduce sum $c < n of %20\n"
    "  store y[$m,$n] = %21\n",
    // A sliding window.
    "kernel window(in x: f32[2,8,16], in w: f32[2,3,3], out y: f32[2,8,16])\n"
    "  parallel $c < 2, $i < 8, $j < 16\n"
    "  %0 = constant f32 0\n"
    "  %1 = load x[$c,$i + $r - 1,$j + $s - 1] otherwise %0\n"
    "  %2 = load w[$c,$r,$s]\n"
    "  %3 = mul %1, %2\n"
    "  %4 = reduce sum $r < 3, $s < 3 of %3\n"
    "  store y[$c,$i,$j] = %4\n",
    // Phases with a local tensor.
    "kernel recurrence(in x: f32[n,2,3], in w: f32[3,3], out y: f32[n,2,3], out z: f32[2,3])\n"
    "  sizes n in 1..9\n"
    "  local h: f32[2,3]\n"
    "  parallel $g < 2\n"
    "  sequential $t < n\n"
    "  %0 = constant f32 0.5\n"
    "  %1 = load x[$t,$g,$i]\n"
    "  %2 = load h[mod($t, 2),$k]\n"
    "  %3 = load w[$k,$i]\n"
    "  %4 = mul %2, %3\n"
    "  %5 = reduce sum $k < 3 of %4\n"
    "  %6 = add %1, %5\n"
    "  %7 = load h[mod(n, 2),$z]\n"
    "  before $a < 3\n"
    "  store h[0,$a] = %0\n"
    "  each $i < 3\n"
    "  store h[mod($t + 1, 2),$i] = %6\n"
    "  store y[$t,$g,$i] = %6\n"
    "  after $z < 3\n"
    "  store z[$g,$z] = %7\n",
};

}  // namespace fornax::graph
