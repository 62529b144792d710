"""Writes small ONNX models of all operators to a folder, to begin fuzzing with.

    python3 onnx_seeds.py FOLDER

They are models of onnx's node tests: for every set of operators the smallest ones, with constants for inputs that
decide shapes.
"""
import collections
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

MOST_BYTES = 4096
OF_EACH = 4


def with_constants(case):
    """The model with its integer inputs of rank 0 and 1 as initialisers; inputs that are not tensors stay."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs = case.data_sets[0][0]
    for declared, value in zip(list(model.graph.input), inputs):
        array = value if isinstance(value, np.ndarray) else None
        if array is not None and array.ndim <= 1 and array.dtype in (np.int64, np.int32) and len(inputs) > 1:
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, declared.name))
            model.graph.input.remove(declared)
    return model


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    by_operators = collections.defaultdict(dict)
    with np.errstate(all="ignore"):
        for case in load_model_tests(kind="node"):
            operators = tuple(sorted({node.op_type for node in case.model.graph.node}))
            data = with_constants(case).SerializeToString()
            if len(data) <= MOST_BYTES:
                by_operators[operators][data] = case.name
    for models in by_operators.values():
        for data in sorted(models, key=len)[:OF_EACH]:
            (folder / f"{models[data]}.onnx").write_bytes(data)


if __name__ == "__main__":
    main()
