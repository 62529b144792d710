"""Writes models of the llama and gemma3 architectures: seeded weights, a tokenizer of bytes and characters.

Usage: write_llama.py FILE.gguf --type f16|bf16|q8_0|q4_0 --shape tiny|tiny-gemma|1b|270m [--rounded-to TYPE]

The key names and tensor names are those of the GGUF specification (ggml, docs/gguf.md).
"""

import argparse
import dataclasses

import gguf
import numpy as np


@dataclasses.dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    context: int
    least_tokens: int = 0  # the vocabulary is filled up with tokens that no text has
    architecture: str = "llama"
    head_size: int = 0  # where it is not the width divided by the heads
    window: int = 0  # keys that layers with local attention see

    @property
    def size_of_head(self) -> int:
        return self.head_size or self.width // self.heads

    @property
    def is_gemma(self) -> bool:
        """Norms behind attention and feed-forward, norms of queries and keys, and the embeddings as the output matrix."""
        return self.architecture == "gemma3"


SHAPES = {
    "tiny": Shape(width=256, layers=4, heads=8, kv_heads=4, feed_forward=512, context=512),
    "tiny-gemma": Shape(width=256, layers=6, heads=4, kv_heads=1, feed_forward=512, context=512, architecture="gemma3",
                        head_size=128, window=8),
    # TinyLlama's, of 1.1 billion parameters.
    "1b": Shape(width=2048, layers=22, heads=32, kv_heads=4, feed_forward=5632, context=2048,
                least_tokens=32000),
    # Gemma 3's smallest, of 268 million parameters. Rows of 640 are no multiple of 256, so llama-quantize takes q5_0 and q8_0 for most
    # of its matrices where it is told a k-quant.
    "270m": Shape(width=640, layers=18, heads=4, kv_heads=1, feed_forward=2048, context=32768, least_tokens=262144,
                  architecture="gemma3", head_size=256, window=512),
}
# Larger than a trained model's, so that the best tokens are far apart and each input counts.
EMBEDDING_SCALE = 16
OUTPUT_SCALE = 4
# What Gemma's layers add, beside embeddings of OUTPUT_SCALE: else each token would be followed by itself.
LAYER_SCALE = 16
TYPES = {
    "f16": gguf.GGMLQuantizationType.F16,
    "bf16": gguf.GGMLQuantizationType.BF16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
}
FILE_TYPES = {
    "f16": gguf.LlamaFileType.MOSTLY_F16,
    "bf16": gguf.LlamaFileType.MOSTLY_BF16,
    "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
}


def vocabulary(least_tokens):
    """Tokens and their types: three special ones, every byte, the printable characters, and fillers."""
    tokens = [b"<unk>", b"<s>", b"</s>"]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    for byte in range(256):
        tokens.append(b"<0x%02X>" % byte)
        types.append(gguf.TokenType.BYTE)
    for character in ["\u2581", *map(chr, range(33, 127))]:  # the first stands for a space
        tokens.append(character.encode())
        types.append(gguf.TokenType.NORMAL)
    while len(tokens) < least_tokens:
        tokens.append(b"<unused%d>" % len(tokens))
        types.append(gguf.TokenType.UNUSED)
    return tokens, types


def write_model(path, type_name, shape=SHAPES["tiny"], seed=1, rounded_to=None):
    """A file that llama.cpp loads; the same bytes for the same arguments. With `rounded_to` the weights are what that type makes of them."""
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, shape.architecture)
    tokens, types = vocabulary(shape.least_tokens)
    writer.add_name("seeded weights")
    writer.add_file_type(FILE_TYPES[type_name])  # without it llama.cpp's Kompute backend refuses the model
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.size_of_head)
    if shape.head_size:
        writer.add_key_length(shape.head_size)
        writer.add_value_length(shape.head_size)
    if shape.window:
        writer.add_sliding_window(shape.window)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def add_matrix(name, rows, columns, scale=1):
        weights = random.standard_normal((rows, columns), np.float32) * np.float32(scale / np.sqrt(columns))
        if rounded_to:
            weights = gguf.dequantize(gguf.quantize(weights, TYPES[rounded_to]), TYPES[rounded_to])
        data = gguf.quantize(weights, TYPES[type_name])
        writer.add_tensor(name, data, raw_dtype=TYPES[type_name])

    def add_norm(name, size=shape.width, weight=1.0):
        writer.add_tensor(name, np.full(size, weight, np.float32))

    query_width = shape.size_of_head * shape.heads
    kv_width = shape.size_of_head * shape.kv_heads
    # Gemma multiplies its embeddings by the root of their width, and its logits are products with them.
    add_matrix("token_embd.weight", len(tokens), shape.width, OUTPUT_SCALE if shape.is_gemma else EMBEDDING_SCALE)
    for layer in range(shape.layers):
        block = f"blk.{layer}"
        add_norm(f"{block}.attn_norm.weight")
        add_matrix(f"{block}.attn_q.weight", query_width, shape.width)
        add_matrix(f"{block}.attn_k.weight", kv_width, shape.width)
        add_matrix(f"{block}.attn_v.weight", kv_width, shape.width)
        add_matrix(f"{block}.attn_output.weight", shape.width, query_width)
        if shape.is_gemma:
            add_norm(f"{block}.attn_q_norm.weight", shape.head_size)
            add_norm(f"{block}.attn_k_norm.weight", shape.head_size)
            add_norm(f"{block}.post_attention_norm.weight", weight=LAYER_SCALE)
            add_norm(f"{block}.post_ffw_norm.weight", weight=LAYER_SCALE)
        add_norm(f"{block}.ffn_norm.weight")
        add_matrix(f"{block}.ffn_gate.weight", shape.feed_forward, shape.width)
        add_matrix(f"{block}.ffn_up.weight", shape.feed_forward, shape.width)
        add_matrix(f"{block}.ffn_down.weight", shape.width, shape.feed_forward)
    add_norm("output_norm.weight")
    if not shape.is_gemma:
        add_matrix("output.weight", len(tokens), shape.width, OUTPUT_SCALE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--type", choices=TYPES, default="f16", help="of the matrices")
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounded-to", choices=TYPES, help="weights that this type holds")
    arguments = parser.parse_args()
    write_model(arguments.file, arguments.type, SHAPES[arguments.shape], arguments.seed, arguments.rounded_to)


if __name__ == "__main__":
    main()
