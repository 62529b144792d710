// A plan as a program in C: for a processor without an operating system (RISC-V), and for a host.
//
//     {name}.c            kernels, the plan's steps and memory, a program around them
//     {name}.h            the functions, the network's inputs and outputs, addresses of the machine
//     {name}_weights.c    puts {name}_weights.bin into the program
//     {name}_weights.bin  the plan's constants, and what its states hold at first
//     {name}.ld           where the parts of the program lie
//     Makefile            builds for RISC-V, or for the host with HOST=1
//
// Kernels come from the same loop kernels as SPIR-V does. Everything that the plan leaves open (its
// sizes) is what its hints say.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph::c {

struct ProgramFile {
    std::string name;
    std::string bytes;
};

// What an identifier of C is made of a name: "resnet-50.v1" becomes "resnet_50_v1".
std::string Identifier(std::string_view name);

// `name` is an identifier. The plan has passed ValidatePlan(), or is the compiler's. Fails
// (kUnsupported) with a sentence that names node and kernel where the plan has something that C has
// no form for: steps on the host, templates, strings.
Result<std::vector<ProgramFile>> EmitProgram(const Plan& plan, const std::string& name);

}  // namespace fornax::graph::c
