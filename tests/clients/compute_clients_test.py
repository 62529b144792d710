"""tools/clients/compute_clients.py and its comparison of results, without any client."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOLS = Path(__file__).resolve().parents[2] / "tools/clients"
sys.path[:0] = [str(TOOLS), str(TOOLS / "compute")]

import bench_llama  # noqa: E402
import case_runner  # noqa: E402
import client_setup  # noqa: E402
import compute_clients  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import webgpu_cases  # noqa: E402
import write_llama  # noqa: E402
import write_networks  # noqa: E402
from client_setup import Client  # noqa: E402


class CaseRunnerTest(unittest.TestCase):
    def test_results_are_compared_by_the_largest_value(self):
        expected = np.array([100.0, 1.0])
        self.assertTrue(case_runner.is_close(expected + 0.5, expected, 0.01))
        self.assertFalse(case_runner.is_close(expected + 2, expected, 0.01))
        self.assertFalse(case_runner.is_close(expected * np.nan, expected, 0.01))
        self.assertFalse(case_runner.is_close(expected[:1], expected, 0.01))

    def test_the_first_measured_run_is_told(self):
        times = iter([0.5, 0.2, 0.1, 0.1, 0.3, 0.1])
        with mock.patch.object(case_runner, "seconds_of", lambda run: next(times)), \
                mock.patch.object(case_runner, "WARM_UP_SECONDS", 0), mock.patch.object(case_runner, "MEASURED_SECONDS", 0):
            told = case_runner.measured(None)
        self.assertEqual(told.pop("fast_run"), 4)
        self.assertAlmostEqual(told.pop("fast_after_seconds"), 0.8)
        self.assertEqual(told, {"seconds": 0.1, "second_run_seconds": 0.5})

    def test_a_steady_speed_that_no_early_run_has_is_not_told(self):
        self.assertEqual(case_runner.reached([0.5, 0.2], 0.1), {})
        self.assertEqual(case_runner.reached([0.12], 0.1), {"fast_run": 2, "fast_after_seconds": 0.12})

    def test_a_share_may_differ(self):
        expected = np.arange(100)
        result = expected.copy()
        result[5] = 77
        self.assertFalse(case_runner.is_close(result, expected))
        self.assertTrue(case_runner.is_close(result, expected, share=0.01))


# Programs that do what apt and dpkg would, with one package that has one file.
APT = r"""#!/bin/bash
for word in "$@"; do [[ $word == --print-uris ]] && echo "'http://example.org/debian/dists/stable/InRelease' x 0"; done
for word in "$@"; do [[ $word == Dir::Cache=* ]] && touch "${word#Dir::Cache=}/archives/one_1_all.deb"; done
exit 0
"""
DPKG = r"""#!/bin/bash
mkdir -p "$3/usr/lib" && touch "$3/usr/lib/one"
"""
MV = r"""#!/bin/bash
[[ $1 == *.new.* ]] && exit 1
exec /bin/mv "$@"
"""


class UnpackPackagesTest(unittest.TestCase):
    def setUp(self):
        name = tempfile.TemporaryDirectory(prefix="fornax_unpack_")
        self.addCleanup(name.cleanup)
        self.programs, self.folder = Path(name.name, "bin"), Path(name.name, "clients")
        self.programs.mkdir()
        self.program("apt-get", APT)
        self.program("dpkg", DPKG)
        self.client = self.folder / "compute/some/stamp"
        self.client.parent.mkdir(parents=True)
        self.client.touch()

    def program(self, name, text):
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    def unpack(self) -> int:
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"}
        return subprocess.run([TOOLS / "unpack_packages.sh", self.folder, "one"], env=environment, capture_output=True,
                              timeout=60).returncode

    def test_installed_clients_stay(self):
        self.assertEqual(self.unpack(), 0)
        self.assertTrue((self.folder / "usr/lib/one").exists())
        self.assertTrue(self.client.exists())
        self.assertEqual([path.name for path in self.folder.parent.iterdir() if path.name.startswith("clients")], ["clients"])

    def test_installed_clients_stay_where_the_last_step_fails(self):
        self.program("mv", MV)
        self.assertNotEqual(self.unpack(), 0)
        self.assertTrue(self.client.exists())

    def test_what_an_ended_run_left_is_brought_back(self):
        self.folder.rename(self.folder.with_name("clients.old"))
        self.assertEqual(self.unpack(), 0)
        self.assertTrue(self.client.exists())


class WriteNetworksTest(unittest.TestCase):
    def test_no_size_is_symbolic(self):
        value = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph([], "some", [value("x", onnx.TensorProto.FLOAT, ["batch", 3])],
                                       [value("y", onnx.TensorProto.FLOAT, [7, "batch"])])
        write_networks.fix_sizes(graph, {"x": np.zeros((5, 3))})
        self.assertEqual([[dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
                          for value in (*graph.input, *graph.output)], [[5, 3], [7, 5]])

    def test_every_network_of_a_client_is_known(self):
        self.assertLessEqual(set(compute_clients.NETWORKS), {"minilm", *write_networks.NETWORKS})


class BenchLlamaTest(unittest.TestCase):
    def test_a_token_reads_the_output_matrix_and_embeddings_only_where_they_are_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.gguf")
            for shape, excess in (("tiny", -1), ("tiny-gemma", 0)):
                write_llama.write_model(path, "f16", write_llama.SHAPES[shape])
                sizes = {tensor.name: int(tensor.n_bytes) for tensor in bench_llama.gguf.GGUFReader(path).tensors}
                with mock.patch.object(bench_llama.Bench, "model", lambda *_, path=path: path):
                    self.assertEqual(bench_llama.Bench(None, None, 0).bytes_a_token("some"),
                                     sum(sizes.values()) + excess * sizes["token_embd.weight"])

    def test_models_are_named_by_shape_and_type(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, file in (("q4_0", "llama-1b-q4_0.gguf"), ("270m q4_K_M", "llama-270m-q4_K_M.gguf")):
                Path(folder, file).touch()
                self.assertEqual(bench_llama.Bench(None, Path(folder), 0).model(name), Path(folder, file))


class ClientsTest(unittest.TestCase):
    def test_the_stamp_names_the_suite_and_the_build(self):
        def build(folder):
            pass

        def other_build(folder):
            return folder

        stamps = {Client("", "", ("one",), **named).stamp for named in ({}, {"debian_suite": "bookworm"}, {"build": build},
                                                                        {"build": other_build})}
        self.assertEqual(len(stamps), 4)

    def test_a_client_that_lacks_what_no_registry_has_runs_only_by_name_and_says_so(self):
        client = Client("", "some_cases.py", ("one",), needs="FORNAX_SOME")
        with mock.patch.dict(os.environ, {"FORNAX_SOME": ""}), mock.patch.object(compute_clients, "CLIENTS", {"some": client}), \
                mock.patch.object(compute_clients, "run") as run, mock.patch.object(compute_clients, "install", client_setup.install), \
                mock.patch("builtins.print") as printed:
            for arguments, exit_status in (([], 0), (["some"], 1)):
                with mock.patch.object(sys, "argv", ["", *arguments]):
                    self.assertEqual(compute_clients.main(), exit_status)
            self.assertIn("FORNAX_SOME has to name what some needs", str(printed.call_args))
            run.assert_not_called()

    def test_every_client_has_its_program(self):
        for name, client in compute_clients.CLIENTS.items():
            self.assertTrue((compute_clients.PROGRAMS / client.program).is_file(), name)
            self.assertTrue(client.packages, name)
            self.assertLessEqual(set(client.compat.split(",")), {"", "graphics", "conformance", "bounds"}, name)

    def test_every_kernel_has_a_case(self):
        kernels = {path.stem for path in webgpu_cases.KERNELS.glob("*.wgsl")}
        self.assertEqual(kernels, {case[0] for case in webgpu_cases.cases()})

    def test_rows_tell_both_drivers(self):
        rows = compute_clients.rows_of(
            "some", {"a": {"right": True, "seconds": 0.001, "cpu_seconds": 0.004}, "b": {"right": False, "error": "no such"}},
            {"a": {"right": True, "seconds": 0.01}, "b": {"right": True, "seconds": 0.5}})
        self.assertEqual(rows, [["some", "a", "right", "1", "10", "10.0x", "4", ""],
                                ["some", "b", "WRONG", "-", "500", "-", "-", "no such"]])

    def test_second_runs_are_told_beside_the_steady_speed(self):
        rows = compute_clients.warm_up_rows("some", {"a": {"right": True, "seconds": 0.001, "second_run_seconds": 0.004, "fast_run": 3,
                                                           "fast_after_seconds": 0.005},
                                                     "b": {"right": False, "error": "no such"},
                                                     "c": {"right": True, "seconds": 0.001, "second_run_seconds": 0.002}})
        self.assertEqual(rows, [["some", "a", "4", "1", "25%", "3", "5"], ["some", "c", "2", "1", "50%", "-", "-"]])

    def test_a_failed_assertion_is_the_reason_and_not_the_backtrace_behind_it(self):
        self.assertEqual(compute_clients.reason_in("loading\nGGML_ASSERT: a.cpp:1: x > 0\n\n30\twait4.c: No such file\n"),
                         "GGML_ASSERT: a.cpp:1: x > 0")
        self.assertEqual(compute_clients.reason_in("one\ntwo\n\n"), "two")
        self.assertEqual(compute_clients.reason_in(""), "no word")

    def test_an_interruption_keeps_the_answers_of_clients_that_are_done(self):
        def run(name, *_):
            if name == "wgpu":
                raise KeyboardInterrupt
            return {"a": {"right": True, "seconds": 0.001}}

        with tempfile.TemporaryDirectory() as folder:
            answers = Path(folder, "answers.json")
            with mock.patch.object(compute_clients, "install"), mock.patch.object(compute_clients, "run", run), \
                    mock.patch.object(sys, "argv", ["", "taichi", "wgpu", "--no-peer", "--json", str(answers)]):
                self.assertRaises(KeyboardInterrupt, compute_clients.main)
            self.assertEqual(json.loads(answers.read_text())["taichi"]["fornax"]["a"]["right"], True)

    def test_a_client_that_the_systems_lavapipe_is_too_old_for_has_the_newest(self):
        with mock.patch.object(compute_clients, "install") as install, \
                mock.patch.dict(os.environ, {"FORNAX_CLIENTS": "/nowhere"}):
            self.assertEqual(compute_clients.peer_of("dawn", Path("/some.json")), (Path("/some.json"), None))
            install.assert_not_called()
            manifest, suite = compute_clients.peer_of("dawn", None)
            self.assertEqual((manifest.name, suite), ("lvp_icd.json", Path("/nowhere/compute/lavapipe/debian")))
            self.assertTrue(manifest.is_relative_to(suite))
            self.assertEqual(install.call_args.args[0], "lavapipe")
            self.assertEqual(compute_clients.peer_of("taichi", None)[1], None)

    def test_a_program_runs_with_the_c_library_of_a_suite(self):
        with tempfile.TemporaryDirectory() as folder:
            libraries = Path(folder, "usr/lib", f"{os.uname().machine}-linux-gnu")
            libraries.mkdir(parents=True)
            loader = libraries / "ld-linux-some.so.2"
            loader.touch()
            client = Client("", "", ("one",))
            command = client_setup.command_of("some", client, Path(folder))
            self.assertEqual((command[0], command[-1:]), (loader, client_setup.command_of("some", client)))

    def test_a_peer_that_ends_is_told_with_each_case(self):
        rows = compute_clients.rows_of("some", {"a": {"right": True, "seconds": 0.001}},
                                       {"(end)": {"right": False, "error": "exit status 1"}})
        self.assertEqual(rows, [["some", "a", "right", "1", "-", "-", "-", "lavapipe: exit status 1"]])


if __name__ == "__main__":
    unittest.main()
