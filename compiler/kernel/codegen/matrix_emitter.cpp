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

// Factors that are kept as the functions take them: a column and a row of four. With twice as many
// they leave the first cache before they are used: 144 instead of 161 GFLOP/s in ggml's f16
// product.
constexpr size_t kSlots = hal::kMatrixFactorRegisters;
constexpr size_t kMaxWaiting = 64;

// Product::place: a slot of a chain.
constexpr uint64_t kChains = UINT64_MAX;

// MatrixEmitter::Made::how: this, or how a factor was packed.
constexpr uint32_t kTransposed = UINT32_MAX;

uint32_t HowPacked(FactorForm form, bool is_b) {
    return static_cast<uint32_t>(form) * 2 + (is_b ? 1 : 0);
}

MatrixKind KindOf(const ir::Kernel& kernel, const ir::Instruction& product) {
    return {ir::MatrixFormatOf(kernel, product), product.imm};
}

}  // namespace

MatrixEmitter::MatrixEmitter(const ir::Kernel& kernel,
                             const Regions* regions,
                             llvm::IRBuilder<>& builder,
                             llvm::BasicBlock& entry,
                             Value* shared,
                             ExplainRecorder& recorder)
    : kernel_(kernel),
      b_(builder),
      entry_(entry),
      unit_(builder, entry, recorder),
      places_(FindMatrixPlaces(kernel)),
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
    factors_ = FindMatrixFactors(kernel, *regions, [&](const ir::Instruction& product, bool is_b) {
        return static_cast<uint32_t>(unit_.FormOf(KindOf(kernel, product), is_b));
    });
    if (factors_.max_places == 0) {
        return;
    }
    for (const MatrixFactors::Factor& factor : factors_.factors) {
        if (static_cast<FactorForm>(factor.form) == FactorForm::kFloats) {
            continue;  // taken where it lies
        }
        packed_bytes_ = std::max(packed_bytes_, FactorBytes(static_cast<FactorForm>(factor.form)));
    }
    if (packed_bytes_ == 0) {
        return;
    }
    packed_ = NewMatrixSlot(entry_, factors_.max_places * packed_bytes_);
    is_packed_ = NewMatrixSlot(entry_, factors_.max_places);
}

void MatrixEmitter::BeginSegment(uint32_t segment) {
    const auto found = factors_.segments.find(segment);
    segment_ = found == factors_.segments.end() ? nullptr : &found->second;
    if (segment_ && segment_->shared && is_packed_) {
        b_.CreateMemSet(is_packed_, b_.getInt8(0), segment_->places, kMatrixAlign);
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
    const MatrixFactors::Factor& a =
        factors_.factors[factors_.products.at(inst.results[0].index)[0]];
    constexpr uint32_t kAlign = 4;
    const bool aligned =
        a.stride % kAlign == 0 &&
        std::ranges::all_of(a.offsets, [](uint32_t offset) { return offset % kAlign == 0; });
    return !a.columns && aligned && unit_.TakesRows(kind) ? a.stride : 0;
}

// The first subgroup that comes to a factor packs it, for all.
MatrixOperand MatrixEmitter::PackedOnce(uint32_t number, const MatrixKind& kind) {
    if (b_.GetInsertBlock() != taken_block_) {
        taken_.clear();
    }
    taken_block_ = b_.GetInsertBlock();
    if (const auto found = taken_.find(number); found != taken_.end()) {
        return found->second;
    }
    const MatrixFactors::Factor& factor = factors_.factors[number];
    if (kind.format == hal::MatrixFormat::kF32) {
        MatrixOperand& rows = taken_[number];
        rows.at = b_.CreateGEP(b_.getInt8Ty(), shared_, OfSubgroup(factor.offsets));
        rows.stride = b_.getInt64(factor.stride);
        unit_.TakeFactor(kind.format);
        return rows;
    }
    if (!factor.is_b && kind.stride_of_a != 0) {
        Value* rows = b_.CreateGEP(b_.getInt8Ty(), shared_, OfSubgroup(factor.offsets));
        return taken_[number] = {.at = rows};
    }
    Value* place = OfSubgroup(factor.places);
    Value* slot =
        b_.CreateGEP(b_.getInt8Ty(), packed_, b_.CreateMul(place, b_.getInt64(packed_bytes_)));
    llvm::BasicBlock* end = nullptr;
    if (segment_->shared) {
        llvm::Function* kernel = b_.GetInsertBlock()->getParent();
        auto* pack = llvm::BasicBlock::Create(b_.getContext(), "pack", kernel);
        end = llvm::BasicBlock::Create(b_.getContext(), "packed", kernel);
        Value* flag = b_.CreateGEP(b_.getInt8Ty(), is_packed_, place);
        b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateLoad(b_.getInt8Ty(), flag), b_.getInt8(0)), pack,
                        end);
        b_.SetInsertPoint(pack);
        b_.CreateStore(b_.getInt8(1), flag);
    }
    unit_.LoadFactorOf(slot, b_.CreateGEP(b_.getInt8Ty(), shared_, OfSubgroup(factor.offsets)),
                       factor.stride, kind, factor.is_b, factor.columns);
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

// The register that a factor is in; `keep` stays.
Value* MatrixEmitter::Packed(llvm::ArrayRef<Value*> matrix,
                             const MatrixKind& kind,
                             bool is_b,
                             const Value* keep) {
    const FactorForm form = unit_.FormOf(kind, is_b);
    const uint32_t how = HowPacked(form, is_b);
    if (const Made* made = Find(matrix, how)) {
        return made->slot;
    }
    if (slots_.size() > next_slot_ && slots_[next_slot_] == keep) {
        next_slot_ = (next_slot_ + 1) % kSlots;
    }
    const size_t turn = next_slot_;
    next_slot_ = (turn + 1) % kSlots;
    if (turn == slots_.size()) {
        slots_.push_back(NewMatrixSlot(entry_, kMaxFactorBytes));
    }
    Value* slot = slots_[turn];
    if (std::any_of(waiting_.begin(), waiting_.end(), [&](const Product& product) {
            return product.a.at == slot || product.b.at == slot;
        })) {
        Flush();
    }
    std::erase_if(made_, [&](const Made& made) { return made.slot == slot; });
    unit_.LoadFactor(slot, matrix, kind, is_b);
    Add(matrix, how).slot = slot;
    return slot;
}

MatrixOperand MatrixEmitter::FactorOf(const ir::Instruction& inst,
                                      llvm::ArrayRef<Value*> operands,
                                      const MatrixKind& kind,
                                      bool is_b,
                                      const Value* keep) {
    const uint32_t first = inst.results[0].index;
    const size_t count = operands.size() / 3;
    const llvm::ArrayRef<Value*> values = operands.slice(is_b ? count : 0, count);
    if (!values[0]) {
        const auto views = views_.products.find(first);
        if (views != views_.products.end() && views->second[is_b ? 1 : 0].load.valid()) {
            const MatrixViews::View& view = views->second[is_b ? 1 : 0];
            MatrixOperand factor = loaded_.at(view.load.index);
            factor.columns = view.columns;
            factor.prefetch = true;
            return factor;
        }
        return PackedOnce(factors_.products.at(first)[is_b ? 1 : 0], kind);
    }
    MatrixOperand factor = {.at = Packed(values, kind, is_b, keep)};
    if (kind.format == hal::MatrixFormat::kF32) {
        factor.stride = b_.getInt64(ir::kMatrixSize * 4);
    }
    return factor;
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
    MatrixOperand& factor = loaded_[id.index];
    factor = {.at = b_.CreateGEP(i8, source.base, offset), .stride = stride};
    if (inside) {
        llvm::Function* kernel = b_.GetInsertBlock()->getParent();
        llvm::BasicBlock* before = b_.GetInsertBlock();
        auto* outside = llvm::BasicBlock::Create(b_.getContext(), "matrix_outside", kernel);
        auto* end = llvm::BasicBlock::Create(b_.getContext(), "matrix_loaded", kernel);
        b_.CreateCondBr(inside, end, outside,
                        llvm::MDBuilder(b_.getContext()).createBranchWeights(2000, 1));
        b_.SetInsertPoint(outside);
        Value* slot = NewMatrixSlot(entry_, kMatrixSumBytes);
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
        factor.at = either(factor.at, slot);
        Value* of_slot = b_.getInt64(kRowBytes);
        factor.stride = stride == of_slot ? of_slot : either(stride, of_slot);
    }
    if (views_.unused.contains(id.index)) {
        unit_.TakeFactor(hal::MatrixFormat::kF32);
        return {};
    }
    Vectors rows;
    const auto* row = llvm::FixedVectorType::get(b_.getFloatTy(), ir::kMatrixSize);
    for (uint32_t i = 0; i < ir::kMatrixSize; ++i) {
        Value* at = b_.CreateGEP(i8, factor.at, b_.CreateMul(factor.stride, b_.getInt64(i)));
        rows.push_back(
            b_.CreateAlignedLoad(const_cast<llvm::FixedVectorType*>(row), at, llvm::Align(4)));
    }
    return RegroupMatrix(b_, rows, kernel_.subgroup_size);
}

std::array<bool, 3> MatrixEmitter::InMemory(const ir::Instruction& inst, bool masked) const {
    std::array<bool, 3> in_memory = {};
    const uint32_t first = inst.results[0].index;
    if (const auto views = views_.products.find(first); views != views_.products.end()) {
        in_memory[0] = views->second[0].load.valid();
        in_memory[1] = views->second[1].load.valid();
    }
    if (masked) {
        return in_memory;
    }
    const auto factors = factors_.products.find(first);
    if (segment_ && factors != factors_.products.end()) {
        in_memory[0] |= factors->second[0] != MatrixFactors::kNone;
        in_memory[1] |= factors->second[1] != MatrixFactors::kNone;
    }
    const auto chain = places_.chains.find(first);
    in_memory[2] = chain != places_.chains.end() && chain->second.chain != first;
    return in_memory;
}

size_t MatrixEmitter::OpenChain(uint32_t chain, llvm::ArrayRef<Value*> sums) {
    auto found =
        std::ranges::find_if(chains_, [](const Chain& each) { return !each.is.has_value(); });
    if (found == chains_.end()) {
        chains_.push_back({.slot = NewMatrixSlot(entry_, kMatrixSumBytes), .is = {}});
        found = chains_.end() - 1;
    }
    found->type = sums[0]->getType();
    found->is = chain;
    StoreMatrix(b_, sums, found->slot);
    return static_cast<size_t>(found - chains_.begin());
}

MatrixEmitter::Vectors MatrixEmitter::CloseChain(Chain& chain, size_t count) {
    Vectors sums;
    uint64_t at = 0;
    for (size_t i = 0; i < count; ++i) {
        Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), chain.slot, at);
        sums.push_back(
            b_.CreateAlignedLoad(chain.type, address, llvm::commonAlignment(kMatrixAlign, at)));
        at += chain.type->getPrimitiveSizeInBits() / 8;
    }
    chain.is.reset();
    return sums;
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
    const llvm::ArrayRef<Value*> sums = operands.drop_front(2 * count);
    if (kind != waiting_kind_ || waiting_.size() == kMaxWaiting) {
        Flush();
    }
    waiting_kind_ = kind;
    Product product;
    product.a = FactorOf(inst, operands, kind, false, nullptr);
    product.b = FactorOf(inst, operands, kind, true, product.a.at);
    const auto* load = llvm::dyn_cast_or_null<llvm::LoadInst>(sums[0]);
    const auto placed = places_.products.find(inst.results[0].index);
    if (load && !masked && placed != places_.products.end()) {
        product.place = placed->second;
        product.c = const_cast<Value*>(load->getPointerOperand());
        waiting_.push_back(product);
        return {};
    }
    const uint32_t first = inst.results[0].index;
    const auto linked = places_.chains.find(first);
    const bool alone = masked || linked == places_.chains.end();
    const uint32_t chain = alone ? first : linked->second.chain;
    const bool saturates = (flags & ir::kMatrixSaturating) != 0;
    size_t slot = 0;
    if (chain != first) {
        while (chains_[slot].is != chain) {
            ++slot;
        }
    } else if (saturates) {
        slot = OpenChain(chain, Vectors(count, llvm::Constant::getNullValue(sums[0]->getType())));
    } else {
        slot = OpenChain(chain, sums);
    }
    product.place = {.local = kChains, .first = slot};
    product.c = chains_[slot].slot;
    waiting_.push_back(product);
    if (!alone && !linked->second.ends) {
        return {};
    }
    Flush();
    Vectors results = CloseChain(chains_[slot], count);
    for (size_t i = 0; saturates && i < count; ++i) {
        results[i] = AddSaturating(sums[i], results[i], flags);
    }
    return results;
}

bool MatrixEmitter::Before(ir::InstId id, const ir::Instruction& inst, bool masked) {
    if (views_.unused.contains(id.index) && inst.op == ir::Op::kMatrixTranspose) {
        return false;
    }
    const bool placed = places_.accesses.contains(id.index) && !masked;
    const bool looks = inst.op == ir::Op::kLoadLocal || inst.op == ir::Op::kStoreLocal;
    if ((looks && !placed) || inst.op == ir::Op::kBarrier ||
        ir::HasProperty(inst.op, ir::kRegions | ir::kTerminator) ||
        (waiting_kind_.format == hal::MatrixFormat::kF32 && ir::MayWriteBuffers(inst))) {
        Flush();
    }
    if (!masked && segment_ && factors_.unused.contains(id.index)) {
        return false;
    }
    return !placed || inst.op == ir::Op::kLoadLocal;
}

void MatrixEmitter::Flush() {
    std::vector<Sum> sums;
    for (const Product& product : std::exchange(waiting_, {})) {
        auto same = [&](const Sum& sum) { return sum.place == product.place; };
        auto found = std::find_if(sums.begin(), sums.end(), same);
        if (found == sums.end()) {
            found =
                sums.insert(sums.end(), Sum{.place = product.place, .c = product.c, .steps = {}});
        }
        found->steps.emplace_back(product.a, product.b);
    }
    EmitProducts(sums);
}

// Two by two where sums share their factors, which are then loaded half as often; products of a sum
// stay in their order.
void MatrixEmitter::EmitProducts(std::vector<Sum>& sums) {
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
    auto find = [&](const Steps& of_a, const Steps& of_b) -> Sum* {
        for (Sum& sum : sums) {
            if (!sum.done && shares(sum.steps, of_a, of_b)) {
                return &sum;
            }
        }
        return nullptr;
    };
    std::vector<std::vector<Sum*>> groups;
    for (Sum& first : sums) {
        if (std::exchange(first.done, true)) {
            continue;
        }
        std::vector<Sum*>& group = groups.emplace_back(std::vector{&first});
        for (Sum& right : sums) {
            if (right.done || !shares(right.steps, first.steps, right.steps)) {
                continue;
            }
            for (Sum& below : sums) {
                if (below.done || &below == &right ||
                    !shares(below.steps, below.steps, first.steps)) {
                    continue;
                }
                Sum* last = find(below.steps, right.steps);
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
        for (Sum* sum : group) {
            sum->done = true;
        }
    }
    for (const std::vector<Sum*>& group : groups) {
        EmitProduct(group);
    }
}

void MatrixEmitter::EmitProduct(const std::vector<Sum*>& group) {
    const unsigned side = group.size() > 1 ? 2 : 1;
    Vectors places;
    for (const Sum* sum : group) {
        places.push_back(sum->c);
    }
    std::vector<MatrixOperand> factors;
    for (size_t step = 0; step < group[0]->steps.size(); ++step) {
        for (unsigned i = 0; i < side; ++i) {
            factors.push_back(group[i * side]->steps[step].first);
        }
        for (unsigned i = 0; i < side; ++i) {
            factors.push_back(group[i]->steps[step].second);
        }
    }
    const size_t products = group.size() * group[0]->steps.size();
    const size_t to_come = std::max(products, products_to_come_);
    const size_t lines = ((prefetches_.size() - next_prefetch_) * products + to_come - 1) / to_come;
    products_to_come_ = to_come - products;
    MatrixLines asked_for;
    if (lines != 0) {
        asked_for.addresses = llvm::ArrayRef(prefetches_).slice(next_prefetch_, lines);
        asked_for.array = b_.CreateConstGEP1_64(b_.getPtrTy(), prefetch_array_, next_prefetch_);
        next_prefetch_ += lines;
    }
    unit_.MultiplyAdd(places, factors, waiting_kind_, asked_for);
}

void MatrixEmitter::PrefetchMeanwhile(Vectors addresses, size_t products) {
    prefetches_ = std::move(addresses);
    next_prefetch_ = 0;
    products_to_come_ = products;
    if (prefetches_.empty()) {
        return;
    }
    prefetch_array_ = NewMatrixSlot(entry_, prefetches_.size() * sizeof(uint64_t));
    for (size_t i = 0; i < prefetches_.size(); ++i) {
        b_.CreateStore(prefetches_[i], b_.CreateConstGEP1_64(b_.getPtrTy(), prefetch_array_, i));
    }
}

void MatrixEmitter::EndSegment() {
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

// What the products add up to is far from wrapping.
Value* MatrixEmitter::AddSaturating(Value* sum, Value* products, uint64_t flags) {
    if (flags & ir::kMatrixSignedC) {
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, sum, products);
    }
    Value* up = b_.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, sum, products);
    Value* down = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, sum, b_.CreateNeg(products));
    Value* zero = llvm::Constant::getNullValue(products->getType());
    return b_.CreateSelect(b_.CreateICmpSLT(products, zero), down, up);
}

}  // namespace fornax::kernel
