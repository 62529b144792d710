#include "compiler/kernel/codegen/emit_subgroup.h"

#include "compiler/kernel/codegen/emit_lane_reads.h"
#include "compiler/kernel/codegen/matrix_emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/ir/group.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

void SubgroupEmitter::EmitSubgroup(const ir::Instruction& inst) {
    switch (inst.op) {
        case Op::kSubgroupBarrier:
            memory_.CompilerFence();
            return;
        case Op::kSubgroupElect: {
            llvm::SmallVector<int64_t, 64> numbers;
            for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
                numbers.push_back(lane);
            }
            values_.Set(inst.results[0],
                        code_.lanes == 1 ? builder_.getTrue()
                                         : builder_.CreateICmpEQ(
                                               code_.LaneConstants(builder_.getInt32Ty(), numbers),
                                               code_.Splat(code_.FirstActive())));
            return;
        }
        case Op::kSubgroupBallot:
            values_.Set(inst.results[0], Ballot(inst.operands[0]));
            return;
        case Op::kSubgroupBroadcastFirst: {
            ir::ValueId operand = inst.operands[0];
            values_.Set(inst.results[0],
                        patterns_.pattern(operand).uniform()
                            ? values_.Raw(operand)
                            : ExtractLane(values_.Vector(operand), code_.FirstActive()));
            return;
        }
        case Op::kSubgroupShuffle:
            EmitShuffle(inst);
            return;
        case Op::kMatrixMulAdd:
        case Op::kMatrixTranspose:
            EmitMatrix(inst);
            return;
        case Op::kMatrixLoad:
            EmitMatrixLoad(inst);
            return;
        case Op::kSubgroupPartition:
            values_.Set(inst.results[0],
                        code_.lanes == 1 ? builder_.getInt64(1) : EmitPartition(inst));
            return;
        case Op::kPartitionedReduce:
        case Op::kPartitionedInclusiveScan:
        case Op::kPartitionedExclusiveScan:
            if (code_.lanes != 1) {
                EmitPartitioned(inst);
                return;
            }
            [[fallthrough]];
        default:
            EmitGroup(inst);
            return;
    }
}

// What all lanes that are here get to is a product of matrices, or a transposition. Then all lanes
// of the subgroup are here: all invocations of the scope must run such an instruction, all or none
// of them (GLSL_KHR_cooperative_matrix, "Cooperative Matrix Functions").
void SubgroupEmitter::UnmaskMatrices(std::span<const ir::InstId> insts) {
    if (!code_.mask || !code_.matrices || code_.workgroups_in_vector ||
        code_.lanes != kernel_.subgroup_size || code_.invocations % code_.lanes != 0) {
        return;
    }
    for (ir::InstId id : insts) {
        const ir::Instruction& inst = kernel_.inst(id);
        if (inst.op == Op::kMatrixMulAdd || inst.op == Op::kMatrixTranspose ||
            inst.op == Op::kMatrixLoad) {
            code_.mask = nullptr;
            return;
        }
        if (ir::HasProperty(inst.op, ir::kTerminator) || patterns_.facts(id).loses_lanes) {
            return;
        }
    }
}

void SubgroupEmitter::UnmaskMatrices(std::span<const RegionItem> items) {
    llvm::SmallVector<ir::InstId, 32> insts;
    for (const RegionItem& item : items) {
        if (item.kind != RegionItem::Kind::kInstruction) {
            break;
        }
        insts.push_back(item.inst);
    }
    UnmaskMatrices(std::span<const ir::InstId>(insts));
}

void SubgroupEmitter::EmitMatrix(const ir::Instruction& inst) {
    std::array<bool, 3> in_memory = {};
    if (inst.op == Op::kMatrixMulAdd) {
        in_memory = code_.matrices->InMemory(inst, code_.mask != nullptr);
    }
    llvm::SmallVector<Value*, 96> operands;
    for (size_t i = 0; i < inst.operands.size(); ++i) {
        const size_t matrix = i / inst.results.size();
        operands.push_back(in_memory[matrix] ? nullptr : values_.Vector(inst.operands[i]));
    }
    std::vector<Value*> results;
    if (inst.op == Op::kMatrixMulAdd) {
        results = code_.matrices->MulAdd(inst, operands, code_.subgroup, code_.mask != nullptr);
    } else if (code_.compact) {
        const std::string name =
            std::string("transpose_") + ir::TypeName(kernel_.type(inst.results[0]));
        results = code_.matrices->Transpose(operands, [&](llvm::ArrayRef<Value*> rows, auto body) {
            return code_.ShareCode(name, rows, body);
        });
    } else {
        results = code_.matrices->Transpose(operands, nullptr);
    }
    for (size_t i = 0; i < results.size(); ++i) {
        values_.Set(inst.results[i], results[i]);
    }
}

void SubgroupEmitter::EmitMatrixLoad(const ir::Instruction& inst) {
    const MemoryRegion region = memory_regions_.BufferRegion(inst, inst.operands[0]);
    MatrixEmitter::Source source = {.base = region.base, .size = region.size};
    if (region.lane_bases) {
        source.base = builder_.CreateIntToPtr(
            builder_.CreateExtractElement(region.lane_bases, code_.FirstActive()),
            builder_.getPtrTy());
        source.size = builder_.CreateExtractElement(region.lane_sizes, code_.FirstActive());
    }
    if (region.bounds == MemoryRegion::Bounds::kTrusted) {
        source.size = nullptr;
    }
    source.offset = values_.FromFirstActive(inst.operands[1]);
    source.stride = values_.FromFirstActive(inst.operands[2]);
    source.any = code_.mask ? code_.Any(code_.mask) : nullptr;
    const std::vector<Value*> results =
        code_.matrices->Load(kernel_.value(inst.results[0]).inst, source);
    for (size_t i = 0; i < results.size(); ++i) {
        values_.Set(inst.results[i], results[i]);
    }
}

Value* SubgroupEmitter::Ballot(ir::ValueId condition) {
    llvm::Type* i64 = builder_.getInt64Ty();
    if (code_.lanes == 1) {
        return builder_.CreateZExt(values_.Raw(condition), i64);
    }
    if (patterns_.pattern(condition).uniform()) {
        Value* active = builder_.CreateZExt(code_.MaskBits(code_.Mask()), i64);
        return builder_.CreateSelect(values_.Raw(condition), active, builder_.getInt64(0));
    }
    return builder_.CreateZExt(
        code_.MaskBits(builder_.CreateAnd(code_.Mask(), values_.Vector(condition))), i64);
}

Value* SubgroupEmitter::ExtractLane(Value* vector, Value* lane) {
    if (code_.lanes == 1) {
        return vector;
    }
    if (!vector->getType()->isIntOrIntVectorTy(1)) {
        return builder_.CreateExtractElement(vector, lane);
    }
    Value* bits = code_.MaskBits(vector);
    lane = builder_.CreateZExtOrTrunc(lane, bits->getType());
    return builder_.CreateTrunc(builder_.CreateLShr(bits, lane), builder_.getInt1Ty());
}

Value* SubgroupEmitter::ShuffleConstant(Value* vector, llvm::ArrayRef<int> lanes) {
    // Masks are no registers to shuffle in.
    const bool mask = vector->getType()->isIntOrIntVectorTy(1);
    if (mask) {
        vector = builder_.CreateSExt(vector, code_.VectorOf(builder_.getInt8Ty()));
    }
    vector = builder_.CreateShuffleVector(vector, lanes);
    return mask ? builder_.CreateTrunc(vector, code_.VectorOf(builder_.getInt1Ty())) : vector;
}

void SubgroupEmitter::EmitShuffle(const ir::Instruction& inst) {
    const ir::ValueId result = inst.results[0];
    const ir::ValueId value = inst.operands[0];
    const ir::ValueId index = inst.operands[1];
    if (patterns_.pattern(value).uniform() || code_.lanes == 1) {
        values_.Set(result, patterns_.pattern(result).scalar() ? values_.Raw(value)
                                                               : code_.Splat(values_.Raw(value)));
        return;
    }
    Value* last = builder_.getInt32(code_.lanes - 1);
    if (patterns_.pattern(index).uniform()) {
        values_.Set(result, ExtractLane(values_.Vector(value),
                                        builder_.CreateAnd(values_.Raw(index), last)));
        return;
    }
    Value* indices = builder_.CreateAnd(values_.Vector(index), code_.Splat(last));
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(indices)) {
        llvm::SmallVector<int, 64> lanes;
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            auto* element =
                llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(lane));
            if (!element) {
                break;
            }
            lanes.push_back(static_cast<int>(element->getZExtValue()));
        }
        if (lanes.size() == code_.lanes) {
            values_.Set(result, ShuffleConstant(values_.Vector(value), lanes));
            return;
        }
    }
    values_.Set(result, PermuteLanes(code_, values_.Vector(value), indices));
}

Value* SubgroupEmitter::Combined(const ir::Instruction& inst, Value* values, Value* mask) {
    const ir::Type type = kernel_.type(inst.results[0]);
    const uint32_t bits = ir::BitWidth(type);
    llvm::Type* scalar = values->getType()->getScalarType();
    llvm::Constant* identity = llvm::ConstantInt::get(
        code_.context, llvm::APInt(bits, ir::GroupIdentity(ir::GroupOpOf(inst), type)));
    if (ir::IsFloat(type)) {
        identity = llvm::ConstantExpr::getBitCast(identity, scalar);
    }
    const bool exclusive =
        inst.op == Op::kSubgroupExclusiveScan || inst.op == Op::kPartitionedExclusiveScan;
    if (code_.lanes == 1) {
        return exclusive ? identity : values;
    }
    Value* identities = code_.Splat(identity);
    if (mask) {
        values = builder_.CreateSelect(mask, values, identities);
    }

    ir::Instruction combine = inst;
    combine.op = ir::CombineOp(ir::GroupOpOf(inst));
    combine.operands = {inst.operands[0], inst.operands[0]};
    combine.imm = 0;
    auto combined = [&](Value* a, Value* b) {
        return EmitPureOp(builder_, kernel_, combine, {a, b})[0];
    };
    if (inst.op == Op::kSubgroupReduce || inst.op == Op::kPartitionedReduce) {
        const uint32_t cluster = ir::ClusterSizeOf(inst);
        if (cluster == 0 || cluster == code_.lanes) {
            for (uint32_t half = code_.lanes / 2; half != 0; half /= 2) {
                llvm::SmallVector<int, 64> low, high;
                for (uint32_t i = 0; i < half; ++i) {
                    low.push_back(static_cast<int>(i));
                    high.push_back(static_cast<int>(half + i));
                }
                values = combined(builder_.CreateShuffleVector(values, low),
                                  builder_.CreateShuffleVector(values, high));
            }
            return builder_.CreateExtractElement(values, uint64_t{0});
        }
        for (uint32_t half = cluster / 2; half != 0; half /= 2) {
            llvm::SmallVector<int, 64> other;
            for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
                other.push_back(static_cast<int>(lane ^ half));
            }
            values = combined(values, builder_.CreateShuffleVector(values, other));
        }
        return values;
    }
    auto moved_up = [&](uint32_t by) {
        llvm::SmallVector<int, 64> lanes;
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            lanes.push_back(static_cast<int>(lane < by ? code_.lanes : lane - by));
        }
        return builder_.CreateShuffleVector(values, identities, lanes);
    };
    for (uint32_t by = 1; by < code_.lanes; by *= 2) {
        values = combined(moved_up(by), values);
    }
    return exclusive ? moved_up(1) : values;
}

void SubgroupEmitter::EmitGroup(const ir::Instruction& inst) {
    const ir::ValueId result = inst.results[0];
    Value* combined = Combined(inst, values_.Vector(inst.operands[0]), code_.mask);
    if (!patterns_.pattern(result).scalar() && !combined->getType()->isVectorTy()) {
        combined = code_.Splat(combined);
    }
    values_.Set(result, combined);
}

Value* SubgroupEmitter::ForEachSet(Value* initial, SetBody body) {
    llvm::Type* bits_type = builder_.getIntNTy(code_.lanes);
    Value* none = llvm::ConstantInt::get(bits_type, 0);
    Value* active = code_.MaskBits(code_.Mask());
    BasicBlock* before = builder_.GetInsertBlock();
    BasicBlock* loop = code_.NewBlock("set");
    BasicBlock* end = code_.NewBlock("set_end");
    builder_.CreateCondBr(builder_.CreateICmpNE(active, none), loop, end);
    builder_.SetInsertPoint(loop);
    auto* remaining = builder_.CreatePHI(bits_type, 2);
    auto* so_far = builder_.CreatePHI(initial->getType(), 2);
    remaining->addIncoming(active, before);
    so_far->addIncoming(initial, before);
    Value* lane =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, remaining, builder_.getTrue());
    lane = builder_.CreateZExtOrTrunc(lane, builder_.getInt64Ty());
    auto [taken, next] = body(lane, so_far);
    // The first lane goes in any case, whatever the application gave as its set.
    Value* rest = builder_.CreateAnd(
        remaining, builder_.CreateSub(remaining, llvm::ConstantInt::get(bits_type, 1)));
    rest = builder_.CreateAnd(rest, builder_.CreateNot(taken));
    BasicBlock* last = builder_.GetInsertBlock();
    remaining->addIncoming(rest, last);
    so_far->addIncoming(next, last);
    builder_.CreateCondBr(builder_.CreateICmpNE(rest, none), loop, end);
    builder_.SetInsertPoint(end);
    auto* result = builder_.CreatePHI(initial->getType(), 2);
    result->addIncoming(initial, before);
    result->addIncoming(next, last);
    return result;
}

Value* SubgroupEmitter::EmitPartition(const ir::Instruction& inst) {
    Value* values = values_.Vector(inst.operands[0]);
    llvm::Type* type = values->getType();
    values = builder_.CreateBitCast(
        values, code_.VectorOf(builder_.getIntNTy(type->getScalarSizeInBits())));
    Value* initial = llvm::Constant::getNullValue(code_.VectorOf(builder_.getInt64Ty()));
    return ForEachSet(initial, [&](Value* lane, Value* so_far) {
        Value* equal = builder_.CreateICmpEQ(values, code_.Splat(ExtractLane(values, lane)));
        equal = builder_.CreateAnd(equal, code_.Mask());
        Value* set = code_.MaskBits(equal);
        Value* sets = code_.Splat(builder_.CreateZExt(set, builder_.getInt64Ty()));
        return std::pair<Value*, Value*>(set, builder_.CreateSelect(equal, sets, so_far));
    });
}

void SubgroupEmitter::EmitPartitioned(const ir::Instruction& inst) {
    Value* values = values_.Vector(inst.operands[0]);
    Value* sets = values_.Vector(inst.operands[1]);
    Value* initial = llvm::Constant::getNullValue(values->getType());
    values_.Set(
        inst.results[0], ForEachSet(initial, [&](Value* lane, Value* so_far) {
            Value* set =
                builder_.CreateTrunc(ExtractLane(sets, lane), builder_.getIntNTy(code_.lanes));
            Value* in_set = builder_.CreateBitCast(set, code_.VectorOf(builder_.getInt1Ty()));
            in_set = builder_.CreateAnd(in_set, code_.Mask());
            Value* combined = Combined(inst, values, in_set);
            if (!combined->getType()->isVectorTy()) {
                combined = code_.Splat(combined);
            }
            return std::pair<Value*, Value*>(set, builder_.CreateSelect(in_set, combined, so_far));
        }));
}

}  // namespace fornax::kernel
