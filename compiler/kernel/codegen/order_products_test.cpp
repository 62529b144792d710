// Sums of products in another order: what they are is compared as expressions, and where they stand
// by the values that are alive.
#include "compiler/kernel/codegen/order_products.h"
#include "compiler/kernel/codegen/pass_text.h"

#include <gtest/gtest.h>

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace fornax::kernel {
namespace {

constexpr int kRows = 8;
constexpr int kColumns = 4;
constexpr int kSteps = 4;
constexpr unsigned kVectorBits = 128;  // 16 registers

std::string At(const char* base, int number, int bytes) {
    return "getelementptr i8, ptr %" + std::string(base) + ", i64 " +
           std::to_string(number * bytes);
}

// Sums of kRows x kColumns vectors, one row after the other. Elements of A are numbers that lanes
// share; a row of B is `columns` loaded side by side and taken apart, or vectors. `between` stands
// behind the first row of sums.
std::string Product(bool taken_apart, const std::string& between = "") {
    std::string text;
    const auto line = [&](const std::string& what) { text += "  " + what + "\n"; };
    const auto name = [](const char* of, int i, int k) {
        return "%" + std::string(of) + std::to_string(i) + "_" + std::to_string(k);
    };
    for (int i = 0; i < kRows * kSteps; ++i) {
        const std::string a = name("a", i / kSteps, i % kSteps);
        line(a + "p = " + At("a", i, 4));
        line(a + " = load float, ptr " + a + "p, align 4");
    }
    for (int step = 0; step < kSteps; ++step) {
        for (int column = 0; column < kColumns; ++column) {
            const std::string b = name("b", step, column);
            if (!taken_apart) {
                line(b + "p = " + At("b", step * kColumns + column, 16));
                line(b + " = load <4 x float>, ptr " + b + "p, align 4");
                continue;
            }
            const std::string all = "%b" + std::to_string(step);
            if (column == 0) {
                line(all + "p = " + At("b", step, 64));
                line(all + " = load <16 x float>, ptr " + all + "p, align 4");
            }
            std::string mask;
            for (int lane = 0; lane < 4; ++lane) {
                mask += (lane == 0 ? "i32 " : ", i32 ") + std::to_string(4 * lane + column);
            }
            line(b + " = shufflevector <16 x float> " + all + ", <16 x float> poison, <4 x i32> <" +
                 mask + ">");
        }
    }
    for (int row = 0; row < kRows; ++row) {
        for (int column = 0; column < kColumns; ++column) {
            const std::string c = name("c", row, column);
            line(c + "p = " + At("c", row * kColumns + column, 16));
            line(c + "_0 = load <4 x float>, ptr " + c + "p, align 4");
        }
        for (int step = 0; step < kSteps; ++step) {
            const std::string a = name("a", row, step);
            line(a + "i = insertelement <4 x float> poison, float " + a + ", i64 0");
            line(a + "s = shufflevector <4 x float> " + a +
                 "i, <4 x float> poison, <4 x i32> zeroinitializer");
            for (int column = 0; column < kColumns; ++column) {
                const std::string c = name("c", row, column) + "_";
                line(c + std::to_string(step + 1) +
                     " = call contract <4 x float> @llvm.fmuladd.v4f32(<4 x float> " + a +
                     "s, <4 x float> " + name("b", step, column) + ", <4 x float> " + c +
                     std::to_string(step) + ")");
            }
        }
        for (int column = 0; column < kColumns; ++column) {
            const std::string c = name("c", row, column);
            line("store <4 x float> " + c + "_" + std::to_string(kSteps) + ", ptr " + c +
                 "p, align 4");
        }
        if (row == 0) {
            text += between;
        }
    }
    line("ret void");
    return text;
}

// What a function without branches that go two ways leaves in memory, as expressions.
class Expressions {
  public:
    std::map<std::string, std::string> Run(llvm::Function& function) {
        llvm::BasicBlock* block = &function.getEntryBlock();
        while (block) {
            for (llvm::Instruction& inst : *block) {
                Visit(inst);
            }
            block = block->getSingleSuccessor();
        }
        std::erase_if(memory_, [](const auto& entry) { return entry.first[0] == 's'; });
        return memory_;
    }

  private:
    std::string Of(const llvm::Value* value) {
        if (const auto found = values_.find(value); found != values_.end()) {
            return found->second;
        }
        std::string text;
        llvm::raw_string_ostream stream(text);
        value->printAsOperand(stream, /*PrintType=*/false);
        return text;
    }

    void Visit(llvm::Instruction& inst) {
        std::string& result = values_[&inst];
        if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&inst)) {
            const std::string at = Of(load->getPointerOperand());
            const auto found = memory_.find(at);
            result = found != memory_.end() ? found->second : "[" + at + "]";
        } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&inst)) {
            memory_[Of(store->getPointerOperand())] = Of(store->getValueOperand());
        } else if (llvm::isa<llvm::AllocaInst>(inst)) {
            result = "slot" + std::to_string(slots_++);
        } else {
            std::string text = inst.getOpcodeName();
            for (const llvm::Value* operand : inst.operands()) {
                text += " (" + Of(operand) + ")";
            }
            if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&inst)) {
                for (int element : shuffle->getShuffleMask()) {
                    text += " " + std::to_string(element);
                }
            }
            result = text;
        }
    }

    std::map<const llvm::Value*, std::string> values_;
    std::map<std::string, std::string> memory_;
    int slots_ = 0;
};

struct Ordered {
    bool changed = false;
    bool same = false;  // what memory holds in the end
    size_t blocks = 0;
    size_t loads = 0;     // of floats that lanes share
    size_t shuffles = 0;  // that take vectors apart
    size_t most_alive = 0;
};

// Vectors that are alive at once within a block, but for loads that one instruction uses.
size_t MostAlive(const llvm::BasicBlock& block) {
    std::set<const llvm::Value*> alive;
    size_t most = 0;
    for (auto inst = block.rbegin(); inst != block.rend(); ++inst) {
        alive.erase(&*inst);
        for (const llvm::Value* operand : inst->operands()) {
            if (operand->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(operand) &&
                !(llvm::isa<llvm::LoadInst>(operand) && operand->hasOneUse())) {
                alive.insert(operand);
            }
        }
        most = std::max(most, alive.size());
    }
    return most;
}

Ordered Order(const std::string& body, unsigned vector_bits = kVectorBits) {
    llvm::LLVMContext context;
    llvm::SMDiagnostic problem;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
        "define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) {\n" + body +
            "}\ndeclare <4 x float> @llvm.fmuladd.v4f32(<4 x float>, <4 x float>, <4 x float>)\n",
        problem, context);
    if (!module) {
        ADD_FAILURE() << problem.getMessage().str();
        return {};
    }
    llvm::Function& function = *module->getFunction("f");
    const auto before = Expressions().Run(function);
    PassAnalyses analyses;
    Ordered result;
    result.changed = OrderProducts(
        function, analyses.functions.getResult<llvm::AAManager>(function), vector_bits);
    std::string text;
    llvm::raw_string_ostream stream(text);
    EXPECT_FALSE(llvm::verifyFunction(function, &stream)) << text;
    result.same = Expressions().Run(function) == before;
    for (const llvm::BasicBlock& block : function) {
        ++result.blocks;
        result.most_alive = std::max(result.most_alive, MostAlive(block));
        for (const llvm::Instruction& inst : block) {
            result.loads += llvm::isa<llvm::LoadInst>(inst) && inst.getType()->isFloatTy();
            result.shuffles +=
                llvm::isa<llvm::ShuffleVectorInst>(inst) && !llvm::getSplatValue(&inst);
        }
    }
    return result;
}

// 16 registers hold eight sums, four of B and one of A.
TEST(OrderProducts, SumsThatFitIntoRegisters) {
    const Ordered ordered = Order(Product(false));
    EXPECT_TRUE(ordered.changed);
    EXPECT_TRUE(ordered.same);
    EXPECT_EQ(ordered.blocks, 6u);  // four parts, what comes before them and behind
    EXPECT_EQ(ordered.loads, size_t{kRows * kSteps});
    EXPECT_LE(ordered.most_alive, 14u);
}

// They are shuffled once, and the other parts load what the first one stored.
TEST(OrderProducts, OperandsThatAreTakenApart) {
    const Ordered ordered = Order(Product(true));
    EXPECT_TRUE(ordered.changed);
    EXPECT_TRUE(ordered.same);
    EXPECT_EQ(ordered.shuffles, size_t{kColumns * kSteps});
    EXPECT_LE(ordered.most_alive, 14u);
}

// With 32 registers of 512 bits, the same values are few.
TEST(OrderProducts, BlocksWithinTheRegistersStay) {
    EXPECT_FALSE(Order(Product(false), 512).changed);
}

// A load behind the first row's stores may read what they wrote, and a store there what later rows
// load: then the sums that may go together are those of the first row, which are too few, and of
// the others.
TEST(OrderProducts, MemoryKeepsItsOrder) {
    const std::string accesses[] = {
        // One of the first row's sums.
        "  %p = getelementptr i8, ptr %c, i64 16\n"
        "  %x = load <4 x float>, ptr %p, align 4\n"
        "  %q = getelementptr i8, ptr %c, i64 4096\n"
        "  store <4 x float> %x, ptr %q, align 4\n",
        // An element of A, where the loads in the text come first.
        "  %p = getelementptr i8, ptr %a, i64 16\n"
        "  store float 1.0, ptr %p, align 4\n",
        // A later row's sums.
        "  %p = getelementptr i8, ptr %c, i64 128\n"
        "  store <4 x float> zeroinitializer, ptr %p, align 4\n",
        // A first row's sum again.
        "  %p = getelementptr i8, ptr %c, i64 16\n"
        "  store <4 x float> zeroinitializer, ptr %p, align 4\n",
    };
    for (const std::string& access : accesses) {
        for (bool taken_apart : {false, true}) {
            EXPECT_TRUE(Order(Product(taken_apart, access)).same) << access;
        }
    }
}

}  // namespace
}  // namespace fornax::kernel
