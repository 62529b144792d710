// The arguments of a run: mappings from names to arrays, or arrays in order.
#include <stdlib.h>
#include <string.h>

#include "python/native/core.h"

// The object of a name in a mapping; a new reference, or null without an exception.
static PyObject* Lookup(PyObject* mapping, PyObject* name) {
    if (PyDict_Check(mapping)) {
        PyObject* found = PyDict_GetItemWithError(mapping, name);
        Py_XINCREF(found);
        return found;
    }
    PyObject* found = PyObject_GetItem(mapping, name);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear();
    }
    return found;
}

// Arrays and strings can be indexed, too.
static bool IsMapping(PyObject* object) {
    return PyDict_Check(object) ||
           (PyMapping_Check(object) && PyObject_HasAttrString(object, "keys"));
}

// Says which names there are, after " ...: ".
static void AppendNames(char* text, size_t bytes, const Session* self, bool inputs) {
    const size_t count = inputs ? self->input_count : self->output_count;
    for (size_t i = 0; i < count; ++i) {
        const char* name = inputs ? self->inputs[i].text : self->outputs[i].text;
        const size_t used = strlen(text);
        if (used + strlen(name) + 8 > bytes) {
            strncat(text, ", ...", bytes - used - 1);
            return;
        }
        strcat(strcat(text, i == 0 ? "" : ", "), name);
    }
}

static int UnknownName(const Session* self, PyObject* mapping, bool inputs) {
    PyObject* keys = PyMapping_Keys(mapping);
    const size_t count = inputs ? self->input_count : self->output_count;
    for (Py_ssize_t k = 0; keys != NULL && k < PyList_Size(keys); ++k) {
        PyObject* key = PyList_GetItem(keys, k);
        bool known = false;
        for (size_t i = 0; i < count && !known; ++i) {
            known = PyObject_RichCompareBool(
                        key, inputs ? self->inputs[i].name : self->outputs[i].name, Py_EQ) == 1;
        }
        if (known) {
            continue;
        }
        PyObject* text = PyObject_Str(key);
        PyObject* bytes =
            text == NULL ? NULL : PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
        char names[1024] = "";
        AppendNames(names, sizeof names, self, inputs);
        if (bytes != NULL) {
            RaiseError(FORNAX_INVALID_ARGUMENT, "The model has no %s %s; it has: %s.",
                       inputs ? "input" : "output", PyBytes_AsString(bytes), names);
        }
        Py_XDECREF(text);
        Py_XDECREF(bytes);
        break;
    }
    Py_XDECREF(keys);
    return PyErr_Occurred() ? -1 : 0;
}

void ReleaseArrays(Array* arrays, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        ReleaseArray(&arrays[i]);
    }
}

int ReadInputs(Session* self, PyObject* inputs, Array* arrays) {
    memset(arrays, 0, self->input_count * sizeof *arrays);
    if (!IsMapping(inputs)) {
        PyErr_SetString(PyExc_TypeError, "The inputs of a run are a dict, {name: array}.");
        return -1;
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        PyObject* object = Lookup(inputs, self->inputs[i].name);
        if (object == NULL) {
            if (!PyErr_Occurred() && UnknownName(self, inputs, true) == 0) {
                char names[1024] = "";
                AppendNames(names, sizeof names, self, true);
                RaiseError(FORNAX_INVALID_ARGUMENT,
                           "The input %s is missing; the model's inputs are: %s.",
                           self->inputs[i].text, names);
            }
            return -1;
        }
        const int result =
            ReadArray(object, self->inputs[i].type, self->inputs[i].text, &arrays[i]);
        Py_DECREF(object);
        if (result != 0) {
            return -1;
        }
    }
    const Py_ssize_t given = PyMapping_Size(inputs);
    return given == (Py_ssize_t)self->input_count ? 0 : UnknownName(self, inputs, true);
}

int ReadPositional(Session* self, PyObject* args, Array* arrays) {
    memset(arrays, 0, self->input_count * sizeof *arrays);
    const Py_ssize_t given = PyTuple_Size(args);
    if (given != (Py_ssize_t)self->input_count) {
        char names[1024] = "";
        AppendNames(names, sizeof names, self, true);
        RaiseError(FORNAX_INVALID_ARGUMENT, "%lld inputs are given; the model has %lld: %s.",
                   (long long)given, (long long)self->input_count, names);
        return -1;
    }
    for (size_t i = 0; i < self->input_count; ++i) {
        if (ReadArray(PyTuple_GetItem(args, (Py_ssize_t)i), self->inputs[i].type,
                      self->inputs[i].text, &arrays[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static int CheckCount(PyObject* list, size_t expected, const char* what) {
    if (!PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "The %s of a run are a list.", what);
        return -1;
    }
    if (PyList_Size(list) != (Py_ssize_t)expected) {
        RaiseError(FORNAX_INVALID_ARGUMENT, "%lld %s are given; there are %lld.",
                   (long long)PyList_Size(list), what, (long long)expected);
        return -1;
    }
    return 0;
}

int ReadTensors(Session* self, PyObject* list, Array* arrays) {
    memset(arrays, 0, self->input_count * sizeof *arrays);
    int result = CheckCount(list, self->input_count, "inputs");
    for (size_t i = 0; result == 0 && i < self->input_count; ++i) {
        result = ReadTensor(PyList_GetItem(list, (Py_ssize_t)i), self->inputs[i].type,
                            self->inputs[i].text, &arrays[i]);
    }
    return result;
}

int ReadOutputTensors(Session* self, PyObject* list, Array* arrays) {
    memset(arrays, 0, self->output_count * sizeof *arrays);
    int result = CheckCount(list, self->output_count, "outputs");
    for (size_t i = 0; result == 0 && i < self->output_count; ++i) {
        PyObject* object = PyList_GetItem(list, (Py_ssize_t)i);
        result = ReadOutputTensor(object, self->outputs[i].type, self->outputs[i].text, &arrays[i]);
        if (result == 0) {
            Py_INCREF(object);
            self->outputs[i].array = object;
        }
    }
    return result;
}

int ReadStates(Session* self, PyObject* list, Array* arrays) {
    memset(arrays, 0, self->state_count * sizeof *arrays);
    int result = CheckCount(list, self->state_count, "states");
    for (size_t i = 0; result == 0 && i < self->state_count; ++i) {
        result = ReadOutputTensor(PyList_GetItem(list, (Py_ssize_t)i), self->states[i].type,
                                  self->states[i].text, &arrays[i]);
    }
    return result;
}

int ReadOutputs(Session* self, PyObject* out, Array* arrays) {
    memset(arrays, 0, self->output_count * sizeof *arrays);
    if (out == NULL || out == Py_None) {
        return 0;
    }
    if (!IsMapping(out)) {
        PyErr_SetString(PyExc_TypeError, "`out` is a dict, {name: array to write to}.");
        return -1;
    }
    Py_ssize_t found = 0;
    for (size_t i = 0; i < self->output_count; ++i) {
        PyObject* object = Lookup(out, self->outputs[i].name);
        if (object == NULL) {
            if (PyErr_Occurred()) {
                return -1;
            }
            continue;
        }
        ++found;
        const int result =
            ReadOutputArray(object, self->outputs[i].type, self->outputs[i].text, &arrays[i]);
        self->outputs[i].array = object;
        if (result != 0) {
            return -1;
        }
    }
    return PyMapping_Size(out) == found ? 0 : UnknownName(self, out, false);
}
