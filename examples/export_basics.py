"""torch.export in three steps, each of whose programs runs on Fornax from a file.

    python examples/export_basics.py
"""

import pathlib
import tempfile

import torch
from torch import nn

import fornax
import fornax.torch
from fornax.torch import reports


class Product(nn.Module):
    def forward(self, x, y):
        return torch.relu(x @ y.T)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 64)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Waves(nn.Module):
    def forward(self, x):
        return torch.sin(x) + torch.cos(x)


def on_fornax(exported, *inputs):
    """What Fornax computes from the file of the program. One output is an array, several are a tuple of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.fnx"
        fornax.torch.export(exported, inputs, path)
        return torch.from_numpy(fornax.load(path)(*inputs))


def compare(name, actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    print(f"{name}: shape {list(actual.shape)}, equal to torch's: True")


def main():
    print("torch", torch.__version__)
    torch.manual_seed(0)

    print("\n1. A function is captured and run")
    inputs = torch.randn(128, 64), torch.randn(128, 64)
    exported = torch.export.export(Product(), inputs)
    compare("relu(x @ y.T)", on_fornax(exported, *inputs), exported.module()(*inputs))

    print("\n2. What was captured: nodes, a table of them, and code")
    inputs = (torch.randn(32, 16),)
    exported = torch.export.export(Layer().eval(), inputs)
    for node in exported.graph.nodes:
        print(f"  {node.op:14} {node.name:10} {node.target}")
    print(reports.graph_text(exported.graph_module), end="")
    print(exported.graph_module.code.strip())
    with torch.no_grad():
        compare("relu(linear(x))", on_fornax(exported, *inputs), exported.module()(*inputs))

    print("\n3. Operators and numbers")
    x = torch.linspace(0, 1, 8)
    exported = torch.export.export(Waves(), (x,))
    calls = [(node.name, str(node.target)) for node in exported.graph.nodes if node.op == "call_function"]
    print(reports.table(("node", "operator"), calls), end="")
    actual = on_fornax(exported, x)
    compare("sin(x) + cos(x)", actual, exported.module()(x))
    print(f"sum: {actual.sum():.4f}")


if __name__ == "__main__":
    main()
