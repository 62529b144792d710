// Makes random graphs: a pool of values, to which random nodes on random values of the pool are
// added.
#include "compiler/graph/testing/random_graph.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/graph/testing/random_tensor.h"

namespace fornax::graph::testing {
namespace {

constexpr int64_t kMaxVolume = 3000;
constexpr double kMaxExact = 1 << 20;  // integers up to here are exact in f32, sums of a few too
constexpr double kMaxSmooth = 1e4;

// What is known of a value: its bound, and whether every implementation gets it to the last bit.
struct Known {
    ValueId id;
    double bound = 0;
    bool exact = true;
    double error = 0;  // how far two implementations may lie apart
};

class Generator {
  public:
    explicit Generator(uint64_t seed) : random_(seed) {}

    RandomGraph Run() {
        const int64_t inputs = Between(1, 3);
        for (int64_t i = 0; i < inputs; ++i) {
            AddInput();
        }
        AddConstant();
        const int64_t nodes = Between(3, 24);
        int64_t added = 0;
        for (int attempt = 0; attempt < 200 && added < nodes; ++attempt) {
            added += AddRandomNode() ? 1 : 0;
        }
        const int64_t outputs = Between(1, 3);
        for (int64_t i = 0; i < outputs; ++i) {
            const Known& known = i == 0 ? pool_.back() : Any();
            result_.graph.AddOutput("out" + std::to_string(i), known.id);
            result_.exact.push_back(known.exact);
            result_.tolerance.push_back(known.error);
        }
        return std::move(result_);
    }

  private:
    int64_t Between(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
    }
    bool OneIn(int64_t n) { return Between(1, n) == 1; }
    const Known& Any() {
        return pool_[static_cast<size_t>(Between(0, static_cast<int64_t>(pool_.size()) - 1))];
    }
    // Prefers what was made last, so that graphs get deep.
    Known Pick() {
        const auto size = static_cast<int64_t>(pool_.size());
        return OneIn(3)
                   ? Any()
                   : pool_[static_cast<size_t>(Between(std::max<int64_t>(0, size - 4), size - 1))];
    }
    const Graph& graph() const { return result_.graph; }
    ElementType ElementOf(ValueId id) const { return graph().TypeOf(id).element; }
    std::vector<int64_t> DimsOf(ValueId id) const { return *graph().ShapeOf(id).Constants(); }
    size_t RankOf(ValueId id) const { return graph().ShapeOf(id).rank(); }
    int64_t RandomAxis(ValueId id) { return Between(0, static_cast<int64_t>(RankOf(id)) - 1); }

    ElementType RandomType() {
        constexpr ElementType kTypes[] = {ElementType::kF32,  ElementType::kF32, ElementType::kF32,
                                          ElementType::kF16,  ElementType::kI32, ElementType::kI64,
                                          ElementType::kU8,   ElementType::kI8,  ElementType::kBool,
                                          ElementType::kBF16, ElementType::kF64};
        return kTypes[Between(0, std::size(kTypes) - 1)];
    }

    std::vector<int64_t> RandomDims() {
        std::vector<int64_t> dims;
        const int64_t rank = Between(0, 4);
        for (int64_t i = 0; i < rank; ++i) {
            dims.push_back(OneIn(40)   ? 0
                           : OneIn(5)  ? 1
                           : OneIn(12) ? Between(30, 70)
                                       : Between(2, 8));
        }
        return dims;
    }

    Tensor RandomTensor(ElementType type,
                        const std::vector<int64_t>& dims,
                        int64_t low,
                        int64_t high) {
        return MakeRandomTensor(random_, type, dims, low, high);
    }

    void AddInput() {
        const ElementType type = RandomType();
        const std::vector<int64_t> dims = RandomDims();
        result_.inputs.push_back(RandomTensor(type, dims, LowOf(type), HighOf(type)));
        const ValueId id = result_.graph.AddInput("in" + std::to_string(result_.inputs.size()),
                                                  {type, Shape::Of(dims)});
        pool_.push_back({id, 4, true, 0});
    }

    void AddConstant() {
        const ElementType type = RandomType();
        Tensor tensor = RandomTensor(type, RandomDims(), LowOf(type), HighOf(type));
        pool_.push_back({result_.graph.AddConstant("constant", std::move(tensor)), 4, true, 0});
    }

    // Adds a node; its first result goes into the pool.
    bool Add(Operation operation, std::vector<ValueId> operands, Known known) {
        const std::string name = "n" + std::to_string(pool_.size());
        Result<NodeId> node =
            result_.graph.AddNode(name, std::move(operation), std::move(operands));
        if (!node.ok()) {
            return false;
        }
        known.id = graph()[*node].results[0];
        // A kernel may keep narrow floats wider between two nodes, so they are exact only as
        // integers.
        const ElementType type = ElementOf(known.id);
        const double exact_limit = type == ElementType::kF16    ? 2048
                                   : type == ElementType::kBF16 ? 256
                                                                : kMaxExact;
        if (IsFloat(type) && known.exact && known.bound > exact_limit) {
            known.exact = false;
            known.error = known.bound * (type == ElementType::kF16    ? 2e-3
                                         : type == ElementType::kBF16 ? 1e-2
                                                                      : 1e-6);
        } else if (!known.exact) {
            const double unit = type == ElementType::kF16    ? 1e-3
                                : type == ElementType::kBF16 ? 8e-3
                                                             : 2e-6;
            known.error += unit * std::max(1.0, known.bound);
        }
        pool_.push_back(known);
        return true;
    }

    bool Fits(const Known& known, int64_t volume) const {
        return volume <= kMaxVolume && known.bound <= (known.exact ? kMaxExact : kMaxSmooth) &&
               known.error <= 0.05 * std::max(1.0, known.bound);
    }
    int64_t Volume(ValueId id) const { return *graph().ShapeOf(id).Volume().constant(); }

    bool AddRandomNode() {
        using Maker = bool (Generator::*)();
        constexpr Maker kMakers[] = {
            &Generator::AddUnary,     &Generator::AddUnary,    &Generator::AddBinary,
            &Generator::AddBinary,    &Generator::AddBinary,   &Generator::AddCast,
            &Generator::AddSelect,    &Generator::AddReduce,   &Generator::AddReduce,
            &Generator::AddArgReduce, &Generator::AddScan,     &Generator::AddSort,
            &Generator::AddReshape,   &Generator::AddPermute,  &Generator::AddBroadcast,
            &Generator::AddSlice,     &Generator::AddPad,      &Generator::AddWindow,
            &Generator::AddConcat,    &Generator::AddGather,   &Generator::AddScatter,
            &Generator::AddContract,  &Generator::AddContract, &Generator::AddIota,
        };
        return (this->*kMakers[Between(0, std::size(kMakers) - 1)])();
    }

    bool AddUnary() {
        const Known a = Pick();
        const ElementType type = ElementOf(a.id);
        if (type == ElementType::kBool) {
            return Add(op::Map{ScalarFunction::kNot}, {a.id}, {{}, 1, true, 0});
        }
        if (!IsFloat(type) || OneIn(3)) {
            constexpr ScalarFunction kExact[] = {ScalarFunction::kNeg, ScalarFunction::kAbs,
                                                 ScalarFunction::kSign};
            const ScalarFunction function = kExact[Between(0, 2)];
            if (!IsSigned(type) || (function == ScalarFunction::kSign && !a.exact)) {
                return false;
            }
            return Add(op::Map{function}, {a.id}, a);
        }
        // Bounded functions, whose slope is at most 1.
        constexpr ScalarFunction kSmooth[] = {ScalarFunction::kSin,     ScalarFunction::kCos,
                                              ScalarFunction::kTanh,    ScalarFunction::kErf,
                                              ScalarFunction::kSigmoid, ScalarFunction::kAtan};
        if (a.bound > 100 || type == ElementType::kF64) {
            return false;
        }
        return Add(op::Map{kSmooth[Between(0, std::size(kSmooth) - 1)]}, {a.id},
                   {{}, 2, false, a.error * 1.2 + 4e-6});
    }

    // A value of the same type, reshaped by broadcasting to the dims of `a`.
    bool SameShape(const Known& a, Known& b) {
        const std::vector<int64_t> dims = DimsOf(a.id);
        for (int attempt = 0; attempt < 6; ++attempt) {
            b = Pick();
            if (ElementOf(b.id) == ElementOf(a.id) && DimsOf(b.id) == dims) {
                return true;
            }
        }
        if (OneIn(2)) {
            b = a;
            return true;
        }
        const ElementType type = ElementOf(a.id);
        Tensor tensor = RandomTensor(type, dims, LowOf(type), HighOf(type));
        b = {result_.graph.AddConstant("constant", std::move(tensor)), 4, true, 0};
        return true;
    }

    bool AddBinary() {
        const Known a = Pick();
        Known b;
        SameShape(a, b);
        const ElementType type = ElementOf(a.id);
        if (type == ElementType::kBool) {
            constexpr ScalarFunction kLogic[] = {ScalarFunction::kAnd, ScalarFunction::kOr,
                                                 ScalarFunction::kXor, ScalarFunction::kEqual};
            return Add(op::Map{kLogic[Between(0, 3)]}, {a.id, b.id}, {{}, 1, true, 0});
        }
        const bool exact = a.exact && b.exact;
        Known known = {{}, a.bound + b.bound, exact, a.error + b.error};
        switch (Between(0, IsInteger(type) ? 11 : 6)) {
            case 0:
                return Fits(known, 1) && Add(op::Map{ScalarFunction::kAdd}, {a.id, b.id}, known);
            case 1:
                return Fits(known, 1) && IsSigned(type) &&
                       Add(op::Map{ScalarFunction::kSub}, {a.id, b.id}, known);
            case 2:
                known.bound = a.bound * b.bound;
                known.error = a.error * b.bound + b.error * a.bound;
                return Fits(known, 1) && Add(op::Map{ScalarFunction::kMul}, {a.id, b.id}, known);
            case 3:
                known.bound = std::max(a.bound, b.bound);
                return Add(op::Map{ScalarFunction::kMin}, {a.id, b.id}, known);
            case 4:
                known.bound = std::max(a.bound, b.bound);
                return Add(op::Map{ScalarFunction::kMax}, {a.id, b.id}, known);
            case 5:
                return exact && Add(op::Map{ScalarFunction::kLess}, {a.id, b.id}, {{}, 1, true, 0});
            case 6:
                return exact &&
                       Add(op::Map{ScalarFunction::kLessEqual}, {a.id, b.id}, {{}, 1, true, 0});
            case 7:
                return Add(op::Map{ScalarFunction::kDiv}, {a.id, b.id}, {{}, 256, true, 0});
            case 8:
                return Add(op::Map{ScalarFunction::kMod}, {a.id, b.id}, {{}, 256, true, 0});
            case 9:
                return Add(op::Map{ScalarFunction::kFloorDiv}, {a.id, b.id}, {{}, 256, true, 0});
            case 10:
                return Add(op::Map{ScalarFunction::kXor}, {a.id, b.id}, {{}, kMaxExact, true, 0});
            default:
                return Add(op::Map{ScalarFunction::kShiftRight}, {a.id, b.id},
                           {{}, kMaxExact, true, 0});
        }
    }

    bool AddSelect() {
        const Known condition = Pick(), a = Any();
        if (ElementOf(condition.id) != ElementType::kBool || DimsOf(a.id) != DimsOf(condition.id)) {
            return false;
        }
        Known b;
        SameShape(a, b);
        return Add(
            op::Map{ScalarFunction::kSelect}, {condition.id, a.id, b.id},
            {{}, std::max(a.bound, b.bound), a.exact && b.exact, std::max(a.error, b.error)});
    }

    bool AddCast() {
        const Known a = Pick();
        const ElementType to = RandomType();
        // A float that is not exact may lie on either side of an integer.
        if (!a.exact && !IsFloat(to)) {
            return false;
        }
        Known known = a;
        if (to == ElementType::kBool) {
            known.bound = 1;
        } else if (IsInteger(to) && a.bound > 100) {
            if (IsFloat(ElementOf(a.id))) {
                return false;
            }
            known.bound = kMaxExact;
        }
        return Add(op::Cast{to}, {a.id}, known);
    }

    bool AddReduce() {
        const Known a = Pick();
        if (RankOf(a.id) == 0) {
            return false;
        }
        Axes axes;
        double volume = 1;
        for (int64_t axis = 0; axis < static_cast<int64_t>(RankOf(a.id)); ++axis) {
            if (OneIn(2)) {
                axes.push_back(axis);
                volume *= static_cast<double>(DimsOf(a.id)[static_cast<size_t>(axis)]);
            }
        }
        const ElementType type = ElementOf(a.id);
        if (axes.empty() || volume == 0) {
            return false;
        }
        Combine combine = OneIn(2) ? Combine::kSum : OneIn(2) ? Combine::kMax : Combine::kMin;
        Known known = a;
        if (type == ElementType::kBool) {
            combine = OneIn(2) ? Combine::kAnd : Combine::kOr;
        } else if (combine == Combine::kSum) {
            known.bound *= volume;
            known.error *= volume;
        }
        return Fits(known, 1) && Add(op::Reduce{combine, axes}, {a.id}, known);
    }

    bool AddArgReduce() {
        const Known a = Pick();
        if (RankOf(a.id) == 0 || !a.exact) {
            return false;
        }
        const int64_t axis = RandomAxis(a.id);
        const int64_t size = DimsOf(a.id)[static_cast<size_t>(axis)];
        return size > 0 &&
               Add(op::ArgReduce{OneIn(2) ? Combine::kMax : Combine::kMin, axis, OneIn(2)}, {a.id},
                   {{}, static_cast<double>(size), true, 0});
    }

    bool AddScan() {
        const Known a = Pick();
        if (RankOf(a.id) == 0 || ElementOf(a.id) == ElementType::kBool) {
            return false;
        }
        const int64_t axis = RandomAxis(a.id);
        const auto size = static_cast<double>(DimsOf(a.id)[static_cast<size_t>(axis)]);
        const Combine combine = OneIn(2) ? Combine::kSum : Combine::kMax;
        Known known = a;
        if (combine == Combine::kSum) {
            known.bound *= std::max(1.0, size);
            known.error *= std::max(1.0, size);
        }
        const bool exclusive = combine == Combine::kSum && OneIn(2);
        return Fits(known, 1) && Add(op::Scan{combine, axis, exclusive, OneIn(2)}, {a.id}, known);
    }

    bool AddSort() {
        const Known a = Pick();
        if (RankOf(a.id) == 0 || !a.exact) {
            return false;
        }
        const int64_t axis = RandomAxis(a.id);
        const int64_t size = DimsOf(a.id)[static_cast<size_t>(axis)];
        if (!Add(op::Sort{axis, OneIn(2), Between(0, size)}, {a.id}, a)) {
            return false;
        }
        const ValueId positions = graph().Producer(pool_.back().id)->results[1];
        pool_.push_back({positions, static_cast<double>(size), true, 0});
        return true;
    }

    bool AddReshape() {
        const Known a = Pick();
        std::vector<int64_t> factors;
        int64_t rest = Volume(a.id);
        for (int64_t factor = 2; rest > 1 && factor <= rest; ++factor) {
            while (rest % factor == 0) {
                factors.push_back(factor);
                rest /= factor;
            }
        }
        std::vector<int64_t> dims(static_cast<size_t>(Between(Volume(a.id) == 1 ? 0 : 1, 4)), 1);
        if (Volume(a.id) == 0) {
            dims[0] = 0;
        }
        for (const int64_t factor : factors) {
            if (!dims.empty()) {
                dims[static_cast<size_t>(Between(0, static_cast<int64_t>(dims.size()) - 1))] *=
                    factor;
            }
        }
        return Add(op::Reshape{Shape::Of(dims)}, {a.id}, a);
    }

    bool AddPermute() {
        const Known a = Pick();
        Axes order;
        for (size_t i = 0; i < RankOf(a.id); ++i) {
            order.push_back(static_cast<int64_t>(i));
        }
        std::shuffle(order.begin(), order.end(), random_);
        return Add(op::Permute{order}, {a.id}, a);
    }

    bool AddBroadcast() {
        const Known a = Pick();
        std::vector<int64_t> dims = DimsOf(a.id);
        int64_t volume = Volume(a.id);
        bool any = false;
        for (int64_t& dim : dims) {
            if (dim == 1 && OneIn(2)) {
                dim = Between(2, 6);
                volume *= dim;
                any = true;
            }
        }
        return any && Fits(a, volume) && Add(op::Broadcast{Shape::Of(dims)}, {a.id}, a);
    }

    bool AddSlice() {
        const Known a = Pick();
        op::Slice slice;
        for (const int64_t dim : DimsOf(a.id)) {
            if (dim == 0 || OneIn(2)) {
                slice.starts.emplace_back(0);
                slice.steps.push_back(1);
                slice.shape.mutable_dims().emplace_back(dim);
                continue;
            }
            const int64_t start = Between(0, dim - 1);
            const int64_t step = OneIn(2) ? 1 : OneIn(2) ? -1 : Between(2, 3);
            const int64_t room = step > 0 ? (dim - 1 - start) / step : start / -step;
            slice.starts.emplace_back(start);
            slice.steps.push_back(step);
            slice.shape.mutable_dims().emplace_back(Between(0, 1 + room));
        }
        return Add(slice, {a.id}, a);
    }

    bool AddPad() {
        const Known a = Pick();
        op::Pad pad;
        int64_t volume = 1;
        for (const int64_t dim : DimsOf(a.id)) {
            const int64_t low = OneIn(2) ? Between(0, 2) : 0, high = OneIn(2) ? Between(0, 2) : 0;
            const int64_t interior = OneIn(4) ? Between(1, 2) : 0;
            pad.low.emplace_back(low);
            pad.high.emplace_back(high);
            pad.interior.push_back(interior);
            volume *= low + high + dim * (1 + interior);
        }
        const ElementType type = ElementOf(a.id);
        if (!Fits(a, volume)) {
            return false;
        }
        const ValueId value =
            result_.graph.AddConstant("pad", RandomTensor(type, {}, LowOf(type), HighOf(type)));
        Known known = a;
        known.bound = std::max(known.bound, 4.0);
        return Add(pad, {a.id, value}, known);
    }

    bool AddWindow() {
        const Known a = Pick();
        if (RankOf(a.id) == 0) {
            return false;
        }
        const int64_t axis = RandomAxis(a.id);
        const int64_t size = DimsOf(a.id)[static_cast<size_t>(axis)];
        return size > 0 && Fits(a, Volume(a.id) * 3) &&
               Add(op::Window{axis, Between(1, std::min<int64_t>(size, 3)), Between(1, 2),
                              Between(1, 2)},
                   {a.id}, a);
    }

    bool AddConcat() {
        const Known a = Pick();
        if (RankOf(a.id) == 0) {
            return false;
        }
        Known b;
        SameShape(a, b);
        std::vector<ValueId> operands = {a.id, b.id};
        if (OneIn(3)) {
            operands.push_back(a.id);
        }
        return Fits(a, 3 * Volume(a.id)) && Add(op::Concat{RandomAxis(a.id)}, operands,
                                                {{},
                                                 std::max(a.bound, b.bound),
                                                 a.exact && b.exact,
                                                 std::max(a.error, b.error)});
    }

    // One source per dimension of `data`: a dimension of `shape` or the next index operand.
    std::vector<int64_t> RandomSources(ValueId data,
                                       const std::vector<int64_t>& shape,
                                       std::vector<ValueId>& operands,
                                       bool distinct) {
        std::vector<int64_t> sources;
        int64_t indices = 0;
        std::vector<bool> taken(shape.size(), false);
        for (const int64_t dim : DimsOf(data)) {
            const int64_t source =
                shape.empty() ? -1 : Between(-1, static_cast<int64_t>(shape.size()) - 1);
            if (source >= 0 && !(distinct && taken[static_cast<size_t>(source)])) {
                taken[static_cast<size_t>(source)] = true;
                sources.push_back(source);
                continue;
            }
            Tensor index = RandomTensor(OneIn(2) ? ElementType::kI64 : ElementType::kI32, shape, -1,
                                        std::max<int64_t>(dim, 0));
            operands.push_back(result_.graph.AddConstant("index", std::move(index)));
            sources.push_back(--indices);
        }
        return sources;
    }

    bool AddGather() {
        const Known a = Pick();
        const std::vector<int64_t> shape = RandomDims();
        std::vector<ValueId> operands = {a.id};
        op::Gather gather;
        gather.shape = Shape::Of(shape);
        gather.sources = RandomSources(a.id, shape, operands, false);
        return gather.shape.Volume().constant_part() <= kMaxVolume && Add(gather, operands, a);
    }

    bool AddScatter() {
        const Known a = Pick(), updates = Any();
        if (ElementOf(updates.id) != ElementOf(a.id) || Volume(updates.id) > 200) {
            return false;
        }
        std::vector<ValueId> operands = {a.id, updates.id};
        op::Scatter scatter;
        scatter.sources = RandomSources(a.id, DimsOf(updates.id), operands, true);
        scatter.combine =
            ElementOf(a.id) == ElementType::kBool || OneIn(2) ? Combine::kReplace : Combine::kSum;
        Known known = {{},
                       std::max(a.bound, updates.bound),
                       a.exact && updates.exact,
                       std::max(a.error, updates.error)};
        if (scatter.combine == Combine::kSum) {
            const auto volume = static_cast<double>(Volume(updates.id));
            known.bound = a.bound + updates.bound * volume;
            known.error = a.error + updates.error * volume;
        }
        return Fits(known, 1) && Add(scatter, operands, known);
    }

    bool AddContract() {
        const Known a = Pick();
        const ElementType type = ElementOf(a.id);
        if (type == ElementType::kBool || RankOf(a.id) == 0) {
            return false;
        }
        op::Contract contract;
        contract.accumulate = type;
        contract.a = std::string("abcdefgh").substr(0, RankOf(a.id));
        std::vector<int64_t> dims;
        double summed = 1, volume = 1;
        for (size_t i = 0; i < contract.a.size(); ++i) {
            const int64_t dim = DimsOf(a.id)[i];
            const int64_t role = Between(0, 2);  // of a alone, summed, of both
            if (role > 0) {
                contract.b += contract.a[i];
                dims.push_back(dim);
            }
            if (role == 1) {
                summed *= static_cast<double>(dim);
            } else {
                contract.result += contract.a[i];
                volume *= static_cast<double>(dim);
            }
        }
        if (OneIn(2)) {
            contract.b += 'x';
            contract.result += 'x';
            dims.push_back(Between(1, 6));
            volume *= static_cast<double>(dims.back());
        }
        std::shuffle(contract.result.begin(), contract.result.end(), random_);
        const ValueId b = result_.graph.AddConstant(
            "factor", RandomTensor(type, dims, LowOf(type), HighOf(type)));
        Known known = {
            {}, a.bound * 4 * std::max(1.0, summed), a.exact, a.error * 4 * std::max(1.0, summed)};
        return Fits(known, static_cast<int64_t>(volume)) && Add(contract, {a.id, b}, known);
    }

    bool AddIota() {
        const std::vector<int64_t> dims = RandomDims();
        op::Iota iota;
        iota.shape = Shape::Of(dims);
        iota.element = OneIn(2) ? ElementType::kF32 : ElementType::kI64;
        if (dims.empty() || *iota.shape.Volume().constant() > kMaxVolume) {
            return false;
        }
        iota.axis = Between(0, static_cast<int64_t>(dims.size()) - 1);
        return Add(iota, {}, {{}, 70, true, 0});
    }

    std::mt19937_64 random_;
    RandomGraph result_;
    std::vector<Known> pool_;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed) {
    return Generator(seed).Run();
}

}  // namespace fornax::graph::testing
