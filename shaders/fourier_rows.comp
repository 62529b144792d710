// Fourier transforms of rows: of `points` complex numbers, or of twice as many real numbers, whose
// even and odd ones are the parts of complex numbers ("packed").
//
// A workgroup transforms a row in passes of one radix each (Stockham's form). Before a pass of the
// radix r, `before` is the product of the radices so far and the row is [before][r][after]; r
// points along the second axis, times powers of a root of unity, are transformed and become
// [r][before][after]. So an invocation stores next to its neighbours in every pass. The first pass
// reads the row, the last one writes it, what lies between them is in workgroup memory. An inverse
// transform is a forward one with real and imaginary parts exchanged.
#version 450

const uint kLanes = 16;

layout(local_size_x = 16) in;

layout(constant_id = 0) const uint kPoints = 2;
layout(constant_id = 1) const uint kRadix0 = 2;
layout(constant_id = 2) const uint kRadix1 = 1;
layout(constant_id = 3) const uint kRadix2 = 1;
layout(constant_id = 4) const uint kRadix3 = 1;
layout(constant_id = 5) const uint kRadix4 = 1;
layout(constant_id = 6) const uint kPacked = 0;
layout(constant_id = 7) const uint kInverse = 0;
layout(constant_id = 8) const uint kGiven = 4;  // floats of a row
layout(constant_id = 9) const uint kMade = 4;   // floats of a transformed row

layout(push_constant) uniform Sizes {
    uint rows;
};

layout(set = 0, binding = 0) readonly buffer Given {  // [row][kGiven]
    float given[];
};
// exp(-2 pi i f k / (before r)) at [2 before + (k - 1) 2 before + part before + f]; then of packed
// rows exp(-pi i k / points) at [2 points + part (points + 1) + k].
layout(set = 0, binding = 1) readonly buffer Roots {
    float roots[];
};
layout(set = 0, binding = 2) writeonly buffer Made {  // [row][kMade]
    float made[];
};

// Two rows, which passes read and write in turns.
shared float real[2 * kPoints];
shared float imaginary[2 * kPoints];

const uint kHalf = kPoints / 2 + 1;
const uint kNumbers = kPacked != 0 ? 2 * kPoints : kPoints;  // that are transformed

vec2 Times(vec2 a, vec2 b) {
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

vec2 TimesMinusI(vec2 a) {
    return vec2(a.y, -a.x);
}

vec2 Conjugate(vec2 a) {
    return vec2(a.x, -a.y);
}

vec2 GivenNumber(uint first, uint i) {
    return vec2(given[first + 2 * i], given[first + 2 * i + 1]);
}

// exp(-pi i k / points).
vec2 PackedRoot(uint k) {
    return vec2(roots[2 * kPoints + k], roots[2 * kPoints + kPoints + 1 + k]);
}

// Point i of what is transformed.
vec2 Loaded(uint row, uint i) {
    const uint first = row * kGiven;
    vec2 value;
    if (kInverse != 0 && kPacked != 0) {
        // Frequency k of the even numbers plus i times that of the odd ones.
        vec2 a = GivenNumber(first, i), b = Conjugate(GivenNumber(first, kPoints - i));
        if (i == 0) {
            a.y = 0;
            b.y = 0;
        }
        value = a + b - TimesMinusI(Times(Conjugate(PackedRoot(i)), a - b));
    } else if (kGiven == 2 * kPoints) {
        value = GivenNumber(first, i);
    } else if (kGiven == kPoints) {
        value = vec2(given[first + i], 0);
    } else {  // half of the frequencies
        value = i < kHalf ? GivenNumber(first, i) : Conjugate(GivenNumber(first, kPoints - i));
    }
    return kInverse != 0 ? value.yx : value;
}

void StoreNumber(uint first, uint i, vec2 value) {
    made[first + 2 * i] = value.x;
    made[first + 2 * i + 1] = value.y;
}

void StorePoint(uint row, uint i, vec2 value) {
    const uint first = row * kMade;
    if (kInverse != 0) {
        value = value.yx * (1.0 / float(kNumbers));
    }
    if (kMade == kPoints) {
        made[first + i] = value.x;
    } else if (kMade == 2 * kPoints || i < kHalf) {
        StoreNumber(first, i, value);
    }
}

void Transform2(inout vec2 a, inout vec2 b) {
    const vec2 sum = a + b;
    b = a - b;
    a = sum;
}

void Transform3(inout vec2 a, inout vec2 b, inout vec2 c) {
    const vec2 sum = b + c, turned = TimesMinusI((b - c) * 0.866025403784438647);
    const vec2 rest = a - 0.5 * sum;
    a += sum;
    b = rest + turned;
    c = rest - turned;
}

void Transform4(inout vec2 a, inout vec2 b, inout vec2 c, inout vec2 d) {
    const vec2 even = a + c, even_rest = a - c;
    const vec2 odd = b + d, odd_rest = TimesMinusI(b - d);
    a = even + odd;
    b = even_rest + odd_rest;
    c = even - odd;
    d = even_rest - odd_rest;
}

void Transform5(inout vec2 v[16]) {
    const float c1 = 0.309016994374947424, c2 = -0.809016994374947424;
    const float s1 = 0.951056516295153572, s2 = 0.587785252292473129;
    const vec2 a = v[1] + v[4], b = v[2] + v[3], c = v[1] - v[4], d = v[2] - v[3];
    const vec2 p = v[0] + c1 * a + c2 * b, q = v[0] + c2 * a + c1 * b;
    const vec2 r = TimesMinusI(s1 * c + s2 * d), s = TimesMinusI(s2 * c - s1 * d);
    v[0] += a + b;
    v[1] = p + r;
    v[2] = q + s;
    v[3] = q - s;
    v[4] = p - r;
}

void Transform7(inout vec2 v[16]) {
    const float c1 = 0.623489801858733531, c2 = -0.222520933956314404, c3 = -0.900968867902419126;
    const float s1 = 0.781831482468029809, s2 = 0.974927912181823607, s3 = 0.433883739117558120;
    const vec2 a = v[1] + v[6], b = v[2] + v[5], c = v[3] + v[4];
    const vec2 d = v[1] - v[6], e = v[2] - v[5], f = v[3] - v[4];
    const vec2 p = v[0] + c1 * a + c2 * b + c3 * c, q = v[0] + c2 * a + c3 * b + c1 * c;
    const vec2 r = v[0] + c3 * a + c1 * b + c2 * c;
    const vec2 x = TimesMinusI(s1 * d + s2 * e + s3 * f);
    const vec2 y = TimesMinusI(s2 * d - s3 * e - s1 * f);
    const vec2 z = TimesMinusI(s3 * d - s1 * e + s2 * f);
    v[0] += a + b + c;
    v[1] = p + x;
    v[2] = q + y;
    v[3] = r + z;
    v[4] = r - z;
    v[5] = q - y;
    v[6] = p - x;
}

const float kDiagonal = 0.707106781186547524;  // of a square

void Transform8(inout vec2 v[16]) {
    vec2 a = v[0], b = v[2], c = v[4], d = v[6], e = v[1], f = v[3], g = v[5], h = v[7];
    Transform4(a, b, c, d);
    Transform4(e, f, g, h);
    f = vec2(f.x + f.y, f.y - f.x) * kDiagonal;
    g = TimesMinusI(g);
    h = vec2(h.y - h.x, -h.x - h.y) * kDiagonal;
    v[0] = a + e;
    v[1] = b + f;
    v[2] = c + g;
    v[3] = d + h;
    v[4] = a - e;
    v[5] = b - f;
    v[6] = c - g;
    v[7] = d - h;
}

void Transform16(inout vec2 v[16]) {
    const float c1 = 0.923879532511286756, s1 = 0.382683432365089772;  // of 1/16 of a turn
    Transform4(v[0], v[4], v[8], v[12]);
    Transform4(v[1], v[5], v[9], v[13]);
    Transform4(v[2], v[6], v[10], v[14]);
    Transform4(v[3], v[7], v[11], v[15]);
    v[5] = Times(v[5], vec2(c1, -s1));
    v[9] = vec2(v[9].x + v[9].y, v[9].y - v[9].x) * kDiagonal;
    v[13] = Times(v[13], vec2(s1, -c1));
    v[6] = vec2(v[6].x + v[6].y, v[6].y - v[6].x) * kDiagonal;
    v[10] = TimesMinusI(v[10]);
    v[14] = vec2(v[14].y - v[14].x, -v[14].x - v[14].y) * kDiagonal;
    v[7] = Times(v[7], vec2(s1, -c1));
    v[11] = vec2(v[11].y - v[11].x, -v[11].x - v[11].y) * kDiagonal;
    v[15] = Times(v[15], vec2(-c1, s1));
    Transform4(v[0], v[1], v[2], v[3]);
    Transform4(v[4], v[5], v[6], v[7]);
    Transform4(v[8], v[9], v[10], v[11]);
    Transform4(v[12], v[13], v[14], v[15]);
    // Frequency 4 q + m is at 4 m + q.
    const vec2 w[16] = v;
    for (uint m = 0; m < 4; ++m) {
        for (uint q = 0; q < 4; ++q) {
            v[4 * q + m] = w[4 * m + q];
        }
    }
}

void Transform(uint radix, inout vec2 v[16]) {
    if (radix == 2) {
        Transform2(v[0], v[1]);
    } else if (radix == 3) {
        Transform3(v[0], v[1], v[2]);
    } else if (radix == 4) {
        Transform4(v[0], v[1], v[2], v[3]);
    } else if (radix == 5) {
        Transform5(v);
    } else if (radix == 7) {
        Transform7(v);
    } else if (radix == 8) {
        Transform8(v);
    } else if (radix == 16) {
        Transform16(v);
    }
}

// What all passes do with `radix` points. Every number here is known when the kernel is compiled.
void TransformAndStore(uint row, uint i, uint radix, bool last, uint to, inout vec2 v[16]) {
    Transform(radix, v);
    for (uint k = 0; k < radix; ++k) {
        const uint place = k * (kPoints / radix) + i;
        if (last && kPacked * (1 - kInverse) == 0) {
            StorePoint(row, place, v[k]);
        } else {
            real[to + place] = v[k].x;
            imaginary[to + place] = v[k].y;
        }
    }
}

void FirstPass(uint row) {
    for (uint i = gl_LocalInvocationIndex; i < kPoints / kRadix0; i += kLanes) {
        vec2 v[16];
        for (uint k = 0; k < kRadix0; ++k) {
            v[k] = Loaded(row, k * (kPoints / kRadix0) + i);
        }
        TransformAndStore(row, i, kRadix0, kRadix0 == kPoints, 0, v);
    }
    barrier();
}

void Pass(uint row, uint radix, uint before, uint from, uint to) {
    const uint after = kPoints / (before * radix);
    for (uint i = gl_LocalInvocationIndex; i < kPoints / radix; i += kLanes) {
        const uint f = i / after, a = i % after;
        vec2 v[16];
        for (uint k = 0; k < radix; ++k) {
            const uint place = from + (f * radix + k) * after + a;
            v[k] = vec2(real[place], imaginary[place]);
            if (k != 0) {
                const uint root = 2 * before * k + f;
                v[k] = Times(v[k], vec2(roots[root], roots[root + before]));
            }
        }
        TransformAndStore(row, i, radix, after == 1, to, v);
    }
    barrier();
}

// The frequencies of real numbers from those of the points: the even numbers' and the odd ones'.
void StorePacked(uint row, uint from) {
    const uint first = row * kMade;
    for (uint k = gl_LocalInvocationIndex; k <= kPoints; k += kLanes) {
        const uint at = from + (k < kPoints ? k : 0), other = from + (k == 0 ? 0 : kPoints - k);
        const vec2 a = vec2(real[at], imaginary[at]);
        const vec2 b = vec2(real[other], -imaginary[other]);
        const vec2 value = 0.5 * (a + b + TimesMinusI(Times(PackedRoot(k), a - b)));
        StoreNumber(first, k, value);
        if (kMade == 4 * kPoints && k != 0 && k != kPoints) {
            StoreNumber(first, 2 * kPoints - k, Conjugate(value));
        }
    }
    barrier();
}

void TransformRow(uint row) {
    FirstPass(row);
    if (kRadix1 != 1) {
        Pass(row, kRadix1, kRadix0, 0, kPoints);
    }
    if (kRadix2 != 1) {
        Pass(row, kRadix2, kRadix0 * kRadix1, kPoints, 0);
    }
    if (kRadix3 != 1) {
        Pass(row, kRadix3, kRadix0 * kRadix1 * kRadix2, 0, kPoints);
    }
    if (kRadix4 != 1) {
        Pass(row, kRadix4, kRadix0 * kRadix1 * kRadix2 * kRadix3, kPoints, 0);
    }
    if (kPacked != 0 && kInverse == 0) {
        if ((kRadix1 != 1 && kRadix2 == 1) || (kRadix3 != 1 && kRadix4 == 1)) {
            StorePacked(row, kPoints);  // an even number of passes
        } else {
            StorePacked(row, 0);
        }
    }
}

// Whether the choices fit each other.
bool IsTransform() {
    bool radices = kRadix0 * kRadix1 * kRadix2 * kRadix3 * kRadix4 == kPoints &&
                         (kRadix1 != 1 || kRadix2 == 1) && (kRadix2 != 1 || kRadix3 == 1) &&
                         (kRadix3 != 1 || kRadix4 == 1);
    if (kPacked != 0) {
        if (kInverse != 0) {
            return radices && kGiven == 2 * kPoints + 2 && kMade == 2 * kPoints;
        }
        return radices && kGiven == 2 * kPoints &&
               (kMade == 2 * kPoints + 2 || kMade == 4 * kPoints);
    }
    return radices && (kGiven == 2 * kPoints || kGiven == kPoints || kGiven == 2 * kHalf) &&
           (kMade == 2 * kPoints || kMade == kPoints || kMade == 2 * kHalf);
}

void main() {
    if (IsTransform()) {
        for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
            TransformRow(row);
        }
    }
}
