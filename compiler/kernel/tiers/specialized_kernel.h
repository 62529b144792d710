// A kernel that is compiled for the formats and samplers that its dispatches find bound.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/per_process.h"
#include "base/result.h"
#include "compiler/kernel/interface/compiled_kernel.h"

namespace fornax::kernel {

// Each call of the entry looks at the deciding words, so dispatches of one kernel may have
// different ones. The first call that finds new values has code made for them and waits: code for a
// few formats is small and soon there, code for all formats is neither. The common code, which is
// right for any values, is made when there are more sets of values than variants, when a variant
// cannot be had, or when the kernel is to be serialized.
//
// As long as no variant has been made, those that submitted dispatches will want are made ahead, by
// other threads and several at once, where the device foresees them (hal/foresight.h): whoever
// waits for its code meanwhile makes that of one kernel alone.
//
// The device may end a kernel that takes too long by a signal that never returns
// (hal/model/kernel_guard.h), so signals are blocked while code is made.
class SpecializedKernel : public CompiledKernel,
                          public hal::Foresight,
                          public std::enable_shared_from_this<SpecializedKernel> {
  public:
    // How many sets of values have code of their own.
    static constexpr uint32_t kMaxVariants = 8;
    // Makes code, or finds it: for the words, or the common code if there are none. Called by one
    // thread at a time.
    using MakeCode =
        std::function<Result<std::shared_ptr<const CompiledKernel>>(std::vector<DescriptorWord>)>;

    // Has code made for the words elsewhere, which then gives it to the kernel's Offer. Must not
    // wait.
    using MakeAhead =
        std::function<void(std::weak_ptr<const SpecializedKernel>, std::vector<DescriptorWord>)>;
    // How many sets of values are made ahead.
    static constexpr size_t kMaxAhead = 4;

    // `common` is the common code, or a kernel with nothing but the facts, whose scratch_bytes are
    // enough for any code. Not a specialized kernel.
    SpecializedKernel(std::shared_ptr<const CompiledKernel> common,
                      MakeCode make,
                      MakeAhead ahead = nullptr);

    // Replaces it; when this returns, the one before is not called any more. Without `ahead` no
    // code is made ahead.
    void SetMakeCode(MakeCode make, MakeAhead ahead = nullptr);
    // Code that was made ahead for the words becomes a variant, if there is none for them.
    void Offer(std::span<const DescriptorWord> words,
               std::shared_ptr<const CompiledKernel> code) const;
    bool HasVariant(std::span<const DescriptorWord> words) const;
    // The common code came from elsewhere. Ignored if it is there.
    void SetCommon(std::shared_ptr<const CompiledKernel> common);

    bool HasCommon() const { return common_code_.load(std::memory_order_acquire) != nullptr; }
    // The common code, or what the kernel was made of if there is none yet.
    std::shared_ptr<const CompiledKernel> CommonOrFacts() const {
        return HasCommon() ? common_ : made_of_;
    }
    // How many variants have code of their own.
    uint32_t VariantCount() const;

    // The common code's.
    const std::vector<uint8_t>& Serialized() const override;

    const hal::Foresight* foresight() const override { return this; }
    bool WantsToForesee() const override {
        return variant_count_.load(std::memory_order_relaxed) == 0;
    }
    void Foresee(const ReadWord& read) const override;

  private:
    struct Variant {
        std::vector<uint32_t> values;                // of deciding_words
        std::shared_ptr<const CompiledKernel> code;  // null: the common code runs
    };

    static void Run(const hal::DispatchFrame* dispatch,
                    hal::WorkerFrame* worker,
                    uint64_t first_workgroup,
                    uint64_t count);
    // Null if there is no way to make it.
    const CompiledKernel* CodeFor(const hal::DispatchFrame& dispatch) const;
    const CompiledKernel* Common() const;
    // By the values of deciding_words, among the first variants.
    const Variant* Find(std::span<const uint32_t> values, uint32_t count) const;
    const CompiledKernel* AddVariant(std::span<const uint32_t> values) const;

    // `mutex_` is held.
    void ForgetIfAbandoned() const;
    const CompiledKernel* CommonNow() const;
    std::vector<DescriptorWord> WordsOf(std::span<const uint32_t> values) const;
    bool FitsScratch(const CompiledKernel& code) const {
        return code.scratch_bytes <= scratch_bytes;
    }
    // For the values of deciding_words, or any if there are none. Null if it cannot be had.
    std::shared_ptr<const CompiledKernel> Make(std::span<const uint32_t> values) const;
    Result<std::shared_ptr<const CompiledKernel>> TryToMake(std::span<const uint32_t> values) const;

    const std::shared_ptr<const CompiledKernel> made_of_;
    const std::vector<uint8_t> nothing_;
    // Dispatches know the kernel as constant. Guards what follows; the atomics are read without it,
    // and what they tell of does not change any more.
    mutable ProcessMutex mutex_;
    MakeCode make_;
    MakeAhead ahead_;
    mutable std::vector<std::vector<uint32_t>> asked_ahead_;  // values of deciding_words
    mutable std::array<Variant, kMaxVariants> variants_;
    mutable std::atomic<uint32_t> variant_count_ = 0;
    mutable std::shared_ptr<const CompiledKernel> common_;
    mutable std::atomic<const CompiledKernel*> common_code_ = nullptr;
};

}  // namespace fornax::kernel
