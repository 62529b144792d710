// Descriptors, and what is known of the memory that an access goes to.
#pragma once

#include <map>
#include <utility>

#include "compiler/kernel/codegen/emit_values.h"

namespace fornax::kernel {

class MemoryRegions : FunctionPart {
  public:
    MemoryRegions(FunctionCode& code, ValueCode& values) : FunctionPart(code), values_(values) {}

    MemoryRegion BufferRegion(const ir::Instruction& inst, ir::ValueId buffer);
    MemoryRegion SharedRegion(const ir::Instruction& inst);
    MemoryRegion DescriptorRegion(uint64_t binding);
    MemoryRegion PushRegion();
    MemoryRegion ConstantRegion();
    MemoryRegion GlobalRegion(const ir::Instruction& inst);

    // A buffer value, or what is asked of one.
    void EmitBuffer(const ir::Instruction& inst);

  private:
    llvm::Value* DescriptorMemory(const ir::Binding& binding);
    MemoryRegion InvariantRegion(llvm::Value* base, uint64_t bytes);
    Descriptor LoadDescriptor(const ir::Binding& binding, llvm::Value* element);
    Descriptor LoadDescriptorLanes(const ir::Binding& binding, llvm::Value* elements);
    llvm::Value* LastElement(const ir::Binding& binding);  // i32
    void EmitDescriptor(const ir::Instruction& inst);

    ValueCode& values_;
    std::map<uint64_t, llvm::Value*> descriptor_memory_;                        // by binding
    std::map<std::pair<uint64_t, uint64_t>, Descriptor> constant_descriptors_;  // binding, element
    llvm::GlobalVariable* constant_data_ = nullptr;
};

}  // namespace fornax::kernel
