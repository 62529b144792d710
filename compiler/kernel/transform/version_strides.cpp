// A specialization for loads that are neighbours if a stride is 1.
//
// A convolution's stride is a number that the kernel is given, and nearly always 1 where an
// invocation computes several outputs side by side: then it loads neighbouring elements, which
// become one load if that is known. What follows the numbers in the kernel's body stands there a
// second time, for when they are 1.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/kernel/index/index_builder.h"
#include "compiler/kernel/ir/builder.h"
#include "compiler/kernel/transform/clone.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {

using namespace ir;

namespace {

constexpr uint32_t kMostCopied = 800;  // instructions
constexpr size_t kMostStrides = 2;
constexpr size_t kMostCompared = 8;  // loads that one is compared with

class StrideVersion {
  public:
    explicit StrideVersion(Kernel& kernel) : kernel_(kernel), structure_(kernel) {}

    bool Run() {
        FindStrides();
        if (strides_.empty() || strides_.size() > kMostStrides || !IsCopyable()) {
            return false;
        }
        Rewrite();
        return true;
    }

  private:
    void FindStrides() {
        IndexBuilder index(kernel_);
        // By buffer: the loads from it, in the order of the text.
        std::map<std::pair<uint64_t, std::vector<ValueId>>, std::vector<InstId>> loads;
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            if (inst.op != Op::kLoadBuffer || (inst.flags & kVolatile) != 0) {
                continue;
            }
            const Instruction* buffer = kernel_.Definition(inst.operands[0]);
            if (!buffer || buffer->op != Op::kBuffer) {
                continue;
            }
            std::vector<InstId>& others = loads[{buffer->imm, buffer->operands}];
            const size_t first = others.size() - std::min(others.size(), kMostCompared);
            for (size_t i = first; i < others.size(); ++i) {
                Compare(index, kernel_.inst(others[i]), inst);
            }
            others.push_back(id);
        }
    }

    // Whether the loads are as far apart as a stride times what one of them loads.
    void Compare(IndexBuilder& index, const Instruction& a, const Instruction& b) {
        const Type type = kernel_.type(a.operands[1]);
        if (type != kernel_.type(b.operands[1]) ||
            kernel_.type(a.results[0]) != kernel_.type(b.results[0]) ||
            a.results.size() != b.results.size()) {
            return;
        }
        IndexAlgebra& algebra = index.algebra();
        const IndexExpr from = index.Of(a.operands[1]);
        const IndexExpr apart =
            algebra.SubtractModulo(index.Of(b.operands[1]), from, BitWidth(type));
        if (!apart.valid()) {
            return;  // it is too long to say
        }
        const IndexSum& distance = algebra.sum(apart);
        const auto bytes = static_cast<int64_t>(ByteSize(kernel_.type(a.results[0])) *
                                                static_cast<uint64_t>(a.results.size()));
        if (distance.constant != 0 || distance.parts.size() != 1 ||
            (distance.parts[0].factor != bytes && distance.parts[0].factor != -bytes)) {
            return;
        }
        const IndexTerm& term = algebra.term(distance.parts[0].term);
        if (term.kind == IndexTerm::Kind::kSymbol &&
            term.symbol.kind == IndexSymbol::Kind::kValue && IsGiven(ValueId{term.symbol.number})) {
            strides_.insert(ValueId{term.symbol.number});
            AddOtherAxes(algebra, from, ValueId{term.symbol.number});
        }
    }

    // The other components of a vector of strides: factors of the offset that lie beside it.
    void AddOtherAxes(const IndexAlgebra& algebra, IndexExpr offset, ValueId stride) {
        for (const IndexSum::Part& part : algebra.sum(offset).parts) {
            for (IndexTermId factor : algebra.term(part.term).factors) {
                const IndexTerm& term = algebra.term(factor);
                const ValueId value{term.symbol.number};
                if (term.kind == IndexTerm::Kind::kSymbol &&
                    term.symbol.kind == IndexSymbol::Kind::kValue &&
                    kernel_.type(value) == kernel_.type(stride) && IsGiven(value) &&
                    IsBeside(value, stride)) {
                    strides_.insert(value);
                }
            }
        }
    }

    // An integer that the kernel loads from a place which is the same for all invocations.
    bool IsGiven(ValueId id) const {
        const Value& value = kernel_.value(id);
        if (!value.inst.valid() || !IsInteger(value.type) ||
            structure_.block_of[value.inst.value()] != kernel_.body) {
            return false;
        }
        const Instruction& inst = kernel_.inst(value.inst);
        if (inst.op == Op::kLoadPush) {
            return kernel_.IsConst(inst.operands[0]);
        }
        const Instruction* buffer =
            inst.op == Op::kLoadBuffer ? kernel_.Definition(inst.operands[0]) : nullptr;
        return buffer && buffer->op == Op::kBuffer && kernel_.IsConst(buffer->operands[0]) &&
               kernel_.IsConst(inst.operands[1]);
    }

    // Neighbouring words of what the kernel is given.
    bool IsBeside(ValueId a, ValueId b) const {
        const Value& first = kernel_.value(a);
        const Value& second = kernel_.value(b);
        const std::vector<ValueId>& from = kernel_.inst(first.inst).operands;
        const std::vector<ValueId>& to = kernel_.inst(second.inst).operands;
        uint64_t begin = 0;
        uint64_t end = 0;
        if (kernel_.inst(first.inst).op != kernel_.inst(second.inst).op ||
            !kernel_.IsConst(from.back(), &begin) || !kernel_.IsConst(to.back(), &end) ||
            (from.size() == 2 &&
             kernel_.Definition(from[0])->imm != kernel_.Definition(to[0])->imm)) {
            return false;
        }
        const uint64_t bytes = ByteSize(first.type);
        const uint64_t apart = begin + first.position * bytes - (end + second.position * bytes);
        return apart == bytes || apart == 0 - bytes;
    }

    uint32_t Position() const {
        uint32_t last = 0;
        for (ValueId stride : strides_) {
            last = std::max(last, structure_.position[kernel_.value(stride).inst.value()]);
        }
        return last + 1;
    }

    // Nothing in what is copied is counted, or seen by other invocations at one place.
    bool IsCopyable() const {
        const std::vector<InstId>& body = kernel_.block(kernel_.body).insts;
        if (kernel_.inst(body.back()).op != Op::kReturn) {
            return false;
        }
        const uint32_t from = Position();
        uint32_t count = 0;
        bool copied = false;
        for (InstId id : structure_.preorder) {
            const Instruction& inst = kernel_.inst(id);
            copied |= id == body[from];
            if (inst.op == Op::kCount || HasProperty(inst.op, kConvergent | kSubgroup)) {
                return false;
            }
            count += copied ? 1 : 0;
        }
        return count <= kMostCopied;
    }

    void Rewrite() {
        std::vector<InstId> rest = TakeEnd(kernel_, kernel_.body, Position());
        Builder builder(kernel_, kernel_.body);
        builder.SetOrigin(kernel_.inst(kernel_.value(*strides_.begin()).inst).origin);
        Cloner cloner(kernel_);
        ValueId all;
        for (ValueId stride : strides_) {
            const ValueId one = builder.Const(kernel_.type(stride), 1);
            const ValueId is_one = builder.Emit(Op::kIEq, Type::kBool, {stride, one});
            all = all.valid() ? builder.Emit(Op::kAnd, Type::kBool, {all, is_one}) : is_one;
            cloner.MapValue(stride, one);
        }
        AppendForms(kernel_, kernel_.body, std::move(rest), {.condition = all}, cloner);
    }

    Kernel& kernel_;
    const Structure structure_;
    std::set<ValueId> strides_;
};

}  // namespace

bool VersionStrides(Kernel& kernel) {
    return StrideVersion(kernel).Run();
}

}  // namespace fornax::kernel
