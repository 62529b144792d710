// Compares what a device makes of a loop kernel with what the interpreter makes of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/graph/kernel_runner.h"

namespace fornax::test {

using Buffers = std::vector<std::vector<uint8_t>>;

// How far floats may differ: relative to the greater of the expected magnitude and `floor`, beside
// infinities and NaN, which must be alike.
struct Tolerance {
    double relative = 2e-6;
    double floor = 1e-30;
};

class KernelCheck : public testing::Test {
  protected:
    static void SetUpTestSuite();
    static void TearDownTestSuite();

    // Numbers of the buffers' types that differ: small integers, floats of about 1.
    static Buffers RandomBuffers(const graph::loop::Kernel& kernel,
                                 const graph::Bindings& sizes,
                                 uint32_t seed = 1);
    // Runs the kernel on the device and in the interpreter, in both mappings if it has rows.
    static void Check(const std::string& text,
                      const graph::Bindings& sizes = {},
                      Tolerance tolerance = {});
    static void CheckOn(const graph::loop::Kernel& kernel,
                        const graph::Bindings& sizes,
                        const Buffers& inputs,
                        Tolerance tolerance);
    // The buffers after a run on the device.
    static void RunOnDevice(const graph::loop::Kernel& kernel,
                            const graph::Bindings& sizes,
                            Buffers& buffers);
    static graph::loop::Kernel Parse(const std::string& text);

    static std::unique_ptr<KernelRunner> runner_;
};

}  // namespace fornax::test
