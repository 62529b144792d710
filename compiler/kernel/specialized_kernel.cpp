#include "compiler/kernel/specialized_kernel.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "base/per_process.h"
#include "compiler/kernel/scratch.h"

namespace fornax::kernel {

namespace {

uint32_t WordAt(const hal::DispatchFrame& dispatch, const DescriptorPlace& place) {
    uint32_t word = 0;
    std::memcpy(
        &word,
        static_cast<const std::byte*>(dispatch.descriptor_sets[place.set]) + place.offset_bytes,
        sizeof(word));
    return word;
}

// The device may end a kernel that takes too long by a signal that never returns
// (hal/model/kernel_guard.h). While a lock is held it has to wait.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &previous_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

  private:
    sigset_t previous_;
};

}  // namespace

SpecializedKernel::SpecializedKernel(std::shared_ptr<const CompiledKernel> common, bool waits)
    : common_(std::move(common)), waits_(waits), process_(ProcessGeneration()) {
    entry = Run;
    context = this;
    // What is serialized may be changing: it stays the common kernel's.
    workgroup_size = common_->workgroup_size;
    shared_bytes = common_->shared_bytes;
    scratch_bytes = ScratchForBoth(common_->scratch_bytes);
    used_sets = common_->used_sets;
    independent_workgroups = common_->independent_workgroups;
    interruptible = common_->interruptible;
    name = common_->name;
    deciding_words = common_->deciding_words;
    cost = common_->cost;
    from_disk_cache = common_->from_disk_cache;
    storable = common_->storable;
    for (Variant& variant : variants_) {
        variant.values.resize(deciding_words.size());
    }
}

void SpecializedKernel::SetRequest(Request request) {
    std::lock_guard lock(mutex_);
    request_ = std::move(request);
}

void SpecializedKernel::Run(const hal::DispatchFrame* dispatch,
                            hal::WorkerFrame* worker,
                            uint64_t first_workgroup,
                            uint64_t count) {
    const auto* self = static_cast<const SpecializedKernel*>(dispatch->kernel_context);
    Variant* variant = self->Find(*dispatch);
    if (variant && self->waits_) {
        self->WaitFor(*variant);
    }
    hal::KernelEntry special = variant ? variant->entry.load(std::memory_order_acquire) : nullptr;
    if (special) {
        special(dispatch, worker, first_workgroup, count);
        return;
    }
    hal::DispatchFrame frame = *dispatch;
    frame.kernel_context = self->common_->context;
    // As in TieredKernel::Run, a kernel that is stopped does not come back here.
    const auto start = std::chrono::steady_clock::now();
    self->common_->entry(&frame, worker, first_workgroup, count);
    if (variant) {
        const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - start;
        variant->common_nanoseconds.fetch_add(time.count(), std::memory_order_relaxed);
    }
}

// Among the first variants.
SpecializedKernel::Variant* SpecializedKernel::FindIn(std::span<const uint32_t> words,
                                                      uint32_t count) const {
    for (uint32_t i = 0; i < count; ++i) {
        if (std::ranges::equal(words, variants_[i].values)) {
            return &variants_[i];
        }
    }
    return nullptr;
}

SpecializedKernel::Variant* SpecializedKernel::Find(const hal::DispatchFrame& dispatch) const {
    // Read once, and here: a descriptor in memory that is not there is a fault of the kernel.
    std::array<uint32_t, kMaxDecidingWords> read;
    const std::span<uint32_t> words(read.data(), deciding_words.size());
    std::ranges::transform(deciding_words, words.begin(),
                           [&](const DescriptorPlace& place) { return WordAt(dispatch, place); });
    const uint32_t count = variant_count_.load(std::memory_order_acquire);
    Variant* found = FindIn(words, count);
    return found || count == kMaxVariants ? found : Add(words);
}

SpecializedKernel::Variant* SpecializedKernel::Add(std::span<const uint32_t> words) const {
    const SignalsBlocked blocked;
    std::lock_guard lock(mutex_);
    const uint32_t count = variant_count_.load(std::memory_order_relaxed);
    Variant* found = FindIn(words, count);
    if (found || count == kMaxVariants || !request_) {
        return found;
    }
    Variant& added = variants_[count];
    std::ranges::copy(words, added.values.begin());
    variant_count_.store(count + 1, std::memory_order_release);
    try {
        request_(count);
    } catch (const std::exception&) {
        // Without memory for the request the common code stays.
        added.decided.store(1, std::memory_order_release);
    }
    return &added;
}

void SpecializedKernel::WaitFor(const Variant& variant) const {
    while (variant.decided.load(std::memory_order_acquire) == 0 &&
           process_ == ProcessGeneration()) {
        variant.decided.wait(0, std::memory_order_acquire);
    }
}

std::vector<DescriptorWord> SpecializedKernel::WordsOf(uint32_t variant) const {
    std::vector<DescriptorWord> words;
    for (size_t i = 0; i < deciding_words.size(); ++i) {
        words.push_back({.place = deciding_words[i], .value = variants_[variant].values[i]});
    }
    return words;
}

std::chrono::nanoseconds SpecializedKernel::CommonTime(uint32_t variant) const {
    using std::chrono::nanoseconds;
    return waits_
               ? nanoseconds::max()
               : nanoseconds(variants_[variant].common_nanoseconds.load(std::memory_order_relaxed));
}

bool SpecializedKernel::Install(uint32_t variant, std::shared_ptr<const CompiledKernel> code) {
    Variant& installed = variants_[variant];
    const bool fits = code->scratch_bytes <= scratch_bytes && code->context == nullptr;
    if (fits) {
        installed.code = std::move(code);
        installed.entry.store(installed.code->entry, std::memory_order_release);
    }
    Abandon(variant);
    return fits;
}

void SpecializedKernel::Abandon(uint32_t variant) {
    variants_[variant].decided.store(1, std::memory_order_release);
    variants_[variant].decided.notify_all();
}

uint32_t SpecializedKernel::InstalledCount() const {
    return static_cast<uint32_t>(std::ranges::count_if(variants_, [](const Variant& variant) {
        return variant.entry.load(std::memory_order_acquire) != nullptr;
    }));
}

}  // namespace fornax::kernel
