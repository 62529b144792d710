// Weights are packed when the first graph that reads packs of them is bound, or before, part by
// part.
#include "plugins/ggml/weights.h"

#include <sys/mman.h>

#include <algorithm>

#include <fmt/format.h>

#include "plugins/ggml/fault.h"

namespace fornax::ggml_plugin {

using ggml_frontend::Part;

namespace {

// The runs that pack what is put off, if it is more than a run packs anyway.
constexpr uint64_t kRunsOfPacking = 16;
constexpr uint64_t kLeastPartBytes = uint64_t{4} << 20;

}  // namespace

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

WeightStore::Packs::const_iterator WeightStore::Find(const WeightMatrix& matrix) const {
    return std::find_if(packs_.begin(), packs_.end(),
                        [&](const auto& pack) { return pack->matrix == matrix; });
}

Result<std::shared_ptr<const PackedWeights>> WeightStore::Get(const WeightMatrix& matrix) {
    const std::lock_guard lock(mutex_);
    FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const PackedWeights> pack, GetLocked(matrix));
    if (std::erase(put_off_, matrix) != 0) {
        NotePutOff();
    }
    return pack;
}

Result<std::shared_ptr<const PackedWeights>> WeightStore::GetLocked(const WeightMatrix& matrix) {
    const auto found = Find(matrix);
    if (found != packs_.end()) {
        return *found;
    }
    FORNAX_RETURN_IF_ERROR(InjectedFault("packs", ErrorCode::kOutOfHostMemory));
    auto pack = std::make_shared<PackedWeights>();
    pack->matrix = matrix;
    ggml_frontend::PackTarget to = {};
    for (size_t i = 0; i < to.size(); ++i) {
        const uint64_t bytes =
            ggml_frontend::PackBytes(*matrix.type, static_cast<Part>(i), matrix.k, matrix.n);
        if (bytes != 0) {
            FORNAX_ASSIGN_OR_RETURN(pack->parts[i], Pages::Allocate(bytes));
            to[i] = pack->parts[i]->data();
        }
    }
    ggml_frontend::Pack(*matrix.type, static_cast<const uint8_t*>(matrix.rows), matrix.k, matrix.n,
                        to);
    packs_.push_back(std::move(pack));
    return packs_.back();
}

bool WeightStore::PutOff(std::span<const WeightMatrix> matrices, bool is_prompt) {
    const std::lock_guard lock(mutex_);
    std::vector<WeightMatrix> missing;
    bool is_any_known = false;
    for (const WeightMatrix& matrix : matrices) {
        if (Find(matrix) != packs_.end()) {
            continue;
        }
        if (std::find(put_off_.begin(), put_off_.end(), matrix) != put_off_.end()) {
            is_any_known = true;
        } else {
            missing.push_back(matrix);
        }
    }
    if (!is_any_known && (missing.empty() || !is_prompt)) {
        return false;
    }
    put_off_.insert(put_off_.end(), missing.begin(), missing.end());
    uint64_t all = 0;
    for (const WeightMatrix& matrix : put_off_) {
        all += matrix.size_bytes;
    }
    if (!missing.empty()) {
        part_bytes_ = std::max(all / kRunsOfPacking, kLeastPartBytes);
    }
    NotePutOff();
    return true;
}

Status WeightStore::PackSome() {
    const std::lock_guard lock(mutex_);
    uint64_t packed = 0;
    while (!put_off_.empty() &&
           (packed == 0 || packed + put_off_.front().size_bytes <= part_bytes_)) {
        // What there is no memory for stays put off.
        FORNAX_RETURN_IF_ERROR(GetLocked(put_off_.front()));
        packed += put_off_.front().size_bytes;
        put_off_.pop_front();
    }
    NotePutOff();
    return OkStatus();
}

void WeightStore::NotePutOff() {
    is_any_put_off_.store(!put_off_.empty(), std::memory_order_release);
}

void WeightStore::Forget(const void* begin, uint64_t size) {
    const std::lock_guard lock(mutex_);
    const auto overlaps = [&](const WeightMatrix& matrix) {
        return Overlap(matrix.rows, matrix.size_bytes, begin, size);
    };
    std::erase_if(packs_, [&](const auto& pack) { return overlaps(pack->matrix); });
    std::erase_if(put_off_, overlaps);
    NotePutOff();
}

}  // namespace fornax::ggml_plugin
