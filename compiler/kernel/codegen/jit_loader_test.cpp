// The loader takes the objects that we make, keeps memory writable or executable but never both,
// and refuses everything else without crashing.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>

#include <cstring>
#include <fstream>
#include <random>

#include "compiler/kernel/codegen/jit.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/codegen/target_machine.h"

namespace fornax::kernel {
namespace {

using testing::HasSubstr;

constexpr char kSymbol[] = "f";

// An object made of what `fill` puts into a module.
std::vector<uint8_t> MakeObject(const std::function<void(llvm::Module&)>& fill) {
    Result<TargetInfo> target = DetectTarget("");
    EXPECT_TRUE(target.ok());
    auto machine = CreateTargetMachine(*target, llvm::CodeGenOptLevel::Default);
    EXPECT_TRUE(machine.ok());
    llvm::LLVMContext context;
    llvm::Module module("test", context);
    PrepareModule(module, **machine, *target);
    fill(module);
    SetFunctionAttributes(module, *target);
    EXPECT_TRUE(OptimizeModule(module, **machine).ok());
    auto object = EmitObject(module, **machine);
    EXPECT_TRUE(object.ok());
    return *object;
}

llvm::Function* AddFunction(llvm::Module& module, const char* name) {
    llvm::IRBuilder<> b(module.getContext());
    auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
    return llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
}

// int f(int i) { switch over many cases with unlike constants } and a table of constants: code,
// constants, and relocations between them.
std::vector<uint8_t> SwitchObject() {
    return MakeObject([](llvm::Module& module) {
        llvm::IRBuilder<> b(module.getContext());
        llvm::Function* function = AddFunction(module, kSymbol);
        auto block = [&] { return llvm::BasicBlock::Create(b.getContext(), "", function); };
        llvm::BasicBlock* entry = block();
        llvm::BasicBlock* other = block();
        b.SetInsertPoint(other);
        b.CreateRet(b.getInt32(99));
        b.SetInsertPoint(entry);
        llvm::SwitchInst* choice = b.CreateSwitch(function->getArg(0), other, 16);
        auto* table_type = llvm::ArrayType::get(b.getInt32Ty(), 16);
        std::vector<uint32_t> numbers;
        for (uint32_t i = 0; i < 16; ++i) {
            numbers.push_back(i * i * 1000003);
        }
        auto* table =
            new llvm::GlobalVariable(module, table_type, true, llvm::GlobalValue::PrivateLinkage,
                                     llvm::ConstantDataArray::get(b.getContext(), numbers));
        for (uint32_t i = 0; i < 16; ++i) {
            llvm::BasicBlock* target = block();
            b.SetInsertPoint(target);
            // A volatile load each, so that the switch stays a jump.
            llvm::Value* element = b.CreateConstGEP2_32(table_type, table, 0, (i * 7) % 16);
            b.CreateRet(b.CreateLoad(b.getInt32Ty(), element, /*isVolatile=*/true));
            choice->addCase(b.getInt32(i), target);
        }
    });
}

TEST(LoadedObject, RunsCodeWithConstantsAndJumpTables) {
    auto object = LoadedObject::Load(SwitchObject(), kSymbol);
    ASSERT_TRUE(object.ok()) << object.error().message;
    auto function = reinterpret_cast<int (*)(int)>(const_cast<void*>((*object)->entry()));
    for (int i = 0; i < 16; ++i) {
        int element = (i * 7) % 16;
        EXPECT_EQ(function(i), element * element * 1000003);
    }
    EXPECT_EQ(function(16), 99);
}

TEST(LoadedObject, MemoryIsNeverWritableAndExecutable) {
    auto object = LoadedObject::Load(SwitchObject(), kSymbol);
    ASSERT_TRUE(object.ok());
    auto entry = reinterpret_cast<uintptr_t>((*object)->entry());
    std::ifstream maps("/proc/self/maps");
    std::string line;
    bool found = false;
    while (std::getline(maps, line)) {
        uintptr_t start = 0, end = 0;
        char access[5] = {};
        ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx %4s", &start, &end, access), 3);
        if (entry < start || entry >= end) {
            continue;
        }
        found = true;
        EXPECT_STREQ(access, "r-xp");
    }
    EXPECT_TRUE(found);
}

TEST(LoadedObject, RefusesWhatReachesOutside) {
    std::vector<uint8_t> object = MakeObject([](llvm::Module& module) {
        llvm::IRBuilder<> b(module.getContext());
        llvm::Function* outside = AddFunction(module, "system");
        llvm::Function* function = AddFunction(module, kSymbol);
        b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", function));
        b.CreateRet(b.CreateCall(outside, {function->getArg(0)}));
    });
    auto loaded = LoadedObject::Load(object, kSymbol);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, ErrorCode::kDataLoss);
    EXPECT_THAT(loaded.error().message, HasSubstr("system"));
}

TEST(LoadedObject, RefusesVariables) {
    std::vector<uint8_t> object = MakeObject([](llvm::Module& module) {
        llvm::IRBuilder<> b(module.getContext());
        auto* variable =
            new llvm::GlobalVariable(module, b.getInt32Ty(), false,
                                     llvm::GlobalValue::InternalLinkage, b.getInt32(5), "variable");
        llvm::Function* function = AddFunction(module, kSymbol);
        b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "", function));
        b.CreateStore(function->getArg(0), variable, /*isVolatile=*/true);
        b.CreateRet(b.getInt32(0));
    });
    auto loaded = LoadedObject::Load(object, kSymbol);
    ASSERT_FALSE(loaded.ok());
    EXPECT_THAT(loaded.error().message, HasSubstr("neither code nor constants"));
}

TEST(LoadedObject, RefusesAnotherSymbolAndOtherFiles) {
    std::vector<uint8_t> object = SwitchObject();
    EXPECT_FALSE(LoadedObject::Load(object, "g").ok());
    EXPECT_FALSE(LoadedObject::Load({}, kSymbol).ok());
    std::vector<uint8_t> wrong_machine = object;
    wrong_machine[offsetof(Elf64_Ehdr, e_machine)] = EM_AARCH64;
    EXPECT_FALSE(LoadedObject::Load(wrong_machine, kSymbol).ok());
}

TEST(LoadedObject, SurvivesEveryTruncationAndManyDamages) {
    const std::vector<uint8_t> object = SwitchObject();
    for (size_t size = 0; size < object.size(); ++size) {
        // The section headers are the last thing in the file.
        EXPECT_FALSE(LoadedObject::Load(std::span(object).first(size), kSymbol).ok()) << size;
    }
    std::mt19937 random(1);
    size_t refused = 0;
    constexpr size_t kRounds = 20'000;
    for (size_t round = 0; round < kRounds; ++round) {
        std::vector<uint8_t> damaged = object;
        for (uint32_t i = random() % 4 + 1; i > 0; --i) {
            uint8_t& byte = damaged[random() % damaged.size()];
            byte = random() % 2 ? static_cast<uint8_t>(random())
                                : static_cast<uint8_t>(byte ^ 1 << random() % 8);
        }
        refused += !LoadedObject::Load(damaged, kSymbol).ok();
    }
    EXPECT_GT(refused, kRounds / 20);
    EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace fornax::kernel
