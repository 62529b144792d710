"""Taggers of tokens: an embedding, two bidirectional layers of LSTM or GRU, and a linear layer for each token.

The LSTM's initial state is made in the graph, as torch exports it. The GRU takes the sequences' lengths as an
input, so rows of a batch end at different steps.
"""

import numpy as np
from onnx import numpy_helper

from tools.models.builder import Builder

GATES = {"LSTM": 4, "GRU": 3}


def bidirectional(b, kind, x, size_in, hidden, state, lengths):
    """[sequence, batch, size_in] to [sequence, batch, 2 * hidden]."""
    gates = GATES[kind] * hidden
    scale = np.float32(hidden ** -0.5)
    weights = [b.exported(kind, scale * b.random(b.parameter_name(name), shape)) for name, shape in (
        ("weight_ih", (2, gates, size_in)), ("weight_hh", (2, gates, hidden)), ("bias", (2, 2 * gates)))]
    attributes = {"linear_before_reset": 1} if kind == "GRU" else {}
    states = [state] * (2 if kind == "LSTM" else 1)
    results = b.op(kind, x, *weights, lengths, *states, outputs=len(states) + 1, direction="bidirectional",
                   hidden_size=hidden, **attributes)
    # [sequence, 2, batch, hidden] to [sequence, batch, 2 * hidden]; 0 keeps a dimension.
    y = b.transpose(results[0], 0, 2, 1, 3)
    return b.op("Reshape", y, np.asarray([0, 0, -1], np.int64))


def tagger(kind="LSTM", layers=2, width=128, hidden=256, vocabulary=20000, tags=17, seed=1):
    b = Builder(f"{kind.lower()}_tagger", seed=seed)
    shape = ("batch", "sequence")
    tokens = b.input("tokens", "int64", shape, f"integers 0 {vocabulary}")
    lengths = b.input("lengths", "int32", ("batch",), "lengths sequence") if kind == "GRU" else None
    x = b.embedding(tokens, vocabulary, width, name="embedding")
    x = b.transpose(x, 1, 0, 2)
    zero = numpy_helper.from_array(np.zeros(1, np.float32))
    size = width
    for i in range(layers):
        with b.scope(f"rnn.{i}"):
            state = b.op("ConstantOfShape", b.shape_of(2, b.size_of(x, 1), hidden), value=zero)
            x = bidirectional(b, kind, x, size, hidden, state, lengths)
        size = 2 * hidden
    x = b.linear(b.transpose(x, 1, 0, 2), size, tags, gain=2.0, name="classifier")
    b.output("tag_scores", b.op("LogSoftmax", x, axis=-1), "float32", (*shape, tags))
    return b.model({"sequence64": {"batch": 1, "sequence": 64}, "batch4": {"batch": 4, "sequence": 23}})
