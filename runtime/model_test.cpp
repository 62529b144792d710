// Plans that are found in the cache, and threads that ask for plans, with models of
// test_compiler.cpp.
#include "runtime/model.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_directory.h"
#include "compiler/graph/plan/plan_cache.h"
#include "runtime/model_cache.h"
#include "runtime/test_compiler.h"

namespace fornax::runtime {
namespace {

using testing::Each;
using testing::ElementsAre;

graph::Tensor Vector(const std::vector<float>& values) {
    return graph::Tensor::FromFloats({static_cast<int64_t>(values.size())}, values);
}

std::vector<float> RunModel(ModelSession& session, const std::vector<graph::Tensor>& inputs) {
    const Result<RunResult> result = session.Run(inputs);
    EXPECT_TRUE(result.ok()) << result.error().message;
    if (!result.ok() || result->outputs.size() != 1) {
        return {};
    }
    std::vector<float> values(result->outputs[0].data->size() / sizeof(float));
    std::memcpy(values.data(), result->outputs[0].data->data(), values.size() * sizeof(float));
    return values;
}

class ModelCacheTest : public testing::Test {
  protected:
    // Runs the model in a new Model, as another process would; how often it was compiled.
    int Compiles(const std::string& contents,
                 const std::vector<graph::Tensor>& inputs,
                 const std::vector<float>& expected) {
        const std::string path = directory_ / "model";
        std::ofstream(path) << contents;
        return CompilesFile(path, inputs, expected);
    }
    int CompilesFile(const std::string& path,
                     const std::vector<graph::Tensor>& inputs,
                     const std::vector<float>& expected) {
        const int before = CompileCount();
        Result<std::shared_ptr<Model>> model = Model::Load(path, options_, LinkedCompiler());
        EXPECT_TRUE(model.ok()) << model.error().message;
        if (model.ok()) {
            ModelSession session(*model);
            EXPECT_EQ(RunModel(session, inputs), expected);
        }
        return CompileCount() - before;
    }
    void SetUp() override { options_.cache = cache_.path(); }

    const TestDirectory directory_, cache_;
    ModelOptions options_;
};

TEST_F(ModelCacheTest, PlansAreFoundAgain) {
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 0);
    EXPECT_EQ(Compiles("add and double", {Vector({3, 4})}, {8, 10}), 0);
    // Whatever may change the result.
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2, 3})}, {4, 6, 8}), 1);
    EXPECT_EQ(Compiles("up to ten", {Vector({1, 2})}, {4, 6}), 1);
    options_.strict = true;
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    options_.strict = false;
    options_.precision = Precision::kMedium;
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    options_.precision = Precision::kHighest;
    options_.dims = {{"n", 2}};
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    options_.dims.clear();
    options_.dynamic_sizes.names = {"n"};
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    options_.dynamic_sizes = {{}, true};
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    options_.dynamic_sizes = {};
    ModelCompiler other = LinkedCompiler();
    other.digest = {3, 4};
    const int before = CompileCount();
    const auto model = Model::Load(directory_ / "model", options_, other);
    ASSERT_TRUE(model.ok()) << model.error().message;
    ModelSession session(*model);
    EXPECT_THAT(RunModel(session, {Vector({1, 2})}), ElementsAre(4, 6));
    EXPECT_EQ(CompileCount(), before + 1);
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 0);
    options_.cache = "none";
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
}

// What the device is fast at decides how products are computed.
TEST_F(ModelCacheTest, TheDeviceCounts) {
    const std::string path = directory_ / "model";
    std::ofstream(path) << "add and double";
    DiskCache cache(cache_.path());
    const auto compiles = [&](bool bfloat16_products, bool serial) {
        CompileRequest request;
        request.file.path = path;
        request.bfloat16_products = bfloat16_products;
        request.serial = serial;
        const int before = CompileCount();
        const Result<CompiledModel> compiled =
            CompileThroughCache(cache, LinkedCompiler(), std::move(request));
        EXPECT_TRUE(compiled.ok()) << compiled.error().message;
        return CompileCount() - before;
    };
    for (const int expected : {1, 0}) {
        EXPECT_EQ(compiles(false, false), expected);
        EXPECT_EQ(compiles(true, false), expected);
        EXPECT_EQ(compiles(false, true), expected);
    }
}

TEST_F(ModelCacheTest, PlansThatAreNotUsedGo) {
    options_.cache = "none";
    options_.kept_plans = 2;
    const auto model = Model::Load({.bytes = std::make_shared<const std::string>("scale")},
                                   options_, LinkedCompiler());
    ASSERT_TRUE(model.ok()) << model.error().message;
    ModelSession session(*model);
    const auto compiles = [&](float factor) {
        const int before = CompileCount();
        EXPECT_THAT(RunModel(session, {Vector({1, 2}), Vector({factor})}),
                    ElementsAre(factor, 2 * factor));
        return CompileCount() - before;
    };
    EXPECT_EQ(compiles(3), 1);
    EXPECT_EQ(compiles(5), 1);
    EXPECT_EQ(compiles(3), 0);
    EXPECT_EQ(compiles(7), 1);  // in place of the plan for 5
    EXPECT_EQ(compiles(3), 0);
    EXPECT_EQ(compiles(5), 1);
}

TEST_F(ModelCacheTest, BytesAndFilesShareEntries) {
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    const int before = CompileCount();
    const auto model = Model::Load({.bytes = std::make_shared<const std::string>("add and double")},
                                   options_, LinkedCompiler());
    ASSERT_TRUE(model.ok()) << model.error().message;
    ModelSession session(*model);
    EXPECT_THAT(RunModel(session, {Vector({1, 2})}), ElementsAre(4, 6));
    EXPECT_EQ(CompileCount(), before);
}

TEST_F(ModelCacheTest, DamagedEntriesAreReplaced) {
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    for (const CacheKind& kind : {graph::kPlanCacheKind, kDependenciesCacheKind}) {
        size_t damaged = 0;
        for (const CacheEntry& entry : DiskCache(cache_.path()).List()) {
            if (entry.kind == kind.name) {
                std::fstream file(cache_ / entry.file_name, std::ios::in | std::ios::out);
                file.seekp(-1, std::ios::end).put('!');
                ++damaged;
            }
        }
        EXPECT_EQ(damaged, 1u) << kind.name;
        EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1) << kind.name;
        EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 0) << kind.name;
    }
}

TEST_F(ModelCacheTest, FailuresAreNotKept) {
    const std::string path = directory_ / "model";
    std::ofstream(path) << "up to ten";
    options_.input_shapes = {{"x", {11}}};
    const int before = CompileCount();
    for (int i = 0; i < 2; ++i) {
        const auto model = Model::Load(path, options_, LinkedCompiler());
        ASSERT_FALSE(model.ok());
        EXPECT_EQ(model.error().message, "The size 11 is beyond 10.");
    }
    EXPECT_EQ(CompileCount(), before + 2);
    EXPECT_TRUE(DiskCache(cache_.path()).List().empty());
}

TEST_F(ModelCacheTest, ValuesThatDecideCount) {
    const std::vector<float> x = {1, 2};
    EXPECT_EQ(Compiles("scale", {Vector(x), Vector({3})}, {3, 6}), 1);
    EXPECT_EQ(Compiles("scale", {Vector(x), Vector({3})}, {3, 6}), 0);
    EXPECT_EQ(Compiles("scale", {Vector(x), Vector({5})}, {5, 10}), 1);
    EXPECT_EQ(Compiles("scale", {Vector(x), Vector({5})}, {5, 10}), 0);
    EXPECT_EQ(Compiles("scale", {Vector({2, 4}), Vector({3})}, {6, 12}), 0);
}

TEST_F(ModelCacheTest, ExternalDataCount) {
    const std::string factor = directory_ / "factor";
    std::ofstream(factor) << "3";
    EXPECT_EQ(Compiles("external", {Vector({1, 2})}, {3, 6}), 1);
    EXPECT_EQ(Compiles("external", {Vector({1, 2})}, {3, 6}), 0);
    std::ofstream(factor) << "4";
    EXPECT_EQ(Compiles("external", {Vector({1, 2})}, {4, 8}), 1);
    EXPECT_EQ(Compiles("external", {Vector({1, 2})}, {4, 8}), 0);
    std::ofstream(factor) << "3";
    EXPECT_EQ(Compiles("external", {Vector({1, 2})}, {3, 6}), 0);
    std::filesystem::remove(factor);
    const auto model = Model::Load(directory_ / "model", options_, LinkedCompiler());
    ASSERT_TRUE(model.ok()) << model.error().message;
    ModelSession session(*model);
    EXPECT_FALSE(session.Run(std::vector{Vector({1, 2})}).ok());
}

// What was read may be older or newer than what the key names.
TEST_F(ModelCacheTest, FilesThatChangeMeanwhileAreNotKept) {
    const std::string path = directory_ / "model";
    std::ofstream(path) << "add and double";
    ModelCompiler compiler = LinkedCompiler();
    compiler.compile = [&](CompileRequest request) {
        Result<CompiledModel> compiled = CompileModel(std::move(request));
        // Longer than the clock of file systems stands still.
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        std::ofstream(path) << "scale";
        return compiled;
    };
    const auto model = Model::Load(path, options_, compiler);
    ASSERT_TRUE(model.ok()) << model.error().message;
    ModelSession session(*model);
    EXPECT_THAT(RunModel(session, {Vector({1, 2})}), ElementsAre(4, 6));
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
}

TEST_F(ModelCacheTest, NothingIsWrittenElsewhere) {
    EXPECT_EQ(Compiles("add and double", {Vector({1, 2})}, {4, 6}), 1);
    EXPECT_EQ(directory_.size(), 1u);
    for (const auto& file : std::filesystem::directory_iterator(cache_.path())) {
        EXPECT_TRUE(file.path().filename() == "fornax-secret" ||
                    file.path().filename().string().starts_with("graph"))
            << file.path();
    }
}

// --- Threads -------------------------------------------------------------------------------------

class GateTest : public testing::Test {
  protected:
    void SetUp() override {
        ModelOptions options;
        options.cache = "none";
        options.dims = {{"n", 4}};
        auto model = Model::Load({.bytes = std::make_shared<const std::string>("gate")}, options,
                                 LinkedCompiler());
        ASSERT_TRUE(model.ok()) << model.error().message;
        model_ = *model;
        CloseGate();
    }
    void TearDown() override { OpenGate(); }
    void AwaitCompiler() {
        while (WaitingCount() == 0) {
            std::this_thread::yield();
        }
    }
    std::shared_ptr<Model> model_;
};

TEST_F(GateTest, RunsWithPlansDoNotWaitForTheCompiler) {
    ModelSession shared(model_), other(model_);
    std::thread waiting(
        [&] { EXPECT_THAT(RunModel(shared, {Vector(std::vector<float>(9, 1))}), Each(4)); });
    AwaitCompiler();
    EXPECT_THAT(RunModel(other, {Vector({1, 2})}), ElementsAre(4, 6));
    EXPECT_THAT(RunModel(shared, {Vector({1, 2, 3})}), ElementsAre(4, 6, 8));
    EXPECT_TRUE(model_->Outputs().ok());
    OpenGate();
    waiting.join();
}

TEST_F(GateTest, ThreadsThatAskForTheSameCompileOnce) {
    const int before = CompileCount();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            ModelSession session(model_);
            EXPECT_THAT(RunModel(session, {Vector(std::vector<float>(9, 1))}), Each(4));
        });
    }
    AwaitCompiler();
    OpenGate();
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(CompileCount(), before + 1);
}

}  // namespace
}  // namespace fornax::runtime
