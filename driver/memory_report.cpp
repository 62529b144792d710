// Events and messages about device memory.
#include "driver/memory_report.h"

#include <sys/stat.h>

#include <iterator>

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/instance.h"

namespace fornax::driver {
namespace {

// Memory that others can import or export is the same object for all of them, so its file names it;
// inodes of anonymous files are unique in the system. Counted ids stay below.
constexpr uint64_t kFileIds = uint64_t{1} << 63;

uint64_t IdOf(const hal::Memory& memory, MemoryReports& reports) {
    const auto file = memory.ExportFile();
    struct stat status = {};
    if (file && fstat(file->get(), &status) == 0) {
        return kFileIds | status.st_ino;
    }
    return reports.NextId();
}

}  // namespace

bool MemoryReports::Init(const Allocator& allocator, const void* chain) {
    return CopyAllInChain(allocator, chain,
                          VK_STRUCTURE_TYPE_DEVICE_DEVICE_MEMORY_REPORT_CREATE_INFO_EXT,
                          VK_SYSTEM_ALLOCATION_SCOPE_DEVICE, callbacks_);
}

void MemoryReports::Send(VkDeviceMemoryReportEventTypeEXT type,
                         uint64_t id,
                         VkDeviceSize size_bytes,
                         const Object& object) const {
    const VkDeviceMemoryReportCallbackDataEXT data{
        .sType = VK_STRUCTURE_TYPE_DEVICE_MEMORY_REPORT_CALLBACK_DATA_EXT,
        .type = type,
        .memoryObjectId = id,
        .size = size_bytes,
        .objectType = object.object_type(),
        .objectHandle = object.handle_bits(),
        .heapIndex = 0};
    for (const auto& callback : callbacks_) {
        callback.pfnUserCallback(&data, callback.pUserData);
    }
}

void ReportBinding(const DeviceObject& object,
                   VkDeviceAddressBindingTypeEXT type,
                   uint64_t address,
                   VkDeviceSize size_bytes,
                   bool internal) {
    if (!object.device().features().reportAddressBinding) {
        return;
    }
    const VkDeviceAddressBindingCallbackDataEXT binding{
        .sType = VK_STRUCTURE_TYPE_DEVICE_ADDRESS_BINDING_CALLBACK_DATA_EXT,
        .flags =
            internal
                ? VkDeviceAddressBindingFlagsEXT{VK_DEVICE_ADDRESS_BINDING_INTERNAL_OBJECT_BIT_EXT}
                : 0,
        .baseAddress = address,
        .size = size_bytes,
        .bindingType = type};
    const VkDebugUtilsObjectNameInfoEXT name{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = object.object_type(),
        .objectHandle = object.handle_bits(),
        .pObjectName = object.debug_name()};
    // No string: destructors come here, too, and must not throw.
    char text[96] = {};
    fmt::format_to_n(text, std::size(text) - 1, "{} bytes from the address {:#x} on are {}.",
                     size_bytes, address,
                     type == VK_DEVICE_ADDRESS_BINDING_TYPE_BIND_EXT ? "bound" : "unbound");
    const VkDebugUtilsMessengerCallbackDataEXT data{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT,
        .pNext = &binding,
        .pMessageIdName = "fornax-address-binding",
        .pMessage = text,
        .objectCount = 1,
        .pObjects = &name};
    object.instance().messengers().Send(VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT,
                                        VK_DEBUG_UTILS_MESSAGE_TYPE_DEVICE_ADDRESS_BINDING_BIT_EXT,
                                        data);
}

VkResult ObjectMemory::Allocate(uint64_t size_bytes, const hal::MemoryOptions& options) {
    Device& device = owner_.device();
    auto memory = device.hal().AllocateMemory(size_bytes, options);
    if (!memory) {
        device.memory_reports().Send(VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_ALLOCATION_FAILED_EXT, 0,
                                     size_bytes, owner_);
        return Fail(device, memory.error());
    }
    Take(std::move(*memory));
    return VK_SUCCESS;
}

VkResult ObjectMemory::TakeImport(Result<std::shared_ptr<hal::Memory>> memory) {
    imported_ = true;
    if (!memory) {
        return memory.error().code == ErrorCode::kInvalidArgument
                   ? FailWith(owner_.device(), VK_ERROR_INVALID_EXTERNAL_HANDLE,
                              memory.error().message)
                   : Fail(owner_.device(), memory.error());
    }
    Take(std::move(*memory));
    return VK_SUCCESS;
}

void ObjectMemory::Take(std::shared_ptr<hal::Memory> memory) {
    memory_ = std::move(memory);
    MemoryReports& reports = owner_.device().memory_reports();
    if (reports.wanted()) {
        id_ = IdOf(*memory_, reports);
        reports.Send(imported_ ? VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_IMPORT_EXT
                               : VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_ALLOCATE_EXT,
                     id_, memory_->size_bytes(), owner_);
    }
    // "those that are implicitly generated via memory allocation or importing external memory".
    ReportBinding(owner_, VK_DEVICE_ADDRESS_BINDING_TYPE_BIND_EXT, memory_->address(),
                  memory_->size_bytes(), true);
}

ObjectMemory::~ObjectMemory() {
    if (!memory_) {
        return;
    }
    ReportBinding(owner_, VK_DEVICE_ADDRESS_BINDING_TYPE_UNBIND_EXT, memory_->address(),
                  memory_->size_bytes());
    owner_.device().memory_reports().Send(imported_
                                              ? VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_UNIMPORT_EXT
                                              : VK_DEVICE_MEMORY_REPORT_EVENT_TYPE_FREE_EXT,
                                          id_, memory_->size_bytes(), owner_);
}

}  // namespace fornax::driver
