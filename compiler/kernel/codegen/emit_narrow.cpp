// Accesses of 8- and 16-bit elements at places that no pattern tells. x86 gathers and scatters
// words only, and LLVM makes scalarized branches of anything else: so elements are gathered as
// parts of aligned words, which never cross into a page that the element itself is not on, or
// taken lane by lane without branches.
#include <algorithm>

#include "compiler/kernel/codegen/memory_code.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

constexpr uint64_t kWord = 4;  // bytes

uint64_t ElementBytes(const llvm::Type* type) {
    return type->getScalarSizeInBits() / 8;
}

}  // namespace

// The mask of the element at `offsets` + `at`.
Value* MemoryCode::ElementMask(const MemoryRegion& region,
                               Value* offsets,
                               uint64_t at,
                               uint64_t bytes) {
    Value* mask = code_.Mask();
    if (region.bounds != Bounds::kChecked) {
        return mask;
    }
    offsets = builder_.CreateAdd(offsets, vectors::Same(offsets->getType(), at));
    return builder_.CreateAnd(mask, LanesInBounds(region, offsets, bytes));
}

MemoryCode::Values MemoryCode::GatherNarrow(const MemoryRegion& region,
                                            Value* offsets,
                                            llvm::Type* type,
                                            size_t count) {
    const uint64_t element = ElementBytes(type);
    const uint64_t bytes = element * count;
    if (region.bounds == Bounds::kClamped) {
        offsets = ClampScalar(region, offsets, bytes);
    }
    if (code_.vector_bits < kLeastGatherBits) {
        return GatherByLane(region, offsets, type, count);
    }

    // The words that hold the run. Bases are aligned to words at least.
    const bool aligned = region.align >= kWord && region.bounds != Bounds::kClamped;
    const uint64_t wanted = (bytes + kWord - 1) / kWord;
    const uint64_t touched = aligned ? wanted : (bytes + kWord - element + kWord - 1) / kWord;
    llvm::Type* offset_type = offsets->getType();
    llvm::Type* words_type = code_.VectorOf(builder_.getInt32Ty());
    Value* start = offsets;
    if (!aligned) {
        start = builder_.CreateAnd(offsets, vectors::Same(offset_type, ~(kWord - 1)));
    }
    Value* base = region.base;
    const bool move = region.may_pass_2gib && offset_type->getScalarSizeInBits() == 32;
    if (move) {
        base = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), base, uint64_t{1} << 31);
    }
    Values words;
    for (uint64_t i = 0; i < touched; ++i) {
        Value* at = builder_.CreateAdd(start, vectors::Same(offset_type, i * kWord));
        // The last word is that of the last byte: where the run begins at a word it is the one
        // before again, because memory may end there.
        if (i >= wanted) {
            at = builder_.CreateAdd(offsets, vectors::Same(offset_type, bytes - 1));
            at = builder_.CreateAnd(at, vectors::Same(offset_type, ~(kWord - 1)));
        }
        Value* mask = code_.Mask();
        if (touched == 1) {
            mask = ElementMask(region, offsets, 0, element);
        } else if (region.bounds == Bounds::kChecked) {
            mask = builder_.CreateAnd(mask, LanesInBounds(region, at, 1));
        }
        if (move) {
            at = builder_.CreateXor(at, vectors::Same(offset_type, uint64_t{1} << 31));
        }
        words.push_back(MaskedGather(region, words_type, base, at, mask));
    }
    if (!aligned) {
        Value* shift = builder_.CreateZExtOrTrunc(offsets, words_type);
        shift = builder_.CreateShl(builder_.CreateAnd(shift, vectors::Same(words_type, kWord - 1)),
                                   vectors::Same(words_type, 3));
        for (uint64_t i = 0; i < wanted; ++i) {
            words[i] = i + 1 < touched
                           ? builder_.CreateIntrinsic(llvm::Intrinsic::fshr, {words_type},
                                                      {words[i + 1], words[i], shift})
                           : builder_.CreateLShr(words[i], shift);
        }
    }
    Values elements = vectors::UnpackWords(builder_, words, 0, type, count);
    if (region.bounds == Bounds::kChecked && bytes != element) {
        for (size_t i = 0; i < count; ++i) {
            Value* mask = ElementMask(region, offsets, i * element, element);
            elements[i] = builder_.CreateSelect(
                mask, elements[i], llvm::Constant::getNullValue(elements[i]->getType()));
        }
    }
    return elements;
}

// Lanes that are not to read take a zero from elsewhere. Without gathers, this is the way for
// every element size.
MemoryCode::Values MemoryCode::GatherByLane(const MemoryRegion& region,
                                            Value* offsets,
                                            llvm::Type* type,
                                            size_t count) {
    const uint64_t element = ElementBytes(type);
    llvm::Type* i8 = builder_.getInt8Ty();
    llvm::Type* wide = offsets->getType()->getWithNewType(builder_.getInt64Ty());
    Values results;
    for (size_t i = 0; i < count; ++i) {
        Value* at = builder_.CreateAdd(offsets, vectors::Same(offsets->getType(), i * element));
        Value* addresses = builder_.CreateGEP(i8, region.base, builder_.CreateZExt(at, wide));
        if (code_.mask || region.bounds == Bounds::kChecked) {
            addresses = builder_.CreateSelect(ElementMask(region, offsets, i * element, element),
                                              addresses, code_.Splat(Zeros()));
        }
        Value* result = llvm::PoisonValue::get(code_.VectorOf(type));
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            Value* address = builder_.CreateExtractElement(addresses, uint64_t{lane});
            Value* value =
                Annotate(region, builder_.CreateAlignedLoad(type, address, llvm::Align(element)));
            result = builder_.CreateInsertElement(result, value, uint64_t{lane});
        }
        results.push_back(result);
    }
    return results;
}

// Stores one piece a lane, one lane after the other.
void MemoryCode::StoreByLane(const MemoryRegion& region,
                             Value* offsets,
                             Value* values,
                             Value* mask) {
    llvm::Type* i8 = builder_.getInt8Ty();
    llvm::Type* i64 = builder_.getInt64Ty();
    llvm::Type* type = values->getType()->getScalarType();
    auto store = [&](Value* offset, Value* value) {
        Value* at = builder_.CreateGEP(i8, region.base, builder_.CreateZExt(offset, i64));
        Annotate(region, builder_.CreateAlignedStore(value, at, llvm::Align(1)));
    };
    auto* all = llvm::dyn_cast<llvm::Constant>(mask);
    if (!code_.compact && all && all->isAllOnesValue()) {
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            store(builder_.CreateExtractElement(offsets, uint64_t{lane}),
                  builder_.CreateExtractElement(values, uint64_t{lane}));
        }
        return;
    }
    // A loop over the bits of the mask, with the lanes in memory.
    llvm::AllocaInst* offset_slots = code_.NewAlloca(offsets->getType(), "lane_offsets");
    llvm::AllocaInst* value_slots = code_.NewAlloca(values->getType(), "lane_values");
    BasicBlock* spill = code_.NewBlock("lanes");
    BasicBlock* body = code_.NewBlock("lane");
    BasicBlock* end = code_.NewBlock("lanes_end");
    Value* bits = builder_.CreateZExt(code_.MaskBits(mask), i64);
    Value* none = builder_.getInt64(0);
    builder_.CreateCondBr(builder_.CreateICmpEQ(bits, none), end, spill);
    builder_.SetInsertPoint(spill);
    builder_.CreateStore(offsets, offset_slots);
    builder_.CreateStore(values, value_slots);
    builder_.CreateBr(body);
    builder_.SetInsertPoint(body);
    llvm::PHINode* left = builder_.CreatePHI(i64, 2);
    left->addIncoming(bits, spill);
    Value* lane = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, builder_.getTrue());
    llvm::Type* offset_type = offsets->getType()->getScalarType();
    store(builder_.CreateLoad(offset_type, builder_.CreateGEP(offset_type, offset_slots, lane)),
          builder_.CreateLoad(type, builder_.CreateGEP(type, value_slots, lane)));
    Value* rest = builder_.CreateAnd(left, builder_.CreateSub(left, builder_.getInt64(1)));
    left->addIncoming(rest, body);
    builder_.CreateCondBr(builder_.CreateICmpEQ(rest, none), end, body);
    builder_.SetInsertPoint(end);
}

void MemoryCode::ScatterNarrow(const MemoryRegion& region,
                               Value* offsets,
                               llvm::ArrayRef<Value*> values) {
    const uint64_t element = ElementBytes(values[0]->getType());
    const uint64_t bytes = element * values.size();
    if (region.bounds == Bounds::kClamped) {
        offsets = ClampScalar(region, offsets, bytes);
    }
    llvm::Type* offset_type = offsets->getType();
    auto move = [&](uint64_t by) {
        return by == 0 ? offsets : builder_.CreateAdd(offsets, vectors::Same(offset_type, by));
    };
    Value* whole = code_.Mask();
    if (region.bounds == Bounds::kChecked) {
        whole = builder_.CreateAnd(whole, LanesInBounds(region, offsets, bytes));
    }
    // Whole words first, then the rest.
    const size_t in_words = bytes / kWord * kWord / element;
    Values words;
    if (in_words != 0) {
        words = vectors::PackWords(builder_, values.take_front(in_words), kWord);
    }
    for (size_t i = 0; i < words.size(); ++i) {
        if (code_.vector_bits < kLeastScatterBits) {
            StoreByLane(region, move(i * kWord), words[i], whole);
            continue;
        }
        Value* base = region.base;
        Value* at = move(i * kWord);
        if (region.may_pass_2gib && offset_type->getScalarSizeInBits() == 32) {
            base = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), base, uint64_t{1} << 31);
            at = builder_.CreateXor(at, vectors::Same(offset_type, uint64_t{1} << 31));
        }
        Annotate(region, builder_.CreateMaskedScatter(
                             words[i], builder_.CreateGEP(builder_.getInt8Ty(), base, at),
                             llvm::Align(1), whole));
    }
    for (size_t i = in_words; i < values.size(); ++i) {
        StoreByLane(region, move(i * element), values[i], whole);
    }
    if (region.bounds != Bounds::kChecked || values.size() == 1) {
        return;
    }
    // Lanes whose run crosses the end of the range: each element by itself.
    BasicBlock* partial = code_.NewBlock("scatter_edge");
    BasicBlock* end = code_.NewBlock("scatter_end");
    Value* rest = builder_.CreateAnd(code_.Mask(), builder_.CreateNot(whole));
    code_.EmitMaybe(code_.Any(rest), partial, end, false);
    builder_.SetInsertPoint(partial);
    for (size_t i = 0; i < values.size(); ++i) {
        Value* mask = ElementMask(region, offsets, i * element, element);
        StoreByLane(region, move(i * element), values[i], builder_.CreateAnd(rest, mask));
    }
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
}

}  // namespace fornax::kernel
