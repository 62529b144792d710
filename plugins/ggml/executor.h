// Runs graphs of the host on a device: compiles what it has not met, binds the tensors' own memory,
// and finds all of that again when the same graph comes once more.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/ggml/importer.h"
#include "plugins/ggml/capture.h"
#include "plugins/ggml/programs.h"
#include "plugins/ggml/weights.h"
#include "runtime/program.h"
#include "runtime/session.h"

namespace fornax::ggml_plugin {

// A graph's plan on the device, for any memory.
struct CompiledGraph {
    std::shared_ptr<const runtime::Program> program;  // which may be that of other sizes too
    std::vector<runtime::Dims> dims;                  // of its inputs
    std::vector<ggml_frontend::ImportedGraph::Input> inputs;
    std::vector<uint32_t> outputs;  // storages
    std::vector<ggml_frontend::ImportedGraph::State> states;
};

// The plans of a device by the hash of their graphs. Thread-safe.
class Compiler {
  public:
    explicit Compiler(std::shared_ptr<vulkan::Device> device);

    const std::shared_ptr<vulkan::Device>& device() const { return device_; }
    Result<std::shared_ptr<const CompiledGraph>> Compile(const ggml_frontend::Graph& graph);
    // Whether a graph of one node imports. Remembered.
    bool IsSupported(const ggml_frontend::Graph& graph);
    WeightStore& weights() { return weights_; }

  private:
    static constexpr size_t kMaxKept = 64;

    const std::shared_ptr<vulkan::Device> device_;
    std::mutex mutex_;  // lets one thread compile at a time
    Programs programs_;
    struct Entry {
        Hash128 hash;
        std::shared_ptr<const CompiledGraph> compiled;
    };
    std::list<Entry> kept_;  // the last used first
    std::mutex supported_mutex_;
    std::map<Hash128, bool> supported_;
    WeightStore weights_;
};

// A graph that is ready to run: its plan with the memory of its tensors.
class BoundGraph {
  public:
    static Result<std::shared_ptr<BoundGraph>> Create(std::shared_ptr<const CompiledGraph> compiled,
                                                      const Capture& capture,
                                                      WeightStore& weights);
    // At log level debug, says which steps took longest. A graph that reads weights where they lie
    // packs a part of them first, unless it is the first run.
    Status Run();
    // Whether it has to be prepared anew: what it read was written or freed, or it reads weights
    // where they lie and packs of all of them are there.
    bool IsOutdated() const {
        return is_let_go_.load(std::memory_order_acquire) ||
               (put_off_in_ != nullptr && !put_off_in_->is_any_put_off());
    }
    void LetGo() { is_let_go_.store(true, std::memory_order_release); }
    // Whether a byte of [begin, begin + size) is bound.
    bool Uses(const void* begin, uint64_t size) const;

  private:
    BoundGraph() = default;

    std::shared_ptr<const CompiledGraph> compiled_;
    std::unique_ptr<runtime::Session> session_;
    std::shared_ptr<runtime::Instance> instance_;
    struct Range {
        const uint8_t* begin;
        uint64_t size;
    };
    std::vector<Range> memory_;
    std::vector<std::shared_ptr<const PackedWeights>> weights_;
    WeightStore* put_off_in_ = nullptr;  // of a graph that reads weights where they lie
    bool has_run_ = false;
    std::atomic<bool> is_let_go_ = false;
};

// One stream of graphs. Prepare() and Run() are for one thread at a time, Forget() for any.
class Executor {
  public:
    Executor(const Host& host, std::shared_ptr<Compiler> compiler)
        : host_(host), compiler_(std::move(compiler)) {}

    // The graph with these nodes, ready to run; from before if nothing of them has changed. Nodes
    // in the same place under the same identifier have not, unless the identifier is 0.
    Result<std::shared_ptr<BoundGraph>> Prepare(std::span<abi::Tensor* const> nodes,
                                                uint64_t identifier);
    // Lets go of memory that is about to be freed, or of packs of what was written there.
    void Forget(const void* begin, uint64_t size);

  private:
    static constexpr size_t kMaxKept = 32;

    struct Entry {
        uint64_t identifier = 0;  // of the graph that was here last, and where its nodes are
        std::span<abi::Tensor* const> place;
        Hash128 nodes;   // their bytes, addresses included
        Hash128 leaves;  // the same of what the nodes read
        std::vector<const abi::Tensor*> leaf_tensors;
        std::shared_ptr<BoundGraph> bound;
    };

    const Host& host_;
    const std::shared_ptr<Compiler> compiler_;
    std::mutex mutex_;
    std::list<Entry> kept_;  // the last used first
    // All that anybody has: the host's plans keep theirs.
    std::vector<std::weak_ptr<BoundGraph>> bound_;
};

}  // namespace fornax::ggml_plugin
