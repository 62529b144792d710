// The baseline tier: what would be there many times is a function of its own. Selecting its
// instructions again at each place would take several times as long as a call.
#include "compiler/kernel/codegen/emitter.h"

namespace fornax::kernel {

using llvm::Value;

// `body` may use its arguments and constants only, no memory, and must emit the same for each use
// of `name`.
Value* Emitter::ShareCode(const std::string& name,
                          llvm::ArrayRef<Value*> arguments,
                          llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> body) {
    constexpr uint32_t kCopies = 2;  // below that, the function itself costs more
    if (!compact_) {
        return body(arguments);
    }
    SharedCode& code = shared_code_[{name, lanes_}];
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
                                               llvm::GlobalValue::InternalLinkage, name, module_);
        code.function->setDoesNotThrow();
        code.function->setWillReturn();
        code.function->setDoesNotAccessMemory();
        llvm::IRBuilder<>::InsertPointGuard guard(builder_);
        builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", code.function));
        llvm::SmallVector<Value*, 4> inner;
        for (llvm::Argument& argument : code.function->args()) {
            inner.push_back(&argument);
        }
        builder_.CreateRet(body(inner));
    }
    return builder_.CreateCall(code.function, arguments);
}

}  // namespace fornax::kernel
