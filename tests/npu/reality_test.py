"""`fornax npu host` and `fornax npu reality`: that they measure, record and compare; not how well the model does.

FORNAX_COMMAND is the command.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.replay import reality  # noqa: E402


def fornax(*arguments):
    clean = {key: value for key, value in os.environ.items() if key != "FORNAX_NPU"}
    return subprocess.run([os.environ["FORNAX_COMMAND"], *map(str, arguments)], env=clean, capture_output=True, text=True,
                          timeout=280)


class StatisticsCase(unittest.TestCase):
    def test_equal_values_share_a_rank(self):
        self.assertEqual(reality.ranks([30, 10, 20, 10]), [4, 1.5, 3, 1.5])

    def test_rank_correlation(self):
        self.assertAlmostEqual(reality.spearman([1, 2, 3, 4], [10, 20, 35, 90]), 1)
        self.assertAlmostEqual(reality.spearman([1, 2, 3, 4], [9, 7, 5, 3]), -1)
        # 1 - 6 * (1 + 1) / (5 * 24)
        self.assertAlmostEqual(reality.spearman([1, 2, 3, 4, 5], [1, 3, 2, 4, 5]), 0.9)
        self.assertIsNone(reality.spearman([1, 2], [3, 3]))

    def test_summaries_are_of_groups(self):
        rows = [{"name": "saxpy", "measured_ns": 10, "modelled_ns": 12, "error": 0.2},
                {"name": "fma", "measured_ns": 20, "modelled_ns": 18, "error": -0.1},
                {"name": "resnet50", "measured_ns": 100, "modelled_ns": 150, "error": 0.5}]
        self.assertEqual(reality.summary(rows), ["kernels: 2, median error 15 %, greatest 20 %, Spearman 1.000",
                                                 "all: 3, median error 20 %, greatest 50 %, Spearman 1.000"])
        self.assertEqual(len(reality.summary(rows[:2])), 1)


    # What a speed is the fields say, whatever its name.
    FIELDS = [{"table": table, "key": key, "unit": unit, "meaning": "m", "faster": faster}
              for table, key, unit, faster in (("vector", "bits", "bit", ""), ("vector", "multiply_add_interval", "cycles", "less"),
                                               ("dram", "speed", "GB/s", "more"), ("dma", "share_ns", "of 1", ""),
                                               ("dma", "policy", "", ""))]

    def descriptions(self):
        return [{"name": "host", "fields": self.FIELDS, "cores": {"clock_ghz": clock},
                 "vector": {"bits": bits, "multiply_add_interval": interval * clock}, "dram": {"speed": speed}, "dma": {"share_ns": share, "policy": "bump"}}
                for bits, interval, speed, share, clock in ((256, 0.6, 60, 0.1, 4), (256, 0.5, 45.0, 0.3, 2), (256, 1, 50.5, 0.2, 1),
                                                             (512, 1.5, 99, 0.9, 1))]

    def test_the_fastest_of_descriptions(self):
        lines = reality.fastest_description(self.descriptions()).splitlines()
        self.assertEqual([line.split("#")[0].strip() for line in lines],
                         ['name = "host"', "", "[vector]", "bits = 256", "multiply_add_interval = 2.0", "", "[dram]", "speed = 60", "",
                          "[dma]", "share_ns = 0.2", 'policy = "bump"'])
        self.assertIn("# GB/s: m", lines[7])

    def test_speeds_that_no_two_descriptions_agree_on(self):
        self.assertEqual(reality.unsure_speeds(self.descriptions()),
                         ["vector.multiply_add_interval (0.5, then 0.6)", "dram.speed (60, then 50.5)"])
        self.assertEqual(reality.unsure_speeds(self.descriptions()[:1]), [])

    def test_rounds_that_were_disturbed(self):
        self.assertIsNone(reality.disturbance([3]))
        self.assertAlmostEqual(reality.disturbance([4, 2, 2.5, 9]), 0.25)
        self.assertTrue(reality.is_disturbed([4, 2, 2.5, 9]))
        self.assertFalse(reality.is_disturbed([9, 2.1, 2]))
        self.assertFalse(reality.is_disturbed([3]))


class RecordsCase(unittest.TestCase):
    def test_the_last_submission_waits_for_none_before(self):
        records = [{"dispatch": "a", "begins_submission": True}, {"dispatch": "b", "begins_submission": True, "after": [0]},
                   {"dispatch": "c", "after": [0, 1]}]
        self.assertEqual(reality.last_submission(records),
                         [{"dispatch": "b", "begins_submission": True}, {"dispatch": "c", "after": [0]}])

    def test_the_second_time_comes_behind_the_first(self):
        records = [{"dispatch": "a", "begins_submission": True}, {"dispatch": "b", "after": [0]}, {"dispatch": "c"}]
        self.assertEqual(reality.twice(records)[3:],
                         [{"dispatch": "a", "after": [0, 1, 2]}, {"dispatch": "b", "after": [3]},
                          {"dispatch": "c", "after": [0, 1, 2]}])


class CommandCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="fornax_reality_test_")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.host = cls.folder / "host.toml"
        ran = fornax("npu", "host", "--quick", "-o", cls.host)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def test_the_host_is_a_description(self):
        text = self.host.read_text()
        self.assertIn('name = "host"', text)
        described = json.loads(fornax("npu", "describe", self.host, "--json").stdout)
        self.assertEqual(described["cores"]["clusters"], len(os.sched_getaffinity(0)))
        for table, key in (("cores", "clock_ghz"), ("vector", "simple_interval"), ("special", "interval"),
                           ("dram", "bandwidth_gbs"), ("command_processor", "drain_ns")):
            self.assertGreater(described[table][key], 0, key)
        self.assertGreaterEqual(described["special"]["interval"], described["vector"]["simple_interval"])

    def test_the_schema_says_what_a_speed_is(self):
        described = json.loads(fornax("npu", "describe", "edge-4", "--json").stdout)
        faster = {f"{field['table']}.{field['key']}": field["faster"] for field in described["fields"]}
        self.assertEqual({faster[key] for key in ("cores.clock_ghz", "matrix.rate_int8", "dram.bandwidth_gbs")}, {"more"})
        self.assertEqual({faster[key] for key in ("scalar.interval", "dma.setup_ns", "command_processor.driver_us")}, {"less"})
        self.assertEqual({faster[key] for key in ("cores.clusters", "dram.efficiency", "scratchpad.policy", "energy.static_mw")}, {""})

    def test_the_fastest_of_measured_descriptions_is_one(self):
        described = json.loads(fornax("npu", "describe", self.host, "--json").stdout)
        path = self.folder / "fastest.toml"
        path.write_text(reality.fastest_description([described]))
        self.assertEqual(json.loads(fornax("npu", "describe", path, "--json").stdout), described)

    def test_a_file_that_cannot_be_written_is_a_sentence(self):
        ran = fornax("npu", "host", "--quick", "-o", self.folder / "none" / "host.toml")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("none/host.toml", ran.stderr)

    def test_kernels_are_measured_and_compared(self):
        kept, report = self.folder / "kept", self.folder / "report.json"
        ran = fornax("npu", "reality", "saxpy", "softmax", "copy", "--quick", "--rounds", "1", "--npu", self.host, "--keep", kept,
                     "--json", report)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("kernels: 3, median error", ran.stdout)
        self.assertNotIn("disturbed", ran.stdout)
        rows = json.loads(report.read_text())["rows"]
        self.assertEqual([row["name"] for row in rows], ["saxpy", "softmax", "copy"])
        for row in rows:
            self.assertGreater(row["modelled_ns"], 0)
            self.assertAlmostEqual(row["error"], row["modelled_ns"] / row["measured_ns"] - 1)
        # Compared again, on a machine with hardly any bandwidth.
        slow = self.folder / "slow.toml"
        text = self.host.read_text()
        slow.write_text(re.sub(r"(\[dram\]\nbandwidth_gbs = )\S+", r"\g<1>0.01", re.sub(r"(\[cache\]\nbytes = )\d+", r"\g<1>0", text)))
        again = fornax("npu", "reality", "saxpy", "--replay", "--npu", slow, "--keep", kept)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIn("| DRAM |", again.stdout)
        # Rounds that do not agree, and a folder of an earlier version.
        (kept / "measured.json").write_text(json.dumps({"saxpy": [4e6, 2e6, 3e6], "softmax": 1e6}))
        disturbed = fornax("npu", "reality", "saxpy", "softmax", "--replay", "--npu", self.host, "--keep", kept)
        self.assertEqual(disturbed.returncode, 0, disturbed.stdout + disturbed.stderr)
        self.assertIn("| saxpy | 2.000 | +50, disturbed |", disturbed.stdout)
        self.assertIn("| softmax | 1.000 |  |", disturbed.stdout)
        self.assertIn("disturbed: of 1 of 2 no second round came within 10 % of the fastest (saxpy).", disturbed.stdout)

    def test_mistakes_are_sentences(self):
        for arguments, message in ((["nothing"], "there is no kernel or network nothing"),
                                   (["--replay"], "--replay needs the folder of --keep"),
                                   (["saxpy", "--rounds", "0"], "--rounds is 0; it must be at least 1"),
                                   (["saxpy", "--replay", "--npu", self.host, "--keep", self.folder / "empty"],
                                    "has no measurement of saxpy")):
            ran = fornax("npu", "reality", *arguments)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn(message, ran.stderr)


if __name__ == "__main__":
    unittest.main()
