// Random programs of structured control flow that record which lanes are together, and what the
// rules of maximal reconvergence say of them: a reference that shares nothing with the compiler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fornax::kernel {

// One workgroup of kLanes invocations, which are one subgroup or several.
class ReconvergenceProgram {
  public:
    static constexpr uint32_t kLanes = 64;
    static constexpr uint32_t kMaxRecords = 512;  // of one invocation

    explicit ReconvergenceProgram(uint64_t seed);
    ~ReconvergenceProgram();

    // Binding 0 takes the records of invocation i from word i * kMaxRecords on; binding 1 holds
    // the words 0, 1, 2, ...
    // `attribute` of main: maximally_reconverges or subgroup_uniform_control_flow.
    std::string Shader(const std::string& attribute = "maximally_reconverges") const;
    // The words of binding 0, zero where nothing is recorded. Empty if there are too many.
    std::vector<uint32_t> Expected(uint32_t subgroup_size) const;

    struct Condition;
    struct Statement;

  private:
    std::vector<Statement> main_;
    std::vector<std::vector<Statement>> functions_;
};

}  // namespace fornax::kernel
