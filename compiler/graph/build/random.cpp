// Random numbers from the bits of op::RandomBits.
#include "compiler/graph/build/random.h"

#include <numbers>

#include <fmt/format.h>

namespace fornax::graph {
namespace {

Val Key(Builder& b, uint64_t seed) {
    uint8_t* data = nullptr;
    Tensor key = Tensor::Zeros(ElementType::kU32, {2}, &data);
    WriteElement(ElementType::kU32, Scalar::Integer(static_cast<int64_t>(seed & UINT32_MAX)), data);
    WriteElement(ElementType::kU32, Scalar::Integer(static_cast<int64_t>(seed >> 32)), data + 4);
    return b.Constant(std::move(key));
}

// The top 24 bits, which f32 holds.
Val Uniform(Builder& b, const Shape& shape, uint64_t seed) {
    const Val bits = b.RandomBits(Key(b, seed), shape);
    return Cast(map::ShiftRight(bits, b.Integer(ElementType::kU32, 8)), ElementType::kF32) *
           (1.0 / (1 << 24));
}

}  // namespace

Val RandomUniform(Builder& b, const Shape& shape, uint64_t seed, ElementType element) {
    return Cast(Uniform(b, shape, seed), element);
}

Val RandomNormal(Builder& b, const Shape& shape, uint64_t seed, ElementType element) {
    // Box and Muller's, with one of the two numbers; the logarithm's argument is not 0.
    const Val first = 1.0 - Uniform(b, shape, seed);
    const Val second = Uniform(b, shape, seed ^ 0x9E3779B97F4A7C15);
    return Cast(map::Sqrt(map::Log(first) * -2.0) * map::Cos(second * (2 * std::numbers::pi)),
                element);
}

Val Multinomial(Val logits, int64_t count, uint64_t seed, ElementType element) {
    if (logits.rank() != 2 || count < 0) {
        FailInvalid(fmt::format("{} samples are drawn from {}", count, logits.shape().ToString()));
    }
    // The greatest of the logits with Gumbel noise.
    Builder& b = logits.builder();
    const Shape shape{logits.dim(0), count, logits.dim(1)};
    const Val uniform = 1.0 - Uniform(b, shape, seed);
    const Val noise = -map::Log(Max(-map::Log(uniform), 1e-30));
    return Cast(
        ArgReduce(Combine::kMax, Unsqueeze(Cast(logits, ElementType::kF32), 1) + noise, 2, false),
        element);
}

}  // namespace fornax::graph
