// For recursion whose depth depends on input: LLVM replaces chains of nodes recursively, and the
// thread that makes a pipeline may have 8 MiB of stack, or 64 KiB.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>

namespace fornax {

// Address space; pages that are not reached take no memory.
inline constexpr size_t kLargeStackBytes = size_t{256} << 20;

// Runs `action` on a thread of its own with kLargeStackBytes of stack and waits for it; what is
// thrown goes on to the caller. Takes about 30 us. Where the thread cannot be had (a limit on
// address space or threads), `action` runs on the caller's stack. Thread-local state, such as a
// signal guard, is not the caller's.
void RunOnLargeStack(const std::function<void()>& action);

// The same for an action with a result.
template <typename Action>
std::invoke_result_t<Action> OnLargeStack(Action&& action) {
    std::optional<std::invoke_result_t<Action>> result;
    RunOnLargeStack([&] { result.emplace(action()); });
    return *std::move(result);
}

}  // namespace fornax
