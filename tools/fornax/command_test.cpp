// The `fornax` command as a process: exit codes, messages, and exec, info and bench on a real
// driver.
//
// The driver is Fornax when the build has it, else any CPU driver of the machine, so that the
// command itself is tested either way.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/bench/drivers.h"
#include "tools/bench/process.h"
#include "tools/bench/shapes.h"
#include "tools/fornax/manifest.h"

namespace fornax::tool {
namespace {
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The manifest of the driver to test with, if there is one.
std::optional<fs::path> TestManifest() {
    if (auto fornax = FindManifest(FORNAX_COMMAND, std::getenv("FORNAX_MANIFEST")); fornax.ok()) {
        return *fornax;
    }
    for (const fs::path& manifest : bench::CandidateManifests()) {
        const std::string name = manifest.filename().string();
        if (name.starts_with("lvp_icd") || name.starts_with("vk_swiftshader")) {
            return manifest;
        }
    }
    return std::nullopt;
}

class CommandTest : public ::testing::Test {
  public:
    ~CommandTest() override { fs::remove_all(directory_); }

  protected:
    CommandTest() {
        std::string name = ::testing::TempDir() + "fornax_command_XXXXXX";
        directory_ = mkdtemp(name.data());
    }

    // Runs `fornax ARGUMENTS...`. Output and error streams come together in output_.
    int Fornax(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), FORNAX_COMMAND);
        bench::ProcessOptions options;
        options.arguments = std::move(arguments);
        options.environment = environment_;
        options.log = directory_ / "log";
        options.timeout_seconds = 280;
        const auto code = bench::RunProcess(options);
        EXPECT_TRUE(code.ok()) << code.error().message;
        std::stringstream text;
        text << std::ifstream(options.log).rdbuf();
        output_ = text.str();
        return code.ok() ? *code : -1;
    }

    fs::path directory_;
    std::map<std::string, std::string> environment_;
    std::string output_;
};

TEST_F(CommandTest, HelpAndVersionSucceed) {
    EXPECT_EQ(Fornax({"--help"}), 0);
    EXPECT_THAT(output_, HasSubstr("fornax info"));
    EXPECT_EQ(Fornax({"--version"}), 0);
    EXPECT_THAT(output_, HasSubstr("fornax "));
    for (const char* command : {"exec", "info", "bench", "profile", "sweep"}) {
        EXPECT_EQ(Fornax({command, "--help"}), 0);
        EXPECT_THAT(output_, HasSubstr("Examples:"));
    }
}

TEST_F(CommandTest, WrongUsageIsTwo) {
    EXPECT_EQ(Fornax({}), 2);
    EXPECT_EQ(Fornax({"no-such-command"}), 2);
    EXPECT_THAT(output_, HasSubstr("no-such-command"));
    EXPECT_EQ(Fornax({"info", "--no-such-option"}), 2);
    EXPECT_EQ(Fornax({"exec"}), 2);
    EXPECT_EQ(Fornax({"exec", "--"}), 2);
    EXPECT_EQ(Fornax({"ggml", "--"}), 2);
    EXPECT_EQ(Fornax({"ggml", "export", "model.gguf", "--", "true"}), 2);
    EXPECT_THAT(output_, HasSubstr("--output"));
    EXPECT_EQ(Fornax({"bench", "--repetitions", "0"}), 2);
}

TEST_F(CommandTest, BadManifestIsNamed) {
    environment_["FORNAX_MANIFEST"] = "/nowhere/fornax.json";
    EXPECT_EQ(Fornax({"exec", "--", "true"}), 125);
    EXPECT_THAT(output_, HasSubstr("/nowhere/fornax.json"));
    EXPECT_EQ(Fornax({"info"}), 1);
    EXPECT_THAT(output_, HasSubstr("/nowhere/fornax.json"));
}

TEST_F(CommandTest, DamagedManifestIsAnError) {
    const fs::path damaged = directory_ / "damaged.json";
    std::ofstream(damaged) << "{";
    environment_["FORNAX_MANIFEST"] = damaged;
    EXPECT_EQ(Fornax({"info"}), 1);
    EXPECT_THAT(output_, HasSubstr("fornax: "));
    EXPECT_EQ(Fornax({"bench", "--quick", "--filter", "submit"}), 1);
    EXPECT_THAT(output_, HasSubstr("damaged.json"));
}

TEST_F(CommandTest, ExecGivesTheCommandTheDriverAndItsArguments) {
    const fs::path manifest = directory_ / "some.json";
    std::ofstream(manifest) << "{}";
    environment_["FORNAX_MANIFEST"] = manifest;
    const std::string script = "echo $VK_DRIVER_FILES $VK_ICD_FILENAMES \"$@\"; exit 9";
    EXPECT_EQ(Fornax({"exec", "--", "sh", "-c", script, "name", "--help", "--", "a b"}), 9);
    EXPECT_EQ(output_, manifest.string() + " " + manifest.string() + " --help -- a b\n");
    EXPECT_EQ(Fornax({"exec", "sh", "-c", "exit 4"}), 4);
    const std::string compat = "echo ${FORNAX_COMPAT-unset} $1";
    EXPECT_EQ(Fornax({"exec", "--compat", "graphics,x", "--", "sh", "-c", compat, "name", "--"}),
              0);
    EXPECT_EQ(output_, "graphics,x --\n");
    EXPECT_EQ(Fornax({"exec", "--compat=graphics", "sh", "-c", compat, "name", "--compat"}), 0);
    EXPECT_EQ(output_, "graphics --compat\n");
    EXPECT_EQ(Fornax({"exec", "--", "sh", "-c", compat, "name"}), 0);
    EXPECT_EQ(output_, "unset\n");
    EXPECT_EQ(Fornax({"exec", "--compat"}), 2);
}

#if defined(FORNAX_TEST_GGML)
TEST_F(CommandTest, GgmlGivesTheCommandTheBackendAndTheDriver) {
    const fs::path manifest = directory_ / "some.json";
    std::ofstream(manifest) << "{}";
    environment_["FORNAX_MANIFEST"] = manifest;
    environment_["GGML_VK_VISIBLE_DEVICES"] = "0";
    const std::string script =
        "echo $VK_DRIVER_FILES ${GGML_VK_VISIBLE_DEVICES-unset} $1; test -f $GGML_BACKEND_PATH; "
        "exit $((7 + $?))";
    EXPECT_EQ(Fornax({"ggml", "--", "sh", "-c", script, "name", "--help"}), 7) << output_;
    EXPECT_EQ(output_, manifest.string() + " --help\n");
}
#endif

TEST_F(CommandTest, ExecFailsAsEnvDoes) {
    const fs::path file = directory_ / "not-a-program";
    std::ofstream(file) << "data";
    environment_["FORNAX_MANIFEST"] = file;
    EXPECT_EQ(Fornax({"exec", "--", "no-such-command-anywhere"}), 127);
    EXPECT_THAT(output_, HasSubstr("no-such-command-anywhere"));
    EXPECT_EQ(Fornax({"exec", "--", file}), 126);
}

// What -o leads to stays what it is. Links stand for the system's devices, which root could lose.
TEST_F(CommandTest, CompileWritesIntoWhatIsThere) {
    environment_["FORNAX_CACHE_DIR"] = directory_ / "cache";
    const fs::path plan = directory_ / "plan";
    const fs::path link = directory_ / "link";
    fs::create_symlink("plan", link);
    ASSERT_EQ(Fornax({"compile", FORNAX_TEST_MODEL, "-o", link}), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("written to " + link.string()));
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_GT(fs::file_size(plan), 1000u);

    const fs::path full = directory_ / "full";
    fs::create_symlink("/dev/full", full);
    EXPECT_EQ(Fornax({"compile", FORNAX_TEST_MODEL, "-o", full}), 1);
    EXPECT_THAT(output_, HasSubstr(full.string() + " cannot be written: No space left on device."));
    EXPECT_TRUE(fs::is_symlink(full));

    // A pipe that a program reads from has the plan and nothing else.
    const fs::path standard_output = directory_ / "stdout";
    fs::create_symlink("/proc/self/fd/1", standard_output);
    const fs::path manifest = directory_ / "some.json";
    std::ofstream(manifest) << "{}";
    environment_["FORNAX_MANIFEST"] = manifest;
    EXPECT_EQ(Fornax({"exec", "--", "sh", "-c", "\"$0\" compile \"$1\" -o \"$2\" | cmp - \"$3\"",
                      FORNAX_COMMAND, FORNAX_TEST_MODEL, standard_output, plan}),
              0)
        << output_;
    EXPECT_TRUE(fs::is_symlink(standard_output));
}

// A kernel with barriers, loops and accesses of several forms.
TEST_F(CommandTest, ExplainKernelShowsDecisions) {
    const auto manifest = FindManifest(FORNAX_COMMAND, std::getenv("FORNAX_MANIFEST"));
    if (!manifest.ok()) {
        GTEST_SKIP() << "The build has no Fornax driver.";
    }
    ASSERT_EQ(Fornax({"explain-kernel", FORNAX_TEST_KERNEL, "--json"}), 0) << output_;
    const nlohmann::json json = nlohmann::json::parse(output_, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << output_;
    EXPECT_EQ(json["name"], "main");
    EXPECT_GT(json["lanes"], 1);
    EXPECT_GT(json["regions"].size(), 1u);
    EXPECT_FALSE(json["accesses"].empty());
    EXPECT_TRUE(json["times_ms"].contains("code generation"));
    bool loop_of_the_workgroup = false;
    for (const auto& construct : json["constructs"]) {
        loop_of_the_workgroup |= construct["kind"] == "loop" && construct["workgroup"] == true;
    }
    EXPECT_TRUE(loop_of_the_workgroup);

    ASSERT_EQ(Fornax({"explain-kernel", FORNAX_TEST_KERNEL, "--robust"}), 0) << output_;
    for (const char* part : {"kernel main", "memory accesses", "set 0 binding 0", "workgroup",
                             "barriers cut the kernel", "OpStore"}) {
        EXPECT_THAT(output_, HasSubstr(part));
    }

    // The products of a tile, for a person and for a program.
    ASSERT_EQ(Fornax({"explain-kernel", FORNAX_TEST_MATRICES, "--constant", "0=32"}), 0) << output_;
    for (const char* part : {"matrix unit", "multiply-add", "load operand", "1 f16"}) {
        EXPECT_THAT(output_, HasSubstr(part));
    }
    ASSERT_EQ(Fornax({"explain-kernel", FORNAX_TEST_MATRICES, "--json", "--constant", "0=32"}), 0)
        << output_;
    const nlohmann::json matrices = nlohmann::json::parse(output_, nullptr, false);
    ASSERT_EQ(matrices["matrix"].size(), 1u) << output_;
    EXPECT_EQ(matrices["matrix"][0]["mmas"]["f16"], 1);
    EXPECT_EQ(matrices["matrix"][0]["mmas"]["int8"], 0);
    EXPECT_EQ(matrices["matrix"][0]["operands_loaded"], 2);
    EXPECT_EQ(matrices["matrix"][0]["accumulators_stored"], 1);
    EXPECT_EQ(matrices["matrix"][0]["depth"], 1);

    EXPECT_EQ(Fornax({"explain-kernel", FORNAX_TEST_KERNEL, "--entry", "other"}), 1);
    EXPECT_THAT(output_, HasSubstr("\"other\""));
    EXPECT_EQ(Fornax({"explain-kernel", (directory_ / "none.spv").string()}), 1);
    EXPECT_EQ(Fornax({"explain-kernel", FORNAX_TEST_KERNEL, "--constant", "x"}), 2);
}

TEST_F(CommandTest, BenchRefusesWhatSelectsNothing) {
    EXPECT_EQ(Fornax({"bench", "--filter", "("}), 1);
    EXPECT_THAT(output_, HasSubstr("not a regular expression"));
    EXPECT_EQ(Fornax({"bench", "--filter", "no such benchmark"}), 1);
    EXPECT_THAT(output_, HasSubstr("no such benchmark"));
    EXPECT_EQ(Fornax({"bench", "--drivers", "no-such-driver"}), 1);
    EXPECT_THAT(output_, HasSubstr("no-such-driver"));
    EXPECT_EQ(Fornax({"bench", "--filter", "copy", "--targets", "6502"}), 1);
    EXPECT_THAT(output_, HasSubstr("6502"));
    EXPECT_EQ(Fornax({"bench", "--filter", "copy", "--threads", "1000"}), 1);
    EXPECT_THAT(output_, HasSubstr("1000 threads"));
    EXPECT_EQ(Fornax({"bench", "llama", "--drivers", "nobody's"}), 2);
    EXPECT_THAT(output_, HasSubstr("nobody's"));
}

TEST_F(CommandTest, BenchLimitsMeasuresTheMachine) {
    const fs::path file = directory_ / "limits.json";
    ASSERT_EQ(Fornax({"bench", "limits", "--quick", "--json", file}), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("read of memory"));
    const nlohmann::json limits = nlohmann::json::parse(std::ifstream(file));
    for (const char* name : {"fma_all_threads_gflops", "copy_gbs", "read_gbs"}) {
        EXPECT_GT(limits.at(name).get<double>(), 0) << name;
    }
    EXPECT_EQ(Fornax({"bench", "limits", "--quick", "--json", directory_ / "none" / "a.json"}), 1);
    EXPECT_THAT(output_, HasSubstr("none"));
}

TEST_F(CommandTest, NpuDescribesMachinesAndUnits) {
    ASSERT_EQ(Fornax({"npu", "describe", "laptop-45"}), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("6 clusters of 1 core at 1.85 GHz"));
    EXPECT_THAT(output_, HasSubstr("dram.bandwidth_gbs"));
    ASSERT_EQ(Fornax({"npu", "print", "edge-4"}), 0) << output_;
    const fs::path file = directory_ / "mine.toml";
    std::ofstream(file) << output_;
    ASSERT_EQ(Fornax({"npu", "describe", file, "--json"}), 0) << output_;
    const nlohmann::json mine = nlohmann::json::parse(output_);
    ASSERT_EQ(Fornax({"npu", "describe", "edge-4", "--json"}), 0) << output_;
    EXPECT_EQ(nlohmann::json::parse(output_), mine);
    EXPECT_EQ(mine["matrix"]["dataflow"], "weight-stationary");
    ASSERT_EQ(Fornax({"npu", "matrix", "-m", "256", "-n", "128", "-k", "256", "--json"}), 0);
    EXPECT_EQ(nlohmann::json::parse(output_)["output-stationary"]["cycles"], 10'176);

    EXPECT_EQ(Fornax({"npu", "describe"}), 2);
    EXPECT_THAT(output_, HasSubstr("FORNAX_NPU is not set"));
    EXPECT_EQ(Fornax({"npu", "print", "edge-5"}), 2);
    EXPECT_EQ(Fornax({"npu", "matrix", "-m", "0", "-n", "1", "-k", "1"}), 2);
    std::ofstream(file) << "base = \"edge-4\"\n[cores]\nclock_ghz = 0\n";
    EXPECT_EQ(Fornax({"npu", "describe", file}), 1);
    EXPECT_EQ(output_, "fornax: " + file.string() +
                           ", line 3: cores.clock_ghz is 0; it must be from 0.001 to 100 GHz.\n");
    environment_["FORNAX_NPU"] = "edge-4";
    ASSERT_EQ(Fornax({"npu", "describe"}), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("edge-4, description "));
}

class DriverCommandTest : public CommandTest {
  protected:
    void SetUp() override {
        const std::optional<fs::path> manifest = TestManifest();
        if (!manifest.has_value()) {
            GTEST_SKIP() << "There is no Vulkan CPU driver on this machine.";
        }
        environment_["FORNAX_MANIFEST"] = *manifest;
        environment_["FORNAX_CACHE_DIR"] = directory_ / "cache";
    }

    // Runs every benchmark once at small sizes on the driver under test and returns the JSON.
    nlohmann::json QuickBench(const std::vector<std::string>& more) {
        const fs::path file = directory_ / "bench.json";
        std::vector<std::string> arguments = {
            "bench",  "--quick", "--repetitions", "1", "--drivers", environment_["FORNAX_MANIFEST"],
            "--json", file};
        arguments.insert(arguments.end(), more.begin(), more.end());
        EXPECT_EQ(Fornax(arguments), 0) << output_;
        return nlohmann::json::parse(std::ifstream(file), nullptr, false);
    }
};

TEST_F(DriverCommandTest, InfoDescribesTheDevice) {
    ASSERT_EQ(Fornax({"info"}), 0) << output_;
    for (const char* part : {"type", "Vulkan version", "Limits", "shared memory", "Memory",
                             "Queue families", "compute", "Compute features", "Extensions"}) {
        EXPECT_THAT(output_, HasSubstr(part));
    }
}

TEST_F(DriverCommandTest, InfoAllShowsAtLeastTheSameDevice) {
    ASSERT_EQ(Fornax({"info"}), 0) << output_;
    const std::string device = output_.substr(0, output_.find('\n'));
    ASSERT_EQ(Fornax({"info", "--all"}), 0) << output_;
    EXPECT_THAT(output_, HasSubstr(device + "\n"));
}

// The same run, with and without a described machine.
TEST_F(DriverCommandTest, ProfileHasModelledTimesOfADescribedMachine) {
    const fs::path file = directory_ / "run.json";
    const std::vector<std::string> run = {"run",    FORNAX_TEST_MODEL, "--profile", "--precision",
                                          "medium", "--json",          file};
    ASSERT_EQ(Fornax(run), 0) << output_;
    EXPECT_THAT(output_, Not(HasSubstr("modelled")));
    EXPECT_FALSE(nlohmann::json::parse(std::ifstream(file)).contains("modelled"));

    environment_["FORNAX_NPU"] = "edge-4";
    ASSERT_EQ(Fornax(run), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("modelled, uncalibrated (edge-4, description "));
    const nlohmann::json edge = nlohmann::json::parse(std::ifstream(file))["modelled"];
    ASSERT_FALSE(edge["records"].empty());
    EXPECT_GT(edge["units"]["matrix"]["busy"], 0) << "products of bf16 are on the matrix units";
    for (const auto& [name, unit] : edge["units"].items()) {
        EXPECT_EQ(unit["busy"].get<uint64_t>() + unit["stall"].get<uint64_t>() +
                      unit["idle"].get<uint64_t>(),
                  unit["instances"].get<uint64_t>() * edge["total_cycles"].get<uint64_t>())
            << name;
    }
    // The launches are most of so small a network, and the driver's time is the whole submission's.
    environment_["FORNAX_NPU"] = directory_ / "fast.toml";
    std::ofstream(directory_ / "fast.toml")
        << "base = \"edge-4\"\n[command_processor]\ndriver_us = 0\n";
    ASSERT_EQ(Fornax(run), 0) << output_;
    const nlohmann::json fast = nlohmann::json::parse(std::ifstream(file))["modelled"];
    EXPECT_EQ(fast["total_ns"].get<double>() + 18'000, edge["total_ns"].get<double>());

    ASSERT_EQ(Fornax({"info"}), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("the machine that FORNAX_NPU describes"));
    environment_["FORNAX_NPU"] = "edge-5";
    EXPECT_EQ(Fornax(run), 1);
    EXPECT_THAT(output_, HasSubstr("FORNAX_NPU: edge-5 is no preset (edge-4, laptop-45, dc-400)"));
}

TEST_F(DriverCommandTest, BenchRepeatsForTargetsAndThreads) {
    const nlohmann::json json =
        QuickBench({"--filter", "^submit$", "--targets", "native,x86-64-v2", "--threads", "0,1"});
    ASSERT_EQ(json["runs"].size(), 4u);
    EXPECT_EQ(json["runs"][0]["target"], "native");
    EXPECT_EQ(json["runs"][3]["target"], "x86-64-v2");
    EXPECT_EQ(json["runs"][3]["limits"]["threads"], 1);
    for (const nlohmann::json& run : json["runs"]) {
        EXPECT_EQ(run["benchmarks"].size(), 1u);
    }
}

TEST_F(DriverCommandTest, EveryBenchmarkIsVerifiedAndMeasured) {
    const nlohmann::json json = QuickBench({});
    ASSERT_TRUE(json.is_object());
    ASSERT_EQ(json["drivers"].size(), 1u);
    const std::string driver = json["drivers"][0]["name"];
    EXPECT_EQ(json["benchmarks"].size(), bench::AllShapes().size());
    for (const nlohmann::json& benchmark : json["benchmarks"]) {
        EXPECT_GT(benchmark["results"][driver]["median"], 0) << benchmark;
    }
}

TEST_F(DriverCommandTest, ValidationLayerIsSilentOnEveryBenchmark) {
    if (!fs::exists("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")) {
        GTEST_SKIP() << "The Khronos validation layer is not installed.";
    }
    environment_["LSAN_OPTIONS"] = "detect_leaks=0";  // the layer leaks
    QuickBench({"--validate"});
    EXPECT_THAT(output_, Not(HasSubstr("failed")));
}

}  // namespace
}  // namespace fornax::tool
