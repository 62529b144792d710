// PNG through libpng's simplified interface, JPEG through libjpeg-turbo's own.
#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "base/printable.h"
#include "tools/tensors/picture.h"

namespace fornax::tensors {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;
// A small file may hold a large picture.
constexpr int64_t kMaxPixels = int64_t{1} << 28;

struct CloseJpeg {
    void operator()(void* handle) const { tjDestroy(handle); }
};
struct ClosePng {
    void operator()(png_image* image) const { png_image_free(image); }
};

Error Invalid(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

Result<Picture> EmptyPicture(int64_t width, int64_t height) {
    if (width < 1 || height < 1 || width > kMaxPixels / height) {
        return Invalid(
            fmt::format("its {} by {} pixels exceed the limit of {}", width, height, kMaxPixels));
    }
    return Picture{width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3))};
}

Result<Picture> ParsePng(std::span<const std::byte> file) {
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    const std::unique_ptr<png_image, ClosePng> close(&image);
    if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
        return Invalid(image.message);
    }
    FORNAX_ASSIGN_OR_RETURN(Picture picture, EmptyPicture(image.width, image.height));
    image.format = PNG_FORMAT_RGB;
    const png_color black = {0, 0, 0};
    if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0 ||
        (image.warning_or_error & PNG_IMAGE_ERROR) != 0) {
        return Invalid(image.message);
    }
    return picture;
}

Result<Picture> ParseJpeg(std::span<const std::byte> file) {
    const std::unique_ptr<void, CloseJpeg> handle(tjInitDecompress());
    if (handle == nullptr) {
        return Error{ErrorCode::kOutOfHostMemory, "there is not enough memory"};
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(handle.get(), bytes, file.size(), &width, &height, &subsampling,
                            &colours) != 0) {
        return Invalid(tjGetErrorStr2(handle.get()));
    }
    FORNAX_ASSIGN_OR_RETURN(Picture picture, EmptyPicture(width, height));
    // A file that ends early is only a warning to the library.
    if (tjDecompress2(handle.get(), bytes, file.size(), picture.pixels.data(), width, 0, height,
                      TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING) != 0) {
        return Invalid(tjGetErrorStr2(handle.get()));
    }
    return picture;
}

Result<Picture> Parse(std::span<const std::byte> file) {
    constexpr unsigned char kPng[] = {0x89, 'P', 'N', 'G'};
    constexpr unsigned char kJpeg[] = {0xFF, 0xD8};
    const auto begins = [&](std::span<const unsigned char> magic) {
        return file.size() >= magic.size() &&
               std::ranges::equal(std::as_bytes(magic), file.first(magic.size()));
    };
    return begins(kPng)    ? ParsePng(file)
           : begins(kJpeg) ? ParseJpeg(file)
                           : Result<Picture>(Invalid("it is neither PNG nor JPEG"));
}

}  // namespace

bool IsPicturePath(const std::string& path) {
    std::string end = path.substr(std::min(path.size(), path.find_last_of('.')));
    std::ranges::transform(end, end.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return end == ".png" || end == ".jpg" || end == ".jpeg";
}

Result<Picture> ReadPicture(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const std::vector<std::byte> file, ReadFile(path, kMaxFileBytes));
    Result<Picture> picture = Parse(file);
    if (!picture.ok()) {
        std::string reason = picture.error().message;
        while (reason.ends_with('.')) {
            reason.pop_back();
        }
        return Error{
            picture.error().code,
            fmt::format("The file {} cannot be read as a picture: {}.", path, Printable(reason))};
    }
    return picture;
}

}  // namespace fornax::tensors
