"""The matrix unit of described machines beside SCALE-Sim: the same cycles, but that it counts from 0.

FORNAX_COMMAND is the command. A few layers of networks, small enough for SCALE-Sim, which takes seconds for each.
"""

import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time
import unittest

import scale_sim

# What SCALE-Sim's documentation and tests publish for an array of 32 x 32.
GOLDEN = {
    ((55 * 55, 96, 11 * 11 * 3), "weight-stationary"): 112283,
    ((256, 128, 256), "weight-stationary"): 11199,
    ((256, 128, 256), "output-stationary"): 10175,
    ((256, 128, 256), "input-stationary"): 14207,
}

# m, n, k of the products that layers are, scaled down where they are large.
LAYERS = {
    "LeNet conv1, 28 x 28 by 5 x 5": (784, 6, 25),
    "LeNet conv2": (100, 16, 150),
    "LeNet dense": (1, 120, 400),
    "ResNet 3 x 3 of 16 channels, 14 x 14": (196, 16, 144),
    "ResNet 1 x 1 of 64 to 32 channels, 7 x 7": (49, 32, 64),
    "MobileNet pointwise, 14 x 14": (196, 48, 24),
    "attention scores of 64 words": (64, 64, 32),
    "attention values of 64 words": (64, 32, 64),
    "projection of a token": (1, 96, 96),
    "square of an odd size": (33, 65, 97),
    "one result": (1, 1, 7),
    "batch of 128 rows": (128, 40, 20),
}


def ours(rows, columns, product):
    m, n, k = product
    command = [os.environ["FORNAX_COMMAND"], "npu", "matrix", "--rows", rows, "--columns", columns,
               "-m", m, "-n", n, "-k", k, "--json"]
    found = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=60)
    return {dataflow: values["cycles"] for dataflow, values in json.loads(found.stdout).items()}


def replay_seconds(side, dataflow, folder):
    """Processor time for a replay of the layers one after the other on a machine with one such array."""
    machine, records = folder / "machine.toml", folder / "layers.jsonl"
    machine.write_text(f'base = "edge-4"\ncores.per_cluster = 1\nmatrix.rows = {side}\nmatrix.columns = {side}\n'
                       f'matrix.dataflow = "{dataflow}"\n')
    lines = [{"fornax_npu_records": 1, "records": len(LAYERS)}]
    for i, (m, n, k) in enumerate(LAYERS.values()):
        product = {"m": m, "n": n, "k": k, "a_bytes": m * k, "b_bytes": k * n}
        lines.append({"dispatch": f"layer {i}", "workgroups": 1, "products": [product],
                      "accesses": [{"bytes": m * k + k * n}, {"bytes": m * n, "writes": True}], "after": [i - 1] if i else []})
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = subprocess.run([os.environ["FORNAX_COMMAND"], "profile", records, "--npu", machine, "--json"], capture_output=True,
                           text=True, check=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert json.loads(found.stdout)["records"] == len(LAYERS)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class ScaleSim(unittest.TestCase):
    def test_published(self):
        for (product, dataflow), cycles in GOLDEN.items():
            self.assertEqual(ours(32, 32, product)[dataflow] - 1, cycles)

    def test_layers(self):
        with tempfile.TemporaryDirectory(prefix="fornax_scale_sim_") as name:
            self.layers(pathlib.Path(name))

    def layers(self, folder):
        of_theirs = of_ours = 0
        for side in (8, 32, 128):
            found = {name: ours(side, side, product) for name, product in LAYERS.items()}
            for dataflow in scale_sim.DATAFLOWS:
                begin = time.process_time()
                expected = scale_sim.cycles(side, side, dataflow, LAYERS.values())
                theirs = time.process_time() - begin
                replayed = replay_seconds(side, dataflow, folder)
                of_theirs, of_ours = of_theirs + theirs, of_ours + replayed
                print(f"{side} x {side}, {dataflow}: {len(LAYERS)} layers in {theirs:.1f} s of SCALE-Sim, {replayed:.3f} s of fornax "
                      "profile", flush=True)
                for (name, cycles), theirs in zip(found.items(), expected, strict=True):
                    with self.subTest(side=side, dataflow=dataflow, layer=name):
                        self.assertEqual(cycles[dataflow] - 1, theirs)
        print(f"In all {of_theirs:.1f} s of SCALE-Sim, {of_ours:.2f} s of fornax profile: {of_theirs / of_ours:.0f} times", flush=True)

    def test_arrays_that_are_not_square(self):
        product = LAYERS["square of an odd size"]
        for rows, columns in ((8, 32), (32, 8)):
            for dataflow in scale_sim.DATAFLOWS:
                with self.subTest(rows=rows, columns=columns, dataflow=dataflow):
                    self.assertEqual(ours(rows, columns, product)[dataflow] - 1,
                                     scale_sim.cycles(rows, columns, dataflow, [product])[0])


if __name__ == "__main__":
    unittest.main(warnings="ignore")  # SCALE-Sim leaves files open
