// Runs a plan with inputs of any sizes that it is for.
//
// A session keeps instances of its program for the sizes that it last ran with, so that going back
// to sizes costs nothing. All share the program's pipelines and constants.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/instance.h"
#include "runtime/plan/sizes.h"
#include "runtime/program.h"
#include "runtime/states.h"

namespace fornax::runtime {

struct SessionOptions {
    size_t kept_sizes = 4;  // how many instances are kept, at least 1
    // The functions of host calls; they outlive the session and may be called from any thread.
    const graph::HostFunctions* host_functions = nullptr;
    // Shared with sessions of other plans of the graph, whose runs take turns with this one's; new
    // if null.
    std::shared_ptr<StateStore> states;
};

struct RunResult {
    Fit fit;  // without it, nothing ran
    std::vector<graph::Tensor> outputs;
    std::vector<StepTime> times;  // if asked for
};

// Run() may be called from several threads: runs of one session take turns, those of several
// sessions of one program, each with its own states, go on at once. Instances are of one thread.
class Session {
  public:
    explicit Session(std::shared_ptr<const Program> program, SessionOptions options = {});

    const Program& program() const { return *program_; }
    const std::shared_ptr<StateStore>& states() const { return options_.states; }

    // Inputs in, outputs out, as copies. An input of the wrong type is an error; sizes that the
    // plan is not for are told in `fit`.
    Result<RunResult> Run(std::span<const graph::Tensor> inputs, bool with_times = false);

    // The instance for these sizes, made if it is not kept, for callers that bind memory: used by
    // one thread at a time, and by none while another one calls Run(). It stays kept until
    // `kept_sizes` others were used after it; a caller may hold it longer. Null, with the fit, if
    // the plan is not for the sizes.
    Result<std::shared_ptr<Instance>> For(std::span<const Dims> dims, Fit& fit);

  private:
    struct Kept {
        std::vector<Dims> dims;
        std::shared_ptr<Instance> instance;
    };
    Result<std::shared_ptr<Instance>> Find(std::span<const Dims> dims, Fit& fit);

    const std::shared_ptr<const Program> program_;
    SessionOptions options_;
    std::mutex mutex_;
    std::list<Kept> kept_;  // the last used first
};

}  // namespace fornax::runtime
