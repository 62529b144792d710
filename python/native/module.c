// The module fornax._core: what does not belong to a session.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/native/core.h"

CoreState core;
unsigned core_generation = 1;

static void InChild(void) {
    ++core_generation;
    ForgetTasks();
}

static PyObject* Raise(fornax_status status, const char* message) {
    PyObject* text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject* error =
        text == NULL ? NULL : PyObject_CallFunction(core.error, "Oi", text, (int)status);
    Py_XDECREF(text);
    if (error != NULL) {
        PyErr_SetObject(core.error, error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject* RaiseError(fornax_status status, const char* format, ...) {
    char message[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return Raise(status, message);
}

PyObject* RaiseStatus(fornax_status status) {
    return Raise(status, fornax_error_message());
}

// configure(error, ndarray, empty, dtypes, types, prepare, prepare_strings, strings_to_array)
static PyObject* Configure(PyObject* module, PyObject* args) {
    PyObject* given[8];
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO!O!OOO", &given[0], &given[1], &given[2], &PyTuple_Type,
                          &given[3], &PyDict_Type, &given[4], &given[5], &given[6], &given[7])) {
        return NULL;
    }
    for (int i = 0; i < 8; ++i) {
        Py_INCREF(given[i]);
    }
    core = (CoreState){
        given[0], (PyTypeObject*)given[1], given[2], given[3], given[4], given[5], given[6],
        given[7]};
    Py_RETURN_NONE;
}

// [(name, type, (major, minor), memory_bytes), ...]
static PyObject* Devices(PyObject* module, PyObject* unused) {
    (void)module;
    (void)unused;
    size_t count = 0, capacity = 16;
    fornax_device* devices = calloc(capacity, sizeof *devices);
    if (devices == NULL) {
        return PyErr_NoMemory();
    }
    fornax_status status = FORNAX_OK;
    PyThreadState* const released = PyEval_SaveThread();
    status = fornax_devices(devices, capacity, &count);
    PyEval_RestoreThread(released);
    PyObject* list = status == FORNAX_OK ? PyList_New(0) : RaiseStatus(status);
    for (size_t i = 0; list != NULL && i < count && i < capacity; ++i) {
        const fornax_device* device = &devices[i];
        PyObject* made =
            Py_BuildValue("(si(II)K)", device->name, (int)device->type, device->vulkan_major,
                          device->vulkan_minor, (unsigned long long)device->memory_bytes);
        if (made == NULL || PyList_Append(list, made) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(made);
    }
    free(devices);
    return list;
}

static PyObject* Version(PyObject* module, PyObject* unused) {
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLong(fornax_version());
}

// The names of fornax_type, in order.
static PyObject* TypeNames(PyObject* module, PyObject* unused) {
    (void)module;
    (void)unused;
    PyObject* names = PyTuple_New(kTypeCount);
    for (int i = 0; names != NULL && i < kTypeCount; ++i) {
        PyObject* name = PyUnicode_FromString(fornax_type_name((fornax_type)i));
        if (name == NULL || PyTuple_SetItem(names, i, name) != 0) {
            Py_CLEAR(names);
        }
    }
    return names;
}

// Waits for what Ctrl-C left behind; for atexit.
static PyObject* Finish(PyObject* module, PyObject* unused) {
    (void)module;
    (void)unused;
    if (WaitForTasks() != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject* AbandonedCount(PyObject* module, PyObject* unused) {
    (void)module;
    (void)unused;
    return PyLong_FromLong(CountAbandonedTasks());
}

static PyMethodDef functions[] = {{"configure", Configure, METH_VARARGS, NULL},
                                  {"add_tensor_type", AddTensorType, METH_VARARGS, NULL},
                                  {"devices", Devices, METH_NOARGS, NULL},
                                  {"version", Version, METH_NOARGS, NULL},
                                  {"type_names", TypeNames, METH_NOARGS, NULL},
                                  {"abandoned_count", AbandonedCount, METH_NOARGS, NULL},
                                  {"finish", Finish, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "fornax._core",
    .m_doc = "What fornax needs of the library libfornax.so; not for use by others.",
    .m_size = -1,
    .m_methods = functions};

PyMODINIT_FUNC PyInit__core(void) {
    PyObject* module = PyModule_Create(&definition);
    if (module == NULL) {
        return NULL;
    }
    if (AddSessionType(module) != 0 || pthread_atfork(NULL, NULL, InChild) != 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
