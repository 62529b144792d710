"""Writes a small model of the llama architecture: seeded weights, a tokenizer of bytes and characters.

Usage: write_model.py FILE.gguf --type f16|bf16|q8_0|q4_0

The key names and tensor names are those of the GGUF specification (ggml, docs/gguf.md).
"""

import argparse

import gguf
import numpy as np

WIDTH = 256
LAYERS = 4
HEADS = 8
KV_HEADS = 4
FEED_FORWARD = 512
CONTEXT = 512
# Larger than a trained model's, so that the best tokens are far apart and each input counts.
EMBEDDING_SCALE = 16
OUTPUT_SCALE = 4
TYPES = {
    "f16": gguf.GGMLQuantizationType.F16,
    "bf16": gguf.GGMLQuantizationType.BF16,
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
}


def vocabulary():
    """Tokens and their types: three special ones, every byte, and the printable characters."""
    tokens = [b"<unk>", b"<s>", b"</s>"]
    types = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    for byte in range(256):
        tokens.append(b"<0x%02X>" % byte)
        types.append(gguf.TokenType.BYTE)
    for character in ["\u2581", *map(chr, range(33, 127))]:  # the first stands for a space
        tokens.append(character.encode())
        types.append(gguf.TokenType.NORMAL)
    return tokens, types


def write_model(path, type_name, seed=1):
    """A file that llama.cpp loads; the same bytes for the same arguments."""
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    tokens, types = vocabulary()
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def add_matrix(name, rows, columns, scale=1):
        weights = random.standard_normal((rows, columns)) * scale / np.sqrt(columns)
        data = gguf.quantize(weights.astype(np.float32), TYPES[type_name])
        writer.add_tensor(name, data, raw_dtype=TYPES[type_name])

    def add_norm(name):
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    kv_width = WIDTH // HEADS * KV_HEADS
    add_matrix("token_embd.weight", len(tokens), WIDTH, EMBEDDING_SCALE)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        add_norm(f"{block}.attn_norm.weight")
        add_matrix(f"{block}.attn_q.weight", WIDTH, WIDTH)
        add_matrix(f"{block}.attn_k.weight", kv_width, WIDTH)
        add_matrix(f"{block}.attn_v.weight", kv_width, WIDTH)
        add_matrix(f"{block}.attn_output.weight", WIDTH, WIDTH)
        add_norm(f"{block}.ffn_norm.weight")
        add_matrix(f"{block}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        add_matrix(f"{block}.ffn_up.weight", FEED_FORWARD, WIDTH)
        add_matrix(f"{block}.ffn_down.weight", WIDTH, FEED_FORWARD)
    add_norm("output_norm.weight")
    add_matrix("output.weight", len(tokens), WIDTH, OUTPUT_SCALE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--type", choices=TYPES, default="f16", help="of the matrices")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write_model(arguments.file, arguments.type, arguments.seed)


if __name__ == "__main__":
    main()
