// Storages, views and writes; the operators are in the other files.
#include "compiler/frontends/ggml/importer.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "compiler/frontends/ggml/node.h"
#include "compiler/frontends/ggml/view.h"
#include "compiler/graph/build/builder.h"

namespace fornax::ggml_frontend {

using graph::Shape;
using graph::Val;

namespace {

OperatorFunction FindOperator(std::string_view name) {
    static const auto* const table = [] {
        auto* all = new std::map<std::string_view, OperatorFunction>();
        for (const auto operators :
             {ElementwiseOperators(), ReductionOperators(), RowOperators(), AttentionOperators(),
              ProductOperators(), WindowOperators(), TrainingOperators(), PlaceOperators(),
              ResizeOperators(), RecurrentOperators(), IndexerOperators()}) {
            for (const Operator& one : operators) {
                all->emplace(one.name, one.function);
            }
        }
        return all;
    }();
    const auto found = table->find(name);
    return found == table->end() ? nullptr : found->second;
}

// The shape of a whole storage.
Shape StorageShape(const Storage& storage) {
    return MemoryShape(*storage.type, storage.ne);
}

bool IsView(std::string_view operation) {
    return operation == "NONE" || operation == "RESHAPE" || operation == "VIEW" ||
           operation == "PERMUTE" || operation == "TRANSPOSE";
}

bool IsContiguous(const Tensor& tensor) {
    const TypeInfo& type = *tensor.type;
    auto stride = static_cast<uint64_t>(type.block_bytes);
    for (size_t d = 0; d < kDims; ++d) {
        if (tensor.ne[d] != 1 && tensor.nb[d] != stride) {
            return false;
        }
        stride *= static_cast<uint64_t>(d == 0 ? tensor.ne[0] / type.block_elements : tensor.ne[d]);
    }
    return true;
}

// Whether a tensor is its storage as it is.
bool IsWhole(const Graph& graph, const Tensor& tensor) {
    return tensor.ne == graph.storages.at(tensor.storage).ne && tensor.offset == 0 &&
           IsContiguous(tensor);
}

// By storage.
std::vector<bool> WrittenStorages(const Graph& graph) {
    std::vector<bool> written(graph.storages.size());
    for (const uint32_t index : graph.nodes) {
        const Tensor& node = graph.tensors.at(index);
        if (IsView(node.operation)) {
            continue;
        }
        written.at(node.storage) = true;
        for (const int32_t source : WrittenSources(node)) {
            written.at(graph.tensors.at(static_cast<size_t>(source)).storage) = true;
        }
    }
    return written;
}

// Whether products may read a pack of a tensor that the graph does not write.
bool MayBePacked(const Graph& graph, const Tensor& tensor) {
    return graph.storages.at(tensor.storage).is_weights && tensor.type != nullptr &&
           IsWhole(graph, tensor) && tensor.ne[2] == 1 && tensor.ne[3] == 1 &&
           IsPacked(*tensor.type, tensor.ne[0], tensor.ne[1]);
}

// The matrix of weights that a node multiplies by; null if it does not.
const Tensor* WeightsOf(const Graph& graph, const Tensor& node) {
    if (node.operation != "MUL_MAT" || node.sources.size() < 2 || node.sources[0] < 0) {
        return nullptr;
    }
    const Tensor& matrix = graph.tensors.at(static_cast<size_t>(node.sources[0]));
    return graph.storages.at(matrix.storage).is_weights ? &matrix : nullptr;
}

// Types whose elements kernels of few rows read in order at the price of a load.
bool IsReadInPlace(const TypeInfo& type) {
    return type.blocks == Blocks::kQ8_0 || type.element == graph::ElementType::kF16 ||
           type.element == graph::ElementType::kBF16;
}

}  // namespace

class Importer {
  public:
    Importer(const Graph& graph, const std::string& name)
        : from_(graph), to_(name), builder_(to_), memory_(graph.storages.size()) {}

    ImportedGraph Run() {
        const std::vector<bool> written = WrittenStorages(from_);
        for (size_t i = 0; i < written.size(); ++i) {
            memory_[i].is_written = written[i];
        }
        if (from_.in_place) {
            for (const uint32_t storage : MatricesInPlace(from_)) {
                memory_[storage].is_in_place = true;
            }
        }
        for (const uint32_t index : from_.nodes) {
            const Tensor& tensor = from_.tensors[index];
            if (IsView(tensor.operation)) {
                continue;
            }
            node_ = &tensor;
            builder_.SetName(tensor.name);
            AddNode(tensor);
        }
        AddResults();
        result_.graph = std::move(to_);
        return std::move(result_);
    }

    const Tensor* node() const { return node_; }
    const Tensor& tensor(int32_t index) const {
        return from_.tensors.at(static_cast<size_t>(index));
    }
    graph::Builder& builder() { return builder_; }

    Val Read(const Tensor& tensor) {
        CheckType(tensor);
        if (IsWhole(from_, tensor)) {
            return Whole(tensor.storage);
        }
        const Val flat = Flat(tensor.storage);
        // What a cache has grows from graph to graph.
        return ReadView(flat, ViewOf(tensor), memory_[tensor.storage].is_state);
    }

    bool HasPack(const Tensor& tensor) {
        CheckType(tensor);
        const Memory& memory = memory_[tensor.storage];
        return !memory.is_written && !memory.is_in_place && MayBePacked(from_, tensor);
    }

    bool IsInPlace(const Tensor& tensor) const { return memory_[tensor.storage].is_in_place; }

    Val PackPart(uint32_t storage, Part part, graph::ElementType element, Shape shape) {
        Val& value = pack_parts_[{storage, part}];
        if (!value) {
            value = builder_.Input(fmt::format("m{}.{}", storage, static_cast<int>(part)),
                                   {element, std::move(shape)});
            result_.inputs.push_back({storage, part});
        }
        return value;
    }

  private:
    struct Memory {
        Val whole;  // what it holds now, of StorageShape(); nothing before the first use
        bool is_written = false;  // by any node
        bool is_state = false;
        bool is_in_place = false;  // of the matrices that products read so
    };

    void CheckType(const Tensor& tensor) {
        const TypeInfo* of_storage = from_.storages.at(tensor.storage).type;
        if (tensor.type == nullptr || of_storage == nullptr) {
            graph::FailUnsupported(fmt::format("the type of {} is not covered", tensor.name));
        }
        if (tensor.type != of_storage) {
            graph::FailUnsupported(fmt::format("{} is a view of type {} of memory of type {}",
                                               tensor.name, tensor.type->name, of_storage->name));
        }
        if (tensor.count() == 0) {
            graph::FailUnsupported(fmt::format("{} has no elements", tensor.name));
        }
    }

    StridedView ViewOf(const Tensor& tensor) {
        const TypeInfo& type = *tensor.type;
        const int64_t unit = type.is_quantised() ? 1 : type.block_bytes;
        StridedView view;
        view.sizes = tensor.ne;
        for (size_t d = 0; d < kDims; ++d) {
            view.strides[d] = static_cast<int64_t>(tensor.nb[d]);
            if (view.strides[d] % unit != 0) {
                graph::FailUnsupported(
                    fmt::format("{} lies in strides of {} bytes", tensor.name, tensor.nb[d]));
            }
            view.strides[d] /= unit;
        }
        if (type.is_quantised()) {
            if (tensor.ne[0] % type.block_elements != 0 ||
                tensor.nb[0] != static_cast<uint64_t>(type.block_bytes)) {
                graph::FailUnsupported(fmt::format("{} has rows of parts of blocks", tensor.name));
            }
            view.sizes[0] = tensor.ne[0] / type.block_elements * type.block_bytes;
            view.strides[0] = 1;
        }
        view.offset = static_cast<int64_t>(tensor.offset) / unit;
        if (static_cast<int64_t>(tensor.offset) % unit != 0) {
            graph::FailUnsupported(fmt::format("{} begins at byte {}", tensor.name, tensor.offset));
        }
        return view;
    }

    // What a storage holds when it is first used.
    Val Whole(uint32_t index) {
        Memory& memory = memory_.at(index);
        if (memory.whole) {
            return memory.whole;
        }
        const Storage& storage = from_.storages[index];
        const graph::TensorType type{storage.type->element, StorageShape(storage)};
        const std::string name = fmt::format("m{}", index);
        if (memory.is_written && !storage.is_shared) {
            memory.is_state = true;
            memory.whole = builder_.AddOne(graph::op::ReadState{name, type}, {});
            result_.states.push_back({name, index});
        } else {
            memory.whole = builder_.Input(name, type);
            result_.inputs.push_back({index});
        }
        return memory.whole;
    }

    Val Flat(uint32_t index) {
        const Val whole = Whole(index);
        return Reshape(whole, Shape({whole.shape().Volume()}));
    }

    void AddNode(const Tensor& tensor) {
        const OperatorFunction function = FindOperator(tensor.operation);
        if (function == nullptr) {
            graph::FailUnsupported("the operator is not covered");
        }
        if (tensor.count() == 0) {
            return;  // nothing is computed
        }
        CheckType(tensor);
        if (tensor.operation == "SET_ROWS" && !tensor.sources.empty() && tensor.sources[0] >= 0 &&
            this->tensor(tensor.sources[0]).count() == 0) {
            return;  // no row is written
        }
        for (const int32_t source : tensor.sources) {
            if (source >= 0) {
                CheckType(this->tensor(source));
            }
        }
        Val value =
            tensor.operation == "SET_ROWS" ? WithRows(tensor) : function(Node(*this, tensor));
        const Shape in_memory = MemoryShape(*tensor.type, tensor.ne);
        if (tensor.type->is_quantised() && value.element() != graph::ElementType::kU8) {
            value = Encode(value, *tensor.type);
        }
        if (value.shape() != in_memory) {
            graph::FailInvalid(fmt::format("the result has the shape {}, not {}",
                                           value.shape().ToString(), in_memory.ToString()));
        }
        value = Cast(value, tensor.type->element);
        Write(tensor, value);
    }

  public:
    void Write(const Tensor& tensor, Val value) {
        const Storage& storage = from_.storages[tensor.storage];
        // Where all of it is written, what it held before does not count.
        const bool is_all =
            tensor.offset == 0 && IsContiguous(tensor) && tensor.count() == CountOf(storage);
        memory_[tensor.storage].whole =
            is_all ? Reshape(value, StorageShape(storage))
                   : Reshape(WriteView(Flat(tensor.storage), ViewOf(tensor), value),
                             StorageShape(storage));
    }

  private:
    // The tensor with rows replaced by source 0.
    Val WithRows(const Tensor& tensor) {
        const Node node(*this, tensor);
        const TypeInfo& type = *tensor.type;
        const Val updates =
            type.is_quantised() ? Encode(node.Float(0), type) : Cast(node.Raw(0), type.element);
        // Indices [1 or i3, 1 or i2, rows] for updates [i3, i2, rows, elements].
        Val index = node.Integer(1);  // [1, i12, i11, i10]
        const Shape of_index = index.shape();
        index = Reshape(index, Shape({of_index[1], of_index[2], of_index[3], 1}));
        Shape repeated = updates.shape();
        repeated[3] = 1;
        index = BroadcastTo(RepeatTo(index, repeated), updates.shape());
        const bool is_whole = IsContiguous(tensor) && tensor.offset == 0 &&
                              tensor.count() == CountOf(from_.storages[tensor.storage]);
        const Val rows =
            is_whole ? Reshape(Whole(tensor.storage), MemoryShape(type, tensor.ne)) : Read(tensor);
        return Scatter(rows, updates, {0, 1, -1, 3}, {index});
    }

    static int64_t CountOf(const Storage& storage) {
        return storage.ne[0] * storage.ne[1] * storage.ne[2] * storage.ne[3];
    }

    void AddResults() {
        for (uint32_t i = 0; i < memory_.size(); ++i) {
            Memory& memory = memory_[i];
            if (!memory.is_written || !memory.whole) {
                continue;
            }
            const std::string name = fmt::format("m{}", i);
            if (memory.is_state) {
                builder_.Add(graph::op::WriteState{name}, {memory.whole});
            } else if (from_.storages[i].is_kept) {
                to_.AddOutput(name, memory.whole.id());
                result_.outputs.push_back(i);
            }
        }
    }

    const Graph& from_;
    graph::Graph to_;
    graph::Builder builder_;
    std::vector<Memory> memory_;  // by storage
    std::map<std::pair<uint32_t, Part>, Val> pack_parts_;
    ImportedGraph result_;
    const Tensor* node_ = nullptr;  // that is being imported
};

graph::Builder& Node::builder() const {
    return importer_.builder();
}

Shape Node::shape() const {
    return ShapeOf(tensor_);
}

Shape Node::memory_shape() const {
    return MemoryShape(*tensor_.type, tensor_.ne);
}

bool Node::has(size_t source) const {
    return source < tensor_.sources.size() && tensor_.sources[source] >= 0;
}

const Tensor& Node::source(size_t index) const {
    if (!has(index)) {
        graph::FailInvalid(fmt::format("source {} is left out", index));
    }
    return importer_.tensor(tensor_.sources[index]);
}

Val Node::Raw(size_t index) const {
    return importer_.Read(source(index));
}

Val Node::Float(size_t index) const {
    const Val value = Raw(index);
    const TypeInfo& type = *source(index).type;
    return type.is_quantised() ? Decode(value, type) : Cast(value, graph::ElementType::kF32);
}

Val Node::Integer(size_t index) const {
    const Val value = Raw(index);
    if (source(index).type->is_quantised() || !graph::IsInteger(value.element())) {
        graph::FailInvalid(fmt::format("source {} is of type {}, not of integers", index,
                                       source(index).type->name));
    }
    return Cast(value, graph::ElementType::kI64);
}

void Node::WriteSource(size_t index, Val value) const {
    const Tensor& written = source(index);
    importer_.Write(written, Cast(value, written.type->element));
}

bool Node::IsPacked(size_t index) const {
    return importer_.HasPack(source(index));
}

bool Node::IsInPlace(size_t index) const {
    return importer_.IsInPlace(source(index));
}

Val Node::PackPart(size_t index, Part part, graph::ElementType element, Shape shape) const {
    return importer_.PackPart(source(index).storage, part, element, std::move(shape));
}

Shape MemoryShape(const TypeInfo& type, const std::array<int64_t, kDims>& ne) {
    return Shape({ne[3], ne[2], ne[1],
                  type.is_quantised() ? ne[0] / type.block_elements * type.block_bytes : ne[0]});
}

Shape ShapeOf(const Tensor& tensor) {
    return Shape({tensor.ne[3], tensor.ne[2], tensor.ne[1], tensor.ne[0]});
}

Val RepeatTo(Val value, const Shape& shape) {
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
        const int64_t from = value.shape().Constants()->at(axis);
        const int64_t to = shape.Constants()->at(axis);
        if (from == to) {
            continue;
        }
        if (from == 0 || to % from != 0) {
            graph::FailInvalid(fmt::format("{} cannot be repeated to {}", value.shape().ToString(),
                                           shape.ToString()));
        }
        Shape result = value.shape();
        result[axis] = to;
        if (from == 1) {
            value = BroadcastTo(value, result);
            continue;
        }
        value = Unsqueeze(value, static_cast<int64_t>(axis));
        Shape repeated = value.shape();
        repeated[axis] = to / from;
        value = Reshape(BroadcastTo(value, repeated), result);
    }
    return value;
}

int64_t MostRowsOfWeights(const Graph& graph) {
    int64_t most = 0;
    for (const uint32_t index : graph.nodes) {
        const Tensor& node = graph.tensors.at(index);
        if (WeightsOf(graph, node) != nullptr) {
            most = std::max(most, node.ne[1] * node.ne[2] * node.ne[3]);
        }
    }
    return most;
}

std::vector<uint32_t> MatricesInPlace(const Graph& graph) {
    // As many as a kernel has in registers, so that it reads the matrix once.
    constexpr int64_t kMostRows = 16;
    std::vector<uint32_t> storages;
    if (MostRowsOfWeights(graph) > kMostRows) {
        return storages;
    }
    const std::vector<bool> written = WrittenStorages(graph);
    for (const uint32_t index : graph.nodes) {
        const Tensor* matrix = WeightsOf(graph, graph.tensors.at(index));
        if (matrix != nullptr && MayBePacked(graph, *matrix) && IsReadInPlace(*matrix->type) &&
            !written[matrix->storage]) {
            storages.push_back(matrix->storage);
        }
    }
    std::sort(storages.begin(), storages.end());
    const auto repeated = std::unique(storages.begin(), storages.end());
    storages.erase(repeated, storages.end());
    return storages;
}

Result<ImportedGraph> Import(const Graph& graph, const std::string& name) {
    Importer importer(graph, name);
    try {
        return importer.Run();
    } catch (const graph::BuildError& error) {
        const Tensor* node = importer.node();
        return Error{error.code(),
                     fmt::format("{} ({}): {}.", node == nullptr ? name : node->name,
                                 node == nullptr ? "graph" : node->operation, error.what())};
    }
}

}  // namespace fornax::ggml_frontend
