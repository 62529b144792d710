// Finds the storages behind views and which of them share memory.
#include "plugins/ggml/capture.h"

#include <algorithm>
#include <unordered_map>

namespace fornax::ggml_plugin {
namespace {

using ggml_frontend::Storage;

class Builder {
  public:
    explicit Builder(const Host& host) : host_(host) {}

    Capture Run(std::span<abi::Tensor* const> nodes) {
        for (const abi::Tensor* node : nodes) {
            is_node_[node] = true;
        }
        for (const abi::Tensor* node : nodes) {
            if ((node->flags & abi::kFlagCompute) == 0) {
                continue;
            }
            const uint32_t index = IndexOf(*node);
            std::vector<int32_t> sources;
            for (const abi::Tensor* source : node->src) {
                sources.push_back(source == nullptr ? -1 : static_cast<int32_t>(IndexOf(*source)));
            }
            while (!sources.empty() && sources.back() < 0) {
                sources.pop_back();
            }
            ggml_frontend::Tensor& tensor = capture_.graph.tensors[index];
            tensor.sources = std::move(sources);
            tensor.operation = host_.OperationOf(*node);
            capture_.graph.nodes.push_back(index);
            Lifetime& lifetime = lifetimes_[tensor.storage];
            if (!IsView(tensor.operation)) {
                lifetime.last_write = static_cast<int64_t>(capture_.graph.nodes.size());
                lifetime.is_computed |= node->view_src == nullptr;
                for (const int32_t source : ggml_frontend::WrittenSources(tensor)) {
                    const auto at = static_cast<size_t>(source);
                    lifetimes_[capture_.graph.tensors[at].storage].last_write = lifetime.last_write;
                }
            }
        }
        FindShared();
        return std::move(capture_);
    }

  private:
    struct Lifetime {
        int64_t last_write = -1;   // the node that writes it last
        bool is_computed = false;  // by the graph, from the first byte on
    };

    static bool IsView(std::string_view operation) {
        return operation == "NONE" || operation == "RESHAPE" || operation == "VIEW" ||
               operation == "PERMUTE" || operation == "TRANSPOSE";
    }

    uint32_t IndexOf(const abi::Tensor& tensor) {
        const auto [found, is_new] =
            indices_.try_emplace(&tensor, static_cast<uint32_t>(capture_.graph.tensors.size()));
        if (!is_new) {
            return found->second;
        }
        const uint32_t index = found->second;
        ggml_frontend::Tensor& copy = capture_.graph.tensors.emplace_back();
        copy.name.assign(std::begin(tensor.name),
                         std::find(std::begin(tensor.name), std::end(tensor.name), '\0'));
        copy.type = host_.TypeOf(tensor);
        std::copy(std::begin(tensor.ne), std::end(tensor.ne), copy.ne.begin());
        std::copy(std::begin(tensor.nb), std::end(tensor.nb), copy.nb.begin());
        std::copy(std::begin(tensor.op_params), std::end(tensor.op_params),
                  copy.parameters.begin());
        if (!is_node_.contains(&tensor)) {
            capture_.leaves.push_back(&tensor);
        }
        const abi::Tensor& root = tensor.view_src == nullptr ? tensor : *tensor.view_src;
        copy.storage = StorageOf(root);
        if (&root != &tensor) {
            copy.offset = tensor.data == nullptr || root.data == nullptr
                              ? tensor.view_offs
                              : static_cast<uint64_t>(static_cast<const uint8_t*>(tensor.data) -
                                                      static_cast<const uint8_t*>(root.data));
        }
        return index;
    }

    uint32_t StorageOf(const abi::Tensor& root) {
        const auto [found, is_new] =
            storages_.try_emplace(&root, static_cast<uint32_t>(capture_.graph.storages.size()));
        if (is_new) {
            Storage& storage = capture_.graph.storages.emplace_back();
            storage.type = host_.TypeOf(root);
            storage.is_weights = root.buffer != nullptr && root.buffer->usage == abi::kUsageWeights;
            std::copy(std::begin(root.ne), std::end(root.ne), storage.ne.begin());
            capture_.addresses.push_back(root.data);
            capture_.sizes.push_back(SizeOf(storage));
            lifetimes_.emplace_back();
            if (!is_node_.contains(&root) && !indices_.contains(&root)) {
                capture_.leaves.push_back(&root);
            }
        }
        return found->second;
    }

    static uint64_t SizeOf(const Storage& storage) {
        if (storage.type == nullptr) {
            return 0;
        }
        int64_t count = 1;
        for (const int64_t size : storage.ne) {
            count *= size;
        }
        return static_cast<uint64_t>(count / storage.type->block_elements *
                                     storage.type->block_bytes);
    }

    bool Overlap(uint32_t a, uint32_t b) const {
        const auto* begin_a = static_cast<const uint8_t*>(capture_.addresses[a]);
        const auto* begin_b = static_cast<const uint8_t*>(capture_.addresses[b]);
        return begin_a != nullptr && begin_b != nullptr && begin_a < begin_b + capture_.sizes[b] &&
               begin_b < begin_a + capture_.sizes[a];
    }

    // ggml gives the memory of what is not needed any longer to later nodes.
    void FindShared() {
        std::vector<uint32_t> order(capture_.graph.storages.size());
        for (uint32_t i = 0; i < order.size(); ++i) {
            order[i] = i;
        }
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            return std::pair(capture_.addresses[a], a) < std::pair(capture_.addresses[b], b);
        });
        std::vector<uint32_t> open;  // whose bytes may reach to the next ones
        for (const uint32_t next : order) {
            std::erase_if(open, [&](uint32_t other) { return !Overlap(other, next); });
            for (const uint32_t other : open) {
                Meet(other, next);
            }
            open.push_back(next);
        }
    }

    void Meet(uint32_t a, uint32_t b) {
        const Lifetime &of_a = lifetimes_[a], &of_b = lifetimes_[b];
        Storage &first = capture_.graph.storages[a], &second = capture_.graph.storages[b];
        if (of_a.is_computed && of_a.last_write < of_b.last_write) {
            first.is_kept = false;
        }
        if (of_b.is_computed && of_b.last_write < of_a.last_write) {
            second.is_kept = false;
        }
        first.is_shared = second.is_shared = true;
    }

    const Host& host_;
    Capture capture_;
    std::unordered_map<const abi::Tensor*, uint32_t> indices_, storages_;
    std::unordered_map<const abi::Tensor*, bool> is_node_;
    std::vector<Lifetime> lifetimes_;  // by storage
};

}  // namespace

Capture CaptureNodes(const Host& host, std::span<abi::Tensor* const> nodes) {
    return Builder(host).Run(nodes);
}

Hash128 HashOf(const ggml_frontend::Graph& graph) {
    Hasher hasher;
    const auto type_name = [](const ggml_frontend::TypeInfo* type) {
        return type == nullptr ? std::string_view("?") : type->name;
    };
    hasher.AppendListSize(graph.tensors.size());
    for (const ggml_frontend::Tensor& tensor : graph.tensors) {
        hasher.Append(tensor.operation).Append(type_name(tensor.type));
        hasher.AppendArray(std::span(tensor.ne)).AppendArray(std::span(tensor.nb));
        hasher.AppendArray(std::span(tensor.parameters));
        hasher.AppendArray(std::span<const int32_t>(tensor.sources));
        hasher.Append(tensor.storage).Append(tensor.offset);
    }
    hasher.AppendArray(std::span<const uint32_t>(graph.nodes)).Append(graph.in_place);
    hasher.AppendListSize(graph.storages.size());
    for (const Storage& storage : graph.storages) {
        hasher.Append(type_name(storage.type)).AppendArray(std::span(storage.ne));
        hasher.Append(storage.is_kept).Append(storage.is_shared).Append(storage.is_weights);
    }
    return hasher.Finish();
}

}  // namespace fornax::ggml_plugin
