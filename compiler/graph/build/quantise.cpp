// Quantised tensors and their products.
#include <fmt/format.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/byte_product.h"
#include "compiler/graph/build/product.h"

namespace fornax::graph {
namespace {

// The least and greatest integers of a type of at most 32 bits.
double Lowest(ElementType type) {
    return IsSigned(type) ? -static_cast<double>(int64_t{1} << (BitsOf(type) - 1)) : 0;
}

double Greatest(ElementType type) {
    return static_cast<double>((int64_t{1} << (BitsOf(type) - (IsSigned(type) ? 1 : 0))) - 1);
}

}  // namespace

Val FlipSign(Val bytes, ElementType to) {
    const Val codes = Bitcast(bytes, ElementType::kU8);
    return Bitcast(map::Xor(codes, Like(codes, 128)), to);
}

Val SpreadScale(Val scale, Val x, QuantAxis quant) {
    SizeFacts& sizes = scale.builder().sizes();
    if (scale.rank() == 0 || (scale.rank() == 1 && sizes.Equal(scale.dim(0), 1))) {
        return Reshape(scale, Shape{});
    }
    const int64_t axis = Builder::Axis(quant.axis, x.rank());
    if (quant.block == 0) {
        if (scale.rank() != 1) {
            FailInvalid(fmt::format("the scale {} is not one number or a vector",
                                    scale.shape().ToString()));
        }
        std::vector<Expr> dims(static_cast<size_t>(x.rank() - axis), Expr(1));
        dims[0] = scale.dim(0);
        return Reshape(scale, Shape(std::move(dims)));
    }
    if (scale.rank() != x.rank() || quant.block < 0) {
        FailInvalid(fmt::format("the scale {} does not fit blocks of {} of {}",
                                scale.shape().ToString(), quant.block, x.shape().ToString()));
    }
    Shape shape = scale.shape();
    const size_t place = static_cast<size_t>(axis);
    std::vector<Expr> repeated(shape.dims().begin(), shape.dims().end());
    repeated.insert(repeated.begin() + axis + 1, Expr(quant.block));
    shape[place] = shape[place] * quant.block;
    const Val spread =
        Reshape(BroadcastTo(Unsqueeze(scale, axis + 1), Shape(std::move(repeated))), shape);
    return SliceAxis(spread, axis, 0, x.dim(axis));
}

Val Quantise(Val x,
             Val scale,
             Val zero,
             QuantAxis quant,
             ElementType to,
             Overflow overflow,
             ElementType compute) {
    if (IsInteger(to) && BitsOf(to) > (IsSigned(to) ? 32 : 16)) {
        FailInvalid(fmt::format("it quantises to {}, and the codes are computed in i32", Name(to)));
    }
    return x.builder().Composite(
        "quantise", {{"axis", quant.axis}, {"block", quant.block}}, {x, scale, zero},
        [&](Builder&, Vals in) -> Vals {
            Val y = Cast(in[0], compute) / SpreadScale(Cast(in[1], compute), in[0], quant);
            if (!IsInteger(to)) {
                if (in[2]) {
                    y = y + SpreadScale(Cast(in[2], compute), in[0], quant);
                }
                return {Cast(y, to, overflow)};
            }
            y = map::Round(Cast(y, compute == ElementType::kF64 ? compute : ElementType::kF32));
            if (in[2]) {
                y = y + SpreadScale(Cast(in[2], y.element()), in[0], quant);
            }
            y = Min(Max(y, Lowest(to)), Greatest(to));
            const Val integer = Cast(y, ElementType::kI32);
            if (to == ElementType::kI8) {
                return {FlipSign(Cast(integer + 128, ElementType::kU8), to)};
            }
            return {Cast(integer, to)};
        })[0];
}

Val Dequantise(Val x, Val scale, Val zero, QuantAxis quant, ElementType to) {
    return x.builder().Composite(
        "dequantise", {{"axis", quant.axis}, {"block", quant.block}}, {x, scale, zero},
        [&](Builder&, Vals in) -> Vals {
            const ElementType compute = ComputeType(in[1].element());
            Val v;
            if (in[2] && IsInteger(in[0].element())) {
                v = Cast(Cast(in[0], ElementType::kI32) -
                             SpreadScale(Cast(in[2], ElementType::kI32), in[0], quant),
                         compute);
            } else {
                v = Cast(in[0], compute);
                if (in[2]) {
                    v = v - SpreadScale(Cast(in[2], compute), in[0], quant);
                }
            }
            return {Cast(v * SpreadScale(Cast(in[1], compute), in[0], quant), to)};
        })[0];
}

Val MatMulIntegers(Val a, Val a_zero, Val b, Val b_zero) {
    if (const std::optional<Val> y = MultiplyCodes(a, a_zero, b, b_zero)) {
        return *y;
    }
    return a.builder().Composite(
        "matmul_integer", {}, {a, a_zero, b, b_zero}, [&](Builder&, Vals in) -> Vals {
            Val left = Cast(in[0], ElementType::kI32), right = Cast(in[2], ElementType::kI32);
            if (in[1]) {
                // One a row, or of the rank of a.
                Val zero = Cast(in[1], ElementType::kI32);
                left = left - (zero.rank() == 1 && !(zero.shape() == Shape{1}) ? Unsqueeze(zero, 1)
                                                                               : zero);
            }
            if (in[3]) {
                right = right - Cast(in[3], ElementType::kI32);
            }
            return {MatMul(left, right)};
        })[0];
}

QuantisedTensor QuantiseRange(Val x, Val low, Val high) {
    low = Min(low, 0);
    const Val scale = (Max(high, 0) - low) / 255.0;
    const Val safe = Where(Equal(scale, 0), Like(scale, 1), scale);
    const Val zero = map::Round(Min(Max(0.0 - low / safe, 0), 255));
    return {Min(Max(map::Round(x / safe) + zero, 0), 255), scale, zero};
}

QuantisedTensor DynamicQuantise(Val x) {
    const Vals results =
        x.builder().Composite("dynamic_quantise", {}, {x}, [](Builder&, Vals in) -> Vals {
            const Val v = in[0];
            std::vector<int64_t> axes;
            for (int64_t i = 0; i < v.rank(); ++i) {
                axes.push_back(i);
            }
            const QuantisedTensor y = QuantiseRange(v, Reduce(Combine::kMin, v, axes, false),
                                                    Reduce(Combine::kMax, v, axes, false));
            return {Cast(y.value, ElementType::kU8), y.scale, Cast(y.zero, ElementType::kU8)};
        });
    return {results[0], results[1], results[2]};
}

}  // namespace fornax::graph
