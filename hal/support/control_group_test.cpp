// Limits found in trees of files such as each kind of system shows them.
#include "hal/support/control_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/test_directory.h"
#include "hal/support/host_heap.h"

namespace fornax::hal {
namespace {

constexpr uint64_t kMib = 1 << 20;

// No limit, as version 1 writes it.
constexpr const char* kUnlimited = "9223372036854771712\n";

class ControlGroup : public testing::Test {
  protected:
    void Write(const std::string& path, const std::string& text) {
        const std::filesystem::path whole = directory_.path() + path;
        std::filesystem::create_directories(whole.parent_path());
        std::ofstream(whole) << text;
    }
    void Group(const std::string& text) { Write("/proc/self/cgroup", text); }
    void Mounts(const std::string& text) {
        Write("/proc/self/mountinfo",
              "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
              "23 22 0:20 / /proc rw,nosuid shared:7 - proc proc rw\n" +
                  text);
    }
    // A line of mountinfo, with two optional fields.
    static std::string Two(const std::string& root, const std::string& point) {
        return "30 22 0:26 " + root + " " + point +
               " rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate\n";
    }
    static std::string One(const std::string& root,
                           const std::string& point,
                           const std::string& controllers = "memory") {
        return "35 22 0:32 " + root + " " + point + " rw,relatime - cgroup cgroup rw," +
               controllers + "\n";
    }
    std::optional<uint64_t> Limit() { return ControlGroupMemoryBytes(directory_.path()); }

    TestDirectory directory_;
};

TEST_F(ControlGroup, VersionTwoHasItsGroupBelowTheRoot) {
    Group("0::/system.slice/app.service\n");
    Mounts(Two("/", "/sys/fs/cgroup"));
    Write("/sys/fs/cgroup/system.slice/app.service/memory.max", "209715200\n");
    Write("/sys/fs/cgroup/system.slice/memory.max", "max\n");
    // A neighbour's limit is not ours.
    Write("/sys/fs/cgroup/system.slice/other.service/memory.max", "1048576\n");
    EXPECT_EQ(Limit(), 200 * kMib);
}

TEST_F(ControlGroup, VersionTwoTakesTheLeastOfItsAncestors) {
    Group("0::/a/b/c\n");
    Mounts(Two("/", "/sys/fs/cgroup"));
    Write("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    Write("/sys/fs/cgroup/a/b/memory.max", "400000000\n");
    Write("/sys/fs/cgroup/a/memory.max", "300000000\n");
    EXPECT_EQ(Limit(), 300'000'000u);
    Write("/sys/fs/cgroup/a/b/memory.high", "200000000\n");
    EXPECT_EQ(Limit(), 200'000'000u);
    Write("/sys/fs/cgroup/a/b/c/memory.high", "max\n");
    EXPECT_EQ(Limit(), 200'000'000u);
}

// A container with a control group namespace of its own sees its group as the root.
TEST_F(ControlGroup, VersionTwoInANamespace) {
    Group("0::/\n");
    Mounts(Two("/", "/sys/fs/cgroup"));
    Write("/sys/fs/cgroup/memory.max", "209715200\n");
    EXPECT_EQ(Limit(), 200 * kMib);
}

// Without such a namespace a container may see a part of the tree, and the path from its root.
TEST_F(ControlGroup, TheMountMayBeginBelowTheRoot) {
    for (const char* group : {"/docker/abc", "/docker/abc/inner"}) {
        Group(std::string("4:memory:") + group + "\n0::" + group + "\n");
        Mounts(One("/docker/abc", "/sys/fs/cgroup/memory") + Two("/docker/abc", "/groups/unified"));
        Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200\n");
        EXPECT_EQ(Limit(), 200 * kMib) << group;
        Write("/groups/unified/memory.max", "104857600\n");
        EXPECT_EQ(Limit(), 100 * kMib) << group;
        Write("/groups/unified/memory.max", "max\n");
    }
    Write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "52428800\n");
    EXPECT_EQ(Limit(), 50 * kMib);
}

// The mount shows other groups than ours; the name of one of them begins like ours.
TEST_F(ControlGroup, AMountOfOtherGroupsDoesNotCount) {
    Write("/sys/fs/cgroup/memory.max", "1048576\n");
    for (const char* root : {"/docker/ab", "/docker/abc/inner", "/other", "/../other", "docker"}) {
        Group("0::/docker/abc\n");
        Mounts(Two(root, "/sys/fs/cgroup"));
        EXPECT_EQ(Limit(), std::nullopt) << root;
    }
    for (const char* outside : {"/..", "/../other", ""}) {
        Group("0::" + std::string(outside) + "\n");
        Mounts(Two("/", "/sys/fs/cgroup"));
        EXPECT_EQ(Limit(), std::nullopt) << outside;
    }
    Group("0::/..other\n");
    EXPECT_EQ(Limit(), kMib);
}

// A namespace that was entered without mounting the groups again: the mount shows what is above.
TEST_F(ControlGroup, AMountFromOutsideOfTheNamespace) {
    const std::string own = std::to_string(getpid()) + "\n";
    Mounts(Two("/../..", "/sys/fs/cgroup"));
    Write("/sys/fs/cgroup/memory.max", "419430400\n");
    for (const char* other : {"/a/b", "/a/c", "/other"}) {
        Write(std::string("/sys/fs/cgroup") + other + "/memory.max", "1048576\n");
        Write(std::string("/sys/fs/cgroup") + other + "/cgroup.procs", "1\n2\n1" + own);
    }
    for (const char* group : {"/", "/inner"}) {
        Group("0::" + std::string(group) + "\n");
        EXPECT_EQ(Limit(), 400 * kMib) << "the mount's root is above " << group;
        const std::string folder = "/sys/fs/cgroup/d/e" + std::string(group);
        Write(folder + "/cgroup.procs", "1\n" + own + "3\n");
        Write("/sys/fs/cgroup/d/memory.max", "209715200\n");
        EXPECT_EQ(Limit(), 200 * kMib) << group;
        Write(folder + "/memory.max", "104857600\n");
        EXPECT_EQ(Limit(), 100 * kMib) << group;
        std::filesystem::remove_all(directory_ / "sys/fs/cgroup/d");
    }
}

TEST_F(ControlGroup, VersionOne) {
    Group(
        "9:name=systemd:/\n"
        "5:cpu,cpuacct:/small\n"
        "4:memory:/batch/job\n");
    Mounts(One("/", "/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct") +
           One("/", "/sys/fs/cgroup/memory"));
    Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", kUnlimited);
    Write("/sys/fs/cgroup/memory/batch/memory.limit_in_bytes", "209715200\n");
    Write("/sys/fs/cgroup/memory/batch/job/memory.limit_in_bytes", kUnlimited);
    Write("/sys/fs/cgroup/cpu,cpuacct/small/memory.limit_in_bytes", "1048576\n");
    EXPECT_EQ(Limit(), 200 * kMib);
}

// The group's own statistics tell of limits above what a container can see.
TEST_F(ControlGroup, VersionOneBelowWhatCanBeSeen) {
    Group("4:cpu,memory:/\n");
    Mounts(One("/", "/sys/fs/cgroup/memory", "cpu,memory"));
    Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", kUnlimited);
    Write("/sys/fs/cgroup/memory/memory.stat",
          "cache 1024\nrss 0\nhierarchical_memory_limit 104857600\n"
          "hierarchical_memsw_limit 2048\ntotal_cache 512\n");
    EXPECT_EQ(Limit(), 100 * kMib);
}

TEST_F(ControlGroup, AHybridSystemHasTheMemoryInVersionOne) {
    Group("4:memory:/job\n1:name=systemd:/job\n0::/job\n");
    Mounts(One("/", "/sys/fs/cgroup/memory") +
           One("/", "/sys/fs/cgroup/systemd", "xattr,name=systemd") +
           Two("/", "/sys/fs/cgroup/unified"));
    Write("/sys/fs/cgroup/unified/job/cgroup.procs", "1\n");
    Write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "209715200\n");
    EXPECT_EQ(Limit(), 200 * kMib);
}

TEST_F(ControlGroup, PathsMayHoldSpaces) {
    Group("0::/a b\\c\n");
    Mounts(Two("/", "/groups/my\\040groups\\134"));
    Write("/groups/my groups\\/a b\\c/memory.max", "209715200\n");
    EXPECT_EQ(Limit(), 200 * kMib);
}

TEST_F(ControlGroup, NoLimitWithoutGroupsOrFiles) {
    EXPECT_EQ(Limit(), std::nullopt) << "nothing is mounted";
    Group("0::/\n");
    EXPECT_EQ(Limit(), std::nullopt) << "/proc/self/mountinfo is missing";
    Mounts(Two("/", "/sys/fs/cgroup"));
    EXPECT_EQ(Limit(), std::nullopt) << "the mount is empty";
    Write("/sys/fs/cgroup/memory.max", "max\n");
    EXPECT_EQ(Limit(), std::nullopt);
    // The path of a group that was removed under this process.
    Group("0::/gone (deleted)\n");
    Write("/sys/fs/cgroup/memory.high", "209715200\n");
    EXPECT_EQ(Limit(), 200 * kMib);
}

TEST_F(ControlGroup, MalformedFilesAreNoLimit) {
    Group("0::/job\n");
    Mounts(Two("/", "/sys/fs/cgroup"));
    Write("/sys/fs/cgroup/memory.max", "209715200\n");
    for (const char* text :
         {"", "\n", "-1", "0", "12x", "x12", "0x10", "1e3", "99999999999999999999", "\xff\xfe"}) {
        Write("/sys/fs/cgroup/job/memory.max", text);
        EXPECT_EQ(Limit(), 200 * kMib) << text;
    }
    for (const char* lines : {"", ":", "0:", "0:/job", "\n\n", "4:memory", "1::/job", "x"}) {
        Group(lines);
        EXPECT_EQ(Limit(), std::nullopt) << lines;
    }
    Group("0::/job\n");
    for (const char* lines : {" - ", "30 22 0:26 / - cgroup2 cgroup2 rw\n",
                              "30 22 0:26 / /sys/fs/cgroup rw - cgroup2\n",
                              "30 22 0:26 / /sys/fs/cgroup rw cgroup2 cgroup2 rw\n", "\\",
                              "30 \\0 \\9 \\ \\04 - a b c"}) {
        Mounts(lines);
        EXPECT_EQ(Limit(), std::nullopt) << lines;
    }
}

TEST_F(ControlGroup, TheHeapFits) {
    Group("0::/job\n");
    Mounts(Two("/", "/sys/fs/cgroup"));
    Write("/sys/fs/cgroup/job/memory.max", "209715200\n");
    EXPECT_EQ(DefaultHeapBytes(directory_.path()), 150 * kMib);
    Write("/sys/fs/cgroup/job/memory.max", "1\n");
    EXPECT_EQ(DefaultHeapBytes(directory_.path()), kMemoryPageBytes) << "a heap is never empty";
    Write("/sys/fs/cgroup/job/memory.max", "9223372036854771712\n");
    const uint64_t machine_bytes = DefaultHeapBytes(directory_ / "nothing");
    EXPECT_EQ(DefaultHeapBytes(directory_.path()), machine_bytes);
    EXPECT_GT(machine_bytes, 64 * kMib);
}

}  // namespace
}  // namespace fornax::hal
