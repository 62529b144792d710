// The header is a Python dictionary of three entries; only what NumPy writes is understood.
#include "tools/tensors/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace fornax::tensors {
namespace {

using graph::ElementType;
using graph::Tensor;

static_assert(std::endian::native == std::endian::little, "elements are stored as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 1 << 16;

Error Invalid(std::string clause) {
    return {ErrorCode::kInvalidArgument, std::move(clause)};
}

// What the header says.
struct Header {
    std::string type;  // "<f4"
    bool is_fortran = false;
    std::vector<int64_t> dims;
};

// Reads the dictionary from left to right. Each function consumes what it has read.
class HeaderReader {
  public:
    explicit HeaderReader(std::string_view text) : text_(text) {}

    Result<Header> Read() {
        Header header;
        bool has_type = false, has_order = false, has_shape = false;
        if (!Take('{')) {
            return Invalid("its header is not a dictionary");
        }
        while (!Take('}')) {
            const std::optional<std::string> key = ReadString();
            if (!key || !Take(':')) {
                return Invalid("its header is not a dictionary of names and values");
            }
            if (*key == "descr") {
                const std::optional<std::string> type = ReadString();
                if (!type) {
                    return Error{ErrorCode::kUnsupported,
                                 "its elements are structures, which are no tensor's"};
                }
                header.type = *type;
                has_type = true;
            } else if (*key == "fortran_order") {
                const bool is_true = TakeWord("True");
                if (!is_true && !TakeWord("False")) {
                    return Invalid("its fortran_order is neither True nor False");
                }
                header.is_fortran = is_true;
                has_order = true;
            } else if (*key == "shape") {
                if (!ReadShape(header.dims)) {
                    return Invalid("its shape is not a tuple of sizes");
                }
                has_shape = true;
            } else {
                return Invalid("its header has an entry that NumPy does not write");
            }
            Take(',');
        }
        if (!has_type || !has_order || !has_shape) {
            return Invalid("its header lacks descr, fortran_order or shape");
        }
        return header;
    }

  private:
    void SkipSpace() {
        while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) {
            text_.remove_prefix(1);
        }
    }

    bool Take(char c) {
        SkipSpace();
        if (text_.empty() || text_.front() != c) {
            return false;
        }
        text_.remove_prefix(1);
        return true;
    }

    bool TakeWord(std::string_view word) {
        SkipSpace();
        if (!text_.starts_with(word)) {
            return false;
        }
        text_.remove_prefix(word.size());
        return true;
    }

    std::optional<std::string> ReadString() {
        SkipSpace();
        if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) {
            return std::nullopt;
        }
        const size_t end = text_.find(text_.front(), 1);
        if (end == std::string_view::npos) {
            return std::nullopt;
        }
        std::string value(text_.substr(1, end - 1));
        text_.remove_prefix(end + 1);
        return value;
    }

    bool ReadShape(std::vector<int64_t>& dims) {
        if (!Take('(')) {
            return false;
        }
        while (!Take(')')) {
            SkipSpace();
            int64_t size = 0;
            const auto [end, error] =
                std::from_chars(text_.data(), text_.data() + text_.size(), size);
            if (error != std::errc() || size < 0 || dims.size() == graph::kMaxRank) {
                return false;
            }
            dims.push_back(size);
            text_.remove_prefix(static_cast<size_t>(end - text_.data()));
            TakeWord("L");  // as Python 2 wrote long integers
            if (!Take(',') && !text_.starts_with(')')) {
                return false;
            }
        }
        return true;
    }

    std::string_view text_;
};

struct NumpyType {
    std::string_view name;  // without the byte order
    ElementType element;
};
// Reading takes the first of a name, writing the first of an element type.
constexpr NumpyType kTypes[] = {
    {"b1", ElementType::kBool},       {"i1", ElementType::kI8},
    {"i2", ElementType::kI16},        {"i4", ElementType::kI32},
    {"i8", ElementType::kI64},        {"u1", ElementType::kU8},
    {"u2", ElementType::kU16},        {"u4", ElementType::kU32},
    {"u8", ElementType::kU64},        {"f2", ElementType::kF16},
    {"f4", ElementType::kF32},        {"f8", ElementType::kF64},
    {"V2", ElementType::kBF16},       {"i1", ElementType::kI2},
    {"i1", ElementType::kI4},         {"u1", ElementType::kU2},
    {"u1", ElementType::kU4},         {"V1", ElementType::kF4E2M1},
    {"V1", ElementType::kF8E4M3FN},   {"V1", ElementType::kF8E5M2},
    {"V1", ElementType::kF8E8M0},     {"V1", ElementType::kF8E4M3FNUZ},
    {"V1", ElementType::kF8E5M2FNUZ},
};

std::optional<ElementType> ElementOf(std::string_view name) {
    const auto* found = std::ranges::find(kTypes, name, &NumpyType::name);
    return found == std::end(kTypes) || name == "V1" ? std::nullopt : std::optional(found->element);
}

// A code point as UTF-8.
void AppendUtf8(uint32_t code, std::string& text) {
    const auto tail = [&](int shift) {
        text.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F)));
    };
    if (code < 0x80) {
        text.push_back(static_cast<char>(code));
    } else if (code < 0x800) {
        text.push_back(static_cast<char>(0xC0 | (code >> 6)));
        tail(0);
    } else if (code < 0x10000) {
        text.push_back(static_cast<char>(0xE0 | (code >> 12)));
        tail(6);
        tail(0);
    } else {
        text.push_back(static_cast<char>(0xF0 | ((code >> 18) & 7)));
        tail(12);
        tail(6);
        tail(0);
    }
}

// The code points of UTF-8; a byte that is none stands for itself.
std::u32string CodePoints(std::string_view text) {
    std::u32string points;
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<uint8_t>(text[i]);
        const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
        if (i + length > text.size()) {
            points.push_back(lead);
            ++i;
            continue;
        }
        for (size_t k = 1; k < length; ++k) {
            code = (code << 6) | (static_cast<uint8_t>(text[i + k]) & 0x3Fu);
        }
        points.push_back(code);
        i += length;
    }
    return points;
}

std::string StringAt(const uint8_t* data, size_t size, char kind, bool swap) {
    std::string text;
    if (kind == 'S') {
        text.assign(reinterpret_cast<const char*>(data), size);
        text.erase(std::min(text.size(), text.find_last_not_of('\0') + 1));
        return text;
    }
    for (size_t i = 0; i < size; i += 4) {
        uint32_t code = 0;
        std::memcpy(&code, data + i, 4);
        code = swap ? __builtin_bswap32(code) : code;
        if (code == 0) {
            break;
        }
        AppendUtf8(code, text);
    }
    return text;
}

// Calls `visit(source index)` for each element of the tensor in row-major order.
template <typename Visit>
void InRowMajorOrder(const std::vector<int64_t>& dims,
                     bool is_fortran,
                     int64_t count,
                     Visit visit) {
    if (!is_fortran || count == 0) {
        for (int64_t i = 0; i < count; ++i) {
            visit(i);
        }
        return;
    }
    std::vector<int64_t> strides(dims.size()), index(dims.size(), 0);
    int64_t stride = 1;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        strides[axis] = stride;
        stride *= dims[axis];
    }
    int64_t source = 0;
    for (int64_t i = 0; i < count; ++i) {
        visit(source);
        for (size_t axis = dims.size(); axis-- > 0;) {
            source += strides[axis];
            if (++index[axis] < dims[axis]) {
                break;
            }
            source -= strides[axis] * dims[axis];
            index[axis] = 0;
        }
    }
}

Result<int64_t> CountOf(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) {
        if (dim != 0 && count > graph::kMaxElements / dim) {
            return Invalid(fmt::format("it has more than {} elements", graph::kMaxElements));
        }
        count *= dim;
    }
    return count;
}

}  // namespace

Result<Tensor> ParseNpy(std::span<const uint8_t> file) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    if (!text.starts_with(kMagic) || file.size() < 12) {
        return Invalid("it is not an .npy file");
    }
    const uint8_t version = file[6];
    if (version < 1 || version > 3) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("its version, {}, is not 1, 2 or 3", version)};
    }
    const size_t begin = version == 1 ? 10 : 12;
    const size_t header_bytes = version == 1 ? file[8] | size_t{file[9]} << 8
                                             : file[8] | size_t{file[9]} << 8 |
                                                   size_t{file[10]} << 16 | size_t{file[11]} << 24;
    if (header_bytes > kMaxHeaderBytes || begin + header_bytes > file.size()) {
        return Invalid(fmt::format("its header of {} bytes is not whole", header_bytes));
    }
    FORNAX_ASSIGN_OR_RETURN(const Header header,
                            HeaderReader(text.substr(begin, header_bytes)).Read());
    FORNAX_ASSIGN_OR_RETURN(const int64_t count, CountOf(header.dims));
    const std::span<const uint8_t> data = file.subspan(begin + header_bytes);

    const std::string_view order = std::string_view(header.type).substr(0, 1);
    const std::string_view name =
        header.type.empty() ? std::string_view() : std::string_view(header.type).substr(1);
    const bool swap = order == ">";
    const std::optional<ElementType> element = ElementOf(name);
    uint32_t size = element ? graph::BytesOf(*element) : 0;
    const bool is_text = !name.empty() && (name[0] == 'U' || name[0] == 'S');
    if (is_text) {
        const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), size);
        if (error != std::errc() || end != name.data() + name.size() || size > 1 << 20) {
            return Invalid(fmt::format("its elements are of the type {}", header.type));
        }
        size *= name[0] == 'U' ? 4 : 1;
    }
    if ((!element && !is_text) || (order != "<" && order != ">" && order != "|" && order != "=")) {
        return Error{
            ErrorCode::kUnsupported,
            fmt::format("its elements are of the type {}, which no tensor has", header.type)};
    }
    if (uint64_t(count) * size != data.size()) {
        return Invalid(
            fmt::format("it holds {} bytes for {} elements of {} bytes", data.size(), count, size));
    }
    if (is_text) {
        if (size == 0 && count > (1 << 24)) {
            return Invalid(fmt::format("it holds {} strings without a character", count));
        }
        auto strings = std::make_shared<std::vector<std::string>>();
        InRowMajorOrder(header.dims, header.is_fortran, count, [&](int64_t i) {
            strings->push_back(StringAt(data.data() + i * size, size, name[0], swap));
        });
        Tensor tensor{ElementType::kString, header.dims, nullptr, std::move(strings)};
        return tensor;
    }
    uint8_t* to = nullptr;
    Tensor tensor = Tensor::Zeros(*element, header.dims, &to);
    if (!header.is_fortran && !swap) {
        std::ranges::copy(data, to);
    } else {
        InRowMajorOrder(header.dims, header.is_fortran, count, [&](int64_t i) {
            std::memcpy(to, data.data() + i * size, size);
            if (swap) {
                std::reverse(to, to + size);
            }
            to += size;
        });
    }
    if (*element == ElementType::kBool &&
        std::ranges::any_of(*tensor.data, [](uint8_t b) { return b > 1; })) {
        return Invalid("a bool in it is neither 0 nor 1");
    }
    return tensor;
}

std::string FormatNpy(const Tensor& tensor) {
    std::string type, data;
    if (tensor.element == ElementType::kString) {
        std::vector<std::u32string> texts;
        size_t length = 1;
        for (const std::string& text : *tensor.strings) {
            texts.push_back(CodePoints(text));
            length = std::max(length, texts.back().size());
        }
        for (std::u32string& text : texts) {
            text.resize(length, U'\0');
            data.append(reinterpret_cast<const char*>(text.data()), 4 * length);
        }
        type = fmt::format("<U{}", length);
    } else {
        const auto* found = std::ranges::find(kTypes, tensor.element, &NumpyType::element);
        type = fmt::format("{}{}", graph::BytesOf(tensor.element) == 1 ? '|' : '<', found->name);
        data.assign(reinterpret_cast<const char*>(tensor.data->data()), tensor.data->size());
    }
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type,
                    fmt::join(tensor.dims, ", "), tensor.dims.size() == 1 ? "," : "");
    // The data begin at a multiple of 64, behind a line feed.
    header.append(63 - (10 + header.size()) % 64, ' ');
    header.push_back('\n');
    std::string file(kMagic);
    file += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF),
             static_cast<char>(header.size() >> 8)};
    return file + header + data;
}

}  // namespace fornax::tensors
