"""Whisper (tiny by default): the encoder of spectra, and the decoder without and with a cache of keys and values.

The decoder with a cache takes every layer's keys and values as inputs and gives the grown ones as outputs; those
of the encoder's states do not grow, so only the decoder without a cache computes them.
"""

import numpy as np

from tools.models.builder import Builder

FRAMES = 3000  # 30 seconds


def split_heads(b, x, heads, size):
    batch = b.size_of(x, 0)
    return b.transpose(b.reshape(x, batch, -1, heads, size), 0, 2, 1, 3)


def attend(b, query, key, value, width, mask=None):
    scores = b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2))
    if mask is not None:
        scores = b.op("Add", scores, mask)
    x = b.transpose(b.op("MatMul", b.op("Softmax", scores, axis=-1), value), 0, 2, 1, 3)
    x = b.reshape(x, b.size_of(x, 0), b.size_of(x, 1), width)
    return b.linear(x, width, width, name="out_proj")


def scaled_query(b, x, width, heads):
    query = b.linear(x, width, width, gain=1.5, name="q_proj")
    return split_heads(b, b.op("Mul", query, float((width // heads) ** -0.5)), heads, width // heads)


def keys_and_values(b, x, width, heads):
    key = split_heads(b, b.linear(x, width, width, bias=False, gain=1.5, name="k_proj"), heads, width // heads)
    return key, split_heads(b, b.linear(x, width, width, name="v_proj"), heads, width // heads)


def feed_forward(b, x, width):
    y = b.layer_norm(x, width, name="final_layer_norm")
    y = b.activation(b.linear(y, width, 4 * width, name="fc1"), "gelu")
    return b.op("Add", x, b.linear(y, 4 * width, width, gain=1.5, name="fc2"))


def whisper_encoder(layers=4, width=384, heads=6, bands=80, frames=FRAMES, seed=1):
    b = Builder("whisper_encoder", seed=seed)
    x = b.input("input_features", "float32", ("batch", bands, frames))
    with b.scope("conv1"):
        x = b.conv(x, bands, width, 3, activation="gelu", rank=1)
    with b.scope("conv2"):
        x = b.conv(x, width, width, 3, 2, activation="gelu", rank=1)
    x = b.transpose(x, 0, 2, 1)
    positions = 0.5 * b.random("embed_positions.weight", (frames // 2, width))
    x = b.op("Add", x, b.parameter("embed_positions.weight", positions))
    for i in range(layers):
        with b.scope(f"layers.{i}"):
            y = b.layer_norm(x, width, name="self_attn_layer_norm")
            with b.scope("self_attn"):
                query = scaled_query(b, y, width, heads)
                y = attend(b, query, *keys_and_values(b, y, width, heads), width)
            x = feed_forward(b, b.op("Add", x, y), width)
    x = b.layer_norm(x, width, name="layer_norm")
    b.output("last_hidden_state", x, "float32", ("batch", frames // 2, width))
    return b.model({"batch1": {"batch": 1}})


def causal_mask(b, rows, columns):
    """[rows, columns]: 0 where a row may look at a column, and the least float where not. The last row sees all."""
    zero, one = b.constant(np.int64(0)), b.constant(np.int64(1))
    row = b.unsqueeze(b.op("Range", b.op("Sub", columns, rows), columns, one), 1)
    column = b.unsqueeze(b.op("Range", zero, columns, one), 0)
    later = b.op("Greater", column, row)
    return b.op("Where", later, float(np.finfo(np.float32).min), 0.0)


def whisper_decoder(with_past, layers=4, width=384, heads=6, vocabulary=51865, frames=FRAMES, seed=1):
    b = Builder("whisper_decoder", seed=seed)
    size = width // heads
    states_length = frames // 2
    tokens = b.input("input_ids", "int64", ("batch", "sequence"), f"integers 0 {vocabulary}")
    past = {}
    if with_past:
        for i in range(layers):
            for side, length in (("decoder", "past_sequence"), ("encoder", states_length)):
                for part in ("key", "value"):
                    name = f"past_key_values.{i}.{side}.{part}"
                    past[i, side, part] = b.input(name, "float32", ("batch", heads, length, size))
    else:
        states = b.input("encoder_hidden_states", "float32", ("batch", states_length, width))

    sequence = b.size_of(tokens, 1)
    before = b.size_of(past[0, "decoder", "key"], 2) if with_past else b.constant(np.int64(0))
    length = b.op("Add", before, sequence)
    table = b.parameter("embed_tokens.weight", b.random("embed_tokens.weight", (vocabulary, width)))
    x = b.op("Gather", table, tokens)
    places = b.parameter("embed_positions.weight", 0.5 * b.random("embed_positions.weight", (448, width)))
    x = b.op("Add", x, b.slice(places, b.unsqueeze(before, 0), b.unsqueeze(length, 0), 0))
    mask = causal_mask(b, sequence, length)
    present = {}
    for i in range(layers):
        with b.scope(f"layers.{i}"):
            y = b.layer_norm(x, width, name="self_attn_layer_norm")
            with b.scope("self_attn"):
                query = scaled_query(b, y, width, heads)
                key, value = keys_and_values(b, y, width, heads)
                if with_past:
                    key = b.concat([past[i, "decoder", "key"], key], 2)
                    value = b.concat([past[i, "decoder", "value"], value], 2)
                present[i, "decoder", "key"], present[i, "decoder", "value"] = key, value
                x = b.op("Add", x, attend(b, query, key, value, width, mask))
            y = b.layer_norm(x, width, name="encoder_attn_layer_norm")
            with b.scope("encoder_attn"):
                query = scaled_query(b, y, width, heads)
                if with_past:
                    key, value = past[i, "encoder", "key"], past[i, "encoder", "value"]
                else:
                    key, value = keys_and_values(b, states, width, heads)
                    present[i, "encoder", "key"], present[i, "encoder", "value"] = key, value
                x = b.op("Add", x, attend(b, query, key, value, width))
            x = feed_forward(b, x, width)
    x = b.layer_norm(x, width, name="layer_norm")
    # The weight is the embedding's, of which the exporter makes a transposed copy.
    weight = b.initializers["embed_tokens.weight"].T * np.float32(width ** -0.5)
    logits = b.op("MatMul", x, b.exported("MatMul", weight))
    b.output("logits", logits, "float32", ("batch", "sequence", vocabulary))
    for (i, side, part), value in present.items():
        along = "past_sequence + sequence" if with_past else "sequence" if side == "decoder" else states_length
        b.output(f"present.{i}.{side}.{part}", value, "float32", ("batch", heads, along, size))
    if with_past:
        return b.model({"past32": {"batch": 1, "sequence": 1, "past_sequence": 32},
                        "past200": {"batch": 1, "sequence": 1, "past_sequence": 200}})
    return b.model({"sequence4": {"batch": 1, "sequence": 4}, "batch2": {"batch": 2, "sequence": 3}})
