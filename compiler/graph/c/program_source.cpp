// {name}.c: support, kernels, memory, steps, and the program around them.
#include <fmt/format.h>

#include "compiler/graph/c/element_text.h"
#include "compiler/graph/c/program.h"
#include "compiler/graph/c/support.h"

namespace fornax::graph::c {
namespace {

// Arrays of no elements are not of C.
uint64_t AtLeastOne(uint64_t bytes) {
    return bytes == 0 ? 1 : bytes;
}

std::string Title(std::string_view text) {
    std::string line = fmt::format("// --- {} ", text);
    line.resize(100, '-');
    return line + "\n\n";
}

// An expression for where a block lies.
std::string AddressOf(const Program& program, const Placement& placement) {
    switch (placement.region) {
        case Region::kWeights:
            return fmt::format("(void*)({}_weights + {})", program.name, placement.offset);
        case Region::kArena:
            return fmt::format("arena + {}", placement.offset);
        case Region::kStates:
            return fmt::format("states + {}", placement.offset);
        case Region::kInputs:
            return fmt::format("(void*)inputs->{}", program.inputs[placement.port].member);
        case Region::kOutputs:
            return fmt::format("outputs->{}", program.outputs[placement.port].member);
        case Region::kNone:
            break;
    }
    return "NULL";
}

std::string Memory(const Program& program) {
    std::string text = Title("Memory");
    text += fmt::format(
        "// Values between kernels; those that are not alive at the same step share bytes.\n"
        "static uint8_t arena[{}] __attribute__((aligned(64), unused));\n",
        AtLeastOne(program.arena_bytes));
    text += fmt::format(
        "// What is kept from run to run.\n"
        "static uint8_t states[{}] __attribute__((aligned(64), unused));\n\n",
        AtLeastOne(program.state_bytes));
    text += fmt::format("static void* blocks[{}];\n", AtLeastOne(program.blocks.size()));
    text += fmt::format("static const {}_outputs* bound_outputs;\n\n", program.name);
    text += fmt::format("void {}_bind(const {}_inputs* inputs, const {}_outputs* outputs) {{\n",
                        program.name, program.name, program.name);
    text += "    (void)inputs;\n    bound_outputs = outputs;\n";
    for (size_t i = 0; i < program.blocks.size(); ++i) {
        const Placement& placement = program.blocks[i];
        text += fmt::format("    blocks[{}] = {};  // {} bytes\n", i, AddressOf(program, placement),
                            placement.bytes);
    }
    text += "}\n\n";
    text += fmt::format("void {}_reset(void) {{\n    memset(states, 0, sizeof states);\n",
                        program.name);
    for (const Placement& placement : program.blocks) {
        if (placement.has_initial) {
            text += fmt::format("    memcpy(states + {}, {}_weights + {}, {});\n", placement.offset,
                                program.name, placement.initial, placement.bytes);
        }
    }
    return text + "}\n\n";
}

std::string Steps(const Program& program) {
    std::string text = Title("Steps");
    size_t most = 1;
    for (const Step& step : program.steps) {
        most = std::max(most, step.blocks.size());
    }
    text += fmt::format(
        "static const struct {{\n    void (*kernel)(void* const* blocks);\n    const char* node;\n"
        "    uint16_t count;\n    uint16_t blocks[{}];\n}} steps[{}] = {{\n",
        most, program.steps.size() + 1);
    for (const Step& step : program.steps) {
        std::string blocks;
        for (const BlockId block : step.blocks) {
            blocks += fmt::format("{}{}", blocks.empty() ? "" : ", ", block.value());
        }
        text += fmt::format("    {{{}_k{}, {}, {}, {{{}}}}},\n", program.name, step.kernel,
                            Quoted(step.node), step.blocks.size(), blocks.empty() ? "0" : blocks);
    }
    text += "    {NULL, \"\", 0, {0}},\n};\n\n";
    text += fmt::format(
        "void {}_step(uint32_t step) {{\n    void* of_kernel[{}];\n"
        "    for (uint16_t i = 0; i < steps[step].count; ++i) {{\n"
        "        of_kernel[i] = blocks[steps[step].blocks[i]];\n    }}\n"
        "    steps[step].kernel(of_kernel);\n}}\n\n",
        program.name, most);
    text += fmt::format(
        "const char* {}_step_name(uint32_t step) {{\n    return steps[step].node;\n}}\n\n",
        program.name);
    // Outputs that are not where they lie: a second output of one value, an input, a constant.
    text += fmt::format("void {}_finish(void) {{\n", program.name);
    text += "    (void)bound_outputs;\n";
    for (size_t i = 0; i < program.outputs.size(); ++i) {
        const Port& port = program.outputs[i];
        const Placement& placement = program.blocks[port.block.value()];
        if (placement.region != Region::kOutputs || placement.port != i) {
            text += fmt::format("    memcpy(bound_outputs->{}, blocks[{}], {});\n", port.member,
                                port.block.value(), port.bytes);
        }
    }
    text += "}\n\n";
    text += fmt::format(
        "void {0}_run(const {0}_inputs* inputs, const {0}_outputs* outputs) {{\n"
        "    {0}_bind(inputs, outputs);\n"
        "    for (uint32_t i = 0; i < {1}_STEPS; ++i) {{\n        {0}_step(i);\n    }}\n"
        "    {0}_finish();\n}}\n\n",
        program.name, program.upper);
    return text;
}

// The memory of the program's inputs or outputs, and a table of it.
std::string Parts(const Program& program, const std::vector<Port>& ports, std::string_view kind) {
    std::string text, members, parts;
    for (const Port& port : ports) {
        const std::string array = fmt::format("{}_of_{}", kind, port.member);
        text += fmt::format("static uint8_t {}[{}] __attribute__((aligned(64)));\n", array,
                            AtLeastOne(port.bytes));
        members += fmt::format("    .{} = (void*){},\n", port.member, array);
        parts += fmt::format("    {{{}, {}}},\n", array, port.bytes);
    }
    text += fmt::format("static const {}_{}s program_{}s = {{\n{}}};\n", program.name, kind, kind,
                        ports.empty() ? "    0\n" : members);
    text +=
        fmt::format("static const part {}_parts[] = {{\n{}    {{NULL, 0}},\n}};\n\n", kind, parts);
    return text;
}

}  // namespace

std::string Filled(std::string_view text, const Program& program) {
    std::string filled;
    while (true) {
        const size_t at = std::min(text.find("@name@"), text.find("@NAME@"));
        filled += text.substr(0, at);
        if (at == std::string_view::npos) {
            return filled;
        }
        filled += text[at + 1] == 'n' ? program.name : program.upper;
        text.remove_prefix(at + 6);
    }
}

std::string CommentText(std::string_view text) {
    std::string shown;
    for (const char c : text) {
        shown += c < ' ' || c > '~' || c == '\\' || c == '?' || c == '*' ? '_' : c;
    }
    return shown;
}

std::string Quoted(std::string_view text) {
    std::string shown = "\"";
    for (const char c : CommentText(text)) {
        shown += c == '"' ? "'" : std::string(1, c);
    }
    return shown + "\"";
}

std::string SourceFile(const Program& program) {
    std::string text = Filled(
        "// Generated by `fornax compile --emit c`. @name@.h says how to use it.\n"
        "#include \"@name@.h\"\n\n#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n"
        "#include <string.h>\n\n",
        program);
    text += ScalarSupport();
    text += "\n" + Title("Kernels");
    for (size_t i = 0; i < program.kernels.size(); ++i) {
        text +=
            fmt::format("// {}\n{}\n", CommentText(program.kernel_names[i]), program.kernels[i]);
    }
    text += Memory(program);
    text += Steps(program);
    text += Filled("#ifndef @NAME@_NO_MAIN\n\n", program);
    text += "typedef struct {\n    void* data;\n    size_t size;\n} part;\n\n";
    text += Parts(program, program.inputs, "input");
    text += Parts(program, program.outputs, "output");
    text += Filled(BareMetalSupport(), program);
    text += Filled(MainProgram(), program);
    text += Filled("\n#endif  // @NAME@_NO_MAIN\n", program);
    return text;
}

}  // namespace fornax::graph::c
