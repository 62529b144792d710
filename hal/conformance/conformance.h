// The conformance suite of the HAL: what every backend must do, as cases that run on each of them.
//
// A case is written with HAL_CASE and GoogleTest's assertions; conformance_test.cpp runs it on
// every backend and compares the outcome with the backend's list of expected failures, in both
// directions: a listed case that passes is a failure, too, so the lists stay true.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hal/command_stream_builder.h"
#include "hal/device.h"

namespace fornax::hal::conformance {

// A device with a queue, and short ways to use them. Failures of the ways are GoogleTest failures.
class Bench {
  public:
    explicit Bench(const std::string& backend, DeviceOptions options = {});

    const std::string& backend() const { return backend_; }
    Device& device() { return *device_; }
    std::shared_ptr<Device> shared_device() const { return device_; }
    Queue& queue() { return *queue_; }

    std::shared_ptr<Memory> Allocate(uint64_t size_bytes);
    std::shared_ptr<Timeline> NewTimeline(uint64_t initial_value = 0);
    std::shared_ptr<Queue> NewQueue();
    std::shared_ptr<const Executable> NewExecutable(KernelDesc desc);

    // Submits one stream and waits for its end.
    void Run(CommandStreamBuilder& builder);
    // Submits without waiting.
    Status Submit(Queue& queue,
                  std::vector<TimelinePoint> waits,
                  std::vector<std::shared_ptr<const CommandStream>> streams,
                  std::vector<TimelinePoint> signals);

    // Lets go of the queue, and of the device.
    void Close();

  private:
    std::string backend_;
    std::shared_ptr<Device> device_;
    std::shared_ptr<Queue> queue_;
};

// The words of a memory, as the host sees them.
template <typename T>
std::span<T> View(const std::shared_ptr<Memory>& memory) {
    return {reinterpret_cast<T*>(memory->host_pointer()), memory->size_bytes() / sizeof(T)};
}

// Long enough for anything that does end; a case that runs into it fails.
inline constexpr uint64_t kPatienceNs = 60'000'000'000;

struct Case {
    const char* name;
    void (*run)(Bench& bench);
};

// All cases of the program, in no particular order.
std::vector<Case>& Cases();

struct CaseRegistration {
    CaseRegistration(const char* name, void (*run)(Bench&)) { Cases().push_back({name, run}); }
};

}  // namespace fornax::hal::conformance

#define HAL_CASE(name)                                                                         \
    static void HalCase##name(::fornax::hal::conformance::Bench& bench);                       \
    static const ::fornax::hal::conformance::CaseRegistration hal_case_##name(#name,           \
                                                                              &HalCase##name); \
    static void HalCase##name([[maybe_unused]] ::fornax::hal::conformance::Bench& bench)
