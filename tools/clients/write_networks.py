"""Writes networks of tools/models in their full size with seeded weights, as NAME.onnx, and inputs for each as NAME.npz.

Usage: write_networks.py FOLDER NAME...

Sizes are those of the inputs, none is symbolic: compilers of clients make better code of that, and some make none of symbolic sizes. `minilm` is all-MiniLM-L6's shape.
"""

import sys
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.models.catalogue import NETWORKS  # noqa: E402  (the root must be known first)
from tools.models.networks import bert  # noqa: E402


def built(name: str):
    """The network of tools/models."""
    return bert.bert(layers=6, width=384) if name == "minilm" else NETWORKS[name].build()


def fix_sizes(graph: onnx.GraphProto, arrays: dict[str, np.ndarray]):
    """Replaces symbolic sizes of the inputs and outputs by those that the arrays have."""
    sizes = {}
    for value in graph.input:
        for dimension, size in zip(value.type.tensor_type.shape.dim, arrays[value.name].shape, strict=True):
            if dimension.dim_param:
                sizes[dimension.dim_param] = size
    for value in (*graph.input, *graph.output):
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in sizes:
                dimension.dim_value = sizes[dimension.dim_param]


def write_network(folder: Path, name: str) -> Path:
    model = built(name)
    arrays = model.cases[0].arrays()
    fix_sizes(model.proto.graph, arrays)
    model.proto.graph.name = "network"
    path = folder / f"{name}.onnx"
    onnx.save(model.proto, path)
    np.savez(path.with_suffix(".npz"), **arrays)
    return path


def main():
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        write_network(folder, name)


if __name__ == "__main__":
    main()
