// Arithmetic on sizes as operators of ONNX: each size is a vector of one element until it is used.
#include <map>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/export/exported_model.h"

namespace fornax::graph {
namespace {

class SizeOperators {
  public:
    explicit SizeOperators(ExportedModel& model) : model_(model) {
        for (const ExportedSymbol& symbol : model.symbols) {
            symbols_[symbol.symbol] = &symbol;
        }
        // Values that nodes compute have names without a dot.
        for (const auto* ports : {&model.inputs, &model.outputs}) {
            for (const ExportedPort& port : *ports) {
                taken_.insert(port.name);
            }
        }
    }

    void Add(const ExportedSizes& sizes) {
        std::vector<std::string> parts;
        for (const Expr& size : sizes.values) {
            parts.push_back(Of(size));
        }
        if (sizes.is_number) {
            nodes_.push_back({"Squeeze", {parts[0], Constant(0)}, {sizes.name}, {}});
        } else {
            nodes_.push_back({"Concat", std::move(parts), {sizes.name}, {{"axis", int64_t{0}}}});
        }
    }

    std::vector<ExportedNode> TakeNodes() { return std::move(nodes_); }

  private:
    std::string NewName() {
        std::string name;
        do {
            name = fmt::format("size.{}", next_++);
        } while (taken_.contains(name));
        return name;
    }

    std::string Emit(const char* op, std::vector<std::string> inputs) {
        std::string name = NewName();
        nodes_.push_back({op, std::move(inputs), {name}, {}});
        return name;
    }

    std::string Constant(int64_t value) {
        std::string& name = constants_[value];
        if (name.empty()) {
            name = NewName();
            model_.weights.emplace_back(name,
                                        Tensor::FromIntegers({1}, std::vector<int64_t>{value}));
        }
        return name;
    }

    std::string Of(const Expr& size) {
        if (size.is_constant()) {
            return Constant(*size.constant());
        }
        std::string& name = known_[size.ToString()];
        if (name.empty()) {
            std::string sum = size.constant_part() == 0 ? "" : Constant(size.constant_part());
            for (const ExprTerm& term : size.terms()) {
                const std::string product = Of(term);
                sum = sum.empty() ? product : Emit("Add", {sum, product});
            }
            name = sum;
        }
        return name;
    }

    std::string Of(const ExprTerm& term) {
        std::string product = term.coefficient == 1 ? "" : Constant(term.coefficient);
        for (const AtomRef& factor : term.factors) {
            const std::string value = Of(*factor);
            product = product.empty() ? value : Emit("Mul", {product, value});
        }
        return product;
    }

    std::string Of(const ExprAtom& atom) {
        if (atom.kind == AtomKind::kSymbol) {
            return Of(*symbols_.at(*atom.symbol));
        }
        const std::string a = Of(atom.a), b = Of(atom.b);
        switch (atom.kind) {
            case AtomKind::kMod:
                return Emit("Mod", {a, b});
            case AtomKind::kMin:
                return Emit("Min", {a, b});
            case AtomKind::kMax:
                return Emit("Max", {a, b});
            case AtomKind::kProduct:
                return Emit("Mul", {a, b});
            default:  // division, which ONNX rounds to 0
                return Emit("Div", {Emit("Sub", {a, Emit("Mod", {a, b})}), b});
        }
    }

    std::string Of(const ExportedSymbol& symbol) {
        std::string& name = known_[symbol.symbol.name()];
        if (name.empty()) {
            name = Emit("Shape", {symbol.input});
            nodes_.back().attributes = {{"start", symbol.axis}, {"end", symbol.axis + 1}};
            if (symbol.offset != 0) {
                name = Emit("Sub", {name, Constant(symbol.offset)});
            }
            if (symbol.scale != 1) {
                name = Emit("Div", {name, Constant(symbol.scale)});
            }
        }
        return name;
    }

    ExportedModel& model_;
    std::map<Symbol, const ExportedSymbol*> symbols_;
    std::vector<ExportedNode> nodes_;
    std::map<std::string, std::string> known_;  // by expression
    std::map<int64_t, std::string> constants_;
    std::set<std::string> taken_;
    size_t next_ = 0;
};

}  // namespace

ExportedModel WithSizeOperators(ExportedModel model) {
    SizeOperators operators(model);
    for (const ExportedSizes& sizes : model.sizes) {
        operators.Add(sizes);
    }
    std::vector<ExportedNode> nodes = operators.TakeNodes();
    nodes.insert(nodes.end(), std::make_move_iterator(model.nodes.begin()),
                 std::make_move_iterator(model.nodes.end()));
    model.nodes = std::move(nodes);
    model.sizes.clear();
    return model;
}

}  // namespace fornax::graph
