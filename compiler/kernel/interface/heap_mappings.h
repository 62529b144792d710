// Which mappings of descriptor heaps a module uses.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/kernel/interface/resource_layout.h"

namespace fornax::kernel {

// Leaves in the layout what the module's variables are mapped by: a mapping for each, of one
// binding, in the order of sets and bindings, with zeros for the parameters that do not count, and
// the samplers of these. "Only mappings corresponding to bindings that are actually present in the
// SPIR-V shader affect compilation" (VkShaderCreateInfoEXT): so binaries of shaders are the same
// whatever else is mapped. A module that is malformed may keep too little, and is refused anyway.
void KeepUsedMappings(std::span<const uint32_t> spirv, ResourceLayout& layout);

}  // namespace fornax::kernel
