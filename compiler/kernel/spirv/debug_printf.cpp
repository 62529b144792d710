// NonSemantic.DebugPrintf: messages of shaders, written to the buffer that
// compiler/kernel/interface/debug_printf.h describes. Without one the instruction is ignored, as it
// may be.
#include "compiler/kernel/spirv/debug_printf.h"

#include <algorithm>

#include "compiler/kernel/interface/debug_printf.h"
#include "compiler/kernel/spirv/image_code.h"

namespace fornax::kernel::spirv {

using ir::Op;
using ir::ValueId;

namespace {

constexpr ir::Type kI32 = ir::Type::kI32;
constexpr ir::Type kI64 = ir::Type::kI64;
constexpr uint32_t kDebugPrintf = 1;  // the set's only instruction
// "Reasonable" messages; also bounds what an invocation stores.
constexpr size_t kMaxTextBytes = 1024;
constexpr size_t kMaxValues = 64;
constexpr size_t kWordsAStore = 4;

}  // namespace

bool PrintfCode::IsDebugPrintf(const Inst& inst) const {
    const Inst* import = module_.Find(inst[0]);
    return import && import->op == spv::Op::OpExtInstImport &&
           LiteralString(import->operands) == "NonSemantic.DebugPrintf" && inst[1] == kDebugPrintf;
}

// The words of one argument, widened, and the letters that say what they are.
Status PrintfCode::PrintfValue(const Inst& inst, uint32_t id, std::string& letters, Tuple& words) {
    FORNAX_ASSIGN_OR_RETURN(const Tuple tuple, values_.UseTuple(inst, id));
    FORNAX_ASSIGN_OR_RETURN(const Type* type, values_.ValueType(inst, id));
    const bool is_signed =
        type->kind == Type::Kind::kVector ? types_.Get(type->element).is_signed : type->is_signed;
    for (ValueId value : tuple) {
        ir::Type scalar = kernel_.type(value);
        if (scalar == ir::Type::kBool) {
            value = Emit(Op::kSelect, kI32, {value, Int(1), Int(0)});
            scalar = kI32;
        } else if (scalar == ir::Type::kF16) {
            value = Emit(Op::kFConvert, ir::Type::kF32, {value});
            scalar = ir::Type::kF32;
        } else if (ir::IsInteger(scalar) && ir::BitWidth(scalar) < 32) {
            value = ToI32(value, is_signed);
            scalar = kI32;
        }
        if (!ir::IsInteger(scalar) && !ir::IsFloat(scalar)) {
            return Invalid(inst, "prints what is no number");
        }
        const bool is_float = ir::IsFloat(scalar);
        if (ir::BitWidth(scalar) == 32) {
            letters += is_float ? 'f' : 'i';
            words.push_back(is_float ? Emit(Op::kBitcast, kI32, {value}) : value);
            continue;
        }
        letters += is_float ? 'd' : 'l';
        if (is_float) {
            value = Emit(Op::kBitcast, kI64, {value});
        }
        words.push_back(Emit(Op::kTrunc, kI32, {value}));
        words.push_back(
            Emit(Op::kTrunc, kI32, {Emit(Op::kLShr, kI64, {value, builder_.Const(kI64, 32)})}));
    }
    return OkStatus();
}

Status PrintfCode::DebugPrintf(const Inst& inst) {
    if (request_.options.printf_address == 0) {
        return OkStatus();
    }
    const Inst* format = inst.size() > 2 ? module_.Find(inst[2]) : nullptr;
    if (!format || format->op != spv::Op::OpString) {
        return Invalid(inst, "prints without a format string");
    }
    std::string text = LiteralString(format->operands);
    std::string letters;
    Tuple values;
    for (size_t i = 3; i < inst.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(PrintfValue(inst, inst[i], letters, values));
    }
    if (text.size() > kMaxTextBytes || letters.size() > kMaxValues) {
        return Unsupported(inst, "prints a format of " + std::to_string(text.size()) +
                                     " bytes and " + std::to_string(letters.size()) +
                                     " values; the limits are " + std::to_string(kMaxTextBytes) +
                                     " and " + std::to_string(kMaxValues));
    }
    text += '\0';
    text += letters;
    const auto text_bytes = static_cast<uint32_t>(text.size());
    text.resize((text.size() + 3) / 4 * 4);
    Tuple words = {Int(0), Int(text_bytes)};
    for (size_t at = 0; at < text.size(); at += 4) {
        uint32_t word = 0;
        for (size_t i = 0; i < 4; ++i) {
            word |= uint32_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
        }
        words.push_back(Int(word));
    }
    words.insert(words.end(), values.begin(), values.end());
    const auto count = static_cast<uint32_t>(words.size());
    words[0] = Int(count);

    ImageCode code(builder_);
    const uint64_t base = request_.options.printf_address;
    const auto at = [&](size_t offset) { return builder_.Const(kI64, base + offset); };
    const auto atomic = [&](ir::AtomicOp op, size_t offset, ValueId value) {
        return builder_.Emit(Op::kAtomicGlobal, kernel_.type(value), {at(offset), value},
                             static_cast<uint64_t>(op));
    };
    const auto lose = [&] { atomic(ir::AtomicOp::kAdd, offsetof(PrintfHeader, lost), Int(1)); };
    const ValueId capacity = Int(request_.options.printf_words);
    constexpr size_t kWords = offsetof(PrintfHeader, words);
    // Full buffers are not counted any further, so that the lower half never overflows.
    const ValueId taken =
        Emit(Op::kTrunc, kI32, {atomic(ir::AtomicOp::kLoad, kWords, builder_.Const(kI64, 0))});
    const ValueId has_room = code.Test(Op::kULt, taken, capacity);
    code.If(has_room, {}, [&] {
        const ValueId start = Emit(
            Op::kTrunc, kI32, {atomic(ir::AtomicOp::kAdd, kWords, builder_.Const(kI64, count))});
        const ValueId end = code.I(Op::kIAdd, start, Int(count));
        const ValueId fits = code.Test(Op::kULe, end, capacity);
        code.If(fits, {}, [&] {
            const ValueId bytes =
                Emit(Op::kShl, kI64, {Emit(Op::kZExt, kI64, {start}), builder_.Const(kI64, 2)});
            const ValueId record = Emit(Op::kIAdd, kI64, {bytes, at(sizeof(PrintfHeader))});
            for (size_t i = 0; i < words.size(); i += kWordsAStore) {
                Tuple operands = {Emit(Op::kIAdd, kI64, {record, builder_.Const(kI64, 4 * i)})};
                for (size_t k = i; k < std::min(i + kWordsAStore, words.size()); ++k) {
                    operands.push_back(words[k]);
                }
                builder_.Append(Op::kStoreGlobal, operands, {}, 4);
            }
            return ImageCode::Ids();
        });
        code.If(Emit(Op::kNot, ir::Type::kBool, {fits}), {}, [&] {
            lose();
            return ImageCode::Ids();
        });
        builder_.Append(Op::kMemoryBarrier, {}, {});
        atomic(ir::AtomicOp::kAdd, kWords, builder_.Const(kI64, uint64_t{count} << 32));
        return ImageCode::Ids();
    });
    code.If(Emit(Op::kNot, ir::Type::kBool, {has_room}), {}, [&] {
        lose();
        return ImageCode::Ids();
    });
    return OkStatus();
}

}  // namespace fornax::kernel::spirv
