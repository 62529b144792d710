"""libggml-fornax.so in an unmodified ggml, by its public functions alone.

Environment: FORNAX_GGML_BACKEND, the library; FORNAX_GGML_HOST, the folder of ggml's libraries;
VK_DRIVER_FILES, the driver's manifest; FORNAX_LOG_LEVEL, info.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from ctypes import byref, c_size_t
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
from ggml_library import F16, F32, I64, Q4_0, Q8_0, DeviceProperties, Ggml  # noqa: E402  (the folder must be known first)

BACKEND = os.environ["FORNAX_GGML_BACKEND"]
GPU = 1
WEIGHTS = 1  # what a buffer is for


def captured(function):
    """What a function writes to standard error, below Python, and its result."""
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            result = function()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        file.seek(0)
        return file.read().decode(), result


class Backend(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ggml = Ggml(Path(os.environ["FORNAX_GGML_HOST"]))
        cls.registry = cls.ggml.backend_load(BACKEND.encode())
        assert cls.registry, "ggml does not load the backend."
        cls.device = cls.ggml.backend_reg_dev_get(cls.registry, 0)

    def setUp(self):
        self.backend = self.ggml.backend_dev_init(self.device, None)
        self.addCleanup(self.ggml.backend_free, self.backend)
        self.context = self.ggml.context()
        self.addCleanup(self.ggml.free, self.context)
        self.random = np.random.default_rng(1)

    def allocate(self):
        buffer = self.ggml.backend_alloc_ctx_tensors(self.context, self.backend)
        self.addCleanup(self.ggml.backend_buffer_free, buffer)
        return buffer

    def floats(self, *shape):
        return self.random.standard_normal(shape, np.float32)

    def test_device(self):
        ggml = self.ggml
        self.assertEqual(ggml.backend_reg_name(self.registry), b"FORNAX")
        self.assertEqual(ggml.backend_reg_dev_count(self.registry), 1)
        self.assertEqual(ggml.backend_dev_name(self.device), b"FORNAX0")
        self.assertIn(b"Fornax", ggml.backend_dev_description(self.device))
        self.assertEqual(ggml.backend_dev_type(self.device), GPU)
        free, total = c_size_t(), c_size_t()
        ggml.backend_dev_memory(self.device, byref(free), byref(total))
        self.assertGreater(total.value, 0)
        self.assertLessEqual(free.value, total.value)
        self.assertEqual(ggml.backend_name(self.backend), b"FORNAX0")
        properties = DeviceProperties()
        ggml.backend_dev_get_props(self.device, byref(properties))
        self.assertEqual(properties.name, b"FORNAX0")
        # Models stay where llama.cpp maps the file if both are told (ggml 0.27 asks for the second).
        self.assertTrue(properties.buffer_from_host_ptr)
        self.assertTrue(properties.mmap_support)

    def product(self):
        ggml = self.ggml
        a = ggml.tensor(self.context, F32, 4, 3)
        b = ggml.tensor(self.context, F32, 4, 2)
        c = ggml.mul_mat(self.context, a, b)
        return a, b, c, ggml.graph(self.context, c)

    def test_a_product_is_compiled_once(self):
        ggml = self.ggml
        a, b, c, graph = self.product()
        self.assertTrue(ggml.backend_buffer_is_host(self.allocate()))
        for run in range(2):
            x, y = self.floats(3, 4), self.floats(2, 4)
            ggml.set(a, x)
            ggml.set(b, y)
            text, status = captured(lambda: ggml.backend_graph_compute(self.backend, graph))
            self.assertEqual(status, 0)
            self.assertEqual(text.count("MISS") + text.count("HIT"), 1 - run, text)
            np.testing.assert_allclose(ggml.get(c, F32, (2, 3)), y @ x.T, rtol=1e-5, atol=1e-5)

    def test_plans(self):
        ggml = self.ggml
        a, b, c, graph = self.product()
        self.allocate()
        plan = ggml.backend_graph_plan_create(self.backend, graph)
        self.assertTrue(plan)
        for _ in range(2):
            x, y = self.floats(3, 4), self.floats(2, 4)
            ggml.set(a, x)
            ggml.set(b, y)
            self.assertEqual(ggml.backend_graph_plan_compute(self.backend, plan), 0)
            np.testing.assert_allclose(ggml.get(c, F32, (2, 3)), y @ x.T, rtol=1e-5, atol=1e-5)
        ggml.backend_graph_plan_free(self.backend, plan)

    def test_a_changed_parameter_is_another_graph(self):
        ggml = self.ggml
        x = ggml.tensor(self.context, F32, 5)
        graphs = [(factor, ggml.scale(self.context, x, factor)) for factor in (2.0, 3.0)]
        self.allocate()
        values = self.floats(5)
        ggml.set(x, values)
        for factor, result in graphs:
            graph = ggml.graph(self.context, result)
            self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
            np.testing.assert_array_equal(ggml.get(result, F32, (5,)), values * np.float32(factor))

    def test_rows_of_a_cache_are_written_in_place(self):
        ggml = self.ggml
        cache = ggml.tensor(self.context, F16, 8, 6)
        rows = ggml.tensor(self.context, F32, 8, 2)
        at = ggml.tensor(self.context, I64, 2)
        written = ggml.set_rows(self.context, cache, rows, at)
        doubled = ggml.add(self.context, written, written)
        graph = ggml.graph(self.context, doubled)
        self.allocate()
        expected = self.floats(6, 8).astype(np.float16)
        ggml.set(cache, expected)
        for places in ([4, 1], [0, 5], [4, 2]):
            values = self.floats(2, 8)
            ggml.set(rows, values)
            ggml.set(at, np.array(places, np.int64))
            self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
            expected[places] = values.astype(np.float16)
            np.testing.assert_array_equal(ggml.get(cache, F16, (6, 8)), expected)
            np.testing.assert_array_equal(ggml.get(doubled, F16, (6, 8)), expected + expected)

    def test_views_are_written_and_read(self):
        ggml = self.ggml
        whole = ggml.tensor(self.context, F32, 6, 4)
        part = ggml.tensor(self.context, F32, 2, 3)
        # Columns 1 and 2 of rows 1 to 3.
        view = ggml.view_2d(self.context, whole, 2, 3, 24, 28)
        copied = ggml.cpy(self.context, part, view)
        turned = ggml.cont(self.context, ggml.transpose(self.context, whole))
        more = ggml.add_inplace(self.context, turned, turned)
        graph = ggml.graph(self.context, copied, more)
        self.allocate()
        expected, values = self.floats(4, 6), self.floats(3, 2)
        ggml.set(whole, expected)
        ggml.set(part, values)
        self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
        expected[1:4, 1:3] = values
        np.testing.assert_array_equal(ggml.get(whole, F32, (4, 6)), expected)
        np.testing.assert_array_equal(ggml.get(more, F32, (6, 4)), expected.T * 2)

    def test_memory_of_the_caller_is_used_in_place(self):
        ggml = self.ggml
        pages = np.zeros(3 * 4096, np.uint8)
        begin = -pages.ctypes.data % 4096
        mine = pages[begin:begin + 4096]
        buffer = ggml.backend_dev_buffer_from_host_ptr(self.device, mine.ctypes.data, mine.nbytes, mine.nbytes)
        self.addCleanup(ggml.backend_buffer_free, buffer)
        self.assertEqual(ggml.backend_buffer_get_base(buffer), mine.ctypes.data)
        x = ggml.tensor(self.context, F32, 16)
        self.assertEqual(ggml.backend_tensor_alloc(buffer, x, mine.ctypes.data), 0)
        result = ggml.scale(self.context, x, 0.5)
        graph = ggml.graph(self.context, result)
        self.allocate()
        values = self.floats(16)
        mine.view(np.float32)[:16] = values
        self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
        np.testing.assert_array_equal(ggml.get(result, F32, (16,)), values / 2)

    def test_buffers(self):
        """What a buffer type tells, and every way to write and read a buffer."""
        ggml = self.ggml
        kind = ggml.backend_dev_buffer_type(self.device)
        alignment = ggml.backend_buft_get_alignment(kind)
        self.assertTrue(alignment >= 16 and alignment & (alignment - 1) == 0, alignment)
        self.assertTrue(ggml.backend_buft_is_host(kind))
        self.assertGreaterEqual(ggml.backend_buft_get_max_size(kind), 1 << 30)
        x, y = (ggml.tensor(self.context, F32, 5, 3) for _ in range(2))
        self.assertGreaterEqual(ggml.backend_buft_get_alloc_size(kind, x), 60)
        step = -(-ggml.backend_buft_get_alloc_size(kind, x) // alignment) * alignment
        buffer = ggml.backend_buft_alloc_buffer(kind, 2 * step)
        self.addCleanup(ggml.backend_buffer_free, buffer)
        self.assertGreaterEqual(ggml.backend_buffer_get_size(buffer), 2 * step)
        base = ggml.backend_buffer_get_base(buffer)
        self.assertEqual(base % alignment, 0)
        for tensor, address in ((x, base), (y, base + step)):
            self.assertEqual(ggml.backend_tensor_alloc(buffer, tensor, address), 0)
        ggml.backend_buffer_clear(buffer, 0x3F)
        filled = np.full((3, 5), 0x3F3F3F3F, np.uint32).view(np.float32)
        np.testing.assert_array_equal(ggml.get(y, F32, (3, 5)), filled)
        values = self.floats(3, 5)
        ggml.set(x, values)
        part = self.floats(2)
        ggml.backend_tensor_set(x, part.ctypes.data, 12, 8)
        values.reshape(-1)[3:5] = part
        ggml.backend_tensor_copy(x, y)
        np.testing.assert_array_equal(ggml.get(y, F32, (3, 5)), values)
        ggml.backend_tensor_memset(y, 0, 4, 8)
        values.reshape(-1)[1:3] = 0
        np.testing.assert_array_equal(ggml.get(y, F32, (3, 5)), values)
        ggml.backend_tensor_get(y, part.ctypes.data, 40, 8)
        np.testing.assert_array_equal(part, values.reshape(-1)[10:12])

    def test_freed_memory_is_let_go_of(self):
        """The same context again and again: its tensors may get the addresses of the last ones."""
        ggml = self.ggml
        for factor in (1.0, 2.0, 4.0):
            context = ggml.context()
            x = ggml.tensor(context, F32, 1 << 16)
            result = ggml.scale(context, x, factor)
            graph = ggml.graph(context, result)
            buffer = ggml.backend_alloc_ctx_tensors(context, self.backend)
            ggml.backend_tensor_memset(x, 0x3F, 0, 1 << 18)
            self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
            expected = np.full(1 << 16, 0x3F3F3F3F, np.uint32).view(np.float32) * np.float32(factor)
            np.testing.assert_array_equal(ggml.get(result, F32, (1 << 16,)), expected)
            ggml.backend_buffer_free(buffer)
            ggml.free(context)

    @staticmethod
    def memory():
        """The bytes of the process that no file has."""
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) << 10

    def weights(self, kind, columns, rows):
        """A matrix in a buffer of weights."""
        context = self.ggml.context()
        self.addCleanup(self.ggml.free, context)
        matrix = self.ggml.tensor(context, kind, columns, rows)
        buffer = self.ggml.backend_alloc_ctx_tensors(context, self.backend)
        self.addCleanup(self.ggml.backend_buffer_free, buffer)
        self.ggml.backend_buffer_set_usage(buffer, WEIGHTS)
        return matrix

    def test_a_short_prompt_needs_no_copy_of_weights_of_16_bits(self):
        """The first token of a process would wait for a pack."""
        ggml = self.ggml
        columns, rows, some = 4096, 24576, 512
        matrix = self.weights(F16, columns, rows)
        part = self.floats(some, columns).astype(np.float16)
        ggml.set(matrix, np.broadcast_to(part, (rows // some, some, columns)))
        for count in (2, 3, 9, 16):
            x = ggml.tensor(self.context, F32, columns, count)
            y = ggml.mul_mat(self.context, matrix, x)
            graph = ggml.graph(self.context, y)
            self.allocate()
            values = self.floats(count, columns)
            ggml.set(x, values)
            before = self.memory()
            self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
            self.assertLess(self.memory() - before, columns * rows)  # half of the matrix
            expected = values @ part.astype(np.float32).T
            result = ggml.get(y, F32, (count, rows // some, some))
            np.testing.assert_allclose(result, np.broadcast_to(expected[:, None], result.shape), rtol=1e-3, atol=1e-1)

    def test_blocks_of_8_bits_are_multiplied_where_they_lie(self):
        ggml = self.ggml
        columns, rows = 512, 40
        matrix = self.weights(Q8_0, columns, rows)
        blocks = np.zeros((rows, columns // 32, 34), np.uint8)
        scales = self.random.uniform(-0.1, 0.1, (*blocks.shape[:2], 1)).astype(np.float16)
        codes = self.random.integers(-128, 128, (*blocks.shape[:2], 32), np.int8)
        blocks[..., :2] = scales.view(np.uint8)
        blocks[..., 2:] = codes.view(np.uint8)
        ggml.set(matrix, blocks)
        decoded = (codes * scales.astype(np.float32)).reshape(rows, columns)
        for count in (2, 9, 16):
            x = ggml.tensor(self.context, F32, columns, count)
            y = ggml.mul_mat(self.context, matrix, x)
            graph = ggml.graph(self.context, y)
            self.allocate()
            values = self.floats(count, columns)
            ggml.set(x, values)
            self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
            # Nothing is rounded to 8 bits, as it is with packs.
            np.testing.assert_allclose(ggml.get(y, F32, (count, rows)), values @ decoded.T, rtol=1e-4, atol=1e-3)

    def test_packs_come_in_parts_with_the_runs_of_tokens(self):
        """Behind a short prompt no token waits for all of them; then the plan is that of packs."""
        ggml = self.ggml
        columns, rows, count = 2048, 16384, 4
        matrices = [self.weights(F16, columns, rows) for _ in range(count)]
        values = self.floats(rows, columns).astype(np.float16)
        for matrix in matrices:
            ggml.set(matrix, values)
        size = values.nbytes
        runs = {}
        for tokens in (2, 1):
            x = ggml.tensor(self.context, F32, columns, tokens)
            results = [ggml.mul_mat(self.context, matrix, x) for matrix in matrices]
            graph = ggml.graph(self.context, *results)
            self.allocate()
            given = self.floats(tokens, columns)
            ggml.set(x, given)
            expected = given @ values.astype(np.float32).T
            runs[tokens] = []
            for _ in range(1 if tokens == 2 else 8):
                before = self.memory()
                text, status = captured(lambda: ggml.backend_graph_compute(self.backend, graph))
                self.assertEqual(status, 0)
                runs[tokens].append((self.memory() - before, text.count("MISS") + text.count("HIT")))
                for result in results:
                    np.testing.assert_allclose(ggml.get(result, F32, expected.shape), expected, rtol=1e-3, atol=1e-1)
        self.assertLess(runs[2][0][0], size)
        grown, plans = zip(*runs[1])
        self.assertLess(grown[0], size, runs)
        self.assertGreater(sum(grown), (count - 1) * size, runs)
        self.assertLess(max(grown), 2 * size, runs)
        self.assertEqual(plans, (1, 0, 0, 0, 0, 1, 0, 0), runs)

    def test_a_token_that_no_prompt_came_before_packs_at_once(self):
        ggml = self.ggml
        columns, rows = 2048, 16384
        matrix = self.weights(F16, columns, rows)
        values = np.broadcast_to(self.floats(1, columns).astype(np.float16), (rows, columns))
        ggml.set(matrix, values)
        x = ggml.tensor(self.context, F32, columns)
        y = ggml.mul_mat(self.context, matrix, x)
        graph = ggml.graph(self.context, y)
        self.allocate()
        ggml.set(x, self.floats(columns))
        before = self.memory()
        self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
        self.assertGreater(self.memory() - before, columns * rows)
        # Other graphs multiply by the same pack.
        many = ggml.tensor(self.context, F32, columns, 20)
        graph = ggml.graph(self.context, ggml.mul_mat(self.context, matrix, many))
        self.allocate()
        ggml.set(many, self.floats(20, columns))
        before = self.memory()
        self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
        self.assertLess(self.memory() - before, columns * rows * 3 // 2)

    def test_weights_that_change_are_packed_anew(self):
        ggml = self.ggml
        columns, rows, count = 256, 64, 12
        matrix = self.weights(Q4_0, columns, rows)
        x = ggml.tensor(self.context, F32, columns, count)
        y = ggml.mul_mat(self.context, matrix, x)
        graph = ggml.graph(self.context, y)
        self.allocate()
        values = self.floats(count, columns)
        ggml.set(x, values)
        plan = None
        for _ in range(2):
            blocks = np.zeros((rows, columns // 32, 18), np.uint8)
            scales = self.random.uniform(0.01, 0.1, (*blocks.shape[:2], 1)).astype(np.float16)
            blocks[..., :2] = scales.view(np.uint8)
            blocks[..., 2:] = self.random.integers(0, 256, (*blocks.shape[:2], 16))
            ggml.set(matrix, blocks)
            self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
            codes = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], axis=-1)
            decoded = (codes.astype(np.float32) - 8) * scales.astype(np.float32)
            expected = values @ decoded.reshape(rows, columns).T
            np.testing.assert_allclose(ggml.get(y, F32, expected.shape), expected, rtol=0, atol=0.25)
            # A plan that was made before computes with the new ones too.
            plan = plan or ggml.backend_graph_plan_create(self.backend, graph)
            ggml.backend_tensor_memset(y, 0, 0, expected.nbytes)
            self.assertEqual(ggml.backend_graph_plan_compute(self.backend, plan), 0)
            np.testing.assert_allclose(ggml.get(y, F32, expected.shape), expected, rtol=0, atol=0.25)
        ggml.backend_graph_plan_free(self.backend, plan)

    def test_what_is_not_covered_is_refused(self):
        ggml = self.ggml
        x = ggml.tensor(self.context, F32, 256)
        q4_k = 12
        result = ggml.cpy(self.context, x, ggml.tensor(self.context, q4_k, 256))
        self.assertFalse(ggml.backend_dev_supports_op(self.device, result))
        self.assertTrue(ggml.backend_dev_supports_op(self.device, ggml.add(self.context, x, x)))


class Versions(unittest.TestCase):
    def test_without_a_driver_there_is_no_device(self):
        script = (f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
                  "from ggml_library import *\nimport os\n"
                  "ggml = Ggml(Path(os.environ['FORNAX_GGML_HOST']))\n"
                  f"registry = ggml.backend_load({BACKEND.encode()!r})\n"
                  "print(ggml.backend_reg_dev_count(registry))\n")
        environment = dict(os.environ, VK_DRIVER_FILES="/dev/null", VK_ICD_FILENAMES="/dev/null")
        run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True,
                             check=False)
        self.assertEqual((run.returncode, run.stdout.strip()), (0, "0"), run.stderr)
        self.assertIn("the backend has no device", run.stderr)


if __name__ == "__main__":
    unittest.main()
