"""Runs without copies: arrays that the device uses where they are, and runs that go on while Python does something else.

    python examples/without_copies.py
"""

import pathlib

import numpy as np

import fornax

MODEL = pathlib.Path(__file__).resolve().parent.parent / "models" / "digits.onnx"
BATCH = 4096


def main():
    session = fornax.load(MODEL, dims={"N": BATCH})

    # fornax.empty() is numpy.empty() at an address that every device can use; numpy's own arrays mostly are, too.
    images = fornax.empty((BATCH, 1, 8, 8))
    images[:] = np.random.default_rng(1).random(images.shape, dtype=np.float32)
    probabilities = fornax.empty((BATCH, 10))

    session.run({"image": images}, out={"probabilities": probabilities})
    session.run({"image": images}, out={"probabilities": probabilities})
    print("used in place:", ", ".join(session.in_place))

    # The same memory may be written to between runs.
    images[:] = 0
    session.run({"image": images}, out={"probabilities": probabilities})
    print("all rows are equal now:", bool((probabilities == probabilities[0]).all()))

    # A run in the background, and another one of a second session beside it.
    other = session.clone()
    session.start({"image": images}, out={"probabilities": probabilities})
    second = other.run({"image": np.ones((2, 1, 8, 8), np.float32)})
    first = session.wait()
    print("both are done:", first["probabilities"].shape, second["probabilities"].shape)


if __name__ == "__main__":
    main()
