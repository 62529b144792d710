// Runs of words at places that no pattern tells, loaded and stored a lane at a time: under masks,
// across the end of robust buffers, in workgroup memory, at device addresses.
#include <gtest/gtest.h>

#include "compiler/kernel/codegen/two_buffer_kernel.h"

namespace fornax::kernel {
namespace {

constexpr uint32_t kLanes = 64;
constexpr uint32_t kWords = 9 * kLanes;

// The words of in[] are: where each lane reads, where it writes, data. All in bytes.
constexpr char kPrologue[] = R"(
    %li:i32 = builtin local_index
    %limit:i32 = load_push %zero align(4)
    %slot:i32 = shl %li, %two
    %half:i32 = const 256
    %later:i32 = iadd %slot, %half
    %from:i32 = load_buffer %in, %slot align(4)
    %to:i32 = load_buffer %in, %later align(4)
    %is_here:bool = ult %from, %limit
)";

// "%v0:i32, %v1:i32", for instance.
std::string Names(const std::string& name, uint32_t count, const char* type, bool is_reversed) {
    std::string names;
    for (uint32_t i = 0; i < count; ++i) {
        names += (i ? ", %" : "%") + name + std::to_string(is_reversed ? count - 1 - i : i) + type;
    }
    return names;
}

// A run is stored with its words in the other order.
std::string Moves(uint32_t count, const std::string& load, const std::string& store) {
    return Names("v", count, ":i32", false) + " = " + load + " align(4)\n" + store + ", " +
           Names("v", count, "", true) + " align(4)\n";
}

struct Places {
    std::vector<uint32_t> in = Counting(kWords);
    std::vector<uint32_t> out = std::vector<uint32_t>(kWords, 7);

    // Runs of `count` words, `first_from` and more words from the beginning, in no order; lanes
    // write to different words.
    Places(uint32_t count, uint32_t first_from, uint32_t first_to) {
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
            in[lane] = 4 * (first_from + lane * 29 % 61);
            in[kLanes + lane] = 4 * (first_to + lane * 37 % kLanes * count);
        }
    }

    std::vector<uint32_t> Expected(uint32_t count, uint32_t limit) const {
        std::vector<uint32_t> expected = out;
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
            for (uint32_t i = 0; i < count && in[lane] < limit; ++i) {
                const uint32_t from = in[lane] / 4 + count - 1 - i;
                const uint32_t to = in[kLanes + lane] / 4 + i;
                if (to < expected.size()) {
                    expected[to] = from < in.size() ? in[from] : 0;
                }
            }
        }
        return expected;
    }
};

constexpr uint32_t kCounts[] = {3, 4, 8};
constexpr uint32_t kAll = ~0u;

void CheckMoves(const std::string& attributes,
                const std::string& load,
                const std::string& store,
                const Places& places,
                uint32_t count,
                uint32_t limit) {
    SCOPED_TRACE(testing::Message() << attributes << ": " << count << " words below " << limit);
    const ir::Kernel kernel = TwoBufferKernel(
        "workgroup_size(64, 1, 1) push_constants(4) " + attributes, kPrologue,
        "if %is_here {\n" + Moves(count, load, store) + "yield\n} else {\nyield\n}\nreturn\n");
    const std::vector<uint32_t> expected = places.Expected(count, limit);
    ForEachWidth(kernel, {places.in, places.out}, {.push_constants = {limit}},
                 [&](const Buffers& b) { EXPECT_EQ(b[1], expected); });
}

TEST(EmitLaneRows, LanesThatAreNotThereTouchNothing) {
    for (const uint32_t count : kCounts) {
        Places places(count, 2 * kLanes, 0);
        for (const uint32_t limit : {kAll, 4 * (2 * kLanes + 30), 0u}) {
            // Places of lanes that are not there are nowhere.
            Places some = places;
            for (uint32_t lane = 0; lane < kLanes; ++lane) {
                if (some.in[lane] >= limit) {
                    some.in[lane] = 0xf0000000u;
                    some.in[kLanes + lane] = 0xf0000000u;
                }
            }
            CheckMoves("", "load_buffer %in, %from", "store_buffer %out, %to", some, count, limit);
        }
    }
}

// Runs that cross the end of the buffers, and such that are behind it.
TEST(EmitLaneRows, WordsOfRobustBuffers) {
    for (const uint32_t count : {3u, 4u}) {
        for (const uint32_t limit : {kAll, 4 * (kWords - 20)}) {
            CheckMoves("robust", "load_buffer %in, %from", "store_buffer %out, %to",
                       Places(count, kWords - 40, kWords - 31 * count - 1), count, limit);
            CheckMoves("robust", "load_buffer %in, %from", "store_buffer %out, %to",
                       Places(count, 2 * kLanes, 0), count, limit);
        }
    }
}

// Offsets are of 32 bits: a run that begins below 0 ends at the beginning of the buffer. So do
// runs of stores, and runs at places that follow a pattern.
TEST(EmitLaneRows, RunsComeRoundInRobustBuffers) {
    for (const uint32_t count : {2u, 3u, 4u}) {
        Places places(count, 2 * kLanes, 0);
        for (uint32_t lane = 5; lane < kLanes; lane += 7) {
            places.in[lane] = 0u - 4 * (1 + lane % count);
        }
        places.in[kLanes + 9] = 0u - 4;
        const std::string load = "load_buffer %in, ";
        for (const bool has_pattern : {false, true}) {
            std::vector<uint32_t> expected = places.out;
            for (uint32_t lane = 0; lane < kLanes; ++lane) {
                const uint32_t begin = has_pattern ? (lane * count - 1) * 4 : places.in[lane];
                for (uint32_t i = 0; i < count; ++i) {
                    const uint32_t from = (begin + 4 * (count - 1 - i)) / 4;
                    const uint32_t to = (places.in[kLanes + lane] + 4 * i) / 4;
                    if (to < expected.size()) {
                        expected[to] = from < places.in.size() ? places.in[from] : 0;
                    }
                }
            }
            SCOPED_TRACE(testing::Message() << count << (has_pattern ? ", a pattern" : ""));
            const std::string stride = "%stride:i32 = const " + std::to_string(count * 4) +
                                       "\n%rows:i32 = imul %li, %stride\n%word:i32 = const "
                                       "4\n%start:i32 = isub %rows, %word\n";
            const ir::Kernel kernel =
                TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4) robust", kPrologue,
                                stride +
                                    Moves(count, load + (has_pattern ? "%start" : "%from"),
                                          "store_buffer %out, %to") +
                                    "return\n");
            ForEachWidth(kernel, {places.in, places.out}, {.push_constants = {kAll}},
                         [&](const Buffers& b) { EXPECT_EQ(b[1], expected); });
        }
    }
}

TEST(EmitLaneRows, DeviceAddresses) {
    constexpr char kLoad[] = "load_global %a";
    for (const uint32_t count : {3u, 4u}) {
        Places places(count, 2 * kLanes, 0);
        const std::string body =
            "%ibase:i64 = buffer_address %in\n%obase:i64 = buffer_address %out\n"
            "%f:i64 = zext %from\n%t:i64 = zext %to\n"
            "%a:i64 = iadd %ibase, %f\n%b:i64 = iadd %obase, %t\nif %is_here {\n" +
            Moves(count, kLoad, "store_global %b") + "yield\n} else {\nyield\n}\nreturn\n";
        const ir::Kernel kernel =
            TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPrologue, body);
        for (const uint32_t limit : {kAll, 4 * (2 * kLanes + 30)}) {
            const std::vector<uint32_t> expected = places.Expected(count, limit);
            ForEachWidth(kernel, {places.in, places.out}, {.push_constants = {limit}},
                         [&](const Buffers& b) { EXPECT_EQ(b[1], expected); });
        }
    }
}

// Each lane writes a run and reads that of another, in words that nothing knows.
TEST(EmitLaneRows, WorkgroupMemory) {
    for (const uint32_t count : kCounts) {
        const Places places(count, 2 * kLanes, 0);
        const std::string shared = std::to_string(kLanes * count * 4);
        const ir::Kernel kernel = TwoBufferKernel(
            "workgroup_size(64, 1, 1) push_constants(4) shared(" + shared + ")", kPrologue,
            Moves(count, "load_buffer %in, %from", "store_shared %to") + R"(
    barrier
    %last:i32 = const 508
    %at:i32 = isub %last, %slot
    %there:i32 = load_buffer %in, %at align(4)
)" + Names("w", count, ":i32", false) +
                " = load_shared %there align(4)\nstore_buffer %out, %there, " +
                Names("w", count, "", false) + " align(4)\nreturn\n");
        const std::vector<uint32_t> expected = places.Expected(count, kAll);
        ForEachWidth(kernel, {places.in, places.out}, {},
                     [&](const Buffers& b) { EXPECT_EQ(b[1], expected); });
    }
}

TEST(EmitLaneRows, NothingIsGathered) {
    const ir::Kernel kernel =
        TwoBufferKernel("workgroup_size(64, 1, 1) push_constants(4)", kPrologue,
                        Moves(4, "load_buffer %in, %from", "store_buffer %out, %to") + "return\n");
    for (const uint32_t lanes : {16u, 32u}) {
        Result<RunnableKernel> native = RunnableKernel::Create(kernel, lanes);
        ASSERT_TRUE(native.ok()) << native.error().message;
        EXPECT_EQ(native->llvm_ir().find("masked.gather"), std::string::npos);
        EXPECT_EQ(native->llvm_ir().find("masked.scatter"), std::string::npos);
    }
}

}  // namespace
}  // namespace fornax::kernel
