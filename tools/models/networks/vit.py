"""ViT as timm has it: one product for query, key and value, and pre-normalisation."""

import numpy as np

from tools.models.builder import Builder


def attention(b, x, width, heads):
    size = width // heads
    with b.scope("attn"):
        batch, sequence = b.size_of(x, 0), b.size_of(x, 1)
        qkv = b.reshape(b.linear(x, width, 3 * width, gain=1.5, name="qkv"), batch, sequence, 3, heads, size)
        qkv = b.transpose(qkv, 2, 0, 3, 1, 4)
        query, key, value = (b.op("Gather", qkv, b.constant(np.int64(i)), axis=0) for i in range(3))
        # Both operands are scaled by the fourth root, as scaled_dot_product_attention is exported.
        scale = float(size ** -0.25)
        scores = b.op("MatMul", b.op("Mul", query, scale), b.op("Mul", b.transpose(key, 0, 1, 3, 2), scale))
        x = b.op("MatMul", b.op("Softmax", scores, axis=-1), value)
        x = b.reshape(b.transpose(x, 0, 2, 1, 3), batch, sequence, width)
        return b.linear(x, width, width, name="proj")


def vit(layers=12, width=768, heads=12, patch=16, image=224, classes=1000, seed=1):
    b = Builder("vit", seed=seed)
    x = b.input("pixel_values", "float32", ("batch", 3, image, image), "image -2 2")
    with b.scope("patch_embed.proj"):
        x = b.conv(x, 3, width, patch, patch, padding=0)
    with b.scope("patch_embed"):
        batch = b.size_of(x, 0)
        x = b.transpose(b.reshape(x, batch, width, -1), 0, 2, 1)
    token = b.parameter("cls_token", b.random("cls_token", (1, 1, width)))
    x = b.concat([b.op("Expand", token, b.shape_of(batch, 1, width)), x], 1)
    count = (image // patch) ** 2 + 1
    x = b.op("Add", x, b.parameter("pos_embed", 0.5 * b.random("pos_embed", (1, count, width))))
    for i in range(layers):
        with b.scope(f"blocks.{i}"):
            x = b.op("Add", x, attention(b, b.layer_norm(x, width, 1e-6, name="norm1"), width, heads))
            with b.scope("mlp"):
                y = b.linear(b.layer_norm(x, width, 1e-6, name="norm2"), width, 4 * width, name="fc1")
                y = b.linear(b.activation(y, "gelu"), 4 * width, width, gain=1.5, name="fc2")
            x = b.op("Add", x, y)
    x = b.op("Gather", b.layer_norm(x, width, 1e-6, name="norm"), b.constant(np.int64(0)), axis=1)
    b.output("logits", b.gemm(x, width, classes, name="head"), "float32", ("batch", classes))
    return b.model({"batch1": {"batch": 1}, "batch2": {"batch": 2}})
