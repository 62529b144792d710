// Types and constants of modules, each written once.
#include <bit>
#include <cassert>

#include "compiler/graph/spirv/module_builder.h"

namespace fornax::graph::spirv {
namespace {

uint64_t LowBits(uint64_t value, uint32_t bits) {
    return bits >= 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

}  // namespace

// --- Types ---------------------------------------------------------------------------------------

Id ModuleBuilder::Void() {
    return Declare(spv::Op::OpTypeVoid, {});
}

Id ModuleBuilder::Bool() {
    const Id id = Declare(spv::Op::OpTypeBool, {});
    bits_[id] = 1;
    return id;
}

Id ModuleBuilder::Int(uint32_t bits) {
    if (bits == 64) {
        Capability(spv::Capability::Int64);
    }
    const uint32_t operands[] = {bits, 0};
    const Id id = Declare(spv::Op::OpTypeInt, operands);
    bits_[id] = bits;
    return id;
}

Id ModuleBuilder::Float(uint32_t bits) {
    if (bits == 64) {
        Capability(spv::Capability::Float64);
    }
    const Id id = Declare(spv::Op::OpTypeFloat, {&bits, 1});
    bits_[id] = bits;
    return id;
}

Id ModuleBuilder::BFloat16() {
    const uint32_t operands[] = {16, static_cast<uint32_t>(spv::FPEncoding::BFloat16KHR)};
    const Id id = Declare(spv::Op::OpTypeFloat, operands);
    bits_[id] = 16;
    return id;
}

Id ModuleBuilder::Vector(Id component, uint32_t count) {
    const uint32_t operands[] = {component, count};
    return Declare(spv::Op::OpTypeVector, operands);
}

Id ModuleBuilder::Array(Id element, uint32_t length, uint32_t stride) {
    const uint32_t operands[] = {element, Uint(length)};
    const Id before = bound_;
    const Id id = Declare(spv::Op::OpTypeArray, operands);
    if (stride != 0 && id >= before) {
        Decorate(id, spv::Decoration::ArrayStride, {stride});
    }
    return id;
}

Id ModuleBuilder::CooperativeMatrix(Id component,
                                    uint32_t rows,
                                    uint32_t columns,
                                    spv::CooperativeMatrixUse use) {
    Capability(spv::Capability::CooperativeMatrixKHR);
    Capability(spv::Capability::VulkanMemoryModel);
    Extension("SPV_KHR_cooperative_matrix");
    const uint32_t operands[] = {component, Uint(static_cast<uint32_t>(spv::Scope::Subgroup)),
                                 Uint(rows), Uint(columns), Uint(static_cast<uint32_t>(use))};
    return Declare(spv::Op::OpTypeCooperativeMatrixKHR, operands);
}

Id ModuleBuilder::Pointer(spv::StorageClass storage, Id type) {
    const uint32_t operands[] = {static_cast<uint32_t>(storage), type};
    return Declare(spv::Op::OpTypePointer, operands);
}

uint32_t ModuleBuilder::BitsOf(Id type) const {
    const auto found = bits_.find(type);
    return found == bits_.end() ? 0 : found->second;
}

// --- Constants -----------------------------------------------------------------------------------

Id ModuleBuilder::Constant(Id type, uint64_t bits) {
    const uint32_t width = BitsOf(type);
    assert(width != 0);
    Id id = 0;
    if (width == 1) {
        id = DeclareConstant(bits != 0 ? spv::Op::OpConstantTrue : spv::Op::OpConstantFalse, type,
                             {});
    } else {
        const uint32_t words[] = {static_cast<uint32_t>(LowBits(bits, width)),
                                  static_cast<uint32_t>(bits >> 32)};
        id = DeclareConstant(spv::Op::OpConstant, type, std::span(words, width == 64 ? 2 : 1));
    }
    constants_[id] = LowBits(bits, width);
    return id;
}

Id ModuleBuilder::FloatConstant(float value) {
    return Constant(Float(32), std::bit_cast<uint32_t>(value));
}

Id ModuleBuilder::DoubleConstant(double value) {
    return Constant(Float(64), std::bit_cast<uint64_t>(value));
}

Id ModuleBuilder::Composite(Id type, std::span<const Id> parts) {
    return DeclareConstant(spv::Op::OpConstantComposite, type, parts);
}

Id ModuleBuilder::Null(Id type) {
    return DeclareConstant(spv::Op::OpConstantNull, type, {});
}

std::optional<uint64_t> ModuleBuilder::ConstantBits(Id value) const {
    const auto found = constants_.find(value);
    return found == constants_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace fornax::graph::spirv
