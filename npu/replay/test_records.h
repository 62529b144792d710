// Records for tests: random programs, and small ones with round numbers.
#pragma once

#include <random>

#include "npu/replay/replay.h"

namespace fornax::npu {

inline DispatchRecord StreamRecord(std::string name, uint64_t read, uint64_t written) {
    DispatchRecord dispatch = {.name = std::move(name), .workgroups = 64};
    dispatch.accesses = {{.writes = false, .bytes = read}, {.writes = true, .bytes = written}};
    dispatch.operations.simple = read / 4;
    dispatch.scratchpad = {.least_bytes = 256, .preferred_bytes = 4096};
    return dispatch;
}

inline DispatchRecord ProductRecord(std::string name, ProductShape shape, MatrixType type) {
    DispatchRecord dispatch = {.name = std::move(name), .workgroups = 64};
    const uint64_t element = type == MatrixType::kInt8 ? 1 : 2;
    const uint64_t a = shape.m * shape.k * element, b = shape.k * shape.n * element;
    dispatch.products = {{.shape = shape, .type = type, .a_bytes = a, .b_bytes = b}};
    dispatch.accesses = {{.writes = false, .bytes = a + b},
                         {.writes = true, .bytes = shape.m * shape.n * element}};
    dispatch.operations.simple = shape.m * shape.n;
    dispatch.scratchpad = {.least_bytes = 256, .preferred_bytes = 4096};
    return dispatch;
}

struct RandomOptions {
    uint32_t queues = 1;
    bool chained = false;  // each record waits for the one before
};

// Parts of what the dispatch has in all.
inline void AddRandomPasses(std::mt19937_64& random, DispatchRecord& dispatch) {
    const auto below = [&](uint64_t end) { return random() % end; };
    dispatch.passes.resize(2 + below(3));
    Operations operations = dispatch.operations;
    uint64_t bytes = dispatch.scratchpad_bytes, accesses = dispatch.scratchpad_accesses;
    const auto take = [&](uint64_t& left) {
        const uint64_t taken = below(left + 1);
        left -= taken;
        return taken;
    };
    for (Pass& pass : dispatch.passes) {
        pass = {.operations = {.simple = take(operations.simple),
                               .multiply_add = take(operations.multiply_add),
                               .division = take(operations.division),
                               .special = take(operations.special)},
                .scratchpad_bytes = take(bytes),
                .scratchpad_accesses = take(accesses)};
    }
    for (Access& access : dispatch.accesses) {
        access.pass = static_cast<uint32_t>(below(dispatch.passes.size()));
    }
    for (Product& product : dispatch.products) {
        product.pass = static_cast<uint32_t>(below(dispatch.passes.size()));
    }
}

inline DispatchRecord RandomDispatch(std::mt19937_64& random) {
    const auto below = [&](uint64_t end) { return random() % end; };
    DispatchRecord dispatch = {.name = "d", .workgroups = 1 + below(uint64_t{1} << below(12))};
    dispatch.operations = {.simple = below(1 << 20),
                           .multiply_add = below(1 << 18),
                           .division = below(1 << 10),
                           .special = below(1 << 14)};
    dispatch.element_bits = 8U << below(4);
    dispatch.scalar_operations = below(1 << 16);
    dispatch.scratchpad_bytes = below(1 << 18);
    dispatch.scratchpad_stride_words = below(40);
    dispatch.scratchpad_accesses = below(1 << 14);
    dispatch.split = below(2) == 0 ? ProductSplit::kWhole : ProductSplit::kWorkgroup;
    for (uint64_t i = below(3); i > 0; --i) {
        Product product = {.shape = {1 + below(200), 1 + below(200), 1 + below(200)},
                           .batch = 1 + below(4),
                           .type = static_cast<MatrixType>(below(kMatrixTypes))};
        if (dispatch.split == ProductSplit::kWorkgroup) {
            product.shape = {1 + below(32), 1 + below(32), 1 + below(32)};
        }
        product.a_bytes = product.shape.m * product.shape.k * product.batch;
        product.b_bytes = product.shape.n * product.shape.k * product.batch;
        dispatch.accesses.push_back({.bytes = product.a_bytes + product.b_bytes});
        dispatch.products.push_back(product);
    }
    for (uint64_t i = below(4); i > 0; --i) {
        Access access = {
            .kind = static_cast<AccessKind>(below(6)),
            .writes = below(2) == 0,
            .bytes = below(1 << 18),
            .element_bytes = static_cast<uint32_t>(1 + below(100)),
            .range = {.memory = below(4), .begin = below(1 << 18), .bytes = below(1 << 18)}};
        access.repeated_bytes = below(3) == 0 ? below(access.bytes + 1) : 0;
        access.apart = below(4) == 0;
        access.far = below(6) == 0;
        access.in_parts = below(4) == 0;
        dispatch.accesses.push_back(access);
    }
    if (below(3) == 0) {
        AddRandomPasses(random, dispatch);
    }
    for (uint64_t i = below(3); i > 0; --i) {
        dispatch.lines.push_back({.work = static_cast<LineWork>(below(kLineWorkNames.size())),
                                  .line = "k.comp:" + std::to_string(below(100)),
                                  .percent = below(101)});
    }
    const uint64_t least = below(uint64_t{1} << below(20));
    dispatch.scratchpad = {.least_bytes = least, .preferred_bytes = least + below(1 << 16)};
    return dispatch;
}

inline std::vector<Record> RandomRecords(uint64_t seed, const RandomOptions& options) {
    std::mt19937_64 random(seed);
    std::vector<Record> records(1 + random() % 12);
    for (size_t i = 0; i < records.size(); ++i) {
        Record& record = records[i];
        if (random() % 4 == 0) {
            record.work =
                CopyRecord{"c", static_cast<CopyKind>(random() % 4), random() % (1 << 20)};
        } else {
            record.work = RandomDispatch(random);
        }
        record.queue = QueueId(random() % options.queues);
        record.begins_submission = random() % 5 == 0;
        if (options.chained && i > 0) {
            record.after = {RecordId(i - 1)};
        } else if (i > 0 && random() % 3 == 0) {
            record.after = {RecordId(random() % i)};
        }
    }
    return records;
}

}  // namespace fornax::npu
