// Which conformance cases a backend is known not to pass, and why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fornax::hal::conformance {

inline std::vector<std::string> ExpectedFailures(std::string_view backend) {
    if (backend == "null") {
        // It neither runs kernels nor moves data.
        return {
            "CopyMovesBytes",
            "CopyOverlapping",
            "CopyLarge",
            "CopyRowsBetweenPitches",
            "CopyRowsRepeatsSideData",
            "CopyRowsLarge",
            "FillRepeatsPattern",
            "FillLarge",
            "UpdateWritesRecordedData",
            "BuilderReusesStorageAfterWait",
            "DispatchRunsEveryWorkgroupOnce",
            "DispatchPassesItsFrame",
            "DispatchIndirectReadsAtExecution",
            "DispatchSeesPreviousWrites",
            "DispatchLargeGridOnAllWorkers",
            "DispatchOrderIsIncreasing",
            "SharedMemoryAndScratchAreUsable",
            "KernelFloatModeIsDefault",
            "CountsInvocations",
            "CountsWhatAQueueDoes",
            "ChainRunsNestedStreams",
            "ChainClearsState",
            "FaultLosesTheDevice",
            "CountersCountWork",
            "CountersSumUpTheMatrixUnits",
            "QueuesShareTheWorkers",
        };
    }
    return {};
}

}  // namespace fornax::hal::conformance
