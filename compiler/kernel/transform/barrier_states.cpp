// Every place that control comes to in a construct with barriers gets a number, and every
// invocation a private variable with the number of the place at which it goes on; 0 while it runs.
// The workgroup then goes through all of the text in order, both sides of branches included:
//   if %c { A; barrier; B } else { C }; D
// gives
//   if state == 0 { state = %c ? 0 : 1 }
//   if state == 0 { A }
//   barrier
//   if state == 0 { B; state = 2 }
//   state = state == 1 ? 0 : state
//   if state == 0 { C; state = 2 }
//   state = state == 2 ? 0 : state
//   if state == 0 { D }
// A loop goes on while any invocation runs at its end. Values that are made in one such piece and
// used in another go through private variables. Invocations that part meet no barrier before they
// come together again (OpControlBarrier), so that they pass it is no harm; and those that are at
// one place together are so as before.
#include "compiler/kernel/transform/barrier_states.h"
#include "compiler/kernel/ir/builder.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Made again in each piece rather than kept: what is cheap, and buffers, which cannot be kept.
bool IsMadeAgain(Op op) {
    return op == Op::kConst || op == Op::kUndef || op == Op::kBuiltin || op == Op::kBuffer ||
           op == Op::kBufferFrom || op == Op::kLoadPush || op == Op::kBufferSize ||
           op == Op::kBufferAddress;
}

class StateCarrier {
  public:
    StateCarrier(Kernel& kernel, uint32_t mark)
        : kernel_(kernel),
          mark_(mark),
          holds_barrier_(kernel.num_insts()),
          piece_of_(kernel.num_values(), kNone),
          local_of_(kernel.num_values(), kNone) {}

    void Run() {
        FindBarriers(kernel_.body);
        Number(kernel_.body);
        state_ = NewLocal(Type::kI32);
        out_ = kernel_.NewBlock({});
        Builder start(kernel_, out_);
        Store(start, state_, start.ConstI32(0));
        Lower(kernel_.body);
        Builder(kernel_, out_).Append(Op::kReturn, {}, {});
        kernel_.body = out_;
        kernel_.shared_bytes = std::max(kernel_.shared_bytes, mark_ + 4);
    }

  private:
    // The places of a construct that holds a barrier.
    struct Places {
        uint32_t end = 0;
        std::vector<uint32_t> blocks;  // where its blocks begin; of a loop, only the continuing one
    };
    using Insts = std::vector<InstId>;

    uint32_t NewLocal(Type type) {
        kernel_.locals.push_back({type, 1});
        return static_cast<uint32_t>(kernel_.locals.size() - 1);
    }
    ValueId Load(Builder& builder, uint32_t local) {
        return builder.Emit(Op::kLoadLocal, kernel_.locals[local].type, {builder.ConstI32(0)},
                            local);
    }
    void Store(Builder& builder, uint32_t local, ValueId value) {
        builder.Append(Op::kStoreLocal, std::vector{builder.ConstI32(0), value}, {}, local);
    }
    ValueId IsAt(Builder& builder, uint32_t place) {
        return builder.Emit(Op::kIEq, Type::kBool,
                            {Load(builder, state_), builder.ConstI32(place)});
    }

    bool FindBarriers(BlockId block) {
        bool any = false;
        for (InstId id : kernel_.block(block).insts) {
            bool holds = kernel_.inst(id).op == Op::kBarrier;
            for (BlockId inner : kernel_.inst(id).blocks) {
                holds |= FindBarriers(inner);
            }
            holds_barrier_[id.value()] = holds;
            any |= holds;
        }
        return any;
    }

    // Numbers the pieces in the order of the text, and finds the values that others use. The places
    // of all constructs are known before any is lowered, because exits lead ahead.
    void Number(BlockId block) {
        uint32_t piece = pieces_++;
        for (InstId id : Insts(kernel_.block(block).insts)) {
            const Instruction& inst = kernel_.inst(id);
            if (!holds_barrier_[id.value()]) {
                MarkUses(id, piece);
                for (ValueId result : inst.results) {
                    piece_of_[result.value()] = piece;
                }
                continue;
            }
            for (ValueId operand : std::vector(inst.operands)) {
                MarkUse(operand, piece);
            }
            if (inst.op != Op::kBarrier) {
                Places& places = places_[id.value()];
                places.end = next_place_++;
                for (size_t i = inst.op == Op::kLoop ? 1 : 0; i < inst.blocks.size(); ++i) {
                    places.blocks.push_back(next_place_++);
                }
                std::vector<ValueId> carried = inst.results;
                for (BlockId inner : inst.blocks) {
                    const auto& params = kernel_.block(inner).params;
                    carried.insert(carried.end(), params.begin(), params.end());
                }
                for (ValueId value : carried) {
                    local_of_[value.value()] = NewLocal(kernel_.type(value));
                }
                for (BlockId inner : std::vector(inst.blocks)) {
                    Number(inner);
                }
            }
            piece = pieces_++;
        }
    }

    void MarkUses(InstId id, uint32_t piece) {
        for (ValueId operand : kernel_.inst(id).operands) {
            MarkUse(operand, piece);
        }
        for (BlockId block : kernel_.inst(id).blocks) {
            for (InstId inner : kernel_.block(block).insts) {
                MarkUses(inner, piece);
            }
        }
    }

    void MarkUse(ValueId value, uint32_t piece) {
        uint32_t& made_in = piece_of_[value.value()];
        if (made_in == kNone || made_in == piece || local_of_[value.value()] != kNone) {
            return;  // of the same piece, inside of an instruction of it, or kept already
        }
        const Instruction& definition = *kernel_.Definition(value);
        if (!IsMadeAgain(definition.op)) {
            local_of_[value.value()] = NewLocal(kernel_.type(value));
            return;
        }
        for (ValueId operand : definition.operands) {
            MarkUse(operand, piece);
        }
    }

    void Lower(BlockId block) {
        const InstId parent = kernel_.block(block).parent;
        Insts piece;
        uint32_t number = kNone;
        for (InstId id : Insts(kernel_.block(block).insts)) {
            const Instruction& inst = kernel_.inst(id);
            if (!holds_barrier_[id.value()]) {
                piece.push_back(id);
                for (ValueId result : inst.results) {
                    number = piece_of_[result.value()];
                }
                continue;
            }
            const bool is_barrier = inst.op == Op::kBarrier;
            Emit(piece, number, is_barrier ? InstId{} : id, parent);
            piece.clear();
            number = kNone;
            if (is_barrier) {
                kernel_.block(out_).insts.push_back(id);
            } else {
                LowerConstruct(id);
            }
        }
        Emit(piece, number, {}, parent);
    }

    void LowerConstruct(InstId id) {
        const Instruction construct = kernel_.inst(id);
        const Places& places = places_.at(id.value());
        if (construct.op != Op::kLoop) {
            for (size_t i = 0; i < construct.blocks.size(); ++i) {
                if (construct.op != Op::kScope) {
                    Resume(places.blocks[i]);
                }
                Lower(construct.blocks[i]);
            }
            Resume(places.end);
            return;
        }
        const InstId loop = Builder(kernel_, out_).Append(Op::kLoop, {}, {});
        const BlockId around = std::exchange(out_, kernel_.NewBlock(loop));
        const BlockId continuing = kernel_.NewBlock(loop);
        kernel_.inst(loop).blocks = {out_, continuing};
        Lower(construct.blocks[0]);
        Resume(places.blocks[0]);
        Lower(construct.blocks[1]);
        const ValueId any = AnyRuns();
        const InstId test = Builder(kernel_, out_).Append(Op::kIf, std::vector{any}, {});
        const BlockId stay = kernel_.NewBlock(test);
        const BlockId leave = kernel_.NewBlock(test);
        kernel_.inst(test).blocks = {stay, leave};
        Builder(kernel_, stay).Append(Op::kYield, {}, {});
        Jump(leave, Op::kExit, loop);
        Jump(out_, Op::kContinue, loop);
        Builder(kernel_, continuing).Append(Op::kNext, {}, {});
        out_ = around;
        Resume(places.end);
    }

    void Jump(BlockId block, Op op, InstId target) {
        const InstId jump = Builder(kernel_, block).Append(op, {}, {});
        kernel_.inst(jump).target = target;
    }

    // Those who wait for the place run from here on.
    void Resume(uint32_t place) {
        Builder builder(kernel_, out_);
        const ValueId here = IsAt(builder, place);
        Store(builder, state_,
              builder.Emit(Op::kSelect, Type::kI32,
                           {here, builder.ConstI32(0), Load(builder, state_)}));
    }

    // The barriers keep the accesses apart from those of another iteration.
    ValueId AnyRuns() {
        Builder builder(kernel_, out_);
        const ValueId offset = builder.ConstI32(mark_);
        builder.Append(Op::kBarrier, {}, {});
        builder.Append(Op::kStoreShared, std::vector{offset, builder.ConstI32(0)}, {}, 4);
        builder.Append(Op::kBarrier, {}, {});
        const BlockId then = AppendIf(IsAt(builder, 0));
        Builder marks(kernel_, then);
        marks.Append(Op::kStoreShared, std::vector{offset, marks.ConstI32(1)}, {}, 4);
        marks.Append(Op::kYield, {}, {});
        builder.Append(Op::kBarrier, {}, {});
        const ValueId marked = builder.Emit(Op::kLoadShared, Type::kI32, {offset}, 4);
        return builder.Emit(Op::kINe, Type::kBool, {marked, builder.ConstI32(0)});
    }

    BlockId AppendIf(ValueId condition) {
        const InstId test = Builder(kernel_, out_).Append(Op::kIf, std::vector{condition}, {});
        const BlockId then = kernel_.NewBlock(test);
        const BlockId otherwise = kernel_.NewBlock(test);
        kernel_.inst(test).blocks = {then, otherwise};
        Builder(kernel_, otherwise).Append(Op::kYield, {}, {});
        return then;
    }

    // Appends a piece for those who run, with the way into `construct` behind it if there is one.
    // `parent` is the construct around.
    void Emit(const Insts& piece, uint32_t number, InstId construct, InstId parent) {
        const bool enters = construct.valid() && kernel_.inst(construct).op != Op::kScope;
        if (piece.empty() && !enters) {
            return;
        }
        Builder builder(kernel_, out_);
        const BlockId then = AppendIf(IsAt(builder, 0));
        piece_ = number;
        kept_.clear();
        loads_ = then;
        scope_ = kernel_.NewInst(Op::kScope, {}, {});
        const BlockId contents = kernel_.NewBlock(scope_);
        kernel_.inst(scope_).blocks = {contents};
        for (InstId id : piece) {
            Rewrite(id);
            if (HasProperty(kernel_.inst(id).op, kTerminator)) {
                Leave(id, contents, parent);
                continue;
            }
            kernel_.block(contents).insts.push_back(id);
            Builder stores(kernel_, contents);
            for (ValueId result : std::vector(kernel_.inst(id).results)) {
                if (local_of_[result.value()] != kNone) {
                    Store(stores, local_of_[result.value()], result);
                }
            }
        }
        if (enters) {
            Enter(construct, contents);
        }
        Builder end(kernel_, contents);
        if (!end.Terminated()) {
            end.Append(Op::kYield, {}, {});
        }
        kernel_.block(then).insts.push_back(scope_);
        Builder(kernel_, then).Append(Op::kYield, {}, {});
    }

    // What is used in the instruction and inside of it comes from where it is kept, and ways out of
    // the piece end it.
    void Rewrite(InstId id) {
        std::vector<ValueId> operands = kernel_.inst(id).operands;
        for (ValueId& operand : operands) {
            operand = Use(operand);
        }
        kernel_.inst(id).operands = operands;
        for (BlockId block : std::vector(kernel_.inst(id).blocks)) {
            for (InstId inner : Insts(kernel_.block(block).insts)) {
                Rewrite(inner);
            }
            const InstId last = kernel_.block(block).insts.back();
            const InstId target = kernel_.inst(last).target;
            if (!target.valid() || !holds_barrier_[target.value()]) {
                continue;
            }
            kernel_.block(block).insts.pop_back();
            NoteWay(last, block, target);
            Jump(block, Op::kExit, scope_);
        }
    }

    // The value as the piece that is emitted sees it.
    ValueId Use(ValueId value) {
        if (value.value() >= piece_of_.size()) {
            return value;
        }
        const uint32_t made_in = piece_of_[value.value()];
        const uint32_t local = local_of_[value.value()];
        if (made_in == kNone ? local == kNone : made_in == piece_) {
            return value;
        }
        if (const auto found = kept_.find(value.value()); found != kept_.end()) {
            return found->second;
        }
        Builder loads(kernel_, loads_);
        ValueId again;
        if (local != kNone) {
            again = Load(loads, local);
        } else {
            const Instruction original = *kernel_.Definition(value);
            std::vector<ValueId> operands = original.operands;
            for (ValueId& operand : operands) {
                operand = Use(operand);
            }
            std::vector<Type> types;
            for (ValueId result : original.results) {
                types.push_back(kernel_.type(result));
            }
            const InstId copy =
                loads.Append(original.op, operands, types, original.imm, original.flags);
            again = kernel_.inst(copy).results[kernel_.value(value).position];
        }
        kept_[value.value()] = again;
        return again;
    }

    void Enter(InstId id, BlockId contents) {
        Builder builder(kernel_, contents);
        const Instruction construct = kernel_.inst(id);
        const Places& places = places_.at(id.value());
        std::vector<ValueId> operands = construct.operands;
        for (ValueId& operand : operands) {
            operand = Use(operand);
        }
        if (construct.op == Op::kLoop) {
            StoreAll(builder, kernel_.block(construct.blocks[0]).params, operands);
            return;
        }
        // The first block of an `if` is for true, that of a switch for what no case names.
        const bool is_if = construct.op == Op::kIf;
        ValueId place = builder.ConstI32(places.blocks[is_if ? 1 : 0]);
        if (is_if) {
            place = builder.Emit(Op::kSelect, Type::kI32,
                                 {operands[0], builder.ConstI32(places.blocks[0]), place});
        }
        for (size_t i = 0; i < construct.case_values.size(); ++i) {
            const ValueId wanted =
                builder.Const(kernel_.type(operands[0]), construct.case_values[i]);
            const ValueId is = builder.Emit(Op::kIEq, Type::kBool, {operands[0], wanted});
            place = builder.Emit(Op::kSelect, Type::kI32,
                                 {is, builder.ConstI32(places.blocks[i + 1]), place});
        }
        Store(builder, state_, place);
    }

    // Ends a piece as the block did from which it is.
    void Leave(InstId id, BlockId contents, InstId parent) {
        const Instruction& leave = kernel_.inst(id);
        if (leave.op == Op::kReturn || leave.op == Op::kUnreachable) {
            if (parent.valid()) {  // else it is the end of all
                kernel_.block(contents).insts.push_back(id);
            }
            return;
        }
        NoteWay(id, contents, leave.target.valid() ? leave.target : parent);
    }

    void NoteWay(InstId id, BlockId block, InstId target) {
        Builder builder(kernel_, block);
        const Instruction leave = kernel_.inst(id);
        const Instruction construct = kernel_.inst(target);
        const Places& places = places_.at(target.value());
        if (leave.op == Op::kNext) {
            StoreAll(builder, kernel_.block(construct.blocks[0]).params, leave.operands);
        } else if (leave.op == Op::kContinue) {
            StoreAll(builder, kernel_.block(construct.blocks[1]).params, leave.operands);
            Store(builder, state_, builder.ConstI32(places.blocks[0]));
        } else {
            StoreAll(builder, construct.results, leave.operands);
            Store(builder, state_, builder.ConstI32(places.end));
        }
    }

    void StoreAll(Builder& builder,
                  const std::vector<ValueId>& into,
                  const std::vector<ValueId>& values) {
        for (size_t i = 0; i < into.size(); ++i) {
            Store(builder, local_of_[into[i].value()], values[i]);
        }
    }

    Kernel& kernel_;
    const uint32_t mark_;
    std::vector<bool> holds_barrier_;  // by instruction
    std::vector<uint32_t> piece_of_;   // by value; kNone for those inside of a piece's constructs
    std::vector<uint32_t> local_of_;   // by value, of those that are kept
    std::unordered_map<uint32_t, Places> places_;
    uint32_t pieces_ = 0;
    uint32_t next_place_ = 1;
    uint32_t state_ = kNone;
    BlockId out_;
    // The piece that is emitted, and its scope.
    uint32_t piece_ = kNone;
    InstId scope_;
    BlockId loads_;
    std::unordered_map<uint32_t, ValueId> kept_;
};

}  // namespace

void CarryBarrierStates(Kernel& kernel, uint32_t mark) {
    StateCarrier(kernel, mark).Run();
}

}  // namespace fornax::kernel
