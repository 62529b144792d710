// States of a model that lie in memory of the caller: tensors that a graph of PyTorch changes in
// place.
#include <stdlib.h>
#include <string.h>

#include "python/native/core.h"

void FreeStates(Session* self) {
    for (size_t i = 0; i < self->state_count; ++i) {
        Py_CLEAR(self->states[i].name);
        Py_CLEAR(self->states[i].owner);
        free(self->states[i].text);
    }
    free(self->states);
    self->states = NULL;
    self->state_count = 0;
}

PyObject* SessionSetStates(PyObject* object, PyObject* args) {
    Session* self = (Session*)object;
    PyObject* list = NULL;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list) || LockSession(self) != 0) {
        return NULL;
    }
    UnbindStates(self);
    FreeStates(self);
    const size_t count = (size_t)PyList_Size(list);
    self->states = calloc(count + 1, sizeof *self->states);
    if (self->states == NULL) {
        PyErr_NoMemory();
    }
    for (size_t i = 0; self->states != NULL && !PyErr_Occurred() && i < count; ++i) {
        const char* text = NULL;
        int type = 0;
        State* state = &self->states[i];
        if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)i), "si", &text, &type)) {
            break;
        }
        self->state_count = i + 1;
        state->type = (fornax_type)type;
        state->text = strdup(text);
        state->name = PyUnicode_FromString(text);
        if (state->text == NULL) {
            PyErr_NoMemory();
        }
    }
    UnlockSession(self);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

void UnbindStates(Session* self) {
    for (size_t i = 0; i < self->state_count; ++i) {
        State* state = &self->states[i];
        if (state->bound != NULL) {
            (void)fornax_session_bind_state(self->session, state->text, NULL, 0, NULL);
            state->bound = NULL;
        }
        Py_CLEAR(state->owner);
    }
}

// The session copies where the device cannot use the memory, so every state is bound once.
int BindStates(Session* self, Array* arrays) {
    for (size_t i = 0; i < self->state_count; ++i) {
        State* state = &self->states[i];
        const fornax_tensor* tensor = &arrays[i].tensor;
        if (state->bound != NULL && state->bound == tensor->data) {
            continue;
        }
        ForgetOutputs(self);
        const fornax_status status = fornax_session_bind_state(
            self->session, state->text, tensor->data, tensor->size_bytes, NULL);
        state->bound = status == FORNAX_OK ? tensor->data : NULL;
        Py_CLEAR(state->owner);
        if (status != FORNAX_OK) {
            RaiseStatus(status);
            return -1;
        }
        state->owner = arrays[i].owner;
        arrays[i].owner = NULL;
    }
    return 0;
}
