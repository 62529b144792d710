// Runs a kernel, invocation by invocation. An invocation keeps its place as a stack of blocks, so
// it can stop at a barrier and be resumed; everything else is one switch.
//
// Which lanes run a subgroup operation together (their tangle): in the order of the text, with a
// loop's iterations one after another, an invocation's place only ever moves forward. So once every
// lane of a subgroup waits or has ended, those at the first place of all are together: no other can
// come there any more. That is maximal reconvergence (SPV_KHR_maximal_reconvergence).
#include "compiler/kernel/interpret/interpret.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <mutex>

#include "base/per_process.h"
#include "compiler/kernel/interpret/memory.h"
#include "compiler/kernel/interpret/subgroup.h"
#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/ir/matrix.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

using namespace ir;

namespace {

// The number of readings so far, of all threads: it grows, and one thread's run is as its last.
uint64_t NextTime() {
    static std::atomic<uint64_t> readings = 0;
    return readings.fetch_add(1) + 1;
}

enum class Stop : uint8_t { kNone, kDone, kBarrier, kSubgroup };

// A block that is being run and the index of its next instruction.
struct Place {
    BlockId block;
    uint32_t next;
    uint64_t iteration = 0;  // of the loop whose block it is
};

struct Invocation {
    std::vector<uint64_t> values;  // by value
    std::vector<uint64_t> locals;  // all elements of all locals
    std::vector<Place> places;     // innermost last
    Stop stop = Stop::kNone;
    InstId stopped_at;
    uint32_t local_index = 0;
};

class Interpreter {
  public:
    Interpreter(const Kernel& kernel,
                const hal::DispatchFrame& dispatch,
                const InterpretLimits& limits)
        : kernel_(kernel),
          dispatch_(dispatch),
          steps_left_(limits.steps),
          worker_(limits.worker),
          shared_(kernel.shared_bytes),
          push_(kernel.push_constant_bytes),
          tables_(kernel.constant_data) {
        if (!push_.empty()) {
            std::memcpy(push_.data(), dispatch.push_constants, push_.size());
        }
        uint64_t elements = 0;
        for (const Local& local : kernel.locals) {
            local_begin_.push_back(elements);
            elements += local.count;
        }
        const auto& size = kernel.workgroup_size;
        invocations_.resize(size_t{size[0]} * size[1] * size[2]);
        for (uint32_t i = 0; i < invocations_.size(); ++i) {
            invocations_[i].values.resize(kernel.num_values());
            invocations_[i].locals.resize(elements);
            invocations_[i].local_index = i;
        }
    }

    Status RunWorkgroup(uint64_t index) {
        const uint32_t* count = dispatch_.workgroup_count;
        workgroup_[0] = static_cast<uint32_t>(index % count[0]);
        workgroup_[1] = static_cast<uint32_t>(index / count[0] % count[1]);
        workgroup_[2] = static_cast<uint32_t>(index / count[0] / count[1]);
        std::ranges::fill(shared_, 0);
        for (Invocation& invocation : invocations_) {
            std::ranges::fill(invocation.locals, 0);
            invocation.places = {{kernel_.body, 0}};
            invocation.stop = Stop::kNone;
        }
        for (;;) {
            for (Invocation& invocation : invocations_) {
                if (invocation.stop == Stop::kNone) {
                    FORNAX_RETURN_IF_ERROR(RunInvocation(invocation));
                }
            }
            if (ReleaseSubgroups()) {
                continue;
            }
            FORNAX_ASSIGN_OR_RETURN(bool again, ReleaseBarrier());
            if (!again) {
                return OkStatus();
            }
        }
    }

  private:
    Error Fault(InstId id, const std::string& what) const {
        return {ErrorCode::kDeviceLost, "The kernel '" + kernel_.name + "' " + what +
                                            " at instruction " + std::to_string(id.value()) + " (" +
                                            InfoOf(kernel_.inst(id).op).text + ")."};
    }

    // Which of a construct's blocks this is.
    size_t Ordinal(BlockId block) const {
        InstId parent = kernel_.block(block).parent;
        if (!parent.valid()) {
            return 0;
        }
        const auto& blocks = kernel_.inst(parent).blocks;
        return static_cast<size_t>(std::ranges::find(blocks, block) - blocks.begin());
    }
    // The order of two places where invocations wait: below 0 if `a` comes first.
    int ComparePlaces(const std::vector<Place>& a, const std::vector<Place>& b) const {
        auto order = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
        for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            if (int by = order(a[i].iteration, b[i].iteration); by != 0) {
                return by;
            }
            if (int by = order(Ordinal(a[i].block), Ordinal(b[i].block)); by != 0) {
                return by;
            }
            if (int by = order(a[i].next, b[i].next); by != 0) {
                return by;
            }
        }
        return order(a.size(), b.size());
    }

    // Where lanes of a subgroup wait for each other, those at the first place go on together. False
    // if none waits.
    bool ReleaseSubgroups() {
        bool any = false;
        for (size_t first = 0; first < invocations_.size(); first += kernel_.subgroup_size) {
            const size_t end = std::min(invocations_.size(), first + kernel_.subgroup_size);
            const Invocation* front = nullptr;
            for (size_t i = first; i < end; ++i) {
                const Invocation& invocation = invocations_[i];
                if (invocation.stop == Stop::kSubgroup &&
                    (!front || ComparePlaces(invocation.places, front->places) < 0)) {
                    front = &invocation;
                }
            }
            if (!front) {
                continue;
            }
            any = true;
            const InstId at = front->stopped_at;
            const std::vector<Place> place = front->places;
            std::vector<uint64_t*> lanes(kernel_.subgroup_size);
            for (size_t i = first; i < end; ++i) {
                Invocation& invocation = invocations_[i];
                if (invocation.stop != Stop::kSubgroup ||
                    ComparePlaces(invocation.places, place) != 0) {
                    continue;
                }
                lanes[i - first] = invocation.values.data();
                invocation.stop = Stop::kNone;
            }
            RunSubgroupOp(kernel_, kernel_.inst(at), lanes);
            CountMatrixCommands(kernel_.inst(at));
        }
        return any;
    }

    // Each product by itself: its operands and its accumulator come from the subgroup and go back
    // there.
    void CountMatrixCommands(const Instruction& inst) {
        if (inst.op != Op::kMatrixMulAdd || worker_ == nullptr) {
            return;
        }
        hal::MatrixCounts counts;
        ++counts.mmas[static_cast<uint32_t>(MatrixFormatOf(kernel_, inst))];
        counts.operands_loaded += 2;
        ++counts.accumulators_loaded;
        ++counts.accumulators_stored;
        worker_->unit_counts += hal::UnitCountsOf(counts);
    }

    // True if invocations wait at a barrier, which all that are not done must have reached.
    Result<bool> ReleaseBarrier() {
        InstId at;
        for (Invocation& invocation : invocations_) {
            if (invocation.stop != Stop::kBarrier) {
                continue;
            }
            if (at.valid() && at != invocation.stopped_at) {
                return Fault(at, "has invocations at different barriers");
            }
            at = invocation.stopped_at;
            invocation.stop = Stop::kNone;
        }
        return at.valid();
    }

    Status RunInvocation(Invocation& invocation) {
        while (invocation.stop == Stop::kNone) {
            if (steps_left_-- == 0) {
                ++steps_left_;
                return Error{ErrorCode::kTimeout, "The kernel '" + kernel_.name +
                                                      "' ran more instructions than the "
                                                      "interpreter's limit."};
            }
            constexpr uint64_t kStepsBetweenLooks = 1024;
            if (steps_left_ % kStepsBetweenLooks == 0 && worker_ != nullptr &&
                std::atomic_ref(worker_->stop_request).load(std::memory_order_relaxed) != 0) {
                return Error{ErrorCode::kTimeout,
                             "The kernel '" + kernel_.name + "' was asked to stop."};
            }
            Place& place = invocation.places.back();
            InstId id = kernel_.block(place.block).insts[place.next++];
            const Instruction& inst = kernel_.inst(id);
            if (inst.op == Op::kUnreachable) {
                return Fault(id, "reached what must be unreachable");
            }
            if (HasProperty(inst.op, kTerminator)) {
                Leave(invocation, inst);
            } else if (HasProperty(inst.op, kRegions)) {
                Enter(invocation, inst);
            } else {
                Step(invocation, id, inst);
            }
        }
        return OkStatus();
    }

    std::span<const uint64_t> Read(const Invocation& invocation, std::span<const ValueId> ids) {
        scratch_.clear();
        for (ValueId id : ids) {
            scratch_.push_back(invocation.values[id.value()]);
        }
        return scratch_;
    }
    // Reads all before it writes any: parameters may be given one another's values.
    void Copy(Invocation& invocation, std::span<const ValueId> from, std::span<const ValueId> to) {
        Read(invocation, from);
        for (size_t i = 0; i < to.size(); ++i) {
            invocation.values[to[i].value()] = scratch_[i];
        }
    }

    void Enter(Invocation& invocation, const Instruction& inst) {
        size_t block = 0;
        if (inst.op == Op::kIf) {
            block = invocation.values[inst.operands[0].value()] ? 0 : 1;
        } else if (inst.op == Op::kSwitch) {
            auto found =
                std::ranges::find(inst.case_values, invocation.values[inst.operands[0].value()]);
            if (found != inst.case_values.end()) {
                block = static_cast<size_t>(found - inst.case_values.begin()) + 1;
            }
        } else if (inst.op == Op::kLoop) {
            Copy(invocation, inst.operands, kernel_.block(inst.blocks[0]).params);
        }
        invocation.places.push_back({inst.blocks[block], 0});
    }

    void Leave(Invocation& invocation, const Instruction& inst) {
        auto& places = invocation.places;
        InstId parent = kernel_.block(places.back().block).parent;
        switch (inst.op) {
            case Op::kYield:
                Copy(invocation, inst.operands, kernel_.inst(parent).results);
                places.pop_back();
                break;
            case Op::kExit:
                Copy(invocation, inst.operands, kernel_.inst(inst.target).results);
                while (kernel_.block(places.back().block).parent != inst.target) {
                    places.pop_back();
                }
                places.pop_back();
                break;
            case Op::kContinue: {
                BlockId continuing = kernel_.inst(inst.target).blocks[1];
                Copy(invocation, inst.operands, kernel_.block(continuing).params);
                while (kernel_.block(places.back().block).parent != inst.target) {
                    places.pop_back();
                }
                places.back() = {continuing, 0, places.back().iteration};
                break;
            }
            case Op::kNext: {
                BlockId body = kernel_.inst(parent).blocks[0];
                Copy(invocation, inst.operands, kernel_.block(body).params);
                places.back() = {body, 0, places.back().iteration + 1};
                break;
            }
            default:
                invocation.stop = Stop::kDone;
                break;
        }
    }

    uint64_t Builtin(const Invocation& invocation, BuiltinId builtin) const {
        const auto& size = kernel_.workgroup_size;
        uint32_t index = invocation.local_index;
        auto axis = [builtin](BuiltinId first) {
            return static_cast<size_t>(builtin) - static_cast<size_t>(first);
        };
        switch (builtin) {
            case BuiltinId::kWorkgroupIdX:
            case BuiltinId::kWorkgroupIdY:
            case BuiltinId::kWorkgroupIdZ: {
                size_t i = axis(BuiltinId::kWorkgroupIdX);
                return dispatch_.base_workgroup[i] + workgroup_[i];
            }
            case BuiltinId::kNumWorkgroupsX:
            case BuiltinId::kNumWorkgroupsY:
            case BuiltinId::kNumWorkgroupsZ:
                return dispatch_.workgroup_count[axis(BuiltinId::kNumWorkgroupsX)];
            case BuiltinId::kLocalIdX:
                return index % size[0];
            case BuiltinId::kLocalIdY:
                return index / size[0] % size[1];
            case BuiltinId::kLocalIdZ:
                return index / size[0] / size[1];
            case BuiltinId::kLocalIndex:
                return index;
            case BuiltinId::kSubgroupId:
                return index / kernel_.subgroup_size;
            case BuiltinId::kSubgroupLane:
                return index % kernel_.subgroup_size;
            case BuiltinId::kNumSubgroups:
                return (invocations_.size() + kernel_.subgroup_size - 1) / kernel_.subgroup_size;
            case BuiltinId::kSubgroupSize:
                return kernel_.subgroup_size;
        }
        return 0;
    }

    // Element k of a run lies at offset + k * size in the offset's own width.
    uint64_t ElementOffset(ValueId offset, uint64_t base, Type type, size_t k) const {
        uint64_t at = base + k * ByteSize(type);
        return kernel_.type(offset) == Type::kI32 ? at & UINT32_MAX : at;
    }
    void Load(Invocation& invocation, const Instruction& inst, const MemoryRange& range) {
        ValueId offset = inst.operands.back();
        uint64_t base = invocation.values[offset.value()];
        for (size_t k = 0; k < inst.results.size(); ++k) {
            Type type = kernel_.type(inst.results[k]);
            invocation.values[inst.results[k].value()] =
                LoadElement(range, type, ElementOffset(offset, base, type, k));
        }
    }
    // What the invocation's lane has of it.
    void LoadMatrix(Invocation& invocation, const Instruction& inst, const MemoryRange& range) {
        const uint64_t begin = invocation.values[inst.operands[1].value()];
        const uint64_t stride = invocation.values[inst.operands[2].value()];
        const uint32_t lane = invocation.local_index % kernel_.subgroup_size;
        for (size_t k = 0; k < inst.results.size(); ++k) {
            const uint64_t element = k * kernel_.subgroup_size + lane;
            const uint64_t row = begin + element / kMatrixSize * stride;
            invocation.values[inst.results[k].value()] = LoadElement(
                range, Type::kF32,
                ElementOffset(inst.operands[1], row, Type::kF32, element % kMatrixSize));
        }
    }
    // Operand `at` is the offset; the elements follow.
    void Store(Invocation& invocation,
               const Instruction& inst,
               const MemoryRange& range,
               size_t at) {
        ValueId offset = inst.operands[at];
        uint64_t base = invocation.values[offset.value()];
        for (size_t k = 0; k + at + 1 < inst.operands.size(); ++k) {
            ValueId value = inst.operands[k + at + 1];
            Type type = kernel_.type(value);
            StoreElement(range, type, ElementOffset(offset, base, type, k),
                         invocation.values[value.value()]);
        }
    }
    // What a buffer value stands for: the descriptor of a binding, or the two numbers it was made
    // of.
    MemoryRange Buffer(const Invocation& invocation, ValueId buffer) const {
        const auto& values = invocation.values;
        const Instruction& made = *kernel_.Definition(buffer);
        if (made.op != Op::kBufferFrom) {
            return BufferRange(kernel_, dispatch_, values[buffer.value()]);
        }
        return {reinterpret_cast<uint8_t*>(values[made.operands[0].value()]),
                values[made.operands[1].value()]};
    }
    // Device addresses are the host's, so the element itself is the range.
    void LoadGlobal(Invocation& invocation, const Instruction& inst) {
        const uint64_t address = invocation.values[inst.operands[0].value()];
        for (size_t k = 0; k < inst.results.size(); ++k) {
            const Type type = kernel_.type(inst.results[k]);
            invocation.values[inst.results[k].value()] =
                LoadElement(GlobalElement(type, address, k), type, 0);
        }
    }
    void StoreGlobal(Invocation& invocation, const Instruction& inst) {
        const uint64_t address = invocation.values[inst.operands[0].value()];
        for (size_t k = 0; k + 1 < inst.operands.size(); ++k) {
            const Type type = kernel_.type(inst.operands[k + 1]);
            StoreElement(GlobalElement(type, address, k), type, 0,
                         invocation.values[inst.operands[k + 1].value()]);
        }
    }
    static MemoryRange GlobalElement(Type type, uint64_t address, size_t k) {
        return {reinterpret_cast<uint8_t*>(address + k * ByteSize(type)), ByteSize(type)};
    }
    // Operand `at` is the offset; the value and the comparand follow.
    void Atomic(Invocation& invocation,
                const Instruction& inst,
                const MemoryRange& range,
                size_t at) {
        ApplyAt(invocation, inst, range, invocation.values[inst.operands[at].value()], at);
    }
    void AtomicGlobal(Invocation& invocation, const Instruction& inst) {
        const Type type = kernel_.type(inst.results[0]);
        ApplyAt(invocation, inst,
                GlobalElement(type, invocation.values[inst.operands[0].value()], 0), 0, 0);
    }
    void ApplyAt(Invocation& invocation,
                 const Instruction& inst,
                 const MemoryRange& range,
                 uint64_t offset,
                 size_t at) {
        // Other workers may be interpreting other workgroups at the same time.
        static ProcessMutex mutex;
        std::lock_guard lock(mutex);
        std::span<const uint64_t> operands = Read(invocation, inst.operands);
        Type type = kernel_.type(inst.results[0]);
        uint64_t old = LoadElement(range, type, offset);
        uint64_t comparand = at + 2 < operands.size() ? operands[at + 2] : 0;
        StoreElement(
            range, type, offset,
            ApplyAtomic(static_cast<AtomicOp>(inst.imm), type, old, operands[at + 1], comparand));
        invocation.values[inst.results[0].value()] = old;
    }

    uint64_t* LocalElement(Invocation& invocation, const Instruction& inst) {
        uint64_t element = invocation.values[inst.operands[0].value()];
        return element < kernel_.locals[inst.imm].count
                   ? &invocation.locals[local_begin_[inst.imm] + element]
                   : nullptr;
    }

    void Step(Invocation& invocation, InstId id, const Instruction& inst) {
        auto& values = invocation.values;
        auto buffer = [&] { return Buffer(invocation, inst.operands[0]); };
        auto range = [](std::vector<uint8_t>& bytes) {
            return MemoryRange{bytes.data(), bytes.size()};
        };
        switch (inst.op) {
            case Op::kConst:
                values[inst.results[0].value()] = inst.imm;
                break;
            case Op::kUndef:
                values[inst.results[0].value()] = 0;
                break;
            case Op::kBuiltin:
                values[inst.results[0].value()] =
                    Builtin(invocation, static_cast<BuiltinId>(inst.imm));
                break;
            case Op::kBuffer:
                values[inst.results[0].value()] =
                    EncodeBuffer(inst.imm, values[inst.operands[0].value()]);
                break;
            case Op::kBufferSize:
                values[inst.results[0].value()] = std::min<uint64_t>(
                    buffer().size_bytes,
                    kernel_.type(inst.results[0]) == Type::kI32 ? UINT32_MAX : UINT64_MAX);
                break;
            case Op::kBufferAddress:
                values[inst.results[0].value()] = reinterpret_cast<uint64_t>(buffer().data);
                break;
            case Op::kBufferFrom:
                values[inst.results[0].value()] = 0;  // what uses it looks at the operands
                break;
            case Op::kLoadGlobal:
                LoadGlobal(invocation, inst);
                break;
            case Op::kStoreGlobal:
                StoreGlobal(invocation, inst);
                break;
            case Op::kAtomicGlobal:
                AtomicGlobal(invocation, inst);
                break;
            case Op::kLoadBuffer:
                Load(invocation, inst, buffer());
                break;
            case Op::kMatrixLoad:
                LoadMatrix(invocation, inst, buffer());
                break;
            case Op::kLoadDescriptor:
                Load(invocation, inst, DescriptorRange(kernel_, dispatch_, inst.imm));
                break;
            case Op::kLoadShared:
                Load(invocation, inst, range(shared_));
                break;
            case Op::kLoadPush:
                Load(invocation, inst, range(push_));
                break;
            case Op::kLoadConstant:
                Load(invocation, inst, range(tables_));
                break;
            case Op::kStoreBuffer:
                Store(invocation, inst, buffer(), 1);
                break;
            case Op::kStoreShared:
                Store(invocation, inst, range(shared_), 0);
                break;
            case Op::kAtomicBuffer:
                Atomic(invocation, inst, buffer(), 1);
                break;
            case Op::kAtomicShared:
                Atomic(invocation, inst, range(shared_), 0);
                break;
            case Op::kLoadLocal: {
                const uint64_t* element = LocalElement(invocation, inst);
                values[inst.results[0].value()] = element ? *element : 0;
                break;
            }
            case Op::kStoreLocal:
                if (uint64_t* element = LocalElement(invocation, inst)) {
                    *element = values[inst.operands[1].value()];
                }
                break;
            case Op::kReadClock:
                values[inst.results[0].value()] = NextTime();
                break;
            case Op::kMemoryBarrier:
                break;
            case Op::kCount:
                if (worker_ != nullptr && worker_->region_counts != nullptr) {
                    ++worker_->region_counts[inst.imm];
                }
                break;
            case Op::kBarrier:
                invocation.stop = Stop::kBarrier;
                invocation.stopped_at = id;
                break;
            default: {
                if (HasProperty(inst.op, kSubgroup)) {
                    invocation.stop = Stop::kSubgroup;
                    invocation.stopped_at = id;
                    break;
                }
                std::array<uint64_t, 2> results = {};
                bool evaluated = Evaluate(kernel_, inst, Read(invocation, inst.operands), results);
                assert(evaluated);
                (void)evaluated;
                for (size_t i = 0; i < inst.results.size(); ++i) {
                    values[inst.results[i].value()] = results[i];
                }
                break;
            }
        }
    }

    const Kernel& kernel_;
    const hal::DispatchFrame& dispatch_;
    uint64_t steps_left_;
    hal::WorkerFrame* const worker_;
    uint32_t workgroup_[3] = {};
    std::vector<uint8_t> shared_;
    std::vector<uint8_t> push_;
    std::vector<uint8_t> tables_;
    std::vector<uint64_t> local_begin_;  // by local: its first element in Invocation::locals
    std::vector<Invocation> invocations_;
    std::vector<uint64_t> scratch_;
};

}  // namespace

Status Interpret(const Kernel& kernel,
                 const hal::DispatchFrame& dispatch,
                 uint64_t first_workgroup,
                 uint64_t count,
                 const InterpretLimits& limits) {
    Interpreter interpreter(kernel, dispatch, limits);
    for (uint64_t i = 0; i < count; ++i) {
        if (limits.worker) {
            limits.worker->workgroup = first_workgroup + i;
        }
        FORNAX_RETURN_IF_ERROR(interpreter.RunWorkgroup(first_workgroup + i));
    }
    return OkStatus();
}

}  // namespace fornax::kernel
