// Measures one shape with Google Benchmark.
#include "tools/bench/child.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <nlohmann/json.hpp>

#include "tools/bench/device.h"
#include "tools/bench/shapes.h"

namespace fornax::bench {
namespace {

constexpr double kMinSeconds = 0.25;
constexpr double kQuickMinSeconds = 0.001;

// What a quarter of the runs were faster than, in nanoseconds: others on the machine do not change
// it, unless they disturb most of the runs.
double LowerQuartile(std::vector<double> seconds) {
    const auto quarter = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 4);
    std::ranges::nth_element(seconds, quarter);
    return 1e9 * *quarter;
}

// Google Benchmark runs the workload as often as it takes to fill the minimum time.
Status Measure(const Shape& shape, Workload& workload, bool quick, std::ostream& output) {
    Status failure;
    auto* benchmark = benchmark::RegisterBenchmark(shape.name, [&](benchmark::State& state) {
        std::vector<double> runs;
        for (auto iteration : state) {
            (void)iteration;
            Result<double> seconds = workload.Run();
            if (!seconds.ok()) {
                failure = seconds.error();
                state.SkipWithError(failure.error().message.c_str());
                return;
            }
            state.SetIterationTime(*seconds);
            runs.push_back(*seconds);
        }
        state.counters["lower_quartile"] = LowerQuartile(std::move(runs));
    });
    benchmark->UseManualTime();
    if (shape.runs_once) {
        benchmark->Iterations(1);
    } else {
        benchmark->MinTime(quick ? kQuickMinSeconds : kMinSeconds);
    }

    std::ostream discard(nullptr);  // remarks about the machine's frequency scaling
    benchmark::JSONReporter reporter;
    reporter.SetOutputStream(&output);
    reporter.SetErrorStream(&discard);
    benchmark::RunSpecifiedBenchmarks(&reporter);
    return failure;
}

Status MeasureShape(const Shape& shape,
                    const ChildOptions& options,
                    Device& device,
                    std::ostream& output) {
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<Workload> workload,
                            shape.create(device, shape.SizeFor(options.quick)));
    if (shape.runs_once) {
        FORNAX_RETURN_IF_ERROR(Measure(shape, *workload, options.quick, output));
        return options.verify ? workload->Verify() : OkStatus();
    }
    if (options.verify) {
        Result<double> first = workload->Run();
        if (!first.ok()) {
            return std::move(first).error();
        }
        FORNAX_RETURN_IF_ERROR(workload->Verify());
    } else {
        FORNAX_RETURN_IF_ERROR(workload->WarmUp());
    }
    return Measure(shape, *workload, options.quick, output);
}

// What the parent wants to know about a driver before it measures.
void Describe(const Device& device, std::ostream& output) {
    const VkPhysicalDeviceProperties& core = device.vulkan().properties();
    nlohmann::json description = {
        {"device", core.deviceName},
        {"is_cpu", core.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU},
        {"api_version",
         fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(core.apiVersion),
                     VK_API_VERSION_MINOR(core.apiVersion), VK_API_VERSION_PATCH(core.apiVersion))},
    };
    // The device has at least 1.2, which has the structure.
    VkPhysicalDeviceDriverProperties driver = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                              &driver};
    vkGetPhysicalDeviceProperties2(device.vulkan().physical_device(), &properties);
    description["driver"] = driver.driverName;
    description["driver_info"] = driver.driverInfo;
    output << description.dump();
}

Status CheckValidation(const Device& device) {
    if (device.validation_messages().empty()) {
        return OkStatus();
    }
    return Error{
        ErrorCode::kInternal,
        fmt::format("The validation layer reported {} problems, the first is: {}",
                    device.validation_messages().size(), device.validation_messages().front())};
}

}  // namespace

Status RunChild(const ChildOptions& options) {
    std::ofstream output(options.output);
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, Device::Create(options.validate));
    if (options.shape.empty()) {
        Describe(*device, output);
    } else {
        const Shape* shape = FindShape(options.shape);
        if (shape == nullptr) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("There is no benchmark named {}.", options.shape)};
        }
        FORNAX_RETURN_IF_ERROR(MeasureShape(*shape, options, *device, output));
    }
    FORNAX_RETURN_IF_ERROR(CheckValidation(*device));
    output.close();
    if (!output) {
        return Error{ErrorCode::kIo, fmt::format("{} cannot be written.", options.output.string())};
    }
    return OkStatus();
}

int ChildMain(const ChildOptions& options) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a parent that is interrupted leaves no child behind
    const Status status = RunChild(options);
    if (status.ok()) {
        return 0;
    }
    std::ofstream(options.output) << nlohmann::json({{"error", status.error().message}}).dump();
    return 1;
}

}  // namespace fornax::bench
