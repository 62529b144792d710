// The execution provider of one session.
#pragma once

#include <memory>
#include <vector>

#include "plugins/onnxruntime/api.h"
#include "plugins/onnxruntime/options.h"
#include "plugins/onnxruntime/partition.h"

namespace fornax::onnxruntime_plugin {

// onnxruntime calls it through the functions in OrtEp. It outlives its partitions.
class Provider : public OrtEp {
  public:
    Provider(const Api& api,
             Options options,
             std::shared_ptr<vulkan::Device> device,
             const OrtLogger* logger);

  private:
    static const char* ORT_API_CALL GetNameImpl(const OrtEp* self) noexcept;
    static OrtStatus* ORT_API_CALL GetCapabilityImpl(OrtEp* self,
                                                     const OrtGraph* graph,
                                                     OrtEpGraphSupportInfo* support) noexcept;
    static OrtStatus* ORT_API_CALL CompileImpl(OrtEp* self,
                                               const OrtGraph** graphs,
                                               const OrtNode** fused_nodes,
                                               size_t count,
                                               OrtNodeComputeInfo** infos,
                                               OrtNode** context_nodes) noexcept;
    static void ORT_API_CALL ReleaseInfosImpl(OrtEp* self,
                                              OrtNodeComputeInfo** infos,
                                              size_t count) noexcept;

    Status Choose(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
    Status Refuse(const OrtGraph* graph, OrtEpGraphSupportInfo* support, Error error);
    Status CompileOne(const OrtGraph* graph,
                      const OrtNode* fused,
                      bool is_first,
                      OrtNodeComputeInfo** info,
                      OrtNode** context_node);

    const Api& api_;
    const Options options_;
    const std::shared_ptr<vulkan::Device> device_;
    const Logger logger_;
    Status refusal_;  // why the session is not to be made, if there is a reason
};

}  // namespace fornax::onnxruntime_plugin
