// Finds the directories of this process's control groups and reads their limits: cgroups(7), and
// proc(5) for /proc/self/mountinfo.
#include "hal/support/control_group.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace fornax::hal {
namespace {

enum class Version : uint8_t { kOne, kTwo };

// A line of mountinfo: the part of the hierarchy below `root` is to be seen at `point`.
struct Mount {
    Version version;
    std::string root;
    std::string point;
};

bool HasWord(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        if (list.substr(0, comma) == word) {
            return true;
        }
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return false;
}

// "\040" is a space: proc(5) has white space and the backslash as three octal digits.
std::string Unescaped(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
        unsigned code = 0;
        if (text.size() >= 4 && text.front() == '\\' &&
            std::from_chars(text.data() + 1, text.data() + 4, code, 8).ptr == text.data() + 4) {
            plain += static_cast<char>(code);
            text.remove_prefix(4);
        } else {
            plain += text.front();
            text.remove_prefix(1);
        }
    }
    return plain;
}

// The mounts of the hierarchies that may have the memory.
std::vector<Mount> ReadMounts(const std::string& root) {
    std::vector<Mount> mounts;
    std::ifstream file(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(file, line);) {
        // ID, parent, device, root, mount point, options, any number of fields, "-", type, source,
        // options of the file system.
        const size_t dash = line.find(" - ");
        if (dash == std::string::npos) {
            continue;
        }
        std::string unused, mount_root, point, type, source, options;
        std::istringstream before(line.substr(0, dash));
        std::istringstream behind(line.substr(dash + 3));
        if (!(before >> unused >> unused >> unused >> mount_root >> point) ||
            !(behind >> type >> source >> options)) {
            continue;
        }
        const bool one = type == "cgroup" && HasWord(options, "memory");
        if (one || type == "cgroup2") {
            mounts.push_back({one ? Version::kOne : Version::kTwo, Unescaped(mount_root),
                              root + Unescaped(point)});
        }
    }
    return mounts;
}

// The path of this process's group in the hierarchy, as /proc/self/cgroup has it:
// "ID:controllers:path", where version 2 is the ID 0 without controllers.
std::optional<std::string> ReadGroup(const std::string& root, Version version) {
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string_view id = std::string_view(line).substr(0, first);
        const std::string_view controllers =
            std::string_view(line).substr(first + 1, second - first - 1);
        if (version == Version::kTwo ? id == "0" && controllers.empty()
                                     : HasWord(controllers, "memory")) {
            return line.substr(second + 1);
        }
    }
    return std::nullopt;
}

// Whether a file of process numbers holds this process's.
bool HoldsThisProcess(const std::string& path) {
    std::ifstream file(path);
    for (pid_t pid = 0; file >> pid;) {
        if (pid == getpid()) {
            return true;
        }
    }
    return false;
}

// How many levels up a path such as "/../.." leads; nothing for other paths.
std::optional<size_t> LevelsUp(std::string_view path) {
    size_t levels = 0;
    for (; path.starts_with("/.."); path.remove_prefix(3)) {
        ++levels;
    }
    return path.empty() && levels > 0 ? std::optional(levels) : std::nullopt;
}

// The path of this process's group below a folder, `levels` folders with unknown names and then
// `group`; empty if it is not there or the search would take too long.
std::string Search(const std::string& folder, size_t levels, const std::string& group) {
    constexpr size_t kMaxFolders = 4096;
    std::vector<std::string> paths = {""};  // of one level
    for (size_t searched = 0; levels > 0; --levels) {
        std::vector<std::string> next;
        for (const std::string& path : paths) {
            std::error_code error;
            for (std::filesystem::directory_iterator item(folder + path, error), end;
                 !error && item != end; item.increment(error)) {
                if (std::error_code gone; item->is_directory(gone)) {
                    if (++searched > kMaxFolders) {
                        return "";
                    }
                    next.push_back(path + "/" + item->path().filename().string());
                }
            }
        }
        paths = std::move(next);
    }
    const auto found = std::ranges::find_if(paths, [&](const std::string& path) {
        return HoldsThisProcess(folder + path + group + "/cgroup.procs");
    });
    return found == paths.end() ? "" : *found + group;
}

// The path of this process's group, or else of a group above it, from the mount's root, with a
// leading '/' or empty; nothing if the mount shows none of them. `group` and the mount's root are
// relative to the root of this process's control group namespace, and lead with "/.." to what lies
// outside of it.
std::optional<std::string> PathBelow(const Mount& mount, const std::string& group) {
    if (!group.starts_with('/') || group == "/.." || group.starts_with("/../")) {
        return std::nullopt;
    }
    std::string below = group == "/" ? "" : group;
    if (mount.root == "/") {
        return below;
    }
    // The mount is from outside and shows what is above the namespace.
    if (const std::optional<size_t> levels = LevelsUp(mount.root)) {
        return Search(mount.point, *levels, below);
    }
    if (below.starts_with(mount.root) &&
        (below.size() == mount.root.size() || below[mount.root.size()] == '/')) {
        return below.substr(mount.root.size());
    }
    return std::nullopt;
}

// Keeps the least limit. A group that may have nothing runs no process, so it is not believed.
void Take(uint64_t limit_bytes, std::optional<uint64_t>& least_bytes) {
    if (limit_bytes != 0) {
        least_bytes = std::min(least_bytes.value_or(UINT64_MAX), limit_bytes);
    }
}

// The number that a file consists of. "max", which stands for no limit, is none.
void TakeFile(const std::string& path, std::optional<uint64_t>& least_bytes) {
    std::ifstream file(path);
    std::string word;
    uint64_t bytes = 0;
    if (file >> word) {
        const char* end = word.data() + word.size();
        const auto [rest, error] = std::from_chars(word.data(), end, bytes);
        if (error == std::errc() && rest == end) {
            Take(bytes, least_bytes);
        }
    }
}

// Version 1 adds up what holds from above, from groups that this process may not see as well.
void TakeHierarchical(const std::string& path, std::optional<uint64_t>& least_bytes) {
    std::ifstream file(path);
    std::string key;
    uint64_t bytes = 0;
    while (file >> key >> bytes) {
        if (key == "hierarchical_memory_limit") {
            Take(bytes, least_bytes);
        }
    }
}

}  // namespace

std::optional<uint64_t> ControlGroupMemoryBytes(const std::string& root) {
    std::optional<uint64_t> least_bytes;
    for (const Mount& mount : ReadMounts(root)) {
        const std::optional<std::string> group = ReadGroup(root, mount.version);
        std::optional<std::string> below = group ? PathBelow(mount, *group) : std::nullopt;
        if (!below) {
            continue;
        }
        if (mount.version == Version::kOne) {
            TakeHierarchical(mount.point + *below + "/memory.stat", least_bytes);
        }
        // The group and what is above it, up to the mount's root. Version 1 writes a very large
        // number for no limit.
        for (;; below->resize(below->rfind('/'))) {
            const std::string folder = mount.point + *below;
            if (mount.version == Version::kOne) {
                TakeFile(folder + "/memory.limit_in_bytes", least_bytes);
            } else {
                TakeFile(folder + "/memory.max", least_bytes);
                TakeFile(folder + "/memory.high", least_bytes);
            }
            if (below->empty()) {
                break;
            }
        }
    }
    return least_bytes;
}

}  // namespace fornax::hal
