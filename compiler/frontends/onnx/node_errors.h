// What is told of nodes that cannot be imported: all of them at once.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/graph/build/build_error.h"

namespace fornax::onnx_frontend {

// One node that cannot be imported.
struct NodeProblem {
    enum class Kind : uint8_t {
        kOther,
        kMissingOperator,
        kDependsOnData,  // a value is not known that would have to be
    };
    Kind kind = Kind::kOther;
    // The model's nodes, so that a node that is imported twice is recognised.
    const onnx::NodeProto* node = nullptr;
    std::string clause;
};

// "my.domain.Bar"; operators of ONNX itself have no domain.
std::string OperatorName(const onnx::NodeProto& node);

// Problems of one code; nodes of subgraphs and functions are told by themselves.
class NodeErrors : public graph::BuildError {
  public:
    NodeErrors(ErrorCode code, std::vector<NodeProblem> problems);
    const std::vector<NodeProblem>& problems() const { return problems_; }

  private:
    std::vector<NodeProblem> problems_;
};

// The model is beyond a limit: what else could be said of it is not looked for.
class LimitError : public graph::BuildError {
  public:
    explicit LimitError(const std::string& clause) : BuildError(ErrorCode::kUnsupported, clause) {}
};

// What is wrong, with counts: the operators that are missing, with the number of nodes that use
// them, then the other problems, those of one operator and reason together.
std::string TextOf(const std::map<std::string, int64_t>& missing,
                   const std::vector<NodeProblem>& problems);

}  // namespace fornax::onnx_frontend
