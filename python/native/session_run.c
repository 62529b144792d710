// Runs of a session, and what comes out of them.
#include <stdlib.h>
#include <string.h>

#include "python/native/core.h"

// Copies of more leave other threads of Python running.
enum { kCopyWithoutLockBytes = 1 << 16 };
enum { kStackPorts = 8 };

// --- Results -------------------------------------------------------------------------------------

static void CopyBytes(void* to, const void* from, size_t bytes) {
    if (bytes == 0) {
        return;
    }
    if (bytes < kCopyWithoutLockBytes) {
        memcpy(to, from, bytes);
        return;
    }
    PyThreadState* const released = PyEval_SaveThread();
    memcpy(to, from, bytes);
    PyEval_RestoreThread(released);
}

// The output of the last run; a new reference.
static PyObject* Take(Session* self, size_t index, Array* array) {
    Output* output = &self->outputs[index];
    const fornax_tensor* from = OutputOf(self, index);
    if (from == NULL) {
        return NULL;
    }
    // Another thread may use the session while large bytes are copied.
    const fornax_tensor tensor = *from;
    if (output->array != NULL) {
        if (CheckOutputs(self, array - index, true) != 0) {  // its size may be known only now
            return NULL;
        }
        if (output->bound == NULL) {
            CopyBytes(array->tensor.data, tensor.data, tensor.size_bytes);
        }
        PyObject* result = output->array;
        output->array = NULL;
        return result;
    }
    if (output->shape == NULL || output->rank != tensor.rank ||
        memcmp(output->dims, tensor.dims, tensor.rank * sizeof(int64_t)) != 0) {
        Py_CLEAR(output->shape);
        output->shape = ShapeOf(tensor.dims, tensor.rank);
        output->rank = tensor.rank;
        memcpy(output->dims, tensor.dims, tensor.rank * sizeof(int64_t));
        if (output->shape == NULL) {
            return NULL;
        }
    }
    void* data = NULL;
    PyObject* made = NewArray(tensor.type, output->shape, &data);
    if (made != NULL) {
        CopyBytes(data, tensor.data, tensor.size_bytes);
    }
    return made;
}

static PyObject* TakeAll(Session* self, Array* arrays) {
    PyObject* results = PyDict_New();
    for (size_t i = 0; results != NULL && i < self->output_count; ++i) {
        PyObject* made = Take(self, i, &arrays[i]);
        if (made == NULL || PyDict_SetItem(results, self->outputs[i].name, made) != 0) {
            Py_CLEAR(results);
        }
        Py_XDECREF(made);
    }
    return results;
}

// Models with strings, which are not bound: all in one call, with copies.
static PyObject* RunCopying(Session* self, const Array* inputs) {
    fornax_tensor* tensors = calloc(self->input_count + 1, sizeof *tensors);
    fornax_tensor* results = calloc(self->output_count + 1, sizeof *results);
    if (tensors == NULL || results == NULL) {
        free(tensors);
        free(results);
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        tensors[i] = inputs[i].tensor;
    }
    fornax_status status = FORNAX_OK;
    PyThreadState* const released = PyEval_SaveThread();
    status = fornax_run(self->session, tensors, self->input_count, results, self->output_count);
    PyEval_RestoreThread(released);
    PyObject* made = status == FORNAX_OK ? PyDict_New() : RaiseStatus(status);
    for (size_t i = 0; made != NULL && i < self->output_count; ++i) {
        PyObject* array = NULL;
        if (results[i].type == FORNAX_STRING) {
            array = NewStrings(&results[i]);
        } else {
            void* data = NULL;
            PyObject* shape = ShapeOf(results[i].dims, results[i].rank);
            array = shape == NULL ? NULL : NewArray(results[i].type, shape, &data);
            Py_XDECREF(shape);
            if (array != NULL) {
                CopyBytes(data, results[i].data, results[i].size_bytes);
            }
        }
        if (array == NULL || PyDict_SetItem(made, self->outputs[i].name, array) != 0) {
            Py_CLEAR(made);
        }
        Py_XDECREF(array);
    }
    for (size_t i = 0; i < self->output_count; ++i) {
        fornax_tensor_release(&results[i]);
    }
    free(tensors);
    free(results);
    return made;
}

// --- The methods ---------------------------------------------------------------------------------

typedef enum Kind { kRun, kStart, kProfile } Kind;

// What a run is given beside its inputs.
typedef struct Request {
    Kind kind;
    PyObject* out;      // a mapping or None, or
    PyObject* tensors;  // the list of all outputs, and
    Array* states;      // read before
} Request;

static PyObject* Steps(const Session* self) {
    PyObject* list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < fornax_session_step_count(self->session); ++i) {
        fornax_step step;
        const fornax_status status = fornax_session_step(self->session, i, &step);
        PyObject* made =
            status != FORNAX_OK
                ? RaiseStatus(status)
                : Py_BuildValue("(sdisLLL)", step.name, step.nanoseconds, step.on_host, step.reason,
                                (long long)step.operations, (long long)step.bytes_read,
                                (long long)step.bytes_written);
        if (made == NULL || PyList_Append(list, made) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(made);
    }
    return list;
}

static void DropOut(Session* self) {
    for (size_t i = 0; i < self->output_count; ++i) {
        Py_CLEAR(self->outputs[i].array);
    }
}

static int ReadOut(Session* self, const Request* request, Array* outputs) {
    return request->tensors != NULL ? ReadOutputTensors(self, request->tensors, outputs)
                                    : ReadOutputs(self, request->out, outputs);
}

// The results of a run into tensors are these.
static PyObject* Finish(Session* self, const Request* request, Array* outputs) {
    PyObject* results = NULL;
    if (request->tensors == NULL) {
        return TakeAll(self, outputs);
    }
    for (size_t i = 0; i < self->output_count; ++i) {
        PyObject* made = Take(self, i, &outputs[i]);
        if (made == NULL) {
            return NULL;
        }
        Py_DECREF(made);
    }
    results = Py_None;
    Py_INCREF(results);
    return results;
}

// With the lock, which it gives up.
static PyObject* RunLocked(Session* self, Array* inputs, const Request* request) {
    const Kind kind = request->kind;
    PyObject* result = NULL;
    Array few[kStackPorts];
    Array* outputs =
        self->output_count <= kStackPorts ? few : calloc(self->output_count, sizeof *outputs);
    int outcome = -1;
    if (outputs == NULL) {
        PyErr_NoMemory();
    } else if (self->is_running) {
        RaiseError(FORNAX_INVALID_ARGUMENT, "A run of the session is under way: wait() ends it.");
    } else {
        outcome = SetSizes(self, inputs);
    }
    bool has_read = false;
    if (outcome == 0) {
        if (self->has_strings && kind == kRun) {
            has_read = true;
            outcome = ReadOut(self, request, outputs);
            result = outcome == 0 ? RunCopying(self, inputs) : NULL;
        } else if (self->has_strings) {
            RaiseError(FORNAX_UNSUPPORTED,
                       "Runs of models with strings are not started or profiled: run() runs them.");
        } else {
            has_read = true;
            outcome = ReadOut(self, request, outputs);
            if (outcome == 0 && request->states != NULL) {
                outcome = BindStates(self, request->states);
            }
            if (outcome == 0) {
                outcome = Prepare(self, inputs, outputs,
                                  kind == kRun     ? fornax_session_run
                                  : kind == kStart ? fornax_session_start
                                                   : fornax_session_profile);
            }
            if (outcome == 0 && (kind == kRun || request->tensors != NULL)) {
                result = Finish(self, request, outputs);
            } else if (outcome == 0 && kind == kProfile) {
                result = Steps(self);
            } else if (outcome == 0) {
                self->is_running = true;
                Py_INCREF(Py_None);
                result = Py_None;
            }
        }
    }
    if (has_read) {
        ReleaseArrays(outputs, self->output_count);
    }
    if (outcome != kTaskAbandoned) {
        if (!self->is_running) {
            DropOut(self);
        }
        UnlockSession(self);
    }
    if (outputs != few) {
        free(outputs);
    }
    return result;
}

// `args` are the inputs in order; else `inputs` is a mapping.
static PyObject* Execute(Session* self,
                         PyObject* inputs,
                         PyObject* args,
                         PyObject* out,
                         Kind kind) {
    Array few[kStackPorts];
    if (self->inputs == NULL) {
        return RaiseError(FORNAX_INVALID_ARGUMENT, "The session is closed.");
    }
    Array* arrays =
        self->input_count <= kStackPorts ? few : calloc(self->input_count, sizeof *arrays);
    if (arrays == NULL) {
        return PyErr_NoMemory();
    }
    PyObject* result = NULL;
    const int read =
        args != NULL ? ReadPositional(self, args, arrays) : ReadInputs(self, inputs, arrays);
    if (read == 0 && LockSession(self) == 0) {
        const Request request = {kind, out, NULL, NULL};
        result = RunLocked(self, arrays, &request);
    }
    ReleaseArrays(arrays, self->input_count);
    if (arrays != few) {
        free(arrays);
    }
    return result;
}

static PyObject* ParseAndExecute(PyObject* self, PyObject* args, PyObject* kwargs, Kind kind) {
    static char* names[] = {"inputs", "out", NULL};
    static char* input_names[] = {"inputs", NULL};
    PyObject* inputs = NULL;
    PyObject* out = NULL;
    const int parsed = kind == kProfile
                           ? PyArg_ParseTupleAndKeywords(args, kwargs, "O", input_names, &inputs)
                           : PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", names, &inputs, &out);
    if (!parsed) {
        return NULL;
    }
    return Execute((Session*)self, inputs, NULL, out, kind);
}

PyObject* SessionRun(PyObject* self, PyObject* args, PyObject* kwargs) {
    return ParseAndExecute(self, args, kwargs, kRun);
}

PyObject* SessionStart(PyObject* self, PyObject* args, PyObject* kwargs) {
    return ParseAndExecute(self, args, kwargs, kStart);
}

PyObject* SessionProfile(PyObject* self, PyObject* args, PyObject* kwargs) {
    return ParseAndExecute(self, args, kwargs, kProfile);
}

PyObject* SessionRunTensors(PyObject* object, PyObject* args) {
    Session* self = (Session*)object;
    PyObject *inputs = NULL, *outputs = NULL, *states = NULL, *profile = NULL;
    if (!PyArg_UnpackTuple(args, "_run_tensors", 4, 4, &inputs, &outputs, &states, &profile)) {
        return NULL;
    }
    if (self->inputs == NULL) {
        return RaiseError(FORNAX_INVALID_ARGUMENT, "The session is closed.");
    }
    Array few[2 * kStackPorts];
    const size_t count = self->input_count + self->state_count;
    Array* arrays = count <= 2 * kStackPorts ? few : calloc(count, sizeof *arrays);
    if (arrays == NULL) {
        return PyErr_NoMemory();
    }
    memset(arrays, 0, count * sizeof *arrays);
    PyObject* result = NULL;
    Request request = {PyObject_IsTrue(profile) == 1 ? kProfile : kRun, NULL, outputs,
                       arrays + self->input_count};
    if (ReadTensors(self, inputs, arrays) == 0 && ReadStates(self, states, request.states) == 0 &&
        LockSession(self) == 0) {
        result = RunLocked(self, arrays, &request);
    }
    ReleaseArrays(arrays, count);
    if (arrays != few) {
        free(arrays);
    }
    return result;
}

// session(*arrays): the output, or a tuple of several.
PyObject* SessionCall(PyObject* object, PyObject* args, PyObject* kwargs) {
    Session* self = (Session*)object;
    if (kwargs != NULL && PyDict_Size(kwargs) != 0) {
        PyErr_SetString(PyExc_TypeError,
                        "A session is called with arrays in order; run() takes them by name.");
        return NULL;
    }
    PyObject* results = Execute(self, NULL, args, NULL, kRun);
    if (results == NULL) {
        return NULL;
    }
    PyObject* made = self->output_count == 1 ? NULL : PyTuple_New((Py_ssize_t)self->output_count);
    for (size_t i = 0; i < self->output_count; ++i) {
        PyObject* output = PyDict_GetItemWithError(results, self->outputs[i].name);
        Py_XINCREF(output);
        if (self->output_count == 1) {
            made = output;
        } else if (made == NULL || output == NULL ||
                   PyTuple_SetItem(made, (Py_ssize_t)i, output) != 0) {
            Py_CLEAR(made);
            break;
        }
    }
    Py_DECREF(results);
    return made;
}

// How long a wait goes on before it looks for signals.
static const uint64_t kPollNanoseconds = 50 * 1000 * 1000;

PyObject* SessionWait(PyObject* object, PyObject* args, PyObject* kwargs) {
    static char* names[] = {"timeout", NULL};
    Session* self = (Session*)object;
    PyObject* timeout = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &timeout)) {
        return NULL;
    }
    double seconds = timeout == Py_None ? 0 : PyFloat_AsDouble(timeout);
    if (PyErr_Occurred()) {
        return NULL;
    }
    const bool for_ever = timeout == Py_None || seconds > 1e9;
    seconds = seconds > 0 ? seconds : 0;
    uint64_t left = for_ever ? UINT64_MAX : (uint64_t)(seconds * 1e9);
    if (LockSession(self) != 0) {
        return NULL;
    }
    if (!self->is_running) {
        UnlockSession(self);
        return RaiseError(FORNAX_INVALID_ARGUMENT,
                          "No run of the session is under way: start() begins one.");
    }
    PyObject* result = NULL;
    fornax_status status = FORNAX_TIMEOUT;
    while (status == FORNAX_TIMEOUT && self->session != NULL) {
        const uint64_t slice = left < kPollNanoseconds ? left : kPollNanoseconds;
        PyThreadState* const released = PyEval_SaveThread();
        status = fornax_session_wait(self->session, slice);
        PyEval_RestoreThread(released);
        left = for_ever ? left : left - slice;
        if (status == FORNAX_TIMEOUT && (left == 0 || PyErr_CheckSignals() != 0)) {
            break;
        }
    }
    if (PyErr_Occurred()) {
        // A signal: the run goes on, and can be waited for again.
    } else if (status == FORNAX_TIMEOUT) {
        RaiseError(status, "The run is still under way after %g seconds.", seconds);
    } else if (status != FORNAX_OK) {
        self->is_running = false;
        RaiseStatus(status);
        DropOut(self);
    } else {
        self->is_running = false;
        Array few[kStackPorts];
        Array* outputs =
            self->output_count <= kStackPorts ? few : calloc(self->output_count, sizeof *outputs);
        if (outputs == NULL) {
            PyErr_NoMemory();
        } else {
            memset(outputs, 0, self->output_count * sizeof *outputs);
            bool is_read = true;
            for (size_t i = 0; is_read && i < self->output_count; ++i) {
                Output* output = &self->outputs[i];
                is_read = output->array == NULL || ReadOutputArray(output->array, output->type,
                                                                   output->text, &outputs[i]) == 0;
            }
            result = is_read ? TakeAll(self, outputs) : NULL;
            ReleaseArrays(outputs, self->output_count);
        }
        if (outputs != few) {
            free(outputs);
        }
        DropOut(self);
    }
    UnlockSession(self);
    return result;
}
