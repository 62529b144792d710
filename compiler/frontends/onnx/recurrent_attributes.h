// The attributes that LSTM, GRU and RNN share with their quantised forms.
#pragma once

#include "compiler/frontends/onnx/node.h"
#include "compiler/graph/build/recurrent.h"

namespace fornax::onnx_frontend {

// Direction, activations, clip and the kind's own flags.
graph::RecurrentOptions ReadRecurrentOptions(Node& node, graph::RecurrentKind kind);

}  // namespace fornax::onnx_frontend
