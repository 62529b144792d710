// Each rule of the verifier, by a kernel that breaks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel::ir {
namespace {

using ::testing::HasSubstr;

struct Rule {
    const char* body;
    const char* message;  // "" if the body is good
};

void Check(const Rule& rule) {
    std::string text =
        "kernel \"k\" workgroup_size(4, 1, 1) subgroup_size(8) shared(64) {\n"
        "  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
        "  binding 1: storage_buffer set(0) binding(1) count(1) offset(16) readonly\n"
        "  local 0: f32[4]\n"
        "  body { %i:i32 = const 1 %l:i64 = const 1 %f:f32 = const 1 %b:bool = const true\n";
    text += std::string(rule.body) + "\n}}\n";
    auto kernel = ParseKernel(text);
    if (*rule.message == '\0') {
        EXPECT_TRUE(kernel.ok()) << rule.body << "\n" << kernel.error().message;
        return;
    }
    ASSERT_FALSE(kernel.ok()) << rule.body;
    EXPECT_THAT(kernel.error().message, HasSubstr(rule.message)) << rule.body;
}

TEST(Verify, Signatures) {
    const Rule kRules[] = {
        {"%r:i32 = iadd %i, %f return", "operand 1 must be i32, not f32"},
        {"%r:f32 = iadd %f, %f return", "result 0 must be an integer"},
        {"%r:i32 = iadd %i return", "it must have 2 operands, not 1"},
        {"iadd %i, %i return", "it must have 1 results, not 0"},
        {"%r:i32 = shl %i, %l return", ""},
        {"%r:i64 = shl %i, %l return", "operand 0"},
        {"%r:bool = and %b, %b return", ""},
        {"%r:bool = iadd %b, %b return", "result 0 must be an integer"},
        {"%r:bool = folt %f, %f return", ""},
        {"%r:bool = folt %i, %i return", "operand 0 must be a float"},
        {"%r:i32 = ult %i, %i return", "result 0 must be bool"},
        {"%r:f32 = select %b, %f, %f return", ""},
        {"%r:f32 = select %i, %f, %f return", "operand 0 must be bool"},
        {"%r:i64 = zext %i return", ""},
        {"%r:i32 = zext %l return", "result 0 must be wider"},
        {"%r:i64 = trunc %i return", "result 0 must be narrower"},
        {"%r:i32 = bitcast %f return", ""},
        {"%r:i64 = bitcast %f return", "as wide as the operand"},
        {"%r:f32, %s:i32 = frexp %f return", ""},
        {"%r:f32, %s:f32 = frexp %f return", "result 1 must be i32"},
        {"%r:i32 = bitfield_insert %i, %i, %i, %l return", "operand 3 must be i32"},
        {"%r:f32 = sqrt %i return", "operand 0 must be f32"},
        {"%r:i64 = subgroup_ballot %b return", ""},
        {"%r:i32 = subgroup_ballot %b return", "result 0 must be i64"},
        {"%r:i64 = subgroup_ballot %i return", "operand 0 must be bool"},
        {"%r:f32 = subgroup_broadcast_first %i return", "operand 0 must be f32"},
        {"%r:bool = subgroup_shuffle %b, %i return", ""},
        {"%r:bool = subgroup_shuffle %b, %l return", "operand 1 must be i32"},
        {"%r:i64 = subgroup_partition %f return", ""},
        {"%r:i32 = subgroup_reduce iadd cluster(8), %i return", ""},
        {"%r:i32 = subgroup_reduce iadd cluster(16), %i return", "the cluster size 16"},
        {"%r:i32 = subgroup_reduce iadd cluster(3), %i return", "the cluster size 3"},
        {"%r:i32 = subgroup_inclusive_scan iadd cluster(4), %i return", "of a reduction"},
        {"%r:f32 = subgroup_exclusive_scan iadd, %f return", "result 0 must be an integer"},
        {"%r:i32 = subgroup_reduce fmin, %i return", "result 0 must be a float"},
        {"%r:i32 = partitioned_reduce umax, %i, %l return", ""},
        {"%r:i32 = partitioned_reduce umax, %i, %i return", "operand 1 must be i64"},
        {"%r:buffer = buffer 2, %i return", "binding 2 does not exist"},
        {"%r:buffer = undef return", "result 0 must be a bool, an integer or a float"},
        {"%r:buffer = buffer 0, %i %v:f32, %w:i32 = load_buffer %r, %i align(4) return",
         "result 1 must be f32"},
        {"%r:buffer = buffer 0, %i load_buffer %r, %i align(4) return", "at least one element"},
        {"%r:buffer = buffer 0, %i %v:f32 = load_buffer %r, %f align(4) return",
         "operand 1 must be i32 or i64"},
        {"%v:f32 = load_buffer %i, %i align(4) return", "operand 0 must be a buffer"},
        {"%v:f32 = load_shared %i align(3) return", "the alignment 3 must be a power of two"},
        {"%r:buffer = buffer 1, %i store_buffer %r, %i, %f align(4) return",
         "binding 1 is not writable"},
        {"%r:buffer = buffer 1, %i %v:i32 = atomic_buffer load, %r, %i, %i return", ""},
        {"%r:buffer = buffer 1, %i %v:i32 = atomic_buffer add, %r, %i, %i return", "not writable"},
        {"store_shared %i align(4) return", "at least one element"},
        {"%v:f32 = load_local 0, %i return", ""},
        {"%v:i32 = load_local 0, %i return", "the element must be f32"},
        {"%v:f32 = load_local 1, %i return", "local 1 does not exist"},
        {"store_local 0, %l, %f return", "operand 0 must be i32"},
        {"%v:i32 = atomic_shared add, %i, %i, %i return", "it must have 2 operands"},
        {"%v:i32 = atomic_shared compare_exchange, %i, %i, %i return", ""},
        {"%v:f32 = atomic_shared add, %i, %f return", "result 0 must be i32 or i64"},
        {"%v:f32 = atomic_shared exchange, %i, %f return", ""},
    };
    for (const Rule& rule : kRules) {
        Check(rule);
    }
}

// In subgroups of 8 a lane has 32 elements of a matrix.
TEST(Verify, Matrices) {
    auto list = [](const std::string& name, const char* type, int count = 32) {
        std::string all;
        for (int i = 0; i < count; ++i) {
            all += (i != 0 ? ", %" : "%") + name + std::to_string(i) + type;
        }
        return all;
    };
    auto check = [&](const std::string& results, const std::string& rest, const char* message) {
        const std::string text =
            "%o:buffer = buffer 0, %i " + results + " = matrix_load " + rest + " return";
        Check({text.c_str(), message});
    };
    check(list("m", ":f32"), "%o, %i, %i align(4)", "");
    check(list("m", ":f32"), "%o, %l, %l align(4)", "");
    check(list("m", ":f32"), "%i, %i, %i align(4)", "operand 0 must be a buffer");
    check(list("m", ":f32"), "%o, %f, %f align(4)", "operand 1 must be i32 or i64");
    check(list("m", ":f32"), "%o, %i, %l align(4)", "operand 2 must be of the offset's type");
    check(list("m", ":f32"), "%o, %i, %i align(3)", "the alignment 3");
    check(list("m", ":f16"), "%o, %i, %i align(4)", "result 0 must be f32");
    check(list("m", ":f32", 16), "%o, %i, %i align(4)", "must have 32 results");
    const std::string load =
        "%o:buffer = buffer 0, %i " + list("m", ":f32") + " = matrix_load %o, %i, %i align(4) ";
    auto product = [&](const char* flags, const char* type) {
        return load + list("r", type) + " = matrix_muladd " + flags + ", " + list("m", "") + ", " +
               list("m", "") + ", " + list("m", "") + " return";
    };
    Check({product("0", ":f32").c_str(), ""});
    Check({product("16", ":f32").c_str(), "operand 0 must be i16"});
    Check({product("0", ":f16").c_str(), "result 0 must be f32"});
}

TEST(Verify, Scoping) {
    const Rule kRules[] = {
        {"if %b { %x:i32 = ineg %i yield } else { yield } %y:i32 = ineg %x return",
         "it uses a value that is not defined there"},
        {"if %b { %x:i32 = ineg %i yield } else { %y:i32 = ineg %x yield } return",
         "it uses a value that is not defined there"},
        {"%x:i32 = scope { yield %x } return", "it uses a value that is not defined there"},
        {"loop @0 (%p:i32 = %i) { exit @0 } continuing () { %q:i32 = ineg %p next %q } return", ""},
        {"loop @0 (%p:i32 = %i) { %x:i32 = ineg %p exit @0 } continuing () { next %x } return",
         "it uses a value that is not defined there"},
        {"loop @0 (%p:i32 = %i) { exit @0 } continuing () { next %p } %x:i32 = ineg %p return",
         "it uses a value that is not defined there"},
    };
    for (const Rule& rule : kRules) {
        Check(rule);
    }
}

TEST(Verify, Structure) {
    const Rule kRules[] = {
        {"", "the block must end with a terminator"},
        {"return return", "a terminator may only end a block"},
        {"yield", "only blocks of if, switch and scope may end with it"},
        {"next", "only continuing blocks of loops may end with it"},
        {"loop () { yield } continuing () { next } return", "only blocks of if, switch and scope"},
        {"loop () { next } continuing () { next } return", "only continuing blocks"},
        {"loop @0 () { return } continuing () { if %b { continue @0 } next } return",
         "its target must be a loop in whose body it is"},
        {"loop @0 () { continue @0 } continuing () { exit @0 } return",
         "a continuing block must end with next"},
        {"scope @0 { continue @0 } return", "its target must be a loop in whose body it is"},
        {"loop @0 () { return } continuing () { if %b { exit @0 } next } return", ""},
        {"%x:i32 = scope { yield } return", "it gives 0 values where 1 are taken"},
        {"%x:i32 = scope { yield %f } return", "value 0 must be i32, not f32"},
        {"%x:i32 = scope @0 { exit @0 %f } return", "value 0 must be i32, not f32"},
        {"loop @0 () { continue @0 } continuing (%p:i32) { next } return",
         "it gives 0 values where 1 are taken"},
        {"loop @0 (%p:i32 = %f) { exit @0 } continuing () { next %i } return",
         "value 0 must be i32, not f32"},
        {"loop @0 (%p:i32 = %i) { exit @0 } continuing () { next } return",
         "it gives 0 values where 1 are taken"},
        {"if %i { yield } return", "its condition must be bool"},
        {"switch %f default { yield } return", "its selector must be an integer"},
        {"switch %i default { yield } case 1 { yield } case 1 { yield } return",
         "two of its cases have one value"},
        {"switch %i default { yield } case 4294967296 { yield } return",
         "a case's value exceeds the selector's width"},
    };
    for (const Rule& rule : kRules) {
        Check(rule);
    }
}

Kernel Minimal() {
    Kernel kernel;
    kernel.body = kernel.NewBlock({});
    Builder builder(kernel, kernel.body);
    builder.ConstI32(1);
    builder.Append(Op::kReturn, {}, {});
    return kernel;
}

void ExpectFault(const Kernel& kernel, const char* message) {
    Status status = Verify(kernel);
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_THAT(status.error().message, HasSubstr(message));
}

// What text cannot express.
TEST(Verify, Storage) {
    EXPECT_TRUE(Verify(Minimal()).ok());
    ExpectFault(Kernel(), "the kernel has no body");

    Kernel kernel = Minimal();
    auto& insts = kernel.block(kernel.body).insts;
    insts.insert(insts.begin(), insts[0]);
    ExpectFault(kernel, "it is used twice");

    kernel = Minimal();
    kernel.inst(InstId{0}).operands.push_back(ValueId{77});
    ExpectFault(kernel, "out of range");

    kernel = Minimal();
    kernel.inst(InstId{0}).imm = uint64_t{1} << 32;
    ExpectFault(kernel, "its bits exceed its type's width");

    kernel = Minimal();
    kernel.value(ValueId{0}).position = 1;
    ExpectFault(kernel, "does not name its definition");

    kernel = Minimal();
    kernel.AddParam(kernel.body, Type::kI32);
    ExpectFault(kernel, "has parameters, which only loops may have");

    kernel = Minimal();
    kernel.block(kernel.body).insts.pop_back();
    InstId scope = kernel.NewInst(Op::kScope, {}, {});
    kernel.inst(scope).blocks = {kernel.body};
    kernel.block(kernel.body).insts.push_back(scope);
    ExpectFault(kernel, "a terminator");

    kernel = Minimal();
    kernel.subgroup_size = 3;
    ExpectFault(kernel, "the subgroup size 3 must be a power of two");

    kernel = Minimal();
    kernel.workgroup_size = {65536, 65536, 65536};
    ExpectFault(kernel, "the workgroup size");

    kernel = Minimal();
    kernel.locals = {{Type::kF64, UINT32_MAX}};
    ExpectFault(kernel, "the locals take more than");
}

}  // namespace
}  // namespace fornax::kernel::ir
