// What is measured: a workload is a piece of work on one device that can be run again and again and
// whose results can be checked once.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"
#include "tools/bench/device.h"

namespace fornax::bench {

// Works on the Device that it was created with, which must outlive it.
class Workload {
  public:
    virtual ~Workload() = default;

    // Makes drivers that compile a pipeline at its first dispatch do so. May disturb the results.
    virtual Status WarmUp() { return OkStatus(); }

    // Does the work once and returns the seconds it took.
    virtual Result<double> Run() = 0;

    // Compares the results with a C++ reference. Valid after the first Run, before the next and
    // before any WarmUp.
    virtual Status Verify() = 0;
};

using WorkloadResult = Result<std::unique_ptr<Workload>>;

// Creates a workload of the given size; what the size counts is said at each function.
using WorkloadFactory = WorkloadResult (*)(Device& device, uint32_t size);

// The factory of a class with a constructor from Device& and `Status Init(uint32_t size)`.
template <typename T>
WorkloadResult CreateWorkload(Device& device, uint32_t size) {
    auto workload = std::make_unique<T>(device);
    FORNAX_RETURN_IF_ERROR(workload->Init(size));
    return std::unique_ptr<Workload>(std::move(workload));
}

// startup_workloads.cpp
WorkloadResult CreateStart(Device& device, uint32_t size);           // size is not used
WorkloadResult CreatePipelines(Device& device, uint32_t size);       // size is not used
WorkloadResult CreateMatmulPipeline(Device& device, uint32_t size);  // size is not used

// command_workloads.cpp
WorkloadResult CreateDispatches(Device& device, uint32_t dispatches);
WorkloadResult CreateEmptyGroups(Device& device, uint32_t groups);  // a multiple of 1,024

// api_workloads.cpp
constexpr uint32_t kDescriptorsOfASet = 12;
WorkloadResult CreateRecordDispatches(Device& device, uint32_t count);
WorkloadResult CreateUpdates(Device& device, uint32_t sets);
WorkloadResult CreateSingleUpdates(Device& device, uint32_t sets);
WorkloadResult CreateTemplateUpdates(Device& device, uint32_t sets);

// memory_workloads.cpp
WorkloadResult CreateSaxpy(Device& device, uint32_t count);
constexpr uint32_t kCachedSaxpyDispatches = 100;
WorkloadResult CreateCachedSaxpy(Device& device, uint32_t count);
WorkloadResult CreateCopy(Device& device, uint32_t size_bytes);
constexpr uint32_t kRowLength = 1024;
WorkloadResult CreateRowSums(Device& device, uint32_t rows);
WorkloadResult CreateTranspose(Device& device, uint32_t side);  // a multiple of 16
constexpr uint32_t kHistogramPart = 16384;
WorkloadResult CreateHistogram(Device& device, uint32_t count);  // a multiple of kHistogramPart

// narrow_workloads.cpp
WorkloadResult CreateHalfAxpy(Device& device, uint32_t count);
WorkloadResult CreateInt8Add(Device& device, uint32_t count);
constexpr uint32_t kQ4BlockBytes = 18;
constexpr uint32_t kQ4BlockValues = 32;
WorkloadResult CreateDequantizeToFloat(Device& device, uint32_t blocks);
WorkloadResult CreateDequantizeToHalf(Device& device, uint32_t blocks);

// scan_workloads.cpp
constexpr uint32_t kPrefixRowLength = 4096;
WorkloadResult CreatePrefixRows(Device& device, uint32_t rows);
WorkloadResult CreateLookBack(Device& device, uint32_t count);  // a multiple of 4,096

// row_workloads.cpp
constexpr uint32_t kLongRow = 4096;
WorkloadResult CreateSoftmax(Device& device, uint32_t rows);
WorkloadResult CreateSoftmaxHalf(Device& device, uint32_t rows);
WorkloadResult CreateLayerNorm(Device& device, uint32_t rows);
WorkloadResult CreateLayerNormHalf(Device& device, uint32_t rows);
WorkloadResult CreateGelu(Device& device, uint32_t rows);
WorkloadResult CreateGeluHalf(Device& device, uint32_t rows);

// compute_workloads.cpp
constexpr uint32_t kFmaChains = 8;
constexpr uint32_t kFmaSteps = 1024;
WorkloadResult CreateFmaChains(Device& device, uint32_t invocations);  // a multiple of 256
WorkloadResult CreateSgemm(Device& device, uint32_t side);             // a multiple of 64
// A product by the matrix unit, with B packed beforehand; where the device multiplies no matrices
// of f32, the same as CreateSgemm.
WorkloadResult CreateMatrixSgemm(Device& device, uint32_t side);  // a multiple of 64
WorkloadResult CreateMandelbrot(Device& device, uint32_t side);   // a multiple of 16

// unit_workloads.cpp: chains of one function; invocations are a multiple of 256
constexpr uint32_t kUnitChains = 8;
constexpr uint32_t kUnitSteps = 256;
WorkloadResult CreateExponentials(Device& device, uint32_t invocations);
WorkloadResult CreateDivisions(Device& device, uint32_t invocations);
constexpr uint32_t kSimpleOperations = 10;  // of a step of a chain
WorkloadResult CreateSimpleOperations(Device& device, uint32_t invocations);
// Dispatches with barriers between, each of workgroups that take long enough for all workers.
constexpr uint32_t kTeamDispatches = 20;
constexpr uint32_t kTeamSteps = 1;
WorkloadResult CreateTeamDispatches(Device& device, uint32_t workgroups);
// Chains of multiply-adds of so many steps, of elements that come from memory and go to it.
WorkloadResult CreateStreamedChains(Device& device, uint32_t count, uint32_t steps);
// The same behind a barrier, of sums of 16 elements each.
WorkloadResult CreateBarrierChains(Device& device, uint32_t count, uint32_t steps);

}  // namespace fornax::bench
