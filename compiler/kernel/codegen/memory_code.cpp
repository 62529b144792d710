#include "compiler/kernel/codegen/memory_code.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using llvm::BasicBlock;
using llvm::Value;
using Bounds = MemoryRegion::Bounds;

namespace {

constexpr uint64_t kZeroBytes = 256;  // what an out-of-range uniform load reads instead

}  // namespace

llvm::Type* MemoryCode::MemoryType(ir::Type type) {
    return type == ir::Type::kBool ? builder_.getInt32Ty() : ScalarType(code_.context, type);
}

Value* MemoryCode::ToMemory(Value* value) {
    llvm::Type* type = value->getType();
    if (!type->getScalarType()->isIntegerTy(1)) {
        return value;
    }
    return builder_.CreateZExt(value, type->getWithNewType(builder_.getInt32Ty()));
}

Value* MemoryCode::FromMemory(Value* value, ir::Type type) {
    if (type != ir::Type::kBool) {
        return value;
    }
    return builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
}

void MemoryCode::CompilerFence() {
    builder_.CreateFence(llvm::AtomicOrdering::AcquireRelease, llvm::SyncScope::SingleThread);
}

// The time stamp counter, which the processors of a machine share and which runs at one rate. It
// may be read before instructions that come before it are done, earlier readings included, but for
// the first fence (Intel SDM, vol. 2, RDTSC); the second one keeps what follows behind it.
Value* MemoryCode::ReadClock() {
    CompilerFence();
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_lfence, {}, {});
    Value* time = builder_.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse2_lfence, {}, {});
    CompilerFence();
    return code_.Splat(time);
}

Value* MemoryCode::Annotate(const MemoryRegion& region, Value* access) {
    auto* inst = llvm::dyn_cast<llvm::Instruction>(access);
    if (!inst) {
        return access;
    }
    inst->setMetadata(llvm::LLVMContext::MD_alias_scope, region.scope);
    inst->setMetadata(llvm::LLVMContext::MD_noalias, region.noalias);
    if (region.invariant && llvm::isa<llvm::LoadInst>(inst)) {
        inst->setMetadata(llvm::LLVMContext::MD_invariant_load,
                          llvm::MDNode::get(code_.context, {}));
    }
    return access;
}

Value* MemoryCode::ByteAddress(const MemoryRegion& region, Value* offset) {
    if (region.is_global) {
        return builder_.CreateIntToPtr(offset, builder_.getPtrTy());
    }
    offset = builder_.CreateZExt(offset, builder_.getInt64Ty());
    return builder_.CreateGEP(builder_.getInt8Ty(), region.base, offset);
}

Value* MemoryCode::InBounds(const MemoryRegion& region, Value* offset, uint64_t bytes) {
    llvm::Type* i64 = builder_.getInt64Ty();
    Value* size = region.size;
    if (offset->getType()->isIntegerTy(32)) {
        Value* end = builder_.CreateAdd(builder_.CreateZExt(offset, i64), builder_.getInt64(bytes));
        return builder_.CreateICmpULE(end, size);
    }
    Value* holds = builder_.CreateICmpUGE(size, builder_.getInt64(bytes));
    Value* last = builder_.CreateSub(size, builder_.getInt64(bytes));
    return builder_.CreateAnd(holds, builder_.CreateICmpULE(offset, last));
}

Value* MemoryCode::LanesInBounds(const MemoryRegion& region, Value* offsets, uint64_t bytes) {
    llvm::Type* type = offsets->getType()->getScalarType();
    Value* size = region.size;
    if (type->isIntegerTy(32)) {
        size = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, size,
                                              builder_.getInt64(UINT32_MAX));
        size = builder_.CreateTrunc(size, type);
    }
    Value* width = llvm::ConstantInt::get(type, bytes);
    Value* holds = builder_.CreateICmpUGE(size, width);
    Value* last = builder_.CreateSub(size, width);
    return builder_.CreateAnd(builder_.CreateICmpULE(offsets, code_.Splat(last)),
                              code_.Splat(holds));
}

Value* MemoryCode::ClampScalar(const MemoryRegion& region, Value* offset, uint64_t bytes) {
    uint64_t last = region.known_size > bytes ? region.known_size - bytes : 0;
    Value* limit = llvm::ConstantInt::get(offset->getType()->getScalarType(), last);
    if (offset->getType()->isVectorTy()) {
        limit = code_.Splat(limit);
    }
    return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, offset, limit);
}

Value* MemoryCode::Zeros() {
    if (!zeros_) {
        auto* array = llvm::ArrayType::get(builder_.getInt8Ty(), kZeroBytes);
        zeros_ =
            new llvm::GlobalVariable(code_.module, array, true, llvm::GlobalValue::PrivateLinkage,
                                     llvm::Constant::getNullValue(array), "zeros");
        zeros_->setAlignment(llvm::Align(16));
    }
    return zeros_;
}

MemoryCode::Values MemoryCode::LoadUniform(const MemoryRegion& region,
                                           Value* offset,
                                           llvm::Type* type,
                                           size_t count) {
    recorder_.Form(AccessForm::kScalar, CheckOf(region, AccessCheck::kScalar));
    const uint64_t element = type->getPrimitiveSizeInBits() / 8;
    if (region.bounds == Bounds::kClamped) {
        offset = ClampScalar(region, offset, element * count);
    }
    auto load_from = [&](Value* address, size_t i) {
        Value* at = builder_.CreateConstGEP1_64(type, address, i);
        return Annotate(region, builder_.CreateAlignedLoad(type, at, llvm::Align(element)));
    };
    Values results;
    if (region.bounds != Bounds::kChecked) {
        Value* address = ByteAddress(region, offset);
        for (size_t i = 0; i < count; ++i) {
            results.push_back(load_from(address, i));
        }
        return results;
    }
    auto or_zeros = [&](Value* from, uint64_t bytes) {
        return builder_.CreateSelect(InBounds(region, from, bytes), ByteAddress(region, from),
                                     Zeros());
    };
    if (count == 1) {
        results.push_back(load_from(or_zeros(offset, element), 0));
        return results;
    }
    // All of it is inside: nearly always. Otherwise each element goes by itself.
    BasicBlock* whole = code_.NewBlock("load_inside");
    BasicBlock* parts = code_.NewBlock("load_edge");
    BasicBlock* end = code_.NewBlock("load_end");
    code_.EmitMaybe(InBounds(region, offset, element * count), whole, parts, true);
    builder_.SetInsertPoint(whole);
    Value* address = ByteAddress(region, offset);
    Values inside;
    for (size_t i = 0; i < count; ++i) {
        inside.push_back(load_from(address, i));
    }
    builder_.CreateBr(end);
    builder_.SetInsertPoint(parts);
    Values edge;
    for (size_t i = 0; i < count; ++i) {
        Value* at =
            builder_.CreateAdd(offset, llvm::ConstantInt::get(offset->getType(), i * element));
        edge.push_back(load_from(or_zeros(at, element), 0));
    }
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    for (size_t i = 0; i < count; ++i) {
        auto* phi = builder_.CreatePHI(type, 2);
        phi->addIncoming(inside[i], whole);
        phi->addIncoming(edge[i], parts);
        results.push_back(phi);
    }
    return results;
}

void MemoryCode::StoreUniform(const MemoryRegion& region,
                              Value* offset,
                              llvm::ArrayRef<Value*> scalars) {
    recorder_.Form(AccessForm::kOneLane, CheckOf(region, AccessCheck::kScalar));
    const uint64_t element = scalars[0]->getType()->getPrimitiveSizeInBits() / 8;
    if (region.bounds == Bounds::kClamped) {
        offset = ClampScalar(region, offset, element * scalars.size());
    }
    auto store_run = [&](Value* address, size_t first, size_t count) {
        for (size_t i = first; i < first + count; ++i) {
            Value* at = builder_.CreateConstGEP1_64(scalars[i]->getType(), address, i - first);
            Annotate(region, builder_.CreateAlignedStore(scalars[i], at, llvm::Align(element)));
        }
    };
    if (region.bounds != Bounds::kChecked) {
        store_run(ByteAddress(region, offset), 0, scalars.size());
        return;
    }
    BasicBlock* whole = code_.NewBlock("store");
    BasicBlock* parts = scalars.size() == 1 ? nullptr : code_.NewBlock("store_edge");
    BasicBlock* end = code_.NewBlock("store_end");
    code_.EmitMaybe(InBounds(region, offset, element * scalars.size()), whole, parts ? parts : end,
                    true);
    builder_.SetInsertPoint(whole);
    store_run(ByteAddress(region, offset), 0, scalars.size());
    builder_.CreateBr(end);
    if (parts) {
        builder_.SetInsertPoint(parts);
        for (size_t i = 0; i < scalars.size(); ++i) {
            Value* at =
                builder_.CreateAdd(offset, llvm::ConstantInt::get(offset->getType(), i * element));
            BasicBlock* one = code_.NewBlock("store_one");
            BasicBlock* next = code_.NewBlock("store_next");
            builder_.CreateCondBr(InBounds(region, at, element), one, next);
            builder_.SetInsertPoint(one);
            store_run(ByteAddress(region, at), i, 1);
            builder_.CreateBr(next);
            builder_.SetInsertPoint(next);
        }
        builder_.CreateBr(end);
    }
    builder_.SetInsertPoint(end);
}

MemoryCode::Values MemoryCode::EitherWay(Value* condition,
                                         const std::string& name,
                                         llvm::function_ref<Values()> usual,
                                         llvm::function_ref<Values()> other) {
    BasicBlock* first = code_.NewBlock(name.c_str());
    BasicBlock* second = code_.NewBlock((name + "_apart").c_str());
    BasicBlock* end = code_.NewBlock((name + "_end").c_str());
    code_.EmitMaybe(condition, first, second, true);
    builder_.SetInsertPoint(first);
    const Values here = usual();
    BasicBlock* first_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(second);
    const Values there = other();
    BasicBlock* second_end = builder_.GetInsertBlock();
    builder_.CreateBr(end);
    builder_.SetInsertPoint(end);
    Values values;
    for (size_t i = 0; i < here.size(); ++i) {
        auto* phi = builder_.CreatePHI(here[i]->getType(), 2);
        phi->addIncoming(here[i], first_end);
        phi->addIncoming(there[i], second_end);
        values.push_back(phi);
    }
    return values;
}

// EitherWay of loads, with the packed form that the usual one may leave in `packed`.
MemoryCode::Values MemoryCode::PackedEitherWay(Value* condition,
                                               const std::string& name,
                                               llvm::function_ref<Values()> usual,
                                               llvm::function_ref<Values()> other,
                                               Value*& packed) {
    Values results = EitherWay(
        condition, name,
        [&] {
            Values values = usual();
            if (packed) {
                values.push_back(packed);
            }
            return values;
        },
        [&] {
            Values values = other();
            if (packed) {
                values.push_back(vectors::Pack(builder_, values));
            }
            return values;
        });
    if (packed) {
        packed = results.pop_back_val();
    }
    return results;
}

}  // namespace fornax::kernel
