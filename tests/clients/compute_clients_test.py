"""tools/clients/compute_clients.py and its comparison of results, without any client."""

import sys
import unittest
from pathlib import Path
from unittest import mock

TOOLS = Path(__file__).resolve().parents[2] / "tools/clients"
sys.path[:0] = [str(TOOLS), str(TOOLS / "compute")]

import case_runner  # noqa: E402
import compute_clients  # noqa: E402
import numpy as np  # noqa: E402
import webgpu_cases  # noqa: E402


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
            self.assertEqual(case_runner.measured(None), {"seconds": 0.1, "second_run_seconds": 0.5})

    def test_a_share_may_differ(self):
        expected = np.arange(100)
        result = expected.copy()
        result[5] = 77
        self.assertFalse(case_runner.is_close(result, expected))
        self.assertTrue(case_runner.is_close(result, expected, share=0.01))


class ClientsTest(unittest.TestCase):
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
        rows = compute_clients.warm_up_rows("some", {"a": {"right": True, "seconds": 0.001, "second_run_seconds": 0.004},
                                                     "b": {"right": False, "error": "no such"}})
        self.assertEqual(rows, [["some", "a", "4", "1", "25%"]])

    def test_a_peer_that_ends_is_told_with_each_case(self):
        rows = compute_clients.rows_of("some", {"a": {"right": True, "seconds": 0.001}},
                                       {"(end)": {"right": False, "error": "exit status 1"}})
        self.assertEqual(rows, [["some", "a", "right", "1", "-", "-", "-", "lavapipe: exit status 1"]])


if __name__ == "__main__":
    unittest.main()
