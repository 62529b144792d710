"""BERT as torch exports it: separate products and sums, shape arithmetic in the graph, decomposed GELU.

At opset 11 the layer normalisations are decomposed as well (ReduceMean, Sub, Pow, Sqrt, Div).
"""

import numpy as np

from tools.models.builder import Builder

MOST_POSITIONS = 512


def split_heads(b, x, heads, size):
    """[batch, sequence, heads * size] to [batch, heads, sequence, size]."""
    x = b.reshape(x, b.size_of(x, 0), b.size_of(x, 1), heads, size)
    return b.transpose(x, 0, 2, 1, 3)


def self_attention(b, x, mask, width, heads):
    size = width // heads
    with b.scope("attention.self"):
        query = b.linear(x, width, width, gain=2.0, name="query")
        key = split_heads(b, b.linear(x, width, width, gain=2.0, name="key"), heads, size)
        value = split_heads(b, b.linear(x, width, width, name="value"), heads, size)
        query = split_heads(b, query, heads, size)
        scores = b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2))
        scores = b.op("Div", scores, float(np.sqrt(size)))
        weights = b.op("Softmax", b.op("Add", scores, mask), axis=-1 if b.opset >= 13 else 3)
        x = b.transpose(b.op("MatMul", weights, value), 0, 2, 1, 3)
        return b.reshape(x, b.size_of(x, 0), b.size_of(x, 1), width)


def layer(b, x, mask, width, heads, hidden):
    attended = self_attention(b, x, mask, width, heads)
    with b.scope("attention.output"):
        attended = b.linear(attended, width, width, name="dense")
        x = b.layer_norm(b.op("Add", attended, x), width, 1e-12, name="LayerNorm")
    with b.scope("intermediate"):
        y = b.linear(x, width, hidden, name="dense")
        with b.scope("intermediate_act_fn"):
            y = b.activation(y, "gelu")
    with b.scope("output"):
        y = b.linear(y, hidden, width, gain=1.5, name="dense")
        return b.layer_norm(b.op("Add", y, x), width, 1e-12, name="LayerNorm")


def bert(layers=12, width=768, heads=12, vocabulary=30522, opset=17, seed=1):
    b = Builder("bert", opset=opset, seed=seed)
    shape = ("batch", "sequence")
    tokens = b.input("input_ids", "int64", shape, f"integers 0 {vocabulary}")
    mask = b.input("attention_mask", "int64", shape, "mask")
    kinds = b.input("token_type_ids", "int64", shape, "integers 0 2")

    # 0 where the mask is 1, and the least float where it is 0.
    mask = b.cast(b.unsqueeze(b.unsqueeze(mask, 1), 2), np.float32)
    mask = b.op("Mul", b.op("Sub", 1.0, mask), float(np.finfo(np.float32).min))

    with b.scope("embeddings"):
        positions = b.parameter("position_ids", np.arange(MOST_POSITIONS, dtype=np.int64)[None])
        positions = b.slice(positions, 0, b.unsqueeze(b.size_of(tokens, 1), 0), 1)
        x = b.op("Add", b.embedding(tokens, vocabulary, width, name="word_embeddings"),
                 b.embedding(kinds, 2, width, name="token_type_embeddings"))
        x = b.op("Add", x, b.embedding(positions, MOST_POSITIONS, width, name="position_embeddings"))
        x = b.layer_norm(x, width, 1e-12, name="LayerNorm")
    for i in range(layers):
        with b.scope(f"encoder.layer.{i}"):
            x = layer(b, x, mask, width, heads, 4 * width)
    with b.scope("pooler"):
        first = b.op("Gather", x, b.constant(np.int64(0)), axis=1)
        pooled = b.op("Tanh", b.gemm(first, width, width, name="dense"))
    b.output("last_hidden_state", x, "float32", (*shape, width))
    b.output("pooler_output", pooled, "float32", ("batch", width))
    return b.model({"sequence128": {"batch": 1, "sequence": 128}, "sequence17": {"batch": 1, "sequence": 17},
                    "batch4": {"batch": 4, "sequence": 64}})
