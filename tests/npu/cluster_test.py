"""`fornax sweep --cluster`: a Dask cluster of three processes, one of which is killed in the middle.

FORNAX_COMMAND is the command. Skipped (77) without the package distributed.
"""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

if importlib.util.find_spec("distributed") is None:
    print("The package distributed is not installed.")
    sys.exit(77)

from distributed import LocalCluster  # noqa: E402

SPACE = """base = "edge-4"
[cores]
clusters = [1, 2, 3, 4]
[dram]
bandwidth_gbs = [8.5, 10, 12, 14, 17, 20, 25, 34]
[scratchpad]
bytes = [262144, 524288, 1048576]
"""


def records():
    lines = [{"fornax_npu_records": 1, "records": 40}]
    for i in range(40):
        lines.append({"dispatch": f"kernel {i % 5}", "workgroups": 64, "simple_operations": 100000 * (i + 1),
                      "accesses": [{"bytes": 50000 * (i + 1)}, {"bytes": 10000, "writes": True}],
                      "request_least_bytes": 256, "request_preferred_bytes": 4096, "after": [i - 1] if i else []})
    return "".join(json.dumps(line) + "\n" for line in lines)


class Cluster(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fornax_cluster_")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "space.toml").write_text(SPACE)
        (self.folder / "program.jsonl").write_text(records())
        # What workers run says when it begins, and takes its time.
        self.log = self.folder / "log"
        slow = self.folder / "slow.sh"
        slow.write_text(f"#!/bin/sh\necho $PPID >> {self.log}\nsleep 0.4\nexec {os.environ['FORNAX_COMMAND']} \"$@\"\n")
        slow.chmod(0o755)
        self.slow = str(slow)

    def command(self, *arguments):
        return [os.environ["FORNAX_COMMAND"], "sweep", str(self.folder / "space.toml"), str(self.folder / "program.jsonl"),
                "--python", sys.executable, *map(str, arguments)]

    def test_a_worker_is_killed(self):
        alone, together = self.folder / "alone.csv", self.folder / "together.csv"
        subprocess.run(self.command("-o", alone), check=True, capture_output=True, timeout=60)
        with LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None,
                          env={"FORNAX_COMMAND": self.slow}) as cluster:
            sweep = subprocess.Popen(self.command("-o", together, "--cluster", cluster.scheduler_address),
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            deadline = time.monotonic() + 60
            while not self.log.exists() or len(self.log.read_text().split()) < 5:
                self.assertLess(time.monotonic(), deadline)
                self.assertIsNone(sweep.poll(), "it ended before a worker was killed")
                time.sleep(0.05)
            # It is in the middle of a part.
            os.kill(int(self.log.read_text().split()[-1]), signal.SIGKILL)
            output, _ = sweep.communicate(timeout=120)
        self.assertEqual(sweep.returncode, 0, output)
        self.assertIn("96 descriptions", output)
        self.assertIn("with the cluster tcp://", output)
        self.assertEqual(together.read_text(), alone.read_text())

    def test_no_cluster(self):
        ran = subprocess.run(self.command("--cluster", "nowhere:1", "-o", self.folder / "none.csv"),
                             capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertRegex(ran.stderr, "^fornax: The cluster nowhere:1 failed: ")
        self.assertFalse((self.folder / "none.csv").exists())


if __name__ == "__main__":
    unittest.main()
