// Coverage-guided fuzzing of the reader: any bytes give an error or a verified
// kernel. ReadSpirv itself verifies what it returns. Seeds: any .spv files.
#include <algorithm>
#include <cstring>

#include "base/fuzz_outcomes.h"
#include "compiler/kernel/fuzz/mutate.h"
#include "compiler/kernel/spirv/reader.h"

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Changed bytes seldom get past the header, changed instructions do.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t max_size,
                                          unsigned seed) {
    using namespace fornax::kernel;
    constexpr size_t kHeaderBytes = 20;
    Random random(seed);
    if (size <= kHeaderBytes || random.Chance(20)) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    std::vector<uint32_t> words(size / 4);
    std::memcpy(words.data(), data, words.size() * 4);
    words = fuzz::Mutate(words, random);
    const size_t bytes = std::min(words.size(), max_size / 4) * 4;
    std::memcpy(data, words.data(), bytes);
    return bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace fornax::kernel;
    std::vector<uint32_t> words(size / 4);
    if (!words.empty()) {
        std::memcpy(words.data(), data, words.size() * 4);
    }
    CompileRequest request;
    request.spirv = words;
    SetLayout set;
    for (uint32_t i = 0; i < 4; ++i) {
        BindingLayout binding;
        binding.binding = i;
        binding.kind =
            i == 2 ? BindingLayout::Kind::kUniformBuffer : BindingLayout::Kind::kStorageBuffer;
        binding.count = i == 3 ? 4 : 1;
        binding.offset_bytes = i * 16;
        set.bindings.push_back(binding);
    }
    request.layout.sets = {set};
    request.layout.push_constant_bytes = 128;
    request.specialization = {{0, 4, 3}, {1, 4, 7}};
    fornax::FuzzOutcomes::Count(ReadSpirv(request).ok());
    return 0;
}
