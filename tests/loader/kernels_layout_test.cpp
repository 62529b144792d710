// Memory layouts through the loader: std140 and std430 structures in uniform and storage buffers,
// matrices in rows and in columns, dynamic indices, arrays of descriptors and array lengths.
// Every source word holds its own number, so what a kernel reads tells where it read.
#include <algorithm>
#include <numeric>

#include "base/half.h"
#include "tests/loader/shaders/layouts.spv.h"
#include "tests/loader/shaders/sparse_words.spv.h"
#include "tests/loader/vulkan_fixture.h"

namespace fornax::test {
namespace {

using KernelsLayoutTest = VulkanTest;

// The word of each scalar of layouts.comp's Mixed by the rules of OpenGL 4.5, section 7.6.2.2,
// "Standard Uniform Block Layout"; matrices list their scalars column by column.
class MixedLayout {
  public:
    MixedLayout(bool std140, bool row_major) : std140_(std140), row_major_(row_major) {
        Vector(1);
        Vector(3);
        columns_ = Matrix(3, 3);
        tall_ = Matrix(2, 3);
        for (int i = 0; i < 2; ++i) {
            Align(4);
            Vector(3);
            Vector(1);
            Array(2, 2);
            Align(4);
        }
        Array(3, 1);
        Matrix(4, 2);
        Vector(2);
        Align(4);
    }

    const std::vector<uint32_t>& words() const { return words_; }
    uint32_t size() const { return at_; }
    // Where the scalars of the two matrices begin in words().
    size_t columns() const { return columns_; }
    size_t tall() const { return tall_; }

  private:
    static uint32_t VectorAlignment(uint32_t size) { return size == 3 ? 4 : size; }
    uint32_t Stride(uint32_t size) const { return std140_ ? 4 : VectorAlignment(size); }
    void Align(uint32_t words) { at_ = (at_ + words - 1) / words * words; }
    void Vector(uint32_t size) {
        Align(VectorAlignment(size));
        for (uint32_t i = 0; i < size; ++i) {
            words_.push_back(at_++);
        }
    }
    void Array(uint32_t count, uint32_t size) {
        const uint32_t stride = Stride(size);
        Align(stride);
        for (uint32_t i = 0; i < count; ++i) {
            for (uint32_t j = 0; j < size; ++j) {
                words_.push_back(at_ + i * stride + j);
            }
        }
        at_ += count * stride;
    }
    size_t Matrix(uint32_t columns, uint32_t rows) {
        const size_t first = words_.size();
        const uint32_t stride = Stride(row_major_ ? columns : rows);
        Align(stride);
        for (uint32_t c = 0; c < columns; ++c) {
            for (uint32_t r = 0; r < rows; ++r) {
                words_.push_back(at_ + (row_major_ ? r * stride + c : c * stride + r));
            }
        }
        at_ += (row_major_ ? rows : columns) * stride;
        return first;
    }

    bool std140_;
    bool row_major_;
    uint32_t at_ = 0;
    size_t columns_ = 0;
    size_t tall_ = 0;
    std::vector<uint32_t> words_;
};

TEST_F(KernelsLayoutTest, MembersLieWhereTheRulesPutThem) {
    const MixedLayout uniform(true, false);
    const MixedLayout columns(false, false);
    const MixedLayout rows(true, true);
    ASSERT_EQ(uniform.words().size(), 48u);
    const auto numbered = [&](size_t words, float first, VkBufferUsageFlags usage = 0) {
        TestBuffer buffer = MakeBuffer(words, usage);
        std::iota(buffer.floats(), buffer.floats() + words, first);
        return buffer;
    };
    // Behind Mixed the uniform block has a row-major mat4x3: three vectors of four.
    const TestBuffer u = numbered(uniform.size() + 12, 0, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
    const TestBuffer s = numbered(columns.size() * 3, 0);
    const TestBuffer t = numbered(rows.size() * 5, 0);
    const TestBuffer out = MakeBuffer(896);
    const TestBuffer lengths = MakeBuffer(4);
    const std::vector<TestBinding> bindings = {
        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, {u}},
        {.buffers = {s}},
        {.buffers = {t}},
        {.buffers = {out}},
        {.buffers = {numbered(65, 1000), numbered(66, 2000), numbered(67, 3000)}},
        {.buffers = {lengths}}};
    Run(MakePipeline(spirv::kLayouts, std::span<const TestBinding>(bindings)), 1);

    const float* result = out.floats();
    for (uint32_t i = 0; i < 48; ++i) {
        EXPECT_EQ(result[i], uniform.words()[i]) << "scalar " << i << " of the uniform block";
        for (uint32_t item = 0; item < 3; ++item) {
            EXPECT_EQ(result[64 + item * 64 + i], item * columns.size() + columns.words()[i])
                << "scalar " << i << " of std430 item " << item;
            EXPECT_EQ(result[256 + item * 64 + i], item * rows.size() + rows.words()[i])
                << "scalar " << i << " of row-major std140 item " << item;
        }
    }
    // extra[column][row]
    const auto extra = [&](uint32_t c, uint32_t r) { return uniform.size() + r * 4.0f + c; };
    for (uint32_t i = 0; i < 64; ++i) {
        SCOPED_TRACE(i);
        const uint32_t item = i % 3;
        const auto column = [&](uint32_t r) {
            const size_t at = columns.columns() + i / 3 % 3 * 3 + r;
            return static_cast<float>(item * columns.size() + columns.words()[at]);
        };
        EXPECT_EQ(result[448 + i], column(i / 9 % 3));
        EXPECT_EQ(result[512 + i],
                  item * rows.size() + rows.words()[rows.tall() + (i & 1) * 3 + i / 2 % 3]);
        EXPECT_EQ(result[576 + i], extra(i & 3, i / 4 % 3));
        EXPECT_EQ(result[640 + i],
                  extra(0, item) + 2 * extra(1, item) + 3 * extra(2, item) + 4 * extra(3, item));
        // Three sums that f32 rounds, in any order or fused.
        const double sum = column(0) + 1000.0 * column(1) + 1000000.0 * column(2);
        EXPECT_NEAR(result[704 + i], sum, sum * 0x1p-22);
        EXPECT_EQ(result[768 + i], 2000.0f + i);
        EXPECT_EQ(result[832 + i], 3000.0f + i);
    }
    EXPECT_EQ(lengths.words[0], 65u);
    EXPECT_EQ(lengths.words[1], 67u);
    EXPECT_EQ(lengths.words[2], 3u);
    EXPECT_EQ(lengths.words[3], 5u);
}

// LLVM took shuffles of such long loads apart for minutes, and recursed until the stack ran out.
TEST_F(KernelsLayoutTest, FewWordsOfLongRuns) {
    constexpr uint32_t kWorkgroups = 67;
    constexpr uint16_t kMinusOne = 0xbc00;
    std::array buffers = {MakeBuffer(kWorkgroups * 16), MakeBuffer(kWorkgroups * 8)};
    auto dividend = [](uint32_t i, uint32_t k) { return (i * 5 + k * 11) % 61; };
    for (uint32_t i = 0; i < kWorkgroups; ++i) {
        for (uint32_t k = 0; k < 8; ++k) {
            uint32_t* record = buffers[0].words + i * 16;
            record[k] = FloatToHalf(static_cast<float>(dividend(i, k)));
            record[8 + k] = FloatToHalf(static_cast<float>(k + 2));
        }
    }
    Run(MakePipeline(spirv::kSparseWords, buffers), kWorkgroups);
    for (uint32_t i = 0; i < kWorkgroups; ++i) {
        for (uint32_t k = 0; k < 5; ++k) {
            const uint16_t half = FloatToHalf(static_cast<float>(dividend(i, k) % (k + 2)));
            ASSERT_EQ(buffers[1].words[i * 8 + k], uint32_t{kMinusOne} << 16 | half)
                << i << " " << k;
        }
    }
}

}  // namespace
}  // namespace fornax::test
