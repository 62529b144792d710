// The small analyses: values of an invocation, values that only address memory, second readings of
// a buffer, workgroups that wait for each other, barrier regions.
#include <gtest/gtest.h>

#include "compiler/kernel/analysis/address_values.h"
#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/known_values.h"
#include "compiler/kernel/analysis/reread_buffers.h"
#include "compiler/kernel/analysis/streams.h"
#include "compiler/kernel/analysis/test_kernel.h"

namespace fornax::kernel {
namespace {

TEST(KnownValues, FollowFromTheIndex) {
    const ir::Kernel kernel =
        TestKernel("%a:i32 = imul %i, %eight\n%b:i32 = iadd %a, %four\n%c:i32 = iadd %a, %n\n" +
                   Stores({"b", "c"}));
    const std::vector<ir::ValueId> stored = StoredValues(kernel);
    ASSERT_EQ(stored.size(), 2u);
    KnownValues values(kernel);
    for (const uint32_t index : {0u, 1u, 63u}) {
        values.Begin(index);
        EXPECT_EQ(values.Evaluate(stored[0]), 8 * index + 4);
        EXPECT_FALSE(values.Evaluate(stored[1]).has_value());  // a push constant
    }
}

TEST(AddressValues, AreUsedForNothingElse) {
    const ir::Kernel kernel = TestKernel(
        "%a:i32 = imul %i, %eight\n%b:i32 = imul %i, %four\n"
        "%x:i32 = load_buffer %in, %a align(4)\n%y:i32 = load_buffer %in, %b align(4)\n" +
        Stores({"x", "y", "b"}));
    const std::vector<bool> addresses = FindAddressValues(kernel);
    EXPECT_TRUE(addresses[10]);   // %a
    EXPECT_FALSE(addresses[11]);  // %b is stored
    EXPECT_FALSE(addresses[12]);  // what is loaded
}

constexpr char kLoop[] = R"(
    loop @L (%kL:i32 = %zero) {
      %goesL:bool = ult %kL, %n
      if %goesL {
        yield
      } else {
        exit @L
      }
      %vL:i32 = load_buffer %in, %kL align(4)
      store_shared %zero, %vL align(4)
      continue @L
    } continuing () {
      %nextL:i32 = iadd %kL, %four
      next %nextL
    }
)";

std::string Loop(const std::string& number) {
    std::string text = kLoop;
    for (size_t at = text.find('L'); at != std::string::npos; at = text.find('L')) {
        text.replace(at, 1, number);
    }
    return text;
}

std::string StoringLoop(const std::string& number) {
    std::string text = Loop(number);
    const std::string load = "%v" + number + ":i32 = load_buffer %in, %k" + number + " align(4)";
    text.replace(text.find(load), load.size(), "store_buffer %in, %k" + number + ", %n align(4)");
    const std::string shared = "store_shared %zero, %v" + number + " align(4)";
    text.replace(text.find(shared), shared.size(), "");
    return text;
}

TEST(RereadBuffers, TheSecondLoopsLoads) {
    const auto rereads = [](const std::string& body) {
        const ir::Kernel kernel =
            TestKernel(body, "workgroup_size(64, 1, 1) subgroup_size(32) shared(64)");
        std::string text;
        const std::vector<bool> found = FindRereads(kernel);
        for (uint32_t i = 0; i < kernel.num_insts(); ++i) {
            const ir::Instruction& inst = kernel.inst(ir::InstId{i});
            if (inst.op == ir::Op::kLoadBuffer) {
                const uint32_t result = inst.results[0].value();
                text += result < found.size() && found[result] ? "again " : "first ";
            }
        }
        return text;
    };
    EXPECT_EQ(rereads(Loop("0") + "barrier\n" + Loop("1")), "first again ");
    EXPECT_EQ(rereads(StoringLoop("0") + "barrier\n" + Loop("1")), "again ");
    EXPECT_EQ(rereads(Loop("0") + "barrier\n" + StoringLoop("1")), "first ");
    // Without a barrier no workgroup comes back to what it had.
    EXPECT_EQ(rereads(Loop("0") + Loop("1")), "first first ");
}

TEST(Streams, AtomicsMayWait) {
    EXPECT_TRUE(IndependentWorkgroups(TestKernel(Stores({"i"}))));
    EXPECT_FALSE(IndependentWorkgroups(
        TestKernel("%old:i32 = atomic_buffer add, %out, %zero, %one\n" + Stores({"i"}))));
}

class RegionsOf {
  public:
    explicit RegionsOf(const std::string& body)
        : kernel_(TestKernel(body, "workgroup_size(64, 1, 1) subgroup_size(32) shared(256)")),
          level_(FindWorkgroupLevel(kernel_)),
          patterns_(kernel_, 16, level_),
          regions_(kernel_, patterns_, level_) {}

    const BarrierRegions& get() const { return regions_; }
    BarrierRegions::Storage StorageOfStored() const {
        return regions_.storage(StoredValues(kernel_).back());
    }

  private:
    const ir::Kernel kernel_;
    const std::vector<bool> level_;
    const LaneAnalysis patterns_;
    const BarrierRegions regions_;
};

TEST(BarrierRegions, OneWithoutBarriers) {
    EXPECT_EQ(RegionsOf(Stores({"i"})).get().num_regions(), 1u);
}

TEST(BarrierRegions, ABarrierCuts) {
    const std::string load = "%v:i32 = load_buffer %in, %i align(4)\n";
    const std::string sum = "%v:i32 = iadd %i, %one\n";
    const std::string use = "store_shared %zero, %i align(4)\nbarrier\n" + Stores({"v"});
    EXPECT_EQ(RegionsOf(load + use).get().num_regions(), 2u);
    // What was loaded is kept, what is cheap is computed again.
    EXPECT_EQ(RegionsOf(load + use).StorageOfStored(), BarrierRegions::Storage::kSubgroupSlot);
    EXPECT_EQ(RegionsOf(sum + use).StorageOfStored(), BarrierRegions::Storage::kRecomputed);
    EXPECT_EQ(RegionsOf("store_shared %zero, %i align(4)\nbarrier\n" + load + Stores({"v"}))
                  .StorageOfStored(),
              BarrierRegions::Storage::kRegion);
    EXPECT_EQ(RegionsOf("%v:i32 = iadd %group, %n\n" + use).StorageOfStored(),
              BarrierRegions::Storage::kWorkgroup);
}

}  // namespace
}  // namespace fornax::kernel
