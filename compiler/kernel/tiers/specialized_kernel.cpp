#include "compiler/kernel/tiers/specialized_kernel.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "compiler/kernel/tiers/scratch.h"

namespace fornax::kernel {

namespace {

using KernelPtr = std::shared_ptr<const CompiledKernel>;

uint32_t WordAt(const hal::DispatchFrame& dispatch, const DescriptorPlace& place) {
    uint32_t word = 0;
    std::memcpy(
        &word,
        static_cast<const std::byte*>(dispatch.descriptor_sets[place.set]) + place.offset_bytes,
        sizeof(word));
    return word;
}

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

SpecializedKernel::SpecializedKernel(KernelPtr common, MakeCode make, MakeAhead ahead)
    : made_of_(std::move(common)), make_(std::move(make)), ahead_(std::move(ahead)) {
    entry = Run;
    context = this;
    // What is serialized may be changing: it stays the common kernel's.
    workgroup_size = made_of_->workgroup_size;
    shared_bytes = made_of_->shared_bytes;
    scratch_bytes = ScratchForBoth(made_of_->scratch_bytes);
    used_sets = made_of_->used_sets;
    independent_workgroups = made_of_->independent_workgroups;
    interruptible = made_of_->interruptible;
    name = made_of_->name;
    deciding_words = made_of_->deciding_words;
    cost = made_of_->cost;
    from_disk_cache = made_of_->from_disk_cache;
    storable = made_of_->storable;
    for (Variant& variant : variants_) {
        variant.values.resize(deciding_words.size());
    }
    if (made_of_->entry) {
        common_ = made_of_;
        common_code_ = common_.get();
    }
}

void SpecializedKernel::SetMakeCode(MakeCode make, MakeAhead ahead) {
    const SignalsBlocked blocked;
    std::lock_guard lock(mutex_);
    make_ = std::move(make);
    ahead_ = std::move(ahead);
}

void SpecializedKernel::SetCommon(KernelPtr common) {
    const SignalsBlocked blocked;
    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    if (!common_ && common->entry && common->scratch_bytes <= scratch_bytes) {
        common_ = std::move(common);
        common_code_.store(common_.get(), std::memory_order_release);
    }
}

uint32_t SpecializedKernel::VariantCount() const {
    const uint32_t count = variant_count_.load(std::memory_order_acquire);
    return static_cast<uint32_t>(std::ranges::count_if(
        std::span(variants_).first(count), [](const Variant& v) { return v.code != nullptr; }));
}

const std::vector<uint8_t>& SpecializedKernel::Serialized() const {
    const CompiledKernel* common = Common();
    return common ? common->Serialized() : nothing_;
}

// --- Dispatches
// ----------------------------------------------------------------------------------

void SpecializedKernel::Run(const hal::DispatchFrame* dispatch,
                            hal::WorkerFrame* worker,
                            uint64_t first_workgroup,
                            uint64_t count) {
    const auto* self = static_cast<const SpecializedKernel*>(dispatch->kernel_context);
    const CompiledKernel* code = self->CodeFor(*dispatch);
    if (!code) [[unlikely]] {
        worker->fault = static_cast<uint32_t>(hal::KernelFault::kNoCode);
        return;
    }
    if (!code->context) {
        code->entry(dispatch, worker, first_workgroup, count);
        return;
    }
    hal::DispatchFrame frame = *dispatch;
    frame.kernel_context = code->context;
    code->entry(&frame, worker, first_workgroup, count);
}

const CompiledKernel* SpecializedKernel::CodeFor(const hal::DispatchFrame& dispatch) const {
    // Read once, and here: a descriptor in memory that is not there is a fault of the kernel.
    std::array<uint32_t, kMaxDecidingWords> read;
    const std::span<uint32_t> values(read.data(), deciding_words.size());
    std::ranges::transform(deciding_words, values.begin(),
                           [&](const DescriptorPlace& place) { return WordAt(dispatch, place); });
    const uint32_t count = variant_count_.load(std::memory_order_acquire);
    if (const Variant* found = Find(values, count)) {
        return found->code ? found->code.get() : Common();
    }
    return count == kMaxVariants ? Common() : AddVariant(values);
}

const SpecializedKernel::Variant* SpecializedKernel::Find(std::span<const uint32_t> values,
                                                          uint32_t count) const {
    for (uint32_t i = 0; i < count; ++i) {
        if (std::ranges::equal(values, variants_[i].values)) {
            return &variants_[i];
        }
    }
    return nullptr;
}

const CompiledKernel* SpecializedKernel::Common() const {
    if (const CompiledKernel* common = common_code_.load(std::memory_order_acquire)) {
        return common;
    }
    const SignalsBlocked blocked;
    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    return CommonNow();
}

// --- Making code
// ---------------------------------------------------------------------------------

const CompiledKernel* SpecializedKernel::AddVariant(std::span<const uint32_t> values) const {
    const SignalsBlocked blocked;
    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    const uint32_t count = variant_count_.load(std::memory_order_relaxed);
    const Variant* found = Find(values, count);
    if (!found && count < kMaxVariants) {
        Variant& added = variants_[count];
        std::ranges::copy(values, added.values.begin());
        added.code = Make(values);
        variant_count_.store(count + 1, std::memory_order_release);
        found = &added;
    }
    return found && found->code ? found->code.get() : CommonNow();
}

// --- Ahead
// ---------------------------------------------------------------------------------------

// Who submits does not wait: while the mutex is held, code is being made already.
void SpecializedKernel::Foresee(const ReadWord& read) const {
    try {
        std::vector<uint32_t> values(deciding_words.size());
        for (size_t i = 0; i < values.size(); ++i) {
            if (!read(deciding_words[i].set, deciding_words[i].offset_bytes, values[i])) {
                return;
            }
        }
        const SignalsBlocked blocked;
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return;
        }
        ForgetIfAbandoned();
        if (ahead_ && WantsToForesee() && asked_ahead_.size() < kMaxAhead &&
            std::ranges::find(asked_ahead_, values) == asked_ahead_.end()) {
            ahead_(weak_from_this(), WordsOf(values));
            asked_ahead_.push_back(std::move(values));
        }
    } catch (const std::exception&) {
        // There is no memory, so the dispatch has to see.
    }
}

bool SpecializedKernel::HasVariant(std::span<const DescriptorWord> words) const {
    std::vector<uint32_t> values;
    std::ranges::transform(words, std::back_inserter(values), &DescriptorWord::value);
    return Find(values, variant_count_.load(std::memory_order_acquire)) != nullptr;
}

void SpecializedKernel::Offer(std::span<const DescriptorWord> words, KernelPtr code) const {
    std::vector<uint32_t> values;
    std::ranges::transform(words, std::back_inserter(values), &DescriptorWord::value);
    const SignalsBlocked blocked;
    std::lock_guard lock(mutex_);
    ForgetIfAbandoned();
    const uint32_t count = variant_count_.load(std::memory_order_relaxed);
    if (count < kMaxVariants && !Find(values, count) && FitsScratch(*code)) {
        std::ranges::copy(values, variants_[count].values.begin());
        variants_[count].code = std::move(code);
        variant_count_.store(count + 1, std::memory_order_release);
    }
}

// A thread of the parent process may have been changing what is not in use yet.
void SpecializedKernel::ForgetIfAbandoned() const {
    if (!mutex_.TakeAbandoned()) {
        return;
    }
    const uint32_t count = variant_count_.load(std::memory_order_relaxed);
    if (count < kMaxVariants) {
        new (&variants_[count].code) KernelPtr;
    }
    if (!common_code_.load(std::memory_order_relaxed)) {
        new (&common_) KernelPtr;
    }
    new (&asked_ahead_) std::vector<std::vector<uint32_t>>;
}

// If it cannot be made now, it is tried again when it is wanted again.
const CompiledKernel* SpecializedKernel::CommonNow() const {
    if (!common_) {
        common_ = Make({});
        common_code_.store(common_.get(), std::memory_order_release);
    }
    return common_.get();
}

std::vector<DescriptorWord> SpecializedKernel::WordsOf(std::span<const uint32_t> values) const {
    std::vector<DescriptorWord> words;
    for (size_t i = 0; i < values.size(); ++i) {
        words.push_back({.place = deciding_words[i], .value = values[i]});
    }
    return words;
}

Result<KernelPtr> SpecializedKernel::TryToMake(std::span<const uint32_t> values) const {
    FORNAX_ASSIGN_OR_RETURN(KernelPtr code, make_(WordsOf(values)));
    if (!FitsScratch(*code)) {
        return Error{ErrorCode::kInternal, "It needs " + std::to_string(code->scratch_bytes) +
                                               " bytes of scratch, and " +
                                               std::to_string(scratch_bytes) + " are set aside."};
    }
    return code;
}

KernelPtr SpecializedKernel::Make(std::span<const uint32_t> values) const {
    try {
        Result<KernelPtr> code = TryToMake(values);
        if (code.ok()) {
            return std::move(code).value();
        }
        if (values.empty()) {
            LogWarning("The kernel '{}' gets no code for all formats: {}", name,
                       code.error().message);
        } else {
            LogInfo("The kernel '{}' gets no code for what is bound: {}", name,
                    code.error().message);
        }
    } catch (const std::exception&) {
        // There is no memory, so there is none to tell of it.
    }
    return nullptr;
}

}  // namespace fornax::kernel
