// The emission of an object or of assembly, for jit.h: LLVM's code generator.
#include "compiler/kernel/codegen/jit.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <memory>

#include "compiler/kernel/codegen/order_products.h"
#include "compiler/kernel/codegen/split_blocks.h"
#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {

namespace {

// LLVM reports what it cannot do through the context; without a handler it would exit the process.
class DiagnosticCollector : public llvm::DiagnosticHandler {
  public:
    explicit DiagnosticCollector(std::string* errors) : errors_(errors) {}

    bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
        if (info.getSeverity() == llvm::DS_Error) {
            llvm::raw_string_ostream stream(*errors_);
            llvm::DiagnosticPrinterRawOStream printer(stream);
            info.print(printer);
            stream << ' ';
        }
        return true;
    }

  private:
    std::string* errors_;
};

// All code of a kernel is in the loop over workgroups, and LLVM would keep each of its constants in
// a register from before that loop to its end. Of a large kernel they are spilled again, after the
// register allocator has spent a time that is their number times that of the blocks. So constants
// of kernels above either number stay where they are used; what people write and run often is
// below.
constexpr size_t kManyBlocks = 1000;
constexpr size_t kManyInstructions = 10'000;

bool IsLarge(const llvm::Function& function) {
    return function.size() > kManyBlocks || function.getInstructionCount() > kManyInstructions;
}

// Leaves out the pass that makes constants short: a vector whose elements fit in bytes becomes a
// load that extends them, which is a shuffle more. Kernels that use all registers load such
// constants anew in each iteration, and what bounds them is mostly shuffles.
class CodegenPasses : public llvm::legacy::PassManagerBase {
  public:
    explicit CodegenPasses(llvm::legacy::PassManager& passes) : passes_(passes) {}

    void add(llvm::Pass* pass) override {
        if (pass->getPassName() == "X86 Fixup Vector Constants") {
            delete pass;
        } else {
            passes_.add(pass);
        }
    }

  private:
    llvm::legacy::PassManager& passes_;
};

// As LLVMTargetMachine::addPassesToEmitFile, which leaves no choice of passes.
bool AddPasses(const llvm::Module& module,
               llvm::TargetMachine& target_machine,
               llvm::raw_pwrite_stream& stream,
               llvm::CodeGenFileType type,
               llvm::legacy::PassManagerBase& passes) {
    auto& machine = static_cast<llvm::LLVMTargetMachine&>(target_machine);
    llvm::TargetPassConfig* config = machine.createPassConfig(passes);
    config->setDisableVerify(true);
    if (std::ranges::any_of(module, IsLarge)) {
        config->disablePass(&llvm::EarlyMachineLICMID);
    }
    // The last pass that would join blocks again.
    const std::unique_ptr<llvm::Pass> prepare(llvm::createCodeGenPrepareLegacyPass());
    config->insertPass(
        prepare->getPassID(),
        CreateOrderProductsPass(static_cast<unsigned>(FlagOf(module, kVectorBitsFlag))));
    config->insertPass(prepare->getPassID(), CreateSplitBlocksPass());
    passes.add(config);  // and what follows: the manager owns its passes
    auto* info = new llvm::MachineModuleInfoWrapperPass(&machine);
    passes.add(info);
    if (config->addISelPasses()) {
        return false;
    }
    config->addMachinePasses();
    config->setInitialized();
    if (machine.addAsmPrinter(passes, stream, nullptr, type, info->getMMI().getContext())) {
        return false;
    }
    passes.add(llvm::createFreeMachineFunctionPass());
    return true;
}

// Runs the backend into `stream`; an error gives the backend's words.
Status RunBackend(llvm::Module& module,
                  llvm::TargetMachine& machine,
                  llvm::raw_pwrite_stream& stream,
                  llvm::CodeGenFileType type) {
    std::string errors;
    llvm::LLVMContext& context = module.getContext();
    std::unique_ptr<llvm::DiagnosticHandler> previous = context.getDiagnosticHandler();
    context.setDiagnosticHandler(std::make_unique<DiagnosticCollector>(&errors));
    llvm::legacy::PassManager passes;
    CodegenPasses chosen(passes);
    const bool supported = AddPasses(module, machine, stream, type, chosen);
    if (supported) {
        passes.run(module);
    }
    context.setDiagnosticHandler(std::move(previous));
    if (!supported) {
        return Error{ErrorCode::kInternal, "LLVM's backend cannot write this kind of file."};
    }
    if (!errors.empty()) {
        return Error{ErrorCode::kInternal, "LLVM's backend refused a kernel: " + errors};
    }
    return OkStatus();
}

}  // namespace

Result<std::vector<uint8_t>> EmitObject(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    FORNAX_RETURN_IF_ERROR(RunBackend(module, machine, stream, llvm::CodeGenFileType::ObjectFile));
    return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

Result<std::string> EmitAssembly(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    FORNAX_RETURN_IF_ERROR(
        RunBackend(module, machine, stream, llvm::CodeGenFileType::AssemblyFile));
    return std::string(bytes.begin(), bytes.end());
}

}  // namespace fornax::kernel
