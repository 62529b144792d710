// Coverage-guided fuzzing of what a sweep begins with, descriptions and spaces of them: any text
// ends as a machine on which records can be replayed, or as one sentence that is fit for a
// terminal.
#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "base/fuzz_checks.h"
#include "base/fuzz_outcomes.h"
#include "npu/description/read.h"
#include "npu/description/space.h"
#include "npu/replay/test_records.h"

namespace {

using fornax::CheckSentence;
using fornax::Result;
using fornax::npu::Description;
using fornax::npu::Field;
using Random = std::mt19937;

// A value of a field: mostly one that it may have.
std::string Value(const Field& field, Random& random) {
    if (random() % 24 == 0) {
        static constexpr const char* kOdd[] = {"-1",  "nan", "inf", "1e400", "\"best\"",   "true",
                                               "{ }", "[]",  "1.5", "0x10",  "\"\\u001b\""};
        return kOdd[random() % std::size(kOdd)];
    }
    if (field.kind == fornax::npu::FieldKind::kWord) {
        return fmt::format("\"{}\"", field.words[random() % field.words.size()]);
    }
    const double exponent = std::uniform_real_distribution<double>(0, 1)(random);
    const double least = std::max(field.least, 1e-3);
    double value = least * std::pow(field.most / least, exponent);
    if (random() % 8 == 0) {
        value = random() % 2 == 0 ? field.least : field.most;
    }
    if (field.kind == fornax::npu::FieldKind::kInteger) {
        // Powers of two fit together.
        return fmt::format("{:.0f}", random() % 4 == 0
                                         ? std::floor(value)
                                         : std::exp2(std::floor(std::log2(std::max(value, 1.0)))));
    }
    return fmt::format("{}", value);
}

std::string MakeText(Random& random) {
    static constexpr const char* kBases[] = {"edge-4", "laptop-45", "dc-400", "none", "../x"};
    std::string text =
        fmt::format("base = \"{}\"\n", kBases[random() % (random() % 8 == 0 ? 5 : 3)]);
    const std::span<const Field> fields = fornax::npu::Fields();
    for (uint64_t i = random() % 6; i > 0; --i) {
        const Field& field = fields[random() % fields.size()];
        text += fmt::format("{}.{} = ", field.table, field.key);
        if (random() % 4 == 0) {
            text += "[";
            for (uint64_t values = random() % 4; values > 0; --values) {
                text += Value(field, random) + ", ";
            }
            text += "]\n";
        } else {
            text += Value(field, random) + "\n";
        }
    }
    return text;
}

void CheckMachine(const Description& description) {
    if (const fornax::Status status = fornax::npu::CheckDescription(description); !status.ok()) {
        fornax::FuzzFailure("An accepted description contradicts itself", status.error().message);
    }
    for (const Field& field : fornax::npu::Fields()) {
        const double value = field.get(description);
        if (!(value >= field.least && value <= field.most)) {
            fornax::FuzzFailure("A value is beyond its limits", field.key);
        }
    }
    static const std::vector<fornax::npu::Record> records =
        fornax::npu::RandomRecords(7, {.queues = 2});
    const auto replayed = fornax::npu::Replay(description, records);
    if (!replayed.ok()) {
        CheckSentence(replayed.error());
    }
}

}  // namespace

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    if (random() % 2 == 0) {
        const std::string made = MakeText(random);
        if (made.size() <= max_size) {
            std::ranges::copy(made, reinterpret_cast<char*>(data));
            return made.size();
        }
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const Result<Description> description = fornax::npu::ParseDescription(text, "a file");
    fornax::FuzzOutcomes::Count(description.ok());
    if (description.ok()) {
        CheckMachine(*description);
    } else {
        CheckSentence(description.error());
    }
    const Result<fornax::npu::Space> space = fornax::npu::ParseSpace(text, "a file", "/nowhere");
    if (!space.ok()) {
        CheckSentence(space.error());
        return 0;
    }
    for (const uint64_t index : {uint64_t{0}, space->count() - 1}) {
        const Result<Description> one = space->At(index);
        if (one.ok()) {
            CheckMachine(*one);
        } else {
            CheckSentence(one.error());
        }
    }
    return 0;
}
