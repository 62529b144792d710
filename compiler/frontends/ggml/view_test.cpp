// Strided views against the plain loop over their elements.
#include "compiler/frontends/ggml/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Shape;
using graph::Tensor;
using graph::Val;

Tensor Numbers(int64_t count, float first) {
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), first);
    return Tensor::FromFloats({count}, values);
}

std::vector<float> Floats(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.count()));
    std::memcpy(values.data(), tensor.data->data(), values.size() * sizeof(float));
    return values;
}

int64_t CountOf(const StridedView& view) {
    return view.sizes[0] * view.sizes[1] * view.sizes[2] * view.sizes[3];
}

// Where element `index` of the view lies, counted with the innermost dimension fastest.
int64_t PositionOf(const StridedView& view, int64_t index) {
    int64_t position = view.offset;
    for (size_t d = 0; d < 4; ++d) {
        position += index % view.sizes[d] * view.strides[d];
        index /= view.sizes[d];
    }
    return position;
}

// The result of a graph of `elements` numbers from 0 on, and of the view's from 1000 on.
std::vector<float> Compute(int64_t elements, const StridedView& view, bool write, size_t* gathers) {
    graph::Graph graph("view");
    graph::Builder builder(graph);
    const Val flat = builder.Input("flat", {ElementType::kF32, Shape({elements})});
    const Val value = builder.Input("value", {ElementType::kF32, Shape({CountOf(view)})});
    const Val shaped =
        Reshape(value, Shape({view.sizes[3], view.sizes[2], view.sizes[1], view.sizes[0]}));
    const Val result = write ? WriteView(flat, view, shaped) : ReadView(flat, view);
    graph.AddOutput("result", result.id());
    for (const graph::Node& node : graph.nodes()) {
        *gathers += graph::Is<graph::op::Gather>(node.operation);
    }
    EXPECT_TRUE(graph::Verify(graph).ok());
    const std::vector<Tensor> inputs = {Numbers(elements, 0), Numbers(CountOf(view), 1000)};
    const Result<std::vector<Tensor>> outputs = graph::Interpret(graph, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.error().message;
    return Floats((*outputs)[0]);
}

void Check(int64_t elements, const StridedView& view, size_t* gathers) {
    const std::vector<float> read = Compute(elements, view, false, gathers);
    for (int64_t i = 0; i < CountOf(view); ++i) {
        ASSERT_EQ(read[static_cast<size_t>(i)], static_cast<float>(PositionOf(view, i)))
            << "element " << i;
    }
    std::vector<float> expected(static_cast<size_t>(elements));
    std::iota(expected.begin(), expected.end(), 0.0F);
    for (int64_t i = 0; i < CountOf(view); ++i) {
        expected[static_cast<size_t>(PositionOf(view, i))] = static_cast<float>(1000 + i);
    }
    size_t unused = 0;
    EXPECT_EQ(Compute(elements, view, true, &unused), expected);
}

TEST(View, PartsOfPermutedTensors) {
    std::mt19937 random(1);
    const auto up_to = [&](int64_t most) {
        return std::uniform_int_distribution<int64_t>(0, most)(random);
    };
    for (int run = 0; run < 200; ++run) {
        // A part of each dimension of a tensor that lies in one piece, in any order of dimensions.
        std::array<int64_t, 4> whole;
        int64_t stride = 1;
        StridedView part;
        for (size_t d = 0; d < 4; ++d) {
            whole[d] = 1 + up_to(4);
            const int64_t start = up_to(whole[d] - 1);
            part.sizes[d] = 1 + up_to(whole[d] - start - 1);
            part.strides[d] = stride;
            part.offset += start * stride;
            stride *= whole[d];
        }
        StridedView view = part;
        std::array<size_t, 4> order = {0, 1, 2, 3};
        std::shuffle(order.begin(), order.end(), random);
        for (size_t d = 0; d < 4; ++d) {
            view.sizes[d] = part.sizes[order[d]];
            view.strides[d] = part.strides[order[d]];
        }
        SCOPED_TRACE(run);
        size_t gathers = 0;
        Check(stride, view, &gathers);
        EXPECT_EQ(gathers, 0U) << "Such a view needs no gather.";
    }
}

TEST(View, ElementsThatOverlapAreGathered) {
    // Windows of 3 elements, 1 apart.
    const StridedView view{{3, 4, 1, 1}, {1, 1, 6, 6}, 0};
    size_t gathers = 0;
    const std::vector<float> read = Compute(6, view, false, &gathers);
    for (int64_t i = 0; i < CountOf(view); ++i) {
        EXPECT_EQ(read[static_cast<size_t>(i)], static_cast<float>(PositionOf(view, i)));
    }
    EXPECT_EQ(gathers, 1U);
}

TEST(View, WhatReachesOutOfTheMemoryIsRefused) {
    size_t gathers = 0;
    EXPECT_THROW(Compute(6, {{4, 2, 1, 1}, {1, 3, 6, 6}, 0}, false, &gathers), graph::BuildError);
    EXPECT_THROW(Compute(6, {{2, 1, 1, 1}, {1, 2, 2, 2}, 5}, true, &gathers), graph::BuildError);
}

}  // namespace
}  // namespace fornax::ggml_frontend
