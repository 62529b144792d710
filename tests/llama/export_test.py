"""`fornax ggml export` with a model of llama.cpp: its directory suffices for a backend without the compiler.

Environment: FORNAX_COMMAND, the command; FORNAX_MANIFEST, the driver's; FORNAX_NODE_MODULES, the folder that
tools/setup/node.sh fills; FORNAX_GGML_WITHOUT_COMPILER, the backend of a build without the graph compiler.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tools/clients"))
from write_llama import write_model  # noqa: E402  (the folder must be known first)

NODE = pathlib.Path(sys.executable).with_name("node")
MODULES = os.environ["FORNAX_NODE_MODULES"]
STEPS = "3"


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
