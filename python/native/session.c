// fornax._core.Session: loading a model, what it says of itself, and the end of a session.
#include <stdlib.h>
#include <string.h>

#include "python/native/core.h"
#include "python/native/docs.h"

PyTypeObject* session_type;

// --- Loading -------------------------------------------------------------------------------------

typedef struct LoadRequest {
    const char* path;      // or
    fornax_piece* pieces;  // of a file; the memory of both is that of Task::keep
    size_t piece_count;
    fornax_options* options;
} LoadRequest;

static fornax_status Load(Task* task) {
    const LoadRequest* request = task->argument;
    fornax_model* model = NULL;
    const fornax_status status =
        request->path != NULL ? fornax_model_load(request->path, request->options, &model)
                              : fornax_model_load_pieces(request->pieces, request->piece_count,
                                                         request->options, &model);
    task->result = model;
    return status;
}

static void FreeRequest(LoadRequest* request) {
    if (request != NULL) {
        fornax_options_destroy(request->options);
        free(request->pieces);
        free(request);
    }
}

static void AbandonLoad(Task* task) {
    fornax_model_destroy(task->result);
    FreeRequest(task->argument);
}

// [(key, value), ...]
static int SetOptions(fornax_options* made, PyObject* options) {
    for (Py_ssize_t i = 0; i < PyList_Size(options); ++i) {
        const char* key = NULL;
        const char* value = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(options, i), "ss", &key, &value)) {
            return -1;
        }
        const fornax_status status = fornax_options_set(made, key, value);
        if (status != FORNAX_OK) {
            RaiseStatus(status);
            return -1;
        }
    }
    return 0;
}

// [(name, fornax_type, array), ...]
static int SetInputs(fornax_options* made, PyObject* inputs) {
    for (Py_ssize_t i = 0; i < PyList_Size(inputs); ++i) {
        const char* name = NULL;
        int type = 0;
        PyObject* object = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(inputs, i), "siO", &name, &type, &object)) {
            return -1;
        }
        Array array;
        if (ReadArray(object, (fornax_type)type, name, &array) != 0) {
            return -1;
        }
        const fornax_status status = fornax_options_set_input(made, name, &array.tensor);
        ReleaseArray(&array);
        if (status != FORNAX_OK) {
            RaiseStatus(status);
            return -1;
        }
    }
    return 0;
}

// bytes, or a tuple of (address, size, what keeps the memory) for each piece.
static int SetPieces(LoadRequest* request, PyObject* source) {
    const bool is_whole = PyBytes_Check(source);
    request->piece_count = is_whole ? 1 : (size_t)PyTuple_Size(source);
    request->pieces = calloc(request->piece_count + 1, sizeof(fornax_piece));
    if (request->pieces == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (is_whole) {
        request->pieces->data = PyBytes_AsString(source);
        request->pieces->size_bytes = (size_t)PyBytes_Size(source);
        return 0;
    }
    for (size_t i = 0; i < request->piece_count; ++i) {
        unsigned long long address = 0;
        Py_ssize_t size_bytes = 0;
        PyObject* owner = NULL;
        if (!PyArg_ParseTuple(PyTuple_GetItem(source, (Py_ssize_t)i), "KnO", &address, &size_bytes,
                              &owner)) {
            return -1;
        }
        request->pieces[i].data = (const void*)(uintptr_t)address;
        request->pieces[i].size_bytes = (size_t)size_bytes;
    }
    return 0;
}

static SharedModel* NewModel(PyObject* source, PyObject* options, PyObject* inputs) {
    SharedModel* shared = calloc(1, sizeof *shared);
    LoadRequest* request = calloc(1, sizeof *request);
    PyObject* keep = NULL;
    if (shared == NULL || request == NULL || (request->options = fornax_options_create()) == NULL) {
        PyErr_NoMemory();
    } else if (SetOptions(request->options, options) == 0 &&
               SetInputs(request->options, inputs) == 0) {
        if (PyBytes_Check(source) || PyTuple_Check(source)) {
            if (SetPieces(request, source) == 0) {
                keep = source;
                Py_INCREF(keep);
            }
        } else if (PyUnicode_FSConverter(source, &keep)) {
            request->path = PyBytes_AsString(keep);
        }
    }
    if (keep == NULL) {
        free(shared);
        FreeRequest(request);
        return NULL;
    }
    if (PyTuple_Check(source)) {
        shared->pieces = source;
        Py_INCREF(source);
    }
    Task task = {.work = Load, .abandon = AbandonLoad, .argument = request, .keep = keep};
    const int outcome = RunTask(&task);
    if (outcome != kTaskAbandoned) {  // else the load that goes on needs it
        FreeRequest(request);
    }
    if (outcome != 0) {
        Py_CLEAR(shared->pieces);
        free(shared);
        return NULL;
    }
    shared->model = task.result;
    shared->references = 1;
    return shared;
}

static void ReleaseModel(SharedModel* shared) {
    if (shared != NULL && --shared->references == 0) {
        PyThreadState* const released = PyEval_SaveThread();
        fornax_model_destroy(shared->model);
        PyEval_RestoreThread(released);
        Py_CLEAR(shared->pieces);
        free(shared);
    }
}

// The library's names are UTF-8, and models of strangers may hold anything.
static int SetName(PyObject** name, char** text, const char* from) {
    *text = strdup(from);
    *name = PyUnicode_DecodeUTF8(from, (Py_ssize_t)strlen(from), "surrogateescape");
    if (*text == NULL && *name != NULL) {
        PyErr_NoMemory();
    }
    return *text != NULL && *name != NULL ? 0 : -1;
}

static int Start(Session* self) {
    fornax_model* model = self->shared->model;
    const fornax_status status = fornax_session_create(model, &self->session);
    if (status != FORNAX_OK) {
        RaiseStatus(status);
        return -1;
    }
    self->input_count = fornax_model_input_count(model);
    self->output_count = fornax_model_output_count(model);
    self->inputs = calloc(self->input_count + 1, sizeof(Input));
    self->outputs = calloc(self->output_count + 1, sizeof(Output));
    self->lock = PyThread_allocate_lock();
    if (self->inputs == NULL || self->outputs == NULL || self->lock == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        fornax_port port;
        const fornax_status asked = fornax_model_input(model, i, &port);
        if (asked != FORNAX_OK) {
            RaiseStatus(asked);
            return -1;
        }
        self->inputs[i].type = port.type;
        self->has_strings |= port.type == FORNAX_STRING;
        if (SetName(&self->inputs[i].name, &self->inputs[i].text, port.name) != 0) {
            return -1;
        }
    }
    return 0;
}

// Session(source, options, inputs), or Session(session): another one of its model.
static PyObject* New(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject* source = NULL;
    PyObject* options = NULL;
    PyObject* inputs = NULL;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O|O!O!", &source, &PyList_Type, &options, &PyList_Type, &inputs)) {
        return NULL;
    }
    SharedModel* shared = NULL;
    if (PyObject_TypeCheck(source, session_type)) {
        shared = ((Session*)source)->shared;
        if (shared == NULL) {
            return RaiseError(FORNAX_INVALID_ARGUMENT, "The session is closed.");
        }
        if (((Session*)source)->generation != core_generation) {
            return RaiseError(FORNAX_DEVICE_LOST,
                              "The session is of the process that this one was forked from; load "
                              "the model again here.");
        }
        ++shared->references;
    } else if (inputs == NULL) {
        PyErr_SetString(PyExc_TypeError, "A session is made by fornax.load().");
        return NULL;
    } else if ((shared = NewModel(source, options, inputs)) == NULL) {
        return NULL;
    }
    const allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Session* self = (Session*)allocate(type, 0);
    if (self == NULL) {
        ReleaseModel(shared);
        return NULL;
    }
    self->shared = shared;
    self->generation = core_generation;
    if (Start(self) != 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject*)self;
}

// --- The end -------------------------------------------------------------------------------------

static void Close(Session* self) {
    fornax_session* session = self->session;
    SharedModel* shared = self->shared;
    self->session = NULL;
    self->shared = NULL;
    self->is_running = false;
    if (self->generation == core_generation) {
        if (session != NULL) {
            PyThreadState* const released = PyEval_SaveThread();
            fornax_session_destroy(session);
            PyEval_RestoreThread(released);
        }
        ReleaseModel(shared);
    }
    // In a child of fork what was the parent's is left alone: threads that it lacks may have had
    // its locks.
    for (size_t i = 0; self->inputs != NULL && i < self->input_count; ++i) {
        Py_CLEAR(self->inputs[i].owner);
        self->inputs[i].bound = NULL;
    }
    for (size_t i = 0; self->outputs != NULL && i < self->output_count; ++i) {
        Py_CLEAR(self->outputs[i].owner);
        Py_CLEAR(self->outputs[i].array);
        self->outputs[i].bound = NULL;
    }
    for (size_t i = 0; i < self->state_count; ++i) {
        Py_CLEAR(self->states[i].owner);
        self->states[i].bound = NULL;
    }
}

static void Dealloc(PyObject* object) {
    Session* self = (Session*)object;
    PyTypeObject* type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Close(self);
    for (size_t i = 0; self->inputs != NULL && i < self->input_count; ++i) {
        Py_CLEAR(self->inputs[i].name);
        free(self->inputs[i].text);
        free(self->inputs[i].value);
    }
    for (size_t i = 0; self->outputs != NULL && i < self->output_count; ++i) {
        Py_CLEAR(self->outputs[i].name);
        Py_CLEAR(self->outputs[i].shape);
        free(self->outputs[i].text);
    }
    free(self->inputs);
    free(self->outputs);
    FreeStates(self);
    if (self->lock != NULL) {
        PyThread_free_lock(self->lock);
    }
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static int Traverse(PyObject* object, visitproc visit, void* arg) {  // as Py_VISIT calls it
    Session* self = (Session*)object;
    Py_VISIT(Py_TYPE(object));
    for (size_t i = 0; self->inputs != NULL && i < self->input_count; ++i) {
        Py_VISIT(self->inputs[i].owner);
    }
    for (size_t i = 0; self->outputs != NULL && i < self->output_count; ++i) {
        Py_VISIT(self->outputs[i].owner);
        Py_VISIT(self->outputs[i].array);
    }
    for (size_t i = 0; i < self->state_count; ++i) {
        Py_VISIT(self->states[i].owner);
    }
    return 0;
}

int LockSession(Session* self) {
    const unsigned long thread = PyThread_get_thread_ident();
    if (self->session == NULL) {
        RaiseError(FORNAX_INVALID_ARGUMENT, "The session is closed.");
        return -1;
    }
    if (self->generation != core_generation) {
        RaiseError(FORNAX_DEVICE_LOST,
                   "The session is of the process that this one was forked from; load the model "
                   "again here.");
        return -1;
    }
    if (self->holder == thread) {
        RaiseError(FORNAX_INVALID_ARGUMENT,
                   "The session is used in the middle of another call of this thread.");
        return -1;
    }
    if (!PyThread_acquire_lock(self->lock, NOWAIT_LOCK)) {
        PyThreadState* const released = PyEval_SaveThread();
        PyThread_acquire_lock(self->lock, WAIT_LOCK);
        PyEval_RestoreThread(released);
    }
    if (self->session == NULL) {
        PyThread_release_lock(self->lock);
        RaiseError(FORNAX_INVALID_ARGUMENT, "The session is closed.");
        return -1;
    }
    self->holder = thread;
    return 0;
}

void UnlockSession(Session* self) {
    self->holder = 0;
    PyThread_release_lock(self->lock);
}

static PyObject* CloseMethod(PyObject* object, PyObject* unused) {
    Session* self = (Session*)object;
    (void)unused;
    if (self->session == NULL || self->generation != core_generation) {
        Close(self);
        Py_RETURN_NONE;
    }
    if (LockSession(self) != 0) {
        return NULL;
    }
    Close(self);
    UnlockSession(self);
    Py_RETURN_NONE;
}

static PyObject* Reset(PyObject* object, PyObject* unused) {
    Session* self = (Session*)object;
    (void)unused;
    if (LockSession(self) != 0) {
        return NULL;
    }
    PyObject* result = NULL;
    if (self->is_running) {
        RaiseError(FORNAX_INVALID_ARGUMENT, "A run of the session is under way: wait() ends it.");
    } else {
        UnbindAll(self);
        self->has_sizes = false;
        const fornax_status status = fornax_session_reset(self->session);
        if (status == FORNAX_OK) {
            Py_INCREF(Py_None);
            result = Py_None;
        } else {
            RaiseStatus(status);
        }
    }
    UnlockSession(self);
    return result;
}

// --- What the model says of itself ---------------------------------------------------------------

static PyObject* PortTuple(const fornax_port* port,
                           const fornax_model* model,
                           size_t index,
                           const char* (*name_of)(const fornax_model*, size_t, size_t)) {
    PyObject* shape = PyTuple_New((Py_ssize_t)port->rank);
    for (size_t axis = 0; shape != NULL && axis < port->rank; ++axis) {
        const char* name = name_of(model, index, axis);
        PyObject* dim = NULL;
        if (port->dims[axis] >= 0) {
            dim = PyLong_FromLongLong(port->dims[axis]);
        } else if (*name != '\0') {
            dim = PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
        } else {
            dim = PyUnicode_FromString("?");
        }
        if (dim == NULL || PyTuple_SetItem(shape, (Py_ssize_t)axis, dim) != 0) {
            Py_CLEAR(shape);
        }
    }
    PyObject* name =
        PyUnicode_DecodeUTF8(port->name, (Py_ssize_t)strlen(port->name), "surrogateescape");
    if (shape == NULL || name == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(name);
        return NULL;
    }
    return Py_BuildValue("(NiN)", name, (int)port->type, shape);
}

static PyObject* InputPorts(PyObject* object, PyObject* unused) {
    Session* self = (Session*)object;
    (void)unused;
    if (LockSession(self) != 0) {
        return NULL;
    }
    const fornax_model* model = self->shared->model;
    PyObject* ports = PyList_New(0);
    for (size_t i = 0; ports != NULL && i < self->input_count; ++i) {
        fornax_port port;
        const fornax_status status = fornax_model_input(model, i, &port);
        PyObject* made = status == FORNAX_OK
                             ? PortTuple(&port, model, i, fornax_model_input_dim_name)
                             : RaiseStatus(status);
        if (made == NULL || PyList_Append(ports, made) != 0) {
            Py_CLEAR(ports);
        }
        Py_XDECREF(made);
    }
    UnlockSession(self);
    return ports;
}

// Asking for outputs may compile the model.
static fornax_status AskOutputs(Task* task) {
    const fornax_model* model = ((const SharedModel*)task->argument)->model;
    fornax_port port;
    return fornax_model_output_count(model) == 0 ? FORNAX_OK : fornax_model_output(model, 0, &port);
}

static void AbandonOutputs(Task* task) {
    const PyGILState_STATE state = PyGILState_Ensure();
    ReleaseModel(task->argument);
    PyGILState_Release(state);
}

static PyObject* OutputPorts(PyObject* object, PyObject* unused) {
    Session* self = (Session*)object;
    (void)unused;
    if (LockSession(self) != 0) {
        return NULL;
    }
    // Compiling takes long, and models may be used by several threads: the session is free.
    SharedModel* shared = self->shared;
    ++shared->references;
    UnlockSession(self);
    Task task = {.work = AskOutputs, .abandon = AbandonOutputs, .argument = shared};
    const int outcome = RunTask(&task);
    if (outcome == kTaskAbandoned) {
        return NULL;
    }
    const fornax_model* model = shared->model;
    PyObject* ports = outcome != 0 ? NULL : PyList_New(0);
    for (size_t i = 0; ports != NULL && i < fornax_model_output_count(model); ++i) {
        fornax_port port;
        const fornax_status status = fornax_model_output(model, i, &port);
        PyObject* made = status == FORNAX_OK
                             ? PortTuple(&port, model, i, fornax_model_output_dim_name)
                             : RaiseStatus(status);
        if (made == NULL || PyList_Append(ports, made) != 0) {
            Py_CLEAR(ports);
        }
        Py_XDECREF(made);
    }
    ReleaseModel(shared);
    return ports;
}

int LearnOutputs(Session* self) {
    for (size_t i = 0; !self->knows_outputs && i < self->output_count; ++i) {
        fornax_port port;
        const fornax_status status = fornax_model_output(self->shared->model, i, &port);
        if (status != FORNAX_OK) {
            RaiseStatus(status);
            return -1;
        }
        Output* output = &self->outputs[i];
        output->type = port.type;
        self->has_strings |= port.type == FORNAX_STRING;
        if (output->name == NULL && SetName(&output->name, &output->text, port.name) != 0) {
            return -1;
        }
    }
    self->knows_outputs = true;
    return 0;
}

static PyObject* DeviceName(PyObject* object, void* unused) {
    Session* self = (Session*)object;
    (void)unused;
    if (self->shared == NULL) {
        return RaiseError(FORNAX_INVALID_ARGUMENT, "The session is closed.");
    }
    const char* name = fornax_model_device(self->shared->model);
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

static PyObject* InPlace(PyObject* object, void* unused) {
    Session* self = (Session*)object;
    (void)unused;
    PyObject* names = PyList_New(0);
    for (size_t i = 0; names != NULL && i < self->input_count; ++i) {
        if (self->inputs[i].bound != NULL && PyList_Append(names, self->inputs[i].name) != 0) {
            Py_CLEAR(names);
        }
    }
    for (size_t i = 0; names != NULL && i < self->output_count; ++i) {
        if (self->outputs[i].bound != NULL && PyList_Append(names, self->outputs[i].name) != 0) {
            Py_CLEAR(names);
        }
    }
    return names;
}

// What the model became for the sizes of the last run, as JSON.
static PyObject* Report(PyObject* object, PyObject* unused) {
    Session* self = (Session*)object;
    (void)unused;
    if (LockSession(self) != 0) {
        return NULL;
    }
    const char* text = NULL;
    const fornax_status status = fornax_session_report(self->session, &text);
    PyObject* result = status == FORNAX_OK
                           ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
                           : RaiseStatus(status);
    UnlockSession(self);
    return result;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))SessionRun, METH_VARARGS | METH_KEYWORDS, kRunDoc},
    {"start", (PyCFunction)(void (*)(void))SessionStart, METH_VARARGS | METH_KEYWORDS, kStartDoc},
    {"wait", (PyCFunction)(void (*)(void))SessionWait, METH_VARARGS | METH_KEYWORDS, kWaitDoc},
    {"_profile", (PyCFunction)(void (*)(void))SessionProfile, METH_VARARGS | METH_KEYWORDS, NULL},
    {"_run_tensors", SessionRunTensors, METH_VARARGS, NULL},
    {"_set_states", SessionSetStates, METH_VARARGS, NULL},
    {"_report", Report, METH_NOARGS, NULL},
    {"reset", Reset, METH_NOARGS, kResetDoc},
    {"close", CloseMethod, METH_NOARGS, kCloseDoc},
    {"_input_ports", InputPorts, METH_NOARGS, NULL},
    {"_output_ports", OutputPorts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef properties[] = {{"device", DeviceName, NULL, kDeviceDoc, NULL},
                                   {"in_place", InPlace, NULL, kInPlaceDoc, NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot slots[] = {{Py_tp_new, New},
                              {Py_tp_dealloc, Dealloc},
                              {Py_tp_traverse, Traverse},
                              {Py_tp_call, SessionCall},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, properties},
                              {0, NULL}};

static PyType_Spec spec = {.name = "fornax._core.Session",
                           .basicsize = sizeof(Session),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           .slots = slots};

int AddSessionType(PyObject* module) {
    session_type = (PyTypeObject*)PyType_FromSpec(&spec);
    if (session_type == NULL) {
        return -1;
    }
    Py_INCREF(session_type);
    if (PyModule_AddObject(module, "Session", (PyObject*)session_type) != 0) {
        Py_DECREF(session_type);
        return -1;
    }
    return 0;
}
