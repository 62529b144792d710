// From a plan to what its files say.
#include "compiler/graph/c/emit_c.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/c/index_text.h"
#include "compiler/graph/c/kernel_writer.h"
#include "compiler/graph/c/program.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph::c {
namespace {

// Members and functions may not be called like this.
constexpr std::string_view kReserved[] = {
    "alignas",  "alignof", "asm",      "auto",    "bool",     "break",   "case",     "char",
    "class",    "const",   "continue", "default", "delete",   "do",      "double",   "else",
    "enum",     "extern",  "false",    "float",   "for",      "goto",    "if",       "inline",
    "int",      "long",    "main",     "new",     "operator", "private", "public",   "register",
    "restrict", "return",  "short",    "signed",  "sizeof",   "static",  "struct",   "switch",
    "template", "this",    "true",     "typedef", "typeof",   "union",   "unsigned", "void",
    "volatile", "while",   "unix",     "linux"};

constexpr uint64_t kAlignment = 64;

uint64_t Aligned(uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Error Unsupported(std::string message) {
    return {ErrorCode::kUnsupported, std::move(message)};
}

std::string UniqueMember(const std::string& name, std::set<std::string>& taken) {
    const std::string member = Identifier(name);
    std::string unique = member;
    for (size_t i = 2; !taken.insert(unique).second; ++i) {
        unique = fmt::format("{}_{}", member, i);
    }
    return unique;
}

class Builder {
  public:
    Builder(const Plan& plan, const std::string& name) : plan_(plan) {
        program_.name = name;
        for (const char c : name) {
            program_.upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        }
    }

    Result<Program> Build() {
        FORNAX_RETURN_IF_ERROR(AddSteps());
        FORNAX_ASSIGN_OR_RETURN(memory_, PlanMemory(plan_, plan_.hints));
        FORNAX_RETURN_IF_ERROR(AddBlocks());
        AddPorts(plan_.inputs, Region::kInputs, program_.inputs);
        AddPorts(plan_.outputs, Region::kOutputs, program_.outputs);
        FORNAX_RETURN_IF_ERROR(AddKernels());
        return std::move(program_);
    }

  private:
    Status AddSteps() {
        for (const PlanStep& step : plan_.steps) {
            if (const auto* host = std::get_if<HostStep>(&step)) {
                return Unsupported(
                    fmt::format("The node {} has no form in C: it is computed by Fornax on the "
                                "host, because {}.",
                                host->name, host->reason));
            }
            const auto& dispatch = std::get<DispatchStep>(step);
            const PlanKernel& kernel = plan_.kernels[dispatch.kernel.value()];
            if (kernel.of_template) {
                return Unsupported(fmt::format(
                    "The node {} has no form in C: its kernel {} is a hand-written shader.",
                    dispatch.name, NameOf(kernel)));
            }
            program_.steps.push_back(
                {dispatch.name, static_cast<uint32_t>(dispatch.kernel.value()), dispatch.bindings});
        }
        return OkStatus();
    }

    Status AddBlocks() {
        program_.weights.resize(memory_.constant_bytes);
        program_.arena_bytes = memory_.arena_bytes;
        for (size_t i = 0; i < plan_.blocks.size(); ++i) {
            const PlanBlock& block = plan_.blocks[i];
            if (block.type.element == ElementType::kString) {
                return Unsupported(
                    fmt::format("The tensor {} has no form in C: it is of strings.", block.name));
            }
            if (memory_.sizes[i] == kUnknownSize) {
                return Unsupported(
                    fmt::format("The tensor {} has no form in C: its size {} depends on data.",
                                block.name, block.type.shape.ToString()));
            }
            Placement placement;
            placement.bytes = memory_.sizes[i];
            placement.offset = memory_.offsets[i];
            switch (block.kind) {
                case BlockKind::kConstant:
                    placement.region = Region::kWeights;
                    if (block.data != nullptr) {
                        std::copy(block.data->begin(), block.data->end(),
                                  program_.weights.begin() +
                                      static_cast<std::ptrdiff_t>(placement.offset));
                    }
                    break;
                case BlockKind::kTemporary:
                    placement.region = Region::kArena;
                    break;
                case BlockKind::kState:
                    AddState(block, placement);
                    break;
                case BlockKind::kInput:
                case BlockKind::kOutput:
                    break;  // AddPorts()
            }
            program_.blocks.push_back(placement);
        }
        return OkStatus();
    }

    void AddState(const PlanBlock& block, Placement& placement) {
        placement.region = Region::kStates;
        placement.offset = program_.state_bytes;
        program_.state_bytes += Aligned(placement.bytes);
        if (block.data != nullptr) {
            placement.has_initial = true;
            placement.initial = Aligned(program_.weights.size());
            program_.weights.resize(placement.initial);
            program_.weights.append(block.data->begin(), block.data->end());
        }
    }

    // The first output of a block is where it lies; others are copied.
    void AddPorts(const std::vector<PlanPort>& ports, Region region, std::vector<Port>& to) {
        std::set<std::string> taken(std::begin(kReserved), std::end(kReserved));
        for (size_t i = 0; i < ports.size(); ++i) {
            const PlanPort& port = ports[i];
            Placement& placement = program_.blocks[port.block.value()];
            if (placement.region == Region::kNone) {
                placement.region = region;
                placement.port = static_cast<uint32_t>(i);
            }
            std::string dims;
            for (const Expr& dim : port.type.shape.dims()) {
                dims += fmt::format("{}{}", dims.empty() ? "" : ",",
                                    dim.Evaluate(plan_.hints).value_or(0));
            }
            to.push_back({UniqueMember(port.name, taken),
                          fmt::format("{}: {}[{}]", CommentText(port.name),
                                      graph::Name(port.type.element), dims),
                          port.type.element, port.block, placement.bytes});
        }
    }

    Status AddKernels() {
        for (size_t i = 0; i < plan_.kernels.size(); ++i) {
            const PlanKernel& kernel = plan_.kernels[i];
            const std::string function = fmt::format("{}_k{}", program_.name, i);
            program_.kernel_names.push_back(NameOf(kernel));
            const Result<std::string> text =
                WriteKernel(WithSizes(kernel.loop, plan_.hints), function);
            if (!text.ok()) {
                return Unsupported(
                    fmt::format("The node {} has no form in C: of its kernel {}, {}.", NodeOf(i),
                                NameOf(kernel), text.error().message));
            }
            program_.kernels.push_back(*text);
        }
        return OkStatus();
    }

    std::string NodeOf(size_t kernel) const {
        for (const Step& step : program_.steps) {
            if (step.kernel == kernel) {
                return step.node;
            }
        }
        return "?";
    }

    const Plan& plan_;
    MemoryPlan memory_;
    Program program_;
};

}  // namespace

std::string Identifier(std::string_view name) {
    std::string text;
    for (const char c : name) {
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool is_digit = c >= '0' && c <= '9';
        text += is_letter || is_digit ? c : '_';
    }
    if (text.empty() || (text[0] >= '0' && text[0] <= '9') || text[0] == '_') {
        text = "x" + text;
    }
    return text;
}

Result<std::vector<ProgramFile>> EmitProgram(const Plan& plan, const std::string& name) {
    if (name != Identifier(name) ||
        std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved)) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("'{}' is no name for a program in C: it takes letters, digits and "
                                 "'_', and begins with a letter.",
                                 name)};
    }
    FORNAX_ASSIGN_OR_RETURN(Program program, Builder(plan, name).Build());
    std::vector<ProgramFile> files;
    files.push_back({name + ".c", SourceFile(program)});
    files.push_back({name + ".h", HeaderFile(program)});
    files.push_back({name + "_weights.c", WeightsSource(program)});
    files.push_back({name + ".ld", LinkerScript(program)});
    files.push_back({"Makefile", MakeFile(program)});
    files.push_back({name + "_weights.bin", std::move(program.weights)});
    return files;
}

}  // namespace fornax::graph::c
