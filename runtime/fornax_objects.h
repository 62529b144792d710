// What the handles of the C interface hold, and how its functions report errors.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/fornax.h"
#include "runtime/model.h"

struct fornax_options {
    fornax::runtime::ModelOptions options;
};

struct fornax_model {
    std::shared_ptr<fornax::runtime::Model> model;
};

struct fornax_session {
    fornax::runtime::ModelSession session;
    // The instance for the sizes that are set.
    std::shared_ptr<fornax::runtime::Instance> instance;
    std::shared_ptr<const fornax::runtime::ModelPlan> plan;
    bool has_run = false;     // with these sizes
    bool is_running = false;  // between fornax_session_start() and fornax_session_wait()
    std::vector<fornax::runtime::StepTime> times;
    std::shared_ptr<const fornax::runtime::ModelPlan> profiled_plan;
    fornax::graph::Bindings profiled_sizes;
    std::string report;
};

namespace fornax::runtime {

// A file in memory; pieces behind the first are the caller's.
Result<ModelFile> FileOf(std::span<const fornax_piece> pieces);

// Keeps the message for fornax_error_message().
fornax_status Fail(Error error);
Error NullArgument(const char* name);

// Calls `body`, which returns a Status. Nothing is thrown through the interface.
template <typename Body>
fornax_status Guarded(const Body& body) {
    try {
        Status status = body();
        return status.ok() ? FORNAX_OK : Fail(std::move(status).error());
    } catch (const std::bad_alloc&) {
        return Fail({ErrorCode::kOutOfHostMemory, "Memory is exhausted."});
    } catch (const std::exception& exception) {
        return Fail({ErrorCode::kInternal, std::string(exception.what()) + "."});
    }
}

#define FORNAX_RETURN_IF_NULL(argument)     \
    do {                                    \
        if ((argument) == nullptr)          \
            return NullArgument(#argument); \
    } while (false)

// With the data as a copy, or without any. The error says what is wrong with type, dimensions or
// number of bytes.
Result<graph::Tensor> ToTensor(const fornax_tensor& tensor, bool with_data);
void SetDims(fornax_tensor& tensor, graph::ElementType element, const Dims& dims);

}  // namespace fornax::runtime
