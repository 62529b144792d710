// One sample, step by step.
#include "tests/loader/sampling_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fornax::test {
namespace {

constexpr double kNearTie = 2e-3;

// A place on a face of a cube, or of an image as it is.
struct Place {
    double at[3] = {};
    int face = 0;
};

// The table of "Cube Map Face Selection".
Place OnCube(const double (&r)[3]) {
    const double x = std::fabs(r[0]);
    const double y = std::fabs(r[1]);
    const double z = std::fabs(r[2]);
    Place place;
    double s = 0;
    double t = 0;
    double major = 0;
    if (z >= x && z >= y) {
        place.face = r[2] < 0 ? 5 : 4;
        s = r[2] < 0 ? -r[0] : r[0];
        t = -r[1];
        major = z;
    } else if (y >= x) {
        place.face = r[1] < 0 ? 3 : 2;
        s = r[0];
        t = r[1] < 0 ? -r[2] : r[2];
        major = y;
    } else {
        place.face = r[0] < 0 ? 1 : 0;
        s = r[0] < 0 ? r[2] : -r[2];
        t = -r[1];
        major = x;
    }
    place.at[0] = 0.5 * (s / major + 1);
    place.at[1] = 0.5 * (t / major + 1);
    return place;
}

// The direction of a point of a face's plane.
void Direction(int face, double s, double t, double (&r)[3]) {
    switch (face) {
        case 0:
            r[0] = 1, r[1] = -t, r[2] = -s;
            break;
        case 1:
            r[0] = -1, r[1] = -t, r[2] = s;
            break;
        case 2:
            r[0] = s, r[1] = 1, r[2] = t;
            break;
        case 3:
            r[0] = s, r[1] = -1, r[2] = -t;
            break;
        case 4:
            r[0] = s, r[1] = -t, r[2] = 1;
            break;
        default:
            r[0] = -s, r[1] = -t, r[2] = -1;
            break;
    }
}

// -1 for the border.
int Wrap(int index, int size, VkSamplerAddressMode mode) {
    switch (mode) {
        case VK_SAMPLER_ADDRESS_MODE_REPEAT:
            return (index % size + size) % size;
        case VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT: {
            const int in_period = (index % (2 * size) + 2 * size) % (2 * size) - size;
            return size - 1 - (in_period >= 0 ? in_period : -(1 + in_period));
        }
        case VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER:
            return index < 0 || index >= size ? -1 : index;
        case VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE:
            return std::clamp(index >= 0 ? index : -(1 + index), 0, size - 1);
        default:
            return std::clamp(index, 0, size - 1);
    }
}

Vec4 Border(VkBorderColor color) {
    switch (color) {
        case VK_BORDER_COLOR_FLOAT_OPAQUE_BLACK:
        case VK_BORDER_COLOR_INT_OPAQUE_BLACK:
            return {0, 0, 0, 1};
        case VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE:
        case VK_BORDER_COLOR_INT_OPAQUE_WHITE:
            return {1, 1, 1, 1};
        default:
            return {0, 0, 0, 0};
    }
}

bool Compare(VkCompareOp op, double reference, double depth) {
    switch (op) {
        case VK_COMPARE_OP_NEVER:
            return false;
        case VK_COMPARE_OP_LESS:
            return reference < depth;
        case VK_COMPARE_OP_EQUAL:
            return reference == depth;
        case VK_COMPARE_OP_LESS_OR_EQUAL:
            return reference <= depth;
        case VK_COMPARE_OP_GREATER:
            return reference > depth;
        case VK_COMPARE_OP_NOT_EQUAL:
            return reference != depth;
        case VK_COMPARE_OP_GREATER_OR_EQUAL:
            return reference >= depth;
        default:
            return true;
    }
}

class Sampling {
  public:
    Sampling(const ReferenceImage& image,
             const VkSamplerCreateInfo& sampler,
             const ReferenceQuery& query)
        : image_(image), sampler_(sampler), query_(query) {
        axes_ = image.IsCube() ? 2 : image.Axes();
        if (image.IsCube()) {
            place_ = OnCube({query.position[0], query.position[1], query.position[2]});
        } else {
            std::copy_n(query.position, 3, place_.at);
        }
        if (image.IsArray()) {
            const double layers = image.IsCube() ? image.layers / 6 : image.layers;
            const double layer = query.position[image.Axes()];
            tie_ |= std::fabs(std::fabs(layer - std::floor(layer)) - 0.5) < kNearTie;
            layer_ = static_cast<int>(std::clamp(std::nearbyint(layer), 0.0, layers - 1));
        }
    }

    std::optional<Vec4> Sample() {
        const double lod = Clamped(BiasedLod());
        tie_ |= lod != 0 && std::fabs(lod) < kNearTie && sampler_.magFilter != sampler_.minFilter;
        const bool linear =
            (lod <= 0 ? sampler_.magFilter : sampler_.minFilter) == VK_FILTER_LINEAR;
        const double last = static_cast<double>(image_.levels.size() - 1);
        const double level = std::clamp(lod, 0.0, last);
        const double nearest = Nearest(level, last);
        Vec4 color{};
        if (sampler_.mipmapMode == VK_SAMPLER_MIPMAP_MODE_LINEAR) {
            const double finer = std::floor(level);
            const Vec4 first = SampleLevel(static_cast<uint32_t>(finer), linear);
            const Vec4 second =
                SampleLevel(static_cast<uint32_t>(std::min(finer + 1, last)), linear);
            for (size_t i = 0; i < 4; ++i) {
                color[i] = first[i] + (level - finer) * (second[i] - first[i]);
            }
        } else {
            color = SampleLevel(static_cast<uint32_t>(nearest), linear);
        }
        if (tie_) {
            return std::nullopt;
        }
        return image_.Swizzled(color);
    }

    std::optional<std::pair<double, double>> Lod() {
        const double lod = BiasedLod();
        const auto last = static_cast<double>(image_.levels.size() - 1);
        double level = std::clamp(Clamped(lod), 0.0, last);
        if (sampler_.mipmapMode == VK_SAMPLER_MIPMAP_MODE_NEAREST) {
            level = Nearest(level, last);
        }
        if (tie_) {
            return std::nullopt;
        }
        return std::pair(level, lod);
    }

    std::optional<Vec4> Gather(uint32_t component) {
        const VkExtent3D extent = image_.LevelExtent(0);
        const int x = First(0, extent.width);
        const int y = First(1, extent.height);
        const int steps[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
        Vec4 result{};
        for (size_t i = 0; i < 4; ++i) {
            const Vec4 color = Fetch(0, x + steps[i][0], y + steps[i][1], 0);
            result[i] = image_.Swizzled(color)[component];
        }
        if (tie_) {
            return std::nullopt;
        }
        return result;
    }

  private:
    double BiasedLod() {
        constexpr double kMaxBias = 16;  // maxSamplerLodBias
        const double lod = query_.has_gradients ? GradientLod() : query_.lod;
        return lod + std::clamp(sampler_.mipLodBias + query_.bias, -kMaxBias, kMaxBias);
    }

    double Clamped(double lod) const {
        return std::min(std::max({lod, double{sampler_.minLod}, query_.least}),
                        double{sampler_.maxLod});
    }

    // The level in mode VK_SAMPLER_MIPMAP_MODE_NEAREST.
    double Nearest(double level, double last) {
        tie_ |= sampler_.mipmapMode == VK_SAMPLER_MIPMAP_MODE_NEAREST && last > 0 &&
                std::fabs(level + 0.5 - std::nearbyint(level + 0.5)) < kNearTie;
        return std::ceil(level + 0.5) - 1;
    }

    int First(int axis, double size) {
        const double scaled =
            sampler_.unnormalizedCoordinates ? place_.at[axis] : place_.at[axis] * size;
        const double below = std::floor(scaled - 0.5);
        const double part = scaled - 0.5 - below;
        tie_ |= part < kNearTie || part > 1 - kNearTie;
        return static_cast<int>(below) + query_.offset[axis];
    }

    double GradientLod() {
        const VkExtent3D extent = image_.LevelExtent(0);
        const double sizes[] = {static_cast<double>(extent.width),
                                static_cast<double>(extent.height),
                                static_cast<double>(extent.depth)};
        double longest = 0;
        for (const auto& gradient : {query_.gradient_x, query_.gradient_y}) {
            double change[3] = {gradient[0], gradient[1], gradient[2]};
            if (image_.IsCube()) {
                // How the place on the face moves: a difference, as the face stays.
                constexpr double kStep = 1e-6;
                double there[3];
                for (int i = 0; i < 3; ++i) {
                    there[i] = query_.position[i] + kStep * gradient[i];
                }
                const Place moved = OnCube({there[0], there[1], there[2]});
                tie_ |= moved.face != place_.face;
                for (int i = 0; i < 2; ++i) {
                    change[i] = (moved.at[i] - place_.at[i]) / kStep;
                }
            }
            double squares = 0;
            for (int i = 0; i < axes_; ++i) {
                squares += change[i] * sizes[i] * change[i] * sizes[i];
            }
            longest = std::max(longest, squares);
        }
        return 0.5 * std::log2(longest);
    }

    Vec4 SampleLevel(uint32_t level, bool linear) {
        const VkExtent3D extent = image_.LevelExtent(level);
        const uint32_t sizes[] = {extent.width, extent.height, extent.depth};
        int first[3] = {};
        double part[3] = {};
        for (int i = 0; i < axes_; ++i) {
            const double scaled =
                sampler_.unnormalizedCoordinates ? place_.at[i] : place_.at[i] * sizes[i];
            const double shifted = linear ? scaled - 0.5 : scaled;
            const double below = std::floor(shifted);
            part[i] = linear ? shifted - below : 0;
            if (!linear) {
                tie_ |= std::fabs(scaled - std::nearbyint(scaled)) < kNearTie;
            }
            first[i] = static_cast<int>(below) + query_.offset[i];
        }
        if (linear && image_.IsCube()) {
            return AroundCorner(level, static_cast<int>(sizes[0]), first, part);
        }
        Vec4 sum{};
        for (int tap = 0; tap < (linear ? 1 << axes_ : 1); ++tap) {
            double weight = 1;
            int at[3] = {};
            for (int i = 0; i < axes_; ++i) {
                const int second = tap >> i & 1;
                at[i] = first[i] + second;
                weight *= second ? part[i] : 1 - part[i];
            }
            const Vec4 color = Fetch(level, at[0], at[1], at[2]);
            for (size_t i = 0; i < 4; ++i) {
                sum[i] += weight * color[i];
            }
        }
        return sum;
    }

    // A linear filter on a cube: the texel beyond a corner is the average of the other three.
    Vec4 AroundCorner(uint32_t level, int size, const int (&first)[3], const double (&part)[3]) {
        Vec4 texels[4];
        int corner = -1;
        for (int tap = 0; tap < 4; ++tap) {
            const int x = first[0] + tap % 2;
            const int y = first[1] + tap / 2;
            if ((x < 0 || x >= size) && (y < 0 || y >= size)) {
                corner = tap;
            } else {
                texels[tap] = Fetch(level, x, y, 0);
            }
        }
        Vec4 sum{};
        for (size_t i = 0; i < 4; ++i) {
            if (corner >= 0) {
                texels[corner][i] = 0;
                double total = 0;
                for (const Vec4& texel : texels) {
                    total += texel[i];
                }
                texels[corner][i] = total / 3;
            }
            for (int tap = 0; tap < 4; ++tap) {
                sum[i] += (tap % 2 ? part[0] : 1 - part[0]) * (tap / 2 ? part[1] : 1 - part[1]) *
                          texels[tap][i];
            }
        }
        return sum;
    }

    Vec4 Fetch(uint32_t level, int x, int y, int z) {
        const VkExtent3D extent = image_.LevelExtent(level);
        Vec4 color;
        if (image_.IsCube()) {
            int face = place_.face;
            const auto size = static_cast<int>(extent.width);
            const bool x_out = x < 0 || x >= size;
            const bool y_out = y < 0 || y >= size;
            if (x_out && y_out) {
                tie_ = true;  // of a gather: the corner is what implementations like
                x = std::clamp(x, 0, size - 1);
                y = std::clamp(y, 0, size - 1);
            } else if (x_out || y_out) {
                double r[3];
                Direction(face, (2 * x + 1.0) / size - 1, (2 * y + 1.0) / size - 1, r);
                const Place place = OnCube(r);
                face = place.face;
                x = std::clamp(static_cast<int>(std::floor(place.at[0] * size)), 0, size - 1);
                y = std::clamp(static_cast<int>(std::floor(place.at[1] * size)), 0, size - 1);
            }
            color = image_.Texel(level, x, y, layer_ * 6 + face);
        } else {
            x = Wrap(x, static_cast<int>(extent.width), sampler_.addressModeU);
            if (axes_ > 1) {
                y = Wrap(y, static_cast<int>(extent.height), sampler_.addressModeV);
            }
            if (axes_ > 2) {
                z = Wrap(z, static_cast<int>(extent.depth), sampler_.addressModeW);
            }
            if (x < 0 || y < 0 || z < 0) {
                color = Border(sampler_.borderColor);
            } else {
                color = image_.Texel(level, x, y, axes_ > 2 ? z : layer_);
            }
        }
        if (query_.reference) {
            color[0] = Compare(sampler_.compareOp, *query_.reference, color[0]);
        }
        return color;
    }

    const ReferenceImage& image_;
    const VkSamplerCreateInfo& sampler_;
    const ReferenceQuery& query_;
    Place place_;
    int axes_;
    int layer_ = 0;
    bool tie_ = false;
};

}  // namespace

int ReferenceImage::Axes() const {
    switch (type) {
        case VK_IMAGE_VIEW_TYPE_1D:
        case VK_IMAGE_VIEW_TYPE_1D_ARRAY:
            return 1;
        case VK_IMAGE_VIEW_TYPE_3D:
        case VK_IMAGE_VIEW_TYPE_CUBE:
        case VK_IMAGE_VIEW_TYPE_CUBE_ARRAY:
            return 3;
        default:
            return 2;
    }
}

bool ReferenceImage::IsCube() const {
    return type == VK_IMAGE_VIEW_TYPE_CUBE || type == VK_IMAGE_VIEW_TYPE_CUBE_ARRAY;
}

bool ReferenceImage::IsArray() const {
    return type == VK_IMAGE_VIEW_TYPE_1D_ARRAY || type == VK_IMAGE_VIEW_TYPE_2D_ARRAY ||
           type == VK_IMAGE_VIEW_TYPE_CUBE_ARRAY;
}

VkExtent3D ReferenceImage::LevelExtent(uint32_t level) const {
    return {std::max(1u, extent.width >> level), std::max(1u, extent.height >> level),
            std::max(1u, extent.depth >> level)};
}

Vec4 ReferenceImage::Texel(uint32_t level, int x, int y, int z) const {
    const VkExtent3D size = LevelExtent(level);
    const size_t index =
        (static_cast<size_t>(z) * size.height + static_cast<size_t>(y)) * size.width +
        static_cast<size_t>(x);
    const auto bits = format->Decode(levels[level].data() + index * format->bytes());
    Vec4 color;
    for (size_t i = 0; i < 4; ++i) {
        color[i] = format->integer() ? static_cast<double>(bits[i])
                                     : static_cast<double>(std::bit_cast<float>(bits[i]));
    }
    return color;
}

Vec4 ReferenceImage::Swizzled(const Vec4& color) const {
    const VkComponentSwizzle mapping[] = {components.r, components.g, components.b, components.a};
    Vec4 result{};
    for (size_t i = 0; i < 4; ++i) {
        // Components that the format lacks, of a border's colour, too.
        auto component = [&](size_t c) { return format->bits[c] ? color[c] : c == 3 ? 1.0 : 0.0; };
        switch (mapping[i]) {
            case VK_COMPONENT_SWIZZLE_ZERO:
                result[i] = 0;
                break;
            case VK_COMPONENT_SWIZZLE_ONE:
                result[i] = 1;
                break;
            case VK_COMPONENT_SWIZZLE_IDENTITY:
                result[i] = component(i);
                break;
            default:
                result[i] = component(static_cast<size_t>(mapping[i] - VK_COMPONENT_SWIZZLE_R));
                break;
        }
    }
    return result;
}

std::optional<Vec4> SampleReference(const ReferenceImage& image,
                                    const VkSamplerCreateInfo& sampler,
                                    const ReferenceQuery& query) {
    return Sampling(image, sampler, query).Sample();
}

std::optional<std::pair<double, double>> LodReference(const ReferenceImage& image,
                                                      const VkSamplerCreateInfo& sampler,
                                                      const ReferenceQuery& query) {
    return Sampling(image, sampler, query).Lod();
}

std::optional<Vec4> GatherReference(const ReferenceImage& image,
                                    const VkSamplerCreateInfo& sampler,
                                    const ReferenceQuery& query,
                                    uint32_t component) {
    return Sampling(image, sampler, query).Gather(component);
}

}  // namespace fornax::test
