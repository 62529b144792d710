"""fornax.load(): options of Python as those of fornax.h."""

from __future__ import annotations

import atexit
import os
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import _core, _driver
from ._session import Session
from ._types import number_of


def _flag(value: Any, name: str) -> str:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is a bool; it is {value!r}.")
    return "1" if value else "0"


def _options(device, precision, strict, dynamic, dims, cache, kept_plans, kept_sizes, report) -> List[Tuple[str, str]]:
    made = [("strict", _flag(strict, "strict")), ("report", _flag(report, "report"))]
    driver = _driver.library()
    if device is not None:
        made.append(("device", str(device)))
    elif driver is not None:
        made.append(("driver", driver))  # that of the machine's other devices may take long to load
    if precision is not None:
        made.append(("precision", str(precision)))
    if isinstance(dynamic, (bool, np.bool_)):
        made.append(("dynamic", _flag(dynamic, "dynamic")))
    else:
        names = [dynamic] if isinstance(dynamic, str) else list(dynamic)
        made += [(f"dynamic.{name}", "1") for name in names]
    made += [(f"dim.{name}", str(int(size))) for name, size in (dims or {}).items()]
    if cache is False:
        made.append(("cache", "none"))
    elif cache is not None and cache is not True:
        made.append(("cache", os.fspath(cache)))
    made += [(key, str(int(count))) for key, count in (("kept_plans", kept_plans), ("kept_sizes", kept_sizes))
             if count is not None]
    return made


def _values(inputs: Mapping[str, Any]) -> List[Tuple[str, int, Any]]:
    made = []
    for name, value in inputs.items():
        array = value if hasattr(value, "dtype") else np.asarray(value)
        dtype = np.dtype(object) if np.asarray(array).dtype.kind in "OUST" else np.asarray(array).dtype
        made.append((name, number_of(dtype), array))
    return made


def load(model: Union[str, "os.PathLike[str]", bytes, bytearray, memoryview], *,
         device: Optional[Union[int, str]] = None,
         precision: Optional[str] = None,
         strict: bool = False,
         dynamic: Union[bool, str, Iterable[str]] = False,
         dims: Optional[Mapping[str, int]] = None,
         inputs: Optional[Mapping[str, Any]] = None,
         cache: Optional[Union[bool, str, "os.PathLike[str]"]] = None,
         kept_plans: Optional[int] = None,
         kept_sizes: Optional[int] = None,
         report: bool = False) -> Session:
    """Loads a model and compiles it, or finds it compiled in the cache.

    model: the path of an ONNX file or of a plan file (`python -m fornax compile`), or such a file's bytes. A plan file must
        not be overwritten while it is used.
    device: an index into `fornax.devices()`, or a part of a device's name. Without it, Fornax, and drivers of other devices
        are not loaded.
    precision: of products of f32. "highest" (f32, the default), "high", or "medium": operands may be rounded to bf16, sums
        are of f32.
    strict: refuses a model of which a part would run on the host.
    dynamic: which sizes one plan is to serve whatever they are: True for all that the model leaves open, or their names.
        Other sizes get a plan for each, which runs faster, and is compiled when it first comes.
    dims: {name: size}, what open sizes are expected to be; then the model is compiled now and not at its first run.
    inputs: {name: array}, what inputs are expected to hold: their sizes, and their values where those decide shapes.
    cache: a folder for what is compiled, or False for none. Without it, the user's (FORNAX_CACHE_DIR).
    kept_plans, kept_sizes: how many plans of the model, and sizes of each plan, are kept for later runs (8 and 4).
    report: whether `session.report()` also tells why values lie in memory; the model then is compiled anew.

    Returns a Session.
    Raises fornax.Error: NOT_FOUND for a file or device that does not exist, DATA_LOSS or INVALID_ARGUMENT for a file that is
    damaged or no model, UNSUPPORTED for what the compiler does not cover, IO. KeyboardInterrupt ends the wait at once; the
    compiler then ends by itself.
    """
    # fornax.torch hands over files in pieces, too, as the extension module takes them.
    options = _options(device, precision, strict, dynamic, dims, cache, kept_plans, kept_sizes, report)
    values = _values(inputs or {})
    if isinstance(model, (bytearray, memoryview)):
        model = bytes(model)
    _driver.select()
    return Session(model, options, values)


atexit.register(_core.finish)
