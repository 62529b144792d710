// Describes one Vulkan device in tables, from what the driver itself reports.
#include "tools/fornax/device_report.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

using Align = TextTable::Align;

constexpr size_t kIndent = 2;

// The properties that the tables show. Structures of later versions or extensions stay zero.
struct DeviceProperties {
    VkPhysicalDeviceProperties2 core = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    VkPhysicalDeviceSubgroupProperties subgroup = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceMaintenance3Properties maintenance3 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceDriverProperties driver = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceVulkan13Properties v13 = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};

    DeviceProperties(VkPhysicalDevice device,
                     const std::vector<VkExtensionProperties>& extensions) {
        VkPhysicalDeviceProperties first = {};
        vkGetPhysicalDeviceProperties(device, &first);
        core.pNext = &subgroup;
        subgroup.pNext = &maintenance3;
        if (first.apiVersion >= VK_API_VERSION_1_2 ||
            HasExtension(extensions, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) {
            maintenance3.pNext = &driver;
        }
        if (first.apiVersion >= VK_API_VERSION_1_3) {
            driver.pNext = &v13;
        }
        vkGetPhysicalDeviceProperties2(device, &core);
    }
};

TextTable KeyValueTable() {
    return TextTable({"", ""}, {Align::kLeft, Align::kLeft});
}

template <typename Flags, size_t kCount>
std::string FlagNames(Flags flags, const std::pair<Flags, const char*> (&names)[kCount]) {
    std::string text;
    for (const auto& [flag, name] : names) {
        if ((flags & flag) == 0) {
            continue;
        }
        if (!text.empty()) {
            text += ", ";
        }
        text += name;
        flags &= ~flag;
    }
    if (flags != 0) {
        text += fmt::format("{}{:#x}", text.empty() ? "" : ", ", flags);
    }
    return text.empty() ? "none" : text;
}

std::string Identity(const DeviceProperties& properties) {
    const VkPhysicalDeviceProperties& core = properties.core.properties;
    TextTable table = KeyValueTable();
    table.AddRow({"type", DeviceTypeName(core.deviceType)});
    if (properties.driver.driverName[0] != '\0') {
        table.AddRow({"driver", properties.driver.driverName});
        if (properties.driver.driverInfo[0] != '\0') {
            table.AddRow({"driver info", properties.driver.driverInfo});
        }
        const VkConformanceVersion& conformance = properties.driver.conformanceVersion;
        table.AddRow(
            {"conformance version", fmt::format("{}.{}.{}.{}", conformance.major, conformance.minor,
                                                conformance.subminor, conformance.patch)});
    }
    table.AddRow({"driver version", fmt::format("{} ({:#x})", FormatVersion(core.driverVersion),
                                                core.driverVersion)});
    table.AddRow({"Vulkan version", FormatVersion(core.apiVersion)});
    table.AddRow({"vendor, device", fmt::format("{:#06x}, {:#06x}", core.vendorID, core.deviceID)});
    return table.Render(kIndent);
}

std::string Limits(const DeviceProperties& properties) {
    const VkPhysicalDeviceLimits& limits = properties.core.properties.limits;
    static constexpr std::pair<VkSubgroupFeatureFlags, const char*> kSubgroupOperations[] = {
        {VK_SUBGROUP_FEATURE_BASIC_BIT, "basic"},
        {VK_SUBGROUP_FEATURE_VOTE_BIT, "vote"},
        {VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "arithmetic"},
        {VK_SUBGROUP_FEATURE_BALLOT_BIT, "ballot"},
        {VK_SUBGROUP_FEATURE_SHUFFLE_BIT, "shuffle"},
        {VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT, "shuffle relative"},
        {VK_SUBGROUP_FEATURE_CLUSTERED_BIT, "clustered"},
        {VK_SUBGROUP_FEATURE_QUAD_BIT, "quad"},
        {VK_SUBGROUP_FEATURE_ROTATE_BIT, "rotate"},
        {VK_SUBGROUP_FEATURE_ROTATE_CLUSTERED_BIT, "rotate clustered"},
    };
    TextTable table = KeyValueTable();
    auto add = [&](const char* name, std::string value) { table.AddRow({name, std::move(value)}); };
    add("workgroup invocations", std::to_string(limits.maxComputeWorkGroupInvocations));
    add("workgroup size",
        fmt::format("{} x {} x {}", limits.maxComputeWorkGroupSize[0],
                    limits.maxComputeWorkGroupSize[1], limits.maxComputeWorkGroupSize[2]));
    add("workgroup count",
        fmt::format("{} x {} x {}", limits.maxComputeWorkGroupCount[0],
                    limits.maxComputeWorkGroupCount[1], limits.maxComputeWorkGroupCount[2]));
    add("shared memory", FormatBytes(limits.maxComputeSharedMemorySize));
    std::string subgroup_size = std::to_string(properties.subgroup.subgroupSize);
    if (properties.v13.maxSubgroupSize != 0) {
        subgroup_size += fmt::format(" (size control {} to {})", properties.v13.minSubgroupSize,
                                     properties.v13.maxSubgroupSize);
    }
    add("subgroup size", subgroup_size);
    add("subgroup operations",
        FlagNames(properties.subgroup.supportedOperations, kSubgroupOperations));
    add("largest allocation", FormatBytes(properties.maintenance3.maxMemoryAllocationSize));
    if (properties.v13.maxBufferSize != 0) {
        add("largest buffer", FormatBytes(properties.v13.maxBufferSize));
    }
    add("storage buffer range", FormatBytes(limits.maxStorageBufferRange));
    add("uniform buffer range", FormatBytes(limits.maxUniformBufferRange));
    add("push constants", FormatBytes(limits.maxPushConstantsSize));
    add("bound descriptor sets", std::to_string(limits.maxBoundDescriptorSets));
    add("storage buffers, a stage", std::to_string(limits.maxPerStageDescriptorStorageBuffers));
    add("uniform buffers, a stage", std::to_string(limits.maxPerStageDescriptorUniformBuffers));
    add("storage buffer alignment", FormatBytes(limits.minStorageBufferOffsetAlignment));
    add("map alignment", FormatBytes(limits.minMemoryMapAlignment));
    add("timestamp period", fmt::format("{} ns", limits.timestampPeriod));
    return table.Render(kIndent);
}

std::string Memory(VkPhysicalDevice device, bool has_budget) {
    static constexpr std::pair<VkMemoryHeapFlags, const char*> kHeapFlags[] = {
        {VK_MEMORY_HEAP_DEVICE_LOCAL_BIT, "device local"},
        {VK_MEMORY_HEAP_MULTI_INSTANCE_BIT, "multi-instance"},
    };
    static constexpr std::pair<VkMemoryPropertyFlags, const char*> kTypeFlags[] = {
        {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, "device local"},
        {VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, "host visible"},
        {VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, "host coherent"},
        {VK_MEMORY_PROPERTY_HOST_CACHED_BIT, "host cached"},
        {VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, "lazily allocated"},
        {VK_MEMORY_PROPERTY_PROTECTED_BIT, "protected"},
    };
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 memory = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    memory.pNext = has_budget ? &budget : nullptr;
    vkGetPhysicalDeviceMemoryProperties2(device, &memory);
    const VkPhysicalDeviceMemoryProperties& core = memory.memoryProperties;

    TextTable heaps({"heap", "size", "budget", "used", "flags"},
                    {Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
    for (uint32_t i = 0; i < core.memoryHeapCount; ++i) {
        heaps.AddRow({std::to_string(i), FormatBytes(core.memoryHeaps[i].size),
                      has_budget ? FormatBytes(budget.heapBudget[i]) : "-",
                      has_budget ? FormatBytes(budget.heapUsage[i]) : "-",
                      FlagNames(core.memoryHeaps[i].flags, kHeapFlags)});
    }
    TextTable types({"type", "heap", "properties"}, {Align::kRight, Align::kRight, Align::kLeft});
    for (uint32_t i = 0; i < core.memoryTypeCount; ++i) {
        types.AddRow({std::to_string(i), std::to_string(core.memoryTypes[i].heapIndex),
                      FlagNames(core.memoryTypes[i].propertyFlags, kTypeFlags)});
    }
    return heaps.Render(kIndent) + "\n" + types.Render(kIndent);
}

std::string QueueFamilies(VkPhysicalDevice device) {
    static constexpr std::pair<VkQueueFlags, const char*> kQueueFlags[] = {
        {VK_QUEUE_GRAPHICS_BIT, "graphics"},   {VK_QUEUE_COMPUTE_BIT, "compute"},
        {VK_QUEUE_TRANSFER_BIT, "transfer"},   {VK_QUEUE_SPARSE_BINDING_BIT, "sparse binding"},
        {VK_QUEUE_PROTECTED_BIT, "protected"}, {VK_QUEUE_DATA_GRAPH_BIT_ARM, "data graph"},
    };
    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());

    TextTable table({"family", "queues", "timestamp bits", "operations"},
                    {Align::kRight, Align::kRight, Align::kRight, Align::kLeft});
    for (uint32_t i = 0; i < count; ++i) {
        table.AddRow({std::to_string(i), std::to_string(families[i].queueCount),
                      std::to_string(families[i].timestampValidBits),
                      FlagNames(families[i].queueFlags, kQueueFlags)});
    }
    return table.Render(kIndent);
}

std::string Features(const std::vector<FeatureState>& features) {
    TextTable table = KeyValueTable();
    for (const FeatureState& feature : features) {
        table.AddRow({feature.name, feature.is_supported ? "yes" : "no"});
    }
    return table.Render(kIndent);
}

std::string Extensions(const std::vector<VkExtensionProperties>& extensions) {
    TextTable table = KeyValueTable();
    for (const VkExtensionProperties& extension : extensions) {
        table.AddRow({extension.extensionName, std::to_string(extension.specVersion)});
    }
    return extensions.empty() ? "  none\n" : table.Render(kIndent);
}

}  // namespace

const char* DeviceTypeName(VkPhysicalDeviceType type) {
    switch (type) {
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
            return "integrated GPU";
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
            return "discrete GPU";
        case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
            return "virtual GPU";
        case VK_PHYSICAL_DEVICE_TYPE_CPU:
            return "CPU";
        default:
            return "other";
    }
}

std::string FormatVersion(uint32_t version) {
    return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                       VK_API_VERSION_PATCH(version));
}

std::vector<VkExtensionProperties> DeviceExtensions(VkPhysicalDevice device) {
    uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> extensions(count);
    vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
    extensions.resize(count);
    std::sort(extensions.begin(), extensions.end(), [](const auto& a, const auto& b) {
        return std::strcmp(a.extensionName, b.extensionName) < 0;
    });
    return extensions;
}

bool HasExtension(const std::vector<VkExtensionProperties>& extensions, const char* name) {
    return std::any_of(extensions.begin(), extensions.end(), [&](const auto& extension) {
        return std::strcmp(extension.extensionName, name) == 0;
    });
}

std::string DescribeDevice(VkPhysicalDevice device) {
    const std::vector<VkExtensionProperties> extensions = DeviceExtensions(device);
    const DeviceProperties properties(device, extensions);
    const bool has_budget = HasExtension(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    const std::vector<FeatureState> features =
        ComputeFeatures(device, properties.core.properties.apiVersion, extensions);

    std::string text = fmt::format("{}\n", properties.core.properties.deviceName);
    text += Identity(properties);
    text += "\nLimits\n" + Limits(properties);
    text += "\nMemory\n" + Memory(device, has_budget);
    text += "\nQueue families\n" + QueueFamilies(device);
    text += "\nCompute features\n" + Features(features);
    text += fmt::format("\nExtensions ({})\n", extensions.size()) + Extensions(extensions);
    return text;
}

}  // namespace fornax::tool
