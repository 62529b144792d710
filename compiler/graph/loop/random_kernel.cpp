// The loops, buffers and stores of random kernels; random_scalars.cpp has what is computed.
#include "compiler/graph/loop/random_kernel.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "compiler/graph/loop/random_scalars.h"

namespace fornax::graph::loop {
namespace {

// A buffer that is written: which of its indices belong to the point, so that no two points share
// an element.
struct Target {
    BufferId buffer;
    std::vector<Expr> prefix;
    bool is_read = false;
};

class Generator {
  public:
    explicit Generator(uint64_t seed) : scalars_(seed * 0x9E3779B97F4A7C15 + 1) {}

    RandomKernel Make(uint64_t seed) {
        Kernel& kernel = scalars_.kernel_;
        kernel.name = fmt::format("random_{}", seed);
        Sizes();
        Loops(scalars_.Between(0, 4), scalars_.Chance(30) ? scalars_.Between(1, 2) : 0);
        if (scalars_.Chance(50)) {
            kernel.mapping = Mapping::kRow;
            kernel.row_loops = static_cast<uint32_t>(scalars_.Below(kernel.parallel.size() + 1));
        }
        const int64_t inputs = scalars_.Between(1, 4), outputs = scalars_.Between(1, 3);
        for (int64_t i = 0; i < inputs; ++i) {
            Input(fmt::format("x{}", i));
        }
        for (int64_t i = 0; i < outputs; ++i) {
            Output(fmt::format("y{}", i));
        }
        Stores();
        result_.kernel = std::move(kernel);
        result_.sizes = scalars_.sizes_;
        return std::move(result_);
    }

  private:
    // Names that come in another order than they are declared in, and ranges of all widths.
    void Sizes() {
        for (const char* name : {"n", "b.size", "m"}) {
            if (!scalars_.Chance(50)) {
                continue;
            }
            const int64_t value = scalars_.Between(0, 7);
            const Range ranges[] = {{0, INT32_MAX},
                                    {0, 8},
                                    {value, value},
                                    {0, UINT32_MAX},
                                    {value / 2, 2 * value + 1}};
            scalars_.kernel_.sizes[Symbol(name)] = ranges[scalars_.Below(5)];
            scalars_.sizes_[Symbol(name)] = value;
        }
    }

    Expr RandomSize(int64_t greatest) {
        if (!scalars_.sizes_.empty() && scalars_.Chance(50)) {
            auto size = scalars_.sizes_.begin();
            std::advance(size, scalars_.Below(scalars_.sizes_.size()));
            const Expr n(size->first);
            const Expr sizes[] = {n, n + 1, 2 * n, FloorDiv(n + 1, 2), Max(n, 1)};
            return sizes[scalars_.Below(5)];
        }
        if (scalars_.Chance(10)) {
            return scalars_.Between(0, 1);
        }
        return scalars_.Between(1, greatest);
    }

    int64_t Evaluate(const Expr& expr) const { return *expr.Evaluate(scalars_.sizes_); }

    void Loops(int64_t parallel, int64_t sequential) {
        int64_t points = 1;
        for (int64_t i = 0; i < parallel + sequential; ++i) {
            const bool is_parallel = i < parallel;
            Expr extent = RandomSize(is_parallel ? 7 : 3);
            if (is_parallel && points < 8 && scalars_.Chance(15)) {
                extent = scalars_.Between(30, 150);  // more than a workgroup's invocations
            }
            if (points * Evaluate(extent) > 600) {
                extent = 1;
            }
            points *= std::max<int64_t>(Evaluate(extent), 1);
            const Symbol variable(fmt::format("${}{}", is_parallel ? 'i' : 's', i));
            scalars_.outer_ |= VariableSet{1} << scalars_.variables_.size();
            scalars_.variables_.push_back({variable, extent, Evaluate(extent)});
            (is_parallel ? scalars_.kernel_.parallel : scalars_.kernel_.sequential)
                .push_back({variable, extent});
        }
        scalars_.scope_ = scalars_.outer_;
    }

    BufferId AddBuffer(std::string name, ElementType type, std::vector<Expr> dims, bool written) {
        Kernel& kernel = scalars_.kernel_;
        kernel.buffers.push_back({std::move(name), {type, Shape(std::move(dims))}, written});
        return BufferId(kernel.buffers.size() - 1);
    }

    // Fills a buffer and says within which bounds: small integers, fractions, or all of a type.
    Known Fill(const TensorType& type) {
        int64_t count = 1;
        for (const Expr& dim : type.shape.dims()) {
            count *= Evaluate(dim);
        }
        const ElementType element = type.element;
        const Known bounds = BoundsOf(element);
        const bool wide = !IsFloat(element) && scalars_.Chance(40);
        const bool integral =
            !IsFloat(element) || (element != ElementType::kF8E8M0 && scalars_.Chance(40));
        const double low = wide ? bounds.low : std::max(bounds.low, -3.0);
        const double high = wide ? bounds.high : std::min(bounds.high, 9.0);
        std::vector<uint8_t>& bytes =
            result_.buffers.emplace_back(static_cast<size_t>(count) * BytesOf(element));
        for (int64_t i = 0; i < count; ++i) {
            Scalar value;
            if (IsFloat(element)) {
                double number = scalars_.Uniform(low, high);
                number = integral ? std::round(number) : number;
                if (element == ElementType::kF8E8M0) {
                    number = std::exp2(static_cast<double>(scalars_.Between(-3, 3)));
                }
                value = Scalar::Float(number);
            } else if (wide) {
                value = Scalar::Integer(static_cast<int64_t>(
                    scalars_.Between(INT32_MIN, INT32_MAX) * 0x100000001 ^ scalars_.Between(0, 9)));
            } else {
                value = Scalar::Integer(
                    scalars_.Between(static_cast<int64_t>(low), static_cast<int64_t>(high)));
            }
            WriteElement(element, value, bytes.data() + static_cast<size_t>(i) * BytesOf(element));
        }
        if (element == ElementType::kF8E8M0) {
            return {0.125, 8};
        }
        // Narrow types round what they get.
        return {IsFloat(element) ? std::floor(low) - 1 : low,
                IsFloat(element) ? std::ceil(high) + 1 : high, 0,
                integral && element != ElementType::kF4E2M1};
    }

    void Input(std::string name) {
        std::vector<Expr> dims;
        int64_t count = 1;
        for (int64_t rank = scalars_.Between(0, 3); rank > 0; --rank) {
            Expr dim = RandomSize(9);
            const auto& variables = scalars_.variables_;
            if (!variables.empty() && scalars_.Chance(60)) {
                dim = scalars_.OneOf(variables).extent + scalars_.Between(-1, 1);
                dim = Evaluate(dim) < 0 ? Expr(0) : Max(dim, 0);
            }
            dim = count * Evaluate(dim) > 4000 ? Expr(2) : dim;
            count *= Evaluate(dim);
            dims.push_back(dim);
        }
        const BufferId id = AddBuffer(std::move(name), scalars_.RandomType(), dims, false);
        const Known content = Fill(scalars_.kernel_[id].type);
        result_.tolerances.push_back(0);
        scalars_.sources_.push_back({id, content, {}});
    }

    // Each parallel variable is in one dimension, by itself or as a part of a row-major index of
    // several. Behind these come dimensions that are the point's own.
    void Output(std::string name) {
        std::vector<RandomScalars::Variable> variables;
        for (size_t i = 0; i < scalars_.kernel_.parallel.size(); ++i) {
            variables.push_back(scalars_.variables_[i]);
        }
        std::vector<Expr> dims, prefix;
        while (!variables.empty()) {
            const bool join = !dims.empty() && scalars_.Chance(35);
            // Mostly in order, which lets adjacent loops become one.
            const size_t chosen = scalars_.Chance(75) ? 0 : scalars_.Below(variables.size());
            const RandomScalars::Variable variable = variables[chosen];
            variables.erase(variables.begin() + static_cast<std::ptrdiff_t>(chosen));
            const Expr index =
                scalars_.Chance(15) ? variable.extent - 1 - variable.symbol : Expr(variable.symbol);
            if (join) {
                prefix.back() = prefix.back() * variable.extent + index;
                dims.back() = dims.back() * variable.extent;
            } else {
                prefix.push_back(index);
                dims.push_back(variable.extent);
            }
        }
        for (size_t axis = 0; axis < dims.size(); ++axis) {
            if (scalars_.Chance(15)) {  // some points are outside
                prefix[axis] += scalars_.Between(-1, 1);
            } else if (scalars_.Chance(10)) {
                dims[axis] += 1;
            }
        }
        const size_t point_dims = dims.size();
        const int64_t own =
            scalars_.kernel_.sequential.empty() ? scalars_.Below(5) / 4 : scalars_.Between(0, 2);
        for (int64_t i = 0; i < own; ++i) {
            dims.push_back(scalars_.Between(1, 4));
        }
        const ElementType type = scalars_.RandomType();
        const BufferId id = AddBuffer(std::move(name), type, dims, true);
        Known content = Fill(scalars_.kernel_[id].type);
        result_.tolerances.push_back(0);
        Target target{id, prefix, false};
        prefix.resize(point_dims);
        // What is read back has to be exact, or errors would grow from iteration to iteration.
        const bool readable = type != ElementType::kF8E8M0 && type != ElementType::kF4E2M1 &&
                              (!IsFloat(type) || content.integral);
        if (readable && scalars_.Chance(50)) {
            target.is_read = true;
            content = Known{std::min(content.low, -64.0), std::max(content.high, 64.0), 0, true};
            if (!IsFloat(type)) {
                content = BoundsOf(type);
            }
            scalars_.sources_.push_back({id, content, prefix});
        }
        targets_.push_back(target);
    }

    void Stores() {
        for (const Target& target : targets_) {
            // One store without a condition, and perhaps others; later ones may meet earlier ones.
            for (int64_t i = scalars_.Chance(30) ? 2 : 1; i > 0; --i) {
                StoreTo(target);
            }
        }
    }

    void StoreTo(const Target& target) {
        const TensorType type = scalars_.kernel_[target.buffer].type;
        Store store{target.buffer, target.prefix, {}, {}};
        for (size_t axis = store.index.size(); axis < type.shape.rank(); ++axis) {
            store.index.push_back(scalars_.RandomIndex(type.shape[axis]));
        }
        const int depth = static_cast<int>(scalars_.Between(1, 5));
        store.value = target.is_read ? scalars_.ExactValue(type.element, depth, 64)
                                     : scalars_.Value(type.element, depth);
        if (scalars_.Chance(25)) {
            store.condition = scalars_.Value(ElementType::kBool, 2);
        }
        const Known& known = scalars_[store.value];
        double& tolerance = result_.tolerances[target.buffer.value()];
        if (known.error > 0) {
            tolerance =
                std::max(tolerance, 4 * known.error + Spacing(type.element, known.magnitude()));
        }
        scalars_.kernel_.stores.push_back(std::move(store));
    }

    RandomScalars scalars_;
    std::vector<Target> targets_;
    RandomKernel result_;
};

}  // namespace

RandomKernel MakeRandomKernel(uint64_t seed) {
    return Generator(seed).Make(seed);
}

std::optional<std::string> FindDifference(const RandomKernel& random,
                                          const std::vector<std::vector<uint8_t>>& expected,
                                          const std::vector<std::vector<uint8_t>>& actual) {
    for (size_t b = 0; b < expected.size(); ++b) {
        const Buffer& buffer = random.kernel.buffers[b];
        const ElementType type = buffer.type.element;
        const size_t width = BytesOf(type);
        for (size_t i = 0; i < expected[b].size() / width; ++i) {
            const Scalar x = ReadElement(type, expected[b].data() + i * width);
            const Scalar y = ReadElement(type, actual[b].data() + i * width);
            if (!x.is_float
                    ? x.integer == y.integer
                    : x.number == y.number || (std::isnan(x.number) && std::isnan(y.number)) ||
                          std::abs(x.number - y.number) <= random.tolerances[b]) {
                continue;
            }
            return fmt::format(
                "Element {} of {} ({}) is {}, not {}; it may differ by {}.", i, buffer.name,
                Name(type), x.is_float ? fmt::format("{}", y.number) : fmt::format("{}", y.integer),
                x.is_float ? fmt::format("{}", x.number) : fmt::format("{}", x.integer),
                random.tolerances[b]);
        }
    }
    return std::nullopt;
}

}  // namespace fornax::graph::loop
