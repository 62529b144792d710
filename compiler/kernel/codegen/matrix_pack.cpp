#include "compiler/kernel/codegen/matrix_pack.h"

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <string>
#include <vector>

#include "compiler/kernel/codegen/pure_ops_internal.h"
#include "compiler/kernel/ir/matrix.h"

namespace fornax::kernel {

namespace {

using ir::kMatrixSize;
using llvm::Value;
using Vectors = std::vector<Value*>;

constexpr uint64_t kRowBytes = 64;
static_assert(kSplitSecond + 8 <= OperandBytes(OperandForm::kSplitHalves));

bool OfBytes(OperandForm form) {
    return form == OperandForm::kQuadsOfBytes || form == OperandForm::kShortsOfSigned ||
           form == OperandForm::kShortsOfUnsigned;
}

Value* WithElement(llvm::IRBuilder<>& b, Value* vector, unsigned bits) {
    const auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
    const unsigned all = type->getNumElements() * type->getScalarSizeInBits();
    return b.CreateBitCast(vector, llvm::FixedVectorType::get(b.getIntNTy(bits), all / bits));
}

// Writes an operand in the unit's form: of rows, or columns, of 16 elements at `from` + i *
// `stride`.
class Packer {
  public:
    Packer(llvm::Function& function, OperandForm form, bool columns)
        : b_(llvm::BasicBlock::Create(function.getContext(), "entry", &function)),
          function_(function),
          form_(form),
          columns_(columns) {}

    void Emit(bool is_b) {
        switch (form_) {
            case OperandForm::kSplitHalves:
                if (is_b) {
                    PackHalfB(Rows());
                } else {
                    PackHalfA();
                }
                break;
            case OperandForm::kFloatsOfHalves:
            case OperandForm::kFloatsOfBFloats:
                StoreAll(Floats(Rows()));
                break;
            case OperandForm::kShortsOfSigned:
            case OperandForm::kShortsOfUnsigned:
                StoreAll(is_b ? AlternateInWords(Shorts(Rows())) : Shorts(Rows()));
                break;
            case OperandForm::kPairsOfBFloats:
                if (is_b && columns_) {
                    StoreAll(WordsOfColumns());
                } else {
                    StoreAll(is_b ? AlternateInWords(Rows()) : Rows());
                }
                break;
            case OperandForm::kFloats:
                break;  // MatrixUnit::LoadOperand stores them
            case OperandForm::kQuadsOfBytes:
                StoreAll(is_b ? AlternateInWords(Rows()) : Rows());
                break;
        }
        b_.CreateRetVoid();
    }

  private:
    Value* slot() { return function_.getArg(0); }
    llvm::FixedVectorType* Words() {
        return llvm::FixedVectorType::get(b_.getInt32Ty(), kMatrixSize);
    }
    Value* Word(uint64_t value) { return llvm::ConstantInt::get(Words(), value); }

    Value* LoadLine(unsigned i) {
        const unsigned bits = OfBytes(form_) ? 8 : 16;
        Value* at = b_.CreateMul(function_.getArg(2), b_.getInt64(i));
        return b_.CreateAlignedLoad(llvm::FixedVectorType::get(b_.getIntNTy(bits), kMatrixSize),
                                    b_.CreateGEP(b_.getInt8Ty(), function_.getArg(1), at),
                                    llvm::Align(bits / 8));
    }
    void StoreAll(const Vectors& vectors, uint64_t at = 0) {
        for (Value* vector : vectors) {
            Value* address = b_.CreateConstGEP1_64(b_.getInt8Ty(), slot(), at);
            b_.CreateAlignedStore(vector, address, llvm::commonAlignment(llvm::Align(64), at));
            at += vector->getType()->getPrimitiveSizeInBits() / 8;
        }
    }
    Vectors Rows() {
        if (columns_) {
            return RowsOfColumns();
        }
        Vectors rows;
        for (unsigned i = 0; i < kMatrixSize; ++i) {
            rows.push_back(LoadLine(i));
        }
        return rows;
    }

    // Interleaves, in 512 bits, elements of the lower or upper half of each 128 bits of two
    // vectors, alternating.
    Value* Unpack(Value* first, Value* second, unsigned bits, bool upper) {
        const int each = static_cast<int>(128 / bits);
        llvm::SmallVector<int, 32> picks;
        for (int part = 0; part < 4; ++part) {
            for (int i = 0; i < each; ++i) {
                picks.push_back(part * each + (upper ? each / 2 : 0) + i / 2 + i % 2 * 4 * each);
            }
        }
        return b_.CreateShuffleVector(WithElement(b_, first, bits), WithElement(b_, second, bits),
                                      picks);
    }
    // Lines i and i + 8 as one vector, i from 0 to 7.
    Vectors PairsOfLines() {
        llvm::SmallVector<int, 32> all;
        for (int i = 0; i < 2 * static_cast<int>(kMatrixSize); ++i) {
            all.push_back(i);
        }
        Vectors pairs;
        for (unsigned i = 0; i < kMatrixSize / 2; ++i) {
            pairs.push_back(
                b_.CreateShuffleVector(LoadLine(i), LoadLine(i + kMatrixSize / 2), all));
        }
        return pairs;
    }
    // Pairs of lines to what each has in common, by three stages that stay in 128 bits.
    Vectors RowsOfColumns() {
        const Vectors lines = PairsOfLines();
        auto by_words = [&](unsigned i) {
            return Unpack(lines[i / 2 * 2], lines[i / 2 * 2 + 1], 16, i % 2 != 0);
        };
        Vectors first;
        for (unsigned i = 0; i < kMatrixSize / 2; ++i) {
            first.push_back(by_words(i));
        }
        Vectors rows(kMatrixSize);
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned from = i / 2;
            Value* above = Unpack(first[from], first[from + 2], 32, i % 2 != 0);
            Value* below = Unpack(first[from + 4], first[from + 6], 32, i % 2 != 0);
            for (unsigned k = 0; k < 2; ++k) {
                Value* both = WithElement(b_, Unpack(above, below, 64, k != 0), 16);
                // Pieces of 128 bits: lines 0 to 7, row r and r + 8, then lines 8 to 15.
                for (int half = 0; half < 2; ++half) {
                    llvm::SmallVector<int, 16> picks;
                    for (int n = 0; n < 16; ++n) {
                        picks.push_back(n / 8 * 16 + half * 8 + n % 8);
                    }
                    rows[2 * i + k + static_cast<unsigned>(half) * 8] =
                        b_.CreateShuffleVector(both, picks);
                }
            }
        }
        return rows;
    }
    // The same of words, each of which is two elements of a line: what AlternateInWords makes.
    Vectors WordsOfColumns() {
        const Vectors lines = PairsOfLines();
        Vectors first;
        for (unsigned i = 0; i < kMatrixSize / 2; ++i) {
            first.push_back(Unpack(lines[i / 2 * 2], lines[i / 2 * 2 + 1], 32, i % 2 != 0));
        }
        Vectors words(kMatrixSize / 2);
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned from = i / 2;
            Value* above = Unpack(first[from], first[from + 2], 64, i % 2 != 0);
            Value* below = Unpack(first[from + 4], first[from + 6], 64, i % 2 != 0);
            for (int half = 0; half < 2; ++half) {
                llvm::SmallVector<int, 16> picks;
                for (int n = 0; n < 16; ++n) {
                    picks.push_back(n / 8 * 8 + half * 4 + n % 4 + n / 4 % 2 * 16);
                }
                words[i + static_cast<unsigned>(half) * 4] = b_.CreateShuffleVector(
                    WithElement(b_, above, 32), WithElement(b_, below, 32), picks);
            }
        }
        return words;
    }

    // Elements of two or four rows in one word each, the first row's in the lowest bits.
    Vectors AlternateInWords(const Vectors& rows) {
        const unsigned bits = rows[0]->getType()->getScalarSizeInBits();
        const unsigned per_word = 32 / bits;
        Vectors packed;
        for (size_t first = 0; first < rows.size(); first += per_word) {
            Value* word = nullptr;
            for (unsigned i = 0; i < per_word; ++i) {
                Value* part = b_.CreateZExt(rows[first + i], Words());
                part = b_.CreateShl(part, uint64_t{i} * bits);
                word = word ? b_.CreateOr(word, part) : part;
            }
            packed.push_back(word);
        }
        return packed;
    }
    Vectors Shorts(Vectors rows) {
        auto* shorts = llvm::FixedVectorType::get(b_.getInt16Ty(), kMatrixSize);
        for (Value*& row : rows) {
            row = b_.CreateIntCast(row, shorts, form_ == OperandForm::kShortsOfSigned);
        }
        return rows;
    }
    Vectors Floats(Vectors rows) {
        auto* halves = llvm::FixedVectorType::get(b_.getHalfTy(), kMatrixSize);
        for (Value*& row : rows) {
            row = form_ == OperandForm::kFloatsOfHalves
                      ? FloatFromHalf(b_, b_.CreateBitCast(row, halves))
                      : b_.CreateShl(b_.CreateZExt(row, Words()), 16);
        }
        return rows;
    }

    struct Parts {
        Value* high = nullptr;
        Value* rest = nullptr;  // as f32
        Value* low = nullptr;   // the same, or 0 where the number is not finite
        Value* finite = nullptr;
    };
    Parts Split(Value* row) {
        auto* halves = llvm::FixedVectorType::get(b_.getHalfTy(), kMatrixSize);
        auto* floats = llvm::FixedVectorType::get(b_.getFloatTy(), kMatrixSize);
        Value* value = FloatFromHalf(b_, b_.CreateBitCast(row, halves));
        Parts parts;
        parts.high = b_.CreateAnd(b_.CreateBitCast(value, Words()), Word(0xffff0000));
        // At most three bits are left, and smaller numbers than f16's are none. Of infinities
        // nothing is left, which is NaN.
        parts.rest = b_.CreateFSub(value, b_.CreateBitCast(parts.high, floats));
        parts.finite = b_.CreateFCmpORD(parts.rest, parts.rest);
        parts.low = b_.CreateSelect(parts.finite, b_.CreateBitCast(parts.rest, Words()), Word(0));
        return parts;
    }
    // Each row is stored as soon as it is there, so that registers suffice.
    void StoreRow(Value* row, size_t number, uint64_t behind) {
        StoreAll({row}, behind + number * kRowBytes);
    }
    void PackHalfB(const Vectors& rows) {
        for (size_t i = 0; i < rows.size(); ++i) {
            const Parts parts = Split(rows[i]);
            Value* upper = b_.CreateSelect(parts.finite, b_.CreateLShr(parts.high, 16), Word(0));
            StoreRow(b_.CreateOr(parts.high, upper), i, 0);
            StoreRow(b_.CreateOr(parts.low, b_.CreateLShr(parts.low, 16)), i, kSplitBytes);
        }
    }
    void PackHalfA() {
        const Vectors rows = Rows();
        std::array<Value*, 4> sums = {};  // NaN stays
        for (size_t i = 0; i < rows.size(); ++i) {
            const Parts parts = Split(rows[i]);
            Value*& sum = sums[i % sums.size()];
            sum = sum ? b_.CreateFAdd(sum, parts.rest) : parts.rest;
            StoreRow(b_.CreateOr(parts.high, b_.CreateLShr(parts.low, 16)), i, 0);
        }
        Value* sum =
            b_.CreateFAdd(b_.CreateFAdd(sums[0], sums[1]), b_.CreateFAdd(sums[2], sums[3]));
        Value* finite = b_.CreateBitCast(b_.CreateFCmpORD(sum, sum), b_.getInt16Ty());
        Value* all = b_.CreateICmpEQ(finite, b_.getInt16(UINT16_MAX));
        Value* step = b_.CreateSelect(all, b_.getInt64(0), b_.getInt64(kSplitBytes));
        b_.CreateAlignedStore(step, b_.CreateConstGEP1_64(b_.getInt8Ty(), slot(), kSplitSecond),
                              llvm::Align(8));
        auto* more = llvm::BasicBlock::Create(b_.getContext(), "second", &function_);
        auto* end = llvm::BasicBlock::Create(b_.getContext(), "end", &function_);
        b_.CreateCondBr(all, end, more);
        b_.SetInsertPoint(more);
        const Vectors again = Rows();
        for (size_t i = 0; i < again.size(); ++i) {
            const Parts parts = Split(again[i]);
            Value* finite_high = b_.CreateSelect(parts.finite, parts.high, Word(0));
            StoreRow(b_.CreateOr(finite_high, b_.CreateLShr(parts.low, 16)), i, kSplitBytes);
        }
        b_.CreateBr(end);
        b_.SetInsertPoint(end);
    }

    llvm::IRBuilder<> b_;
    llvm::Function& function_;
    const OperandForm form_;
    const bool columns_;
};

}  // namespace

llvm::Function* MatrixPackFunction(llvm::Module& module,
                                   OperandForm form,
                                   bool is_b,
                                   bool columns) {
    std::string name = "matrix_pack_" + std::to_string(static_cast<unsigned>(form));
    name += is_b ? "_b" : "_a";
    name += columns ? "_columns" : "";
    if (llvm::Function* made = module.getFunction(name)) {
        return made;
    }
    auto* ptr = llvm::PointerType::getUnqual(module.getContext());
    auto* i64 = llvm::Type::getInt64Ty(module.getContext());
    auto* type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), {ptr, ptr, i64}, false);
    auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
    function->setDoesNotThrow();
    function->addFnAttr(llvm::Attribute::NoInline);
    function->addParamAttr(0, llvm::Attribute::NoAlias);
    function->addParamAttr(1, llvm::Attribute::NoAlias);
    Packer(*function, form, columns).Emit(is_b);
    return function;
}

}  // namespace fornax::kernel
