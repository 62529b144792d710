"""A transformer's block with causal attention: on the device, and as a program in C that this machine's compiler builds.

    python examples/transformer_attention.py
"""

import pathlib
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

import fornax.torch

POSITIONS, WIDTH, HEADS = 16, 64, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, positions, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, positions, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // HEADS) ** 0.5
        later = torch.ones(positions, positions, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, positions, width))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


def main():
    torch.manual_seed(0)
    model, x = Block().eval(), torch.randn(1, POSITIONS, WIDTH)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        expected = model(x)
        backend = fornax.torch.Backend("codegen", output_dir=folder, strict=True)
        result = torch.compile(model, backend=backend, fullgraph=True)(x)
        print(f"on the device: shape {list(result.shape)}, difference from torch {(result - expected).abs().max():.1e}")
        changed = x.clone()
        changed[:, -1] += 1
        others = torch.compile(model, backend=backend, fullgraph=True)(changed)
        print("only the last position sees a change of it:", bool(torch.equal(others[:, :-1], result[:, :-1])))

        program = pathlib.Path(backend.programs[0])
        print("files:", " ".join(sorted(path.name for path in program.iterdir())))
        said = subprocess.run(["make", "-C", program, "HOST=1", "run"], capture_output=True, text=True, check=True).stdout
        values = np.fromfile(program / f"{program.name}_outputs.bin", np.float32).reshape(expected.shape)
        print(f"in C: difference from torch {np.abs(values - expected.numpy()).max():.1e}")
        print("\n".join(line for line in said.splitlines() if line.startswith(("cycles", "nanoseconds"))))


if __name__ == "__main__":
    main()
