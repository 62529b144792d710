// Programs of random graphs against the interpreter of graphs, and what programs are refused for.
//
// FORNAX_RANDOM_GRAPHS: how many, from seed FORNAX_RANDOM_SEED on.
#include "compiler/graph/c/emit_c.h"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/environment.h"
#include "compiler/graph/c/compiled_library.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/random_graph.h"

namespace fornax::graph::c {
namespace {

using ::testing::HasSubstr;
using testing::RandomGraph;

uint64_t Setting(const char* name, uint64_t otherwise) {
    const std::optional<std::string> text = EnvironmentText(name);
    return text ? std::strtoull(text->c_str(), nullptr, 10) : otherwise;
}

// A program of a graph, its inputs and outputs as pointers one after the other, as its structures
// have them.
struct RunningProgram {
    void (*reset)();
    void (*run)(void* const* inputs, void* const* outputs);

    RunningProgram(const CompiledLibrary& library, const std::string& name)
        : reset(library.Find<void()>(name + "_reset")),
          run(library.Find<void(void* const*, void* const*)>(name + "_run")) {}

    std::vector<Tensor> Run(std::span<const Tensor> inputs, std::span<const Tensor> like) const {
        std::vector<void*> from, to;
        for (const Tensor& input : inputs) {
            from.push_back(const_cast<uint8_t*>(input.data->data()));
        }
        std::vector<Tensor> outputs;
        for (const Tensor& tensor : like) {
            uint8_t* writable = nullptr;
            outputs.push_back(Tensor::Zeros(tensor.element, tensor.dims, &writable));
            to.push_back(writable);
        }
        run(from.data(), to.data());
        return outputs;
    }
};

Status WriteProgram(const ScratchDirectory& directory,
                    const Plan& plan,
                    const std::string& name,
                    std::string& sources) {
    FORNAX_ASSIGN_OR_RETURN(const std::vector<ProgramFile> files, EmitProgram(plan, name));
    for (const ProgramFile& file : files) {
        std::ofstream(directory / file.name, std::ios::binary) << file.bytes;
    }
    sources += fmt::format("{}.c {}_weights.c ", name, name);
    return OkStatus();
}

// Only what is between two runs of one program is static, so all are in one library.
TEST(EmitProgram, RandomGraphsComputeWhatTheInterpreterDoes) {
    const uint64_t first = Setting("FORNAX_RANDOM_SEED", 1);
    const uint64_t end = first + Setting("FORNAX_RANDOM_GRAPHS", 40);
    const Result<ScratchDirectory> directory = ScratchDirectory::Create("programs");
    ASSERT_TRUE(directory.ok());
    std::string sources, options = "-O1";
    std::vector<uint64_t> seeds;
    size_t refused = 0;
    for (uint64_t seed = first; seed < end; ++seed) {
        const RandomGraph random = testing::MakeRandomGraph(seed);
        const Result<Plan> plan = Compile(random.graph, {.serial = true});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const std::string name = fmt::format("g{}", seed);
        const Status status = WriteProgram(*directory, *plan, name, sources);
        if (!status.ok()) {
            EXPECT_EQ(status.error().code, ErrorCode::kUnsupported) << status.error().message;
            EXPECT_THAT(status.error().message, HasSubstr("has no form in C"));
            ++refused;
            continue;
        }
        options += fmt::format(" -DG{}_NO_MAIN", seed);
        seeds.push_back(seed);
    }
    ASSERT_GT(seeds.size(), (end - first) / 2);
    const Result<CompiledLibrary> library = CompiledLibrary::Compile(*directory, sources, options);
    ASSERT_TRUE(library.ok()) << library.error().message;
    for (const uint64_t seed : seeds) {
        const RandomGraph random = testing::MakeRandomGraph(seed);
        const RunningProgram program(*library, fmt::format("g{}", seed));
        program.reset();
        States states;
        for (int run = 0; run < (random.has_state ? 2 : 1); ++run) {
            const std::vector<Tensor>& inputs = random.cases[0].inputs;
            const Result<std::vector<Tensor>> expected =
                Interpret(random.graph, inputs, {.states = &states});
            ASSERT_TRUE(expected.ok()) << expected.error().message;
            const std::vector<Tensor> actual = program.Run(inputs, *expected);
            for (size_t i = 0; i < expected->size(); ++i) {
                const double tolerance = random.exact[i] ? 0 : random.tolerance[i];
                EXPECT_EQ(testing::Difference(actual[i], (*expected)[i], tolerance), "")
                    << "seed " << seed << ", output " << i << ", run " << run;
            }
        }
    }
    std::printf("%zu programs, %zu refused\n", seeds.size(), refused);
}

Plan Compiled(std::string_view text, bool serial = true) {
    const Result<Graph> graph = ParseGraph(text);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    Result<Plan> plan = Compile(*graph, {.serial = serial});
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return *std::move(plan);
}

std::string RefusalOf(const Plan& plan, const std::string& name = "net") {
    const Result<std::vector<ProgramFile>> files = EmitProgram(plan, name);
    return files.ok() ? "" : files.error().message;
}

constexpr std::string_view kSort = R"(graph "sorts" {
    %0 = input "x" f32[2000]
    %1, %2 = sort "order" (%0) {axis = 0, descending = false, count = 2000} : f32[2000], i64[2000]
    output "y" %1
})";

TEST(EmitProgram, TemplatesAreRefusedAndSerialPlansHaveNone) {
    EXPECT_EQ(RefusalOf(Compiled(kSort, false)),
              "The node order has no form in C: its kernel sort_rows is a hand-written shader.");
    EXPECT_EQ(RefusalOf(Compiled(kSort)), "");
}

TEST(EmitProgram, NodesOfTheHostAreRefusedByName) {
    constexpr std::string_view kWide = R"(graph "wide" {
    %0 = input "x" f64[4]
    %1 = map "exponential" (%0) {function = exp}
    output "y" %1
})";
    EXPECT_EQ(RefusalOf(Compiled(kWide)), "");
    EXPECT_EQ(
        RefusalOf(Compiled(kWide, false)),
        "The node exponential has no form in C: it is computed by Fornax on the host, because "
        "shaders have no exp of f64.");
}

TEST(EmitProgram, NamesAreThoseOfC) {
    const Plan plan = Compiled(R"(graph "copy" {
    %0 = input "x" f32[4]
    output "y" %0
})");
    EXPECT_EQ(RefusalOf(plan), "");
    EXPECT_THAT(RefusalOf(plan, "9lives"), HasSubstr("'9lives' is no name for a program in C"));
    EXPECT_THAT(RefusalOf(plan, "while"), HasSubstr("'while' is no name for a program in C"));
    EXPECT_EQ(Identifier("resnet-50.v1"), "resnet_50_v1");
    EXPECT_EQ(Identifier("9lives"), "x9lives");
}

}  // namespace
}  // namespace fornax::graph::c
