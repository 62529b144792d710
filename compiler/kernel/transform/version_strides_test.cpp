// Loads that a stride of 1 makes neighbours: exact text before and after.
#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

constexpr char kPrologue[] = R"(
    %z:i32 = const 0
    %one:i32 = const 1
    %four:i32 = const 4
    %i:i32 = builtin local_id_x
    %o:buffer = buffer 0, %z
    %b:buffer = buffer 1, %z
    %s:i32 = load_push %z align(4)
)";

// Elements i * stride and (i + 1) * stride.
constexpr char kTwo[] = R"(
    %i4:i32 = imul %i, %four
    %at:i32 = imul %i4, %s
    %j:i32 = iadd %i, %one
    %j4:i32 = imul %j, %four
    %at2:i32 = imul %j4, %s
    %x:f32 = load_buffer %b, %at align(4)
    %y:f32 = load_buffer %b, %at2 align(4)
    %sum:f32 = fadd %x, %y
    store_buffer %o, %i4, %sum align(4)
)";

TEST(VersionStrides, OneIsKnown) {
    ExpectPassAndCompact([](ir::Kernel& kernel) { EXPECT_TRUE(VersionStrides(kernel)); },
                         std::string(kPrologue) + kTwo + "return", std::string(kPrologue) + R"(
        %one2:i32 = const 1
        %is:bool = ieq %s, %one2
        if %is {
            %i4a:i32 = imul %i, %four
            %ata:i32 = imul %i4a, %one2
            %ja:i32 = iadd %i, %one
            %j4a:i32 = imul %ja, %four
            %at2a:i32 = imul %j4a, %one2
            %xa:f32 = load_buffer %b, %ata align(4)
            %ya:f32 = load_buffer %b, %at2a align(4)
            %suma:f32 = fadd %xa, %ya
            store_buffer %o, %i4a, %suma align(4)
            yield
        } else {)" + std::string(kTwo) + R"(
            yield
        }
        return)");
}

TEST(VersionStrides, OthersStay) {
    const auto versioned = [](const std::string& body) {
        ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + body + "return"));
        return VersionStrides(kernel);
    };
    const std::string two = kTwo;
    EXPECT_TRUE(versioned(two));
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = two;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    // Two elements apart if the stride is 1.
    EXPECT_FALSE(versioned(changed("iadd %i, %one", "iadd %i, %four")));
    // The stride is the invocation's own.
    EXPECT_FALSE(versioned(changed("imul %j4, %s", "imul %j4, %i")));
    // Buffers of their own.
    EXPECT_FALSE(versioned(changed("%y:f32 = load_buffer %b", "%y:f32 = load_buffer %o")));
    // A barrier.
    EXPECT_FALSE(versioned(two + "barrier\n"));
}

// Offsets of seven terms each, whose difference has more than an index expression may have.
TEST(VersionStrides, LongDistancesAreNotLookedAt) {
    std::string body = "%at0:i32 = imul %i, %four\n%to0:i32 = imul %i, %s\n";
    for (int i = 1; i <= 7; ++i) {
        for (const char* sum : {"at", "to"}) {
            body += fmt::format(
                "%{0}a{1}:i32 = const {2}\n"
                "%{0}v{1}:i32 = load_buffer %o, %{0}a{1} align(4)\n"
                "%{0}{1}:i32 = iadd %{0}{3}, %{0}v{1}\n",
                sum, i, 4 * i + (sum[0] == 'a' ? 0 : 64), i - 1);
        }
    }
    ir::Kernel kernel = Parsed(KernelText("", std::string(kPrologue) + body + R"(
        %x:f32 = load_buffer %b, %at7 align(4)
        %y:f32 = load_buffer %b, %to7 align(4)
        %sum:f32 = fadd %x, %y
        store_buffer %o, %i, %sum align(4)
        return)"));
    EXPECT_FALSE(VersionStrides(kernel));
}

}  // namespace
}  // namespace fornax::kernel
