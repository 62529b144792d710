// What a program waits for before its first result: the device's start and its pipelines.
//
// Both happen once in a process; the parent starts a fresh one, with a fresh or a filled cache
// directory, for each repetition.
#include <chrono>
#include <vector>

#include "tools/bench/workload.h"

namespace fornax::bench {
namespace {

class Start : public Workload {
  public:
    explicit Start(Device& device) : device_(device) {}
    Status Init(uint32_t) { return OkStatus(); }

    // The device has measured its own start, and cannot start again.
    Result<double> Run() override { return device_.start_seconds(); }

    Status Verify() override {
        if (device_.start_seconds() <= 0) {
            return Error{ErrorCode::kInternal, "start: there is no device."};
        }
        return OkStatus();
    }

  private:
    Device& device_;
};

class Pipelines : public Workload {
  public:
    explicit Pipelines(Device& device) : device_(device) {}
    Status Init(uint32_t) { return OkStatus(); }

    // Compiled and run once, because some drivers compile at the first dispatch. The sizes are one
    // workgroup each: running takes microseconds, compiling milliseconds.
    Result<double> Run() override {
        static constexpr struct {
            WorkloadFactory create;
            uint32_t size;
        } kKernels[] = {
            {CreateSaxpy, 256}, {CreateFmaChains, 256}, {CreateSgemm, 64},
            {CreateRowSums, 1}, {CreateMandelbrot, 16}, {CreateTranspose, 16},
        };
        const auto start = std::chrono::steady_clock::now();
        for (const auto& kernel : kKernels) {
            FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<Workload> workload,
                                    kernel.create(device_, kernel.size));
            Result<double> seconds = workload->Run();
            if (!seconds.ok()) {
                return std::move(seconds).error();
            }
            kernels_.push_back(std::move(workload));
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }

    Status Verify() override {
        for (const std::unique_ptr<Workload>& kernel : kernels_) {
            FORNAX_RETURN_IF_ERROR(kernel->Verify());
        }
        return OkStatus();
    }

  private:
    Device& device_;
    std::vector<std::unique_ptr<Workload>> kernels_;
};

}  // namespace

WorkloadResult CreateStart(Device& device, uint32_t size) {
    return CreateWorkload<Start>(device, size);
}

WorkloadResult CreatePipelines(Device& device, uint32_t size) {
    return CreateWorkload<Pipelines>(device, size);
}

}  // namespace fornax::bench
