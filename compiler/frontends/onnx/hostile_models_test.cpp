// Models that the fuzz target (importer_fuzz.cpp) found to break the importer or the compiler: each
// is an error now, or a plan.
#include <google/protobuf/text_format.h>
#include <onnx/onnx_pb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontends/onnx/importer.h"
#include "compiler/graph/compile.h"

namespace fornax::onnx_frontend {
namespace {

using ::testing::HasSubstr;

// A model of one node "op" with the inputs x, y, ... of these types and shapes, constants where the
// shape is empty, as text of the protobuf.
std::string Model(const std::string& graph) {
    return "ir_version: 10 opset_import { version: 23 } graph { name: \"net\" " + graph + " }";
}

std::string Input(const std::string& name, const std::vector<int64_t>& dims, int type = 1) {
    std::string shape;
    for (const int64_t dim : dims) {
        shape += "dim { dim_value: " + std::to_string(dim) + " } ";
    }
    return "input { name: \"" + name +
           "\" type { tensor_type { elem_type: " + std::to_string(type) + " shape { " + shape +
           "} } } } ";
}

// The error of importing and compiling, or "".
std::string ErrorOf(const std::string& text) {
    onnx::ModelProto model;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
    Result<ImportedModel> imported = ImportModel(model.SerializeAsString(), "net.onnx", "", {});
    if (!imported.ok()) {
        EXPECT_NE(imported.error().code, ErrorCode::kInternal) << imported.error().message;
        return imported.error().message;
    }
    EXPECT_TRUE(graph::Verify(imported->graph).ok());
    const Result<graph::Plan> plan = graph::Compile(std::move(imported->graph), {});
    if (!plan.ok()) {
        EXPECT_NE(plan.error().code, ErrorCode::kInternal) << plan.error().message;
        return plan.error().message;
    }
    EXPECT_TRUE(graph::ValidatePlan(*plan).ok());
    return "";
}

TEST(HostileModels, HeadsOfOperandsThatHaveNone) {
    EXPECT_THAT(ErrorOf(Model(Input("x", {3, 4}) +
                              R"(node { op_type: "LinearAttention" input: "x" input: "x" input: "x"
                         output: "y"
                         attribute { name: "q_num_heads" type: INT i: 2 }
                         attribute { name: "kv_num_heads" type: INT i: 2 }
                         attribute { name: "update_rule" type: STRING s: "linear" } }
                         output { name: "y" })")),
                HasSubstr("[3,4], not batch, positions and heads"));
}

TEST(HostileModels, DecayOfTooFewDimensions) {
    EXPECT_THAT(ErrorOf(Model(Input("x", {1, 3, 4}) + Input("d", {3, 2}) +
                              R"(node { op_type: "LinearAttention" input: "x" input: "x" input: "x"
                         input: "" input: "d" output: "y"
                         attribute { name: "q_num_heads" type: INT i: 2 }
                         attribute { name: "kv_num_heads" type: INT i: 2 }
                         attribute { name: "update_rule" type: STRING s: "gated" } }
                         output { name: "y" })")),
                HasSubstr("the axis 2 is not in"));
    EXPECT_THAT(ErrorOf(Model(Input("x", {1, 3, 4}) + Input("d", {1, 3, 2}) + Input("e", {2}) +
                              R"(node { op_type: "LinearAttention" input: "x" input: "x" input: "x"
                         input: "" input: "d" input: "e" output: "y"
                         attribute { name: "q_num_heads" type: INT i: 2 }
                         attribute { name: "kv_num_heads" type: INT i: 2 } }
                         output { name: "y" })")),
                HasSubstr("the axis 1 is not in"));
}

TEST(HostileModels, NumbersThatIntegersDoNotHold) {
    EXPECT_EQ(ErrorOf(Model(Input("x", {3}, 7) +
                            R"(node { op_type: "Clip" input: "x" output: "y"
                               attribute { name: "min" type: FLOAT f: inf } }
                               output { name: "y" })")),
              "");
}

TEST(HostileModels, GreatestOfStrings) {
    EXPECT_THAT(ErrorOf(Model(Input("x", {1, 1, 4, 4}, 8) +
                              R"(node { op_type: "MaxPool" input: "x" output: "y"
                                 attribute { name: "kernel_shape" type: INTS ints: 2 ints: 2 } }
                                 output { name: "y" })")),
                HasSubstr("there is no greatest element of type string"));
}

TEST(HostileModels, CodesThatDoNotFit) {
    EXPECT_THAT(ErrorOf(Model(Input("x", {3}) + Input("s", {}) + Input("z", {}, 7) +
                              R"(node { op_type: "QuantizeLinear" input: "x" input: "s" input: "z"
                                        output: "y" }
                                 output { name: "y" })")),
                HasSubstr("it quantises to i64"));
}

TEST(HostileModels, NumbersAroundStrings) {
    EXPECT_THAT(ErrorOf(Model(Input("x", {2, 3}, 8) +
                              R"(initializer { name: "shape" data_type: 7 dims: 2
                                               int64_data: 4 int64_data: 4 }
                                 node { op_type: "CenterCropPad" input: "x" input: "shape"
                                        output: "y" }
                                 output { name: "y" })")),
                HasSubstr("it needs a number where the tensor is of strings"));
}

// What the loop computes does not depend on it, so that its kernel would store nothing.
TEST(HostileModels, LoopsThatRepeatTheSame) {
    EXPECT_EQ(ErrorOf(Model(Input("x", {1, 1}) +
                            R"(initializer { name: "count" data_type: 7 int64_data: 114 }
                               node { op_type: "Neg" input: "x" output: "n" }
                               node { op_type: "Loop" input: "count" input: "" output: "y"
                                 attribute { name: "body" type: GRAPH g { name: "body"
                                   input { name: "i" type { tensor_type { elem_type: 7 shape { } } } }
                                   input { name: "c" type { tensor_type { elem_type: 9 shape { } } } }
                                   initializer { name: "go" data_type: 9 int32_data: 1 }
                                   node { op_type: "Gemm" input: "n" input: "n" output: "b" }
                                   output { name: "go" } output { name: "b" } } } }
                               output { name: "y" })")),
              "");
}

}  // namespace
}  // namespace fornax::onnx_frontend
