// Sorts each sample's scores.
#include "tools/fornax/predictions.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "base/file.h"
#include "tools/tensors/tensor_file.h"

namespace fornax::tool {
namespace {

using graph::Tensor;

constexpr size_t kMaxLabelBytes = size_t{1} << 26;
constexpr size_t kDefaultTop = 5;
// More would not be read.
constexpr size_t kMaxListedSamples = 16;
constexpr size_t kMaxListedMistakes = 16;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

struct Scores {
    std::vector<double> values;
    size_t samples = 0;
    size_t classes = 0;

    double At(size_t sample, size_t index) const { return values[sample * classes + index]; }
    // The `count` classes with the greatest scores, the greatest first.
    std::vector<size_t> Top(size_t sample, size_t count) const {
        std::vector<size_t> order(classes);
        std::iota(order.begin(), order.end(), 0);
        count = std::min(count, classes);
        std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                          [&](size_t a, size_t b) {
                              return At(sample, a) != At(sample, b) ? At(sample, a) > At(sample, b)
                                                                    : a < b;
                          });
        order.resize(count);
        return order;
    }
};

Result<Scores> ScoresOf(const std::vector<Tensor>& outputs) {
    if (outputs.empty() || outputs[0].dims.empty() || outputs[0].dims.back() == 0 ||
        outputs[0].element == graph::ElementType::kString) {
        return Invalid("The first output is no list of scores, so there are no classes to name.");
    }
    Scores scores;
    scores.classes = static_cast<size_t>(outputs[0].dims.back());
    scores.samples = static_cast<size_t>(outputs[0].count()) / scores.classes;
    for (int64_t i = 0; i < outputs[0].count(); ++i) {
        const double value = outputs[0].At(i).ToDouble(outputs[0].element);
        scores.values.push_back(value == value ? value : -INFINITY);  // no number is never greatest
    }
    return scores;
}

Result<std::vector<std::string>> ReadLabels(const std::string& path, size_t classes) {
    FORNAX_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxLabelBytes));
    std::vector<std::string> labels;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) {
            line.pop_back();
        }
        labels.push_back(std::move(line));
    }
    if (labels.size() != classes) {
        return Invalid(fmt::format("The file {} names {} classes, and the first output has {}.",
                                   path, labels.size(), classes));
    }
    return labels;
}

Result<std::vector<int64_t>> ReadTruth(const std::string& path, size_t samples) {
    FORNAX_ASSIGN_OR_RETURN(const std::vector<tensors::NamedTensor> read,
                            tensors::ReadTensorFile(path));
    if (read.size() != 1 || !graph::IsInteger(read[0].tensor.element)) {
        return Invalid(fmt::format("The file {} does not hold one array of integers.", path));
    }
    const Tensor& tensor = read[0].tensor;
    if (static_cast<size_t>(tensor.count()) != samples) {
        return Invalid(fmt::format("The file {} holds {} classes for {} samples.", path,
                                   tensor.count(), samples));
    }
    std::vector<int64_t> truth;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        truth.push_back(tensor.At(i).integer);
    }
    return truth;
}

std::string DescribeTop(const Scores& scores, size_t top, const std::vector<std::string>& labels) {
    std::string text;
    for (size_t sample = 0; sample < std::min(scores.samples, kMaxListedSamples); ++sample) {
        if (scores.samples > 1) {
            text += fmt::format("sample {}\n", sample);
        }
        for (const size_t index : scores.Top(sample, top)) {
            text += fmt::format("  {:>12.6g}  {}{}\n", scores.At(sample, index), index,
                                labels.empty() ? "" : " " + labels[index]);
        }
    }
    if (scores.samples > kMaxListedSamples) {
        text += fmt::format("and {} samples more\n", scores.samples - kMaxListedSamples);
    }
    return text;
}

std::string DescribeTruth(const Scores& scores, const std::vector<int64_t>& truth) {
    std::string text;
    size_t right = 0, wrong = 0;
    for (size_t sample = 0; sample < scores.samples; ++sample) {
        const size_t prediction = scores.Top(sample, 1)[0];
        if (static_cast<int64_t>(prediction) == truth[sample]) {
            ++right;
        } else if (++wrong <= kMaxListedMistakes) {
            text += fmt::format("  sample {} is {}, taken for {} ({:.3f})\n", sample, truth[sample],
                                prediction, scores.At(sample, prediction));
        }
    }
    if (wrong > kMaxListedMistakes) {
        text += fmt::format("  and {} more\n", wrong - kMaxListedMistakes);
    }
    const double share =
        static_cast<double>(right) / static_cast<double>(std::max<size_t>(scores.samples, 1));
    return text +
           fmt::format("accuracy   {:.2f} % ({} of {})\n", 100 * share, right, scores.samples);
}

}  // namespace

void PredictionOptions::AddTo(CLI::App& command) {
    command.add_option("--labels", labels,
                       "A text file with the name of a class a line; prints the best by name");
    command
        .add_option("--top", top, "How many classes are printed of each sample (5 with --labels)")
        ->check(CLI::Range(1, 1'000'000));
    command.add_option("--truth", truth,
                       "The right class of every sample (.npy, .pb); prints the accuracy");
}

Result<std::string> DescribePredictions(const PredictionOptions& options,
                                        const std::vector<Tensor>& outputs) {
    if (options.labels.empty() && options.top == 0 && options.truth.empty()) {
        return std::string();
    }
    FORNAX_ASSIGN_OR_RETURN(const Scores scores, ScoresOf(outputs));
    std::string text;
    std::vector<std::string> labels;
    if (!options.labels.empty()) {
        FORNAX_ASSIGN_OR_RETURN(labels, ReadLabels(options.labels, scores.classes));
    }
    if (!labels.empty() || options.top != 0) {
        text += DescribeTop(scores, options.top == 0 ? kDefaultTop : options.top, labels);
    }
    if (!options.truth.empty()) {
        FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> truth,
                                ReadTruth(options.truth, scores.samples));
        text += DescribeTruth(scores, truth);
    }
    return text;
}

}  // namespace fornax::tool
