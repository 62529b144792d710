// Tensors by DLPack's exchange interface: functions of the library that they are of, which read one
// in less time than a call of Python takes.
#include <string.h>

#include "python/native/core.h"
#include "python/native/dlpack.h"

// The structures of its specification, version 1.3; later minor versions append.
typedef struct DlVersion {
    uint32_t major;
    uint32_t minor;
} DlVersion;

typedef struct DlExchange {
    DlVersion version;
    struct DlExchange* earlier;
    void* allocate;
    void* to_managed;
    void* from_managed;
    int (*read)(void* object, DlTensor* tensor);
    void* stream;
} DlExchange;

enum { kMaxTensorTypes = 4 };
static struct {
    PyTypeObject* type;
    int (*read)(void* object, DlTensor* tensor);
} tensor_types[kMaxTensorTypes];

PyObject* AddTensorType(PyObject* module, PyObject* args) {
    PyObject* type = NULL;
    PyObject* capsule = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &type, &capsule)) {
        return NULL;
    }
    const DlExchange* exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (exchange == NULL) {
        return NULL;
    }
    if (exchange->version.major != 1 || exchange->read == NULL) {
        Py_RETURN_FALSE;
    }
    for (int i = 0; i < kMaxTensorTypes; ++i) {
        if (tensor_types[i].type == NULL || tensor_types[i].type == (PyTypeObject*)type) {
            Py_INCREF(type);
            tensor_types[i].read = exchange->read;
            tensor_types[i].type = (PyTypeObject*)type;
            Py_RETURN_TRUE;
        }
    }
    Py_RETURN_FALSE;
}

// As TakeDlTensor(), with the owner. *is_tensor says whether the type is one of those.
static int ReadExchanged(PyObject* object,
                         fornax_type expected,
                         const char* name,
                         Array* array,
                         bool* is_tensor) {
    const PyTypeObject* type = Py_TYPE(object);
    for (int i = 0; i < kMaxTensorTypes && tensor_types[i].type != NULL; ++i) {
        if (tensor_types[i].type != type) {
            continue;
        }
        *is_tensor = true;
        DlTensor tensor;
        if (tensor_types[i].read(object, &tensor) != 0) {
            return -1;
        }
        const int result = TakeDlTensor(object, &tensor, expected, name, array);
        if (result == 1) {
            Py_INCREF(object);
            array->owner = object;
        }
        return result;
    }
    return 0;
}

// Calls a method without arguments; steals the object.
static PyObject* Call(PyObject* object, const char* method) {
    PyObject* result = object == NULL ? NULL : PyObject_CallMethod(object, method, NULL);
    Py_XDECREF(object);
    return result;
}

// Whether the elements are the negatives of what the memory holds, which DLPack does not tell.
static int IsNegative(PyObject* object) {
    static PyObject* name;
    if (name == NULL && (name = PyUnicode_InternFromString("is_neg")) == NULL) {
        return -1;
    }
    PyObject* answer = PyObject_CallMethodObjArgs(object, name, NULL);
    const int result = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    return result;
}

int ReadTensor(PyObject* object, fornax_type expected, const char* name, Array* array) {
    memset(array, 0, sizeof *array);
    bool is_tensor = false;
    int result = ReadExchanged(object, expected, name, array, &is_tensor);
    if (!is_tensor && result == 0 && PyObject_HasAttrString(object, "detach")) {
        Py_INCREF(object);
        PyObject* detached =
            Call(object, "detach");  // else it is not read where it needs a gradient
        result = detached == NULL ? -1 : ReadArray(detached, expected, name, array);
        Py_XDECREF(detached);
        return result;
    }
    if (!is_tensor && result == 0) {
        return ReadArray(object, expected, name, array);
    }
    if (result == 1) {
        const int is_negative = IsNegative(object);
        if (is_negative != 0) {
            ReleaseArray(array);
            result = is_negative < 0 ? -1 : 0;
        }
    }
    if (result == 0) {
        Py_INCREF(object);
        PyObject* copy = Call(Call(Call(object, "detach"), "resolve_neg"), "contiguous");
        result = copy == NULL ? -1 : ReadExchanged(copy, expected, name, array, &is_tensor);
        Py_XDECREF(copy);
        if (result == 0) {
            RaiseError(FORNAX_INTERNAL, "%s could not be made contiguous.", name);
        }
    }
    return result > 0 ? 0 : -1;
}

int ReadOutputTensor(PyObject* object, fornax_type expected, const char* name, Array* array) {
    memset(array, 0, sizeof *array);
    bool is_tensor = false;
    const int result = ReadExchanged(object, expected, name, array, &is_tensor);
    if (!is_tensor && result == 0) {
        return ReadOutputArray(object, expected, name, array);
    }
    if (result == 0) {
        RaiseError(FORNAX_INVALID_ARGUMENT,
                   "%s is to be written to a tensor that is not contiguous.", name);
    }
    return result > 0 ? 0 : -1;
}
