// Tensors as DLPack describes them.
#pragma once

#include "python/native/core.h"

// DLPack's structures; the layout is fixed by its specification (version 0.8, "Python
// specification").
typedef struct DlTensor {
    void* data;
    int32_t device_type;
    int32_t device_id;
    int32_t rank;
    uint8_t type_code;
    uint8_t type_bits;
    uint16_t lanes;
    int64_t* dims;
    int64_t* strides;
    uint64_t byte_offset;
} DlTensor;

// Reads the tensor of `object`, but for the owner of its memory. 1: read. 0: it is not contiguous.
// -1: an exception.
int TakeDlTensor(PyObject* object,
                 const DlTensor* from,
                 fornax_type expected,
                 const char* name,
                 Array* array);
