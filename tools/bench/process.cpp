// posix_spawn, a pidfd to wait on with a timeout, and readable reasons for a violent end.
#include "tools/bench/process.h"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fornax::bench {
namespace {

std::vector<std::string> BuildEnvironment(const std::map<std::string, std::string>& changes) {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (!changes.contains(text.substr(0, text.find('=')))) {
            environment.push_back(text);
        }
    }
    for (const auto& [name, value] : changes) {
        if (!value.empty()) {
            environment.push_back(name + "=" + value);
        }
    }
    return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (std::string& text : strings) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

// True when the process has ended within the time.
bool WaitFor(pid_t pid, double timeout_seconds) {
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) {
        return true;  // a kernel before 5.3: wait without a limit
    }
    pollfd event = {pidfd, POLLIN, 0};
    int ready = 0;
    do {
        ready = poll(&event, 1, static_cast<int>(std::ceil(timeout_seconds * 1e3)));
    } while (ready < 0 && errno == EINTR);
    close(pidfd);
    return ready > 0;
}

}  // namespace

Result<int> RunProcess(const ProcessOptions& options) {
    std::vector<std::string> arguments = options.arguments;
    std::vector<std::string> environment = BuildEnvironment(options.environment);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, options.log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    pid_t pid = 0;
    const int spawn_error = posix_spawn(&pid, arguments[0].c_str(), &files, nullptr,
                                        Pointers(arguments).data(), Pointers(environment).data());
    posix_spawn_file_actions_destroy(&files);
    if (spawn_error != 0) {
        return Error{ErrorCode::kIo, fmt::format("{} cannot be started: {}.", arguments[0],
                                                 std::strerror(spawn_error))};
    }

    const bool in_time = WaitFor(pid, options.timeout_seconds);
    if (!in_time) {
        kill(pid, SIGKILL);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!in_time) {
        return Error{ErrorCode::kTimeout,
                     fmt::format("It did not end within {} s.", options.timeout_seconds)};
    }
    if (WIFSIGNALED(status)) {
        return Error{ErrorCode::kInternal,
                     fmt::format("It crashed with signal {} ({}).", WTERMSIG(status),
                                 strsignal(WTERMSIG(status)))};
    }
    return WEXITSTATUS(status);
}

}  // namespace fornax::bench
