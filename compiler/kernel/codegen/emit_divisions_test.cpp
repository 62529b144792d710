// Indices that are taken apart by sizes known at run time only, in the two forms that
// VersionDivisions makes: for rows that vectors fit into and for others, natively at every width.
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/two_buffer_kernel.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

// %i counts from push constant 0 on, so that it may wrap.
constexpr char kPrologue[] = R"(
    %wx:i32 = builtin workgroup_id_x
    %li:i32 = builtin local_index
    %size:i32 = const 64
    %four:i32 = const 4
    %eight:i32 = const 8
    %twelve:i32 = const 12
    %start:i32 = load_push %zero align(4)
    %s:i32 = load_push %four align(4)
    %n:i32 = load_push %eight align(4)
    %t:i32 = load_push %twelve align(4)
    %place0:i32 = imul %wx, %size
    %place:i32 = iadd %place0, %li
    %near:i32 = shl %place, %two
    %i:i32 = iadd %place, %start
)";

ir::Kernel Versioned(const std::string& body) {
    ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(16) robust", kPrologue, body);
    EXPECT_TRUE(VersionDivisions(kernel));
    Simplify(kernel);
    kernel.Compact();
    EXPECT_TRUE(ir::Verify(kernel).ok());
    return kernel;
}

struct Sizes {
    uint32_t start;
    uint32_t row;
    uint32_t count;
    uint32_t factor;
};

// out[place] = f(i) for i < count.
void Expect(const ir::Kernel& kernel, const Sizes& at, uint32_t (*wanted)(uint32_t, const Sizes&)) {
    SCOPED_TRACE(testing::Message() << "from " << at.start << ", rows of " << at.row << ", below "
                                    << at.count << ", factor " << at.factor);
    constexpr uint32_t kPlaces = 192;
    ForEachWidth(kernel, {Counting(256), std::vector<uint32_t>(kPlaces, 7)},
                 {.groups = {3, 1, 1}, .push_constants = {at.start, at.row, at.count, at.factor}},
                 [&](const Buffers& results) {
                     for (uint32_t place = 0; place < kPlaces; ++place) {
                         const uint32_t i = place + at.start;
                         const uint32_t should = i < at.count ? wanted(i, at) : 7;
                         ASSERT_EQ(results[1][place], should) << "at " << place;
                     }
                 });
}

constexpr Sizes kSizes[] = {{0, 64, 190, 3},
                            {5, 100, 197, 1},
                            {0, 7, 150, 5},
                            {0, 1000, 192, 2},
                            {0xffffff80u, 64, 60, 1}};

TEST(EmitDivisions, RowsAndPlacesInThem) {
    const ir::Kernel kernel = Versioned(R"(
    scope @0 {
      %out_of:bool = ule %n, %i
      if %out_of { exit @0 }
      %less:bool = ult %i, %s
      %q:i32 = if %less { yield %zero } else { %d:i32 = udiv %i, %s yield %d }
      %whole:i32 = imul %q, %s
      %r:i32 = isub %i, %whole
      %from0:i32 = imul %r, %t
      %from1:i32 = iadd %from0, %q
      %from:i32 = shl %from1, %two
      %v:i32 = load_buffer %in, %from align(4)
      store_buffer %out, %near, %v align(4)
      yield
    }
    return
)");
    for (const Sizes& at : kSizes) {
        Expect(kernel, at, [](uint32_t i, const Sizes& of) {
            const uint32_t word = (i % of.row * of.factor + i / of.row) & 0x3fffffffu;
            return word < 256 ? 100 + word : 0;
        });
    }
}

TEST(EmitDivisions, RemaindersOfRemainders) {
    const ir::Kernel kernel = Versioned(R"(
    %inside:bool = ult %i, %n
    if %inside {
      %r:i32 = urem %i, %s
      %minus:i32 = const -1
      %m:i32 = scope @0 {
        %t1:i32 = iadd %t, %minus
        %b:i32 = and %t, %t1
        %power:bool = ieq %b, %zero
        if %power { %a:i32 = and %r, %t1 exit @0 %a }
        %u:i32 = urem %r, %t
        yield %u
      }
      %q:i32 = udiv %r, %t
      %sixteen:i32 = const 16
      %up:i32 = shl %q, %sixteen
      %v:i32 = iadd %up, %m
      store_buffer %out, %near, %v align(4)
      yield
    }
    return
)");
    for (const Sizes& of : kSizes) {
        Sizes at = of;
        at.factor = of.factor * 16;
        Expect(kernel, at, [](uint32_t i, const Sizes& by) {
            const uint32_t r = i % by.row;
            return (r / by.factor << 16) + r % by.factor;
        });
    }
}

// As compilers and libraries divide by numbers that come with their inverse.
TEST(EmitDivisions, ByAnInverse) {
    const ir::Kernel kernel = Versioned(R"(
    %inside:bool = ult %i, %n
    if %inside {
      %low:i32, %high:i32 = umul_extended %i, %s
      %sum:i32 = iadd %i, %high
      %q:i32 = lshr %sum, %t
      %up:i32 = shl %q, %eight
      %v:i32 = iadd %up, %i
      store_buffer %out, %near, %v align(4)
      yield
    }
    return
)");
    for (const Sizes& at :
         {Sizes{0, 0, 192, 6}, Sizes{0, 0x80000001u, 192, 6}, Sizes{3, 0, 180, 3},
          Sizes{0xffffff80u, 0xffffffffu, 0xffffffffu, 7}, Sizes{0, 0x47ae147bu, 192, 6}}) {
        Expect(kernel, at, [](uint32_t i, const Sizes& of) {
            const auto high = static_cast<uint32_t>(uint64_t{i} * of.row >> 32);
            return (((i + high) >> of.factor) << 8) + i;
        });
    }
}

TEST(EmitDivisions, SignedNumbers) {
    const ir::Kernel kernel = Versioned(R"(
    %inside:bool = slt %i, %n
    if %inside {
      %q:i32 = sdiv %i, %s
      %r:i32 = srem %i, %s
      %up:i32 = shl %q, %eight
      %v:i32 = iadd %up, %r
      store_buffer %out, %near, %v align(4)
      yield
    }
    return
)");
    for (const Sizes& of : kSizes) {
        SCOPED_TRACE(testing::Message() << "from " << of.start << ", rows of " << of.row);
        ForEachWidth(kernel, {Counting(1), std::vector<uint32_t>(192, 7)},
                     {.groups = {3, 1, 1}, .push_constants = {of.start, of.row, of.count, 0}},
                     [&](const Buffers& results) {
                         for (uint32_t place = 0; place < 192; ++place) {
                             const auto i = static_cast<int32_t>(place + of.start);
                             const auto row = static_cast<int32_t>(of.row);
                             const uint32_t should = i < static_cast<int32_t>(of.count)
                                                         ? (static_cast<uint32_t>(i / row) << 8) +
                                                               static_cast<uint32_t>(i % row)
                                                         : 7;
                             ASSERT_EQ(results[1][place], should) << "at " << place;
                         }
                     });
    }
}

// Lanes that go backwards in what is left of a division.
TEST(EmitDivisions, ProductsByNegativeNumbers) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(16) robust", kPrologue, R"(
    %minus:i32 = const -1
    %last:i32 = const 99
    %rest:i32 = urem %i, %s
    %back:i32 = imul %rest, %minus
    %element:i32 = iadd %back, %last
    %from:i32 = shl %element, %two
    %v:i32 = load_buffer %in, %from align(4)
    store_buffer %out, %near, %v align(4)
    return
)");
    for (const uint32_t size : {64u, 100u, 48u, 7u}) {
        std::vector<uint32_t> wanted;
        for (uint32_t i = 0; i < 128; ++i) {
            wanted.push_back(Counting(100)[99 - i % size]);
        }
        ForEachWidth(kernel, {Counting(100), std::vector<uint32_t>(128, 7)},
                     {.groups = {2, 1, 1}, .push_constants = {0, size, 0, 0}},
                     [&](const Buffers& results) { ASSERT_EQ(results[1], wanted); });
    }
}

// Quotients where rounding could take the next integer, by a divisor that is the same for all
// lanes.
TEST(EmitDivisions, ByUniformValuesAreExact) {
    constexpr char kBody[] = R"(
    %at:i32 = shl %i, %two
    %x:i32 = load_buffer %in, %at align(4)
    %q:i32 = OP %x, %s
    store_buffer %out, %at, %q align(4)
    return
)";
    const uint32_t most = std::numeric_limits<uint32_t>::max();
    for (const bool is_signed : {false, true}) {
        std::string body = kBody;
        body.replace(body.find("OP"), 2, is_signed ? "sdiv" : "udiv");
        const ir::Kernel kernel =
            TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kInvocationsOf64, body);
        for (const uint32_t divisor : {1u, 2u, 3u, 7u, 641u, 65535u, 65536u, 0x10001u, 0x7fffffffu,
                                       0x80000001u, most - 1, most}) {
            std::vector<uint32_t> in;
            for (uint32_t i = 0; i < 64; ++i) {
                // Multiples of the divisor, and one less and more; the largest multiples at the
                // end.
                const uint64_t multiple = i < 32 ? i / 3 : uint64_t{most} / divisor - (i - 32) / 3;
                in.push_back(static_cast<uint32_t>(multiple * divisor + i % 3 - 1));
            }
            if (is_signed) {
                in[5] = 0x80000001u;
            }
            ForEachWidth(kernel, {in, std::vector<uint32_t>(64, 7)}, {.push_constants = {divisor}},
                         [&](const Buffers& results) {
                             for (uint32_t i = 0; i < 64; ++i) {
                                 uint32_t wanted = in[i] / divisor;
                                 if (is_signed) {
                                     const auto x = static_cast<int32_t>(in[i]);
                                     const auto d = static_cast<int32_t>(divisor);
                                     if (d == -1 && x == std::numeric_limits<int32_t>::min()) {
                                         continue;
                                     }
                                     wanted = static_cast<uint32_t>(x / d);
                                 }
                                 ASSERT_EQ(results[1][i], wanted) << in[i] << " / " << divisor;
                             }
                         });
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
