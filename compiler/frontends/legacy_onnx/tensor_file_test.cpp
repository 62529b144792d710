// Tensor files: round trips, the integer types, and files that are something else.
#include "compiler/frontends/legacy_onnx/tensor_file.h"

#include <onnx/onnx_pb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"

namespace fornax::legacy_onnx {
namespace {

using ::testing::HasSubstr;

class TensorFileTest : public ::testing::Test {
  protected:
    std::string Path() const { return directory_ / "tensor.pb"; }
    Result<HostTensor> Read(const std::string& bytes) {
        EXPECT_TRUE(WriteOutputFile(Path(), bytes).ok());
        return ReadTensorFile(Path());
    }

    TestDirectory directory_;
};

TEST_F(TensorFileTest, FloatsMakeARoundTrip) {
    HostTensor tensor;
    tensor.dims = {2, 3};
    tensor.floats = {1, -2, 3.5f, 0, 1e30f, -0.0f};
    ASSERT_TRUE(WriteTensorFile(Path(), "t", tensor).ok());
    const Result<HostTensor> read = ReadTensorFile(Path());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(read->is_float());
    EXPECT_EQ(read->dims, tensor.dims);
    EXPECT_EQ(read->floats, tensor.floats);
}

TEST_F(TensorFileTest, ReadsIntegersOfEveryWidth) {
    for (const auto& [type, raw] : {
             std::pair{onnx::TensorProto::UINT8, std::string("\x07\xFF", 2)},
             std::pair{onnx::TensorProto::INT32, std::string("\x07\0\0\0\xFF\0\0\0", 8)},
             std::pair{onnx::TensorProto::INT64,
                       std::string("\x07\0\0\0\0\0\0\0\xFF\0\0\0\0\0\0\0", 16)},
         }) {
        onnx::TensorProto proto;
        proto.set_data_type(type);
        proto.add_dims(2);
        proto.set_raw_data(raw);
        const Result<HostTensor> tensor = Read(proto.SerializeAsString());
        ASSERT_TRUE(tensor.ok()) << tensor.error().message;
        EXPECT_EQ(tensor->integers, (std::vector<int64_t>{7, 255}));
    }
}

TEST_F(TensorFileTest, RefusesEverythingElse) {
    EXPECT_THAT(ReadTensorFile("/nowhere/t.pb").error().message, HasSubstr("/nowhere/t.pb"));
    EXPECT_THAT(Read("hello").error().message, HasSubstr("it is not an ONNX tensor"));
    EXPECT_FALSE(Read("").ok());
    onnx::TensorProto proto;
    proto.set_data_type(onnx::TensorProto::DOUBLE);
    EXPECT_THAT(Read(proto.SerializeAsString()).error().message, HasSubstr("DOUBLE"));
    proto.set_data_type(onnx::TensorProto::FLOAT);
    proto.add_dims(int64_t{1} << 40);
    proto.add_dims(int64_t{1} << 40);
    EXPECT_THAT(Read(proto.SerializeAsString()).error().message, HasSubstr("exceeds the limit"));
    proto.clear_dims();
    proto.add_dims(3);
    proto.set_raw_data("12345678");
    EXPECT_THAT(Read(proto.SerializeAsString()).error().message, HasSubstr("8 bytes"));
}

}  // namespace
}  // namespace fornax::legacy_onnx
