// Builds one loop kernel: the scalar of any graph value at any index.
//
// Values that are realized have a block in memory and are loaded. All others are inlined: views
// become index maps, elementwise nodes become scalars, reductions loops. The builder asks for the
// same value at the same index once only, so a value that several stores need is computed once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/graph/ir/graph.h"
#include "compiler/graph/loop/kernel.h"

namespace fornax::graph {

// The most scalars that one kernel holds.
inline constexpr size_t kMostScalars = 400;

class KernelBuilder {
  public:
    // `realized` says by value index which values are in memory; both outlive the builder.
    // At() inlines no more values once the kernel has more than `most_scalars`: such a kernel is
    // wrong and only its size() counts. Without that, chains of values that are read twice would
    // take exponential time.
    KernelBuilder(const Graph& graph,
                  const std::vector<bool>& realized,
                  std::string name,
                  size_t most_scalars = SIZE_MAX);

    // A loop over 0..extent-1, or none if the extent is 1: then the index is the constant 0.
    Expr AddParallel(const Expr& extent);
    Expr AddSequential(const Expr& extent);
    std::vector<Expr> AddParallel(const Shape& shape);

    // The value at `index`, one expression per dimension. May be outside of the shape only where
    // the caller guards it.
    loop::ScalarId At(ValueId value, std::vector<Expr> index);
    // The value at `index` from memory, whether it is realized or not.
    loop::ScalarId LoadFrom(ValueId value, std::vector<Expr> index, loop::ScalarId otherwise = {});
    // As LoadFrom, never shared with another load: for buffers that the kernel writes.
    loop::ScalarId FreshLoad(ValueId value, std::vector<Expr> index, loop::ScalarId otherwise = {});
    void Store(ValueId value,
               std::vector<Expr> index,
               loop::ScalarId scalar,
               loop::ScalarId condition = {});
    // A buffer that is no value of the graph; it is not in memory before a kernel writes it.
    loop::BufferId AddBuffer(TensorType type);
    loop::ScalarId LoadFrom(loop::BufferId buffer, std::vector<Expr> index);
    void Store(loop::BufferId buffer,
               std::vector<Expr> index,
               loop::ScalarId scalar,
               loop::ScalarId condition = {});

    loop::BufferId BufferOf(ValueId value);

    // Phases and local tensors, as loop/kernel.h says. What is stored after this is the phase's,
    // which has a point for each index of `shape`; gives that index.
    std::vector<Expr> BeginPhase(loop::When when, const Shape& shape);
    loop::BufferId AddLocal(TensorType type);
    // What gives a value that is not in memory, in place of its node.
    using Source = std::function<loop::ScalarId(const std::vector<Expr>&)>;
    void SetSource(ValueId value, Source source);
    // Computes the value anew when it is next asked for.
    void Forget(ValueId value);

    loop::ScalarId Constant(ElementType type, const Scalar& value);
    loop::ScalarId Integer(const Expr& value);  // i64
    loop::ScalarId Map(ScalarFunction function, std::vector<loop::ScalarId> arguments);
    loop::ScalarId Cast(loop::ScalarId argument, ElementType type);
    loop::ScalarId Bitcast(loop::ScalarId argument, ElementType type);
    // Two values combined, as reductions do.
    loop::ScalarId Combined(Combine combine, loop::ScalarId a, loop::ScalarId b);
    loop::ScalarId InRange(const Expr& value, const Expr& extent);
    bool IsTrue(loop::ScalarId id) const;  // known to be
    // An integer scalar as a symbol for index expressions.
    Expr AsIndex(loop::ScalarId scalar);
    // A reduction's loops, for bodies made by At().
    loop::Loop NewReductionLoop(const Expr& extent);
    // In kernels of phases reductions share loops, but not with the `siblings` in one reduction.
    loop::Loop ReductionLoop(const Expr& extent, std::span<const loop::Loop> siblings);
    loop::ScalarId Reduce(Combine combine, std::vector<loop::Loop> loops, loop::ScalarId body);

    // Whether the kernel, with its mapping, computes each element of a value that it inlines once
    // only: it depends on all parallel loops, or on those of rows. Reductions are ReductionCost's.
    bool IsComputedOnce(ValueId value, const SizeFacts& sizes) const;

    // The graph value of each buffer; not valid for those of AddBuffer().
    const std::vector<ValueId>& buffer_values() const { return buffer_values_; }
    const loop::Kernel& kernel() const { return kernel_; }
    loop::Kernel& kernel() { return kernel_; }
    size_t size() const { return kernel_.scalars.size(); }

  private:
    friend class ValueInliner;
    using Key = std::pair<uint32_t, std::vector<Expr>>;
    struct KeyLess {
        bool operator()(const Key& a, const Key& b) const;
    };

    std::optional<Expr> AsExpression(ScalarFunction function,
                                     const std::vector<loop::ScalarId>& arguments) const;
    loop::ScalarId Add(ElementType type, decltype(loop::ScalarNode::value) value);
    Expr Simplified(const Expr& expr) const { return expr.Simplify(domain_); }
    ElementType TypeOf(loop::ScalarId id) const { return kernel_[id].type; }

    const Graph& graph_;
    const std::vector<bool>& realized_;
    const size_t most_scalars_;
    loop::Kernel kernel_;
    Domain domain_;
    std::map<Key, loop::ScalarId, KeyLess> scalars_;
    std::map<Key, loop::ScalarId, KeyLess> loads_;
    std::map<uint32_t, loop::BufferId> buffers_;
    std::map<uint32_t, Source> sources_;
    std::vector<loop::Loop> shared_loops_;
    std::vector<ValueId> buffer_values_;
    // By the bits of the number: a NaN as a key would be equal to any other.
    std::map<std::tuple<ElementType, bool, uint64_t, int64_t>, loop::ScalarId> constants_;
    uint32_t next_loop_ = 0;
    uint32_t next_reduction_ = 0;
};

}  // namespace fornax::graph
