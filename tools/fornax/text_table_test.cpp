// Alignment, rules and byte formatting of the command's tables.
#include "tools/fornax/text_table.h"

#include <gtest/gtest.h>

namespace fornax::tool {
namespace {

using Align = TextTable::Align;

TEST(TextTable, AlignsColumnsAndTrimsLineEnds) {
    TextTable table({"name", "ms"}, {Align::kLeft, Align::kRight});
    table.AddRow({"a", "1.5"});
    table.AddRow({"longer", "12.25"});
    table.AddRule();
    table.AddRow({"no number"});
    EXPECT_EQ(table.Render(),
              "name          ms\n"
              "----------------\n"
              "a            1.5\n"
              "longer     12.25\n"
              "----------------\n"
              "no number\n");
}

TEST(TextTable, EmptyHeadersLeaveTheHeaderOutAndIndentMovesEveryLine) {
    TextTable table({"", ""}, {Align::kLeft, Align::kLeft});
    table.AddRow({"key", "value"});
    EXPECT_EQ(table.Render(2), "  key  value\n");
}

TEST(TextTable, WidthsCountCodePointsNotBytes) {
    TextTable table({"", ""}, {Align::kLeft, Align::kLeft});
    table.AddRow({"µs", "1"});
    table.AddRow({"ms", "2"});
    EXPECT_EQ(table.Render(), "µs  1\nms  2\n");
}

TEST(FormatBytes, UsesBinaryUnits) {
    EXPECT_EQ(FormatBytes(0), "0 B");
    EXPECT_EQ(FormatBytes(1023), "1023 B");
    EXPECT_EQ(FormatBytes(1024), "1 KiB");
    EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
    EXPECT_EQ(FormatBytes(uint64_t{64} << 20), "64 MiB");
}

}  // namespace
}  // namespace fornax::tool
