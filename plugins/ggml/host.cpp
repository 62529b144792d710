// ggml's functions are looked up in its loaded library: its name differs between distributions.
#include "plugins/ggml/host.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

namespace fornax::ggml_plugin {
namespace {

struct Supported {
    int major, first_minor, last_minor;
    int api_version;
    // The last ones that are known to be there: ggml does not check numbers.
    const char *last_type, *last_gated;
};
// graph_optimize() changed its parameters within API version 2; it is never given.
constexpr Supported kSupported[] = {{0, 21, 24, 2, "mxfp4", "GLU_GEGLU_QUICK"},
                                    {0, 25, 25, 2, "q2_0", "GLU_SWIGLU_CLAMP"},
                                    {0, 27, 27, 3, "q2_0", "GLU_SWIGLU_CLAMP"}};

// More than any version has; the names behind the last are not read.
constexpr int kMaxNames = 512;

void* FindLibrary(const char* prefix) {
    struct Search {
        std::string prefix, path;
    } search{std::string("/") + prefix, ""};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* found) {
            const char* name = std::strrchr(info->dlpi_name, '/');
            auto& wanted = *static_cast<Search*>(found);
            if (name != nullptr && std::string_view(name).starts_with(wanted.prefix)) {
                wanted.path = info->dlpi_name;
                return 1;
            }
            return 0;
        },
        &search);
    const std::string& path = search.path;
    // A program may have ggml linked into itself.
    return path.empty() ? dlopen(nullptr, RTLD_NOW) : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
}

template <typename Function>
Status Find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The ggml of this process does not export {}.", name)};
    }
    return OkStatus();
}

}  // namespace

Result<Layout> LayoutOf(const std::string& version) {
    int major = 0, minor = 0;
    std::string known;
    const bool parsed = std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2;
    for (const Supported& one : kSupported) {
        if (parsed && major == one.major && minor >= one.first_minor && minor <= one.last_minor) {
            return Layout{one.api_version, one.last_type, one.last_gated};
        }
        known += fmt::format("{}{}.{}", known.empty() ? "" : ", ", one.major, one.first_minor);
        if (one.last_minor != one.first_minor) {
            known += fmt::format(" to {}.{}", one.major, one.last_minor);
        }
    }
    return Error{ErrorCode::kUnsupported,
                 fmt::format("This backend knows the interface of ggml {}; this is ggml {}.", known,
                             version)};
}

Result<Host> Host::Find() {
    Host host;
    void* library = FindLibrary("libggml-base");
    if (library == nullptr) {
        return Error{ErrorCode::kNotFound, "No ggml is loaded in this process."};
    }
    const char* (*version)() = nullptr;
    const char* (*name_of)(int) = nullptr;
    size_t (*tensor_overhead)() = nullptr;
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_version", version));
    host.version_ = version();
    FORNAX_ASSIGN_OR_RETURN(host.layout_, LayoutOf(host.version_));
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_tensor_overhead", tensor_overhead));
    if (tensor_overhead() != abi::kObjectBytes + sizeof(abi::Tensor)) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("A tensor of this ggml {} takes {} bytes, not {}.", host.version_,
                                 tensor_overhead() - abi::kObjectBytes, sizeof(abi::Tensor))};
    }
    FORNAX_RETURN_IF_ERROR(
        ggml_plugin::Find(library, "ggml_backend_buffer_init", host.buffer_init));
    FORNAX_RETURN_IF_ERROR(
        ggml_plugin::Find(library, "ggml_backend_buffer_is_host", host.buffer_is_host));
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_graph_n_nodes", host.graph_n_nodes));
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_graph_nodes", host.graph_nodes));
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_nbytes", host.tensor_bytes));
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_backend_free", host.backend_free));
    FORNAX_RETURN_IF_ERROR(
        ggml_plugin::Find(library, "ggml_backend_graph_compute", host.backend_graph_compute));
    size_t (*graph_overhead)(size_t size, bool grads) = nullptr;
    FORNAX_RETURN_IF_ERROR(
        ggml_plugin::Find(library, "ggml_graph_overhead_custom", graph_overhead));
    host.has_identifiers_ = graph_overhead(2, false) == abi::kObjectBytes + abi::kGraphOfTwoBytes;
    if (void* registry = FindLibrary("libggml."); registry != nullptr) {
        host.backend_init_by_type = reinterpret_cast<decltype(host.backend_init_by_type)>(
            dlsym(registry, "ggml_backend_init_by_type"));
    }

    // The enumerations' numbers differ between versions, the names do not. Each function is asked
    // for numbers up to the last name that is known to be there: ggml does not check them.
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_op_name", name_of));
    for (int i = 0; i < kMaxNames; ++i) {
        host.operations_.emplace_back(name_of(i));
        const std::string& name = host.operations_.back();
        if (name == "UNARY") {
            host.unary_number_ = i;
        }
        if (name == "GLU") {
            host.gated_number_ = i;
            break;
        }
    }
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_unary_op_name", name_of));
    for (int i = 0; i < kMaxNames; ++i) {
        host.unary_.push_back(fmt::format("UNARY_{}", name_of(i)));
        if (host.unary_.back() == "UNARY_TRUNC") {
            break;
        }
    }
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_glu_op_name", name_of));
    for (int i = 0; i < kMaxNames; ++i) {
        host.gated_.push_back(fmt::format("GLU_{}", name_of(i)));
        if (host.gated_.back() == host.layout_.last_gated) {
            break;
        }
    }
    // Numbers of types are written to model files and never change.
    FORNAX_RETURN_IF_ERROR(ggml_plugin::Find(library, "ggml_type_name", name_of));
    for (int i = 0; i < kMaxNames; ++i) {
        const char* name = name_of(i);
        host.types_.push_back(name == nullptr ? nullptr : ggml_frontend::FindType(name));
        if (name != nullptr && name == std::string_view(host.layout_.last_type)) {
            break;
        }
    }
    if (host.unary_number_ < 0 || host.gated_number_ < 0) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("This ggml {} lacks unary or gated operators.", host.version_)};
    }
    return host;
}

const std::string& Host::OperationOf(const abi::Tensor& tensor) const {
    static const std::string unknown = "UNKNOWN";
    const auto at = [&](const std::vector<std::string>& names, int number) -> const std::string& {
        return number >= 0 && number < static_cast<int>(names.size())
                   ? names[static_cast<size_t>(number)]
                   : unknown;
    };
    if (tensor.op == unary_number_) {
        return at(unary_, tensor.op_params[0]);
    }
    if (tensor.op == gated_number_) {
        return at(gated_, tensor.op_params[0]);
    }
    return at(operations_, tensor.op);
}

const ggml_frontend::TypeInfo* Host::TypeOf(const abi::Tensor& tensor) const {
    return tensor.type >= 0 && tensor.type < static_cast<int>(types_.size())
               ? types_[static_cast<size_t>(tensor.type)]
               : nullptr;
}

}  // namespace fornax::ggml_plugin
