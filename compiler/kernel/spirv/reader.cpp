// From words to a checked kernel. Alone in its file: tests of the compiler put a reader of texts
// here.
#include "compiler/kernel/spirv/reader.h"

#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/spirv/translator.h"

namespace fornax::kernel {

Result<ir::Kernel> ReadSpirv(const CompileRequest& request) {
    FORNAX_ASSIGN_OR_RETURN(spirv::Module module, spirv::Module::Parse(request.spirv));
    FORNAX_ASSIGN_OR_RETURN(const spirv::Inst* entry_point,
                            module.FindEntryPoint(request.entry_point));
    const bool wide_indexing =
        request.options.wide_indexing || spirv::AsksForWideIndexing(module, *entry_point);
    spirv::TypeTable types(module, wide_indexing, request.options.subgroup_size);
    spirv::ConstantTable constants(module, request);
    FORNAX_RETURN_IF_ERROR(constants.Read(types));
    spirv::Translator translator(module, types, constants, request);
    FORNAX_ASSIGN_OR_RETURN(ir::Kernel kernel, translator.TranslateEntryPoint(*entry_point));
    FORNAX_RETURN_IF_ERROR(ir::Verify(kernel));
    return kernel;
}

}  // namespace fornax::kernel
