"""libfornax.so through ctypes, with numpy arrays: what tests call the C interface by."""

import ctypes

import ml_dtypes
import numpy as np

MAX_RANK = 16
STRING = 23
# By the numbers of fornax_type.
DTYPES = {
    0: np.bool_, 1: ml_dtypes.int2, 2: ml_dtypes.int4, 3: np.int8, 4: np.int16, 5: np.int32, 6: np.int64,
    7: ml_dtypes.uint2, 8: ml_dtypes.uint4, 9: np.uint8, 10: np.uint16, 11: np.uint32, 12: np.uint64,
    13: ml_dtypes.float4_e2m1fn, 14: ml_dtypes.float8_e4m3fn, 15: ml_dtypes.float8_e4m3fnuz,
    16: ml_dtypes.float8_e5m2, 17: ml_dtypes.float8_e5m2fnuz, 18: ml_dtypes.float8_e8m0fnu, 19: np.float16,
    20: ml_dtypes.bfloat16, 21: np.float32, 22: np.float64,
}
TYPES = {np.dtype(dtype): number for number, dtype in DTYPES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("rank", ctypes.c_size_t), ("dims", ctypes.c_int64 * MAX_RANK),
                ("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t), ("owner", ctypes.c_void_p)]


class Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_size_t),
                ("dims", ctypes.c_int64 * MAX_RANK)]


class Step(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("nanoseconds", ctypes.c_double), ("on_host", ctypes.c_int),
                ("reason", ctypes.c_char_p), ("operations", ctypes.c_int64), ("bytes_read", ctypes.c_int64),
                ("bytes_written", ctypes.c_int64)]


class FornaxError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def to_tensor(array):
    """The tensor of an array, and what has to stay alive while it is used."""
    if array.dtype.kind in "OUS":
        texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.reshape(-1)]
        data = (ctypes.c_char_p * max(len(texts), 1))(*texts)
        tensor = Tensor(STRING, array.ndim, array.shape, ctypes.cast(data, ctypes.c_void_p),
                        len(texts) * ctypes.sizeof(ctypes.c_char_p), None)
        return tensor, (texts, data)
    array = np.ascontiguousarray(array).reshape(array.shape)
    return Tensor(TYPES[array.dtype], array.ndim, array.shape, array.ctypes.data, array.nbytes, None), array


def from_tensor(tensor):
    """An array with a copy of the elements."""
    shape = tuple(tensor.dims[:tensor.rank])
    count = int(np.prod(shape, dtype=np.int64))
    if tensor.type == STRING:
        texts = ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_char_p))
        return np.array([texts[i].decode() for i in range(count)], dtype=object).reshape(shape)
    return np.frombuffer(ctypes.string_at(tensor.data, tensor.size_bytes), DTYPES[tensor.type]).reshape(shape)


class Library:
    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        for name in ("fornax_error_message", "fornax_type_name", "fornax_model_device"):
            getattr(self.functions, name).restype = ctypes.c_char_p
        for name in ("fornax_model_input_count", "fornax_model_output_count", "fornax_session_step_count",
                     "fornax_type_bytes"):
            getattr(self.functions, name).restype = ctypes.c_size_t
        self.functions.fornax_options_create.restype = ctypes.c_void_p

    def call(self, name, *arguments):
        """Calls a function that returns a fornax_status; raises FornaxError if it fails."""
        status = getattr(self.functions, name)(*arguments)
        if status != 0:
            raise FornaxError(status, self.functions.fornax_error_message().decode())


class Model:
    """A model with one session."""

    def __init__(self, library, model, **options):
        """`model` is a path or bytes; options are those of fornax_options_set(), `dim` a dictionary,
        `dynamic_sizes` a list of names."""
        self.library = library
        self.handle, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        made = ctypes.c_void_p(library.functions.fornax_options_create())
        try:
            for name, size in options.pop("dim", {}).items():
                library.call("fornax_options_set", made, f"dim.{name}".encode(), str(size).encode())
            for name in options.pop("dynamic_sizes", []):
                library.call("fornax_options_set", made, f"dynamic.{name}".encode(), b"1")
            for name, array in options.pop("inputs", {}).items():
                tensor, keep = to_tensor(array)
                library.call("fornax_options_set_input", made, name.encode(), ctypes.byref(tensor))
                del keep
            for key, value in options.items():
                library.call("fornax_options_set", made, key.encode(), str(value).encode())
            if isinstance(model, bytes):
                library.call("fornax_model_load_bytes", model, ctypes.c_size_t(len(model)), made,
                             ctypes.byref(self.handle))
            else:
                library.call("fornax_model_load", str(model).encode(), made, ctypes.byref(self.handle))
            library.call("fornax_session_create", self.handle, ctypes.byref(self.session))
        finally:
            library.functions.fornax_options_destroy(made)

    def close(self):
        self.library.functions.fornax_session_destroy(self.session)
        self.library.functions.fornax_model_destroy(self.handle)
        self.session, self.handle = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _ports(self, kind):
        ports = []
        for index in range(getattr(self.library.functions, f"fornax_model_{kind}_count")(self.handle)):
            port = Port()
            self.library.call(f"fornax_model_{kind}", self.handle, ctypes.c_size_t(index), ctypes.byref(port))
            ports.append((port.name.decode(), port.type, tuple(port.dims[:port.rank])))
        return ports

    def inputs(self):
        """(name, type, dimensions) of each; -1 is a dimension that may change."""
        return self._ports("input")

    def outputs(self):
        return self._ports("output")

    def run(self, *arrays):
        """The outputs, as a list."""
        tensors, keep = zip(*map(to_tensor, arrays)) if arrays else ((), ())
        count = self.library.functions.fornax_model_output_count(self.handle)
        outputs = (Tensor * max(count, 1))()
        self.library.call("fornax_run", self.session, (Tensor * max(len(tensors), 1))(*tensors),
                          ctypes.c_size_t(len(tensors)), outputs, ctypes.c_size_t(count))
        del keep
        results = [from_tensor(outputs[i]) for i in range(count)]
        for i in range(count):
            self.library.functions.fornax_tensor_release(ctypes.byref(outputs[i]))
        return results

    def reset(self):
        self.library.call("fornax_session_reset", self.session)

    def profile(self, *arrays):
        """(name, nanoseconds, whether on the host, reason) of each step of a run."""
        tensors, keep = zip(*map(to_tensor, arrays))
        self.library.call("fornax_session_set_sizes", self.session, (Tensor * len(tensors))(*tensors),
                          ctypes.c_size_t(len(tensors)))
        for i, tensor in enumerate(tensors):
            self.library.call("fornax_session_bind_input", self.session, ctypes.c_size_t(i), ctypes.c_void_p(tensor.data),
                              ctypes.c_size_t(tensor.size_bytes), None)
        self.library.call("fornax_session_profile", self.session)
        for i in range(len(tensors)):
            self.library.call("fornax_session_bind_input", self.session, ctypes.c_size_t(i), None, ctypes.c_size_t(0), None)
        del keep
        steps = []
        for index in range(self.library.functions.fornax_session_step_count(self.session)):
            step = Step()
            self.library.call("fornax_session_step", self.session, ctypes.c_size_t(index), ctypes.byref(step))
            steps.append((step.name.decode(), step.nanoseconds, bool(step.on_host), step.reason.decode()))
        return steps
