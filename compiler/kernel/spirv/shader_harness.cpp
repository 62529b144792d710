#include "compiler/kernel/spirv/shader_harness.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compiler/kernel/interpret/interpret.h"

namespace fornax::kernel {

namespace {

namespace fs = std::filesystem;

// A folder of this process alone, removed at its end.
class Scratch {
  public:
    Scratch() {
        std::string name = (fs::temp_directory_path() / "fornax-shader-XXXXXX").string();
        if (!mkdtemp(name.data())) {
            std::perror("mkdtemp");
            std::abort();
        }
        path_ = name;
    }
    ~Scratch() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    std::string File(const std::string& name) const { return (path_ / name).string(); }

  private:
    fs::path path_;
};

const Scratch& TheScratch() {
    static const Scratch scratch;
    return scratch;
}

void Write(const std::string& path, const void* data, size_t size) {
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

Words ReadWords(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    Words words(bytes.size() / 4);
    std::copy(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(words.size() * 4),
              reinterpret_cast<char*>(words.data()));
    return words;
}

Words RunTool(const std::string& command) {
    const std::string output = TheScratch().File("out.spv");
    const std::string log = TheScratch().File("log");
    fs::remove(output);
    std::string line = command + " -o " + output + " > " + log + " 2>&1";
    if (std::system(line.c_str()) != 0 || !fs::exists(output)) {
        std::ifstream message(log);
        std::fprintf(stderr, "%s\n%s\n", line.c_str(),
                     std::string(std::istreambuf_iterator<char>(message), {}).c_str());
        std::abort();
    }
    return ReadWords(output);
}

}  // namespace

Words CompileGlsl(std::string_view source, const std::string& options) {
    const std::string input = TheScratch().File("in.comp");
    Write(input, source.data(), source.size());
    return RunTool(FORNAX_GLSLANG " --quiet -V --target-env vulkan1.1 " + options + " " + input);
}

Words AssembleSpirv(std::string_view text, const std::string& version) {
    const std::string input = TheScratch().File("in.spvasm");
    Write(input, text.data(), text.size());
    return RunTool(FORNAX_SPIRV_AS " --preserve-numeric-ids --target-env " + version + " " + input);
}

Words OptimizeSpirv(const Words& module, const std::string& options) {
    const std::string input = TheScratch().File("in.spv");
    Write(input, module.data(), module.size() * 4);
    return RunTool(FORNAX_SPIRV_OPT " " + options + " " + input);
}

std::string SpirvErrors(const Words& module) {
    const std::string input = TheScratch().File("in.spv");
    const std::string log = TheScratch().File("log");
    Write(input, module.data(), module.size() * 4);
    const std::string line =
        FORNAX_SPIRV_VAL " --target-env vulkan1.3 " + input + " > " + log + " 2>&1";
    if (std::system(line.c_str()) == 0) {
        return {};
    }
    std::ifstream message(log);
    const std::string text(std::istreambuf_iterator<char>(message), {});
    return text.empty() ? "spirv-val fails without a word." : text;
}

std::vector<Variant> Variants(const Words& module) {
    std::vector<Variant> variants = {{"as compiled", module}};
    for (const char* options : {"-O", "-Os", "--merge-return --ssa-rewrite --merge-blocks",
                                "--ssa-rewrite --if-conversion --simplify-instructions",
                                "--wrap-opkill --eliminate-local-single-store --ccp"}) {
        variants.push_back({options, OptimizeSpirv(module, options)});
    }
    return variants;
}

std::string Shader(std::string_view body, std::string_view declarations) {
    return R"(#version 460
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer Out { uint o[]; };
)" + std::string(declarations) +
           "\nvoid main() {\n    uint i = gl_GlobalInvocationID.x;\n" + std::string(body) + "\n}\n";
}

CompileRequest MakeRequest(const Words& module) {
    CompileRequest request;
    request.spirv = module;
    SetLayout set;
    for (uint32_t i = 0; i < 4; ++i) {
        BindingLayout binding;
        binding.binding = i;
        binding.kind =
            i == 2 ? BindingLayout::Kind::kUniformBuffer : BindingLayout::Kind::kStorageBuffer;
        binding.count = i == 3 ? 4 : 1;
        binding.offset_bytes = i * 16;
        set.bindings.push_back(binding);
    }
    request.layout.sets = {set};
    request.layout.push_constant_bytes = 128;
    return request;
}

Status RunShader(const ir::Kernel& kernel, ShaderData& data) {
    auto descriptor = [](std::vector<uint32_t>& words) {
        return hal::BufferDescriptor{reinterpret_cast<uint64_t>(words.data()), words.size() * 4};
    };
    hal::BufferDescriptor descriptors[] = {descriptor(data.output),   descriptor(data.storage),
                                           descriptor(data.uniform),  descriptor(data.array[0]),
                                           descriptor(data.array[1]), descriptor(data.array[2]),
                                           descriptor(data.array[3])};
    const void* sets[] = {descriptors};
    hal::DispatchFrame frame;
    frame.descriptor_sets = sets;
    frame.push_constants = data.push.data();
    frame.workgroup_count[0] = data.workgroups;
    frame.workgroup_count[1] = frame.workgroup_count[2] = 1;
    return Interpret(kernel, frame, 0, data.workgroups, {.steps = 50'000'000});
}

}  // namespace fornax::kernel
