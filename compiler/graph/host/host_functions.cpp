// All operators of the host.
#include "compiler/graph/host/host_functions.h"

namespace fornax::graph {

const HostFunctions& StandardHostFunctions() {
    static const HostFunctions functions;
    return functions;
}

}  // namespace fornax::graph
