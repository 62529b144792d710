// Cost records: what a program did, without saying how long it takes. Replay (replay.h) makes time
// of them, for any description.
//
// Records are in the order of submission. A record begins when those that it names in `after` have
// ended and its queue's earlier packets are decoded.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"
#include "npu/units/dram.h"
#include "npu/units/matrix_unit.h"
#include "npu/units/scratchpad_allocator.h"
#include "npu/units/vector_unit.h"

namespace fornax::npu {

using RecordId = StrongId<struct RecordTag>;
using QueueId = StrongId<struct QueueTag>;

// Who divides a dispatch's products over the cores.
enum class ProductSplit : uint8_t {
    kWhole,      // shapes are the dispatch's; the replay divides them over the description's units
    kWorkgroup,  // shapes are one workgroup's, which has them on one matrix unit
};

struct Product {
    ProductShape shape = {};
    uint64_t batch = 1;  // so many of the shape
    MatrixType type = MatrixType::kInt8;
    // With kWhole: what of the dispatch's stream reads are its operands, each byte once. If they do
    // not fit into the scratchpads, one of them is read again.
    uint64_t a_bytes = 0;
    uint64_t b_bytes = 0;
    uint32_t pass = 0;  // of DispatchRecord::passes; with kWorkgroup
};

// What a dispatch does between two barriers of its workgroups, of what its totals have.
struct Pass {
    Operations operations = {};
    uint64_t scratchpad_bytes = 0;
    uint64_t scratchpad_accesses = 0;
};

// The line of a kernel's source that does most of one kind of its work.
enum class LineWork : uint8_t { kOperations, kSpecial, kProducts, kScratchpad, kBytes };
inline constexpr std::array<std::string_view, 5> kLineWorkNames = {
    "operations", "special", "products", "scratchpad", "bytes"};

struct SourceLine {
    LineWork work = LineWork::kOperations;
    std::string line = {};  // "file:line", or an instruction of SPIR-V
    uint64_t percent = 0;   // of the dispatch's work of this kind
    bool operator==(const SourceLine&) const = default;
};

struct DispatchRecord {
    std::string name = {};
    uint64_t workgroups = 1;
    std::vector<Product> products = {};
    ProductSplit split = ProductSplit::kWhole;
    Operations operations = {};  // of all workgroups, without those of products
    uint32_t element_bits = 32;  // of the operands of `operations`
    // On what is one for a workgroup; of all workgroups.
    uint64_t scalar_operations = 0;
    // What kernels access of their workgroup's memory beside what `accesses` pass through it.
    uint64_t scratchpad_bytes = 0;
    uint64_t scratchpad_stride_words = 1;
    // Accesses of single elements, at places that data decide: each takes one bank for a cycle.
    uint64_t scratchpad_accesses = 0;
    std::vector<Access> accesses = {};
    // In their order, where there are several; accesses and products name theirs.
    std::vector<Pass> passes = {};
    // For one workgroup; the replay sets how many workgroups a core runs.
    ScratchpadRequest scratchpad = {};
    std::vector<SourceLine> lines = {};  // one of a kind at most
};

enum class CopyKind : uint8_t { kDevice, kFromHost, kToHost, kFill };

struct CopyRecord {
    std::string name = {};
    CopyKind kind = CopyKind::kDevice;
    uint64_t bytes = 0;
};

struct Record {
    std::variant<DispatchRecord, CopyRecord> work = {};
    QueueId queue = QueueId(0);
    std::vector<RecordId> after = {};  // earlier records
    // The driver and the doorbell come before it. The first record of a queue always begins one.
    bool begins_submission = false;

    const std::string& name() const;
};

// What larger numbers would wrap: multiply-accumulates of a dispatch, and every other count.
inline constexpr uint64_t kMaxMultiplyAccumulates = uint64_t{1} << 48;
inline constexpr uint64_t kMaxCount = uint64_t{1} << 48;
inline constexpr size_t kMaxQueues = 4096;
inline constexpr uint32_t kMaxPasses = 64;

// Whether a replay can take the records. The error is a sentence with the record and the limit.
Status CheckRecords(std::span<const Record> records);

}  // namespace fornax::npu
