#include "plugins/onnxruntime/slot.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace fornax::onnxruntime_plugin {
namespace {

// A smaller tensor is copied in less time than it takes to look at its address.
constexpr size_t kMinBoundBytes = 16 << 10;
// Other memory means that commands are recorded again, so a tensor that moves is copied.
constexpr int kMaxMoves = 2;

// Whether the tensor is used where it is. `bind` takes the memory, or null to let go of it.
template <typename Bind>
Result<bool> Place(Slot::Memory& memory, bool binds, void* data, size_t size_bytes, Bind bind) {
    const bool is_same = data == memory.last;
    memory.last = data;
    if (memory.in_place) {
        if (is_same) {
            return true;
        }
        memory.in_place = false;
        ++memory.moves;
        FORNAX_ASSIGN_OR_RETURN([[maybe_unused]] const bool let_go, bind(nullptr, 0));
        return false;
    }
    if (!binds || !is_same || size_bytes < kMinBoundBytes || memory.moves >= kMaxMoves) {
        return false;
    }
    FORNAX_ASSIGN_OR_RETURN(memory.in_place, bind(data, size_bytes));
    if (!memory.in_place) {
        memory.moves = kMaxMoves;
        FORNAX_ASSIGN_OR_RETURN([[maybe_unused]] const bool let_go, bind(nullptr, 0));
    }
    return memory.in_place;
}

}  // namespace

Result<Slot::Use> Slot::For(std::span<const graph::Tensor> sizes) {
    Use use;
    FORNAX_ASSIGN_OR_RETURN(use.instance, session_.For(sizes, &use.plan));
    if (use.instance == nullptr) {
        return Error{ErrorCode::kInternal, "Fornax: the plan is not for the sizes of the inputs."};
    }
    std::erase_if(kept_, [](const auto& kept) { return kept->instance.expired(); });
    for (const auto& kept : kept_) {
        if (kept->instance.lock() == use.instance) {
            use.kept = kept.get();
            return use;
        }
    }
    const graph::Plan& plan = use.plan->program->plan();
    auto kept = std::make_unique<Kept>();
    kept->instance = use.instance;
    kept->inputs.resize(plan.inputs.size());
    kept->outputs.resize(plan.outputs.size());
    use.kept = kept.get();
    kept_.push_back(std::move(kept));
    return use;
}

Status Slot::SetInput(const Use& use, size_t index, const void* data, size_t size_bytes) {
    runtime::Instance& instance = *use.instance;
    FORNAX_ASSIGN_OR_RETURN(
        const bool in_place,
        Place(use.kept->inputs[index], binds_, const_cast<void*>(data), size_bytes,
              [&](void* at, size_t size) { return instance.BindInput(index, at, size); }));
    if (in_place) {
        return OkStatus();
    }
    const std::span<uint8_t> bytes = instance.InputBytes(index);
    if (bytes.size() != size_bytes) {
        return Error{
            ErrorCode::kInternal,
            fmt::format("Fornax: an input has {} bytes instead of {}.", size_bytes, bytes.size())};
    }
    if (size_bytes != 0) {
        std::memcpy(bytes.data(), data, size_bytes);
    }
    return OkStatus();
}

Status Slot::SetOutput(const Use& use, size_t index, void* data, size_t size_bytes) {
    runtime::Instance& instance = *use.instance;
    FORNAX_ASSIGN_OR_RETURN(
        [[maybe_unused]] const bool in_place,
        Place(use.kept->outputs[index], binds_, data, size_bytes,
              [&](void* at, size_t size) { return instance.BindOutput(index, at, size); }));
    return OkStatus();
}

Status Slot::TakeOutput(const Use& use, size_t index, std::span<uint8_t> memory) {
    if (memory.data() == nullptr || use.kept->outputs[index].in_place) {
        return OkStatus();
    }
    const std::span<const uint8_t> bytes = use.instance->OutputBytes(index);
    if (bytes.size() != memory.size()) {
        return Error{ErrorCode::kInternal,
                     fmt::format("Fornax: an output has {} bytes instead of {}.", bytes.size(),
                                 memory.size())};
    }
    if (!bytes.empty()) {
        std::memcpy(memory.data(), bytes.data(), bytes.size());
    }
    return OkStatus();
}

}  // namespace fornax::onnxruntime_plugin
