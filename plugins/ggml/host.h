// The ggml that loaded this library: its version, its functions, the names of its operators.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/frontends/ggml/graph.h"
#include "plugins/ggml/abi.h"

namespace fornax::ggml_plugin {

// Which of the structures of abi.h a version of ggml has.
struct Layout {
    int api_version = 0;
    // The last names of types and of gated operators that the version is known to have.
    const char *last_type = "", *last_gated = "";
};

// The layout of a version ("0.27.0"), or an error that says which versions are supported.
Result<Layout> LayoutOf(const std::string& version);

// Immutable once found.
class Host {
  public:
    // Finds the ggml that is loaded in this process.
    static Result<Host> Find();

    const Layout& layout() const { return layout_; }
    const std::string& version() const { return version_; }

    // The operator of a tensor as the frontend names it, and its type (null: not known to it).
    const std::string& OperationOf(const abi::Tensor& tensor) const;
    const ggml_frontend::TypeInfo* TypeOf(const abi::Tensor& tensor) const;

    // A number that no other graph of this process has or had, and no changed version of this one;
    // 0 if ggml has not given it one.
    uint64_t IdentifierOf(const abi::Graph& graph) const {
        return has_identifiers_ ? graph.identifier : 0;
    }

    abi::Buffer* (*buffer_init)(abi::BufferType*, abi::BufferFunctions, void* context, size_t size);
    bool (*buffer_is_host)(abi::Buffer*);
    int (*graph_n_nodes)(const abi::Graph*);
    abi::Tensor** (*graph_nodes)(const abi::Graph*);
    size_t (*tensor_bytes)(const abi::Tensor*);
    void (*backend_free)(abi::Backend*);
    abi::Status (*backend_graph_compute)(abi::Backend*, abi::Graph*);
    // A function of ggml's registry; null in a program without one.
    abi::Backend* (*backend_init_by_type)(int type, const char* parameters) = nullptr;

  private:
    Host() = default;

    Layout layout_;
    std::string version_;
    std::vector<std::string> operations_, unary_, gated_;  // by number
    std::vector<const ggml_frontend::TypeInfo*> types_;    // by number
    bool has_identifiers_ = false;
    int unary_number_ = -1, gated_number_ = -1;  // among the operators
};

}  // namespace fornax::ggml_plugin
