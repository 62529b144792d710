// Which accesses ask for lines ahead.
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/kernel_harness.h"

namespace fornax::kernel {
namespace {

// The number of requests for loads and for stores.
std::pair<size_t, size_t> Fetches(const std::string& body) {
    const std::string text =
        "kernel \"test\" workgroup_size(64, 1, 1) {\n"
        "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
        "binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n"
        "body {\n"
        "%zero:i32 = const 0\n"
        "%two:i32 = const 2\n"
        "%a:buffer = buffer 0, %zero\n"
        "%b:buffer = buffer 1, %zero\n"
        "%i:i32 = builtin local_id_x\n"
        "%o:i32 = shl %i, %two\n" +
        body + "return\n}\n}\n";
    Result<ir::Kernel> kernel = ir::ParseKernel(text);
    if (!kernel.ok()) {
        ADD_FAILURE() << kernel.error().message;
        return {};
    }
    Result<RunnableKernel> native = RunnableKernel::Create(*kernel, 16);
    if (!native.ok()) {
        ADD_FAILURE() << native.error().message;
        return {};
    }
    const std::string& llvm_ir = native->llvm_ir();
    size_t loads = 0;
    size_t stores = 0;
    const std::string call = "call void @llvm.prefetch";
    for (size_t at = llvm_ir.find(call); at != std::string::npos; at = llvm_ir.find(call, at + 1)) {
        const std::string line = llvm_ir.substr(at, llvm_ir.find('\n', at) - at);
        ++(line.find(", i32 1, i32 3, i32 1)") != std::string::npos ? stores : loads);
    }
    return {loads, stores};
}

using Count = std::pair<size_t, size_t>;

TEST(Fetch, StoresThatRunThroughMemory) {
    EXPECT_EQ(Fetches("%x:f32 = load_buffer %a, %o align(4)\n"
                      "store_buffer %b, %o, %x align(4)\n"),
              Count(0, 1));
    // Four lines a vector.
    EXPECT_EQ(Fetches("%four:i32 = const 4\n"
                      "%p:i32 = shl %i, %four\n"
                      "store_buffer %b, %p, %i, %i, %i, %i align(16)\n"),
              Count(0, 4));
}

TEST(Fetch, NotWhatIsThereAlready) {
    EXPECT_EQ(Fetches("%x:f32 = load_buffer %b, %o align(4)\n"
                      "%y:f32 = fadd %x, %x\n"
                      "store_buffer %b, %o, %y align(4)\n"),
              Count(0, 0));
}

TEST(Fetch, NotWhatIsScatteredOrSmall) {
    EXPECT_EQ(Fetches("%p:i32 = imul %o, %o\n"
                      "store_buffer %b, %p, %i align(4)\n"),
              Count(0, 0));
    EXPECT_EQ(Fetches("%x:i8 = trunc %i\n"
                      "store_buffer %b, %i, %x align(1)\n"),
              Count(0, 0));
    EXPECT_EQ(Fetches("store_buffer %b, %zero, %zero align(4)\n"), Count(0, 0));
}

TEST(Fetch, LoadsAmongMuchArithmetic) {
    EXPECT_EQ(Fetches("%x:f32 = load_buffer %a, %o align(4)\n"
                      "%y:f32 = tanh %x\n"
                      "store_buffer %b, %o, %y align(4)\n"),
              Count(1, 1));
    // The loop decides, not what stands around it.
    EXPECT_EQ(Fetches("%f:f32 = const 1.0\n"
                      "%e:f32 = exp %f\n"
                      "%s:f32 = loop @0 (%k:i32 = %o, %sum:f32 = %e) {\n"
                      "    %c:bool = ult %k, %two\n"
                      "    if %c { yield } else { exit @0 %sum }\n"
                      "    %x:f32 = load_buffer %a, %k align(4)\n"
                      "    %more:f32 = fadd %sum, %x\n"
                      "    continue @0 %more\n"
                      "} continuing (%next:f32) {\n"
                      "    %l:i32 = iadd %k, %two\n"
                      "    next %l, %next\n"
                      "}\n"
                      "store_buffer %b, %zero, %s align(4)\n"),
              Count(0, 0));
}

}  // namespace
}  // namespace fornax::kernel
