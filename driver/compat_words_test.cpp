// The words of FORNAX_COMPAT.
#include "driver/compat.h"

#include <gmock/gmock.h>

namespace fornax::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CompatWords, NothingIsShownUnasked) {
    for (const char* text : {"", ",", " , ,"}) {
        const ParsedCompatModes parsed = ParseCompatModes(text);
        EXPECT_FALSE(parsed.modes.graphics) << text;
        EXPECT_FALSE(parsed.modes.conformance) << text;
        EXPECT_FALSE(parsed.modes.bounds) << text;
        EXPECT_THAT(parsed.unknown_words, IsEmpty()) << text;
    }
}

TEST(CompatWords, WordsAreSeparatedByCommas) {
    ParsedCompatModes parsed = ParseCompatModes("graphics");
    EXPECT_TRUE(parsed.modes.graphics);
    EXPECT_FALSE(parsed.modes.conformance);
    parsed = ParseCompatModes(" conformance ,\tgraphics,");
    EXPECT_TRUE(parsed.modes.graphics);
    EXPECT_TRUE(parsed.modes.conformance);
    EXPECT_FALSE(parsed.modes.bounds);
    EXPECT_THAT(parsed.unknown_words, IsEmpty());
    EXPECT_TRUE(ParseCompatModes("bounds").modes.bounds);
}

TEST(CompatWords, UnknownWordsAreNamed) {
    const ParsedCompatModes parsed =
        ParseCompatModes("Graphics,graphics conformance,1,conformance");
    EXPECT_FALSE(parsed.modes.graphics);
    EXPECT_TRUE(parsed.modes.conformance);
    EXPECT_THAT(parsed.unknown_words, ElementsAre("Graphics", "graphics conformance", "1"));
}

}  // namespace
}  // namespace fornax::driver
