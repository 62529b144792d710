// TextTable: aligned columns of text for the command's output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fornax::tool {

// Collects rows of cells and renders them with each column as wide as its widest cell. Widths count
// UTF-8 code points, so a cell may hold names from a driver. Not thread-safe.
class TextTable {
  public:
    enum class Align { kLeft, kRight };

    // One entry a column. An empty `headers` entry for every column leaves the header line out.
    TextTable(std::vector<std::string> headers, std::vector<Align> alignments);

    // Missing cells are empty; there may not be more cells than columns.
    void AddRow(std::vector<std::string> cells);
    // A horizontal rule between the rows before and after it.
    void AddRule();

    // Every line starts with `indent` blanks, has no blanks at its end, and ends in a line feed.
    std::string Render(size_t indent = 0) const;

  private:
    struct Row {
        bool is_rule = false;
        std::vector<std::string> cells;
    };

    std::vector<std::string> headers_;
    std::vector<Align> alignments_;
    std::vector<Row> rows_;
};

// 1536 -> "1.5 KiB"; exact powers print without a fraction.
std::string FormatBytes(uint64_t size_bytes);

}  // namespace fornax::tool
