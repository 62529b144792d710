// A partition that onnxruntime gave to the provider: compiled, and run with its tensors' memory.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/onnx/model_message.h"
#include "plugins/onnxruntime/api.h"
#include "plugins/onnxruntime/options.h"
#include "plugins/onnxruntime/slot.h"
#include "runtime/model.h"

namespace fornax::onnxruntime_plugin {

// Run() may be called from any number of threads.
class Partition {
  public:
    // `graph` is what the fused node stands for: its nodes, or one that is compiled already.
    static Result<std::unique_ptr<Partition>> Create(const Api& api,
                                                     const Options& options,
                                                     std::shared_ptr<vulkan::Device> device,
                                                     const OrtGraph* graph,
                                                     const OrtNode* fused);

    Status Run(OrtKernelContext* context);

    // What a node EPContext holds of it; "" unless the options ask for compiled models.
    const std::string& context() const { return context_; }
    // Whether its plan was not made yet, since sizes are open.
    bool is_open() const { return is_open_; }
    size_t node_count() const { return node_count_; }

  private:
    struct Port {
        std::string name;
        size_t index = 0;  // among those of the fused node
        graph::ElementType element = graph::ElementType::kF32;
    };

    Partition(const Api& api, const Options& options) : api_(api), options_(options) {}
    Status Compile(const OrtGraph* graph, const OrtNode* fused, runtime::ModelOptions model);
    Status Load(const OrtGraph* graph,
                const OrtNode* node,
                const OrtNode* fused,
                runtime::ModelOptions model);
    Status Start(onnx::ModelProto message,
                 const onnx_frontend::InitializerValues& weights,
                 runtime::ModelOptions options);
    Status FindPorts(const OrtNode* fused, const onnx::GraphProto& graph);
    Status FindPlanPorts(const OrtNode* fused);
    Status SetPorts(const OrtNode* fused,
                    const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs);
    Result<onnx_frontend::InitializerValues> WeightsOf(const OrtNode* node) const;
    Result<onnx_frontend::InitializerValues> WeightsOf(OrtKernelContext* context) const;
    Result<graph::Tensor> WeightOf(const std::string& name, const OrtValue* value) const;
    Status RunIn(Slot& slot, const std::vector<TensorView>& views, OrtKernelContext* context);
    std::unique_ptr<Slot> Acquire();

    const Api& api_;
    const Options& options_;
    std::shared_ptr<runtime::Model> model_;
    std::vector<Port> inputs_, outputs_;  // in the model's order
    std::vector<Port> weights_;           // that compiling for other sizes needs
    // Constants that onnxruntime does not give to runs.
    onnx_frontend::InitializerValues kept_weights_;
    bool is_open_ = false;
    bool binds_ = false;  // memory of tensors is used in place where it stays the same
    size_t node_count_ = 0;
    std::string context_;
    std::mutex mutex_;  // guards what follows
    std::vector<std::unique_ptr<Slot>> free_;
};

}  // namespace fornax::onnxruntime_plugin
