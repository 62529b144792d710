// Writing and reading go through the same list of fields (VisitFields), so that neither can know
// one that the other does not.
#include "npu/replay/record_file.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"

namespace fornax::npu {
namespace {

using nlohmann::json;

constexpr std::string_view kHeaderKey = "fornax_npu_records";
constexpr std::string_view kChecksumKey = "checksum";
// A record is an object with lists of objects.
constexpr int kMaxDepth = 4;
// Whatever fits; CheckRecords() knows what a replay takes.
constexpr uint64_t kMaxNumber = UINT64_MAX;

constexpr std::array<std::string_view, 2> kSplitNames = {"whole", "workgroup"};
constexpr std::array<std::string_view, 4> kCopyKindNames = {"device", "from-host", "to-host",
                                                            "fill"};

// --- The fields
// -----------------------------------------------------------------------------------

template <typename Archive>
void VisitFields(Archive& archive, Product& product) {
    archive.Number("m", product.shape.m, 0);
    archive.Number("n", product.shape.n, 0);
    archive.Number("k", product.shape.k, 0);
    archive.Number("batch", product.batch, 1);
    archive.Word("type", product.type, kMatrixTypeNames);
    archive.Number("a_bytes", product.a_bytes, 0);
    archive.Number("b_bytes", product.b_bytes, 0);
    archive.Number("pass", product.pass, 0, 0, kMaxPasses - 1);
}

template <typename Archive>
void VisitFields(Archive& archive, Access& access) {
    archive.Word("kind", access.kind, kAccessKindNames);
    archive.Flag("writes", access.writes, false);
    archive.Number("bytes", access.bytes, 0);
    archive.Number("element_bytes", access.element_bytes, 4, 0, UINT32_MAX);
    archive.Number("repeated_bytes", access.repeated_bytes, 0);
    archive.Flag("apart", access.apart, false);
    archive.Flag("far", access.far, false);
    archive.Flag("in_parts", access.in_parts, false);
    archive.Number("pass", access.pass, 0, 0, kMaxPasses - 1);
    archive.Number("memory", access.range.memory, 0);
    archive.Number("range_begin", access.range.begin, 0);
    archive.Number("range_bytes", access.range.bytes, 0);
}

template <typename Archive>
void VisitFields(Archive& archive, SourceLine& line) {
    archive.Word("work", line.work, kLineWorkNames);
    archive.Text("line", line.line);
    archive.Number("percent", line.percent, 0, 0, 100);
}

// A dispatch and its passes have the same.
template <typename Archive>
void VisitOperations(Archive& archive, Operations& operations) {
    archive.Number("simple_operations", operations.simple, 0);
    archive.Number("multiply_add_operations", operations.multiply_add, 0);
    archive.Number("division_operations", operations.division, 0);
    archive.Number("special_operations", operations.special, 0);
}

template <typename Archive>
void VisitFields(Archive& archive, Pass& pass) {
    VisitOperations(archive, pass.operations);
    archive.Number("scratchpad_bytes", pass.scratchpad_bytes, 0);
    archive.Number("scratchpad_accesses", pass.scratchpad_accesses, 0);
}

template <typename Archive>
void VisitFields(Archive& archive, DispatchRecord& dispatch) {
    archive.Number("workgroups", dispatch.workgroups, 1);
    archive.Word("split", dispatch.split, kSplitNames);
    archive.List("products", dispatch.products);
    VisitOperations(archive, dispatch.operations);
    archive.Number("scalar_operations", dispatch.scalar_operations, 0);
    archive.Number("element_bits", dispatch.element_bits, 32, 0, UINT32_MAX);
    archive.Number("scratchpad_bytes", dispatch.scratchpad_bytes, 0);
    archive.Number("scratchpad_stride_words", dispatch.scratchpad_stride_words, 1);
    archive.Number("scratchpad_accesses", dispatch.scratchpad_accesses, 0);
    archive.List("accesses", dispatch.accesses);
    archive.List("passes", dispatch.passes);
    archive.Number("request_least_bytes", dispatch.scratchpad.least_bytes, 0);
    archive.Number("request_preferred_bytes", dispatch.scratchpad.preferred_bytes, 0);
    archive.Flag("request_may_spill", dispatch.scratchpad.may_spill, true);
    archive.Flag("request_persists", dispatch.scratchpad.persists, false);
    archive.List("lines", dispatch.lines);
}

template <typename Archive>
void VisitFields(Archive& archive, CopyRecord& copy) {
    archive.Word("kind", copy.kind, kCopyKindNames);
    archive.Number("bytes", copy.bytes, 0);
}

template <typename Archive>
void VisitCommon(Archive& archive, Record& record) {
    uint64_t queue = record.queue.value();
    archive.Number("queue", queue, 0, 0, kMaxQueues - 1);
    record.queue = QueueId(queue);
    archive.Ids("after", record.after);
    archive.Flag("begins_submission", record.begins_submission, false);
}

// --- Writing
// --------------------------------------------------------------------------------------

class Writer {
  public:
    explicit Writer(json& into) : into_(into) {}

    template <typename T>
    void Number(const char* key, const T& value, uint64_t usual, uint64_t = 0, uint64_t = 0) {
        if (value != usual) {
            into_[key] = value;
        }
    }
    void Flag(const char* key, bool value, bool usual) {
        if (value != usual) {
            into_[key] = value;
        }
    }
    void Text(const char* key, const std::string& value) {
        if (!value.empty()) {
            into_[key] = value;
        }
    }
    // The first word is the default.
    template <typename T>
    void Word(const char* key, T value, std::span<const std::string_view> words) {
        if (static_cast<size_t>(value) != 0) {
            into_[key] = words[static_cast<size_t>(value)];
        }
    }
    template <typename T>
    void List(const char* key, std::vector<T>& values) {
        for (T& value : values) {
            json item = json::object();
            Writer writer(item);
            VisitFields(writer, value);
            into_[key].push_back(std::move(item));
        }
    }
    void Ids(const char* key, const std::vector<RecordId>& ids) {
        for (const RecordId id : ids) {
            into_[key].push_back(id.value());
        }
    }

  private:
    json& into_;
};

std::string LineOf(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string LineOf(Record record) {
    json line = json::object();
    Writer writer(line);
    if (auto* dispatch = std::get_if<DispatchRecord>(&record.work)) {
        line["dispatch"] = dispatch->name;
        VisitFields(writer, *dispatch);
    } else {
        auto& copy = std::get<CopyRecord>(record.work);
        line["copy"] = copy.name;
        VisitFields(writer, copy);
    }
    VisitCommon(writer, record);
    return LineOf(line);
}

std::string ChecksumOf(std::string_view text) {
    return HashBytes(std::as_bytes(std::span(text))).ToHex();
}

// --- Reading
// --------------------------------------------------------------------------------------

// A value as a message shows it.
std::string Shown(const json& value) {
    constexpr size_t kMost = 40;
    if (value.is_structured()) {
        return value.is_array() ? "a list" : "an object";
    }
    std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// Remembers the first thing that is wrong.
class Reader {
  public:
    // `from` is an object. `keys` are those that the caller has read already.
    Reader(const json& from, std::string where, std::vector<std::string_view> keys = {})
        : from_(from), where_(std::move(where)), keys_(std::move(keys)) {}

    template <typename T>
    void Number(const char* key,
                T& value,
                uint64_t usual,
                uint64_t least = 0,
                uint64_t most = kMaxNumber) {
        value = static_cast<T>(usual);
        const json* found = Find(key);
        if (found == nullptr) {
            return;
        }
        if (!found->is_number_unsigned() || found->get<uint64_t>() < least ||
            found->get<uint64_t>() > most) {
            Fail(key, *found, fmt::format("a whole number from {} to {}", least, most));
            return;
        }
        value = static_cast<T>(found->get<uint64_t>());
    }
    void Flag(const char* key, bool& value, bool usual) {
        value = usual;
        if (const json* found = Find(key)) {
            if (!found->is_boolean()) {
                Fail(key, *found, "true or false");
                return;
            }
            value = found->get<bool>();
        }
    }
    void Text(const char* key, std::string& value) {
        value.clear();
        if (const json* found = Find(key)) {
            if (!found->is_string()) {
                Fail(key, *found, "a text");
                return;
            }
            value = found->get<std::string>();
        }
    }
    template <typename T>
    void Word(const char* key, T& value, std::span<const std::string_view> words) {
        value = static_cast<T>(0);
        const json* found = Find(key);
        if (found == nullptr) {
            return;
        }
        for (size_t i = 0; found->is_string() && i < words.size(); ++i) {
            if (words[i] == found->get_ref<const std::string&>()) {
                value = static_cast<T>(i);
                return;
            }
        }
        Fail(key, *found, fmt::format("one of the words {}", fmt::join(words, ", ")));
    }
    template <typename T>
    void List(const char* key, std::vector<T>& values) {
        for (const json* item : Items(key)) {
            const std::string where = fmt::format("{}{}[{}]", where_, key, values.size());
            if (!item->is_object()) {
                Fail(where, *item, "an object");
                return;
            }
            Reader reader(*item, where + ".");
            VisitFields(reader, values.emplace_back());
            reader.Finish();
            error_ = error_.empty() ? reader.error() : error_;
        }
    }
    void Ids(const char* key, std::vector<RecordId>& ids) {
        for (const json* item : Items(key)) {
            if (!item->is_number_unsigned() || item->get<uint64_t>() >= kMaxRecordsOfFile) {
                Fail(fmt::format("{}{}[{}]", where_, key, ids.size()), *item,
                     fmt::format("a whole number from 0 to {}", kMaxRecordsOfFile - 1));
                return;
            }
            ids.emplace_back(item->get<uint64_t>());
        }
    }

    // To be called last: keys that nobody asked for.
    void Finish() {
        for (const auto& [key, value] : from_.items()) {
            if (error_.empty() && std::ranges::find(keys_, key) == keys_.end()) {
                error_ = fmt::format("{}{} is no key of version {}", where_, Printable(key),
                                     kRecordFileVersion);
            }
        }
    }
    const std::string& error() const { return error_; }  // a clause, empty if nothing is wrong

  private:
    const json* Find(const char* key) {
        keys_.emplace_back(key);
        const auto found = from_.find(key);
        return found == from_.end() ? nullptr : &*found;
    }
    std::vector<const json*> Items(const char* key) {
        std::vector<const json*> items;
        const json* found = Find(key);
        if (found != nullptr && !found->is_array()) {
            Fail(key, *found, "a list");
        } else if (found != nullptr) {
            for (const json& item : *found) {
                items.push_back(&item);
            }
        }
        return items;
    }
    void Fail(const char* key, const json& value, std::string_view limit) {
        Fail(where_ + key, value, limit);
    }
    void Fail(const std::string& key, const json& value, std::string_view limit) {
        if (error_.empty()) {
            error_ = fmt::format("{} is {}; it must be {}", key, Shown(value), limit);
        }
    }

    const json& from_;
    const std::string where_;
    std::vector<std::string_view> keys_;
    std::string error_;
};

class FileReader {
  public:
    FileReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

    Result<std::vector<Record>> Read() {
        FORNAX_ASSIGN_OR_RETURN(const uint64_t count, ReadHeader());
        std::vector<Record> records;
        records.reserve(std::min<uint64_t>(count, text_.size() / 8));
        bool has_checksum = false;
        while (position_ < text_.size()) {
            const std::string_view before = text_.substr(0, position_);
            FORNAX_ASSIGN_OR_RETURN(const json line, NextLine());
            if (has_checksum) {
                return Bad("it follows the checksum, which is the last line of a file");
            }
            if (const auto checksum = line.find(kChecksumKey); checksum != line.end()) {
                if (*checksum != ChecksumOf(before) || line.size() != 1) {
                    return Bad(
                        "the checksum is not that of the lines before, so the file is "
                        "damaged; one that was edited on purpose has no checksum");
                }
                has_checksum = true;
                continue;
            }
            if (records.size() == count) {
                return Bad(
                    fmt::format("there are more records than the {} of the first line", count));
            }
            FORNAX_ASSIGN_OR_RETURN(Record record, ReadRecord(line));
            records.push_back(std::move(record));
        }
        if (records.size() < count) {
            return Error{ErrorCode::kDataLoss,
                         fmt::format("{} is cut: it has {} of the {} records of its first line.",
                                     source_, records.size(), count)};
        }
        if (const Status status = CheckRecords(records); !status.ok()) {
            return Error{ErrorCode::kDataLoss,
                         fmt::format("{}: {}", source_, status.error().message)};
        }
        return records;
    }

  private:
    Error Bad(std::string_view clause) const {
        return {ErrorCode::kDataLoss, fmt::format("{}, line {}: {}.", source_, line_, clause)};
    }

    Result<uint64_t> ReadHeader() {
        const auto no_records = [&] {
            return Error{ErrorCode::kDataLoss,
                         fmt::format("{} is no file of cost records: it does not begin with the "
                                     "line of {}.",
                                     source_, kHeaderKey)};
        };
        if (!text_.starts_with('{')) {
            return no_records();
        }
        FORNAX_ASSIGN_OR_RETURN(const json header, NextLine());
        const auto version = header.find(kHeaderKey);
        if (version == header.end()) {
            return no_records();
        }
        if (*version != kRecordFileVersion) {
            return Error{ErrorCode::kDataLoss,
                         fmt::format("{} is of version {} of the format; this program reads "
                                     "version {}.",
                                     source_, Shown(*version), kRecordFileVersion)};
        }
        Reader reader(header, "", {kHeaderKey});
        uint64_t count = 0, model = 0;
        reader.Number("records", count, UINT64_MAX, 0, kMaxRecordsOfFile);
        reader.Number("model", model, 0);
        reader.Finish();
        if (!reader.error().empty()) {
            return Bad(reader.error());
        }
        if (count == UINT64_MAX) {
            return Bad("it lacks the key records, how many follow");
        }
        return count;
    }

    Result<Record> ReadRecord(const json& line) const {
        const bool is_dispatch = line.contains("dispatch");
        const char* kind = is_dispatch ? "dispatch" : "copy";
        const auto name = line.find(kind);
        if (name == line.end() || !name->is_string()) {
            return Bad("it is no record: it has neither the key dispatch nor copy with a name");
        }
        Record record;
        Reader reader(line, "", {kind});
        if (is_dispatch) {
            DispatchRecord dispatch;
            dispatch.name = name->get<std::string>();
            VisitFields(reader, dispatch);
            record.work = std::move(dispatch);
        } else {
            CopyRecord copy;
            copy.name = name->get<std::string>();
            VisitFields(reader, copy);
            record.work = std::move(copy);
        }
        VisitCommon(reader, record);
        reader.Finish();
        if (!reader.error().empty()) {
            return Bad(reader.error());
        }
        return record;
    }

    // The next line, which is an object.
    Result<json> NextLine() {
        ++line_;
        const size_t end = text_.find('\n', position_);
        const std::string_view line =
            text_.substr(position_, end == std::string_view::npos ? end : end - position_);
        position_ = end == std::string_view::npos ? text_.size() : end + 1;
        if (line.size() > kMaxRecordLineBytes) {
            return Bad(fmt::format("it has {} bytes; a line has at most {}", line.size(),
                                   kMaxRecordLineBytes));
        }
        bool is_deep = false;
        const auto bound_depth = [&](int depth, json::parse_event_t, const json&) {
            is_deep = is_deep || depth > kMaxDepth;
            return depth <= kMaxDepth;
        };
        json value = json::parse(line, bound_depth, /*allow_exceptions=*/false);
        if (is_deep) {
            return Bad(
                fmt::format("lists and objects lie in each other more than {} deep", kMaxDepth));
        }
        if (!value.is_object()) {
            return Bad("it is no JSON object, so the file is damaged");
        }
        return value;
    }

    const std::string_view text_;
    const std::string& source_;
    size_t position_ = 0;
    size_t line_ = 0;
};

}  // namespace

Result<std::string> RecordText(std::span<const Record> records) {
    FORNAX_RETURN_IF_ERROR(CheckRecords(records));
    if (records.size() > kMaxRecordsOfFile) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("There are {} cost records; a file has at most {}.",
                                 records.size(), kMaxRecordsOfFile)};
    }
    std::string text = LineOf(json{
        {kHeaderKey, kRecordFileVersion}, {"model", kModelVersion}, {"records", records.size()}});
    for (size_t i = 0; i < records.size(); ++i) {
        const std::string line = LineOf(records[i]);
        if (line.size() > kMaxRecordLineBytes || text.size() + line.size() > kMaxRecordFileBytes) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("Record {} ({:.100}) makes a line of {} bytes and a file of "
                            "{}; at most {} and {} are allowed.",
                            i, Printable(records[i].name()), line.size(), text.size() + line.size(),
                            kMaxRecordLineBytes, kMaxRecordFileBytes)};
        }
        text += line;
    }
    return text + LineOf(json{{kChecksumKey, ChecksumOf(text)}});
}

Result<std::vector<Record>> ParseRecords(std::string_view text, const std::string& source) {
    return FileReader(text, source).Read();
}

Status WriteRecordFile(const std::filesystem::path& path, std::span<const Record> records) {
    FORNAX_ASSIGN_OR_RETURN(const std::string text, RecordText(records));
    return WriteOutputFile(path.string(), text);
}

Result<std::vector<Record>> ReadRecordFile(const std::filesystem::path& path) {
    // The checksum's line comes on top.
    FORNAX_ASSIGN_OR_RETURN(const std::string text,
                            ReadTextFile(path.string(), kMaxRecordFileBytes + 256));
    return ParseRecords(text, Printable(path.string()));
}

}  // namespace fornax::npu
