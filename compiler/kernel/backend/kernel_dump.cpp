#include "compiler/kernel/backend/kernel_dump.h"

#include <optional>

#include "base/environment.h"
#include "base/file.h"
#include "base/log.h"

namespace fornax::kernel {

std::string KernelLabel(std::string_view entry_point, const Hash128& key) {
    std::string label;
    // An entry point's name is any text.
    for (char c : entry_point.substr(0, 64)) {
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        label += plain ? c : '_';
    }
    return label + "-" + key.ToHex().substr(0, 12);
}

KernelDump::KernelDump(std::string_view entry_point, const Hash128& key) {
    const std::optional<std::string> directory = EnvironmentText("FORNAX_DUMP");
    if (!directory) {
        return;
    }
    Status status = CreateDirectories(*directory, 0755);
    if (!status.ok()) {
        LogWarning("FORNAX_DUMP writes nothing: {}", status.error().message);
        return;
    }
    prefix_ = *directory + "/" + KernelLabel(entry_point, key) + ".";
}

void KernelDump::Write(std::string_view extension, std::string_view text) const {
    if (!enabled()) {
        return;
    }
    Status status = WriteOutputFile(prefix_ + std::string(extension), std::string(text));
    if (!status.ok()) {
        LogWarning("A stage of a kernel is not dumped: {}", status.error().message);
    }
}

void KernelDump::WriteWords(std::string_view extension, std::span<const uint32_t> words) const {
    std::span<const std::byte> bytes = std::as_bytes(words);
    Write(extension, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace fornax::kernel
