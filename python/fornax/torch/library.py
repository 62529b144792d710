"""Files of graphs in the library: which nodes it does not have, and sessions that run them with tensors of torch."""

import ctypes
import functools
import itertools

import numpy
import torch

from .. import _core  # noqa: F401  (loads libfornax.so)
from .. import _driver
from .._errors import Error
from .._load import load
from . import graph_file

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p)
# Types that numpy has not, as their bits.
_BITS = {torch.bfloat16: torch.uint16}
_BITS.update({getattr(torch, name): torch.uint8 for name in (
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu") if hasattr(torch, name)})


@functools.cache
def _library():
    _driver.select()
    library = ctypes.CDLL("libfornax.so")  # the package's, which is there already
    library.fornax_error_message.restype = ctypes.c_char_p
    library.fornax_torch_check.argtypes = [ctypes.POINTER(_Piece), ctypes.c_size_t, _CALLBACK, ctypes.c_void_p]
    return library


class _Piece(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t)]


def file_of(structure, weights):
    """A file in pieces, (address, bytes, what keeps the memory) of each, as the library reads it. Weights, which are bytes-like,
    are not copied: they must not change as long as a session of the file is there."""
    parts = graph_file.parts_of(structure, weights)
    head = b"".join(itertools.islice(parts, graph_file.PARTS_BEFORE_WEIGHTS))
    arrays = (numpy.frombuffer(part, numpy.uint8) for part in (head, *parts) if len(part) > 0)
    return tuple((array.__array_interface__["data"][0], array.nbytes, array) for array in arrays)


def check(file):
    """(number, reason) of each node of a file that is not supported: pieces, or the bytes of a whole one."""
    if isinstance(file, bytes):
        data = numpy.frombuffer(file, numpy.uint8)
        file = ((data.__array_interface__["data"][0], data.nbytes, data),)
    found = []
    callback = _CALLBACK(lambda _, node, reason: found.append((node, reason.decode())))
    library = _library()
    pieces = (_Piece * len(file))(*(piece[:2] for piece in file))
    status = library.fornax_torch_check(pieces, len(file), callback, None)
    if status != 0:
        raise Error(library.fornax_error_message().decode(), status)
    return found


@functools.cache
def reads_tensors():
    """Whether the extension module reads tensors by itself: torch has DLPack's exchange interface."""
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    return exchange is not None and all(
        _core.add_tensor_type(kind, exchange) for kind in (torch.Tensor, torch.nn.Parameter))


def _array(tensor):
    bits = _BITS.get(tensor.dtype)
    tensor = tensor.detach().resolve_neg().contiguous()
    return (tensor if bits is None else tensor.view(bits)).numpy()


def _arrays(tensors):
    return [_array(tensor) for tensor in tensors]


class Session:
    """A file of file_of() that is loaded; `options` are those of fornax.load(). `states` are (name, dtype) of inputs that change in
    place.

    run(inputs, outputs, states, profile) reads tensors, and writes to contiguous tensors, in place where the device can.
    The lists are in the order of the file's names; `profile` takes the time of each step.
    """

    def __init__(self, file, options, states=()):
        self._session = load(file, **options)
        if states:
            self._session._set_states([(name, graph_file.ELEMENTS[str(dtype).removeprefix("torch.")])
                                       for name, dtype in states])
        self.run = self._session._run_tensors if reads_tensors() else self._run_arrays

    def _run_arrays(self, inputs, outputs, states, profile):
        self._session._run_tensors(_arrays(inputs), _arrays(outputs), _arrays(states), profile)

    @property
    def in_place(self):
        """The names of inputs and outputs that the last run used in place."""
        return self._session.in_place

    def report(self):
        """What the file became, for the sizes of the last run: the object that fornax.h describes."""
        return self._session.report()
