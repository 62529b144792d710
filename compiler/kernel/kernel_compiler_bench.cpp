// How long pipelines take to compile: SPIR-V files to native code, cold and from the disk cache.
//
// Usage: fornax_kernel_compiler_bench FILE.spv[:ID=VALUE,...]... [Google Benchmark's options]
// for instance build/generated/tools/bench/shaders/*.spv. Every file is one compute shader with
// entry point "main"; specialisation constants may follow its name.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "compiler/kernel/backend/backend.h"
#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {
namespace {

namespace fs = std::filesystem;

struct Shader {
    std::string name;
    std::vector<uint32_t> words;
    std::vector<SpecializationValue> constants;
    ResourceLayout layout;
};

CompileRequest RequestFor(const Shader& shader) {
    CompileRequest request = {.spirv = shader.words};
    request.specialization = shader.constants;
    request.layout = shader.layout;
    return request;
}

// "0=128,1=64", as far as it reads like that.
std::vector<SpecializationValue> ParseConstants(const char* text) {
    std::vector<SpecializationValue> constants;
    unsigned id;
    unsigned value;
    int used;
    while (std::sscanf(text, "%u=%u%n", &id, &value, &used) == 2) {
        constants.push_back({.constant_id = id, .bits = value});
        text += used + (text[used] == ',');
    }
    return constants;
}

// Starts a compiler and has it make all the kernels; false, with the reason, if it cannot.
bool CompileAll(benchmark::State& state,
                const std::vector<Shader>& shaders,
                const std::string& directory) {
    auto compiler = KernelCompiler::Create(directory);
    if (!compiler.ok()) {
        state.SkipWithError(compiler.error().message.c_str());
        return false;
    }
    for (const Shader& shader : shaders) {
        auto kernel = (*compiler)->Compile(RequestFor(shader));
        if (!kernel.ok()) {
            state.SkipWithError((shader.name + ": " + kernel.error().message).c_str());
            return false;
        }
    }
    return true;
}

void Cold(benchmark::State& state, const std::vector<Shader>& shaders) {
    for (auto _ : state) {
        if (!CompileAll(state, shaders, "")) {
            return;
        }
    }
}

void FromDisk(benchmark::State& state, const std::vector<Shader>& shaders) {
    fs::path directory =
        fs::temp_directory_path() / ("fornax-kernel-compiler-bench-" + std::to_string(getpid()));
    fs::create_directories(directory);
    if (CompileAll(state, shaders, directory)) {
        for (auto _ : state) {
            if (!CompileAll(state, shaders, directory)) {
                break;
            }
        }
    }
    fs::remove_all(directory);
}

int Main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    std::vector<Shader> shaders;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const size_t colon = std::min(argument.find(':'), argument.size());
        Result<std::vector<std::byte>> bytes = ReadFile(argument.substr(0, colon), 64 << 20);
        if (!bytes.ok()) {
            std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
            return 1;
        }
        Shader& shader = shaders.emplace_back();
        shader.name = fs::path(argument.substr(0, colon)).stem().string() + argument.substr(colon);
        shader.words.resize(bytes->size() / 4);
        std::memcpy(shader.words.data(), bytes->data(), shader.words.size() * 4);
        if (colon < argument.size()) {
            shader.constants = ParseConstants(argument.c_str() + colon + 1);
        }
        Result<ResourceLayout> layout = MakeKernelBackend()->LayoutOf(shader.words);
        if (!layout.ok()) {
            std::fprintf(stderr, "%s\n", layout.error().message.c_str());
            return 1;
        }
        shader.layout = *layout;
    }
    if (shaders.empty()) {
        std::fprintf(stderr, "usage: %s FILE.spv...\n", argv[0]);
        return 1;
    }
    auto add = [](const std::string& name, auto function, const std::vector<Shader>& list) {
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            function(state, list);
        })->Unit(benchmark::kMillisecond);
    };
    for (const Shader& shader : shaders) {
        add("cold/" + shader.name, Cold, {shader});
    }
    add("cold/all", Cold, shaders);
    add("from_disk/all", FromDisk, shaders);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}

}  // namespace
}  // namespace fornax::kernel

int main(int argc, char** argv) {
    return fornax::kernel::Main(argc, argv);
}
