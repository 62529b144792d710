// All nodes that cannot be imported are told at once, with counts, wherever they are.
#include "compiler/frontends/onnx/node_errors.h"

#include <google/protobuf/text_format.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontends/onnx/importer.h"

namespace fornax::onnx_frontend {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const std::string& graph, const std::string& functions = "") {
    onnx::ModelProto model;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"(ir_version: 10 opset_import { version: 21 } opset_import { domain: "my" version: 1 }
           graph { name: "net"
                   input { name: "x" type { tensor_type { elem_type: 1
                                                          shape { dim { dim_value: 2 } } } } }
                   initializer { name: "pads" data_type: 7 dims: 2 int64_data: [1, 1] }
                   output { name: "y" } )" +
            graph + " } " + functions,
        &model));
    const Result<ImportedModel> imported =
        ImportModel(model.SerializeAsString(), "net.onnx", "", {});
    return imported.ok() ? "" : imported.error().message;
}

// "op:input,input:output", with the name "the_output".
std::string Node(const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::string& output,
                 const std::string& more = "") {
    std::string text =
        fmt::format(R"(node {{ op_type: "{}" name: "the_{}" output: "{}" )", op, output, output);
    for (const std::string& input : inputs) {
        text += fmt::format(R"(input: "{}" )", input);
    }
    return text + more + " } ";
}

// A node that is there, but not in this form.
std::string Pad(const std::string& input, const std::string& output, const std::string& mode) {
    return Node("Pad", {input, "pads"}, output,
                R"(attribute { name: "mode" type: STRING s: ")" + mode + "\" }");
}

constexpr char kMine[] = R"(domain: "my")";

TEST(NodeErrors, MissingOperatorsAreToldAtOnce) {
    EXPECT_EQ(ErrorOf(Node("Foo", {"x"}, "a") + Node("Foo", {"a"}, "b") +
                      Node("Bar", {"b"}, "y", R"(domain: "my.domain")")),
              "net.onnx: 3 nodes use 2 operators that Fornax does not have: Foo (2), my.domain.Bar "
              "(1).");
}

TEST(NodeErrors, UnsupportedNodesOfOneKindAreCounted) {
    // What depends on one that is not supported is not known to be wrong.
    EXPECT_EQ(ErrorOf(Pad("x", "a", "odd") + Node("Transpose", {"a"}, "ta") + Pad("x", "b", "odd") +
                      Pad("x", "c", "strange") + Node("Relu", {"x"}, "y")),
              "net.onnx: 3 nodes are not supported: 2 nodes as the_a (Pad): its mode is \"odd\"; "
              "the node the_c (Pad): its mode is \"strange\".");
}

TEST(NodeErrors, MissingOperatorsHideNoOtherNodes) {
    EXPECT_EQ(ErrorOf(Node("Foo", {"x"}, "a") + Pad("x", "b", "odd") + Node("Relu", {"x"}, "y")),
              "net.onnx: 1 node uses an operator that Fornax does not have: Foo (1); the node "
              "the_b (Pad): its mode is \"odd\".");
    // Nor does a file that is wrong elsewhere.
    EXPECT_THAT(ErrorOf(Node("Foo", {"x"}, "a") + Node("Relu", {"nothing"}, "y")),
                EndsWith("that Fornax does not have: Foo (1)."));
}

// The type of what is missing stands for it, but a value that would have to be known is no error.
TEST(NodeErrors, NodesBehindAMissingOneAreCheckedWhereTypesAreGiven) {
    const std::string type = R"(value_info { name: "a"
        type { tensor_type { elem_type: 7 shape { dim { dim_value: 1 } } } } } )";
    const std::string nodes =
        Node("Foo", {"x"}, "a") + Node("Reshape", {"x", "a"}, "r") +
        Node("Cast", {"a"}, "f", R"(attribute { name: "to" type: INT i: 1 })") +
        Pad("f", "y", "odd");
    EXPECT_EQ(ErrorOf(nodes),
              "net.onnx: 1 node uses an operator that Fornax does not have: Foo (1).");
    EXPECT_EQ(
        ErrorOf(type + nodes),
        "net.onnx: 1 node uses an operator that Fornax does not have: Foo (1); the node the_y "
        "(Pad): its mode is \"odd\".");
}

TEST(NodeErrors, AllOfAFunctionAreToldAndOnceEach) {
    const std::string function =
        R"(functions { domain: "my" name: "F" input: "x" output: "d" opset_import { version: 21 } )" +
        Node("Constant", {}, "pads",
             R"(attribute { name: "value_ints" type: INTS ints: [1, 1] })") +
        Pad("x", "c", "odd") + Pad("x", "d", "strange") + " }";
    EXPECT_EQ(ErrorOf(Node("F", {"x"}, "a", kMine) + Node("F", {"x"}, "b", kMine) +
                          Pad("x", "c", "odd") + Node("Relu", {"x"}, "y"),
                      function),
              "net.onnx: 3 nodes are not supported: 2 nodes as the_c (Pad): its mode is \"odd\"; "
              "the node the_d (Pad): its mode is \"strange\".");
}

TEST(NodeErrors, AllOfBothBranchesAreTold) {
    const auto branch = [](const char* name, const std::string& mode) {
        return fmt::format(
            R"(attribute {{ name: "{}" type: GRAPH g {{ name: "g" output {{ name: "{}" }}
                                        {} }} }} )",
            name, mode, Pad("x", mode, mode));
    };
    EXPECT_EQ(ErrorOf(Node("ReduceMax", {"x"}, "m") + Node("Greater", {"m", "m"}, "c") +
                      Node("Squeeze", {"c"}, "s") +
                      Node("If", {"s"}, "y",
                           branch("then_branch", "odd") + branch("else_branch", "strange"))),
              "net.onnx: 2 nodes are not supported: the node the_odd (Pad): its mode is \"odd\"; "
              "the node the_strange (Pad): its mode is \"strange\".");
}

TEST(NodeErrors, ManyKindsAreCounted) {
    std::string nodes;
    for (int i = 0; i < 20; ++i) {
        nodes += Pad("x", fmt::format("a{}", i), fmt::format("odd{}", i)) +
                 Pad("x", fmt::format("b{}", i), fmt::format("odd{}", i));
    }
    const std::string error = ErrorOf(nodes + Node("Relu", {"x"}, "y"));
    EXPECT_THAT(error, HasSubstr("net.onnx: 40 nodes are not supported: 2 nodes as the_a0 (Pad)"));
    EXPECT_THAT(error, HasSubstr("odd15"));
    EXPECT_THAT(error, Not(HasSubstr("odd16")));
    EXPECT_THAT(error, EndsWith("; and 8 nodes with 4 other reasons."));
    nodes.clear();
    for (int i = 0; i < 50; ++i) {
        nodes += Node(fmt::format("Foo{:02}", i), {"x"}, fmt::format("a{}", i));
    }
    EXPECT_THAT(ErrorOf(nodes + Node("Relu", {"x"}, "y")), EndsWith("Foo39 (1) and 10 more."));
}

}  // namespace
}  // namespace fornax::onnx_frontend
