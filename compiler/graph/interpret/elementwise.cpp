// Map, Cast and Bitcast.
#include <array>
#include <cmath>
#include <cstring>

#include "compiler/graph/interpret/evaluation.h"

namespace fornax::graph::interpret {
namespace {

template <typename T>
const T* Elements(const Tensor& tensor) {
    return reinterpret_cast<const T*>(tensor.data->data());
}

template <typename T, typename Out, typename Function>
bool ForEach(Operands operands, NewTensor& to, Function function) {
    const T *a = Elements<T>(operands[0]), *b = Elements<T>(operands[1]);
    Out* out = reinterpret_cast<Out*>(to.data);
    const int64_t count = to.tensor.count();
    for (int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<Out>(function(a[i], b[i]));
    }
    return true;
}

// The most frequent functions of two f32. One rounding of these results is that of float.
bool MapFloats(ScalarFunction function, Operands operands, NewTensor& to) {
    switch (function) {
        case ScalarFunction::kAdd:
            return ForEach<float, float>(operands, to, [](float a, float b) { return a + b; });
        case ScalarFunction::kSub:
            return ForEach<float, float>(operands, to, [](float a, float b) { return a - b; });
        case ScalarFunction::kMul:
            return ForEach<float, float>(operands, to, [](float a, float b) { return a * b; });
        case ScalarFunction::kDiv:
            return ForEach<float, float>(operands, to, [](float a, float b) { return a / b; });
        case ScalarFunction::kMin:
            return ForEach<float, float>(
                operands, to, [](float a, float b) { return std::isnan(a) || a < b ? a : b; });
        case ScalarFunction::kMax:
            return ForEach<float, float>(
                operands, to, [](float a, float b) { return std::isnan(a) || a > b ? a : b; });
        case ScalarFunction::kEqual:
            return ForEach<float, uint8_t>(operands, to, [](float a, float b) { return a == b; });
        case ScalarFunction::kLess:
            return ForEach<float, uint8_t>(operands, to, [](float a, float b) { return a < b; });
        case ScalarFunction::kLessEqual:
            return ForEach<float, uint8_t>(operands, to, [](float a, float b) { return a <= b; });
        default:
            return false;
    }
}

// The most frequent functions of two i64, which wrap.
bool MapIntegers(ScalarFunction function, Operands operands, NewTensor& to) {
    using U = uint64_t;
    using I = int64_t;
    switch (function) {
        case ScalarFunction::kAdd:
            return ForEach<U, U>(operands, to, [](U a, U b) { return a + b; });
        case ScalarFunction::kSub:
            return ForEach<U, U>(operands, to, [](U a, U b) { return a - b; });
        case ScalarFunction::kMul:
            return ForEach<U, U>(operands, to, [](U a, U b) { return a * b; });
        case ScalarFunction::kMin:
            return ForEach<I, I>(operands, to, [](I a, I b) { return a < b ? a : b; });
        case ScalarFunction::kMax:
            return ForEach<I, I>(operands, to, [](I a, I b) { return a > b ? a : b; });
        case ScalarFunction::kEqual:
            return ForEach<I, uint8_t>(operands, to, [](I a, I b) { return a == b; });
        case ScalarFunction::kLess:
            return ForEach<I, uint8_t>(operands, to, [](I a, I b) { return a < b; });
        case ScalarFunction::kLessEqual:
            return ForEach<I, uint8_t>(operands, to, [](I a, I b) { return a <= b; });
        default:
            return false;
    }
}

// Any function from f32 to f32, without the general reading and writing.
void MapAnyFloats(ScalarFunction function, Operands operands, NewTensor& to) {
    std::array<const float*, 2> from = {};
    for (size_t k = 0; k < operands.size(); ++k) {
        from[k] = Elements<float>(operands[k]);
    }
    std::array<Scalar, 2> arguments;
    auto* out = reinterpret_cast<float*>(to.data);
    const int64_t count = to.tensor.count();
    for (int64_t i = 0; i < count; ++i) {
        for (size_t k = 0; k < operands.size(); ++k) {
            arguments[k] = Scalar::Float(from[k][i]);
        }
        out[i] = static_cast<float>(
            EvaluateScalar(function, ElementType::kF32, {arguments.data(), operands.size()})
                .number);
    }
}

// Sets what the type does not use of its bytes as the other code of the interpreter expects it.
void NormalizeBytes(NewTensor& tensor) {
    const ElementType element = tensor.tensor.element;
    const int64_t count = tensor.tensor.count();
    for (int64_t i = 0; i < count; ++i) {
        if (element == ElementType::kF4E2M1) {
            tensor.data[i] &= 0x0F;
        } else {
            WriteElement(element, ReadElement(element, tensor.data + i), tensor.data + i);
        }
    }
}

}  // namespace

Result<Tensor> Evaluate(const op::Map& map, Operands operands, const Context& context) {
    FORNAX_RETURN_IF_ERROR(CheckSameDims(operands));
    const bool select = map.function == ScalarFunction::kSelect;
    const ElementType type = operands[select ? 1 : 0].element;
    FORNAX_ASSIGN_OR_RETURN(NewTensor result,
                            context.Allocate(ResultType(map.function, type), operands[0].dims));
    const int64_t count = result.tensor.count();
    if (select) {  // bytes, so that NaNs keep theirs
        for (int64_t i = 0; i < count; ++i) {
            CopyElement(operands[(*operands[0].data)[static_cast<size_t>(i)] != 0 ? 1 : 2], i,
                        result, i);
        }
        return std::move(result.tensor);
    }
    if (operands.size() == 2 &&
        ((type == ElementType::kF32 && MapFloats(map.function, operands, result)) ||
         (type == ElementType::kI64 && operands[1].element == type &&
          MapIntegers(map.function, operands, result)))) {
        return std::move(result.tensor);
    }
    if (type == ElementType::kF32 && result.tensor.element == type) {
        MapAnyFloats(map.function, operands, result);
        return std::move(result.tensor);
    }
    std::array<Scalar, 3> arguments;
    const uint32_t bytes = BytesOf(result.tensor.element);
    for (int64_t i = 0; i < count; ++i) {
        for (size_t k = 0; k < operands.size(); ++k) {
            arguments[k] = operands[k].At(i);
        }
        WriteElement(result.tensor.element,
                     EvaluateScalar(map.function, type, {arguments.data(), operands.size()}),
                     result.data + i * bytes);
    }
    return std::move(result.tensor);
}

Result<Tensor> Evaluate(const op::Cast& cast, Operands operands, const Context& context) {
    const Tensor& from = operands[0];
    if (from.element == cast.to && cast.overflow == Overflow::kSpecial) {
        return from;
    }
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(cast.to, from.dims));
    const int64_t count = from.count();
    const uint32_t bytes = BytesOf(cast.to);
    for (int64_t i = 0; i < count; ++i) {
        WriteElement(cast.to,
                     ConvertScalar(from.At(i), from.element, cast.to, cast.overflow, cast.rounding),
                     result.data + i * bytes);
    }
    return std::move(result.tensor);
}

Result<Tensor> Evaluate(const op::Bitcast& cast, Operands operands, const Context& context) {
    Tensor result = operands[0];
    result.element = cast.to;
    if (BitsOf(cast.to) >= 8) {
        return result;
    }
    FORNAX_ASSIGN_OR_RETURN(NewTensor copy, context.Allocate(cast.to, result.dims));
    if (!result.data->empty()) {
        std::memcpy(copy.data, result.data->data(), result.data->size());
    }
    NormalizeBytes(copy);
    return std::move(copy.tensor);
}

}  // namespace fornax::graph::interpret
