#include "compiler/kernel/codegen/emit_fetch.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <ranges>

#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/kernel/analysis/access_limits.h"
#include "compiler/kernel/analysis/reread_buffers.h"
#include "compiler/kernel/codegen/fetch_line.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/interface/streamed_stores.h"
#include "compiler/kernel/ir/any_inside.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr uint64_t kPrefetchDistance = 4096;  // bytes
// A workgroup of several rows prefetches for each of them: so many bytes for all, which the first
// cache has room for. Not below the least distance of a row.
constexpr uint64_t kRowsPrefetchDistance = 8192;
constexpr uint64_t kLeastPrefetchDistance = 256;

// The distance between two workgroups' places takes so many operations at most.
constexpr uint32_t kMostStepOperations = 24;

}  // namespace

PrefetchCode::PrefetchCode(FunctionCode& code, MemoryCode& memory, ValueCode& values)
    : FunctionPart(code),
      memory_(memory),
      values_(values),
      rereads_(FindRereads(code.kernel)),
      index_(code.kernel, kWorkgroupHints) {}

// A store to a line that is in no cache waits until it is, and those behind it wait, too: the
// processor has few requests of stores under way. Loads do not hold each other up, so the line of a
// later store is prefetched like one. Loads among much arithmetic need the same, because the
// processor does not look far enough ahead to meet the next ones. Accesses that run through memory
// come by there soon, be it in this loop, in the next sweep over a row or in the next workgroup; a
// line too many costs less than one that is missing, and an address that nothing is at does no
// harm.
void PrefetchCode::Prefetch(const MemoryRegion& region,
                            Value* address,
                            llvm::ArrayRef<uint64_t> lines,
                            bool for_store) {
    if (lines.empty()) {
        return;
    }
    Value* distance = region.prefetch.distance;
    if (!distance) {
        distance = builder_.getInt64(UsualDistance());
    }
    Value* first = builder_.CreateGEP(builder_.getInt8Ty(), address, distance);
    for (uint64_t line : lines) {
        Value* ahead = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), first, line);
        FetchLine(builder_, ahead, region.prefetch.level, for_store);
    }
}

// In loops a row goes on where it is; otherwise the rows of a workgroup take turns.
uint64_t PrefetchCode::UsualDistance() const {
    const bool in_loop = std::ranges::any_of(code_.constructs, [&](const Construct& construct) {
        return kernel_.inst(construct.inst).op == Op::kLoop;
    });
    const std::array<uint32_t, 3>& size = kernel_.workgroup_size;
    const uint64_t rows = uint64_t{size[1]} * size[2];
    return in_loop || rows == 0
               ? kPrefetchDistance
               : std::clamp(kRowsPrefetchDistance / rows / kCacheLineBytes * kCacheLineBytes,
                            kLeastPrefetchDistance, kPrefetchDistance);
}

// An expression in 64 bits, made of values that all lanes share. Null if one of them is not at hand
// or it is too much to compute.
Value* PrefetchCode::IndexValue(IndexExpr expr, uint32_t& budget) {
    const IndexSum& sum = index_.algebra().sum(expr);
    Value* value = builder_.getInt64(static_cast<uint64_t>(sum.constant));
    for (const IndexSum::Part& part : sum.parts) {
        Value* term = IndexValue(index_.algebra().term(part.term), budget);
        if (!term) {
            return nullptr;
        }
        Value* factor = builder_.getInt64(static_cast<uint64_t>(part.factor));
        value = builder_.CreateAdd(value, builder_.CreateMul(term, factor));
    }
    return value;
}

Value* PrefetchCode::IndexValue(const IndexTerm& term, uint32_t& budget) {
    if (budget == 0) {
        return nullptr;
    }
    --budget;
    if (term.kind == IndexTerm::Kind::kSymbol) {
        const ir::ValueId id{term.symbol.number};
        if (term.symbol.kind != IndexSymbol::Kind::kValue || !patterns_.pattern(id).uniform()) {
            return nullptr;
        }
        Value* raw = values_.held(id).raw;
        return raw && values_.IsHere(id) ? builder_.CreateZExtOrTrunc(raw, builder_.getInt64Ty())
                                         : nullptr;
    }
    if (term.kind == IndexTerm::Kind::kProduct) {
        Value* product = builder_.getInt64(1);
        for (IndexTermId factor : term.factors) {
            Value* value = product ? IndexValue(index_.algebra().term(factor), budget) : nullptr;
            product = value ? builder_.CreateMul(product, value) : nullptr;
        }
        return product;
    }
    Value* operand = IndexValue(term.operand, budget);
    Value* by = term.by.valid() ? IndexValue(term.by, budget) : builder_.getInt64(term.divisor);
    if (!operand || !by) {
        return nullptr;
    }
    if (term.kind == IndexTerm::Kind::kLowBits) {
        return builder_.CreateAnd(operand, ~uint64_t{0} >> (64 - term.divisor));
    }
    by = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, by, builder_.getInt64(1));
    return term.kind == IndexTerm::Kind::kQuotient ? builder_.CreateUDiv(operand, by)
                                                   : builder_.CreateURem(operand, by);
}

// A workgroup that reads its row a second time has it in the cache, so memory would rest while it
// computes: time to prefetch what the next workgroup reads first. So it is with a tile that is read
// a second time.
bool PrefetchCode::RereadsRow(const ir::Instruction& load) const {
    return rereads_[load.results[0].value()];
}

// What the next workgroup reads, without a distance if that is unknown. The first cache has what
// this one still reads; it also waits for few lines at a time, and may lose a far one again.
PrefetchTarget PrefetchCode::NextWorkgroup(ir::ValueId offset) {
    return {.distance = WorkgroupDistance(offset), .level = CacheLevel::kSecond};
}

// A loop between barriers goes from tile to tile, and a loop in it that reads a tile prefetches the
// next one meanwhile: behind the barriers no load begins before the tile is done. PrefetchPlan does
// this for loads that are in no further loop.
Value* PrefetchCode::NextTileDistance(const ir::Instruction& load) {
    const Construct* tiles = LoopOverTiles();
    if (!tiles || rereads_[load.results[0].value()]) {
        return nullptr;
    }
    const IndexExpr step = index_.AlongIteration(load.operands[1], tiles->inst);
    const std::optional<int64_t> bytes =
        step.valid() ? index_.algebra().AsConstant(step) : std::nullopt;
    return bytes && *bytes != 0 && std::abs(*bytes) <= kMostTileBytes
               ? llvm::ConstantInt::getSigned(builder_.getInt64Ty(), *bytes)
               : nullptr;
}

// The innermost loop between barriers that has another loop around this point; null if there is
// none.
const Construct* PrefetchCode::LoopOverTiles() const {
    const Construct* tiles = nullptr;
    for (const Construct& construct : code_.constructs) {
        if (kernel_.inst(construct.inst).op != Op::kLoop) {
            continue;
        }
        if (!construct.workgroup_level) {
            return tiles;
        }
        tiles = &construct;
    }
    return nullptr;
}

// i64: how far apart the places are that neighbouring workgroups access. Null if it is unknown, or
// 0.
Value* PrefetchCode::WorkgroupDistance(ir::ValueId offset) {
    const IndexExpr step = WorkgroupStep(offset);
    uint32_t budget = kMostStepOperations;
    return step.valid() ? IndexValue(step, budget) : nullptr;
}

// The same as an expression; invalid if it is unknown, or 0.
IndexExpr PrefetchCode::WorkgroupStep(ir::ValueId offset) {
    const IndexExpr step = index_.AlongWorkgroupX(offset);
    return step.valid() && index_.algebra().AsConstant(step) != 0 ? step : IndexExpr{};
}

// Whether the value differs between workgroups that come one after the other: between neighbours in
// x, if the kernel asks for that number at all.
bool PrefetchCode::DiffersByWorkgroup(ir::ValueId value) {
    const uint8_t axes = index_.algebra().axes(index_.Of(value));
    const bool uses_x =
        std::ranges::any_of(std::views::iota(0u, kernel_.num_insts()), [&](uint32_t i) {
            const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
            return inst.op == Op::kBuiltin &&
                   static_cast<ir::BuiltinId>(inst.imm) == ir::BuiltinId::kWorkgroupIdX;
        });
    return (axes & (uses_x ? kWorkgroupXAxis : kWorkgroupAxes)) != 0;
}

// Whether the innermost loop, or the kernel outside of loops, has a long float function. Others run
// so far ahead of their loads that the processor needs no help to have many under way.
bool PrefetchCode::ComputesMuch() {
    ir::BlockId around = kernel_.body;
    for (const Construct& construct : code_.constructs) {
        if (kernel_.inst(construct.inst).op == Op::kLoop) {
            around = kernel_.inst(construct.inst).blocks[0];
        }
    }
    const auto [known, is_new] = computes_much_.try_emplace(around.value(), false);
    if (is_new) {
        known->second = ir::AnyInside(kernel_, around, [](const ir::Instruction& inst) {
            return inst.op >= Op::kExp && inst.op <= Op::kATanh;
        });
    }
    return known->second;
}

// Whether the kernel multiplies matrices, and this is not in a loop that does: what comes then is
// over long before memory has brought a line, and the next workgroup's products give it time.
bool PrefetchCode::FollowsProducts() {
    auto multiplies = [](const ir::Instruction& inst) { return inst.op == Op::kMatrixMulAdd; };
    auto known = [&](ir::BlockId block) {
        const auto [found, is_new] = multiplies_.try_emplace(block.value(), false);
        if (is_new) {
            found->second = ir::AnyInside(kernel_, block, multiplies);
        }
        return found->second;
    };
    return known(kernel_.body) &&
           std::ranges::none_of(code_.constructs, [&](const Construct& construct) {
               const ir::Instruction& inst = kernel_.inst(construct.inst);
               return inst.op == Op::kLoop && known(inst.blocks[0]);
           });
}

// A non-temporal store need not read the line first, which is a third of the traffic
// of a copy. Other processors may see it late (Intel SDM, vol. 1, 10.4.6.2), so it is only for
// kernels that have no means of telling others of it but to end. And only for buffers that the
// kernel does not load from.
bool PrefetchCode::MayStream(const ir::Instruction& store) const {
    const ir::Instruction* target = kernel_.Definition(store.operands[0]);
    if (!target || target->op != Op::kBuffer) {
        return false;
    }
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& inst = kernel_.inst(ir::InstId{i});
        if (inst.op == Op::kAtomicBuffer || inst.op == Op::kAtomicGlobal ||
            inst.op == Op::kMemoryBarrier || (inst.flags & ir::kVolatile) != 0) {
            return false;
        }
        if (inst.op == Op::kLoadBuffer || inst.op == Op::kMatrixLoad) {
            const ir::Instruction* source = kernel_.Definition(inst.operands[0]);
            if (!source || source->op != Op::kBuffer || source->imm == target->imm) {
                return false;
            }
        }
    }
    return true;
}

Value* PrefetchCode::StreamMask(const ir::Instruction& store, const MemoryRegion& region) {
    if (!region.size || !MayStream(store)) {
        return nullptr;
    }
    auto* size = llvm::dyn_cast<llvm::Instruction>(region.size);
    if (!size || size->getParent() != code_.entry) {
        return nullptr;
    }
    Value*& mask = stream_masks_[size];
    if (!mask) {
        llvm::IRBuilder<>::InsertPointGuard guard(builder_);
        builder_.SetInsertPoint(code_.entry->getTerminator());
        // No address of a buffer is 0.
        mask = builder_.CreateSelect(
            builder_.CreateICmpUGE(size, builder_.getInt64(kStreamedBytes)),
            builder_.getInt64(kCacheLineBytes - 1), builder_.getInt64(UINT64_MAX), "stream_mask");
    }
    return mask;
}

// f32 values whose f16 these are, if nothing else is known of how they came about.
Value* PrefetchCode::NarrowedFrom(Value* values) {
    while (true) {
        auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(values);
        if (auto* cast = llvm::dyn_cast<llvm::BitCastInst>(values); cast) {
            values = cast->getOperand(0);
        } else if (shuffle && shuffle->isIdentity()) {
            values = shuffle->getOperand(0);
        } else {
            break;
        }
    }
    auto* narrow = llvm::dyn_cast<llvm::FPTruncInst>(values);
    if (!narrow || !narrow->getSrcTy()->getScalarType()->isFloatTy() ||
        !narrow->getDestTy()->getScalarType()->isHalfTy() || !narrow->getSrcTy()->isVectorTy()) {
        return nullptr;
    }
    // An operation of f16 that only went through f32 may become one of f16 again.
    auto* made = llvm::dyn_cast<llvm::Instruction>(narrow->getOperand(0));
    const bool shrinks = made && std::ranges::any_of(made->operands(), [](const llvm::Use& use) {
                             return llvm::isa<llvm::FPExtInst>(use.get());
                         });
    return shrinks ? nullptr : narrow->getOperand(0);
}

// Rounds to f16 on the way to memory, a register of f32 at once: one operation less for each than
// in a register, where also two results would have to be joined. False if that is not the case.
bool PrefetchCode::StoreNarrowed(const MemoryRegion& region,
                                 Value* values,
                                 Value* address,
                                 llvm::Align align) {
    const unsigned piece = code_.vector_bits / 32;
    Value* wide = piece >= 8 ? NarrowedFrom(values) : nullptr;
    if (!wide) {
        return false;
    }
    const auto lanes = llvm::cast<llvm::FixedVectorType>(wide->getType())->getNumElements();
    if (lanes % piece != 0 || lanes * 16 != values->getType()->getPrimitiveSizeInBits()) {
        return false;
    }
    constexpr uint32_t kRoundingOfMxcsr = 4;
    for (unsigned first = 0; first < lanes; first += piece) {
        llvm::SmallVector<Value*, 4> operands = {vectors::Slice(builder_, wide, first, piece),
                                                 builder_.getInt32(kRoundingOfMxcsr)};
        auto id = llvm::Intrinsic::x86_vcvtps2ph_256;
        if (piece == 16) {
            auto* result = llvm::FixedVectorType::get(builder_.getInt16Ty(), piece);
            operands.push_back(llvm::Constant::getNullValue(result));
            operands.push_back(builder_.getInt16(0xffff));
            id = llvm::Intrinsic::x86_avx512_mask_vcvtps2ph_512;
        }
        Value* part = builder_.CreateIntrinsic(id, {}, operands);
        Value* at = builder_.CreateConstGEP1_64(builder_.getInt16Ty(), address, first);
        memory_.Annotate(region, builder_.CreateAlignedStore(part, at, align));
    }
    return true;
}

// The values one after the other, all of them.
void PrefetchCode::StoreRun(const MemoryRegion& region,
                            Value* values,
                            Value* address,
                            llvm::Align align,
                            llvm::ArrayRef<uint64_t> prefetches) {
    const uint64_t bytes = values->getType()->getPrimitiveSizeInBits() / 8;
    auto store = [&](Value* stored, llvm::Align known) {
        auto* access = builder_.CreateAlignedStore(stored, address, known);
        memory_.Annotate(region, access);
        return access;
    };
    BasicBlock* end = nullptr;
    if (region.stream_mask && bytes % kCacheLineBytes == 0) {
        BasicBlock* past = code_.NewBlock("store_past_caches");
        BasicBlock* through = code_.NewBlock("store_to_caches");
        end = code_.NewBlock("stored");
        Value* bits = builder_.CreateAnd(builder_.CreatePtrToInt(address, builder_.getInt64Ty()),
                                         region.stream_mask);
        code_.EmitMaybe(builder_.CreateICmpEQ(bits, builder_.getInt64(0)), past, through, false);
        builder_.SetInsertPoint(past);
        llvm::Metadata* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
        Value* stored = values;
        if (values->getType()->getScalarSizeInBits() == 16) {
            // LLVM has no such store of f16, and finds out that these are. The fence, which is no
            // code, hides it.
            auto count = static_cast<unsigned>(bytes / sizeof(float));
            auto* type = llvm::FixedVectorType::get(builder_.getFloatTy(), count);
            stored = builder_.CreateBitCast(values, type);
            stored = builder_.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {type}, {stored});
        }
        store(stored, llvm::Align(kCacheLineBytes))
            ->setMetadata(llvm::LLVMContext::MD_nontemporal,
                          llvm::MDNode::get(code_.context, {one}));
        builder_.CreateBr(end);
        builder_.SetInsertPoint(through);
        streams_ = true;
    }
    if (!StoreNarrowed(region, values, address, align)) {
        store(values, align);
    }
    Prefetch(region, address, prefetches, true);
    if (end) {
        builder_.CreateBr(end);
        builder_.SetInsertPoint(end);
    }
}

// Whoever hears that the kernel has ended sees what it stored.
void PrefetchCode::FinishStreams() {
    if (streams_) {
        builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    }
}

// Whether the kernel loads from where it stores: that brings the line already.
bool PrefetchCode::IsLoaded(const ir::Instruction& store) const {
    const bool global = store.op == Op::kStoreGlobal;
    const size_t at = global ? 0 : 1;
    for (uint32_t i = 0; i < kernel_.num_insts(); ++i) {
        const ir::Instruction& load = kernel_.inst(ir::InstId{i});
        if (load.op == (global ? Op::kLoadGlobal : Op::kLoadBuffer) &&
            load.operands[at] == store.operands[at] &&
            (global || BindingOf(load) == BindingOf(store))) {
            return true;
        }
    }
    return false;
}

// Whether the workgroup before has prefetched the row, because a later loop reads this buffer
// again.
bool PrefetchCode::IsPrefetchedRow(const ir::Instruction& access) {
    const uint64_t binding = BindingOf(access);
    const auto [known, is_new] = prefetched_rows_.try_emplace(binding, false);
    for (uint32_t i = 0; is_new && !known->second && i < kernel_.num_insts(); ++i) {
        const ir::Instruction& load = kernel_.inst(ir::InstId{i});
        known->second = load.op == Op::kLoadBuffer && rereads_[load.results[0].value()] &&
                        BindingOf(load) == binding && WorkgroupStep(load.operands[1]).valid();
    }
    return known->second;
}

// The binding of the buffer that is accessed; UINT64_MAX if it is not known.
uint64_t PrefetchCode::BindingOf(const ir::Instruction& access) const {
    const ir::Instruction* buffer = kernel_.Definition(access.operands[0]);
    return buffer && buffer->op == Op::kBuffer ? buffer->imm : UINT64_MAX;
}

}  // namespace fornax::kernel
