"""Sessions: a model that is loaded, with states and memory of its own."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _core
from ._types import DTYPES


class Port(NamedTuple):
    """An input or output of a model."""

    name: str
    dtype: np.dtype
    shape: Tuple[Union[int, str], ...]  #: sizes; a name ("batch", "2*n + 1") where a size may change


class Step(NamedTuple):
    """What a step of a run took: a dispatch on the device, or an operation on the host."""

    name: str  #: the model's nodes that it computes
    nanoseconds: float
    on_host: bool
    reason: str  #: why on the host; "" on the device
    operations: Optional[int]  #: None where unknown, and so the others
    bytes_read: Optional[int]
    bytes_written: Optional[int]


class Session(_core.Session):
    """A model on a device, made by fornax.load().

    `session.run({name: array})` runs it, `session(*arrays)` does with the inputs in order and returns the output, or a
    tuple of several. Thread-safe: runs of one session take turns. A child process of fork has to load its own.
    """

    # run(), start(), wait(), reset(), close(), device and in_place are of _core.Session.

    @property
    def inputs(self) -> Tuple[Port, ...]:
        """The model's inputs, in order."""
        return tuple(Port(name, DTYPES[number], shape) for name, number, shape in self._input_ports())

    @property
    def outputs(self) -> Tuple[Port, ...]:
        """The model's outputs, in order. A model that is not compiled yet, because its sizes are open, is compiled for that,
        for sizes of 1 where nothing else is known."""
        return tuple(Port(name, DTYPES[number], shape) for name, number, shape in self._output_ports())

    def clone(self) -> "Session":
        """Another session of the same model, with states and memory of its own: sessions run at once."""
        return type(self)(self)

    def profile(self, inputs) -> List[Step]:
        """A run that takes the time of each step, and so is slower. `inputs` as of run(). The steps in the order of the run."""
        return [Step(name, nanoseconds, bool(on_host), reason, *(None if count < 0 else count for count in counts))
                for name, nanoseconds, on_host, reason, *counts in self._profile(inputs)]

    def report(self) -> Dict[str, Any]:
        """What the model became for the sizes of the last run: steps with operations and bytes, kernels, pieces of memory,
        and the times of the last profile(). The object that fornax.h describes at fornax_session_report()."""
        return json.loads(self._report())

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *unused) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            ports = ", ".join(f"{port.name}: {port.dtype}{list(port.shape)}" for port in self.inputs)
            return f"<fornax.Session ({ports}) on {self.device}>"
        except Exception as error:  # repr() of a closed session is one as well
            return f"<fornax.Session: {error}>"

    def __reduce__(self):
        raise TypeError("A session is of its process and cannot be pickled; load the model in the other one.")
