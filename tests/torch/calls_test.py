"""Calls of compiled graphs: which memory they use, and what they hand to torch.

PYTHONPATH has the package, VK_DRIVER_FILES is the driver's manifest.
"""

import copy
import ctypes
import gc
import threading
import unittest
import warnings

import numpy as np
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import fornax
import fornax.torch
from fornax.torch import capture, graph_file, library


def backend(**options):
    return fornax.torch.Backend(strict=True, options={"cache": False}, **options)


def compiled(function, *inputs):
    """The function's graph on the device, without torch.compile around it."""
    with torch.no_grad():
        made = backend().compile_graph(make_fx(function)(*inputs))
    assert isinstance(made, fornax.torch.Compiled)
    return made


class KvCache(nn.Module):
    """Attention of one position to all before it, in a cache of 16 Ki positions."""

    def __init__(self, positions=16384, width=64):
        super().__init__()
        self.register_buffer("keys", torch.zeros(positions, width))
        self.register_buffer("values", torch.zeros(positions, width))

    def forward(self, q, k, v, place):
        self.keys.index_copy_(0, place, k)
        self.values.index_copy_(0, place, v)
        seen = torch.arange(self.keys.shape[0]) <= place
        return (q @ self.keys.T).masked_fill(~seen, -torch.inf).softmax(-1) @ self.values


class Calls(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(5)

    def test_tensors_are_read_without_numpy(self):
        self.assertTrue(library.reads_tensors())

    def test_weights_stay_where_they_are(self):
        weights = [torch.randn(8, 8), torch.randn(8, 8).T, torch.zeros(0)]
        pieces = library.file_of(b"structure", [capture.bytes_of(weight) for weight in weights])
        addresses = [address for address, _, _ in pieces]
        self.assertIn(weights[0].data_ptr(), addresses)
        self.assertNotIn(weights[1].data_ptr(), addresses)  # its elements are in another order
        whole = b"".join(ctypes.string_at(address, size) for address, size, _ in pieces)
        self.assertEqual(whole, b"".join(graph_file.parts_of(b"structure", map(capture.bytes_of, weights))))

    def test_other_files_have_one_piece(self):
        for begin in (b"no graph", b"FNXPLAN"):
            data = np.frombuffer(begin.ljust(64, b"."), np.uint8)
            piece = (data.__array_interface__["data"][0], data.nbytes, data)
            with self.assertRaisesRegex(fornax.Error, "model is in pieces, and no FX graph"):
                library.Session((piece, piece), {"cache": False})

    def test_weights_outlive_their_model(self):
        layer = nn.Linear(256, 128)
        x = torch.randn(7, 256)
        expected = layer(x).detach()
        run = torch.compile(copy.deepcopy(layer), backend=backend(), dynamic=True)
        with torch.no_grad():
            for rows in (2, 3, 7):  # a plan for each
                torch.testing.assert_close(run(x[:rows]), expected[:rows], rtol=1e-4, atol=1e-5)
                gc.collect()

    def test_inputs_of_any_layout(self):
        x, y = torch.randn(2, 6, 4).unbind()
        call = compiled(lambda x, y: x * 2 + y, x, y)
        for given in (x, torch.randn(4, 6).T, torch.randn(12, 4)[::2], torch.randn(7, 4)[1:], nn.Parameter(x),
                      torch.randn(6, 4, dtype=torch.complex64).conj().imag):
            got = call(given, y)
            torch.testing.assert_close(got, (given * 2 + y).detach())
            self.assertFalse(got.requires_grad)

    def test_tensors_without_elements(self):
        # torch says of any strides that they are contiguous, and copies nothing.
        x = torch.randn(0, 3, 5).transpose(1, 2)
        self.assertEqual(compiled(lambda x: x + 1, x)(x).shape, (0, 5, 3))

    def test_types(self):
        for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool):
            x = torch.ones(5, dtype=dtype)
            call = compiled(lambda x: torch.logical_not(x), x)
            self.assertFalse(call(x).any())
            call = compiled(lambda x: x.clone(), x)
            self.assertEqual(call(x).dtype, dtype)
            torch.testing.assert_close(call(x), x)

    def test_numpy_stands_in(self):
        for dtype in (torch.bfloat16, torch.float32):
            x = torch.randn(3, 5, dtype=dtype).T
            call = compiled(lambda x: x + x, x)
            session = library.Session.__new__(library.Session)
            session._session = call.call.__globals__["run"].__self__
            call.call.__globals__["run"] = session._run_arrays
            torch.testing.assert_close(call(x), x + x)

    def test_what_does_not_fit_is_an_error(self):
        x = torch.randn(4)
        call = compiled(lambda x: x * 2, x)
        with self.assertRaisesRegex(fornax.Error, "f32 and is given as torch.float64"):
            call(x.double())
        with self.assertRaises(fornax.Error):
            call(torch.randn(5))
        torch.testing.assert_close(call(x), x * 2)

    def test_threads_share_a_graph(self):
        x = torch.randn(64)
        call = compiled(lambda x: x * 2, x)
        wrong = []

        def work(value):
            for _ in range(50):
                if not torch.equal(call(torch.full((64,), value)), torch.full((64,), 2 * value)):
                    wrong.append(value)

        threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_caches_are_written_in_place(self):
        ours, theirs = KvCache().eval(), KvCache().eval()
        chosen = backend()
        run = torch.compile(ours, backend=chosen, fullgraph=True)
        address = ours.keys.data_ptr()
        with torch.no_grad():
            for i in range(4):
                q, k, v = torch.randn(3, 1, 64).unbind()
                place = torch.tensor([i])
                version = ours.keys._version
                torch.testing.assert_close(run(q, k, v, place), theirs(q, k, v, place), rtol=2e-4, atol=2e-5)
                self.assertGreater(ours.keys._version, version)
        torch.testing.assert_close(ours.keys, theirs.keys)
        torch.testing.assert_close(ours.values, theirs.values)
        self.assertEqual(ours.keys.data_ptr(), address)

    def test_a_row_is_written_and_not_the_cache(self):
        # The update of a state in place touches no more than the row.
        seen = []
        chosen = backend(observe=lambda name, graph, report: seen.append(report))
        model = KvCache().eval()
        with torch.no_grad():
            torch.compile(model, backend=chosen, fullgraph=True)(*torch.randn(3, 1, 64).unbind(), torch.tensor([3]))
        states = [i for i, block in enumerate(seen[0]["blocks"]) if block["kind"] == "state"]
        self.assertEqual(len(states), 2)
        for step in seen[0]["steps"]:
            if set(step["writes"]) & set(states):
                self.assertLess(step["bytes_written"], 64 * 1024)

    def test_memory_that_moves(self):
        def function(cache, x):
            cache.add_(x)
            return cache * 2

        run = torch.compile(function, backend=backend(), fullgraph=True)
        for size in (8, 4096):
            x = torch.ones(size)
            for _ in range(3):
                cache = torch.zeros(size)
                for i in range(3):
                    torch.testing.assert_close(run(cache, x), 2 * (x * (i + 1)))
                torch.testing.assert_close(cache, x * 3)
                # At no multiple of what the device needs.
                cache = torch.zeros(size + 1)[1:]
                torch.testing.assert_close(run(cache, x), 2 * x)
                torch.testing.assert_close(cache, x)

    def test_the_same_memory_twice(self):
        def function(cache, x):
            cache.add_(x)
            return x + 1

        run = torch.compile(function, backend=backend(), fullgraph=True)
        both = torch.ones(4096)
        run(both, both)
        torch.testing.assert_close(both, torch.full((4096,), 2.0))

    def test_open_sizes_and_strides(self):
        def function(x, n):
            return x.transpose(0, 1).contiguous().transpose(0, 1), x[:, :n].sum(1), x.shape[0] * 2, x

        run = torch.compile(function, backend=backend(), fullgraph=True, dynamic=True)
        for rows, n in ((3, 2), (5, 4), (7, 2)):
            x = torch.randn(rows, 6)
            got, want = run(x, n), function(x, n)
            self.assertEqual(got[0].stride(), want[0].stride())
            torch.testing.assert_close(got[:2], want[:2])
            self.assertEqual(got[2], want[2])
            self.assertIs(got[3], x)

    def test_open_numbers(self):
        """With dynamic=True torch takes the epsilon of a normalisation for an input, and computes with it in f64."""
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8, eps=0.1), torch.nn.ReLU6()).eval()
        reference = copy.deepcopy(model)
        run = torch.compile(model, backend=backend(), fullgraph=True, dynamic=True)
        for batch in (2, 5):
            x = torch.randn(batch, 3, 12, 14)
            torch.testing.assert_close(run(x), reference(x), rtol=1e-5, atol=1e-5)

    def test_open_sizes_that_a_part_does_not_tell(self):
        """The incomplete gamma function is torch's. The part behind it knows images of n - 2 pixels, and none of n."""
        convolution = torch.nn.Conv2d(3, 8, 3)

        def function(x):
            y = convolution(x).abs() + 1
            return torch.igamma(y, y) * 2

        chosen = fornax.torch.Backend(options={"cache": False})
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            run = torch.compile(function, backend=chosen, dynamic=True)
            for batch, size in ((2, 20), (5, 20), (3, 31)):
                x = torch.randn(batch, 3, size, size)
                torch.testing.assert_close(run(x), function(x), rtol=1e-4, atol=1e-4)
        self.assertTrue(any(reason.startswith("no input tells") for _, reason in chosen.fallbacks), chosen.fallbacks)


class Drivers(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)

    def test_arrays_and_tensors_share_a_session(self):
        x = torch.randn(8)
        call = compiled(lambda x: x + 1, x)
        session = call.call.__globals__["run"].__self__
        torch.testing.assert_close(call(x), x + 1)
        got, = session.run({session.inputs[0].name: x.numpy()}).values()
        np.testing.assert_array_equal(got, (x + 1).numpy())
        torch.testing.assert_close(call(x), x + 1)


if __name__ == "__main__":
    unittest.main()
