// What onnxruntime makes execution providers with.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/onnxruntime/api.h"
#include "runtime/vulkan/device.h"

namespace fornax::onnxruntime_plugin {

// onnxruntime calls it through the functions in OrtEpFactory. Thread-safe.
class Factory : public OrtEpFactory {
  public:
    Factory(const Api& api, const OrtLogger* logger);

  private:
    static OrtStatus* ORT_API_CALL GetDevicesImpl(OrtEpFactory* self,
                                                  const OrtHardwareDevice* const* devices,
                                                  size_t count,
                                                  OrtEpDevice** made,
                                                  size_t most,
                                                  size_t* made_count) noexcept;
    static OrtStatus* ORT_API_CALL CreateEpImpl(OrtEpFactory* self,
                                                const OrtHardwareDevice* const* devices,
                                                const OrtKeyValuePairs* const* metadata,
                                                size_t count,
                                                const OrtSessionOptions* session,
                                                const OrtLogger* logger,
                                                OrtEp** provider) noexcept;

    Status GetDevices(std::span<const OrtHardwareDevice* const> devices,
                      std::span<OrtEpDevice*> made,
                      size_t& made_count);
    // Sessions on one device share it.
    Result<std::shared_ptr<vulkan::Device>> Open(const std::string& choice);

    const Api api_;
    const Logger logger_;
    std::mutex mutex_;                                              // guards what follows
    std::map<std::string, std::weak_ptr<vulkan::Device>> devices_;  // by choice
};

}  // namespace fornax::onnxruntime_plugin
