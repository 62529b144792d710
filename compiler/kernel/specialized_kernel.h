// A kernel that is compiled again for the formats and samplers that its dispatches find bound.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "compiler/kernel/compiled_kernel.h"

namespace fornax::kernel {

// Runs the code for any descriptors until code for those at hand arrives. Each call looks at the
// deciding words, so dispatches of one kernel may have different ones.
class SpecializedKernel : public CompiledKernel {
  public:
    // How many sets of values have code of their own; dispatches with others keep the common code.
    static constexpr uint32_t kMaxVariants = 8;
    // Has the code of a variant made, which comes to Install or Abandon, on any thread.
    using Request = std::function<void(uint32_t variant)>;

    // With `waits` a dispatch waits for its variant.
    SpecializedKernel(std::shared_ptr<const CompiledKernel> common, bool waits);

    // Before the first call of the entry; an empty one, later, if there is nobody left to ask.
    void SetRequest(Request request);

    std::vector<DescriptorWord> WordsOf(uint32_t variant) const;
    // How long the common code has run in its place, over all workers; the maximum while a dispatch
    // waits.
    std::chrono::nanoseconds CommonTime(uint32_t variant) const;
    // Once for each variant that was asked for. False if its code does not fit into what dispatches
    // set aside.
    bool Install(uint32_t variant, std::shared_ptr<const CompiledKernel> code);
    // Its code will not come. Instead.
    void Abandon(uint32_t variant);
    // How many variants have their code.
    uint32_t InstalledCount() const;

    const std::vector<uint8_t>& Serialized() const override { return common_->Serialized(); }

  private:
    struct Variant {
        std::vector<uint32_t> values;  // of deciding_words
        std::shared_ptr<const CompiledKernel> code;
        std::atomic<hal::KernelEntry> entry = nullptr;
        std::atomic<int64_t> common_nanoseconds = 0;
        std::atomic<uint32_t> decided = 0;
    };

    static void Run(const hal::DispatchFrame* dispatch,
                    hal::WorkerFrame* worker,
                    uint64_t first_workgroup,
                    uint64_t count);
    Variant* Find(const hal::DispatchFrame& dispatch) const;
    // By the values of deciding_words.
    Variant* FindIn(std::span<const uint32_t> words, uint32_t count) const;
    Variant* Add(std::span<const uint32_t> words) const;
    void WaitFor(const Variant& variant) const;

    const std::shared_ptr<const CompiledKernel> common_;
    const bool waits_;
    const uint64_t process_;
    // Dispatches know the kernel as constant.
    mutable std::mutex mutex_;  // guards request_ and the addition of variants
    Request request_;
    mutable std::array<Variant, kMaxVariants> variants_;
    mutable std::atomic<uint32_t> variant_count_ = 0;
};

}  // namespace fornax::kernel
