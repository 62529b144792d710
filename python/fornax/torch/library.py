"""Files of graphs in the library: which nodes it does not have, and sessions that run them with tensors of torch."""

import ctypes
import functools

import torch

from .. import _core  # noqa: F401  (loads libfornax.so)
from .. import _driver
from .._errors import Error
from .._load import load

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
    library.fornax_torch_check.argtypes = [ctypes.c_char_p, ctypes.c_size_t, _CALLBACK, ctypes.c_void_p]
    return library


def check(file):
    """(number, reason) of each node of a file that is not supported."""
    found = []
    callback = _CALLBACK(lambda _, node, reason: found.append((node, reason.decode())))
    library = _library()
    status = library.fornax_torch_check(file, len(file), callback, None)
    if status != 0:
        raise Error(library.fornax_error_message().decode(), status)
    return found


def _array(tensor):
    bits = _BITS.get(tensor.dtype)
    return (tensor if bits is None else tensor.view(bits)).numpy()


class Session:
    """A file that is loaded; `options` are those of fornax.load(). Inputs and outputs are in the order of the names."""

    def __init__(self, file, input_names, output_names, options):
        self._session = load(file, **options)
        self._inputs = list(input_names)
        self._outputs = list(output_names)

    def run(self, inputs, outputs):
        """Reads contiguous tensors and writes to contiguous tensors, in place where the device can."""
        self._session.run({name: _array(tensor) for name, tensor in zip(self._inputs, inputs)},
                          out={name: _array(tensor) for name, tensor in zip(self._outputs, outputs)})
