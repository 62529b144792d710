// The tests, or one of their child processes.
#include <string_view>

#include <gtest/gtest.h>

#include "tests/robust/process.h"
#include "tests/robust/scenario.h"

int main(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "--client") {
        return fornax::test::ClientMain(argc, argv);
    }
    if (argc > 2 && std::string_view(argv[1]) == "--scenario") {
        return fornax::test::RunScenario(argv[2]);
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
