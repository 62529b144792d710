// Products with weights in blocks, against the formula.
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/product.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {
namespace {

using ::testing::HasSubstr;

enum class Zeros : uint8_t { kNone, kCodes, kFloats };

class BlockProduct : public ::testing::Test {
  protected:
    Tensor RandomBytes(const std::vector<int64_t>& dims) {
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(ElementType::kU8, dims, &data);
        for (int64_t i = 0; i < tensor.count(); ++i) {
            data[i] = static_cast<uint8_t>(random_());
        }
        return tensor;
    }
    // Eighths, so that all sums are exact.
    Tensor RandomEighths(const std::vector<int64_t>& dims) {
        int64_t count = 1;
        for (const int64_t dim : dims) {
            count *= dim;
        }
        std::vector<float> values;
        for (int64_t i = 0; i < count; ++i) {
            values.push_back(static_cast<float>(random_() % 33) / 8 - 2);
        }
        return Tensor::FromFloats(dims, values);
    }
    static double At(const Tensor& tensor, int64_t index) {
        return tensor.At(index).ToDouble(tensor.element);
    }
    static int64_t Code(const Tensor& bytes,
                        int64_t row,
                        int64_t row_bytes,
                        int64_t i,
                        int64_t bits) {
        const int64_t bit = i * bits;
        const uint8_t byte = bytes.data->data()[row * row_bytes + bit / 8];
        return (byte >> (bit % 8)) % (1 << bits);
    }

    void Check(int64_t m, const BlockWeights& form, Zeros kind) {
        SCOPED_TRACE(fmt::format("{} x {} x {}, {} bits, blocks of {}", m, form.n, form.k,
                                 form.bits, form.block));
        const int64_t blocks = form.blocks(), zero_bytes = (blocks * form.bits + 7) / 8;
        const Tensor weights = RandomBytes({form.n, blocks, form.block * form.bits / 8});
        const Tensor scales = RandomEighths({form.n, blocks});
        const Tensor zeros = kind == Zeros::kCodes ? RandomBytes({form.n * zero_bytes})
                                                   : RandomEighths({form.n, blocks});
        const Tensor x = RandomEighths({m, form.k});
        Graph graph;
        Builder b(graph);
        const Val y = MatMulBlocks(b.Input("x", x.type()), b.Constant(weights), b.Constant(scales),
                                   kind == Zeros::kNone ? Val() : b.Constant(zeros), form);
        graph.AddOutput("y", y.id());
        const Result<std::vector<Tensor>> results = Interpret(graph, std::vector{x});
        ASSERT_TRUE(results.ok()) << results.error().message;
        ASSERT_EQ((*results)[0].dims, (std::vector{m, form.n}));
        for (int64_t row = 0; row < m; ++row) {
            for (int64_t n = 0; n < form.n; ++n) {
                double sum = 0;
                for (int64_t k = 0; k < form.k; ++k) {
                    const int64_t block = n * blocks + k / form.block;
                    double zero = static_cast<double>(1 << (form.bits - 1));
                    if (kind == Zeros::kCodes) {
                        zero = static_cast<double>(
                            Code(zeros, n, zero_bytes, k / form.block, form.bits));
                    } else if (kind == Zeros::kFloats) {
                        zero = At(zeros, block);
                    }
                    const int64_t code =
                        Code(weights, n, blocks * form.block * form.bits / 8, k, form.bits);
                    sum += At(x, row * form.k + k) * (static_cast<double>(code) - zero) *
                           At(scales, block);
                }
                ASSERT_FLOAT_EQ(At((*results)[0], row * form.n + n), sum) << row << ", " << n;
            }
        }
    }

  private:
    std::mt19937_64 random_{5};
};

TEST_F(BlockProduct, IsTheFormula) {
    for (const int64_t bits : {2, 4, 8}) {
        for (const Zeros zeros : {Zeros::kNone, Zeros::kCodes, Zeros::kFloats}) {
            Check(1, {64, 48, bits, 32}, zeros);
            Check(3, {50, 17, bits, 16}, zeros);
            Check(2, {130, 5, bits, 64}, zeros);
        }
    }
}

TEST_F(BlockProduct, RefusesWhatIsNone) {
    const auto clause = [&](const BlockWeights& form, bool constant, int64_t scale_count) {
        Graph graph;
        Builder b(graph);
        const Tensor weights = RandomBytes({4, 2, 16}), scales = RandomEighths({scale_count});
        try {
            const Val w = constant ? b.Constant(weights) : b.Input("w", weights.type());
            MatMulBlocks(b.Input("x", {ElementType::kF32, {1, 64}}), w, b.Constant(scales), Val(),
                         form);
        } catch (const BuildError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(clause({64, 4, 4, 32}, true, 8), "");
    EXPECT_THAT(clause({64, 4, 3, 32}, true, 8), HasSubstr("3 bits in blocks of 32"));
    EXPECT_THAT(clause({64, 4, 4, 24}, true, 8), HasSubstr("blocks of 24"));
    EXPECT_THAT(clause({64, 5, 4, 32}, true, 10), HasSubstr("the weights have 128 elements"));
    EXPECT_THAT(clause({64, 4, 4, 32}, true, 9), HasSubstr("the scales have 9 elements, not 8"));
    EXPECT_THAT(clause({64, 4, 4, 32}, false, 8), HasSubstr("the weights of a product of blocks"));
}

}  // namespace
}  // namespace fornax::graph
