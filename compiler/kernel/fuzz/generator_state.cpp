// Kinds, constants, picks from what there is: what all parts of the generator do.
#include "compiler/kernel/fuzz/generator_state.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/half.h"

namespace fornax::kernel::fuzz {

GeneratorState::GeneratorState(uint64_t the_seed, const RandomModuleOptions& the_options)
    : builder([&] {
          static constexpr uint32_t kVersions[] = {0x10300, 0x10300, 0x10400, 0x10500, 0x10600};
          return kVersions[Random(the_seed ^ 0x5eed).Below(5)];
      }()),
      random(the_seed),
      seed(the_seed),
      options(the_options) {}

void GeneratorPart::ControlBarrier() {
    Id workgroup = b_.Uint(static_cast<uint32_t>(spv::Scope::Workgroup));
    const auto semantics = static_cast<uint32_t>(spv::MemorySemanticsMask::AcquireRelease |
                                                 spv::MemorySemanticsMask::WorkgroupMemory);
    b_.EmitVoid(Op::OpControlBarrier, {workgroup, workgroup, b_.Uint(semantics)});
}

void GeneratorPart::OnlyIf(Id condition, const std::function<void()>& body) {
    Id inside = b_.NewId();
    Id behind = b_.NewId();
    b_.EmitVoid(Op::OpSelectionMerge, {behind, 0});
    b_.EmitVoid(Op::OpBranchConditional, {condition, inside, behind});
    StartBlock(inside);
    body();
    b_.EmitVoid(Op::OpBranch, {behind});
    StartBlock(behind);
}

void GeneratorPart::StartBlock(Id label) {
    b_.EmitVoid(Op::OpLabel, {label});
    state_.block = label;
    state_.dead = false;
}

Kind GeneratorPart::AnyKind() {
    return state_.kinds[Below(static_cast<uint32_t>(state_.kinds.size()))];
}

Kind GeneratorPart::AnyIntKind() {
    for (int i = 0; i < 8; ++i) {
        if (Kind kind = AnyKind(); IsInt(kind)) {
            return kind;
        }
    }
    return Kind::kU32;
}

Kind GeneratorPart::AnyFloatKind() {
    for (int i = 0; i < 8; ++i) {
        if (Kind kind = AnyKind(); IsFloat(kind)) {
            return kind;
        }
    }
    return Kind::kF32;
}

ValueType GeneratorPart::AnyType() {
    return {AnyKind(), static_cast<uint8_t>(Chance(60) ? 1 : 2 + Below(3)), 1};
}

uint64_t GeneratorPart::FloatBits(Kind kind, double value) {
    switch (kind) {
        case Kind::kF16:
            return DoubleToHalf(value);
        case Kind::kF32:
            return std::bit_cast<uint32_t>(static_cast<float>(value));
        default:
            return std::bit_cast<uint64_t>(value);
    }
}

// Arithmetic is exact as written: another rounding would be as right, and could not be compared.
Id GeneratorPart::Emit(Op op, ValueType type, std::initializer_list<Id> operands) {
    Id id = b_.Emit(op, b_.Type(type), operands);
    bool rounds = op == Op::OpFAdd || op == Op::OpFSub || op == Op::OpFMul ||
                  op == Op::OpMatrixTimesVector || op == Op::OpVectorTimesMatrix ||
                  op == Op::OpMatrixTimesMatrix || op == Op::OpDot ||
                  op == Op::OpVectorTimesScalar || op == Op::OpMatrixTimesScalar;
    if (rounds && !state_.exact) {
        b_.Decorate(id, spv::Decoration::NoContraction);
    }
    return id;
}

Id GeneratorPart::Glsl(uint32_t number, ValueType type, std::initializer_list<Id> operands) {
    return b_.Ext(b_.Type(type), number, operands);
}

Id GeneratorPart::RandomConstant(ValueType type) {
    static constexpr double kFree[] = {0, 1, -1, 0.5, 2, -0.0, 3.25, -7, 1e4, 0.125};
    static constexpr double kExact[] = {0, 1, -1, 0.5, 2, 3, -1.5, 7, -4, 15};
    static constexpr uint64_t kIntegers[] = {0, 1,  2,  3,  4,   5,   7,
                                             8, 15, 31, 33, 127, 128, ~uint64_t{0}};
    auto scalar = [&] {
        if (type.kind == Kind::kBool) {
            return b_.Constant(type.kind, Chance(50));
        }
        if (IsFloat(type.kind)) {
            double value =
                state_.exact ? kExact[Below(std::size(kExact))] : kFree[Below(std::size(kFree))];
            return b_.Constant(type.kind, FloatBits(type.kind, value));
        }
        uint64_t bits = Chance(80) ? kIntegers[Below(std::size(kIntegers))] : state_.random.Next();
        if (BitsOf(type.kind) < 64) {
            bits &= (uint64_t{1} << BitsOf(type.kind)) - 1;
        }
        return b_.Constant(type.kind, bits);
    };
    if (type.rows == 1) {
        return scalar();
    }
    std::vector<Id> parts;
    for (uint32_t i = 0; i < type.rows; ++i) {
        parts.push_back(scalar());
    }
    return b_.Composite(b_.Type(type), parts);
}

// A value of the type that dominates this place, rather a recent one.
std::optional<Id> GeneratorPart::Pick(ValueType type) {
    std::vector<Id> found;
    for (const Pooled& pooled : state_.pool) {
        if (pooled.type == type) {
            found.push_back(pooled.id);
        }
    }
    if (found.empty()) {
        return std::nullopt;
    }
    size_t recent = Chance(60) ? std::min<size_t>(found.size(), 4) : found.size();
    return found[found.size() - 1 - Below(static_cast<uint32_t>(recent))];
}

Id GeneratorPart::Fold(Id a, Id b) {
    constexpr ValueType kUint{Kind::kU32, 1, 1};
    return Emit(Op::OpIMul, kUint, {Emit(Op::OpBitwiseXor, kUint, {a, b}), b_.Uint(16777619)});
}

Variable GeneratorPart::NewLocal(const MemoryType& type) {
    Variable variable;
    variable.type = type;
    variable.id = b_.FunctionVariable(type.id, b_.Null(type.id));
    return variable;
}

void GeneratorPart::Digest(Id word) {
    Id old = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.digest});
    b_.EmitVoid(Op::OpStore, {state_.digest, Fold(old, word)});
}

void GeneratorPart::StoreDigest() {
    Id word = b_.Emit(Op::OpLoad, b_.Type(kUint), {state_.digest});
    Id at = Emit(Op::OpIMul, kUint, {state_.own_index, b_.Uint(kOwnBytes / 4)});
    at = Emit(Op::OpIAdd, kUint, {at, b_.Uint(kOwnBytes / 4 - 1)});
    Id pointer =
        b_.Emit(Op::OpAccessChain, b_.Pointer(spv::StorageClass::StorageBuffer, b_.Type(kUint)),
                {state_.own_words.id, b_.Uint(0), at});
    b_.EmitVoid(Op::OpStore, {pointer, word});
}

}  // namespace fornax::kernel::fuzz
