// Runs compute shaders from SPIR-V files on the first device that the Vulkan loader offers, for the
// differential test.
//
// usage: run_shaders WORDS SEED FILE.spv...
// Each shader gets two storage buffers of WORDS words at bindings 0 (input, filled from SEED) and 1
// (output, zero), and a grid of 3 x 2 x 1 workgroups. A line a shader goes to the standard output:
// a hash of the output buffer, or the error; with one shader also the buffer's words.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "tools/bench/device.h"

namespace {

using fornax::bench::Buffer;
using fornax::bench::Device;

uint32_t Next(uint64_t& state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33);
}

fornax::Status RunShader(Device& device,
                         const char* path,
                         uint64_t seed,
                         std::vector<Buffer>& buffers) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    uint64_t state = seed;
    for (uint32_t& word : buffers[0].As<uint32_t>()) {
        word = Next(state);
    }
    for (uint32_t& word : buffers[1].As<uint32_t>()) {
        word = 0;
    }
    FORNAX_ASSIGN_OR_RETURN(auto kernel, device.CreateKernel(words, buffers, 0));
    FORNAX_ASSIGN_OR_RETURN(VkCommandBuffer commands, device.BeginCommands());
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
    VkDescriptorSet set = kernel.descriptor_set();
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout(), 0, 1, &set,
                            0, nullptr);
    vkCmdDispatch(commands, 3, 2, 1);
    FORNAX_RETURN_IF_ERROR(device.EndCommands(commands));
    auto seconds = device.Submit(commands);
    return seconds.ok() ? fornax::OkStatus() : fornax::Status(std::move(seconds).error());
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: run_shaders WORDS SEED FILE.spv...\n");
        return 2;
    }
    auto device = Device::Create(false);
    if (!device.ok()) {
        std::fprintf(stderr, "%s\n", device.error().message.c_str());
        return 1;
    }
    const size_t bytes = std::strtoull(argv[1], nullptr, 10) * 4;
    const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
    std::vector<Buffer> buffers;
    for (int i = 0; i < 2; ++i) {
        auto buffer = (*device)->CreateBuffer(bytes);
        if (!buffer.ok()) {
            std::fprintf(stderr, "%s\n", buffer.error().message.c_str());
            return 1;
        }
        buffers.push_back(std::move(*buffer));
    }
    for (int i = 3; i < argc; ++i) {
        fornax::Status status = RunShader(**device, argv[i], seed, buffers);
        if (!status.ok()) {
            std::printf("error: %s\n", status.error().message.c_str());
            std::fflush(stdout);
            continue;
        }
        uint64_t hash = 14695981039346656037u;
        for (uint32_t word : buffers[1].As<uint32_t>()) {
            hash = (hash ^ word) * 1099511628211u;
        }
        std::printf("%016llx\n", static_cast<unsigned long long>(hash));
        if (argc == 4) {
            for (uint32_t word : buffers[1].As<uint32_t>()) {
                std::printf("%08x\n", word);
            }
        }
        std::fflush(stdout);
    }
    return 0;
}
