// LSTMs whose weights are bytes.
//
// The input is multiplied as bytes, all iterations at once. The state stays f32, and its matrix is
// dequantised when a model is read: it is read in each iteration.
#include <cstring>
#include <optional>

#include "compiler/graph/build/product.h"
#include "compiler/graph/build/recurrent.h"

namespace fornax::graph {
namespace {

constexpr int64_t kWord = 4;

// A number a direction or a column as it multiplies the codes.
Val Spread(Val value) {
    if (value.rank() >= 3) {
        return value;
    }
    return Unsqueeze(value.rank() == 1 ? Unsqueeze(value, 1) : value, 1);
}

// f32 [directions, columns, inputs]; a constant if the codes are.
Val Dequantised(const QuantisedMatrices& from) {
    Val codes = Cast(from.codes, ElementType::kI32);
    if (from.zero) {
        codes = codes - Cast(Spread(from.zero), ElementType::kI32);
    }
    const Val result = Permute(Cast(codes, ElementType::kF32) * Spread(from.scale), {0, 2, 1});
    Builder& b = result.builder();
    const bool constant = b.ConstantOf(from.codes) != nullptr &&
                          b.ConstantOf(from.scale) != nullptr &&
                          (!from.zero || b.ConstantOf(from.zero) != nullptr);
    std::optional<Tensor> known = constant ? b.TryEvaluate(result) : std::nullopt;
    return known ? b.Constant(std::move(*known), b.name() + ".weights") : result;
}

// Constant codes less their zero points, if these fit signed bytes.
struct Codes {
    int64_t directions = 0, inputs = 0, columns = 0;
    std::vector<int8_t> codes;
};

std::optional<Codes> CodesOf(const QuantisedMatrices& from, size_t directions) {
    const ElementType element = from.codes.element();
    Builder& b = from.codes.builder();
    const Tensor* codes = b.ConstantOf(from.codes);
    const Tensor* zeros = from.zero ? b.ConstantOf(from.zero) : nullptr;
    if (codes == nullptr || codes->dims.size() != 3 ||
        codes->dims[0] != static_cast<int64_t>(directions) || codes->count() == 0 ||
        (element != ElementType::kI8 && element != ElementType::kU8) ||
        (from.zero && zeros == nullptr)) {
        return std::nullopt;
    }
    Codes result{codes->dims[0], codes->dims[1], codes->dims[2], {}};
    const int64_t zeros_each = zeros != nullptr ? zeros->count() / result.directions : 1;
    if (zeros != nullptr && (zeros->count() != zeros_each * result.directions ||
                             (zeros_each != 1 && zeros_each != result.columns))) {
        return std::nullopt;
    }
    std::vector<int64_t> numbers;
    for (int64_t i = 0; zeros != nullptr && i < zeros->count(); ++i) {
        numbers.push_back(zeros->At(i).integer);
    }
    const uint8_t* next = codes->data->data();
    result.codes.reserve(static_cast<size_t>(codes->count()));
    for (int64_t row = 0; row < result.directions * result.inputs; ++row) {
        const int64_t first = row / result.inputs * zeros_each;
        for (int64_t column = 0; column < result.columns; ++column, ++next) {
            int64_t code =
                element == ElementType::kI8 ? static_cast<int8_t>(*next) : int64_t{*next};
            if (zeros != nullptr) {
                code -= numbers[static_cast<size_t>(first + (zeros_each == 1 ? 0 : column))];
            }
            if (code < INT8_MIN || code > INT8_MAX) {
                return std::nullopt;
            }
            result.codes.push_back(static_cast<int8_t>(code));
        }
    }
    return result;
}

// [directions, 1, columns or 1], if there are so many.
std::optional<Val> ScalesOf(Val scale, const Codes& bytes) {
    const std::optional<int64_t> count = scale.shape().Volume().constant();
    if (scale.element() != ElementType::kF32 ||
        (count != bytes.directions && count != bytes.directions * bytes.columns)) {
        return std::nullopt;
    }
    return Reshape(scale, Shape{bytes.directions, 1, *count / bytes.directions});
}

// f32 [time, batch, directions * columns].
Val MultiplyInput(Val x, const Codes& w, Val scales) {
    Builder& b = x.builder();
    const int64_t rest = (kWord - w.inputs % kWord) % kWord, columns = w.directions * w.columns;
    if (rest != 0) {
        x = Pad(x, 0, {0, 0, 0}, {0, 0, rest});
    }
    uint8_t* data = nullptr;
    Tensor matrix = Tensor::Zeros(ElementType::kI8, {w.inputs + rest, columns}, &data);
    for (int64_t direction = 0; direction < w.directions; ++direction) {
        for (int64_t input = 0; input < w.inputs; ++input) {
            std::memcpy(data + input * columns + direction * w.columns,
                        &w.codes[static_cast<size_t>((direction * w.inputs + input) * w.columns)],
                        static_cast<size_t>(w.columns));
        }
    }
    const QuantisedTensor codes = DynamicQuantise(x);
    const Val sums = MatMulIntegers(codes.value, codes.zero, b.Constant(std::move(matrix)), Val());
    const Val of_columns =
        Reshape(BroadcastTo(scales, Shape{w.directions, 1, w.columns}), Shape{columns});
    return Cast(sums, ElementType::kF32) * (codes.scale * of_columns);
}

}  // namespace

RecurrentResult QuantisedLstm(const QuantisedMatrices& w,
                              const QuantisedMatrices& r,
                              RecurrentOperands operands,
                              const RecurrentOptions& options) {
    const std::optional<Codes> codes = CodesOf(w, options.reversed.size());
    const std::optional<Val> scales = codes ? ScalesOf(w.scale, *codes) : std::nullopt;
    const bool is_input =
        codes && operands.x.rank() == 3 && operands.x.dim(2) == Expr(codes->inputs);
    operands.r = Dequantised(r);
    if (scales && is_input && operands.r.dim(1) == Expr(codes->columns)) {
        operands.x = MultiplyInput(operands.x, *codes, *scales);
    } else {
        operands.w = Dequantised(w);
    }
    return Recurrent(operands, options);
}

}  // namespace fornax::graph
