"""A decoder like Llama's: RMSNorm, rotary embeddings, grouped queries, SwiGLU, a cache that Concat makes longer.

By default 6 layers of 768, 12 heads that share 4 heads of keys and values. From opset 23 on the norms, the rotary
embeddings and the attention with its cache are ONNX's own operators; before, they are spelled out.
"""

import numpy as np

from tools.models.builder import Builder

ROTARY_BASE = 10000.0
MOST_POSITIONS = 2048


def rms_norm(b, x, width, name):
    with b.scope(name):
        if b.opset >= 23:
            weight = b.parameter("weight", 1 + 0.1 * b.random(b.parameter_name("weight"), width))
            return b.op("RMSNormalization", x, weight, axis=-1, epsilon=1e-5)
        mean_square = b.reduce_mean(b.op("Pow", x, 2.0), -1)
        scale = b.op("Div", 1.0, b.op("Sqrt", b.op("Add", mean_square, 1e-5)))
        weight = b.parameter("weight", 1 + 0.1 * b.random(b.parameter_name("weight"), width))
        return b.op("Mul", weight, b.op("Mul", x, scale))


def rotary_tables(b, positions, size):
    """Cosines and sines [batch, 1, sequence, size] of the positions [batch, sequence]; from opset 23 on tables of all
    positions [MOST_POSITIONS, size / 2], then the positions."""
    with b.scope("rotary_emb"):
        if b.opset >= 23:
            angles = np.outer(np.arange(MOST_POSITIONS), ROTARY_BASE ** (-np.arange(0, size, 2) / size))
            return (b.parameter("cos_cache", np.cos(angles).astype(np.float32)),
                    b.parameter("sin_cache", np.sin(angles).astype(np.float32)), positions)
        frequencies = (ROTARY_BASE ** (-np.arange(0, size, 2) / size)).astype(np.float32)
        batch = b.size_of(positions, 0)
        frequencies = b.op("Expand", b.constant(frequencies[None, :, None]), b.shape_of(batch, size // 2, 1))
        angles = b.op("MatMul", frequencies, b.cast(b.unsqueeze(positions, 1), np.float32))
        angles = b.transpose(angles, 0, 2, 1)
        angles = b.concat([angles, angles], -1)
        return tuple(b.unsqueeze(b.op(function, angles), 1) for function in ("Cos", "Sin"))


def rotate(b, x, cosines, sines, size):
    half = size // 2
    turned = b.concat([b.op("Neg", b.slice(x, half, np.iinfo(np.int64).max, 3)), b.slice(x, 0, half, 3)], -1)
    return b.op("Add", b.op("Mul", x, cosines), b.op("Mul", turned, sines))


def repeated(b, x, groups, heads, size):
    """Each head of [batch, heads, length, size] `groups` times."""
    batch, length = b.size_of(x, 0), b.size_of(x, 2)
    wide = b.op("Expand", b.unsqueeze(x, 2), b.shape_of(batch, heads, groups, length, size))
    return b.reshape(wide, batch, heads * groups, length, size)


def attention(b, x, past, mask, rotary, width, heads, kv_heads):
    size = width // heads
    with b.scope("self_attn"):
        batch, sequence = b.size_of(x, 0), b.size_of(x, 1)
        parts = []
        for name, count in (("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads)):
            part = b.linear(x, width, count * size, bias=False, gain=1.2, name=name)
            parts.append(b.transpose(b.reshape(part, batch, sequence, count, size), 0, 2, 1, 3))
        query, key, value = parts
        if b.opset >= 23:
            query, key = (b.op("RotaryEmbedding", part, *rotary) for part in (query, key))
            y, *present = b.op("Attention", query, key, value, mask, *past, outputs=3, scale=float(size ** -0.5))
            y = b.reshape(b.transpose(y, 0, 2, 1, 3), batch, sequence, width)
            return b.linear(y, width, width, bias=False, name="o_proj"), present
        query, key = (rotate(b, part, *rotary, size) for part in (query, key))
        key, value = b.concat([past[0], key], 2), b.concat([past[1], value], 2)
        present = key, value
        key, value = (repeated(b, part, heads // kv_heads, kv_heads, size) for part in present)
        scores = b.op("Div", b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2)), float(np.sqrt(size)))
        weights = b.op("Softmax", b.op("Add", scores, mask), axis=-1)
        y = b.transpose(b.op("MatMul", weights, value), 0, 2, 1, 3)
        y = b.reshape(y, batch, sequence, width)
        return b.linear(y, width, width, bias=False, name="o_proj"), present


def attention_mask(b, given, sequence, length):
    """[batch, 1, sequence, length]: the least float where a later token or padding is, else 0; from opset 23 on whether
    neither is there."""
    zero, one = b.constant(np.int64(0)), b.constant(np.int64(1))
    row = b.unsqueeze(b.op("Range", b.op("Sub", length, sequence), length, one), 1)
    column = b.unsqueeze(b.op("Range", zero, length, one), 0)
    allowed = b.op("LessOrEqual", column, row)
    seen = b.unsqueeze(b.unsqueeze(b.cast(given, np.bool_), 1), 2)
    allowed = b.op("And", b.unsqueeze(b.unsqueeze(allowed, 0), 1), seen)
    if b.opset >= 23:
        return allowed
    return b.op("Where", allowed, 0.0, float(np.finfo(np.float32).min))


def llama(layers=6, width=768, heads=12, kv_heads=4, hidden=2048, vocabulary=32000, opset=17, seed=1):
    b = Builder("llama", opset=opset, seed=seed)
    size = width // heads
    tokens = b.input("input_ids", "int64", ("batch", "sequence"), f"integers 0 {vocabulary}")
    given = b.input("attention_mask", "int64", ("batch", "past_sequence + sequence"), "constant 1")
    positions = b.input("position_ids", "int64", ("batch", "sequence"), "positions past_sequence")
    past = [[b.input(f"past_key_values.{i}.{part}", "float32", ("batch", kv_heads, "past_sequence", size))
             for part in ("key", "value")] for i in range(layers)]
    with b.scope("model"):
        x = b.embedding(tokens, vocabulary, width, name="embed_tokens")
        sequence = b.size_of(tokens, 1)
        length = b.op("Add", b.size_of(past[0][0], 2), sequence)
        mask = attention_mask(b, given, sequence, length)
        rotary = rotary_tables(b, positions, size)
        present = []
        for i in range(layers):
            with b.scope(f"layers.{i}"):
                y, grown = attention(b, rms_norm(b, x, width, "input_layernorm"), past[i], mask, rotary, width, heads,
                                     kv_heads)
                present.append(grown)
                x = b.op("Add", x, y)
                y = rms_norm(b, x, width, "post_attention_layernorm")
                with b.scope("mlp"):
                    gate = b.linear(y, width, hidden, bias=False, name="gate_proj")
                    with b.scope("act_fn"):
                        gate = b.activation(gate, "silu")
                    y = b.op("Mul", gate, b.linear(y, width, hidden, bias=False, name="up_proj"))
                    x = b.op("Add", x, b.linear(y, hidden, width, bias=False, gain=2.0, name="down_proj"))
        x = rms_norm(b, x, width, "norm")
    logits = b.linear(x, width, vocabulary, bias=False, name="lm_head")
    b.output("logits", logits, "float32", ("batch", "sequence", vocabulary))
    for i, pair in enumerate(present):
        for part, value in zip(("key", "value"), pair):
            b.output(f"present.{i}.{part}", value, "float32", ("batch", kv_heads, "past_sequence + sequence", size))
    return b.model({"past128": {"batch": 1, "sequence": 1, "past_sequence": 128},
                    "prompt128": {"batch": 1, "sequence": 128, "past_sequence": 0},
                    "batch2": {"batch": 2, "sequence": 5, "past_sequence": 19}})
