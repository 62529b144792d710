// Reads TOML with toml++, which keeps the lines of values for messages.
#include "npu/description/read.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/file.h"
#include "base/printable.h"
#include "npu/description/fields.h"
#include "npu/description/space.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
// Some texts do what the parser asserts that none does ("key = [}"), and it goes on rightly. With
// NDEBUG it would tell the compiler to rely on its assertions.
#define TOML_ASSERT(condition) static_cast<void>(0)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace fornax::npu {
namespace {

constexpr size_t kMaxNameBytes = 64;

Error Bad(std::string_view message) {
    return Error{ErrorCode::kInvalidArgument, Printable(message)};
}

std::string_view TypeName(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "an array";
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "an integer";
        case toml::node_type::floating_point:
            return "a number with a fraction";
        case toml::node_type::boolean:
            return "a truth value";
        default:
            return "a date or time";
    }
}

std::string List(std::span<const std::string_view> words) {
    std::string text;
    for (const std::string_view word : words) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", word);
    }
    return text;
}

// "edge.toml, line 12: matrix.rows".
std::string Place(const std::string& source, const toml::node& node, std::string_view key) {
    return fmt::format("{}, line {}: {}", source, node.source().begin.line, key);
}

Result<double> NumberOf(const Field& field,
                        const toml::node& node,
                        const std::string& source,
                        std::string_view name) {
    if (field.kind == FieldKind::kWord) {
        if (!node.is_string()) {
            return Bad(fmt::format("{} is {}; it must be one of the words {}.",
                                   Place(source, node, name), TypeName(node), List(field.words)));
        }
        const std::string& word = node.as_string()->get();
        for (size_t i = 0; i < field.words.size(); ++i) {
            if (word == field.words[i]) {
                return static_cast<double>(i);
            }
        }
        return Bad(fmt::format("{} is '{}'; it must be one of the words {}.",
                               Place(source, node, name), word, List(field.words)));
    }
    const bool is_integer = node.is_integer();
    if (!is_integer && (!node.is_floating_point() || field.kind == FieldKind::kInteger)) {
        return Bad(fmt::format("{} is {}; it must be {}.", Place(source, node, name),
                               TypeName(node),
                               field.kind == FieldKind::kInteger ? "an integer" : "a number"));
    }
    const double value = is_integer ? static_cast<double>(node.as_integer()->get())
                                    : node.as_floating_point()->get();
    if (!(value >= field.least && value <= field.most)) {  // NaN is not within
        return Bad(fmt::format("{} is {}; it must be from {} to {}{}{}.", Place(source, node, name),
                               value, field.least, field.most, field.unit.empty() ? "" : " ",
                               field.unit));
    }
    return value;
}

const Field* Find(std::string_view table, std::string_view key) {
    for (const Field& field : Fields()) {
        if (field.table == table && field.key == key) {
            return &field;
        }
    }
    return nullptr;
}

std::string KeysOf(std::string_view table) {
    std::vector<std::string_view> keys;
    for (const Field& field : Fields()) {
        if (field.table == table) {
            keys.push_back(field.key);
        }
    }
    return List(keys);
}

std::string TableNames() {
    std::vector<std::string_view> names;
    for (const Field& field : Fields()) {
        if (names.empty() || names.back() != field.table) {
            names.push_back(field.table);
        }
    }
    return List(names);
}

// Reads a description, or with `space` a space, of which it fills the axes.
class Reader {
  public:
    explicit Reader(const std::string& source, Space* space = nullptr, std::string folder = "")
        : source_(source), space_(space), folder_(std::move(folder)) {}

    Result<Description> Read(const toml::table& root) {
        description_.name = source_;
        FORNAX_RETURN_IF_ERROR(ReadHeader(root));
        for (const auto& [key, node] : root) {
            if (key.str() == "name" || key.str() == "base") {
                continue;
            }
            if (KeysOf(key.str()).empty()) {
                return Bad(
                    fmt::format("{} is no key of a description; there are name, base and "
                                "the tables {}.",
                                Place(source_, node, key.str()), TableNames()));
            }
            if (!node.is_table()) {
                return Bad(fmt::format("{} is {}; it must be a table.",
                                       Place(source_, node, key.str()), TypeName(node)));
            }
            FORNAX_RETURN_IF_ERROR(ReadTable(key.str(), *node.as_table()));
        }
        if (!has_base_) {
            FORNAX_RETURN_IF_ERROR(CheckComplete(root));
        }
        // A space checks each of its descriptions.
        const Status status = space_ == nullptr ? CheckDescription(description_) : OkStatus();
        if (!status.ok()) {
            return Bad(fmt::format("{}: {}", source_, status.error().message));
        }
        return std::move(description_);
    }

  private:
    Status ReadHeader(const toml::table& root) {
        if (const toml::node* base = root.get("base")) {
            const toml::value<std::string>* text = base->as_string();
            std::vector<std::string_view> names;
            for (const Preset& preset : Presets()) {
                names.push_back(preset.name);
                if (text != nullptr && text->get() == preset.name) {
                    FORNAX_ASSIGN_OR_RETURN(
                        description_, ParseDescription(preset.text, std::string(preset.name)));
                    has_base_ = true;
                }
            }
            if (!has_base_ && space_ != nullptr && text != nullptr) {
                const std::filesystem::path path = std::filesystem::path(folder_) / text->get();
                FORNAX_ASSIGN_OR_RETURN(description_, LoadDescription(path.string()));
                has_base_ = true;
            }
            if (!has_base_) {
                return Bad(fmt::format(
                    "{} is {}; it must be one of the presets {}.", Place(source_, *base, "base"),
                    text != nullptr ? "'" + text->get() + "'" : std::string(TypeName(*base)),
                    List(names)));
            }
            // A space is named after its base.
            description_.name = space_ == nullptr ? source_ : description_.name;
        }
        if (const toml::node* name = root.get("name")) {
            const toml::value<std::string>* text = name->as_string();
            if (text == nullptr || text->get().empty() || text->get().size() > kMaxNameBytes) {
                return Bad(fmt::format(
                    "{} is {}; it must be a string of 1 to {} bytes.",
                    Place(source_, *name, "name"),
                    text == nullptr ? std::string(TypeName(*name))
                                    : fmt::format("a string of {} bytes", text->get().size()),
                    kMaxNameBytes));
            }
            description_.name = Printable(text->get());
        }
        return OkStatus();
    }

    Status ReadTable(std::string_view table, const toml::table& values) {
        for (const auto& [key, node] : values) {
            const std::string name = fmt::format("{}.{}", table, key.str());
            const Field* field = Find(table, key.str());
            if (field == nullptr) {
                return Bad(fmt::format("{} is no key of a description; [{}] has {}.",
                                       Place(source_, node, name), table, KeysOf(table)));
            }
            if (space_ != nullptr && node.is_array()) {
                FORNAX_RETURN_IF_ERROR(ReadAxis(*field, *node.as_array(), name));
                continue;
            }
            FORNAX_ASSIGN_OR_RETURN(const double value, NumberOf(*field, node, source_, name));
            field->set(description_, value);
        }
        return OkStatus();
    }

    Status ReadAxis(const Field& field, const toml::array& values, std::string_view name) {
        if (values.empty() || values.size() > kMaxDescriptionsOfSpace) {
            return Bad(fmt::format("{} is a list of {} values; it must have from 1 to {}.",
                                   Place(source_, values, name), values.size(),
                                   kMaxDescriptionsOfSpace));
        }
        SpaceAxis& axis = space_->axes.emplace_back();
        axis.field = &field;
        for (const toml::node& value : values) {
            FORNAX_ASSIGN_OR_RETURN(const double number, NumberOf(field, value, source_, name));
            axis.values.push_back(number);
        }
        return OkStatus();
    }

    Status CheckComplete(const toml::table& root) const {
        for (const Field& field : Fields()) {
            const toml::node* table = root.get(field.table);
            if (field.is_optional) {
                continue;
            }
            if (table == nullptr || table->as_table()->get(field.key) == nullptr) {
                return Bad(
                    fmt::format("{} lacks the key {}.{}, which must be given unless base "
                                "names a preset.",
                                source_, field.table, field.key));
            }
        }
        return OkStatus();
    }

    const std::string& source_;
    Space* const space_;
    const std::string folder_;
    Description description_;
    bool has_base_ = false;
};

Status CheckPowerOfTwo(std::string_view key, uint64_t value) {
    if (!std::has_single_bit(value)) {
        return Bad(fmt::format("{} is {}; it must be a power of two.", key, value));
    }
    return OkStatus();
}

}  // namespace

Status CheckDescription(const Description& description) {
    const Description::Scratchpad& scratchpad = description.scratchpad;
    FORNAX_RETURN_IF_ERROR(CheckPowerOfTwo("scratchpad.bank_bytes", scratchpad.bank_bytes));
    FORNAX_RETURN_IF_ERROR(
        CheckPowerOfTwo("scratchpad.alignment_bytes", scratchpad.alignment_bytes));
    FORNAX_RETURN_IF_ERROR(CheckPowerOfTwo("dram.burst_bytes", description.dram.burst_bytes));
    if (description.vector.bits % 32 != 0) {
        return Bad(fmt::format("vector.bits is {}; it must be a multiple of 32.",
                               description.vector.bits));
    }
    const uint64_t row = scratchpad.banks * scratchpad.bank_bytes;
    if (scratchpad.bytes % row != 0) {
        return Bad(
            fmt::format("scratchpad.bytes is {}; it must be a multiple of {}, which "
                        "scratchpad.banks ({}) of scratchpad.bank_bytes ({}) are.",
                        scratchpad.bytes, row, scratchpad.banks, scratchpad.bank_bytes));
    }
    if (scratchpad.alignment_bytes > scratchpad.bytes) {
        return Bad(
            fmt::format("scratchpad.alignment_bytes is {}; it must be at most "
                        "scratchpad.bytes, {}.",
                        scratchpad.alignment_bytes, scratchpad.bytes));
    }
    if (description.dram.burst_bytes > scratchpad.bytes) {
        return Bad(fmt::format("dram.burst_bytes is {}; it must be at most scratchpad.bytes, {}.",
                               description.dram.burst_bytes, scratchpad.bytes));
    }
    // An array's stationary operand, one byte an element.
    const uint64_t array = description.matrix.rows * description.matrix.columns;
    if (description.matrix.units > 0 && array > scratchpad.bytes) {
        return Bad(fmt::format(
            "matrix.rows ({}) times matrix.columns ({}) is {}; it must be at "
            "most scratchpad.bytes, {}.",
            description.matrix.rows, description.matrix.columns, array, scratchpad.bytes));
    }
    constexpr uint64_t kMaxCores = 4096;
    if (description.cores.count() > kMaxCores) {
        return Bad(
            fmt::format("cores.clusters ({}) times cores.per_cluster ({}) is {}; it must be "
                        "at most {}.",
                        description.cores.clusters, description.cores.per_cluster,
                        description.cores.count(), kMaxCores));
    }
    return OkStatus();
}

namespace {

// Characters that toml++ 3.3 is not safe from: where it looks for a blank and finds a letter of
// U+00A1 to U+0499 it is undefined (TOML_UNREACHABLE in is_non_ascii_horizontal_whitespace), and it
// takes a vertical tab for the begin of a key. In comments and texts of one line it looks for no
// blanks; control characters are not allowed in TOML.
Status CheckCharacters(std::string_view text, const std::string& source) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    text.remove_prefix(text.starts_with(kMark) ? kMark.size() : 0);
    const bool has_long_text =
        text.find("\"\"\"") != std::string_view::npos || text.find("'''") != std::string_view::npos;
    size_t line = 1;
    char within = 0;  // what a text ends with; '#': a comment
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool ends_line = c == '\n' || (c == '\r' && text.substr(i + 1, 1) == "\n");
        if (is_ascii(c) && (c < ' ' || c == 0x7F) && c != '\t' && !ends_line) {
            return Bad(fmt::format("{}, line {}: byte {:#04x} is a control character.", source,
                                   line, static_cast<unsigned>(c)));
        }
        if (c == '\n') {
            within = 0;
            ++line;
        } else if (!is_ascii(c) && (within == 0 || has_long_text)) {
            return Bad(
                fmt::format("{}, line {}: a character that is not ASCII is neither in a "
                            "comment nor in a text of one line.",
                            source, line));
        } else if (within == 0 && (c == '#' || c == '"' || c == '\'')) {
            within = c;
        } else if (within == '"' && text.substr(i, 2) == "\\\"") {
            ++i;
        } else if (within == '"' && text.substr(i, 2) == "\\\\") {
            ++i;
        } else if (c == within && c != '#') {
            within = 0;
        }
    }
    return OkStatus();
}

Result<toml::table> ParseToml(std::string_view text, const std::string& source) {
    FORNAX_RETURN_IF_ERROR(CheckCharacters(text, source));
    toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return Bad(fmt::format("{}, line {}: it is not TOML ({}).", source,
                               error.source().begin.line, error.description()));
    }
    return std::move(parsed).table();
}

}  // namespace

Result<Description> ParseDescription(std::string_view text, const std::string& source) {
    FORNAX_ASSIGN_OR_RETURN(const toml::table root, ParseToml(text, source));
    return Reader(source).Read(root);
}

Result<Description> LoadDescription(const std::string& name_or_path) {
    std::vector<std::string_view> names;
    for (const Preset& preset : Presets()) {
        if (preset.name == name_or_path) {
            return ParseDescription(preset.text, name_or_path);
        }
        names.push_back(preset.name);
    }
    Result<std::string> text = ReadTextFile(name_or_path, kMaxDescriptionBytes);
    if (!text.ok() && text.error().code == ErrorCode::kNotFound) {
        return Error{ErrorCode::kNotFound, fmt::format("{} is no preset ({}), and no file either.",
                                                       Printable(name_or_path), List(names))};
    }
    FORNAX_RETURN_IF_ERROR(text.ok() ? OkStatus() : Status(text.error()));
    return ParseDescription(*text, name_or_path);
}

Result<std::optional<Description>> DescriptionOfEnvironment() {
    const std::optional<std::string> value = EnvironmentText("FORNAX_NPU");
    if (!value) {
        return std::optional<Description>();
    }
    Result<Description> description = LoadDescription(*value);
    if (!description.ok()) {
        return Error{description.error().code,
                     fmt::format("FORNAX_NPU: {}", description.error().message)};
    }
    return std::optional(std::move(description).value());
}

// --- Spaces

std::string SpaceAxis::name() const {
    return fmt::format("{}.{}", field->table, field->key);
}

uint64_t Space::count() const {
    uint64_t count = 1;
    for (const SpaceAxis& axis : axes) {
        count *= axis.values.size();
    }
    return count;
}

double Space::ValueOf(size_t axis, uint64_t index) const {
    for (size_t later = axes.size() - 1; later > axis; --later) {
        index /= axes[later].values.size();
    }
    return axes[axis].values[index % axes[axis].values.size()];
}

Result<Description> Space::At(uint64_t index) const {
    Description description = base;
    description.name = fmt::format("{}/{}", base.name, index);
    for (size_t i = 0; i < axes.size(); ++i) {
        axes[i].field->set(description, ValueOf(i, index));
    }
    if (const Status status = CheckDescription(description); !status.ok()) {
        std::string values;
        for (size_t i = 0; i < axes.size(); ++i) {
            values += fmt::format("{}{} = {}", i == 0 ? "" : ", ", axes[i].name(),
                                  TextOf(*axes[i].field, ValueOf(i, index)));
        }
        return Bad(fmt::format("{}: of the description with {}, {}", source, values,
                               status.error().message));
    }
    return description;
}

Result<Space> ParseSpace(std::string_view text,
                         const std::string& source,
                         const std::string& folder) {
    FORNAX_ASSIGN_OR_RETURN(const toml::table root, ParseToml(text, source));
    Space space = {.source = source, .base = {}, .axes = {}};
    FORNAX_ASSIGN_OR_RETURN(space.base, Reader(source, &space, folder).Read(root));
    if (space.axes.empty()) {
        return Bad(
            fmt::format("{} varies no key; at least one must have a list of values, as in "
                        "bandwidth_gbs = [68, 136].",
                        source));
    }
    uint64_t count = 1;  // each factor is at most the limit, so that the product does not wrap
    for (const SpaceAxis& axis : space.axes) {
        count *= axis.values.size();
        if (count > kMaxDescriptionsOfSpace) {
            return Bad(fmt::format("{} has at least {} descriptions; a space has at most {}.",
                                   source, count, kMaxDescriptionsOfSpace));
        }
    }
    return space;
}

Result<Space> LoadSpace(const std::string& path) {
    FORNAX_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxDescriptionBytes));
    return ParseSpace(text, Printable(path), std::filesystem::path(path).parent_path().string());
}

std::string TextOf(const Space& space) {
    std::string text = fmt::format("# {} as a whole.\n", Printable(space.base.name));
    for (const Field& field : Fields()) {
        const auto value = [&](double number) {
            const bool is_word = field.kind == FieldKind::kWord;
            return is_word ? fmt::format("\"{}\"", TextOf(field, number)) : TextOf(field, number);
        };
        const auto axis = std::ranges::find(space.axes, &field, &SpaceAxis::field);
        std::string values;
        if (axis == space.axes.end()) {
            values = value(field.get(space.base));
        } else {
            for (const double number : axis->values) {
                values += fmt::format("{}{}", values.empty() ? "[" : ", ", value(number));
            }
            values += "]";
        }
        text += fmt::format("{}.{} = {}\n", field.table, field.key, values);
    }
    return text;
}

}  // namespace fornax::npu
