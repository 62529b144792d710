// The comparison of kernels on a device with the interpreter.
#include "tests/graph/kernel_check.h"

#include <cmath>
#include <random>

#include "tests/graph/spirv_check.h"

namespace fornax::test {

using graph::Bindings;
using graph::ElementType;
using graph::Scalar;
using graph::loop::Kernel;

std::unique_ptr<KernelRunner> KernelCheck::runner_;

void KernelCheck::SetUpTestSuite() {
    Result<std::unique_ptr<KernelRunner>> runner = KernelRunner::Open();
    ASSERT_TRUE(runner.ok()) << runner.error().message;
    runner_ = std::move(runner).value();
}

void KernelCheck::TearDownTestSuite() {
    runner_.reset();
}

Kernel KernelCheck::Parse(const std::string& text) {
    const Result<Kernel> kernel = graph::loop::ParseKernel(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return kernel.ok() ? *kernel : Kernel();
}

Buffers KernelCheck::RandomBuffers(const Kernel& kernel, const Bindings& sizes, uint32_t seed) {
    std::mt19937 random(seed);
    Buffers buffers;
    for (const graph::loop::Buffer& buffer : kernel.buffers) {
        const ElementType type = buffer.type.element;
        const int64_t count = buffer.type.shape.Volume().Evaluate(sizes).value_or(0);
        const size_t width = BytesOf(type);
        std::vector<uint8_t> bytes(static_cast<size_t>(count) * width);
        std::normal_distribution<double> normal;
        std::uniform_int_distribution<int64_t> integer(IsSigned(type) ? -9 : 0, 9);
        for (int64_t i = 0; i < count; ++i) {
            const Scalar value =
                IsFloat(type) ? Scalar::Float(normal(random))
                              : Scalar::Integer(type == ElementType::kBool ? integer(random) & 1
                                                                           : integer(random));
            WriteElement(type, value, bytes.data() + static_cast<size_t>(i) * width);
        }
        buffers.push_back(std::move(bytes));
    }
    return buffers;
}

void KernelCheck::RunOnDevice(const Kernel& kernel, const Bindings& sizes, Buffers& buffers) {
    const Result<graph::loop::Module> module = EmitSpirv(kernel, runner_->target());
    ASSERT_TRUE(module.ok()) << module.error().message;
    ASSERT_EQ(Validate(module->words), "") << ToText(kernel);
    const Result<KernelRunner::Dispatch> dispatch = DispatchOf(kernel, *module, sizes);
    ASSERT_TRUE(dispatch.ok()) << dispatch.error().message;
    const auto& groups = dispatch->workgroups;
    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) {
        return;
    }
    const Status status = runner_->Run(*dispatch, buffers);
    ASSERT_TRUE(status.ok()) << status.error().message;
}

namespace {

bool Near(double expected, double actual, Tolerance tolerance) {
    if (std::isnan(expected) || std::isnan(actual)) {
        return std::isnan(expected) && std::isnan(actual);
    }
    if (expected == actual) {
        return true;
    }
    const double scale = std::max(std::abs(expected), tolerance.floor);
    return std::abs(expected - actual) <= tolerance.relative * scale;
}

}  // namespace

void KernelCheck::CheckOn(const Kernel& kernel,
                          const Bindings& sizes,
                          const Buffers& inputs,
                          Tolerance tolerance) {
    Buffers expected = inputs, actual = inputs;
    const Status status = Interpret(kernel, sizes, expected);
    ASSERT_TRUE(status.ok()) << status.error().message;
    RunOnDevice(kernel, sizes, actual);
    if (testing::Test::HasFatalFailure()) {
        return;
    }
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
        const ElementType type = kernel.buffers[b].type.element;
        const size_t width = BytesOf(type);
        int differences = 0;
        for (size_t i = 0; i < expected[b].size() / width; ++i) {
            const Scalar want = ReadElement(type, expected[b].data() + i * width);
            const Scalar have = ReadElement(type, actual[b].data() + i * width);
            const bool same = want.is_float ? Near(want.number, have.number, tolerance)
                                            : want.integer == have.integer;
            if (!same && ++differences <= 5) {
                ADD_FAILURE() << kernel.buffers[b].name << "[" << i << "] is "
                              << (want.is_float ? have.number : static_cast<double>(have.integer))
                              << ", not "
                              << (want.is_float ? want.number : static_cast<double>(want.integer))
                              << "\n"
                              << ToText(kernel);
            }
        }
        EXPECT_EQ(differences, 0) << "in " << kernel.buffers[b].name;
    }
}

void KernelCheck::Check(const std::string& text, const Bindings& sizes, Tolerance tolerance) {
    Kernel kernel = Parse(text);
    if (testing::Test::HasFailure()) {
        return;
    }
    const Buffers inputs = RandomBuffers(kernel, sizes);
    CheckOn(kernel, sizes, inputs, tolerance);
    if (kernel.mapping == graph::loop::Mapping::kRow) {
        kernel.mapping = graph::loop::Mapping::kFlat;
        kernel.row_loops = 0;
        CheckOn(kernel, sizes, inputs, tolerance);
    }
}

}  // namespace fornax::test
