// What image instructions are made of: kernel IR that turns texels in memory into components and
// back, for formats that are known and for formats that a descriptor holds.
//
// Image instructions become address arithmetic, loads, stores and conversions; nothing behind the
// reader knows of images but load_descriptor. A format that the shader does not name is a word of
// the descriptor. Where the request says what that is (CompileRequest::known_words), it is a
// constant; else a value that is the same for all lanes: a switch over its layout and another over
// its class, whose cases are those of known formats.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/kernel.h"
#include "hal/image_abi.h"

namespace fornax::kernel::spirv {

// Shorthand for arithmetic and constructs. Constants decide constructs at once.
class ImageCode {
  public:
    using Id = ir::ValueId;
    using Ids = std::vector<Id>;

    explicit ImageCode(ir::Builder& builder) : builder_(builder), kernel_(builder.kernel()) {}

    Id Int(uint32_t value) { return builder_.ConstI32(value); }
    Id Float(float value) { return builder_.ConstF32(value); }
    // Folded if all operands are constant.
    Id Emit(ir::Op op, ir::Type type, std::initializer_list<Id> operands);
    Id I(ir::Op op, Id a, Id b) { return Emit(op, ir::Type::kI32, {a, b}); }
    Id F(ir::Op op, Id a, Id b) { return Emit(op, ir::Type::kF32, {a, b}); }
    Id F(ir::Op op, Id a) { return Emit(op, ir::Type::kF32, {a}); }
    Id Test(ir::Op op, Id a, Id b) { return Emit(op, ir::Type::kBool, {a, b}); }
    Id Select(Id condition, Id a, Id b);
    Id AsFloat(Id bits) { return Emit(ir::Op::kBitcast, ir::Type::kF32, {bits}); }
    Id AsInt(Id value) { return Emit(ir::Op::kBitcast, ir::Type::kI32, {value}); }
    // `count` bits from `shift` on; folded if the word is constant.
    Id Bits(Id word, uint32_t shift, uint32_t count);
    bool IsConst(Id value, uint64_t* bits = nullptr) const { return kernel_.IsConst(value, bits); }
    // Whether it is known to be 1, or true.
    bool IsOne(Id value) const;
    bool IsZero(Id value) const {
        uint64_t bits = 0;
        return IsConst(value, &bits) && bits == 0;
    }

    // A descriptor of an array: words at constant offsets in it.
    struct Descriptor {
        uint32_t binding = 0;
        Id start;           // bytes from element 0, or invalid for 0
        uint32_t base = 0;  // more bytes
        // In a heap what follows a sampled image's pitches lies elsewhere (hal/image_abi.h).
        bool is_short = false;
    };
    Id Word(const Descriptor& descriptor, uint32_t offset_bytes);
    Id WordAt(const Descriptor& descriptor, Id offset_bytes);  // not for a base
    Id TailWord(const Descriptor& descriptor, Id offset_bytes);

    // Each construct's results are what `body` returns for the block that it fills, or zeros in the
    // blocks without one.
    template <typename Body>
    Ids If(Id condition, std::span<const ir::Type> types, Body&& body) {
        uint64_t known = 0;
        if (IsConst(condition, &known)) {
            return known ? body() : Zeros(types);
        }
        const ir::InstId inst = builder_.Append(ir::Op::kIf, {&condition, 1}, types);
        AddBlock(inst, [&] { return body(); });
        AddBlock(inst, [&] { return Zeros(types); });
        return kernel_.inst(inst).results;
    }
    // `body(value)` for each case; the last one is also the default.
    template <typename Body>
    Ids Switch(Id selector,
               std::span<const uint32_t> cases,
               std::span<const ir::Type> types,
               Body&& body) {
        uint64_t known = 0;
        if (IsConst(selector, &known)) {
            const bool is_case = std::ranges::find(cases, known) != cases.end();
            return body(is_case ? static_cast<uint32_t>(known) : cases.back());
        }
        const ir::InstId inst = builder_.Append(ir::Op::kSwitch, {&selector, 1}, types);
        AddBlock(inst, [&] { return body(cases.back()); });
        for (uint32_t value : cases.first(cases.size() - 1)) {
            kernel_.inst(inst).case_values.push_back(value);
            AddBlock(inst, [&] { return body(value); });
        }
        return kernel_.inst(inst).results;
    }
    // Runs `body(step, carried)`, which returns what is carried on, for steps 0 to count - 1; count
    // is at least 1. Up to `unrolled` steps of a known count are no loop.
    template <typename Body>
    Ids Repeat(Id count, const Ids& initial, Body&& body, uint32_t unrolled = 1) {
        uint64_t known = 0;
        if (IsConst(count, &known) && known <= unrolled) {
            Ids carried = initial;
            for (uint32_t step = 0; step < known; ++step) {
                carried = body(Int(step), carried);
            }
            return carried;
        }
        Ids operands = {Int(0)};
        std::vector<ir::Type> types;
        for (Id value : initial) {
            operands.push_back(value);
            types.push_back(kernel_.type(value));
        }
        const ir::InstId loop = builder_.Append(ir::Op::kLoop, operands, types);
        kernel_.inst(loop).flags = ir::kDontUnrollHint;
        const ir::BlockId before = builder_.block();
        const ir::BlockId steps = kernel_.NewBlock(loop);
        const ir::BlockId continuing = kernel_.NewBlock(loop);
        kernel_.inst(loop).blocks = {steps, continuing};
        const Id step = kernel_.AddParam(steps, ir::Type::kI32);
        Ids carried;
        for (ir::Type type : types) {
            carried.push_back(kernel_.AddParam(steps, type));
        }
        builder_.SetBlock(steps);
        const Ids results = body(step, carried);
        const Id next = I(ir::Op::kIAdd, step, Int(1));
        const Id done = Test(ir::Op::kULe, count, next);
        const ir::InstId last = builder_.Append(ir::Op::kIf, {&done, 1}, {});
        const ir::BlockId leave = kernel_.NewBlock(last);
        const ir::BlockId stay = kernel_.NewBlock(last);
        kernel_.inst(last).blocks = {leave, stay};
        builder_.SetBlock(leave);
        kernel_.inst(builder_.Append(ir::Op::kExit, results, {})).target = loop;
        builder_.SetBlock(stay);
        builder_.Append(ir::Op::kYield, {}, {});
        builder_.SetBlock(steps);
        Ids passed = {next};
        passed.insert(passed.end(), results.begin(), results.end());
        kernel_.inst(builder_.Append(ir::Op::kContinue, passed, {})).target = loop;
        builder_.SetBlock(continuing);
        Ids params = {kernel_.AddParam(continuing, ir::Type::kI32)};
        for (ir::Type type : types) {
            params.push_back(kernel_.AddParam(continuing, type));
        }
        builder_.Append(ir::Op::kNext, params, {});
        builder_.SetBlock(before);
        return kernel_.inst(loop).results;
    }
    Ids Zeros(std::span<const ir::Type> types);

    // --- texels ---
    // A texel lies at the offset of its row plus its column times the bytes that its layout has: a
    // factor that each case knows, so that neighbouring lanes are seen to be neighbours in memory.
    // If the image may be compressed, row and column are the block's, and x and y the texel's.
    struct Texel {
        Id row_offset;
        Id column;
        Id x = {};
        Id y = {};
    };
    // log2 of the texels of a block each way: 0 for formats without. `layout` is an i32.
    Id BlockLog2(Id layout);
    // How many blocks hold so many texels.
    Id Blocks(Id texels, Id block_log2);
    Id TexelOffset(const Texel& texel, hal::TexelLayout layout);
    Ids LoadElements(Id buffer, Id offset, ir::Type type, size_t count, uint8_t flags);
    // The four components' bits of a texel, zero extended; zeros for those that the layout does not
    // have. `format` is that of a descriptor; only `sampled` images have all of them, and
    // compressed ones only where the texel has x and y.
    Ids LoadRaw(Id buffer, const Texel& texel, Id format, bool sampled, uint8_t flags);
    void StoreRaw(Id buffer, const Texel& texel, Id layout, std::span<const Id> raw, uint8_t flags);
    // Components as f32. `scales` are the descriptor's, or KnownScales; invalid ones leave
    // normalised components (kUnorm) as numbers of steps.
    Ids DecodeFloat(std::span<const Id> raw, Id format, std::span<const Id> scales);
    Ids EncodeFloat(std::span<const Id> values, Id format, std::span<const Id> scales);
    // Components as i32. Encoding is leaving out the upper bits, which StoreRaw does.
    Ids DecodeInt(std::span<const Id> raw, Id format);
    Ids KnownScales(const hal::TexelFormat& format);
    // Puts components where the swizzle, an i32, says; `one` is what 1 is.
    Ids Swizzled(std::span<const Id> components, Id swizzle, Id one);

  private:
    template <typename Body>
    void AddBlock(ir::InstId inst, Body&& body) {
        const ir::BlockId before = builder_.block();
        const ir::BlockId block = kernel_.NewBlock(inst);
        kernel_.inst(inst).blocks.push_back(block);
        builder_.SetBlock(block);
        const Ids results = body();
        builder_.Append(ir::Op::kYield, results, {});
        builder_.SetBlock(before);
    }
    // The word of a descriptor, if code decides by it and the request says what it is.
    std::optional<uint32_t> KnownWord(uint32_t binding, uint64_t offset_bytes);
    // The same of an element that is known when the kernel runs only: if all elements of a short
    // array have that word. `offset_bytes` is of element 0.
    std::optional<uint32_t> KnownWordOfEach(uint32_t binding, uint64_t offset_bytes);
    Id Inverse(Id scale);
    Id HalfToFloat(Id bits);
    Id FloatToHalf(Id value);
    Id SrgbToLinear(Id raw);
    // An entry of a table of 32-bit words that becomes data of the kernel.
    Id FromTable(ir::Type type, const void* table, size_t entries, Id index);
    // Compressed blocks (image_blocks.cpp).
    Ids LoadBlockTexel(Id buffer, const Texel& texel, Id format, uint8_t flags);
    Ids LoadBlockWords(Id buffer, Id offset, uint8_t flags);
    Id EacModifier(const Ids& block, Id texel, Id* multiplier);
    Id EacAlpha(const Ids& block, Id texel);
    Id EacComponent(const Ids& block, Id texel, Id is_signed);
    Ids EtcColor(const Ids& block, Id x, Id y, Id may_be_transparent);
    // Those of image_bc_blocks.cpp.
    Id BlockBits(const Ids& block, Id place, Id mask);
    Id LowMask(Id bits);
    Id SignExtended(Id value, Id bits);
    Id BcRamp(const Ids& block, Id texel, Id is_signed);
    Ids BcColor(const Ids& block, Id texel, Id always_four);
    Ids LoadRampTexel(Id buffer, Id offset, Id format, Id texel, uint8_t flags);
    Id BptcWeight(Id index, Id bits);
    Id BptcBetween(Id first, Id second, Id weight);
    Id BptcIndex(const Ids& block, Id start, Id texel, Id bits, Id anchors);
    Id BptcSubset(Id pattern, Id texel);
    Ids Bc7Texel(const Ids& block, Id texel);
    Id Bc6Variable(const Ids& block, Id index);
    Id Bc6Unquantized(Id value, Id bits, Id is_signed);
    Ids Bc6Texel(const Ids& block, Id texel, Id is_signed);

    ir::Builder& builder_;
    ir::Kernel& kernel_;
};

}  // namespace fornax::kernel::spirv
