// Presets, files and what is wrong with them.
#include "npu/description/read.h"

#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_directory.h"
#include "npu/description/fields.h"

namespace fornax::npu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
    const Result<Description> description = ParseDescription(text, "file.toml");
    return description.ok() ? "" : description.error().message;
}

TEST(NpuDescription, PresetsHaveTheRatesThatTheirNamesPromise) {
    const std::pair<const char*, double> kTops[] = {
        {"edge-4", 4.096}, {"laptop-45", 45.4656}, {"dc-400", 406.3232}};
    for (const auto& [name, tops] : kTops) {
        const Result<Description> description = LoadDescription(name);
        ASSERT_TRUE(description.ok()) << description.error().message;
        EXPECT_EQ(description->name, name);
        EXPECT_NEAR(description->PeakTops(MatrixType::kInt8), tops, 1e-9);
        EXPECT_EQ(description->PeakTops(MatrixType::kF32), 0);
    }
}

TEST(NpuDescription, LaunchesTakeWhatTheDesignSays) {
    const std::tuple<const char*, double, double> kLaunches[] = {
        {"edge-4", 2, 20}, {"laptop-45", 2, 45}, {"dc-400", 3, 20}};
    for (const auto& [name, bare_us, driver_us] : kLaunches) {
        const Description::CommandProcessor launch = LoadDescription(name)->command_processor;
        const double bare =
            (launch.doorbell_ns + launch.decode_ns + launch.allocation_ns + launch.drain_ns) / 1e3;
        EXPECT_DOUBLE_EQ(bare, bare_us) << name;
        EXPECT_DOUBLE_EQ(bare + launch.driver_us, driver_us) << name;
    }
}

TEST(NpuDescription, LettersBeyondAsciiAreInCommentsAndTexts) {
    const Result<Description> named =
        ParseDescription("\xEF\xBB\xBF# größe\nbase = 'edge-4'\nname = \"\\\"größe\" # ä", "f");
    ASSERT_TRUE(named.ok()) << named.error().message;
    EXPECT_EQ(named->name, "\"größe");
    // toml++ would be undefined for the first two.
    for (const char* text :
         {"base = \"edge-4\"\nmatrix.colu\u0273 = 4\n", "base = \"edge-4\"\nname = \u00e4\n",
          "name = \"\"\"\n\u00e4\"\"\"\n"}) {
        EXPECT_EQ(ErrorOf(text),
                  "file.toml, line 2: a character that is not ASCII is neither in a comment nor in "
                  "a text of one line.");
    }
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\ndma.outstanding = [}"), HasSubstr("it is not TOML"));
    EXPECT_EQ(ErrorOf("[\v["), "file.toml, line 1: byte 0x0b is a control character.");
    EXPECT_EQ(ErrorOf("# \r\n\r"), "file.toml, line 2: byte 0x0d is a control character.");
}

TEST(NpuDescription, HashIsOfValuesAndNotOfNames) {
    const Description edge = *LoadDescription("edge-4");
    const Result<Description> same = ParseDescription("name = \"other\"\nbase = \"edge-4\"", "f");
    ASSERT_TRUE(same.ok()) << same.error().message;
    EXPECT_EQ(same->name, "other");
    EXPECT_EQ(same->Hash(), edge.Hash());
    std::set<std::string> hashes = {edge.Hash().ToHex()};
    // Each key counts.
    for (const Field& field : Fields()) {
        Description changed = edge;
        const double value = field.get(edge);
        field.set(changed, value == field.least ? field.most : field.least);
        EXPECT_TRUE(hashes.insert(changed.Hash().ToHex()).second)
            << field.table << '.' << field.key;
    }
}

TEST(NpuDescription, ReadsWhatDiffersFromItsBase) {
    const Result<Description> description = ParseDescription(
        "base = \"edge-4\"\n[matrix]\nrows = 8\ndataflow = \"best\"\n[dram]\nbandwidth_gbs = 17\n",
        "file.toml");
    ASSERT_TRUE(description.ok()) << description.error().message;
    EXPECT_EQ(description->name, "file.toml");
    EXPECT_EQ(description->matrix.rows, 8U);
    EXPECT_EQ(description->matrix.columns, 32U);
    EXPECT_EQ(description->matrix.dataflow, Dataflow::kBest);
    EXPECT_EQ(description->dram.bandwidth_gbs, 17);
}

TEST(NpuDescription, BadValuesAreNamedWithTheirLimits) {
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n[cores]\nclock_ghz = 0\n"),
              "file.toml, line 3: cores.clock_ghz is 0; it must be from 0.001 to 100 GHz.");
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[dram]\nbandwidth_gbs = nan\n"),
                AllOf(HasSubstr("dram.bandwidth_gbs is nan"), HasSubstr("0.001 to 1000000 GB/s")));
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n[cores]\nclusters = \"two\"\n"),
              "file.toml, line 3: cores.clusters is a string; it must be an integer.");
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n[cores]\nclusters = 1.5\n"),
              "file.toml, line 3: cores.clusters is a number with a fraction; it must be an "
              "integer.");
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[matrix]\nrows = 9223372036854775807\n"),
                HasSubstr("it must be from 1 to 4096"));
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n[matrix]\ndataflow = \"fast\"\n"),
              "file.toml, line 3: matrix.dataflow is 'fast'; it must be one of the words "
              "weight-stationary, output-stationary, input-stationary, best.");
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[matrix]\ndataflow = 3\n"),
                HasSubstr("is an integer; it must be one of the words"));
}

TEST(NpuDescription, UnknownAndMissingKeysAreNamed) {
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n[network]\nbandwidth = 3\n"),
              "file.toml, line 3: network.bandwidth is no key of a description; [network] has "
              "bandwidth_gbs, latency_ns.");
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[caches]\nbytes = 3\n"),
                AllOf(HasSubstr("line 2: caches is no key"), HasSubstr("scratchpad")));
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\ncores = 3\n"), HasSubstr("it must be a table"));
    EXPECT_THAT(ErrorOf("base = \"edge-5\"\n"),
                HasSubstr("base is 'edge-5'; it must be one of the presets edge-4, laptop-45, "
                          "dc-400"));
    EXPECT_THAT(ErrorOf("name = 3\n"), HasSubstr("name is an integer"));
    EXPECT_THAT(ErrorOf("[cores]\nclock_ghz = 1\n"), HasSubstr("lacks the key cores.clusters"));
    EXPECT_THAT(ErrorOf(""), HasSubstr("lacks the key cores.clock_ghz"));
    EXPECT_THAT(ErrorOf("[cores\n"), HasSubstr("file.toml, line 1: it is not TOML"));
}

TEST(NpuDescription, ContradictionsAreNamed) {
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n[scratchpad]\nbanks = 7\n"),
              "file.toml: scratchpad.bytes is 524288; it must be a multiple of 112, which "
              "scratchpad.banks (7) of scratchpad.bank_bytes (16) are.");
    EXPECT_EQ(ErrorOf("base = \"edge-4\"\n[vector]\nbits = 100\n"),
              "file.toml: vector.bits is 100; it must be a multiple of 32.");
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[dram]\nburst_bytes = 48\n"),
                HasSubstr("must be a power of two"));
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[matrix]\nrows = 1024\ncolumns = 1024\n"),
                HasSubstr("must be at most scratchpad.bytes, 524288"));
    EXPECT_THAT(ErrorOf("base = \"edge-4\"\n[cores]\nclusters = 1000\nper_cluster = 1000\n"),
                HasSubstr("at most 4096"));
}

TEST(NpuDescription, FilesThatCannotBeReadAreNamed) {
    const TestDirectory directory;
    const std::string missing = directory.path() + "/none.toml";
    EXPECT_EQ(LoadDescription(missing).error().message,
              missing + " is no preset (edge-4, laptop-45, dc-400), and no file either.");
    EXPECT_THAT(LoadDescription(directory.path()).error().message, HasSubstr(directory.path()));
    const std::string huge = directory.path() + "/huge.toml";
    std::ofstream(huge) << std::string(kMaxDescriptionBytes + 1, '#');
    EXPECT_THAT(LoadDescription(huge).error().message, HasSubstr("at most 1048576"));
    const std::string good = directory.path() + "/good.toml";
    std::ofstream(good) << "base = \"dc-400\"\n";
    EXPECT_EQ(LoadDescription(good)->Hash(), LoadDescription("dc-400")->Hash());
    std::string deep = "a = ";
    deep.append(100'000, '[');
    EXPECT_THAT(ErrorOf(deep), HasSubstr("it is not TOML"));
}

TEST(NpuDescription, EnvironmentNamesItsVariable) {
    ASSERT_EQ(unsetenv("FORNAX_NPU"), 0);
    Result<std::optional<Description>> description = DescriptionOfEnvironment();
    ASSERT_TRUE(description.ok());
    EXPECT_FALSE(description->has_value());
    ASSERT_EQ(setenv("FORNAX_NPU", "laptop-45", 1), 0);
    EXPECT_EQ((*DescriptionOfEnvironment())->name, "laptop-45");
    ASSERT_EQ(setenv("FORNAX_NPU", "laptop-46", 1), 0);
    EXPECT_THAT(DescriptionOfEnvironment().error().message,
                HasSubstr("FORNAX_NPU: laptop-46 is no preset"));
    ASSERT_EQ(unsetenv("FORNAX_NPU"), 0);
}

// The documented presets are the schema for readers: none leaves a key out.
TEST(NpuDescription, PresetsNameEveryKey) {
    for (const Preset& preset : Presets()) {
        EXPECT_EQ(preset.text.find("\nbase"), std::string_view::npos);
        for (const Field& field : Fields()) {
            EXPECT_THAT(std::string(preset.text), HasSubstr("\n" + std::string(field.key) + " = "));
        }
    }
}

}  // namespace
}  // namespace fornax::npu
