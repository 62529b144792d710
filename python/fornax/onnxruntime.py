"""Fornax as an execution provider of onnxruntime, for programs as they are.

    import fornax.onnxruntime
    import onnxruntime

    fornax.onnxruntime.register()
    session = onnxruntime.InferenceSession("net.onnx", providers=[fornax.onnxruntime.PROVIDER, "CPUExecutionProvider"])

onnxruntime gives the provider all nodes that it takes and computes the others itself. docs/onnxruntime.md of the sources
says which options there are.
"""

from __future__ import annotations

import pathlib
import threading
from typing import Any, List

import onnxruntime

from . import _driver
from ._errors import Error, Status

#: The provider's name, for `providers=`.
PROVIDER = "FornaxExecutionProvider"
#: The library that onnxruntime loads, for programs that register it themselves.
LIBRARY: pathlib.Path = _driver.FOLDER / "lib" / "libfornax_ort_ep.so"

_mutex = threading.Lock()


def _devices() -> List[Any]:
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == PROVIDER]


def register() -> List[Any]:
    """Registers the provider with onnxruntime, unless it is registered, and returns its devices.

    They are for `onnxruntime.SessionOptions.add_provider_for_devices(devices, options)`.

    Raises fornax.Error: UNSUPPORTED for an onnxruntime without providers in libraries, NOT_FOUND where there is no device.
    """
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise Error(f"onnxruntime {onnxruntime.__version__} does not load providers of others; 1.23 does.",
                    Status.UNSUPPORTED)
    with _mutex:
        found = _devices()
        if found:
            return found
        _driver.select()
        try:
            onnxruntime.register_execution_provider_library("Fornax", str(LIBRARY))
        except Exception as error:  # each of onnxruntime's is a class of its own
            raise Error(f"onnxruntime does not load {LIBRARY}: {error}", Status.UNSUPPORTED) from error
        found = _devices()
        if not found:
            onnxruntime.unregister_execution_provider_library("Fornax")
            raise Error("onnxruntime finds no device of Fornax: the Vulkan loader or the driver is missing.",
                        Status.NOT_FOUND)
        return found
