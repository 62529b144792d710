"""Neural networks on Fornax, or on any other Vulkan device.

    import fornax

    session = fornax.load("model.onnx")
    results = session.run({"image": pixels})        # {name: numpy array}
    session.inputs, session.outputs                 # names, dtypes, shapes

`load` compiles an ONNX file or reads a plan file of `python -m fornax compile`. `devices()` lists what models can run
on. `python -m fornax` is the command `fornax`; `python -m fornax exec -- COMMAND` runs any Vulkan program on the device.
Errors are fornax.Error, with the sentence of what is wrong.
"""

from ._device import Device, devices
from ._errors import Error, Status
from ._load import load
from ._session import Port, Session, Step
from ._types import empty
from ._version import __version__, version

__all__ = ["Device", "Error", "Port", "Session", "Status", "Step", "__version__", "devices", "empty", "load", "version"]
