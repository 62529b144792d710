// A model and the plans that were made of it: for sizes that no plan is for, another one is
// compiled.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/disk_cache.h"
#include "base/result.h"
#include "runtime/compile_model.h"
#include "runtime/program.h"
#include "runtime/session.h"

namespace fornax::runtime {

struct ModelOptions {
    std::string device;                             // as vulkan::Instance::Choose() takes it
    std::string driver;                             // see vulkan::InstanceOptions
    std::shared_ptr<vulkan::Device> opened_device;  // instead, if not null
    std::map<std::string, int64_t> dims;            // see CompileRequest
    // Sizes that one plan is for whatever they are, instead of a plan for each.
    DynamicSizes dynamic_sizes;
    std::map<std::string, Dims> input_shapes;  // of inputs in the first plan
    std::map<std::string, graph::Tensor> input_values;
    Precision precision = Precision::kHighest;
    bool strict = false;
    // Where plans and pipelines are kept between processes: a directory, "" for the user's cache,
    // or "none".
    std::string cache;
    // How many plans, and how many sizes of each in a session, are kept.
    size_t kept_plans = 8;
    size_t kept_sizes = 4;
    ProgressFunction progress;     // of loading; may be empty
    bool with_boundaries = false;  // and the text of the graph
};

// A plan of the model on the device.
struct ModelPlan {
    std::shared_ptr<const Program> program;
    // The inputs, by number, whose values it was compiled with, and that alone it is right for.
    std::map<size_t, graph::Tensor> fixed_inputs;
    const graph::HostFunctions* host_functions = nullptr;
    std::vector<graph::Boundary> boundaries;  // see CompiledModel
    std::string graph_text;
};

struct ModelPort {
    std::string name;
    graph::ElementType element = graph::ElementType::kF32;
    Dims dims;  // -1 where the size may change
    // What such a size is called: a symbol or a formula of symbols; "" of others.
    std::vector<std::string> dim_names;
};

// Thread-safe. While one thread waits for a plan that is compiled, others get those that there are;
// one is compiled at a time, so threads that want the same get the same.
class Model {
  public:
    // Compiles the model, unless it leaves sizes open of which the options say nothing: then the
    // first sizes that PlanFor() is asked for are the first that it is compiled for.
    static Result<std::shared_ptr<Model>> Load(const std::string& path,
                                               ModelOptions options,
                                               ModelCompiler compiler);
    // Keeps what the file has.
    static Result<std::shared_ptr<Model>> Load(ModelFile file,
                                               ModelOptions options,
                                               ModelCompiler compiler);

    const std::vector<ModelPort>& inputs() const { return inputs_; }
    size_t output_count() const { return output_count_; }
    // Compiles the model, for sizes of 1 where it is not known better, if that was not done yet: a
    // model does not say itself how large what it computes is. The ports stay as long as the model.
    Result<std::span<const ModelPort>> Outputs();
    const ModelOptions& options() const { return options_; }
    const std::shared_ptr<vulkan::Device>& device() const { return device_; }
    // A plan for these inputs, of which data are looked at only where values decide shapes.
    Result<std::shared_ptr<const ModelPlan>> PlanFor(std::span<const graph::Tensor> inputs);

  private:
    Model() = default;
    Status Start();
    // Whether the options say how large all inputs are.
    bool KnowsSizes(const ModelDescription& description) const;
    Result<std::shared_ptr<const ModelPlan>> Find(std::span<const graph::Tensor> inputs,
                                                  std::span<const Dims> dims);
    // compile_mutex_ is held.
    Result<std::shared_ptr<const ModelPlan>> Compile(std::span<const graph::Tensor> inputs);
    void Keep(std::shared_ptr<const ModelPlan> plan);

    ModelFile file_;
    ModelOptions options_;
    ModelCompiler compiler_;
    std::shared_ptr<vulkan::Device> device_;
    std::unique_ptr<DiskCache> cache_;  // null: none
    std::vector<ModelPort> inputs_;
    size_t output_count_ = 0;
    std::mutex compile_mutex_;  // held while compiling; taken before mutex_
    std::mutex mutex_;          // guards what follows
    std::vector<std::shared_ptr<const ModelPlan>> plans_;  // the last used first
    std::optional<std::vector<ModelPort>> outputs_;        // once there was a plan
};

// Runs a model with inputs of any sizes, with states of its own. Run() is thread-safe, as
// Session's; the rest is for one thread at a time.
class ModelSession {
  public:
    explicit ModelSession(std::shared_ptr<Model> model);

    Model& model() const { return *model_; }

    // Inputs in, outputs out, as copies. `plan` receives the plan that ran, if not null.
    Result<RunResult> Run(std::span<const graph::Tensor> inputs,
                          bool with_times = false,
                          std::shared_ptr<const ModelPlan>* plan = nullptr);

    // Calls `use` with the instance for inputs of these sizes while no other run goes on.
    Status With(std::span<const graph::Tensor> inputs,
                const std::function<Status(Instance&, const ModelPlan&)>& use);

    // The instance for inputs of these sizes, for callers that bind memory; see Session::For().
    Result<std::shared_ptr<Instance>> For(std::span<const graph::Tensor> inputs,
                                          std::shared_ptr<const ModelPlan>* plan = nullptr);

    // The model's states begin anew. Instances from For() keep the old ones.
    void ResetStates();

  private:
    struct Entry {
        std::shared_ptr<const ModelPlan> plan;
        std::shared_ptr<Session> session;
    };
    std::shared_ptr<Session> SessionOf(const std::shared_ptr<const ModelPlan>& plan);

    std::shared_ptr<Model> model_;
    std::mutex run_mutex_;  // states are used by one run at a time
    std::mutex mutex_;      // guards what follows
    std::shared_ptr<StateStore> states_;
    std::vector<Entry> sessions_;
};

}  // namespace fornax::runtime
