// Coverage-guided fuzzing of the reader (-DFORNAX_FUZZ=ON): any bytes give an error or a verified
// kernel. ReadSpirv itself verifies what it returns. Seeds: any .spv files.
#include <cstring>

#include "compiler/kernel/spirv/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace fornax::kernel;
    std::vector<uint32_t> words(size / 4);
    if (!words.empty())
        std::memcpy(words.data(), data, words.size() * 4);
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
    (void)ReadSpirv(request);
    return 0;
}
