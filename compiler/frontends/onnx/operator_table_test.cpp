// The table of operators: one entry each.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/frontends/onnx/operator_families.h"

namespace fornax::onnx_frontend {
namespace {

// One of two entries would be dead code.
TEST(OperatorTable, NoOperatorIsThereTwice) {
    std::set<std::string> names, repeated;
    for (const std::span<const OperatorEntry> family : OperatorFamilies()) {
        for (const OperatorEntry& entry : family) {
            const std::string name = std::string(entry.domain) + "." + std::string(entry.name);
            if (!names.insert(name).second) {
                repeated.insert(name);
            }
            EXPECT_EQ(FindOperator(entry.domain, entry.name), &entry) << name;
        }
    }
    EXPECT_THAT(repeated, ::testing::IsEmpty());
    EXPECT_GT(names.size(), 200U);
}

}  // namespace
}  // namespace fornax::onnx_frontend
