// Operators whose number of results depends on the data.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "compiler/graph/host/tensors.h"

namespace fornax::graph::host {
namespace {

bool IsZero(const Tensor& tensor, int64_t index) {
    const Scalar value = tensor.At(index);
    return value.is_float ? value.number == 0 : value.integer == 0;
}

// Orders elements: NaN is greatest, u64 is unsigned.
int CompareElements(const Tensor& tensor, int64_t a, int64_t b) {
    if (tensor.element == ElementType::kString) {
        return (*tensor.strings)[static_cast<size_t>(a)].compare(
            (*tensor.strings)[static_cast<size_t>(b)]);
    }
    const Scalar x = tensor.At(a), y = tensor.At(b);
    if (x.is_float) {
        const bool x_nan = std::isnan(x.number), y_nan = std::isnan(y.number);
        if (x_nan || y_nan) {
            return (x_nan ? 1 : 0) - (y_nan ? 1 : 0);
        }
        return x.number < y.number ? -1 : x.number > y.number ? 1 : 0;
    }
    if (tensor.element == ElementType::kU64) {
        const uint64_t u = static_cast<uint64_t>(x.integer), v = static_cast<uint64_t>(y.integer);
        return u < v ? -1 : u > v ? 1 : 0;
    }
    return x.integer < y.integer ? -1 : x.integer > y.integer ? 1 : 0;
}

// A tensor as [outer, count, inner] slices along an axis.
struct Slices {
    int64_t outer = 1, count = 1, inner = 1;

    Slices(const Tensor& tensor, std::optional<int64_t> axis) {
        if (!axis.has_value()) {
            count = tensor.count();
            return;
        }
        for (size_t i = 0; i < tensor.dims.size(); ++i) {
            const int64_t at = static_cast<int64_t>(i);
            (at < *axis ? outer : at == *axis ? count : inner) *= tensor.dims[i];
        }
    }
    int64_t At(int64_t o, int64_t slice, int64_t i) const {
        return (o * count + slice) * inner + i;
    }
    int Compare(const Tensor& tensor, int64_t a, int64_t b) const {
        for (int64_t o = 0; o < outer; ++o) {
            for (int64_t i = 0; i < inner; ++i) {
                const int order = CompareElements(tensor, At(o, a, i), At(o, b, i));
                if (order != 0) {
                    return order;
                }
            }
        }
        return 0;
    }
};

Tensor TakeSlices(const Tensor& tensor,
                  const Slices& slices,
                  std::vector<int64_t> dims,
                  std::span<const int64_t> chosen) {
    std::vector<std::string> strings;
    std::vector<int64_t> from;
    for (int64_t o = 0; o < slices.outer; ++o) {
        for (const int64_t slice : chosen) {
            for (int64_t i = 0; i < slices.inner; ++i) {
                from.push_back(slices.At(o, slice, i));
            }
        }
    }
    if (tensor.element == ElementType::kString) {
        for (const int64_t index : from) {
            strings.push_back((*tensor.strings)[static_cast<size_t>(index)]);
        }
        return FromStrings(std::move(dims), std::move(strings));
    }
    uint8_t* data = nullptr;
    Tensor result = Tensor::Zeros(tensor.element, std::move(dims), &data);
    const int64_t size = BytesOf(tensor.element);
    for (size_t i = 0; i < from.size(); ++i) {
        std::memcpy(data + static_cast<int64_t>(i) * size, tensor.data->data() + from[i] * size,
                    static_cast<size_t>(size));
    }
    return result;
}

struct Box {
    float x0, x1, y0, y1;
    float Area() const { return (x1 - x0) * (y1 - y0); }
};

Box ReadBox(const Tensor& boxes, int64_t index, bool centre) {
    float v[4];
    std::memcpy(v, boxes.data->data() + index * 16, sizeof(v));
    if (centre) {
        return {v[0] - v[2] / 2, v[0] + v[2] / 2, v[1] - v[3] / 2, v[1] + v[3] / 2};
    }
    return {std::min(v[1], v[3]), std::max(v[1], v[3]), std::min(v[0], v[2]), std::max(v[0], v[2])};
}

// Whether the intersection over the union is above the threshold.
bool Overlaps(const Box& a, const Box& b, float threshold) {
    const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (!(width > 0) || !(height > 0)) {
        return false;
    }
    const float common = width * height;
    const float whole = a.Area() + b.Area() - common;
    return a.Area() > 0 && b.Area() > 0 && whole > 0 && common / whole > threshold;
}

}  // namespace

Results NonZero(const op::HostCall&, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    const Tensor& x = arguments[0];
    if (x.element == ElementType::kString) {
        return Invalid("the operand is strings, not numbers");
    }
    std::vector<int64_t> places;
    for (int64_t i = 0; i < x.count(); ++i) {
        if (!IsZero(x, i)) {
            places.push_back(i);
        }
    }
    const int64_t rank = static_cast<int64_t>(x.dims.size());
    const int64_t count = static_cast<int64_t>(places.size());
    std::vector<int64_t> result(static_cast<size_t>(rank * count));
    for (int64_t n = 0; n < count; ++n) {
        int64_t rest = places[static_cast<size_t>(n)];
        for (int64_t axis = rank; axis-- > 0;) {
            result[static_cast<size_t>(axis * count + n)] =
                rest % x.dims[static_cast<size_t>(axis)];
            rest /= x.dims[static_cast<size_t>(axis)];
        }
    }
    return std::vector<Tensor>{Tensor::FromIntegers({rank, count}, result)};
}

// A count as i64, then tensors of which that many slices along their first axis are wanted.
Results First(const op::HostCall&, Arguments arguments) {
    if (arguments.size() < 2 || arguments[0].element != ElementType::kI64 ||
        arguments[0].count() != 1) {
        return Invalid(fmt::format("it has {} operands, or no count", arguments.size()));
    }
    const int64_t count = arguments[0].At(0).integer;
    std::vector<Tensor> results;
    for (const Tensor& tensor : arguments.subspan(1)) {
        if (tensor.dims.empty() || count < 0 || count > tensor.dims[0]) {
            return Invalid(
                fmt::format("{} slices of {} are wanted", count, tensor.type().ToString()));
        }
        std::vector<int64_t> dims = tensor.dims, chosen(static_cast<size_t>(count));
        dims[0] = count;
        std::iota(chosen.begin(), chosen.end(), 0);
        results.push_back(TakeSlices(tensor, Slices(tensor, 0), std::move(dims), chosen));
    }
    return results;
}

Results Unique(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    const Tensor& x = arguments[0];
    std::optional<int64_t> axis;
    if (call.attributes.contains("axis")) {
        axis = Attribute<int64_t>(call, "axis");
        if (*axis < 0 || *axis >= static_cast<int64_t>(x.dims.size())) {
            return Invalid(fmt::format("the axis {} is not one of {}", *axis, x.dims.size()));
        }
    }
    const Slices slices(x, axis);
    std::vector<int64_t> order(static_cast<size_t>(slices.count));
    std::iota(order.begin(), order.end(), 0);
    // Equal slices stay in their order.
    std::ranges::sort(order, [&](int64_t a, int64_t b) {
        const auto compared = slices.Compare(x, a, b);
        return compared != 0 ? compared < 0 : a < b;
    });
    // Groups of equal slices, each with its first place.
    std::vector<int64_t> first, counts, group(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
        if (i == 0 || slices.Compare(x, order[i - 1], order[i]) != 0) {
            first.push_back(order[i]);
            counts.push_back(0);
        }
        ++counts.back();
        group[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
    }
    if (Attribute<int64_t>(call, "sorted") == 0) {
        // In the order of their first places.
        std::vector<size_t> by_place(first.size());
        std::iota(by_place.begin(), by_place.end(), size_t{0});
        std::ranges::sort(by_place, [&](size_t a, size_t b) { return first[a] < first[b]; });
        std::vector<int64_t> new_first, new_counts, number(first.size());
        for (size_t i = 0; i < by_place.size(); ++i) {
            number[by_place[i]] = static_cast<int64_t>(i);
            new_first.push_back(first[by_place[i]]);
            new_counts.push_back(counts[by_place[i]]);
        }
        for (int64_t& g : group) {
            g = number[static_cast<size_t>(g)];
        }
        first = std::move(new_first);
        counts = std::move(new_counts);
    }
    const int64_t distinct = static_cast<int64_t>(first.size());
    std::vector<int64_t> dims = {distinct};
    if (axis.has_value()) {
        dims = x.dims;
        dims[static_cast<size_t>(*axis)] = distinct;
    }
    return std::vector<Tensor>{
        TakeSlices(x, slices, std::move(dims), first), Tensor::FromIntegers({distinct}, first),
        Tensor::FromIntegers({slices.count}, group), Tensor::FromIntegers({distinct}, counts)};
}

// Boxes f32 [batch, boxes, 4], scores f32 [batch, classes, boxes], the most boxes a class, the
// overlap's and the score's threshold.
Results NonMaxSuppression(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 5));
    const Tensor &boxes = arguments[0], &scores = arguments[1];
    if (boxes.element != ElementType::kF32 || scores.element != ElementType::kF32 ||
        boxes.dims.size() != 3 || scores.dims.size() != 3 || boxes.dims[2] != 4 ||
        boxes.dims[0] != scores.dims[0] || boxes.dims[1] != scores.dims[2] ||
        arguments[2].count() != 1 || arguments[3].count() != 1 || arguments[4].count() != 1) {
        return Invalid("the boxes and scores do not fit");
    }
    const int64_t most = arguments[2].At(0).integer;
    const float overlap = static_cast<float>(arguments[3].At(0).number);
    const double least = arguments[4].At(0).number;
    const bool centre = Attribute<int64_t>(call, "centre") != 0;
    const int64_t count = boxes.dims[1], classes = scores.dims[1];
    std::vector<int64_t> selected;
    for (int64_t batch = 0; batch < boxes.dims[0]; ++batch) {
        for (int64_t label = 0; label < classes; ++label) {
            const int64_t row = (batch * classes + label) * count;
            const auto score = [&](int64_t i) { return scores.At(row + i).number; };
            std::vector<int64_t> order;
            for (int64_t i = 0; i < count; ++i) {
                if (score(i) > least) {
                    order.push_back(i);
                }
            }
            std::ranges::sort(order, [&](int64_t a, int64_t b) {
                return score(a) != score(b) ? score(a) > score(b) : a < b;
            });
            std::vector<Box> kept;
            for (const int64_t i : order) {
                if (static_cast<int64_t>(kept.size()) >= most) {
                    break;
                }
                const Box box = ReadBox(boxes, batch * count + i, centre);
                if (std::ranges::none_of(
                        kept, [&](const Box& other) { return Overlaps(box, other, overlap); })) {
                    kept.push_back(box);
                    selected.insert(selected.end(), {batch, label, i});
                }
            }
        }
    }
    return std::vector<Tensor>{
        Tensor::FromIntegers({static_cast<int64_t>(selected.size()) / 3, 3}, selected)};
}

}  // namespace fornax::graph::host
