// Values as the code of a loop kernel holds them: types, constants and pure operations.
//
// All of this knows the module and the device it is for, and nothing of the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "compiler/graph/ir/scalar_function.h"
#include "compiler/graph/ir/types.h"
#include "compiler/graph/loop/emit_spirv.h"
#include "compiler/graph/spirv/module_builder.h"

namespace fornax::graph::loop {

using spirv::Id;
using spirv::Ids;

// How a value is held: narrower types in 32 bits, always with the bits that their own type has.
enum class Held : uint8_t { kBool, kI32, kI64, kF32, kF64 };
Held HeldAs(ElementType type);

// The module that is being written.
struct ModuleCode {
    explicit ModuleCode(const Target& device) : target(device) {}
    ModuleCode(const ModuleCode&) = delete;
    ModuleCode& operator=(const ModuleCode&) = delete;

    // The device cannot run this; the first reason counts. The result is a value to go on with.
    Id Reject(const std::string& why);

    const Target& target;
    spirv::ModuleBuilder builder;
    std::optional<std::string> rejection;
    std::map<Id, Id> narrow;  // of i64 values that are i32 values: these
};

// A part of what writes the module: names for the operations that all parts need.
class ValueOps {
  public:
    ValueOps(const ValueOps&) = delete;
    ValueOps& operator=(const ValueOps&) = delete;

  protected:
    explicit ValueOps(ModuleCode& module) : module_(module) {}
    ~ValueOps() = default;

    Id Reject(const std::string& why) { return module_.Reject(why); }

    Id TypeOf(Held held);
    Id TypeFor(ElementType type) { return TypeOf(HeldAs(type)); }
    Id ConstantOf(ElementType type, const Scalar& value);
    Id U(uint32_t value) { return b_.Uint(value); }
    Id F(float value) { return b_.FloatConstant(value); }

    Id Unary(spv::Op op, Id a) { return b_.Op(op, b_.TypeOf(a), {a}); }
    Id Binary(spv::Op op, Id a, Id b) { return b_.Op(op, b_.TypeOf(a), {a, b}); }
    Id Test(spv::Op op, Id a, Id b) { return b_.Op(op, b_.Bool(), {a, b}); }
    Id BitsAs(Id type, Id a) { return b_.Op(spv::Op::OpBitcast, type, {a}); }
    Id IsNan(Id a) { return b_.Op(spv::Op::OpIsNan, b_.Bool(), {a}); }
    Id Fma(Id a, Id b, Id c);
    Id CopySign(Id magnitude, Id sign);
    // The low bits of a held value, extended as the type has it.
    Id Wrap(ElementType type, Id value);

    // An i32 value as i64, by this conversion; NarrowOf() finds it again.
    Id Widen(spv::Op op, Id narrow);
    // A position of 32 bits as the i64 that it is.
    Id WidePosition(Id position) { return Widen(spv::Op::OpUConvert, position); }
    std::optional<Id> NarrowOf(Id wide) const;

    ModuleCode& module_;
    const Target& target_ = module_.target;
    spirv::ModuleBuilder& b_ = module_.builder;
};

}  // namespace fornax::graph::loop
