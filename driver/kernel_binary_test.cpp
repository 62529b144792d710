// Blocks of kernels are read back whole or not at all.
#include "driver/kernel_binary.h"

#include <gtest/gtest.h>

namespace fornax::driver {
namespace {

KernelSource MakeSource() {
    return {.stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .spirv = {0x07230203, 1, 2, 3},
            .entry_point = "main",
            .specialization = {{7, 4, 3}, {9, 8, ~uint64_t{0}}},
            .subgroup_size = 16,
            .wide_indexing = true};
}

kernel::CompiledKernel MakeKernel() {
    kernel::CompiledKernel kernel;
    kernel.serialized = {1, 2, 3, 4, 5};
    return kernel;
}

TEST(KernelBinaryTest, KeepsEverything) {
    const KernelSource source = MakeSource();
    const kernel::CompiledKernel kernel = MakeKernel();
    const auto block = WriteKernelBinary(source, "the key", &kernel);
    EXPECT_EQ(block, WriteKernelBinary(source, "the key", &kernel));
    const auto read = ReadKernelBinary(block);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->key, "the key");
    EXPECT_EQ(read->native, kernel.serialized);
    EXPECT_EQ(read->source.stage, source.stage);
    EXPECT_EQ(read->source.spirv, source.spirv);
    EXPECT_EQ(read->source.entry_point, "main");
    ASSERT_EQ(read->source.specialization.size(), 2u);
    EXPECT_EQ(read->source.specialization[1].constant_id, 9u);
    EXPECT_EQ(read->source.specialization[1].size_bytes, 8u);
    EXPECT_EQ(read->source.specialization[1].bits, ~uint64_t{0});
    EXPECT_EQ(read->source.subgroup_size, 16u);
    EXPECT_TRUE(read->source.wide_indexing);
}

// A module of which only the identifier is known.
TEST(KernelBinaryTest, DoesWithoutCode) {
    KernelSource source = MakeSource();
    source.spirv_digest = Hash128{1, 2};
    auto read = ReadKernelBinary(WriteKernelBinary(source, "", nullptr));
    ASSERT_TRUE(read.ok());
    EXPECT_FALSE(read->source.spirv_digest) << "It has SPIR-V, which decides.";
    source.spirv.clear();
    read = ReadKernelBinary(WriteKernelBinary(source, "", nullptr));
    ASSERT_TRUE(read.ok());
    EXPECT_TRUE(read->source.spirv.empty());
    EXPECT_EQ(read->source.spirv_digest, (Hash128{1, 2}));
}

// What cannot be stored leaves the source, from which it is compiled again.
TEST(KernelBinaryTest, DoesWithoutNativeCode) {
    kernel::CompiledKernel kernel = MakeKernel();
    kernel.storable = false;
    const kernel::CompiledKernel* const kernels[] = {&kernel, nullptr};
    for (const kernel::CompiledKernel* without : kernels) {
        const auto read = ReadKernelBinary(WriteKernelBinary(MakeSource(), "key", without));
        ASSERT_TRUE(read.ok());
        EXPECT_EQ(read->key, "");
        EXPECT_TRUE(read->native.empty());
        EXPECT_EQ(read->source.spirv.size(), 4u);
    }
}

TEST(KernelBinaryTest, NoByteMayDiffer) {
    const kernel::CompiledKernel kernel = MakeKernel();
    const auto good = WriteKernelBinary(MakeSource(), "key", &kernel);
    for (size_t i = 0; i < good.size(); ++i) {
        for (const int change : {1, 0x80, 0xff}) {
            auto bad = good;
            bad[i] ^= static_cast<std::byte>(change);
            EXPECT_FALSE(ReadKernelBinary(bad).ok()) << i;
        }
        EXPECT_FALSE(ReadKernelBinary(std::span(good).first(i)).ok()) << i;
    }
    auto longer = good;
    longer.push_back({});
    EXPECT_FALSE(ReadKernelBinary(longer).ok());
}

}  // namespace
}  // namespace fornax::driver
