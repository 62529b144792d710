// Weights are packed when the first graph that multiplies by them is bound.
#include "plugins/ggml/weights.h"

#include <sys/mman.h>

#include <algorithm>

#include <fmt/format.h>

namespace fornax::ggml_plugin {

using ggml_frontend::Part;

bool Overlap(const void* a, uint64_t size_a, const void* b, uint64_t size_b) {
    const auto* first = static_cast<const uint8_t*>(a);
    const auto* second = static_cast<const uint8_t*>(b);
    return first < second + size_b && second < first + size_a;
}

Result<std::unique_ptr<Pages>> Pages::Allocate(uint64_t size_bytes) {
    constexpr uint64_t kPage = 4096;
    std::unique_ptr<Pages> pages(new Pages());
    const uint64_t rounded = std::max<uint64_t>((size_bytes + kPage - 1) / kPage * kPage, kPage);
    void* data = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return Error{ErrorCode::kOutOfHostMemory,
                     fmt::format("There is no memory for {} bytes.", size_bytes)};
    }
    pages->data_ = static_cast<uint8_t*>(data);
    pages->size_bytes_ = rounded;
    madvise(data, rounded, MADV_HUGEPAGE);  // else writing small pages first takes most of a pack
    return pages;
}

Pages::~Pages() {
    if (data_ != nullptr) {
        munmap(data_, size_bytes_);
    }
}

Result<std::shared_ptr<const PackedWeights>> WeightStore::Get(const ggml_frontend::TypeInfo& type,
                                                              const void* rows,
                                                              uint64_t size_bytes,
                                                              int64_t k,
                                                              int64_t n) {
    const std::lock_guard lock(mutex_);
    for (const auto& pack : packs_) {
        if (pack->rows == rows && pack->type == &type && pack->k == k && pack->n == n) {
            return pack;
        }
    }
    auto pack = std::make_shared<PackedWeights>();
    pack->type = &type;
    pack->rows = rows;
    pack->row_bytes = size_bytes;
    pack->k = k;
    pack->n = n;
    ggml_frontend::PackTarget to = {};
    for (size_t i = 0; i < to.size(); ++i) {
        const uint64_t bytes = ggml_frontend::PackBytes(type, static_cast<Part>(i), k, n);
        if (bytes != 0) {
            FORNAX_ASSIGN_OR_RETURN(pack->parts[i], Pages::Allocate(bytes));
            to[i] = pack->parts[i]->data();
        }
    }
    ggml_frontend::Pack(type, static_cast<const uint8_t*>(rows), k, n, to);
    packs_.push_back(pack);
    return packs_.back();
}

void WeightStore::Forget(const void* begin, uint64_t size) {
    const std::lock_guard lock(mutex_);
    std::erase_if(packs_, [&](const auto& pack) {
        return Overlap(pack->rows, pack->row_bytes, begin, size);
    });
}

}  // namespace fornax::ggml_plugin
