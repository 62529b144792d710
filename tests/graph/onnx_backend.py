"""Fornax as an onnx.backend: prepare(model) gives what runs it with numpy arrays.

    rep = FornaxBackend.prepare(onnx.load("net.onnx"))
    outputs = rep.run([array, ...])

FORNAX_LIBRARY is the path of libfornax.so. Elements of narrow types are arrays of ml_dtypes, strings arrays of objects.
Models with sequences or optionals raise BackendIsNotSupposedToImplementIt, and so does what Fornax does not have.
"""

import os

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

import libfornax

UNSUPPORTED = 2  # fornax_status


class FornaxRep(BackendRep):
    """Compiles with the first inputs, for their sizes, and again where the runtime needs another plan."""

    def __init__(self, library, model):
        super().__init__()
        self.library = library
        self.data = model.SerializeToString()
        constants = {tensor.name for tensor in model.graph.initializer}
        self.names = [value.name for value in model.graph.input if value.name not in constants]
        self.loaded = None

    def run(self, inputs, **kwargs):
        arrays = [np.asarray(array) for array in inputs]
        try:
            if self.loaded is None:
                self.loaded = libfornax.Model(self.library, self.data, cache="none",
                                              inputs=dict(zip(self.names, arrays)))
            return tuple(self.loaded.run(*arrays))
        except libfornax.FornaxError as error:
            if error.status == UNSUPPORTED:
                raise BackendIsNotSupposedToImplementIt(str(error)) from error
            raise

    def close(self):
        if self.loaded is not None:
            self.loaded.close()
            self.loaded = None


class FornaxBackend(Backend):
    library = None

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        if isinstance(model, onnx.GraphProto | onnx.NodeProto):
            raise TypeError("A ModelProto is needed.")
        for value in (*model.graph.input, *model.graph.output):
            if value.type.WhichOneof("value") in ("sequence_type", "optional_type", "map_type"):
                raise BackendIsNotSupposedToImplementIt(f"{value.name} is not a tensor.")
        if cls.library is None:
            cls.library = libfornax.Library(os.environ["FORNAX_LIBRARY"])
        return FornaxRep(cls.library, model)

    @classmethod
    def supports_device(cls, device):
        """The Vulkan loader chooses; to onnx, whose tests know no more than CPU and CUDA, that is the CPU."""
        return device == "CPU"
