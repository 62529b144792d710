// Kernels of a few lines of text, for the tests of the analyses. Values are numbered in the order
// of the text; the prologue's are 0 to 9:
//   0 to 4: constants 0, 1, 4, 8, 64; 5: local_index; 6: workgroup_id_x; 7: a push constant;
//   8: buffer 0; 9: buffer 1
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"

namespace fornax::kernel {

inline ir::Kernel TestKernel(const std::string& body,
                             const std::string& attributes = "workgroup_size(64, 1, 1)") {
    const std::string text = "kernel \"k\" " + attributes + R"( push_constants(16) {
  binding 0: storage_buffer set(0) binding(0) count(1) offset(0)
  binding 1: storage_buffer set(0) binding(1) count(1) offset(16)
  body {
    %zero:i32 = const 0
    %one:i32 = const 1
    %four:i32 = const 4
    %eight:i32 = const 8
    %c64:i32 = const 64
    %i:i32 = builtin local_index
    %group:i32 = builtin workgroup_id_x
    %n:i32 = load_push %zero align(4)
    %in:buffer = buffer 0, %zero
    %out:buffer = buffer 1, %zero
)" + body + "\n    return\n  }\n}\n";
    Result<ir::Kernel> kernel = ir::ParseKernel(text);
    if (!kernel.ok()) {
        ADD_FAILURE() << kernel.error().message << "\n" << text;
        ir::Kernel empty;
        empty.body = empty.NewBlock({});
        ir::Builder(empty, empty.body).Append(ir::Op::kReturn, {}, {});
        return empty;
    }
    const Status status = ir::Verify(*kernel);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return std::move(*kernel);
}

// What is stored to buffers, in the order of the text.
inline std::vector<ir::ValueId> StoredValues(const ir::Kernel& kernel) {
    std::vector<ir::ValueId> values;
    for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
        const ir::Instruction& inst = kernel.inst(ir::InstId{i});
        if (inst.op == ir::Op::kStoreBuffer) {
            values.insert(values.end(), inst.operands.begin() + 2, inst.operands.end());
        }
    }
    return values;
}

// A store of each of these values.
inline std::string Stores(const std::vector<std::string>& values) {
    std::string text;
    for (const std::string& value : values) {
        text += "    store_buffer %out, %zero, %" + value + " align(4)\n";
    }
    return text;
}

}  // namespace fornax::kernel
