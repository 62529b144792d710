// Tests of passes on exact text: a body in, a body out.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/kernel.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/cleanup.h"

namespace fornax::kernel {

// Declarations before the body that most tests do with: buffers 0 and 1, and locals.
inline std::string KernelText(const std::string& locals, const std::string& body) {
    return "kernel \"k\" workgroup_size(4, 1, 1) subgroup_size(8) shared(256) push_constants(64) "
           "{\n"
           "  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
           "  binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n" +
           locals + "  body {\n" + body + "  }\n}\n";
}

inline ir::Kernel Parsed(const std::string& text) {
    auto kernel = ir::ParseKernel(text);
    if (!kernel.ok()) {
        ADD_FAILURE() << kernel.error().message << "\n" << text;
        ir::Kernel empty;
        empty.body = empty.NewBlock({});
        ir::Builder(empty, empty.body).Append(ir::Op::kReturn, {}, {});
        return empty;
    }
    return std::move(*kernel);
}

// `out` may name its values freely and may define what it does not use: both texts are compared as
// printed after dead code elimination.
template <typename Pass>
void ExpectPass(Pass pass,
                const std::string& locals,
                const std::string& in,
                const std::string& out_locals,
                const std::string& out) {
    ir::Kernel kernel = Parsed(KernelText(locals, in));
    pass(kernel);
    Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message << "\n" << ir::PrintKernel(kernel);
    ir::Kernel expected = Parsed(KernelText(out_locals, out));
    EliminateDeadCode(kernel);
    EliminateDeadCode(expected);
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected));
}

// Without locals, and with what is left numbered anew: for passes that leave unused values behind.
template <typename Pass>
void ExpectPassAndCompact(Pass pass, const std::string& in, const std::string& out) {
    ir::Kernel kernel = Parsed(KernelText("", in));
    pass(kernel);
    ASSERT_TRUE(ir::Verify(kernel).ok());
    EliminateDeadCode(kernel);
    kernel.Compact();
    ir::Kernel expected = Parsed(KernelText("", out));
    EliminateDeadCode(expected);
    expected.Compact();
    EXPECT_EQ(ir::PrintKernel(kernel), ir::PrintKernel(expected));
}

}  // namespace fornax::kernel
