// Work of the library in threads of its own, so that Ctrl-C ends the wait for a model that is being
// compiled. The work itself cannot be stopped: it goes on, and what comes out of it is freed.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "python/native/core.h"

// How often the waiting thread looks for signals.
enum { kPollNanoseconds = 20 * 1000 * 1000 };

typedef struct Shared {
    Task task;
    bool is_done;
    bool is_abandoned;
} Shared;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int abandoned_count;

static void KeepMessage(Task* task) {
    task->message[0] = '\0';
    if (task->status != FORNAX_OK) {
        strncpy(task->message, fornax_error_message(), sizeof task->message - 1);
        task->message[sizeof task->message - 1] = '\0';
    }
}

static void ReleaseAbandoned(Shared* shared) {
    if (shared->task.abandon != NULL) {
        shared->task.abandon(&shared->task);
    }
    // The interpreter is there: before it ends, it waits (WaitForTasks).
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(shared->task.keep);
    PyGILState_Release(state);
    free(shared);
    pthread_mutex_lock(&mutex);
    --abandoned_count;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void* Work(void* argument) {
    Shared* shared = argument;
    shared->task.status = shared->task.work(&shared->task);
    KeepMessage(&shared->task);
    pthread_mutex_lock(&mutex);
    shared->is_done = true;
    const bool is_abandoned = shared->is_abandoned;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    if (is_abandoned) {
        ReleaseAbandoned(shared);
    }
    return NULL;
}

static struct timespec Soon(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += kPollNanoseconds;
    if (time.tv_nsec >= 1000 * 1000 * 1000) {
        time.tv_nsec -= 1000 * 1000 * 1000;
        ++time.tv_sec;
    }
    return time;
}

// With the mutex held: whether it is done soon.
static bool WaitSoon(const Shared* shared) {
    const struct timespec until = Soon();
    int result = 0;
    while (!shared->is_done && result != ETIMEDOUT) {
        result = pthread_cond_timedwait(&changed, &mutex, &until);
    }
    return shared->is_done;
}

static int Finish(Task* task, Shared* shared) {
    task->status = shared->task.status;
    task->result = shared->task.result;
    memcpy(task->message, shared->task.message, sizeof task->message);
    free(shared);
    Py_CLEAR(task->keep);
    if (task->status != FORNAX_OK) {
        RaiseError(task->status, "%s", task->message);
        return -1;
    }
    return 0;
}

int RunTask(Task* task) {
    Shared* shared = calloc(1, sizeof *shared);
    if (shared == NULL) {
        Py_CLEAR(task->keep);
        PyErr_NoMemory();
        return -1;
    }
    shared->task = *task;
    pthread_t thread;
    if (pthread_create(&thread, NULL, Work, shared) != 0) {
        // Without Ctrl-C, then.
        PyThreadState* const released = PyEval_SaveThread();
        shared->task.status = shared->task.work(&shared->task);
        KeepMessage(&shared->task);
        PyEval_RestoreThread(released);
        return Finish(task, shared);
    }
    pthread_detach(thread);
    while (true) {
        bool is_done = false;
        PyThreadState* const released = PyEval_SaveThread();
        pthread_mutex_lock(&mutex);
        is_done = WaitSoon(shared);
        pthread_mutex_unlock(&mutex);
        PyEval_RestoreThread(released);
        if (is_done) {
            return Finish(task, shared);
        }
        if (PyErr_CheckSignals() != 0) {
            break;
        }
    }
    pthread_mutex_lock(&mutex);
    const bool is_done = shared->is_done;
    shared->is_abandoned = true;
    ++abandoned_count;
    pthread_mutex_unlock(&mutex);
    if (is_done) {  // meanwhile
        PyThreadState* const released = PyEval_SaveThread();
        ReleaseAbandoned(shared);
        PyEval_RestoreThread(released);
    }
    return kTaskAbandoned;
}

int WaitForTasks(void) {
    while (true) {
        int count = 0;
        PyThreadState* const released = PyEval_SaveThread();
        const struct timespec until = Soon();
        pthread_mutex_lock(&mutex);
        if (abandoned_count != 0) {
            pthread_cond_timedwait(&changed, &mutex, &until);
        }
        count = abandoned_count;
        pthread_mutex_unlock(&mutex);
        PyEval_RestoreThread(released);
        if (count == 0) {
            return 0;
        }
        if (PyErr_CheckSignals() != 0) {
            return -1;
        }
    }
}

void ForgetTasks(void) {
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&changed, NULL);
    abandoned_count = 0;
}
