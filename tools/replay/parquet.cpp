// A writer of Parquet for tables of numbers and texts. Debian 12 has no library for it, and what a
// table needs of the format is small: pages of plain values, and a footer in Thrift's compact
// protocol. Source: the Parquet format's specification, 2.10 (parquet.thrift).
#include <bit>
#include <cstring>

#include "tools/replay/table.h"

namespace fornax::tool {
namespace {

static_assert(std::endian::native == std::endian::little, "Parquet's values are little-endian.");

constexpr std::string_view kMagic = "PAR1";

// parquet.thrift's enumerations.
constexpr int kInt64 = 2, kDouble = 5, kByteArray = 6;
constexpr int kRequired = 0;
constexpr int kUtf8 = 0;
constexpr int kPlain = 0, kRle = 3;
constexpr int kUncompressed = 0;
constexpr int kDataPage = 0;

// Thrift's compact protocol, as far as these structures go.
class Thrift {
  public:
    void I32(int id, int32_t value) { Number(id, kI32, value); }
    void I64(int id, int64_t value) { Number(id, kI64, value); }
    void Text(int id, std::string_view text) {
        Field(id, kBinary);
        Bytes(text);
    }
    void Struct(int id) {
        Field(id, kStruct);
        Enter();
    }
    void EndStruct() {
        bytes_.push_back(0);
        last_ = outer_.back();
        outer_.pop_back();
    }
    void List(int id, uint8_t of, size_t count) {
        Field(id, kList);
        if (count < 15) {
            bytes_.push_back(static_cast<char>(count << 4 | of));
        } else {
            bytes_.push_back(static_cast<char>(0xf0 | of));
            Varint(count);
        }
    }
    // Items of lists.
    void Item() { Enter(); }
    void ItemI32(int32_t value) { Varint(ZigZag(value)); }
    void ItemText(std::string_view text) { Bytes(text); }

    std::string Finish() && {
        bytes_.push_back(0);
        return std::move(bytes_);
    }

    static constexpr uint8_t kI32 = 5, kI64 = 6, kBinary = 8, kList = 9, kStruct = 12;

  private:
    static uint64_t ZigZag(int64_t value) {
        return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
    }
    void Varint(uint64_t value) {
        for (; value >= 0x80; value >>= 7) {
            bytes_.push_back(static_cast<char>(value | 0x80));
        }
        bytes_.push_back(static_cast<char>(value));
    }
    void Bytes(std::string_view text) {
        Varint(text.size());
        bytes_ += text;
    }
    // Ids grow within a structure, by less than 16.
    void Field(int id, uint8_t type) {
        bytes_.push_back(static_cast<char>((id - last_) << 4 | type));
        last_ = id;
    }
    void Number(int id, uint8_t type, int64_t value) {
        Field(id, type);
        Varint(ZigZag(value));
    }
    void Enter() {
        outer_.push_back(last_);
        last_ = 0;
    }

    std::string bytes_;
    int last_ = 0;
    std::vector<int> outer_;
};

int TypeOf(const Column& column) {
    return std::array{kInt64, kDouble, kByteArray}[column.values.index()];
}

template <typename T>
void AppendNumber(std::string& bytes, T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes.append(raw, sizeof(T));
}

std::string PlainValues(const Column& column) {
    std::string bytes;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&column.values)) {
        for (const std::string& text : *texts) {
            AppendNumber(bytes, static_cast<uint32_t>(text.size()));
            bytes += text;
        }
        return bytes;
    }
    const auto append = [&](const auto& values) {
        bytes.assign(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(values[0]));
    };
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&column.values)) {
        append(*integers);
    } else {
        append(std::get<std::vector<double>>(column.values));
    }
    return bytes;
}

std::string PageHeader(size_t rows, size_t bytes) {
    Thrift header;
    header.I32(1, kDataPage);
    header.I32(2, static_cast<int32_t>(bytes));
    header.I32(3, static_cast<int32_t>(bytes));
    header.Struct(5);
    header.I32(1, static_cast<int32_t>(rows));
    header.I32(2, kPlain);
    header.I32(3, kRle);  // of levels, of which required columns have none
    header.I32(4, kRle);
    header.EndStruct();
    return std::move(header).Finish();
}

struct Chunk {
    size_t offset = 0;
    size_t bytes = 0;
};

void AddSchema(Thrift& footer, std::span<const Column> columns) {
    footer.List(2, Thrift::kStruct, columns.size() + 1);
    footer.Item();
    footer.Text(4, "schema");
    footer.I32(5, static_cast<int32_t>(columns.size()));
    footer.EndStruct();
    for (const Column& column : columns) {
        footer.Item();
        footer.I32(1, TypeOf(column));
        footer.I32(3, kRequired);
        footer.Text(4, column.name);
        if (TypeOf(column) == kByteArray) {
            footer.I32(6, kUtf8);
        }
        footer.EndStruct();
    }
}

void AddRows(Thrift& footer,
             std::span<const Column> columns,
             std::span<const Chunk> chunks,
             int64_t rows) {
    footer.List(4, Thrift::kStruct, 1);
    footer.Item();
    footer.List(1, Thrift::kStruct, columns.size());
    int64_t total = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
        const auto bytes = static_cast<int64_t>(chunks[i].bytes);
        const auto offset = static_cast<int64_t>(chunks[i].offset);
        total += bytes;
        footer.Item();
        footer.I64(2, offset);
        footer.Struct(3);
        footer.I32(1, TypeOf(columns[i]));
        footer.List(2, Thrift::kI32, 1);
        footer.ItemI32(kPlain);
        footer.List(3, Thrift::kBinary, 1);
        footer.ItemText(columns[i].name);
        footer.I32(4, kUncompressed);
        footer.I64(5, rows);
        footer.I64(6, bytes);
        footer.I64(7, bytes);
        footer.I64(9, offset);
        footer.EndStruct();
        footer.EndStruct();
    }
    footer.I64(2, total);
    footer.I64(3, rows);
    footer.EndStruct();
}

}  // namespace

std::string ParquetOf(std::span<const Column> columns,
                      const std::map<std::string, std::string>& notes) {
    const size_t rows = columns.empty() ? 0 : columns.front().size();
    std::string file(kMagic);
    std::vector<Chunk> chunks;
    for (const Column& column : columns) {
        const std::string values = PlainValues(column);
        const std::string header = PageHeader(rows, values.size());
        chunks.push_back({file.size(), header.size() + values.size()});
        file += header;
        file += values;
    }
    Thrift footer;
    footer.I32(1, 1);  // the format's version
    AddSchema(footer, columns);
    footer.I64(3, static_cast<int64_t>(rows));
    AddRows(footer, columns, chunks, static_cast<int64_t>(rows));
    footer.List(5, Thrift::kStruct, notes.size());
    for (const auto& [key, value] : notes) {
        footer.Item();
        footer.Text(1, key);
        footer.Text(2, value);
        footer.EndStruct();
    }
    footer.Text(6, "fornax");
    const std::string end = std::move(footer).Finish();
    file += end;
    AppendNumber(file, static_cast<uint32_t>(end.size()));
    file += kMagic;
    return file;
}

}  // namespace fornax::tool
