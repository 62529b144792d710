// What a run needs first: its sizes, set only when they change, and its inputs and outputs: bound
// where that saves a copy, in the library's memory where they are small.
#include <stdlib.h>
#include <string.h>

#include "python/native/core.h"

// Memory from which on a binding pays even if it is for one run. What is smaller is bound when a
// second run in sequence uses it: making a binding takes as long as copying about this much.
enum { kBindAtOnceBytes = 1 << 20, kBindAgainBytes = 1 << 12 };
enum { kStackPorts = 16 };

// --- Sizes ---------------------------------------------------------------------------------------

static bool HasTheseSizes(const Session* self, const Array* arrays) {
    if (!self->has_sizes) {
        return false;
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        const Input* input = &self->inputs[i];
        const fornax_tensor* tensor = &arrays[i].tensor;
        if (input->rank != tensor->rank ||
            memcmp(input->dims, tensor->dims, tensor->rank * sizeof(int64_t)) != 0 ||
            (input->decides && (input->value == NULL ||
                                memcmp(input->value, tensor->data, tensor->size_bytes) != 0))) {
            return false;
        }
    }
    return true;
}

void UnbindAll(Session* self) {
    for (size_t i = 0; i < self->input_count; ++i) {
        Input* input = &self->inputs[i];
        if (input->bound != NULL) {
            (void)fornax_session_bind_input(self->session, i, NULL, 0, NULL);
            input->bound = NULL;
        }
        input->memory = NULL;
        input->given = NULL;
        Py_CLEAR(input->owner);
    }
    for (size_t i = 0; i < self->output_count; ++i) {
        Output* output = &self->outputs[i];
        if (output->bound != NULL) {
            (void)fornax_session_bind_output(self->session, i, NULL, 0, NULL);
            output->bound = NULL;
        }
        output->given = NULL;
        Py_CLEAR(output->owner);
    }
    UnbindStates(self);
    ForgetOutputs(self);
}

typedef struct SizesRequest {
    Session* self;
    size_t count;
    fornax_tensor* tensors;
} SizesRequest;

static fornax_status SetSizesWork(Task* task) {
    const SizesRequest* request = task->argument;
    return fornax_session_set_sizes(request->self->session, request->tensors, request->count);
}

static void AbandonSizes(Task* task) {
    SizesRequest* request = task->argument;
    UnlockSession(request->self);
    free(request->tensors);
    free(request);
}

// The session and the arrays, which work goes on with that nobody waits for.
static PyObject* Everything(Session* self, const Array* arrays) {
    PyObject* all = PyTuple_New((Py_ssize_t)self->input_count + 1);
    Py_INCREF((PyObject*)self);
    if (all == NULL || PyTuple_SetItem(all, 0, (PyObject*)self) != 0) {
        Py_XDECREF(all);
        return NULL;
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        Py_INCREF(arrays[i].owner);
        if (PyTuple_SetItem(all, (Py_ssize_t)i + 1, arrays[i].owner) != 0) {
            Py_DECREF(all);
            return NULL;
        }
    }
    return all;
}

static int KeepSizes(Session* self, const Array* arrays) {
    for (size_t i = 0; i < self->output_count; ++i) {
        fornax_tensor tensor;
        self->outputs[i].varies |=
            fornax_session_output(self->session, i, &tensor) == FORNAX_NOT_FOUND;
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        Input* input = &self->inputs[i];
        const fornax_tensor* tensor = &arrays[i].tensor;
        input->rank = tensor->rank;
        memcpy(input->dims, tensor->dims, tensor->rank * sizeof(int64_t));
        input->decides = fornax_session_input_decides(self->session, i) != 0;
        free(input->value);
        input->value = NULL;
        if (input->decides && tensor->type != FORNAX_STRING) {
            input->value = malloc(tensor->size_bytes + 1);
            if (input->value == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            memcpy(input->value, tensor->data, tensor->size_bytes);
        }
    }
    self->has_sizes = true;
    return LearnOutputs(self);
}

static uint64_t HashOf(const Session* self, const Array* arrays) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);  // FNV-1a
    for (size_t i = 0; i < self->input_count; ++i) {
        const fornax_tensor* tensor = &arrays[i].tensor;
        for (size_t axis = 0; axis < tensor->rank; ++axis) {
            hash = (hash ^ (uint64_t)tensor->dims[axis]) * UINT64_C(0x100000001b3);
        }
        hash = (hash ^ tensor->rank) * UINT64_C(0x100000001b3);
    }
    return hash == 0 ? 1 : hash;
}

// Whether the sizes were set before, so that nothing is to be compiled most likely.
static bool WereSet(const Session* self, uint64_t hash) {
    for (size_t i = 0; i < kKnownSizes; ++i) {
        if (self->known[i] == hash) {
            return true;
        }
    }
    return false;
}

static int SetSizesAtOnce(Session* self, fornax_tensor* tensors) {
    fornax_status status = FORNAX_OK;
    PyThreadState* const released = PyEval_SaveThread();
    status = fornax_session_set_sizes(self->session, tensors, self->input_count);
    PyEval_RestoreThread(released);
    if (status != FORNAX_OK) {
        RaiseStatus(status);
        return -1;
    }
    return 0;
}

// In a thread that Ctrl-C ends the wait for.
static int SetSizesInTask(Session* self, const Array* arrays, fornax_tensor* tensors) {
    SizesRequest* request = calloc(1, sizeof *request);
    PyObject* keep = Everything(self, arrays);
    if (request == NULL || keep == NULL) {
        free(request);
        free(tensors);
        Py_XDECREF(keep);
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return -1;
    }
    *request = (SizesRequest){self, self->input_count, tensors};
    Task task = {.work = SetSizesWork, .abandon = AbandonSizes, .argument = request, .keep = keep};
    const int outcome = RunTask(&task);
    if (outcome == kTaskAbandoned) {
        self->holder = 0;
        return outcome;
    }
    free(request);
    free(tensors);
    return outcome;
}

int SetSizes(Session* self, const Array* arrays) {
    if (HasTheseSizes(self, arrays)) {
        return 0;
    }
    UnbindAll(self);
    self->has_sizes = false;
    fornax_tensor* tensors = calloc(self->input_count + 1, sizeof *tensors);
    if (tensors == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        tensors[i] = arrays[i].tensor;
    }
    const uint64_t hash = HashOf(self, arrays);
    int outcome = 0;
    // Strings are in memory that lives as long as this call only.
    if (self->has_strings || WereSet(self, hash)) {
        outcome = SetSizesAtOnce(self, tensors);
        free(tensors);
    } else {
        outcome = SetSizesInTask(self, arrays, tensors);
    }
    if (outcome != 0) {
        return outcome;
    }
    if (!WereSet(self, hash)) {
        self->known[self->next_known++ % kKnownSizes] = hash;
    }
    return KeepSizes(self, arrays);
}

// --- Binding and copying -------------------------------------------------------------------------

static bool Pays(const void* given, const fornax_tensor* tensor) {
    return tensor->size_bytes >= kBindAtOnceBytes ||
           (tensor->size_bytes >= kBindAgainBytes && given == tensor->data);
}

// Without the GIL. Where an owner is not needed any more it is left in `old`.
static fornax_status GiveInput(Session* self, size_t index, Array* array, PyObject** old) {
    Input* input = &self->inputs[index];
    const fornax_tensor* tensor = &array->tensor;
    if (input->bound != NULL && input->bound == tensor->data) {
        return FORNAX_OK;
    }
    if (input->bound != NULL) {
        ForgetOutputs(self);
        const fornax_status status = fornax_session_bind_input(self->session, index, NULL, 0, NULL);
        if (status != FORNAX_OK) {
            return status;
        }
        input->bound = NULL;
        input->memory = NULL;
        *old = input->owner;
        input->owner = NULL;
    }
    if (Pays(input->given, tensor)) {
        int in_place = 0;
        ForgetOutputs(self);  // an output may be an input as it is
        fornax_status status = fornax_session_bind_input(self->session, index, tensor->data,
                                                         tensor->size_bytes, &in_place);
        if (status == FORNAX_OK && in_place) {
            input->bound = tensor->data;
            input->owner = array->owner;
            array->owner = NULL;
            return FORNAX_OK;
        }
        if (status == FORNAX_OK) {
            status = fornax_session_bind_input(self->session, index, NULL, 0, NULL);
        }
        if (status != FORNAX_OK) {
            return status;
        }
    }
    input->given = tensor->data;
    if (input->memory == NULL) {
        size_t size = 0;
        const fornax_status status =
            fornax_session_input_memory(self->session, index, &input->memory, &size);
        if (status != FORNAX_OK) {
            return status;
        }
    }
    if (tensor->size_bytes != 0) {
        memcpy(input->memory, tensor->data, tensor->size_bytes);
    }
    return FORNAX_OK;
}

static fornax_status GiveOutput(Session* self, size_t index, Array* array, PyObject** old) {
    Output* output = &self->outputs[index];
    const fornax_tensor* tensor = &array->tensor;
    if (output->bound != NULL && output->bound == tensor->data) {
        return FORNAX_OK;
    }
    if (output->bound != NULL) {
        ForgetOutputs(self);
        const fornax_status status =
            fornax_session_bind_output(self->session, index, NULL, 0, NULL);
        if (status != FORNAX_OK) {
            return status;
        }
        output->bound = NULL;
        *old = output->owner;
        output->owner = NULL;
    }
    if (output->array != NULL && Pays(output->given, tensor)) {
        int in_place = 0;
        ForgetOutputs(self);
        fornax_status status = fornax_session_bind_output(self->session, index, tensor->data,
                                                          tensor->size_bytes, &in_place);
        if (status == FORNAX_OK && in_place) {
            output->bound = tensor->data;
            output->owner = array->owner;
            array->owner = NULL;
            return FORNAX_OK;
        }
        if (status == FORNAX_OK) {
            status = fornax_session_bind_output(self->session, index, NULL, 0, NULL);
        }
        if (status != FORNAX_OK) {
            return status;
        }
    }
    output->given = tensor->data;
    return FORNAX_OK;
}

const fornax_tensor* OutputOf(Session* self, size_t index) {
    Output* output = &self->outputs[index];
    if (!output->is_known) {
        const fornax_status status = fornax_session_output(self->session, index, &output->known);
        if (status != FORNAX_OK) {
            RaiseStatus(status);
            return NULL;
        }
        output->is_known = !output->varies;
    }
    return &output->known;
}

void ForgetOutputs(Session* self) {
    for (size_t i = 0; i < self->output_count; ++i) {
        self->outputs[i].is_known = false;
    }
}

int CheckOutputs(Session* self, const Array* arrays, bool after_run) {
    for (size_t i = 0; i < self->output_count; ++i) {
        Output* output = &self->outputs[i];
        const fornax_tensor* given = &arrays[i].tensor;
        if (output->array == NULL || (output->varies && !after_run) ||
            (!output->is_known &&
             fornax_session_output(self->session, i, &output->known) != FORNAX_OK)) {
            continue;
        }
        const fornax_tensor* wanted = &output->known;
        if (wanted->rank != given->rank ||
            memcmp(wanted->dims, given->dims, wanted->rank * sizeof(int64_t)) != 0) {
            char wanted_text[kTypeTextBytes], given_text[kTypeTextBytes];
            RaiseError(FORNAX_INVALID_ARGUMENT,
                       "The output %s is %s; the array that it is to be written to is %s.",
                       output->text,
                       TypeText(wanted->type, wanted->dims, wanted->rank, wanted_text),
                       TypeText(wanted->type, given->dims, given->rank, given_text));
            return -1;
        }
    }
    return 0;
}

int Prepare(Session* self, Array* inputs, Array* outputs, fornax_status (*run)(fornax_session*)) {
    if (CheckOutputs(self, outputs, false) != 0) {
        return -1;
    }
    PyObject* few[kStackPorts] = {NULL};
    const size_t count = self->input_count + self->output_count;
    PyObject** old = count <= kStackPorts ? few : calloc(count, sizeof *old);
    if (old == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    fornax_status status = FORNAX_OK;
    PyThreadState* const released = PyEval_SaveThread();
    for (size_t i = 0; status == FORNAX_OK && i < self->input_count; ++i) {
        status = GiveInput(self, i, &inputs[i], &old[i]);
    }
    for (size_t i = 0; status == FORNAX_OK && i < self->output_count; ++i) {
        status = GiveOutput(self, i, &outputs[i], &old[self->input_count + i]);
    }
    if (status == FORNAX_OK) {
        status = run(self->session);
    }
    PyEval_RestoreThread(released);

    // Before anything else calls the library, which would replace its sentence.
    if (status != FORNAX_OK) {
        RaiseStatus(status);
    }
    for (size_t i = 0; i < count; ++i) {
        Py_XDECREF(old[i]);
    }
    if (old != few) {
        free(old);
    }
    return status == FORNAX_OK ? 0 : -1;
}
