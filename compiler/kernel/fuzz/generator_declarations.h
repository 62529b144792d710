// What a module declares: its shape, its interface, and what only some drivers have.
#pragma once

#include "compiler/kernel/fuzz/generator_types.h"

namespace fornax::kernel::fuzz {

class Declarations : GeneratorPart {
  public:
    Declarations(GeneratorState& state, MemoryTypes& types) : GeneratorPart(state), types_(types) {}

    void DeclareShape();
    void DeclareBuffers();
    void DeclareWide();
    void DeclareWideIndexing();
    void DeclareSubgroups();
    void LoadAddresses();
    Id Input(spv::BuiltIn builtin, ValueType type);
    Variable OutputView(MemoryType element, uint32_t stride);
    Kind WideKind();

  private:
    Variable Block(MemoryType type, spv::StorageClass storage, uint32_t binding);
    MemoryType InputView();
    MemoryType OutputType(MemoryType element, uint32_t stride);
    void DeclarePush();
    Image DeclareImage(uint32_t binding, bool known);

    MemoryTypes& types_;
};

}  // namespace fornax::kernel::fuzz
