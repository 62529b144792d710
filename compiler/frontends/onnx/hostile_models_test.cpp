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

// What importing and compiling give.
Result<graph::Plan> PlanOf(const std::string& text) {
    onnx::ModelProto model;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
    FORNAX_ASSIGN_OR_RETURN(ImportedModel imported,
                            ImportModel(model.SerializeAsString(), "net.onnx", "", {}));
    EXPECT_TRUE(graph::Verify(imported.graph).ok());
    return graph::Compile(std::move(imported.graph), {});
}

// The error of importing and compiling, or "".
std::string ErrorOf(const std::string& text) {
    const Result<graph::Plan> plan = PlanOf(text);
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

// Compiled, it read rows of another length.
TEST(HostileModels, NumbersOfThreeParts) {
    EXPECT_THAT(ErrorOf(Model(Input("x", {34, 3}) +
                              R"(node { op_type: "DFT" input: "x" output: "y" }
                         output { name: "y" })")),
                HasSubstr("the last dimension of [34,3] is 3, neither 1 (real) nor 2 (complex)"));
}

// Tables of numbers that take the input's type.
TEST(HostileModels, TreesOverStrings) {
    const std::string trees = R"(node { op_type: "TreeEnsemble" domain: "ai.onnx.ml" input: "x"
        output: "y" attribute { name: "n_targets" type: INT i: 1 }
        attribute { name: "nodes_featureids" type: INTS ints: 0 }
        attribute { name: "nodes_modes" type: TENSOR t { dims: 1 data_type: 2 int32_data: 0 } }
        attribute { name: "nodes_splits" type: TENSOR
                    t { dims: 1 data_type: 11 double_data: 3.5 } }
        attribute { name: "nodes_truenodeids" type: INTS ints: 0 }
        attribute { name: "nodes_falsenodeids" type: INTS ints: 1 }
        attribute { name: "nodes_trueleafs" type: INTS ints: 1 }
        attribute { name: "nodes_falseleafs" type: INTS ints: 1 }
        attribute { name: "leaf_targetids" type: INTS ints: 0 ints: 0 }
        attribute { name: "leaf_weights" type: TENSOR
                    t { dims: 2 data_type: 11 double_data: 1 double_data: 2 } }
        attribute { name: "tree_roots" type: INTS ints: 0 } } output { name: "y" }
        } opset_import { domain: "ai.onnx.ml" version: 5 )";
    EXPECT_EQ(ErrorOf(Model(Input("x", {3, 1}, 11) + trees)), "");
    EXPECT_THAT(ErrorOf(Model(Input("x", {3, 1}, 8) + trees)),
                HasSubstr("it needs a number where the tensor is of strings"));
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

// A Loop of these trips around `nodes`, which make a value of this name, as a node that makes "y".
std::string Loop(int trips, const std::string& nodes, const std::string& value) {
    return R"(node { op_type: "Constant" output: "trips" attribute {
                name: "value_int" type: INT i: )" +
           std::to_string(trips) + R"( } }
              node { op_type: "Loop" input: "trips" input: "" input: "x" output: "y"
                attribute { name: "body" type: GRAPH g { name: "body"
                  input { name: "i" } input { name: "c" } input { name: "x" }
                  initializer { name: "go" data_type: 9 int32_data: 1 } )" +
           nodes + R"( output { name: "go" } output { name: ")" + value + "\" } } } } ";
}

constexpr const char* kRoiAlign =
    R"(node { op_type: "RoiAlign" input: "x" input: "rois" input: "batch" output: "y"
         attribute { name: "output_height" type: INT i: 5 }
         attribute { name: "output_width" type: INT i: 5 }
         attribute { name: "sampling_ratio" type: INT i: 2 } } )";

std::string RoiInputs() {
    return Input("x", {1, 1, 5, 5}) + Input("rois", {1, 4}) + Input("batch", {1}, 7);
}

// A node may be hundreds of primitives: so many of them are not unrolled.
TEST(HostileModels, LoopsOfLargeNodes) {
    const Result<graph::Plan> plan =
        PlanOf(Model(RoiInputs() + Loop(256, kRoiAlign, "y") + "output { name: \"y\" }"));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LT(plan->steps.size(), 100);
}

TEST(HostileModels, FunctionsThatAreManyLargeNodes) {
    std::string functions;
    for (int level = 0; level < 5; ++level) {
        functions += R"(functions { domain: "test" opset_import { version: 23 } name: "f)" +
                     std::to_string(level) +
                     R"(" input: "x" input: "rois" input: "batch" output: "y" )";
        for (int call = 0; call < 8; ++call) {
            functions += level == 0
                             ? std::string(kRoiAlign)
                             : R"(node { domain: "test" input: "x" input: "rois" input: "batch"
                                         output: "y" op_type: "f)" +
                                   std::to_string(level - 1) + "\" } ";
            const std::string name = call == 7 ? "y" : "y" + std::to_string(call);
            functions.replace(functions.rfind("output: \"y\""), 11, "output: \"" + name + "\"");
        }
        functions += "} ";
    }
    EXPECT_THAT(ErrorOf(Model(RoiInputs() +
                              R"(node { op_type: "f4" domain: "test" input: "x" input: "rois"
                                        input: "batch" output: "y" }
                                 output { name: "y" })") +
                        R"(opset_import { domain: "test" version: 1 } )" + functions),
                HasSubstr("the model has more than 200000 nodes"));
}

// Each level is lowered once, not twice for each level around it.
TEST(HostileModels, LoopsInLoops) {
    std::string nodes = R"(node { op_type: "Neg" input: "x" output: "y" } )";
    for (int level = 0; level < 30; ++level) {
        nodes = Loop(9, nodes, "y");
    }
    EXPECT_EQ(ErrorOf(Model(Input("x", {2}) + nodes + "output { name: \"y\" }")), "");
}

// Every iteration of unrolled loops gives a size that only data tell, and each body in them would
// take over all of them.
TEST(HostileModels, ManySizesInLoopsInLoops) {
    const std::string unique = R"(node { op_type: "Unique" input: "x" output: "y" } )";
    EXPECT_THAT(ErrorOf(Model(Input("x", {4}) + Loop(400, Loop(180, unique, "y"), "y") +
                              "output { name: \"y\" }")),
                HasSubstr("the model has more than 200000 nodes"));
}

// A loop without carried values whose body gives "y" to stack, and goes on or not.
std::string StackingLoop(int trips, bool goes_on, const std::string& nodes) {
    return R"(node { op_type: "Constant" output: "trips" attribute {
                name: "value_int" type: INT i: )" +
           std::to_string(trips) + R"( } }
              node { op_type: "Loop" input: "trips" input: "" output: "y"
                attribute { name: "body" type: GRAPH g { name: "body"
                  input { name: "i" } input { name: "c" }
                  initializer { name: "go" data_type: 9 int32_data: )" +
           std::to_string(goes_on ? 1 : 0) + " } " + nodes +
           R"( output { name: "go" } output { name: "y" } } } } )";
}

// Building a body in vain leaves nothing behind that would be checked at run time.
TEST(HostileModels, BodiesThatAreNotKept) {
    const std::string places = R"(node { op_type: "NonZero" input: "x" output: "y" } )";
    EXPECT_EQ(
        ErrorOf(Model(Input("x", {4}) + StackingLoop(9, false, StackingLoop(9, true, places)) +
                      "output { name: \"y\" }")),
        "");
}

// The graph around a loop cannot check sizes that only the body's host calls tell.
TEST(HostileModels, GuardsOfSizesWithinALoop) {
    const std::string nodes = R"(node { op_type: "NonZero" input: "x" output: "a" }
                                 node { op_type: "Neg" input: "x" output: "z" }
                                 node { op_type: "NonZero" input: "z" output: "b" }
                                 node { op_type: "Add" input: "a" input: "b" output: "ab" }
                                 node { op_type: "ReduceSum" input: "ab" output: "s" }
                                 node { op_type: "Cast" input: "s" output: "f"
                                        attribute { name: "to" type: INT i: 1 } }
                                 node { op_type: "Add" input: "x" input: "f" output: "t" }
                                 node { op_type: "Reshape" input: "t" input: "four" output: "y" } )";
    for (const int trips : {20, 2000}) {
        const Result<graph::Plan> plan =
            PlanOf(Model(Input("x", {4}) +
                         R"(initializer { name: "four" data_type: 7 dims: 1 int64_data: 4 } )" +
                         Loop(trips, nodes, "y") + "output { name: \"y\" }"));
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const Status valid = graph::ValidatePlan(*plan);
        EXPECT_TRUE(valid.ok()) << valid.error().message;
        EXPECT_TRUE(plan->guards.empty());
    }
}

// A step of the host whose result gives a size alone is not left out.
TEST(HostileModels, ASizeThatNobodyElseReads) {
    const Result<graph::Plan> plan =
        PlanOf(Model(Input("x", {2, 2}) + R"(node { op_type: "NonZero" input: "x" output: "places" }
                                      node { op_type: "RandomUniformLike" input: "places" output: "y"
                                             attribute { name: "dtype" type: INT i: 1 }
                                             attribute { name: "seed" type: FLOAT f: 1 } }
                                      output { name: "y" })"));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const Status valid = graph::ValidatePlan(*plan);
    EXPECT_TRUE(valid.ok()) << valid.error().message;
}

}  // namespace
}  // namespace fornax::onnx_frontend
