// GGUF files that are whole, and cut short everywhere.
#include "tools/fornax/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::tool {
namespace {

using testing::HasSubstr;

class File {
  public:
    template <typename T>
    File& Number(T value) {
        text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
        return *this;
    }
    File& Text(std::string_view text) {
        Number(uint64_t{text.size()});
        text_ += text;
        return *this;
    }
    File& Raw(std::string_view text) {
        text_ += text;
        return *this;
    }
    File& AlignTo(size_t alignment) {
        text_.resize((text_.size() + alignment - 1) / alignment * alignment);
        return *this;
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

// Two tensors: 4 floats, and 2 blocks of q4_0 behind them.
std::string Whole() {
    File file;
    file.Raw("GGUF").Number(uint32_t{3}).Number(uint64_t{2}).Number(uint64_t{4});
    file.Text("general.architecture").Number(uint32_t{8}).Text("llama");
    file.Text("general.alignment").Number(uint32_t{4}).Number(uint32_t{64});
    file.Text("tokens").Number(uint32_t{9}).Number(uint32_t{8}).Number(uint64_t{2});
    file.Text("a").Text("b");
    file.Text("scores").Number(uint32_t{9}).Number(uint32_t{6}).Number(uint64_t{1}).Number(1.0f);
    file.Text("norm").Number(uint32_t{1}).Number(uint64_t{4}).Number(uint32_t{0});
    file.Number(uint64_t{0});
    file.Text("matrix").Number(uint32_t{2}).Number(uint64_t{32}).Number(uint64_t{2});
    file.Number(uint32_t{2}).Number(uint64_t{64});
    file.AlignTo(64).Raw(std::string(64 + 2 * 18, 'x'));
    return file.text();
}

Result<GgufSummary> Read(const std::string& text) {
    return ReadGguf(std::as_bytes(std::span(text)), "model.gguf");
}

TEST(Gguf, WholeFilesAreDescribed) {
    const Result<GgufSummary> summary = Read(Whole());
    ASSERT_TRUE(summary.ok()) << summary.error().message;
    EXPECT_EQ(summary->version, 3u);
    EXPECT_EQ(summary->tensors, 2u);
    EXPECT_EQ(summary->architecture, "llama");
}

TEST(Gguf, EveryCutIsTold) {
    const std::string whole = Whole();
    for (size_t size = 0; size < whole.size(); ++size) {
        const Result<GgufSummary> summary = Read(whole.substr(0, size));
        ASSERT_FALSE(summary.ok()) << size;
        EXPECT_THAT(summary.error().message, HasSubstr("model.gguf is cut short: ")) << size;
    }
    EXPECT_THAT(Read(whole.substr(0, whole.size() - 1)).error().message,
                HasSubstr("the tensor matrix ends at byte " + std::to_string(whole.size())));
}

// What follows a float under the name of the alignment lies at multiples of 32 as ever.
TEST(Gguf, OnlyAnIntegerIsAnAlignment) {
    File file;
    file.Raw("GGUF").Number(uint32_t{3}).Number(uint64_t{1}).Number(uint64_t{1});
    file.Text("general.alignment").Number(uint32_t{6}).Number(1e9f);
    file.Text("norm").Number(uint32_t{1}).Number(uint64_t{4}).Number(uint32_t{0});
    file.Number(uint64_t{0}).AlignTo(32).Raw(std::string(16, 'x'));
    EXPECT_TRUE(Read(file.text()).ok());
}

TEST(Gguf, NamesAreFitForATerminal) {
    File file;
    file.Raw("GGUF").Number(uint32_t{3}).Number(uint64_t{1}).Number(uint64_t{0});
    file.Text("\x1b[2J" + std::string(5000, 'n')).Number(uint32_t{9});
    const Result<GgufSummary> summary = Read(file.text());
    ASSERT_FALSE(summary.ok());
    EXPECT_EQ(summary.error().message,
              "model.gguf has the tensor ?[2J" + std::string(76, 'n') + "... of 9 dimensions.");
}

TEST(Gguf, TensorsEndWhereNumbersDo) {
    File file;
    file.Raw("GGUF").Number(uint32_t{3}).Number(uint64_t{1}).Number(uint64_t{0});
    file.Text("t").Number(uint32_t{0}).Number(uint32_t{0}).Number(UINT64_MAX - 8);
    EXPECT_EQ(Read(file.text()).error().message,
              "model.gguf has the tensor t at byte 18446744073709551607.");
}

TEST(Gguf, NumbersAreNotBelieved) {
    EXPECT_THAT(Read("GGML").error().message, HasSubstr("is no GGUF file"));
    for (size_t at = 4; at < 250; ++at) {
        std::string changed = Whole();
        changed[at] = '\xff';
        const Result<GgufSummary> summary = Read(changed);
        EXPECT_TRUE(summary.ok() || summary.error().message.starts_with("model.gguf ")) << at;
    }
}

}  // namespace
}  // namespace fornax::tool
