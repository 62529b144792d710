// Which accesses prefetch lines.
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/kernel_harness.h"
#include "compiler/kernel/codegen/test_targets.h"
#include "compiler/kernel/ir/text.h"

namespace fornax::kernel {
namespace {

std::string LlvmIr(const std::string& body) {
    const std::string text =
        "kernel \"test\" workgroup_size(64, 1, 1) shared(256) push_constants(4) {\n"
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
    return native->llvm_ir();
}

// The number of requests for loads and for stores.
std::pair<size_t, size_t> Fetches(const std::string& body) {
    const std::string llvm_ir = LlvmIr(body);
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

// Two loops over a workgroup's row: the second prefetches the next workgroup's, which is as far as
// the push constant says.
std::string RowKernel(const std::string& row, const std::string& between) {
    auto loop = [](const std::string& name) {
        return "%" + name + ":f32 = loop @" + name.substr(1) + " (%k" + name + ":i32 = %start, %s" +
               name + ":f32 = %f) {\n" + "    %c" + name + ":bool = ult %k" + name + ", %end\n" +
               "    if %c" + name + " { yield } else { exit @" + name.substr(1) + " %s" + name +
               " }\n" + "    %x" + name + ":f32 = load_buffer %a, %k" + name + " align(4)\n" +
               "    %m" + name + ":f32 = fmax %s" + name + ", %x" + name + "\n" + "    continue @" +
               name.substr(1) + " %m" + name + "\n" + "} continuing (%n" + name + ":f32) {\n" +
               "    %l" + name + ":i32 = iadd %k" + name + ", %step\n" + "    next %l" + name +
               ", %n" + name + "\n}\n";
    };
    return "%length:i32 = load_push %zero align(4)\n"
           "%step:i32 = const 256\n"
           "%f:f32 = const 0.0\n" +
           row +
           "%start:i32 = iadd %first, %o\n"
           "%end:i32 = iadd %first, %length\n" +
           loop("p0") + "store_shared %o, %p0 align(4)\n" + between +
           "%s:f32 = load_shared %zero align(4)\n" + loop("p1") +
           "%r:f32 = fadd %s, %p1\n"
           "store_buffer %b, %zero, %r align(4)\n";
}

TEST(Fetch, TheNextWorkgroupsRow) {
    const std::string row =
        "%w:i32 = builtin workgroup_id_x\n"
        "%first:i32 = imul %w, %length\n";
    EXPECT_EQ(Fetches(RowKernel(row, "barrier\n")), Count(1, 0));
    // One row for all, and no region between which nothing is waited for.
    EXPECT_EQ(Fetches(RowKernel("%first:i32 = const 64\n", "barrier\n")), Count(0, 0));
    EXPECT_EQ(Fetches(RowKernel(row, "")), Count(0, 0));
}

// A workgroup's row of %a goes through a function to %b; then a second loop reads one of the two.
std::string WrittenRowKernel(const std::string& read, const std::string& between) {
    return "%length:i32 = load_push %zero align(4)\n"
           "%step:i32 = const 256\n"
           "%f:f32 = const 0.0\n"
           "%w:i32 = builtin workgroup_id_x\n"
           "%first:i32 = imul %w, %length\n"
           "%start:i32 = iadd %first, %o\n"
           "%end:i32 = iadd %first, %length\n"
           "loop @0 (%k:i32 = %start) {\n"
           "    %c:bool = ult %k, %end\n"
           "    if %c { yield } else { exit @0 }\n"
           "    %x:f32 = load_buffer %a, %k align(4)\n"
           "    %e:f32 = exp %x\n"
           "    store_buffer %b, %k, %e align(4)\n"
           "    continue @0\n"
           "} continuing () {\n"
           "    %l:i32 = iadd %k, %step\n"
           "    next %l\n"
           "}\n" +
           between +
           "%sum:f32 = loop @1 (%m:i32 = %start, %s:f32 = %f) {\n"
           "    %d:bool = ult %m, %end\n"
           "    if %d { yield } else { exit @1 %s }\n"
           "    %y:f32 = load_buffer " +
           read +
           ", %m align(4)\n"
           "    %more:f32 = fadd %s, %y\n"
           "    continue @1 %more\n"
           "} continuing (%next:f32) {\n"
           "    %n:i32 = iadd %m, %step\n"
           "    next %n, %next\n"
           "}\n"
           "store_shared %o, %sum align(4)\n";
}

// What the last loop over a row prefetches for the next workgroup, the loops before it need not,
// nor stores to it. It goes to the second cache, because the first one has this row.
TEST(Fetch, RowsThatWereWritten) {
    const std::string second_cache = "i32 0, i32 2, i32 1)";
    const std::string of_written = WrittenRowKernel("%b", "barrier\n");
    EXPECT_EQ(Fetches(of_written), Count(2, 0));
    EXPECT_NE(LlvmIr(of_written).find(second_cache), std::string::npos);
    EXPECT_EQ(Fetches(WrittenRowKernel("%a", "barrier\n")), Count(1, 1));
    // The next workgroup's row is not known to come.
    const std::string at_once = WrittenRowKernel("%b", "");
    EXPECT_EQ(Fetches(at_once), Count(1, 1));
    EXPECT_EQ(LlvmIr(at_once).find(second_cache), std::string::npos);
}

// A loop over tiles of 16 rows, and in it one over the rows of 512 bytes.
std::string TilesKernel(const std::string& between) {
    return "%one:i32 = const 1\n"
           "%sixteen:i32 = const 16\n"
           "%row:i32 = const 512\n"
           "%end:i32 = load_push %zero align(4)\n"
           "%f:f32 = const 0.0\n"
           "loop @0 (%t:i32 = %zero) {\n"
           "    %c:bool = ult %t, %end\n"
           "    if %c { yield } else { exit @0 }\n" +
           between +
           "    %s:f32 = loop @1 (%k:i32 = %zero, %sum:f32 = %f) {\n"
           "        %d:bool = ult %k, %sixteen\n"
           "        if %d { yield } else { exit @1 %sum }\n"
           "        %m:i32 = iadd %t, %k\n"
           "        %first:i32 = imul %m, %row\n"
           "        %p:i32 = iadd %first, %o\n"
           "        %x:f32 = load_buffer %a, %p align(4)\n"
           "        %more:f32 = fadd %sum, %x\n"
           "        continue @1 %more\n"
           "    } continuing (%next:f32) {\n"
           "        %l:i32 = iadd %k, %one\n"
           "        next %l, %next\n"
           "    }\n"
           "    store_shared %o, %s align(4)\n"
           "    continue @0\n"
           "} continuing () {\n"
           "    %u:i32 = iadd %t, %sixteen\n"
           "    next %u\n"
           "}\n";
}

TEST(Fetch, TheNextTilesRows) {
    EXPECT_EQ(Fetches(TilesKernel("    barrier\n")), Count(1, 0));
    EXPECT_NE(LlvmIr(TilesKernel("    barrier\n")).find("i64 8192"), std::string::npos);
    EXPECT_EQ(Fetches(TilesKernel("")), Count(0, 0));
}

// Rows of blocks that only one workgroup reads, found by speculation. The next workgroup's row may
// be any distance away, and this one too short for the processor to see it coming.
TEST(Fetch, RowsThatGoByOnce) {
    auto row = [](const std::string& first) {
        return "%length:i32 = load_push %zero align(4)\n"
               "%four:i32 = const 4\n" +
               first +
               "%sum:i32 = iadd %first, %i\n"
               "%block:i32 = lshr %sum, %two\n"
               "%from:i32 = shl %block, %four\n"
               "%p:f32, %q:f32, %r:f32, %s:f32 = load_buffer %a, %from align(4)\n"
               "store_shared %o, %p, %q align(4)\n";
    };
    const std::string in_x =
        "%w:i32 = builtin workgroup_id_x\n"
        "%first:i32 = imul %w, %length\n";
    const std::string in_y =
        "%w:i32 = builtin workgroup_id_y\n"
        "%first:i32 = imul %w, %length\n";
    const std::string usual_distance = "i64 4096";
    EXPECT_EQ(Fetches(row(in_x)), Count(1, 0));
    EXPECT_EQ(LlvmIr(row(in_x)).find(usual_distance), std::string::npos);
    // There is one in x; else neighbours in x read the same.
    EXPECT_EQ(Fetches(row(in_y)), Count(1, 0));
    EXPECT_NE(LlvmIr(row(in_y)).find(usual_distance), std::string::npos);
    EXPECT_EQ(Fetches(row("%x:i32 = builtin workgroup_id_x\n" + in_y)), Count(0, 0));
    // Nobody reads another row.
    EXPECT_EQ(Fetches(row("%first:i32 = iadd %length, %length\n")), Count(0, 0));
    // What another dimension decides in a branch is no distance in x.
    const std::string branch =
        "%y:i32 = builtin workgroup_id_y\n"
        "%c:bool = ine %y, %zero\n"
        "%plane:i32 = if %c { %t:i32 = imul %y, %length\n yield %t } else { yield %zero }\n"
        "%w:i32 = builtin workgroup_id_x\n"
        "%line:i32 = imul %w, %length\n"
        "%first:i32 = iadd %plane, %line\n";
    EXPECT_EQ(Fetches(row(branch)), Count(1, 0));
    EXPECT_EQ(LlvmIr(row(branch)).find(usual_distance), std::string::npos);
}

// What follows MMAs prefetches what the next workgroup accesses, where that is known; the
// products' own loop does not.
TEST(Fetch, WhatFollowsProducts) {
    const auto list = [](const std::string& name, const std::string& type) {
        std::string text;
        for (int i = 0; i < 8; ++i) {
            text += (i == 0 ? "%" : ", %") + name + std::to_string(i) + type;
        }
        return text;
    };
    std::string zeros;
    for (int i = 0; i < 8; ++i) {
        zeros += "%f" + std::to_string(i) + ":f32 = const 0.0\n";
    }
    const auto kernel = [&](const std::string& product) {
        const std::string text =
            "kernel \"test\" workgroup_size(32, 1, 1) subgroup_size(32) push_constants(4) {\n"
            "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
            "binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n"
            "body {\n"
            "%zero:i32 = const 0\n"
            "%two:i32 = const 2\n"
            "%b:buffer = buffer 1, %zero\n"
            "%length:i32 = load_push %zero align(4)\n"
            "%i:i32 = builtin local_id_x\n"
            "%o:i32 = shl %i, %two\n" +
            zeros + product +
            "%w:i32 = builtin workgroup_id_x\n"
            "%tile:i32 = urem %w, %two\n"
            "%first:i32 = imul %tile, %length\n"
            "%at:i32 = iadd %first, %o\n"
            "store_buffer %b, %at, %f0 align(4)\n"
            "return\n}\n}\n";
        Result<ir::Kernel> parsed = ir::ParseKernel(text);
        EXPECT_TRUE(parsed.ok()) << parsed.error().message;
        Result<RunnableKernel> native = RunnableKernel::Create(*parsed, 0);
        EXPECT_TRUE(native.ok()) << native.error().message;
        return native->llvm_ir();
    };
    const std::string product = list("r", ":f32") + " = matrix_muladd 32, " + list("f", "") + ", " +
                                list("f", "") + ", " + list("f", "") + "\n";
    const std::string usual_distance = "i64 4096";
    EXPECT_NE(kernel("").find(usual_distance), std::string::npos);
    EXPECT_EQ(kernel(product).find(usual_distance), std::string::npos);
    EXPECT_NE(kernel(product).find(", i32 1, i32 3, i32 1)"), std::string::npos);
}

// Rows of a workgroup share what may be prefetched at a time.
TEST(Fetch, RowsOfAWorkgroup) {
    const auto llvm_ir = [](const std::string& size) {
        const std::string text = "kernel \"test\" workgroup_size(" + size +
                                 ") subgroup_size(16) push_constants(4) {\n"
                                 "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
                                 "body {\n"
                                 "%zero:i32 = const 0\n"
                                 "%two:i32 = const 2\n"
                                 "%b:buffer = buffer 0, %zero\n"
                                 "%pitch:i32 = load_push %zero align(4)\n"
                                 "%x:i32 = builtin local_id_x\n"
                                 "%y:i32 = builtin local_id_y\n"
                                 "%row:i32 = imul %y, %pitch\n"
                                 "%column:i32 = shl %x, %two\n"
                                 "%at:i32 = iadd %row, %column\n"
                                 "store_buffer %b, %at, %x align(4)\n"
                                 "return\n}\n}\n";
        const Result<ir::Kernel> parsed = ir::ParseKernel(text);
        EXPECT_TRUE(parsed.ok()) << parsed.error().message;
        const Result<RunnableKernel> native = RunnableKernel::Create(*parsed, 16);
        EXPECT_TRUE(native.ok()) << native.error().message;
        return native->llvm_ir();
    };
    EXPECT_NE(llvm_ir("16, 1, 1").find(", i64 4096"), std::string::npos);
    EXPECT_NE(llvm_ir("16, 16, 1").find(", i64 512"), std::string::npos);
    EXPECT_NE(llvm_ir("16, 8, 8").find(", i64 256"), std::string::npos);
}

TEST(Fetch, RowsOfLanesThatRunThroughMemory) {
    // 32 bytes of every 64: each line once.
    EXPECT_EQ(Fetches("%four:i32 = const 4\n"
                      "%p:i32 = shl %o, %four\n"
                      "store_buffer %b, %p, %i, %i, %i, %i, %i, %i, %i, %i align(4)\n"),
              Count(0, 16));
}

// Writes its index to each element of the second buffer, from one on.
Result<RunnableKernel> Writer(const std::string& before,
                              uint32_t lanes,
                              const std::string& cpu,
                              bool narrow = false) {
    const std::string text =
        "kernel \"test\" workgroup_size(256, 1, 1) push_constants(4) {\n"
        "binding 0: storage_buffer set(0) binding(0) count(1) offset(0)\n"
        "binding 1: storage_buffer set(0) binding(1) count(1) offset(16)\n"
        "body {\n"
        "%zero:i32 = const 0\n"
        "%two:i32 = const 2\n"
        "%width:i32 = const 256\n"
        "%b:buffer = buffer 1, %zero\n" +
        before +
        "%i:i32 = builtin local_id_x\n"
        "%w:i32 = builtin workgroup_id_x\n"
        "%start:i32 = imul %w, %width\n"
        "%index:i32 = iadd %start, %i\n"
        "%skip:i32 = load_push %zero align(4)\n"
        "%at:i32 = iadd %index, %skip\n" +
        (narrow ? "%one:i32 = const 1\n"
                  "%o:i32 = shl %at, %one\n"
                  "%short:i16 = trunc %index\n"
                  "%value:f16 = bitcast %short\n"
                  "store_buffer %b, %o, %value align(2)\n"
                : "%o:i32 = shl %at, %two\n"
                  "store_buffer %b, %o, %index align(4)\n") +
        "return\n}\n}\n";
    FORNAX_ASSIGN_OR_RETURN(const ir::Kernel kernel, ir::ParseKernel(text));
    return RunnableKernel::Create(kernel, lanes, cpu);
}

TEST(Stream, LargeBuffersArePassedToMemory) {
    constexpr uint32_t kWords = 9u << 20;  // 36 MiB
    for (uint32_t lanes : {0u, 8u, 16u, 64u}) {
        for (const std::string& cpu : TestCpus()) {
            Result<RunnableKernel> native = Writer("", lanes, cpu);
            ASSERT_TRUE(native.ok()) << native.error().message;
            // Whole lines may be stored without the caches; 16 lanes of 32 bits are one.
            EXPECT_EQ(native->llvm_ir().find("!nontemporal") != std::string::npos,
                      native->lanes() >= 16);
            EXPECT_EQ(native->llvm_ir().find("sfence") != std::string::npos, native->lanes() >= 16);
            for (uint32_t skip : {0u, 1u, 16u}) {
                std::vector<std::vector<uint32_t>> buffers = {{1, 2}, {}};
                buffers[1].assign(kWords, 7);
                const uint32_t groups[3] = {kWords / 256 - 1, 1, 1};
                Status status = native->Run(buffers, {skip}, groups);
                ASSERT_TRUE(status.ok()) << status.error().message;
                const uint32_t written = groups[0] * 256;
                uint32_t wrong = 0;
                for (uint32_t i = 0; i < kWords; ++i) {
                    const bool inside = i >= skip && i < skip + written;
                    wrong += buffers[1][i] != (inside ? i - skip : 7);
                }
                EXPECT_EQ(wrong, 0u) << lanes << " lanes, " << cpu << ", skip " << skip;
            }
        }
    }
}

TEST(Stream, HalvesToo) {
    constexpr uint32_t kWords = 9u << 20;
    for (const std::string& cpu : TestCpus()) {
        Result<RunnableKernel> native = Writer("", 64, cpu, true);
        ASSERT_TRUE(native.ok()) << native.error().message;
        EXPECT_NE(native->llvm_ir().find("!nontemporal"), std::string::npos);
        std::vector<std::vector<uint32_t>> buffers = {{1, 2}, {}};
        buffers[1].assign(kWords, 7);
        Status status = native->Run(buffers, {0}, {2 * kWords / 256, 1, 1});
        ASSERT_TRUE(status.ok()) << status.error().message;
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < kWords; ++i) {
            wrong += buffers[1][i] != (((2 * i) & 0xffff) | ((2 * i + 1) << 16));
        }
        EXPECT_EQ(wrong, 0u) << cpu;
    }
}

TEST(Stream, NotWhatOthersMayWaitForOrTheKernelReads) {
    auto streams = [](const std::string& before) {
        Result<RunnableKernel> native = Writer(before, 32, "");
        if (!native.ok()) {
            ADD_FAILURE() << native.error().message;
            return false;
        }
        return native->llvm_ir().find("!nontemporal") != std::string::npos;
    };
    EXPECT_TRUE(
        streams("%a:buffer = buffer 0, %zero\n"
                "%x:i32 = load_buffer %a, %zero align(4)\n"));
    EXPECT_FALSE(streams("%x:i32 = load_buffer %b, %zero align(4)\n"));
    EXPECT_FALSE(streams("memory_barrier\n"));
    EXPECT_FALSE(
        streams("%a:buffer = buffer 0, %zero\n"
                "%x:i32 = load_buffer %a, %zero align(4) volatile\n"));
    const std::string matrix =
        "%m0:f32, %m1:f32, %m2:f32, %m3:f32, %m4:f32, %m5:f32, %m6:f32, %m7:f32 = matrix_load ";
    EXPECT_TRUE(streams("%a:buffer = buffer 0, %zero\n" + matrix + "%a, %zero, %width align(4)\n"));
    EXPECT_FALSE(streams(matrix + "%b, %zero, %width align(4)\n"));
}

}  // namespace
}  // namespace fornax::kernel
