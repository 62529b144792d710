# What the project takes from the distribution and from the prefix that the set-up fills (.deps).
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
