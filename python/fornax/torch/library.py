"""The calls of libfornax.so that graphs of torch need, by ctypes: those that write results to tensors of torch."""

import ctypes
import functools

from .. import _core  # noqa: F401  (loads libfornax.so)
from .. import _driver
from .._errors import Error, Status
from . import graph_file

MAX_RANK = 16
OK = 0


class Tensor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("rank", ctypes.c_size_t), ("dims", ctypes.c_int64 * MAX_RANK),
                ("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t), ("owner", ctypes.c_void_p)]


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p)


@functools.cache
def load():
    _driver.select()
    library = ctypes.CDLL("libfornax.so")  # the package's, which is there already
    library.fornax_error_message.restype = ctypes.c_char_p
    library.fornax_options_create.restype = ctypes.c_void_p
    library.fornax_options_destroy.argtypes = [ctypes.c_void_p]
    library.fornax_options_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    library.fornax_model_load_bytes.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                                                ctypes.POINTER(ctypes.c_void_p)]
    library.fornax_model_destroy.argtypes = [ctypes.c_void_p]
    library.fornax_session_create.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
    library.fornax_session_destroy.argtypes = [ctypes.c_void_p]
    library.fornax_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.c_size_t, ctypes.POINTER(Tensor),
                                   ctypes.c_size_t]
    library.fornax_torch_check.argtypes = [ctypes.c_char_p, ctypes.c_size_t, _CALLBACK, ctypes.c_void_p]
    return library


def _require(status):
    if status != OK:
        raise Error(load().fornax_error_message().decode(), status)


def check(file):
    """(number, reason) of each node of a file that is not supported."""
    found = []
    callback = _CALLBACK(lambda _, node, reason: found.append((node, reason.decode())))
    _require(load().fornax_torch_check(file, len(file), callback, None))
    return found


def _describe(entry, tensor):
    entry.type = graph_file.ELEMENTS[str(tensor.dtype).removeprefix("torch.")]
    entry.rank = tensor.dim()
    for axis, size in enumerate(tensor.shape):
        entry.dims[axis] = size
    entry.data = tensor.data_ptr()
    entry.size_bytes = tensor.numel() * tensor.element_size()


class Session:
    """A file that is loaded, with a session that runs it. For one thread at a time."""

    def __init__(self, file, options):
        library = load()
        self._library = library
        self._model = ctypes.c_void_p()
        self._session = ctypes.c_void_p()
        handle = library.fornax_options_create()
        try:
            for key, value in options.items():
                _require(library.fornax_options_set(handle, key.encode(), str(value).encode()))
            _require(library.fornax_model_load_bytes(file, len(file), handle, ctypes.byref(self._model)))
        finally:
            library.fornax_options_destroy(handle)
        _require(library.fornax_session_create(self._model, ctypes.byref(self._session)))

    def run(self, inputs, outputs):
        """Tensors of torch, which are contiguous; `outputs` are written to."""
        read = (Tensor * max(len(inputs), 1))()
        written = (Tensor * max(len(outputs), 1))()
        for entry, tensor in zip(read, inputs):
            _describe(entry, tensor)
        for entry, tensor in zip(written, outputs):
            _describe(entry, tensor)
        _require(self._library.fornax_run(self._session, read, len(inputs), written, len(outputs)))
        for entry, tensor in zip(written, outputs):
            got = tuple(entry.dims[:entry.rank])
            if got != tuple(tensor.shape):
                raise Error(f"An output is {got}, where {tuple(tensor.shape)} was expected.", Status.INTERNAL)

    def close(self):
        if self._session:
            self._library.fornax_session_destroy(self._session)
            self._session = ctypes.c_void_p()
        if self._model:
            self._library.fornax_model_destroy(self._model)
            self._model = ctypes.c_void_p()

    def __del__(self):
        if hasattr(self, "_session"):
            self.close()
