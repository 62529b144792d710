"""The inputs that a model is tried with: shapes and kinds of values, kept in a JSON file beside the model.

A fill says what an input's numbers are, so that they are of the kind that the network expects:

    normal [SCALE]     normally distributed, of standard deviation 1 unless SCALE says another
    uniform LOW HIGH   uniformly distributed
    image LOW HIGH     uniformly distributed large and small patches along the two long axes, as pictures have them
    integers LOW HIGH  whole numbers, HIGH excluded; token numbers are "integers 0 VOCABULARY"
    mask               1, and 0 at the end of each row but the first: sequences that were padded
    positions FIRST    FIRST, FIRST + 1, ... along the last axis
    lengths MOST       MOST for the first row, shorter for the others
    constant NUMBER    this number everywhere
"""

import dataclasses
import json
import pathlib
import re

import numpy as np


@dataclasses.dataclass(frozen=True)
class Input:
    dtype: str  # as numpy names it
    shape: list[int]
    fill: str

    def to_text(self):
        """For example: float32[1,3,224,224] image 0 1."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}] {self.fill}"

    @staticmethod
    def from_text(text):
        match = re.fullmatch(r"(\w+)\[([\d,]*)\] (.+)", text)
        if not match:
            raise ValueError(f"An input is described as DTYPE[SIZE,...] FILL, not as {text!r}.")
        return Input(match[1], [int(size) for size in match[2].split(",") if size], match[3])


@dataclasses.dataclass(frozen=True)
class Case:
    """One set of inputs, under a label such as "sequence128"."""
    label: str
    inputs: dict[str, Input]

    @staticmethod
    def from_dimensions(label, inputs, dimensions):
        """`inputs` are (name, dtype, shape, fill); names of dimensions in shapes and fills become numbers.

        A name may be a sum: "past_sequence + sequence".
        """
        def number(text):
            return sum(int(part) if part.isdigit() else dimensions[part] for part in str(text).split(" + "))

        def filled(fill):
            return " ".join(str(dimensions.get(word, word)) for word in fill.split())

        return Case(label, {name: Input(np.dtype(dtype).name, [number(dim) for dim in shape], filled(fill))
                            for name, dtype, shape, fill in inputs})

    def arrays(self, seed=1):
        """Seeded arrays by name of input."""
        rng = np.random.default_rng(seed)
        return {name: fill_array(rng, entry) for name, entry in self.inputs.items()}


def image(rng, shape, low, high):
    """Patches of 1/2, 1/8 and 1/32 of the picture and single pixels.

    Noise alone would always be the same to a classifier, which takes the mean over all places. All pictures have
    the same brightness and contrast, which random networks amplify from layer to layer. The picture's axes are the
    last two, or those before a last axis of colours.
    """
    axes = (len(shape) - 3, len(shape) - 2) if shape[-1] <= 4 < shape[-2] else (len(shape) - 2, len(shape) - 1)
    total = rng.uniform(0, 1, shape)
    for parts in (2, 8, 32):
        patches = rng.uniform(0, 1, [parts if axis in axes else size for axis, size in enumerate(shape)])
        for axis in axes:
            patches = np.take(patches, np.arange(shape[axis]) * parts // shape[axis], axis)
        total += patches
    total -= total.mean(axes, keepdims=True)
    total /= total.std(axes, keepdims=True)
    return np.clip((low + high) / 2 + (high - low) / 4 * total, low, high)


def fill_array(rng, entry):
    kind, *arguments = entry.fill.split()
    numbers = [float(argument) for argument in arguments]
    shape = tuple(entry.shape)
    if kind == "normal":
        array = rng.standard_normal(shape) * (numbers[0] if numbers else 1)
    elif kind == "uniform":
        array = rng.uniform(*numbers, shape)
    elif kind == "image":
        array = image(rng, shape, *numbers)
    elif kind == "integers":
        array = rng.integers(*map(int, numbers), shape)
    elif kind == "mask":
        array = np.ones(shape)
        for row in range(1, shape[0]):
            array[row, max(1, shape[1] - shape[1] * row // (2 * shape[0])):] = 0
    elif kind == "positions":
        array = np.broadcast_to(numbers[0] + np.arange(shape[-1]), shape)
    elif kind == "lengths":
        array = np.maximum(1, numbers[0] - numbers[0] // 3 * np.arange(shape[0]))
    elif kind == "constant":
        array = np.full(shape, numbers[0])
    else:
        raise ValueError(f"There is no fill {kind}.")
    return np.asarray(array).astype(entry.dtype)


def cases_path(model_path):
    return pathlib.Path(model_path).with_suffix(".json")


def cases_to_json(cases):
    return {case.label: {name: entry.to_text() for name, entry in case.inputs.items()} for case in cases}


def cases_from_json(text):
    return [Case(label, {name: Input.from_text(entry) for name, entry in inputs.items()})
            for label, inputs in text.items()]


def write_cases(model_path, cases):
    """Writes the cases beside a model."""
    cases_path(model_path).write_text(json.dumps(cases_to_json(cases), indent=1) + "\n")


def read_cases(model_path):
    """The cases that stand beside a model."""
    return cases_from_json(json.loads(cases_path(model_path).read_text()))
