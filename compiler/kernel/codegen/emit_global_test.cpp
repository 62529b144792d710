// Device addresses, buffers that differ between lanes and atomics on one address, run natively at
// every width.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %li:i32 = builtin local_index
    %own:i32 = shl %li, %two
    %wide:i64 = zext %own
    %from:i64 = buffer_address %in
    %to:i64 = buffer_address %out
)";

ir::Kernel Parse(const std::string& attributes, const std::string& body) {
    return TwoBufferKernel(attributes, kPrologue, body + "    return\n");
}

std::vector<uint32_t> Mixed(uint32_t count) {
    std::vector<uint32_t> words(count);
    for (uint32_t i = 0; i < count; ++i) {
        words[i] = i * 2654435761u >> 7;
    }
    return words;
}

// 61 invocations: the last vector has lanes that nothing may be read for.
TEST(EmitGlobal, AddressesWithLaneConstantsAreVectors) {
    ir::Kernel kernel = Parse("workgroup_size(61, 1, 1)", R"(
    %a:i64 = iadd %from, %wide
    %b:i64 = iadd %to, %wide
    %v:i32 = load_global %a align(4)
    store_global %b, %v align(4)
)");
    const std::vector<uint32_t> in = Mixed(61);
    ForEachWidth(kernel, {in, std::vector<uint32_t>(61)}, {},
                 [&](const Buffers& b) { EXPECT_EQ(b[1], in); });
    for (uint32_t lanes : {4u, 8u, 16u, 32u, 64u}) {
        Result<RunnableKernel> native = RunnableKernel::Create(kernel, lanes);
        ASSERT_TRUE(native.ok()) << native.error().message;
        EXPECT_EQ(native->llvm_ir().find("masked.gather"), std::string::npos) << lanes;
        EXPECT_EQ(native->llvm_ir().find("masked.scatter"), std::string::npos) << lanes;
    }
}

// Runs that are loaded as words are taken apart under a mask as well.
TEST(EmitGlobal, NarrowRunsFarApartUnderAMask) {
    ir::Kernel kernel = Parse("workgroup_size(61, 1, 1)", R"(
    %l:i64 = zext %own
    %four:i64 = const 4
    %m:i64 = imul %l, %four
    %a:i64 = iadd %from, %m
    %v:i16, %w:i16, %x:i16, %y:i16 = load_global %a align(2)
    %b:i64 = iadd %to, %wide
    store_global %b, %y, %w align(2)
)");
    const std::vector<uint32_t> in = Mixed(61 * 4);
    ForEachWidth(kernel, {in, std::vector<uint32_t>(61)}, {}, [&](const Buffers& b) {
        for (uint32_t i = 0; i < 61; ++i) {
            ASSERT_EQ(b[1][i], in[4 * i + 1] >> 16 | (in[4 * i] & 0xffff0000u)) << i;
        }
    });
}

TEST(EmitGlobal, NarrowElementsAtVaryingAddresses) {
    ir::Kernel kernel = Parse("workgroup_size(64, 1, 1)", R"(
    %prime:i64 = const 37
    %mask:i64 = const 255
    %m:i64 = imul %wide, %prime
    %n:i64 = and %m, %mask
    %a:i64 = iadd %from, %n
    %v:i8 = load_global %a align(1)
    %four:i64 = const 2
    %li64:i64 = zext %li
    %l:i64 = xor %li64, %four
    %b:i64 = iadd %to, %l
    store_global %b, %v align(1)
)");
    const std::vector<uint32_t> in = Mixed(64);
    const auto* bytes = reinterpret_cast<const uint8_t*>(in.data());
    ForEachWidth(kernel, {in, std::vector<uint32_t>(16)}, {}, [&](const Buffers& b) {
        const auto* out = reinterpret_cast<const uint8_t*>(b[1].data());
        for (uint32_t i = 0; i < 64; ++i) {
            ASSERT_EQ(out[i ^ 2], bytes[(i * 4 * 37) & 255]) << i;
        }
    });
}

// Odd invocations have `in`, of 40 words, even ones `out`; what is outside reads 0.
TEST(EmitGlobal, BuffersThatDifferBetweenLanes) {
    ir::Kernel kernel = Parse("workgroup_size(64, 1, 1) robust", R"(
    %one:i32 = const 1
    %bit:i32 = and %li, %one
    %odd:bool = ine %bit, %zero
    %size0:i64 = buffer_size %in
    %size1:i64 = buffer_size %out
    %address:i64 = select %odd, %from, %to
    %size:i64 = select %odd, %size0, %size1
    %mine:buffer = buffer_from %address, %size
    %v:i32, %w:i32 = load_buffer %mine, %own align(4)
    %sum:i32 = iadd %v, %w
    %bytes:i32 = buffer_size %mine
    %all:i32 = iadd %sum, %bytes
    %far:i32 = const 400
    %o:i32 = iadd %own, %far
    store_buffer %mine, %o, %all align(4)
    store_buffer %out, %o, %all align(4)
    %place:i32 = const 396
    %old:i32 = atomic_buffer add, %mine, %place, %one
)");
    Buffers buffers = {std::vector<uint32_t>(40), std::vector<uint32_t>(164)};
    std::iota(buffers[0].begin(), buffers[0].end(), 5000u);
    std::iota(buffers[1].begin(), buffers[1].begin() + 99, 1000u);
    ForEachWidth(kernel, buffers, {}, [&](const Buffers& b) {
        const auto in = [](uint32_t k) { return k < 40 ? 5000 + k : 0; };
        const auto out = [](uint32_t k) { return k < 99 ? 1000 + k : 0; };
        for (uint32_t i = 0; i < 64; ++i) {
            const uint32_t sum = i & 1 ? in(i) + in(i + 1) + 160 : out(i) + out(i + 1) + 656;
            ASSERT_EQ(b[1][100 + i], sum) << i;
        }
        EXPECT_EQ(b[1][99], 32u);  // the even invocations' counter
        EXPECT_EQ(b[0], buffers[0]);
    });
}

// In the order of lanes each one sees what those before it left.
TEST(EmitGlobal, OneAddressGivesEachLaneItsOldValue) {
    using Step = uint32_t (*)(uint32_t, uint32_t);
    const std::pair<const char*, Step> kOperations[] = {
        {"add", [](uint32_t a, uint32_t b) { return a + b; }},
        {"sub", [](uint32_t a, uint32_t b) { return a - b; }},
        {"umin", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
        {"smax",
         [](uint32_t a, uint32_t b) {
             return static_cast<uint32_t>(
                 std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)));
         }},
        {"or", [](uint32_t a, uint32_t b) { return a | b; }},
        {"xor", [](uint32_t a, uint32_t b) { return a ^ b; }},
        {"exchange", [](uint32_t, uint32_t b) { return b; }},
    };
    const std::vector<uint32_t> in = Mixed(61);
    for (auto [name, step] : kOperations) {
        for (bool shared : {false, true}) {
            SCOPED_TRACE(testing::Message() << name << (shared ? " in workgroup memory" : ""));
            const std::string place = shared ? "atomic_shared " : "atomic_buffer ";
            const std::string where = shared ? ", %zero, %v\n" : ", %out, %zero, %v\n";
            ir::Kernel kernel = Parse("workgroup_size(61, 1, 1) shared(64) zero_shared", R"(
    %three:i32 = const 3
    %third:i32 = urem %li, %three
    %some:bool = ine %third, %zero
    %v:i32 = load_buffer %in, %own align(4)
    %four:i32 = const 4
    %o:i32 = iadd %own, %four
    if %some {
        %old:i32 = )" + place + name + where + R"(
        store_buffer %out, %o, %old align(4)
        yield
    } else {
        yield
    }
)");
            uint32_t value = 0;
            std::vector<uint32_t> expected(62);
            for (uint32_t i = 0; i < 61; ++i) {
                if (i % 3 == 0) {
                    continue;
                }
                expected[i + 1] = value;
                value = step(value, in[i]);
            }
            ForEachWidth(kernel, {in, std::vector<uint32_t>(62)}, {}, [&](const Buffers& b) {
                for (uint32_t i = 0; i < 61; ++i) {
                    ASSERT_EQ(b[1][i + 1], expected[i + 1]) << i;
                }
                if (!shared) {
                    EXPECT_EQ(b[1][0], value);
                }
            });
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
