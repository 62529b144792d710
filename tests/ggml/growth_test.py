"""A cache of keys and values that grows, as llama.cpp has one: graphs that differ in their sizes alone share a
plan from the second size on, in the next process from the first on.

Environment: as of backend_test.py, and FORNAX_GGML_WITHOUT_COMPILER, FORNAX_COMMAND, the command-line tool.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
import features_test  # noqa: E402  (the folder must be known first)

WITHOUT_COMPILER = os.environ["FORNAX_GGML_WITHOUT_COMPILER"]
# Tokens are written to a cache of 1024 rows, and attend to the first `keys` of them.
GROW = """
DEPTH, HEADS, GROUPS, CONTEXT = 16, 4, 2, 1024
WIDTH = DEPTH * GROUPS
backend = ggml.backend_dev_init(devices[0], None)
random = np.random.default_rng(1)
kept = ggml.context()
key_cache = ggml.tensor(kept, F16, WIDTH, CONTEXT)
value_cache = ggml.tensor(kept, F16, *([WIDTH, CONTEXT] if {flash} else [1, WIDTH * CONTEXT]))
ggml.set_name(key_cache, b"keys")  # else it has none in the first graph alone
ggml.set_name(value_cache, b"values")
kept_buffer = ggml.backend_alloc_ctx_tensors(kept, backend)
keys_now = random.standard_normal((CONTEXT, WIDTH), np.float32).astype(np.float16)
values_now = random.standard_normal((CONTEXT, WIDTH), np.float32).astype(np.float16)
ggml.set(key_cache, keys_now)
ggml.set(value_cache, values_now if {flash} else values_now.T)

def step(keys, TOKENS):
    at = keys - TOKENS - 3
    context = ggml.context()
    query = ggml.tensor(context, F32, DEPTH, HEADS, TOKENS)
    key, value = (ggml.tensor(context, F32, WIDTH, TOKENS) for _ in range(2))
    places = ggml.tensor(context, I64, TOKENS)
    mask = ggml.tensor(context, F16 if {flash} else F32, keys, TOKENS)
    inputs = [random.standard_normal((TOKENS, n), np.float32) for n in (DEPTH * HEADS, WIDTH, WIDTH)]
    rows = ggml.set_rows(context, key_cache, key, places)
    if {flash}:
        more = ggml.set_rows(context, value_cache, value, places)
    else:
        elements = ggml.tensor(context, I64, WIDTH * TOKENS)
        flat = ggml.tensor(context, F32, 1, WIDTH * TOKENS)
        more = ggml.set_rows(context, value_cache, flat, elements)
    turned = ggml.permute(context, query, 0, 2, 1, 3)
    k = ggml.view_3d(context, key_cache, DEPTH, keys, GROUPS, WIDTH * 2, DEPTH * 2, 0)
    if {flash}:
        v = ggml.view_3d(context, value_cache, DEPTH, keys, GROUPS, WIDTH * 2, DEPTH * 2, 0)
        result = ggml.flash_attn_ext(context, turned, k, v, mask, 0.25, 0.0, 0.0)
    else:
        v = ggml.view_3d(context, value_cache, keys, DEPTH, GROUPS, CONTEXT * 2, CONTEXT * DEPTH * 2, 0)
        scores = ggml.soft_max_ext(context, ggml.mul_mat(context, k, turned), mask, 0.25, 0.0)
        result = ggml.cont(context, ggml.permute(context, ggml.mul_mat(context, v, scores), 0, 2, 1, 3))
    graph = ggml.graph(context, rows, more, result)
    buffer = ggml.backend_alloc_ctx_tensors(context, backend)
    rows_at = np.arange(at, at + TOKENS)
    ggml.set(query, inputs[0])
    ggml.set(key, inputs[1])
    ggml.set(value, inputs[2])
    ggml.set(places, rows_at)
    hidden = np.where(np.arange(keys)[None, :] <= rows_at[:, None], 0, -np.inf).astype(np.float32)
    ggml.set(mask, hidden.astype(np.float16) if {flash} else hidden)
    if not {flash}:
        ggml.set(elements, (np.arange(WIDTH)[None, :] * CONTEXT + rows_at[:, None]).ravel())
        ggml.set(flat, inputs[2].reshape(-1, 1))
    print("keys", keys, file=sys.stderr, flush=True)
    assert ggml.backend_graph_compute(backend, graph) == 0
    keys_now[rows_at], values_now[rows_at] = inputs[1], inputs[2]
    q = inputs[0].reshape(TOKENS, GROUPS, HEADS // GROUPS, DEPTH)
    k = keys_now[:keys].astype(np.float32).reshape(keys, GROUPS, DEPTH)
    v = values_now[:keys].astype(np.float32).reshape(keys, GROUPS, DEPTH)
    scores = np.einsum("tghd,kgd->tghk", q, k) * 0.25 + hidden[:, None, None, :]
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("tghk,kgd->tghd", shares / shares.sum(-1, keepdims=True), v)
    actual = ggml.get(result, F32, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=2e-3)
    assert (ggml.get(key_cache, F16, keys_now.shape) == keys_now).all()
    ggml.backend_buffer_free(buffer)
    ggml.free(context)

for keys, tokens in {sizes}:
    step(keys, tokens)
"""

# Rows that are multiplied by quantised weights: each gives what it gives among others. Five have a kernel of their own.
PROMPTS = """
backend = ggml.backend_dev_init(devices[0], None)
random = np.random.default_rng(1)
kept = ggml.context()
weights = ggml.tensor(kept, Q4_0, 256, 64)
ggml.set_name(weights, b"weights")
buffer = ggml.backend_alloc_ctx_tensors(kept, backend)
ggml.backend_buffer_set_usage(buffer, 1)
blocks = np.zeros((512, 18), np.uint8)
blocks[:, :2] = random.uniform(0.01, 0.1, (512, 1)).astype(np.float16).view(np.uint8)
blocks[:, 2:] = random.integers(0, 256, (512, 16))
ggml.set(weights, blocks)
rows = random.standard_normal((200, 256), np.float32)
known = None
for count in (20, 33, 200, 5, 21):
    context = ggml.context()
    x = ggml.tensor(context, F32, 256, count)
    y = ggml.mul_mat(context, weights, x)
    graph = ggml.graph(context, y)
    buffer = ggml.backend_alloc_ctx_tensors(context, backend)
    ggml.set(x, rows[:count])
    assert ggml.backend_graph_compute(backend, graph) == 0
    result = ggml.get(y, F32, (count, 64))
    known = result if known is None else known
    np.testing.assert_allclose(result[:20], known[:count], rtol=1e-4, atol=1e-4)
"""


def script(sizes, flash=True, tokens=1):
    """Sizes are keys, or keys and tokens."""
    pairs = [size if isinstance(size, tuple) else (size, tokens) for size in sizes]
    return GROW.format(sizes=pairs, flash=flash)


class Growth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fornax-growth-")
        self.addCleanup(folder.cleanup)
        self.kernels, self.cache = (Path(folder.name) / name for name in ("kernels", "cache"))

    def grow(self, sizes, flash=True, tokens=1, **variables):
        """What each size's plan came from, in a process of its own."""
        text = features_test.run(script(sizes, flash, tokens), **{"FORNAX_CACHE_DIR": str(self.cache), **variables})
        parts = re.split("keys [0-9]+\n", text)[1:]
        self.assertEqual(len(parts), len(sizes), text)
        self.text = text
        return [" ".join(re.findall(r"steps \((.*)\)", part)) for part in parts]

    def test_nothing_is_compiled_from_the_third_size_on(self):
        for flash in (True, False):
            for tokens in (1, 5):
                with self.subTest(flash=flash, tokens=tokens):
                    self.assertEqual(self.grow([64, 128, 192, 320, 960, 1024, 64], flash, tokens),
                                     ["MISS", "MISS, generalized", *["HIT for other sizes"] * 4, ""], self.text)
                    self.assertEqual(self.grow([448, 64, 832], flash, tokens),
                                     ["HIT, generalized", *["HIT for other sizes"] * 2], self.text)

    def test_tokens_and_keys_may_both_grow(self):
        """A prompt in batches, the last of which is shorter."""
        generalized = [*["MISS, generalized"] * 2, *["HIT for other sizes"] * 3]
        for flash in (True, False):
            with self.subTest(flash=flash):
                self.assertEqual(self.grow([(64, 16), (128, 16), (320, 24), (512, 40), (960, 8), (1024, 48)], flash),
                                 ["MISS", *generalized], self.text)
                self.assertEqual(self.grow([(448, 32), (64, 8)], flash), ["HIT, generalized", "HIT for other sizes"],
                                 self.text)

    def test_sizes_that_are_no_multiple_share_another_plan(self):
        self.assertEqual(self.grow([256, 512, 768, 96, 352, 33]),
                         [*["MISS", "MISS, generalized", "HIT for other sizes"], *["MISS, generalized", "HIT for other sizes"],
                          "MISS, generalized"])

    def test_prompts_of_other_lengths_share_products_of_quantised_weights(self):
        text = features_test.run(PROMPTS, FORNAX_CACHE_DIR=str(self.cache))
        self.assertEqual(re.findall(r"steps \((.*)\)", text),
                         ["MISS", "MISS, generalized", "HIT for other sizes", "MISS", "HIT for other sizes"], text)

    def test_a_damaged_record_is_made_anew(self):
        self.grow([128, 256])
        record, = self.cache.glob("graphfamily-*")
        for damage in (lambda data: data[:-1], lambda data: data[:40], lambda data: b"", lambda data: data[::-1]):
            record.write_bytes(damage(record.read_bytes()))
            self.assertEqual(self.grow([128, 256, 384]),
                             ["HIT", "HIT, generalized", "HIT for other sizes"], self.text)
            record, = self.cache.glob("graphfamily-*")

    def test_the_directory_of_kernels_serves_other_sizes(self):
        self.grow([128, 256], FORNAX_GGML_EXPORT=str(self.kernels))
        self.assertEqual(len(list(self.kernels.glob("*.family"))), 1)
        self.cache = self.cache.with_name("empty")
        hit = f"HIT in {self.kernels}, generalized"
        self.assertEqual(self.grow([384, 128, 640], FORNAX_KERNEL_DIR=str(self.kernels), FORNAX_COMPILER="off"),
                         [hit, *["HIT for other sizes"] * 2], self.text)
        # What is exported by a process that compiles nothing is complete too.
        for variables in ({"FORNAX_COMPILER": "off"}, {}):
            again = self.kernels.with_name("again" + str(len(variables)))
            self.grow([384], FORNAX_KERNEL_DIR=str(self.kernels), FORNAX_GGML_EXPORT=str(again), **variables)
            self.assertEqual(self.grow([512], FORNAX_KERNEL_DIR=str(again), FORNAX_COMPILER="off"),
                             [f"HIT in {again}, generalized"], self.text)
        record, = self.kernels.glob("*.family")
        record.write_bytes(record.read_bytes()[:-9])
        self.assertEqual(self.grow([384], FORNAX_KERNEL_DIR=str(self.kernels)), ["MISS"], self.text)
        self.assertIn(f"{record} is skipped", self.text)

    def test_exports_with_an_open_size(self):
        """What was exported when the second size came computes the third as the third's own export does."""
        import onnx
        import onnxruntime
        for name, text, size in (("flash", script([64, 128, 192], tokens=5), 192),
                                 ("products", script([64, 128, 192], flash=False), 192), ("prompts", PROMPTS, 200)):
            with self.subTest(name):
                folder = self.kernels / name
                features_test.run(text, FORNAX_CACHE_DIR=str(self.cache), FORNAX_GGML_EXPORT=str(folder),
                                  FORNAX_GGML_EXPORT_FORMATS="onnx,torch")
                open_file = next(folder.glob("family_*.onnx"))
                onnx.checker.check_model(open_file, full_check=True)
                opened = onnxruntime.InferenceSession(open_file)
                names = [port.name for port in opened.get_outputs()]
                self.assertIn("size0", " ".join(str(dim) for port in opened.get_inputs() for dim in port.shape))
                sessions = [onnxruntime.InferenceSession(file) for file in folder.glob("graph_*.onnx")]
                own = next(one for one in sessions if any(size in port.shape for port in one.get_inputs()))
                random = np.random.default_rng(1)
                kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(int64)": np.int64}
                inputs = {}
                for port in own.get_inputs():
                    count = np.prod(port.shape, dtype=int)
                    values = (np.arange(count) if "int" in port.type else random.standard_normal(count))
                    inputs[port.name] = values.astype(kinds[port.type]).reshape(port.shape)
                expected = dict(zip(names, own.run(names, inputs)))
                for port, actual in zip(names, opened.run(names, inputs)):
                    np.testing.assert_allclose(actual, expected[port], rtol=1e-3, atol=1e-3, err_msg=port)
                if importlib.util.find_spec("torch") is None:
                    continue
                arrays, outputs = folder / "inputs.npz", folder / "outputs.npz"
                np.savez(arrays, **inputs)
                subprocess.run([sys.executable, open_file.with_suffix(".py"), arrays, outputs], check=True)
                actual = np.load(outputs)
                for port in names:
                    np.testing.assert_allclose(actual[port], expected[port], rtol=1e-2, atol=1e-2, err_msg=port)

    def test_a_compiler_in_a_process_of_its_own(self):
        self.assertEqual(self.grow([128, 256, 384], FORNAX_COMPILER=os.environ["FORNAX_COMMAND"]),
                         ["MISS", "MISS, generalized", "HIT for other sizes"], self.text)


if __name__ == "__main__":
    unittest.main()
