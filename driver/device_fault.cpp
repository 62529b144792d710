// What a lost device tells of the fault: VK_EXT_device_fault and VK_KHR_device_fault.
//
// The HAL keeps one report, the kernel's that was stopped first. A device that was lost in another
// way has a description and nothing else.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {
namespace {

void CopyText(const std::string& text, char (&to)[VK_MAX_DESCRIPTION_SIZE]) {
    const size_t length = std::min(text.size(), size_t{VK_MAX_DESCRIPTION_SIZE - 1});
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
}

VkDeviceFaultAddressTypeKHR AccessType(hal::FaultReport::Access access) {
    switch (access) {
        case hal::FaultReport::Access::kNone:
            break;
        case hal::FaultReport::Access::kRead:
            return VK_DEVICE_FAULT_ADDRESS_TYPE_READ_INVALID_KHR;
        case hal::FaultReport::Access::kWrite:
            return VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_KHR;
        case hal::FaultReport::Access::kExecute:
            return VK_DEVICE_FAULT_ADDRESS_TYPE_EXECUTE_INVALID_KHR;
    }
    return VK_DEVICE_FAULT_ADDRESS_TYPE_NONE_KHR;
}

// The parts of a report, each with whether there is one.
struct Fault {
    explicit Fault(const Device& device) {
        const Status status = device.hal().status();
        if (status) {
            return;
        }
        description = status.error().message;
        const auto report = device.hal().fault();
        if (!report) {
            return;
        }
        is_watchdog = report->kind == hal::KernelFault::kWatchdog;
        if (report->address_bytes != 0) {
            memory = {AccessType(report->access), report->address, report->address_bytes};
            has_memory = true;
        }
        if (report->instruction_address != 0) {
            instruction = {VK_DEVICE_FAULT_ADDRESS_TYPE_INSTRUCTION_POINTER_FAULT_KHR,
                           report->instruction_address, 1};
            has_instruction = true;
        }
        CopyText(report->message, vendor.description);
        vendor.vendorFaultCode = static_cast<uint64_t>(report->kind);
        // The workgroup: x in the lowest 32 bits, then 16 of y and 16 of z.
        vendor.vendorFaultData = report->workgroup[0] |
                                 uint64_t{report->workgroup[1] & 0xffffu} << 32 |
                                 uint64_t{report->workgroup[2] & 0xffffu} << 48;
        has_vendor = true;
    }

    std::string description;  // empty if the device is not lost
    VkDeviceFaultAddressInfoKHR memory = {};
    VkDeviceFaultAddressInfoKHR instruction = {};
    VkDeviceFaultVendorInfoKHR vendor = {};
    bool has_memory = false;
    bool has_instruction = false;
    bool has_vendor = false;
    bool is_watchdog = false;
};

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkGetDeviceFaultInfoEXT(VkDevice device,
                        VkDeviceFaultCountsEXT* counts,
                        VkDeviceFaultInfoEXT* info) {
    const Fault fault(*FromHandle<Device>(device));
    std::array<VkDeviceFaultAddressInfoKHR, 2> addresses;
    uint32_t address_count = 0;
    if (fault.has_memory) {
        addresses[address_count++] = fault.memory;
    }
    if (fault.has_instruction) {
        addresses[address_count++] = fault.instruction;
    }

    counts->vendorBinarySize = 0;  // deviceFaultVendorBinary is not there
    if (!info) {
        counts->addressInfoCount = address_count;
        counts->vendorInfoCount = fault.has_vendor ? 1 : 0;
        return VK_SUCCESS;
    }
    CopyText(fault.description, info->description);
    // Null for what the application does not want, whatever its count says.
    uint32_t written = info->pAddressInfos ? counts->addressInfoCount : 0;
    uint32_t vendors = info->pVendorInfos ? counts->vendorInfoCount : 0;
    const bool all = written >= address_count && vendors >= uint32_t{fault.has_vendor};
    written = std::min(written, address_count);
    vendors = std::min(vendors, uint32_t{fault.has_vendor});
    std::copy_n(addresses.begin(), written, info->pAddressInfos);
    std::fill_n(info->pVendorInfos, vendors, fault.vendor);
    counts->addressInfoCount = written;
    counts->vendorInfoCount = vendors;
    return all ? VK_SUCCESS : VK_INCOMPLETE;
}

FORNAX_ENTRY_POINT(VkResult)
vkGetDeviceFaultReportsKHR(VkDevice device_handle,
                           uint64_t timeout,
                           uint32_t* count,
                           VkDeviceFaultInfoKHR* infos) {
    auto& device = *FromHandle<Device>(device_handle);
    if (!device.hal().lost()) {
        // What only the loss of the device can end.
        auto never = device.hal().CreateTimeline(0);
        if (!never) {
            return Fail(device, never.error());
        }
        const Status status = (*never)->Wait(1, timeout);
        if (!device.hal().lost()) {
            *count = 0;
            return WaitResult(device, status);
        }
    }
    // "Each individual fault report is returned exactly once."
    if (!infos) {
        *count = device.fault_report_taken().load() ? 0 : 1;
        return *count != 0 ? VK_SUCCESS : VK_TIMEOUT;
    }
    if (*count == 0) {
        return device.fault_report_taken().load() ? VK_TIMEOUT : VK_INCOMPLETE;
    }
    if (device.fault_report_taken().exchange(true)) {
        *count = 0;
        return VK_TIMEOUT;  // a lost device has no more faults to wait for
    }
    *count = 1;
    const Fault fault(device);
    VkDeviceFaultInfoKHR& info = infos[0];
    info.flags = VK_DEVICE_FAULT_FLAG_DEVICE_LOST_KHR;
    info.groupId = 0;
    CopyText(fault.description, info.description);
    info.faultAddressInfo = fault.memory;
    info.instructionAddressInfo = fault.instruction;
    info.vendorInfo = fault.vendor;
    if (fault.has_memory) {
        info.flags |= VK_DEVICE_FAULT_FLAG_MEMORY_ADDRESS_KHR;
    }
    if (fault.has_instruction) {
        info.flags |= VK_DEVICE_FAULT_FLAG_INSTRUCTION_ADDRESS_KHR;
    }
    if (fault.has_vendor) {
        info.flags |= VK_DEVICE_FAULT_FLAG_VENDOR_KHR;
    }
    if (fault.is_watchdog) {
        info.flags |= VK_DEVICE_FAULT_FLAG_WATCHDOG_TIMEOUT_KHR;
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkGetDeviceFaultDebugInfoKHR(VkDevice, VkDeviceFaultDebugInfoKHR* info) {
    info->vendorBinarySize = 0;  // deviceFaultVendorBinary is not there
    return VK_SUCCESS;
}

}  // namespace fornax::driver
