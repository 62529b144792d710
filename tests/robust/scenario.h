// Programs that end, or end their instance, without tidying up: each is this program once more
// (process.h), because what is looked at is the end of a process.
#pragma once

#include <string_view>

namespace fornax::test {

// How the program ends: "leak" destroys the instance without its device, "destroy" the device
// whatever it does, "exit" returns from main with everything alive. What is under way then:
// nothing, a kernel that never ends, a grid of 65535^3 workgroups, a compilation in the background,
// or with that one in another thread of the program.
inline constexpr std::string_view kScenarios[] = {
    "leak-idle",    "leak-endless", "leak-huge", "leak-compiling", "destroy-endless",
    "destroy-huge", "exit-endless", "exit-huge", "exit-compiling", "exit-two-compiling",
};

// What main() does; its exit code is 0 if all went as it should until then.
int RunScenario(std::string_view name);

}  // namespace fornax::test
