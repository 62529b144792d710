// Arrays of Python as tensors of fornax.h, and back: numpy by its array structure, others by
// DLPack.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/native/core.h"
#include "python/native/dlpack.h"

// What numpy's attribute __array_struct__ points to; the layout is fixed by numpy's documentation
// ("The array interface protocol").
typedef struct ArrayStruct {
    int two;
    int rank;
    char kind;
    int item_bytes;
    int flags;
    Py_intptr_t* dims;
    Py_intptr_t* strides;
    void* data;
    PyObject* description;
} ArrayStruct;

enum {
    kFlagContiguous = 0x1,
    kFlagAligned = 0x100,
    kFlagNativeOrder = 0x200,
    kFlagWritable = 0x400
};

enum { kDlCpu = 1, kDlCudaHost = 3, kDlRocmHost = 11 };
enum { kDlInt = 0, kDlUint = 1, kDlFloat = 2, kDlBfloat = 4, kDlBool = 6 };

static PyObject* name_array_struct;
static PyObject* name_dlpack;
static PyObject* name_dtype;

static int MakeNames(void) {
    if (name_dtype == NULL) {
        name_array_struct = PyUnicode_InternFromString("__array_struct__");
        name_dlpack = PyUnicode_InternFromString("__dlpack__");
        name_dtype = PyUnicode_InternFromString("dtype");
    }
    return name_array_struct != NULL && name_dlpack != NULL && name_dtype != NULL ? 0 : -1;
}

const char* TypeText(fornax_type type, const int64_t* dims, size_t rank, char* text) {
    size_t used = (size_t)snprintf(text, kTypeTextBytes, "%s[", fornax_type_name(type));
    for (size_t i = 0; i < rank; ++i) {
        used += (size_t)snprintf(text + used, kTypeTextBytes - used, "%s%lld", i == 0 ? "" : ",",
                                 (long long)dims[i]);
    }
    snprintf(text + used, kTypeTextBytes - used, "]");
    return text;
}

// -1 where fornax.h has no such type.
static int TypeOfKind(char kind, int bytes) {
    switch (kind) {
        case 'b':
            return bytes == 1 ? FORNAX_BOOL : -1;
        case 'i':
            return bytes == 1   ? FORNAX_I8
                   : bytes == 2 ? FORNAX_I16
                   : bytes == 4 ? FORNAX_I32
                   : bytes == 8 ? FORNAX_I64
                                : -1;
        case 'u':
            return bytes == 1   ? FORNAX_U8
                   : bytes == 2 ? FORNAX_U16
                   : bytes == 4 ? FORNAX_U32
                   : bytes == 8 ? FORNAX_U64
                                : -1;
        case 'f':
            return bytes == 2 ? FORNAX_F16 : bytes == 4 ? FORNAX_F32 : bytes == 8 ? FORNAX_F64 : -1;
        default:
            return -1;
    }
}

// Whether an array of type `given` holds the elements, or the bits, of type `expected`.
static bool Passes(fornax_type expected, int given) {
    if (given == (int)expected) {
        return true;
    }
    switch (expected) {
        case FORNAX_BF16:
            return given == FORNAX_U16;
        case FORNAX_I2:
        case FORNAX_I4:
            return given == FORNAX_I8;
        case FORNAX_U2:
        case FORNAX_U4:
        case FORNAX_F4E2M1:
        case FORNAX_F8E4M3FN:
        case FORNAX_F8E4M3FNUZ:
        case FORNAX_F8E5M2:
        case FORNAX_F8E5M2FNUZ:
        case FORNAX_F8E8M0:
            return given == FORNAX_U8;
        default:
            return false;
    }
}

// The type of a dtype that numpy itself does not know, of which the array structure says nothing
// but the size; -1 without an exception where there is none.
static int TypeOfDtype(PyObject* object) {
    PyObject* dtype = PyObject_GetAttr(object, name_dtype);
    if (dtype == NULL) {
        PyErr_Clear();
        return -1;
    }
    PyObject* number = PyDict_GetItemWithError(core.types, dtype);
    Py_DECREF(dtype);
    if (number == NULL) {
        PyErr_Clear();
        return -1;
    }
    return (int)PyLong_AsLong(number);
}

static int WrongType(PyObject* object, fornax_type expected, const char* name) {
    PyObject* dtype = PyObject_GetAttr(object, name_dtype);
    if (dtype == NULL) {
        PyErr_Clear();
        dtype = (PyObject*)Py_TYPE(object);
        Py_INCREF(dtype);
    }
    PyObject* text = PyObject_Str(dtype);
    Py_DECREF(dtype);
    if (text == NULL) {
        return -1;
    }
    PyObject* bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
    Py_DECREF(text);
    if (bytes == NULL) {
        return -1;
    }
    RaiseError(FORNAX_INVALID_ARGUMENT, "%s has elements of type %s and is given as %s.", name,
               fornax_type_name(expected), PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    return -1;
}

static int TooManyDims(const char* name, long long rank) {
    RaiseError(FORNAX_INVALID_ARGUMENT, "%s has %lld dimensions; at most %d are possible.", name,
               rank, FORNAX_MAX_RANK);
    return -1;
}

static void SetSize(fornax_tensor* tensor) {
    size_t count = 1;
    for (size_t i = 0; i < tensor->rank; ++i) {
        count *= (size_t)tensor->dims[i];
    }
    tensor->size_bytes = count * fornax_type_bytes(tensor->type);
}

// 1: read. 0: the array needs preparing. -1: an exception.
static int ReadStruct(PyObject* object, fornax_type expected, const char* name, Array* array) {
    PyObject* capsule = PyObject_GetAttr(object, name_array_struct);
    if (capsule == NULL) {
        return -1;
    }
    const ArrayStruct* from = PyCapsule_GetPointer(capsule, NULL);
    if (from == NULL) {
        Py_DECREF(capsule);
        return -1;
    }
    int result = 0;
    const int kind = TypeOfKind(from->kind, from->item_bytes);
    const int given = kind >= 0 ? kind : TypeOfDtype(object);
    const int plain = kFlagContiguous | kFlagAligned | kFlagNativeOrder;
    if (!Passes(expected, given)) {
        result = WrongType(object, expected, name);
    } else if (from->rank > FORNAX_MAX_RANK) {
        result = TooManyDims(name, from->rank);
    } else if ((from->flags & plain) == plain || (kind < 0 && (from->flags & kFlagContiguous))) {
        array->tensor.type = expected;
        array->tensor.rank = (size_t)from->rank;
        for (int i = 0; i < from->rank; ++i) {
            array->tensor.dims[i] = from->dims[i];
        }
        array->tensor.data = from->data;
        SetSize(&array->tensor);
        array->writable = (from->flags & kFlagWritable) != 0;
        Py_INCREF(object);
        array->owner = object;
        result = 1;
    }
    Py_DECREF(capsule);
    return result;
}

static int TypeOfDlpack(const DlTensor* tensor) {
    if (tensor->lanes != 1 || tensor->type_bits % 8 != 0) {
        return -1;
    }
    const int bytes = tensor->type_bits / 8;
    switch (tensor->type_code) {
        case kDlInt:
            return TypeOfKind('i', bytes);
        case kDlUint:
            return TypeOfKind('u', bytes);
        case kDlFloat:
            return TypeOfKind('f', bytes);
        case kDlBfloat:
            return bytes == 2 ? FORNAX_BF16 : -1;
        case kDlBool:
            return bytes == 1 ? FORNAX_BOOL : -1;
        case 10:  // the float8 types of DLPack 1.1
            return FORNAX_F8E4M3FN;
        case 11:
            return FORNAX_F8E4M3FNUZ;
        case 12:
            return FORNAX_F8E5M2;
        case 13:
            return FORNAX_F8E5M2FNUZ;
        case 14:
            return FORNAX_F8E8M0;
        default:
            return -1;
    }
}

static bool IsContiguous(const DlTensor* tensor) {
    int64_t stride = 1;
    if (tensor->strides == NULL) {
        return true;
    }
    for (int32_t i = 0; i < tensor->rank; ++i) {
        if (tensor->dims[i] == 0) {
            return true;
        }
    }
    for (int32_t i = tensor->rank - 1; i >= 0; --i) {
        if (tensor->dims[i] != 1 && tensor->strides[i] != stride) {
            return false;
        }
        stride *= tensor->dims[i];
    }
    return true;
}

int TakeDlTensor(PyObject* object,
                 const DlTensor* from,
                 fornax_type expected,
                 const char* name,
                 Array* array) {
    if (from->device_type != kDlCpu && from->device_type != kDlCudaHost &&
        from->device_type != kDlRocmHost) {
        RaiseError(
            FORNAX_INVALID_ARGUMENT,
            "%s is in the memory of another device (DLPack's device type %d); copy it to the "
            "host first.",
            name, (int)from->device_type);
        return -1;
    }
    if (!Passes(expected, TypeOfDlpack(from))) {
        return WrongType(object, expected, name);
    }
    if (from->rank > FORNAX_MAX_RANK) {
        return TooManyDims(name, from->rank);
    }
    if (!IsContiguous(from)) {
        return 0;
    }
    array->tensor.type = expected;
    array->tensor.rank = (size_t)from->rank;
    for (int32_t i = 0; i < from->rank; ++i) {
        array->tensor.dims[i] = from->dims[i];
    }
    array->tensor.data = from->data == NULL ? NULL : (char*)from->data + from->byte_offset;
    SetSize(&array->tensor);
    array->writable = true;  // this version of DLPack has no memory that is read only
    return 1;
}

// As ReadStruct(). The capsule stays unconsumed: it owns the memory, and frees it when it goes.
static int ReadDlpack(PyObject* object,
                      PyObject* method,
                      fornax_type expected,
                      const char* name,
                      Array* array) {
    PyObject* capsule = PyObject_CallObject(method, NULL);
    if (capsule == NULL) {
        return -1;
    }
    const DlTensor* from = PyCapsule_GetPointer(capsule, "dltensor");
    const int result = from == NULL ? -1 : TakeDlTensor(object, from, expected, name, array);
    if (result == 1) {
        array->owner = capsule;
    } else {
        Py_DECREF(capsule);
    }
    return result;
}

static int ReadStrings(PyObject* object, Array* array) {
    PyObject* pair = PyObject_CallFunctionObjArgs(core.prepare_strings, object, NULL);
    if (pair == NULL) {
        return -1;
    }
    PyObject* shape = PyTuple_GetItem(pair, 0);
    PyObject* texts = shape == NULL ? NULL : PyTuple_GetItem(pair, 1);
    const Py_ssize_t rank = texts == NULL ? -1 : PyTuple_Size(shape);
    const Py_ssize_t count = texts == NULL ? -1 : PyList_Size(texts);
    if (rank < 0 || count < 0 || rank > FORNAX_MAX_RANK) {
        Py_DECREF(pair);
        return PyErr_Occurred() ? -1 : TooManyDims("an array of strings", (long long)rank);
    }
    array->tensor.type = FORNAX_STRING;
    array->tensor.rank = (size_t)rank;
    for (Py_ssize_t i = 0; i < rank; ++i) {
        array->tensor.dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    }
    array->strings = calloc((size_t)count + 1, sizeof(char*));
    if (array->strings == NULL) {
        Py_DECREF(pair);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        array->strings[i] = PyBytes_AsString(PyList_GetItem(texts, i));
        if (array->strings[i] == NULL) {
            Py_DECREF(pair);
            return -1;
        }
    }
    array->tensor.data = array->strings;
    array->tensor.size_bytes = (size_t)count * sizeof(char*);
    array->owner = pair;
    return 0;
}

// As ReadStruct().
static int ReadInPlace(PyObject* object, fornax_type expected, const char* name, Array* array) {
    if (PyObject_TypeCheck(object, core.ndarray)) {
        return ReadStruct(object, expected, name, array);
    }
    PyObject* method = PyObject_GetAttr(object, name_dlpack);
    if (method == NULL) {
        PyErr_Clear();
        return 0;
    }
    const int result = ReadDlpack(object, method, expected, name, array);
    Py_DECREF(method);
    return result;
}

int ReadArray(PyObject* object, fornax_type expected, const char* name, Array* array) {
    memset(array, 0, sizeof *array);
    if (MakeNames() != 0) {
        return -1;
    }
    if (expected == FORNAX_STRING) {
        return ReadStrings(object, array);
    }
    int result = ReadInPlace(object, expected, name, array);
    if (result == 0) {
        PyObject* dtype = PyTuple_GetItem(core.dtypes, (Py_ssize_t)expected);
        PyObject* prepared =
            dtype == NULL ? NULL : PyObject_CallFunctionObjArgs(core.prepare, object, dtype, NULL);
        if (prepared == NULL) {
            return -1;
        }
        result = ReadInPlace(prepared, expected, name, array);
        Py_DECREF(prepared);
        if (result == 0) {
            RaiseError(FORNAX_INTERNAL, "%s could not be made contiguous.", name);
        }
    }
    return result > 0 ? 0 : -1;
}

int ReadOutputArray(PyObject* object, fornax_type expected, const char* name, Array* array) {
    memset(array, 0, sizeof *array);
    if (MakeNames() != 0) {
        return -1;
    }
    int result = 0;
    if (expected == FORNAX_STRING) {
        RaiseError(FORNAX_INVALID_ARGUMENT,
                   "%s holds strings, for which the caller has no memory: leave it out of `out`.",
                   name);
        return -1;
    }
    if (!PyObject_TypeCheck(object, core.ndarray) && !PyObject_HasAttr(object, name_dlpack)) {
        PyErr_Format(PyExc_TypeError,
                     "%s is given an object to be written to that is neither an array of numpy nor "
                     "offers __dlpack__.",
                     name);
        return -1;
    }
    result = ReadInPlace(object, expected, name, array);
    if (result == 0) {
        RaiseError(FORNAX_INVALID_ARGUMENT,
                   "%s is to be written to an array that is not contiguous.", name);
        return -1;
    }
    if (result > 0 && !array->writable) {
        ReleaseArray(array);
        RaiseError(FORNAX_INVALID_ARGUMENT, "%s is to be written to an array that is read only.",
                   name);
        return -1;
    }
    return result > 0 ? 0 : -1;
}

void ReleaseArray(Array* array) {
    free(array->strings);
    Py_XDECREF(array->owner);
    memset(array, 0, sizeof *array);
}

PyObject* NewArray(fornax_type type, PyObject* shape, void** data) {
    PyObject* dtype = PyTuple_GetItem(core.dtypes, (Py_ssize_t)type);
    PyObject* made =
        dtype == NULL ? NULL : PyObject_CallFunctionObjArgs(core.empty, shape, dtype, NULL);
    PyObject* capsule = made == NULL ? NULL : PyObject_GetAttr(made, name_array_struct);
    const ArrayStruct* from = capsule == NULL ? NULL : PyCapsule_GetPointer(capsule, NULL);
    if (from != NULL) {
        *data = from->data;
    }
    Py_XDECREF(capsule);
    if (from == NULL) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}

PyObject* ShapeOf(const int64_t* dims, size_t rank) {
    PyObject* shape = PyTuple_New((Py_ssize_t)rank);
    for (size_t i = 0; shape != NULL && i < rank; ++i) {
        PyObject* dim = PyLong_FromLongLong(dims[i]);
        if (dim == NULL || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) != 0) {
            Py_DECREF(shape);
            return NULL;
        }
    }
    return shape;
}

PyObject* NewStrings(const fornax_tensor* tensor) {
    const size_t count = tensor->size_bytes / sizeof(char*);
    char* const* texts = tensor->data;
    PyObject* shape = ShapeOf(tensor->dims, tensor->rank);
    PyObject* list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; ++i) {
        PyObject* text = PyBytes_FromString(texts[i]);
        if (text == NULL || PyList_SetItem(list, (Py_ssize_t)i, text) != 0) {
            Py_CLEAR(list);
        }
    }
    PyObject* made = NULL;
    if (shape != NULL && list != NULL) {
        made = PyObject_CallFunctionObjArgs(core.strings_to_array, shape, list, NULL);
    }
    Py_XDECREF(shape);
    Py_XDECREF(list);
    return made;
}
