// .npy files as NumPy writes them, and files that are something else.
#include "tools/tensors/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::tensors {
namespace {

using graph::ElementType;
using graph::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string File(const std::string& header, const std::string& data) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file.push_back(static_cast<char>(header.size()));
    file.push_back('\0');
    return file + header + data;
}

std::string Header(const std::string& type, const std::string& shape, bool is_fortran = false) {
    return "{'descr': '" + type + "', 'fortran_order': " + (is_fortran ? "True" : "False") +
           ", 'shape': " + shape + ", }\n";
}

Result<Tensor> Parse(const std::string& file) {
    return ParseNpy({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

std::vector<double> Numbers(const Tensor& tensor) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        numbers.push_back(tensor.At(i).ToDouble(tensor.element));
    }
    return numbers;
}

TEST(Npy, ReadsBytesInBothOrders) {
    const Result<Tensor> little =
        Parse(File(Header("<i2", "(2, 1)"), std::string("\x01\x02\xFE\xFF", 4)));
    ASSERT_TRUE(little.ok()) << little.error().message;
    EXPECT_EQ(little->element, ElementType::kI16);
    EXPECT_THAT(little->dims, ElementsAre(2, 1));
    EXPECT_THAT(Numbers(*little), ElementsAre(0x201, -2));
    const Result<Tensor> big =
        Parse(File(Header(">i2", "(2,)"), std::string("\x02\x01\xFF\xFE", 4)));
    ASSERT_TRUE(big.ok()) << big.error().message;
    EXPECT_THAT(Numbers(*big), ElementsAre(0x201, -2));
}

TEST(Npy, ReadsColumnsFirst) {
    const Result<Tensor> tensor =
        Parse(File(Header("|u1", "(2, 3, 2)", true),
                   std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B", 12)));
    ASSERT_TRUE(tensor.ok()) << tensor.error().message;
    EXPECT_THAT(Numbers(*tensor), ElementsAre(0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11));
}

TEST(Npy, ReadsScalarsEmptyArraysAndStrings) {
    const Result<Tensor> scalar = Parse(File(Header("<f4", "()"), std::string("\0\0\xC0\x3F", 4)));
    ASSERT_TRUE(scalar.ok()) << scalar.error().message;
    EXPECT_TRUE(scalar->dims.empty());
    EXPECT_THAT(Numbers(*scalar), ElementsAre(1.5));
    const Result<Tensor> empty = Parse(File(Header("<f8", "(0, 9223372036854775807)", true), ""));
    ASSERT_TRUE(empty.ok()) << empty.error().message;
    EXPECT_EQ(empty->count(), 0);
    const Result<Tensor> strings =
        Parse(File(Header("<U2", "(2,)"), std::string("a\0\0\0\xE9\0\0\0b\0\0\0\0\0\0\0", 16)));
    ASSERT_TRUE(strings.ok()) << strings.error().message;
    EXPECT_THAT(*strings->strings, ElementsAre("a\xC3\xA9", "b"));
}

TEST(Npy, EveryTypeMakesARoundTrip) {
    for (const ElementType element :
         {ElementType::kBool, ElementType::kI8, ElementType::kI16, ElementType::kI32,
          ElementType::kI64, ElementType::kU8, ElementType::kU16, ElementType::kU32,
          ElementType::kU64, ElementType::kF16, ElementType::kBF16, ElementType::kF32,
          ElementType::kF64}) {
        uint8_t* data = nullptr;
        const Tensor tensor = Tensor::Zeros(element, {3, 1}, &data);
        data[0] = data[2 * graph::BytesOf(element)] = 1;
        const Result<Tensor> read = Parse(FormatNpy(tensor));
        ASSERT_TRUE(read.ok()) << graph::Name(element) << read.error().message;
        EXPECT_EQ(read->element, element);
        EXPECT_EQ(read->dims, tensor.dims);
        EXPECT_EQ(*read->data, *tensor.data);
    }
    Tensor strings{ElementType::kString, {2}, nullptr, nullptr};
    strings.strings = std::make_shared<std::vector<std::string>>(
        std::vector<std::string>{"", "\xF0\x9F\x98\x80\xE2\x82\xAC x"});
    const Result<Tensor> read = Parse(FormatNpy(strings));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read->strings, *strings.strings);
}

TEST(Npy, DataBeginAtAMultipleOf64) {
    for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {7}, {1, 2, 3, 4, 5, 6}}) {
        uint8_t* data = nullptr;
        const Tensor tensor = Tensor::Zeros(ElementType::kU8, dims, &data);
        EXPECT_EQ((FormatNpy(tensor).size() - static_cast<size_t>(tensor.count())) % 64, 0u);
    }
}

TEST(Npy, BadFilesAreClauses) {
    const struct {
        std::string file;
        const char* message;
    } kCases[] = {
        {"", "not an .npy"},
        {"\x93NUMPY", "not an .npy"},
        {std::string("\x93NUMPY\x07\x00\x00\x00\x00\x00", 12), "version, 7"},
        {std::string("\x93NUMPY\x01\x00\xFF\x00{}", 12), "not whole"},
        {std::string("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF{}", 14), "not whole"},
        {File("{}\n  ", ""), "lacks"},
        {File("{'descr'", ""), "names and values"},
        {File("[1, 2, 3]", ""), "not a dictionary"},
        {File(Header("<f4", "(2,)"), "1234567"), "7 bytes for 2 elements of 4"},
        {File(Header("<f4", "(2,)"), "123456789"), "9 bytes for 2 elements of 4"},
        {File(Header("<f4", "(-2,)"), ""), "tuple of sizes"},
        {File(Header("<f4", "(2"), ""), "tuple of sizes"},
        {File(Header("<f4", "(99999999999999999999,)"), ""), "tuple of sizes"},
        {File(Header("<f4", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)"), "1234"), "tuple of sizes"},
        {File(Header("<f4", "(4294967296, 4294967296)"), ""), "more than"},
        {File(Header("<U99999999999", "(1,)"), ""), "<U99999999999"},
        {File(Header("<U0", "(1099511627776,)"), ""), "without a character"},
        {File(Header("<c8", "(1,)"), "12345678"), "<c8"},
        {File(Header("|O", "(1,)"), "12345678"), "|O"},
        {File(Header("", "(1,)"), ""), "no tensor has"},
        {File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "1234"),
         "structures"},
        {File(Header("|b1", "(1,)"), "\x02"), "neither 0 nor 1"},
    };
    for (const auto& [file, message] : kCases) {
        const Result<Tensor> tensor = Parse(file);
        ASSERT_FALSE(tensor.ok()) << message;
        EXPECT_THAT(tensor.error().message, HasSubstr(message));
    }
}

}  // namespace
}  // namespace fornax::tensors
