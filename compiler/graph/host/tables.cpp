// Operators that look values up in tables: n-gram counts and label encoders.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "compiler/graph/host/tensors.h"

namespace fornax::graph::host {
namespace {

using Gram = std::vector<std::string>;

// Elements as text, so that integers and strings are looked up alike.
std::vector<std::string> Keys(const Tensor& tensor) {
    if (tensor.element == ElementType::kString) {
        return *tensor.strings;
    }
    std::vector<std::string> keys;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        const Scalar value = tensor.At(i);
        keys.push_back(value.is_float ? fmt::format("{}", value.number)
                                      : fmt::format("{}", value.integer));
    }
    return keys;
}

// Columns and numbers of the n-grams in the pool.
struct GramTable {
    struct Entry {
        size_t number;
        int64_t column;
    };
    std::map<Gram, Entry> entries;
    int64_t width = 0;
};

Result<GramTable> ReadGrams(const op::HostCall& call) {
    GramTable table;
    Gram pool = Attribute<std::vector<std::string>>(call, "pool_strings");
    for (const int64_t value : Attribute<std::vector<int64_t>>(call, "pool_int64s")) {
        pool.push_back(fmt::format("{}", value));
    }
    const auto starts = Attribute<std::vector<int64_t>>(call, "ngram_counts");
    const auto columns = Attribute<std::vector<int64_t>>(call, "ngram_indexes");
    size_t number = 0;
    for (size_t n = 0; n < starts.size(); ++n) {
        const int64_t size = static_cast<int64_t>(pool.size());
        const int64_t end = n + 1 < starts.size() ? starts[n + 1] : size;
        if (starts[n] < 0 || end < starts[n] || end > size) {
            return Invalid(fmt::format("the n-grams {} to {} are not in a pool of {}", starts[n], end, size));
        }
        const int64_t length = static_cast<int64_t>(n) + 1;
        for (int64_t at = starts[n]; at + length <= end; at += length, ++number) {
            if (number >= columns.size()) {
                return Invalid(fmt::format("there are more n-grams than the {} columns", columns.size()));
            }
            table.entries.emplace(Gram(pool.begin() + at, pool.begin() + at + length),
                                  GramTable::Entry{number, columns[number]});
        }
    }
    table.width = columns.empty() ? 0 : *std::ranges::max_element(columns) + 1;
    return table;
}

}  // namespace

Results TfIdf(const op::HostCall& call, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 1));
    const Tensor& x = arguments[0];
    FORNAX_ASSIGN_OR_RETURN(const GramTable table, ReadGrams(call));
    const int64_t shortest = Attribute<int64_t>(call, "min_gram_length");
    const int64_t longest = Attribute<int64_t>(call, "max_gram_length");
    const int64_t skips = Attribute<int64_t>(call, "max_skip_count");
    const std::string mode = Attribute<std::string>(call, "mode");
    const auto weights = Attribute<std::vector<double>>(call, "weights");
    const std::vector<std::string> keys = Keys(x);
    const int64_t rows = x.dims.size() == 2 ? x.dims[0] : 1;
    const int64_t length = rows == 0 ? 0 : x.count() / rows;
    if (shortest < 1 || longest > 64 || skips < 0 || skips > 1024) {
        return Invalid(fmt::format("n-grams of {} to {} with {} skips are not supported", shortest, longest, skips));
    }
    std::vector<float> result(static_cast<size_t>(rows * table.width), 0);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t n = shortest; n <= longest; ++n) {
            // Single elements are not counted again for each distance.
            for (int64_t distance = 1; distance <= (n == 1 ? 1 : skips + 1); ++distance) {
                for (int64_t at = 0; at + (n - 1) * distance < length; ++at) {
                    Gram gram;
                    for (int64_t i = 0; i < n; ++i) {
                        gram.push_back(keys[static_cast<size_t>(row * length + at + i * distance)]);
                    }
                    const auto found = table.entries.find(gram);
                    if (found == table.entries.end()) {
                        continue;
                    }
                    float& cell = result[static_cast<size_t>(row * table.width + found->second.column)];
                    const float weight = found->second.number < weights.size()
                                             ? static_cast<float>(weights[found->second.number])
                                             : 1;
                    if (mode == "TF") {
                        cell += 1;
                    } else if (mode == "IDF") {
                        cell = weight;
                    } else {
                        cell += weight;
                    }
                }
            }
        }
    }
    std::vector<int64_t> dims = {table.width};
    if (x.dims.size() == 2) {
        dims.insert(dims.begin(), rows);
    }
    return std::vector<Tensor>{Tensor::FromFloats(std::move(dims), result)};
}

// Operands: x, keys, values and the default value, each of one element type with its like.
Results LabelEncode(const op::HostCall&, Arguments arguments) {
    FORNAX_RETURN_IF_ERROR(CheckCount(arguments, 4));
    const Tensor &x = arguments[0], &values = arguments[2], &otherwise = arguments[3];
    if (arguments[1].element != x.element || otherwise.element != values.element ||
        otherwise.count() != 1 || values.count() != arguments[1].count()) {
        return Invalid("the keys and values do not fit");
    }
    std::map<std::string, int64_t> places;
    const std::vector<std::string> keys = Keys(arguments[1]);
    for (size_t i = 0; i < keys.size(); ++i) {
        places[keys[i]] = static_cast<int64_t>(i);
    }
    std::vector<std::string> texts;
    uint8_t* data = nullptr;
    Tensor result = Tensor::Zeros(values.element, x.dims, &data);
    const int64_t size = BytesOf(values.element);
    const std::vector<std::string> looked_up = Keys(x);
    for (size_t i = 0; i < looked_up.size(); ++i) {
        const auto found = places.find(looked_up[i]);
        const Tensor& from = found == places.end() ? otherwise : values;
        const int64_t at = found == places.end() ? 0 : found->second;
        if (values.element == ElementType::kString) {
            texts.push_back((*from.strings)[static_cast<size_t>(at)]);
        } else {
            std::copy_n(from.data->data() + at * size, size, data + static_cast<int64_t>(i) * size);
        }
    }
    return std::vector<Tensor>{values.element == ElementType::kString ? FromStrings(x.dims, std::move(texts))
                                                                      : result};
}

}  // namespace fornax::graph::host
