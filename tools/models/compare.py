"""Compares another program's outputs with onnxruntime's: the greatest differences of each output."""

import dataclasses

import numpy as np
import onnxruntime

from tools.models.measure import session_for

SMALL = 1e-3  # of the greatest magnitude: relative differences of smaller numbers are taken as if they were this large


@dataclasses.dataclass
class Difference:
    """How one output differs. `problem` is a sentence if the arrays cannot be compared."""
    name: str
    problem: str = ""
    absolute: float = 0.0
    relative: float = 0.0
    norm: float = 0.0  # of the difference, divided by that of what is expected
    where: tuple = ()

    def within(self, absolute, relative, norm=0.0):
        """Any one of the tolerances suffices."""
        return not self.problem and (self.absolute <= absolute or self.relative <= relative or self.norm <= norm)


def difference(name, actual, expected):
    if actual.shape != expected.shape:
        return Difference(name, f"has the shape {list(actual.shape)}, not {list(expected.shape)}.")
    if actual.dtype != expected.dtype:
        return Difference(name, f"has the type {actual.dtype}, not {expected.dtype}.")
    if expected.dtype.kind not in "fiub":
        same = np.array_equal(actual, expected)
        return Difference(name, "" if same else f"of type {expected.dtype} differs.")
    if not expected.size:
        return Difference(name)
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    special = ~np.isfinite(e) | ~np.isfinite(a)
    if not np.array_equal(a[special], e[special], equal_nan=True):
        count = np.count_nonzero((a != e) & special & ~(np.isnan(a) & np.isnan(e)))
        return Difference(name, f"has {count} elements that are infinite or no number on one side only.")
    apart = np.where(special, 0, np.abs(np.where(special, 0, a) - np.where(special, 0, e)))
    magnitude = np.where(special, 0, np.abs(e))
    least = SMALL * magnitude.max()
    relative = apart / np.maximum(magnitude, least if least > 0 else 1)
    where = np.unravel_index(apart.argmax(), apart.shape)
    norm = np.linalg.norm(apart) / (np.linalg.norm(magnitude) or 1)
    return Difference(name, "", float(apart.max()), float(relative.max()), float(norm), tuple(map(int, where)))


def reference(model, inputs, optimized=True):
    """onnxruntime's outputs by name."""
    level = onnxruntime.GraphOptimizationLevel
    session = session_for(model, 0,
                          graph_optimization_level=level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL)
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def compare(actual, expected):
    """A Difference for each expected output; both arguments map names to arrays."""
    return [difference(name, np.asarray(actual[name]), array) if name in actual else Difference(name, "is missing.")
            for name, array in expected.items()]
