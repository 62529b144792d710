// The C interface, with models of test_compiler.cpp.
#include "runtime/fornax.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/test_directory.h"
#include "runtime/fornax_fixture.h"
#include "runtime/test_compiler.h"
#include "runtime/vulkan/commands.h"
#include "runtime/vulkan/device.h"

extern "C" int FornaxTestRunFromC(const void* model_bytes, size_t size_bytes, float* value);

namespace fornax::runtime {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(ApiTest, ModelsTellTheirInputsAndOutputs) {
    Load("add and double");
    EXPECT_EQ(fornax_model_input_count(model_), 1u);
    EXPECT_EQ(fornax_model_output_count(model_), 1u);
    fornax_port port = {};
    ASSERT_FORNAX(fornax_model_input(model_, 0, &port));
    EXPECT_STREQ(port.name, "x");
    EXPECT_EQ(port.type, FORNAX_F32);
    EXPECT_EQ(port.rank, 1u);
    EXPECT_EQ(port.dims[0], -1);
    ASSERT_FORNAX(fornax_model_output(model_, 0, &port));
    EXPECT_STREQ(port.name, "y");
    EXPECT_STRNE(fornax_model_device(model_), "");
    EXPECT_EQ(fornax_model_input(model_, 1, &port), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(), "Number 1 is asked for; there are 1.");
    EXPECT_EQ(fornax_version(), FORNAX_VERSION_MAJOR * 1000u + FORNAX_VERSION_MINOR);
    EXPECT_STREQ(fornax_type_name(FORNAX_BF16), "bf16");
    EXPECT_EQ(fornax_type_name(static_cast<fornax_type>(24)), nullptr);
    EXPECT_EQ(fornax_type_bytes(FORNAX_F64), 8u);
}

TEST_F(ApiTest, RunsGiveOutputs) {
    Load("add and double");
    EXPECT_THAT(Run({1, 2, 3}), ElementsAre(4, 6, 8));
    EXPECT_THAT(Run({}), ElementsAre());

    std::vector<float> in = {5, 6}, room = {0, 0, -1};
    const fornax_tensor input = Vector(in);
    fornax_tensor output = Vector(room);
    ASSERT_FORNAX(fornax_run(session_, &input, 1, &output, 1));
    EXPECT_THAT(room, ElementsAre(12, 14, -1));
    EXPECT_EQ(output.dims[0], 2);
    EXPECT_EQ(output.owner, nullptr);
    fornax_tensor_release(&output);  // of the caller's memory it frees nothing
}

TEST_F(ApiTest, CCallsIt) {
    const std::string model = "add and double";
    float value = 20;
    EXPECT_EQ(FornaxTestRunFromC(model.data(), model.size(), &value), FORNAX_OK)
        << fornax_error_message();
    EXPECT_EQ(value, 42);
}

TEST_F(ApiTest, OtherSizesAreCompiledOnce) {
    const int before = CompileCount();
    Load("add and double");
    EXPECT_EQ(CompileCount(), before);  // its sizes are not known
    EXPECT_THAT(Run(std::vector<float>(100, 1)), Each(4));
    EXPECT_EQ(CompileCount(), before + 1);
    EXPECT_THAT(Run(std::vector<float>(50, 1)), Each(4));
    EXPECT_THAT(Run(std::vector<float>(3, 1)), Each(4));
    EXPECT_EQ(CompileCount(), before + 1);
    EXPECT_THAT(Run(std::vector<float>(101, 1)), Each(4));
    EXPECT_EQ(CompileCount(), before + 2);
}

TEST_F(ApiTest, ErrorsOfCompilingComeWithTheSizes) {
    Load("up to ten");
    std::vector<float> values(11, 1);
    fornax_tensor in = Vector(values), out = {};
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_UNSUPPORTED);
    EXPECT_STREQ(fornax_error_message(), "The size 11 is beyond 10.");
    EXPECT_THAT(Run({1, 2}), ElementsAre(4, 6));
    fornax_port port = {};
    ASSERT_FORNAX(fornax_model_output(model_, 0, &port));
    EXPECT_EQ(port.dims[0], -1);
}

TEST_F(ApiTest, OpenSizesHaveNames) {
    Load("total");
    EXPECT_STREQ(fornax_model_input_dim_name(model_, 0, 0), "n");
    EXPECT_STREQ(fornax_model_output_dim_name(model_, 0, 0), "");  // a constant
    EXPECT_STREQ(fornax_model_input_dim_name(model_, 0, 1), "");
    EXPECT_STREQ(fornax_model_input_dim_name(model_, 1, 0), "");
    EXPECT_STREQ(fornax_model_output_dim_name(nullptr, 0, 0), "");
}

TEST_F(ApiTest, DriversAreLibraries) {
    const std::string model = "add and double";
    const auto load = [&](const char* driver) {
        fornax_model* made = nullptr;
        EXPECT_EQ(fornax_options_set(options_, "driver", driver), FORNAX_OK);
        const fornax_status status =
            fornax_model_load_bytes(model.data(), model.size(), options_, &made);
        fornax_model_destroy(made);
        return status;
    };
    EXPECT_EQ(load("no/such/driver.so"), FORNAX_NOT_FOUND);
    EXPECT_THAT(fornax_error_message(),
                StartsWith("The Vulkan driver no/such/driver.so cannot be"));
    EXPECT_EQ(load("libm.so.6"), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(),
                 "libm.so.6 is no Vulkan driver: it has no vk_icdGetInstanceProcAddr.");
    EXPECT_EQ(load(FORNAX_TEST_DRIVER), FORNAX_OK) << fornax_error_message();
}

TEST_F(ApiTest, ReportsTellTheRunAndItsMemory) {
    ASSERT_FORNAX(fornax_options_set(options_, "report", "1"));
    Load("add and double");
    const char* text = nullptr;
    EXPECT_EQ(fornax_session_report(session_, &text), FORNAX_INVALID_ARGUMENT);  // no sizes are set
    std::vector<float> values(3, 1);
    const fornax_tensor in = Vector(values);
    ASSERT_FORNAX(fornax_session_set_sizes(session_, &in, 1));
    ASSERT_FORNAX(fornax_session_report(session_, &text));
    nlohmann::json report = nlohmann::json::parse(text);
    EXPECT_EQ(report["sizes"]["n"], 3);
    ASSERT_EQ(report["steps"].size(), 2u);
    EXPECT_EQ(report["steps"][0]["name"], "add");
    EXPECT_EQ(report["steps"][0]["operations"], 3);
    EXPECT_EQ(report["kernels"][report["steps"][1]["kernel"].get<size_t>()]["kind"], "flat");
    EXPECT_EQ(report["steps"][1]["reads"], report["steps"][0]["writes"]);
    const auto& between = report["blocks"][report["steps"][1]["reads"][0].get<size_t>()];
    EXPECT_EQ(between["kind"], "temporary");
    EXPECT_EQ(between["type"], "f32[n]");
    EXPECT_EQ(between["size"], 12);
    EXPECT_THAT(report["plan"].get<std::string>(), HasSubstr("kernel add"));
    EXPECT_TRUE(report["times"].empty());
    ASSERT_FORNAX(fornax_session_profile(session_));
    ASSERT_FORNAX(fornax_session_report(session_, &text));
    report = nlohmann::json::parse(text);
    ASSERT_EQ(report["times"].size(), 2u);
    EXPECT_EQ(report["times"][1]["step"], 1);
    EXPECT_EQ(fornax_session_report(session_, nullptr), FORNAX_INVALID_ARGUMENT);
}

TEST_F(ApiTest, StatesMayLieInMemoryOfTheCaller) {
    Load("total");
    std::vector<float> values = {1, 2, 3};
    alignas(64) float total = 10;
    const fornax_tensor in = Vector(values);
    EXPECT_EQ(fornax_session_bind_state(session_, "total", &total, 4, nullptr),
              FORNAX_INVALID_ARGUMENT);  // no sizes are set
    ASSERT_FORNAX(fornax_session_set_sizes(session_, &in, 1));
    ASSERT_FORNAX(fornax_session_bind_state(session_, "total", &total, 4, nullptr));
    ASSERT_FORNAX(fornax_session_bind_input(session_, 0, values.data(), 12, nullptr));
    ASSERT_FORNAX(fornax_session_run(session_));
    EXPECT_EQ(total, 16);
    EXPECT_EQ(fornax_session_bind_state(session_, "x", &total, 4, nullptr), FORNAX_NOT_FOUND);
    EXPECT_STREQ(fornax_error_message(), "The model has no state x.");
    ASSERT_FORNAX(fornax_session_bind_state(session_, "total", nullptr, 0, nullptr));
    ASSERT_FORNAX(fornax_session_run(session_));
    EXPECT_EQ(total, 16);
}

TEST(Devices, AreTheLoaders) {
    size_t count = 0;
    ASSERT_FORNAX(fornax_devices(nullptr, 0, &count));
    ASSERT_GE(count, 1u);
    std::vector<fornax_device> devices(count + 1);
    ASSERT_FORNAX(fornax_devices(devices.data(), devices.size(), &count));
    ASSERT_EQ(count + 1, devices.size());
    EXPECT_THAT(devices[0].name, HasSubstr("Fornax"));
    EXPECT_EQ(devices[0].type, FORNAX_DEVICE_INTEGRATED_GPU);
    EXPECT_GE(devices[0].vulkan_major * 100 + devices[0].vulkan_minor, 102u);
    EXPECT_GT(devices[0].memory_bytes, 0u);
    EXPECT_STREQ(devices[count].name, "");
    EXPECT_EQ(fornax_devices(nullptr, 1, &count), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_devices(nullptr, 0, nullptr), FORNAX_INVALID_ARGUMENT);
}

TEST_F(ApiTest, ExpectedInputsAreTheSizesOfTheFirstPlan) {
    std::vector<float> values(1000, 1);
    const fornax_tensor input = Vector(values);
    ASSERT_FORNAX(fornax_options_set_input(options_, "x", &input));
    const int before = CompileCount();
    Load("add and double");
    EXPECT_EQ(CompileCount(), before + 1);
    EXPECT_THAT(Run(std::vector<float>(999, 1)), Each(4));
    EXPECT_EQ(CompileCount(), before + 1);
    EXPECT_THAT(Run(std::vector<float>(1001, 1)), Each(4));
    EXPECT_EQ(CompileCount(), before + 2);
}

TEST_F(ApiTest, ExpectedSizesAreOptions) {
    ASSERT_FORNAX(fornax_options_set(options_, "dim.n", "1000"));
    Load("add and double");
    const int before = CompileCount();
    EXPECT_THAT(Run(std::vector<float>(1000, 1)), Each(4));
    EXPECT_EQ(CompileCount(), before);
}

TEST_F(ApiTest, SizesThatStayOpenAreCompiledOnce) {
    for (const char* option : {"dynamic.n", "dynamic"}) {
        ASSERT_FORNAX(fornax_options_set(options_, option, "1"));
        Load("add and double");
        const int before = CompileCount();
        for (const size_t size : {3, 50, 51, 2000}) {
            EXPECT_THAT(Run(std::vector<float>(size, 1)), Each(4));
        }
        EXPECT_EQ(CompileCount(), before + 1);
        ASSERT_FORNAX(fornax_options_set(options_, option, "0"));
        fornax_session_destroy(session_);
        fornax_model_destroy(model_);
    }
    Load("add and double");
    const int before = CompileCount();
    EXPECT_THAT(Run({1, 1}), Each(4));
    EXPECT_THAT(Run({1, 1, 1}), Each(4));
    EXPECT_EQ(CompileCount(), before + 2);
}

TEST_F(ApiTest, NamesOfOpenSizesAreTheModels) {
    ASSERT_FORNAX(fornax_options_set(options_, "dynamic.m", "1"));
    const std::string text = "add and double";
    EXPECT_EQ(fornax_model_load_bytes(text.data(), text.size(), options_, &model_),
              FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(), "model leaves no size m open; those that it does are: n.");
    EXPECT_EQ(fornax_options_set(options_, "dynamic.", "1"), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_options_set(options_, "dynamic.n", "2"), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_options_set(options_, "dynamic", "n"), FORNAX_INVALID_ARGUMENT);
}

TEST_F(ApiTest, ValuesThatDecideShapesAreCompiledIn) {
    const std::string text = "scale";
    ASSERT_FORNAX(fornax_model_load_bytes(text.data(), text.size(), options_, &model_));
    ASSERT_FORNAX(fornax_session_create(model_, &session_));
    fornax_tensor without_values[2] = {};
    without_values[0].rank = without_values[1].rank = 1;
    without_values[1].dims[0] = 1;
    EXPECT_EQ(fornax_session_set_sizes(session_, without_values, 2), FORNAX_UNSUPPORTED);
    fornax_session_destroy(session_);
    fornax_model_destroy(model_);
    std::vector<float> k = {3};
    const fornax_tensor value = Vector(k);
    ASSERT_FORNAX(fornax_options_set_input(options_, "k", &value));
    Load("scale");
    const auto run = [&](float factor) {
        std::vector<float> x = {1, 2}, by = {factor};
        const fornax_tensor inputs[] = {Vector(x), Vector(by)};
        fornax_tensor out = Vector(x);
        EXPECT_EQ(fornax_run(session_, inputs, 2, &out, 1), FORNAX_OK) << fornax_error_message();
        return x;
    };
    const int before = CompileCount();
    EXPECT_THAT(run(3), ElementsAre(3, 6));
    EXPECT_EQ(CompileCount(), before + 1);
    EXPECT_THAT(run(5), ElementsAre(5, 10));
    EXPECT_THAT(run(3), ElementsAre(3, 6));
    EXPECT_THAT(run(5), ElementsAre(5, 10));
    EXPECT_EQ(CompileCount(), before + 2);

    EXPECT_EQ(fornax_session_input_decides(session_, 1), 0);  // no sizes are set
    std::vector<float> x = {1, 2};
    const fornax_tensor inputs[] = {Vector(x), Vector(k)};
    ASSERT_FORNAX(fornax_session_set_sizes(session_, inputs, 2));
    EXPECT_EQ(fornax_session_input_decides(session_, 0), 0);
    EXPECT_EQ(fornax_session_input_decides(session_, 1), 1);
    EXPECT_EQ(fornax_session_input_decides(nullptr, 0), 0);
}

TEST_F(ApiTest, MemoryIsBoundWithoutCopies) {
    Load("add and double");
    fornax_tensor sizes = {};
    sizes.rank = 1;
    sizes.dims[0] = 3;
    fornax_tensor output = {};
    EXPECT_EQ(fornax_session_run(session_), FORNAX_INVALID_ARGUMENT);
    EXPECT_THAT(fornax_error_message(), HasSubstr("sizes of the inputs are not set"));
    ASSERT_FORNAX(fornax_session_set_sizes(session_, &sizes, 1));
    ASSERT_FORNAX(fornax_session_output(session_, 0, &output));
    EXPECT_EQ(output.dims[0], 3);
    EXPECT_EQ(output.data, nullptr);
    void* data = nullptr;
    size_t size_bytes = 0;
    ASSERT_FORNAX(fornax_session_input_memory(session_, 0, &data, &size_bytes));
    ASSERT_EQ(size_bytes, 12u);
    const float values[] = {1, 2, 3};
    std::memcpy(data, values, 12);
    for (int repeat = 0; repeat < 2; ++repeat) {
        ASSERT_FORNAX(fornax_session_run(session_));
        ASSERT_FORNAX(fornax_session_output(session_, 0, &output));
        EXPECT_THAT(Floats(output), ElementsAre(4, 6, 8));
    }

    alignas(64) float in[3] = {7, 8, 9}, out[3] = {};
    int in_place = -1;
    ASSERT_FORNAX(fornax_session_bind_input(session_, 0, in, sizeof in, &in_place));
    EXPECT_NE(in_place, -1);
    ASSERT_FORNAX(fornax_session_bind_output(session_, 0, out, sizeof out, nullptr));
    ASSERT_FORNAX(fornax_session_run(session_));
    EXPECT_THAT(out, ElementsAre(16, 18, 20));
    EXPECT_EQ(fornax_session_bind_output(session_, 0, out, 8, nullptr), FORNAX_INVALID_ARGUMENT);
    ASSERT_FORNAX(fornax_session_bind_input(session_, 0, nullptr, 0, nullptr));
    ASSERT_FORNAX(fornax_session_bind_output(session_, 0, nullptr, 0, nullptr));
}

TEST_F(ApiTest, StatesBelongToSessions) {
    Load("total");
    EXPECT_THAT(Run({1, 2}), ElementsAre(3));
    EXPECT_THAT(Run({1, 2, 3}), ElementsAre(9));
    const int before = CompileCount();
    EXPECT_THAT(Run(std::vector<float>(10, 0)), ElementsAre(9));  // by another plan
    EXPECT_EQ(CompileCount(), before + 1);
    fornax_session* first = session_;
    ASSERT_FORNAX(fornax_session_create(model_, &session_));
    EXPECT_THAT(Run({1}), ElementsAre(1));
    fornax_session_destroy(session_);
    session_ = first;
    EXPECT_THAT(Run({1}), ElementsAre(10));
    ASSERT_FORNAX(fornax_session_reset(session_));
    EXPECT_THAT(Run({1}), ElementsAre(1));
    fornax_model_destroy(model_);  // the session goes on
    model_ = nullptr;
    EXPECT_THAT(Run({1}), ElementsAre(2));
}

TEST_F(ApiTest, StringsAreArraysOfPointers) {
    Load("strings");
    const char* texts[] = {"ab", "nothing", ""};
    const fornax_tensor in = {FORNAX_STRING, 1, {3}, texts, sizeof texts, nullptr};
    fornax_tensor out = {};
    ASSERT_FORNAX(fornax_run(session_, &in, 1, &out, 1));
    EXPECT_EQ(out.type, FORNAX_STRING);
    ASSERT_EQ(out.dims[0], 2);
    EXPECT_STREQ(static_cast<char**>(out.data)[0], "abab");
    EXPECT_STREQ(static_cast<char**>(out.data)[1], "");
    fornax_tensor_release(&out);
    // What depends on values is known after a run with these sizes.
    ASSERT_FORNAX(fornax_session_set_sizes(session_, &in, 1));
    ASSERT_FORNAX(fornax_session_output(session_, 0, &out));
    EXPECT_EQ(out.dims[0], 2);
    const fornax_tensor other = {FORNAX_STRING, 1, {2}, texts, 2 * sizeof *texts, nullptr};
    ASSERT_FORNAX(fornax_session_set_sizes(session_, &other, 1));
    EXPECT_EQ(fornax_session_output(session_, 0, &out), FORNAX_NOT_FOUND);

    ASSERT_FORNAX(fornax_options_set(options_, "strict", "1"));
    fornax_model* strict = nullptr;
    EXPECT_EQ(fornax_model_load_bytes("strings", 7, options_, &strict), FORNAX_UNSUPPORTED);
    EXPECT_EQ(strict, nullptr);
}

TEST_F(ApiTest, ProfilesTellStepsAndWork) {
    Load("add and double");
    fornax_tensor sizes = {};
    sizes.rank = 1;
    sizes.dims[0] = 3;
    ASSERT_FORNAX(fornax_session_set_sizes(session_, &sizes, 1));
    EXPECT_EQ(fornax_session_step_count(session_), 0u);
    ASSERT_FORNAX(fornax_session_profile(session_));
    ASSERT_EQ(fornax_session_step_count(session_), 2u);
    fornax_step step = {};
    ASSERT_FORNAX(fornax_session_step(session_, 0, &step));
    EXPECT_STREQ(step.name, "add");
    EXPECT_EQ(step.on_host, 0);
    EXPECT_STREQ(step.reason, "");
    EXPECT_EQ(step.operations, 3);
    EXPECT_EQ(fornax_session_step(session_, 2, &step), FORNAX_INVALID_ARGUMENT);
}

TEST_F(ApiTest, PlansAreRecordedIntoCommandBuffersOfTheCaller) {
    const auto device = vulkan::Device::Open("");
    ASSERT_TRUE(device.ok()) << device.error().message;
    fornax_vulkan_device own = {};
    own.instance = (*device)->instance().handle();
    own.get_instance_proc_addr = reinterpret_cast<void*>(vkGetInstanceProcAddr);
    own.physical_device = (*device)->physical_device();
    EXPECT_EQ(fornax_options_set_vulkan_device(options_, &own), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(), "The argument device->device is null.");
    own.device = (*device)->handle();
    own.queue_family = (*device)->queue_family();
    ASSERT_FORNAX(fornax_options_set_vulkan_device(options_, &own));
    Load("add and double");
    EXPECT_EQ(fornax_model_device(model_), (*device)->name());
    fornax_tensor sizes = {}, output = {};
    sizes.rank = 1;
    sizes.dims[0] = 2;
    ASSERT_FORNAX(fornax_session_set_sizes(session_, &sizes, 1));
    EXPECT_EQ(fornax_session_run(session_), FORNAX_INVALID_ARGUMENT);
    EXPECT_THAT(fornax_error_message(), HasSubstr("no queue"));
    void* data = nullptr;
    size_t size_bytes = 0;
    ASSERT_FORNAX(fornax_session_input_memory(session_, 0, &data, &size_bytes));
    const float values[] = {1, 2};
    ASSERT_EQ(size_bytes, sizeof values);
    std::memcpy(data, values, sizeof values);
    auto commands = vulkan::Commands::Create(*device, 0);
    ASSERT_TRUE(commands.ok());
    ASSERT_TRUE((*commands)->Begin().ok());
    ASSERT_FORNAX(fornax_session_record(session_, (*commands)->handle()));
    ASSERT_TRUE((*commands)->End().ok());
    ASSERT_TRUE((*commands)->Submit().ok());
    ASSERT_TRUE((*commands)->Wait().ok());
    ASSERT_FORNAX(fornax_session_output(session_, 0, &output));
    EXPECT_THAT(Floats(output), ElementsAre(4, 6));
    commands->reset();
    // All that the library made on the device goes before the device.
    fornax_session_destroy(session_);
    fornax_model_destroy(model_);
    fornax_options_destroy(options_);
    session_ = nullptr;
    model_ = nullptr;
    options_ = nullptr;
}

TEST_F(ApiTest, MistakesAreErrors) {
    EXPECT_EQ(fornax_model_load("no such file", options_, &model_), FORNAX_NOT_FOUND);
    EXPECT_THAT(fornax_error_message(), HasSubstr("no such file"));
    EXPECT_EQ(fornax_model_load_bytes("?", 1, options_, &model_), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_model_load(nullptr, options_, &model_), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(), "The argument path is null.");
    EXPECT_EQ(model_, nullptr);
    EXPECT_EQ(fornax_options_set(options_, "colour", "red"), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_options_set(options_, "strict", "2"), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_options_set(options_, "kept_sizes", "many"), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_options_set(options_, "precision", "some"), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_options_set(options_, "dim.", "1"), FORNAX_INVALID_ARGUMENT);
    fornax_options* elsewhere = fornax_options_create();
    ASSERT_FORNAX(fornax_options_set(elsewhere, "device", "no such device"));
    EXPECT_EQ(fornax_model_load_bytes("total", 5, elsewhere, &model_), FORNAX_NOT_FOUND);
    fornax_options_destroy(elsewhere);

    Load("add and double");
    std::vector<float> values = {1, 2};
    fornax_tensor in = Vector(values), out = {};
    EXPECT_EQ(fornax_run(session_, &in, 2, &out, 1), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 0), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_run(session_, nullptr, 1, &out, 1), FORNAX_INVALID_ARGUMENT);
    in.size_bytes = 7;
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_INVALID_ARGUMENT);
    in = Vector(values);
    in.type = FORNAX_I32;
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_INVALID_ARGUMENT);
    EXPECT_THAT(fornax_error_message(), HasSubstr("given as i32[2]"));
    in.type = static_cast<fornax_type>(99);
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_INVALID_ARGUMENT);
    in = Vector(values);
    in.rank = 17;
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_INVALID_ARGUMENT);
    in.rank = 1;
    in.dims[0] = -2;
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_INVALID_ARGUMENT);
    in.dims[0] = INT64_MAX;
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_INVALID_ARGUMENT);
    in = Vector(values);
    std::vector<float> small = {0};
    fornax_tensor too_small = Vector(small);
    EXPECT_EQ(fornax_run(session_, &in, 1, &too_small, 1), FORNAX_INVALID_ARGUMENT);
    EXPECT_THAT(fornax_error_message(), HasSubstr("y has 8 bytes; there is room for 4"));
    EXPECT_EQ(out.data, nullptr);
    fornax_session_destroy(nullptr);
    fornax_model_destroy(nullptr);
    fornax_tensor_release(nullptr);
}

TEST_F(ApiTest, FilesAreReadAgainForOtherSizes) {
    const TestDirectory directory;
    const std::string path = directory.path() + "/model";
    std::ofstream(path) << "add and double";
    ASSERT_FORNAX(fornax_options_set(options_, "cache", directory.path().c_str()));
    ASSERT_FORNAX(fornax_model_load(path.c_str(), options_, &model_));
    ASSERT_FORNAX(fornax_session_create(model_, &session_));
    EXPECT_THAT(Run({1, 2}), ElementsAre(4, 6));
    EXPECT_THAT(Run(std::vector<float>(9, 1)), Each(4));
    std::remove(path.c_str());
    std::vector<float> values(10, 1);
    const fornax_tensor in = Vector(values);
    fornax_tensor out = {};
    EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_NOT_FOUND);
    EXPECT_THAT(Run({1, 2}), ElementsAre(4, 6));
}

TEST_F(ApiTest, ThreadsMayShareASession) {
    Load("add and double");
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int repeat = 0; repeat < 15; ++repeat) {
                std::vector<float> values(static_cast<size_t>(1 + (t * 3 + repeat) % 8),
                                          static_cast<float>(t + repeat));
                const fornax_tensor in = Vector(values);
                fornax_tensor out = {};
                const fornax_status status = fornax_run(session_, &in, 1, &out, 1);
                const std::vector<float> expected(values.size(), (values[0] + 1) * 2);
                wrong += status == FORNAX_OK && Floats(out) == expected ? 0 : 1;
                fornax_tensor_release(&out);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0);
}

TEST(Torch, NodesThatAreNotSupportedAreTold) {
    std::vector<std::string> told;
    const fornax_node_callback tell = [](void* user, uint32_t node, const char* reason) {
        static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(node) + " " +
                                                                reason);
    };
    const fornax_piece pieces[] = {{"abc", 3}, {nullptr, 1}};
    EXPECT_EQ(fornax_torch_check(pieces, 1, tell, &told), FORNAX_OK);
    EXPECT_THAT(told, ElementsAre("1 it is the node 1", "2 it is the node 2"));
    EXPECT_EQ(fornax_torch_check(nullptr, 1, tell, &told), FORNAX_INVALID_ARGUMENT);
    EXPECT_EQ(fornax_torch_check(pieces, 0, tell, &told), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(), "A file has one piece at least.");
    EXPECT_EQ(fornax_torch_check(pieces, 2, tell, &told), FORNAX_INVALID_ARGUMENT);
    EXPECT_STREQ(fornax_error_message(), "A piece of 1 bytes has no data.");
}

}  // namespace
}  // namespace fornax::runtime
