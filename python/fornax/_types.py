"""The element types of fornax.h as dtypes of numpy, and arrays that are not yet as the library takes them.

Types that numpy lacks are those of the package ml_dtypes if it is installed. Without it their elements are raw bits:
bf16 is uint16; the floats of 8 and 4 bits, u4 and u2 are uint8, i4 and i2 int8, one byte an element. Raw bits are taken as
inputs in either case.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._errors import Error, Status

_ml: Any
try:
    import ml_dtypes as _ml
except ImportError:
    _ml = None

# By the names of fornax_type_name(): the dtype of numpy or its name in ml_dtypes, and what stands in for it.
_NATIVE = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "string": np.object_,
}
_OTHERS = {
    "i2": ("int2", np.int8), "i4": ("int4", np.int8), "u2": ("uint2", np.uint8), "u4": ("uint4", np.uint8),
    "f4e2m1": ("float4_e2m1fn", np.uint8), "f8e4m3fn": ("float8_e4m3fn", np.uint8),
    "f8e4m3fnuz": ("float8_e4m3fnuz", np.uint8), "f8e5m2": ("float8_e5m2", np.uint8),
    "f8e5m2fnuz": ("float8_e5m2fnuz", np.uint8), "f8e8m0": ("float8_e8m0fnu", np.uint8),
    "bf16": ("bfloat16", np.uint16),
}


def _dtype_of(name: str) -> np.dtype:
    if name in _NATIVE:
        return np.dtype(_NATIVE[name])
    theirs, bits = _OTHERS[name]
    return np.dtype(getattr(_ml, theirs, bits))


NAMES: Tuple[str, ...] = _core.type_names()
DTYPES: Tuple[np.dtype, ...] = tuple(_dtype_of(name) for name in NAMES)
# The types that numpy's array structure does not tell.
_EXTRA: Dict[np.dtype, int] = {dtype: number for number, dtype in enumerate(DTYPES) if dtype.kind == "V"}
_STAND_INS = {number for number, name in enumerate(NAMES) if name in _OTHERS and DTYPES[number].kind != "V"}


def number_of(dtype: Any) -> int:
    """The fornax_type of a dtype."""
    wanted = np.dtype(dtype)
    for number, known in enumerate(DTYPES):
        if known == wanted and number not in _STAND_INS:
            return number
    raise Error(f"There are no elements of type {wanted}.", Status.INVALID_ARGUMENT)


def _prepare(value: Any, dtype: np.dtype) -> np.ndarray:
    """What is neither contiguous nor native, or no array at all, as an array that is."""
    if isinstance(value, np.ndarray):
        return np.array(value, dtype=value.dtype.newbyteorder("="), order="C")
    if hasattr(value, "contiguous"):  # a tensor of PyTorch with strides
        return value.contiguous()
    if hasattr(value, "__dlpack__"):
        return np.array(np.from_dlpack(value), order="C")
    array = np.asarray(value)
    if array.size == 0:
        return np.zeros(array.shape, dtype)
    # Numbers become floats and wider integers, but never less than they are.
    casting: Any = "unsafe" if array.dtype.kind == "f" and dtype.kind == "V" else "same_kind"
    if isinstance(value, (bool, int, list, tuple)) and array.dtype.kind in "iu" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise Error(f"A value is beyond what {dtype} holds, {limits.min} to {limits.max}.", Status.INVALID_ARGUMENT)
        casting = "unsafe"
    return array.astype(dtype, order="C", casting=casting)


def _prepare_strings(value: Any) -> Tuple[Tuple[int, ...], List[bytes]]:
    array = np.asarray(value)
    if array.dtype.kind not in "OUST":
        raise Error(f"An input of strings is given as {array.dtype}.", Status.INVALID_ARGUMENT)
    texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.reshape(-1).tolist()]
    if any(b"\0" in text for text in texts):
        raise Error("A string holds the character 0, where strings end.", Status.INVALID_ARGUMENT)
    return array.shape, texts


def _strings_to_array(shape: Tuple[int, ...], texts: List[bytes]) -> np.ndarray:
    array = np.empty(len(texts), dtype=object)
    array[:] = [text.decode(errors="surrogateescape") for text in texts]
    return array.reshape(shape)


def empty(shape: Union[int, Sequence[int]], dtype: Any = np.float32) -> np.ndarray:
    """A new array whose memory any device can use in place: it begins at a page and is of whole pages.

    shape: sizes as of numpy.empty. dtype: of numpy or ml_dtypes. The elements are not set.
    """
    page = 4096
    wanted = np.dtype(dtype)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(dims, dtype=np.int64)) * wanted.itemsize
    memory = np.empty(-(-size // page) * page + page, np.uint8)
    start = -memory.ctypes.data % page
    return memory[start:start + size].view(wanted).reshape(dims)


_core.configure(Error, np.ndarray, np.empty, DTYPES, _EXTRA, _prepare, _prepare_strings, _strings_to_array)
