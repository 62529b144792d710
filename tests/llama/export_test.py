"""`fornax ggml export` with a model of llama.cpp: its directory suffices for a backend without the compiler.

Environment: FORNAX_COMMAND, the command; FORNAX_MANIFEST, the driver's; FORNAX_NODE_MODULES, the folder that
tools/setup/node.sh fills; FORNAX_GGML_WITHOUT_COMPILER, the backend of a build without the graph compiler;
FORNAX_TORCH_PYTHON, a Python with PyTorch, else this one; without PyTorch its test is skipped.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy as np
import onnx
import onnxruntime

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tools/clients"))
from write_llama import write_model  # noqa: E402  (the folder must be known first)

NODE = pathlib.Path(sys.executable).with_name("node")
MODULES = os.environ["FORNAX_NODE_MODULES"]
STEPS = "3"
TORCH_PYTHON = os.environ.get("FORNAX_TORCH_PYTHON", sys.executable)
# Computes the traced module as well, in a process that does not know the script.
TRACED = """
import sys, numpy, torch
module, script, inputs, outputs = torch.jit.load(sys.argv[1]), *sys.argv[2:]
spec = __import__("importlib.util").util.spec_from_file_location("script", script)
names = __import__("importlib.util").util.module_from_spec(spec); spec.loader.exec_module(names)
arrays = numpy.load(inputs)
results = module(*[torch.from_numpy(arrays[name]) for name, _, _ in names.INPUTS])
expected = numpy.load(outputs)
for name, result in zip(names.OUTPUTS, results):
    assert numpy.array_equal(result.numpy(), expected[name]), name
"""


class Export(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fornax-export-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model, self.kernels = self.folder / "model.gguf", self.folder / "kernels"
        write_model(self.model, "q8_0")

    def run_command(self, command, **variables):
        environment = dict(os.environ, FORNAX_CACHE_DIR=str(self.folder / "cache"), **variables)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def generate(self, **variables):
        manifest = os.environ["FORNAX_MANIFEST"]
        run = self.run_command(
            [NODE, HERE / "generate.mjs", MODULES, self.model, "vulkan", STEPS], VK_DRIVER_FILES=manifest,
            VK_ICD_FILENAMES=manifest, GGML_VK_VISIBLE_DEVICES="", FORNAX_LOG_LEVEL="info", **variables)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout), run.stderr

    def export(self, *command, **variables):
        return self.run_command([os.environ["FORNAX_COMMAND"], "ggml", "export", self.model, "-o", self.kernels,
                                 *command], **variables)

    def test_the_directory_suffices_without_the_compiler(self):
        done = self.export("--", NODE, HERE / "generate.mjs", MODULES, "{}", "vulkan", STEPS)
        self.assertEqual(done.returncode, 0, done.stderr)
        plans = sorted(self.kernels.iterdir())
        self.assertGreaterEqual(len(plans), 2)  # the prompt and a token
        self.assertEqual(done.stdout, f"plans of {len(plans)} graphs in {self.kernels}, {len(plans)} of them new\n")
        expected, _ = self.generate(GGML_BACKEND_PATH=str(self.backend()))
        actual, told = self.generate(GGML_BACKEND_PATH=os.environ["FORNAX_GGML_WITHOUT_COMPILER"],
                                     FORNAX_KERNEL_DIR=str(self.kernels))
        self.assertEqual(actual, expected)
        self.assertNotIn("CPU backend computes", told)
        for plan in plans:
            plan.unlink()
        cpu, told = self.generate(GGML_BACKEND_PATH=os.environ["FORNAX_GGML_WITHOUT_COMPILER"],
                                  FORNAX_KERNEL_DIR=str(self.kernels))
        self.assertIn(f"where it is {self.kernels}/{plans[0].name}", told)
        self.assertIn("the CPU backend computes the graph", told)
        # Later steps go on with tokens that may be other ones.
        error, logits = (np.array(cpu["steps"][0]["logits"]) - expected["steps"][0]["logits"],
                         np.array(expected["steps"][0]["logits"]))
        self.assertLess(np.sum(error**2) / np.sum(logits**2), 2e-3)

    def test_onnxruntime_computes_the_same_from_exported_graphs(self):
        for type_name, most_error in (("f16", 1e-4), ("q4_0", 2e-3)):
            write_model(self.model, type_name)
            done = self.export("--formats", "onnx", "--", NODE, HERE / "generate.mjs", MODULES, "{}", "vulkan", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            expected, _ = self.generate(GGML_BACKEND_PATH=str(self.backend()))
            self.check_graphs(expected, most_error)
            for file in self.kernels.iterdir():
                file.unlink()

    def test_pytorch_computes_the_same_from_exported_scripts(self):
        if subprocess.run([TORCH_PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
            self.skipTest("PyTorch is not installed.")
        write_model(self.model, "q8_0")
        done = self.export("--formats", "onnx,torch", "--", NODE, HERE / "generate.mjs", MODULES, "{}", "vulkan", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        expected, _ = self.generate(GGML_BACKEND_PATH=str(self.backend()))
        self.check_graphs(expected, 2e-3, with_scripts=True)

    def check_script(self, script, inputs, names, session):
        arrays, outputs, module = (self.folder / name for name in ("inputs.npz", "outputs.npz", "module.pt"))
        np.savez(arrays, **inputs)
        for command in ([script, "-o", module, arrays, outputs], ["-c", TRACED, module, script, arrays, outputs]):
            done = self.run_command([TORCH_PYTHON, *command])
            self.assertEqual(done.returncode, 0, done.stderr)
        results = np.load(outputs)
        for name, expected in zip(names, session.run(None, inputs), strict=True):
            np.testing.assert_allclose(results[name], expected, rtol=1e-2, atol=1e-3 * np.abs(expected).max(),
                                       err_msg=name)

    def check_graphs(self, expected, most_error, with_scripts=False):
        sessions, scripts = {}, {}
        for file in self.kernels.glob("*.onnx"):
            onnx.checker.check_model(file, full_check=True)
            session = onnxruntime.InferenceSession(file)
            shapes = {port.name: port.shape for port in session.get_inputs()}
            count = shapes["FORNAX0_inp_pos_0"][-1]
            sessions[count] = session, shapes
            if with_scripts:
                scripts[count] = file.with_suffix(".py")
        table = next(tensor for tensor in gguf.GGUFReader(self.model).tensors if tensor.name == "token_embd.weight")
        table = gguf.quants.dequantize(table.data, table.tensor_type)
        tokens = expected["prompt"]
        caches, begin = {}, 0
        for step in expected["steps"][:2]:
            session, shapes = sessions[len(tokens)]
            at = np.arange(begin, begin + len(tokens))
            values = {"FORNAX0_embd_0": table[tokens], "FORNAX0_inp_pos_0": at, "FORNAX0_attn_inp_k_idxs_0": at,
                      "FORNAX0_attn_inp_v_idxs_0": at, "FORNAX0_out_ids_0": [len(tokens) - 1],
                      "FORNAX0_attn_inp_kq_mask_0": np.where(
                          np.arange(shapes["FORNAX0_attn_inp_kq_mask_0"][-1]) > at[:, None], -np.inf, 0)}
            inputs = {}
            for port in session.get_inputs():
                kind = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int32)": np.int32,
                        "tensor(int64)": np.int64}[port.type]
                value = values[port.name] if port.name in values else caches.get(port.name, np.zeros(port.shape))
                self.assertTrue(port.name in values or port.name.startswith("cache_"), port.name)
                inputs[port.name] = np.asarray(value, kind).reshape(port.shape)
            names = [port.name for port in session.get_outputs()]
            if scripts:
                self.check_script(scripts[len(tokens)], inputs, names, session)
            results = dict(zip(names, session.run(None, inputs), strict=True))
            caches = {name.removesuffix("_new"): value for name, value in results.items() if name.endswith("_new")}
            logits = np.array(step["logits"])
            error = results["result_output"].reshape(-1) - logits
            self.assertLess(np.sum(error**2) / np.sum(logits**2), most_error)
            begin += len(tokens)
            tokens = [step["token"]]

    @staticmethod
    def backend():
        return pathlib.Path(os.environ["FORNAX_GGML_WITHOUT_COMPILER"]).parent.parent / "libggml-fornax.so"

    def test_llama_bench_is_the_program_unless_one_is_given(self):
        programs = self.folder / "programs"
        programs.mkdir()
        program = programs / "llama-bench"
        program.write_text(f'#!/bin/sh\necho "$@" > {self.folder}/arguments\n'
                           f'exec {NODE} {HERE}/generate.mjs {MODULES} "$2" vulkan 1\n')
        program.chmod(0o755)
        done = self.export("--prompt", "64", "--tokens", "4", PATH=f"{programs}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "arguments").read_text(), f"-m {self.model} -ngl 99 -r 1 -p 64 -n 4\n")
        self.assertTrue(list(self.kernels.glob("*.plan")))

    def test_what_goes_wrong_is_a_sentence(self):
        for command, told in ((["no-such-program"], "no-such-program cannot be run"), (["false"], "status 1"),
                              (["true"], "computed no graph of")):
            done = self.export("--", *command)
            self.assertEqual(done.returncode, 1)
            self.assertIn(told, done.stderr)
        whole = self.model.read_bytes()
        self.model.write_bytes(whole[:-1])
        done = self.export("--", "false")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"^fornax: {self.model} is cut short: the tensor output.weight ends at byte "
                         f"{len(whole)}, the file at byte {len(whole) - 1}[.]\n$")
        self.model.unlink()
        self.assertEqual(self.export("--", "true").returncode, 1)


if __name__ == "__main__":
    unittest.main()
