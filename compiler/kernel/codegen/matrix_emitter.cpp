#include "compiler/kernel/codegen/matrix_emitter.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/kernel/codegen/fetch_line.h"
#include "compiler/kernel/codegen/matrix_floats.h"
#include "compiler/kernel/codegen/matrix_transpose.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using ir::kMatrixSize;
using llvm::Value;

namespace {

// Operands that are kept as the functions take them: a column and a row of four. With twice as many
// they leave the first cache before they are used: 144 instead of 161 GFLOP/s in ggml's f16
// product.
constexpr size_t kSlots = hal::kMatrixOperandRegisters;
constexpr size_t kMaxWaiting = 64;

// Mma::location: a slot of a chain.
constexpr uint64_t kChains = UINT64_MAX;

// MatrixEmitter::Made::how: this, or how an operand was packed.
constexpr uint32_t kTransposed = UINT32_MAX;

uint32_t HowPacked(OperandForm form, bool is_b) {
    return static_cast<uint32_t>(form) * 2 + (is_b ? 1 : 0);
}

MatrixKind KindOf(const ir::Kernel& kernel, const ir::Instruction& mma) {
    return {ir::MatrixFormatOf(kernel, mma), mma.imm};
}

}  // namespace

MatrixEmitter::MatrixEmitter(const ir::Kernel& kernel,
                             const BarrierRegions* regions,
                             llvm::IRBuilder<>& builder,
                             llvm::BasicBlock& entry,
                             Value* shared,
                             ExplainRecorder& recorder)
    : kernel_(kernel),
      b_(builder),
      entry_(entry),
      unit_(builder, entry, recorder),
      accumulators_(FindMatrixAccumulators(kernel)),
      views_(FindMatrixViews(kernel)),
      shared_(shared) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (inst.op == ir::Op::kMatrixMulAdd) {
            unit_.Prepare(KindOf(kernel, inst));
        }
    }
    if (!regions) {
        return;
    }
    shared_operands_ =
        FindMatrixSharedOperands(kernel, *regions, [&](const ir::Instruction& mma, bool is_b) {
            return static_cast<uint32_t>(unit_.FormOf(KindOf(kernel, mma), is_b));
        });
    if (shared_operands_.max_panels == 0) {
        return;
    }
    for (const MatrixSharedOperands::Operand& operand : shared_operands_.operands) {
        if (static_cast<OperandForm>(operand.form) == OperandForm::kFloats) {
            continue;  // taken where it lies
        }
        packed_bytes_ =
            std::max(packed_bytes_, OperandBytes(static_cast<OperandForm>(operand.form)));
    }
    if (packed_bytes_ == 0) {
        return;
    }
    packed_ = NewMatrixSlot(entry_, shared_operands_.max_panels * packed_bytes_);
    is_packed_ = NewMatrixSlot(entry_, shared_operands_.max_panels);
}

void MatrixEmitter::BeginRegion(uint32_t region) {
    const auto found = shared_operands_.regions.find(region);
    region_ = found == shared_operands_.regions.end() ? nullptr : &found->second;
    if (region_ && region_->shared && is_packed_) {
        b_.CreateMemSet(is_packed_, b_.getInt8(0), region_->panels, kMatrixAlign);
    }
}

Value* MatrixEmitter::OfSubgroup(llvm::ArrayRef<uint32_t> by_subgroup) {
    if (std::all_of(by_subgroup.begin(), by_subgroup.end(),
                    [&](uint32_t value) { return value == by_subgroup[0]; })) {
        return b_.getInt64(by_subgroup[0]);
    }
    llvm::Constant* data = llvm::ConstantDataArray::get(b_.getContext(), by_subgroup);
    auto* table = new llvm::GlobalVariable(*entry_.getModule(), data->getType(),
                                           /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                           data, "by_subgroup");
    Value* at = b_.CreateGEP(b_.getInt32Ty(), table, b_.CreateZExt(subgroup_, b_.getInt64Ty()));
    return b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), at), b_.getInt64Ty());
}

// Bytes between rows of A in workgroup memory, if it need not be packed.
uint32_t MatrixEmitter::RowsInPlace(const ir::Instruction& inst, const MatrixKind& kind) {
    const MatrixSharedOperands::Operand& a =
        shared_operands_.operands[shared_operands_.mmas.at(inst.results[0].value())[0]];
    constexpr uint32_t kAlign = 4;
    const bool aligned =
        a.stride % kAlign == 0 &&
        std::ranges::all_of(a.offsets, [](uint32_t offset) { return offset % kAlign == 0; });
    return !a.columns && aligned && unit_.TakesRows(kind) ? a.stride : 0;
}

// The first subgroup that comes to an operand packs it, for all.
MatrixOperand MatrixEmitter::PackedOnce(uint32_t number, const MatrixKind& kind) {
    if (b_.GetInsertBlock() != taken_block_) {
        taken_.clear();
    }
    taken_block_ = b_.GetInsertBlock();
    if (const auto found = taken_.find(number); found != taken_.end()) {
        return found->second;
    }
    const MatrixSharedOperands::Operand& operand = shared_operands_.operands[number];
    if (kind.format == hal::MatrixFormat::kF32) {
        MatrixOperand& rows = taken_[number];
        rows.at = b_.CreateGEP(b_.getInt8Ty(), shared_, OfSubgroup(operand.offsets));
        rows.stride = b_.getInt64(operand.stride);
        unit_.TakeOperand(kind.format);
        return rows;
    }
    if (!operand.is_b && kind.stride_of_a != 0) {
        Value* rows = b_.CreateGEP(b_.getInt8Ty(), shared_, OfSubgroup(operand.offsets));
        return taken_[number] = {.at = rows};
    }
    Value* panel = OfSubgroup(operand.panels);
    Value* slot =
        b_.CreateGEP(b_.getInt8Ty(), packed_, b_.CreateMul(panel, b_.getInt64(packed_bytes_)));
    llvm::BasicBlock* end = nullptr;
    if (region_->shared) {
        llvm::Function* kernel = b_.GetInsertBlock()->getParent();
        auto* pack = llvm::BasicBlock::Create(b_.getContext(), "pack", kernel);
        end = llvm::BasicBlock::Create(b_.getContext(), "packed", kernel);
        Value* flag = b_.CreateGEP(b_.getInt8Ty(), is_packed_, panel);
        b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateLoad(b_.getInt8Ty(), flag), b_.getInt8(0)), pack,
                        end);
        b_.SetInsertPoint(pack);
        b_.CreateStore(b_.getInt8(1), flag);
    }
    unit_.LoadOperandOf(slot, b_.CreateGEP(b_.getInt8Ty(), shared_, OfSubgroup(operand.offsets)),
                        operand.stride, kind, operand.is_b, operand.columns);
    if (end) {
        b_.CreateBr(end);
        b_.SetInsertPoint(end);
        taken_block_ = end;
    }
    return taken_[number] = {.at = slot};
}

MatrixEmitter::Made* MatrixEmitter::Find(llvm::ArrayRef<Value*> from, uint32_t how) {
    if (b_.GetInsertBlock() != block_) {
        block_ = b_.GetInsertBlock();
        made_.clear();
    }
    for (Made& made : made_) {
        if (made.how == how && from.equals(made.from)) {
            return &made;
        }
    }
    return nullptr;
}

MatrixEmitter::Made& MatrixEmitter::Add(llvm::ArrayRef<Value*> from, uint32_t how) {
    made_.push_back({.from = Vectors(from.begin(), from.end()), .how = how});
    return made_.back();
}

MatrixEmitter::Vectors MatrixEmitter::Transpose(llvm::ArrayRef<Value*> matrix, ShareCode share) {
    if (const Made* made = Find(matrix, kTransposed)) {
        return made->transposed;
    }
    Vectors rows = RegroupMatrix(b_, matrix, kMatrixSize);
    if (share) {
        Value* all =
            share(rows, [&](llvm::ArrayRef<Value*> in) { return TransposeMatrixAsOne(b_, in); });
        for (uint32_t i = 0; i < kMatrixSize; ++i) {
            rows[i] = b_.CreateExtractValue(all, i);
        }
    } else {
        rows = TransposeMatrix(b_, std::move(rows));
    }
    Made& made = Add(matrix, kTransposed);
    made.transposed = RegroupMatrix(
        b_, rows, llvm::cast<llvm::FixedVectorType>(matrix[0]->getType())->getNumElements());
    return made.transposed;
}

// The register that an operand is in; `keep` stays.
Value* MatrixEmitter::Packed(llvm::ArrayRef<Value*> matrix,
                             const MatrixKind& kind,
                             bool is_b,
                             const Value* keep) {
    const OperandForm form = unit_.FormOf(kind, is_b);
    const uint32_t how = HowPacked(form, is_b);
    if (const Made* made = Find(matrix, how)) {
        return made->slot;
    }
    if (slots_.size() > next_slot_ && slots_[next_slot_] == keep) {
        next_slot_ = (next_slot_ + 1) % kSlots;
    }
    const size_t slot_index = next_slot_;
    next_slot_ = (slot_index + 1) % kSlots;
    if (slot_index == slots_.size()) {
        slots_.push_back(NewMatrixSlot(entry_, kMaxOperandBytes));
    }
    Value* slot = slots_[slot_index];
    if (std::any_of(waiting_.begin(), waiting_.end(),
                    [&](const Mma& mma) { return mma.a.at == slot || mma.b.at == slot; })) {
        Flush();
    }
    std::erase_if(made_, [&](const Made& made) { return made.slot == slot; });
    unit_.LoadOperand(slot, matrix, kind, is_b);
    Add(matrix, how).slot = slot;
    return slot;
}

MatrixOperand MatrixEmitter::OperandOf(const ir::Instruction& inst,
                                       llvm::ArrayRef<Value*> operands,
                                       const MatrixKind& kind,
                                       bool is_b,
                                       const Value* keep) {
    const uint32_t first = inst.results[0].value();
    const size_t count = operands.size() / 3;
    const llvm::ArrayRef<Value*> values = operands.slice(is_b ? count : 0, count);
    if (!values[0]) {
        const auto views = views_.mmas.find(first);
        if (views != views_.mmas.end() && views->second[is_b ? 1 : 0].load.valid()) {
            const MatrixViews::View& view = views->second[is_b ? 1 : 0];
            MatrixOperand operand = loaded_.at(view.load.value());
            operand.columns = view.columns;
            operand.prefetch = true;
            return operand;
        }
        return PackedOnce(shared_operands_.mmas.at(first)[is_b ? 1 : 0], kind);
    }
    MatrixOperand operand = {.at = Packed(values, kind, is_b, keep)};
    if (kind.format == hal::MatrixFormat::kF32) {
        operand.stride = b_.getInt64(ir::kMatrixSize * 4);
    }
    return operand;
}

// A matrix that is not all inside is copied, element by element.
MatrixEmitter::Vectors MatrixEmitter::Load(ir::InstId id, const Source& source) {
    llvm::Type* i64 = b_.getInt64Ty();
    llvm::Type* i8 = b_.getInt8Ty();
    constexpr uint64_t kRowBytes = ir::kMatrixSize * 4;
    Value* offset = b_.CreateZExt(source.offset, i64);
    // Rows may go backwards. Where that is checked it is the copy that finds them.
    Value* stride =
        source.size ? b_.CreateZExt(source.stride, i64) : b_.CreateSExt(source.stride, i64);
    Value* inside = source.any;
    if (source.size) {
        Value* end = b_.CreateAdd(offset, b_.CreateMul(stride, b_.getInt64(ir::kMatrixSize - 1)));
        end = b_.CreateAdd(end, b_.getInt64(kRowBytes));
        Value* fits = b_.CreateICmpULE(end, source.size);
        if (source.offset->getType() == i64) {
            // No buffer is so large that these wrap.
            fits = b_.CreateAnd(fits, b_.CreateICmpULE(offset, source.size));
            fits = b_.CreateAnd(fits, b_.CreateICmpULE(stride, source.size));
        }
        inside = inside ? b_.CreateAnd(inside, fits) : fits;
    }
    MatrixOperand& operand = loaded_[id.value()];
    operand = {.at = b_.CreateGEP(i8, source.base, offset), .stride = stride};
    if (inside) {
        llvm::Function* kernel = b_.GetInsertBlock()->getParent();
        llvm::BasicBlock* before = b_.GetInsertBlock();
        auto* outside = llvm::BasicBlock::Create(b_.getContext(), "matrix_outside", kernel);
        auto* end = llvm::BasicBlock::Create(b_.getContext(), "matrix_loaded", kernel);
        b_.CreateCondBr(inside, end, outside,
                        llvm::MDBuilder(b_.getContext()).createBranchWeights(2000, 1));
        b_.SetInsertPoint(outside);
        Value* slot = NewMatrixSlot(entry_, kMatrixAccumulatorBytes);
        Value* size = source.size ? source.size : b_.getInt64(INT64_MAX);
        if (source.any) {
            size = b_.CreateSelect(source.any, size, b_.getInt64(0));
        }
        b_.CreateCall(MatrixCopyFunction(*kernel->getParent(), source.offset->getType()),
                      {slot, source.base, size, source.offset, source.stride});
        b_.CreateBr(end);
        b_.SetInsertPoint(end);
        const auto either = [&](Value* here, Value* there) {
            llvm::PHINode* phi = b_.CreatePHI(here->getType(), 2);
            phi->addIncoming(here, before);
            phi->addIncoming(there, outside);
            return phi;
        };
        operand.at = either(operand.at, slot);
        Value* of_slot = b_.getInt64(kRowBytes);
        operand.stride = stride == of_slot ? of_slot : either(stride, of_slot);
    }
    if (views_.unused.contains(id.value())) {
        unit_.TakeOperand(hal::MatrixFormat::kF32);
        return {};
    }
    Vectors rows;
    const auto* row = llvm::FixedVectorType::get(b_.getFloatTy(), ir::kMatrixSize);
    for (uint32_t i = 0; i < ir::kMatrixSize; ++i) {
        Value* at = b_.CreateGEP(i8, operand.at, b_.CreateMul(operand.stride, b_.getInt64(i)));
        rows.push_back(
            b_.CreateAlignedLoad(const_cast<llvm::FixedVectorType*>(row), at, llvm::Align(4)));
    }
    return RegroupMatrix(b_, rows, kernel_.subgroup_size);
}

std::array<bool, 3> MatrixEmitter::InMemory(const ir::Instruction& inst, bool masked) const {
    std::array<bool, 3> in_memory = {};
    const uint32_t first = inst.results[0].value();
    if (const auto views = views_.mmas.find(first); views != views_.mmas.end()) {
        in_memory[0] = views->second[0].load.valid();
        in_memory[1] = views->second[1].load.valid();
    }
    if (masked) {
        return in_memory;
    }
    const auto taken = shared_operands_.mmas.find(first);
    if (region_ && taken != shared_operands_.mmas.end()) {
        in_memory[0] |= taken->second[0] != MatrixSharedOperands::kNone;
        in_memory[1] |= taken->second[1] != MatrixSharedOperands::kNone;
    }
    const auto chain = accumulators_.chains.find(first);
    in_memory[2] = chain != accumulators_.chains.end() && chain->second.chain != first;
    return in_memory;
}

size_t MatrixEmitter::OpenChain(uint32_t chain, llvm::ArrayRef<Value*> accumulators) {
    auto found =
        std::ranges::find_if(chains_, [](const Chain& each) { return !each.is.has_value(); });
    if (found == chains_.end()) {
        chains_.push_back({.slot = NewMatrixSlot(entry_, kMatrixAccumulatorBytes), .is = {}});
        found = chains_.end() - 1;
    }
    found->type = accumulators[0]->getType();
    found->is = chain;
    StoreMatrix(b_, accumulators, found->slot);
    return static_cast<size_t>(found - chains_.begin());
}

MatrixEmitter::Vectors MatrixEmitter::CloseChain(Chain& chain, size_t count) {
    Vectors accumulators;
    uint64_t at = 0;
    for (size_t i = 0; i < count; ++i) {
        Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), chain.slot, at);
        accumulators.push_back(
            b_.CreateAlignedLoad(chain.type, address, llvm::commonAlignment(kMatrixAlign, at)));
        at += chain.type->getPrimitiveSizeInBits() / 8;
    }
    chain.is.reset();
    return accumulators;
}

MatrixEmitter::Vectors MatrixEmitter::MulAdd(const ir::Instruction& inst,
                                             llvm::ArrayRef<Value*> operands,
                                             Value* subgroup,
                                             bool masked) {
    subgroup_ = subgroup;
    const uint64_t flags = inst.imm;
    const std::array<bool, 3> in_memory = InMemory(inst, masked);
    MatrixKind kind = KindOf(kernel_, inst);
    if (in_memory[0] && kind.format != hal::MatrixFormat::kF32) {
        kind.stride_of_a = RowsInPlace(inst, kind);
    }
    const size_t count = operands.size() / 3;
    const llvm::ArrayRef<Value*> accumulators = operands.drop_front(2 * count);
    if (kind != waiting_kind_ || waiting_.size() == kMaxWaiting) {
        Flush();
    }
    waiting_kind_ = kind;
    Mma mma;
    mma.a = OperandOf(inst, operands, kind, false, nullptr);
    mma.b = OperandOf(inst, operands, kind, true, mma.a.at);
    const auto* load = llvm::dyn_cast_or_null<llvm::LoadInst>(accumulators[0]);
    const auto placed = accumulators_.mmas.find(inst.results[0].value());
    if (load && !masked && placed != accumulators_.mmas.end()) {
        mma.location = placed->second;
        mma.c = const_cast<Value*>(load->getPointerOperand());
        waiting_.push_back(mma);
        return {};
    }
    const uint32_t first = inst.results[0].value();
    const auto linked = accumulators_.chains.find(first);
    const bool alone = masked || linked == accumulators_.chains.end();
    const uint32_t chain = alone ? first : linked->second.chain;
    const bool saturates = (flags & ir::kMatrixSaturating) != 0;
    size_t slot = 0;
    if (chain != first) {
        while (chains_[slot].is != chain) {
            ++slot;
        }
    } else if (saturates) {
        slot = OpenChain(chain,
                         Vectors(count, llvm::Constant::getNullValue(accumulators[0]->getType())));
    } else {
        slot = OpenChain(chain, accumulators);
    }
    mma.location = {.local = kChains, .first = slot};
    mma.c = chains_[slot].slot;
    waiting_.push_back(mma);
    if (!alone && !linked->second.ends) {
        return {};
    }
    Flush();
    Vectors results = CloseChain(chains_[slot], count);
    for (size_t i = 0; saturates && i < count; ++i) {
        results[i] = AddSaturating(accumulators[i], results[i], flags);
    }
    return results;
}

bool MatrixEmitter::Before(ir::InstId id, const ir::Instruction& inst, bool masked) {
    if (views_.unused.contains(id.value()) && inst.op == ir::Op::kMatrixTranspose) {
        return false;
    }
    const bool placed = accumulators_.accesses.contains(id.value()) && !masked;
    const bool looks = inst.op == ir::Op::kLoadLocal || inst.op == ir::Op::kStoreLocal;
    if ((looks && !placed) || inst.op == ir::Op::kBarrier ||
        ir::HasProperty(inst.op, ir::kRegions | ir::kTerminator) ||
        (waiting_kind_.format == hal::MatrixFormat::kF32 && ir::MayWriteBuffers(inst))) {
        Flush();
    }
    if (!masked && region_ && shared_operands_.unused.contains(id.value())) {
        return false;
    }
    return !placed || inst.op == ir::Op::kLoadLocal;
}

void MatrixEmitter::Flush() {
    std::vector<Accumulator> accumulators;
    for (const Mma& mma : std::exchange(waiting_, {})) {
        auto same = [&](const Accumulator& accumulator) {
            return accumulator.location == mma.location;
        };
        auto found = std::find_if(accumulators.begin(), accumulators.end(), same);
        if (found == accumulators.end()) {
            found = accumulators.insert(
                accumulators.end(), Accumulator{.location = mma.location, .c = mma.c, .steps = {}});
        }
        found->steps.emplace_back(mma.a, mma.b);
    }
    EmitMmas(accumulators);
}

// Two by two where accumulators share their operands, which are then loaded half as often; the MMAs
// of an accumulator stay in their order.
void MatrixEmitter::EmitMmas(std::vector<Accumulator>& accumulators) {
    auto shares = [](const Steps& steps, const Steps& a, const Steps& b) {
        if (steps.size() != a.size() || steps.size() != b.size()) {
            return false;
        }
        for (size_t i = 0; i < steps.size(); ++i) {
            if (steps[i].first != a[i].first || steps[i].second != b[i].second) {
                return false;
            }
        }
        return true;
    };
    auto find = [&](const Steps& of_a, const Steps& of_b) -> Accumulator* {
        for (Accumulator& accumulator : accumulators) {
            if (!accumulator.done && shares(accumulator.steps, of_a, of_b)) {
                return &accumulator;
            }
        }
        return nullptr;
    };
    std::vector<std::vector<Accumulator*>> groups;
    for (Accumulator& first : accumulators) {
        if (std::exchange(first.done, true)) {
            continue;
        }
        std::vector<Accumulator*>& group = groups.emplace_back(std::vector{&first});
        for (Accumulator& right : accumulators) {
            if (right.done || !shares(right.steps, first.steps, right.steps)) {
                continue;
            }
            for (Accumulator& below : accumulators) {
                if (below.done || &below == &right ||
                    !shares(below.steps, below.steps, first.steps)) {
                    continue;
                }
                Accumulator* last = find(below.steps, right.steps);
                if (!last || last == &right || last == &below) {
                    continue;
                }
                group = {&first, &right, &below, last};
                break;
            }
            if (group.size() > 1) {
                break;
            }
        }
        for (Accumulator* accumulator : group) {
            accumulator->done = true;
        }
    }
    for (const std::vector<Accumulator*>& group : groups) {
        EmitMma(group);
    }
}

void MatrixEmitter::EmitMma(const std::vector<Accumulator*>& group) {
    const unsigned side = group.size() > 1 ? 2 : 1;
    Vectors slots;
    for (const Accumulator* accumulator : group) {
        slots.push_back(accumulator->c);
    }
    std::vector<MatrixOperand> operands;
    for (size_t step = 0; step < group[0]->steps.size(); ++step) {
        for (unsigned i = 0; i < side; ++i) {
            operands.push_back(group[i * side]->steps[step].first);
        }
        for (unsigned i = 0; i < side; ++i) {
            operands.push_back(group[i]->steps[step].second);
        }
    }
    const size_t mmas = group.size() * group[0]->steps.size();
    const size_t to_come = std::max(mmas, mmas_to_come_);
    const size_t lines = ((prefetches_.size() - next_prefetch_) * mmas + to_come - 1) / to_come;
    mmas_to_come_ = to_come - mmas;
    MatrixLines to_prefetch;
    if (lines != 0) {
        to_prefetch.addresses = llvm::ArrayRef(prefetches_).slice(next_prefetch_, lines);
        to_prefetch.array = b_.CreateConstGEP1_64(b_.getPtrTy(), prefetch_array_, next_prefetch_);
        next_prefetch_ += lines;
    }
    unit_.MultiplyAdd(slots, operands, waiting_kind_, to_prefetch);
}

void MatrixEmitter::PrefetchMeanwhile(Vectors addresses, size_t mmas) {
    prefetches_ = std::move(addresses);
    next_prefetch_ = 0;
    mmas_to_come_ = mmas;
    if (prefetches_.empty()) {
        return;
    }
    prefetch_array_ = NewMatrixSlot(entry_, prefetches_.size() * sizeof(uint64_t));
    for (size_t i = 0; i < prefetches_.size(); ++i) {
        b_.CreateStore(prefetches_[i], b_.CreateConstGEP1_64(b_.getPtrTy(), prefetch_array_, i));
    }
}

void MatrixEmitter::EndRegion() {
    if (!b_.GetInsertBlock()->getTerminator()) {
        for (Value* line : llvm::ArrayRef(prefetches_).drop_front(next_prefetch_)) {
            FetchLine(b_, line, CacheLevel::kSecond);
        }
    }
    prefetches_.clear();
    next_prefetch_ = 0;
}

void MatrixEmitter::Finish(llvm::Function& kernel) {
    unit_.Finish(kernel);
}

// What the MMAs add up to is far from wrapping.
Value* MatrixEmitter::AddSaturating(Value* accumulator, Value* mmas, uint64_t flags) {
    if (flags & ir::kMatrixSignedC) {
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, accumulator, mmas);
    }
    Value* up = b_.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, accumulator, mmas);
    Value* down =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, accumulator, b_.CreateNeg(mmas));
    Value* zero = llvm::Constant::getNullValue(mmas->getType());
    return b_.CreateSelect(b_.CreateICmpSLT(mmas, zero), down, up);
}

}  // namespace fornax::kernel
