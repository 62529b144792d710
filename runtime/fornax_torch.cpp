// The C interface to what is known of FX graphs of PyTorch before they are loaded.
#include "runtime/compile_model.h"
#include "runtime/fornax_objects.h"

using namespace fornax;
using namespace fornax::runtime;

fornax_status fornax_torch_check(const fornax_piece* pieces,
                                 size_t count,
                                 fornax_node_callback callback,
                                 void* user) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(pieces);
        FORNAX_RETURN_IF_NULL(callback);
        FORNAX_ASSIGN_OR_RETURN(const ModelFile file, FileOf({pieces, count}));
        FORNAX_ASSIGN_OR_RETURN(const std::vector<UnsupportedNode> nodes, CheckTorchGraph(file));
        for (const UnsupportedNode& node : nodes) {
            callback(user, node.node, node.reason.c_str());
        }
        return OkStatus();
    });
}
