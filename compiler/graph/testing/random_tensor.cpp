// Random tensors of whole numbers.
#include "compiler/graph/testing/random_tensor.h"

namespace fornax::graph::testing {

Tensor MakeRandomTensor(std::mt19937_64& random,
                        ElementType type,
                        const std::vector<int64_t>& dims,
                        int64_t low,
                        int64_t high) {
    uint8_t* data = nullptr;
    Tensor tensor = Tensor::Zeros(type, dims, &data);
    for (int64_t i = 0; i < tensor.count(); ++i) {
        const int64_t value =
            low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
        WriteElement(
            type,
            IsFloat(type) ? Scalar::Float(static_cast<double>(value)) : Scalar::Integer(value),
            data + i * BytesOf(type));
    }
    return tensor;
}

int64_t LowOf(ElementType type) {
    if (type == ElementType::kBool || !IsSigned(type)) {
        return 0;
    }
    return BitsOf(type) == 2 ? -2 : -4;
}

int64_t HighOf(ElementType type) {
    if (type == ElementType::kBool) {
        return 1;
    }
    return BitsOf(type) > 2 ? 4 : IsSigned(type) ? 1 : 3;
}

}  // namespace fornax::graph::testing
