#include "plugins/onnxruntime/provider.h"

#include <algorithm>

#include <fmt/format.h>

#include "plugins/onnxruntime/claim.h"
#include "plugins/onnxruntime/context.h"

namespace fornax::onnxruntime_plugin {
namespace {

// The functions that onnxruntime runs a partition with. There is no state but the partition.
class ComputeInfo : public OrtNodeComputeInfo {
  public:
    ComputeInfo(const Api& api, std::unique_ptr<Partition> partition)
        : OrtNodeComputeInfo{}, api_(api), partition_(std::move(partition)) {
        ort_version_supported = ORT_API_VERSION;
        CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*,
                         void** state) noexcept -> OrtStatus* {
            *state = self;
            return nullptr;
        };
        Compute = [](OrtNodeComputeInfo* self, void*,
                     OrtKernelContext* context) noexcept -> OrtStatus* {
            auto* info = static_cast<ComputeInfo*>(self);
            return Guarded(info->api_, [&] { return info->partition_->Run(context); });
        };
        ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
    }

  private:
    const Api& api_;
    const std::unique_ptr<Partition> partition_;
};

std::string Describe(const Claim& claim) {
    size_t taken = 0;
    std::string sizes;
    for (const Claim::Group& group : claim.groups) {
        taken += group.nodes.size();
        sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", group.nodes.size());
    }
    return fmt::format("Fornax takes {} of {} nodes in {} {}{}{}.", taken, claim.node_count,
                       claim.groups.size(), claim.groups.size() == 1 ? "partition" : "partitions",
                       claim.groups.size() > 1 ? " of " : "", claim.groups.size() > 1 ? sizes : "");
}

}  // namespace

Provider::Provider(const Api& api,
                   Options options,
                   std::shared_ptr<vulkan::Device> device,
                   const OrtLogger* logger)
    : OrtEp{},
      api_(api),
      options_(std::move(options)),
      device_(std::move(device)),
      logger_(api, logger) {
    ort_version_supported = ORT_API_VERSION;
    GetName = GetNameImpl;
    GetCapability = GetCapabilityImpl;
    Compile = CompileImpl;
    ReleaseNodeComputeInfos = ReleaseInfosImpl;
    logger_.Info(fmt::format("Fornax runs on {}.", device_->name()));
}

const char* Provider::GetNameImpl(const OrtEp*) noexcept {
    return kProviderName;
}

OrtStatus* Provider::GetCapabilityImpl(OrtEp* self,
                                       const OrtGraph* graph,
                                       OrtEpGraphSupportInfo* support) noexcept {
    auto* provider = static_cast<Provider*>(self);
    return Guarded(provider->api_, [&] { return provider->Choose(graph, support); });
}

Status Provider::Choose(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
    const OrtNode* parent = nullptr;
    FORNAX_ORT(api_, Graph_GetParentNode(graph, &parent));
    if (parent != nullptr) {
        // onnxruntime asks for subgraphs first. A node is taken with its subgraphs or not at all.
        return OkStatus();
    }
    refusal_ = OkStatus();
    Result<Claim> chosen = ChooseNodes(api_, graph);
    if (!chosen.ok()) {
        logger_.Warning(
            fmt::format("Fornax leaves the model to others: {}", chosen.error().message));
        return options_.strict ? Refuse(graph, support, std::move(chosen).error()) : OkStatus();
    }
    logger_.Info(Describe(*chosen));
    for (const Claim::Left& node : chosen->left) {
        logger_.Info(fmt::format("Fornax leaves {} to others: {}.", node.node, node.reason));
    }
    if (options_.strict && !chosen->left.empty()) {
        return Refuse(
            graph, support,
            {ErrorCode::kUnsupported,
             fmt::format("Fornax: {} of {} nodes would be left to other providers, the first of "
                         "them {}: {}.",
                         chosen->left.size(), chosen->node_count, chosen->left[0].node,
                         chosen->left[0].reason)});
    }
    for (const Claim::Group& group : chosen->groups) {
        OrtNodeFusionOptions fusion = {};
        fusion.ort_version_supported = ORT_API_VERSION;
        // A plan for other sizes is compiled with the constants that runs get.
        fusion.drop_constant_initializers = group.is_static;
        FORNAX_RETURN_IF_ERROR(api_.Take(api_.ep->EpGraphSupportInfo_AddNodesToFuse(
            support, group.nodes.data(), group.nodes.size(), &fusion)));
    }
    return OkStatus();
}

// onnxruntime goes on with other providers after an error here, so the error is kept, and a node
// taken for which it is told. Not one of a function of the model, which becomes other nodes.
Status Provider::Refuse(const OrtGraph* graph, OrtEpGraphSupportInfo* support, Error error) {
    refusal_ = std::move(error);
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const OrtNode*> nodes, NodesOf(api_, graph));
    for (const OrtNode* node : nodes) {
        FORNAX_ASSIGN_OR_RETURN(const std::string domain, DomainOf(api_, node));
        if (domain.empty() || domain == "ai.onnx" || domain == "ai.onnx.ml" ||
            domain == "com.microsoft") {
            return api_.Take(
                api_.ep->EpGraphSupportInfo_AddNodesToFuse(support, &node, 1, nullptr));
        }
    }
    return OkStatus();
}

OrtStatus* Provider::CompileImpl(OrtEp* self,
                                 const OrtGraph** graphs,
                                 const OrtNode** fused_nodes,
                                 size_t count,
                                 OrtNodeComputeInfo** infos,
                                 OrtNode** context_nodes) noexcept {
    auto* provider = static_cast<Provider*>(self);
    std::fill_n(infos, count, nullptr);
    return Guarded(provider->api_, [&]() -> Status {
        if (!provider->refusal_.ok()) {
            return provider->refusal_;
        }
        for (size_t i = 0; i < count; ++i) {
            Status status = provider->CompileOne(graphs[i], fused_nodes[i], i == 0, &infos[i],
                                                 &context_nodes[i]);
            if (!status.ok()) {
                ReleaseInfosImpl(self, infos, i);
                std::fill_n(infos, count, nullptr);
                return status;
            }
        }
        return OkStatus();
    });
}

Status Provider::CompileOne(const OrtGraph* graph,
                            const OrtNode* fused,
                            bool is_first,
                            OrtNodeComputeInfo** info,
                            OrtNode** context_node) {
    FORNAX_ASSIGN_OR_RETURN(std::unique_ptr<Partition> partition,
                            Partition::Create(api_, options_, device_, graph, fused));
    if (options_.writes_context) {
        if (partition->context().empty()) {
            return Error{ErrorCode::kInvalidArgument,
                         "Fornax: the model is compiled already, and cannot be once more."};
        }
        FORNAX_ASSIGN_OR_RETURN(*context_node, MakeContextNode(api_, options_, graph, fused,
                                                               partition->context(), is_first));
    }
    *info = new ComputeInfo(api_, std::move(partition));
    return OkStatus();
}

void Provider::ReleaseInfosImpl(OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) {
        delete static_cast<ComputeInfo*>(infos[i]);
    }
}

}  // namespace fornax::onnxruntime_plugin
