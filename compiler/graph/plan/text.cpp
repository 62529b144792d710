// Plans as text, for readers: --explain, tests and bug reports. The same plan gives the same text.
//
//     plan "example" of graph 0123456789abcdef0123456789abcdef
//     symbol n: 4 at first, in 0..100, dimension 0 of input 0
//     guard n < 64
//     input 0 "x": f32[n,8] in block 0
//     output 0 "y": f32[8*n] in block 2
//     block 0 "x": input f32[n,8], steps 0..1
//     kernel 0
//       kernel add(in b0: f32[n,8], out b1: f32[n,8])
//         ...
//     step 0 "sum": kernel 0 (add), b0 = block 0, out b1 = block 1; 8*n operations, ...
//     step 1 "top": host, sort {...} (block 1: f32[n,8]) -> (block 2: f32[n,8]), because ...
//     memory at first: constants 0, inputs and outputs 512, arena 256 of at least 256 bytes
#include <fmt/format.h>

#include "compiler/graph/ir/text.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph {
namespace {

std::string Quoted(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        if (c == '"' || c == '\\') {
            text += '\\';
        }
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
            text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
            text += c;
        }
    }
    return text + '"';
}

std::string_view Name(BlockKind kind) {
    switch (kind) {
        case BlockKind::kConstant:
            return "constant";
        case BlockKind::kInput:
            return "input";
        case BlockKind::kOutput:
            return "output";
        case BlockKind::kTemporary:
            return "temporary";
        case BlockKind::kState:
            break;
    }
    return "state";
}

std::string Indented(std::string_view text, std::string_view indent) {
    std::string result;
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        result += indent;
        result += text.substr(0, end);
        text.remove_prefix(end);
    }
    return result;
}

class PlanWriter {
  public:
    explicit PlanWriter(const Plan& plan) : plan_(plan) {}

    std::string Write() {
        Line("plan {} of graph {}", Quoted(plan_.name),
             plan_.graph_hash.empty() ? "without a hash" : plan_.graph_hash);
        WriteSymbols();
        WritePorts("input", plan_.inputs, plan_.model_inputs);
        WritePorts("output", plan_.outputs, plan_.model_outputs);
        for (const uint32_t input : plan_.fixed_inputs) {
            Line("for one value of input {}", input);
        }
        WriteBlocks();
        for (size_t i = 0; i < plan_.kernels.size(); ++i) {
            Line("kernel {}", i);
            text_ += Indented(ToText(plan_.kernels[i]), "  ");
        }
        for (size_t i = 0; i < plan_.steps.size(); ++i) {
            std::visit([&](const auto& step) { WriteStep(i, step); }, plan_.steps[i]);
        }
        WriteMemory();
        return std::move(text_);
    }

  private:
    template <typename... Args>
    void Line(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
        text_ += '\n';
    }

    void WriteSymbols() {
        for (const auto& [symbol, range] : plan_.ranges) {
            std::string rest;
            if (const auto hint = plan_.hints.find(symbol); hint != plan_.hints.end()) {
                rest += fmt::format("{} at first, ", hint->second);
            }
            rest += fmt::format("in {}..{}", range.low, range.high);
            for (const SymbolSource& source : plan_.sources) {
                if (source.symbol == symbol) {
                    rest += fmt::format(", dimension {} of input {}", source.axis, source.port);
                }
            }
            Line("symbol {}: {}", symbol.name(), rest);
        }
        for (const Guard& guard : plan_.guards) {
            Line("guard {}", guard.ToString());
        }
    }

    void WritePorts(const char* kind,
                    const std::vector<PlanPort>& ports,
                    const std::vector<TensorType>& model_types) {
        for (size_t i = 0; i < ports.size(); ++i) {
            const bool is_narrowed = i < model_types.size() && model_types[i] != ports[i].type;
            Line("{} {} {}: {} in block {}{}", kind, i, Quoted(ports[i].name),
                 ports[i].type.ToString(), ports[i].block.value(),
                 is_narrowed ? ", in the model " + model_types[i].ToString() : "");
        }
    }

    void WriteBlocks() {
        for (size_t i = 0; i < plan_.blocks.size(); ++i) {
            const PlanBlock& block = plan_.blocks[i];
            std::string rest = fmt::format("steps {}..{}", block.first, block.last);
            if (block.kind == BlockKind::kState) {
                rest = block.data ? fmt::format("first of {} bytes", block.data->size())
                                  : "zeros at first";
            } else if (block.kind == BlockKind::kConstant) {
                rest = block.strings ? fmt::format("{} strings", block.strings->size())
                                     : fmt::format("{} bytes", block.data ? block.data->size() : 0);
            }
            Line("block {} {}: {} {}, {}", i, Quoted(block.name), Name(block.kind),
                 block.type.ToString(), rest);
        }
    }

    void WriteStep(size_t index, const DispatchStep& step) {
        const PlanKernel& kernel = plan_.kernels[step.kernel.value()];
        const std::span<const loop::Buffer> buffers = BuffersOf(kernel);
        std::string bindings;
        for (size_t i = 0; i < step.bindings.size(); ++i) {
            bindings += fmt::format(", {}{} = block {}", buffers[i].written ? "out " : "",
                                    buffers[i].name, step.bindings[i].value());
        }
        Line("step {} {}: kernel {} ({}){}; {} operations, {} bytes read, {} written", index,
             Quoted(step.name), step.kernel.value(), NameOf(kernel), bindings,
             step.operations.ToString(), step.bytes_read.ToString(), step.bytes_written.ToString());
    }

    static std::string TensorsText(const std::vector<BlockId>& blocks,
                                   const std::vector<TensorType>& types) {
        std::string text = "(";
        for (size_t i = 0; i < blocks.size(); ++i) {
            text += fmt::format("{}block {}: {}", i == 0 ? "" : ", ", blocks[i].value(),
                                types[i].ToString());
        }
        return text + ")";
    }

    void WriteStep(size_t index, const HostStep& step) {
        Line("step {} {}: host, {} {} -> {}, because {}", index, Quoted(step.name),
             ToText(step.operation), TensorsText(step.operands, step.operand_types),
             TensorsText(step.results, step.result_types), step.reason);
        TextOptions options;
        options.elide_constants = true;
        for (const Body& body : step.bodies) {
            text_ += Indented(ToText(*body, options), "  ");
        }
    }

    void WriteMemory() {
        const Result<MemoryPlan> memory = PlanMemory(plan_, plan_.hints);
        if (!memory.ok()) {
            Line("memory at first: {}", memory.error().message);
            return;
        }
        Line("memory at first: constants {}, inputs and outputs {}, arena {} of at least {} bytes",
             memory->constant_bytes, memory->port_bytes, memory->arena_bytes,
             memory->lower_bound_bytes);
    }

    const Plan& plan_;
    std::string text_;
};

}  // namespace

std::string ToText(const Plan& plan) {
    return PlanWriter(plan).Write();
}

}  // namespace fornax::graph
