// Functions of one value, applied alone (unary.comp) or behind another operator. Their numbers are those of
// graph::UnaryFunction.
//
// Specialisation constants 2, 3 and 4 are the function and the bits of its two parameters, so that a
// compiled kernel holds one function and no choice.
layout(constant_id = 2) const uint kActivation = 0;
layout(constant_id = 3) const uint kActivationABits = 0;
layout(constant_id = 4) const uint kActivationBBits = 0;

float Sigmoid(float x) {
    return 1.0 / (1.0 + exp(-x));
}

// GLSL's own tanh may overflow to NaN for large arguments.
float Tanh(float x) {
    float e = exp(-2.0 * abs(x));
    float magnitude = (1.0 - e) / (1.0 + e);
    return x < 0.0 ? -magnitude : magnitude;
}

// Abramowitz and Stegun 7.1.26: absolute error below 1.5e-7.
float Erf(float x) {
    float t = 1.0 / (1.0 + 0.3275911 * abs(x));
    float polynomial =
        ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t +
         0.254829592) * t;
    float magnitude = 1.0 - polynomial * exp(-x * x);
    return x < 0.0 ? -magnitude : magnitude;
}

float Activate(float x) {
    float a = uintBitsToFloat(kActivationABits);
    float b = uintBitsToFloat(kActivationBBits);
    if (kActivation == 1) return max(x, 0.0);
    if (kActivation == 2) return min(max(x, a), b);
    if (kActivation == 3) return Sigmoid(x);
    if (kActivation == 4) return Tanh(x);
    if (kActivation == 5) return exp(x);
    if (kActivation == 6) return sqrt(x);
    if (kActivation == 7) return -x;
    if (kActivation == 8) return abs(x);
    if (kActivation == 9) return Erf(x);
    if (kActivation == 10) return x < 0.0 ? a * x : x;
    if (kActivation == 11) return log(x);
    if (kActivation == 12) return 1.0 / x;
    if (kActivation == 13) return x * Sigmoid(x);
    return x;
}
