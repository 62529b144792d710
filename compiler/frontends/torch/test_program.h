// Files of FX graphs for tests and fuzzing, made from the structures of the schema's object form.
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontends/torch/fx_graph_generated.h"
#include "compiler/frontends/torch/graph_file.h"

namespace fornax::torch_frontend {

// The file with this structure, whose checksum is right.
inline std::vector<uint8_t> FileWith(std::span<const uint8_t> structure,
                                     std::span<const uint8_t> weights = {}) {
    Header header = {};
    std::memcpy(header.magic, kMagic.data(), kMagic.size());
    header.version = kFormatVersion;
    header.structure_crc = Crc32(structure);
    header.structure_bytes = structure.size();
    const size_t end = kHeaderBytes + structure.size();
    header.weights_offset = (end + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
    header.weights_bytes = weights.size();
    std::vector<uint8_t> file(header.weights_offset);
    std::memcpy(file.data(), &header, sizeof header);
    if (!structure.empty()) {
        std::memcpy(file.data() + kHeaderBytes, structure.data(), structure.size());
    }
    file.insert(file.end(), weights.begin(), weights.end());
    return file;
}

inline std::vector<uint8_t> FileOf(const stored::ProgramT& program,
                                   std::span<const uint8_t> weights = {}) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(stored::Program::Pack(builder, &program));
    return FileWith({builder.GetBufferPointer(), builder.GetSize()}, weights);
}

inline graph::Bytes ToBytes(std::vector<uint8_t> bytes) {
    return std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
}

// Builds a program value by value.
class TestProgram {
  public:
    stored::ProgramT program;

    uint32_t Constant(int64_t value) { return AddSize({value, 0, 0, 0}); }
    uint32_t Symbol(const std::string& name, int64_t hint) {
        auto symbol = std::make_unique<stored::SymbolT>();
        symbol->name = name;
        symbol->hint = hint;
        symbol->low = 0;
        symbol->high = 1 << 20;
        program.symbols.push_back(std::move(symbol));
        return AddSize({0, static_cast<uint32_t>(program.symbols.size() - 1), 0,
                        static_cast<uint8_t>(SizeKind::kSymbol)});
    }
    uint32_t Operation(SizeKind kind, uint32_t a, uint32_t b) {
        return AddSize({0, a, b, static_cast<uint8_t>(kind)});
    }
    uint32_t AddSize(const stored::Size& size) {
        program.sizes.push_back(size);
        return static_cast<uint32_t>(program.sizes.size() - 1);
    }

    uint32_t ValueOf(const std::string& name,
                     std::vector<uint32_t> sizes,
                     graph::ElementType element = graph::ElementType::kF32) {
        auto value = std::make_unique<stored::ValueT>();
        value->name = name;
        value->element = static_cast<uint8_t>(element);
        value->dims = std::move(sizes);
        program.values.push_back(std::move(value));
        return static_cast<uint32_t>(program.values.size() - 1);
    }
    uint32_t Value(const std::string& name,
                   std::initializer_list<int64_t> dims,
                   graph::ElementType element = graph::ElementType::kF32) {
        std::vector<uint32_t> sizes;
        for (const int64_t dim : dims) {
            sizes.push_back(Constant(dim));
        }
        return ValueOf(name, std::move(sizes), element);
    }
    uint32_t AsInput(uint32_t value) {
        program.inputs.push_back(Port(value));
        return value;
    }
    void AsOutput(uint32_t value) { program.outputs.push_back(Port(value)); }
    void AsWeight(uint32_t value, uint64_t offset, uint64_t size) {
        auto weight = std::make_unique<stored::WeightT>();
        weight->value = value;
        weight->offset = offset;
        weight->size = size;
        program.weights.push_back(std::move(weight));
    }

    using Argument = std::unique_ptr<stored::ArgumentT>;
    static Argument Make(const std::string& name, ArgumentKind kind, uint32_t index = 0) {
        auto argument = std::make_unique<stored::ArgumentT>();
        argument->name = name;
        argument->kind = static_cast<uint8_t>(kind);
        argument->index = index;
        return argument;
    }
    static Argument Tensor(const std::string& name, uint32_t value) {
        return Make(name, ArgumentKind::kValue, value);
    }
    Argument Int(const std::string& name, int64_t value) {
        return Make(name, ArgumentKind::kSize, Constant(value));
    }
    static Argument Float(const std::string& name, double value) {
        Argument argument = Make(name, ArgumentKind::kFloat);
        argument->number = value;
        return argument;
    }
    Argument Ints(const std::string& name, std::initializer_list<int64_t> values) {
        Argument list = Make(name, ArgumentKind::kList);
        for (const int64_t value : values) {
            list->items.push_back(Int("", value));
        }
        return list;
    }

    template <typename... Arguments>
    void Node(const std::string& target, std::vector<uint32_t> results, Arguments... arguments) {
        auto node = std::make_unique<stored::NodeT>();
        node->target = target;
        node->name = program.values.at(results.at(0))->name;
        node->line = "model.py:" + std::to_string(program.nodes.size() + 1);
        node->results = std::move(results);
        (node->arguments.push_back(std::move(arguments)), ...);
        program.nodes.push_back(std::move(node));
    }

  private:
    std::unique_ptr<stored::PortT> Port(uint32_t value) const {
        auto port = std::make_unique<stored::PortT>();
        port->name = program.values.at(value)->name;
        port->value = value;
        return port;
    }
};

}  // namespace fornax::torch_frontend
