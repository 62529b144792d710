"""What libggml-fornax.so offers beside operators, each in a process of its own, as variables are read when it
is loaded: traces, reports, faults that the CPU backend mends, copies, events, devices, the cache; and all
quantised types beside ggml's own conversions.

Environment: as of backend_test.py.
"""

import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))
from ggml_library import F32, I32, Ggml  # noqa: E402  (the folder must be known first)

BACKEND = os.environ["FORNAX_GGML_BACKEND"]
HOST = Path(os.environ["FORNAX_GGML_HOST"])
ROOT = Path(__file__).resolve().parents[2]
LAVAPIPE = ":".join(glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json"))
PRELUDE = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from ggml_library import *
folder = Path({str(HOST)!r})
ggml = Ggml(folder)
registry = ggml.backend_load({BACKEND.encode()!r})
devices = [ggml.backend_reg_dev_get(registry, i) for i in range(ggml.backend_reg_dev_count(registry))]
context = ggml.context()
x = ggml.tensor(context, F32, 8)
y = ggml.scale(context, x, 3.0)
graph = ggml.graph(context, y)
"""
COMPUTE = """
backend = ggml.backend_dev_init(devices[0], None)
buffer = ggml.backend_alloc_ctx_tensors(context, backend)
values = np.arange(8, dtype=np.float32)
ggml.set(x, values)
status = ggml.backend_graph_compute(backend, graph)
assert status == 0, status
assert (ggml.get(y, F32, (8,)) == values * 3).all()
"""
# ggml_backend_load_all() is what programs call; it finds the CPU backend in the folder of the program.
LOAD_CPU = "assert ggml.backend_load(str(folder / 'libggml-cpu-x64.so').encode())\n"


def run(script: str, backend: str = BACKEND, **variables: str) -> str:
    """Standard error of a process that ran the script with a backend, which has to succeed."""
    environment = {**os.environ, **variables}
    for name in [name for name, value in variables.items() if value == ""]:
        del environment[name]
    process = subprocess.run([sys.executable, "-c", PRELUDE.replace(BACKEND, backend) + script], env=environment,
                             capture_output=True, text=True, check=False, timeout=120)
    assert process.returncode == 0, process.stderr
    return process.stderr


# ggml's scheduler numbers the graphs that it hands out; what it splits again gets another number.
SCHEDULE = LOAD_CPU + """
backend = ggml.backend_dev_init(devices[0], None)
cpu = ggml.backend_init_by_type(0, None)
scheduler = ggml.backend_sched_new((c_void_p * 2)(backend, cpu), None, 2, 64, False, False)
buffer = ggml.backend_alloc_ctx_tensors(context, backend)
for factor in range(4):
    if factor == 2:
        ggml.backend_sched_reset(scheduler)
    values = np.arange(8, dtype=np.float32) * factor
    ggml.set(x, values)
    assert ggml.backend_sched_graph_compute(scheduler, graph) == 0
    assert (ggml.get(y, F32, (8,)) == values * 3).all()
"""


# Weights of q4_0, all of whose elements are -7, times rows of ones.
MULTIPLY = """
backend = ggml.backend_dev_init(devices[0], None)
kept = ggml.context()
matrix = ggml.tensor(kept, Q4_0, 4096, 512)
buffer = ggml.backend_alloc_ctx_tensors(kept, backend)
ggml.backend_buffer_set_usage(buffer, 1)
blocks = np.zeros((512 * 128, 18), np.uint8)
blocks[:, :2] = np.float16(1).view(np.uint16).reshape(1).view(np.uint8)
blocks[:, 2:] = 0x11
ggml.set(matrix, blocks)
context = ggml.context()
x = ggml.tensor(context, F32, 4096, 64)
y = ggml.mul_mat(context, matrix, x)
graph = ggml.graph(context, y)
buffer = ggml.backend_alloc_ctx_tensors(context, backend)
ggml.set(x, np.ones((64, 4096), np.float32))
assert ggml.backend_graph_compute(backend, graph) == 0
np.testing.assert_allclose(ggml.get(y, F32, (64, 512)), -7 * 4096, rtol=1e-3)
"""
# One row, which one workgroup goes through.
LONG = """
backend = ggml.backend_dev_init(devices[0], None)
long = ggml.context()
row = ggml.tensor(long, F32, 1 << 27)
result = ggml.argmax(long, row)
buffer = ggml.backend_alloc_ctx_tensors(long, backend)
ggml.backend_tensor_memset(row, 0, 0, 4 << 27)
last = np.ones(1, np.float32)
ggml.backend_tensor_set(row, last.ctypes.data, (4 << 27) - 4, 4)
assert ggml.backend_graph_compute(backend, ggml.graph(long, result)) == 0
assert ggml.get(result, I32, (1,)) == (1 << 27) - 1
"""


class Graphs(unittest.TestCase):
    def test_are_found_again(self):
        text = run(SCHEDULE, FORNAX_LOG_LEVEL="debug")
        found = re.findall(r"a graph of 1 nodes is found by its (\w+) in", text)
        self.assertEqual(found, ["identifier", "contents", "identifier"], text)

    def test_that_were_changed_are_not_found(self):
        text = run(COMPUTE + """
z = ggml.scale(context, y, 2.0)
more = ggml.backend_alloc_ctx_tensors(context, backend)
ggml.build_forward_expand(graph, z)
assert ggml.backend_graph_compute(backend, graph) == 0
assert (ggml.get(z, F32, (8,)) == values * 6).all()
""", FORNAX_LOG_LEVEL="debug")
        self.assertNotIn("is found by", text)


class Messages(unittest.TestCase):
    def test_debug_traces_calls_and_dumps_nodes(self):
        text = run(COMPUTE, FORNAX_LOG_LEVEL="debug")
        self.assertIn("[TRACE] graph_compute(0x", text)
        self.assertRegex(text, r"\[TRACE\] get_device_count\(0x[0-9a-f]+\) = 1")
        self.assertRegex(text, r'\[TRACE\] set_tensor\(0x[0-9a-f]+, tensor "[^"]*" \[8, 1, 1, 1\], 0x[0-9a-f]+, 0, 32\)')
        self.assertRegex(text, r"node \w* f32 \[8, 1, 1, 1\] = SCALE\(\w* f32 \[8, 1, 1, 1\]\)")

    def test_every_entry_point_is_traced(self):
        """What ggml calls is what the tables of functions hold."""
        text = run(COMPUTE, FORNAX_LOG_LEVEL="debug")
        self.assertRegex(text, r"\[TRACE\] ggml_backend_init\(\) = 0x")
        sources = "".join(path.read_text() for path in (ROOT / "plugins/ggml").glob("*.cpp"))
        entries = re.findall(r"^\s*(?:functions|table)[.](\w+) =\s*(\w+)", sources, re.MULTILINE)
        self.assertGreater(len(entries), 30)
        self.assertEqual([name for name, made in entries if made != "kTraced" and name != "device"], [])

    def test_levels(self):
        for variables, is_told in (({"GGML_LOG_LEVEL": "info"}, True), ({"GGML_LOG_LEVEL": "error"}, False),
                                   ({"FORNAX_GGML_VERBOSE": "1"}, True), ({}, False)):
            text = run(COMPUTE, FORNAX_LOG_LEVEL="", **variables)
            self.assertEqual("HIT" in text or "MISS" in text, is_told, (variables, text))
            self.assertNotIn("[TRACE]", text)

    def test_report_of_refused_operators(self):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report"
            run("q4_k = 12\nwide = ggml.tensor(context, F32, 256)\n"
                "refused = ggml.cpy(context, wide, ggml.tensor(context, q4_k, 256))\n"
                "assert not ggml.backend_dev_supports_op(devices[0], refused)\n"
                "assert ggml.backend_dev_supports_op(devices[0], y)\n", FORNAX_GGML_REPORT=str(report))
            self.assertIn("results of type q4_K are not covered", report.read_text())
            self.assertEqual(len(report.read_text().splitlines()), 1)


class Faults(unittest.TestCase):
    def test_the_cpu_backend_computes_what_fails(self):
        for place in ("prepare", "compile", "bind", "run"):
            text = run(LOAD_CPU + COMPUTE, FORNAX_GGML_FAULT=place)
            self.assertIn(f'asks for a failure in "{place}"', text)
            self.assertIn("the CPU backend computes the graph", text)

    def test_no_memory_for_packs(self):
        for fault in ("", "packs"):
            text = run(LOAD_CPU + MULTIPLY, FORNAX_GGML_FAULT=fault)
            self.assertEqual("the CPU backend computes the graph" in text, fault != "")

    def test_no_memory_for_buffers(self):
        text = run("backend = ggml.backend_dev_init(devices[0], None)\n"
                   "assert not ggml.backend_alloc_ctx_tensors(context, backend)\n", FORNAX_GGML_FAULT="buffer")
        self.assertIn("a buffer could not be made", text)

    def test_no_memory_on_the_device(self):
        """The heap has no room for what lies between two kernels."""
        text = run(LOAD_CPU + MULTIPLY, FORNAX_HEAP_BYTES=str(1 << 16))
        self.assertIn("the CPU backend computes the graph", text)

    def test_a_device_that_is_lost(self):
        """Every graph from then on is the CPU backend's."""
        text = run(LOAD_CPU + LONG + COMPUTE, FORNAX_WATCHDOG_MS="1")
        self.assertEqual(text.count("the CPU backend computes the graph"), 2, text)

    def test_plans_that_fail(self):
        script = LOAD_CPU + COMPUTE.replace(
            "status = ggml.backend_graph_compute(backend, graph)",
            "plan = ggml.backend_graph_plan_create(backend, graph)\n"
            "status = ggml.backend_graph_plan_compute(backend, plan)\n"
            "ggml.backend_graph_plan_free(backend, plan)")
        for place in ("", "prepare", "run"):
            text = run(script, FORNAX_GGML_FAULT=place)
            self.assertEqual("the CPU backend computes the graph" in text, place != "")

    def test_without_a_cpu_backend_the_failure_is_told(self):
        script = COMPUTE.replace("assert status == 0, status", "assert status == -1, status\nsys.exit(0)")
        text = run(script, FORNAX_GGML_FAULT="run")
        self.assertIn("there is no CPU backend", text)

    def test_a_type_that_is_not_covered(self):
        """A program that does not ask supports_op gets the CPU backend's result all the same."""
        text = run(LOAD_CPU + """
q4_k = 12
backend, cpu = ggml.backend_dev_init(devices[0], None), ggml.backend_init_by_type(0, None)
results = []
for one in (backend, cpu):
    context = ggml.context()
    wide = ggml.tensor(context, F32, 256, 2)
    packed = ggml.cpy(context, wide, ggml.tensor(context, q4_k, 256, 2))
    assert not ggml.backend_dev_supports_op(devices[0], packed)
    graph = ggml.graph(context, packed)
    buffer = ggml.backend_alloc_ctx_tensors(context, one)
    ggml.set(wide, np.sin(np.arange(512, dtype=np.float32)).reshape(2, 256))
    assert ggml.backend_graph_compute(one, graph) == 0
    results.append(np.empty(288, np.uint8))
    ggml.backend_tensor_get(packed, results[-1].ctypes.data, 0, 288)
assert results[0].any() and (results[0] == results[1]).all()
""")
        self.assertIn("results of type q4_K are not covered", text)
        self.assertIn("the CPU backend computes the graph", text)

    def test_a_damaged_and_an_unwritable_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            run(COMPUTE, FORNAX_CACHE_DIR=folder)
            plans = list(Path(folder).glob("*.*"))
            self.assertTrue(plans)
            for plan in plans:
                plan.write_bytes(plan.read_bytes()[:40])
            run(COMPUTE, FORNAX_CACHE_DIR=folder)
        run(COMPUTE, FORNAX_CACHE_DIR="/proc/nowhere")


class Cache(unittest.TestCase):
    def test_order_hits_and_clearing(self):
        with tempfile.TemporaryDirectory() as folder:
            own, xdg, home = (Path(folder) / name for name in ("own", "xdg", "home"))
            everything = {"FORNAX_CACHE_DIR": str(own), "XDG_CACHE_HOME": str(xdg), "HOME": str(home)}
            for left_out, place in (((), own), (("FORNAX_CACHE_DIR",), xdg / "fornax"),
                                    (("FORNAX_CACHE_DIR", "XDG_CACHE_HOME"), home / ".cache/fornax")):
                variables = {name: "" if name in left_out else value for name, value in everything.items()}
                self.assertIn("MISS", run(COMPUTE, **variables))
                self.assertIn("HIT", run(COMPUTE, **variables))
                (place / "foreign.txt").write_text("stays")
                for value in ("1", "true", "TRUE", "on"):
                    self.assertIn("MISS", run(COMPUTE, FORNAX_GGML_CLEAR_CACHE=value, **variables))
                self.assertIn("HIT", run(COMPUTE, FORNAX_GGML_CLEAR_CACHE="0", **variables))
                self.assertEqual((place / "foreign.txt").read_text(), "stays")


class Devices(unittest.TestCase):
    def test_several_in_one_process(self):
        run("assert len(devices) == 2\n"
            "for i, device in enumerate(devices):\n"
            "    assert ggml.backend_dev_name(device) == b'FORNAX%d' % i\n"
            + COMPUTE + COMPUTE.replace("devices[0]", "devices[1]").replace(
                "buffer = ", "context = ggml.context()\nx = ggml.tensor(context, F32, 8)\n"
                "y = ggml.scale(context, x, 3.0)\ngraph = ggml.graph(context, y)\nbuffer = "),
            FORNAX_GGML_DEVICE="Fornax,Fornax")

    def test_a_device_that_does_not_exist_is_left_out(self):
        text = run("assert len(devices) == 1\n" + COMPUTE, FORNAX_GGML_DEVICE="Fornax,nonsense")
        self.assertIn('no device "nonsense"', text)

    @unittest.skipUnless(LAVAPIPE, "lavapipe is not installed")
    def test_devices_of_other_drivers_have_to_be_chosen(self):
        both = f"{LAVAPIPE}:{os.environ['VK_DRIVER_FILES']}"
        run("assert len(devices) == 1\n"
            "assert b'Fornax' in ggml.backend_dev_description(devices[0])\n", VK_DRIVER_FILES=both)
        text = run("assert not devices\n", VK_DRIVER_FILES=LAVAPIPE)
        self.assertIn("There is no Vulkan device Fornax; there are: 0 llvmpipe", text)
        run("assert b'llvmpipe' in ggml.backend_dev_description(devices[0])\n",
            VK_DRIVER_FILES=both, FORNAX_GGML_DEVICE="llvmpipe")

    def test_copies_and_events(self):
        run(COMPUTE + """
event = ggml.backend_event_new(devices[0])
assert event
other = ggml.backend_dev_init(devices[0], None)
values = np.full(8, 7, np.float32)
ggml.backend_tensor_set_async(backend, x, values.ctypes.data, 0, 32)
ggml.backend_event_record(event, backend)
ggml.backend_event_wait(other, event)
assert ggml.backend_graph_compute(other, graph) == 0
ggml.backend_event_synchronize(event)
back = np.empty(8, np.float32)
ggml.backend_tensor_get_async(other, y, back.ctypes.data, 0, 32)
ggml.backend_synchronize(other)
assert (back == 21).all(), back
ggml.backend_tensor_copy_async(other, backend, y, x)
ggml.backend_synchronize(backend)
assert (ggml.get(x, F32, (8,)) == 21).all()
ggml.set(x, values)
ggml.backend_tensor_copy(x, y)
assert (ggml.get(y, F32, (8,)) == 7).all()
ggml.backend_event_free(event)
ggml.backend_free(other)
""")


class Operators(unittest.TestCase):
    """What ggml's own test-backend-ops (tools/clients/backend_ops.py) does not reach with packages of today."""

    @classmethod
    def setUpClass(cls):
        cls.ggml = Ggml(HOST)
        registry = cls.ggml.backend_load(BACKEND.encode())
        cls.device = cls.ggml.backend_reg_dev_get(registry, 0)
        cls.backend = cls.ggml.backend_dev_init(cls.device, None)

    def test_blocks_of_every_quantised_type_are_decoded(self):
        """Blocks of random bits, but for scales that are floats of 16 bits, beside ggml's own conversion."""
        ggml = self.ggml
        random = np.random.default_rng(1)
        seen = set()
        for kind in [*range(2, 4), *range(6, 9), *range(10, 15), *range(16, 24), 29, 34, 35, *range(39, 43)]:
            traits = ggml.get_type_traits(kind).contents
            name = traits.name.decode()
            rows, elements = 6, int(traits.elements) * 3
            blocks = random.integers(0, 256, (rows, 3, traits.bytes), np.uint8)
            # Scales of 16 bits are small: no infinity, no NaN.
            for place in {"q2_K": (81, 83), "q3_K": (109,), "q6_K": (209,), "tq1_0": (53,), "tq2_0": (65,),
                          "q4_1": (1, 3), "q5_1": (1, 3), "q4_K": (1, 3), "q5_K": (1, 3), "mxfp4": (), "nvfp4": (),
                          "iq1_m": (55,)}.get(name, (1,)):
                blocks[:, :, place] &= 0x3F
            if name == "mxfp4":
                blocks[:, :, 0] = random.integers(100, 140, (rows, 3), np.uint8)
            context = ggml.context()
            data = ggml.tensor(context, kind, elements, rows)
            index = ggml.tensor(context, I32, 4)
            result = ggml.get_rows(context, data, index)
            self.assertTrue(ggml.backend_dev_supports_op(self.device, result), name)
            graph = ggml.graph(context, result)
            buffer = ggml.backend_alloc_ctx_tensors(context, self.backend)
            ggml.set(data, blocks)
            rows_read = np.array([5, 0, 3, 3], np.int32)
            ggml.set(index, rows_read)
            self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
            expected = np.empty((rows, elements), np.float32)
            for row in range(rows):
                traits.to_float(blocks[row].ctypes.data, expected[row].ctypes.data, elements)
            np.testing.assert_allclose(ggml.get(result, F32, (4, elements)), expected[rows_read], rtol=2e-6,
                                       atol=1e-6 * np.abs(expected).max(), err_msg=name)
            seen.add(name)
            ggml.backend_buffer_free(buffer)
            ggml.free(context)
        self.assertEqual(len(seen), 25, seen)

    def test_the_step_of_an_optimiser_writes_its_moments(self):
        ggml = self.ggml
        context = ggml.context()
        weight, gradient, first, second = (ggml.tensor(context, F32, 8) for _ in range(4))
        parameters = ggml.tensor(context, F32, 7)
        ggml.set_param(weight)
        step = ggml.opt_step_adamw(context, weight, gradient, first, second, parameters)
        graph = ggml.graph(context, step)
        buffer = ggml.backend_alloc_ctx_tensors(context, self.backend)
        w, g, m = (np.linspace(-1, 1, 8, dtype=np.float32) * factor for factor in (1, 2, 0.5))
        v = np.linspace(1, 2, 8, dtype=np.float32)
        alpha, beta1, beta2, epsilon, decay, beta1h, beta2h = p = np.array([.1, .9, .99, 1e-8, .01, 2, 3], np.float32)
        for tensor, value in ((weight, w), (gradient, g), (first, m), (second, v), (parameters, p)):
            ggml.set(tensor, value)
        self.assertEqual(ggml.backend_graph_compute(self.backend, graph), 0)
        m = m * beta1 + g * (1 - beta1)
        v = v * beta2 + g * g * (1 - beta2)
        w = w * (1 - alpha * decay) - alpha * (m * beta1h) / (np.sqrt(v * beta2h) + epsilon)
        for tensor, value in ((first, m), (second, v), (weight, w)):
            np.testing.assert_allclose(ggml.get(tensor, F32, (8,)), value, rtol=1e-5)
        ggml.backend_buffer_free(buffer)
        ggml.free(context)


if __name__ == "__main__":
    unittest.main()
