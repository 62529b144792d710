#include "plugins/onnxruntime/factory.h"

#include <span>

#include <fmt/format.h>

#include "plugins/onnxruntime/provider.h"

namespace fornax::onnxruntime_plugin {

Factory::Factory(const Api& api, const OrtLogger* logger)
    : OrtEpFactory{}, api_(api), logger_(api_, logger) {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory*) noexcept -> const char* { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) noexcept -> const char* { return "Fornax"; };
    GetVendorId = [](const OrtEpFactory*) noexcept -> uint32_t { return 0; };
    GetVersion = [](const OrtEpFactory*) noexcept -> const char* { return FORNAX_VERSION; };
    GetSupportedDevices = GetDevicesImpl;
    CreateEp = CreateEpImpl;
    ReleaseEp = [](OrtEpFactory*, OrtEp* provider) noexcept {
        delete static_cast<Provider*>(provider);
    };
    // Tensors are in onnxruntime's own memory of the host, which devices use in place or which is
    // copied: no allocator, transfer or stream of ours is needed.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** allocator) noexcept -> OrtStatus* {
        *allocator = nullptr;
        return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
        *transfer = nullptr;
        return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
}

OrtStatus* Factory::GetDevicesImpl(OrtEpFactory* self,
                                   const OrtHardwareDevice* const* devices,
                                   size_t count,
                                   OrtEpDevice** made,
                                   size_t most,
                                   size_t* made_count) noexcept {
    auto* factory = static_cast<Factory*>(self);
    *made_count = 0;
    return Guarded(factory->api_, [&] {
        return factory->GetDevices({devices, count}, {made, most}, *made_count);
    });
}

// onnxruntime lists processors, graphics cards and the like. A Vulkan device that is made of the
// processor is none of those that it finds, so it is offered as the processor.
Status Factory::GetDevices(std::span<const OrtHardwareDevice* const> devices,
                           std::span<OrtEpDevice*> made,
                           size_t& made_count) {
    Result<std::shared_ptr<vulkan::Device>> device = Open("");
    if (!device.ok()) {
        logger_.Warning(fmt::format("Fornax has no device. {}", device.error().message));
        return OkStatus();
    }
    for (const OrtHardwareDevice* hardware : devices) {
        if (made_count == made.size() ||
            api_.ort->HardwareDevice_Type(hardware) != OrtHardwareDeviceType_CPU) {
            continue;
        }
        OrtKeyValuePairs* raw = nullptr;
        api_.ort->CreateKeyValuePairs(&raw);
        const std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)> metadata(
            raw, api_.ort->ReleaseKeyValuePairs);
        api_.ort->AddKeyValuePair(raw, "vulkan_device", (*device)->name().c_str());
        FORNAX_RETURN_IF_ERROR(
            api_.Take(api_.ep->CreateEpDevice(this, hardware, raw, nullptr, &made[made_count])));
        ++made_count;
    }
    return OkStatus();
}

OrtStatus* Factory::CreateEpImpl(OrtEpFactory* self,
                                 const OrtHardwareDevice* const*,
                                 const OrtKeyValuePairs* const*,
                                 size_t,
                                 const OrtSessionOptions* session,
                                 const OrtLogger* logger,
                                 OrtEp** provider) noexcept {
    auto* factory = static_cast<Factory*>(self);
    *provider = nullptr;
    return Guarded(factory->api_, [&]() -> Status {
        FORNAX_ASSIGN_OR_RETURN(Options options, ReadOptions(factory->api_, session));
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<vulkan::Device> device,
                                factory->Open(options.device));
        *provider = new Provider(factory->api_, std::move(options), std::move(device), logger);
        return OkStatus();
    });
}

Result<std::shared_ptr<vulkan::Device>> Factory::Open(const std::string& choice) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<vulkan::Device>& kept = devices_[choice];
    std::shared_ptr<vulkan::Device> device = kept.lock();
    if (device == nullptr) {
        FORNAX_ASSIGN_OR_RETURN(device, vulkan::Device::Open(choice));
        kept = device;
    }
    return device;
}

}  // namespace fornax::onnxruntime_plugin
