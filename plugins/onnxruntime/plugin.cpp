// What onnxruntime calls when the library is registered and when it is let go.
#include <fmt/format.h>

#include "plugins/onnxruntime/factory.h"

#define FORNAX_EXPORT extern "C" __attribute__((visibility("default")))

using namespace fornax::onnxruntime_plugin;

FORNAX_EXPORT OrtStatus* CreateEpFactories(const char* /*registered_name*/,
                                           const OrtApiBase* base,
                                           const OrtLogger* logger,
                                           OrtEpFactory** factories,
                                           size_t most,
                                           size_t* count) {
    *count = 0;
    Api api;
    api.ort = base->GetApi(ORT_API_VERSION);
    if (api.ort == nullptr) {
        // The functions of the first version are enough to say so.
        const std::string message =
            fmt::format("Fornax is built for onnxruntime 1.{} or later; this is {}.",
                        ORT_API_VERSION, base->GetVersionString());
        const OrtApi* oldest = base->GetApi(1);
        return oldest == nullptr ? nullptr : oldest->CreateStatus(ORT_FAIL, message.c_str());
    }
    api.ep = api.ort->GetEpApi();
    api.editor = api.ort->GetModelEditorApi();
    if (api.ep == nullptr || api.editor == nullptr || most == 0) {
        return api.ort->CreateStatus(ORT_FAIL,
                                     "Fornax: this onnxruntime has no interface of providers.");
    }
    return Guarded(api, [&]() -> fornax::Status {
        factories[0] = new Factory(api, logger);
        *count = 1;
        return fornax::OkStatus();
    });
}

FORNAX_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
    delete static_cast<Factory*>(factory);
    return nullptr;
}
