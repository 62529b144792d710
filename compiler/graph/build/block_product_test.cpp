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
using ::testing::Not;

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

    // Whether the weights and what belongs to them are constants, and whether each row says which
    // block is its own.
    enum class Form { kConstant, kInputs, kGroups };

    void Check(int64_t m, const BlockWeights& form, Zeros kind, Form given = Form::kConstant) {
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
        std::vector<Tensor> inputs = {x};
        const Val x_value = b.Input("x", x.type());
        const auto value = [&](const std::string& name, const Tensor& tensor) {
            if (given == Form::kConstant) {
                return b.Constant(tensor);
            }
            inputs.push_back(tensor);
            return b.Input(name, tensor.type());
        };
        std::vector<int64_t> groups;
        for (int64_t k = 0; k < form.k; ++k) {
            groups.push_back(given == Form::kGroups ? (7 * k + 3) % blocks : k / form.block);
        }
        const Val w = value("w", weights), s = value("s", scales);
        const Val z = kind == Zeros::kNone ? Val() : value("z", zeros);
        const Val g =
            given == Form::kGroups ? value("g", Tensor::FromIntegers({form.k}, groups)) : Val();
        graph.AddOutput("y", MatMulBlocks(x_value, w, s, z, g, form).id());
        const Result<std::vector<Tensor>> results = Interpret(graph, inputs);
        ASSERT_TRUE(results.ok()) << results.error().message;
        ASSERT_EQ((*results)[0].dims, (std::vector{m, form.n}));
        for (int64_t row = 0; row < m; ++row) {
            for (int64_t n = 0; n < form.n; ++n) {
                double sum = 0;
                for (int64_t k = 0; k < form.k; ++k) {
                    const int64_t group = groups[static_cast<size_t>(k)];
                    const int64_t block = n * blocks + group;
                    double zero = static_cast<double>(1 << (form.bits - 1));
                    if (kind == Zeros::kCodes) {
                        zero = static_cast<double>(Code(zeros, n, zero_bytes, group, form.bits));
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

TEST_F(BlockProduct, OfWhatIsNotConstantAndOfRowsWithBlocksOfTheirOwn) {
    for (const Form given : {Form::kInputs, Form::kGroups}) {
        for (const Zeros zeros : {Zeros::kNone, Zeros::kCodes, Zeros::kFloats}) {
            Check(1, {64, 48, 4, 32}, zeros, given);
            Check(3, {50, 17, 2, 16}, zeros, given);
            Check(2, {130, 5, 8, 64}, zeros, given);
        }
    }
}

// A matrix that is dequantised in blocks along k is what MatMulBlocks() takes, in either order.
TEST_F(BlockProduct, OfADequantisedMatrix) {
    constexpr int64_t kDepth = 70, kColumns = 18, kBlock = 32, kBlocks = 3;
    for (const ElementType type : {ElementType::kI4, ElementType::kU4, ElementType::kI8,
                                   ElementType::kU8, ElementType::kU2, ElementType::kI2}) {
        for (const int order : {0, 1, 2}) {  // [k, n], [n, k], [n, k] with a transposition
            for (const bool with_zeros : {false, true}) {
                SCOPED_TRACE(fmt::format("{}, order {}, {}", Name(type), order, with_zeros));
                const auto codes = [&](int64_t depth) {
                    uint8_t* data = nullptr;
                    const std::vector<int64_t> dims =
                        order == 0 ? std::vector{depth, kColumns} : std::vector{kColumns, depth};
                    Tensor tensor = Tensor::Zeros(type, dims, &data);
                    for (int64_t i = 0; i < tensor.count(); ++i) {
                        const Scalar code = Scalar::Integer(i * 7 % 256);
                        WriteElement(type, ConvertScalar(code, ElementType::kI64, type), data + i);
                    }
                    return tensor;
                };
                const Tensor x = RandomEighths({4, kDepth});
                Graph graph;
                Builder b(graph);
                const Val a = b.Input("x", x.type());
                const Val scales = b.Constant(RandomEighths(
                    order == 0 ? std::vector{kBlocks, kColumns} : std::vector{kColumns, kBlocks}));
                const Val zeros = with_zeros ? b.Constant(codes(kBlocks)) : Val();
                Val w = Dequantise(b.Constant(codes(kDepth)), scales, zeros,
                                   {order == 0 ? 0 : 1, kBlock}, ElementType::kF32);
                const Val dense = order == 0 ? w : Permute(w, {1, 0});
                if (order == 2) {
                    w = dense;
                }
                const Val y = order == 1 ? Gemm(a, w, Val(), 1, 1, false, true) : MatMul(a, w);
                graph.AddOutput("y", y.id());
                graph.AddOutput("expected", Contract(a, dense, "mk,kn->mn").id());
                // The product's own words.
                EXPECT_THAT(ToText(graph), HasSubstr("u32["));
                const Result<std::vector<Tensor>> results = Interpret(graph, std::vector{x});
                ASSERT_TRUE(results.ok()) << results.error().message;
                for (int64_t i = 0; i < (*results)[0].count(); ++i) {
                    ASSERT_FLOAT_EQ(At((*results)[0], i), At((*results)[1], i)) << i;
                }
            }
        }
    }
}

// Blocks along the columns, of other sizes, and codes that are no constants are multiplied as
// floats.
TEST_F(BlockProduct, OfOtherDequantisedMatrices) {
    const auto text = [&](const std::vector<int64_t>& scales, QuantAxis axis, bool constant) {
        Graph graph;
        Builder b(graph);
        const Tensor codes = RandomBytes({64, 32});
        const Val w = Dequantise(constant ? b.Constant(codes) : b.Input("w", codes.type()),
                                 b.Constant(RandomEighths(scales)), Val(), axis, ElementType::kF32);
        graph.AddOutput("y", MatMul(b.Input("x", {ElementType::kF32, {3, 64}}), w).id());
        return ToText(graph);
    };
    EXPECT_THAT(text({2, 32}, {0, 32}, true), HasSubstr("u32["));
    EXPECT_THAT(text({2, 32}, {-2, 32}, true), HasSubstr("u32["));
    EXPECT_THAT(text({64, 2}, {1, 16}, true), Not(HasSubstr("u32[")));
    EXPECT_THAT(text({8, 32}, {0, 8}, true), Not(HasSubstr("u32[")));
    EXPECT_THAT(text({2, 32}, {0, 32}, false), Not(HasSubstr("u32[")));
}

TEST_F(BlockProduct, RefusesWhatIsNone) {
    const auto clause = [&](const BlockWeights& form, int64_t scale_count) {
        Graph graph;
        Builder b(graph);
        const Tensor weights = RandomBytes({4, 2, 16}), scales = RandomEighths({scale_count});
        try {
            MatMulBlocks(b.Input("x", {ElementType::kF32, {1, 64}}), b.Constant(weights),
                         b.Constant(scales), Val(), Val(), form);
        } catch (const BuildError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(clause({64, 4, 4, 32}, 8), "");
    EXPECT_THAT(clause({64, 4, 3, 32}, 8), HasSubstr("3 bits in blocks of 32"));
    EXPECT_THAT(clause({64, 4, 4, 24}, 8), HasSubstr("blocks of 24"));
    EXPECT_EQ(clause({64, 5, 4, 32}, 10), "the weights are u8[4,2,16], not 160 elements");
    EXPECT_EQ(clause({64, 4, 4, 32}, 9), "the scales are f32[9], not 8 elements");
}

}  // namespace
}  // namespace fornax::graph
