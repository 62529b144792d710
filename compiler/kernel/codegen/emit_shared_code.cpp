// The baseline tier: what would be there many times is a function of its own. Selecting its
// instructions again at each place would take several times as long as a call.
#include "compiler/kernel/codegen/function_code.h"

namespace fornax::kernel {

using llvm::Value;

// `body` may use its arguments and constants only, no memory, and must emit the same for each use
// of `name`.
Value* FunctionCode::ShareCode(const std::string& name,
                               llvm::ArrayRef<Value*> arguments,
                               llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> body) {
    constexpr uint32_t kCopies = 2;  // below that, the function itself costs more
    if (!compact) {
        return body(arguments);
    }
    SharedCode& code = shared_code[{name, lanes}];
    if (code.copies < kCopies) {
        ++code.copies;
        Value* result = body(arguments);
        code.result = result->getType();
        return result;
    }
    if (!code.function) {
        llvm::SmallVector<llvm::Type*, 4> types;
        for (const Value* argument : arguments) {
            types.push_back(argument->getType());
        }
        code.function = llvm::Function::Create(llvm::FunctionType::get(code.result, types, false),
                                               llvm::GlobalValue::InternalLinkage, name, module);
        code.function->setDoesNotThrow();
        code.function->setWillReturn();
        code.function->setDoesNotAccessMemory();
        llvm::IRBuilder<>::InsertPointGuard guard(builder);
        builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", code.function));
        llvm::SmallVector<Value*, 4> inner;
        for (llvm::Argument& argument : code.function->args()) {
            inner.push_back(&argument);
        }
        builder.CreateRet(body(inner));
    }
    return builder.CreateCall(code.function, arguments);
}

}  // namespace fornax::kernel
