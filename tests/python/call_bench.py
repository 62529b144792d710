"""What a call of a one-kernel graph costs, by way of calling: medians in microseconds.

Usage: PYTHONPATH=STAGE call_bench.py [--calls N]
The ways through ctypes are what the extension module was chosen over: `tests/graph/libfornax.py`, which is written for tests, and
the least that a call through ctypes can do: sizes stay, memory of the library, structures made beforehand.
"""

import argparse
import ctypes
import pathlib
import statistics
import sys

import numpy as np

import fornax
from fornax import _driver
from call_times import measure
from support import ROOT, add

sys.path.append(str(ROOT / "tests" / "graph"))
import libfornax  # noqa: E402


class LeastCtypes:
    def __init__(self, model, rows):
        self.model, self.functions = model, model.library.functions
        self.run_function = self.functions.fornax_session_run
        dims = (ctypes.c_int64 * 16)(rows, 4)
        tensors = (libfornax.Tensor * 2)(*[libfornax.Tensor(21, 2, dims, None, 0, None)] * 2)
        model.library.call("fornax_session_set_sizes", model.session, tensors, ctypes.c_size_t(2))
        self.memory = []
        for index in range(2):
            data, size = ctypes.c_void_p(), ctypes.c_size_t()
            model.library.call("fornax_session_input_memory", model.session, ctypes.c_size_t(index), ctypes.byref(data),
                               ctypes.byref(size))
            self.memory.append((data.value, size.value))
        self.output = libfornax.Tensor()
        self.reference = ctypes.byref(self.output)
        self.zero = ctypes.c_size_t(0)

    def run(self, a, b):
        for array, (data, size) in zip((a, b), self.memory):
            if array.dtype != np.float32 or not array.flags.c_contiguous:
                raise TypeError
            ctypes.memmove(data, array.ctypes.data, size)
        if self.run_function(self.model.session) != 0:
            raise RuntimeError
        if self.functions.fornax_session_output(self.model.session, self.zero, self.reference) != 0:
            raise RuntimeError
        result = np.empty(tuple(self.output.dims[:self.output.rank]), np.float32)
        ctypes.memmove(result.ctypes.data, self.output.data, self.output.size_bytes)
        return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20000)
    calls = parser.parse_args().calls
    _driver.select()
    session = fornax.load(add(), cache=False)
    library = libfornax.Library(str(pathlib.Path(_driver.FOLDER, "lib", "libfornax.so")))
    model = libfornax.Model(library, add(), cache="none")
    for rows in (1, 256, 4096):
        a, b = np.ones((2, rows, 4), np.float32)
        y = fornax.empty((rows, 4))
        inputs, out = {"a": a, "b": b}, {"y": y}
        model.run(a, b)
        least = LeastCtypes(model, rows)
        run_alone = least.run_function
        handle = model.session
        written = session.clone()
        times = measure({
            "run(inputs)": lambda: session.run(inputs),
            "session(a, b)": lambda: session(a, b),
            "run(inputs, out)": lambda: written.run(inputs, out),
            "ctypes, the least": lambda: least.run(a, b),
            "ctypes, fornax_run()": lambda: model.run(a, b),
            "fornax_session_run()": lambda: run_alone(handle),
            "numpy a + b": lambda: a + b,
        }, calls)
        for name, values in times.items():
            print(f"{rows * 4:6} elements  {name:22} {statistics.median(values):8.2f} us")


if __name__ == "__main__":
    main()
