// Renders aligned columns for the command's tables.
#include "tools/fornax/text_table.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace fornax::tool {
namespace {

constexpr size_t kColumnGap = 2;

size_t WidthOf(const std::string& text) {
    // Continuation bytes of UTF-8 are 10xxxxxx; every other byte starts a code point.
    return std::count_if(text.begin(), text.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void AppendLine(std::string& out, std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    out += line;
    out += '\n';
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headers, std::vector<Align> alignments)
    : headers_(std::move(headers)), alignments_(std::move(alignments)) {
    assert(headers_.size() == alignments_.size());
}

void TextTable::AddRow(std::vector<std::string> cells) {
    assert(cells.size() <= headers_.size());
    cells.resize(headers_.size());
    rows_.push_back({false, std::move(cells)});
}

void TextTable::AddRule() {
    rows_.push_back({true, {}});
}

std::string TextTable::Render(size_t indent) const {
    std::vector<size_t> widths;
    for (const std::string& header : headers_) {
        widths.push_back(WidthOf(header));
    }
    for (const Row& row : rows_) {
        for (size_t i = 0; i < row.cells.size(); ++i) {
            widths[i] = std::max(widths[i], WidthOf(row.cells[i]));
        }
    }
    size_t total_width = widths.empty() ? 0 : kColumnGap * (widths.size() - 1);
    for (size_t width : widths) {
        total_width += width;
    }

    const std::string margin(indent, ' ');
    std::string out;
    auto append_cells = [&](const std::vector<std::string>& cells) {
        std::string line = margin;
        for (size_t i = 0; i < cells.size(); ++i) {
            const std::string padding(widths[i] - WidthOf(cells[i]), ' ');
            line += alignments_[i] == Align::kRight ? padding + cells[i] : cells[i] + padding;
            line.append(kColumnGap, ' ');
        }
        AppendLine(out, std::move(line));
    };
    const bool has_header =
        std::any_of(headers_.begin(), headers_.end(), [](const auto& h) { return !h.empty(); });
    const std::string rule(total_width, '-');
    if (has_header) {
        append_cells(headers_);
        AppendLine(out, margin + rule);
    }
    for (const Row& row : rows_) {
        if (row.is_rule) {
            AppendLine(out, margin + rule);
        } else {
            append_cells(row.cells);
        }
    }
    return out;
}

std::string FormatBytes(uint64_t size_bytes) {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double value = static_cast<double>(size_bytes);
    while (value >= 1024 && unit + 1 < std::size(kUnits)) {
        value /= 1024;
        ++unit;
    }
    if (value == static_cast<double>(static_cast<uint64_t>(value))) {
        return fmt::format("{} {}", static_cast<uint64_t>(value), kUnits[unit]);
    }
    return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace fornax::tool
