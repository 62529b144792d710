// What a replay takes: a token's 133 operators, and the layers of a ResNet-50.
#include <benchmark/benchmark.h>

#include "npu/description/read.h"
#include "npu/replay/replay.h"
#include "npu/replay/test_records.h"

namespace fornax::npu {
namespace {

std::vector<Record> Chain(std::vector<DispatchRecord> dispatches) {
    std::vector<Record> records;
    for (DispatchRecord& dispatch : dispatches) {
        Record& record = records.emplace_back();
        record.work = std::move(dispatch);
        if (records.size() > 1) {
            record.after = {RecordId(records.size() - 2)};
        }
    }
    return records;
}

// 19 layers of a decoder, 7 operators each.
std::vector<Record> Token() {
    std::vector<DispatchRecord> dispatches;
    for (int layer = 0; layer < 19; ++layer) {
        for (const uint64_t n : {2560U, 2048U, 8192U, 2048U}) {
            dispatches.push_back(ProductRecord("p", {1, n, 2048}, MatrixType::kF16));
        }
        for (int i = 0; i < 3; ++i) {
            dispatches.push_back(StreamRecord("s", 8192, 8192));
        }
    }
    return Chain(std::move(dispatches));
}

// The 53 convolutions as products, and an addition behind each block.
std::vector<Record> ResNet50() {
    std::vector<DispatchRecord> dispatches;
    const auto conv = [&](uint64_t side, uint64_t out, uint64_t k) {
        dispatches.push_back(ProductRecord("c", {side * side, out, k}, MatrixType::kInt8));
    };
    conv(112, 64, 147);
    const uint64_t kBlocks[] = {3, 4, 6, 3};
    uint64_t side = 56, width = 64;
    for (const uint64_t blocks : kBlocks) {
        for (uint64_t block = 0; block < blocks; ++block) {
            conv(side, width, 4 * width);
            conv(side, width, 9 * width);
            conv(side, 4 * width, width);
            dispatches.push_back(
                StreamRecord("add", 8 * width * side * side, 4 * width * side * side));
        }
        conv(side, 4 * width, 2 * width);
        side /= 2;
        width *= 2;
    }
    return Chain(std::move(dispatches));
}

void Run(benchmark::State& state, const char* machine, const std::vector<Record>& records) {
    const Description description = *LoadDescription(machine);
    Cycles total = 0;
    for (auto _ : state) {
        total = Replay(description, records)->total;
        benchmark::DoNotOptimize(total);
    }
    state.counters["records"] = static_cast<double>(records.size());
    state.counters["modelled_us"] = description.Nanoseconds(static_cast<double>(total)) / 1e3;
}

BENCHMARK_CAPTURE(Run, token_edge, "edge-4", Token());
BENCHMARK_CAPTURE(Run, token_laptop, "laptop-45", Token());
BENCHMARK_CAPTURE(Run, token_dc, "dc-400", Token());
BENCHMARK_CAPTURE(Run, resnet50_edge, "edge-4", ResNet50());
BENCHMARK_CAPTURE(Run, resnet50_laptop, "laptop-45", ResNet50());
BENCHMARK_CAPTURE(Run, resnet50_dc, "dc-400", ResNet50());

}  // namespace
}  // namespace fornax::npu

BENCHMARK_MAIN();
