#include "compiler/kernel/codegen/matrix_tiles.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <string>

#include "compiler/kernel/codegen/matrix_pack.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/ir/matrix.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

namespace {

using ir::kMatrixSize;
using llvm::Value;

constexpr uint8_t kRowBytes = 64;

// The eight tile registers (Intel SDM volume 1, 18.3): four accumulators, two of A, two of
// B.
constexpr uint8_t kAccumulatorTiles = 0;
constexpr uint8_t kTilesOfA = 4;
constexpr uint8_t kTilesOfB = 6;
constexpr uint8_t kNumTiles = 8;
static_assert(kTilesOfA - kAccumulatorTiles == hal::kMatrixAccumulatorRegisters);

struct TileShape {
    uint8_t rows;
    uint8_t row_bytes;
};

TileShape ShapeOf(uint8_t tile, MatrixFormat format) {
    const uint8_t in_word = format == MatrixFormat::kF16    ? 1
                            : format == MatrixFormat::kBF16 ? 2
                                                            : 4;
    if (tile >= kTilesOfB) {
        return {static_cast<uint8_t>(kMatrixSize / in_word), kRowBytes};
    }
    if (tile >= kTilesOfA) {
        return {kMatrixSize, static_cast<uint8_t>(kRowBytes / in_word)};
    }
    return {kMatrixSize, kRowBytes};
}

llvm::Intrinsic::ID MmaIntrinsicOf(MatrixFormat format, uint64_t flags) {
    if (format != MatrixFormat::kInt8) {
        return llvm::Intrinsic::x86_tdpbf16ps;
    }
    const bool a = (flags & ir::kMatrixSignedA) != 0;
    const bool b = (flags & ir::kMatrixSignedB) != 0;
    if (a) {
        return b ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbsud;
    }
    return b ? llvm::Intrinsic::x86_tdpbusd : llvm::Intrinsic::x86_tdpbuud;
}

}  // namespace

bool UsesTiles(const llvm::Module& module, MatrixFormat format, uint64_t flags) {
    return format != MatrixFormat::kF32 && FlagOf(module, kTilesFlag) != 0 &&
           !(flags & ir::kMatrixKeepsDenormals);
}

OperandForm TileForm(MatrixFormat format) {
    switch (format) {
        case MatrixFormat::kF16:
            break;
        case MatrixFormat::kBF16:
            return OperandForm::kPairsOfBFloats;
        case MatrixFormat::kInt8:
            return OperandForm::kQuadsOfBytes;
        case MatrixFormat::kF32:
            break;  // UsesTiles
    }
    return OperandForm::kSplitHalves;
}

llvm::Function* TileMulAddFunction(llvm::Module& module,
                                   MatrixFormat format,
                                   uint64_t flags,
                                   unsigned side,
                                   unsigned steps) {
    std::string name = "matrix_tiles_";
    if (format == MatrixFormat::kInt8) {
        name += flags & ir::kMatrixSignedA ? "s8_" : "u8_";
        name += flags & ir::kMatrixSignedB ? "s8" : "u8";
    } else {
        name += format == MatrixFormat::kF16 ? "f16" : "bf16";
    }
    name += "_" + std::to_string(side) + "_" + std::to_string(steps);
    if (llvm::Function* made = module.getFunction(name)) {
        return made;
    }
    llvm::IRBuilder<> b(module.getContext());
    const unsigned accumulators = side * side;
    const std::vector<llvm::Type*> arguments(accumulators + 2 * side * steps, b.getPtrTy());
    auto* type = llvm::FunctionType::get(b.getVoidTy(), arguments, false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
    function->setDoesNotThrow();
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
    auto load = [&](unsigned tile, Value* from) {
        const auto number = static_cast<uint8_t>(tile);
        b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {},
                          {b.getInt8(number), from, b.getInt64(ShapeOf(number, format).row_bytes)});
    };
    auto tile = [&](unsigned number) { return b.getInt8(static_cast<uint8_t>(number)); };
    const llvm::Intrinsic::ID mma = MmaIntrinsicOf(format, flags);
    for (unsigned i = 0; i < accumulators; ++i) {
        load(kAccumulatorTiles + i, function->getArg(i));
    }
    auto multiply = [&] {
        for (unsigned i = 0; i < accumulators; ++i) {
            b.CreateIntrinsic(mma, {},
                              {tile(kAccumulatorTiles + i), tile(kTilesOfA + i / side),
                               tile(kTilesOfB + i % side)});
        }
    };
    for (unsigned step = 0; step < steps; ++step) {
        auto operand = [&](unsigned i) {
            return function->getArg(accumulators + step * 2 * side + i);
        };
        for (unsigned i = 0; i < 2 * side; ++i) {
            load(i < side ? kTilesOfA + i : kTilesOfB + i - side, operand(i));
        }
        multiply();
        if (format != MatrixFormat::kF16) {
            continue;
        }
        Value* any = nullptr;
        Value* second[2];
        for (unsigned i = 0; i < side; ++i) {
            second[i] = b.CreateAlignedLoad(
                b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt8Ty(), operand(i), kSplitSecond),
                llvm::Align(8));
            any = any ? b.CreateOr(any, second[i]) : second[i];
        }
        auto* other = llvm::BasicBlock::Create(module.getContext(), "other", function);
        auto* same = llvm::BasicBlock::Create(module.getContext(), "same", function);
        b.CreateCondBr(b.CreateICmpEQ(any, b.getInt64(0)), same, other);
        b.SetInsertPoint(other);
        for (unsigned i = 0; i < side; ++i) {
            load(kTilesOfA + i, b.CreateGEP(b.getInt8Ty(), operand(i), second[i]));
        }
        b.CreateBr(same);
        b.SetInsertPoint(same);
        for (unsigned i = 0; i < side; ++i) {
            load(kTilesOfB + i,
                 b.CreateConstGEP1_64(b.getInt8Ty(), operand(side + i), kSplitBytes));
        }
        multiply();
    }
    for (unsigned i = 0; i < accumulators; ++i) {
        b.CreateIntrinsic(
            llvm::Intrinsic::x86_tilestored64, {},
            {tile(kAccumulatorTiles + i), function->getArg(i), b.getInt64(kRowBytes)});
    }
    b.CreateRetVoid();
    return function;
}

void EmitTileSetup(llvm::IRBuilder<>& builder, MatrixFormat format) {
    // Palette 1; bytes a row from byte 16 on, rows from byte 48 on.
    std::array<uint8_t, 64> bytes = {1};
    for (uint8_t i = 0; i < kNumTiles; ++i) {
        bytes[16 + 2 * i] = ShapeOf(i, format).row_bytes;
        bytes[48 + i] = ShapeOf(i, format).rows;
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
        if (!llvm::isa_and_nonnull<llvm::ReturnInst>(block.getTerminator())) {
            continue;
        }
        llvm::IRBuilder<> builder(block.getTerminator());
        builder.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
    }
}

}  // namespace fornax::kernel
