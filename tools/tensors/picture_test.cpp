// Pictures made with the libraries themselves, resized and normalised, and files that are damaged.
#include "tools/tensors/picture.h"

#include <png.h>
#include <turbojpeg.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_directory.h"

namespace fornax::tensors {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Png(int width, int height, png_uint_32 format, const std::vector<uint8_t>& pixels) {
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = format;
    png_alloc_size_t size = 0;
    png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
    std::string file(size, '\0');
    EXPECT_NE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr),
              0);
    return file;
}

std::string Jpeg(int width, int height, const std::vector<uint8_t>& pixels) {
    tjhandle handle = tjInitCompress();
    unsigned char* data = nullptr;
    unsigned long size = 0;
    EXPECT_EQ(tjCompress2(handle, pixels.data(), width, 0, height, TJPF_RGB, &data, &size,
                          TJSAMP_444, 95, 0),
              0);
    std::string file(reinterpret_cast<const char*>(data), size);
    tjFree(data);
    tjDestroy(handle);
    return file;
}

std::vector<double> Numbers(const graph::Tensor& tensor) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        numbers.push_back(tensor.At(i).ToDouble(tensor.element));
    }
    return numbers;
}

class PictureTest : public ::testing::Test {
  protected:
    Result<Picture> Read(const std::string& bytes) {
        EXPECT_TRUE(WriteOutputFile(directory_ / "x.png", bytes).ok());
        return ReadPicture(directory_ / "x.png");
    }
    TestDirectory directory_;
    const std::vector<uint8_t> colours_ = {255, 0,  0,  0,  255, 0,  0, 0, 255,
                                           10,  20, 30, 40, 50,  60, 7, 8, 9};
    const Picture picture_ = {3, 2, colours_};
};

TEST_F(PictureTest, ReadsPngOfEveryKind) {
    const Result<Picture> colours = Read(Png(3, 2, PNG_FORMAT_RGB, colours_));
    ASSERT_TRUE(colours.ok()) << colours.error().message;
    EXPECT_EQ(colours->width, 3);
    EXPECT_EQ(colours->height, 2);
    EXPECT_EQ(colours->pixels, colours_);
    const Result<Picture> grey = Read(Png(2, 1, PNG_FORMAT_GRAY, {7, 200}));
    ASSERT_TRUE(grey.ok()) << grey.error().message;
    EXPECT_THAT(grey->pixels, ElementsAre(7, 7, 7, 200, 200, 200));
    const Result<Picture> transparent =
        Read(Png(2, 1, PNG_FORMAT_RGBA, {9, 8, 7, 255, 9, 8, 7, 0}));
    ASSERT_TRUE(transparent.ok()) << transparent.error().message;
    EXPECT_THAT(transparent->pixels, ElementsAre(9, 8, 7, 0, 0, 0));
}

TEST_F(PictureTest, ReadsJpeg) {
    const std::vector<uint8_t> plain(16 * 16 * 3, 77);
    const Result<Picture> picture = Read(Jpeg(16, 16, plain));
    ASSERT_TRUE(picture.ok()) << picture.error().message;
    EXPECT_EQ(picture->width, 16);
    EXPECT_EQ(picture->pixels, plain);
}

TEST_F(PictureTest, ResizingKeepsWhatIsPlainAndAverages) {
    const Picture plain = {5, 3, std::vector<uint8_t>(45, 99)};
    for (const PictureFit fit : {PictureFit::kStretch, PictureFit::kCrop}) {
        EXPECT_THAT(Resize(plain, 4, 7, fit).pixels, Each(99));
        EXPECT_EQ(Resize(plain, 4, 7, fit).pixels.size(), 4u * 7 * 3);
    }
    // Two pixels become one, and one becomes four.
    const Picture two = {2, 1, {0, 0, 0, 100, 50, 20}};
    EXPECT_THAT(Resize(two, 1, 1, PictureFit::kStretch).pixels, ElementsAre(50, 25, 10));
    EXPECT_THAT(Resize(two, 4, 1, PictureFit::kStretch).pixels,
                ElementsAre(0, 0, 0, 25, 13, 5, 75, 38, 15, 100, 50, 20));
}

TEST_F(PictureTest, CropsTheMiddleAndPads) {
    const Picture wide = {
        4, 2, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8}};
    EXPECT_THAT(Resize(wide, 2, 2, PictureFit::kCrop).pixels,
                ElementsAre(2, 2, 2, 3, 3, 3, 6, 6, 6, 7, 7, 7));
    const Picture padded = Resize(wide, 4, 4, PictureFit::kPad);
    EXPECT_EQ(padded.pixels[0], 0);
    EXPECT_EQ(padded.pixels[12], 1);
    EXPECT_EQ(padded.pixels[24 + 9], 8);
    EXPECT_EQ(padded.pixels[36], 0);
}

TEST_F(PictureTest, NormalisesInEveryLayout) {
    PictureOptions options;
    options.mean = {0.5, 0.25, 0};
    options.std = {0.5, 0.25, 1};
    Result<graph::Tensor> tensor = ToTensor(picture_, options, graph::ElementType::kF32);
    ASSERT_TRUE(tensor.ok()) << tensor.error().message;
    EXPECT_THAT(tensor->dims, ElementsAre(1, 3, 2, 3));
    EXPECT_NEAR(Numbers(*tensor)[0], 1, 1e-6);      // red of the first pixel
    EXPECT_NEAR(Numbers(*tensor)[6 + 1], 3, 1e-6);  // green of the second
    EXPECT_NEAR(Numbers(*tensor)[12 + 3], 30 / 255.0, 1e-6);
    options = {};
    options.channels_last = true;
    options.channels = "BGR";
    options.scale = 1;
    tensor = ToTensor(picture_, options, graph::ElementType::kF16);
    ASSERT_TRUE(tensor.ok()) << tensor.error().message;
    EXPECT_THAT(tensor->dims, ElementsAre(1, 2, 3, 3));
    EXPECT_EQ(Numbers(*tensor)[9], 30);
    EXPECT_EQ(Numbers(*tensor)[11], 10);
    options.channels = "GRAY";
    tensor = ToTensor(picture_, options, graph::ElementType::kU8);
    ASSERT_TRUE(tensor.ok()) << tensor.error().message;
    EXPECT_THAT(Numbers(*tensor), ElementsAre(76, 150, 29, 18, 48, 8));
}

TEST_F(PictureTest, WrongOptionsAreSentences) {
    PictureOptions options;
    options.mean = {1, 2};
    EXPECT_THAT(ToTensor(picture_, options, graph::ElementType::kF32).error().message,
                HasSubstr("2 numbers are given for 3"));
    EXPECT_THAT(ToTensor(picture_, {}, graph::ElementType::kI64).error().message,
                HasSubstr("takes i64"));
}

TEST_F(PictureTest, DamagedFilesAreSentences) {
    const std::string png = Png(3, 2, PNG_FORMAT_RGB, colours_);
    const std::string jpeg = Jpeg(16, 16, std::vector<uint8_t>(768, 77));
    for (const std::string& bytes :
         {std::string(), std::string("hello"), png.substr(0, 8), png.substr(0, 40),
          png.substr(0, png.size() - 20), jpeg.substr(0, 2), jpeg.substr(0, 100),
          jpeg.substr(0, jpeg.size() - 4)}) {
        const Result<Picture> picture = Read(bytes);
        ASSERT_FALSE(picture.ok()) << bytes.size();
        EXPECT_THAT(
            picture.error().message,
            ::testing::MatchesRegex("The file .*x.png cannot be read as a picture: .*[^.][.]"));
    }
    // A header that states more pixels than there is memory for.
    std::string large = png;
    large.replace(16, 8, std::string("\x7F\xFF\xFF\xFF\x7F\xFF\xFF\xFF", 8));
    EXPECT_FALSE(Read(large).ok());
    for (size_t i = 0; i < png.size(); ++i) {
        std::string bad = png;
        bad[i] = static_cast<char>(bad[i] ^ 0x10);
        (void)Read(bad);  // anything but a crash
    }
}

}  // namespace
}  // namespace fornax::tensors
