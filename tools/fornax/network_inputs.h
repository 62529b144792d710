// What a network is run on: tensors from files, and seeded random numbers for the other inputs.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/types.h"
#include "tools/fornax/network.h"

namespace fornax::tool {

struct InputOptions {
    std::vector<std::string> files;  // [NAME=]FILE
    uint64_t seed = 1;

    void AddTo(CLI::App& command);
};

struct NetworkData {
    std::vector<graph::Tensor> tensors;  // one for each input, in order
    std::vector<std::string> sources;    // of each: "from image.npy", "random, seed 1"
};

// Reads the files and gives each input its tensor. A file without a name is for the input that its
// tensor names, else for the next one that has none; an .npz holds inputs by their names. Sizes
// that the network leaves open are those of the files' tensors, else in `dims` by name, else 1.
// Errors are sentences that name the file or the input.
Result<NetworkData> PrepareInputs(const Network& network,
                                  const InputOptions& options,
                                  const std::map<std::string, int64_t>& dims);

}  // namespace fornax::tool
