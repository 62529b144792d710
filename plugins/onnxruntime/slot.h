// What one run of a partition uses: a session with memory of its own, and which of the tensors'
// memory it has in place.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/model.h"

namespace fornax::onnxruntime_plugin {

// For one thread at a time.
class Slot {
  public:
    // `binds`: tensors at an address that has come twice are used in place, if the device can.
    Slot(std::shared_ptr<runtime::Model> model, bool binds)
        : session_(std::move(model)), binds_(binds) {}

    // Memory of one input or output.
    struct Memory {
        const void* last = nullptr;
        bool in_place = false;
        int moves = 0;  // how often it was in place and then elsewhere
    };
    struct Kept {
        std::weak_ptr<runtime::Instance> instance;
        std::vector<Memory> inputs, outputs;
    };
    struct Use {
        std::shared_ptr<runtime::Instance> instance;
        std::shared_ptr<const runtime::ModelPlan> plan;
        Kept* kept = nullptr;
    };
    // What runs for inputs of these sizes; compiles it if need be.
    Result<Use> For(std::span<const graph::Tensor> sizes);

    Status SetInput(const Use& use, size_t index, const void* data, size_t size_bytes);
    Status SetOutput(const Use& use, size_t index, void* data, size_t size_bytes);
    // After the run: copies an output that is not in place.
    Status TakeOutput(const Use& use, size_t index, std::span<uint8_t> memory);

  private:
    runtime::ModelSession session_;
    bool binds_;
    std::vector<std::unique_ptr<Kept>> kept_;  // the last used first
};

}  // namespace fornax::onnxruntime_plugin
