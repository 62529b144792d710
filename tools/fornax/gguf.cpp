// Walks over the metadata and the tensors of a GGUF file; nothing is believed before it is checked.
#include "tools/fornax/gguf.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/printable.h"
#include "compiler/frontends/ggml/graph.h"

namespace fornax::tool {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDims = 4;

// Names by the numbers that files have; empty where there is none any longer.
constexpr std::string_view kTypeNames[] = {
    "f32",     "f16",   "q4_0",   "q4_1",  "",      "",       "q5_0", "q5_1",    "q8_0",
    "",        "q2_K",  "q3_K",   "q4_K",  "q5_K",  "q6_K",   "",     "iq2_xxs", "iq2_xs",
    "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "i8",   "i16",     "i32",
    "i64",     "f64",   "iq1_m",  "bf16",  "",      "",       "",     "tq1_0",   "tq2_0",
    "",        "",      "",       "mxfp4", "nvfp4", "q1_0",   "q2_0",
};

// Types of metadata; those without a size of their own are strings and arrays.
constexpr uint32_t kUint32 = 4, kString = 8, kArray = 9;
constexpr uint64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// A name of the file in a message.
std::string Shown(std::string_view name) {
    constexpr size_t kMaxLength = 80;
    return Printable(name.substr(0, kMaxLength)) + (name.size() > kMaxLength ? "..." : "");
}

class Reader {
  public:
    Reader(std::span<const std::byte> file, const std::string& path) : file_(file), path_(path) {}

    Result<GgufSummary> Run() {
        GgufSummary summary;
        FORNAX_ASSIGN_OR_RETURN(const std::string_view magic, Take(kMagic.size(), "its magic"));
        if (magic != kMagic) {
            return Bad("is no GGUF file");
        }
        FORNAX_ASSIGN_OR_RETURN(summary.version, Number<uint32_t>("its version"));
        if (summary.version != 2 && summary.version != 3) {
            return Bad(fmt::format("is of GGUF version {}; 2 and 3 are known", summary.version));
        }
        FORNAX_ASSIGN_OR_RETURN(summary.tensors, Number<uint64_t>("the number of tensors"));
        FORNAX_ASSIGN_OR_RETURN(const uint64_t pairs, Number<uint64_t>("the number of keys"));
        for (uint64_t i = 0; i < pairs; ++i) {
            FORNAX_RETURN_IF_ERROR(ReadPair(summary));
        }
        uint64_t end = 0;
        std::string last;
        for (uint64_t i = 0; i < summary.tensors; ++i) {
            FORNAX_RETURN_IF_ERROR(ReadTensor(end, last));
        }
        const uint64_t begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
        if (end != 0 && (begin > file_.size() || end > file_.size() - begin)) {
            return Bad(
                fmt::format("is cut short: the tensor {} ends at byte {}, the file at byte {}",
                            Shown(last), begin + end, file_.size()));
        }
        return summary;
    }

  private:
    Error Bad(const std::string& what) const {
        return {ErrorCode::kDataLoss, fmt::format("{} {}.", path_, what)};
    }

    Result<std::string_view> Take(uint64_t bytes, std::string_view what) {
        if (bytes > file_.size() - at_) {
            return Bad(fmt::format("is cut short: it ends at byte {}, within {}", file_.size(),
                                   Shown(what)));
        }
        const std::string_view taken(reinterpret_cast<const char*>(file_.data()) + at_, bytes);
        at_ += bytes;
        return taken;
    }

    template <typename T>
    Result<T> Number(std::string_view what) {
        FORNAX_ASSIGN_OR_RETURN(const std::string_view bytes, Take(sizeof(T), what));
        T value;
        std::memcpy(&value, bytes.data(), sizeof(T));
        return value;
    }

    Result<std::string_view> Text(std::string_view what) {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t size, Number<uint64_t>(what));
        return Take(size, what);
    }

    Status ReadPair(GgufSummary& summary) {
        FORNAX_ASSIGN_OR_RETURN(const std::string_view key, Text("a key"));
        FORNAX_ASSIGN_OR_RETURN(const uint32_t type, Number<uint32_t>(key));
        if (type == kString) {
            FORNAX_ASSIGN_OR_RETURN(const std::string_view value, Text(key));
            if (key == "general.architecture") {
                summary.architecture = value;
            }
            return OkStatus();
        }
        if (type != kArray) {
            FORNAX_ASSIGN_OR_RETURN(const std::string_view value, Scalar(type, key));
            if (key == "general.alignment" && type == kUint32) {
                uint32_t alignment = 0;
                std::memcpy(&alignment, value.data(), sizeof(alignment));
                if (alignment == 0) {
                    return Bad("has an alignment of 0");
                }
                alignment_ = alignment;
            }
            return OkStatus();
        }
        FORNAX_ASSIGN_OR_RETURN(const uint32_t element, Number<uint32_t>(key));
        FORNAX_ASSIGN_OR_RETURN(const uint64_t count, Number<uint64_t>(key));
        if (element == kString) {
            for (uint64_t i = 0; i < count; ++i) {
                FORNAX_ASSIGN_OR_RETURN([[maybe_unused]] const std::string_view text, Text(key));
            }
            return OkStatus();
        }
        FORNAX_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(element, key));
        if (count > file_.size() / bytes) {
            return Bad(fmt::format("is cut short: {} has {} elements", Shown(key), count));
        }
        FORNAX_ASSIGN_OR_RETURN([[maybe_unused]] const std::string_view values,
                                Take(count * bytes, key));
        return OkStatus();
    }

    Result<uint64_t> BytesOf(uint32_t type, std::string_view key) const {
        if (type >= std::size(kValueBytes) || kValueBytes[type] == 0) {
            return Bad(fmt::format("has a value of type {} under {}", type, Shown(key)));
        }
        return kValueBytes[type];
    }

    Result<std::string_view> Scalar(uint32_t type, std::string_view key) {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(type, key));
        return Take(bytes, key);
    }

    // `end` and `last` become those of the tensor if it ends behind the others.
    Status ReadTensor(uint64_t& end, std::string& last) {
        FORNAX_ASSIGN_OR_RETURN(const std::string_view name, Text("a tensor's name"));
        FORNAX_ASSIGN_OR_RETURN(const uint32_t rank, Number<uint32_t>(name));
        if (rank > kMaxDims) {
            return Bad(fmt::format("has the tensor {} of {} dimensions", Shown(name), rank));
        }
        uint64_t elements = 1;
        for (uint32_t d = 0; d < rank; ++d) {
            FORNAX_ASSIGN_OR_RETURN(const uint64_t size, Number<uint64_t>(name));
            if (__builtin_mul_overflow(elements, size, &elements)) {
                return Bad(
                    fmt::format("has the tensor {} of more than 2^64 elements", Shown(name)));
            }
        }
        FORNAX_ASSIGN_OR_RETURN(const uint32_t type, Number<uint32_t>(name));
        FORNAX_ASSIGN_OR_RETURN(const uint64_t offset, Number<uint64_t>(name));
        uint64_t bytes = 1;
        const auto* info =
            type < std::size(kTypeNames) ? ggml_frontend::FindType(kTypeNames[type]) : nullptr;
        if (info != nullptr &&
            __builtin_mul_overflow(elements / static_cast<uint64_t>(info->block_elements),
                                   static_cast<uint64_t>(info->block_bytes), &bytes)) {
            return Bad(fmt::format("has the tensor {} of more than 2^64 bytes", Shown(name)));
        }
        uint64_t tensor_end = 0;
        if (__builtin_add_overflow(offset, bytes, &tensor_end) || tensor_end > INT64_MAX) {
            return Bad(fmt::format("has the tensor {} at byte {}", Shown(name), offset));
        }
        if (tensor_end > end) {
            end = tensor_end;
            last = name;
        }
        return OkStatus();
    }

    const std::span<const std::byte> file_;
    const std::string& path_;
    uint64_t at_ = 0;
    uint64_t alignment_ = kDefaultAlignment;
};

}  // namespace

Result<GgufSummary> ReadGguf(std::span<const std::byte> file, const std::string& path) {
    return Reader(file, path).Run();
}

}  // namespace fornax::tool
