"""Classifies handwritten digits: loads a network, runs it on a batch, and counts what is right.

    python examples/classify_digits.py

The test images and labels beside the network are ONNX tensors, which the package onnx reads.
"""

import pathlib

import numpy as np
import onnx
from onnx import numpy_helper

import fornax

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"


def main():
    session = fornax.load(MODELS / "digits.onnx")
    print("device:", session.device)
    for port in session.inputs:
        print(f"input {port.name}: {port.dtype} {port.shape}")

    images = numpy_helper.to_array(onnx.load_tensor(str(MODELS / "digits_test_images.pb")))
    labels = numpy_helper.to_array(onnx.load_tensor(str(MODELS / "digits_test_labels.pb")))

    # By name ...
    probabilities = session.run({"image": images})["probabilities"]
    right = np.count_nonzero(probabilities.argmax(axis=1) == labels.reshape(-1))
    print(f"accuracy: {100 * right / len(images):.1f} % of {len(images)}")

    # ... or in order; another size of the batch is compiled when it first comes.
    first = session(images[:1])
    print("the first image is a", int(first.argmax()))


if __name__ == "__main__":
    main()
