#include "compiler/kernel/ir/ops.h"

#include <cstddef>

namespace fornax::kernel::ir {

namespace {

constexpr OpInfo kOpInfos[] = {
#define FORNAX_OP(name, text, operands, results, properties) \
    {text, operands, results, static_cast<uint8_t>(properties)},
#include "compiler/kernel/ir/ops.def"
#undef FORNAX_OP
};

}  // namespace

const OpInfo& InfoOf(Op op) {
    return kOpInfos[static_cast<size_t>(op)];
}

}  // namespace fornax::kernel::ir
