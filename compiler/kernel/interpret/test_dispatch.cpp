#include "compiler/kernel/interpret/test_dispatch.h"

#include <bit>
#include <cstring>

#include "compiler/kernel/interpret/random_kernel.h"

namespace fornax::kernel {

TestDispatch::TestDispatch(const ir::Kernel& kernel, uint64_t seed, bool overlap) {
    uint32_t invocations = kWorkgroups * kernel.workgroup_size[0] * kernel.workgroup_size[1] *
                           kernel.workgroup_size[2];
    uint32_t own_bytes = kOwnBytes * invocations;
    constexpr uint32_t kGap = 192;
    uint32_t begin0 = kGap;
    uint32_t begin1 = overlap ? begin0 + 128 : begin0 + own_bytes + kGap;
    uint32_t begin2 = begin0 + own_bytes + kBinding1Bytes + 2 * kGap;
    memory_.assign(begin2 + kBinding2Bytes + kGap, 0xa5);
    Random random(seed);
    auto fill = [&](uint8_t* data, uint32_t bytes) {
        for (uint32_t i = 0; i < bytes; i += 4) {
            // Small integers and small floats: comparisons then go either way.
            float number = static_cast<float>(random.Below(64)) / 8 - 4;
            uint32_t word = random.Chance(50) ? random.Below(16) : std::bit_cast<uint32_t>(number);
            std::memcpy(data + i, &word, 4);
        }
    };
    fill(memory_.data() + begin0, own_bytes);
    fill(memory_.data() + begin1, kBinding1Bytes);
    fill(memory_.data() + begin2, kBinding2Bytes);
    push_.resize((kernel.push_constant_bytes + 3) / 4 * 4);
    fill(push_.data(), static_cast<uint32_t>(push_.size()));
    if (push_.size() >= kPushBytes) {
        std::memcpy(push_.data() + kWidthOffset, &kernel.workgroup_size[0], 4);
    }
    auto address = [&](uint32_t begin) {
        return reinterpret_cast<uint64_t>(memory_.data() + begin);
    };
    descriptors_ = {{{address(begin0), own_bytes},
                     {address(begin1), kBinding1Bytes},
                     {address(begin2), kBinding2Bytes}}};
    sets_ = {descriptors_.data()};
    frame_.descriptor_sets = sets_.data();
    frame_.push_constants = push_.data();
    frame_.workgroup_count[0] = kWorkgroups;
    frame_.workgroup_count[1] = frame_.workgroup_count[2] = 1;
}

std::vector<uint32_t> TestDispatch::BindingWords(uint32_t binding) const {
    const hal::BufferDescriptor& descriptor = descriptors_[binding];
    std::vector<uint32_t> words(descriptor.size_bytes / 4);
    std::memcpy(words.data(), reinterpret_cast<const void*>(descriptor.address),
                descriptor.size_bytes);
    return words;
}

std::vector<uint32_t> TestDispatch::PushWords() const {
    std::vector<uint32_t> words(push_.size() / 4);
    if (!words.empty()) {
        std::memcpy(words.data(), push_.data(), push_.size());
    }
    return words;
}

}  // namespace fornax::kernel
