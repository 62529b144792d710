// What makes the nodes of random graphs: a pool of values, to which random nodes on random values
// of the pool are added. Sizes are expressions; a decision takes the hints, so that graphs hold
// for some sizes and not for others, and bounds are those of the largest case.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph::testing {

// What is known of a value: its bound, and whether every implementation gets it to the last bit.
struct Known {
    ValueId id;
    double bound = 0;
    bool exact = true;
    double error = 0;  // how far two implementations may lie apart
};

// What a graph and its bodies have in common.
struct RandomSource {
    std::mt19937_64 engine;
    std::vector<Bindings> cases;  // the sizes that the graph will be run for
    std::vector<Symbol> symbols;
    int depth = 0;  // of bodies in bodies

    int64_t Between(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
    }
    bool OneIn(int64_t n) { return Between(1, n) == 1; }
};

class RandomNodes {
  public:
    // Adds to `graph`, in which the symbols are declared. Both outlive this.
    RandomNodes(RandomSource& random, Graph& graph) : random_(random), graph_(graph) {}

    std::vector<Known>& pool() { return pool_; }
    // Tries to add this many nodes.
    void AddNodes(int64_t count);
    void AddConstant();
    // Tries to add a value of a kernel of its own that is read only by what may lie in its place.
    void AddInPlace();
    // Dimensions of a new tensor.
    Shape RandomShape();
    ElementType RandomType();
    const Known& Any();

  private:
    // --- random_nodes.cpp ---
    Known Pick();
    const Graph& graph() const { return graph_; }
    ElementType ElementOf(ValueId id) const { return graph_.TypeOf(id).element; }
    const Shape& ShapeOf(ValueId id) const { return graph_.ShapeOf(id); }
    size_t RankOf(ValueId id) const { return graph_.ShapeOf(id).rank(); }
    int64_t RandomAxis(ValueId id);
    int64_t Hint(const Expr& size) const { return graph_.sizes().Hint(size); }
    // The greatest value in any case.
    int64_t Most(const Expr& size) const;
    Expr RandomDim();
    bool FitsSize(const Shape& shape) const;
    static bool Fits(const Known& known, ElementType type);
    Tensor RandomTensor(ElementType type,
                        const std::vector<int64_t>& dims,
                        int64_t low,
                        int64_t high);
    // Small numbers of the type: constants, or repeated ones where a dimension is no constant.
    ValueId Numbers(ElementType type, const Shape& shape);
    ValueId Number(ElementType type, const Shape& shape, int64_t value);
    // Adds a node; its first result goes into the pool.
    bool Add(Operation operation,
             std::vector<ValueId> operands,
             Known known,
             std::vector<Body> bodies = {});
    // Takes a result into the pool, if what is known of it can be kept.
    bool Keep(Known known);
    // A value of the type and shape of `a`.
    Known Same(const Known& a);
    bool AddRandomNode();

    bool AddUnary();
    bool AddBinary();
    bool AddSelect();
    bool AddCast();
    bool AddBitcast();
    bool AddSize();
    bool AddRandomBits();
    bool AddIota();

    // --- random_moves.cpp ---
    bool AddReshape();
    bool AddPermute();
    bool AddBroadcast();
    bool AddSlice();
    bool AddPad();
    bool AddWindow();
    bool AddConcat();
    std::vector<int64_t> RandomSources(ValueId data,
                                       const Shape& shape,
                                       std::vector<ValueId>& operands,
                                       bool distinct);
    bool AddGather();
    bool AddScatter();

    // --- random_sums.cpp ---
    bool AddReduce();
    bool AddArgReduce();
    bool AddScan();
    bool AddSort();
    bool AddContract();

    // --- random_bodies.cpp ---
    // A body of some of the pool's values, with random nodes.
    struct OpenBody;
    OpenBody BeginBody(const std::vector<Known>& inputs);
    bool AddComposite();
    bool AddNetworkFunction();
    bool AddIf();
    bool AddLoop();
    ValueId Condition();
    // `value` within -bound..bound, which it is exactly then.
    static ValueId Clip(RandomNodes& nodes, ValueId value, int64_t bound);

    RandomSource& random_;
    Graph& graph_;
    std::vector<Known> pool_;
};

}  // namespace fornax::graph::testing
