#include "base/large_stack.h"

#include <pthread.h>
#include <signal.h>

#include <exception>

namespace fornax {

namespace {

struct Call {
    const std::function<void()>& action;
    std::exception_ptr thrown;
};

void* Run(void* argument) {
    auto& call = *static_cast<Call*>(argument);
    try {
        call.action();
    } catch (...) {
        call.thrown = std::current_exception();
    }
    return nullptr;
}

bool Start(Call& call, pthread_t& thread) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    // Signals belong to the application's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_attr_setstacksize(&attributes, kLargeStackBytes) == 0 &&
                         pthread_create(&thread, &attributes, Run, &call) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return started;
}

}  // namespace

void RunOnLargeStack(const std::function<void()>& action) {
    Call call{action, nullptr};
    pthread_t thread;
    if (!Start(call, thread)) {
        action();
        return;
    }
    pthread_join(thread, nullptr);
    if (call.thrown) {
        std::rethrow_exception(call.thrown);
    }
}

}  // namespace fornax
