// Plays a plan step by step over blocks of host memory.
#include "compiler/graph/testing/interpret_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph::testing {
namespace {

Error Failed(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

class Player {
  public:
    Player(const Plan& plan, Bindings sizes, const InterpretOptions& options)
        : plan_(plan), sizes_(std::move(sizes)), options_(options), blocks_(plan.blocks.size()) {}

    Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, PlanStates* states) {
        for (size_t i = 0; i < plan_.blocks.size(); ++i) {
            if (plan_.blocks[i].data) {
                Fill(BlockId(i), plan_.blocks[i].data);
            }
        }
        if (states != nullptr) {
            for (const auto& [block, bytes] : *states) {
                blocks_[block.value()] = bytes;
            }
        }
        for (size_t i = 0; i < inputs.size(); ++i) {
            Fill(plan_.inputs[i].block, inputs[i].data);
        }
        for (size_t i = 0; i < plan_.steps.size(); ++i) {
            FORNAX_RETURN_IF_ERROR(
                std::visit([&](const auto& held) { return RunStep(held); }, plan_.steps[i]));
            SpoilDead(i);
        }
        for (size_t i = 0; states != nullptr && i < plan_.blocks.size(); ++i) {
            if (plan_.blocks[i].kind == BlockKind::kState) {
                (*states)[BlockId(i)] = blocks_[i];
            }
        }
        std::vector<Tensor> outputs;
        for (const PlanPort& port : plan_.outputs) {
            FORNAX_ASSIGN_OR_RETURN(Tensor output, Read(port.block, port.type));
            outputs.push_back(std::move(output));
        }
        return outputs;
    }

  private:
    // Other blocks may have the memory of temporaries that are not in use after a step.
    void SpoilDead(size_t step) {
        for (size_t i = 0; i < blocks_.size(); ++i) {
            if (plan_.blocks[i].kind == BlockKind::kTemporary && plan_.blocks[i].last <= step) {
                std::fill(blocks_[i].begin(), blocks_[i].end(), uint8_t{0xa5});
            }
        }
    }

    void Fill(BlockId block, const Bytes& bytes) {
        blocks_[block.value()].assign(bytes->begin(), bytes->end());
    }

    Result<std::vector<int64_t>> Dims(const Shape& shape) const {
        std::vector<int64_t> dims;
        for (const Expr& dim : shape.dims()) {
            const std::optional<int64_t> size = dim.Evaluate(sizes_);
            if (!size) {
                return Failed(fmt::format("The size {} has no value.", dim.ToString()));
            }
            dims.push_back(*size);
        }
        return dims;
    }

    Result<Tensor> Read(BlockId block, const TensorType& type) {
        FORNAX_ASSIGN_OR_RETURN(std::vector<int64_t> dims, Dims(type.shape));
        Tensor tensor{type.element, std::move(dims), nullptr, nullptr};
        std::vector<uint8_t> bytes = blocks_[block.value()];
        bytes.resize(static_cast<size_t>(tensor.count()) * BytesOf(type.element));
        tensor.data = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
        return tensor;
    }

    Status RunStep(const DispatchStep& step) {
        const PlanKernel& kernel = plan_.kernels[step.kernel.value()];
        const std::span<const loop::Buffer> kernel_buffers = BuffersOf(kernel);
        std::vector<std::vector<uint8_t>> buffers;
        const auto is_shared = [&](size_t i) {
            return std::count(step.bindings.begin(), step.bindings.end(), step.bindings[i]) > 1;
        };
        for (size_t i = 0; i < step.bindings.size(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                                    Dims(kernel_buffers[i].type.shape));
            size_t bytes = BytesOf(kernel_buffers[i].type.element);
            for (const int64_t dim : dims) {
                bytes *= static_cast<size_t>(dim);
            }
            std::vector<uint8_t>& block = blocks_[step.bindings[i].value()];
            buffers.push_back(is_shared(i) ? block : std::move(block));
            buffers.back().resize(bytes);
        }
        Status status = Interpret(kernel, sizes_, buffers);
        for (size_t i = 0; i < step.bindings.size(); ++i) {
            if (kernel_buffers[i].written || !is_shared(i)) {
                blocks_[step.bindings[i].value()] = std::move(buffers[i]);
            }
        }
        return status;
    }

    Status RunStep(const HostStep& step) {
        std::vector<Tensor> operands;
        for (size_t i = 0; i < step.operands.size(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(Tensor operand, Read(step.operands[i], step.operand_types[i]));
            operands.push_back(std::move(operand));
        }
        FORNAX_ASSIGN_OR_RETURN(
            std::vector<Tensor> results,
            EvaluateNode(step.operation, operands, step.bodies, sizes_, options_));
        for (size_t i = 0; i < step.results.size(); ++i) {
            const Shape& shape = step.result_types[i].shape;
            for (size_t axis = 0; axis < shape.rank(); ++axis) {
                const std::vector<Symbol> symbols = shape[axis].Symbols();
                if (symbols.size() == 1 && shape[axis] == Expr(symbols[0])) {
                    sizes_.insert_or_assign(symbols[0], results[i].dims[axis]);
                }
            }
            Fill(step.results[i], results[i].data);
        }
        return OkStatus();
    }

    const Plan& plan_;
    Bindings sizes_;
    const InterpretOptions& options_;
    std::vector<std::vector<uint8_t>> blocks_;
};

}  // namespace

Result<std::vector<Tensor>> InterpretPlan(const Plan& plan,
                                          std::span<const Tensor> inputs,
                                          const Bindings& hints,
                                          const InterpretOptions& options,
                                          PlanStates* states) {
    Bindings sizes = hints;
    for (const SymbolSource& source : plan.sources) {
        sizes.insert_or_assign(source.symbol,
                               *ValueOf(plan, source, inputs[source.port].dims[source.axis]));
    }
    return Player(plan, std::move(sizes), options).Run(inputs, states);
}

}  // namespace fornax::graph::testing
