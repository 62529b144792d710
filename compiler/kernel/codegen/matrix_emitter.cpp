#include "compiler/kernel/codegen/matrix_emitter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/kernel/codegen/matrix_code.h"
#include "compiler/kernel/codegen/pure_ops_internal.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

using ir::kMatrixSize;
using llvm::Value;

namespace {

const llvm::Align kSlotAlign(64);
constexpr uint64_t kSumBytes = ir::kMatrixElements * 4;
constexpr uint64_t kFactorBytes = std::max(kSumBytes, kTileFactorBytes);
// Factors that are kept as the functions take them: a column and a row of four. With twice as many
// they leave the first cache before they are used: 144 instead of 161 GFLOP/s in ggml's f16
// product.
constexpr size_t kSlots = hal::kMatrixFactorRegisters;
constexpr size_t kMaxWaiting = 64;

// MatrixEmitter::Made::how
constexpr uint64_t kTransposed = 1;
constexpr uint64_t kPackedA = 2;
constexpr uint64_t kPackedB = 4;
constexpr uint64_t kSigned = 8;
constexpr uint64_t kBFloat = 16;
constexpr uint64_t kTiles = 32;

unsigned Width(const Value* vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

TileFactors KindOf(const ir::Kernel& kernel, const ir::Instruction& product) {
    if (kernel.type(product.operands[0]) == ir::Type::kI8)
        return TileFactors::kBytes;
    return product.imm & ir::kMatrixBFloat16 ? TileFactors::kBFloat : TileFactors::kHalf;
}

hal::MatrixFormat FormatOf(TileFactors factors) {
    switch (factors) {
        case TileFactors::kHalf:
            return hal::MatrixFormat::kF16;
        case TileFactors::kBFloat:
            return hal::MatrixFormat::kBF16;
        case TileFactors::kBytes:
            break;
    }
    return hal::MatrixFormat::kInt8;
}

// Element 0 of one vector, element 0 of the other, element 1, ...
llvm::SmallVector<int, 32> Alternating(unsigned width) {
    llvm::SmallVector<int, 32> picks;
    for (unsigned i = 0; i < 2 * width; ++i)
        picks.push_back(static_cast<int>(i % 2 * width + i / 2));
    return picks;
}

}  // namespace

MatrixEmitter::MatrixEmitter(const ir::Kernel& kernel,
                             const Regions* regions,
                             llvm::IRBuilder<>& builder,
                             llvm::BasicBlock& entry,
                             Value* shared,
                             uint32_t vector_bits,
                             ExplainRecorder& recorder)
    : kernel_(kernel),
      b_(builder),
      entry_(entry),
      vector_bits_(vector_bits),
      recorder_(recorder),
      commands_(builder, entry, recorder),
      places_(FindMatrixPlaces(kernel)),
      shared_(shared) {
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (inst.op == ir::Op::kMatrixMulAdd && UsesTiles(KindOf(kernel, inst), inst.imm))
            break;
    }
    if (!tiles_ || !regions)
        return;
    factors_ = FindMatrixFactors(kernel, *regions, [&](const ir::Instruction& product) {
        return UsesTiles(KindOf(kernel, product), product.imm);
    });
    if (factors_.max_places == 0)
        return;
    packed_ = NewSlot(uint64_t{factors_.max_places} * kTileFactorBytes);
    is_packed_ = NewSlot(factors_.max_places);
}

void MatrixEmitter::BeginSegment(uint32_t segment) {
    const auto found = factors_.segments.find(segment);
    segment_ = found == factors_.segments.end() ? nullptr : &found->second;
    if (segment_ && segment_->shared)
        b_.CreateMemSet(is_packed_, b_.getInt8(0), segment_->places, kSlotAlign);
}

Value* MatrixEmitter::OfSubgroup(llvm::ArrayRef<uint32_t> by_subgroup) {
    if (std::all_of(by_subgroup.begin(), by_subgroup.end(),
                    [&](uint32_t value) { return value == by_subgroup[0]; }))
        return b_.getInt64(by_subgroup[0]);
    llvm::Constant* data = llvm::ConstantDataArray::get(b_.getContext(), by_subgroup);
    auto* table = new llvm::GlobalVariable(*entry_.getModule(), data->getType(),
                                           /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                           data, "by_subgroup");
    Value* at = b_.CreateGEP(b_.getInt32Ty(), table, b_.CreateZExt(subgroup_, b_.getInt64Ty()));
    return b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), at), b_.getInt64Ty());
}

// The first subgroup that comes to a factor packs it, for all.
Value* MatrixEmitter::PackedOnce(uint32_t number) {
    if (b_.GetInsertBlock() != taken_block_)
        taken_.clear();
    taken_block_ = b_.GetInsertBlock();
    if (const auto found = taken_.find(number); found != taken_.end())
        return found->second;
    const MatrixFactors::Factor& factor = factors_.factors[number];
    Value* place = OfSubgroup(factor.places);
    Value* slot =
        b_.CreateGEP(b_.getInt8Ty(), packed_, b_.CreateMul(place, b_.getInt64(kTileFactorBytes)));
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
    llvm::Function* function =
        TilePackFunction(*entry_.getModule(), *tiles_, factor.is_b, factor.columns);
    Value* from = b_.CreateGEP(b_.getInt8Ty(), shared_, OfSubgroup(factor.offsets));
    b_.CreateCall(function, {slot, from, b_.getInt64(factor.stride)});
    commands_.Issue(hal::MatrixCommand::kLoadFactor, FormatOf(*tiles_));
    if (end) {
        b_.CreateBr(end);
        b_.SetInsertPoint(end);
        taken_block_ = end;
    }
    taken_[number] = slot;
    return slot;
}

// The same elements in vectors of another width.
MatrixEmitter::Vectors MatrixEmitter::Regroup(llvm::ArrayRef<Value*> vectors, unsigned width) {
    Vectors level(vectors.begin(), vectors.end());
    for (unsigned given = Width(level[0]); given < width; given *= 2) {
        llvm::SmallVector<int, 64> all;
        for (unsigned i = 0; i < 2 * given; ++i)
            all.push_back(static_cast<int>(i));
        for (size_t i = 0; i < level.size(); i += 2)
            level[i / 2] = b_.CreateShuffleVector(level[i], level[i + 1], all);
        level.resize(level.size() / 2);
    }
    const unsigned given = Width(level[0]);
    if (given == width)
        return level;
    Vectors parts;
    for (Value* vector : level) {
        for (unsigned first = 0; first < given; first += width) {
            llvm::SmallVector<int, 64> some;
            for (unsigned i = 0; i < width; ++i)
                some.push_back(static_cast<int>(first + i));
            parts.push_back(b_.CreateShuffleVector(vector, some));
        }
    }
    return parts;
}

MatrixEmitter::Made* MatrixEmitter::Find(llvm::ArrayRef<Value*> from, uint64_t how) {
    if (b_.GetInsertBlock() != block_) {
        block_ = b_.GetInsertBlock();
        made_.clear();
    }
    for (Made& made : made_) {
        if (made.how == how && from.equals(made.from))
            return &made;
    }
    return nullptr;
}

MatrixEmitter::Made& MatrixEmitter::Add(llvm::ArrayRef<Value*> from, uint64_t how) {
    made_.push_back({.from = Vectors(from.begin(), from.end()), .how = how});
    return made_.back();
}

Value* MatrixEmitter::NewSlot(uint64_t bytes) {
    llvm::IRBuilder<> at(&entry_, entry_.begin());
    llvm::AllocaInst* slot = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), bytes));
    slot->setAlignment(kSlotAlign);
    return slot;
}

void MatrixEmitter::Store(llvm::ArrayRef<Value*> matrix, Value* slot) {
    uint64_t at = 0;
    for (Value* vector : matrix) {
        Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), slot, at);
        b_.CreateAlignedStore(vector, address, llvm::commonAlignment(kSlotAlign, at));
        at += vector->getType()->getPrimitiveSizeInBits() / 8;
    }
}

MatrixEmitter::Vectors MatrixEmitter::Transpose(llvm::ArrayRef<Value*> matrix) {
    if (const Made* made = Find(matrix, kTransposed))
        return made->transposed;
    Vectors rows = Regroup(matrix, kMatrixSize);
    auto shuffled = [&](Value* first, Value* second, auto&& pick) {
        llvm::SmallVector<int, 16> picks;
        for (uint32_t i = 0; i < kMatrixSize; ++i)
            picks.push_back(static_cast<int>(pick(i)));
        return b_.CreateShuffleVector(first, second, picks);
    };
    // The blocks off the diagonal change places.
    constexpr uint32_t kHalf = kMatrixSize / 2;
    for (uint32_t i = 0; i < kHalf; ++i) {
        Value* above = rows[i];
        Value* below = rows[i + kHalf];
        auto left = [](uint32_t k) { return k < kHalf ? k : k + kHalf; };
        auto right = [](uint32_t k) { return k < kHalf ? k + kHalf : k + 2 * kHalf; };
        rows[i] = shuffled(above, below, left);
        rows[i + kHalf] = shuffled(above, below, right);
    }
    // Within blocks, of 128 bits for f16: rows of the upper and of the lower half alternate, which
    // after three times is the transpose, and one instruction each time.
    for (uint32_t round = kHalf; round != 1; round /= 2) {
        Vectors next(kMatrixSize);
        for (uint32_t i = 0; i < kMatrixSize; ++i) {
            const uint32_t block = i / kHalf * kHalf;
            const uint32_t part = i % 2 * (kHalf / 2);
            const uint32_t from = block + i % kHalf / 2;
            next[i] = shuffled(rows[from], rows[from + kHalf / 2], [&](uint32_t k) {
                return k / kHalf * kHalf + part + k % kHalf / 2 + k % 2 * kMatrixSize;
            });
        }
        rows = std::move(next);
    }
    Made& made = Add(matrix, kTransposed);
    made.transposed = Regroup(rows, Width(matrix[0]));
    return made.transposed;
}

// The elements of A or B as f32, or as i16.
MatrixEmitter::Vectors MatrixEmitter::Factors(llvm::ArrayRef<Value*> matrix,
                                              uint64_t flags,
                                              bool is_signed) {
    Vectors factors;
    for (Value* vector : matrix) {
        llvm::Type* type = vector->getType();
        auto with = [&](llvm::Type* scalar) {
            return llvm::FixedVectorType::get(scalar, Width(vector));
        };
        if (type->getScalarSizeInBits() == 8) {
            vector = b_.CreateIntCast(vector, with(b_.getInt16Ty()), is_signed);
        } else if (flags & ir::kMatrixBFloat16) {
            vector = b_.CreateShl(b_.CreateZExt(vector, with(b_.getInt32Ty())), 16);
            vector = b_.CreateBitCast(vector, with(b_.getFloatTy()));
        } else {
            vector = FloatFromHalf(b_, b_.CreateBitCast(vector, with(b_.getHalfTy())));
        }
        factors.push_back(vector);
    }
    return factors;
}

// Of rows 0 and 1, then of rows 2 and 3, ...: the elements of a column beside each other.
MatrixEmitter::Vectors MatrixEmitter::AlternateRows(llvm::ArrayRef<Value*> matrix) {
    const Vectors rows = Regroup(matrix, kMatrixSize);
    Vectors pairs;
    for (uint32_t i = 0; i < kMatrixSize; i += 2)
        pairs.push_back(b_.CreateShuffleVector(rows[i], rows[i + 1], Alternating(kMatrixSize)));
    return pairs;
}

// Where a factor lies as the function takes it; `keep` stays.
Value* MatrixEmitter::Packed(llvm::ArrayRef<Value*> matrix,
                             TileFactors kind,
                             uint64_t flags,
                             bool is_b,
                             const Value* keep) {
    const bool is_signed = (flags & (is_b ? ir::kMatrixSignedB : ir::kMatrixSignedA)) != 0;
    const bool tiles = UsesTiles(kind, flags);
    const uint64_t how = (is_b ? kPackedB : kPackedA) | (is_signed ? kSigned : 0) |
                         (flags & ir::kMatrixBFloat16 ? kBFloat : 0) | (tiles ? kTiles : 0);
    if (const Made* made = Find(matrix, how))
        return made->slot;
    Vectors factors;
    if (!tiles) {
        factors = Factors(matrix, flags, is_signed);
        if (is_b && factors[0]->getType()->isIntOrIntVectorTy())
            factors = AlternateRows(factors);
    }
    if (slots_.size() > next_slot_ && slots_[next_slot_] == keep)
        next_slot_ = (next_slot_ + 1) % kSlots;
    const size_t turn = next_slot_;
    next_slot_ = (turn + 1) % kSlots;
    if (turn == slots_.size())
        slots_.push_back(NewSlot(kFactorBytes));
    Value* slot = slots_[turn];
    if (std::any_of(waiting_.begin(), waiting_.end(),
                    [&](const Product& product) { return product.a == slot || product.b == slot; }))
        Flush();
    std::erase_if(made_, [&](const Made& made) { return made.slot == slot; });
    if (tiles) {
        if (!rows_)
            rows_ = NewSlot(ir::kMatrixElements * 2);
        Store(matrix, rows_);
        const uint64_t bytes = kMatrixSize * (kind == TileFactors::kBytes ? 1 : 2);
        b_.CreateCall(TilePackFunction(*entry_.getModule(), kind, is_b, false),
                      {slot, rows_, b_.getInt64(bytes)});
    } else {
        Store(factors, slot);
    }
    commands_.Issue(hal::MatrixCommand::kLoadFactor, FormatOf(kind));
    Add(matrix, how).slot = slot;
    return slot;
}

std::array<bool, 2> MatrixEmitter::InMemory(const ir::Instruction& inst, bool masked) const {
    const auto found = factors_.products.find(inst.results[0].index);
    if (masked || !segment_ || found == factors_.products.end())
        return {};
    return {found->second[0] != MatrixFactors::kNone, found->second[1] != MatrixFactors::kNone};
}

MatrixEmitter::Vectors MatrixEmitter::MulAdd(const ir::Instruction& inst,
                                             llvm::ArrayRef<Value*> operands,
                                             Value* subgroup,
                                             bool masked) {
    subgroup_ = subgroup;
    const uint64_t flags = inst.imm;
    const TileFactors kind = KindOf(kernel_, inst);
    const size_t count = operands.size() / 3;
    const llvm::ArrayRef<Value*> sums = operands.drop_front(2 * count);
    llvm::Type* type = sums[0]->getType();
    const bool saturates = (flags & ir::kMatrixSaturating) != 0;
    if (flags != waiting_flags_)
        Flush();
    const std::array<bool, 2> in_memory = InMemory(inst, masked);
    auto factor = [&](size_t i, const Value* keep) {
        return in_memory[i] ? PackedOnce(factors_.products.at(inst.results[0].index)[i])
                            : Packed(operands.slice(i * count, count), kind, flags, i == 1, keep);
    };
    Product product;
    product.a = factor(0, nullptr);
    product.b = factor(1, product.a);
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(sums[0]);
    const auto placed = places_.products.find(inst.results[0].index);
    if (load && !masked && placed != places_.products.end()) {
        product.place = placed->second;
        product.c = const_cast<Value*>(load->getPointerOperand());
        if (!UsesTiles(kind, flags)) {
            EmitProduct(product, kind, flags);
            return {};
        }
        if (waiting_.size() == kMaxWaiting)
            Flush();
        waiting_.push_back(product);
        waiting_flags_ = flags;
        return {};
    }
    if (!sum_slot_)
        sum_slot_ = NewSlot(kSumBytes);
    product.c = sum_slot_;
    if (saturates)
        Store(Vectors(count, llvm::Constant::getNullValue(type)), sum_slot_);
    else
        Store(sums, sum_slot_);
    EmitProduct(product, kind, flags);
    Vectors results;
    uint64_t at = 0;
    for (Value* sum : sums) {
        Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), sum_slot_, at);
        Value* result = b_.CreateAlignedLoad(type, address, llvm::commonAlignment(kSlotAlign, at));
        results.push_back(saturates ? AddSaturating(sum, result, flags) : result);
        at += type->getPrimitiveSizeInBits() / 8;
    }
    return results;
}

// The unit is set up for one kind of factors a kernel.
bool MatrixEmitter::UsesTiles(TileFactors kind, uint64_t flags) {
    if (!kernel::UsesTiles(*entry_.getModule(), flags))
        return false;
    if (!tiles_)
        tiles_ = kind;
    return *tiles_ == kind;
}

void MatrixEmitter::EmitProduct(const Product& product, TileFactors kind, uint64_t flags) {
    llvm::Module& module = *entry_.getModule();
    const bool integers = kind == TileFactors::kBytes;
    llvm::Function* function = UsesTiles(kind, flags)
                                   ? TileMulAddFunction(module, *tiles_, flags, 1, 1)
                                   : MatrixMulAddFunction(module, integers, vector_bits_);
    b_.CreateCall(function, {product.c, product.a, product.b});
    Count(FormatOf(kind), 1, 1);
}

// Sums that gain a product in each of the steps.
void MatrixEmitter::Count(hal::MatrixFormat format, uint32_t sums, uint32_t steps) {
    commands_.Issue(hal::MatrixCommand::kLoadSum, format, sums);
    commands_.Issue(hal::MatrixCommand::kMultiplyAdd, format, sums * steps);
    commands_.Issue(hal::MatrixCommand::kStoreSum, format, sums);
}

bool MatrixEmitter::Before(ir::InstId id, const ir::Instruction& inst, bool masked) {
    const bool placed = places_.accesses.contains(id.index) && !masked;
    const bool looks = inst.op == ir::Op::kLoadLocal || inst.op == ir::Op::kStoreLocal;
    if ((looks && !placed) || inst.op == ir::Op::kBarrier ||
        ir::HasProperty(inst.op, ir::kRegions | ir::kTerminator)) {
        Flush();
    }
    if (!masked && segment_ && factors_.unused.contains(id.index))
        return false;
    return !placed || inst.op == ir::Op::kLoadLocal;
}

void MatrixEmitter::Flush() {
    std::vector<Sum> sums;
    for (const Product& product : std::exchange(waiting_, {})) {
        auto same = [&](const Sum& sum) { return sum.place == product.place; };
        auto found = std::find_if(sums.begin(), sums.end(), same);
        if (found == sums.end())
            found =
                sums.insert(sums.end(), Sum{.place = product.place, .c = product.c, .steps = {}});
        found->steps.emplace_back(product.a, product.b);
    }
    EmitTiles(sums);
}

// Two by two where sums share their factors, which are then loaded half as often; products of a sum
// stay in their order.
void MatrixEmitter::EmitTiles(std::vector<Sum>& sums) {
    auto shares = [](const Steps& steps, const Steps& a, const Steps& b) {
        if (steps.size() != a.size() || steps.size() != b.size())
            return false;
        for (size_t i = 0; i < steps.size(); ++i) {
            if (steps[i].first != a[i].first || steps[i].second != b[i].second)
                return false;
        }
        return true;
    };
    auto find = [&](const Steps& of_a, const Steps& of_b) -> Sum* {
        for (Sum& sum : sums) {
            if (!sum.done && shares(sum.steps, of_a, of_b))
                return &sum;
        }
        return nullptr;
    };
    llvm::Module& module = *entry_.getModule();
    for (Sum& first : sums) {
        if (std::exchange(first.done, true))
            continue;
        std::vector<Sum*> group = {&first};
        for (Sum& right : sums) {
            if (right.done || !shares(right.steps, first.steps, right.steps))
                continue;
            for (Sum& below : sums) {
                if (below.done || &below == &right ||
                    !shares(below.steps, below.steps, first.steps))
                    continue;
                Sum* last = find(below.steps, right.steps);
                if (!last || last == &right || last == &below)
                    continue;
                group = {&first, &right, &below, last};
                break;
            }
            if (group.size() > 1)
                break;
        }
        const unsigned side = group.size() > 1 ? 2 : 1;
        std::vector<Value*> arguments;
        for (Sum* sum : group) {
            sum->done = true;
            arguments.push_back(sum->c);
        }
        for (size_t step = 0; step < first.steps.size(); ++step) {
            for (unsigned i = 0; i < side; ++i)
                arguments.push_back(group[i * side]->steps[step].first);
            for (unsigned i = 0; i < side; ++i)
                arguments.push_back(group[i]->steps[step].second);
        }
        b_.CreateCall(TileMulAddFunction(module, *tiles_, waiting_flags_, side,
                                         static_cast<unsigned>(first.steps.size())),
                      arguments);
        Count(FormatOf(*tiles_), side * side, static_cast<unsigned>(first.steps.size()));
    }
}

void MatrixEmitter::Finish(llvm::Function& kernel) {
    commands_.Finish(kernel);
    if (!tiles_)
        return;
    recorder_.MatrixTiles();
    llvm::IRBuilder<> at(&entry_, entry_.begin());
    EmitTileSetup(at, *tiles_);
    EmitTileRelease(kernel);
}

// What the products add up to is far from wrapping.
Value* MatrixEmitter::AddSaturating(Value* sum, Value* products, uint64_t flags) {
    if (flags & ir::kMatrixSignedC)
        return b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, sum, products);
    Value* up = b_.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, sum, products);
    Value* down = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, sum, b_.CreateNeg(products));
    Value* zero = llvm::Constant::getNullValue(products->getType());
    return b_.CreateSelect(b_.CreateICmpSLT(products, zero), down, up);
}

}  // namespace fornax::kernel
