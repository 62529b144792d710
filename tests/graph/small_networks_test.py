"""Properties of the plans of all networks, in their small variants: memory, and what depends on weights.

FORNAX_COMMAND is the command.
"""

import json
import sys
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fornax_command import ROOT, FornaxCase, make_model

sys.path.insert(0, str(ROOT))
from tools.models.cases import Case, Input  # noqa: E402
from tools.models.catalogue import NETWORKS  # noqa: E402

# How many times as large as the largest sum of blocks that live at once the arena may be.
MOST_ARENA = 1.1


def trained_further(proto):
    """The same network with other weights: every tensor of more than one number, but for what decides sizes and
    for zero points, which a network's form decides."""
    rng = np.random.default_rng(5)
    proto = onnx.ModelProto.FromString(proto.SerializeToString())
    kept = {name for node in proto.graph.node if node.op_type in ("Resize", "Upsample") for name in node.input}
    changed = 0
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.size < 2 or tensor.name in kept or array.dtype.kind not in "fiu" or array.dtype.itemsize == 8:
            continue
        if array.dtype.kind == "f":
            # Scales stay positive.
            other = (array * rng.uniform(1.01, 1.1, array.shape) + 1e-3).astype(array.dtype)
        elif not array.any():
            continue
        else:
            other = rng.permutation(array.reshape(-1)).reshape(array.shape)
        tensor.CopyFrom(numpy_helper.from_array(other, tensor.name))
        changed += 1
    return proto, changed


class SmallNetworks(FornaxCase):
    def run_network(self, proto, case):
        path, numbers = self.directory / "network.onnx", self.directory / "run.json"
        onnx.save(proto, path)
        np.savez(self.directory / "inputs.npz", **case.arrays())
        self.fornax_ok("run", path, "--input", self.directory / "inputs.npz", "--json", numbers)
        return json.loads(numbers.read_text())

    def test_memory_and_other_weights(self):
        for name, network in NETWORKS.items():
            model = network.build(**network.small)
            first = self.run_network(model.proto, model.cases[0])
            arena, bound = first["arena_bytes"], first["lower_bound_bytes"]
            print(f"{name}: arena {arena}, bound {bound}, {arena / max(bound, 1):.3f} times")
            with self.subTest(name, what="arena"):
                self.assertGreater(bound, 0)
                self.assertLessEqual(arena, MOST_ARENA * bound)
            proto, changed = trained_further(model.proto)
            again = self.run_network(proto, model.cases[0])
            with self.subTest(name, what="weights"):
                self.assertGreater(changed, 0)
                self.assertEqual((again["kernels"], again["kernels_from_cache"]), (first["kernels"], first["kernels"]))

    def test_gains_and_offsets_that_are_all_the_same(self):
        """They are as networks begin with them, and other numbers later."""
        rng = np.random.default_rng(3)
        weights = {"weight": rng.standard_normal((24, 80)).astype(np.float32), "gain": np.ones(80, np.float32),
                   "offset": np.zeros(80, np.float32)}
        nodes = [helper.make_node("MatMul", ["x", "weight"], ["product"]),
                 helper.make_node("Mul", ["product", "gain"], ["scaled"]),
                 helper.make_node("Add", ["scaled", "offset"], ["y"])]
        proto = make_model(nodes, {"x": [40, 24]}, {"y": [40, 80]}, weights)
        case = Case("all", {"x": Input("float32", [40, 24], "normal")})
        first = self.run_network(proto, case)
        again = self.run_network(trained_further(proto)[0], case)
        self.assertEqual((again["kernels"], again["kernels_from_cache"]), (first["kernels"], first["kernels"]))


if __name__ == "__main__":
    unittest.main()
