// Random graphs with their inputs: symbols and cases first, then inputs, nodes, states and outputs.
#include "compiler/graph/testing/random_graph.h"

#include <algorithm>

#include "compiler/graph/testing/random_nodes.h"
#include "compiler/graph/testing/random_tensor.h"

namespace fornax::graph::testing {
namespace {

class Generator {
  public:
    Generator(uint64_t seed, size_t first_case) : seed_(seed) {
        random_.engine.seed(seed);
        AddSymbols(first_case);
    }

    RandomGraph Run() {
        RandomNodes nodes(random_, result_.graph);
        AddInputs(nodes);
        nodes.AddConstant();
        AddStateReads(nodes);
        nodes.AddNodes(random_.Between(3, 24));
        AddStateWrites(nodes);
        AddOutputs(nodes);
        MakeInputs();
        return std::move(result_);
    }

  private:
    // Sizes that programs have, and those at which loops, guards and vectors end.
    int64_t RandomSize() {
        constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 8, 12, 16, 17, 31, 33};
        return kSizes[random_.Between(0, std::size(kSizes) - 1)];
    }

    void AddSymbols(size_t first_case) {
        constexpr const char* kNames[] = {"n", "m", "k"};
        const int64_t count = random_.OneIn(3) ? 0 : random_.Between(1, 3);
        std::vector<Bindings> cases(kRandomCases);
        for (int64_t i = 0; i < count; ++i) {
            const Symbol symbol(kNames[i]);
            random_.symbols.push_back(symbol);
            const bool dynamic = !random_.OneIn(4);
            if (dynamic) {
                result_.dynamic_sizes.insert(symbol.name());
            }
            int64_t size = random_.Between(2, 8);
            for (Bindings& sizes : cases) {
                sizes.emplace(symbol, size);
                size = dynamic || random_.OneIn(3) ? RandomSize() : size;
            }
        }
        std::rotate(cases.begin(), cases.begin() + static_cast<ptrdiff_t>(first_case), cases.end());
        for (const Symbol& symbol : random_.symbols) {
            result_.graph.sizes().Declare(symbol.name(), cases[0].at(symbol));
        }
        random_.cases = std::move(cases);
    }

    void AddInput(RandomNodes& nodes, ElementType type, const Shape& shape) {
        const std::string name = "in" + std::to_string(result_.graph.inputs().size());
        nodes.pool().push_back({result_.graph.AddInput(name, {type, shape}), 4, true, 0});
    }

    void AddInputs(RandomNodes& nodes) {
        // Each symbol is a dimension of one input, so that inputs say what it is.
        for (const Symbol& symbol : random_.symbols) {
            Shape shape = nodes.RandomShape();
            shape.mutable_dims().resize(std::min<size_t>(shape.rank(), 3), 1);
            shape.mutable_dims().insert(shape.mutable_dims().begin() +
                                            random_.Between(0, static_cast<int64_t>(shape.rank())),
                                        Expr(symbol));
            for (Expr& dim : shape.mutable_dims()) {
                dim = dim.is_constant() && dim.constant_part() > 8 ? Expr(3) : dim;
            }
            AddInput(nodes, nodes.RandomType(), shape);
        }
        for (int64_t i = random_.Between(random_.symbols.empty() ? 1 : 0, 2); i > 0; --i) {
            AddInput(nodes, nodes.RandomType(), nodes.RandomShape());
        }
    }

    void AddStateReads(RandomNodes& nodes) {
        for (int64_t i = random_.OneIn(6) ? random_.Between(1, 3) : 0; i > 0; --i) {
            const std::string name = "state" + std::to_string(i);
            std::vector<int64_t> dims;
            for (int64_t axis = random_.Between(0, 3); axis > 0; --axis) {
                dims.push_back(random_.Between(1, 5));
            }
            TensorType type = {random_.OneIn(2) ? ElementType::kF32 : ElementType::kI32,
                               Shape::Of(dims)};
            if (!states_.empty() && random_.OneIn(2)) {
                type = result_.graph.TypeOf(state_values_[0]);  // so that values change places
            }
            const ValueId value =
                result_.graph[*result_.graph.AddNode(name, op::ReadState{name, type}, {})]
                    .results[0];
            states_.push_back(name);
            state_values_.push_back(value);
            nodes.pool().push_back({value, 8, true, 0});
            result_.has_state = true;
        }
    }

    void AddStateWrites(RandomNodes& nodes) {
        for (size_t i = 0; i < states_.size(); ++i) {
            const TensorType type = result_.graph.TypeOf(state_values_[i]);
            ValueId next = state_values_[i];
            for (const Known& candidate : nodes.pool()) {
                if (result_.graph.TypeOf(candidate.id) == type && candidate.exact &&
                    candidate.bound <= 8 && random_.OneIn(2)) {
                    next = candidate.id;
                }
            }
            (void)*result_.graph.AddNode("write", op::WriteState{states_[i]}, {next});
            if (random_.OneIn(3)) {
                const ValueId again =
                    result_
                        .graph[*result_.graph.AddNode("again", op::ReadState{states_[i], type}, {})]
                        .results[0];
                nodes.pool().push_back({again, 8, true, 0});
            }
        }
    }

    void AddOutputs(RandomNodes& nodes) {
        if (random_.OneIn(3)) {
            nodes.AddInPlace();
        }
        const int64_t outputs = random_.Between(1, 5);
        for (int64_t i = 0; i < outputs; ++i) {
            Known known = i == 0 ? nodes.pool().back() : nodes.Any();
            const std::vector<uint32_t> uses = result_.graph.CountUses();
            for (int attempt = 0; attempt < 4 && uses[known.id.value()] > 0; ++attempt) {
                known = nodes.Any();
            }
            result_.graph.AddOutput("out" + std::to_string(i), known.id);
            result_.exact.push_back(known.exact);
            result_.tolerance.push_back(known.error);
        }
    }

    void MakeInputs() {
        for (const Bindings& sizes : random_.cases) {
            std::mt19937_64 random(seed_);
            RandomCase next;
            next.sizes = sizes;
            for (const ValueId input : result_.graph.inputs()) {
                const TensorType& type = result_.graph.TypeOf(input);
                std::vector<int64_t> dims;
                for (const Expr& dim : type.shape.dims()) {
                    dims.push_back(dim.Evaluate(sizes).value_or(0));
                }
                next.inputs.push_back(MakeRandomTensor(random, type.element, dims,
                                                       LowOf(type.element), HighOf(type.element)));
            }
            result_.cases.push_back(std::move(next));
        }
    }

    uint64_t seed_;
    RandomSource random_;
    RandomGraph result_;
    std::vector<std::string> states_;
    std::vector<ValueId> state_values_;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, size_t first_case) {
    return Generator(seed, first_case).Run();
}

}  // namespace fornax::graph::testing
