"""What a call of a one-kernel graph costs: medians in microseconds, the ways in turns.

Usage: PYTHONPATH=STAGE call_bench.py [--calls N] [--elements N]
"""

import argparse
import pathlib
import statistics
import sys
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx

import fornax
import fornax.torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from call_times import measure  # noqa: E402


class Cache(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.register_buffer("rows", torch.zeros(rows, 64))

    def forward(self, x, place):
        self.rows.index_copy_(0, place, x)
        return x * 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--elements", type=int, default=64)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    x = torch.randn(options.elements)

    def relu(x):
        return torch.relu(x)

    backend = fornax.torch.Backend(strict=True)
    with torch.no_grad():
        graph = make_fx(relu)(x)
        ours = backend.compile_graph(graph)
        session = ours.call.__globals__["run"].__self__
        name = session.inputs[0].name
        out = torch.empty_like(x)
        array, result = x.numpy(), {session.outputs[0].name: out.numpy()}
        compiled = torch.compile(relu, backend=backend)
        eager = torch.compile(relu, backend="eager")
        aot = torch.compile(relu, backend="aot_eager")
        arguments = [x]
        ways = {
            "torch.relu": lambda: relu(x),
            "torch.compile, eager": lambda: eager(x),
            "torch.compile, aot_eager": lambda: aot(x),
            "torch.compile, fornax": lambda: compiled(x),
            "of it the compiled graph": lambda: ours.call(arguments),
            "of it the session": lambda: session._run_tensors(arguments, [out], [], False),
            "session.run(inputs)": lambda: session.run({name: array}),
            "session.run(inputs, out)": lambda: session.run({name: array}, out=result),
        }
        for way, values in measure(ways, options.calls).items():
            print(f"{options.elements:8} elements  {way:28} {statistics.median(values):8.2f} us")
        for rows in (64, 16384):
            place, row = torch.tensor([3]), torch.randn(1, 64)
            theirs = Cache(rows)
            made = torch.compile(Cache(rows), backend=backend, dynamic=False)
            ways = {"torch": lambda: theirs(row, place), "torch.compile, fornax": lambda: made(row, place)}
            for way, values in measure(ways, options.calls // 5).items():
                print(f"cache of {rows:6} rows  {way:28} {statistics.median(values):8.2f} us")


if __name__ == "__main__":
    main()
