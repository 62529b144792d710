#include "compiler/kernel/cache/cache_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace fornax::kernel {
namespace {

TEST(CacheKey, TheBuildIsKnown) {
    EXPECT_FALSE(BuildIdentity().empty());
    // This very program, told from outside.
    EXPECT_EQ(FileBuildIdentity("/proc/self/exe"), BuildIdentity());
    EXPECT_EQ(FileBuildIdentity("/proc/self/no-such-file"), "");
}

TEST(CacheKey, EveryFieldCounts) {
    static const uint32_t kWords[] = {0x07230203, 1, 2};
    static const uint32_t kOther[] = {0x07230203, 1, 3};
    struct Subject {
        CompileRequest request;
        TargetInfo target;
        std::string build = "build";
    };
    Subject base;
    base.request.spirv = kWords;
    base.request.layout.sets = {{{{.binding = 0}}}};
    base.request.specialization = {{1, 4, 7}};
    base.target = {"cpu", "+a", 512};
    BindingLayout second{.binding = 1};
    const std::function<void(Subject&)> changes[] = {
        [](Subject&) {},
        [](Subject& s) { s.request.spirv = kOther; },
        [](Subject& s) { s.request.spirv = std::span(kWords).first(2); },
        [](Subject& s) { s.request.entry_point = "other"; },
        [](Subject& s) { s.request.specialization[0].constant_id = 2; },
        [](Subject& s) { s.request.specialization[0].size_bytes = 8; },
        [](Subject& s) { s.request.specialization[0].bits = 8; },
        [](Subject& s) { s.request.specialization.clear(); },
        [](Subject& s) { s.request.layout.sets[0].bindings[0].binding = 3; },
        [](Subject& s) {
            s.request.layout.sets[0].bindings[0].kind = BindingLayout::Kind::kUniformBuffer;
        },
        [](Subject& s) { s.request.layout.sets[0].bindings[0].count = 2; },
        [](Subject& s) { s.request.layout.sets[0].bindings[0].offset_bytes = 16; },
        [](Subject& s) { s.request.layout.sets[0].bindings[0].first_dynamic_offset = 0; },
        [](Subject& s) { s.request.layout.sets[0].bindings[0].variable_count = true; },
        [](Subject& s) { s.request.layout.sets[0].bindings[0].stride_bytes = 64; },
        [&](Subject& s) { s.request.layout.sets[0].bindings.push_back(second); },
        // The same binding, in the next set.
        [&](Subject& s) { s.request.layout.sets.push_back({{second}}); },
        [](Subject& s) { s.request.layout.push_constant_bytes = 4; },
        [](Subject& s) { s.request.options.robust_buffer_access = true; },
        [](Subject& s) { s.request.options.wide_indexing = true; },
        [](Subject& s) { s.request.options.subgroup_size = 16; },
        [](Subject& s) { s.request.options.printf_address = 4096; },
        [](Subject& s) { s.request.options.printf_words = 16; },
        [](Subject& s) { s.request.known_words = {{.place = {0, 16}, .value = 1}}; },
        [](Subject& s) { s.request.known_words = {{.place = {0, 16}, .value = 2}}; },
        [](Subject& s) { s.request.known_words = {{.place = {0, 20}, .value = 1}}; },
        [](Subject& s) { s.request.known_words = {{.place = {1, 16}, .value = 1}}; },
        [](Subject& s) { s.target.cpu_name = "other"; },
        [](Subject& s) { s.target.features = "+b"; },
        [](Subject& s) { s.target.vector_bits = 256; },
        [](Subject& s) { s.build = "other"; },
    };
    std::set<Hash128> seen;
    for (const auto& change : changes) {
        Subject subject = base;
        change(subject);
        Hash128 hash = HashRequest(subject.request, subject.target, subject.build);
        EXPECT_EQ(hash, HashRequest(subject.request, subject.target, subject.build));
        EXPECT_TRUE(seen.insert(hash).second) << "change " << seen.size();
    }
}

}  // namespace
}  // namespace fornax::kernel
