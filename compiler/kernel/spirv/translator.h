// The translator: one entry point's instructions to kernel IR. translation.h lists its parts.
#pragma once

#include <utility>

#include "compiler/kernel/spirv/arithmetic.h"
#include "compiler/kernel/spirv/atomics.h"
#include "compiler/kernel/spirv/composites.h"
#include "compiler/kernel/spirv/control_flow.h"
#include "compiler/kernel/spirv/cooperative_matrix.h"
#include "compiler/kernel/spirv/execution_modes.h"
#include "compiler/kernel/spirv/extensions.h"
#include "compiler/kernel/spirv/glsl_std_450.h"
#include "compiler/kernel/spirv/memory.h"
#include "compiler/kernel/spirv/pointers.h"
#include "compiler/kernel/spirv/sampled_images.h"
#include "compiler/kernel/spirv/subgroups.h"
#include "compiler/kernel/spirv/variables.h"

namespace fornax::kernel::spirv {

class Translator {
  public:
    Translator(const Module& module,
               const TypeTable& types,
               const ConstantTable& constants,
               const CompileRequest& request)
        : code_(module, types, constants, request) {}

    Result<ir::Kernel> TranslateEntryPoint(const Inst& entry_point);
    // For OpSpecConstantOp: the instruction alone, its operands constants.
    Result<Tuple> TranslateAlone(const Inst& inst);
    ir::Kernel TakeKernel() { return std::move(code_.kernel); }
    // One of a block; terminators and phis are ControlFlow's.
    Status Instruction(const Inst& inst);

  private:
    Status CheckCapabilities();
    using Handler = Status (*)(Translator&, const Inst&);
    template <auto Part, auto Method>
    static Status Handle(Translator& translator, const Inst& inst) {
        return ((translator.*Part).*Method)(inst);
    }
    static Handler FindHandler(spv::Op op);
    static Handler FindImageHandler(spv::Op op);

    Translation code_;
    PlaceCode places_{code_};
    InvocationCode invocation_{code_};
    Heaps heaps_{code_, places_};
    PlaceAccess access_{code_, places_, heaps_, invocation_};
    Values values_{code_, access_, variables_};
    Variables variables_{code_, heaps_, access_, values_};
    LargeValues large_{code_, places_, access_, values_};
    ExecutionModes execution_modes_{code_};
    Pointers pointers_{code_, places_, heaps_, access_, values_, variables_};
    MemoryInstructions memory_{code_, places_, heaps_, access_, values_, large_};
    Composites composites_{code_, values_, large_};
    Arithmetic arithmetic_{code_, values_};
    Extensions extensions_{code_, values_, large_};
    PrintfCode printf_{code_, values_};
    GlslInstructions glsl_{code_, access_, values_, printf_};
    Subgroups subgroups_{code_, invocation_, values_};
    Derivatives derivatives_{code_, invocation_, values_};
    CooperativeMatrices matrices_{code_, places_, access_, invocation_, values_};
    Images images_{code_, heaps_, access_, values_};
    SampledImages sampled_images_{code_, access_, values_, derivatives_, images_};
    Atomics atomics_{code_, places_, heaps_, access_, values_, images_};
    ControlFlow control_{code_, values_, large_, *this};
};

// Whether the entry point has the execution mode Shader64BitIndexingEXT.
bool AsksForWideIndexing(const Module& module, const Inst& entry_point);

// The IR and the result of one instruction on constants.
Result<std::pair<ir::Kernel, Tuple>> TranslateConstantOp(const Module& module,
                                                         const TypeTable& types,
                                                         const ConstantTable& constants,
                                                         const CompileRequest& request,
                                                         const Inst& inst);

}  // namespace fornax::kernel::spirv
