// Plans made by hand for the player's tests, and the device that they run on.
#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/plan/plan.h"
#include "runtime/session.h"

namespace fornax::runtime {

// Builds a plan step by step; Finish() works out the lifetimes.
class PlanBuilder {
  public:
    graph::BlockId Block(std::string name,
                         graph::TensorType type,
                         graph::BlockKind kind = graph::BlockKind::kTemporary) {
        graph::PlanBlock block;
        block.name = std::move(name);
        block.type = std::move(type);
        block.kind = kind;
        plan_.blocks.push_back(std::move(block));
        return graph::BlockId(plan_.blocks.size() - 1);
    }
    // Symbols that dimensions are take their values from it, unless an earlier input gave them.
    graph::BlockId Input(const std::string& name, const graph::TensorType& type) {
        const graph::BlockId block = Block(name, type, graph::BlockKind::kInput);
        for (uint32_t axis = 0; axis < type.shape.rank(); ++axis) {
            for (const graph::Symbol& symbol : type.shape[axis].Symbols()) {
                if (type.shape[axis] == graph::Expr(symbol)) {
                    plan_.sources.push_back(
                        {symbol, static_cast<uint32_t>(plan_.inputs.size()), axis});
                }
            }
        }
        plan_.inputs.push_back({name, type, block});
        return block;
    }
    graph::BlockId Output(const std::string& name, const graph::TensorType& type) {
        const graph::BlockId block = Block(name, type, graph::BlockKind::kOutput);
        AddOutput(name, block);
        return block;
    }
    void AddOutput(const std::string& name, graph::BlockId block) {
        plan_.outputs.push_back({name, plan_.blocks[block.value()].type, block});
    }
    graph::BlockId Constant(const std::string& name, const graph::Tensor& tensor) {
        const graph::BlockId block = Block(name, tensor.type(), graph::BlockKind::kConstant);
        plan_.blocks[block.value()].data = tensor.data;
        plan_.blocks[block.value()].strings = tensor.strings;
        return block;
    }
    void Dispatch(const std::string& kernel, std::vector<graph::BlockId> bindings) {
        Result<graph::loop::Kernel> parsed = graph::loop::ParseKernel(kernel);
        ASSERT_TRUE(parsed.ok()) << parsed.error().message;
        graph::DispatchStep step;
        step.name = parsed->name;
        step.kernel = graph::KernelId(plan_.kernels.size());
        step.bindings = std::move(bindings);
        plan_.kernels.push_back({std::move(parsed).value()});
        plan_.steps.emplace_back(std::move(step));
    }
    void Host(graph::Operation operation,
              std::vector<graph::BlockId> operands,
              std::vector<graph::BlockId> results) {
        graph::HostStep step;
        step.name = graph::Name(operation);
        step.operation = std::move(operation);
        for (const graph::BlockId block : operands) {
            step.operand_types.push_back(plan_.blocks[block.value()].type);
        }
        for (const graph::BlockId block : results) {
            step.result_types.push_back(plan_.blocks[block.value()].type);
        }
        step.operands = std::move(operands);
        step.results = std::move(results);
        step.reason = "a test";
        plan_.steps.emplace_back(std::move(step));
    }
    graph::Plan& plan() { return plan_; }

    graph::Plan Finish() {
        plan_.name = "test";
        const auto last = static_cast<uint32_t>(plan_.steps.size());
        std::vector<bool> seen(plan_.blocks.size());
        const auto use = [&](graph::BlockId id, uint32_t step) {
            graph::PlanBlock& block = plan_.blocks[id.value()];
            block.first = seen[id.value()] ? block.first : step;
            block.last = step;
            seen[id.value()] = true;
        };
        for (uint32_t i = 0; i < last; ++i) {
            if (const auto* dispatch = std::get_if<graph::DispatchStep>(&plan_.steps[i])) {
                for (const graph::BlockId id : dispatch->bindings) {
                    use(id, i);
                }
            } else {
                const auto& host = std::get<graph::HostStep>(plan_.steps[i]);
                for (const graph::BlockId id : host.operands) {
                    use(id, i);
                }
                for (const graph::BlockId id : host.results) {
                    use(id, i);
                }
            }
        }
        for (graph::PlanBlock& block : plan_.blocks) {
            if (block.kind != graph::BlockKind::kTemporary) {
                block.first = 0;
                block.last = last;
            }
        }
        return plan_;
    }

  private:
    graph::Plan plan_;
};

// "y = x FUNCTION constant", elementwise on f32[n].
inline std::string Elementwise(const std::string& function, float constant) {
    return "kernel " + function +
           "(in x: f32[n], out y: f32[n])\n  sizes n in 0..1000000\n  parallel $i < n\n"
           "%0 = load x[$i]\n%1 = constant f32 " +
           std::to_string(constant) + "\n%2 = " + function + " %0, %1\nstore y[$i] = %2\n";
}

inline graph::Tensor Floats(const std::vector<float>& values) {
    return graph::Tensor::FromFloats({static_cast<int64_t>(values.size())}, values);
}

inline std::vector<float> ToFloats(std::span<const uint8_t> bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!values.empty()) {
        std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    }
    return values;
}

inline std::vector<float> ToFloats(const graph::Tensor& tensor) {
    return ToFloats(std::span<const uint8_t>(*tensor.data));
}

// The test device. What the validation layers say, if they are on, fails the test.
class PlayerTest : public testing::Test {
  protected:
    void SetUp() override {
        vulkan::InstanceOptions options;
        options.on_message = [this](const std::string& message) {
            const std::lock_guard lock(mutex_);
            messages_.push_back(message);
        };
        auto instance = vulkan::Instance::Create(std::move(options));
        ASSERT_TRUE(instance.ok()) << instance.error().message;
        instance_ = *instance;
        const auto physical = instance_->Choose("");
        ASSERT_TRUE(physical.ok()) << physical.error().message;
        auto device = vulkan::Device::Open(instance_, *physical);
        ASSERT_TRUE(device.ok()) << device.error().message;
        device_ = *device;
    }
    void TearDown() override {
        device_.reset();
        instance_.reset();
        for (const std::string& message : messages_) {
            ADD_FAILURE() << message;
        }
    }

    std::shared_ptr<const Program> Make(graph::Plan plan) {
        auto program = Program::Create(device_, std::move(plan), {});
        EXPECT_TRUE(program.ok()) << program.error().message;
        return program.ok() ? *program : nullptr;
    }
    // The outputs of a run that is to succeed.
    static std::vector<graph::Tensor> Run(Session& session,
                                          const std::vector<graph::Tensor>& inputs) {
        Result<RunResult> result = session.Run(inputs);
        EXPECT_TRUE(result.ok()) << result.error().message;
        if (!result.ok()) {
            return {};
        }
        EXPECT_TRUE(result->fit.ok) << result->fit.reason;
        return result->outputs;
    }

    std::mutex mutex_;
    std::vector<std::string> messages_;
    std::shared_ptr<const vulkan::Instance> instance_;
    std::shared_ptr<vulkan::Device> device_;
};

}  // namespace fornax::runtime
