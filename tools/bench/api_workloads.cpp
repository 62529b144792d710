// What the driver's own code costs on the host: recording commands and updating descriptors. The
// device only runs to check the results.
#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/vulkan/result.h"
#include "tools/bench/kernel_workload.h"
#include "tools/bench/shaders/store_constant.spv.h"

namespace fornax::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Twelve storage buffers at bindings of their own, and 128 bytes of push constants: what ggml gives
// its kernels.
constexpr uint32_t kBufferCount = kDescriptorsOfASet;
struct Constants {
    uint32_t index = 0;
    uint32_t value = 0;
    uint32_t rest[30] = {};
};

// What all of them have: two pipelines that differ only in name, and buffers.
class ApiWorkload : public Workload {
  protected:
    explicit ApiWorkload(Device& device) : device_(device) {}

    // Binding 0 takes `words` results; word 0 of binding i is i.
    Status Prepare(uint32_t words) {
        for (uint32_t i = 0; i < kBufferCount; ++i) {
            FORNAX_ASSIGN_OR_RETURN(Buffer buffer,
                                    device_.CreateBuffer((i == 0 ? words : 64) * sizeof(uint32_t)));
            std::ranges::fill(buffer.As<uint32_t>(), i);
            buffers_.push_back(std::move(buffer));
        }
        for (Kernel& kernel : kernels_) {
            FORNAX_ASSIGN_OR_RETURN(
                kernel, device_.CreateKernel(spirv::kStoreConstant, buffers_, sizeof(Constants)));
        }
        FORNAX_ASSIGN_OR_RETURN(commands_, device_.BeginCommands());
        return OkStatus();
    }

    // What a dispatch writes beside its constants.
    static constexpr uint32_t kSum = [] {
        uint32_t sum = 0;
        for (uint32_t i = 1; i < kBufferCount; ++i) {
            sum += i * i;
        }
        return sum;
    }();

    // One operation, as ggml records it.
    void Record(uint32_t index, VkDescriptorSet set, uint32_t value) {
        const Kernel& kernel = kernels_[index % 2];
        Constants constants;
        constants.index = index;
        constants.value = value;
        vkCmdPushConstants(commands_, kernel.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           sizeof(constants), &constants);
        vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline());
        vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.layout(), 0, 1,
                                &set, 0, nullptr);
        vkCmdDispatch(commands_, 1, 1, 1);
    }

    std::span<uint32_t> results() const { return buffers_[0].As<uint32_t>(); }

    Status RunCommands() {
        FORNAX_RETURN_IF_ERROR(device_.EndCommands(commands_));
        Result<double> seconds = device_.Submit(commands_);
        return seconds.ok() ? OkStatus() : Status(seconds.error());
    }

    Device& device_;
    std::vector<Buffer> buffers_;
    Kernel kernels_[2];
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

class RecordDispatches : public ApiWorkload {
  public:
    explicit RecordDispatches(Device& device) : ApiWorkload(device) {}

    Status Init(uint32_t count) {
        count_ = count;
        FORNAX_RETURN_IF_ERROR(Prepare(count));
        return device_.EndCommands(commands_);
    }

    // Begin and end are not counted: they are once for all.
    Result<double> Run() override {
        FORNAX_RETURN_IF_ERROR(device_.BeginAgain(commands_));
        const auto start = Clock::now();
        for (uint32_t i = 0; i < count_; ++i) {
            Record(i, kernels_[i % 2].descriptor_set(), i * 3);
        }
        const double seconds = SecondsSince(start);
        FORNAX_RETURN_IF_ERROR(device_.EndCommands(commands_));
        return seconds;
    }

    Status Verify() override {
        Result<double> submitted = device_.Submit(commands_);
        if (!submitted.ok()) {
            return std::move(submitted).error();
        }
        const std::span<uint32_t> words = results();
        for (uint32_t i = 0; i < count_; ++i) {
            if (words[i] != i * 3 + kSum) {
                return WrongResult("record_dispatch", i, words[i], i * 3 + kSum);
            }
        }
        return OkStatus();
    }

  private:
    uint32_t count_ = 0;
};

enum class UpdateKind {
    kOneWrite,    // one write of twelve descriptors, as ggml does
    kManyWrites,  // twelve writes, as those do who name bindings one by one
    kTemplate,
};

template <UpdateKind kind>
class Updates : public ApiWorkload {
  public:
    explicit Updates(Device& device) : ApiWorkload(device) {}
    ~Updates() override { vkDestroyDescriptorUpdateTemplate(device_.handle(), template_, nullptr); }

    Status Init(uint32_t sets) {
        FORNAX_RETURN_IF_ERROR(Prepare(1));
        FORNAX_RETURN_IF_ERROR(device_.EndCommands(commands_));
        FORNAX_ASSIGN_OR_RETURN(owner_, device_.CreateSets(kernels_[0], buffers_, sets));
        for (uint32_t i = 0; i < sets; ++i) {
            sets_.push_back((*owner_)[i]);
        }
        for (uint32_t i = 0; i < kBufferCount; ++i) {
            infos_[i] = {buffers_[i].handle(), 0, VK_WHOLE_SIZE};
        }
        return kind == UpdateKind::kTemplate ? MakeTemplate() : OkStatus();
    }

    Result<double> Run() override {
        const auto start = Clock::now();
        for (VkDescriptorSet set : sets_) {
            Update(set);
        }
        return SecondsSince(start);
    }

    // A kernel that runs with each of the first and last sets finds its buffers.
    Status Verify() override {
        for (VkDescriptorSet set : {sets_.front(), sets_.back()}) {
            results()[0] = 0;
            FORNAX_RETURN_IF_ERROR(device_.BeginAgain(commands_));
            Record(0, set, 5);
            FORNAX_RETURN_IF_ERROR(RunCommands());
            const uint32_t found = results()[0];
            if (found != 5 + kSum) {
                return WrongResult("update_descriptors", 0, found, 5 + kSum);
            }
        }
        return OkStatus();
    }

  private:
    Status MakeTemplate() {
        VkDescriptorUpdateTemplateEntry entries[kBufferCount] = {};
        for (uint32_t i = 0; i < kBufferCount; ++i) {
            entries[i].dstBinding = i;
            entries[i].descriptorCount = 1;
            entries[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            entries[i].offset = i * sizeof(VkDescriptorBufferInfo);
        }
        VkDescriptorUpdateTemplateCreateInfo info = {
            VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO};
        info.descriptorUpdateEntryCount = kBufferCount;
        info.pDescriptorUpdateEntries = entries;
        info.templateType = VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET;
        info.descriptorSetLayout = kernels_[0].set_layout();
        FORNAX_RETURN_IF_FAILED(
            "vkCreateDescriptorUpdateTemplate",
            vkCreateDescriptorUpdateTemplate(device_.handle(), &info, nullptr, &template_));
        return OkStatus();
    }

    void Update(VkDescriptorSet set) {
        if constexpr (kind == UpdateKind::kTemplate) {
            vkUpdateDescriptorSetWithTemplate(device_.handle(), set, template_, infos_);
            return;
        }
        constexpr uint32_t kWrites = kind == UpdateKind::kOneWrite ? 1 : kBufferCount;
        VkWriteDescriptorSet writes[kWrites];
        for (uint32_t i = 0; i < kWrites; ++i) {
            writes[i] = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
            writes[i].dstSet = set;
            writes[i].dstBinding = i;
            writes[i].descriptorCount = kBufferCount / kWrites;
            writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
            writes[i].pBufferInfo = &infos_[i];
        }
        vkUpdateDescriptorSets(device_.handle(), kWrites, writes, 0, nullptr);
    }

    std::unique_ptr<vulkan::DescriptorSets> owner_;
    std::vector<VkDescriptorSet> sets_;
    VkDescriptorBufferInfo infos_[kBufferCount] = {};
    VkDescriptorUpdateTemplate template_ = VK_NULL_HANDLE;
};

}  // namespace

WorkloadResult CreateRecordDispatches(Device& device, uint32_t count) {
    return CreateWorkload<RecordDispatches>(device, count);
}

WorkloadResult CreateUpdates(Device& device, uint32_t sets) {
    return CreateWorkload<Updates<UpdateKind::kOneWrite>>(device, sets);
}

WorkloadResult CreateSingleUpdates(Device& device, uint32_t sets) {
    return CreateWorkload<Updates<UpdateKind::kManyWrites>>(device, sets);
}

WorkloadResult CreateTemplateUpdates(Device& device, uint32_t sets) {
    return CreateWorkload<Updates<UpdateKind::kTemplate>>(device, sets);
}

}  // namespace fornax::bench
