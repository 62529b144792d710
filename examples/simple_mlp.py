"""A small network in each mode of the backend: 16 inputs, 32 hidden units, 10 outputs, 4 rows.

    python examples/simple_mlp.py [FOLDER] [MODE...]         modes: trace compile codegen simulate eager

FOLDER gets what the modes write. After `codegen`, `make -C FOLDER/graph_0 HOST=1 run` runs the network without Python.
"""

import sys
import tempfile

import torch
from torch import nn

import fornax.torch

MODES = ("trace", "compile", "codegen", "simulate", "eager")


class SimpleMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 10)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def main(folder, *modes):
    torch.manual_seed(0)
    model, x = SimpleMlp().eval(), torch.randn(4, 16)
    with torch.no_grad():
        expected = model(x)
        for mode in modes or MODES:
            torch._dynamo.reset()
            backend = fornax.torch.Backend(mode=mode, verbose=True, output_dir=folder)
            print(f"--- mode {mode}")
            result = torch.compile(model, backend=backend)(x)
            print(f"shape {list(result.shape)}, difference from torch {(result - expected).abs().max():.1e}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:])
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(scratch)
