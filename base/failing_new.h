// For tests of what happens when the host has no memory: links an operator new and an aligned_alloc
// that fail when they are told to, so such a test is a program of its own. Only what the calling
// thread allocates while it counts is looked at.
#pragma once

#include <functional>

namespace fornax {

// Runs `action` with the nth allocation failing, counted from 0; whether there was such a one.
bool FailsAt(int n, const std::function<void()>& action);

// Stops and resumes counting within FailsAt; gives what was before.
bool CountAllocations(bool count);

// How many of the allocations that operator new counted are not freed.
int LiveAllocations();

// Whether the one that failed last was by aligned_alloc.
bool AlignedAllocationFailed();

}  // namespace fornax
