#include "tests/robust/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tools/soak/client.h"

namespace fornax::test {

Child::Child(const ChildOptions& options) {
    int ends[2];
    if (pipe(ends) != 0) {
        return;
    }
    const std::string kernels = std::to_string(options.kernels);
    const std::string rounds = std::to_string(options.rounds);
    pid_ = fork();
    if (pid_ != 0) {
        close(ends[1]);
        output_ = ends[0];
        return;
    }
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    for (const auto& [name, value] : options.environment) {
        setenv(name.c_str(), value.c_str(), 1);
    }
    if (options.prepare && !options.prepare()) {
        _exit(kChildNotPrepared);
    }
    alarm(120);  // a client that hangs dies of it
    if (!options.scenario.empty()) {
        execl("/proc/self/exe", "fornax_robust_test", "--scenario", options.scenario.c_str(),
              nullptr);
        _exit(kChildNotPrepared);
    }
    execl("/proc/self/exe", "fornax_robust_test", "--client", kernels.c_str(), rounds.c_str(),
          nullptr);
    _exit(kChildNotPrepared);
}

Child::~Child() {
    if (pid_ > 0) {
        Wait();
    }
}

ChildResult Child::Wait() {
    ChildResult result;
    if (pid_ <= 0) {
        return result;
    }
    char buffer[4096];
    for (ssize_t got = 0; (got = read(output_, buffer, sizeof(buffer))) != 0;) {
        if (got < 0 && errno != EINTR) {
            break;
        }
        if (got > 0) {
            result.output.append(buffer, static_cast<size_t>(got));
        }
    }
    close(output_);
    int status = 0;
    waitpid(pid_, &status, 0);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    pid_ = -1;
    return result;
}

int ClientMain(int argc, char** argv) {
    if (argc < 4) {
        return 1;
    }
    const auto kernels = static_cast<uint32_t>(std::atoi(argv[2]));
    for (int round = std::atoi(argv[3]); round > 0; --round) {
        if (const std::string wrong = soak::RunAndCheck(kernels); !wrong.empty()) {
            std::fprintf(stderr, "%s\n", wrong.c_str());
            return 1;
        }
    }
    return 0;
}

}  // namespace fornax::test
