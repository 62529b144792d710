// What the compiler decided for one kernel, and why: the record behind `fornax explain-kernel`.
//
// The emitter fills it where a decision falls (codegen/explain_recorder.h); nothing is read back
// out of texts. Plain data without LLVM, so that tools can hold it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "hal/matrix_unit.h"

namespace fornax::kernel {

// How an access reaches memory, from cheap to dear.
enum class AccessForm : uint8_t {
    kUnknown,
    kScalar,      // one scalar access that serves all lanes
    kOneLane,     // a store of one active lane's value
    kContiguous,  // one vector access, lane by lane in order
    kRuns,        // a few vector accesses and shuffles
    kRow,         // private memory: the lanes of an element lie side by side
    kStrided,     // vector accesses with a stride that is only known at run time
    kSpeculated,  // as is assumed where a test at run time says so, otherwise a gather
    kReduced,     // an atomic: the lanes' values combined, then one operation
    kLaneRows,    // one access of each lane's whole run, transposed
    kGather,      // a gather or scatter instruction
    kLaneLoop,    // one lane after the other
};
const char* AccessFormName(AccessForm form);

// What keeps an access inside its memory.
enum class AccessCheck : uint8_t {
    kNone,     // nothing: the application's duty
    kProven,   // nothing, because the offset's bound is known
    kSpan,     // one test of the whole vector's span, and a form lane by lane for the edge
    kLanes,    // a test for each lane
    kScalar,   // one test of the one address
    kClamped,  // the address is moved inside
};
const char* AccessCheckName(AccessCheck check);

// Where in the SPIR-V module, and in the source that it was made from if the module says so.
struct CodePlace {
    uint32_t word = 0;  // of the instruction in the module; 0: made by the compiler itself
    std::string instruction;
    std::string source;  // "file:line"
};

struct AccessRecord {
    CodePlace place;
    std::string operation;  // of the kernel IR
    std::string memory;     // "set 0 binding 1", "workgroup", ...
    std::string type;       // "f32", "f32 x4"
    std::string pattern;    // how the offset differs between lanes
    AccessForm form = AccessForm::kUnknown;
    AccessCheck check = AccessCheck::kNone;
    uint32_t runs = 0;  // kRuns: vector accesses
    std::string plan;   // the loads, stores, shuffles and tests, if it was planned
    // Speculations only: the lanes' offsets, and what has to hold for them.
    std::string assumptions;
    bool masked = false;
    uint32_t region = 0;
    uint32_t loop = 0;   // the innermost loop around it: 1 + index in `constructs`; 0: none
    uint32_t depth = 0;  // loops around it
};

// A loop or branch.
struct ConstructRecord {
    CodePlace place;
    std::string kind;        // "loop", "if", "switch"
    bool workgroup = false;  // run once for the workgroup, because it holds a barrier
    bool divergent = false;  // lanes go different ways: masks
    uint32_t region = 0;
    uint32_t loop = 0;  // as for accesses
    uint32_t depth = 0;
};

// A value that lives across barriers.
struct KeptRecord {
    CodePlace place;
    std::string operation;
    std::string type;
    std::string storage;  // "recomputed", "one for the workgroup", "memory of each vector"
};

// What one basic block has the matrix unit do each time that a vector runs it.
struct MatrixRecord {
    CodePlace place;  // of the first MMA
    hal::MatrixCounts counts;
    uint32_t region = 0;
    uint32_t loop = 0;  // as for accesses
    uint32_t depth = 0;
};

// A stretch between barriers, run for one vector after the other.
struct RegionRecord {
    uint32_t instructions = 0;
    uint32_t imports = 0;  // values of other regions that it uses
    uint32_t lanes = 0;    // invocations a vector
};

struct StageTime {
    std::string stage;
    double milliseconds = 0;
};

struct KernelExplanation {
    std::string name;
    std::string cpu;
    uint32_t vector_bits = 0;
    uint32_t workgroup_size[3] = {1, 1, 1};
    uint32_t subgroup_size = 0;
    uint32_t lanes = 0;       // invocations a vector
    uint32_t vectors = 0;     // a workgroup
    uint32_t tile_width = 0;  // lanes are tiles of the x-y plane of this width; 0: they are not
    uint32_t workgroups = 1;  // side by side in a vector
    uint32_t live_values =
        0;  // most at one point, in registers of 32-bit lanes at `lanes` = native
    uint32_t vector_registers = 0;  // that the target has
    uint32_t shared_bytes = 0;
    uint32_t scratch_bytes = 0;
    uint32_t instructions_read = 0;  // of kernel IR, as it was read
    uint32_t instructions = 0;       // after the passes
    uint32_t llvm_instructions = 0;  // as emitted
    uint32_t code_bytes = 0;         // of the object file
    std::vector<RegionRecord> regions;
    std::vector<KeptRecord> kept;
    std::vector<ConstructRecord> constructs;
    std::vector<AccessRecord> accesses;
    bool matrix_tiles = false;  // the host's tile registers carry the MMAs out
    std::vector<MatrixRecord> matrix;
    std::vector<StageTime> times;
};

// Times the stages of a compilation one after the other.
class StageClock {
  public:
    // `explain` may be null.
    explicit StageClock(KernelExplanation* explain) : explain_(explain) {}

    // The stage that began where the one before ended is over.
    void End(const char* stage) {
        if (!explain_) {
            return;
        }
        const auto now = std::chrono::steady_clock::now();
        explain_->times.push_back(
            {stage, std::chrono::duration<double, std::milli>(now - start_).count()});
        start_ = now;
    }

  private:
    KernelExplanation* explain_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace fornax::kernel
