#include "compiler/kernel/codegen/matrix_tiles.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <string>

#include "compiler/kernel/codegen/pure_ops_internal.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/ir/matrix.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

namespace {

using ir::kMatrixSize;
using llvm::Value;
using Vectors = std::vector<Value*>;

constexpr uint8_t kRowBytes = 64;

// The eight tile registers (Intel SDM volume 1, 18.3): four sums, two of A, two of B.
constexpr uint8_t kSumTiles = 0;
constexpr uint8_t kTilesOfA = 4;
constexpr uint8_t kTilesOfB = 6;
constexpr uint8_t kNumTiles = 8;
static_assert(kTilesOfA - kSumTiles == hal::kMatrixSumRegisters);

struct TileShape {
    uint8_t rows;
    uint8_t row_bytes;
};

TileShape ShapeOf(uint8_t tile, TileFactors factors) {
    const uint8_t in_word = factors == TileFactors::kHalf     ? 1
                            : factors == TileFactors::kBFloat ? 2
                                                              : 4;
    if (tile >= kTilesOfB)
        return {static_cast<uint8_t>(kMatrixSize / in_word), kRowBytes};
    if (tile >= kTilesOfA)
        return {kMatrixSize, static_cast<uint8_t>(kRowBytes / in_word)};
    return {kMatrixSize, kRowBytes};
}

Value* WithElement(llvm::IRBuilder<>& b, Value* vector, unsigned bits) {
    const auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
    const unsigned all = type->getNumElements() * type->getScalarSizeInBits();
    return b.CreateBitCast(vector, llvm::FixedVectorType::get(b.getIntNTy(bits), all / bits));
}

// Elements of `per_word` rows in one word each, the first row's in the lowest bits.
Vectors AlternateInWords(llvm::IRBuilder<>& b, llvm::ArrayRef<Value*> rows, unsigned per_word) {
    auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), kMatrixSize);
    Vectors packed;
    for (size_t first = 0; first < rows.size(); first += per_word) {
        Value* word = nullptr;
        for (unsigned i = 0; i < per_word; ++i) {
            Value* part = WithElement(b, rows[first + i], 32 / per_word);
            part = b.CreateShl(b.CreateZExt(part, words), uint64_t{i} * 32 / per_word);
            word = word ? b.CreateOr(word, part) : part;
        }
        packed.push_back(word);
    }
    return packed;
}

Vectors PackHalf(llvm::IRBuilder<>& b, llvm::ArrayRef<Value*> rows, bool is_b) {
    auto* halves = llvm::FixedVectorType::get(b.getHalfTy(), kMatrixSize);
    auto* floats = llvm::FixedVectorType::get(b.getFloatTy(), kMatrixSize);
    auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), kMatrixSize);
    auto constant = [&](uint64_t value) { return llvm::ConstantInt::get(words, value); };
    constexpr uint32_t kUpper = 0xffff0000;
    constexpr uint32_t kInfinity = 0x7f800000;
    Vectors first;
    Vectors second;
    for (Value* row : rows) {
        Value* value = FloatFromHalf(b, b.CreateBitCast(row, halves));
        Value* bits = b.CreateBitCast(value, words);
        Value* high = b.CreateAnd(bits, constant(kUpper));
        // At most three bits are left, and smaller numbers than f16's are none.
        Value* rest = b.CreateFSub(value, b.CreateBitCast(high, floats));
        Value* exponent = b.CreateAnd(bits, constant(kInfinity));
        Value* finite = b.CreateICmpNE(exponent, constant(kInfinity));
        Value* low = b.CreateSelect(finite, b.CreateBitCast(rest, words), constant(0));
        Value* finite_high = b.CreateSelect(finite, high, constant(0));
        if (is_b) {
            first.push_back(b.CreateOr(b.CreateLShr(high, 16), low));
            second.push_back(b.CreateOr(b.CreateLShr(finite_high, 16), low));
        } else {
            first.push_back(b.CreateOr(b.CreateLShr(high, 16), finite_high));
            second.push_back(b.CreateOr(b.CreateLShr(low, 16), low));
        }
    }
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

llvm::Intrinsic::ID ProductOf(TileFactors factors, uint64_t flags) {
    if (factors != TileFactors::kBytes)
        return llvm::Intrinsic::x86_tdpbf16ps;
    const bool a = (flags & ir::kMatrixSignedA) != 0;
    const bool b = (flags & ir::kMatrixSignedB) != 0;
    if (a)
        return b ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbsud;
    return b ? llvm::Intrinsic::x86_tdpbusd : llvm::Intrinsic::x86_tdpbuud;
}

}  // namespace

bool UsesTiles(const llvm::Module& module, uint64_t flags) {
    return FlagOf(module, kTilesFlag) != 0 && !(flags & ir::kMatrixKeepsDenormals);
}

std::vector<Value*> PackTileFactor(llvm::IRBuilder<>& builder,
                                   llvm::ArrayRef<Value*> rows,
                                   TileFactors factors,
                                   bool is_b) {
    if (factors == TileFactors::kHalf)
        return PackHalf(builder, rows, is_b);
    if (is_b)
        return AlternateInWords(builder, rows, factors == TileFactors::kBFloat ? 2 : 4);
    return {rows.begin(), rows.end()};
}

llvm::Function* TileMulAddFunction(llvm::Module& module,
                                   TileFactors factors,
                                   uint64_t flags,
                                   unsigned side,
                                   unsigned steps) {
    std::string name = "matrix_tiles_";
    if (factors == TileFactors::kBytes) {
        name += flags & ir::kMatrixSignedA ? "s8_" : "u8_";
        name += flags & ir::kMatrixSignedB ? "s8" : "u8";
    } else {
        name += factors == TileFactors::kHalf ? "f16" : "bf16";
    }
    name += "_" + std::to_string(side) + "_" + std::to_string(steps);
    if (llvm::Function* made = module.getFunction(name))
        return made;
    llvm::IRBuilder<> b(module.getContext());
    const unsigned sums = side * side;
    const std::vector<llvm::Type*> arguments(sums + 2 * side * steps, b.getPtrTy());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), arguments, false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
    function->setDoesNotThrow();
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
    auto load = [&](unsigned tile, Value* from) {
        const auto number = static_cast<uint8_t>(tile);
        b.CreateIntrinsic(
            llvm::Intrinsic::x86_tileloadd64, {},
            {b.getInt8(number), from, b.getInt64(ShapeOf(number, factors).row_bytes)});
    };
    auto tile = [&](unsigned number) { return b.getInt8(static_cast<uint8_t>(number)); };
    const llvm::Intrinsic::ID product = ProductOf(factors, flags);
    for (unsigned i = 0; i < sums; ++i)
        load(kSumTiles + i, function->getArg(i));
    for (unsigned step = 0; step < steps; ++step) {
        for (uint64_t part = 0; part < (factors == TileFactors::kHalf ? 2 : 1); ++part) {
            for (unsigned i = 0; i < 2 * side; ++i) {
                Value* factor = function->getArg(sums + step * 2 * side + i);
                factor =
                    b.CreateConstGEP1_64(b.getInt8Ty(), factor, part * kMatrixSize * kRowBytes);
                load(i < side ? kTilesOfA + i : kTilesOfB + i - side, factor);
            }
            for (unsigned i = 0; i < sums; ++i) {
                b.CreateIntrinsic(
                    product, {},
                    {tile(kSumTiles + i), tile(kTilesOfA + i / side), tile(kTilesOfB + i % side)});
            }
        }
    }
    for (unsigned i = 0; i < sums; ++i) {
        b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                          {tile(kSumTiles + i), function->getArg(i), b.getInt64(kRowBytes)});
    }
    b.CreateRetVoid();
    return function;
}

void EmitTileSetup(llvm::IRBuilder<>& builder, TileFactors factors) {
    // Palette 1; bytes a row from byte 16 on, rows from byte 48 on.
    std::array<uint8_t, 64> bytes = {1};
    for (uint8_t i = 0; i < kNumTiles; ++i) {
        bytes[16 + 2 * i] = ShapeOf(i, factors).row_bytes;
        bytes[48 + i] = ShapeOf(i, factors).rows;
    }
    llvm::Module& module = *builder.GetInsertBlock()->getModule();
    llvm::Constant* data = llvm::ConstantDataArray::get(module.getContext(), bytes);
    auto* config =
        new llvm::GlobalVariable(module, data->getType(), /*isConstant=*/true,
                                 llvm::GlobalValue::PrivateLinkage, data, "tile_configuration");
    config->setAlignment(llvm::Align(64));
    builder.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {config});
}

void EmitTileRelease(llvm::Function& function) {
    for (llvm::BasicBlock& block : function) {
        if (!llvm::isa_and_nonnull<llvm::ReturnInst>(block.getTerminator()))
            continue;
        llvm::IRBuilder<> builder(block.getTerminator());
        builder.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
    }
}

}  // namespace fornax::kernel
