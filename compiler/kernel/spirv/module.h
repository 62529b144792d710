// A parsed SPIR-V module: its instructions, checked against the grammar, and what is said about
// ids.
//
// Second station of the reader, after the grammar. Nothing here is translated yet; ids are known to
// be in range and defined at most once, functions are cut into blocks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "compiler/kernel/spirv/grammar.h"
#include "compiler/kernel/spirv/reader.h"

namespace fornax::kernel::spirv {

struct Inst {
    spv::Op op = spv::Op::OpNop;
    uint32_t offset = 0;                 // of its first word
    uint32_t type = 0;                   // result type id, or 0
    uint32_t result = 0;                 // result id, or 0
    std::span<const uint32_t> operands;  // without result type and result

    uint32_t operator[](size_t index) const { return operands[index]; }
    size_t size() const { return operands.size(); }
};

// Errors that name the instruction. `what` goes on after "OpX at word N ".
Error Invalid(const Inst& inst, const std::string& what);
Error Unsupported(const Inst& inst, const std::string& what);

struct Decoration {
    static constexpr uint32_t kNoMember = UINT32_MAX;
    uint32_t member = kNoMember;
    spv::Decoration kind;
    std::span<const uint32_t> params;
};

struct Block {
    uint32_t first = 0;  // the instruction after OpLabel
    uint32_t end = 0;    // one past the terminator
};

struct Function {
    uint32_t id = 0;
    uint32_t result_type = 0;
    std::vector<uint32_t> params;
    uint32_t entry_label = 0;
    std::unordered_map<uint32_t, Block> blocks;
};

class Module {
  public:
    static Result<Module> Parse(std::span<const uint32_t> words);

    uint32_t bound() const { return bound_; }
    std::span<const Inst> insts() const { return insts_; }
    // Module-scope instructions: everything before the first function.
    std::span<const Inst> globals() const { return {insts_.data(), num_globals_}; }
    // Null if the id is not defined by an instruction.
    const Inst* Find(uint32_t id) const {
        return id < defs_.size() && defs_[id] != 0 ? &insts_[defs_[id] - 1] : nullptr;
    }
    const Function* FindFunction(uint32_t id) const;
    std::span<const Decoration> decorations(uint32_t id) const;
    // The first decoration of the kind on the id (or its member), or null.
    const Decoration* FindDecoration(uint32_t id,
                                     spv::Decoration kind,
                                     uint32_t member = Decoration::kNoMember) const;
    bool IsGlslImport(uint32_t id) const;
    // An OpExtInst of a set that may be ignored.
    bool IsNonSemantic(const Inst& inst) const;

    // The GLCompute entry point of the name; its execution modes follow as instructions.
    Result<const Inst*> FindEntryPoint(const std::string& name) const;

  private:
    Status ParseInstructions(std::span<const uint32_t> words);
    Status CollectDecorations();
    Status CutFunctions();

    uint32_t bound_ = 0;
    size_t num_globals_ = 0;
    std::vector<Inst> insts_;
    std::vector<uint32_t> defs_;  // by id: index of the instruction + 1
    std::unordered_map<uint32_t, std::vector<Decoration>> decorations_;
    std::unordered_map<uint32_t, Function> functions_;
};

}  // namespace fornax::kernel::spirv
