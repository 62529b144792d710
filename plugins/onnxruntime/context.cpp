#include "plugins/onnxruntime/context.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "plugins/onnxruntime/context_bytes.h"

namespace fornax::onnxruntime_plugin {
namespace {

Result<std::filesystem::path> DirectoryOf(const Api& api, const OrtGraph* graph) {
    const char* path = nullptr;
    FORNAX_ORT(api, Graph_GetModelPath(graph, &path));
    return std::filesystem::path(path == nullptr ? "" : path).parent_path();
}

class Attributes {
  public:
    explicit Attributes(const Api& api) : api_(api) {}
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    ~Attributes() {
        for (OrtOpAttr* attribute : made_) {
            api_.ort->ReleaseOpAttr(attribute);
        }
    }

    Status AddText(const char* name, const std::string& text) {
        return Add(name, text.data(), static_cast<int>(text.size()), ORT_OP_ATTR_STRING);
    }
    Status AddNumber(const char* name, int64_t number) {
        return Add(name, &number, 1, ORT_OP_ATTR_INT);
    }
    std::vector<OrtOpAttr*>& made() { return made_; }

  private:
    Status Add(const char* name, const void* data, int length, OrtOpAttrType type) {
        OrtOpAttr* attribute = nullptr;
        FORNAX_ORT(api_, CreateOpAttr(name, data, length, type, &attribute));
        made_.push_back(attribute);
        return OkStatus();
    }

    const Api& api_;
    std::vector<OrtOpAttr*> made_;
};

Result<std::vector<std::string>> NamesOf(const Api& api,
                                         const std::vector<const OrtValueInfo*>& values) {
    std::vector<std::string> names;
    for (const OrtValueInfo* value : values) {
        FORNAX_ASSIGN_OR_RETURN(std::string name, onnxruntime_plugin::NameOf(api, value));
        names.push_back(std::move(name));
    }
    return names;
}

std::vector<const char*> PointersOf(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) {
        pointers.push_back(text.c_str());
    }
    return pointers;
}

// Writes the contents beside the model that will be written; gives the file's name.
Result<std::string> WriteBeside(const Api& api,
                                const Options& options,
                                const OrtGraph* graph,
                                const std::string& partition,
                                const std::string& contents) {
    std::filesystem::path model = options.context_path;
    if (model.empty()) {
        const char* path = nullptr;
        FORNAX_ORT(api, Graph_GetModelPath(graph, &path));
        model = path == nullptr ? "" : path;
        if (model.empty()) {
            return Error{ErrorCode::kInvalidArgument,
                         "Fornax: a model that was not read from a file needs the option "
                         "ep.context_file_path for its compiled partitions."};
        }
    }
    std::string name = fmt::format("{}_{}.fornax", model.stem().string(), partition);
    std::ranges::replace(name, '/', '_');
    const std::filesystem::path file = model.parent_path() / name;
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    stream.close();
    if (!stream) {
        return Error{ErrorCode::kIo, fmt::format("Fornax: the compiled partition {} cannot be "
                                                 "written.",
                                                 file.string())};
    }
    return name;
}

}  // namespace

Result<std::string> TextAttribute(const Api& api, const OrtNode* node, const char* name) {
    const OrtOpAttr* attribute = nullptr;
    FORNAX_ORT(api, Node_GetAttributeByName(node, name, &attribute));
    std::string text;
    if (attribute != nullptr) {
        size_t size = 0;
        const Status ignored =
            api.Take(api.ort->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, nullptr, 0, &size));
        text.resize(size);
        if (size != 0) {
            FORNAX_ORT(api, ReadOpAttr(attribute, ORT_OP_ATTR_STRING, text.data(), size, &size));
        }
    }
    return text;
}

Result<std::string> ReadContext(const Api& api, const OrtGraph* graph, const OrtNode* node) {
    FORNAX_ASSIGN_OR_RETURN(std::string text, TextAttribute(api, node, "ep_cache_context"));
    const OrtOpAttr* attribute = nullptr;
    FORNAX_ORT(api, Node_GetAttributeByName(node, "embed_mode", &attribute));
    int64_t is_embedded = 1;
    size_t size = 0;
    if (attribute != nullptr) {
        FORNAX_ORT(api,
                   ReadOpAttr(attribute, ORT_OP_ATTR_INT, &is_embedded, sizeof is_embedded, &size));
    }
    if (is_embedded != 0) {
        return text;
    }
    const std::filesystem::path name = text;
    if (name.empty() || name.is_absolute() || name.has_parent_path() || text == "..") {
        return DamagedContext(
            fmt::format("names the file '{}', which is not beside the model", text));
    }
    FORNAX_ASSIGN_OR_RETURN(const std::filesystem::path directory, DirectoryOf(api, graph));
    std::ifstream stream(directory / name, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (!stream) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("Fornax: the compiled partition {} cannot be read.",
                                 (directory / name).string())};
    }
    return bytes;
}

Result<OrtNode*> MakeContextNode(const Api& api,
                                 const Options& options,
                                 const OrtGraph* graph,
                                 const OrtNode* fused,
                                 const std::string& contents,
                                 bool is_first) {
    const char* name = nullptr;
    FORNAX_ORT(api, Node_GetName(fused, &name));
    const std::string partition = options.context_prefix + (name == nullptr ? "" : name);
    if (contents.size() > INT32_MAX) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("Fornax: the compiled partition has {} bytes; a model holds {}.",
                                 contents.size(), INT32_MAX)};
    }
    std::string text = contents;
    if (!options.embeds_context) {
        FORNAX_ASSIGN_OR_RETURN(text, WriteBeside(api, options, graph, partition, contents));
    }
    Attributes attributes(api);
    FORNAX_RETURN_IF_ERROR(attributes.AddText("ep_cache_context", text));
    FORNAX_RETURN_IF_ERROR(attributes.AddText("source", kProviderName));
    FORNAX_RETURN_IF_ERROR(attributes.AddText("partition_name", partition));
    FORNAX_RETURN_IF_ERROR(attributes.AddNumber("embed_mode", options.embeds_context ? 1 : 0));
    FORNAX_RETURN_IF_ERROR(attributes.AddNumber("main_context", is_first ? 1 : 0));

    FORNAX_ASSIGN_OR_RETURN(const auto input_values, InputsOf(api, fused));
    FORNAX_ASSIGN_OR_RETURN(const auto output_values, OutputsOf(api, fused));
    FORNAX_ASSIGN_OR_RETURN(const auto inputs, NamesOf(api, input_values));
    FORNAX_ASSIGN_OR_RETURN(const auto outputs, NamesOf(api, output_values));
    const std::vector<const char*> input_names = PointersOf(inputs);
    const std::vector<const char*> output_names = PointersOf(outputs);
    OrtNode* node = nullptr;
    FORNAX_RETURN_IF_ERROR(api.Take(api.editor->CreateNode(
        kContextOperator, kContextDomain, partition.c_str(), input_names.data(), input_names.size(),
        output_names.data(), output_names.size(), attributes.made().data(),
        attributes.made().size(), &node)));
    return node;
}

}  // namespace fornax::onnxruntime_plugin
