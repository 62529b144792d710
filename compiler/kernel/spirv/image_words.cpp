// The words of descriptors that image instructions read, and arithmetic on what is known of them.
#include <algorithm>
#include <bit>

#include "compiler/kernel/ir/evaluate.h"
#include "compiler/kernel/spirv/image_code.h"

namespace fornax::kernel::spirv {

using ir::Op;
using Id = ImageCode::Id;
using Ids = ImageCode::Ids;

namespace {

constexpr ir::Type kI32 = ir::Type::kI32;

bool DecidesImageCode(uint64_t at, bool is_sampled) {
    switch (at) {
        case offsetof(hal::ImageDescriptor, format):
        case offsetof(hal::ImageDescriptor, swizzle):
            return true;
        case offsetof(hal::ImageDescriptor, levels):
            return is_sampled;
        default:
            return at >= offsetof(hal::ImageDescriptor, scale) &&
                   at < offsetof(hal::ImageDescriptor, scale) + sizeof(hal::ImageDescriptor::scale);
    }
}

bool DecidesSamplerCode(uint64_t at) {
    return at < offsetof(hal::SamplerDescriptor, border);
}

// Whether a word of a descriptor decides which code there is.
bool DecidesCode(BindingLayout::Kind kind, uint64_t at) {
    using Kind = BindingLayout::Kind;
    constexpr size_t kSamplerAt = offsetof(hal::CombinedImageSamplerDescriptor, sampler);
    switch (kind) {
        case Kind::kStorageImage:
        case Kind::kStorageTexelBuffer:
        case Kind::kUniformTexelBuffer:
            return DecidesImageCode(at, false);
        case Kind::kSampledImage:
            return DecidesImageCode(at, true);
        case Kind::kCombinedImageSampler:
            return at < kSamplerAt ? DecidesImageCode(at, true)
                                   : DecidesSamplerCode(at - kSamplerAt);
        case Kind::kSampler:
            return DecidesSamplerCode(at);
        default:
            return false;
    }
}

}  // namespace

Id ImageCode::Emit(Op op, ir::Type type, std::initializer_list<Id> operands) {
    std::vector<uint64_t> bits(operands.size());
    size_t at = 0;
    bool is_constant = true;
    for (Id operand : operands) {
        is_constant &= IsConst(operand, &bits[at++]);
    }
    // One constant operand may decide as well.
    if (type == ir::Type::kBool && (op == Op::kAnd || op == Op::kOr)) {
        for (size_t i = 0; i < bits.size(); ++i) {
            if (IsConst(operands.begin()[i])) {
                const Id other = operands.begin()[1 - i];
                return (bits[i] != 0) == (op == Op::kAnd) ? other : operands.begin()[i];
            }
        }
    }
    const Id made = builder_.Emit(op, type, operands);
    uint64_t result = 0;
    const ir::Instruction& inst = *kernel_.Definition(made);
    if (is_constant && ir::IsExact(kernel_, inst) &&
        ir::Evaluate(kernel_, inst, bits, {&result, 1})) {
        return builder_.Const(type, result);
    }
    return made;
}

Id ImageCode::Select(Id condition, Id a, Id b) {
    uint64_t known = 0;
    if (IsConst(condition, &known)) {
        return known != 0 ? a : b;
    }
    uint64_t bits_a = 0;
    uint64_t bits_b = 0;
    if (a == b || (IsConst(a, &bits_a) && IsConst(b, &bits_b) && bits_a == bits_b)) {
        return a;
    }
    return builder_.Emit(Op::kSelect, kernel_.type(a), {condition, a, b});
}

bool ImageCode::IsOne(Id value) const {
    uint64_t bits = 0;
    const uint64_t one =
        kernel_.type(value) == ir::Type::kF32 ? std::bit_cast<uint32_t>(1.0f) : uint64_t{1};
    return IsConst(value, &bits) && bits == one;
}

Id ImageCode::Bits(Id word, uint32_t shift, uint32_t count) {
    const uint32_t mask = count >= 32 ? UINT32_MAX : (1u << count) - 1;
    uint64_t known = 0;
    if (IsConst(word, &known)) {
        return Int(static_cast<uint32_t>(known) >> shift & mask);
    }
    Id bits = shift == 0 ? word : I(Op::kLShr, word, Int(shift));
    return shift + count >= 32 ? bits : I(Op::kAnd, bits, Int(mask));
}

// A level that does not exist must not read beyond the tail.
Id ImageCode::TailWord(const Descriptor& descriptor, Id offset_bytes) {
    Descriptor head = descriptor;
    head.is_short = false;
    const auto half = [&](uint32_t at) {
        return Emit(Op::kZExt, ir::Type::kI64, {Word(head, hal::kImageTailAt + at)});
    };
    const Id high = Emit(Op::kShl, ir::Type::kI64, {half(4), builder_.Const(ir::Type::kI64, 32)});
    const Id address = Emit(Op::kOr, ir::Type::kI64, {half(0), high});
    const Id buffer =
        Emit(Op::kBufferFrom, ir::Type::kBuffer,
             {address, builder_.Const(ir::Type::kI64, sizeof(hal::SampledImageTail))});
    const Id at = I(Op::kUMin, offset_bytes, Int(sizeof(hal::SampledImageTail) - sizeof(uint32_t)));
    return LoadElements(buffer, at, kI32, 1, 0)[0];
}

std::optional<uint32_t> ImageCode::KnownWord(uint32_t binding, uint64_t offset_bytes) {
    const ir::Binding& entry = kernel_.bindings[binding];
    const BindingLayout& layout = entry.layout;
    const uint64_t element = offset_bytes / layout.Stride();
    // How many elements an array of variable length has is only known when the kernel runs.
    if (layout.variable_count || element >= layout.count ||
        !DecidesCode(layout.kind, offset_bytes % layout.Stride())) {
        return std::nullopt;
    }
    const DescriptorPlace place{
        .set = entry.set,
        .offset_bytes = layout.offset_bytes + static_cast<uint32_t>(offset_bytes)};
    const auto known = std::ranges::find(kernel_.known_words, place, &DescriptorWord::place);
    if (known != kernel_.known_words.end()) {
        return known->value;
    }
    if (std::ranges::find(kernel_.deciding_words, place) == kernel_.deciding_words.end() &&
        kernel_.deciding_words.size() <= kMaxDecidingWords) {
        kernel_.deciding_words.push_back(place);
    }
    return std::nullopt;
}

std::optional<uint32_t> ImageCode::KnownWordOfEach(uint32_t binding, uint64_t offset_bytes) {
    // Longer arrays are tables of all textures of a program, which differ.
    constexpr uint32_t kMaxElements = 8;
    const BindingLayout& layout = kernel_.bindings[binding].layout;
    if (layout.count > kMaxElements) {
        return std::nullopt;
    }
    std::optional<uint32_t> common = KnownWord(binding, offset_bytes);
    for (uint32_t element = 1; element < layout.count; ++element) {
        if (KnownWord(binding, offset_bytes + uint64_t{element} * layout.Stride()) != common) {
            common.reset();
        }
    }
    return common;
}

Id ImageCode::WordAt(const Descriptor& descriptor, Id offset_bytes) {
    if (descriptor.is_short) {
        uint64_t known = 0;
        if (!IsConst(offset_bytes, &known) || known >= hal::kImageTailAt) {
            return TailWord(descriptor,
                            I(Op::kISub, offset_bytes, Int(uint32_t{hal::kImageTailAt})));
        }
    }
    uint64_t known_offset = 0;
    if (descriptor.start.valid()) {
        if (!IsConst(descriptor.start) && IsConst(offset_bytes, &known_offset)) {
            if (const auto word = KnownWordOfEach(descriptor.binding, known_offset)) {
                return Int(*word);
            }
        }
        offset_bytes = I(Op::kIAdd, descriptor.start, offset_bytes);
    }
    if (IsConst(offset_bytes, &known_offset)) {
        if (const auto word = KnownWord(descriptor.binding, known_offset)) {
            return Int(*word);
        }
    }
    return builder_.Emit(Op::kLoadDescriptor, kI32, {offset_bytes}, descriptor.binding);
}

Id ImageCode::Word(const Descriptor& descriptor, uint32_t offset_bytes) {
    return WordAt(descriptor, Int(descriptor.base + offset_bytes));
}

}  // namespace fornax::kernel::spirv
