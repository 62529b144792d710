// Finds size, layout and channels.
#include "tools/fornax/picture_input.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace fornax::tool {
namespace {

// Sides of pictures beyond this are taken for a mistake.
constexpr int64_t kMaxSide = 1 << 14;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

// A side that stands for the whole of `text`, or 0.
int64_t ParseSide(std::string_view text) {
    int64_t side = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
    return error == std::errc() && end == text.data() + text.size() && side >= 1 ? side : 0;
}

// Width and height of --size.
Result<std::pair<int64_t, int64_t>> ParseSize(std::string_view text) {
    const size_t cross = text.find('x');
    const int64_t width = ParseSide(text.substr(0, cross));
    const int64_t height =
        cross == std::string_view::npos ? width : ParseSide(text.substr(cross + 1));
    if (width == 0 || height == 0 || width > kMaxSide || height > kMaxSide) {
        return Invalid(fmt::format(
            "--size {} is not of the form WIDTHxHEIGHT with sides of 1 to {}.", text, kMaxSide));
    }
    return std::pair(width, height);
}

bool IsChannels(const graph::Expr& dim) {
    return dim.constant() == 1 || dim.constant() == 3;
}

}  // namespace

Result<PictureTensor> MakePictureTensor(const NetworkInput& input,
                                        const tensors::Picture& picture,
                                        const PictureInputOptions& options) {
    const graph::Shape& shape = input.type.shape;
    if (input.has_shape && shape.rank() != 3 && shape.rank() != 4) {
        return Invalid(
            fmt::format("A picture has 3 or 4 dimensions as a tensor, and the input {} "
                        "takes {}.",
                        input.name, input.type.ToString()));
    }
    const size_t rank = input.has_shape ? shape.rank() : 4;
    // The last three dimensions, behind that of the batch.
    const auto dim = [&](size_t axis) {
        return input.has_shape ? shape[rank - 3 + axis] : graph::Expr(graph::Symbol("picture"));
    };
    tensors::PictureOptions made;
    made.channels_last = options.layout.empty() ? !IsChannels(dim(0)) && IsChannels(dim(2))
                                                : options.layout == "NHWC";
    const graph::Expr channels = dim(made.channels_last ? 2 : 0);
    made.channels = !options.channels.empty()  ? options.channels
                    : channels.constant() == 1 ? "GRAY"
                                               : "RGB";
    made.scale = options.scale;
    made.mean = options.mean;
    made.std = options.std;
    int64_t height = dim(made.channels_last ? 0 : 1).constant().value_or(picture.height);
    int64_t width = dim(made.channels_last ? 1 : 2).constant().value_or(picture.width);
    if (!options.size.empty()) {
        FORNAX_ASSIGN_OR_RETURN(std::tie(width, height), ParseSize(options.size));
    }
    if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
        return Invalid(fmt::format("The input {} takes {}, which is no picture's size.", input.name,
                                   input.type.ToString()));
    }
    const tensors::PictureFit fit = options.fit == "crop"  ? tensors::PictureFit::kCrop
                                    : options.fit == "pad" ? tensors::PictureFit::kPad
                                                           : tensors::PictureFit::kStretch;
    PictureTensor result;
    FORNAX_ASSIGN_OR_RETURN(
        result.tensor,
        tensors::ToTensor(tensors::Resize(picture, width, height, fit), made, input.type.element));
    if (rank == 3) {
        result.tensor.dims.erase(result.tensor.dims.begin());
    }
    result.description =
        fmt::format(", {}x{} to {}x{} ({}), {}, {}", picture.width, picture.height, width, height,
                    options.fit, made.channels, made.channels_last ? "NHWC" : "NCHW");
    if (graph::IsFloat(input.type.element)) {
        result.description += fmt::format(", (value * {:.6g} - {}) / {}", made.scale,
                                          fmt::join(made.mean, " "), fmt::join(made.std, " "));
    }
    return result;
}

}  // namespace fornax::tool
