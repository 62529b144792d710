// Files of tensors: round trips through every format, damaged files, and wrong endings.
#include "tools/tensors/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"

namespace fornax::tensors {
namespace {

using graph::Tensor;
using ::testing::HasSubstr;

std::vector<NamedTensor> SomeTensors() {
    return {{"first", Tensor::FromFloats({2, 3}, std::vector<float>{1, -2, 3.5f, 0, 1e30f, -0.0f})},
            {"a/b:0", Tensor::FromIntegers({}, std::vector<int64_t>{-7})},
            {"empty", Tensor::FromFloats({0, 4}, {})}};
}

// Elements that messages pack, two or four a byte.
std::vector<NamedTensor> NarrowTensors() {
    std::vector<NamedTensor> tensors;
    for (const graph::ElementType element :
         {graph::ElementType::kU4, graph::ElementType::kI4, graph::ElementType::kU2,
          graph::ElementType::kI2, graph::ElementType::kBool}) {
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(element, {5}, &data);
        for (const int64_t i : {1, 3, 4}) {
            WriteElement(element, graph::Scalar::Integer(1), data + i);
        }
        tensors.push_back({std::string(Name(element)), tensor});
    }
    return tensors;
}

void ExpectSame(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].tensor.element, b[i].tensor.element);
        EXPECT_EQ(a[i].tensor.dims, b[i].tensor.dims);
        EXPECT_EQ(*a[i].tensor.data, *b[i].tensor.data);
    }
}

class TensorFile : public ::testing::Test {
  protected:
    std::string ErrorOf(const std::string& name, const std::string& bytes) {
        EXPECT_TRUE(WriteOutputFile(directory_ / name, bytes).ok());
        const auto read = ReadTensorFile(directory_ / name);
        return read.ok() ? "" : read.error().message;
    }

    TestDirectory directory_;
};

TEST_F(TensorFile, OneTensorMakesARoundTrip) {
    for (const NamedTensor& tensor : SomeTensors()) {
        for (const char* name : {"x.npy", "x.pb", "x.npz"}) {
            ASSERT_TRUE(WriteTensorFile(directory_ / name, {tensor}).ok());
            const auto read = ReadTensorFile(directory_ / name);
            ASSERT_TRUE(read.ok()) << read.error().message;
            ExpectSame(*read, {tensor});
            EXPECT_EQ((*read)[0].name, std::string_view(name) == "x.npy" ? "" : tensor.name);
        }
    }
}

TEST_F(TensorFile, NarrowElementsMakeARoundTripThroughMessages) {
    for (const NamedTensor& tensor : NarrowTensors()) {
        SCOPED_TRACE(tensor.name);
        ASSERT_TRUE(WriteTensorFile(directory_ / "x.pb", {tensor}).ok());
        const auto read = ReadTensorFile(directory_ / "x.pb");
        ASSERT_TRUE(read.ok()) << read.error().message;
        ExpectSame(*read, {tensor});
    }
}

TEST_F(TensorFile, ArchivesKeepNamesAndOrder) {
    ASSERT_TRUE(WriteTensorFile(directory_ / "x.npz", SomeTensors()).ok());
    const auto read = ReadTensorFile(directory_ / "x.npz");
    ASSERT_TRUE(read.ok()) << read.error().message;
    ExpectSame(*read, SomeTensors());
    EXPECT_EQ((*read)[1].name, "a/b:0");
    ASSERT_TRUE(WriteTensorFile(directory_ / "none.npz", {}).ok());
    const auto none = ReadTensorFile(directory_ / "none.npz");
    ASSERT_TRUE(none.ok()) << none.error().message;
    EXPECT_TRUE(none->empty());
}

TEST_F(TensorFile, ArchivesAreTheSameWhenArraysAreAndHaveEachNameOnce) {
    std::vector<NamedTensor> tensors = SomeTensors();
    ASSERT_TRUE(WriteTensorFile(directory_ / "x.npz", tensors).ok());
    ASSERT_TRUE(WriteTensorFile(directory_ / "y.npz", tensors).ok());
    EXPECT_EQ(*ReadTextFile(directory_ / "x.npz", 1 << 20),
              *ReadTextFile(directory_ / "y.npz", 1 << 20));
    tensors[2].name = tensors[0].name;
    const Status twice = WriteTensorFile(directory_ / "x.npz", tensors);
    ASSERT_FALSE(twice.ok());
    EXPECT_THAT(twice.error().message, HasSubstr("two arrays have the name"));
    for (const std::string& name : {std::string("a\0b", 3), std::string(UINT16_MAX, 'a')}) {
        tensors[2].name = name;
        const Status refused = WriteTensorFile(directory_ / "x.npz", tensors);
        ASSERT_FALSE(refused.ok());
        EXPECT_THAT(refused.error().message, HasSubstr("the name of an array has"));
    }
}

TEST_F(TensorFile, EncryptedArchivesAreRefused) {
    ASSERT_TRUE(WriteTensorFile(directory_ / "x.npz", SomeTensors()).ok());
    std::string file = *ReadTextFile(directory_ / "x.npz", 1 << 20);
    // Flags of the first entry, in the directory and before its data (APPNOTE 4.3.7 and 4.3.12).
    const size_t entry = file.find("PK\x01\x02");
    ASSERT_NE(entry, std::string::npos);
    file[entry + 8] |= 1;
    file[6] |= 1;
    EXPECT_THAT(ErrorOf("x.npz", file), HasSubstr("is encrypted"));
}

TEST_F(TensorFile, OtherFilesHoldOneTensor) {
    const Status written = WriteTensorFile(directory_ / "x.npy", SomeTensors());
    ASSERT_FALSE(written.ok());
    EXPECT_THAT(written.error().message, HasSubstr("one tensor, not 3"));
}

TEST_F(TensorFile, BadFilesAreSentences) {
    for (const char* name : {"bad.npy", "bad.npz", "bad.pb"}) {
        for (const char* bytes : {"", "hello", "PK\x05\x06"}) {
            EXPECT_THAT(ErrorOf(name, bytes),
                        ::testing::MatchesRegex(".*bad.*cannot be read: .*[.]"));
        }
    }
    EXPECT_THAT(ErrorOf("bad.txt", ""), HasSubstr(".npy, .npz or .pb"));
    EXPECT_THAT(ReadTensorFile(directory_ / "none.npy").error().message, HasSubstr("none.npy"));
}

TEST_F(TensorFile, DamagedArchivesAreRefused) {
    ASSERT_TRUE(WriteTensorFile(directory_ / "x.npz", SomeTensors()).ok());
    const std::string good = *ReadTextFile(directory_ / "x.npz", 1 << 20);
    size_t refused = 0, tried = 0;
    for (size_t i = 0; i < good.size(); i += 7) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ 0x41);
        refused += ErrorOf("x.npz", bad).empty() ? 0 : 1;
        EXPECT_NE(ErrorOf("x.npz", good.substr(0, i)), "");
        ++tried;
    }
    EXPECT_GT(refused, tried / 2);  // names, dates and padding may be anything
}

}  // namespace
}  // namespace fornax::tensors
