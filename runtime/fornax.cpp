// The C interface over Model and ModelSession: checks what C callers pass, and turns errors into
// status and message. Running is in fornax_session.cpp.
#include "runtime/fornax.h"

#include <cstring>

#include <fmt/format.h>

#include "runtime/fornax_objects.h"

namespace fornax::runtime {
namespace {

thread_local std::string error_message;

// fornax_type and fornax_status are the enumerations of the inside by another name.
static_assert(FORNAX_STRING == static_cast<int>(graph::ElementType::kString));
static_assert(FORNAX_F32 == static_cast<int>(graph::ElementType::kF32));
static_assert(FORNAX_F8E8M0 == static_cast<int>(graph::ElementType::kF8E8M0));
static_assert(FORNAX_U2 == static_cast<int>(graph::ElementType::kU2));
static_assert(graph::kMaxRank == FORNAX_MAX_RANK);
static_assert(FORNAX_INVALID_ARGUMENT == static_cast<int>(ErrorCode::kInvalidArgument) + 1);
static_assert(FORNAX_INTERNAL == static_cast<int>(ErrorCode::kInternal) + 1);

Result<uint64_t> ToNumber(const std::string& key, const std::string& text, uint64_t limit) {
    uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number > limit) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("The option {} is a number up to {}; it is '{}'.", key, limit, text)};
    }
    return number;
}

Status SetOption(ModelOptions& options, const std::string& key, const std::string& value) {
    constexpr uint64_t kMaxKept = 1'000'000;
    if (key == "device") {
        options.device = value;
    } else if (key == "driver") {
        options.driver = value;
    } else if (key == "report") {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t number, ToNumber(key, value, 1));
        options.with_boundaries = number != 0;
    } else if (key == "cache") {
        options.cache = value;
    } else if (key == "precision") {
        if (value == "highest") {
            options.precision = Precision::kHighest;
        } else if (value == "high") {
            options.precision = Precision::kHigh;
        } else if (value == "medium") {
            options.precision = Precision::kMedium;
        } else {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("The precision is highest, high or medium; it is '{}'.", value)};
        }
    } else if (key == "strict") {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t number, ToNumber(key, value, 1));
        options.strict = number != 0;
    } else if (key == "kept_plans") {
        FORNAX_ASSIGN_OR_RETURN(options.kept_plans, ToNumber(key, value, kMaxKept));
    } else if (key == "kept_sizes") {
        FORNAX_ASSIGN_OR_RETURN(options.kept_sizes, ToNumber(key, value, kMaxKept));
    } else if (key.starts_with("dim.") && key.size() > 4) {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t number, ToNumber(key, value, INT32_MAX));
        options.dims[key.substr(4)] = static_cast<int64_t>(number);
    } else if (key == "dynamic") {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t number, ToNumber(key, value, 1));
        options.dynamic_sizes.all = number != 0;
    } else if (key.starts_with("dynamic.") && key.size() > 8) {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t number, ToNumber(key, value, 1));
        if (number != 0) {
            options.dynamic_sizes.names.insert(key.substr(8));
        } else {
            options.dynamic_sizes.names.erase(key.substr(8));
        }
    } else {
        return Error{ErrorCode::kInvalidArgument, fmt::format("There is no option '{}'.", key)};
    }
    return OkStatus();
}

Status FillPort(std::span<const ModelPort> ports, size_t index, fornax_port& port) {
    if (index >= ports.size()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("Number {} is asked for; there are {}.", index, ports.size())};
    }
    const ModelPort& from = ports[index];
    port = {};
    port.name = from.name.c_str();
    port.type = static_cast<fornax_type>(from.element);
    port.rank = from.dims.size();
    std::copy(from.dims.begin(), from.dims.end(), port.dims);
    return OkStatus();
}

const char* DimName(std::span<const ModelPort> ports, size_t index, size_t axis) {
    return index < ports.size() && axis < ports[index].dim_names.size()
               ? ports[index].dim_names[axis].c_str()
               : "";
}

Status Load(Result<std::shared_ptr<Model>> loaded, fornax_model** model) {
    if (!loaded.ok()) {
        return std::move(loaded).error();
    }
    *model = new fornax_model{std::move(loaded).value()};
    return OkStatus();
}

Status LoadFile(ModelFile file, const fornax_options* options, fornax_model** model) {
    return Load(Model::Load(std::move(file), options == nullptr ? ModelOptions() : options->options,
                            LinkedCompiler()),
                model);
}

}  // namespace

Result<ModelFile> FileOf(std::span<const fornax_piece> pieces) {
    for (const fornax_piece& piece : pieces) {
        if (piece.data == nullptr && piece.size_bytes != 0) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("A piece of {} bytes has no data.", piece.size_bytes)};
        }
    }
    if (pieces.empty()) {
        return Error{ErrorCode::kInvalidArgument, "A file has one piece at least."};
    }
    ModelFile file;
    file.bytes = std::make_shared<const std::string>(static_cast<const char*>(pieces[0].data),
                                                     pieces[0].size_bytes);
    // The caller keeps the others.
    const auto owner = std::make_shared<int>(0);
    for (const fornax_piece& piece : pieces.subspan(1)) {
        file.pieces.emplace_back(
            std::span(static_cast<const uint8_t*>(piece.data), piece.size_bytes), owner);
    }
    return file;
}

fornax_status Fail(Error error) {
    error_message = std::move(error.message);
    return static_cast<fornax_status>(static_cast<int>(error.code) + 1);
}

Error NullArgument(const char* name) {
    return {ErrorCode::kInvalidArgument, fmt::format("The argument {} is null.", name)};
}

Result<graph::Tensor> ToTensor(const fornax_tensor& tensor, bool with_data) {
    if (tensor.type < FORNAX_BOOL || tensor.type > FORNAX_STRING) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("There is no element type {}.", static_cast<int>(tensor.type))};
    }
    if (tensor.rank > FORNAX_MAX_RANK) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("A tensor has {} dimensions; at most {} are possible.",
                                 tensor.rank, FORNAX_MAX_RANK)};
    }
    graph::Tensor made;
    made.element = static_cast<graph::ElementType>(tensor.type);
    made.dims.assign(tensor.dims, tensor.dims + tensor.rank);
    int64_t count = 1;
    for (const int64_t dim : made.dims) {
        if (dim < 0 || (dim != 0 && count > graph::kMaxElements / dim)) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("A tensor of type {} is negative or has more than {} "
                                     "elements.",
                                     made.type().ToString(), graph::kMaxElements)};
        }
        count *= std::max<int64_t>(dim, 1);
    }
    if (!with_data) {
        return made;
    }
    const auto elements = static_cast<uint64_t>(made.count());
    const uint64_t needed = elements * fornax_type_bytes(tensor.type);
    if (tensor.size_bytes != needed || (tensor.data == nullptr && needed != 0)) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("A tensor of type {} has {} bytes; it is given with {}.",
                                 made.type().ToString(), needed,
                                 tensor.data == nullptr ? 0 : tensor.size_bytes)};
    }
    if (tensor.type == FORNAX_STRING) {
        auto strings = std::make_shared<std::vector<std::string>>();
        const auto* texts = static_cast<const char* const*>(tensor.data);
        for (uint64_t i = 0; i < elements; ++i) {
            if (texts[i] == nullptr) {
                return NullArgument("data[i]");
            }
            strings->emplace_back(texts[i]);
        }
        made.strings = std::move(strings);
        return made;
    }
    const auto* bytes = static_cast<const uint8_t*>(tensor.data);
    made.data = std::make_shared<const std::vector<uint8_t>>(bytes, bytes + needed);
    return made;
}

void SetDims(fornax_tensor& tensor, graph::ElementType element, const Dims& dims) {
    tensor.type = static_cast<fornax_type>(element);
    tensor.rank = dims.size();
    std::fill_n(tensor.dims, FORNAX_MAX_RANK, 0);
    std::copy(dims.begin(), dims.end(), tensor.dims);
}

}  // namespace fornax::runtime

using namespace fornax;
using namespace fornax::runtime;

uint32_t fornax_version(void) {
    return FORNAX_VERSION_MAJOR * 1000 + FORNAX_VERSION_MINOR;
}

const char* fornax_error_message(void) {
    return error_message.c_str();
}

const char* fornax_type_name(fornax_type type) {
    return type < FORNAX_BOOL || type > FORNAX_STRING
               ? nullptr
               : graph::Name(static_cast<graph::ElementType>(type)).data();
}

size_t fornax_type_bytes(fornax_type type) {
    if (type == FORNAX_STRING) {
        return sizeof(char*);
    }
    return type < FORNAX_BOOL || type > FORNAX_STRING
               ? 0
               : graph::BytesOf(static_cast<graph::ElementType>(type));
}

void fornax_tensor_release(fornax_tensor* tensor) {
    if (tensor != nullptr) {
        std::free(tensor->owner);
        *tensor = {};
    }
}

fornax_options* fornax_options_create(void) {
    return new (std::nothrow) fornax_options;
}

void fornax_options_destroy(fornax_options* options) {
    delete options;
}

fornax_status fornax_options_set(fornax_options* options, const char* key, const char* value) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(options);
        FORNAX_RETURN_IF_NULL(key);
        FORNAX_RETURN_IF_NULL(value);
        return SetOption(options->options, key, value);
    });
}

fornax_status fornax_options_set_input(fornax_options* options,
                                       const char* name,
                                       const fornax_tensor* value) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(options);
        FORNAX_RETURN_IF_NULL(name);
        FORNAX_RETURN_IF_NULL(value);
        FORNAX_ASSIGN_OR_RETURN(options->options.input_values[name], ToTensor(*value, true));
        return OkStatus();
    });
}

fornax_status fornax_options_set_vulkan_device(fornax_options* options,
                                               const fornax_vulkan_device* device) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(options);
        FORNAX_RETURN_IF_NULL(device);
        FORNAX_RETURN_IF_NULL(device->instance);
        FORNAX_RETURN_IF_NULL(device->get_instance_proc_addr);
        FORNAX_RETURN_IF_NULL(device->physical_device);
        FORNAX_RETURN_IF_NULL(device->device);
        vulkan::ForeignDevice foreign;
        foreign.instance = static_cast<VkInstance>(device->instance);
        foreign.functions =
            reinterpret_cast<PFN_vkGetInstanceProcAddr>(device->get_instance_proc_addr);
        foreign.physical_device = static_cast<VkPhysicalDevice>(device->physical_device);
        foreign.device = static_cast<VkDevice>(device->device);
        foreign.queue = static_cast<VkQueue>(device->queue);
        foreign.queue_family = device->queue_family;
        foreign.features.int64 = (device->features & FORNAX_VULKAN_INT64) != 0;
        foreign.features.float64 = (device->features & FORNAX_VULKAN_FLOAT64) != 0;
        foreign.features.storage_8bit = (device->features & FORNAX_VULKAN_STORAGE_8BIT) != 0;
        foreign.features.storage_16bit = (device->features & FORNAX_VULKAN_STORAGE_16BIT) != 0;
        foreign.features.subgroup_arithmetic =
            (device->features & FORNAX_VULKAN_SUBGROUP_TYPES) != 0;
        foreign.host_import = (device->features & FORNAX_VULKAN_HOST_IMPORT) != 0;
        options->options.opened_device = vulkan::Device::Wrap(foreign);
        return OkStatus();
    });
}

fornax_status fornax_model_load(const char* path,
                                const fornax_options* options,
                                fornax_model** model) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(path);
        FORNAX_RETURN_IF_NULL(model);
        return Load(
            Model::Load(std::string(path), options == nullptr ? ModelOptions() : options->options,
                        LinkedCompiler()),
            model);
    });
}

fornax_status fornax_model_load_bytes(const void* data,
                                      size_t size_bytes,
                                      const fornax_options* options,
                                      fornax_model** model) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(data);
        FORNAX_RETURN_IF_NULL(model);
        const fornax_piece whole = {data, size_bytes};
        FORNAX_ASSIGN_OR_RETURN(ModelFile file, FileOf({&whole, 1}));
        return LoadFile(std::move(file), options, model);
    });
}

fornax_status fornax_model_load_pieces(const fornax_piece* pieces,
                                       size_t count,
                                       const fornax_options* options,
                                       fornax_model** model) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(pieces);
        FORNAX_RETURN_IF_NULL(model);
        FORNAX_ASSIGN_OR_RETURN(ModelFile file, FileOf({pieces, count}));
        return LoadFile(std::move(file), options, model);
    });
}

void fornax_model_destroy(fornax_model* model) {
    delete model;
}

size_t fornax_model_input_count(const fornax_model* model) {
    return model == nullptr ? 0 : model->model->inputs().size();
}

size_t fornax_model_output_count(const fornax_model* model) {
    return model == nullptr ? 0 : model->model->output_count();
}

fornax_status fornax_model_input(const fornax_model* model, size_t index, fornax_port* port) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(model);
        FORNAX_RETURN_IF_NULL(port);
        return FillPort(model->model->inputs(), index, *port);
    });
}

fornax_status fornax_model_output(const fornax_model* model, size_t index, fornax_port* port) {
    return Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(model);
        FORNAX_RETURN_IF_NULL(port);
        FORNAX_ASSIGN_OR_RETURN(const std::span<const ModelPort> outputs, model->model->Outputs());
        return FillPort(outputs, index, *port);
    });
}

const char* fornax_model_input_dim_name(const fornax_model* model, size_t index, size_t axis) {
    return model == nullptr ? "" : DimName(model->model->inputs(), index, axis);
}

const char* fornax_model_output_dim_name(const fornax_model* model, size_t index, size_t axis) {
    const char* name = "";
    // Without a plan there is nothing to say, and fornax_model_output() tells why.
    (void)Guarded([&]() -> Status {
        FORNAX_RETURN_IF_NULL(model);
        FORNAX_ASSIGN_OR_RETURN(const std::span<const ModelPort> outputs, model->model->Outputs());
        name = DimName(outputs, index, axis);
        return OkStatus();
    });
    return name;
}

const char* fornax_model_device(const fornax_model* model) {
    return model == nullptr ? "" : model->model->device()->properties().deviceName;
}
