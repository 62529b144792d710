// The ONNX operators that can be imported, by name.
#include <algorithm>

#include "compiler/frontends/legacy_onnx/node_importer.h"

namespace fornax::legacy_onnx {
namespace {

using legacy_graph::BinaryFunction;
using legacy_graph::UnaryFunction;
using legacy_graph::op::ReduceKind;

constexpr int64_t kLast = 21;

// Sorted by name.
constexpr OperatorEntry kOperators[] = {
    {"Abs", 6, kLast, 1, ImportUnary<UnaryFunction::kAbs>},
    {"Add", 7, kLast, 2, ImportBinary<BinaryFunction::kAdd>},
    {"AveragePool", 7, kLast, 1, ImportAveragePool},
    {"BatchNormalization", 9, kLast, 5, ImportBatchNormalization},
    {"Clip", 6, kLast, 1, ImportClip},
    {"Concat", 4, kLast, 1, ImportConcat},
    {"Constant", 1, kLast, 0, ImportConstant},
    {"Conv", 1, kLast, 2, ImportConv},
    {"Div", 7, kLast, 2, ImportBinary<BinaryFunction::kDiv>},
    {"Dropout", 7, kLast, 1, ImportIdentity},
    {"Erf", 9, kLast, 1, ImportUnary<UnaryFunction::kErf>},
    {"Exp", 6, kLast, 1, ImportUnary<UnaryFunction::kExp>},
    {"Flatten", 1, kLast, 1, ImportFlatten},
    {"Gather", 1, kLast, 2, ImportGather},
    {"Gemm", 7, kLast, 2, ImportGemm},
    {"GlobalAveragePool", 1, kLast, 1, ImportGlobalAveragePool},
    {"GlobalMaxPool", 1, kLast, 1, ImportGlobalMaxPool},
    {"Identity", 1, kLast, 1, ImportIdentity},
    {"LayerNormalization", 17, kLast, 2, ImportLayerNormalization},
    {"LeakyRelu", 6, kLast, 1, ImportLeakyRelu},
    {"Log", 6, kLast, 1, ImportUnary<UnaryFunction::kLog>},
    {"MatMul", 1, kLast, 2, ImportMatMul},
    {"Max", 8, kLast, 1, ImportBinary<BinaryFunction::kMax>},
    {"MaxPool", 1, kLast, 1, ImportMaxPool},
    {"Min", 8, kLast, 1, ImportBinary<BinaryFunction::kMin>},
    {"Mul", 7, kLast, 2, ImportBinary<BinaryFunction::kMul>},
    {"Neg", 6, kLast, 1, ImportUnary<UnaryFunction::kNegate>},
    {"Pow", 7, kLast, 2, ImportBinary<BinaryFunction::kPow>},
    {"Reciprocal", 6, kLast, 1, ImportUnary<UnaryFunction::kReciprocal>},
    {"ReduceMax", 1, kLast, 1, ImportReduce<ReduceKind::kMax>},
    {"ReduceMean", 1, kLast, 1, ImportReduce<ReduceKind::kMean>},
    {"ReduceMin", 1, kLast, 1, ImportReduce<ReduceKind::kMin>},
    {"ReduceSum", 1, kLast, 1, ImportReduce<ReduceKind::kSum>},
    {"Relu", 6, kLast, 1, ImportUnary<UnaryFunction::kRelu>},
    {"Reshape", 5, kLast, 2, ImportReshape},
    {"Shape", 1, kLast, 1, ImportShape},
    {"Sigmoid", 6, kLast, 1, ImportUnary<UnaryFunction::kSigmoid>},
    {"Softmax", 1, kLast, 1, ImportSoftmax},
    {"Sqrt", 6, kLast, 1, ImportUnary<UnaryFunction::kSqrt>},
    {"Squeeze", 1, kLast, 1, ImportSqueeze},
    {"Sub", 7, kLast, 2, ImportBinary<BinaryFunction::kSub>},
    {"Sum", 8, kLast, 1, ImportBinary<BinaryFunction::kAdd>},
    {"Tanh", 6, kLast, 1, ImportUnary<UnaryFunction::kTanh>},
    {"Transpose", 1, kLast, 1, ImportTranspose},
    {"Unsqueeze", 1, kLast, 1, ImportUnsqueeze},
};
static_assert(std::is_sorted(std::begin(kOperators),
                             std::end(kOperators),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));

}  // namespace

const OperatorEntry* FindOperator(std::string_view name) {
    const auto* entry = std::lower_bound(
        std::begin(kOperators), std::end(kOperators), name,
        [](const OperatorEntry& entry, std::string_view name) { return entry.name < name; });
    return entry != std::end(kOperators) && entry->name == name ? entry : nullptr;
}

}  // namespace fornax::legacy_onnx
