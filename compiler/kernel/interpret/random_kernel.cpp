#include "compiler/kernel/interpret/random_kernel.h"

#include <array>
#include <bit>
#include <utility>

#include "compiler/kernel/interpret/random_places.h"
#include "compiler/kernel/interpret/test_dispatch.h"
#include "compiler/kernel/ir/builder.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMaxDepth = 5;
constexpr uint32_t kSharedOwnBytes = 16;

class Generator : RandomPlaces {
  public:
    Generator(uint64_t seed, const RandomKernelOptions& options) : RandomPlaces(seed, options) {}

    Kernel Run() {
        Declare();
        kernel_.body = kernel_.NewBlock({});
        b_.SetBlock(kernel_.body);
        MakeInputs();
        Statements(options_.statements, 0);
        StoreResults();
        b_.Append(Op::kReturn, {}, {});
        return std::move(kernel_);
    }

  private:
    // A construct around the place that is being made.
    struct Around {
        InstId inst;
        std::vector<Type> results;
        bool in_loop_body = false;
        std::vector<Type> continuing;  // parameters of the loop's continuing block
    };

    void Declare() {
        kernel_.name = "random";
        constexpr std::array<uint32_t, 3> kSizes[] = {{8, 1, 1}, {16, 1, 1}, {24, 1, 1}, {8, 4, 1},
                                                      {4, 8, 1}, {16, 2, 1}, {8, 8, 1},  {4, 4, 2},
                                                      {3, 5, 1}, {1, 1, 1},  {4, 1, 1},  {2, 2, 1}};
        kernel_.workgroup_size = kSizes[random_.Below(std::size(kSizes))];
        invocations_ =
            kernel_.workgroup_size[0] * kernel_.workgroup_size[1] * kernel_.workgroup_size[2];
        kernel_.subgroup_size = 8;
        if (options_.subgroup_operations) {
            kernel_.subgroup_size = 8u << random_.Below(4);
            if (random_.Chance(50)) {
                kernel_.workgroup_size = {4 + random_.Below(20) * 4, 1, 1};
            }
            invocations_ =
                kernel_.workgroup_size[0] * kernel_.workgroup_size[1] * kernel_.workgroup_size[2];
        }
        kernel_.shared_bytes = random_.Chance(75) ? kSharedOwnBytes * invocations_ : 0;
        kernel_.zero_shared = true;
        kernel_.push_constant_bytes = TestDispatch::kPushBytes;
        kernel_.robust_buffer_access = true;
        for (uint32_t i = 0; i < 3; ++i) {
            Binding binding;
            binding.binding = binding.layout.binding = i;
            binding.layout.offset_bytes = i * 16;
            binding.writable = i < 2;
            kernel_.bindings.push_back(binding);
        }
        for (int i = 0; i < 64; ++i) {
            kernel_.constant_data.push_back(static_cast<uint8_t>(random_.Below(12)));
        }
        uint32_t locals = 2 + random_.Below(5);
        for (uint32_t i = 0; i < locals; ++i) {
            kernel_.locals.push_back({AnyType(), random_.Chance(60) ? 1 : 4u});
        }
    }

    void MakeInputs() {
        zero_ = b_.ConstI32(0);
        auto builtin = [&](BuiltinId id) {
            ValueId value = b_.Emit(Op::kBuiltin, Type::kI32, {}, static_cast<uint64_t>(id));
            Add(value);
            return value;
        };
        local_index_ = builtin(BuiltinId::kLocalIndex);
        ValueId group = builtin(BuiltinId::kWorkgroupIdX);
        if (random_.Chance(15)) {  // fixes the vector's width
            builtin(BuiltinId::kSubgroupLane);
        }
        // The local index as shaders with a row length from outside compute it.
        ValueId local = local_index_;
        if (random_.Chance(50)) {
            ValueId width =
                b_.Emit(Op::kLoadPush, Type::kI32, {b_.ConstI32(TestDispatch::kWidthOffset)}, 4);
            ValueId row =
                Emit(Op::kIAdd, Type::kI32,
                     {Emit(Op::kIMul, Type::kI32,
                           {builtin(BuiltinId::kLocalIdZ), b_.ConstI32(kernel_.workgroup_size[1])}),
                      builtin(BuiltinId::kLocalIdY)});
            ValueId before = Emit(Op::kIMul, Type::kI32, {row, width});
            local = Emit(Op::kIAdd, Type::kI32, {builtin(BuiltinId::kLocalIdX), before});
            Add(local);
        }
        ValueId global =
            Emit(Op::kIAdd, Type::kI32,
                 {Emit(Op::kIMul, Type::kI32, {group, b_.ConstI32(invocations_)}), local});
        static constexpr uint32_t kPieces[] = {
            TestDispatch::kOwnBytes, TestDispatch::kOwnBytes, 16, 8, 4, 2};
        own_bytes_ = kPieces[random_.Below(6)];
        own_ = Emit(Op::kIMul, Type::kI32, {global, b_.ConstI32(own_bytes_)});
        for (uint32_t i = 0; i < 3; ++i) {
            buffers_[i] = b_.Emit(Op::kBuffer, Type::kBuffer, {zero_}, i);
        }
        for (uint32_t i = 0; i < kernel_.locals.size() && options_.portable; ++i) {
            const Local local = kernel_.locals[i];
            for (uint32_t k = 0; k < local.count; ++k) {
                StoreLocal(i, b_.ConstI32(k), Pick(local.type));
            }
        }
    }

    void StoreLocal(uint32_t local, ValueId index, ValueId value) {
        ValueId operands[] = {index, value};
        b_.Append(Op::kStoreLocal, operands, {}, local);
    }

    // --- memory
    void LoadRun(Op op,
                 std::initializer_list<ValueId> operands,
                 Type type,
                 uint32_t run,
                 uint32_t align = 0) {
        std::vector<Type> types(run, type);
        InstId load = b_.Append(op, {operands.begin(), operands.size()}, types,
                                std::max(align, ByteSize(type)));
        for (ValueId result : std::vector(kernel_.inst(load).results)) {
            Add(result);
        }
    }
    void StoreRun(Op op, std::initializer_list<ValueId> place, Type type, uint32_t run) {
        std::vector<ValueId> operands(place);
        for (uint32_t i = 0; i < run; ++i) {
            operands.push_back(Observable(Pick(type)));
        }
        b_.Append(op, operands, {}, ByteSize(type));
    }
    ValueId SharedOwn(Type type, uint32_t run) {
        ValueId base = Emit(Op::kIMul, Type::kI32, {local_index_, b_.ConstI32(kSharedOwnBytes)});
        return Emit(Op::kIAdd, Type::kI32, {base, OffsetWithin(kSharedOwnBytes, type, run)});
    }
    void MemoryStatement() {
        static constexpr uint32_t kRuns[] = {2, 2, 3, 4, 8, 16};
        Type type = MemoryType();
        while (ByteSize(type) > own_bytes_) {
            type = MemoryType();
        }
        uint32_t run = random_.Chance(60) ? 1 : kRuns[random_.Below(6)];
        run = std::min(run, std::min(own_bytes_, kSharedOwnBytes) / ByteSize(type));
        switch (random_.Below(10)) {
            case 7: {  // the size of a buffer's range: its address is not the same everywhere
                const Type word = Type::kI32;
                ValueId at = Emit(Op::kIAdd, word, {OffsetWithin(8, word, 1), b_.ConstI32(8)});
                Add(b_.Emit(Op::kLoadDescriptor, word, {at}, random_.Below(3)));
                break;
            }
            case 0: {
                auto [buffer, offset, align] = BufferPlace(type, run, false);
                LoadRun(Op::kLoadBuffer, {buffer, AnyWidth(offset)}, type, run, align);
                break;
            }
            case 1: {
                auto [buffer, offset, align] = BufferPlace(type, run, true);
                StoreRun(Op::kStoreBuffer, {buffer, AnyWidth(offset)}, type, run);
                break;
            }
            case 2:
                LoadRun(Op::kLoadPush, {OffsetWithin(64, type, run)}, type, run);
                break;
            case 3:
                LoadRun(Op::kLoadConstant, {OffsetWithin(64, type, run)}, type, run);
                break;
            case 4:
                if (kernel_.shared_bytes == 0) {
                    LocalStatement();
                } else if (random_.Chance(50)) {
                    LoadRun(Op::kLoadShared, {SharedOwn(type, run)}, type, run);
                } else {
                    StoreRun(Op::kStoreShared, {SharedOwn(type, run)}, type, run);
                }
                break;
            case 5: {  // sums do not depend on the order
                Type i32 = Type::kI32;
                ValueId at = AnyWidth(OffsetWithin(TestDispatch::kBinding1Bytes, i32, 1));
                ValueId operands[] = {buffers_[1], at, Pick(i32)};
                InstId atomic = b_.Append(Op::kAtomicBuffer, operands, {&i32, 1},
                                          static_cast<uint64_t>(AtomicOp::kAdd));
                if (!options_.portable) {
                    Add(kernel_.inst(atomic).results[0]);
                }
                break;
            }
            case 8:
                GlobalStatement(type, run);
                break;
            case 9:
                ViewStatement(type, run);
                break;
            default:
                LocalStatement();
                break;
        }
    }
    // By device address; only where the buffer is, because nothing checks. Addresses stay out of
    // the pool: they differ from run to run.
    ValueId AddressOf(const Place& place) {
        ValueId base = b_.Emit(Op::kBufferAddress, Type::kI64, {place.buffer});
        ValueId offset = b_.Emit(Op::kSExt, Type::kI64, {place.offset}, 0, kNoLaneWrap);
        return b_.Emit(Op::kIAdd, Type::kI64, {base, offset});
    }
    void GlobalStatement(Type type, uint32_t run) {
        if (random_.Chance(40)) {
            StoreRun(Op::kStoreGlobal, {AddressOf(Own(type, run))}, type, run);
            return;
        }
        ValueId address = AddressOf(Own(type, run));
        if (random_.Chance(60)) {
            ValueId other = AddressOf(Strided(type, run, true));
            address = random_.Chance(50)
                          ? other
                          : b_.Emit(Op::kSelect, Type::kI64, {Pick(Type::kBool), address, other});
        }
        LoadRun(Op::kLoadGlobal, {address}, type, run);
    }
    // A buffer that is chosen at run time.
    void ViewStatement(Type type, uint32_t run) {
        ValueId condition = Pick(Type::kBool);
        auto choose = [&](Op op) {
            return b_.Emit(Op::kSelect, Type::kI64,
                           {condition, b_.Emit(op, Type::kI64, {buffers_[0]}),
                            b_.Emit(op, Type::kI64, {buffers_[2]})});
        };
        ValueId buffer = b_.Emit(Op::kBufferFrom, Type::kBuffer,
                                 {choose(Op::kBufferAddress), choose(Op::kBufferSize)});
        ValueId offset = b_.Emit(Op::kSelect, Type::kI32,
                                 {condition, Own(type, run).offset,
                                  OffsetWithin(2 * TestDispatch::kBinding2Bytes, type, run)});
        LoadRun(Op::kLoadBuffer, {buffer, AnyWidth(offset)}, type, run);
        Add(b_.Emit(Op::kBufferSize, Type::kI32, {buffer}));
    }
    void LocalStatement() {
        uint32_t index = random_.Below(static_cast<uint32_t>(kernel_.locals.size()));
        const Local local = kernel_.locals[index];
        // Most arrays are only indexed by constants.
        ValueId element = index % 3 == 2 && random_.Chance(50)
                              ? Masked(Type::kI32, local.count - 1)
                              : b_.ConstI32(random_.Below(local.count));
        if (!options_.portable && random_.Chance(3)) {
            element = b_.ConstI32(77);
        }
        if (random_.Chance(50)) {
            Add(b_.Emit(Op::kLoadLocal, local.type, {element}, index));
        } else {
            StoreLocal(index, element, Pick(local.type));
        }
    }
    // Every invocation writes its own part of shared memory, then reads anybody's.
    void ExchangeThroughShared() {
        StoreRun(Op::kStoreShared, {SharedOwn(Type::kI32, 1)}, Type::kI32, 1);
        b_.Append(Op::kBarrier, {}, {});
        LoadRun(Op::kLoadShared, {OffsetWithin(kernel_.shared_bytes, Type::kI32, 1)}, Type::kI32,
                1);
        b_.Append(Op::kBarrier, {}, {});
    }

    // --- control flow
    std::vector<ValueId> PickAll(std::span<const Type> types) {
        std::vector<ValueId> values;
        for (Type type : types) {
            values.push_back(Pick(type));
        }
        return values;
    }
    std::vector<Type> SomeTypes() {
        std::vector<Type> types(random_.Below(3));
        for (Type& type : types) {
            type = AnyType();
        }
        return types;
    }
    InstId NewConstruct(Op op, std::span<const ValueId> operands, std::span<const Type> results) {
        return b_.Append(op, operands, results);
    }
    void AddResults(InstId inst) {
        for (ValueId result : std::vector(kernel_.inst(inst).results)) {
            Add(result);
        }
    }

    // Fills a new block of the construct. `end` adds the terminator that control usually reaches.
    template <typename End>
    BlockId FillBlock(InstId construct, uint32_t statements, uint32_t depth, End end) {
        BlockId block = kernel_.NewBlock(construct);
        FillExisting(block, statements, depth, end);
        return block;
    }
    template <typename End>
    void FillExisting(BlockId block, uint32_t statements, uint32_t depth, End end) {
        std::array<size_t, kNumTypes> marks;
        BlockId outer = b_.block();
        for (uint32_t i = 0; i < kNumTypes; ++i) {
            marks[i] = pool_[i].size();
        }
        for (ValueId param : std::vector(kernel_.block(block).params)) {
            Add(param);
        }
        b_.SetBlock(block);
        Statements(statements, depth);
        end();
        b_.SetBlock(outer);
        for (uint32_t i = 0; i < kNumTypes; ++i) {
            pool_[i].resize(marks[i]);
        }
    }
    void Yield(std::span<const Type> types) {
        std::vector<ValueId> values = PickAll(types);
        b_.Append(Op::kYield, values, {});
    }

    // Leaves some construct around, or the kernel. False if there is none to leave.
    bool Leave() {
        if (must_stay_ || (around_.empty() && !random_.Chance(8))) {
            return false;
        }
        uniform_ = false;
        left_ = true;
        if (around_.empty() || random_.Chance(8)) {
            b_.Append(Op::kReturn, {}, {});
            return true;
        }
        const Around& around = around_[random_.Below(static_cast<uint32_t>(around_.size()))];
        bool next_iteration = around.in_loop_body && random_.Chance(50);
        std::vector<ValueId> values = PickAll(next_iteration ? around.continuing : around.results);
        InstId leave = b_.Append(next_iteration ? Op::kContinue : Op::kExit, values, {});
        kernel_.inst(leave).target = around.inst;
        return true;
    }

    void IfStatement(uint32_t budget, uint32_t depth) {
        bool was_uniform = std::exchange(uniform_, false);
        std::vector<Type> results = SomeTypes();
        ValueId condition = Pick(Type::kBool);
        InstId inst = NewConstruct(Op::kIf, {&condition, 1}, results);
        around_.push_back({inst, results});
        for (int side = 0; side < 2; ++side) {
            BlockId block = FillBlock(inst, random_.Below(budget + 1), depth + 1, [&] {
                if (!random_.Chance(20) || !Leave()) {
                    Yield(results);
                }
            });
            kernel_.inst(inst).blocks.push_back(block);
        }
        around_.pop_back();
        AddResults(inst);
        uniform_ = was_uniform && !left_;
    }
    void SwitchStatement(uint32_t budget, uint32_t depth) {
        bool was_uniform = std::exchange(uniform_, false);
        std::vector<Type> results = SomeTypes();
        ValueId selector = random_.Chance(80) ? Masked(Type::kI32, 7) : Pick(Type::kI32);
        InstId inst = NewConstruct(Op::kSwitch, {&selector, 1}, results);
        around_.push_back({inst, results});
        uint32_t cases = random_.Below(5);
        for (uint32_t i = 0; i <= cases; ++i) {
            BlockId block = FillBlock(inst, random_.Below(budget / 2 + 1), depth + 1, [&] {
                if (!random_.Chance(15) || !Leave()) {
                    Yield(results);
                }
            });
            kernel_.inst(inst).blocks.push_back(block);
            if (i) {
                kernel_.inst(inst).case_values.push_back(i - 1);
            }
        }
        around_.pop_back();
        AddResults(inst);
        uniform_ = was_uniform && !left_;
    }
    void ScopeStatement(uint32_t budget, uint32_t depth) {
        const bool was_uniform = std::exchange(uniform_, uniform_ && random_.Chance(50));
        const bool was_bound = std::exchange(must_stay_, must_stay_ || uniform_);
        std::vector<Type> results = SomeTypes();
        InstId inst = NewConstruct(Op::kScope, {}, results);
        around_.push_back({inst, results});
        BlockId block = FillBlock(inst, budget, depth + 1, [&] { Yield(results); });
        kernel_.inst(inst).blocks.push_back(block);
        around_.pop_back();
        AddResults(inst);
        must_stay_ = was_bound;
        uniform_ = was_uniform && !left_;
    }
    // A counter decides when the loop ends; it counts in the continuing block, so every way round
    // makes progress.
    void LoopStatement(uint32_t budget, uint32_t depth) {
        bool was_uniform = uniform_;
        std::vector<Type> results = SomeTypes();
        std::vector<Type> carried = SomeTypes();
        std::vector<Type> continuing = SomeTypes();
        bool known_trips = random_.Chance(60);
        ValueId limit = known_trips ? b_.ConstI32(1 + random_.Below(4)) : Masked(Type::kI32, 3);
        // Either its body may hold barriers, or invocations may leave it early.
        bool was_bound = must_stay_;
        uniform_ &= known_trips && random_.Chance(50);
        must_stay_ |= uniform_;
        std::vector<ValueId> inits = PickAll(carried);
        inits.insert(inits.begin(), zero_);
        InstId inst = NewConstruct(Op::kLoop, inits, results);
        if (random_.Chance(10)) {
            kernel_.inst(inst).flags = random_.Chance(50) ? kUnrollHint : kDontUnrollHint;
        }
        BlockId body = kernel_.NewBlock(inst);
        BlockId next = kernel_.NewBlock(inst);
        kernel_.inst(inst).blocks = {body, next};
        ValueId counter = kernel_.AddParam(body, Type::kI32);
        for (Type type : carried) {
            kernel_.AddParam(body, type);
        }
        for (Type type : continuing) {
            kernel_.AddParam(next, type);
        }
        around_.push_back({inst, results, true, continuing});
        bool test_at_top = random_.Chance(60);
        FillExisting(body, 0, depth + 1, [&] {
            if (test_at_top) {
                ExitUnless(inst, Op::kSLt, counter, limit, results);
            }
            Statements(budget, depth + 1);
            if (!test_at_top && random_.Chance(50)) {
                ValueId following = Emit(Op::kIAdd, Type::kI32, {counter, b_.ConstI32(1)});
                ExitUnless(inst, Op::kSLt, following, limit, results);
            }
            std::vector<ValueId> values = PickAll(continuing);
            InstId jump = b_.Append(Op::kContinue, values, {});
            kernel_.inst(jump).target = inst;
        });
        around_.back().in_loop_body = false;
        // The body's parameters are visible here too.
        std::array<size_t, kNumTypes> marks;
        for (uint32_t i = 0; i < kNumTypes; ++i) {
            marks[i] = pool_[i].size();
        }
        for (ValueId param : std::vector(kernel_.block(body).params)) {
            Add(param);
        }
        FillExisting(next, random_.Below(3), depth + 1, [&] {
            ValueId following = Emit(Op::kIAdd, Type::kI32, {counter, b_.ConstI32(1)});
            ExitUnless(inst, Op::kSLt, following, b_.ConstI32(5), results);
            std::vector<ValueId> values = PickAll(carried);
            values.insert(values.begin(), following);
            b_.Append(Op::kNext, values, {});
        });
        for (uint32_t i = 0; i < kNumTypes; ++i) {
            pool_[i].resize(marks[i]);
        }
        around_.pop_back();
        AddResults(inst);
        must_stay_ = was_bound;
        uniform_ = was_uniform && !left_;
    }
    void ExitUnless(InstId loop, Op op, ValueId a, ValueId b, std::span<const Type> results) {
        ValueId stays = Emit(op, Type::kBool, {a, b});
        InstId test = NewConstruct(Op::kIf, {&stays, 1}, {});
        BlockId yields = kernel_.NewBlock(test);
        BlockId exits = kernel_.NewBlock(test);
        kernel_.inst(test).blocks = {yields, exits};
        Builder(kernel_, yields).Append(Op::kYield, {}, {});
        BlockId outer = b_.block();
        b_.SetBlock(exits);
        std::vector<ValueId> values = PickAll(results);
        InstId leave = b_.Append(Op::kExit, values, {});
        kernel_.inst(leave).target = loop;
        b_.SetBlock(outer);
    }

    void Statements(uint32_t budget, uint32_t depth) {
        while (budget > 0) {
            uint32_t inner = 1 + random_.Below(std::max(1u, budget / 2));
            uint32_t kind = random_.Below(100);
            if (depth >= kMaxDepth) {
                kind %= 70;
            }
            if (options_.subgroup_operations && random_.Chance(15)) {
                SubgroupStatement();
                inner = 1;
            } else if (kind < 45) {
                PureStatement();
                inner = 1;
            } else if (kind < 70) {
                MemoryStatement();
                inner = 1;
            } else if (kind < 82) {
                IfStatement(inner, depth);
            } else if (kind < 86) {
                SwitchStatement(inner, depth);
            } else if (kind < 94) {
                LoopStatement(inner, depth);
            } else if (kind < 97) {
                ScopeStatement(inner, depth);
            } else if (uniform_ && kernel_.shared_bytes != 0) {
                ExchangeThroughShared();
            }
            budget -= std::min(budget, inner);
        }
    }

    // So that what was computed matters.
    void StoreResults() {
        for (Type type :
             {Type::kI32, Type::kF32, Type::kI64, Type::kI16, Type::kI8, Type::kF16, Type::kF64}) {
            if (ByteSize(type) > own_bytes_) {
                continue;
            }
            ValueId value = Observable(Pick(type));
            Place place = Own(type, 1);
            ValueId operands[] = {place.buffer, place.offset, value};
            b_.Append(Op::kStoreBuffer, operands, {}, ByteSize(type));
        }
    }

    std::vector<Around> around_;
    bool uniform_ = true;     // all invocations are here
    bool left_ = false;       // some invocations left a construct early
    bool must_stay_ = false;  // none may
    ValueId zero_;
};

}  // namespace

Kernel RandomKernel(uint64_t seed, const RandomKernelOptions& options) {
    return Generator(seed, options).Run();
}

}  // namespace fornax::kernel
