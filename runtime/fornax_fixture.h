// What the tests of the C interface have in common.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/fornax.h"

namespace fornax::runtime {

#define ASSERT_FORNAX(call) ASSERT_EQ(call, FORNAX_OK) << fornax_error_message()

inline fornax_tensor Vector(std::vector<float>& values) {
    return {FORNAX_F32,
            1,
            {static_cast<int64_t>(values.size())},
            values.data(),
            values.size() * sizeof(float),
            nullptr};
}

inline std::vector<float> Floats(const fornax_tensor& tensor) {
    std::vector<float> values(tensor.size_bytes / sizeof(float));
    if (!values.empty()) {
        std::memcpy(values.data(), tensor.data, tensor.size_bytes);
    }
    return values;
}

class ApiTest : public testing::Test {
  protected:
    void SetUp() override {
        options_ = fornax_options_create();
        ASSERT_NE(options_, nullptr);
        ASSERT_FORNAX(fornax_options_set(options_, "cache", "none"));
    }
    void TearDown() override {
        fornax_session_destroy(session_);
        fornax_model_destroy(model_);
        fornax_options_destroy(options_);
    }
    void Load(const std::string& model) {
        ASSERT_FORNAX(fornax_model_load_bytes(model.data(), model.size(), options_, &model_));
        ASSERT_FORNAX(fornax_session_create(model_, &session_));
    }
    // The output of a run with one vector.
    std::vector<float> Run(std::vector<float> values) {
        const fornax_tensor in = Vector(values);
        fornax_tensor out = {};
        EXPECT_EQ(fornax_run(session_, &in, 1, &out, 1), FORNAX_OK) << fornax_error_message();
        std::vector<float> result = Floats(out);
        fornax_tensor_release(&out);
        EXPECT_EQ(out.data, nullptr);
        return result;
    }

    fornax_options* options_ = nullptr;
    fornax_model* model_ = nullptr;
    fornax_session* session_ = nullptr;
};

}  // namespace fornax::runtime
