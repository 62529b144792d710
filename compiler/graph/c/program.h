// What the files of a program say alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/plan/plan.h"

namespace fornax::graph::c {

// An input or output as a member of a structure.
struct Port {
    std::string member;
    std::string title;  // its name in the model and its type, for comments
    ElementType element = ElementType::kF32;
    BlockId block;
    uint64_t bytes = 0;
};

// Where a block lies.
enum class Region : uint8_t { kNone, kWeights, kArena, kStates, kInputs, kOutputs };

struct Placement {
    Region region = Region::kNone;
    uint64_t offset = 0;  // in the region
    uint32_t port = 0;    // of inputs and outputs
    uint64_t bytes = 0;
    uint64_t initial = 0;      // of a state: where its first value lies in the weights
    bool has_initial = false;  // else it begins with zeros
};

struct Step {
    std::string node;
    uint32_t kernel = 0;
    std::vector<BlockId> blocks;
};

struct Program {
    std::string name;
    std::string upper;  // in capitals, as macros begin
    std::vector<Port> inputs;
    std::vector<Port> outputs;
    std::vector<Placement> blocks;
    std::vector<Step> steps;
    std::vector<std::string> kernels;       // functions NAME_k0, NAME_k1, ...
    std::vector<std::string> kernel_names;  // for comments
    std::string weights;
    uint64_t arena_bytes = 0;
    uint64_t state_bytes = 0;
};

// The text with "@name@" and "@NAME@" replaced.
std::string Filled(std::string_view text, const Program& program);
// The text without what would end a comment or line.
std::string CommentText(std::string_view text);
// A string literal.
std::string Quoted(std::string_view text);

std::string HeaderFile(const Program& program);
std::string SourceFile(const Program& program);
std::string WeightsSource(const Program& program);
std::string LinkerScript(const Program& program);
std::string MakeFile(const Program& program);

}  // namespace fornax::graph::c
