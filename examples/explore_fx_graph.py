"""An exported graph, node by node: what an importer of it sees, and what becomes of it on Fornax.

    python examples/explore_fx_graph.py
"""

import torch
from torch import nn

import fornax.torch
from fornax.torch import reports


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 8)

    def forward(self, x, scale):
        return torch.softmax(self.linear(x).relu() * scale + 1.0, dim=-1)


def main():
    torch.manual_seed(0)
    model, inputs = Block().eval(), (torch.randn(4, 16), torch.randn(4, 1))
    exported = torch.export.export(model, inputs)

    print("The graph as a table")
    print(reports.graph_text(exported.graph_module))

    print("Each node")
    for node in exported.graph.nodes:
        print(f"{node.name}\n  op: {node.op}\n  target: {node.target}\n  args: {node.args}\n  kwargs: {dict(node.kwargs)}")

    print("\nThe code that torch makes of it")
    print(exported.graph_module.code.strip())

    print("\nWhat becomes of it: core ATen, kernels, memory")
    print(fornax.torch.explain(model, inputs, runs=2))


if __name__ == "__main__":
    main()
