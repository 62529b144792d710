// The program as a whole: sizes, weights, inputs, nodes, outputs.
#include "compiler/frontends/torch/importer.h"

#include <algorithm>
#include <bit>
#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/frontends/torch/fx_graph_generated.h"
#include "compiler/frontends/torch/node.h"
#include "compiler/frontends/torch/problems.h"
#include "compiler/graph/build/build_error.h"
#include "compiler/graph/build/builder.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::torch_frontend {
namespace {

static_assert(std::endian::native == std::endian::little);

// Limits of what a file may ask for.
constexpr size_t kMaxNodes = 200'000;
constexpr size_t kMaxPrimitives = 2'000'000;
constexpr uint32_t kMaxSizeWeight = 256;  // symbols and operations in one size

bool IsOfIdentifier(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string TextOf(const flatbuffers::String* text) {
    return text == nullptr ? std::string() : text->str();
}

template <typename T>
auto ItemsOf(const flatbuffers::Vector<T>* vector) {
    return vector == nullptr ? size_t{0} : size_t{vector->size()};
}

class NodeErrors : public graph::BuildError {
  public:
    explicit NodeErrors(const std::vector<NodeProblem>& problems)
        : BuildError(problems[0].code, torch_frontend::TextOf(problems)) {}
};

class GraphImporter : public NodeScope {
  public:
    GraphImporter(const GraphFile& file, const ImportOptions& options)
        : file_(file),
          weights_(file.weights),
          program_(*file.program),
          options_(options),
          builder_(graph_),
          values_(ItemsOf(program_.values())) {
        FindStates();
    }

    // Nodes that cannot be imported are added to `problems`, and throw NodeErrors if it is null.
    ImportedGraph Run(std::vector<NodeProblem>* problems) {
        ReadSizes();
        ReadGuards();
        for (size_t i = 0; i < ItemsOf(program_.inputs()); ++i) {
            const stored::Port& port = *program_.inputs()->Get(Index(i));
            Define(port.value(), states_[i] ? ReadState(TextOf(port.name()), port.value())
                                            : ReadInput(TextOf(port.name()), port.value()));
        }
        CheckThatInputsTellSymbols();
        for (size_t i = 0; i < ItemsOf(program_.weights()); ++i) {
            ReadWeight(*program_.weights()->Get(Index(i)));
        }
        ImportNodes(problems);
        for (size_t i = 0; i < ItemsOf(program_.outputs()); ++i) {
            const stored::Port& port = *program_.outputs()->Get(Index(i));
            AddOutput(TextOf(port.name()), port.value());
        }
        for (size_t i = 0; i < ItemsOf(program_.mutations()); ++i) {
            AddMutation(*program_.mutations()->Get(Index(i)));
        }
        graph_.Compact();
        return {std::move(graph_), std::move(external_files_)};
    }

    GraphPorts Ports() {
        ReadSizes();
        GraphPorts ports;
        for (size_t i = 0; i < ItemsOf(program_.inputs()); ++i) {
            const stored::Port& port = *program_.inputs()->Get(Index(i));
            if (!states_[i]) {
                ports.names.push_back(TextOf(port.name()));
                ports.types.push_back(TypeOf(port.value()));
            }
        }
        ports.output_count = ItemsOf(program_.outputs());
        for (size_t i = 0; i < ItemsOf(program_.mutations()); ++i) {
            ports.output_count += program_.mutations()->Get(Index(i))->in_place() ? 0 : 1;
        }
        return ports;
    }

    Val ValueOf(uint32_t index) const override {
        if (index >= values_.size() || !values_[index]) {
            FailInvalid(fmt::format("it uses the value {}, which is not there before it", index));
        }
        return values_[index];
    }

    Expr SizeOf(uint32_t index) const override {
        if (index >= sizes_.size()) {
            FailInvalid(fmt::format("it uses the size {} of {}", index, sizes_.size()));
        }
        return sizes_[index];
    }

    TensorType TypeOf(uint32_t index) const override {
        if (index >= ItemsOf(program_.values())) {
            FailInvalid(fmt::format("it names the value {} of {}", index, values_.size()));
        }
        const stored::Value& value = *program_.values()->Get(index);
        const size_t rank = ItemsOf(value.dims());
        if (rank > graph::kMaxRank) {
            FailUnsupported(fmt::format("the value {} has {} dimensions, more than {}",
                                        TextOf(value.name()), rank, graph::kMaxRank));
        }
        TensorType type{ElementOf(value.element()), {}};
        if (graph::BitsOf(type.element) < 8 && type.element != ElementType::kBool) {
            FailUnsupported(fmt::format("the value {} has elements of type {}",
                                        TextOf(value.name()), graph::Name(type.element)));
        }
        for (size_t axis = 0; axis < rank; ++axis) {
            type.shape.mutable_dims().push_back(SizeOf(value.dims()->Get(Index(axis))));
            const graph::Range range = type.shape[axis].Bounds(graph_.sizes().ranges());
            if (range.high < 0 || range.low > graph::kMaxElements) {
                FailInvalid(fmt::format("the value {} has a dimension of {}", TextOf(value.name()),
                                        type.shape[axis].ToString()));
            }
        }
        if (type.shape.Volume().Bounds(graph_.sizes().ranges()).low > graph::kMaxElements) {
            FailUnsupported(fmt::format("the value {} has more than {} elements",
                                        TextOf(value.name()), graph::kMaxElements));
        }
        return type;
    }

  private:
    static flatbuffers::uoffset_t Index(size_t i) { return static_cast<flatbuffers::uoffset_t>(i); }

    void Define(uint32_t index, Val value) {
        if (index >= values_.size() || values_[index]) {
            FailInvalid(fmt::format("the value {} is defined twice, or there is none", index));
        }
        values_[index] = value;
    }

    // What the options say of symbols: by name, or by the shape of an input that has one alone in a
    // dimension.
    std::map<std::string, int64_t> GivenSymbols() const {
        std::map<std::string, int64_t> given = options_.dims;
        for (size_t i = 0; i < ItemsOf(program_.inputs()); ++i) {
            const stored::Port& port = *program_.inputs()->Get(Index(i));
            const auto shape = options_.input_shapes.find(TextOf(port.name()));
            if (shape == options_.input_shapes.end() || port.value() >= values_.size()) {
                continue;
            }
            const stored::Value& value = *program_.values()->Get(port.value());
            for (size_t axis = 0; axis < std::min(ItemsOf(value.dims()), shape->second.size());
                 ++axis) {
                const uint32_t size = value.dims()->Get(Index(axis));
                if (size >= ItemsOf(program_.sizes())) {
                    continue;
                }
                const stored::Size& entry = *program_.sizes()->Get(size);
                if (static_cast<SizeKind>(entry.kind()) == SizeKind::kSymbol &&
                    entry.a() < ItemsOf(program_.symbols())) {
                    given[TextOf(program_.symbols()->Get(entry.a())->name())] = shape->second[axis];
                }
            }
        }
        return given;
    }

    void ReadSizes() {
        const std::map<std::string, int64_t> given = GivenSymbols();
        std::vector<Expr> symbols;
        for (size_t i = 0; i < ItemsOf(program_.symbols()); ++i) {
            const stored::Symbol& symbol = *program_.symbols()->Get(Index(i));
            const std::string name = TextOf(symbol.name());
            const auto known = given.find(name);
            const int64_t hint = known != given.end() ? known->second : symbol.hint();
            const graph::Range range{std::max<int64_t>(symbol.low(), 0),
                                     std::min<int64_t>(symbol.high(), INT32_MAX)};
            if (name.empty() || hint < range.low || hint > range.high) {
                FailInvalid(fmt::format("the size \"{}\" is to be {}, which is not in {}..{}", name,
                                        hint, range.low, range.high));
            }
            if (!std::ranges::all_of(name, IsOfIdentifier)) {
                FailInvalid(fmt::format("the name of its size {} is no identifier", i));
            }
            symbols.emplace_back(graph_.sizes().Declare(name, hint, range));
        }
        // How many symbols and operations are in each, so that sharing does not make them grow
        // beyond measure.
        std::vector<uint32_t> weights;
        for (size_t i = 0; i < ItemsOf(program_.sizes()); ++i) {
            const stored::Size& size = *program_.sizes()->Get(Index(i));
            const auto kind = static_cast<SizeKind>(size.kind());
            uint32_t weight = 1;
            Expr value;
            if (kind == SizeKind::kConstant) {
                value = size.value();
            } else if (kind == SizeKind::kSymbol) {
                if (size.a() >= symbols.size()) {
                    FailInvalid(fmt::format("its size {} is a symbol that there is not", i));
                }
                value = symbols[size.a()];
            } else {
                if (kind > kLastSizeKind || size.a() >= i || size.b() >= i) {
                    FailInvalid(fmt::format("its size {} is not valid", i));
                }
                weight = weights[size.a()] + weights[size.b()] + 1;
                if (weight > kMaxSizeWeight) {
                    FailUnsupported(
                        fmt::format("its size {} has more than {} operations", i, kMaxSizeWeight));
                }
                value = Combine(kind, sizes_[size.a()], sizes_[size.b()]);
            }
            sizes_.push_back(std::move(value));
            weights.push_back(weight);
        }
    }

    static Expr Combine(SizeKind kind, const Expr& a, const Expr& b) {
        switch (kind) {
            case SizeKind::kAdd:
                return a + b;
            case SizeKind::kMul:
                return a * b;
            case SizeKind::kFloorDiv:
                return graph::FloorDiv(a, b);
            case SizeKind::kMod:
                return graph::Mod(a, b);
            case SizeKind::kMin:
                return graph::Min(a, b);
            default:
                return graph::Max(a, b);
        }
    }

    void ReadGuards() {
        for (size_t i = 0; i < ItemsOf(program_.guards()); ++i) {
            const stored::Guard& stored = *program_.guards()->Get(Index(i));
            if (stored.relation() > static_cast<uint8_t>(graph::Relation::kLessEqual)) {
                FailInvalid(fmt::format("its guard {} is not valid", i));
            }
            graph::Guard guard{static_cast<graph::Relation>(stored.relation()), SizeOf(stored.a()),
                               SizeOf(stored.b())};
            if (!guard.Holds(graph_.sizes().hints())) {
                FailInvalid(fmt::format("it is for sizes with {} alone", guard.ToString()));
            }
            if (!guard.a.is_constant() || !guard.b.is_constant()) {
                graph_.sizes().AddGuard(std::move(guard));
            }
        }
    }

    Val ReadInput(const std::string& name, uint32_t index) {
        const TensorType type = TypeOf(index);
        const auto given = options_.input_shapes.find(name);
        if (given != options_.input_shapes.end()) {
            if (given->second.size() != type.shape.rank()) {
                FailInvalid(fmt::format("the input {} has {} dimensions, not {}", name,
                                        type.shape.rank(), given->second.size()));
            }
            for (size_t axis = 0; axis < type.shape.rank(); ++axis) {
                if (graph_.sizes().Hint(type.shape[axis]) != given->second[axis]) {
                    FailInvalid(fmt::format("dimension {} of the input {} is {}, not {}", axis,
                                            name, type.shape[axis].ToString(),
                                            given->second[axis]));
                }
            }
        }
        return builder_.Input(name, type);
    }

    void FindStates() {
        states_.resize(ItemsOf(program_.inputs()));
        for (size_t i = 0; i < ItemsOf(program_.mutations()); ++i) {
            const stored::Mutation& mutation = *program_.mutations()->Get(Index(i));
            if (mutation.in_place() && mutation.input() < states_.size()) {
                states_[mutation.input()] = true;
            }
        }
    }

    Val ReadState(const std::string& name, uint32_t index) {
        const TensorType type = TypeOf(index);
        if (!type.shape.Constants()) {
            FailUnsupported(
                fmt::format("the input {}, which changes in place, is {}", name, type.ToString()));
        }
        if (!state_names_.insert(name).second) {
            FailInvalid(fmt::format("two inputs that change in place are called {}", name));
        }
        return builder_.AddOne(graph::op::ReadState{name, type}, {});
    }

    // A run learns symbols from the dimensions of inputs.
    void CheckThatInputsTellSymbols() const {
        std::set<graph::Symbol> told;
        for (const graph::ValueId input : graph_.inputs()) {
            for (const Expr& dim : graph_.ShapeOf(input).dims()) {
                const std::vector<graph::Symbol> symbols = dim.Symbols();
                if (symbols.size() == 1 && graph::MultipleOf(symbols[0], dim)) {
                    told.insert(symbols[0]);
                }
            }
        }
        for (const Expr& size : sizes_) {
            for (const graph::Symbol& symbol : size.Symbols()) {
                if (!told.contains(symbol)) {
                    FailUnsupported(
                        fmt::format("no dimension of an input is the size {} or a multiple of it",
                                    symbol.name()));
                }
            }
        }
    }

    void ReadWeight(const stored::Weight& weight) {
        const TensorType type = TypeOf(weight.value());
        const std::string name = TextOf(program_.values()->Get(weight.value())->name());
        const std::optional<std::vector<int64_t>> dims = type.shape.Constants();
        if (!dims) {
            FailInvalid(fmt::format("the weight {} is {}", name, type.ToString()));
        }
        const PieceIndex external =
            weight.file() == nullptr ? PieceIndex({})
                                     : PieceIndex(std::vector{ReadExternal(TextOf(weight.file()))});
        const PieceIndex& pieces = weight.file() == nullptr ? weights_ : external;
        Tensor tensor{type.element, *dims, nullptr, nullptr};
        const uint64_t count = static_cast<uint64_t>(tensor.count());
        const uint64_t size = count * graph::BytesOf(type.element);
        const std::optional<graph::Bytes> bytes = pieces.Part(weight.offset(), size);
        if (weight.size() != size || weight.offset() % kWeightAlignment != 0 || !bytes) {
            FailInvalid(
                fmt::format("the weight {}, {}, takes {} bytes, and the file has {} from "
                            "{} on",
                            name, type.ToString(), size, pieces.size(), weight.offset()));
        }
        tensor.data = *bytes;
        if (type.element == ElementType::kBool &&
            std::ranges::any_of(*tensor.data, [](uint8_t byte) { return byte > 1; })) {
            FailInvalid(fmt::format("the weight {} has bools that are not 0 or 1", name));
        }
        Define(weight.value(), builder_.Constant(std::move(tensor), name));
    }

    graph::Bytes ReadExternal(const std::string& location) {
        if (file_.directory.empty()) {
            FailInvalid("weights are in another file, and the file's directory is not known");
        }
        if (location.empty() || location == ".." || location.find('/') != std::string::npos) {
            FailInvalid(
                fmt::format("weights are in \"{}\", which is not beside the file", location));
        }
        external_files_.insert(location);
        const auto known = mapped_.find(location);
        if (known != mapped_.end()) {
            return known->second;
        }
        const Result<std::shared_ptr<const MappedFile>> mapped =
            MappedFile::Open((std::filesystem::path(file_.directory) / location).string());
        if (!mapped.ok()) {
            throw graph::BuildError(mapped.error().code, mapped.error().message);
        }
        const std::span bytes = (*mapped)->bytes();
        return mapped_[location] = graph::Bytes(
                   std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()),
                   *mapped);
    }

    void ImportNodes(std::vector<NodeProblem>* problems) {
        const size_t count = ItemsOf(program_.nodes());
        if (count > kMaxNodes) {
            FailUnsupported(fmt::format("it has {} nodes, more than {}", count, kMaxNodes));
        }
        std::vector<NodeProblem> found;
        for (size_t i = 0; i < count; ++i) {
            const stored::Node& node = *program_.nodes()->Get(Index(i));
            try {
                ImportNode(node);
            } catch (const graph::BuildError& error) {
                found.push_back({error.code(), static_cast<uint32_t>(i), TextOf(node.target()),
                                 TextOf(node.name()), TextOf(node.line()), error.what()});
                ReplaceResults(node);
            }
            if (graph_.nodes().size() > kMaxPrimitives) {
                FailUnsupported(fmt::format("it has more than {} primitives", kMaxPrimitives));
            }
        }
        if (problems != nullptr) {
            *problems = std::move(found);
        } else if (!found.empty()) {
            // A file that is wrong is told first.
            const auto wrong = std::ranges::find_if(found, [](const NodeProblem& problem) {
                return problem.code != ErrorCode::kUnsupported;
            });
            if (wrong != found.end()) {
                std::rotate(found.begin(), wrong, wrong + 1);
            }
            throw NodeErrors(found);
        }
    }

    void ImportNode(const stored::Node& stored) {
        const std::string target = TextOf(stored.target());
        const ImportFunction import = FindOperator(target);
        if (import == nullptr) {
            FailUnsupported("Fornax does not have this operator");
        }
        builder_.SetName(TextOf(stored.name()));
        Node node(builder_, *this, stored);
        for (size_t i = 0; i < node.result_count(); ++i) {
            if (node.Wants(i)) {
                node.ResultType(i);
            }
        }
        import(node);
        for (size_t i = 0; i < node.result_count(); ++i) {
            if (!node.Wants(i)) {
                continue;
            }
            if (!node.results()[i]) {
                FailUnsupported(
                    fmt::format("its result {} is used, which Fornax does not compute", i));
            }
            Define(stored.results()->Get(Index(i)), node.results()[i]);
        }
    }

    // So that what depends on a node that is not supported is looked at all the same.
    void ReplaceResults(const stored::Node& stored) {
        for (size_t i = 0; i < ItemsOf(stored.results()); ++i) {
            const uint32_t index = stored.results()->Get(Index(i));
            if (index >= values_.size() || values_[index]) {
                continue;
            }
            try {
                values_[index] = builder_.Input(fmt::format("result.{}", index), TypeOf(index));
            } catch (const graph::BuildError&) {
                continue;
            }
        }
    }

    void AddOutput(const std::string& name, uint32_t index) {
        if (index >= values_.size() || !values_[index]) {
            FailInvalid(fmt::format("its output {} is not a value", name));
        }
        graph_.AddOutput(name, values_[index].id());
    }

    void AddMutation(const stored::Mutation& mutation) {
        if (mutation.input() >= ItemsOf(program_.inputs())) {
            FailInvalid(fmt::format("it changes the input {} of {}", mutation.input(),
                                    ItemsOf(program_.inputs())));
        }
        const stored::Port& port = *program_.inputs()->Get(mutation.input());
        const TensorType type = TypeOf(port.value());
        if (mutation.value() >= values_.size() || !values_[mutation.value()] ||
            values_[mutation.value()].element() != type.element ||
            !graph_.sizes().Equal(values_[mutation.value()].shape(), type.shape)) {
            FailInvalid(fmt::format("it changes the input {} to a value of another type",
                                    TextOf(port.name())));
        }
        if (mutation.in_place()) {
            builder_.Add(graph::op::WriteState{TextOf(port.name())}, {values_[mutation.value()]});
            return;
        }
        AddOutput(std::string(kMutatedPrefix) + TextOf(port.name()), mutation.value());
    }

    const GraphFile& file_;
    const PieceIndex weights_;
    const stored::Program& program_;
    const ImportOptions& options_;
    graph::Graph graph_;
    Builder builder_;
    Vals values_;
    std::vector<Expr> sizes_;
    std::vector<bool> states_;  // by input: whether it changes in place
    std::set<std::string> state_names_;
    std::map<std::string, graph::Bytes> mapped_;
    std::set<std::string> external_files_;
};

const ImportOptions kNoOptions;

}  // namespace

Result<ImportedGraph> ImportGraph(const GraphFile& file,
                                  const std::string& name,
                                  const ImportOptions& options) {
    return graph::CatchBuildErrors(name, [&] { return GraphImporter(file, options).Run(nullptr); });
}

Result<std::vector<uint32_t>> UnsupportedNodes(const GraphFile& file,
                                               const std::string& name,
                                               std::vector<std::string>* reasons) {
    return graph::CatchBuildErrors(name, [&] {
        std::vector<NodeProblem> problems;
        GraphImporter(file, kNoOptions).Run(&problems);
        std::vector<uint32_t> nodes;
        for (const NodeProblem& problem : problems) {
            nodes.push_back(problem.node);
            if (reasons != nullptr) {
                reasons->push_back(graph::PrintableClause(problem.clause));
            }
        }
        return nodes;
    });
}

Result<GraphPorts> ReadGraphPorts(const GraphFile& file, const std::string& name) {
    return graph::CatchBuildErrors(name, [&] { return GraphImporter(file, kNoOptions).Ports(); });
}

}  // namespace fornax::torch_frontend
