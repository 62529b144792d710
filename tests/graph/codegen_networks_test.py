"""The small variants of all networks as programs in C: outputs on this machine, and of some on RISC-V, as onnxruntime's.

Environment: FORNAX_COMMAND. CODEGEN_ONLY, a regular expression, chooses networks.
"""

import os
import re
import subprocess
import sys
import unittest

import numpy as np
import onnx

from codegen_tools import CROSS, has_riscv, missing_riscv
from fornax_command import ROOT, FornaxCase, onnxruntime_outputs

sys.path.insert(0, str(ROOT))
from tools.models.catalogue import NETWORKS  # noqa: E402

# What no program has: functions of the host.
REFUSED = {"yolov8n_nms"}
# Those that QEMU computes in seconds.
ON_RISCV = {"mobilenet_v2", "unet", "bert_base", "vit_b16", "whisper_tiny_decoder", "llama_small", "lstm_tagger",
            "lstm_tagger_dynamic", "llama_small_q4"}
# A norm relative to that of onnxruntime's output. Sums of programs are added up in order. A value that rounds to the
# other side is off by a whole quantum.
NORM, QUANTISED_NORM = 1e-4, 0.06
QUANTISED = re.compile(r"_qdq|_dynamic$|_q4")


def difference(actual, expected):
    if expected.dtype.kind != "f":
        return float(np.mean(actual != expected)) if expected.size else 0.0
    norm = np.linalg.norm(expected.astype(np.float64))
    return float(np.linalg.norm(actual.astype(np.float64) - expected) / max(norm, 1e-30))


class CodegenNetworks(FornaxCase):
    def emit(self, name, model, arrays):
        path, folder = self.directory / f"{name}.onnx", self.directory / name
        onnx.save(model.proto, path)
        ports = [port for port in model.proto.graph.input if port.name in arrays]
        dims = {}
        for port in ports:
            for axis, dim in enumerate(port.type.tensor_type.shape.dim):
                if dim.dim_param:
                    dims[dim.dim_param] = arrays[port.name].shape[axis]
        dims = [argument for dim, size in dims.items() for argument in ("--dim", f"{dim}={size}")]
        result = self.fornax("compile", path, "--emit", "c", "-o", folder, "--name", "net", *dims)
        if name in REFUSED:
            self.assertEqual(result.returncode, 1)
            self.assertIn("has no form in C", result.stderr)
            return None
        self.assertEqual(result.returncode, 0, result.stderr)
        (folder / "net_inputs.bin").write_bytes(
            b"".join(np.ascontiguousarray(arrays[port.name]).tobytes() for port in ports))
        return folder

    def run_program(self, name, folder, expected, *arguments):
        (folder / "net_outputs.bin").unlink(missing_ok=True)
        done = subprocess.run(["make", "-C", str(folder), "CFLAGS=-O2", *arguments, "run"], capture_output=True, text=True,
                              timeout=300, env=dict(os.environ, CROSS_COMPILE=CROSS))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("warning", done.stderr)
        self.assertNotIn("inputs: zeros", done.stdout)
        data = (folder / "net_outputs.bin").read_bytes()
        self.assertEqual(len(data), sum(array.nbytes for array in expected))
        worst = 0.0
        for array in expected:
            actual = np.frombuffer(data[:array.nbytes], array.dtype).reshape(array.shape)
            worst = max(worst, difference(actual, array))
            data = data[array.nbytes:]
        self.assertLessEqual(worst, QUANTISED_NORM if QUANTISED.search(name) else NORM)
        return worst, done.stdout

    def test_small_networks(self):
        only = re.compile(os.environ.get("CODEGEN_ONLY", ""))
        for name, network in NETWORKS.items():
            if not only.search(name):
                continue
            with self.subTest(name):
                model = network.build(**network.small)
                arrays = model.cases[0].arrays()
                folder = self.emit(name, model, arrays)
                if folder is None:
                    continue
                expected = onnxruntime_outputs(model.proto.SerializeToString(), arrays)
                worst, said = self.run_program(name, folder, expected, "HOST=1")
                line = f"{name:32} off by {worst:.1e}"
                if has_riscv() and name in ON_RISCV:
                    worst, said = self.run_program(name, folder, expected)
                    cycles = re.search(r"^cycles: (\d+)$", said, re.MULTILINE).group(1)
                    line += f", {worst:.1e} in {cycles} cycles of RISC-V"
                print(line)
        if not has_riscv():
            self.skipTest(missing_riscv())


if __name__ == "__main__":
    unittest.main(verbosity=2)
