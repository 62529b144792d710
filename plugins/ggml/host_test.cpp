// Which versions of ggml are known.
#include "plugins/ggml/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fornax::ggml_plugin {
namespace {

TEST(GgmlHost, VersionsHaveTheirLayouts) {
    for (const auto& [version, api] : {std::pair("0.21.0", 2), std::pair("0.25.1", 2),
                                       std::pair("0.25.3-dirty", 2), std::pair("0.27.0", 3)}) {
        const Result<Layout> layout = LayoutOf(version);
        ASSERT_TRUE(layout.ok()) << layout.error().message;
        EXPECT_EQ(layout->api_version, api) << version;
    }
}

TEST(GgmlHost, OtherVersionsAreRefusedWithASentence) {
    for (const char* version : {"0.9.4", "0.26.0", "0.28.0", "1.0.0", "unknown", ""}) {
        const Result<Layout> layout = LayoutOf(version);
        ASSERT_FALSE(layout.ok()) << version;
        EXPECT_EQ(layout.error().message,
                  std::string("This backend knows the interface of ggml 0.21 to 0.24, 0.25, 0.27; "
                              "this is ggml ") +
                      version + ".");
    }
}

TEST(GgmlHost, WithoutGgmlThereIsNoHost) {
    const Result<Host> host = Host::Find();
    ASSERT_FALSE(host.ok());
    EXPECT_THAT(host.error().message, testing::HasSubstr("ggml_version"));
}

}  // namespace
}  // namespace fornax::ggml_plugin
