// Coverage-guided fuzzing of the reader of GGUF files: any bytes end as a summary or as one
// sentence that is fit for a terminal, and what is whole is not whole without its end.
#include "tools/fornax/gguf.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/fuzz_checks.h"
#include "base/fuzz_outcomes.h"

namespace {

using fornax::Result;
using fornax::tool::GgufSummary;
using fornax::tool::ReadGguf;
using Random = std::mt19937;

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
    std::string& text() { return text_; }

  private:
    std::string text_;
};

// A number that files have: small, or near to where a type ends.
uint64_t Number(Random& random) {
    switch (random() % 6) {
        case 0:
            return uint64_t{1} << random() % 64;
        case 1:
            return ~uint64_t{0} >> random() % 64;
        case 2:
            return random() % 300;
        default:
            return random() % 6;
    }
}

std::string Name(Random& random) {
    static constexpr std::string_view kNames[] = {"general.architecture", "general.alignment", "a",
                                                  "\x1b[0m", ""};
    return std::string(kNames[random() % std::size(kNames)]);
}

void AddPair(File& file, Random& random) {
    static constexpr uint64_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const auto type = static_cast<uint32_t>(random() % 14);
    file.Text(Name(random)).Number(type);
    if (type == 8) {
        file.Text("llama");
    } else if (type == 9) {
        const auto element = static_cast<uint32_t>(random() % 14);
        const uint64_t count = random() % 8 == 0 ? Number(random) : random() % 4;
        file.Number(element).Number(count);
        for (uint64_t i = 0; i < std::min<uint64_t>(count, 4); ++i) {
            element == 8 ? file.Text("token")
                         : file.Raw(std::string(element < 13 ? kBytes[element] : 0, '\1'));
        }
    } else {
        const auto value = static_cast<uint32_t>(random() % 2 == 0 ? 64 : Number(random));
        std::string bytes(8, '\0');
        std::memcpy(bytes.data(), &value, sizeof(value));
        file.Raw(bytes.substr(0, type < 13 ? kBytes[type] : 0));
    }
}

void AddTensor(File& file, Random& random) {
    file.Text(Name(random));
    const auto rank = static_cast<uint32_t>(random() % 16 == 0 ? Number(random) : random() % 5);
    file.Number(rank);
    for (uint32_t d = 0; d < std::min(rank, 6u); ++d) {
        file.Number(random() % 8 == 0 ? Number(random) : uint64_t{32});
    }
    file.Number(static_cast<uint32_t>(random() % 45));
    file.Number(random() % 8 == 0 ? Number(random) : uint64_t{random() % 8 * 32});
}

// A file whose counts are right most of the time.
std::string MakeFile(Random& random) {
    const uint64_t tensors = random() % 4, pairs = random() % 4;
    const auto version = static_cast<uint32_t>(random() % 16 == 0 ? Number(random) : 3);
    File file;
    file.Raw("GGUF").Number(version).Number(random() % 16 == 0 ? Number(random) : tensors);
    file.Number(random() % 16 == 0 ? Number(random) : pairs);
    for (uint64_t i = 0; i < pairs; ++i) {
        AddPair(file, random);
    }
    for (uint64_t i = 0; i < tensors; ++i) {
        AddTensor(file, random);
    }
    file.text().resize(file.text().size() + random() % 2048, 'x');
    return file.text();
}

void Check(const Result<GgufSummary>& summary) {
    if (summary.ok()) {
        return;
    }
    fornax::CheckSentence(summary.error());
    const std::string& message = summary.error().message;
    if (summary.error().code != fornax::ErrorCode::kDataLoss || !message.starts_with("a file ") ||
        message.size() > 400) {
        fornax::FuzzFailure("Not what files are refused with", message);
    }
}

}  // namespace

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Counts and sizes lie in front of what they count, so changed bytes alone seldom get far.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    if (size > 16 && random() % 2 == 0) {
        if (random() % 2 == 0) {
            return LLVMFuzzerMutate(data, size, max_size);
        }
        const uint64_t number = Number(random);
        const size_t bytes = random() % 2 == 0 ? 4 : 8;
        std::memcpy(data + random() % (size - bytes), &number, bytes);
        return size;
    }
    const std::string made = MakeFile(random);
    if (made.size() > max_size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    std::ranges::copy(made, reinterpret_cast<char*>(data));
    return made.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // The copy has the exact size, so that a read behind the end is found.
    const std::vector<std::byte> file(reinterpret_cast<const std::byte*>(data),
                                      reinterpret_cast<const std::byte*>(data) + size);
    const Result<GgufSummary> summary = ReadGguf(file, "a file");
    fornax::FuzzOutcomes::Count(summary.ok());
    Check(summary);
    // Without its end it is cut short, or it has bytes that are no tensor's.
    for (const size_t fewer : {size - size / 2, size - std::min<size_t>(size, 1)}) {
        const std::vector<std::byte> cut(file.begin(),
                                         file.begin() + static_cast<std::ptrdiff_t>(fewer));
        const Result<GgufSummary> part = ReadGguf(cut, "a file");
        Check(part);
        if (part.ok() && fewer < size && summary.ok() && part->tensors != summary->tensors) {
            std::abort();
        }
        if (part.ok() && !summary.ok()) {
            std::fprintf(stderr, "A part is accepted, the whole is not.\n");
            std::abort();
        }
    }
    return 0;
}
