"""Exports a small vision model of PyTorch to a file that C runs, for any number of pictures.

    python examples/export_program.py program.fnx
    ./run_program program.fnx 1 . image:2,3,32,32=pictures.bin       # examples/run_program.c
"""

import sys

import torch
from torch import nn

import fornax.torch


class Classifier(nn.Module):
    """Scores of ten classes. It counts its calls."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(32, 10))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, image):
        self.calls.add_(1)
        return self.layers(image).softmax(-1)


def main(path):
    torch.manual_seed(1)
    model = Classifier().eval()
    pictures = torch.export.Dim("pictures", min=1, max=64)
    writer = fornax.torch.export(model, (torch.randn(4, 3, 32, 32),), path, dynamic_shapes=({0: pictures},))
    print("inputs:", ", ".join(node.name for node in writer.inputs))
    print("outputs:", ", ".join(writer.names()[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
