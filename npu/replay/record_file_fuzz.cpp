// Coverage-guided fuzzing of files of cost records: any bytes end as one sentence that is fit for a
// terminal, or as records that can be replayed, written and read again as the same.
#include "npu/replay/record_file.h"

#include <algorithm>
#include <random>

#include "base/fuzz_checks.h"
#include "base/fuzz_outcomes.h"
#include "npu/description/read.h"
#include "npu/replay/test_records.h"

namespace {

using fornax::CheckSentence;
using fornax::Result;
using fornax::npu::Record;
using Random = std::mt19937;

// Random records as a file, mostly without its checksum, so that changes of it get past that.
std::string MakeFile(Random& random) {
    std::string text = *fornax::npu::RecordText(
        fornax::npu::RandomRecords(random(), {.queues = 1 + static_cast<uint32_t>(random() % 3)}));
    if (random() % 8 != 0) {
        text.resize(text.rfind("{\"checksum"));
    }
    return text;
}

// Another number in place of one: small, or near to where a limit is.
size_t ChangeNumber(uint8_t* data, size_t size, size_t max_size, Random& random) {
    std::string text(reinterpret_cast<const char*>(data), size);
    const size_t from = text.find_first_of("0123456789", random() % size);
    if (from == std::string::npos) {
        return 0;
    }
    const size_t end = std::min(text.find_first_not_of("0123456789", from), text.size());
    const uint64_t number =
        random() % 2 == 0 ? random() % 10 : (uint64_t{1} << random() % 64) - random() % 2;
    text.replace(from, end - from, std::to_string(number));
    if (text.size() > max_size) {
        return 0;
    }
    std::ranges::copy(text, reinterpret_cast<char*>(data));
    return text.size();
}

}  // namespace

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    Random random(seed);
    const uint64_t choice = random() % 4;
    if (choice < 2 && size > 0) {
        if (const size_t changed = ChangeNumber(data, size, max_size, random); changed > 0) {
            return changed;
        }
    }
    if (choice == 2 || size == 0) {
        const std::string made = MakeFile(random);
        if (made.size() <= max_size) {
            std::ranges::copy(made, reinterpret_cast<char*>(data));
            return made.size();
        }
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const Result<std::vector<Record>> records = fornax::npu::ParseRecords(text, "a file");
    fornax::FuzzOutcomes::Count(records.ok());
    if (!records.ok()) {
        CheckSentence(records.error());
        return 0;
    }
    const Result<std::string> written = fornax::npu::RecordText(*records);
    if (!written.ok()) {
        CheckSentence(written.error());  // a line that is longer in the writer's form
        return 0;
    }
    const Result<std::vector<Record>> again = fornax::npu::ParseRecords(*written, "a file");
    if (!again.ok() || *fornax::npu::RecordText(*again) != *written) {
        fornax::FuzzFailure("Records are not read as they were written", *written);
    }
    static const fornax::npu::Description description = *fornax::npu::LoadDescription("edge-4");
    const auto replayed = fornax::npu::Replay(description, *records);
    if (!replayed.ok()) {
        CheckSentence(replayed.error());
    }
    return 0;
}
