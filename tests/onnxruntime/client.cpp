// A C++ program that uses the provider, linked with nothing of onnxruntime: its library is loaded.
//
//     fornax_ort_client run LIBONNXRUNTIME PROVIDER MODEL   runs a model of one input and one
//     output,
//         each 2 x 3 of f32, with 0 to 5, and prints the output
//     fornax_ort_client old LIBONNXRUNTIME PROVIDER         offers the provider an onnxruntime that
//     is
//         too old, and prints its answer
#include <dlfcn.h>
#include <onnxruntime/onnxruntime_c_api.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

const OrtApi* api = nullptr;
const OrtApiBase* real_base = nullptr;

[[noreturn]] void Fail(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(1);
}

void Check(OrtStatus* status) {
    if (status != nullptr) {
        Fail(api->GetErrorMessage(status));
    }
}

template <typename Function>
Function* Find(void* library, const char* name) {
    auto* function =
        library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
    if (function == nullptr) {
        Fail(dlerror());
    }
    return function;
}

void Run(const char* provider, const char* model) {
    OrtEnv* env = nullptr;
    Check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "client", &env));
    Check(api->RegisterExecutionProviderLibrary(env, "Fornax", provider));
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    Check(api->GetEpDevices(env, &devices, &count));
    const OrtEpDevice* chosen = nullptr;
    for (const OrtEpDevice* device : std::span(devices, count)) {
        if (std::strcmp(api->EpDevice_EpName(device), "FornaxExecutionProvider") == 0) {
            chosen = device;
        }
    }
    if (chosen == nullptr) {
        Fail("There is no device of Fornax.");
    }
    OrtSessionOptions* options = nullptr;
    Check(api->CreateSessionOptions(&options));
    const char* keys[] = {"strict", "cache"};
    const char* values[] = {"1", "none"};
    Check(api->SessionOptionsAppendExecutionProvider_V2(options, env, &chosen, 1, keys, values,
                                                        std::size(keys)));
    OrtSession* session = nullptr;
    Check(api->CreateSession(env, model, options, &session));

    std::array<float, 6> input = {0, 1, 2, 3, 4, 5};
    const std::array<int64_t, 2> dims = {2, 3};
    OrtMemoryInfo* memory = nullptr;
    Check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    OrtValue* given = nullptr;
    Check(api->CreateTensorWithDataAsOrtValue(memory, input.data(), sizeof input, dims.data(),
                                              dims.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                              &given));
    const char* input_name = "x";
    const char* output_name = "y";
    for (int i = 0; i < 3; ++i) {
        OrtValue* result = nullptr;
        Check(api->Run(session, nullptr, &input_name, &given, 1, &output_name, 1, &result));
        const void* data = nullptr;
        Check(api->GetTensorData(result, &data));
        for (const float value : std::span(static_cast<const float*>(data), input.size())) {
            std::printf("%g ", static_cast<double>(value));
        }
        std::printf("\n");
        api->ReleaseValue(result);
    }
    api->ReleaseValue(given);
    api->ReleaseMemoryInfo(memory);
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    Check(api->UnregisterExecutionProviderLibrary(env, "Fornax"));
    api->ReleaseEnv(env);
}

void OfferOld(void* provider) {
    OrtApiBase old = {};
    old.GetApi = [](uint32_t version) noexcept -> const OrtApi* {
        return version < ORT_API_VERSION ? real_base->GetApi(version) : nullptr;
    };
    old.GetVersionString = []() noexcept -> const char* { return "1.22.0"; };
    auto* create = Find<OrtStatus*(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**,
                                   size_t, size_t*)>(provider, "CreateEpFactories");
    OrtEpFactory* factory = nullptr;
    size_t count = 7;
    OrtStatus* status = create("Fornax", &old, nullptr, &factory, 1, &count);
    if (status == nullptr || count != 0) {
        Fail("It is not refused.");
    }
    std::printf("%s\n", api->GetErrorMessage(status));
    api->ReleaseStatus(status);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 3 ? argv[1] : "";
    if (what != "old" && (what != "run" || argc != 5)) {
        Fail("usage: fornax_ort_client run|old LIBONNXRUNTIME PROVIDER [MODEL]");
    }
    void* library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    real_base = Find<const OrtApiBase*()>(library, "OrtGetApiBase")();
    api = real_base->GetApi(ORT_API_VERSION);
    if (api == nullptr) {
        Fail("This onnxruntime is too old.");
    }
    if (what == "old") {
        OfferOld(dlopen(argv[3], RTLD_NOW | RTLD_LOCAL));
    } else {
        Run(argv[3], argv[4]);
    }
    return 0;
}
