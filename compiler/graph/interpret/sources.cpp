// Iota, SizeOf and RandomBits.
#include <array>
#include <cstring>

#include "compiler/graph/interpret/evaluation.h"

namespace fornax::graph::interpret {
namespace {

using Block = std::array<uint32_t, 4>;

// Philox 4x32 with 10 rounds, of Salmon and others, "Parallel random numbers: as easy as 1, 2, 3".
Block Philox(Block counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t x = uint64_t{0xD2511F53} * counter[0];
        const uint64_t y = uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<uint32_t>(y >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(y),
                   static_cast<uint32_t>(x >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(x)};
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    return counter;
}

}  // namespace

Result<Tensor> Evaluate(const op::Iota& iota, Operands, const Context& context) {
    FORNAX_ASSIGN_OR_RETURN(Dims dims, context.Sizes(iota.shape.dims()));
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(iota.element, std::move(dims)));
    const std::vector<int64_t> strides = RowMajorStrides(result.tensor.dims);
    const uint32_t bytes = BytesOf(iota.element);
    for (Walk walk(result.tensor.dims, strides); walk.valid(); walk.Next()) {
        const int64_t position = walk.position()[static_cast<size_t>(iota.axis)];
        WriteElement(iota.element, Scalar::Integer(position), result.data + walk.offset() * bytes);
    }
    return std::move(result.tensor);
}

Result<Tensor> Evaluate(const op::SizeOf& size, Operands, const Context& context) {
    FORNAX_ASSIGN_OR_RETURN(const int64_t value, context.Size(size.value));
    return Tensor::FromIntegers({}, {&value, 1});
}

// Element 4 * c + i is word i of the block of counter c.
Result<Tensor> Evaluate(const op::RandomBits& random, Operands operands, const Context& context) {
    FORNAX_ASSIGN_OR_RETURN(Dims dims, context.Sizes(random.shape.dims()));
    FORNAX_ASSIGN_OR_RETURN(NewTensor result, context.Allocate(ElementType::kU32, std::move(dims)));
    const std::array<uint32_t, 2> key = {static_cast<uint32_t>(operands[0].At(0).integer),
                                         static_cast<uint32_t>(operands[0].At(1).integer)};
    const int64_t count = result.tensor.count();
    for (int64_t first = 0; first < count; first += 4) {
        const auto number = static_cast<uint64_t>(first) / 4;
        const Block block =
            Philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0}, key);
        const auto words = static_cast<size_t>(std::min<int64_t>(4, count - first));
        std::memcpy(result.data + first * 4, block.data(), words * sizeof(uint32_t));
    }
    return std::move(result.tensor);
}

}  // namespace fornax::graph::interpret
