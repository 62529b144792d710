// Names with control characters and broken UTF-8.
#include "base/printable.h"

#include <gtest/gtest.h>

namespace fornax {
namespace {

TEST(Printable, KeepsText) {
    EXPECT_EQ(Printable(""), "");
    EXPECT_EQ(Printable("/layer.0/Conv_3:0 ~"), "/layer.0/Conv_3:0 ~");
    EXPECT_EQ(Printable("gr\xC3\xB6\xC3\x9F\x65 \xE2\x82\xAC \xF0\x9F\x94\xA5"),
              "gr\xC3\xB6\xC3\x9F\x65 \xE2\x82\xAC \xF0\x9F\x94\xA5");
}

TEST(Printable, ReplacesControlCharacters) {
    EXPECT_EQ(Printable("a\x1B[2Jb\n\t\x7F"), "a?[2Jb???");
    EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a?b");
    EXPECT_EQ(Printable("\xC2\x9B"), "??");  // the one-character form of ESC [
}

TEST(Printable, ReplacesBrokenUtf8) {
    EXPECT_EQ(Printable("\xFF"), "?");
    EXPECT_EQ(Printable("\xC3"), "?");                 // cut off
    EXPECT_EQ(Printable("\xC3("), "?(");               // no continuation
    EXPECT_EQ(Printable("\xC0\xAF"), "??");            // overlong
    EXPECT_EQ(Printable("\xED\xA0\x80"), "???");       // surrogate
    EXPECT_EQ(Printable("\xF4\x90\x80\x80"), "????");  // beyond Unicode
}

}  // namespace
}  // namespace fornax
