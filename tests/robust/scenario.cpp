#include "tests/robust/scenario.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "tests/robust/shaders/endless.spv.h"
#include "tests/robust/shaders/long.spv.h"
#include "tools/soak/client.h"
#include "tools/soak/shaders/count.spv.h"

namespace fornax::test {

using soak::Client;
using soak::ClientBuffer;
using soak::ClientPipeline;
namespace {

void Require(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "%s\n", what);
        std::_Exit(1);
    }
}

// Starts the queue's thread and the workers.
void RunSome(Client& client) {
    const ClientPipeline pipeline = client.MakePipeline(spirv::kCount);
    const ClientBuffer buffer = client.MakeBuffer(64 * 4096);
    const uint32_t addend = 1;
    Require(client.valid(), "Some work cannot be prepared.");
    Require(client.Run(pipeline, buffer, {&addend, 1}, 4096) == VK_SUCCESS, "Some work fails.");
    client.Free(pipeline);
    client.Free(buffer);
}

// A pipeline whose optimized tier is seconds away: no cache has it.
void StartCompiling(Client& client) {
    client.MakePipeline(spirv::kLong, std::random_device{}());
    Require(client.valid(), "The long kernel is not compiled.");
}

void StartEndless(Client& client) {
    const ClientBuffer buffer = client.MakeBuffer(64 * 100);
    const ClientPipeline pipeline = client.MakePipeline(spirv::kEndless);
    Require(client.valid(), "The endless kernel is not compiled.");
    const uint32_t constants[] = {0, 0};
    Require(
        client.Submit(client.Record(client.pool, pipeline, buffer, constants, 100)) == VK_SUCCESS,
        "The endless kernel is not submitted.");
}

void StartHuge(Client& client) {
    const ClientBuffer buffer = client.MakeBuffer(64);
    const ClientPipeline pipeline = client.MakePipeline(spirv::kEndless);
    Require(client.valid(), "The kernel of a huge grid is not compiled.");
    const uint32_t constants[] = {3, 0};  // of this kind it ends at once
    Require(client.Submit(client.Record(client.pool, pipeline, buffer, constants,
                                        {65535, 65535, 65535})) == VK_SUCCESS,
            "The huge grid is not submitted.");
}

// What comes after must work.
void RunAnother() {
    const std::string wrong = soak::RunAndCheck(1);
    Require(wrong.empty(), wrong.c_str());
}

}  // namespace

int RunScenario(std::string_view name) {
    const std::string_view end = name.substr(0, name.find('-'));
    const std::string_view work = name.substr(name.find('-') + 1);
    auto* client = new Client;  // never destroyed
    Require(client->valid(), client->error().c_str());
    RunSome(*client);
    if (work == "endless") {
        StartEndless(*client);
    } else if (work == "huge") {
        StartHuge(*client);
    } else if (work != "idle") {
        StartCompiling(*client);
    }
    if (work == "two-compiling") {
        std::thread([client] { StartCompiling(*client); }).detach();
    }
    if (work != "idle") {  // whose threads are still looking for more
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (end == "destroy") {
        vkDestroyDevice(client->device, nullptr);
    }
    if (end != "exit") {
        vkDestroyInstance(client->instance, nullptr);
        // Whatever is left of the first device has time to go wrong.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        RunAnother();
    }
    return 0;
}

}  // namespace fornax::test
